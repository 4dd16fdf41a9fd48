"""Least absolute deviations with an absolute penalty: a linear program, from inside its borders.

With two classes the residuals and the rows of W that RFS sums up have one number each, and norms
are absolute values. Reweighting creeps towards such a minimum. Newton's method on the conditions
of the primal and the dual program together takes a dozen linear systems, and knows how far it is
(S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2,
1992; J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear programming",
Comput. Optim. Appl. 6, 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Floats = NDArray[np.float64]

# How far towards the border of what is allowed a step goes.
_NEARLY = 0.995
# Corrections that are tried on one factorisation, and by how much both step lengths together have
# to grow for one to be kept.
_CORRECTIONS, _WORTH = 4, 0.05
# Products of a variable and its slack may lie within these factors of their target.
_LOW, _HIGH = 0.1, 10.0
# How near to the minimum it is solved while features are still added.
_ROUGH = 1e-3
# After so many steps without a gain rounding allows no more.
_IDLE = 3
# Of the mean diagonal, so that columns of mean 0, which leave one direction open, do no harm.
_RIDGE = 1e-14


class Deviations(NamedTuple):
    """Where it ended.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
    v : ndarray of shape (n_samples,)
        The dual variables, between -1 and 1.
    pull : ndarray of shape (n_features,)
        ``X_j' v / gamma``: at most 1, and 1 where w is not 0.
    history : list of float
        The objective of the best point after each step.
    gap : float
        The objective is above the minimum by at most this fraction of it.
    """

    w: Floats
    v: Floats
    pull: Floats
    history: list[float]
    gap: float


def least_deviations(
    X: Floats, y: Floats, gamma: float, *, tol: float = 1e-6, max_iter: int = 100
) -> Deviations:
    """Minimise ``sum_i |y_i - x_i . w| + gamma sum_j |w_j|``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Not all 0.
    gamma : float
        Above 0.
    tol : float
        Stop when the objective is known to be within this fraction of the minimum.
    max_iter : int
        Most linear systems.

    Examples
    --------
    The median is what deviates least:

    >>> y = np.array([1.0, 2.0, 3.0, 5.0, 100.0])
    >>> least_deviations(np.ones((5, 1)), y, 1e-3).w.round(3)
    array([3.])
    """
    found = _among_few(X, y, gamma, tol, max_iter)
    return _among_all(X, y, gamma, tol, max_iter) if found is None else found


def _among_few(X: Floats, y: Floats, gamma: float, tol: float, max_iter: int) -> Deviations | None:
    """Solve for the features that pull most; add those that pull too much, while these are few.

    A feature that is left out is as it should be if it pulls by less than 1. None if more than
    half of the features, or half as many as there are samples, are needed.
    """
    few = min(X.shape) // 2
    pull = np.abs(X.T @ np.sign(y))
    used = np.zeros(pull.size, dtype=bool)
    used[np.argsort(-pull, kind="stable")[: few // 2]] = True
    history: list[float] = []
    rough = max(tol, _ROUGH)
    while used.any() and used.sum() <= few and len(history) < max_iter:
        part = _among_all(X[:, used], y, gamma, rough, max_iter - len(history))
        history = np.minimum.accumulate([*history, *part.history]).tolist()
        pull = X.T @ part.v / gamma
        largest = max(1.0, float(np.abs(pull).max()))
        gap = 1 - (1 - part.gap) / largest  # v must be shortened to be allowed
        too_much = ~used & (np.abs(pull) > 1)
        if rough <= tol and (gap <= tol or not too_much.any()):
            w = np.zeros(used.size)
            w[used] = part.w
            return Deviations(w, part.v / largest, pull / largest, history, gap)
        if not too_much.any():
            rough = tol
        used |= too_much
    return None


def _among_all(X: Floats, y: Floats, gamma: float, tol: float, max_iter: int) -> Deviations:
    """Solve for all features at once."""
    posed = _Posed(X, y, gamma)
    at = posed.start()
    here = best = posed.look(at)
    history: list[float] = []
    idle = 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        while len(history) < max_iter and best.gap > tol and idle < _IDLE:
            try:
                at = _step(posed, at, here.missing)
            except LinAlgError:  # as near as rounding allows
                break
            here = posed.look(at)
            idle += 1
            if here.gap < best.gap:
                best, idle = here, 0
            history.append(best.objective)
    return Deviations(best.w, best.v, best.pull, history or [best.objective], best.gap)


class _Point(NamedTuple):
    """Residuals and w as differences of positive parts, and what the dual leaves of their cost.

    ``u = above - below`` are residuals, then w; ``room_above = c - A'v`` and ``room_below = c +
    A'v`` with ``A = [I X]`` and c the cost of each.
    """

    above: Floats
    below: Floats
    room_above: Floats
    room_below: Floats
    v: Floats

    @property
    def products(self) -> tuple[Floats, Floats]:
        """What has to become 0."""
        return self.above * self.room_above, self.below * self.room_below

    @property
    def mean_product(self) -> float:
        total = self.above @ self.room_above + self.below @ self.room_below
        return float(total) / (2 * self.above.size)

    def moved(self, way: _Way, primal: float, dual: float) -> _Point:
        return _Point(
            self.above + primal * way.above,
            self.below + primal * way.below,
            self.room_above - dual * way.room,
            self.room_below + dual * way.room,
            self.v + dual * way.room[: self.v.size],
        )

    def lengths(self, way: _Way) -> tuple[float, float]:
        """How far primal and dual variables may go, at most 1, before one becomes negative."""
        primal = min((way.above / self.above).min(), (way.below / self.below).min())
        dual = min((-way.room / self.room_above).min(), (way.room / self.room_below).min())
        return 1 / max(1.0, -primal), 1 / max(1.0, -dual)


class _Way(NamedTuple):
    """A direction: of both parts, and of ``A'v``."""

    above: Floats
    below: Floats
    room: Floats

    def plus(self, other: _Way) -> _Way:
        return _Way(*(a + b for a, b in zip(self, other, strict=True)))


