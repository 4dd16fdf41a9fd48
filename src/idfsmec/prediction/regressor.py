"""IDFSMECRegressor: rank features and channels by a score, and predict the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.model_selection import GroupKFold

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import checks_parameters, groups_of, warn_without_groups
from idfsmec.prediction.classifier import ALPHAS, ImputedLinear, subject_codes
from idfsmec.selection.base import RankingSelector
from idfsmec.selection.idfsmec import ChannelTable
from idfsmec.solver import is_constant

Array = NDArray[np.float64]


class IDFSMECRegressor(RegressorMixin, ImputedLinear, RankingSelector):
    """:class:`IDFSMEC` for a continuous score, such as BDI or PHQ-9, and its prediction.

    The target of every channel's regression is the standardised score in place of the one-hot
    labels; all else is as in :class:`IDFSMEC`. Prediction is as in :class:`IDFSMECClassifier`:
    one linear model of imputed samples, the average of candidates by their squared error on
    held-out subjects.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature, as in :class:`IDFSMEC`.
    n_features_to_select : int or float, default=20
        How many features ``transform`` keeps. The prediction uses all, by their scores.
    lam, gamma : float
        Of :class:`IDFSMEC`.
    n_factors : int or "auto", default=5
        Of :class:`ChannelImputer`.
    alphas : sequence of float, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        Penalties of the candidates, where a sample's squared norm is 1 on average.
    cv : int, default=5
        Number of inner folds; fewer where there are fewer subjects.
    tol, max_iter, device
        Of :class:`IDFSMEC`.

    Attributes
    ----------
    scores_, ranking_, support_, channel_names_, channel_weights_, feature_weights_, objective_
        As of :class:`IDFSMEC`.
    held_out_loss_, objective_history_, kkt_residuals_, n_iter_
        As of :class:`IDFSMEC`.
    coef_ : ndarray of shape (n_features,)
        Of the features as given: ``(x - centre_) @ coef_ + intercept_`` is the prediction for a
        complete sample.
    centre_ : ndarray of shape (n_features,)
        Mean of each feature.
    intercept_ : float
        Mean score in training: the answer for a sample without any channel.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMECRegressor
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
        lam: float = 1.0,
        gamma: float = 2.0,
        n_factors: int | str = 5,
        alphas: Sequence[float] = ALPHAS,
        cv: int = 5,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.gamma = gamma
        self.n_factors = n_factors
        self.alphas = alphas
        self.cv = cv
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
            Subject of every sample; inner folds keep subjects together. By default an index of X
            named "subject"; with neither, every sample is a subject of its own, and a warning
            says once that subjects may be split.

        Returns
        -------
        self : IDFSMECRegressor
        """
        table = self._target_table(X, y, groups)
        if table.groups is None:
            warn_without_groups(type(self).__name__, stacklevel=4)
        n = table.target.size
        subjects = subject_codes(table)
        n_subjects = int(subjects.max()) + 1
        n_folds = min(self.cv, n_subjects)
        with one_blas_thread():
            fits = table.solve([self.lam])
            fits.warn()
            weighing = self._hold(fits)
            self._set_ranking(weighing.scores, weighing.order)
            splits = GroupKFold(n_folds).split(table.X, groups=subjects) if n_folds > 1 else ()
            targets, ones = table.target[:, None], np.ones(n_subjects)
            self._learn(fits, list(splits), subjects, targets, np.ones(n), ones)
        self._coef *= self._target_std
        self.centre_ = self._view.scaling.mean
        self.coef_ = self._coef[:, 0] / self._view.scaling.unit
        return self

    def _target_table(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> ChannelTable:
        """Check the input; standardise the score; learn the channels."""
        checked, given = self._check_samples(X, y, y_numeric=True)
        target = np.asarray(given, dtype=np.float64)
        if not np.isfinite(target).all():
            raise ValueError("y contains NaN or infinity; drop samples without a score first.")
        mean, std = target.mean(), target.std()
        if is_constant(mean, std):
            raise ValueError("All values of y are equal; there is nothing to explain.")
        self.intercept_, self._target_std = float(mean), float(std)
        names = getattr(self, "feature_names_in_", None)
        standardised = (target - mean) / std
        how = {"groups": groups_of(X, groups), **self._options()}
        table = ChannelTable.from_samples(
            checked, standardised, self.channels, names, numeric=True, **how
        )
        self.channel_names_ = table.channel_names
        return table

    def _centre(self, X: Array, targets: NDArray, mean: Array) -> Array:
        return mean

    def predict(self, X: ArrayLike) -> Array:
        """Score of each sample from the channels it has.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A sample without any channel gets the mean score, with
            a warning.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        checked = self._check(X)
        self._view.warn_of_empty(checked, "the mean score of training")
        return np.asarray(self._view.impute(checked) @ self._coef[:, 0] + self.intercept_)

    def channel_votes(self, X: ArrayLike) -> Array:
        """What each channel adds to the prediction, (n_samples, n_channels); NaN where missing.

        See :meth:`IDFSMECClassifier.channel_votes`; together with ``intercept_`` the observed ones
        sum to :meth:`predict`.
        """
        return self._view.votes(self._check(X), self._coef)[:, :, 0]
