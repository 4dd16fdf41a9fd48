"""CD-LSR: least squares with exactly k features, found by exchanging one feature at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv
from sklearn.utils import check_random_state

from idfsmec._parameters import N_JOBS, Constraints, integer, number
from idfsmec.selection._base import count_features, ranks
from idfsmec.selection.rivals._regression import blas_threads_for, one_hot
from idfsmec.selection.rivals._sharing import SharingSelector
from idfsmec.solver import Scaling

_RIDGE = 1e-7
_MIN_ITER = 5
_CALM_ITER = 3
# So many rows that move are followed by a look at all others each time.
_FEW_MOVES = 4


class CDLSR(SharingSelector):
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

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        found = _search(self, _sum_up(X, y))
        self.objectives_ = found.objectives
        self.objective_, self.n_iter_ = found.best.objective, found.best.n_iter
        self.coef_ = found.coef
        self._set_order(found.order)

    def _rank_alike(
        self, selectors: Sequence[Self], X: NDArray[np.float64], y: NDArray[np.intp]
    ) -> list[NDArray[np.intp]]:
        summary = _sum_up(X, y)
        return [ranks(_search(one, summary).order) for one in selectors]


class _Moments(NamedTuple):
    """A = X'X (D, D), B = X'Y (D, c) and ||Y||^2 of centred data."""

    A: NDArray[np.float64]
    B: NDArray[np.float64]
    y2: float


class _Summary(NamedTuple):
    """Moments of the features that vary, and which do not."""

    moments: _Moments
    constant: NDArray[np.bool_]


def _sum_up(X: NDArray[np.float64], y: NDArray[np.intp]) -> _Summary:
    scaling = Scaling.learn(X)
    Z, constant = scaling.apply(X), scaling.constant
    if constant.any():
        Z = Z[:, ~constant]
    Y = one_hot(y)
    Y -= Y.mean(axis=0)
    # One array times its own transpose: BLAS then computes half of it and mirrors it.
    return _Summary(_Moments(Z.T @ Z, Z.T @ Y, float(np.sum(Y**2))), constant)


class _Solution(NamedTuple):
    """A support with its rows of W, the end of one start."""

    support: NDArray[np.intp]
    rows: NDArray[np.float64]
    objective: float
    n_iter: int


class _Found(NamedTuple):
    """The best of all starts and the order of all features that follows from it."""

    best: _Solution
    objectives: NDArray[np.float64]
    coef: NDArray[np.float64]
    order: NDArray[np.intp]


def _search(selector: CDLSR, summary: _Summary) -> _Found:
    """Run all starts and order the features by the best."""
    moments, constant = summary
    usable = np.flatnonzero(~constant)
    k = min(count_features(selector.n_features_to_select, constant.size), usable.size)
    coef = np.zeros((constant.size, moments.B.shape[1]))
    gain = np.zeros(constant.size)
    chosen = np.zeros(constant.size, dtype=bool)
    if k:
        with blas_threads_for(k):
            solutions = _run_starts(selector, moments, k)
    else:
        solutions = [_Solution(usable, coef[usable], moments.y2, 0)]
    objectives = np.array([solution.objective for solution in solutions])
    best = solutions[int(np.argmin(objectives))]
    support = usable[best.support]
    coef[support], chosen[support] = best.rows, True
    gain[usable] = _gain_of_adding(moments, best)
    norms = np.linalg.norm(coef, axis=1)
    order = np.lexsort([-gain, -norms, ~chosen, constant])
    return _Found(best, objectives, coef, order)


def _run_starts(selector: CDLSR, moments: _Moments, k: int) -> list[_Solution]:
    rng = check_random_state(selector.random_state)
    starts = [rng.permutation(moments.A.shape[0])[:k] for _ in range(selector.n_restarts)]
    return Parallel(n_jobs=selector.n_jobs, prefer="threads")(
        delayed(_descend)(moments, start, selector.tol, selector.max_iter) for start in starts
    )


def _refit(moments: _Moments, support: NDArray[np.intp]) -> tuple[NDArray[np.float64], float]:
    """Least squares on the support: rows V (k, c) and the squared error."""
    gram = moments.A[support[:, None], support]
    target = moments.B[support]
    gram.flat[:: support.size + 1] += _RIDGE
    _, rows, failed = dposv(gram.T, target, overwrite_a=1)
    if failed:
        raise LinAlgError(f"products of features are not positive definite (column {failed})")
    # With (gram + ridge) V = target, V' gram V is V' target less the ridge's share.
    error = moments.y2 - np.vdot(rows, target) - _RIDGE * np.vdot(rows, rows)
    return rows, max(float(error), 0.0)


def _descend(moments: _Moments, start: NDArray[np.intp], tol: float, max_iter: int) -> _Solution:
    support = start.copy()
    rows, objective = _refit(moments, support)
    changes: list[float] = []
    for _ in range(max_iter):
        before = support.copy()
        _exchange(moments, support, rows)
        rows, lower = _refit(moments, support)
        changes.append(abs(objective - lower) / max(objective, np.finfo(float).tiny))
        objective = lower
        calm = len(changes) >= _MIN_ITER and max(changes[-_CALM_ITER:]) <= tol
        if calm or np.array_equal(before, support):
            break
    return _Solution(support, rows, objective, len(changes))


def _exchange(moments: _Moments, support: NDArray[np.intp], rows: NDArray[np.float64]) -> None:
    """Move each row of V in turn to the feature where it costs least; change `support`.

    With row j at feature i the squared error is, up to a constant,
    ``s_i = 2 sum_{q != j} A[i, S_q] G[q, j] + A_ii G_jj - 2 B_i . V_j``, where G = V V'.
    Costs for the support at the start come from one matrix product. As long as no row moves they
    hold for all rows, so that a look at all of them finds the first that does; what it changes is
    then added to the rows that follow: to all at once if few will move, else to each in its turn.
    """
    A, B, _ = moments
    k = support.size
    G = rows @ rows.T
    own = G.diagonal().copy()
    G *= 2
    G.flat[:: k + 1] = 0
    # A is symmetric: its rows, which lie together in memory, stand for its columns.
    cost = G @ A[support]
    cost -= (2 * rows) @ B.T
    cost += own[:, None] * A.diagonal()
    there = cost[:, support]
    cost[:, support] = np.inf  # taken, but for a row itself
    cost[np.arange(k), support] = there.diagonal()
    best = cost.argmin(axis=1)
    moving = np.flatnonzero(best != support)
    if moving.size <= _FEW_MOVES:
        _move_few(A, G, cost, there, support, best)
    else:
        _move_many(A, G, cost, there, support, int(moving[0]))


def _move_few(
    A: NDArray[np.float64],
    G: NDArray[np.float64],
    cost: NDArray[np.float64],
    there: NDArray[np.float64],
    support: NDArray[np.intp],
    best: NDArray[np.intp],
) -> None:
    """Look at all rows that are left after every move."""
    first, at_first = 0, support.copy()
    while (moving := np.flatnonzero(best != support[first:])).size:
        j = first + int(moving[0])
        old, new = int(support[j]), int(best[moving[0]])
        support[j], first = new, j + 1
        left = cost[first:]
        left[:, old], left[:, new] = there[first:, j], np.inf
        shift = A[new] - A[old]
        left += G[first:, j, None] * shift
        there[first:] += G[first:, j, None] * shift[at_first]
        best = left.argmin(axis=1)


def _move_many(
    A: NDArray[np.float64],
    G: NDArray[np.float64],
    cost: NDArray[np.float64],
    there: NDArray[np.float64],
    support: NDArray[np.intp],
    first: int,
) -> None:
    """Add what moved to each row in its turn."""
    k = support.size
    moved = np.empty(k, dtype=np.intp)
    shifts = np.empty((k - first, A.shape[0]))
    n_moved = 0
    for j in range(first, k):
        s = cost[j]
        if n_moved:
            s += G[moved[:n_moved], j] @ shifts[:n_moved]
        old, new = int(support[j]), int(s.argmin())
        if new != old:
            support[j] = new
            cost[j + 1 :, old], cost[j + 1 :, new] = there[j + 1 :, j], np.inf
            np.subtract(A[new], A[old], out=shifts[n_moved])
            moved[n_moved] = j
            n_moved += 1


def _gain_of_adding(moments: _Moments, solution: _Solution) -> NDArray[np.float64]:
    """Squared correlation of each feature with the residuals: what adding it alone would bring."""
    A, B, _ = moments
    residual = B - A[solution.support].T @ solution.rows
    return np.sum(residual**2, axis=1) / np.diag(A)