class _Here(NamedTuple):
    """What a point is worth."""

    w: Floats
    pull: Floats
    objective: float
    gap: float
    missing: Floats  # of the residuals
    v: Floats


@dataclass(frozen=True)
class _Posed:
    """The problem."""

    X: Floats
    y: Floats
    gamma: float

    def start(self) -> _Point:
        """Begin at w = 0 and v = 0, away from all borders."""
        n_samples, n_features = self.X.shape
        size = float(np.abs(self.y).mean())
        u = np.concatenate([self.y, np.zeros(n_features)])
        away = np.concatenate(
            [np.full(n_samples, size), np.full(n_features, size / max(self.gamma, 1.0))]
        )
        cost = np.concatenate([np.ones(n_samples), np.full(n_features, self.gamma)])
        parts = np.maximum(u, 0) + away, np.maximum(-u, 0) + away
        return _Point(*parts, cost, cost.copy(), np.zeros(n_samples))

    def look(self, at: _Point) -> _Here:
        """The objective, and how far it can be from the minimum by duality."""
        u = at.above - at.below
        residuals, w = u[: self.y.size], u[self.y.size :]
        true = self.y - self.X @ w
        objective = float(np.abs(true).sum() + self.gamma * np.abs(w).sum())
        pull = self.X.T @ at.v / self.gamma
        largest = max(1.0, float(np.abs(at.v).max()), float(np.abs(pull).max()))
        bound = float(self.y @ at.v) / largest
        gap = (objective - bound) / max(objective, np.finfo(float).tiny)
        return _Here(w, pull / largest, objective, gap, true - residuals, at.v / largest)


def _step(posed: _Posed, at: _Point, missing: Floats) -> _Point:
    """One factorisation: predict, correct, and go as far as one may."""
    solve = _factorise(posed.X, at)
    mean, products = at.mean_product, at.products
    way = solve(-products[0], -products[1], missing)
    ahead = at.moved(way, *at.lengths(way))
    target = mean * (ahead.mean_product / mean) ** 3
    second = way.above * way.room, way.below * way.room
    way = solve(target - products[0] + second[0], target - products[1] - second[1], missing)
    lengths = at.lengths(way)
    for _ in range(_CORRECTIONS):
        primal, dual = (min(1.0, 1.5 * length + 0.1) for length in lengths)
        above, below = at.moved(way, primal, dual).products
        pushes = _correction(above, target), _correction(below, target)
        other = way.plus(solve(*pushes, np.zeros_like(missing)))
        longer = at.lengths(other)
        if sum(longer) < sum(lengths) + _WORTH:
            break
        way, lengths = other, longer
    return at.moved(way, *(one if one == 1.0 else _NEARLY * one for one in lengths))


def _correction(products: Floats, target: float) -> Floats:
    """What brings products that are out of bounds back to them."""
    wanted = np.clip(products, _LOW * target, _HIGH * target) - products
    return np.maximum(wanted, -_HIGH * target)


def _factorise(X: Floats, at: _Point) -> Callable[[Floats, Floats, Floats], _Way]:
    """Give the solver of Newton's system: changes of products, and of ``A u``, to a direction.

    The system is in samples or in features, whichever are fewer.
    """
    n_samples, n_features = X.shape
    weights = at.above / at.room_above + at.below / at.room_below
    by_sample, by_feature = weights[:n_samples], weights[n_samples:]
    in_samples = n_samples <= n_features
    if in_samples:
        scaled = X * np.sqrt(by_feature)
        system = scaled @ scaled.T
        system.flat[:: n_samples + 1] += by_sample + _RIDGE * np.trace(system) / n_samples
    else:
        scaled = X / np.sqrt(by_sample)[:, None]
        system = scaled.T @ scaled
        system.flat[:: n_features + 1] += 1 / by_feature
    factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)

    def solve(above: Floats, below: Floats, missing: Floats) -> _Way:
        fixed = above / at.room_above - below / at.room_below
        rest, own = missing - fixed[:n_samples], fixed[n_samples:]
        if in_samples:
            dv = cho_solve(factor, rest - X @ own, check_finite=False)
            room = np.concatenate([dv, X.T @ dv])
        else:
            dw = cho_solve(factor, own / by_feature + X.T @ (rest / by_sample), check_finite=False)
            room = (np.concatenate([missing - X @ dw, dw]) - fixed) / weights
        return _Way(
            (above + at.above * room) / at.room_above,
            (below - at.below * room) / at.room_below,
            room,
        )

    return solve
