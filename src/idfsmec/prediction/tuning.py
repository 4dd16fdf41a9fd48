"""Choose a number of features, a cost and a setting by inner folds.

The best of many is better by chance alone, so the default stays unless another is better by some
standard errors. The criterion is smooth, the log loss by subject: the share of some fifty subjects
that are classified rightly moves in steps of two percent.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.metrics import (
    METRICS,
    SVM_SLOPE,
    Codes,
    Floats,
    Scores,
    score_each,
    score_predictions,
)
from idfsmec.prediction.samples import FoldSamples
from idfsmec.selection import defaults

#: Columns in the order of their ranks, with a cost each.
Sets = Sequence[tuple[Codes, float]]
#: From sets of columns to decisions of each on the held-out samples, (n_samples, n_classes).
Decide = Callable[[FoldSamples, Sets], Sequence[Floats]]
#: A ranking (1 = best), how many of the leading features are used, and a cost.
Candidate = tuple[Codes, int, float]

#: By how many standard errors over the folds another number of features or cost has to be better
#: than the usual ones.
PAIR_MARGIN = 1.0
#: By how many standard errors over the folds another setting has to be better than the default.
#: The best of the 42 settings of IDFS-MEC is better by one in two folds of five, by chance.
MARGIN = 3.0


@dataclass
class SetScorer:
    """Score feature sets on one fold; a set that comes twice is fitted once."""

    fold: FoldSamples
    decide: Decide
    metrics: Sequence[str] = METRICS
    slope: float = SVM_SLOPE  # turns decisions into log odds
    # Scores of all features, which methods on the same fold share.
    scores_of_all: dict[float, Scores] = field(default_factory=dict)
    _scores: dict[tuple[bytes, float], Scores] = field(default_factory=dict)

    def score_all(self, candidates: Sequence[Candidate]) -> list[Scores]:
        """Score the leading features of many rankings, which share work."""
        columns = [np.flatnonzero(ranking <= k) for ranking, k, _ in candidates]
        keys = [
            (chosen.tobytes(), cost)
            for chosen, (_, _, cost) in zip(columns, candidates, strict=True)
        ]
        # A set has the scores of the order in which it came first: others round otherwise.
        new = {key: at for at, key in enumerate(keys) if key not in self._scores}
        sets, places = [], []
        for key, at in new.items():
            ranking, _, cost = candidates[at]
            if columns[at].size < ranking.size:
                order = np.argsort(ranking[columns[at]], kind="stable")
                sets.append((columns[at][order], cost))
            elif cost in self.scores_of_all:
                self._scores[key] = self.scores_of_all[cost]
                continue
            else:  # all features are in the order of the table, whatever the ranking
                sets.append((columns[at], cost))
            places.append(key)
        if sets:
            held_out, decisions = self.fold.held_out, np.stack(self.decide(self.fold, sets))
            known = held_out.y, held_out.subjects
            if held_out.numeric:
                trained = self.fold.training.samples.subject_scores
                scores = [
                    score_predictions(of_set[:, 0], *known, trained, self.metrics)
                    for of_set in decisions
                ]
            else:
                scores = score_each(decisions, *known, self.metrics, self.slope)
            self._scores.update(zip(places, scores, strict=True))
            for (chosen, cost), score in zip(sets, scores, strict=True):
                if chosen.size == candidates[0][0].size:
                    self.scores_of_all[cost] = score
        return [self._scores[key] for key in keys]


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
        """Whether the gain over another trial is above so many standard errors over the splits."""
        gains = np.array(self.scores) - np.array(other.scores)
        gains = gains[np.isfinite(gains)]
        if gains.size == 0:
            return self.mean > other.mean
        # With one split there is no standard error, and any gain counts.
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


def middle_cost(costs: Sequence[float]) -> float:
    """Return the cost that stands for all where only one is tried."""
    return costs[(len(costs) - 1) // 2]


def nearest_setting(settings: Sequence[Mapping[str, Any]], default: Mapping[str, Any]) -> int:
    """Return the place of the setting that is a selector's default, or the first nearest to it."""

    def distance(value: Any, usual: Any) -> float:
        if not (isinstance(value, Real) and isinstance(usual, Real)):
            return float(value != usual)
        a, b = float(value), float(usual)  # compared by their ratio, if it has a logarithm
        return abs(math.log(a / b)) if min(a, b) > 0 else abs(a - b)

    distances = [
        sum(distance(value, default.get(key)) for key, value in setting.items())
        for setting in settings
    ]
    return distances.index(min(distances))


def tune(
    scorers: Sequence[SetScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    *,
    default: int = 0,
    costs: Sequence[float] = defaults.SVM_COSTS,
    metric: str = defaults.CRITERION,
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
    usual_count = nearest_setting([{"k": k} for k in n_features], {"k": defaults.USUAL_N_FEATURES})
    usual_cost = nearest_setting([{"C": C} for C in costs], {"C": defaults.USUAL_COST})
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
    # A curve over numbers of features has the best cost for each.
    picks = {
        k: max(tried[count * len(costs) : (count + 1) * len(costs)], key=mean)
        for count, k in enumerate(n_features)
    }
    picks[best.n_features] = tried[chosen]
    return Tuned(picks, best.n_features, tuple(trials))
