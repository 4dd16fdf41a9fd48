"""How long a run will take, by a guess, earlier runs and the units that ended; and their order."""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from idfsmec._jobs import one_blas_thread
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import FoldUnit, Unit, UnitOutcome

#: A table and a method.
Place = tuple[str, str]
#: Seconds a unit takes, by table and method.
Paces = Mapping[str, Mapping[str, float]]

# The table of a method's usual seconds (Method.takes).
_USUAL_VALUES = 1650 * 342
_USUAL_FITS = 6  # five inner folds and the whole training fold
# Seconds of the probe on the machine of these figures.
_USUAL_PROBE = 0.0075
# Methods that take so many times longer than most are dear: the others come first.
_DEAR = 4.0


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
    guesses : mapping of (table, method) to float
        What one of the others may take: see :func:`guess_seconds`.

    Examples
    --------
    >>> units = {("clinic", "mRMR"): 10, ("clinic", "RFS"): 10, ("clinic", "mine"): 10}
    >>> plan = Plan(units, 2, {("clinic", "mRMR"): 3.0}, {("clinic", "RFS"): 9.0})
    >>> plan.seconds_left(), plan.guessed, plan.unknown
    (60.0, ('RFS',), ('mine',))
    >>> plan.dearest()
    ('RFS', 0.75)
    """

    units: Mapping[Place, int]
    n_jobs: int
    seconds: Mapping[Place, float] = field(default_factory=dict)
    guesses: Mapping[Place, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        units: Sequence[Unit],
        n_jobs: int,
        paces: Paces,
        guesses: Mapping[Place, float] | None = None,
    ) -> Plan:
        """Count units and look up what is known about them."""
        counts = Counter((unit.table, unit.method.name) for unit in units)
        return cls(dict(counts), n_jobs, _known(counts, paces), guesses or {})

    @property
    def guessed(self) -> tuple[str, ...]:
        """Methods of which no unit has ended yet, but whose time can be guessed."""
        return self._lacking(lambda place: place in self.guesses)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Methods of which nothing is known."""
        return self._lacking(lambda place: place not in self.guesses)

    def _lacking(self, wanted: Callable[[Place], bool]) -> tuple[str, ...]:
        places = (place for place, n in self.units.items() if n and place not in self.seconds)
        return tuple(dict.fromkeys(place[1] for place in places if wanted(place)))

    def seconds_left(self) -> float:
        """Seconds for what is known or guessed."""
        return sum(self._by_method().values()) / max(self.n_jobs, 1)

    def dearest(self) -> tuple[str, float]:
        """The method that takes longest, and its share of the time."""
        total = self._by_method()
        name = max(total, key=lambda one: total[one])
        return name, total[name] / (sum(total.values()) or 1.0)

    def _by_method(self) -> dict[str, float]:
        total: dict[str, float] = defaultdict(float)
        for place, n in self.units.items():
            total[place[1]] += n * self.seconds.get(place, self.guesses.get(place, 0.0))
        return total


class Stopwatch:
    """Keeps a plan up to date while its units end.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._left = Counter(plan.units)
        self._took: dict[Place, list[float]] = defaultdict(list)

    def add(self, unit: Unit, outcome: UnitOutcome) -> None:
        """Take notice of a unit that has ended."""
        place = (unit.table, unit.method.name)
        self._left[place] -= 1
        self._took[place].append(outcome.seconds)

    @property
    def plan(self) -> Plan:
        """What is left, with the latest about how long a unit takes."""
        seconds = {**self._plan.seconds, **self._means()}
        return Plan(dict(self._left), self._plan.n_jobs, seconds, self._plan.guesses)

    def paces(self, known: Paces) -> dict[str, dict[str, float]]:
        """What is known after the run, for the next one."""
        found = {table: dict(methods) for table, methods in known.items()}
        for (table, method), seconds in self._means().items():
            found.setdefault(table, {})[method] = round(seconds, 4)
        return found

    def _means(self) -> dict[Place, float]:
        return {place: sum(values) / len(values) for place, values in self._took.items()}


def guess_seconds(
    units: Iterable[Unit], tables: Mapping[str, TableArrays], machine: float | None = None
) -> dict[Place, float]:
    """Guess what units of folds take, by the size of the table and the speed of this machine.

    Times of methods grow with a table in ways of their own, and with its values: expect to be
    off by a factor of two. Methods of one's own have none.

    Parameters
    ----------
    units : iterable of Unit
    tables : mapping
        Arrays by table name.
    machine : float, optional
        How many times slower this machine is than that of the figures; by default a quick probe
        says so.

    Returns
    -------
    dict of (table, method) to float
    """
    places: dict[Place, tuple[Protocol, tuple[float, float]]] = {}
    for unit in units:
        if isinstance(unit, FoldUnit) and unit.method.takes is not None:
            place = (unit.table, unit.method.name)
            places.setdefault(place, (unit.protocol, unit.method.takes))
    if not places:
        return {}
    slower = probe_machine() if machine is None else machine
    found: dict[Place, float] = {}
    for place, (protocol, (seconds, power)) in places.items():
        fits = 1 + (protocol.n_inner_splits if protocol.tuning == "nested" else 0)
        growth = (tables[place[0]].X.size / _USUAL_VALUES) ** power
        found[place] = slower * seconds * growth * fits / _USUAL_FITS
    return found


def probe_machine(n_times: int = 3) -> float:
    """How many times slower this machine is now than that of the figures; takes an instant.

    Examples
    --------
    >>> probe_machine() > 0
    True
    """
    A = np.random.default_rng(0).normal(size=(600, 300))
    took = []
    with one_blas_thread():  # as in units; threads that wait for busy cores take seconds
        for _ in range(n_times):
            began = time.perf_counter()
            np.linalg.eigvalsh(A.T @ A)
            np.sort(A, axis=0)
            took.append(time.perf_counter() - began)
    return statistics.median(took) / _USUAL_PROBE


def in_order(units: Iterable[Unit], paces: Paces, guesses: Mapping[Place, float]) -> list[Unit]:
    """All methods at one missing rate before the next; there, dear methods last.

    Methods of a fold follow each other, the cheapest first, so that what they share is made
    once; only the dear ones go through the folds again. What is not known counts as cheap, unless
    the method says that it is slow. Results do not depend on the order.

    Parameters
    ----------
    units : iterable of Unit
    paces : mapping
        Seconds by table and method, from earlier runs.
    guesses : mapping
        Seconds by (table, method), for the others.
    """
    everything = list(units)
    counts = Counter((unit.table, unit.method.name) for unit in everything)
    seconds = {**guesses, **_known(counts, paces)}
    usual = statistics.median(seconds.values()) if seconds else 0.0
    rounds: dict[tuple[object, ...], int] = {}

    def turn(unit: Unit) -> tuple[float, ...]:
        where = unit.coordinates()
        same = [value for name, value in where.items() if name not in ("fold", "method", "filler")]
        place = rounds.setdefault(tuple(same), len(rounds))
        took = seconds.get((unit.table, unit.method.name), usual)
        tier = 2 if unit.method.slow else int(took > _DEAR * usual)
        return place, tier, where.get("fold", 0), took

    return sorted(everything, key=turn)


def _known(places: Iterable[Place], paces: Paces) -> dict[Place, float]:
    return {
        (table, method): paces[table][method]
        for table, method in places
        if method in paces.get(table, {})
    }
