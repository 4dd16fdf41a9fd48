"""The tuner: inner folds choose how many features, the classifier's cost and a selector's setting.

First the number of features and the cost are chosen together, with the selector as it is by
default: 20 features and C = 0.01, or what comes nearest to that, unless the best pair is better by
:data:`PAIR_MARGIN` standard errors, paired over the folds. Then the other settings are compared
with that number and cost, and the best of them is taken only if its gain is above :data:`MARGIN`
standard errors: the best of many is better by chance alone. Last, every other number of features
gets the best cost for that setting, so that a curve over numbers can be drawn. Of equals the
default wins, then the first: fewer features, smaller costs.

Classifiers see standardised values no further than :data:`~idfsmec.solver.scaling.FAR` deviations
from the mean, inner folds and the test alike.

A smooth criterion matters more than the order. How many of some fifty subjects are classified
rightly moves in steps of two percent, and the best of many such numbers is chance; the log loss by
subject takes into account how certain each decision was.

``idfsmec.IDFSMECCV`` and the nested evaluation both choose this way, with the defaults of
:mod:`idfsmec.selection.defaults`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from idfsmec._parallel import run_tasks
from idfsmec.metrics import METRICS, SVM_SLOPE, Scores, score_each
from idfsmec.selection.defaults import CRITERION, SVM_COSTS, USUAL_COST, USUAL_N_FEATURES
from idfsmec.selection.svm import by_class
from idfsmec.solver.scaling import FAR

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

#: By how many standard errors over the folds another number of features or cost has to be better
#: than the usual ones.
PAIR_MARGIN = 1.0
#: By how many standard errors over the folds another setting has to be better than the default.
#: The best of the 42 settings of IDFS-MEC is better by one in two folds of five, by chance.
MARGIN = 3.0


@dataclass(frozen=True)
class Trial:
    """What was tried once: a setting, a number of features, a cost, and its score on each split.

    ``setting`` is a place in the list of settings.
    """

    setting: int
    n_features: int
    cost: float
    scores: tuple[float, ...]

    @functools.cached_property
    def mean(self) -> float:
        """Mean over the splits on which the score is defined; minus infinity without any."""
        values = np.array(self.scores)
        return float(np.nanmean(values)) if np.isfinite(values).any() else -np.inf

    def is_better(self, other: Trial, margin: float = 0.0) -> bool:
        """Whether the gain over another trial is above so many standard errors over the splits.

        With one split there is no standard error, and any gain counts.
        """
        gains = np.array(self.scores) - np.array(other.scores)
        gains = gains[np.isfinite(gains)]
        if gains.size == 0:
            return self.mean > other.mean
        error = gains.std(ddof=1) / math.sqrt(gains.size) if gains.size > 1 else 0.0
        return bool(gains.mean() > margin * error)


@dataclass(frozen=True)
class Tuned:
    """What was chosen.

    Attributes
    ----------
    picks : dict of int to Trial
        For every number of features the chosen setting with its best cost; for the chosen number
        the cost that was chosen with it.
    n_features : int
        The number of features chosen.
    trials : tuple of Trial
        All that was tried: every number and cost at the default setting, every setting at the
        number and cost that were best there, and every number and cost at the chosen one.
    """

    picks: dict[int, Trial]
    n_features: int
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """What is used."""
        return self.picks[self.n_features]


def middle_cost(costs: Sequence[float]) -> float:
    """Give the cost that stands for all where only one is tried."""
    return costs[(len(costs) - 1) // 2]


def nearest_setting(settings: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> int:
    """Say which of the settings a selector has by default, or comes nearest to that.

    Positive numbers are compared by their ratio, other numbers by their difference, and anything
    else is equal or not. Of equally near ones it is the first.
    """

    def distance(value: Any, default: Any) -> float:
        if not (isinstance(value, Real) and isinstance(default, Real)):
            return float(value != default)
        a, b = float(value), float(default)
        return abs(math.log(a / b)) if min(a, b) > 0 else abs(a - b)

    distances = [
        sum(distance(v, own.get(key)) for key, v in setting.items()) for setting in settings
    ]
    return distances.index(min(distances))


def tune(
    scorers: Sequence[SplitScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    *,
    default: int = 0,
    costs: Sequence[float] = SVM_COSTS,
    metric: str = CRITERION,
    n_jobs: int | None = None,
    tell: Callable[[], object] | None = None,
) -> Tuned:
    """Choose a number of features, a cost and a setting by their scores on inner folds."""
    rankings = rankings[:, :, None, :] if rankings.ndim == 3 else rankings

    def attempt(wanted: list[tuple[int, int, int]]) -> list[Trial]:
        """Score numbers of a setting, a number of features and a cost on all splits."""
        shared = (n_features, costs, metric, wanted)
        tasks = [(*own, *shared) for own in zip(scorers, rankings, strict=True)]
        by_split: list[list[float]] = [[] for _ in scorers]
        for split, (values, known) in run_tasks(_score, tasks, n_jobs=effective_n_jobs(n_jobs)):
            scorers[split].known.update(known)  # it may have been at work in another process
            by_split[split] = values
            if tell:
                tell()
        return [
            Trial(setting, n_features[count], costs[cost], tuple(values))
            for (setting, count, cost), *values in zip(wanted, *by_split, strict=True)
        ]

    pairs = [(count, cost) for count in range(len(n_features)) for cost in range(len(costs))]
    tried = attempt([(default, *pair) for pair in pairs])
    trials = list(tried)
    usual_count = nearest_setting([{"k": k} for k in n_features], {"k": USUAL_N_FEATURES})
    chosen = pairs.index(
        (usual_count, nearest_setting([{"C": C} for C in costs], {"C": USUAL_COST}))
    )
    mean = operator.attrgetter("mean")
    leader = tried.index(max(tried, key=mean))  # max() keeps the first of equals
    if tried[leader].is_better(tried[chosen], PAIR_MARGIN):
        chosen = leader
    best, pair = tried[chosen], pairs[chosen]
    compared = attempt([(n, *pair) for n in range(rankings.shape[1]) if n != default])
    trials += compared
    leading = max(compared, key=mean, default=best)
    if leading.is_better(best, MARGIN):
        tried = attempt([(leading.setting, *other) for other in pairs if other != pair])
        trials += tried
        tried.insert(chosen, leading)
    picks = {
        k: max(tried[count * len(costs) : (count + 1) * len(costs)], key=mean)
        for count, k in enumerate(n_features)
    }
    picks[best.n_features] = tried[chosen]
    return Tuned(picks, best.n_features, tuple(trials))


def _score(task: tuple[Any, ...]) -> tuple[list[float], dict[Any, Scores]]:
    """Score what is wanted; also give all that the scorer knows."""
    scorer, rankings, n_features, costs, metric, wanted = task
    per_count = rankings.shape[1] > 1
    asked = [
        (rankings[setting, count * per_count], n_features[count], costs[cost])
        for setting, count, cost in wanted
    ]
    return [scores[metric] for scores in scorer.score_all(asked)], scorer.known


#: From training samples, their classes, test samples and a cost to decision values, shape
#: (n_test, n_classes).
Classify = Callable[..., Array]
#: A ranking (1 = best), how many of the leading features are used, and a cost.
Asked = tuple[Codes, int, float]

# Sets are fitted together as long as what is taken of the samples for them, and what is decided,
# has no more numbers than this.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class Split:
    """One split into training and test samples, as a classifier sees them.

    Attributes
    ----------
    train, test : ndarray of shape (n_samples, n_features)
        Standardised by the training samples.
    y_train, y_test : ndarray of shape (n_samples,)
        Classes 0 ... c - 1.
    subjects_test : ndarray of shape (n_test,)
        Who each test sample comes from, for scores by subject.
    """

    train: Array
    y_train: Codes
    test: Array
    y_test: Codes
    subjects_test: Codes


class SplitScorer:
    """Scores of feature sets on one split; a set that comes twice is fitted once.

    Parameters
    ----------
    split : Split, or a function without arguments that gives it
        A function is called whenever scores are asked for: whoever has many splits of large
        tables need not hold them all.
    classify : callable
        ``(train, y_train, test, C) -> decisions``. If it has a method ``many``, then that is
        called with, in place of C, a list of sets (columns in the order of their ranks, C) that
        are asked for together, and gives a list of decisions, as
        :class:`~idfsmec.selection.svm.LinearSVM` does.
    metrics : sequence of str
        Which scores are computed, of :data:`idfsmec.metrics.CRITERIA`.
    slope : float
        What makes log odds of its decisions, for the log loss.
    channels : ndarray of shape (n_features,), optional
        Where the classifier wants the channel of each column: it is then called with
        ``channels=`` those of the columns it gets.
    clip : float, optional
        The classifier sees values further from 0 as so far away; None leaves them.
    """

    def __init__(
        self,
        split: Split | Callable[[], Split],
        classify: Classify,
        metrics: Sequence[str] = METRICS,
        slope: float = SVM_SLOPE,
        channels: Codes | None = None,
        clip: float | None = FAR,
    ) -> None:
        self._channels = channels
        self._clip = clip
        self._split = split
        self._classify = classify
        self._metrics = metrics
        self._slope = slope
        #: What has been scored: by columns, and cost.
        self.known: dict[tuple[bytes, float], Scores] = {}

    def score_all(self, asked: Sequence[Asked]) -> list[Scores]:
        """Score the leading features of many rankings, which share work.

        A set of features has the same scores in whatever order its features are ranked: those it
        was given when it came first. Another order, or other company, would change them by
        rounding.
        """
        sets = [(np.flatnonzero(ranking <= k), cost) for ranking, k, cost in asked]
        keys = [(columns.tobytes(), cost) for columns, cost in sets]
        new = {key: at for at, key in enumerate(keys) if key not in self.known}
        if new:
            split = self._get_split()
            for batch in _batches(split, [sets[at][0] for at in new.values()]):
                here = list(new.items())[batch]
                decided = self._decide(split, [(*sets[at], asked[at][0]) for _, at in here])
                about = (split.y_test, split.subjects_test, self._metrics, self._slope)
                scored = score_each(np.stack(decided), *about)
                self.known.update(zip((key for key, _ in here), scored, strict=True))
        return [self.known[key] for key in keys]

    def decisions(self, columns: Codes, cost: float) -> Array:
        """Decision values of the test samples with some of the columns."""
        return self._decide_one(self._get_split(), columns, cost)

    def _decide_one(self, split: Split, columns: Codes, cost: float) -> Array:
        split, extra = self._see(split, columns)
        return self._classify(split.train, split.y_train, split.test, cost, **extra)

    def _decide(self, split: Split, sets: Sequence[tuple[Codes, float, Codes]]) -> Sequence[Array]:
        """Decide with columns, a cost and a ranking each."""
        many = getattr(self._classify, "many", None)
        if many is None:
            return [self._decide_one(split, columns, cost) for columns, cost, _ in sets]
        needed = np.unique(np.concatenate([columns for columns, _, _ in sets]))
        split, extra = self._see(split, needed)
        ordered = [
            (np.searchsorted(needed, columns[np.argsort(ranking[columns], kind="stable")]), cost)
            for columns, cost, ranking in sets
        ]
        decided: Sequence[Array] = many(split.train, split.y_train, split.test, ordered, **extra)
        return decided

    def _see(self, split: Split, columns: Codes) -> tuple[Split, dict[str, Any]]:
        """What the classifier sees of some columns, and what it is told about them."""
        extra = {} if self._channels is None else {"channels": self._channels[columns]}
        train, test = (part.take(columns, axis=1) for part in (split.train, split.test))
        if self._clip is not None:
            for part in (train, test):
                np.clip(part, -self._clip, self._clip, out=part)
        return replace(split, train=train, test=test), extra

    def _get_split(self) -> Split:
        return self._split() if callable(self._split) else self._split


def _batches(split: Split, sets: list[Codes]) -> Iterator[slice]:
    """Cut sets into parts that are not too large to be looked at together."""
    first, taken = 0, np.zeros(split.train.shape[1], dtype=bool)
    for at, columns in enumerate(sets):
        taken[columns] = True
        size = np.count_nonzero(taken) * len(split.train) + (at - first) * len(split.test)
        if size > _AT_ONCE and at > first:
            yield slice(first, at)
            first, taken = at, np.zeros_like(taken)
            taken[columns] = True
    yield slice(first, len(sets))


#: No classifier is surer than that, so that one bold mistake does not decide a log loss.
_LEAST_PROBABILITY = 1e-3


@dataclass(frozen=True)
class Decisions:
    """Log probabilities of any classifier of scikit-learn, at its own settings, or decisions."""

    classifier: BaseEstimator
    classes: NDArray

    @property
    def slope(self) -> float:
        """What makes log odds of them."""
        return 1.0 if hasattr(self.classifier, "predict_proba") else SVM_SLOPE

    def __call__(self, train: Array, y: Codes, test: Array, cost: float) -> Array:
        """Train and ask; the cost is not used."""
        model: Any = clone(self.classifier).fit(train, self.classes[y])
        places = np.searchsorted(self.classes, model.classes_)
        if hasattr(model, "predict_proba"):
            values = np.log(np.maximum(model.predict_proba(test), _LEAST_PROBABILITY))
        elif hasattr(model, "decision_function"):
            values = model.decision_function(test)
        else:
            values = (model.predict(test)[:, None] == model.classes_).astype(float)
        return by_class(values, places, self.classes.size)
