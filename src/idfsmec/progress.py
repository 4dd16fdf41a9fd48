"""Progress and warnings of long work: what the library reports to a listener, which shows it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """Describe one step of a long piece of work.

    Parameters
    ----------
    task : str
        What is being done, such as ``"features"`` or the name of an experiment.
    done : int
        Pieces that have ended so far; 0 says that the work begins.
    total : int or None
        How many there are, if that is known.
    item : object, optional
        What ended: a recording's outcome, a task and its result.
    """

    task: str
    done: int
    total: int | None = None
    item: Any = None


#: Called by functions that take long with each step.
Listener = Callable[[Progress], None]


class Steps:
    """Count the pieces of one task as they end, and report to a listener."""

    def __init__(self, task: str, total: int, listener: Listener | None) -> None:
        self._task, self._total, self._listener = task, total, listener
        self._count = 0
        self._tell()

    def done(self, pieces: int = 1, item: Any = None) -> None:
        """Count pieces that have ended, and say what they were."""
        self._count = min(self._count + pieces, self._total)
        self._tell(item)

    def end(self) -> None:
        """Report the end, even if there were fewer pieces than expected."""
        self.done(self._total)

    def _tell(self, item: Any = None) -> None:
        if self._listener is not None:
            self._listener(Progress(self._task, self._count, self._total, item))


# Libraries tell programmers with these what they will change; whoever runs a study cannot help it.
_FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning)


@contextmanager
def collect_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect what is warned about inside the block, but for what only programmers need."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in _FOR_PROGRAMMERS:
            warnings.simplefilter("ignore", category)
        yield caught


def warning_texts(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return each text once, in one line, in the order of their first coming."""
    return list(dict.fromkeys(" ".join(str(item.message).split()) for item in caught))
