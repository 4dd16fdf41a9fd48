"""The tuner: inner folds choose a selector's setting, the classifier's cost and how many features.

Every number of features is tuned on its own: all settings are compared with the middle cost, the
best of them gets the best of all costs. Then the numbers of features are compared, each as tuned.
Of equals the first wins: earlier settings, smaller costs, fewer features. Comparing settings with
one cost only takes a third of the fits, and which setting is best hardly depends on the cost.

``idfsmec.IDFSMECCV`` and the nested evaluation both choose this way, with the defaults of
:mod:`idfsmec.selection.defaults`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from idfsmec.metrics import METRICS, Scores, score_decisions
from idfsmec.selection.defaults import METRIC, SVM_COSTS

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

#: From training samples, their classes, test samples and a cost to decision values, shape
#: (n_test, n_classes).
Classify = Callable[[Array, Codes, Array, float], Array]


@dataclass(frozen=True)
class Split:
    """One split into training and test samples, as a classifier sees them.

    Attributes
    ----------
    train, test : ndarray of shape (n_samples, n_features)
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
    split : Split
    classify : callable
        ``(train, y_train, test, C) -> decisions``, such as a partial
        :func:`~idfsmec.selection.linear_svm.svm_decisions`.
    metrics : sequence of str
        Which scores are computed.
    """

    def __init__(self, split: Split, classify: Classify, metrics: Sequence[str] = METRICS) -> None:
        self._split = split
        self._classify = classify
        self._metrics = metrics
        self._known: dict[tuple[bytes, float], Scores] = {}

    def scores(self, ranking: Codes, n_features: int, cost: float) -> Scores:
        """Scores of the leading features.

        Parameters
        ----------
        ranking : ndarray of shape (n_features,)
            1 = best.
        n_features : int
            How many of them are used.
        cost : float
            Handed to the classifier.
        """
        # Columns in their own order: the result must not depend on the order inside the set.
        columns = np.flatnonzero(ranking <= n_features)
        key = (columns.tobytes(), cost)
        if key not in self._known:
            split = self._split
            decisions = self._classify(
                split.train[:, columns], split.y_train, split.test[:, columns], cost
            )
            self._known[key] = score_decisions(
                decisions, split.y_test, split.subjects_test, self._metrics
            )
        return self._known[key]


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


@dataclass(frozen=True)
class Tuned:
    """What was chosen.

    Attributes
    ----------
    picks : dict of int to Trial
        The best trial for every number of features.
    n_features : int
        The best number of features.
    trials : tuple of Trial
        All that was tried: every setting with the middle cost, the best ones with all costs.
    """

    picks: dict[int, Trial]
    n_features: int
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The best of all."""
        return self.picks[self.n_features]


def middle_cost(costs: Sequence[float]) -> float:
    """Give the cost with which settings are compared.

    Examples
    --------
    >>> middle_cost((0.01, 0.1, 1.0)), middle_cost((0.01, 0.1, 1.0, 10.0))
    (0.1, 0.1)
    """
    return costs[_middle(costs)]


def tune(
    scorers: Sequence[SplitScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    *,
    costs: Sequence[float] = SVM_COSTS,
    metric: str = METRIC,
    n_jobs: int | None = None,
) -> Tuned:
    """Choose a setting, a cost and a number of features by their scores on inner folds.

    Parameters
    ----------
    scorers : sequence of SplitScorer
        One for each inner fold.
    rankings : ndarray of shape (n_splits, n_settings[, n_counts], n_features)
        Ranks of the features with every setting, learned from each fold's training samples;
        with the third axis where they depend on how many features are asked for.
    n_features : sequence of int
        Numbers of features to compare.
    costs : sequence of float
        Costs of the classifier to compare.
    metric : str
        What is maximised, one of the scorers' metrics.
    n_jobs : int, optional
        Processes over inner folds.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> from functools import partial
    >>> from idfsmec.selection.linear_svm import svm_decisions
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 4))
    >>> X[:, 2] += 3 * y
    >>> split = Split(X[:40], y[:40], X[40:], y[40:], np.arange(20))
    >>> svm = partial(svm_decisions, n_classes=2, class_weight="balanced")
    >>> good, bad = [2, 3, 1, 4], [1, 2, 4, 3]
    >>> tuned = tune([SplitScorer(split, svm)], np.array([[bad, good]]), [1, 3])
    >>> tuned.best.setting, tuned.n_features
    (1, 1)
    """
    rankings = rankings[:, :, None, :] if rankings.ndim == 3 else rankings
    shared = (scorers, rankings, n_features, costs, metric, n_jobs)
    counts, middle = range(len(n_features)), _middle(costs)
    compared = [(s, count, middle) for s in range(rankings.shape[1]) for count in counts]
    first = _try(*shared, compared)
    # max() keeps the first of equals.
    leading = [max(first[count :: len(counts)], key=lambda one: one.mean) for count in counts]
    others = [
        (leading[count].setting, count, cost)
        for count in counts
        for cost in range(len(costs))
        if cost != middle
    ]
    second = _try(*shared, others)
    picks, n_others = {}, len(costs) - 1
    for count, k in enumerate(n_features):
        by_cost = second[count * n_others : (count + 1) * n_others]
        by_cost.insert(middle, leading[count])
        picks[k] = max(by_cost, key=lambda one: one.mean)
    return Tuned(picks, max(picks, key=lambda k: picks[k].mean), (*first, *second))


def _middle(costs: Sequence[float]) -> int:
    return (len(costs) - 1) // 2


def _try(
    scorers: Sequence[SplitScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    costs: Sequence[float],
    metric: str,
    n_jobs: int | None,
    wanted: list[tuple[int, int, int]],
) -> list[Trial]:
    """Score places of a setting, a number of features and a cost on all splits."""
    by_split = Parallel(n_jobs=n_jobs)(
        delayed(_score)(scorer, own, n_features, costs, metric, wanted)
        for scorer, own in zip(scorers, rankings, strict=True)
    )
    return [
        Trial(setting, n_features[count], costs[cost], tuple(values))
        for (setting, count, cost), *values in zip(wanted, *by_split, strict=True)
    ]


def _score(
    scorer: SplitScorer,
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    costs: Sequence[float],
    metric: str,
    wanted: list[tuple[int, int, int]],
) -> list[float]:
    per_count = rankings.shape[1] > 1
    return [
        scorer.scores(rankings[setting, count * per_count], n_features[count], costs[cost])[metric]
        for setting, count, cost in wanted
    ]
