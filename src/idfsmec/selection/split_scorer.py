"""Scores of feature sets on one split into training and test samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.metrics import METRICS, SVM_SLOPE, Scores, score_each
from idfsmec.solver.scaling import FAR

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

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
        :class:`~idfsmec.selection.linear_svm.LinearSVM` does.
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
        self._test: tuple[Codes, Codes] | None = None

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
        return self.score_all([(ranking, n_features, cost)])[0]

    def score_all(self, asked: Sequence[Asked]) -> list[Scores]:
        """Give what :meth:`scores` gives, for many at once, which share work.

        A set of features has the same scores in whatever order its features are ranked: those it
        was given when it came first. Another order, or other company, would change them by
        rounding.

        Parameters
        ----------
        asked : sequence of (ranking, n_features, cost)
        """
        sets = [(np.flatnonzero(ranking <= k), cost) for ranking, k, cost in asked]
        keys = [(columns.tobytes(), cost) for columns, cost in sets]
        new = {key: one for one, key in enumerate(keys) if key not in self.known}
        for some in self._batches([sets[one][0] for one in new.values()]):
            here = list(new.items())[some]
            decided = self._decide([(*sets[one], asked[one][0]) for _, one in here])
            about = self._about_test()
            found = score_each(np.stack(decided), *about, self._metrics, self._slope)
            self.known.update((key, scores) for (key, _), scores in zip(here, found, strict=True))
        return [self.known[key] for key in keys]

    def decisions(self, columns: Codes, cost: float) -> Array:
        """Decision values of the test samples with some of the columns."""
        split, extra = self._see(columns)
        return self._classify(split.train, split.y_train, split.test, cost, **extra)

    def _batches(self, sets: list[Codes]) -> Iterator[slice]:
        """Cut sets into parts that are not too large to be looked at together."""
        if not sets:
            return
        split = self._get_split()
        first, taken = 0, np.zeros(split.train.shape[1], dtype=bool)
        for one, columns in enumerate(sets):
            taken[columns] = True
            size = np.count_nonzero(taken) * len(split.train) + (one - first) * len(split.test)
            if size > _AT_ONCE and one > first:
                yield slice(first, one)
                first, taken = one, np.zeros_like(taken)
                taken[columns] = True
        yield slice(first, len(sets))

    def _decide(self, sets: Sequence[tuple[Codes, float, Codes]]) -> Sequence[Array]:
        """Decide with columns, a cost and a ranking each."""
        many = getattr(self._classify, "many", None)
        if many is None:
            return [self.decisions(columns, cost) for columns, cost, _ in sets]
        needed = np.unique(np.concatenate([columns for columns, _, _ in sets]))
        split, extra = self._see(needed)
        places = [
            (np.searchsorted(needed, columns[np.argsort(ranking[columns], kind="stable")]), cost)
            for columns, cost, ranking in sets
        ]
        found: Sequence[Array] = many(split.train, split.y_train, split.test, places, **extra)
        return found

    def _see(self, columns: Codes) -> tuple[Split, dict[str, Any]]:
        """What the classifier sees of some columns, and what it is told about them."""
        split = self._get_split()
        extra = {} if self._channels is None else {"channels": self._channels[columns]}
        seen = (self._seen(part.take(columns, axis=1)) for part in (split.train, split.test))
        return replace(split, train=next(seen), test=next(seen)), extra

    def _about_test(self) -> tuple[Codes, Codes]:
        """Classes and subjects of the test samples, which are small enough to keep."""
        if self._test is None:
            split = self._get_split()
            self._test = split.y_test, split.subjects_test
        return self._test

    def _get_split(self) -> Split:
        return self._split() if callable(self._split) else self._split

    def _seen(self, values: Array) -> Array:
        if self._clip is None:
            return values
        return np.clip(values, -self._clip, self._clip, out=values)
