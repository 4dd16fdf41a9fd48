"""CD-LSR: least squares with exactly k features, found by exchanging one feature at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from idfsmec._parameters import N_JOBS, Constraints, integer, number
from idfsmec.selection._base import count_features, ranks
from idfsmec.selection.rivals._exchange import Descent, Fit, Moments, descend
from idfsmec.selection.rivals._regression import blas_threads_for, class_moments
from idfsmec.selection.rivals._sharing import SharingSelector

# Errors below this share of what there is to explain are rounding.
_EXACT = 1e-9


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
        (found,) = _search([self], _sum_up(X, y))
        self.objectives_ = found.objectives
        self.objective_, self.n_iter_ = found.best.fit.error, len(found.best.changes)
        self.coef_ = found.coef
        self._set_order(found.order)

    def _rank_alike(
        self, selectors: Sequence[Self], X: NDArray[np.float64], y: NDArray[np.intp]
    ) -> list[NDArray[np.intp]]:
        """Starts of all selectors go on side by side."""
        summary = _sum_up(X, y)
        alike: dict[tuple[float, int, int | None], list[int]] = {}
        for place, one in enumerate(selectors):
            alike.setdefault((one.tol, one.max_iter, one.n_jobs), []).append(place)
        found: dict[int, _Found] = {}
        for places in alike.values():
            each = _search([selectors[place] for place in places], summary)
            found.update(zip(places, each, strict=True))
        return [ranks(found[place].order) for place in range(len(selectors))]


class _Summary(NamedTuple):
    """Moments of the features that vary, and which do not."""

    moments: Moments
    constant: NDArray[np.bool_]


def _sum_up(X: NDArray[np.float64], y: NDArray[np.intp]) -> _Summary:
    """Standardise sums, not samples."""
    sums = class_moments(X, y).groups[0].moments
    A, P, y2 = (part[0] for part in sums.centred())
    constant, unit = sums.constant()[0], (sums.std / sums.scale)[0]
    if constant.any():
        varying = np.flatnonzero(~constant)
        A, P, unit = A[varying[:, None], varying], P[:, varying], unit[varying]
    A /= unit
    A /= unit[:, None]
    return _Summary(Moments.of(A, (P / unit).T, float(y2)), constant)


class _Found(NamedTuple):
    """The best of all starts and the order of all features that follows from it."""

    best: Descent
    objectives: NDArray[np.float64]
    coef: NDArray[np.float64]
    order: NDArray[np.intp]


def _search(selectors: Sequence[CDLSR], summary: _Summary) -> list[_Found]:
    """Run all starts of selectors that stop alike, and order the features by the best of each."""
    n_usable = len(summary.moments.A)
    starts: list[list[NDArray[np.intp]]] = []
    for one in selectors:
        k = min(count_features(one.n_features_to_select, summary.constant.size), n_usable)
        rng = check_random_state(one.random_state)
        starts.append([rng.permutation(n_usable)[:k] for _ in range(one.n_restarts)])
    ends = iter(_run_starts(selectors[0], summary.moments, [one for own in starts for one in own]))
    return [_order([next(ends) for _ in own], summary) for own in starts]


def _order(ends: list[Descent], summary: _Summary) -> _Found:
    """Order the features by the best of all starts."""
    moments, constant = summary
    usable = np.flatnonzero(~constant)
    coef = np.zeros((constant.size, moments.basis.shape[1]))
    gain = np.zeros(constant.size)
    chosen = np.zeros(constant.size, dtype=bool)
    objectives = np.array([end.fit.error for end in ends])
    # Of starts that fit exactly, but for rounding, the first counts.
    best = ends[int(np.argmin(np.maximum(objectives, _EXACT * moments.y2)))]
    support = usable[best.fit.support]
    coef[support], chosen[support] = best.fit.rows @ moments.basis, True
    # As is the squared correlation with the residuals, so is what adding a feature alone brings.
    gain[usable] = np.sum(best.fit.left**2, axis=0)
    norms = np.linalg.norm(coef, axis=1)
    order = np.lexsort([-gain, -norms, ~chosen, constant])
    return _Found(best, objectives, coef, order)


def _run_starts(
    selector: CDLSR, moments: Moments, starts: list[NDArray[np.intp]]
) -> list[Descent]:
    """All starts, in as many batches as there are threads."""
    if not moments.A.size:  # nothing to choose from
        nothing = Fit(np.arange(0), moments.B, moments.B.T, moments.y2)
        return [Descent(nothing) for _ in starts]
    n_jobs = min(effective_n_jobs(selector.n_jobs), len(starts))
    with blas_threads_for(max(start.size for start in starts)):
        batches = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(descend)(moments, starts[first::n_jobs], selector.tol, selector.max_iter)
            for first in range(n_jobs)
        )
    return [batches[place % n_jobs][place // n_jobs] for place in range(len(starts))]
