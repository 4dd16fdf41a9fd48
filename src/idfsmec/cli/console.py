"""The console: results on standard output, progress, warnings and errors on standard error.

The library emits events (:mod:`idfsmec.progress`); a command hands it a listener, :class:`shown`.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from textwrap import fill, shorten
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from idfsmec.progress import collect_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.text import Text

    from idfsmec.progress import Listener, Progress

#: Colours of an audit's verdict.
COLOURS = {"red": "bold red", "amber": "bold yellow", "green": "bold green", "grey": "bold"}
#: Global options of the call that is running.
state = SimpleNamespace(debug=False, quiet=False, verbose=False)
#: Characters of a line where there is no terminal.
WIDTH = 80
#: A log gets a line of progress when a tenth is done and the first time has passed, or the second.
LOG_SECONDS = (5.0, 60.0)
# Characters that steer a terminal, except line ends and tabs. A channel's name may hold them.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


class _Stream:
    """The present standard output or error; what was computed is not lost if its reader has gone.

    A reader like ``head`` closes the pipe early, and a program may be started without a terminal.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # A stream that was closed before we were started is None.
        attribute = getattr(getattr(sys, self._name) or self._discard(), name)
        guarded = name in ("write", "flush", "isatty")
        return partial(self._try, attribute) if guarded else attribute

    def _try(self, action: Callable[..., Any], *args: Any) -> Any:
        try:
            return action(*args)
        except (OSError, ValueError):
            # Also what is in the buffer must go nowhere, or the interpreter complains at exit.
            self._discard()
            return None

    def _discard(self) -> Any:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        setattr(sys, self._name, stream)
        return stream


@cache
def console(stream: str = "stdout") -> Console:
    """Return the console of a stream; rich is imported when something is printed."""
    from rich.console import Console

    return Console(file=_Stream(stream), stderr=stream == "stderr")  # type: ignore[arg-type]


def flush_output() -> None:
    """Flush standard output; if that fails, the rest is discarded."""
    _Stream("stdout").flush()


def plain(text: Any, style: str = "") -> Text:
    r"""Make a text of anything: brackets are no markup, control characters are written out.

    >>> print(plain("[b]Fp1\x1b[2J"))
    [b]Fp1\x1b[2J
    """
    from rich.text import Text

    return Text(str(text).translate(_CONTROLS), style=style)


def say(text: str, path: object = "", *, style: str = "", stream: str = "stdout") -> None:
    """Print a result, broken between words; a path at its end stays whole, on one line.

    A value behind its name and blanks stays in its column.
    """
    output = console(stream)
    lines = []
    for line in text.splitlines():
        column = re.match(r"\s*(?:\S+\s{2,})?", line)
        indent = " " * (column.end() if column else 0)
        rules: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        fits = len(line) <= output.width
        lines += [line if fits else fill(line, output.width, subsequent_indent=indent, **rules)]
    whole = " ".join(filter(None, ["\n".join(lines), str(path)]))
    output.print(plain(whole, style), soft_wrap=True)


def show_frame(title: str, rows: Any, header: Iterable[str] = ()) -> None:
    """Print rows as a table; columns whose texts begin with a number stand at the right."""
    import pandas as pd
    from rich import box
    from rich.table import Table

    say(title)
    frame = pd.DataFrame(rows, columns=list(header) or None)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for name, cells in frame.astype(str).items():
        is_number = cells.str.match(r"[-−]?\d|$").all()
        table.add_column(plain(name), justify="right" if is_number else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*map(plain, row))
    console().print(table, "")


def say_next(*words: object) -> None:
    """Print the command that usually follows."""
    say("next: idfsmec", " ".join(map(str, words)))


def say_page(name: str, page: object) -> None:
    """Print where a page, or a folder of pages, is, and that it is for a browser."""
    say(f"{name}:", page)
    say("next: open in a browser:", page)


def print_verdict(name: object, verdict: Mapping[str, str]) -> None:
    """Print the verdict of a table's audit with its reason, or that there was none."""
    from idfsmec.table.verdicts import NOT_AUDITED

    verdict = verdict or NOT_AUDITED
    text = f"{name}: {verdict['title']}. {verdict['verdict']}"
    say(text, style=COLOURS[verdict["level"]])


