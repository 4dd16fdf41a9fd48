"""From near the minimum of absolute deviations to the corner that is the minimum, exactly.

At a corner as many features have a weight as samples have no residual: these samples are met
exactly. Where another feature, or a sample that is let go, lowers the objective, one goes along
that edge, past all kinks that still lower it, to the corner where that ends (I. Barrodale and
F. Roberts, "An improved algorithm for discrete l1 linear approximation", SIAM Journal on Numerical
Analysis 10, 1973). From near the minimum it is a dozen such moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dgecon, dgetrf, dgetri, dgetrs

Floats = NDArray[np.floating]
Codes = NDArray[np.intp]

# Most moves: more take longer than the systems that they are to save.
_MOVES = 100
# By how much, relative to its cost, one may gain where nothing is to be gained but rounding.
_NOTHING = 1e-9
# Pivots below this are rounding.
_PIVOT = 1e-11
# What tells a minimum from one of many: no border is nearer, relative to the largest.
_CLEAR = 1e-9
# Samples that may be met, for each feature, and besides.
_CANDIDATES, _BESIDES = 1.25, 16


class Corner(NamedTuple):
    """The only minimum.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
    v : ndarray of shape (n_samples,)
        The dual variables.
    """

    w: Floats
    v: Floats


def find_corner(
    X: Floats, y: Floats, gamma: float, weights: Floats, used: Codes | None = None
) -> Corner | None:
    """Go from near the minimum of ``sum_i |y_i - x_i . w| + gamma sum_j |w_j|`` to it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    gamma : float
    weights : ndarray of shape (n_samples + n_used,)
        The larger, the less likely a sample, or feature, has residual, or w, 0; of samples and
        features in the same measure.
    used : ndarray of shape (n_used,), optional
        Features that were looked at so far; by default all.

    Returns
    -------
    Corner or None
        None if it is not reached soon, or if there may be other minima.

    Examples
    --------
    >>> X, y = np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 5.0, 100.0])
    >>> near = np.array([2.0, 1.0, 0.1, 2.0, 97.0, 1e9])
    >>> find_corner(X, y, 0.1, near).w
    array([3.])
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        walk = _begin(X, y, gamma, weights, np.arange(X.shape[1]) if used is None else used)
        if walk is None:
            return None
        for _ in range(_MOVES):
            edge = walk.best_edge()
            if edge is None:
                return _exactly(X, y, gamma, walk)
            if not walk.follow(edge):
                return None
    return None


def _begin(X: Floats, y: Floats, gamma: float, weights: Floats, used: Codes) -> _Walk | None:
    """Take the features that most likely have a weight, and samples to determine it."""
    n_samples = y.size
    by_sample = weights[:n_samples]
    likely = np.argsort(-weights, kind="stable")[:n_samples]
    features = used[np.sort(likely[likely >= n_samples]) - n_samples]
    count = min(n_samples, int(_CANDIDATES * features.size) + _BESIDES)
    candidates = np.argsort(by_sample, kind="stable")[:count]
    if not 0 < features.size <= candidates.size:
        return None
    scale = 1 / np.sqrt(by_sample[candidates])
    matrix = X.T[features[:, None], candidates]  # transposed it is in Fortran's order
    matrix *= scale
    factor, swaps, failed = dgetrf(matrix.T, overwrite_a=1)
    if failed:
        return None
    order = order_after(swaps, count)[: features.size]
    unmoved = np.arange(features.size, dtype=swaps.dtype)
    inverse, failed = dgetri(np.asfortranarray(factor[: features.size]), unmoved, overwrite_lu=1)
    if failed:
        return None
    return _Walk.at(X, y, gamma, features, candidates[order], inverse * scale[order])


def order_after(swaps: NDArray[np.integer], count: int) -> Codes:
    """Where rows come from after LAPACK has swapped them.

    Examples
    --------
    >>> order_after(np.array([2, 2]), 3)
    array([2, 0, 1])
    """
    order = list(range(count))  # faster than an array, one by one
    for place, other in enumerate(swaps.tolist()):
        order[place], order[other] = order[other], order[place]
    return np.array(order)


