"""Units of work: one method on one fold, with a key that hashes all that decides its result."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadpoolctl import ThreadpoolController

from idfsmec._random import derive_seed
from idfsmec.evaluation._fold_data import TableArrays, load_fold
from idfsmec.evaluation._tuning import UnitResult, evaluate
from idfsmec.evaluation.methods import Contestant
from idfsmec.evaluation.protocol import Protocol

#: Raise this when a change of the code changes results without a new package version.
RESULTS_VERSION = 2
# One unit at a time per process: limits on threads and filters of warnings are process-wide.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Unit:
    """One method on one outer fold of one table with gaps."""

    table: str
    pattern: str
    rate: float
    seed: int
    fold: int
    contestant: Contestant
    protocol: Protocol
    key: str

    def coordinates(self) -> dict[str, Any]:
        """Where the unit lies in the grid, as the columns of the results."""
        return {
            "table": self.table,
            "pattern": self.pattern,
            "rate": self.rate,
            "seed": self.seed,
            "fold": self.fold,
            "method": self.contestant.name,
        }


@dataclass(frozen=True)
class Outcome:
    """What came of a unit: a result, or the text of a traceback."""

    key: str
    result: UnitResult | None = None
    error: str | None = None


def plan_units(
    tables: Sequence[TableArrays],
    contestants: Sequence[Contestant],
    protocol: Protocol,
    version: str,
) -> Iterator[Unit]:
    """List all units; those that share a fold follow each other, so its data is made once."""
    for table in tables:
        for seed in protocol.seeds:
            for pattern in protocol.patterns:
                for rate in protocol.rates:
                    for fold in range(protocol.n_splits):
                        for contestant in contestants:
                            where = (table.name, pattern, rate, seed, fold)
                            key = unit_key(table, where[1:], contestant, protocol, version)
                            yield Unit(*where, contestant, protocol, key)


def unit_key(
    table: TableArrays,
    where: tuple[str, float, int, int],
    contestant: Contestant,
    protocol: Protocol,
    version: str,
) -> str:
    """Hash everything that determines a unit's result.

    The table counts by its content, not by its name. Without gaps the pattern does not count,
    so that such units are shared by all patterns.
    """
    pattern, rate, seed, fold = where
    decided_by = {
        "data": table.digest,
        "pattern": pattern if rate else None,
        "rate": rate,
        "seed": seed,
        "fold": fold,
        "contestant": contestant.describe(),
        "protocol": protocol.per_unit(),
        "version": version,
        "results_version": RESULTS_VERSION,
    }
    return hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()


def run_unit(unit: Unit, table: TableArrays) -> Outcome:
    """Do the work of a unit; an error becomes part of the outcome.

    BLAS and OpenMP have one thread here: workers do not fight for cores, and no last digit
    depends on how many there are.
    """
    try:
        with _one_at_a_time, _threads().limit(limits=1), warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            result = _compute(unit, table)
        result.notes = sorted({f"{one.category.__name__}: {one.message}" for one in w})
        return Outcome(unit.key, result)
    except Exception:
        return Outcome(unit.key, error=traceback.format_exc())


def _compute(unit: Unit, table: TableArrays) -> UnitResult:
    data = load_fold(
        table,
        unit.protocol,
        unit.pattern if unit.rate else "none",
        unit.rate,
        unit.seed,
        unit.fold,
        with_inner=unit.protocol.tuning == "nested",
    )
    seed = derive_seed("method", unit.seed, unit.fold, unit.contestant.name)
    return evaluate(unit.contestant, data, unit.protocol, seed)


@functools.cache
def _threads() -> ThreadpoolController:
    """The thread pools of this process; looking them up takes longer than a small unit."""
    return ThreadpoolController()
