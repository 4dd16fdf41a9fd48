"""The tuner: inner folds choose how many features, the classifier's cost and a selector's setting.

First the number of features and the cost are chosen together, with the selector as it is by
default: 20 features and C = 0.01, or what comes nearest to that, unless the best pair is better by
:data:`PAIR_MARGIN` standard errors, paired over the folds. Then the other settings are compared
with that number and cost, and the best of them is taken only if its gain is above :data:`MARGIN`
standard errors: the best of many is better by luck alone. Last, every other number of features
gets the best cost for that setting, so that a curve over numbers can be drawn. Of equals the
default wins, then the first: fewer features, smaller costs.

Classifiers see standardised values no further than :data:`~idfsmec.solver.scaling.FAR` deviations
from the mean, inner folds and the test alike.

A smooth criterion matters more than the order. How many of some fifty people are classified
rightly moves in steps of two percent, and the best of many such numbers is luck; the log loss by
person hears how sure each decision was. :doc:`/explanation/evaluation` says what was measured.

``idfsmec.IDFSMECCV`` and the nested evaluation both choose this way, with the defaults of
:mod:`idfsmec.selection.defaults`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from idfsmec._workers import attend
from idfsmec.metrics import Scores
from idfsmec.selection.defaults import CRITERION, SVM_COSTS, USUAL_COST, USUAL_N_FEATURES
from idfsmec.selection.split_scorer import SplitScorer

#: By how many standard errors over the folds another number of features or cost has to be better
#: than the usual ones.
PAIR_MARGIN = 1.0
#: By how many standard errors over the folds another setting has to be better than the default.
#: The best of the 42 settings of IDFS-MEC is better by one in two folds of five, by luck.
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
    """Give the cost that stands for all where only one is tried.

    Examples
    --------
    >>> middle_cost((0.01, 0.1, 1.0)), middle_cost((0.001, 0.01, 0.1, 1.0))
    (0.1, 0.01)
    """
    return costs[(len(costs) - 1) // 2]


def nearest_setting(settings: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> int:
    """Say which of the settings a selector has by default, or comes nearest to that.

    Positive numbers are compared by their ratio, other numbers by their difference, and anything
    else is equal or not. Of equally near ones it is the first.

    Parameters
    ----------
    settings : sequence of mappings
        Parameters to try.
    own : mapping
        Parameters as they are.

    Examples
    --------
    >>> nearest_setting([{"lam": 0.01}, {"lam": 2.0}, {"lam": 100.0}], {"lam": 1.0, "tol": 1e-6})
    1
    """
    return min(
        range(len(settings)),
        key=lambda one: sum(_distance(v, own.get(key)) for key, v in settings[one].items()),
    )


def _distance(value: Any, own: Any) -> float:
    if not (isinstance(value, Real) and isinstance(own, Real)):
        return float(value != own)
    here, there = float(value), float(own)
    return abs(math.log(here / there)) if min(here, there) > 0 else abs(here - there)


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
    """Choose a number of features, a cost and a setting by their scores on inner folds.

    Parameters
    ----------
    scorers : sequence of SplitScorer
        One for each inner fold.
    rankings : ndarray of shape (n_splits, n_settings[, n_counts], n_features)
        Ranks of the features with every setting, learned from each fold's training samples;
        with the third axis where they depend on how many features are asked for.
    n_features : sequence of int
        Numbers of features to compare.
    default : int
        Which setting is left only for a clear gain; see :func:`nearest_setting`.
    costs : sequence of float
        Costs of the classifier to compare.
    metric : str
        What is maximised, one of the scorers' metrics.
    n_jobs : int, optional
        Processes over inner folds.
    tell : callable, optional
        Called whenever an inner fold has scored what was asked; each is asked two or three times.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> from functools import partial
    >>> from idfsmec.selection.linear_svm import svm_decisions
    >>> from idfsmec.selection.split_scorer import Split
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 4))
    >>> X[:, 2] += 3 * y
    >>> split = Split(X[:40], y[:40], X[40:], y[40:], np.arange(20))
    >>> svm = partial(svm_decisions, n_classes=2, class_weight="balanced")
    >>> good, bad = [2, 3, 1, 4], [1, 2, 4, 3]
    >>> scorer = SplitScorer(split, svm, ["roc_auc"])
    >>> tuned = tune([scorer], np.array([[bad, good]]), [1, 2], metric="roc_auc")
    >>> tuned.best.setting, tuned.n_features
    (1, 1)
    """
    rankings = rankings[:, :, None, :] if rankings.ndim == 3 else rankings
    attempt = functools.partial(_try, scorers, rankings, n_features, costs, metric, n_jobs, tell)
    pairs = [(count, cost) for count in range(len(n_features)) for cost in range(len(costs))]
    tried = attempt([(default, *pair) for pair in pairs])
    trials = list(tried)
    place = pairs.index(_usual_pair(n_features, costs))
    # max() keeps the first of equals.
    leading_place = max(range(len(pairs)), key=lambda one: tried[one].mean)
    if tried[leading_place].is_better(tried[place], PAIR_MARGIN):
        place = leading_place
    best, pair = tried[place], pairs[place]
    others = [one for one in range(rankings.shape[1]) if one != default]
    compared = attempt([(one, *pair) for one in others])
    trials += compared
    leading = max(compared, key=lambda one: one.mean, default=best)
    if leading.is_better(best, MARGIN):
        rest = [one for one in pairs if one != pair]
        again = attempt([(leading.setting, *one) for one in rest])
        trials += again
        again.insert(place, leading)
        tried = again
    picks = {
        k: max(tried[count * len(costs) : (count + 1) * len(costs)], key=lambda one: one.mean)
        for count, k in enumerate(n_features)
    }
    picks[best.n_features] = tried[place]
    return Tuned(picks, best.n_features, tuple(trials))


def _usual_pair(n_features: Sequence[int], costs: Sequence[float]) -> tuple[int, int]:
    """Places of the number of features and of the cost nearest to the usual ones."""
    count = nearest_setting([{"k": k} for k in n_features], {"k": USUAL_N_FEATURES})
    return count, nearest_setting([{"C": C} for C in costs], {"C": USUAL_COST})


def _try(
    scorers: Sequence[SplitScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    costs: Sequence[float],
    metric: str,
    n_jobs: int | None,
    tell: Callable[[], object] | None,
    wanted: list[tuple[int, int, int]],
) -> list[Trial]:
    """Score places of a setting, a number of features and a cost on all splits."""
    score = attend(_score)
    scored = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(score)(scorer, own, n_features, costs, metric, wanted)
        for scorer, own in zip(scorers, rankings, strict=True)
    )
    by_split = []
    for scorer, (values, known) in zip(scorers, scored, strict=True):
        scorer.known.update(known)  # it may have been at work in another process
        by_split.append(values)
        if tell:
            tell()
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
) -> tuple[list[float], dict[Any, Scores]]:
    """Score what is wanted; also give all that the scorer knows."""
    per_count = rankings.shape[1] > 1
    asked = [
        (rankings[setting, count * per_count], n_features[count], costs[cost])
        for setting, count, cost in wanted
    ]
    return [scores[metric] for scores in scorer.score_all(asked)], scorer.known
