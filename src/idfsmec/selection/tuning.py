"""The tuner: inner folds choose how many features, the classifier's cost and a selector's setting.

First the number of features and the cost are chosen together, with the selector as it is by
default: 20 features and C = 0.01, or what comes nearest to that, unless the best pair is better by
:data:`PAIR_MARGIN` standard errors, paired over the folds. Then the other settings are compared
with that number and cost, and the best of them is taken only if its gain is above :data:`MARGIN`
standard errors: the best of many is better by chance alone. Last, every other number of features
gets the best cost for that setting, so that a curve over numbers can be drawn. Of equals the
default wins, then the first: fewer features, smaller costs.

A smooth criterion matters more than the order. How many of some fifty subjects are classified
rightly moves in steps of two percent, and the best of many such numbers is chance; the log loss by
subject takes into account how certain each decision was.

A comparison fits hundreds of thousands of linear SVMs, on the leading features of a ranking, with
several costs each. liblinear takes ten times as long as Newton's method on the squared hinge loss,
which is piecewise quadratic: on the piece where the same samples lie inside the margin one linear
system gives the minimum, and when that minimum lies on its own piece, it is the minimum of the
whole (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large
scale linear SVMs", JMLR 6, 2005). Products of features are formed once for all sets of a ranking,
and a cost starts from the minimum of the next smaller one.

``idfsmec.IDFSMECCV`` and the nested evaluation both choose this way, with the defaults of
:mod:`idfsmec.selection.defaults`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from sklearn import config_context
from sklearn.svm import LinearSVC

from idfsmec.metrics import METRICS, SVM_SLOPE, Scores, score_each
from idfsmec.selection.defaults import CRITERION, SVM_COSTS, USUAL_COST, USUAL_N_FEATURES

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Columns in the order of their ranks, with a cost each.
Sets = Sequence[tuple[Codes, float]]
#: From training samples, their classes, test samples and sets of columns to the decision values of
#: each set, shape (n_test, n_classes).
Classify = Callable[[Floats, Codes, Floats, Sets], Sequence[Floats]]
#: A ranking (1 = best), how many of the leading features are used, and a cost.
Asked = tuple[Codes, int, float]

#: By how many standard errors over the folds another number of features or cost has to be better
#: than the usual ones.
PAIR_MARGIN = 1.0
#: By how many standard errors over the folds another setting has to be better than the default.
#: The best of the 42 settings of IDFS-MEC is better by one in two folds of five, by chance.
MARGIN = 3.0
# With systems of more unknowns than this, liblinear's iterations cost less.
_MOST_UNKNOWNS = 2000
_MOST_STEPS, _HALVINGS = 60, 30


@dataclass(frozen=True)
class Trial:
    """A setting (its place in the list), a number of features, a cost; scores on each split."""

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
    """The chosen number of features, a trial for every number, and all trials."""

    picks: dict[int, Trial]
    n_features: int
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.picks[self.n_features]


class Split(NamedTuple):
    """Training and test samples as a classifier sees them: standardised, imputed, clipped."""

    train: Floats
    y_train: Codes
    test: Floats
    y_test: Codes
    subjects_test: Codes


class SplitScorer:
    """Score feature sets on one split; a set that comes twice is fitted once.

    A function in place of the split is called whenever scores are computed: many splits of a large
    table need not be held at once. ``slope`` turns decisions into log odds.
    """

    def __init__(
        self,
        split: Split | Callable[[], Split],
        classify: Classify,
        metrics: Sequence[str] = METRICS,
        slope: float = SVM_SLOPE,
    ) -> None:
        self._split, self._classify = split, classify
        self._metrics, self._slope = metrics, slope
        self._scores: dict[tuple[bytes, float], Scores] = {}

    def score_all(self, asked: Sequence[Asked]) -> list[Scores]:
        """Score the leading features of many rankings, which share work.

        A set of features has the same scores in whatever order its features are ranked: those it
        was given when it came first. Another order, or other company, would change them by
        rounding.
        """
        columns = [np.flatnonzero(ranking <= k) for ranking, k, _ in asked]
        keys = [(own.tobytes(), cost) for own, (_, _, cost) in zip(columns, asked, strict=True)]
        new = {key: at for at, key in enumerate(keys) if key not in self._scores}
        if new:
            split = self._split() if callable(self._split) else self._split
            sets = []
            for at in new.values():
                ranking, _, cost = asked[at]
                order = np.argsort(ranking[columns[at]], kind="stable")
                sets.append((columns[at][order], cost))
            decisions = np.stack(self._classify(split.train, split.y_train, split.test, sets))
            about = split.y_test, split.subjects_test, self._metrics, self._slope
            self._scores.update(zip(new, score_each(decisions, *about), strict=True))
        return [self._scores[key] for key in keys]


def middle_cost(costs: Sequence[float]) -> float:
    """Return the cost that stands for all where only one is tried."""
    return costs[(len(costs) - 1) // 2]


def nearest_setting(settings: Sequence[Mapping[str, Any]], default: Mapping[str, Any]) -> int:
    """Return the place of the setting that is a selector's default, or nearest to it.

    Positive numbers are compared by their ratio, other numbers by their difference, and anything
    else is equal or not. Of equally near ones it is the first.
    """

    def distance(value: Any, usual: Any) -> float:
        if not (isinstance(value, Real) and isinstance(usual, Real)):
            return float(value != usual)
        a, b = float(value), float(usual)
        return abs(math.log(a / b)) if min(a, b) > 0 else abs(a - b)

    distances = [
        sum(distance(value, default.get(key)) for key, value in setting.items())
        for setting in settings
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
    on_split: Callable[[], object] | None = None,
) -> Tuned:
    """Choose a number of features, a cost and a setting by their scores on inner folds.

    ``rankings`` have shape (n_splits, n_settings, n_features), or (n_splits, n_settings, n_counts,
    n_features) where they depend on the number of features.
    """
    rankings = rankings[:, :, None, :] if rankings.ndim == 3 else rankings
    per_count = rankings.shape[2] > 1

    def attempt(wanted: list[tuple[int, int, int]]) -> list[Trial]:
        """Score a setting, a number of features and a cost, each by its place, on all splits."""
        by_split = []
        for scorer, ranks in zip(scorers, rankings, strict=True):
            asked = [(ranks[s, k * per_count], n_features[k], costs[c]) for s, k, c in wanted]
            by_split.append([scores[metric] for scores in scorer.score_all(asked)])
            if on_split:
                on_split()
        return [
            Trial(setting, n_features[count], costs[cost], tuple(values))
            for (setting, count, cost), *values in zip(wanted, *by_split, strict=True)
        ]

    pairs = [(count, cost) for count in range(len(n_features)) for cost in range(len(costs))]
    tried = attempt([(default, *pair) for pair in pairs])
    trials = list(tried)
    usual_count = nearest_setting([{"k": k} for k in n_features], {"k": USUAL_N_FEATURES})
    usual_cost = nearest_setting([{"C": C} for C in costs], {"C": USUAL_COST})
    chosen = pairs.index((usual_count, usual_cost))
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


def svm_decisions(
    train: Floats,
    y: Codes,
    test: Floats,
    sets: Sets,
    *,
    n_classes: int,
    class_weight: str | None = None,
) -> list[Floats]:
    """Return decisions, shape (n_test, n_classes), of a linear SVM on each set of columns.

    Two classes are solved by Newton's method, unless there are many samples and many features;
    anything else by liblinear in the primal. Both are deterministic.
    """
    decisions: list[Floats] = [np.empty(0)] * len(sets)
    counts = np.bincount(y)
    two = counts.size == 2 and bool(counts.all())
    balanced = class_weight == "balanced" and two
    roots = np.sqrt(y.size / (2.0 * counts) if balanced else np.ones(counts.size))[y]
    signs = np.where(y == 1, roots, -roots)
    for longest, by_size in _nested_sets(sets):
        gram, test_columns = np.empty(0), test[:, longest]
        newton = two and min(y.size, longest.size + 1) <= _MOST_UNKNOWNS
        if newton:
            rows = np.vstack([np.ones(y.size), train[:, longest].T]) * signs
            gram = rows @ rows.T
        for k, places in by_size.items():
            costs = [sets[place][1] for place in places]
            path = _newton_path(rows[: k + 1], gram, roots, costs) if newton else {}
            for place, C in zip(places, costs, strict=True):
                w, seen = path.get(C), test_columns[:, :k]
                if w is None:
                    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, max_iter=2000)
                    # Data and parameters are sound; checking them takes longer than a fit.
                    with config_context(assume_finite=True, skip_parameter_validation=True):
                        svm.fit(train[:, longest[:k]], y)
                    values = seen @ svm.coef_.T + svm.intercept_
                    values = values[:, 0] if values.shape[1] == 1 else values
                    decisions[place] = by_class(values, svm.classes_, n_classes)
                else:
                    decisions[place] = by_class(seen @ w[1:] + w[0], np.arange(2), n_classes)
    return decisions


def by_class(values: Floats, classes: Codes, n_classes: int) -> Floats:
    """Return one column of decision values per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions


