"""Newton's method for linear SVMs of two classes: one cost after the other, one set in another.

The squared hinge loss is piecewise quadratic. On the piece where the same samples lie inside the
margin, one linear system gives the minimum; when that minimum lies on its own piece, it is the
minimum of the whole (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast
solution of large scale linear SVMs", JMLR 6, 2005). It takes a handful of steps.

A comparison fits hundreds of thousands of SVMs: the leading features of a ranking, ten numbers of
them, with several costs each. Products of features (of samples, if these are fewer) are formed
once for all of them, since those of fewer features are a corner of those of more. A cost starts
from the minimum of the next smaller one, the first from the weights that features had in another
set, and from one piece to the next only samples that change sides are added or taken away.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dposv

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_STEPS = 60
_HALVINGS = 30


class NewtonSVM:
    """Minimises ``|w|^2 / 2 + C sum_i weights_i max(0, 1 - signs_i (x_i . w))^2`` for any C.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_samples)
        X', with a row of ones for the intercept, which is part of ``|w|`` as in liblinear.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    weights : ndarray of shape (n_samples,)

    Examples
    --------
    >>> columns = np.array([[1.0, 1.0, 1.0, 1.0], [-2.0, -1.0, 1.0, 2.0], [1.0, 0.0, 2.0, 0.0]])
    >>> svm = NewtonSVM(columns, np.array([-1.0, -1, 1, 1]), np.ones(4))
    >>> svm.fit(10.0).round(3)
    array([-0.317,  0.658,  0.325])
    >>> svm.leading(2).fit(10.0).round(3)
    array([0.   , 0.976])
    >>> svm.of([0, 2]).fit(10.0).round(3)
    array([-0.262,  0.354])
    """

    def __init__(self, columns: Floats, signs: Floats, weights: Floats) -> None:
        # With samples multiplied by the roots r of their weights, losses are (r_i - x_i . w)^2.
        self._n_features = columns.shape[0]
        rows = np.empty((self._n_features + 1, columns.shape[1]))
        np.sqrt(weights, out=rows[0])
        np.multiply(columns, signs * rows[0], out=rows[1:])
        self._products = _Products(rows)

    def leading(self, n_features: int) -> NewtonSVM:
        """Give the SVM of the first features alone, which shares the products of all."""
        return self._part(self._products, n_features)

    def of(self, features: ArrayLike) -> NewtonSVM:
        """Give the SVM of some features, in this order."""
        places = np.asarray(features)
        if places.size == self._n_features and (np.diff(places) == 1).all():
            return self
        rows = self._products.rows[np.append(0, places + 1)]
        return self._part(_Products(rows), places.size)

    def _part(self, products: _Products, n_features: int) -> NewtonSVM:
        part = object.__new__(NewtonSVM)
        part._products, part._n_features = products, n_features
        return part

    @functools.cached_property
    def _pieces(self) -> _Pieces:
        by_side = _ByFeatures if self._n_features <= self._products.roots.size else _BySamples
        return by_side(self._products, self._n_features)

    def fit(self, C: float) -> Floats | None:
        """Give w, or None if the steps did not end.

        Rounding may cause that on the border of two pieces.
        """
        return self.path([C])[C]

    def path(
        self, costs: Iterable[float], start: Floats | None = None
    ) -> dict[float, Floats | None]:
        """Give what :meth:`fit` gives for each cost, to rounding; each starts from the one before.

        Parameters
        ----------
        costs : iterable of float
        start : ndarray of shape (n_features,), optional
            Weights from which the smallest cost starts; any will do, but near ones save steps.

        Examples
        --------
        >>> svm = NewtonSVM(np.array([[-2.0, -1.0, 1.0]]), np.array([-1.0, -1, 1]), np.ones(3))
        >>> {C: w.round(3).tolist() for C, w in svm.path([10.0, 0.1]).items()}
        {0.1: [0.364], 10.0: [0.976]}
        """
        found: dict[float, Floats | None] = {}
        at = None if start is None else self._pieces.point(start)
        for C in sorted(set(costs)):
            at = self._descend(C, at) or self._descend(C, None)
            found[C] = None if at is None else self._pieces.weights(at.unknowns)
        return found

    def _descend(self, C: float, start: _Point | None) -> _Point | None:
        """Go from a point, or from 0 if that is lower, to the minimum; None if there is no end."""
        pieces, roots = self._pieces, self._products.roots
        at = _Point(np.zeros(pieces.n_unknowns), np.zeros(roots.size))
        inside, value = roots > 0, C * self._products.square
        if start is not None and (seen := self._look(start, C))[1] < value:
            at, (inside, value) = start, seen
        for _ in range(_MOST_STEPS):
            goal = pieces.minimum(inside, C)
            found = self._search(at, _Point(goal, pieces.margins(goal)), C, value)
            if found is None:
                return None
            at, now, value, whole = found
            if whole and not np.count_nonzero(now != inside):
                return at
            inside = now
        return None

    def _search(
        self, at: _Point, goal: _Point, C: float, value: float
    ) -> tuple[_Point, Mask, float, bool] | None:
        """Shorten a step until it lowers the loss.

        Say where it ends, who is inside the margin there, the loss, and if it was taken whole.
        """
        share, there = 1.0, goal
        for _ in range(_HALVINGS):
            inside, lower = self._look(there, C)
            if lower <= value * (1.0 + 1e-14):
                return there, inside, lower, share == 1.0
            share *= 0.5
            there = _Point(*(a + share * (b - a) for a, b in zip(at, goal, strict=True)))
        return None

    def _look(self, point: _Point, C: float) -> tuple[Mask, float]:
        """Who is inside the margin, and the loss."""
        short = self._products.roots - point.margins
        np.maximum(short, 0.0, out=short)
        return short > 0, 0.5 * self._pieces.square(point) + C * float(short @ short)


class _Point(NamedTuple):
    """The unknowns of the system, and x_i . w of every sample."""

    unknowns: Floats
    margins: Floats


class _Products:
    """Samples, multiplied by signs and roots, and sums of their products when asked for.

    Parameters
    ----------
    rows : ndarray of shape (1 + n_features, n_samples)
        The roots first: as one more feature, they are summed up with the others.
    """

    def __init__(self, rows: Floats) -> None:
        self.rows, self.roots = rows, rows[0]
        self.square = float(self.roots @ self.roots)
        # Of more features than samples, products of samples are formed.
        self._most = 1 + min(rows.shape[0] - 1, rows.shape[1])

    @functools.cached_property
    def samples(self) -> Floats:
        """One sample after the other, as a few of them are taken."""
        return np.ascontiguousarray(self.rows[: self._most].T)

    @functools.cached_property
    def whole(self) -> Floats:
        """X'X of all samples, beside r'r and X'r."""
        rows = self.rows[: self._most]
        return rows @ rows.T


