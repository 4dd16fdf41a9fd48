"""GRMOR: orthogonal regression that also pays for features that repeat each other."""

from __future__ import annotations

from typing import ClassVar

from idfsmec._parameters import Constraints, number
from idfsmec.selection.rivals._orthogonal_regression import OrthogonalRegression


class GRMOR(OrthogonalRegression):
    """Global redundancy minimisation in orthogonal regression.

    Solves FSOR's problem plus ``lam theta' R theta``, where R holds the squared correlations of
    all pairs of features. It is IDFS-MEC with a single channel of all features and nothing
    missing.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    lam : float, default=1.0
        Price of redundancy, >= 0. 0 is FSOR.
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

    def _price_of_redundancy(self) -> float:
        return float(self.lam)
