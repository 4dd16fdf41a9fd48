"""Least squares with exactly k features: starts that exchange one feature at a time, together.

With rows V at the features S of a start, row j at feature i has the squared error, up to a
constant and a factor of 2, of ``V_j . R_i - |V_j|^2 A[S_j, i]`` with ``R = A[:, S] V - B``, where
all features have one norm: what the fit leaves of the correlations is all that one row has to know
of the others. It is brought up to date when a row moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_RIDGE, _TINY = 1e-7, np.finfo(float).tiny
_MIN_ITER = 5
_CALM_ITER = 3
# Starts that are swept together have so many numbers, which a cache holds.
_NUMBERS = 60_000


class Moments(NamedTuple):
    """Products of standardised data.

    Attributes
    ----------
    A : ndarray of shape (n_features, n_features)
        X'X.
    B : ndarray of shape (n_features, n_classes - 1)
        X'Y in an orthonormal basis of what columns of Y that sum to 0 span.
    basis : ndarray of shape (n_classes - 1, n_classes)
    y2 : float
        The squared norm of Y.
    """

    A: Floats
    B: Floats
    basis: Floats
    y2: float

    @classmethod
    def of(cls, A: Floats, B: Floats, y2: float) -> Self:
        """From X'X, X'Y and the squared norm of Y.

        Examples
        --------
        >>> moments = Moments.of(4 * np.eye(2), np.array([[-1.0, 1.0], [2.0, -2.0]]), 4.0)
        >>> (moments.B @ moments.basis).round(12)
        array([[-1.,  1.],
               [ 2., -2.]])
        """
        n_classes = B.shape[1]
        # Column c: c times 1, then -c, so that each is orthogonal to 1 and to all before.
        steps = np.tril(np.ones((n_classes - 1, n_classes)))
        steps[np.arange(n_classes - 1), np.arange(1, n_classes)] = -np.arange(1, n_classes)
        basis = steps / np.linalg.norm(steps, axis=1, keepdims=True)
        return cls(A, B @ basis.T, basis, y2)

    def refit(self, support: Codes) -> Fit:
        """Least squares on the support."""
        of_support = self.A.take(support, axis=0)
        gram = of_support.take(support, axis=1)
        gram.flat[:: support.size + 1] += _RIDGE
        target = self.B[support]
        _, rows, failed = dposv(gram.T, target, overwrite_a=1)
        if failed:
            raise LinAlgError(f"products of features are not positive definite (column {failed})")
        left = rows.T @ of_support
        left -= self.B.T
        # With (gram + ridge) V = target, V' gram V is V' target less the ridge's share.
        error = self.y2 - np.vdot(rows, target) - _RIDGE * np.vdot(rows, rows)
        return Fit(support, rows, left, max(float(error), 0.0))


class Fit(NamedTuple):
    """Least squares on some features.

    Attributes
    ----------
    support : ndarray of shape (k,)
    rows : ndarray of shape (k, n_classes - 1)
        V.
    left : ndarray of shape (n_classes - 1, n_features)
        What it leaves of the correlations, R'.
    error : float
        Squared.
    """

    support: Codes
    rows: Floats
    left: Floats
    error: float


@dataclass
class Descent:
    """One start on its way, or at its end: its fit, and relative changes of the error so far."""

    fit: Fit
    changes: list[float] = field(default_factory=list)

    def settle(self, moments: Moments, support: Codes, tol: float) -> bool:
        """Refit after a sweep; whether it is the last."""
        before, change = self.fit, 0.0
        if (support != before.support).any():
            self.fit = moments.refit(support)
            change = abs(before.error - self.fit.error) / max(before.error, _TINY)
        self.changes.append(change)
        calm = len(self.changes) >= _MIN_ITER and max(self.changes[-_CALM_ITER:]) <= tol
        return calm or self.fit is before


def descend(moments: Moments, starts: Sequence[Codes], tol: float, max_iter: int) -> list[Descent]:
    """Exchange and refit until nothing changes, or little.

    Parameters
    ----------
    moments : Moments
    starts : sequence of ndarrays of shape (k,)
        Features; numbers of them may differ.
    tol : float
        Relative changes of the objective that count as none.
    max_iter : int

    Examples
    --------
    >>> A = np.array([[4.0, 3.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
    >>> B = np.array([[1.0, -1.0], [2.0, -2.0], [0.0, 0.0]])
    >>> descend(Moments.of(A, B, 4.0), [np.array([0])], 1e-4, 10)[0].fit.support
    array([1])
    """
    descents = [Descent(moments.refit(start)) for start in starts]
    going = sorted(descents, key=lambda one: -one.fit.support.size)
    together = max(1, _NUMBERS // len(moments.A))
    for _ in range(max_iter):
        parts = [going[first : first + together] for first in range(0, len(going), together)]
        going = [
            one
            for part in parts
            for one, support in zip(part, _sweep(moments, part), strict=True)
            if not one.settle(moments, support, tol)
        ]
        if not going:
            break
    return descents


def _sweep(moments: Moments, descents: list[Descent]) -> list[Codes]:
    """Move each row of all starts in turn to the feature where it costs least; long ones first."""
    A, fits = moments.A, [one.fit for one in descents]
    sizes = np.array([one.support.size for one in fits])
    # Starts come last: what one row of each needs lies together.
    supports = np.zeros((sizes[0], sizes.size), dtype=np.intp)
    rows = np.ones((sizes[0], moments.B.shape[1], sizes.size))
    left = np.array([one.left for one in fits]).swapaxes(0, 1).copy()
    taken = np.zeros(left.shape[1:])
    for place, (support, own_rows, _, _) in enumerate(fits):
        supports[: support.size, place], rows[: support.size, :, place] = support, own_rows
        taken[place, support] = np.inf
    own = np.einsum("jcs,jcs->js", rows, rows)
    idle = own == 0
    any_idle = idle.any()
    per_own = rows / np.where(idle, 1.0, own)[:, None]  # so that it need not multiply A
    every = np.arange(sizes.size)
    costs, products = np.empty_like(taken), np.empty_like(taken)
    for j, n_long in enumerate(np.count_nonzero(sizes > np.arange(sizes[0])[:, None], axis=1)):
        these, cost, product = every[:n_long], costs[:n_long], products[:n_long]
        old = supports[j, :n_long]
        taken[these, old] = 0.0
        np.subtract(taken[:n_long], A.take(old, axis=0, out=cost, mode="clip"), out=cost)
        for part, row in zip(left, per_own[j], strict=True):
            cost += np.multiply(part[:n_long], row[:n_long, None], out=product)
        if any_idle:
            cost[idle[j, :n_long]] = taken[:n_long][idle[j, :n_long]]
        new = cost.argmin(axis=1)
        taken[these, new] = np.inf
        (moved,) = (new != old).nonzero()
        if moved.size:
            shift = A.take(new[moved], axis=0)
            shift -= A.take(old[moved], axis=0)
            for part, row in zip(left, rows[j], strict=True):
                part[moved] += row[moved, None] * shift
            supports[j, :n_long] = new
    return [supports[:size, place].copy() for place, size in enumerate(sizes)]