class _Pieces(ABC):
    """Minima of the pieces, in as many unknowns as there are features, or samples."""

    n_unknowns: int

    @abstractmethod
    def __init__(self, products: _Products, n_rows: int) -> None:
        """Take the first rows."""

    @abstractmethod
    def minimum(self, inside: Mask, C: float) -> Floats:
        """Minimise ``|w|^2 / 2 + C sum_i (r_i - x_i . w)^2`` over samples inside."""

    @abstractmethod
    def point(self, weights: Floats) -> _Point | None:
        """The point with these weights, or None if it has no unknowns of its own."""

    @abstractmethod
    def margins(self, unknowns: Floats) -> Floats:
        """``x_i . w`` of every sample."""

    @abstractmethod
    def square(self, point: _Point) -> float:
        """``|w|^2``."""

    @abstractmethod
    def weights(self, unknowns: Floats) -> Floats:
        """``w``."""


class _ByFeatures(_Pieces):
    """The unknowns are w: ``(I / 2C + X'X) w = X'r`` over samples inside."""

    def __init__(self, products: _Products, n_rows: int) -> None:
        self.n_unknowns = n_rows
        self._products = products
        self._rows = products.rows[1 : n_rows + 1]
        self._whole = products.whole[: n_rows + 1, : n_rows + 1]
        self._inside, self._sums = np.ones(products.roots.size, dtype=bool), self._whole

    def minimum(self, inside: Mask, C: float) -> Floats:
        """Solve for w."""
        self._sum_up(inside)
        return _solve(self._sums[1:, 1:].copy(), 0.5 / C, self._sums[0, 1:])

    def _sum_up(self, inside: Mask) -> None:
        """X'X and X'r of samples inside, by as few samples as that takes.

        They are those of all without those outside, those of samples that were inside before with
        what changed, or made anew.
        """
        changed = np.flatnonzero(inside != self._inside)
        if changed.size == 0:
            return
        n_inside = int(np.count_nonzero(inside))
        if inside.size - n_inside <= min(changed.size, n_inside):
            outside = self._take(np.flatnonzero(~inside))
            self._sums = self._whole - outside.T @ outside
        elif changed.size < n_inside:
            some = self._take(changed)
            signs = np.where(inside[changed], 1.0, -1.0)
            self._sums = self._sums + (some.T * signs) @ some
        else:
            some = self._take(np.flatnonzero(inside))
            self._sums = some.T @ some
        self._inside = inside

    def _take(self, some: NDArray[np.intp]) -> Floats:
        return self._products.samples.take(some, axis=0)[:, : self.n_unknowns + 1]

    def point(self, weights: Floats) -> _Point | None:
        """Weights are the unknowns."""
        return _Point(weights, self.margins(weights))

    def margins(self, unknowns: Floats) -> Floats:
        """``X w``."""
        return unknowns @ self._rows

    def square(self, point: _Point) -> float:
        """``|w|^2``."""
        return float(point.unknowns @ point.unknowns)

    def weights(self, unknowns: Floats) -> Floats:
        """Give what is there."""
        return unknowns


