"""FSOR and GRMOR: orthogonal regression on the classes, features weighted on the simplex.

Both are IDFS-MEC with one channel of all features and nothing missing, and share its solver.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from idfsmec._parameters import Constraints, integer, number
from idfsmec.selection._base import ranks
from idfsmec.selection.rivals._regression import blas_threads_for, class_moments
from idfsmec.selection.rivals._sharing import SharingSelector
from idfsmec.solver import ChannelFits, Options, TableMoments, solve_channels


class _OrthogonalRegression(SharingSelector):
    """Orthogonal regression on all features, with weights on the simplex.

    A subclass has the parameters ``standardize``, ``tol`` and ``max_iter``; ``lam`` is what
    redundancy weighs.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "standardize": ["boolean"],
        "tol": [number(0)],
        "max_iter": [integer(1)],
    }

    standardize: bool
    tol: float
    max_iter: int
    lam: float = 0.0

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        fits = _solve(class_moments(X, y), [self])
        self.feature_weights_ = fits.feature_weights[0, 0]
        self.objective_ = float(fits.objectives[0, 0, 0])
        self.objective_history_ = np.minimum.accumulate(fits.history[:, 0])
        self.kkt_residual_ = float(fits.kkt_residuals[0, 0, 0])
        self.n_iter_ = int(fits.n_iter.max())
        _warn_if_unsolved(self, self.kkt_residual_)
        self._set_ranking(self.feature_weights_, _order(fits, 0))

    def _rank_alike(
        self, selectors: Sequence[Self], X: NDArray[np.float64], y: NDArray[np.intp]
    ) -> list[NDArray[np.intp]]:
        """Weights of redundancy share moments and the start."""
        moments, found = class_moments(X, y), {}
        alike: dict[tuple[bool, float, int], list[int]] = {}
        for place, one in enumerate(selectors):
            alike.setdefault((one.standardize, one.tol, one.max_iter), []).append(place)
        for places in alike.values():
            fits = _solve(moments, [selectors[place] for place in places])
            for which, place in enumerate(places):
                _warn_if_unsolved(selectors[place], float(fits.kkt_residuals[0, which, 0]))
                found[place] = ranks(_order(fits, which))
        return [found[place] for place in range(len(selectors))]


def _warn_if_unsolved(selector: _OrthogonalRegression, residual: float) -> None:
    if residual > selector.tol:
        warnings.warn(
            f"{type(selector).__name__} did not reach tol={selector.tol} in {selector.max_iter} "
            f"iterations (residual {residual:.1e}). Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _solve(moments: TableMoments, selectors: Sequence[_OrthogonalRegression]) -> ChannelFits:
    """Solve for selectors that differ in nothing but the weight of redundancy."""
    first = selectors[0]
    options = Options(
        standardize=bool(first.standardize), tol=float(first.tol), max_iter=int(first.max_iter)
    )
    with blas_threads_for(moments.n_features):
        return solve_channels([moments], [float(one.lam) for one in selectors], options)


def _order(fits: ChannelFits, which: int) -> NDArray[np.intp]:
    """Features by weight; those without one by what adding each alone would gain."""
    # lexsort takes its last key first; features that were left out have gain -1.
    return np.lexsort((-fits.gains[0, which], -fits.feature_weights[0, which]))


class FSOR(_OrthogonalRegression):
    """Feature selection under orthogonal regression.

    Solves ``min ||W' Theta X + b 1' - Y||^2`` with W'W = I and feature weights theta >= 0 that
    sum to 1. It is IDFS-MEC with a single channel of all features, nothing missing, lam = 0.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    standardize : bool, default=True
        Whether to scale features to unit variance first. The objective is not scale invariant.
    tol : float, default=1e-4
        Stop when the first-order conditions hold to this relative accuracy.
    max_iter : int, default=10000
        Most iterations; a warning tells if they did not suffice.

    Attributes
    ----------
    scores_, feature_weights_ : ndarray of shape (n_features,)
        theta.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features with weight 0 follow by what adding each alone to the
        model would gain, constant features come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    objective_ : float
        The loss at the end.
    objective_history_ : ndarray
        The loss after each iteration; never rises.
    kkt_residual_ : float
        How well the first-order conditions hold.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    X. Xu, F. Wei, Z. Zhu, J. Liu, X. Wu, "EEG feature selection using orthogonal regression:
    application to emotion recognition", ICASSP 2020, 1239-1243.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> FSOR(n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 3])
    """

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter


class GRMOR(_OrthogonalRegression):
    """Global redundancy minimisation in orthogonal regression.

    Solves FSOR's problem plus ``lam theta' R theta``, where R holds the squared correlations of
    all pairs of features. It is IDFS-MEC with a single channel of all features and nothing
    missing.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    lam : float, default=1.0
        Weight of redundancy, >= 0. 0 is FSOR.
    standardize : bool, default=True
        Whether to scale features to unit variance first. The objective is not scale invariant.
    tol : float, default=1e-4
        Stop when the first-order conditions hold to this relative accuracy.
    max_iter : int, default=10000
        Most iterations; a warning tells if they did not suffice.

    Attributes
    ----------
    scores_, feature_weights_ : ndarray of shape (n_features,)
        theta.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features with weight 0 follow by what adding each alone to the
        model would gain, constant features come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    objective_ : float
        The loss at the end.
    objective_history_ : ndarray
        The loss after each iteration; never rises.
    kkt_residual_ : float
        How well the first-order conditions hold.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    X. Xu, T. Jia, Q. Li, F. Wei, L. Ye, X. Wu, "EEG feature selection via global redundancy
    minimization for emotion recognition", IEEE Transactions on Affective Computing 14(1),
    421-435, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> GRMOR(n_features_to_select=3).fit(X, y).get_support(indices=True)
    array([ 9, 11, 12])
    """

    _parameter_constraints: ClassVar[Constraints] = {"lam": [number(0, closed="left")]}

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        lam: float = 1.0,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
