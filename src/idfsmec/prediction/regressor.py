"""IDFSMECRegressor: features and channels that go with a score, and the score from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.model_selection import GroupKFold

from idfsmec._groups import groups_of
from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import Constraints, checks_parameters
from idfsmec.prediction._votes import STRENGTHS, ChannelVotes
from idfsmec.selection import RankingSelector
from idfsmec.selection.idfsmec.engine import Engine
from idfsmec.solver import is_constant

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Strengths of the penalty tried by default, per sample; a complete sample has norm 1 on average.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class IDFSMECRegressor(RegressorMixin, ChannelVotes, RankingSelector):
    """:class:`IDFSMEC` for a continuous score, such as BDI or PHQ-9, and its prediction.

    The target of every channel's regression is the standardised score in place of the one-hot
    labels; all else is as in :class:`IDFSMEC`. The prediction adds up what the channels of a
    sample say, as :class:`IDFSMECClassifier` does, with ridge in place of logistic regression.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature, as in :class:`IDFSMEC`.
    n_features_to_select : int or float, default=20
        How many features ``transform`` keeps. The prediction uses all, by their scores.
    lam, gamma : float
        Of :class:`IDFSMEC`.
    power : float, default=0.25
        How much the scores decide in the prediction, see :class:`IDFSMECClassifier`.
    n_factors : int, default=3
        Number of factors that channels may have in common, see :class:`IDFSMECClassifier`.
    alpha : float or sequence of float, default=(1e-4, 1e-3, 1e-2, 1e-1, 1)
        Strength of the penalty per sample. Of several, inner folds choose the one with the
        smallest squared error.
    cv : int, default=5
        Number of inner folds; fewer where there are fewer subjects.
    standardize, missing_correction, tol, max_iter, device
        Of :class:`IDFSMEC`.

    Attributes
    ----------
    scores_, ranking_, support_, channel_names_, channel_weights_, feature_weights_, objective_
        As of :class:`IDFSMEC`.
    objective_history_, kkt_residuals_, n_iter_
        As of :class:`IDFSMEC`.
    coef_ : ndarray of shape (n_features,)
        Of the features as given, for samples without a gap: the prediction is
        ``(x - centre_) @ coef_ + intercept_``.
    centre_ : ndarray of shape (n_features,)
        What a feature is expected to be at the mean score.
    intercept_ : float
        Prediction for a sample whose features are all at ``centre_``.
    target_mean_ : float
        Mean score in training: the answer for a sample without any channel.
    alpha_ : float
        The strength in use.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.prediction import IDFSMECRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> bdi = 15 + 8 * X[:, 4] + rng.normal(size=100)
    >>> X[rng.random(100) < 0.3, :3] = np.nan
    >>> model = IDFSMECRegressor(["F3"] * 3 + ["F4"] * 3, n_features_to_select=1).fit(X, bdi)
    >>> model.get_support(indices=True), model.score(X, bdi) > 0.9
    (array([4]), True)
    """

    _parameter_constraints: ClassVar[Constraints] = {"alpha": STRENGTHS}

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        n_features_to_select: int | float = 20,
        lam: float = 0.01,
        gamma: float = 1.1,
        power: float = 0.25,
        n_factors: int = 3,
        alpha: float | Sequence[float] = PENALTIES,
        cv: int = 5,
        standardize: bool = True,
        missing_correction: str | None = "ipw",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.gamma = gamma
        self.power = power
        self.n_factors = n_factors
        self.alpha = alpha
        self.cv = cv
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Rank features and channels by the score, and learn to predict it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            The score.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; inner folds keep subjects together.

        Returns
        -------
        self : IDFSMECRegressor
        """
        engine = self._target_engine(X, y, groups)
        with one_blas_thread():
            fits = engine.solve([self.lam])
            fits.warn()
            weighing = self._hold(fits)
            self._set_ranking(weighing.scores, weighing.order)
            self.alpha_ = self._choose(self.alpha, engine, groups)
            self._view = self._learn_view(fits, 0, np.arange(engine.target.size))
            seen = self._view.of(engine.X)
            ((coef, intercept),) = _ridge_path(seen, engine.target, [self.alpha_])
        self._coef = coef * self._target_std
        self.coef_ = self._view.for_complete_samples(self._coef[None])[0]
        self.centre_ = self._view.centre
        self.intercept_ = float(intercept * self._target_std + self.target_mean_)
        return self

    def _target_engine(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> Engine:
        """Check the input; standardise the score; learn the channels."""
        checked, given = self._check_samples(X, y, y_numeric=True)
        target = np.asarray(given, dtype=np.float64)
        if not np.isfinite(target).all():
            raise ValueError("y contains NaN or infinity; drop samples without a score first.")
        mean, std = target.mean(), target.std()
        if is_constant(mean, std):
            raise ValueError("All values of y are equal; there is nothing to explain.")
        self.target_mean_, self._target_std = float(mean), float(std)
        names = getattr(self, "feature_names_in_", None)
        standardised = (target - mean) / std
        how = {"groups": groups_of(X, groups), **self._options()}
        engine = Engine.for_target(checked, standardised, self.channels, names, **how)
        self.channel_names_ = engine.channel_names
        return engine

    def _inner_folds(self, engine: Engine, subjects: NDArray) -> list[tuple[Indices, Indices]]:
        n_folds = min(self.cv, np.unique(subjects).size)
        return list(GroupKFold(n_folds).split(engine.X, groups=subjects)) if n_folds > 1 else []

    def _design(self, targets: NDArray) -> tuple[Array, Array]:
        return np.column_stack([np.ones_like(targets), targets]), np.array([1.0, 0.0])

    def _losses(
        self, seen: Array, train: Indices, test: Indices, engine: Engine, strengths: list[float]
    ) -> Array:
        """Squared error on the held-out samples."""
        models = _ridge_path(seen[train], engine.target[train], strengths)
        truth = engine.target[test]
        return np.array([np.sum((seen[test] @ c + b - truth) ** 2) for c, b in models])

    def predict(self, X: ArrayLike) -> Array:
        """Score of each sample from the channels it has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any channel gets the mean score.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        checked = self._check(X)
        said = self._view.of(checked) @ self._coef + self.intercept_
        empty = self._view.without_any(checked, "the mean score of training")
        said[empty] = self.target_mean_
        return said


def _ridge_path(X: Array, y: Array, penalties: Sequence[float]) -> list[tuple[Array, float]]:
    """Coefficients and intercepts of ridge regression, all penalties from one decomposition.

    Examples
    --------
    >>> ((coef, intercept),) = _ridge_path(np.array([[0.0], [2.0]]), np.array([1.0, 5.0]), [1.0])
    >>> coef, round(intercept, 6)
    (array([1.]), 2.0)
    """
    mean, middle = X.mean(axis=0), float(y.mean())
    left, stretch, right = np.linalg.svd(X - mean, full_matrices=False)
    toward = left.T @ (y - middle)
    found = []
    for penalty in penalties:
        coef = (stretch / (stretch**2 + penalty * y.size) * toward) @ right
        found.append((coef, middle - float(mean @ coef)))
    return found
