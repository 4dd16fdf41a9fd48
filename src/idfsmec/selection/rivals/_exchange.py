"""Least squares with exactly k features: starts that exchange one feature at a time, together.

With rows V at the features S of a start, row j at feature i has the squared error, up to a
constant and a factor of 2, of ``V_j . R_i - |V_j|^2 (A[S_j, i] - A_ii / 2)`` with ``R = A[:, S] V
- B``: what the fit leaves of the correlations is all that one row has to know of the others. It is
brought up to date when a row moves.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_RIDGE = 1e-7
_MIN_ITER = 5
_CALM_ITER = 3
# A start of which so few rows moved the last time is looked at in one go, and again after each
# move.
_FEW_MOVES = 6


class Moments(NamedTuple):
    """Products of centred data.

    Attributes
    ----------
    C : ndarray of shape (n_features, n_features)
        X'X, less half of its diagonal in each row.
    half : ndarray of shape (n_features,)
        Half of the diagonal.
    B : ndarray of shape (n_features, n_classes - 1)
        X'Y in an orthonormal basis of what columns of Y that sum to 0 span.
    basis : ndarray of shape (n_classes - 1, n_classes)
    y2 : float
        The squared norm of Y.
    """

    C: Floats
    half: Floats
    B: Floats
    basis: Floats
    y2: float

    @classmethod
    def of(cls, A: Floats, B: Floats, y2: float) -> Self:
        """From X'X, which is changed, X'Y and the squared norm of Y.

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
        half = A.diagonal() / 2
        A -= half
        return cls(A, half, B @ basis.T, basis, y2)

    def refit(self, support: Codes) -> tuple[Floats, float]:
        """Least squares on the support: rows V (k, n_classes - 1) and the squared error."""
        gram = self.C[support[:, None], support]
        gram += self.half[support]
        target = self.B[support]
        gram.flat[:: support.size + 1] += _RIDGE
        _, rows, failed = dposv(gram.T, target, overwrite_a=1)
        if failed:
            raise LinAlgError(f"products of features are not positive definite (column {failed})")
        # With (gram + ridge) V = target, V' gram V is V' target less the ridge's share.
        error = self.y2 - np.vdot(rows, target) - _RIDGE * np.vdot(rows, rows)
        return rows, max(float(error), 0.0)

    def left(self, of_support: Floats, rows: Floats) -> Floats:
        """What a fit leaves of the correlations, R': shape (n_classes - 1, n_features).

        ``of_support`` are the rows of C that belong to the support.
        """
        fitted = rows.T @ of_support
        fitted += rows.sum(axis=0)[:, None] * self.half
        fitted -= self.B.T
        return fitted

    def gain_of_adding(self, support: Codes, rows: Floats) -> Floats:
        """Squared correlation of each feature with the residuals: what adding it alone brings."""
        return np.sum(self.left(self.C[support], rows) ** 2, axis=0) / (2 * self.half)


class End(NamedTuple):
    """A support with its rows of V, the end of one start."""

    support: Codes
    rows: Floats
    objective: float
    n_iter: int


class _Descent:
    """One start on its way."""

    def __init__(self, moments: Moments, support: Codes) -> None:
        self.support = support
        self.rows, self.objective = moments.refit(support)
        self.changes: list[float] = []
        self.n_moved = support.size

    def settle(self, moments: Moments, support: Codes, tol: float) -> bool:
        """Refit after a sweep; whether it is the last."""
        self.n_moved = int(np.count_nonzero(support != self.support))
        change = 0.0
        if self.n_moved:
            before, self.support = self.objective, support.copy()
            self.rows, self.objective = moments.refit(self.support)
            change = abs(before - self.objective) / max(before, np.finfo(float).tiny)
        self.changes.append(change)
        calm = len(self.changes) >= _MIN_ITER and max(self.changes[-_CALM_ITER:]) <= tol
        return calm or not self.n_moved


