"""Tasks: pieces of work on one table, each with a key that hashes all that decides its result."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from threadpoolctl import threadpool_limits

from idfsmec._validation import derive_seed
from idfsmec._version import __version__
from idfsmec.evaluation.folds import make_folds, make_inner_folds
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.store import TaskResult
from idfsmec.metrics import METRICS, Scores, score_decisions
from idfsmec.missing import simulate_missing_mask
from idfsmec.prediction.methods import Method
from idfsmec.prediction.pipeline import (
    Codes,
    Floats,
    FoldSamples,
    MethodPipeline,
    Preparation,
    TableArrays,
    fit_with_groups,
    harmonize_samples,
)
from idfsmec.progress import collect_warnings
from idfsmec.selection import StabilitySelector, feature_effects
from idfsmec.selection.tuning import middle_cost

#: Raise this when a change of the code changes results without a new package version.
RESULTS_VERSION = 13
#: What a selector raises for data that cannot be ranked: a reason, not a failure of the run.
_UNFIT = (ValueError, ArithmeticError)


@dataclass(frozen=True)
class TaskOutcome:
    """What came of a task: a result, or the text of a traceback; and how long it took."""

    key: str
    result: TaskResult | None = None
    error: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Task(ABC):
    """One piece of work on one table: kept under its key, done once."""

    key: str
    table: str
    digest: str
    method: Method

    @abstractmethod
    def coordinates(self) -> dict[str, Any]:
        """Return where the task lies in its experiment, as the columns of the results."""

    @abstractmethod
    def compute(self, table: TableArrays) -> TaskResult:
        """Do the work."""


def run_task(task: Task, tables: Mapping[str, TableArrays]) -> TaskOutcome:
    """Do a task; an error becomes part of the outcome.

    BLAS and OpenMP have one thread here: workers do not fight for cores, and no last digit
    depends on how many there are.
    """
    began = time.perf_counter()
    try:
        with threadpool_limits(1), collect_warnings() as caught:
            result = task.compute(tables[task.table])
        result.notes = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
        return TaskOutcome(task.key, result, seconds=time.perf_counter() - began)
    except Exception:
        seconds = time.perf_counter() - began
        return TaskOutcome(task.key, error=traceback.format_exc(), seconds=seconds)


def task_key(table: TableArrays, method: Mapping[str, Any], **decided_by: Any) -> str:
    """Hash everything that determines a task's result."""
    everything = {
        "data": table.digest,
        "method": method,
        "version": __version__,
        "results_version": RESULTS_VERSION,
        **decided_by,
    }
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


# One method on one fold.


@dataclass(frozen=True)
class FoldTask(Task):
    """One method on one outer fold of a table with missing channels, or of some channels."""

    pattern: str
    rate: float
    seed: int
    fold: int
    protocol: Protocol
    n_channels: int

    def coordinates(self) -> dict[str, Any]:
        """Return table, missing channels, fold and method."""
        return {
            "table": self.table,
            "pattern": self.pattern,
            "rate": self.rate,
            "seed": self.seed,
            "fold": self.fold,
            "method": self.method.name,
            "imputer": self.method.imputing.name,
            "n_channels": self.n_channels,
        }

    def compute(self, table: TableArrays) -> TaskResult:
        """Score the method on the fold."""
        columns = None
        if self.n_channels < len(table.channels):
            table, columns = table.spread_channels(self.n_channels)
        nested = self.protocol.tuning == "nested"
        where = self.pattern, self.rate, self.seed, self.fold
        fold = load_fold(table, self.protocol, *where, with_inner=nested)
        seed = derive_seed("method", self.seed, self.fold, self.method.name)
        result = score_fold(self.method, fold, self.protocol, seed)
        if columns is not None:
            result.rankings = [columns[ranking].tolist() for ranking in result.rankings]
        return result


