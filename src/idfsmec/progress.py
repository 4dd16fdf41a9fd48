"""Progress of long work: events that the library emits and somebody else shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """One step of a long piece of work.

    Parameters
    ----------
    task : str
        What is being done, such as ``"features"`` or the name of an experiment.
    done : int
        Pieces that have ended so far; 0 says that the work begins.
    total : int or None
        How many there are, if that is known.
    item : object, optional
        What ended: a recording's outcome, a unit and its result.
    plan : object, optional
        What the work consists of, told when it begins.

    Examples
    --------
    >>> Progress("features", 3, 12).share
    0.25
    """

    task: str
    done: int
    total: int | None = None
    item: Any = None
    plan: Any = None

    @property
    def share(self) -> float | None:
        """Share that is done, from 0 to 1; None where the total is not known."""
        return self.done / self.total if self.total else None


#: What functions that take long call with each step; None wants to hear nothing.
Listener = Callable[[Progress], None]


class Steps:
    """Pieces of one task, counted as they end.

    Parameters
    ----------
    task : str
    total : int
        How many there are at most.
    listener : callable or None
        Hears that the work begins, and of each piece.

    Examples
    --------
    >>> steps = Steps("tuning", 12, lambda event: print(event.done, event.total))
    0 12
    >>> steps.done()
    1 12
    >>> steps.end()
    12 12
    """

    def __init__(self, task: str, total: int, listener: Listener | None) -> None:
        self._task, self._total, self._listener = task, total, listener
        self._count = 0
        self._tell()

    def done(self, pieces: int = 1) -> None:
        """Count pieces that have ended."""
        self._count = min(self._count + pieces, self._total)
        self._tell()

    def end(self) -> None:
        """Say that all is done, whether there were as many pieces or fewer."""
        self.done(self._total)

    def _tell(self) -> None:
        if self._listener is not None:
            self._listener(Progress(self._task, self._count, self._total))
