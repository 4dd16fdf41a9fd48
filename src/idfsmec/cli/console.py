"""The console: results on standard output, progress, warnings and errors on standard error.

The library emits events (:mod:`idfsmec.progress`); a command hands it a listener from here::

    with shown("features") as progress:
        extract_table(recordings, progress=progress)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from idfsmec.progress import collect_warnings, warning_texts

if TYPE_CHECKING:  # at run time when something is drawn: --help should not wait for it
    from idfsmec.progress import Listener, Progress

#: Global options of the call that is running.
state = SimpleNamespace(debug=False, quiet=False)
#: Seconds between two lines of progress where there is no terminal.
LOG_EVERY_SECONDS = 5.0
# Characters that steer a terminal, except line ends and tabs. A channel's name may hold them.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


class _Stream:
    """Standard output or error as it is now; when its reader is gone, the work goes on.

    A reader like ``head`` closes the pipe early, a terminal may be gone, and a program may be
    started without: what was computed must not be lost for that.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str) -> int:
        return self._do("write", text) or 0

    def flush(self) -> None:
        self._do("flush")

    def isatty(self) -> bool:
        return bool(self._do("isatty"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream(), name)

    def _stream(self) -> Any:
        # A stream that was closed before we were started is None.
        return getattr(sys, self._name) or self._discard()

    def _discard(self) -> Any:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        setattr(sys, self._name, stream)
        return stream

    def _do(self, action: str, *args: Any) -> Any:
        try:
            return getattr(self._stream(), action)(*args)
        except (OSError, ValueError):
            # Also what is in the buffer must go nowhere, or the interpreter complains at exit.
            self._discard()
            return None


class SafeConsole(Console):
    """A console that shows, and does not obey, control characters in what it is given."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, for rows of tables too."""
        return super().render_str(visible(text), **options)

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        """Make segments of anything else; what rich itself tells the terminal is no text."""
        for segment in super().render(*given, **options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def visible(text: str) -> str:
    r"""Write out the characters that would steer a terminal.

    Examples
    --------
    >>> print(visible("Fp1\x1b[2J"))
    Fp1\x1b[2J
    """
    return text.translate(_CONTROLS)


def plain(text: Any, style: str = "") -> Text:
    r"""Make a text of anything, for a table: brackets are no markup, control characters are seen.

    Examples
    --------
    >>> print(plain("[b]Fp1\x1b[2J"))
    [b]Fp1\x1b[2J
    """
    return Text(visible(str(text)), style=style)


console = SafeConsole(file=_Stream("stdout"))  # type: ignore[arg-type]
error_console = SafeConsole(file=_Stream("stderr"), stderr=True)  # type: ignore[arg-type]


def say(text: str, *, style: str = "", prose: bool = False) -> None:
    """Print a result as it is; only prose is broken between words, so that paths stay whole."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=not prose)


def show_rows(title: str, headings: dict[str, str], rows: Any) -> None:
    """Print a table; ``headings`` has the justification, ``"left"`` or ``"right"``, of each."""
    from rich.table import Table

    table = Table(title=plain(title))
    for heading, justify in headings.items():
        table.add_column(plain(heading), justify="left" if justify == "left" else "right")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    console.print(table)


def remark(text: str, style: str = "") -> None:
    """Print one line beside the results."""
    error_console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_error(text: str) -> None:
    """Print one line that says what went wrong."""
    try:
        remark(f"error: {text}", "red")
    except MemoryError:
        print_plainly(text)


def print_plainly(text: str) -> None:
    """Print an error at once: in a way that needs no memory, and from any thread."""
    with suppress(OSError):
        os.write(2, f"error: {visible(text)}\n".encode(errors="replace"))


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print what is warned about inside the block when it ends, each text once."""
    with collect_warnings() as caught:
        try:
            yield
        finally:
            for text in warning_texts(caught):
                remark(f"warning: {text}", "yellow")


@contextmanager
def shown(
    title: str = "",
    *,
    describe: Callable[[Any], str] = lambda item: "",
    digest: Any = None,
) -> Iterator[Listener | None]:
    """Give a listener that draws what it hears until the block ends; None with ``--quiet``.

    Bars on a terminal, a line now and then elsewhere.

    Parameters
    ----------
    title : str
        What is being done, shown from the beginning; by default every event has its own name.
    describe : callable
        Words for what ended last.
    digest : object, optional
        Sums up what ended: ``begin(plan)`` and ``update(item)`` return what deserves a line of its
        own, or None; ``sentence()`` returns the sum of all so far.
    """
    if state.quiet:
        yield None
        return
    display = _Display(title, describe, digest)
    try:
        yield display.update
    finally:
        display.end()


@dataclass
class _Log:
    """What was printed of a task, and when."""

    began: float
    done_before: int
    printed: float
    done_printed: int
    last: Progress


class _Display:
    """Progress of tasks on standard error."""

    def __init__(self, title: str, describe: Callable[[Any], str], digest: Any) -> None:
        self._title, self._describe, self._digest = title, describe, digest
        self._logs: dict[str, _Log] = {}
        self._bars: dict[str, Any] = {}
        self._progress = _start_bars() if error_console.is_terminal else None
        if self._progress is not None and title:
            self._bar(title)

    def update(self, event: Progress) -> None:
        """Draw an event: its bar, what is new, and now and then how far the work is."""
        name, now = self._title or event.task, time.monotonic()
        if name not in self._logs:
            self._logs[name] = _Log(now, event.done, now, event.done, event)
            if self._progress is None and event.total is not None and event.item is None:
                remark(f"{name}: {event.total - event.done} of {event.total} to do")
        log = self._logs[name]
        log.last = event
        if news := self._news(event):
            remark(f"{name}: {news}")
        if self._progress is not None:
            last = "" if event.item is None else visible(self._describe(event.item))
            self._progress.update(
                self._bar(name), completed=event.done, total=event.total, last=last
            )
        if now - log.printed >= LOG_EVERY_SECONDS and (self._digest or self._progress is None):
            self._report(name, log)

    def end(self) -> None:
        """Draw the last state."""
        for name, log in self._logs.items():
            if log.last.done > log.done_printed and (self._digest or self._progress is None):
                self._report(name, log)
        if self._progress is not None:
            self._progress.stop()

    def _news(self, event: Progress) -> str | None:
        if self._digest is None:
            return None
        if event.item is not None:
            return self._digest.update(event.item)
        return None if event.plan is None else self._digest.begin(event.plan)

    def _bar(self, name: str) -> Any:
        if self._progress is not None and name not in self._bars:
            self._bars[name] = self._progress.add_task(visible(name), total=None, last="")
        return self._bars[name]

    def _report(self, name: str, log: _Log) -> None:
        event = log.last
        log.printed, log.done_printed = time.monotonic(), event.done
        parts = [f"{name}: {event.done}"]
        if event.total is not None:
            new = max(event.done - log.done_before, 1)
            left = (event.total - event.done) * (log.printed - log.began) / new
            parts = [f"{name}: {event.done} of {event.total}, {left:.0f} s left"]
        parts += ["" if event.item is None else self._describe(event.item)]
        parts += ["" if self._digest is None else self._digest.sentence()]
        remark("; ".join(part for part in parts if part))


def _start_bars() -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
        console=error_console,
    )
    bars.start()
    return bars