def plan_folds(
    tables: Sequence[TableArrays],
    methods: Sequence[Method],
    protocol: Protocol,
    channel_counts: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[FoldTask]:
    """List all tasks of folds; those that share a fold follow each other: its data is made once.

    The table counts by its content, not by its name. Where no channel is missing the pattern does
    not count, so that such tasks are shared by all patterns.
    """
    described, shared = [(one.resolve(), one.describe()) for one in methods], protocol.per_task()
    for table in tables:
        n_folds = protocol.n_splits
        if protocol.folds == "site" and table.sites is not None:
            n_folds = np.unique(table.sites).size
        counts = (channel_counts or {}).get(table.name, [len(table.channels)])
        for count, seed, pattern, rate, fold, (method, description) in itertools.product(
            counts, protocol.seeds, protocol.patterns, protocol.rates, range(n_folds), described
        ):
            key = task_key(
                table,
                description,
                kind="fold",
                pattern=pattern if rate else None,
                rate=rate,
                seed=seed,
                fold=fold,
                protocol=shared,
                n_channels=count,
            )
            identity = key, table.name, table.digest, method
            yield FoldTask(*identity, pattern, rate, seed, fold, protocol, count)


# The fold that this process had last: tasks that share it follow each other.
_last_fold: dict[tuple[Any, ...], FoldSamples] = {}


def load_fold(
    table: TableArrays,
    protocol: Protocol,
    pattern: str,
    rate: float,
    seed: int,
    fold: int,
    with_inner: bool,
) -> FoldSamples:
    """Split off an outer fold and simulate missing channels, or return the last fold again."""
    key = table.digest, protocol, pattern if rate else None, rate, seed, fold, with_inner
    if table.digest and key in _last_fold:
        return _last_fold[key]
    _last_fold.clear()
    kind = protocol.folds, protocol.n_splits, seed
    sides = make_folds(table.y, table.subjects, *kind, sites=table.sites)[fold]
    train, test = (table.take(rows) for rows in sides)
    selecting = train
    if rate:
        # Each side misses channels on its own: nothing held out can move them in training. The
        # seed is the same, so channels that fail often in training fail often in the test.
        how = pattern, rate, derive_seed("gaps", pattern, rate, seed, fold)
        selecting = _simulate_missing(train, *how)
        if protocol.missing_in == "everywhere":
            train, test = selecting, _simulate_missing(test, *how)
    samples = FoldSamples(train, test, selecting, protocol.harmonize)
    if with_inner:
        samples = add_inner_folds(samples, protocol, derive_seed("inner folds", seed, fold))
    if table.digest:
        _last_fold[key] = samples
    return samples


def _simulate_missing(samples: TableArrays, pattern: Any, rate: float, seed: int) -> TableArrays:
    observed = simulate_missing_mask(
        samples.observed,
        rate,
        pattern,
        seed,
        recordings=samples.subjects,
        positions=samples.positions,
    )
    return samples.keep_observed(observed)


def add_inner_folds(samples: FoldSamples, protocol: Protocol, seed: int) -> FoldSamples:
    """Split the training samples again, for tuning."""
    train = samples.train
    kind = protocol.folds, protocol.n_inner_splits, seed
    return samples.with_inner(make_inner_folds(train.y, train.subjects, *kind, sites=train.sites))


def method_pipeline(method: Method, protocol: Protocol, seed: int) -> MethodPipeline:
    """Return the pipeline of a method as a protocol wants it."""
    return MethodPipeline(
        method,
        n_features=protocol.ks,
        costs=protocol.svm_costs,
        class_weight=protocol.class_weight,
        clip=protocol.clip,
        tuned_by=protocol.tuned_by,
        random_state=seed,
    )


def score_fold(method: Method, fold: FoldSamples, protocol: Protocol, seed: int) -> TaskResult:
    """Select, classify and score with one method on one outer fold."""
    scoring = _Scoring(method_pipeline(method, protocol, seed), fold)
    if method.is_whole:
        scoring.whole()
    elif protocol.tuning == "nested":
        scoring.nested()
    elif protocol.tuning == "time":
        scoring.timed()
    else:
        scoring.every_setting(one_cost=protocol.tuning == "grid")
    return scoring.result


class _Scoring:
    """Rows of a method on a fold."""

    def __init__(self, pipeline: MethodPipeline, fold: FoldSamples) -> None:
        self.pipeline, self.fold, self.method = pipeline, fold, pipeline.method
        self.ks = pipeline.ks(fold)
        self.result = TaskResult()

    def nested(self) -> None:
        """Let inner folds pick the setting and C for each k, and k itself."""
        method, costs = self.method, self.pipeline.costs
        if len(method.settings) * len(self.ks) * len(costs) == 1:
            picks, best_k = {self.ks[0]: (0, costs[0])}, self.ks[0]
        else:
            tuned = self.pipeline.tune(self.fold)
            picks = {k: (trial.setting, trial.cost) for k, trial in tuned.picks.items()}
            best_k = tuned.n_features
        ranked = self._rank({k: setting for k, (setting, _) in picks.items()})
        wanted = [(ranked[k][0], k, C) for k, (_, C) in picks.items()]
        scored = self.pipeline.score(self.fold, wanted)
        for (k, (setting, C)), scores in zip(picks.items(), scored, strict=True):
            self._add(setting, k, C, scores, *ranked[k], chosen=k == best_k)

    def every_setting(self, one_cost: bool) -> None:
        """Score all settings on the held-out fold; which is chosen is decided over all folds."""
        costs = (middle_cost(self.pipeline.costs),) if one_cost else self.pipeline.costs
        settings = range(len(self.method.settings))
        self._prepare()
        began = time.perf_counter()
        ranks = self.pipeline.rank(self.fold)
        seconds = (time.perf_counter() - began) / len(settings)
        places = list(itertools.product(settings, range(len(self.ks)), costs))
        wanted = [(ranks[setting, place], self.ks[place], C) for setting, place, C in places]
        scored = self.pipeline.score(self.fold, wanted)
        for (setting, place, C), scores in zip(places, scored, strict=True):
            self._add(setting, self.ks[place], C, scores, ranks[setting, place], seconds)

    def timed(self) -> None:
        """Only select, with the first setting, and measure the time."""
        k = max(self.ks)
        scores = dict.fromkeys(METRICS, float("nan"))
        self._add(0, k, float("nan"), scores, *self._rank({k: 0})[k])

    def whole(self) -> None:
        """Fit and score a whole classifier, which tunes itself where it wants to."""
        began = time.perf_counter()
        decisions, columns = self.pipeline.fit_whole(self.fold)
        seconds = time.perf_counter() - began
        scores = score_decisions(decisions, self.fold.y_test, self.fold.subjects_test)
        self.ks, n_columns = [columns.size], self.fold.train.channel_of.size
        ranks = np.full(n_columns, n_columns)
        ranks[columns] = np.arange(columns.size) + 1
        self._add(0, columns.size, float("nan"), scores, ranks, seconds, chosen=True)

    def _rank(self, settings: dict[int, int]) -> dict[int, tuple[Codes, float]]:
        """Rank the training fold with the setting of each k; also return the seconds."""
        self._prepare()
        ranked = {}
        for setting in dict.fromkeys(settings.values()):
            ks = [k for k, picked in settings.items() if picked == setting]
            began = time.perf_counter()
            (ranks,) = self.pipeline.rank(self.fold, [setting], ks)
            seconds = time.perf_counter() - began
            seconds /= len(ks) if self.method.depends_on_k else 1
            ranked.update({k: (own, seconds) for k, own in zip(ks, ranks, strict=True)})
        return ranked

    def _prepare(self) -> None:
        """Prepare the samples before the selection is timed."""
        self.fold.prepare(self.pipeline.selector_imputer)

    def _add(
        self,
        setting: int,
        k: int,
        C: float,
        scores: Scores,
        ranks: Codes,
        seconds: float,
        chosen: bool = False,
    ) -> None:
        """Add a row; rows with the same order of features share it."""
        params = {**self.method.settings[setting], **({"C": C} if math.isfinite(C) else {})}
        ranking = np.argsort(ranks, kind="stable")[: max(self.ks)].tolist()
        if ranking not in self.result.rankings:
            self.result.rankings.append(ranking)
        fold = self.fold
        self.result.rows.append(
            {
                "k": k,
                "params": json.dumps(params, sort_keys=True),
                "chosen": chosen,
                **scores,
                "order": self.result.rankings.index(ranking),
                "n_train": fold.y_train.size,
                "n_test": fold.y_test.size,
                "n_channels": len(fold.train.channels),
            }
        )
        self.result.seconds.append(seconds)


def decide_fold(
    method: Method, fold: FoldSamples, protocol: Protocol, seed: int, ranks: Codes | None = None
) -> Floats:
    """Return decisions on one outer fold, shape (n_test, n_classes), untuned.

    Parameters
    ----------
    method, fold, protocol, seed
        As in :func:`score_fold`; the largest number of features of the protocol is used.
    ranks : ndarray of shape (n_features,), optional
        1 = best. By default what the selector learns from the training samples.
    """
    return method_pipeline(method, protocol, seed).decide(fold, ranks)


# One method on a whole table.


@dataclass(frozen=True)
class WholeTask(Task):
    """One method on a whole table as it is, or on random halves of its subjects."""

    setting: Mapping[str, Any] = field(default_factory=dict)
    harmonize: bool | str = False
    n_resamples: int = 0
    seed: int = 0
    n_jobs: int = 1

    def coordinates(self) -> dict[str, Any]:
        """Return table and method, of halves also the seed."""
        halves = {"seed": self.seed} if self.n_resamples else {}
        return {"table": self.table, "method": self.method.name, **halves}

    def compute(self, table: TableArrays) -> TaskResult:
        """Rank the table or its halves."""
        (table,) = harmonize_samples(self.harmonize, table)
        if not self.n_resamples:
            return TaskResult(found=rank_whole(self.method, self.setting, table))
        halves = self.n_resamples, self.seed, self.n_jobs
        return TaskResult(found=resample_whole(self.method, self.setting, table, *halves))


def plan_whole(
    table: TableArrays,
    method: Method,
    setting: Mapping[str, Any],
    harmonize: bool | str = False,
    *,
    n_resamples: int = 0,
    seed: int = 0,
    n_jobs: int = 1,
) -> WholeTask:
    """Plan the ranking of a whole table, or of so many halves of its subjects.

    Halves may be shared by processes (``n_jobs``), which changes nothing about the result.
    """
    # Neither the settings that were not picked nor the classifier count.
    described = {key: method.describe()[key] for key in ("name", "selector", "imputer")}
    options = {"setting": dict(setting), "harmonize": harmonize, "halves": [n_resamples, seed]}
    key = task_key(table, described, kind="whole", options=options)
    identity = key, table.name, table.digest, method.resolve()
    return WholeTask(*identity, setting, harmonize, n_resamples, seed, n_jobs)


def rank_whole(method: Method, setting: Mapping[str, Any], table: TableArrays) -> dict[str, Any]:
    """Rank a whole table.

    Returns
    -------
    dict
        Lists over the columns: ``rank``, ``score``, and where the selector has them
        ``channel_weight``, ``feature_weight``; direction and size of each column, see
        :func:`idfsmec.selection.feature_effects`; ``history``, the objective after each
        iteration. Where the table cannot be ranked: ``reason`` alone.
    """
    selector: Any = method.build(channels=table.channel_of, random_state=0, **setting)
    X = table.X
    if not method.takes_missing:
        _, X = Preparation.learn(table, imputer=method.imputing)
    try:
        fit_with_groups(selector, X, table.y, table.subject_names)
    except _UNFIT as error:
        return {"reason": str(error)}
    ranking = {
        "rank": selector.ranking_.tolist(),
        "score": selector.scores_.tolist(),
        "history": [float(value) for value in getattr(selector, "objective_history_", [])],
    }
    if hasattr(selector, "channel_weights_"):
        weight = dict(zip(selector.channel_names_, selector.channel_weights_, strict=True))
        ranking["channel_weight"] = [float(weight[channel]) for channel in table.channel_of]
    if hasattr(selector, "feature_weights_"):
        ranking["feature_weight"] = selector.feature_weights_.tolist()
    labels = np.array(table.classes)[table.y]
    effects = feature_effects(table.X, labels, table.subjects, names=table.columns)
    effects = effects.drop(columns="feature")
    return ranking | {str(name): effects[name].tolist() for name in effects}


def resample_whole(
    method: Method,
    setting: Mapping[str, Any],
    table: TableArrays,
    n_resamples: int,
    seed: int,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Rank random halves of a table's subjects; the outcome as JSON can hold it.

    Returns
    -------
    dict
        ``frequency`` (column name to the share of halves that picked it), ``channel_frequency``
        (the same for channels: at least one feature picked), ``chance`` and ``channel_chance``
        (what picking blindly would give), ``n_resamples``, ``n_picked`` (on
        every half), ``threshold`` (the frequency from which ``max_false`` false picks are
        expected at most, under ``assumption``), ``expected_false``, and ``stability``
        (``value``, ``low``, ``high``, ``verdict``; None where it is undefined). Where halves
        cannot be made: ``reason`` alone.
    """
    selector = StabilitySelector(
        method.build(random_state=0, **setting),
        n_resamples=n_resamples,
        channels=table.channel_of,
        random_state=seed,
        n_jobs=n_jobs,
    )
    try:
        selector.fit(table.X, table.y, groups=table.subject_names)
    except _UNFIT as error:
        return {"reason": str(error)}
    n_picked, n_columns = int(selector.selections_[0].sum()), len(table.columns)
    names = [table.channels[code] for code in selector.channel_names_]
    sizes, stability = Counter(table.channel_of.tolist()), selector.stability_
    return {
        "n_resamples": n_resamples,
        "n_picked": n_picked,
        "frequency": dict(zip(table.columns, selector.frequencies_.tolist(), strict=True)),
        "chance": n_picked / n_columns,
        "channel_frequency": dict(zip(names, selector.channel_frequencies_.tolist(), strict=True)),
        # How often a channel has one of so many columns that are picked blindly.
        "channel_chance": {
            name: 1.0 - float(hypergeom.pmf(0, n_columns, sizes[code], n_picked))
            for code, name in enumerate(table.channels)
        },
        "threshold": selector.threshold_,
        "max_false": selector.max_false,
        "expected_false": float(selector.expected_false_),
        "assumption": selector.assumption,
        "stability": None
        if math.isnan(stability.value)
        else {key: getattr(stability, key) for key in ("value", "low", "high", "verdict")},
    }
