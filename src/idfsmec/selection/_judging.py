"""How well a classifier does on the leading features of many rankings, each set judged once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import get_scorer
from sklearn.svm import LinearSVC

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
# From features and classes of the training part and those of the test part to a score.
Judge = Callable[[Array, NDArray[np.intp], Array, NDArray[np.intp]], float]


def judge_fold(
    X: Array,
    codes: NDArray[np.intp],
    split: Split,
    rankings: NDArray[np.intp],
    counts: list[int],
    judge: Judge,
) -> Array:
    """Scores of one fold for every (gamma, lam, number of features).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where a channel is missing.
    codes : ndarray of shape (n_samples,)
        Classes 0 ... c - 1.
    split : (train, test)
        Samples of either part.
    rankings : ndarray of shape (n_lams, n_gammas, n_features)
        1 = best.
    counts : list of int
        Numbers of features to keep.
    judge : callable
        What :func:`judge_by` returns.
    """
    train, test = split
    inside, outside = fill_by_train(X[train], X[test])
    known: dict[bytes, float] = {}
    n_lams, n_gammas, _ = rankings.shape
    scores = np.empty((n_gammas, n_lams, len(counts)))
    # The numbers were checked when they came in; small fits would spend half their time on
    # checking them again.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for place in np.ndindex(n_gammas, n_lams, len(counts)):
            kept = rankings[place[1], place[0]] <= counts[place[2]]
            key = np.packbits(kept).tobytes()
            if key not in known:  # different gammas often keep the same features
                known[key] = judge(inside[:, kept], codes[train], outside[:, kept], codes[test])
            scores[place] = known[key]
    return scores


def judge_by(classifier: BaseEstimator | None, scoring: Any, classes: NDArray) -> Judge:
    """Make the judge: fit the classifier on the training part, score it on the test part.

    The usual linear SVM and scores by class are computed directly. The numbers are the same, but
    scikit-learn's checks on the way would take several times as long as the fit itself.

    Parameters
    ----------
    classifier : classifier or None
        None stands for ``LinearSVC()``.
    scoring : str or callable
    classes : ndarray of shape (n_classes,)
        The label of each class.
    """
    model = LinearSVC() if classifier is None else classifier
    known = isinstance(scoring, str) and scoring in _BY_CLASS
    # Weights given by label need the labels; a generator must be at its start for every fit.
    plain = type(model) is LinearSVC and not isinstance(model.class_weight, dict)
    if known and plain and isinstance(model.random_state, int | None):
        return _LinearJudge(model, _BY_CLASS[scoring])
    return _AnyJudge(model, get_scorer(scoring) if isinstance(scoring, str) else scoring, classes)


class _AnyJudge:
    """Any classifier and any scorer of scikit-learn."""

    def __init__(self, classifier: BaseEstimator, scorer: Any, classes: NDArray) -> None:
        self.classifier, self.scorer, self.classes = classifier, scorer, classes

    def __call__(
        self, train: Array, codes: NDArray[np.intp], test: Array, truth: NDArray[np.intp]
    ) -> float:
        model = clone(self.classifier).fit(train, self.classes[codes])
        return self.scorer(model, test, self.classes[truth])


class _LinearJudge:
    """A linear SVM, scored by how many samples of each class it tells."""

    def __init__(self, classifier: LinearSVC, score: Callable[[Array, Array], float]) -> None:
        self.classifier, self.score = clone(classifier), score

    def __call__(
        self, train: Array, codes: NDArray[np.intp], test: Array, truth: NDArray[np.intp]
    ) -> float:
        model = self.classifier.fit(train, codes)
        distance = test @ model.coef_.T + model.intercept_
        side = distance[:, 0] > 0 if distance.shape[1] == 1 else distance.argmax(axis=1)
        right = model.classes_[side.astype(np.intp)] == truth
        return self.score(np.bincount(truth[right], minlength=truth.max() + 1), np.bincount(truth))


def _balanced_accuracy(hits: Array, counts: Array) -> float:
    there = counts > 0
    return float(np.mean(hits[there] / counts[there]))


def _accuracy(hits: Array, counts: Array) -> float:
    return float(hits.sum() / counts.sum())


_BY_CLASS = {"balanced_accuracy": _balanced_accuracy, "accuracy": _accuracy}


def fill_by_train(train: Array, test: Array) -> tuple[Array, Array]:
    """Standardise by the training part's observed values and fill gaps with its mean.

    Examples
    --------
    >>> fill_by_train(np.array([[0.0], [2.0], [np.nan]]), np.array([[3.0], [np.nan]]))
    (array([[-1.],
           [ 1.],
           [ 0.]]), array([[2.],
           [0.]]))
    """
    seen = ~np.isnan(train)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, train, 0.0).sum(axis=0) / count
    centred = np.where(seen, train - mean, 0.0)
    std = np.sqrt((centred**2).sum(axis=0) / count)
    std[std == 0] = 1.0
    return centred / std, np.nan_to_num((test - mean) / std, nan=0.0)
