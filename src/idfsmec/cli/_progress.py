"""The one place where progress is drawn: bars on a terminal, a line now and then elsewhere.

The library emits events (:mod:`idfsmec.progress`); a command hands it a listener from here::

    with shown("features") as progress:
        extract_table(recordings, progress=progress)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

from idfsmec.cli._console import error_console, visible

if TYPE_CHECKING:  # at run time when something is drawn: --help should not wait for it
    from rich.console import Console, RenderableType

    from idfsmec.progress import Listener, Progress

_LOG_EVERY_SECONDS = 5.0


class Digest(Interface):
    """What is shown beside the bar about the pieces that ended, such as their mean scores."""

    def begin(self, plan: Any) -> str | None:
        """Take notice of what is to be done; return what one should know about it."""

    def update(self, item: Any) -> str | None:
        """Take notice of a piece; return what deserves a line of its own, such as a failure."""

    def picture(self) -> RenderableType:
        """Draw it for a terminal."""

    def sentence(self) -> str:
        """Say it in one line for a log."""


@contextmanager
def shown(
    title: str = "",
    *,
    quiet: bool = False,
    describe: Callable[[Any], str] | None = None,
    digest: Digest | None = None,
) -> Iterator[Listener | None]:
    """Give a listener that draws what it hears until the block ends.

    Parameters
    ----------
    title : str
        What is being done, shown from the beginning; by default every task has its own name.
    quiet : bool
        Draw nothing; the listener is None.
    describe : callable, optional
        Words for the piece that ended last.
    digest : Digest, optional
        Sums up the pieces.
    """
    if quiet:
        yield None
        return
    kind = _Bars if error_console.is_terminal else _Lines
    display = kind(error_console, title, describe or (lambda item: ""), digest)
    display.begin()
    try:
        yield display.update
    finally:
        display.end()


class _Bars:
    """A bar for every task, with the time left, and the digest above."""

    def __init__(
        self,
        console: Console,
        title: str,
        describe: Callable[[Any], str],
        digest: Digest | None,
    ) -> None:
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._title, self._describe, self._digest = title, describe, digest
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[last]}", markup=False),
            console=console,
        )
        self._tasks: dict[str, Any] = {}
        self._live = Live(self._picture(), console=console, refresh_per_second=4)

    def begin(self) -> None:
        if self._title:
            self._task(self._title)
        self._live.start()

    def end(self) -> None:
        self._live.update(self._picture(), refresh=True)
        self._live.stop()

    def update(self, event: Progress) -> None:
        """Move the task's bar, and add the piece to the digest."""
        if remark := _remark(self._digest, event):
            self._live.console.print(remark, markup=False, highlight=False)
        self._bars.update(
            self._task(self._title or event.task),
            completed=event.done,
            total=event.total,
            last="" if event.item is None else visible(self._describe(event.item)),
        )
        self._live.update(self._picture())

    def _task(self, name: str) -> Any:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(visible(name), total=None, last="")
        return self._tasks[name]

    def _picture(self) -> RenderableType:
        from rich.console import Group

        return self._bars if self._digest is None else Group(self._digest.picture(), self._bars)


def _remark(digest: Digest | None, event: Progress) -> str | None:
    """What there is to say when work begins, or of the piece that ended."""
    if digest is None:
        return None
    if event.item is not None:
        return digest.update(event.item)
    return None if event.plan is None else digest.begin(event.plan)


@dataclass
class _Log:
    """What was said of a task, and when."""

    began: float
    done_before: int
    said: float
    told: int


class _Lines:
    """Plain lines: for log files and batch systems."""

    def __init__(
        self,
        console: Console,
        title: str,
        describe: Callable[[Any], str],
        digest: Digest | None,
    ) -> None:
        self._console, self._title = console, title
        self._describe, self._digest = describe, digest
        self._logs: dict[str, _Log] = {}
        self._last: dict[str, Progress] = {}

    def begin(self) -> None:
        """Nothing is said before there is something to say."""

    def end(self) -> None:
        for name, event in self._last.items():
            if event.done > self._logs[name].told:
                self._report(name, event)

    def update(self, event: Progress) -> None:
        """Say how much there is to do, what failed, and now and then how far it is."""
        name, now = self._title or event.task, time.monotonic()
        if name not in self._logs:
            self._logs[name] = _Log(now, event.done, now, event.done)
            if event.total is not None and event.item is None:
                self._say(f"{name}: {event.total - event.done} of {event.total} to do")
        self._last[name] = event
        if remark := _remark(self._digest, event):
            self._say(f"{name}: {remark}")
        if now - self._logs[name].said >= _LOG_EVERY_SECONDS:
            self._report(name, event)

    def _report(self, name: str, event: Progress) -> None:
        log = self._logs[name]
        log.said, log.told = time.monotonic(), event.done
        parts = [f"{name}: {event.done}"]
        if event.total is not None:
            new = max(event.done - log.done_before, 1)
            left = (event.total - event.done) * (log.said - log.began) / new
            parts = [f"{name}: {event.done} of {event.total}, {left:.0f} s left"]
        parts += ["" if event.item is None else self._describe(event.item)]
        parts += ["" if self._digest is None else self._digest.sentence()]
        self._say("; ".join(part for part in parts if part))

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
