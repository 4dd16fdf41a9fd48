"""Which unit a process does next: it keeps to the fold it has, and helps when none is left."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from idfsmec.evaluation.tables import Arrays, TableArrays
from idfsmec.evaluation.units import Unit, UnitOutcome

#: How a unit is done.
Work = Callable[[Unit, TableArrays], UnitOutcome]

_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY


class Lane(NamedTuple):
    """Units that follow each other on the same fold.

    Attributes
    ----------
    number : int
        From 0 on, in the order in which lanes are begun.
    units : tuple of Unit
    """

    number: int
    units: tuple[Unit, ...]


def make_lanes(units: Sequence[Unit]) -> list[Lane]:
    """Cut units into lanes; what methods share on a fold, such as filled gaps, is made in one."""
    runs = itertools.groupby(units, key=_fold)
    return [Lane(number, tuple(run)) for number, (_, run) in enumerate(runs)]


def tickets(lanes: Sequence[Lane]) -> list[Lane]:
    """As many tickets as there are units, each with a lane; all lanes soon, and again and again.

    Examples
    --------
    >>> [lane.number for lane in tickets([Lane(0, ("a", "b", "c")), Lane(1, ("d",))])]
    [0, 1, 0, 0]
    """
    rounds = itertools.zip_longest(*([lane] * len(lane.units) for lane in lanes))
    return [lane for one in rounds for lane in one if lane is not None]


class Taker:
    """Takes one unit after the other, of lanes that it has seen, into a folder shared by all.

    It stays in its lane, then begins one that nobody has; when all are begun, it takes from the
    end of the longest. Whoever has done a unit takes the next, so that nobody waits.

    Parameters
    ----------
    folder : str
        Empty at first; it has a file for each unit that is taken.

    Examples
    --------
    >>> import tempfile
    >>> lanes = [Lane(0, ("a", "b", "c")), Lane(1, ("d", "e"))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Taker(folder), Taker(folder)
    ...     both = one.take(lanes[0]), other.take(lanes[1]), one.take(lanes[1])
    ...     rest = [other.take(lanes[0]) for _ in range(3)]
    >>> both, rest
    (('a', 'd', 'b'), ['e', 'c', None])
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lanes: dict[int, Lane] = {}
        self._last = -1

    def take(self, lane: Lane) -> Unit | None:
        """See a lane, and take a unit of one that was seen; None if there is none left."""
        self._lanes[lane.number] = lane
        while (wanted := self._choose()) is not None:
            number, place = wanted
            try:
                os.close(os.open(Path(self.folder, f"{number}-{place}"), _NEW))
            except FileExistsError:  # somebody was faster
                continue
            self._last = number
            return self._lanes[number].units[place]
        return None

    def _choose(self) -> tuple[int, int] | None:
        with os.scandir(self.folder) as files:
            taken = {file.name for file in files}

        def places_left(number: int) -> list[int]:
            places = range(len(self._lanes[number].units))
            return [place for place in places if f"{number}-{place}" not in taken]

        if self._last in self._lanes and (places := places_left(self._last)):
            return self._last, places[0]
        left = {number: places_left(number) for number in sorted(self._lanes)}
        for number, places in left.items():
            if len(places) == len(self._lanes[number].units):
                return number, places[0]
        longest = max(left, key=lambda number: len(left[number]))
        return (longest, left[longest][-1]) if left[longest] else None


# This process in its present run.
_here: list[Taker] = []


def do_next(work: Work, folder: str, lane: Lane, tables: Arrays) -> UnitOutcome | None:
    """Do the work of a unit, in a process that is given as many tickets as there are units."""
    if not _here or _here[0].folder != folder:
        _here[:] = [Taker(folder)]
    unit = _here[0].take(lane)
    return None if unit is None else work(unit, tables[unit.table])


def _fold(unit: Unit) -> tuple[object, ...]:
    """What units that share a fold have in common."""
    where = unit.coordinates()
    return tuple(value for name, value in where.items() if name not in ("method", "filler"))
