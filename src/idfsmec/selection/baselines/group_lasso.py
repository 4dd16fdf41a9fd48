"""Group lasso: regression on the classes in which whole channels vanish."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from idfsmec._validation import Constraints, integer, number
from idfsmec.selection._base import CompleteSelector, regression_data
from idfsmec.table.columns import channel_columns

Array = NDArray[np.float64]
Columns = list[NDArray[np.intp]]


class GroupLasso(CompleteSelector):
    """Group lasso over channels.

    Solves ``min ||X W - Y||^2 / (2 n) + penalty sum_v sqrt(d_v) ||W_v||`` for standardised X and
    centred one-hot classes Y, where W_v are the rows of W of the d_v features of channel v.

    Parameters
    ----------
    channels : array-like of shape (n_features,), default=None
        Channel of every feature. None: the part of the column name before the last ``"__"``;
        without such names, all features form one channel.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    alpha : float, default=0.1
        The penalty, as a share of the least one at which all channels vanish.
    tol : float, default=1e-4
        Stop when the duality gap is at most this share of what there is to explain.
    max_iter : int, default=10000
        Most passes over the channels; a warning tells if they did not suffice.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Row norms of W; 0 for features of vanished channels.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features of vanished channels follow by how near their channel is
        to entering the model, those of a channel by their correlation with the residuals;
        constant features come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    coef_ : ndarray of shape (n_features, n_classes)
        W.
    channel_names_ : ndarray of shape (n_channels,)
        Channels in order of first appearance.
    channel_norms_ : ndarray of shape (n_channels,)
        Norm of each channel's rows of W.
    penalty_ : float
        The penalty that ``alpha`` stands for.
    dual_gap_ : float
        How far the objective is from its minimum at most.
    n_iter_ : int
        Passes over the channels.

    References
    ----------
    M. Yuan, Y. Lin, "Model selection and estimation in regression with grouped variables",
    Journal of the Royal Statistical Society B 68(1), 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> selector = GroupLasso(["acids"] * 6 + ["colours"] * 7, alpha=0.9).fit(X, y)
    >>> selector.channel_norms_.round(2)
    array([0.  , 0.04])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "alpha": [number(0)],
        "tol": [number(0)],
        "max_iter": [integer(1)],
    }

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        n_features_to_select: int | float = 20,
        alpha: float = 0.1,
        tol: float = 1e-4,
        max_iter: int = 10_000,
    ) -> None:
        self.channels = channels
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def _rank(self, X: Array, y: NDArray[np.intp]) -> None:
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, columns = channel_columns(self.channels, X.shape[1], names)
        Z, Y, constant = regression_data(X, y)
        A, B, y2 = Z.T @ Z / y.size, Z.T @ Y / y.size, float(np.sum(Y**2)) / y.size
        self._minimise(A, B, y2, columns)
        self.channel_norms_ = _norms(self.coef_, columns)
        left = B - A @ self.coef_
        pull = np.empty(X.shape[1])
        for own, norm in zip(columns, _norms(left, columns), strict=True):
            pull[own] = norm / np.sqrt(own.size)
        scores = np.linalg.norm(self.coef_, axis=1)
        correlation = np.linalg.norm(left, axis=1)
        # Channels in the model all pull alike but for rounding: scores order their features.
        self._set_ranking(scores, np.lexsort([-correlation, -pull, -scores, constant]))

    def _minimise(self, A: Array, B: Array, y2: float, columns: Columns) -> None:
        """Block coordinate descent: a proximal step in the rows of one channel after the other."""
        sizes = np.sqrt([own.size for own in columns])
        self.penalty_ = float(self.alpha * np.max(_norms(B, columns) / sizes))
        products = [A[own] for own in columns]
        steepest = [
            float(np.linalg.eigvalsh(product[:, own])[-1])
            for own, product in zip(columns, products, strict=True)
        ]
        W, gradient, self.n_iter_ = np.zeros_like(B), -B, 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            for own, product, size, curvature in zip(
                columns, products, sizes, steepest, strict=True
            ):
                if curvature <= 0:  # all its features are constant
                    continue
                step = W[own] - gradient[own] / curvature
                norm, threshold = np.linalg.norm(step), self.penalty_ * size / curvature
                rows = step * (1 - threshold / norm) if norm > threshold else np.zeros_like(step)
                change = rows - W[own]
                if change.any():
                    gradient += product.T @ change
                    W[own] = rows
            self.dual_gap_ = self._dual_gap(W, gradient, B, y2, columns, sizes)
            if self.dual_gap_ <= self.tol * y2:
                break
        else:
            warnings.warn(
                f"GroupLasso did not reach tol={self.tol} in {self.max_iter} iterations (gap "
                f"{self.dual_gap_ / y2:.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.coef_ = W

    def _dual_gap(
        self, W: Array, gradient: Array, B: Array, y2: float, columns: Columns, sizes: Array
    ) -> float:
        """Objective less that of the residuals, scaled down until they are feasible."""
        explained = float(np.vdot(W, B))
        squared = y2 - explained + float(np.vdot(W, gradient))  # mean square of the residuals
        primal = 0.5 * squared + self.penalty_ * float(sizes @ _norms(W, columns))
        largest = float(np.max(_norms(gradient, columns) / sizes))
        scale = min(1.0, self.penalty_ / largest) if largest > 0 else 1.0
        return primal - (scale * (y2 - explained) - 0.5 * scale**2 * squared)


def _norms(rows: Array, columns: Columns) -> Array:
    """Norm of the rows of each channel."""
    return np.array([np.linalg.norm(rows[own]) for own in columns])
