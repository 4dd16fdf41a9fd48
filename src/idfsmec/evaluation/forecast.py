"""How long a run will take: from earlier runs in the store, and from the units that have ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from idfsmec.evaluation.units import Unit, UnitOutcome

#: Seconds a unit takes, by table and method.
Paces = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Plan:
    """What a run is about to do.

    Parameters
    ----------
    units : mapping of (table, method) to int
        Units that are left.
    n_jobs : int
        Processes that share them; 0 where nobody knows, as on a cluster.
    seconds : mapping of (table, method) to float
        What one of them took in earlier runs, as far as that is known.
    slow : tuple of str
        Methods whose units take minutes on tables of some size; they come last.

    Examples
    --------
    >>> plan = Plan({("clinic", "mRMR"): 10, ("clinic", "RFS"): 10}, 2, {("clinic", "mRMR"): 3.0})
    >>> plan.seconds_left(), plan.unknown
    (15.0, ('RFS',))
    """

    units: Mapping[tuple[str, str], int]
    n_jobs: int
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    slow: tuple[str, ...] = ()

    @classmethod
    def of(cls, units: Sequence[Unit], n_jobs: int, paces: Paces) -> Plan:
        """Count units and look up what is known about them."""
        counts = Counter((unit.table, unit.method.name) for unit in units)
        known = {
            (table, method): paces[table][method]
            for table, method in counts
            if method in paces.get(table, {})
        }
        slow = dict.fromkeys(unit.method.name for unit in units if unit.method.slow)
        return cls(dict(counts), n_jobs, known, tuple(slow))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Methods of which no unit has ended yet."""
        lacking = (place[1] for place, n in self.units.items() if n and place not in self.seconds)
        return tuple(dict.fromkeys(lacking))

    def seconds_left(self) -> float:
        """Seconds for what is known."""
        total = sum(n * self.seconds.get(place, 0.0) for place, n in self.units.items())
        return total / max(self.n_jobs, 1)


class Stopwatch:
    """Keeps a plan up to date while its units end.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._left = Counter(plan.units)
        self._took: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, unit: Unit, outcome: UnitOutcome) -> None:
        """Take notice of a unit that has ended."""
        place = (unit.table, unit.method.name)
        self._left[place] -= 1
        self._took[place].append(outcome.seconds)

    @property
    def plan(self) -> Plan:
        """What is left, with the latest about how long a unit takes."""
        seconds = {**self._plan.seconds, **self._means()}
        return Plan(dict(self._left), self._plan.n_jobs, seconds, self._plan.slow)

    def paces(self, known: Paces) -> dict[str, dict[str, float]]:
        """What is known after the run, for the next one."""
        found = {table: dict(methods) for table, methods in known.items()}
        for (table, method), seconds in self._means().items():
            found.setdefault(table, {})[method] = round(seconds, 4)
        return found

    def _means(self) -> dict[tuple[str, str], float]:
        return {place: sum(values) / len(values) for place, values in self._took.items()}


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Slow methods last, so that a first comparison of the others is there soon."""
    return sorted(units, key=lambda unit: unit.method.slow)
