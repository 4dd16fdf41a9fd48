"""Least absolute deviations from inside the borders of a linear program, to any nearness.

Newton's method on the conditions of the primal and the dual program together takes a dozen linear
systems, and knows how far it is (S. Mehrotra, "On the implementation of a primal-dual interior
point method", SIAM J. Optim. 2, 1992; J. Gondzio, "Multiple centrality corrections in a
primal-dual method for linear programming", Comput. Optim. Appl. 6, 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

Floats = NDArray[np.floating]

# How far towards the border of what is allowed a step goes.
_NEARLY = 0.995
# Corrections that are tried on one factorisation, and by how much both step lengths together have
# to grow for one to be kept.
_CORRECTIONS, _WORTH = 4, 0.05
# Products of a variable and its slack may lie within these factors of their target.
_LOW, _HIGH = 0.1, 10.0
# After so many steps without a gain rounding allows no more.
_IDLE = 3
# What ends farther away than this began at a bad place, and begins anew.
_STUCK = 1e-6
# Of the mean diagonal, in units of rounding, so that columns of mean 0, which leave one direction
# open, do no harm.
_RIDGE = 45
# Farther from the minimum than this, single precision serves as well, in half the time ...
_SINGLE = 3e-3
# ... unless a step gains less than this, or squares of what is in it would be out of range.
_GAIN, _LARGE = 0.8, 1e12


class Here(NamedTuple):
    """What a point is worth.

    Attributes
    ----------
    w, pull, v : ndarray
        As in :class:`~idfsmec.selection.rivals._least_deviations.Deviations`.
    objective, gap : float
    missing : ndarray of shape (n_samples,)
        What residuals lack of those of w.
    """

    w: Floats
    pull: Floats
    objective: float
    gap: float
    missing: Floats
    v: Floats


class Approach(NamedTuple):
    """How near a walk came: its last point, its best, and the best objective after each step."""

    at: Point
    best: Here
    history: list[float]


def approach(
    X: Floats, y: Floats, gamma: float, tol: float, max_iter: int, at: Point | None = None
) -> Approach:
    """Walk towards the minimum of ``sum_i |y_i - x_i . w| + gamma sum_j |w_j|``.

    Parameters
    ----------
    X, y, gamma, tol, max_iter
        As in :func:`~idfsmec.selection.rivals._least_deviations.least_deviations`.
    at : Point, optional
        Where to begin; all is in double precision from there on.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0, 5.0, 100.0])
    >>> found = approach(np.ones((5, 1)), y, 1e-3, 1e-4, 100)
    >>> found.best.gap <= 1e-4, len(found.history) < 10
    (True, True)
    """
    posed = Posed(X, y, float(gamma))
    history: list[float] = []
    if at is None:
        at, history = _approach_in_single(posed, max(tol, _SINGLE), max_iter)
    found = _walk(posed, at or posed.start(), tol, max_iter, history)
    if at is not None and found.best.gap > max(tol, _STUCK) and len(found.history) < max_iter:
        again = _walk(posed, posed.start(), tol, max_iter, found.history)
        found = min(again, found._replace(history=again.history), key=lambda one: one.best.gap)
    return found


def _walk(posed: Posed, at: Point, tol: float, max_iter: int, history: list[float]) -> Approach:
    here = best = posed.look(at)
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
            history.append(min([best.objective, *history[-1:]]))
    return Approach(at, best, history or [best.objective])


def _approach_in_single(
    posed: Posed, tol: float, max_iter: int
) -> tuple[Point | None, list[float]]:
    """Walk in single precision while that gains; give the last good point in double precision."""
    sizes = (max(float(one.max()), -float(one.min())) for one in (posed.X, posed.y))
    if not all(1 / _LARGE < one < _LARGE for one in (posed.gamma, *sizes)):
        return None, []
    single = Posed(posed.X.astype(np.float32), posed.y.astype(np.float32), posed.gamma)
    at = single.start()
    here = single.look(at)
    history: list[float] = []
    with np.errstate(all="ignore"):
        while len(history) < max_iter and here.gap > tol:
            try:
                following = _step(single, at, here.missing)
            except LinAlgError:
                break
            ahead = single.look(following)
            if not ahead.gap < _GAIN * here.gap and history:
                break
            at, here = following, ahead
            history.append(ahead.objective)
    return posed.take_over(at), np.minimum.accumulate(history).tolist()


class Point(NamedTuple):
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
    def weights(self) -> Floats:
        """How far each of u may go for its cost: much if it is not 0 in the end, else little."""
        return self.above / self.room_above + self.below / self.room_below

    @property
    def products(self) -> tuple[Floats, Floats]:
        """What has to become 0."""
        return self.above * self.room_above, self.below * self.room_below

    @property
    def mean_product(self) -> float:
        total = self.above @ self.room_above + self.below @ self.room_below
        return float(total) / (2 * self.above.size)

    def moved(self, way: _Way, primal: float, dual: float) -> Point:
        return Point(
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
        return 1 / max(1.0, -float(primal)), 1 / max(1.0, -float(dual))


class _Way(NamedTuple):
    """A direction: of both parts, and of ``A'v``."""

    above: Floats
    below: Floats
    room: Floats

    def plus(self, other: _Way) -> _Way:
        return _Way(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Posed:
    """The problem."""

    X: Floats
    y: Floats
    gamma: float

    @property
    def cost(self) -> Floats:
        """What a unit of each residual, then of each w, costs."""
        n_samples, n_features = self.X.shape
        cost = np.ones(n_samples + n_features, dtype=self.X.dtype)
        cost[n_samples:] = self.gamma
        return cost

    def likely(self, at: Point) -> Floats:
        """How likely each residual and each w is not 0, all in one measure."""
        n_samples = self.y.size
        usual = [float(one.mean()) for one in np.split(np.abs(at.above - at.below), [n_samples])]
        with np.errstate(over="ignore", divide="ignore"):
            measure = at.weights * self.cost
            measure[n_samples:] *= usual[0] / max(usual[1], np.finfo(float).tiny)
        return measure

    def start(self) -> Point:
        """Begin at w = 0 and v = 0, away from all borders."""
        n_samples, n_features = self.X.shape
        size = float(np.abs(self.y).mean())
        u = np.concatenate([self.y, np.zeros(n_features, dtype=self.X.dtype)])
        away = np.full_like(u, size)
        away[n_samples:] /= max(self.gamma, 1.0)
        parts = np.maximum(u, 0) + away, np.maximum(-u, 0) + away
        return Point(*parts, self.cost, self.cost, np.zeros_like(self.y))

    def take_over(self, at: Point) -> Point:
        """The same point in the precision of X; rooms are what v leaves, and stay above 0."""
        above, below, _, _, v = (part.astype(self.X.dtype) for part in at)
        cost, used = self.cost, np.concatenate([v, self.X.T @ v])
        least = min(float(part.min()) for part in (at.room_above / cost, at.room_below / cost))
        shorter = max(1.0, float((np.abs(used) / cost).max()) / (1 - 0.5 * least))
        v, used = v / shorter, used / shorter
        return Point(above, below, cost - used, cost + used, v)

    def look(self, at: Point) -> Here:
        """The objective, and how far it can be from the minimum by duality."""
        u = at.above - at.below
        residuals, w = u[: self.y.size], u[self.y.size :]
        true = self.y - self.X @ w
        objective = float(np.abs(true).sum() + self.gamma * np.abs(w).sum())
        pull = self.X.T @ at.v / self.gamma
        largest = max(1.0, float(np.abs(at.v).max()), float(np.abs(pull).max()))
        bound = float(self.y @ at.v) / largest
        gap = (objective - bound) / max(objective, np.finfo(float).tiny)
        return Here(w, pull / largest, objective, gap, true - residuals, at.v / largest)


def _step(posed: Posed, at: Point, missing: Floats) -> Point:
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


def _factorise(X: Floats, at: Point) -> Callable[[Floats, Floats, Floats], _Way]:
    """Give the solver of Newton's system: changes of products, and of ``A u``, to a direction.

    The system is in samples or in features, whichever are fewer.
    """
    n_samples, n_features = X.shape
    weights = at.weights
    by_sample, by_feature = weights[:n_samples], weights[n_samples:]
    in_samples = n_samples <= n_features
    (times_itself,) = get_blas_funcs(("syrk",), (X,))
    if in_samples:
        system = times_itself(1.0, (X * np.sqrt(by_feature)).T, trans=1, lower=1)
        ridge = _RIDGE * np.finfo(X.dtype).eps * np.trace(system) / n_samples
        system.T.flat[:: n_samples + 1] += by_sample + ridge
    else:
        system = times_itself(1.0, (X / np.sqrt(by_sample)[:, None]).T, lower=1)
        system.T.flat[:: n_features + 1] += 1 / by_feature
    solve_system = _cholesky(system)

    def solve(above: Floats, below: Floats, missing: Floats) -> _Way:
        fixed = above / at.room_above - below / at.room_below
        rest, own = missing - fixed[:n_samples], fixed[n_samples:]
        if in_samples:
            dv = solve_system(rest - X @ own)
            room = np.concatenate([dv, X.T @ dv])
        else:
            dw = solve_system(own / by_feature + X.T @ (rest / by_sample))
            room = (np.concatenate([missing - X @ dw, dw]) - fixed) / weights
        return _Way(
            (above + at.above * room) / at.room_above,
            (below - at.below * room) / at.room_below,
            room,
        )

    return solve


def _cholesky(system: Floats) -> Callable[[Floats], Floats]:
    """Factorise the lower half of a matrix in Fortran's order, in place; give its solver."""
    factorise, solve = get_lapack_funcs(("potrf", "potrs"), (system,))
    factor, failed = factorise(system, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise LinAlgError("not positive definite")
    return lambda right: solve(factor, right, lower=1)[0]