class _Edge(NamedTuple):
    """Where to go: a feature gets a weight, or a sample (by its place) a residual, of a sign."""

    feature: int | None
    place: int
    sign: float
    gain: float  # per unit


@dataclass
class _Walk:
    """A corner: features with a weight, samples without residual, and what follows from them."""

    X: Floats
    gamma: float
    features: Codes
    samples: Codes
    inverse: Floats  # of X[samples, features]
    w: Floats
    residuals: Floats
    side: Floats  # signs of the residuals, 0 for the samples that are met
    total: Floats  # X' side

    @classmethod
    def at(
        cls, X: Floats, y: Floats, gamma: float, features: Codes, samples: Codes, inverse: Floats
    ) -> _Walk:
        w = np.zeros(X.shape[1])
        w[features] = inverse @ y[samples]
        residuals = y - X @ w
        side = np.where(residuals >= 0, 1.0, -1.0)
        residuals[samples] = side[samples] = 0.0
        return cls(X, gamma, features, samples, inverse, w, residuals, side, X.T @ side)

    def best_edge(self) -> _Edge | None:
        """The edge along which most is gained, features by their cost; None at the minimum."""
        held = (self.gamma * _signs(self.w[self.features]) - self.total[self.features]) @ (
            self.inverse
        )
        v = self.side.copy()
        v[self.samples] = held
        pull = self.X.T @ v
        pull[self.features] = 0.0
        feature, place = int(np.abs(pull).argmax()), int(np.abs(held).argmax())
        by_feature = abs(pull[feature]) / self.gamma - 1
        by_sample = abs(held[place]) - 1
        if not max(by_feature, by_sample) > _NOTHING:
            return None
        if by_sample >= by_feature:
            return _Edge(None, place, float(np.sign(held[place])), float(by_sample))
        return _Edge(feature, -1, float(np.sign(pull[feature])), float(by_feature * self.gamma))

    def follow(self, edge: _Edge) -> bool:
        """Go along an edge to the next corner that is worth it; whether that could be done."""
        X, features, samples = self.X, self.features, self.samples
        if edge.feature is None:
            entering = self.inverse[:, edge.place]
        else:
            entering = self.inverse @ X[samples, edge.feature]
        way = np.zeros_like(self.w)
        way[features] = -edge.sign * entering
        if edge.feature is not None:
            way[edge.feature] = edge.sign
        change = -(X @ way)
        change[samples] = 0.0
        stop = self._stop(way[features], change, edge.gain)
        if stop is None:
            return False
        step, passed, sample, leaving = stop
        self.w += step * way
        self.residuals += step * change
        self._set_side(passed, -self.side[passed])
        if edge.feature is None:
            self.residuals[samples[edge.place]] = step * edge.sign
            self._set_side(samples[[edge.place]], np.array([edge.sign]))
        if sample is not None:
            self.residuals[sample] = 0.0
            self._set_side(np.array([sample]), np.zeros(1))
        else:
            self.w[features[leaving]] = 0.0
        return self._exchange(edge, entering, sample, leaving)

    def _stop(
        self, way: Floats, change: Floats, gain: float
    ) -> tuple[float, Codes, int | None, int] | None:
        """Find the kink from which on nothing is gained: how far, past whom, and whose it is."""
        w = self.w[self.features]
        rows = np.flatnonzero(change * self.side < 0)
        columns = np.flatnonzero(way * w < 0)
        far = np.concatenate([-self.residuals[rows] / change[rows], -w[columns] / way[columns]])
        cost = 2 * np.abs(np.concatenate([change[rows], self.gamma * way[columns]]))
        order = np.argsort(far, kind="stable")
        last = int(np.searchsorted(np.cumsum(cost[order]), gain))
        if last >= order.size:
            return None
        passed, at = order[:last], int(order[last])
        sample = int(rows[at]) if at < rows.size else None
        leaving = -1 if sample is not None else int(columns[at - rows.size])
        return float(far[at]), rows[passed[passed < rows.size]], sample, leaving

    def _set_side(self, samples: Codes, side: Floats) -> None:
        if samples.size:
            self.total += (side - self.side[samples]) @ self.X[samples]
            self.side[samples] = side

    def _exchange(self, edge: _Edge, entering: Floats, sample: int | None, leaving: int) -> bool:
        """Update the inverse: a feature or a sample comes, a feature or a sample goes."""
        if sample is None:
            if edge.feature is None:
                return self._shrink(edge.place, leaving)
            return self._swap_features(edge.feature, entering, leaving)
        row = self.X[sample, self.features] @ self.inverse
        if edge.feature is None:
            return self._swap_samples(sample, row, edge.place)
        return self._grow(edge.feature, entering, sample, row)

    def _swap_features(self, feature: int, entering: Floats, leaving: int) -> bool:
        pivot = entering[leaving]
        if not abs(pivot) > _PIVOT:
            return False
        rest = entering.copy()
        rest[leaving] -= 1
        self.inverse = _add_product(self.inverse, -1 / pivot, rest, self.inverse[leaving])
        self.features[leaving] = feature
        return True

    def _swap_samples(self, sample: int, row: Floats, place: int) -> bool:
        pivot = row[place]
        if not abs(pivot) > _PIVOT:
            return False
        row[place] -= 1
        self.inverse = _add_product(self.inverse, -1 / pivot, self.inverse[:, place], row)
        self.samples[place] = sample
        return True

    def _grow(self, feature: int, entering: Floats, sample: int, row: Floats) -> bool:
        pivot = self.X[sample, feature] - row @ self.X[self.samples, feature]
        if not abs(pivot) > _PIVOT:
            return False
        column, row = np.append(entering, -1.0), np.append(row, -1.0)
        grown = np.zeros((row.size, row.size), order="F")
        grown[:-1, :-1] = self.inverse
        self.inverse = _add_product(grown, 1 / pivot, column, row)
        self.features = np.append(self.features, feature)
        self.samples = np.append(self.samples, sample)
        return True

    def _shrink(self, place: int, leaving: int) -> bool:
        pivot = self.inverse[leaving, place]
        if not abs(pivot) > _PIVOT or self.features.size == 1:
            return False
        row, column = self.inverse[leaving], self.inverse[:, place]
        less = _add_product(self.inverse, -1 / pivot, column, row)
        self.inverse = np.delete(np.delete(less, leaving, axis=0), place, axis=1)
        self.features = np.delete(self.features, leaving)
        self.samples = np.delete(self.samples, place)
        return True


