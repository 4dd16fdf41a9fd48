"""Balanced error of the nearest neighbour for subsets of features: fast, and sure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

# Squared distances that differ by less are ties (rounding only).
_TIE = 1e-12
_ROUNDING = 2.0**-24  # of one operation in single precision
# Rows of a product of matrices, at least; most of its result should stay in a core's cache.
# Products of so many multiplications at most need no preparation.
_ROWS = 128
_PRODUCT = 10**6
_COLUMNS = 16

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class NearestError:
    """1 - mean recall when each sample gets the class of the nearest in another fold.

    Whether that is a sample of the own class is asked in single precision: each pair is measured
    once, for both its samples. Where the nearest of the own and of another class are closer
    together than rounding can tell, the sample's distances are computed in double precision.
    Of ties (to 1e-12) the first sample counts, in the order of folds and rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes from 0.
    folds : ndarray of shape (n_samples,)
        The fold each sample is tested in.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.1, 0.9], [0.9, 0.2], [1.0, 0.8]])
    >>> error = NearestError(X, np.array([0, 0, 1, 1]), np.arange(4))
    >>> error(np.array([True, False])), error(np.array([False, True]))
    (0.0, 1.0)
    """

    def __init__(self, X: Floats, y: NDArray[np.intp], folds: NDArray[np.intp]) -> None:
        # Classes side by side, and in each the folds: what is compared is a range of columns.
        order = np.lexsort([folds, y])
        self._X, self._y, self._folds = X[order], y[order], folds[order]
        self._centred = np.ascontiguousarray((self._X - self._X.mean(axis=0)).T, np.float32)
        self._turn = np.empty(order.size, dtype=np.intp)
        self._turn[np.lexsort([order, self._folds])] = np.arange(order.size)
        self._sizes = np.bincount(y)
        self._strips = _strips(self._y, self._folds)

    def __call__(self, mask: NDArray[np.bool_]) -> float:
        """Balanced error with the features of the mask."""
        own, other, doubt = self._nearest(mask)
        hit = own > other
        with np.errstate(invalid="ignore"):  # a sample without any in another fold: both infinite
            unsure = np.flatnonzero(np.abs(own - other) <= doubt)
        if unsure.size:
            hit[unsure] = self._decide(unsure, mask)
        recall = np.bincount(self._y, hit, self._sizes.size) / self._sizes
        return float(1 - recall.mean())

    def _nearest(self, mask: NDArray[np.bool_]) -> tuple[Singles, Singles, Singles]:
        """Minus half the least squared distance to the own and to other classes, and its doubt."""
        n_samples, n_features = self._y.size, np.count_nonzero(mask)
        # -|a - b|^2 / 2 = a.b - |a|^2 / 2 - |b|^2 / 2 as one product.
        left = np.empty((n_features + 2, n_samples), dtype=np.float32)
        np.compress(mask, self._centred, axis=0, out=left[:-2])
        half = np.einsum("ij,ij->j", left[:-2], left[:-2]) / 2
        left[-2], left[-1] = -half, 1
        right = left.copy()
        right[-2], right[-1] = 1, -half
        own, other = np.full((2, n_samples), -np.inf, dtype=np.float32)
        room = np.empty(n_samples * max(one.end - one.begin for one in self._strips), np.float32)
        for one in self._strips:
            rows, split = slice(one.begin, one.end), one.class_end - one.begin
            near = room[: (one.end - one.begin) * (n_samples - one.begin)]
            near = near.reshape(one.end - one.begin, -1)
            _multiply(left[:, rows].T, right[:, one.begin :], near)
            for place in one.same_fold:
                near[place] = -np.inf
            _take_notice(near[:, :split], own, rows, slice(one.begin, one.class_end))
            if split < near.shape[1]:
                _take_notice(near[:, split:], other, rows, slice(one.class_end, None))
        # n products and sums, each off by a rounding of at most (|a| + |b|)^2 / 2, squares too;
        # |b| is at most |a| + |a - b|. Two such results are compared.
        size = np.minimum(4 * half - own - other, half.max())
        return own, other, 8 * (n_features + 4) * _ROUNDING * size + _TIE

    def _decide(self, rows: NDArray[np.intp], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the nearest is of the own class, in double precision."""
        X = self._X[:, mask]
        distance = cdist(X[rows], X, "sqeuclidean")
        distance[self._folds[rows][:, None] == self._folds] = np.inf
        nearest = distance <= distance.min(axis=1, keepdims=True) + _TIE
        first = np.where(nearest, self._turn, self._turn.size).argmin(axis=1)
        return np.asarray(self._y[first] == self._y[rows])


def _multiply(left: Singles, right: Singles, out: Singles) -> None:
    """Multiply matrices, a few columns at a time."""
    (n_rows, n_inner), n_columns = left.shape, right.shape[1]
    width = max(_PRODUCT // (n_rows * n_inner) // _COLUMNS, 1) * _COLUMNS
    whole = n_columns // width * width
    blocks = (
        right[:, :whole].reshape(n_inner, -1, width),
        out[:, :whole].reshape(n_rows, -1, width),
    )
    np.matmul(left, blocks[0].transpose(1, 0, 2), out=blocks[1].transpose(1, 0, 2))
    if whole < n_columns:
        np.matmul(left, right[:, whole:], out=out[:, whole:])


def _take_notice(near: Singles, best: Singles, rows: slice, columns: slice) -> None:
    """Both samples of a pair learn how near the other is."""
    np.maximum(best[rows], near.max(axis=1), out=best[rows])
    np.maximum(best[columns], near.max(axis=0), out=best[columns])


class _Strip(NamedTuple):
    """Some folds of one class, to be compared with themselves and all that comes later."""

    begin: int
    end: int
    class_end: int
    same_fold: list[tuple[slice, slice]]


def _strips(y: NDArray[np.intp], folds: NDArray[np.intp]) -> list[_Strip]:
    """Cut samples in the order of classes and folds; a product of few rows is a slow one."""
    cuts = 1 + np.flatnonzero(np.diff(y) | np.diff(folds))
    groups = list(zip([0, *cuts.tolist()], [*cuts.tolist(), y.size], strict=True))
    strips, begin = [], 0
    for place, (_, end) in enumerate(groups):
        class_end = int(np.searchsorted(y, y[end - 1], side="right"))
        if end - begin < _ROWS and end < class_end:
            continue
        same_fold = [
            (slice(own - begin, own_end - begin), slice(other - begin, other_end - begin))
            for own, own_end in groups[: place + 1]
            for other, other_end in groups
            if own >= begin and other >= begin and folds[own] == folds[other]
        ]
        strips.append(_Strip(begin, end, class_end, same_fold))
        begin = end
    return strips
