"""FSOR: feature weights on the simplex inside an orthogonal regression on the classes."""

from __future__ import annotations

from idfsmec.selection.rivals._orthogonal_regression import OrthogonalRegression


class FSOR(OrthogonalRegression):
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
