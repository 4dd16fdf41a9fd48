"""Units of work, each with a key that hashes all that decides its result, and how one is done."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import ThreadpoolController

from idfsmec._random import derive_seed
from idfsmec._version import __version__
from idfsmec._warnings import heard
from idfsmec.evaluation.fold_data import load_fold
from idfsmec.evaluation.folds import count_folds
from idfsmec.evaluation.harmonizing import harmonize_whole
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.scoring import score_fold
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.unit_result import UnitResult
from idfsmec.evaluation.whole_table import rank_whole, resample_whole

#: Raise this when a change of the code changes results without a new package version.
RESULTS_VERSION = 12
# One unit at a time per process: limits on threads and filters of warnings are process-wide.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Unit(ABC):
    """One piece of work on one table: kept under its key, done once."""

    key: str
    table: str
    digest: str
    method: Method

    @abstractmethod
    def coordinates(self) -> dict[str, Any]:
        """Where the unit lies in its experiment, as the columns of the results."""

    @abstractmethod
    def compute(self, table: TableArrays) -> UnitResult:
        """Do the work."""


@dataclass(frozen=True)
class FoldUnit(Unit):
    """One method on one outer fold of one table with gaps, or of some of its channels."""

    pattern: str
    rate: float
    seed: int
    fold: int
    protocol: Protocol
    n_channels: int

    def coordinates(self) -> dict[str, Any]:
        """Table, gaps, fold and method."""
        return {
            "table": self.table,
            "pattern": self.pattern,
            "rate": self.rate,
            "seed": self.seed,
            "fold": self.fold,
            "method": self.method.name,
            "filler": self.method.filling.name,
            "n_channels": self.n_channels,
        }

    def compute(self, table: TableArrays) -> UnitResult:
        """Score the method on the fold."""
        columns = None
        if self.n_channels < len(table.channels):
            table, columns = table.spread_channels(self.n_channels)
        data = load_fold(
            table,
            self.protocol,
            self.pattern if self.rate else "none",
            self.rate,
            self.seed,
            self.fold,
            with_inner=self.protocol.tuning == "nested",
        )
        seed = derive_seed("method", self.seed, self.fold, self.method.name)
        try:
            result = score_fold(self.method, data, self.protocol, seed)
        finally:
            data.rest()
        if columns is not None:
            result.rankings = [columns[ranking].tolist() for ranking in result.rankings]
        return result


@dataclass(frozen=True)
class RankingUnit(Unit):
    """One method on a whole table, without artificial gaps."""

    setting: Mapping[str, Any] = field(default_factory=dict)
    harmonize: bool = False

    def coordinates(self) -> dict[str, Any]:
        """Table and method."""
        return {"table": self.table, "method": self.method.name}

    def compute(self, table: TableArrays) -> UnitResult:
        """Rank the table."""
        table = harmonize_whole(table) if self.harmonize else table
        return UnitResult(found=rank_whole(self.method, self.setting, table))


@dataclass(frozen=True)
class ResamplingUnit(Unit):
    """One method on random halves of a table's subjects."""

    setting: Mapping[str, Any] = field(default_factory=dict)
    harmonize: bool = False
    n_resamples: int = 100
    seed: int = 0
    n_jobs: int = 1

    def coordinates(self) -> dict[str, Any]:
        """Table, method and seed."""
        return {"table": self.table, "method": self.method.name, "seed": self.seed}

    def compute(self, table: TableArrays) -> UnitResult:
        """Rank the halves."""
        table = harmonize_whole(table) if self.harmonize else table
        halves = self.n_resamples, self.seed, self.n_jobs
        found = resample_whole(self.method, self.setting, table, *halves)
        return UnitResult(found=found)


@dataclass(frozen=True)
class UnitOutcome:
    """What came of a unit: a result, or the text of a traceback; and how long it took."""

    key: str
    result: UnitResult | None = None
    error: str | None = None
    seconds: float = 0.0


def plan_folds(
    tables: Sequence[TableArrays],
    methods: Sequence[Method],
    protocol: Protocol,
    channel_counts: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[FoldUnit]:
    """List all units of folds; those that share a fold follow each other: its data is made once.

    The table counts by its content, not by its name. Without gaps the pattern does not count,
    so that such units are shared by all patterns.
    """
    ready, shared = [(one.resolve(), one.describe()) for one in methods], protocol.per_unit()
    for table in tables:
        places = [
            (seed, pattern, rate, fold)
            for seed in protocol.seeds
            for pattern in protocol.patterns
            for rate in protocol.rates
            for fold in range(count_folds(table, protocol))
        ]
        there = len(table.channels)
        for count in (channel_counts or {}).get(table.name, [there]):
            for seed, pattern, rate, fold in places:
                for method, described in ready:
                    key = unit_key(
                        table,
                        described,
                        kind="fold",
                        pattern=pattern if rate else None,
                        rate=rate,
                        seed=seed,
                        fold=fold,
                        protocol=shared,
                        n_channels=count,
                    )
                    own = (key, table.name, table.digest, method)
                    yield FoldUnit(*own, pattern, rate, seed, fold, protocol, count)


def plan_ranking(
    table: TableArrays,
    method: Method,
    setting: Mapping[str, Any],
    harmonize: bool = False,
    n_jobs: int = 1,
    **halves: int,
) -> RankingUnit | ResamplingUnit:
    """Plan a whole table's ranking, or with ``n_resamples`` and ``seed`` that of its halves.

    Halves may be shared by processes (``n_jobs``), which changes nothing about the result.
    """
    kind = ResamplingUnit if halves else RankingUnit
    # Neither the settings that were not picked nor the classifier count.
    described = {key: method.describe()[key] for key in ("name", "selector", "filler")}
    options = halves | ({"harmonize": True} if harmonize else {})
    key = unit_key(table, described, kind=kind.__name__, setting=dict(setting), options=options)
    what = key, table.name, table.digest, method.resolve(), setting, harmonize
    if not halves:
        return RankingUnit(*what)
    return ResamplingUnit(*what, halves["n_resamples"], halves["seed"], n_jobs)


def unit_key(table: TableArrays, method: Mapping[str, Any], **decided_by: Any) -> str:
    """Hash everything that determines a unit's result."""
    everything = {
        "data": table.digest,
        "method": method,
        "version": __version__,
        "results_version": RESULTS_VERSION,
        **decided_by,
    }
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def run_unit(unit: Unit, table: TableArrays) -> UnitOutcome:
    """Do the work of a unit; an error becomes part of the outcome.

    BLAS and OpenMP have one thread here: workers do not fight for cores, and no last digit
    depends on how many there are.
    """
    began = time.perf_counter()
    try:
        with _one_at_a_time, _threads().limit(limits=1), heard() as said:
            result = unit.compute(table)
        result.notes = sorted({f"{one.category.__name__}: {one.message}" for one in said})
        return UnitOutcome(unit.key, result, seconds=time.perf_counter() - began)
    except Exception:
        seconds = time.perf_counter() - began
        return UnitOutcome(unit.key, error=traceback.format_exc(), seconds=seconds)


@functools.cache
def _threads() -> ThreadpoolController:
    """The thread pools of this process; looking them up takes longer than a small unit."""
    return ThreadpoolController()