def _nested_sets(sets: Sets) -> list[tuple[Codes, dict[int, list[int]]]]:
    """Longest sets of columns, with the places of those that are its first columns, by size."""
    nested: list[tuple[Codes, dict[int, list[int]]]] = []
    for place in sorted(range(len(sets)), key=lambda i: -sets[i][0].size):
        columns = sets[place][0]
        for longest, by_size in nested:
            if np.array_equal(longest[: columns.size], columns):
                by_size.setdefault(columns.size, []).append(place)
                break
        else:
            nested.append((columns, {columns.size: [place]}))
    return nested


def _newton_path(
    rows: Floats, gram: Floats, roots: Floats, costs: Sequence[float]
) -> dict[float, Floats | None]:
    """Minimise ``|w|^2 / 2 + C sum_i max(0, r_i - x_i . w)^2`` for every C."""
    k, n = rows.shape
    basis = None
    if k > n:  # w is a combination of samples: n unknowns do
        basis, rows = np.linalg.qr(rows)
        gram = rows @ rows.T
    samples, gram = np.ascontiguousarray(rows.T), gram[:k, :k]
    path: dict[float, Floats | None] = {}
    start = np.zeros(rows.shape[0])
    for C in sorted(set(costs)):
        w = _minimise(rows, samples, gram, roots, C, start)
        path[C] = w if w is None or basis is None else basis @ w
        start = start if w is None else w
    return path