def remark(text: str, style: str = "") -> None:
    """Print a text on standard error, broken between words."""
    say(text, style=style, stream="stderr")


def print_error(text: str) -> None:
    """Print an error in one sentence."""
    try:
        remark(f"error: {text}", "red")
    except MemoryError:
        print_plainly(text)


def print_plainly(text: str) -> None:
    """Print an error at once, without allocating memory, from any thread."""
    with suppress(OSError):
        os.write(2, f"error: {text.translate(_CONTROLS)}\n".encode(errors="replace"))


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print the warnings of a block as they come, each text once."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in told:
            told.add(text)
            remark(f"warning: {text}", "yellow")

    with collect_warnings():
        warnings.showwarning = tell  # until the block ends
        yield


@contextmanager
def logged() -> Iterator[None]:
    """With ``--verbose`` write the package's log to standard error, with times."""
    log, handler = logging.getLogger("idfsmec"), logging.StreamHandler(_Stream("stderr"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = log.level
    if state.verbose:
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class shown:  # noqa: N801 - a context, in small letters like contextlib.suppress
    """Draw progress on standard error inside the block; gives a listener, None with ``--quiet``.

    Bars on a terminal, short lines elsewhere, under ``title`` or the name of each event.
    ``describe`` names what ended last, beside a bar. ``digest`` sums up: ``update(item)`` returns
    what deserves a line of its own, ``sentence()`` the state of all so far.
    """

    def __init__(
        self, title: str = "", *, describe: Callable[[Any], str] = lambda _: "", digest: Any = None
    ) -> None:
        self._title, self._describe, self._digest = title, describe, digest
        self._tasks: dict[str, SimpleNamespace] = {}
        self._bars: Any = None

    def __enter__(self) -> Listener | None:
        if state.quiet:
            return None
        if console("stderr").is_terminal:
            from rich import progress

            self._bars = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left"),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[last]}", markup=False),
                console=console("stderr"),
            )
            self._bars.start()
            if self._title:
                self._task(self._title)
        # With bars only a digest has something to add in lines.
        self._writes_lines = self._bars is None or self._digest is not None
        return self.update

    def __exit__(self, *_: object) -> None:
        for name, task in self._tasks.items():
            if self._writes_lines and task.event and task.event.done > task.done_printed:
                self._report(name, task)
        if self._bars is not None:
            self._bars.stop()

    def update(self, event: Progress) -> None:
        """Draw an event: its bar, what is new, and now and then how far the work is."""
        name = self._title or event.task
        task = self._task(name)
        if task.event is None:
            task.began, task.done_before, task.done_printed = task.printed, event.done, event.done
            if self._writes_lines and event.total is not None and event.item is None:
                remark(f"{name}: {event.total - event.done} of {event.total} to do")
        task.event = event
        digests = self._digest is not None and event.item is not None
        if digests and (news := self._digest.update(event.item)):
            remark(f"{name}: {news}")
        if self._bars is not None:
            last = plain("" if event.item is None else self._describe(event.item)).plain
            self._bars.update(task.bar, completed=event.done, total=event.total, last=last)
        often, seldom = LOG_SECONDS
        waited, new = time.monotonic() - task.printed, event.done - task.done_printed
        if self._writes_lines and waited >= (often if 10 * new >= (event.total or 0) else seldom):
            self._report(name, task)

    def _task(self, name: str) -> SimpleNamespace:
        if name not in self._tasks:
            bar = self._bars and self._bars.add_task(plain(name).plain, total=None, last="")
            self._tasks[name] = SimpleNamespace(bar=bar, printed=time.monotonic(), event=None)
        return self._tasks[name]

    def _report(self, name: str, task: SimpleNamespace) -> None:
        event = task.event
        task.printed, task.done_printed = time.monotonic(), event.done
        parts = [f"{name}: {event.done}"]
        if event.total is not None:
            new = max(event.done - task.done_before, 1)
            left = (event.total - event.done) * (task.printed - task.began) / new
            parts = [f"{name}: {event.done} of {event.total}, {left:.0f} s left"]
        parts += ["" if self._digest is None else self._digest.sentence()]
        remark(shorten("; ".join(filter(None, parts)), WIDTH, placeholder=" ..."))


def shown_recordings() -> shown:
    """Return what draws the progress of an extraction."""
    return shown("recordings", describe=lambda outcome: Path(outcome.source).name)
