"""IDFSMECRegressor: features and channels that go with a score, and the score from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import validate_data

from idfsmec._columns import channel_columns
from idfsmec._jobs import one_blas_thread
from idfsmec.prediction._penalised import PenalisedVotes, check_penalised
from idfsmec.selection._base import RankingSelector
from idfsmec.selection.idfsmec._weighing import weigh
from idfsmec.selection.idfsmec.estimator import PreparedTable, warn_of_unsolved, warn_of_unusable
from idfsmec.solver import ChannelFits, solve_channels, total_objective

Array = NDArray[np.float64]

#: Strengths of the penalty tried by default, per sample; a complete sample has norm 1 on average.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class IDFSMECRegressor(RegressorMixin, PenalisedVotes, RankingSelector):
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
        super().__init__(
            channels,
            lam,
            gamma,
            power,
            n_factors,
            cv,
            standardize,
            missing_correction,
            tol,
            max_iter,
            device,
        )
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha

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
        penalties = check_penalised("alpha", self.alpha, self.power, self.n_factors, self.cv)
        table = self._prepare(X, y)
        with one_blas_thread():
            moments = table.moments()
            fits = solve_channels([moments], [float(self.lam)], table.options)
            self._rank(fits, table)
            self.alpha_ = self._choose(penalties, table, groups)
            self._seen = self._evidence(table, moments, fits, 0, np.arange(table.codes.size))
            ((coef, intercept),) = _ridge_path(self._seen.of(table.X), table.codes, [self.alpha_])
        self._coef = coef * self._target_std
        self.coef_ = self._seen.for_complete_samples(self._coef[None])[0]
        self.centre_ = self._seen.centre
        self.intercept_ = float(intercept * self._target_std + self.target_mean_)
        return self

    def _prepare(self, X: ArrayLike, y: ArrayLike) -> PreparedTable:
        """Check parameters and input; standardise the score; learn the channels."""
        options = self._idfsmec()._options()
        checked, target = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            ensure_all_finite=False,
            y_numeric=True,
            ensure_min_samples=2,
        )
        if np.isinf(checked).any():
            self._refuse_non_finite(checked)
        target = np.asarray(target, dtype=np.float64)
        if not np.isfinite(target).all():
            raise ValueError("y contains NaN or infinity; drop samples without a score first.")
        self.target_mean_ = float(target.mean())
        self._target_std = float(target.std())
        if not self._target_std > 1e-13 * abs(self.target_mean_):
            raise ValueError("All values of y are equal; there is nothing to explain.")
        self.channel_names_, columns = channel_columns(
            self.channels, checked.shape[1], getattr(self, "feature_names_in_", None)
        )
        standardised = (target - self.target_mean_) / self._target_std
        return PreparedTable(checked, standardised, 1, columns, None, options)

    def _rank(self, fits: ChannelFits, table: PreparedTable) -> None:
        warn_of_unusable(self.channel_names_, fits.unusable[0])
        warn_of_unsolved(self.channel_names_, fits.kkt_residuals[0, 0], self.tol, self.max_iter)
        self.objective_ = fits.objectives[0, 0]
        self.feature_weights_ = fits.feature_weights[0, 0]
        self.kkt_residuals_ = fits.kkt_residuals[0, 0]
        self.n_iter_ = int(fits.n_iter.max())
        history = total_objective(fits.history[:, np.isfinite(self.objective_)], self.gamma)
        self.objective_history_ = np.minimum.accumulate(history)
        weighing = weigh(
            self.objective_,
            self.feature_weights_,
            fits.gains[0, 0],
            table.columns,
            gamma=self.gamma,
            channel_weighting=True,
        )
        self.channel_weights_ = weighing.channel_weights
        self._set_ranking(weighing.scores, weighing.order)

    def _inner_folds(
        self, table: PreparedTable, subjects: NDArray
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        n_folds = min(self.cv, np.unique(subjects).size)
        return list(GroupKFold(n_folds).split(table.X, groups=subjects)) if n_folds > 1 else []

    def _design(self, targets: NDArray) -> tuple[Array, Array]:
        return np.column_stack([np.ones_like(targets), targets]), np.array([1.0, 0.0])

    def _losses(
        self,
        seen: Array,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
        table: PreparedTable,
        strengths: list[float],
    ) -> Array:
        """Squared error on the held-out samples."""
        models = _ridge_path(seen[train], table.codes[train], strengths)
        truth = table.codes[test]
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
        said = self._seen.of(checked) @ self._coef + self.intercept_
        empty = self._seen.without_any(checked, "the mean score of training")
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
