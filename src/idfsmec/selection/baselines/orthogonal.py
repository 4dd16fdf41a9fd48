"""FSOR and GRMOR: orthogonal regression on the classes, features weighted on the simplex.

Both are IDFS-MEC with one channel of all features and nothing missing, and share its solver.
"""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from idfsmec._validation import Constraints, integer, number
from idfsmec.selection._base import CompleteSelector, regression_data
from idfsmec.solver import ChannelProblems, solve

Array = NDArray[np.float64]


class FSOR(CompleteSelector):
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

    _parameter_constraints: ClassVar[Constraints] = {
        "standardize": ["boolean"],
        "tol": [number(0)],
        "max_iter": [integer(1)],
    }

    lam: float = 0.0

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

    def _rank(self, X: Array, y: NDArray[np.intp]) -> None:
        Z, Y, constant = regression_data(X, y, scale=self.standardize)
        varying = ~constant
        self.feature_weights_ = np.zeros(X.shape[1])
        self.objective_ = float(np.sum(Y**2))
        self.objective_history_ = np.array([self.objective_])
        self.kkt_residual_, self.n_iter_ = 0.0, 0
        gains = np.full(X.shape[1], -1.0)
        if varying.any():
            gains[varying] = self._solve(Z[:, varying], Y, varying)
        # Features by weight; those without one by what adding each alone would gain.
        self._set_ranking(self.feature_weights_, np.lexsort((-gains, -self.feature_weights_)))

    def _solve(self, Z: Array, Y: Array, varying: NDArray[np.bool_]) -> Array:
        """Solve for the features that vary; give what adding each alone would gain."""
        A, P = Z.T @ Z, Y.T @ Z
        problem = ChannelProblems.from_moments(
            A[None], P[None], np.array([self.objective_]), lam=float(self.lam)
        )
        wanted = np.zeros(1, dtype=np.intp)
        solution = solve(problem, tol=float(self.tol), max_iter=int(self.max_iter), wanted=wanted)
        self.feature_weights_[varying] = solution.theta[0]
        self.objective_ = float(solution.objective[0])
        self.objective_history_ = np.minimum.accumulate(solution.history[:, 0])
        self.kkt_residual_ = float(solution.kkt_residual[0])
        self.n_iter_ = int(solution.n_iter[0])
        if self.kkt_residual_ > self.tol:
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol} in {self.max_iter} "
                f"iterations (residual {self.kkt_residual_:.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        residual = P - (solution.theta[0] * solution.W[0]) @ A
        return np.asarray(np.sum(residual**2, axis=0) / np.diagonal(A))


class GRMOR(FSOR):
    """Global redundancy minimisation in orthogonal regression.

    Solves FSOR's problem plus ``lam theta' R theta``, where R holds the squared correlations of
    all pairs of features. It is IDFS-MEC with a single channel of all features and nothing
    missing.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of redundancy, >= 0. 0 is FSOR.
    n_features_to_select, standardize, tol, max_iter
        As in :class:`FSOR`.

    Attributes
    ----------
    scores_, feature_weights_, ranking_, support_, objective_, objective_history_, \
kkt_residual_, n_iter_
        As in :class:`FSOR`.

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