class _BySamples(_Pieces):
    """The unknowns are b, ``w = X'b``: ``(I / 2C + X X') b = r`` over samples inside, else 0."""

    def __init__(self, products: _Products, n_rows: int) -> None:
        self._rows, self._roots = products.rows[1 : n_rows + 1], products.roots
        self.n_unknowns = products.roots.size
        self._kernel = self._rows.T @ self._rows

    def minimum(self, inside: Mask, C: float) -> Floats:
        """Solve for b."""
        unknowns = np.zeros(self.n_unknowns)
        unknowns[inside] = _solve(
            self._kernel[np.ix_(inside, inside)], 0.5 / C, self._roots[inside]
        )
        return unknowns

    def point(self, weights: Floats) -> _Point | None:
        """Weights need not be sums of samples."""
        return None

    def margins(self, unknowns: Floats) -> Floats:
        """``X X' b``."""
        return self._kernel @ unknowns

    def square(self, point: _Point) -> float:
        """``b' X X' b``."""
        return float(point.unknowns @ point.margins)

    def weights(self, unknowns: Floats) -> Floats:
        """``X'b``."""
        return self._rows @ unknowns


def _solve(matrix: Floats, ridge: float, target: Floats) -> Floats:
    """Solve ``(matrix + ridge I) x = target`` in place of the matrix, which is symmetric."""
    matrix.reshape(-1)[:: matrix.shape[0] + 1] += ridge
    # Its transpose is itself, in the order that LAPACK works on without a copy.
    _, found, failed = dposv(matrix.T, target, lower=1, overwrite_a=1)
    if failed:
        return np.full(target.size, np.nan)
    return np.asarray(found)