def _minimise(
    rows: Floats, samples: Floats, gram: Floats, roots: Floats, C: float, start: Floats
) -> Floats | None:
    """Take Newton steps, halved until the loss falls; None where they do not end."""
    w, margins = start, start @ rows
    value, inside = _loss(w, margins, roots, C)
    target_all = rows @ roots
    for _ in range(_MOST_STEPS):
        outside = ~inside
        if 2 * np.count_nonzero(outside) <= roots.size:  # all without those outside
            out = samples[outside]
            products, target = gram - out.T @ out, target_all - roots[outside] @ out
        else:
            inner = samples[inside]
            products, target = inner.T @ inner, roots[inside] @ inner
        products.reshape(-1)[:: products.shape[0] + 1] += 0.5 / C
        # Called directly: scipy's checks of its arguments take longer than the solution.
        _, goal, failed = dposv(products.T, target, overwrite_a=True)
        if failed:
            return None
        goal_margins, share = goal @ rows, 1.0
        for _ in range(_HALVINGS):
            trial = w + share * (goal - w) if share < 1 else goal
            at = margins + share * (goal_margins - margins) if share < 1 else goal_margins
            lower, now = _loss(trial, at, roots, C)
            if lower <= value * (1.0 + 1e-14):
                break
            share *= 0.5
        else:
            return None
        w, margins, value = trial, at, lower
        if share == 1.0 and np.array_equal(now, inside):
            return w
        inside = now
    return None


def _loss(w: Floats, margins: Floats, roots: Floats, C: float) -> tuple[float, NDArray[np.bool_]]:
    """The loss, and which samples lie inside the margin."""
    short = np.maximum(roots - margins, 0.0)
    return 0.5 * float(w @ w) + C * float(short @ short), short > 0
