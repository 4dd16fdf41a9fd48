"""RFS: regression on the classes in which whole features vanish and outliers weigh little."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from idfsmec._parameters import Constraints, integer, number
from idfsmec.selection._base import ranks
from idfsmec.selection.rivals._least_deviations import least_deviations
from idfsmec.selection.rivals._regression import blas_threads_for, one_hot
from idfsmec.selection.rivals._sharing import SharingSelector
from idfsmec.solver import Scaling

# Norms are smoothed by this fraction of the largest row of W, or of Y for the residuals, so
# that weights stay finite and systems solvable, even where X fits Y exactly.
_SMOOTH_ROWS = 1e-9
_SMOOTH_RESIDUALS = 1e-6
# A feature below this fraction of the largest counts as vanished ...
_VANISHED = 1e-6
# ... and is left out of the iteration if it also shrinks by at least this factor each time.
_SHRINKING = 0.95
# With two classes: how near to the minimum it has to be known to be, as a share of tol, and no
# nearer than rounding allows; short of the second no more than rounding kept it away.
_OF_TOL, _LEAST_GAP, _STUCK = 1e-3, 1e-10, 1e-6
# Rows (-a, a) have this times the norm of a.
_PER_COLUMN = 2**0.5


class RFS(SharingSelector):
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
    tol : float, default=1e-5
        Stop when an iteration lowers the objective by less than this fraction; with two classes,
        when the objective is known to be within a thousandth of it of the minimum.
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
    Two classes, centred, make a linear program: an interior-point method comes near its minimum,
    and moves along its edges end there, exactly. Where it leaves no residuals, it is solved in the
    features beyond the number of samples. Otherwise: iteratively reweighted least squares with
    momentum. Each step of both solves a linear system in samples or in features, whichever are
    fewer, and needs no diagonal matrix of the size of the other.

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
        tol: float = 1e-5,
        max_iter: int = 500,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.gamma = gamma
        self.center = center
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        found = _solve(self, _prepare(self, X, y))
        self.coef_, self.objective_history_ = found.coef, np.array(found.history)
        self.n_iter_ = len(found.history)
        self._set_ranking(found.scores, found.order)

    def _rank_alike(
        self, selectors: Sequence[Self], X: NDArray[np.float64], y: NDArray[np.intp]
    ) -> list[NDArray[np.intp]]:
        """Where X fits Y exactly, smaller penalties are not solved again.

        If W minimises the objective at one gamma and leaves no residuals, then no W' does better
        at a smaller one: it would have to be smaller than W, and would then be better at the first
        gamma too. Features are ranked as at the larger gamma, where a fit of its own may differ
        within ``tol``.
        """
        found = {}
        prepared: dict[tuple[bool, bool], _Prepared] = {}
        exact: dict[tuple[bool, bool, float, int], NDArray[np.intp]] = {}
        for place in sorted(range(len(selectors)), key=lambda place: -selectors[place].gamma):
            one = selectors[place]
            alike = (one.center, one.standardize, one.tol, one.max_iter)
            if alike in exact:
                found[place] = exact[alike]
                continue
            if alike[:2] not in prepared:
                prepared[alike[:2]] = _prepare(one, X, y)
            solved = _solve(one, prepared[alike[:2]])
            found[place] = ranks(solved.order)
            if solved.exact:
                exact[alike] = found[place]
        return [found[place] for place in range(len(selectors))]


class _Found(NamedTuple):
    """W, scores and order of the features, the course of the objective, and if X W is Y."""

    coef: NDArray[np.float64]
    scores: NDArray[np.float64]
    order: NDArray[np.intp]
    history: list[float]
    exact: bool


class _Prepared(NamedTuple):
    """X and Y as they are fitted, and which features are constant."""

    X: NDArray[np.float64]
    Y: NDArray[np.float64]
    constant: NDArray[np.bool_]


def _prepare(selector: RFS, X: NDArray[np.float64], y: NDArray[np.intp]) -> _Prepared:
    scaling = Scaling.learn(X)
    constant = scaling.constant
    Y = one_hot(y)
    if selector.center and not selector.standardize:
        scaling = replace(scaling, unit=np.where(constant, np.inf, 1.0))
    if selector.center or selector.standardize:
        X, Y = scaling.apply(X), Y - Y.mean(axis=0)
    return _Prepared(X, Y, constant)


def _solve(selector: RFS, prepared: _Prepared) -> _Found:
    X, Y, constant = prepared
    minimise = _minimise_for_two if _is_one_column(Y) else _minimise
    with blas_threads_for(min(X.shape)):
        coef, entering, history = minimise(X, Y, selector.gamma, selector.tol, selector.max_iter)
    scores = np.linalg.norm(coef, axis=1)
    exact = bool((np.linalg.norm(Y - X @ coef, axis=1) <= _residual_floor(Y)).all())
    scores[constant | (scores <= _VANISHED * scores.max())] = 0
    return _Found(coef, scores, np.lexsort([-entering, -scores, constant]), history, exact)


def _is_one_column(Y: NDArray[np.float64]) -> bool:
    """Whether there are two classes, centred, so that the columns are one another's negatives."""
    return Y.shape[1] == 2 and np.allclose(Y.sum(axis=1), 0.0, atol=1e-12)


