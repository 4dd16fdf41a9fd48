"""Progress of a run: a live table on a terminal, a plain log elsewhere."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from typing import Protocol as Interface
from typing import Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from idfsmec.evaluation._units import Outcome, Unit

_LOG_EVERY_SECONDS = 15.0


class Reporter(Interface):
    """What a run tells about its progress."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def update(self, unit: Unit, outcome: Outcome) -> None:
        """Take notice of a unit that has ended."""


class RunningMeans:
    """Mean score per method over the units that have ended, and how many failed."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.failed: dict[str, int] = defaultdict(int)
        self.scores: dict[str, list[float]] = defaultdict(list)

    def update(self, unit: Unit, outcome: Outcome) -> None:
        """Add a unit: its chosen row, or the mean of all rows where none is chosen."""
        name = unit.contestant.name
        if outcome.result is None:
            self.failed[name] += 1
            return
        rows = [row for row in outcome.result.rows if row["chosen"]] or outcome.result.rows
        values = [row[self.metric] for row in rows if np.isfinite(row[self.metric])]
        if values:
            self.scores[name].append(float(np.mean(values)))

    @property
    def n_failed(self) -> int:
        """All failures so far."""
        return sum(self.failed.values())

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Method, units done, mean score, failures; best first."""
        names = dict.fromkeys([*self.scores, *self.failed])
        means = {name: np.mean(self.scores[name]) if self.scores[name] else -1 for name in names}
        return [
            (
                name,
                str(len(self.scores[name])),
                f"{100 * means[name]:.1f}" if means[name] >= 0 else "-",
                str(self.failed[name]) if self.failed[name] else "",
            )
            for name in sorted(names, key=lambda name: -means[name])
        ]


class LiveReporter:
    """A bar with the time left, and running means, on a terminal."""

    def __init__(self, console: Console, title: str, total: int, metric: str) -> None:
        self._means = RunningMeans(metric)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task(title, total=total)
        self._live = Live(self._picture(), console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.update(self._picture(), refresh=True)
        self._live.stop()

    def update(self, unit: Unit, outcome: Outcome) -> None:
        """Advance the bar and the means."""
        self._means.update(unit, outcome)
        self._progress.advance(self._task)
        self._live.update(self._picture())

    def _picture(self) -> Group:
        table = Table(box=None, pad_edge=False)
        table.add_column("method")
        heading = self._means.metric.replace("_", " ")
        for column in ("units", f"mean {heading} %", "failed"):
            table.add_column(column, justify="right")
        for line in self._means.lines():
            table.add_row(*line)
        return Group(table, self._progress)


class LogReporter:
    """A line now and then: for log files and batch systems."""

    def __init__(self, console: Console, title: str, total: int, metric: str) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._means = RunningMeans(metric)
        self._done = self._told = 0
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._say(f"{self._title}: {self._total} units to do")
        return self

    def __exit__(self, *error: object) -> None:
        self._report()

    def update(self, unit: Unit, outcome: Outcome) -> None:
        """Count the unit; speak if the last line is some time ago."""
        self._done += 1
        self._means.update(unit, outcome)
        if outcome.error is not None:
            where = ", ".join(f"{key} {value}" for key, value in unit.coordinates().items())
            self._say(f"{self._title}: failed: {where}: {outcome.error.strip().splitlines()[-1]}")
        if time.monotonic() - self._said >= _LOG_EVERY_SECONDS:
            self._report()

    def _report(self) -> None:
        self._said = time.monotonic()
        if self._done == self._told:
            return
        self._told = self._done
        left = (self._total - self._done) * (self._said - self._began) / self._done
        means = ", ".join(f"{name} {mean}" for name, _, mean, _ in self._means.lines())
        self._say(
            f"{self._title}: {self._done}/{self._total} units, {self._means.n_failed} failed, "
            f"{left:.0f} s left; mean {self._means.metric} %: {means}"
        )

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class SilentReporter:
    """No progress at all."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, unit: Unit, outcome: Outcome) -> None:
        """Say nothing."""


def make_reporter(progress: bool, title: str, total: int, metric: str) -> Reporter:
    """Choose by what standard error is: a terminal gets a picture, a file gets lines."""
    if not progress or total == 0:
        return SilentReporter()
    console = Console(file=sys.stderr)
    kind = LiveReporter if console.is_terminal else LogReporter
    return kind(console, title, total, metric)
