"""RFS: regression on the classes in which whole features vanish and outliers weigh little."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from idfsmec._validation import Constraints, integer, number
from idfsmec.selection._base import (
    CompleteSelector,
    constant_features,
    one_hot,
    regression_data,
)

Array = NDArray[np.float64]

# Norms are smoothed by this fraction of the largest row of W, or of Y for the residuals, so
# that weights stay finite and systems solvable, even where X fits Y exactly.
_SMOOTH_ROWS = 1e-9
_SMOOTH_RESIDUALS = 1e-6
# A feature below this fraction of the largest counts as vanished ...
_VANISHED = 1e-6
# ... and is left out of the iteration if it also shrinks by at least this factor each time.
_SHRINKING = 0.95


class RFS(CompleteSelector):
    """Robust feature selection by joint l2,1-norm minimisation.

    Solves ``min ||X W - Y||_{2,1} + gamma ||W||_{2,1}`` for one-hot classes Y; the score of a
    feature is the norm of its row of W.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    gamma : float, default=1.0
        Weight of the penalty, above 0. The larger, the fewer features have a score.
    center : bool, default=True
        Whether to centre X and Y, which stands for an intercept.
    standardize : bool, default=False
        Whether to scale features to standard deviation 1 first (implies centring). The penalty
        does not treat features of different units alike: use this unless X is scaled already.
    tol : float, default=1e-6
        Stop when an iteration lowers the objective by less than this fraction.
    max_iter : int, default=500
        Most iterations; a warning tells if they did not suffice.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Row norms of W; exactly 0 for vanished features.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Vanished features follow by how near they are to entering the
        model (their correlation with the weighted residuals), constant ones come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    coef_ : ndarray of shape (n_features, n_classes)
        W.
    objective_history_ : ndarray of shape (n_iter,)
        The objective after each iteration, at the best point so far.
    n_iter_ : int
        Number of iterations.

    Notes
    -----
    Iteratively reweighted least squares with momentum. Each step solves a linear system in samples
    or in features, whichever are fewer.

    References
    ----------
    F. Nie, H. Huang, X. Cai, C. Ding, "Efficient and robust feature selection via joint
    l2,1-norms minimization", NIPS 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> RFS(n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "gamma": [number(0)],
        "center": ["boolean"],
        "standardize": ["boolean"],
        "tol": [number(0, closed="left")],
        "max_iter": [integer(1)],
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        gamma: float = 1.0,
        center: bool = True,
        standardize: bool = False,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.gamma = gamma
        self.center = center
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _rank(self, X: Array, y: NDArray[np.intp]) -> None:
        if self.center or self.standardize:
            X, Y, constant = regression_data(X, y, scale=self.standardize)
        else:
            Y, constant = one_hot(y), constant_features(X)
        coef, pull, history = _minimise(X, Y, self.gamma, self.tol, self.max_iter)
        scores = np.linalg.norm(coef, axis=1)
        scores[constant | (scores <= _VANISHED * scores.max())] = 0
        self.coef_, self.objective_history_ = coef, np.array(history)
        self.n_iter_ = len(history)
        self._set_ranking(scores, np.lexsort([-pull, -scores, constant]))


def _minimise(
    X: Array, Y: Array, gamma: float, tol: float, max_iter: int
) -> tuple[Array, Array, list[float]]:
    """Iterate; return W, the features' pull on the residuals (1 enters) and the objectives."""
    coef = np.zeros((X.shape[1], Y.shape[1]))
    norms = np.linalg.norm(Y, axis=1)
    pull = np.linalg.norm(X.T @ (Y / norms[:, None]), axis=1) / gamma
    if pull.max() <= 1:  # no feature is worth its penalty
        return coef, pull, [float(norms.sum())]
    active, X_active = np.arange(X.shape[1]), X
    # Weights of features, then of samples. Plain reweighting creeps: weights of features that
    # vanish fall by the same factor again and again. Nesterov's momentum on their logarithms
    # takes less than half the iterations; it starts anew where the objective would rise.
    weights = plain = np.ones(sum(X.shape))
    sequence, pushed = 1.0, False
    history: list[float] = []
    for _ in range(max_iter):
        feature_weights = weights[: active.size]
        dual = _solve_weighted(X_active, Y, gamma, feature_weights, weights[active.size :])
        W = feature_weights[:, None] * (X_active.T @ dual)
        row_norms = np.linalg.norm(W, axis=1)
        residual_norms = np.linalg.norm(Y - X_active @ W, axis=1)
        objective = float(residual_norms.sum() + gamma * row_norms.sum())
        if pushed and objective > history[-1]:
            weights, sequence, pushed = plain, 1.0, False
            continue
        history.append(objective)
        settled = len(history) > 1 and history[-2] - history[-1] <= tol * history[-1]
        if settled and not pushed:
            break
        shrinking = row_norms <= _SHRINKING * feature_weights / 2
        keep = ~shrinking | (row_norms > _VANISHED * row_norms.max())
        active, W, row_norms = active[keep], W[keep], row_norms[keep]
        X_active = X[:, active]
        before = np.concatenate([plain[: keep.size][keep], plain[keep.size :]])
        plain = 2 * np.concatenate(
            [
                np.hypot(row_norms, _SMOOTH_ROWS * row_norms.max()),
                np.hypot(residual_norms, _SMOOTH_RESIDUALS * norms.max()),
            ]
        )
        following = 0.5 + np.sqrt(0.25 + sequence**2)
        push = 0.0 if settled else (sequence - 1.0) / following
        weights = plain * (plain / before) ** push
        sequence, pushed = (1.0 if settled else following), push > 0
    else:
        warnings.warn(
            f"RFS did not converge in max_iter={max_iter} iterations; the ranking may still "
            "change. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )
    coef[active] = W
    return coef, 2 * np.linalg.norm(X.T @ dual, axis=1), history


def _solve_weighted(
    X: Array,
    Y: Array,
    gamma: float,
    feature_weights: Array,
    sample_weights: Array,
) -> Array:
    """Dual variables V of ridge regression weighted per feature (q) and per sample (e).

    W = diag(q) X'V solves it, with (X diag(q) X' + gamma diag(e)) V = Y.
    """
    n_samples, n_features = X.shape
    scaled = X * np.sqrt(feature_weights)
    if n_samples <= n_features:
        kernel = scaled @ scaled.T
        kernel[np.diag_indices(n_samples)] += gamma * sample_weights
        return cho_solve(cho_factor(kernel, overwrite_a=True), Y)
    precision = 1 / sample_weights[:, None]
    weighted = scaled * np.sqrt(precision)
    normal = weighted.T @ weighted
    normal[np.diag_indices(n_features)] += gamma
    fitted = scaled @ cho_solve(cho_factor(normal, overwrite_a=True), scaled.T @ (Y * precision))
    return (Y - fitted) * precision / gamma