def descend(moments: Moments, starts: Codes, tol: float, max_iter: int) -> list[End]:
    """Exchange and refit until nothing changes, or little.

    Parameters
    ----------
    moments : Moments
    starts : ndarray of shape (n_starts, k)
        Features.
    tol : float
        Relative changes of the objective that count as none.
    max_iter : int

    Examples
    --------
    >>> A = np.array([[4.0, 3.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
    >>> B = np.array([[1.0, -1.0], [2.0, -2.0], [0.0, 0.0]])
    >>> descend(Moments.of(A, B, 4.0), np.array([[0]]), 1e-4, 10)[0].support
    array([1])
    """
    descents = [_Descent(moments, start) for start in starts]
    going = descents
    for _ in range(max_iter):
        few = [one for one in going if one.n_moved <= _FEW_MOVES]
        many = [one for one in going if one.n_moved > _FEW_MOVES]
        supports = [_look(moments, one.support, one.rows) for one in few]
        if many:
            supports.extend(_sweep(moments, many))
        ordered = [*few, *many]
        going = [
            one
            for one, support in zip(ordered, supports, strict=True)
            if not one.settle(moments, support, tol)
        ]
        if not going:
            break
    return [End(one.support, one.rows, one.objective, len(one.changes)) for one in descents]


def _sweep(moments: Moments, descents: list[_Descent]) -> Codes:
    """Move each row of all starts in turn to the feature where it costs least."""
    C = moments.C
    supports = np.array([one.support for one in descents])
    rows = np.array([one.rows for one in descents])
    left = np.array([moments.left(C.take(one.support, axis=0), one.rows) for one in descents])
    per_own, idle = _per_own(rows)
    any_idle = idle.any()
    every = np.arange(len(descents))
    taken = np.zeros((every.size, C.shape[0]))
    taken[every[:, None], supports] = np.inf
    cost, product = np.empty_like(taken), np.empty_like(taken)
    for j in range(supports.shape[1]):
        old = supports[:, j]
        taken[every, old] = 0.0
        np.subtract(taken, C.take(old, axis=0, out=cost, mode="clip"), out=cost)
        for part, row in zip(left.swapaxes(0, 1), per_own[:, j].T, strict=True):
            cost += np.multiply(part, row[:, None], out=product)
        if any_idle:
            cost[idle[:, j]] = taken[idle[:, j]]
        new = cost.argmin(axis=1)
        taken[every, new] = np.inf
        (moved,) = (new != old).nonzero()
        if moved.size:
            shift = C.take(new[moved], axis=0)
            shift -= C.take(old[moved], axis=0)
            left[moved] += rows[moved, j][:, :, None] * shift[:, None]
            supports[:, j] = new
    return supports


def _look(moments: Moments, support: Codes, rows: Floats) -> Codes:
    """Do it for one start of which few rows move: look at all rows, move the first, look again."""
    C = moments.C
    support, at_first = support.copy(), support
    per_own, idle = _per_own(rows)
    of_support = C.take(support, axis=0)
    left = moments.left(of_support, rows)
    # The product of a column and a row is faster this way.
    cost = per_own * left if rows.shape[1] == 1 else per_own @ left
    cost -= of_support
    cost[idle] = 0.0
    there = cost[:, support]
    cost[:, support] = np.inf  # taken, but for a row itself
    cost[np.arange(support.size), support] = there.diagonal()
    first, best = 0, cost.argmin(axis=1)
    while (moving := np.flatnonzero(best != support[first:])).size:
        j = first + int(moving[0])
        old, new = int(support[j]), int(best[moving[0]])
        support[j], first = new, j + 1
        rest = cost[first:]
        rest[:, old], rest[:, new] = there[first:, j], np.inf
        products = (per_own[first:] @ rows[j])[:, None]
        change = C[new] - C[old]
        rest += products * change
        there[first:] += products * change[at_first]
        best = rest.argmin(axis=1)
    return support


def _per_own(rows: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Rows by their squared norms, so that these need not multiply C; and which rows are 0."""
    own = np.einsum("...c,...c->...", rows, rows)[..., None]
    idle = own == 0
    return np.where(idle, 0.0, rows / np.where(idle, 1.0, own)), idle[..., 0]
