"""Scores of feature sets on one split into training and test samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.metrics import METRICS, SVM_SLOPE, Scores, score_decisions
from idfsmec.solver.scaling import FAR

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

#: From training samples, their classes, test samples and a cost to decision values, shape
#: (n_test, n_classes).
Classify = Callable[..., Array]


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
        A function is called for every set of features: whoever has many splits of large tables
        need not hold them all.
    classify : callable
        ``(train, y_train, test, C) -> decisions``. If it has a method ``prepare``, then that is
        called with all but C, and gives a function of C that shares what costs have in common,
        as :class:`~idfsmec.selection.linear_svm.LinearSVM` does.
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
        self._known: dict[tuple[bytes, float], Scores] = {}
        self._test: tuple[Codes, Codes] | None = None
        self._last: tuple[bytes, Callable[[float], Array]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was prepared last to this process."""
        return {**vars(self), "_last": None}

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
            decisions = self.decisions(columns, cost)
            about = self._about_test()
            self._known[key] = score_decisions(decisions, *about, self._metrics, self._slope)
        return self._known[key]

    def decisions(self, columns: Codes, cost: float) -> Array:
        """Decision values of the test samples with some of the columns."""
        key = columns.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._prepare(columns)
        return self._last[1](cost)

    def _prepare(self, columns: Codes) -> Callable[[float], Array]:
        """A function of the cost."""
        split = self._get_split()
        extra = {} if self._channels is None else {"channels": self._channels[columns]}
        train, test = self._seen(split.train[:, columns]), self._seen(split.test[:, columns])
        if hasattr(self._classify, "prepare"):
            prepared: Callable[[float], Array] = self._classify.prepare(
                train, split.y_train, test, **extra
            )
            return prepared
        return lambda cost: self._classify(train, split.y_train, test, cost, **extra)

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