def _minimise_for_two(
    X: NDArray[np.float64], Y: NDArray[np.float64], gamma: float, tol: float, max_iter: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[float]]:
    """As :func:`_minimise`, where rows have one number in effect: a linear program."""
    tol = max(_OF_TOL * tol, _LEAST_GAP)
    found = least_deviations(X, Y[:, 1], gamma, tol=tol, max_iter=max_iter)
    if found.gap > max(tol, _STUCK):
        _warn_of_iterations(max_iter)
    coef = np.column_stack([-found.w, found.w])
    return coef, np.abs(found.pull), [_PER_COLUMN * one for one in found.history]


def _residual_floor(Y: NDArray[np.float64]) -> float:
    """What counts as no residual."""
    return float(_SMOOTH_RESIDUALS * np.linalg.norm(Y, axis=1).max())


def _minimise(
    X: NDArray[np.float64], Y: NDArray[np.float64], gamma: float, tol: float, max_iter: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[float]]:
    """Iterate; return W, the features' pull on the residuals (1 enters) and the objectives."""
    coef = np.zeros((X.shape[1], Y.shape[1]))
    active = np.arange(X.shape[1])
    X_active = X
    weights = _Momentum(np.ones(X.shape[1]), np.ones(X.shape[0]))
    residual_floor = _residual_floor(Y)
    history: list[float] = []
    for _ in range(max_iter):
        dual = _solve_weighted(X_active, Y, gamma, weights.features, weights.samples)
        pull = X_active.T @ dual
        W = weights.features[:, None] * pull
        row_norms = np.linalg.norm(W, axis=1)
        residual_norms = np.linalg.norm(Y - X_active @ W, axis=1)
        objective = float(residual_norms.sum() + gamma * row_norms.sum())
        if history and objective > history[-1] and weights.ahead:
            weights.step_back()
            continue
        history.append(objective)
        settled = len(history) > 1 and history[-2] - history[-1] <= tol * history[-1]
        if (settled and not weights.ahead) or not row_norms.any():  # or X tells nothing apart
            break
        if settled:
            weights.rest()  # a push may be idle where a plain step is not
        weights.advance(
            2 * np.hypot(row_norms, _SMOOTH_ROWS * row_norms.max()),
            2 * np.hypot(residual_norms, residual_floor),
        )
        keep = (row_norms > _VANISHED * row_norms.max()) | (
            2 * np.linalg.norm(pull, axis=1) > _SHRINKING
        )
        if keep.sum() <= 0.9 * keep.size:
            active, W = active[keep], W[keep]
            weights.keep(keep)
            X_active = X[:, active]
    else:
        _warn_of_iterations(max_iter)
    coef[active] = W
    return coef, 2 * np.linalg.norm(X.T @ dual, axis=1), history


def _warn_of_iterations(max_iter: int) -> None:
    warnings.warn(
        f"RFS did not converge in max_iter={max_iter} iterations; the ranking may still "
        "change. Raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=5,
    )


class _Momentum:
    """Weights of features and samples, pushed on in the direction in which they last moved.

    Plain reweighting creeps: weights of features that vanish fall by the same factor again and
    again. Accelerated by Nesterov's sequence on the logarithms of the weights it needs less than
    half the iterations and ends lower. Where the objective rises, the push is taken back and
    the sequence begins anew.
    """

    def __init__(self, features: NDArray[np.float64], samples: NDArray[np.float64]) -> None:
        self.features, self.samples = features, samples
        self._plain = features, samples
        self._sequence = 1.0
        self.ahead = False

    def advance(self, features: NDArray[np.float64], samples: NDArray[np.float64]) -> None:
        """Take the weights that plain reweighting gives, and push them on."""
        following = 0.5 + np.sqrt(0.25 + self._sequence**2)
        push = (self._sequence - 1.0) / following
        self.features = features * (features / self._plain[0]) ** push
        self.samples = samples * (samples / self._plain[1]) ** push
        self._plain, self._sequence, self.ahead = (features, samples), following, push > 0

    def rest(self) -> None:
        """Leave out the next push and begin the sequence anew."""
        self._sequence = 1.0

    def step_back(self) -> None:
        """Return to plain reweighting, which cannot raise the objective."""
        self.features, self.samples = self._plain
        self._sequence, self.ahead = 1.0, False

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Forget features that have vanished."""
        self.features = self.features[which]
        self._plain = self._plain[0][which], self._plain[1]


def _solve_weighted(
    X: NDArray[np.float64],
    Y: NDArray[np.float64],
    gamma: float,
    feature_weights: NDArray[np.float64],
    sample_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Dual variables V of ridge regression weighted per feature (q) and per sample (e).

    W = diag(q) X'V solves it, with (X diag(q) X' + gamma diag(e)) V = Y.
    """
    n_samples, n_features = X.shape
    if n_samples <= n_features:
        scaled = X * np.sqrt(feature_weights)
        kernel = scaled @ scaled.T
        kernel[np.diag_indices(n_samples)] += gamma * sample_weights
        factor = cho_factor(kernel, overwrite_a=True, check_finite=False)
        return cho_solve(factor, Y, check_finite=False)
    scaled = X * np.sqrt(feature_weights)
    precision = 1 / sample_weights[:, None]
    weighted = scaled * np.sqrt(precision)
    normal = weighted.T @ weighted
    normal[np.diag_indices(n_features)] += gamma
    factor = cho_factor(normal, overwrite_a=True, check_finite=False)
    fitted = scaled @ cho_solve(factor, scaled.T @ (Y * precision), check_finite=False)
    return (Y - fitted) * precision / gamma
