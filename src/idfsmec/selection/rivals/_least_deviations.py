"""Least absolute deviations with an absolute penalty: a linear program, solved where it is small.

With two classes the residuals and the rows of W that RFS sums up have one number each, and norms
are absolute values. Reweighting creeps towards such a minimum. Here one comes near it from inside
the borders (:mod:`._interior`), among few features where few are needed, and goes on along the
borders to the corner that it is (:mod:`._corner`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection.rivals._corner import find_corner
from idfsmec.selection.rivals._exact_fit import exact_fits
from idfsmec.selection.rivals._interior import Approach, Posed, approach

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]

# How near to the minimum it is solved to find the features that are needed, how often, and which
# count as such: those that pull by so much.
_ROUGH, _TIMES, _NEARLY = 3e-3, 2, 0.85
# Where half of the features pull by this much at first, not few of them are needed.
_HOPELESS = 10
# How near the corner is found from.
_NEAR = 1e-4
# Features that pull by less are not looked at on the way to the corner.
_POOL = 0.7


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
    for way in (_without_weights, _among_few, _without_residuals):
        found = way(X, y, gamma, tol, max_iter)
        if found is not None:
            return found
    return _among_all(X, y, gamma, tol, max_iter)


def _without_weights(
    X: Floats, y: Floats, gamma: float, tol: float, max_iter: int
) -> Deviations | None:
    """All w are 0 if no feature pulls enough there; None if one does."""
    v = np.sign(y)
    if np.abs(X.T @ v).max() > gamma:
        return None
    return _weigh(X, y, gamma, np.zeros(X.shape[1]), v, [np.inf])[0]


def _among_few(X: Floats, y: Floats, gamma: float, tol: float, max_iter: int) -> Deviations | None:
    """Solve for the features that pull most; add those that pull too much, while these are few.

    A feature that is left out is as it should be if it pulls by less than 1. None if more than
    half of the features, or half as many as there are samples, are needed.
    """
    few = min(X.shape) // 2
    pull = np.abs(X.T @ np.sign(y))
    if few < 2 or np.median(pull) > _HOPELESS * gamma:
        return None
    used = np.zeros(pull.size, dtype=bool)
    used[np.argsort(-pull, kind="stable")[: few // 2]] = True
    history: list[float] = []
    for _ in range(_TIMES):
        rough = approach(X[:, used], y, gamma, max(tol, _ROUGH), max_iter - len(history))
        history = np.minimum.accumulate([*history, *rough.history]).tolist()
        used = np.abs(X.T @ rough.best.v) > _NEARLY * gamma
        if not 0 < used.sum() <= few or len(history) >= max_iter:
            return None
    while used.sum() <= few and len(history) < max_iter:
        part, largest = _among_some(X, y, gamma, tol, max_iter - len(history), used)
        history = np.minimum.accumulate([*history, *part.history]).tolist()
        missing = ~used & (np.abs(part.pull) * largest > 1)
        if part.gap <= tol or not missing.any():
            return part._replace(history=history)
        used |= missing
    return None


def _without_residuals(
    X: Floats, y: Floats, gamma: float, tol: float, max_iter: int
) -> Deviations | None:
    """Solve among the w that leave no residuals; None if others are better.

    Part of w follows from the rest, and what both sum up to is least where deviations are, in the
    features of the rest alone. The dual variables tell if residuals would have been worth having.
    """
    fits = exact_fits(X, y)
    if fits is None:
        return None
    part = _among_all(fits.T, fits.b, 1.0, tol, max_iter)
    w, v = fits.whole(part.w), fits.dual(gamma * part.v)
    found, _ = _weigh(X, y, gamma, w, v, [gamma * one for one in part.history])
    return found if found.gap <= max(tol, 2 * part.gap) else None


def _among_all(X: Floats, y: Floats, gamma: float, tol: float, max_iter: int) -> Deviations:
    """Solve for all features at once."""
    return _among_some(X, y, gamma, tol, max_iter, np.ones(X.shape[1], dtype=bool))[0]


def _among_some(
    X: Floats, y: Floats, gamma: float, tol: float, max_iter: int, used: Mask
) -> tuple[Deviations, float]:
    """Solve for some features, or for all that the corner needs; and the largest pull of any."""
    some = X if used.all() else X[:, used]
    near = approach(some, y, gamma, max(tol, _NEAR), max_iter)
    history = near.history
    if tol < near.best.gap <= _NEAR and len(history) < max_iter:
        corner = _corner(X, y, gamma, used, near, Posed(some, y, gamma).likely(near.at))
        if corner is not None:
            found, largest = _weigh(X, y, gamma, *corner, history)
            if found.gap <= tol:
                return found, largest
        near = approach(some, y, gamma, tol, max_iter - len(history), near.at)
        history = [*history, *near.history]
    w = np.zeros(used.size)
    w[used] = near.best.w
    return _weigh(X, y, gamma, w, near.best.v, history)


def _corner(
    X: Floats, y: Floats, gamma: float, used: Mask, near: Approach, likely: Floats
) -> tuple[Floats, Floats] | None:
    """Give w and v of the corner, found among the features that pull by about enough."""
    pull = np.abs(X.T @ near.best.v) / gamma
    if (pull[~used] > 1).any():  # the corner of these features is far from that of all
        return None
    pool = used | (pull > _POOL)
    some = X if pool.all() else X[:, pool]
    corner = find_corner(some, y, gamma, likely, np.flatnonzero(used[pool]))
    if corner is None:
        return None
    w = np.zeros(used.size)
    w[pool] = corner.w
    return w, corner.v


def _weigh(
    X: Floats, y: Floats, gamma: float, w: Floats, v: Floats, history: list[float]
) -> tuple[Deviations, float]:
    """What a point is worth among all features, and the largest pull."""
    objective = float(np.abs(y - X @ w).sum() + gamma * np.abs(w).sum())
    pull = X.T @ v / gamma
    largest = max(1.0, float(np.abs(v).max()), float(np.abs(pull).max()))
    gap = (objective - float(y @ v) / largest) / max(objective, np.finfo(float).tiny)
    history = np.minimum.accumulate([*history[:-1], min(objective, history[-1])]).tolist()
    return Deviations(w, v / largest, pull / largest, history, gap), largest
