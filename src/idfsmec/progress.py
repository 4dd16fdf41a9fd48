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