def _add_product(matrix: Floats, factor: float, column: Floats, row: Floats) -> Floats:
    """``matrix + factor * column row'``, in the matrix's memory if it is in Fortran's order."""
    return dger(factor, column.copy(), row.copy(), a=matrix, overwrite_a=1)


def _signs(values: Floats) -> Floats:
    return np.where(values >= 0, 1.0, -1.0)


def _exactly(X: Floats, y: Floats, gamma: float, walk: _Walk) -> Corner | None:
    """Solve for w and v afresh; None if another corner, or another v, may be as good."""
    features, samples, side = walk.features, walk.samples, walk.side
    matrix = X.T[features[:, None], samples].T
    size = float(np.abs(matrix).sum(axis=0).max())
    factor, swaps, failed = dgetrf(matrix, overwrite_a=1)
    if failed or dgecon(factor, size)[0] < _PIVOT:
        return None
    w, v = np.zeros(X.shape[1]), side.copy()
    w[features] = dgetrs(factor, swaps, y[samples])[0]
    held = gamma * _signs(w[features]) - (X.T @ side)[features]
    v[samples] = dgetrs(factor, swaps, held, trans=1)[0]
    residuals = y - X @ w
    away = np.abs(residuals[side != 0])
    pull = np.abs(X.T @ v) / gamma
    pull[features] = 0.0
    clear = (
        np.abs(v[samples]).max() < 1 - _CLEAR
        and pull.max() < 1 - _CLEAR
        and np.abs(w[features]).min() > _CLEAR * np.abs(w).max()
        and (not away.size or away.min() > _CLEAR * away.max())
        and bool((residuals * side >= 0).all())
    )
    return Corner(w, v) if clear else None
