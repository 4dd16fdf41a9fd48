"""Embedded methods rank by the weights of a model: RFS, FSOR, GRMOR, CD-LSR and group lasso.

All are regressions of the one-hot classes on the features. FSOR and GRMOR are IDFS-MEC with one
channel of all features and nothing missing, and share its solver.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from idfsmec._validation import Constraints, integer, number
from idfsmec.selection.base import CompleteSelector, ScoreSelector, count_features, ranks
from idfsmec.solver.scaling import Scaling
from idfsmec.solver.solve import ChannelFits, Options, solve_channels
from idfsmec.solver.sums import table_sums
from idfsmec.table.columns import channel_columns

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# RFS: norms are smoothed by this fraction of the largest row of W, or of Y for the residuals, so
# that weights stay finite and systems solvable, even where X fits Y exactly.
_SMOOTH_ROWS, _SMOOTH_RESIDUALS = 1e-9, 1e-6
# A feature below this fraction of the largest counts as vanished, and is left out of the iteration
# if it also shrinks by at least this factor each time.
_VANISHED, _SHRINKING = 1e-6, 0.95
# CD-LSR: a ridge that keeps systems solvable, fewest iterations, and those that have to be calm.
_RIDGE, _MIN_ITER, _CALM_ITER = 1e-7, 5, 3
# Errors below this share of what there is to explain are rounding.
_EXACT = 1e-9


def regression_data(
    X: Array, y: NDArray[Any], *, center: bool = True, scale: bool = True
) -> tuple[Array, Array, Mask]:
    """Centre features and one-hot classes or the scaled score, for regressions on the features."""
    scaling = Scaling.learn(X)
    is_score = y.dtype.kind == "f"
    Y = (y / y.std())[:, None] if is_score else np.eye(int(y.max()) + 1)[y.astype(np.intp)]
    constant = scaling.constant
    if not (center or scale):
        return X, Y, constant
    if not scale:
        scaling = Scaling(scaling.mean, np.where(constant, np.inf, 1.0))
    return scaling.apply(X), Y - Y.mean(axis=0), constant


@dataclass(eq=False, repr=False, kw_only=True)
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
        Most iterations; a warning says if they did not suffice.

    Attributes
    ----------
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        Row norms of W, exactly 0 for vanished features; ranks, 1 is best: vanished features follow
        by how near they are to entering the model (their correlation with the weighted residuals),
        constant ones come last; and the mask of the features that are kept.
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
        "tol": [number(0, closed="left")],
    }

    gamma: float = 1.0
    center: bool = True
    standardize: bool = False
    tol: float = 1e-6
    max_iter: int = 500

    def _rank(self, X: Array, y: Indices) -> None:
        X, Y, constant = regression_data(X, y, center=self.center, scale=self.standardize)
        coef, pull, history = _reweight(X, Y, self.gamma, self.tol, self.max_iter)
        scores = np.linalg.norm(coef, axis=1)
        scores[constant | (scores <= _VANISHED * scores.max())] = 0
        self.coef_, self.objective_history_ = coef, np.array(history)
        self.n_iter_ = len(history)
        self._set_ranking(scores, np.lexsort([-pull, -scores, constant]))


def _reweight(
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


def _solve_weighted(X: Array, Y: Array, gamma: float, q: Array, e: Array) -> Array:
    """V with (X diag(q) X' + gamma diag(e)) V = Y; W = diag(q) X'V is the ridge regression."""
    n_samples, n_features = X.shape
    scaled = X * np.sqrt(q)
    if n_samples <= n_features:
        kernel = scaled @ scaled.T
        kernel[np.diag_indices(n_samples)] += gamma * e
        return np.asarray(cho_solve(cho_factor(kernel, overwrite_a=True), Y))
    precision = 1 / e[:, None]
    weighted = scaled * np.sqrt(precision)
    normal = weighted.T @ weighted
    normal[np.diag_indices(n_features)] += gamma
    fitted = scaled @ cho_solve(cho_factor(normal, overwrite_a=True), scaled.T @ (Y * precision))
    return np.asarray((Y - fitted) * precision / gamma)


@dataclass(eq=False, repr=False, kw_only=True)
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
        Most iterations; a warning says if they did not suffice.

    Attributes
    ----------
    feature_weights_, scores_, ranking_, support_ : ndarray of shape (n_features,)
        theta, twice; ranks, 1 is best: features with weight 0 follow by what adding each alone
        to the model would gain, constant ones come last; and the mask of the features kept.
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

    standardize: bool = True
    tol: float = 1e-4
    max_iter: int = 10_000

    def _rank(self, X: Array, y: Indices) -> None:
        solved = self._solve(X, y, [float(getattr(self, "lam", 0.0))])
        self.feature_weights_ = solved.feature_weights[0, 0]
        self.objective_ = float(solved.objectives[0, 0, 0])
        self.objective_history_ = np.minimum.accumulate(solved.history[:, 0])
        self.kkt_residual_ = float(solved.kkt_residuals[0, 0, 0])
        self.n_iter_ = int(solved.n_iter[0, 0, 0])
        self._set_ranking(self.feature_weights_, _weights_order(solved, 0))

    def _solve(self, X: Array, y: Indices, lams: list[float]) -> ChannelFits:
        """Solve the problem of all features at every weight of redundancy."""
        one_fold = np.zeros((1, y.size), dtype=np.intp)
        n_classes, columns = int(y.max()) + 1, [np.arange(X.shape[1])]
        sums = table_sums(X, columns, y, one_fold, n_classes, n_folds=1)
        options = Options(standardize=self.standardize, tol=self.tol, max_iter=self.max_iter)
        solved = solve_channels([sums.moments()], lams, options)
        residual = float(solved.kkt_residuals.max())
        if residual > self.tol:
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol} in {self.max_iter} "
                f"iterations (residual {residual:.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return solved


def _weights_order(solved: ChannelFits, lam: int) -> Indices:
    """Order features by weight; those without by what adding each alone would gain."""
    return np.lexsort((-solved.gains[0, lam], -solved.feature_weights[0, lam]))


@dataclass(eq=False, repr=False, kw_only=True)
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

    lam: float = 1.0

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Mapping[str, Any]],
        *,
        held_out: Sequence[Indices] | None = None,
        groups: ArrayLike | None = None,
    ) -> Indices | None:
        """Rank features with several weights of redundancy, which share products and start.

        See :func:`idfsmec.selection.rank_grid`. None with other settings, or with folds.
        """
        if held_out is not None or any(set(setting) != {"lam"} for setting in settings):
            return None
        lams = [float(setting["lam"]) for setting in settings]
        solved = self._solve(*self._check_input(X, y), lams)
        return np.array([[ranks(_weights_order(solved, i)) for i in range(len(lams))]])


@dataclass(eq=False, repr=False, kw_only=True)
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
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features; ranks: the k chosen features by the
        norm of their row of W, then the others by how much adding each alone would reduce the
        error, then constant features; and the mask of the features that are kept.
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
    }

    n_restarts: int = 10
    tol: float = 1e-4
    max_iter: int = 1000
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def _rank(self, X: Array, y: Indices) -> None:
        self._search(*_products(X, y))

    def rank_grid(
        self,
        X: ArrayLike,
        y: ArrayLike,
        settings: Sequence[Mapping[str, Any]],
        *,
        held_out: Sequence[Indices] | None = None,
        groups: ArrayLike | None = None,
    ) -> Indices | None:
        """Rank features for several numbers of them, which share the products of features.

        See :func:`idfsmec.selection.rank_grid`. None with other settings, or with folds.
        """
        counts = {"n_features_to_select"}
        if held_out is not None or any(set(setting) != counts for setting in settings):
            return None
        products, rankings = _products(*self._check_input(X, y)), []
        for setting in settings:
            self.set_params(**setting)
            self._search(*products)
            rankings.append(self.ranking_)
        return np.array([rankings])

    def _search(self, A: Array, B: Array, y2: float, usable: Indices, constant: Mask) -> None:
        """Rank by the best of several starts."""
        k = min(count_features(self.n_features_to_select, constant.size), usable.size)
        rng = check_random_state(self.random_state)
        ends = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_descend)(A, B, y2, start[:k], self.tol, self.max_iter)
            for start in [rng.permutation(usable.size) for _ in range(self.n_restarts)]
        )
        supports, rows, errors, n_iter = zip(*ends, strict=True)
        self.objectives_ = np.array(errors)
        # Of starts that fit exactly, but for rounding, the first counts.
        best = int(np.argmin(np.maximum(self.objectives_, _EXACT * y2)))
        self.objective_, self.n_iter_ = errors[best], n_iter[best]
        support = usable[supports[best]]
        self.coef_ = np.zeros((constant.size, B.shape[1]))
        self.coef_[support] = rows[best]
        outside, gain = np.ones(constant.size, dtype=bool), np.zeros(constant.size)
        outside[support] = False
        # The squared correlation with the residuals orders features as what adding each brings.
        gain[usable] = np.sum((A[:, supports[best]] @ rows[best] - B) ** 2, axis=1)
        norms = np.linalg.norm(self.coef_, axis=1)
        self._set_order(np.lexsort([-gain, -norms, outside, constant]))


def _products(X: Array, y: Indices) -> tuple[Array, Array, float, Indices, Mask]:
    """Return Z'Z, Z'Y and the squared norm of Y for standardised features Z that vary."""
    Z, Y, constant = regression_data(X, y)
    usable = np.flatnonzero(~constant)
    Z = Z[:, usable]
    return Z.T @ Z, Z.T @ Y, float(np.sum(Y**2)), usable, constant


def _descend(
    A: Array, B: Array, y2: float, support: Indices, tol: float, max_iter: int
) -> tuple[Indices, Array, float, int]:
    """Exchange features and refit; return them, rows of W, the squared error and iterations."""
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
    return support, rows, error, len(changes)


def _refit(A: Array, B: Array, y2: float, support: Indices) -> tuple[Array, float]:
    """Least squares on the support: rows of W and the squared error."""
    gram = A[np.ix_(support, support)] + _RIDGE * np.eye(support.size)
    rows = cho_solve(cho_factor(gram), B[support]) if support.size else B[support]
    # With (gram + ridge) V = B_S, V' gram V is V' B_S less the ridge's share.
    error = y2 - np.vdot(rows, B[support]) - _RIDGE * np.vdot(rows, rows)
    return rows, max(float(error), 0.0)


def _sweep(A: Array, B: Array, support: Indices, rows: Array) -> Indices:
    """Move each row V_j of W in turn to the feature where it costs least."""
    support = support.copy()
    left = A[:, support] @ rows - B
    taken = np.zeros(len(A), dtype=bool)
    taken[support] = True
    for j, row in enumerate(rows):
        old = support[j]
        taken[old] = False
        # The squared error of row j at each feature, up to a constant and a factor of 2; the
        # diagonal of A is constant.
        cost = left @ row - (row @ row) * A[old]
        cost[taken] = np.inf
        new = support[j] = int(cost.argmin())
        taken[new] = True
        if new != old:
            left += np.outer(A[new] - A[old], row)
    return support


@dataclass(eq=False, repr=False, kw_only=True)
class GroupLasso(ScoreSelector):
    """Group lasso over channels.

    Solves ``min ||X W - Y||^2 / (2 n) + penalty sum_v sqrt(d_v) ||W_v||`` for standardised X and
    centred one-hot classes Y, or the standardised score, where W_v are the rows of W of the d_v
    features of channel v.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Channel of every feature, as in :class:`IDFSMEC`.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    numeric : bool, default=False
        Whether y is a score.
    alpha : float, default=0.1
        The penalty, as a share of the least one at which all channels vanish.
    tol : float, default=1e-4
        Stop when the duality gap is at most this share of what there is to explain.
    max_iter : int, default=10000
        Most passes over the channels; a warning says if they did not suffice.

    Attributes
    ----------
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        Row norms of W, 0 for features of vanished channels; ranks, 1 is best: features of vanished
        channels follow by how near their channel is to entering the model, those of a channel by
        their correlation with the residuals, constant features come last; and the mask of the
        features that are kept.
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

    _parameter_constraints: ClassVar[Constraints] = {"alpha": [number(0)]}

    channels: ArrayLike | None = field(default=None, kw_only=False)
    alpha: float = 0.1
    tol: float = 1e-4
    max_iter: int = 10_000

    def _rank(self, X: Array, y: NDArray[Any]) -> None:
        names = getattr(self, "feature_names_in_", None)
        self.channel_names_, columns = channel_columns(self.channels, X.shape[1], names)
        Z, Y, constant = regression_data(X, y)
        A, B, y2 = Z.T @ Z / y.size, Z.T @ Y / y.size, float(np.sum(Y**2)) / y.size
        self._minimise(A, B, y2, columns)
        self.channel_norms_ = _norms(self.coef_, columns)
        residuals = B - A @ self.coef_
        pull = np.empty(X.shape[1])
        for channel, norm in zip(columns, _norms(residuals, columns), strict=True):
            pull[channel] = norm / np.sqrt(channel.size)
        scores = np.linalg.norm(self.coef_, axis=1)
        correlation = np.linalg.norm(residuals, axis=1)
        # Channels in the model all pull alike but for rounding: scores order their features.
        self._set_ranking(scores, np.lexsort([-correlation, -pull, -scores, constant]))

    def _minimise(self, A: Array, B: Array, y2: float, columns: list[Indices]) -> None:
        """Block coordinate descent: a proximal step in the rows of one channel after the other."""
        sizes = np.sqrt([channel.size for channel in columns])
        self.penalty_ = float(self.alpha * np.max(_norms(B, columns) / sizes))
        blocks = []
        for channel, size in zip(columns, sizes, strict=True):
            curvature = float(np.linalg.eigvalsh(A[np.ix_(channel, channel)])[-1])
            if curvature > 0:  # some of its features vary
                blocks.append((channel, A[channel], size, curvature))
        W, gradient, self.n_iter_ = np.zeros_like(B), -B, 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            for channel, product, size, curvature in blocks:
                step = W[channel] - gradient[channel] / curvature
                norm, threshold = np.linalg.norm(step), self.penalty_ * size / curvature
                rows = step * (1 - threshold / norm) if norm > threshold else np.zeros_like(step)
                change = rows - W[channel]
                if change.any():
                    gradient += product.T @ change
                    W[channel] = rows
            explained = float(np.vdot(W, B))
            squared = y2 - explained + float(np.vdot(W, gradient))  # mean square of the residuals
            primal = 0.5 * squared + self.penalty_ * float(sizes @ _norms(W, columns))
            largest = float(np.max(_norms(gradient, columns) / sizes))
            # The dual's value at the residuals, scaled down until they are feasible.
            scale = min(1.0, self.penalty_ / largest) if largest > 0 else 1.0
            self.dual_gap_ = primal - (scale * (y2 - explained) - 0.5 * scale**2 * squared)
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


def _norms(rows: Array, columns: list[Indices]) -> Array:
    """Norm of the rows of each channel."""
    return np.array([np.linalg.norm(rows[channel]) for channel in columns])
