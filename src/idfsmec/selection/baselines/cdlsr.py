"""CD-LSR: least squares with exactly k features, found by exchanging one feature at a time."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_random_state

from idfsmec._validation import N_JOBS, Constraints, integer, number
from idfsmec.selection._base import CompleteSelector, count_features, regression_data

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_RIDGE = 1e-7
_MIN_ITER = 5
_CALM_ITER = 3
# Errors below this share of what there is to explain are rounding.
_EXACT = 1e-9


class CDLSR(CompleteSelector):
    """Top-k least-squares regression by coordinate descent.

    Solves ``min ||X W - Y||^2`` with exactly k non-zero rows of W for one-hot classes Y:
    refit W on the current k features, then let each row of W in turn move to the feature where
    it reduces the error most; repeat. Several random starts; the best end counts.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        k: a number (all, if there are fewer) or a fraction. Supports for different k are not
        nested.
    n_restarts : int, default=10
        Random starts. More find better supports, at proportional cost.
    tol : float, default=1e-4
        Stop when the last 3 relative changes of the objective are below this (after 5
        iterations at least).
    max_iter : int, default=1000
        Most iterations per start.
    random_state : int, RandomState instance or None, default=None
        For the starts.
    n_jobs : int or None, default=None
        Threads over the starts, as in joblib. The result is the same for any number.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        The k chosen features by the norm of their row of W, then the others by how much
        adding each alone would reduce the error, then constant features.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    coef_ : ndarray of shape (n_features, n_classes)
        W for the standardised features; 0 where not chosen.
    objective_ : float
        Squared error of the best start.
    objectives_ : ndarray of shape (n_restarts,)
        Squared error of every start.
    n_iter_ : int
        Iterations of the best start.

    Notes
    -----
    X is standardised and Y centred, so an intercept is implied. Only X'X and X'Y are used:
    memory grows with n_features squared (42 MB for 2304 features).

    References
    ----------
    L. Xu, R. Wang, F. Nie, X. Li, "Efficient top-k feature selection using coordinate descent
    method", AAAI 2023, doi:10.1609/aaai.v37i9.26258.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CDLSR(n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_restarts": [integer(1)],
        "tol": [number(0, closed="left")],
        "max_iter": [integer(1)],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        n_restarts: int = 10,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _rank(self, X: Array, y: Indices) -> None:
        Z, Y, constant = regression_data(X, y)
        usable = np.flatnonzero(~constant)
        Z = Z[:, usable]
        A, B, y2 = Z.T @ Z, Z.T @ Y, float(np.sum(Y**2))
        k = min(count_features(self.n_features_to_select, X.shape[1]), usable.size)
        rng = check_random_state(self.random_state)
        ends = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_descend)(A, B, y2, start[:k], self.tol, self.max_iter)
            for start in [rng.permutation(usable.size) for _ in range(self.n_restarts)]
        )
        self.objectives_ = np.array([end.error for end in ends])
        # Of starts that fit exactly, but for rounding, the first counts.
        best = ends[int(np.argmin(np.maximum(self.objectives_, _EXACT * y2)))]
        self.objective_, self.n_iter_ = best.error, best.n_iter
        support = usable[best.support]
        self.coef_ = np.zeros((X.shape[1], Y.shape[1]))
        self.coef_[support] = best.rows
        others, gain = np.ones(X.shape[1], dtype=bool), np.zeros(X.shape[1])
        others[support] = False
        # The squared correlation with the residuals orders features as what adding each brings.
        gain[usable] = np.sum((A[:, best.support] @ best.rows - B) ** 2, axis=1)
        norms = np.linalg.norm(self.coef_, axis=1)
        self._set_order(np.lexsort([-gain, -norms, others, constant]))


class _End(NamedTuple):
    """Where a start ends: features, their rows of W, the squared error and iterations."""

    support: Indices
    rows: Array
    error: float
    n_iter: int


def _descend(A: Array, B: Array, y2: float, support: Indices, tol: float, max_iter: int) -> _End:
    """Exchange features and refit until nothing changes, or little.

    A is X'X of standardised features, so that its diagonal is constant, B is X'Y and y2 the
    squared norm of Y.
    """
    rows, error = _refit(A, B, y2, support)
    changes: list[float] = []
    for _ in range(max_iter):
        before, support_before = error, support
        support = _sweep(A, B, support, rows)
        if (support == support_before).all():
            changes.append(0.0)
            break
        rows, error = _refit(A, B, y2, support)
        changes.append(abs(before - error) / max(before, np.finfo(float).tiny))
        if len(changes) >= _MIN_ITER and max(changes[-_CALM_ITER:]) <= tol:
            break
    return _End(support, rows, error, len(changes))


def _refit(A: Array, B: Array, y2: float, support: Indices) -> tuple[Array, float]:
    """Least squares on the support: rows of W and the squared error."""
    gram = A[np.ix_(support, support)] + _RIDGE * np.eye(support.size)
    rows = cho_solve(cho_factor(gram), B[support]) if support.size else B[support]
    # With (gram + ridge) V = B_S, V' gram V is V' B_S less the ridge's share.
    error = y2 - np.vdot(rows, B[support]) - _RIDGE * np.vdot(rows, rows)
    return rows, max(float(error), 0.0)


def _sweep(A: Array, B: Array, support: Indices, rows: Array) -> Indices:
    """Move each row V_j of W in turn to the feature where it costs least.

    With R = A[:, S] V - B, row j at feature i has the squared error, up to a constant and a factor
    of 2, V_j . R_i - |V_j|^2 A[S_j, i].
    """
    support = support.copy()
    left = A[:, support] @ rows - B
    taken = np.zeros(len(A), dtype=bool)
    taken[support] = True
    for j, row in enumerate(rows):
        old = support[j]
        taken[old] = False
        cost = left @ row - (row @ row) * A[old]
        cost[taken] = np.inf
        new = support[j] = int(cost.argmin())
        taken[new] = True
        if new != old:
            left += np.outer(A[new] - A[old], row)
    return support
