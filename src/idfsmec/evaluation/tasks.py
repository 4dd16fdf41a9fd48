"""Tasks: pieces of work on one table, each with a key that hashes all that decides its result.

An experiment is a list of tasks under one name: methods on folds (:func:`plan_folds`), or a method
on a whole table (:func:`compute_whole`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import sys
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import hypergeom
from threadpoolctl import ThreadpoolController

from idfsmec._fingerprint import Indescribable, warn_not_cached
from idfsmec._parallel import computing_versions
from idfsmec._validation import derive_seed
from idfsmec._version import __version__
from idfsmec.errors import InputError, without_folders
from idfsmec.evaluation.protocol import Protocol, split_table
from idfsmec.evaluation.store import TaskResult
from idfsmec.metrics import (
    METRICS,
    SCORE_METRICS,
    Codes,
    Floats,
    mean_by_subject,
    mean_decisions,
    score_decisions,
)
from idfsmec.missing import simulate_missing_mask
from idfsmec.prediction.adjuster import make_corrections
from idfsmec.prediction.methods import Method
from idfsmec.prediction.pipeline import HarmonizedClassifier, TunedSelection
from idfsmec.prediction.samples import (
    FoldSamples,
    Samples,
    TrainingSamples,
    corrected_samples,
)
from idfsmec.prediction.tuning import Trial, middle_cost
from idfsmec.progress import collect_warnings
from idfsmec.selection import StabilitySelector, feature_effects

#: Raise this when a change of the code changes results without a new package version.
RESULTS_VERSION = 17
#: What a selector raises for data that cannot be ranked: a reason, not a failure of the run.
UNFIT = (ValueError, ArithmeticError)


@dataclass(frozen=True)
class Task:
    """One piece of work on one table, kept under its key and done once."""

    key: str
    table: str
    digest: str
    method: Method
    coordinates: dict[str, Any]  # where it lies in the experiment: columns of the results
    compute: Callable[[Samples], TaskResult] = field(repr=False)
    metric: str = ""  # the score of its rows, if it has any, that is shown while it runs


def make_task(
    table: Samples,
    method: Method,
    compute: Callable[[Samples], TaskResult],
    coordinates: Mapping[str, Any],
    metric: str = "",
    **decided_by: Any,
) -> Task:
    """Make a task; what decides its result is its table's content and ``decided_by``.

    A method that cannot be described has a key that no other run finds.
    """
    decided_by |= {"data": table.digest, "version": __version__, "results": RESULTS_VERSION}
    key = hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()
    key = key if decided_by.get("described", True) else uuid.uuid4().hex
    where = {"table": table.name, **coordinates, "method": method.name}
    return Task(key, table.name, table.digest, method, where, compute, metric)


def describe_method(method: Method, ranking: bool = False) -> dict[str, Any] | None:
    """Describe a method, or its ranking alone; None, with a warning, where that is impossible."""
    try:
        return method.describe_ranking() if ranking else method.describe()
    except Indescribable as error:
        warn_not_cached(f"The method {method.name!r}", error)
        return None


@functools.lru_cache(1)
def _threads(n_modules: int) -> ThreadpoolController:
    """Look up the libraries that have threads, again when modules have been imported.

    Each time it would take longer than a small task.
    """
    return ThreadpoolController()


def run_task(task: Task, tables: Mapping[str, Samples]) -> TaskResult:
    """Do a task; an error becomes part of the result."""
    try:
        # Workers do not fight for cores, and no last digit depends on how many there are.
        with _threads(len(sys.modules)).limit(limits=1), collect_warnings() as caught:
            result = task.compute(tables[task.table])
    except Exception:
        lines = traceback.format_exc().splitlines(keepends=True)
        return TaskResult(error="".join(map(without_folders, lines)))
    result.versions = computing_versions()
    result.notes = sorted({f"{note.category.__name__}: {note.message}" for note in caught})
    return result


# One method on one fold.


def channel_counts(
    table: Samples, counts: Sequence[int] | None, usual: Sequence[int]
) -> list[int]:
    """Return the numbers of channels given, or the usual ones that a table has, and all."""
    every = len(table.channels)
    for count in counts or ():
        if not 1 <= count <= every:
            raise InputError(f"table {table.name} has {every} channels, not {count}")
    return list(counts or [*(count for count in usual if count < every), every])


def plan_folds(
    table: Samples,
    methods: Sequence[Method],
    protocol: Protocol,
    *,
    counts: Sequence[int] | None = None,
    usual: Sequence[int] = (),
) -> Iterator[Task]:
    """List all tasks of folds; those that share a fold follow each other: its data is made once.

    Numbers of channels are as in :func:`channel_counts`, by default that of all channels. The
    table counts by its content, not by its name. Where no channel is missing the pattern does
    not count, so that such tasks are shared by all patterns.
    """
    described = [(method.resolve(), describe_method(method)) for method in methods]
    shared = protocol.per_task()
    folds, grid = range(len(split_table(table, protocol))), (protocol.patterns, protocol.rates)
    for count, seed, pattern, rate, fold, (method, description) in itertools.product(
        channel_counts(table, counts, usual), protocol.seeds, *grid, folds, described
    ):
        where = {"pattern": pattern, "rate": rate, "seed": seed, "fold": fold}
        yield make_task(
            table,
            method,
            partial(_compute_fold, method=method, protocol=protocol, n_channels=count, **where),
            {**where, "imputer": method.imputing.name, "n_channels": count},
            protocol.metric,
            kind="fold",
            described=description,
            protocol=shared,
            n_channels=count,
            **(where if rate else {**where, "pattern": None}),
        )


def _compute_fold(
    table: Samples, *, method: Method, protocol: Protocol, n_channels: int, **where: Any
) -> TaskResult:
    columns, last = None, len(table.channels) - 1
    if n_channels <= last:  # evenly over the table
        spread = [round(i * last / max(n_channels - 1, 1)) for i in range(n_channels)]
        table, columns = table.take_channels(spread)
    fold = load_fold(table, protocol, **where)
    seed = derive_seed("method", where["seed"], where["fold"], method.name)
    result = score_fold(method, fold, protocol, seed)
    if columns is not None:
        result.rankings = [columns[ranking].tolist() for ranking in result.rankings]
    return result


# The fold that this process had last: tasks that share it follow each other.
_last_fold: dict[tuple[Any, ...], FoldSamples] = {}


def load_fold(
    table: Samples, protocol: Protocol, pattern: str, rate: float, seed: int, fold: int
) -> FoldSamples:
    """Split off an outer fold and simulate missing channels, or return the last fold again."""
    key = table.digest, protocol, pattern if rate else None, rate, seed, fold
    if table.digest and key in _last_fold:
        return _last_fold[key]
    _last_fold.clear()
    left_out = split_table(table, protocol, seed)[fold]
    train, test = (table.take(rows) for rows in left_out)
    selecting = None
    if rate:
        # Each side misses channels on its own: nothing held out can move them in training. The
        # seed is the same, so channels that fail often in training fail often in the test.
        simulate = partial(
            _simulate_missing,
            pattern=pattern,
            rate=rate,
            seed=derive_seed("gaps", pattern, rate, seed, fold),
        )
        incomplete = simulate(train)
        if protocol.missing_in == "everywhere":
            train, test = incomplete, simulate(test)
        else:
            selecting = TrainingSamples(incomplete)
    samples = FoldSamples(TrainingSamples(train, selecting), test, left_out[1])
    if table.digest and not samples.training.is_large:
        _last_fold[key] = samples
    return samples


def _simulate_missing(samples: Samples, *, pattern: Any, rate: float, seed: int) -> Samples:
    observed = simulate_missing_mask(
        samples.observed,
        rate,
        pattern,
        seed,
        recordings=samples.subjects,
        positions=samples.positions,
    )
    return replace(samples, hidden=~observed)


def build_pipeline(
    method: Method, protocol: Protocol, classes: Sequence[Any], random_state: int
) -> TunedSelection | HarmonizedClassifier:
    """Return the estimator of a method as a protocol wants it; without classes for a score."""
    corrections = protocol.corrections(classes)
    return method.pipeline(
        numeric=not classes,
        n_features_to_select=protocol.ks,
        costs=protocol.svm_costs,
        cv=protocol.n_inner_splits,
        folds=protocol.folds,
        scoring=protocol.tuned_by,
        clip=protocol.clip,
        harmonizer=corrections.harmonizer,
        adjuster=corrections.adjuster,
        random_state=random_state,
    )


def score_fold(method: Method, fold: FoldSamples, protocol: Protocol, seed: int) -> TaskResult:
    """Select, classify and score with one method on one outer fold."""
    training, held_out = fold.training, fold.held_out
    pipeline = build_pipeline(method, protocol, held_out.classes, seed)
    decisions = None
    best: Trial | None
    if isinstance(pipeline, HarmonizedClassifier):
        began = time.perf_counter()
        decisions = pipeline.fit_samples(training).decide(held_out)
        columns = pipeline.kept_columns()
        seconds, n_columns = time.perf_counter() - began, held_out.channel_of.size
        ranks = np.full(n_columns, n_columns)
        ranks[columns] = np.arange(columns.size) + 1
        trials = [Trial(0, columns.size, math.nan, ())]
        best, ranked = trials[0], {(0, columns.size): (ranks, seconds)}
        scored = [score_decisions(decisions, held_out.y, held_out.subjects)]
    else:
        trials, best = _trials(pipeline, training, protocol.tuning)
        ranked = _rank_trials(pipeline, training, trials, protocol.tuning)
        scored = [dict.fromkeys(SCORE_METRICS if held_out.numeric else METRICS, math.nan)]
        if protocol.tuning != "time":
            scored = pipeline.scorer(fold).score_all(
                [(ranked[t.setting, t.n_features][0], t.n_features, t.cost) for t in trials]
            )
        if best is not None:
            ranks, _ = ranked[best.setting, best.n_features]
            decisions = pipeline.fit_selected(training, ranks, best).decide(held_out)
    result = TaskResult()
    if decisions is not None:
        result.found |= _of_subjects(decisions, pipeline.slope, training.samples, held_out)
    longest = max(trial.n_features for trial in trials)
    for trial, scores in zip(trials, scored, strict=True):
        ranks, seconds = ranked[trial.setting, trial.n_features]
        params = dict(method.settings[trial.setting])
        if math.isfinite(trial.cost):
            params["C"] = trial.cost
        ranking = np.argsort(ranks, kind="stable")[:longest].tolist()
        if ranking not in result.rankings:  # rows with the same order of features share it
            result.rankings.append(ranking)
        result.seconds.append(seconds)
        result.rows.append(
            {
                "k": trial.n_features,
                "params": json.dumps(params, sort_keys=True),
                "chosen": trial is best,
                **scores,
                "order": result.rankings.index(ranking),
                "n_train": training.samples.y.size,
                "n_train_subjects": int(np.unique(training.samples.subject_names).size),
                "n_test": held_out.y.size,
                "n_channels": len(held_out.channels),
            }
        )
    return result


def _of_subjects(
    decisions: Floats, slope: float, trained: Samples, held_out: Samples
) -> dict[str, Any]:
    """Return what is predicted of each subject held out, over its epochs, and what is true."""
    known: dict[str, Any] = {"subject": np.unique(held_out.subjects).tolist()}
    if held_out.numeric:
        values = np.column_stack([decisions[:, 0], held_out.y])
        predicted, scores = mean_by_subject(values, held_out.subjects).T
        of_mean = [float(trained.subject_scores.mean())] * scores.size
        known |= {"true": scores.tolist(), "predicted": predicted.round(6).tolist()}
        return {"predicted": known | {"mean": of_mean}}
    probabilities = softmax(slope * decisions, axis=1)
    means, true = mean_decisions(probabilities, held_out.y, held_out.subjects)
    known["true"], means = true.tolist(), means.round(6)
    if held_out.n_classes == 2:  # that of the second class says all
        return {"held_out": known | {"probability": means[:, 1].tolist()}}
    return {"of_classes": known | {"probabilities": means.tolist()}}


def _trials(
    pipeline: TunedSelection, training: TrainingSamples, tuning: str
) -> tuple[list[Trial], Trial | None]:
    """List the rows of a fold, and the one that inner folds choose where tuning is nested."""
    counts, costs = pipeline.counts(training), pipeline.used_costs
    if tuning == "time":
        return [Trial(0, max(counts), math.nan, ())], None
    if tuning != "nested":  # which one is chosen is decided over all folds
        costs = [middle_cost(costs)] if tuning == "grid" else costs
        places = itertools.product(range(len(pipeline.settings)), counts, costs)
        return [Trial(*place, ()) for place in places], None
    tuned = pipeline.choose(training)
    return list(tuned.picks.values()), tuned.best


def _rank_trials(
    pipeline: TunedSelection, training: TrainingSamples, trials: list[Trial], tuning: str
) -> dict[tuple[int, int], tuple[Codes, float]]:
    """Rank the training fold for each setting and k, and measure the seconds of a selection."""
    pipeline.prepare_selection(training)  # before the selection is timed
    settings = list(dict.fromkeys(trial.setting for trial in trials))
    ranked = {}
    # Selectors share work between settings that are ranked at once.
    at_once = tuning in ("oracle", "grid")
    for group in [settings] if at_once else [[setting] for setting in settings]:
        counts = list(dict.fromkeys(t.n_features for t in trials if t.setting in group))
        began = time.perf_counter()
        ranks = pipeline.rank(training, group, counts)
        seconds = (time.perf_counter() - began) / len(group)
        seconds /= len(counts) if pipeline.ranks_per_count else 1
        for (i, setting), (j, k) in itertools.product(enumerate(group), enumerate(counts)):
            ranked[setting, k] = ranks[i, j], seconds
    return ranked


# One method on a whole table.


def compute_whole(
    table: Samples,
    *,
    method: Method,
    setting: Mapping[str, Any],
    harmonize: bool | str,
    n_resamples: int,
    seed: int,
    n_jobs: int,
    adjust: Sequence[str] = (),
    adjust_from: str | None = None,
) -> TaskResult:
    """Rank a table, or random halves of its subjects; where they cannot be, give the reason."""
    corrections = make_corrections(table.classes, harmonize, adjust, adjust_from)
    table = corrected_samples(table, corrections)
    if not n_resamples:
        return TaskResult(found=rank_whole(method, setting, table))
    selector = StabilitySelector(
        method.build(random_state=0, **setting, **({"numeric": True} if table.numeric else {})),
        n_resamples=n_resamples,
        channels=table.channel_of,
        random_state=seed,
        n_jobs=n_jobs,
    )
    try:
        selector.fit(table.X, table.y, groups=table.subject_names)
    except UNFIT as error:
        return TaskResult(found={"reason": str(error)})
    n_picked, n_columns = int(selector.selections_[0].sum()), len(table.columns)
    names = [table.channels[code] for code in selector.channel_names_]
    sizes, stability = Counter(table.channel_of.tolist()), selector.stability_
    stable = {
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
    return TaskResult(found=stable)


def rank_whole(method: Method, setting: Mapping[str, Any], table: Samples) -> dict[str, Any]:
    """Rank a table: lists over columns and the objective's ``history``, or the ``reason``."""
    pipeline: Any = method.pipeline(random_state=0, numeric=table.numeric)
    try:
        selector = pipeline.fit_selector(TrainingSamples(table), setting)
    except UNFIT as error:
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
    labels = table.y if table.numeric else np.array(table.classes)[table.y]
    effects = feature_effects(
        table.X, labels, table.subjects, names=table.columns, numeric=table.numeric
    )
    effects = effects.drop(columns="feature")
    return ranking | {str(name): effects[name].tolist() for name in effects}
