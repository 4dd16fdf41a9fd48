"""IDFSMEC: features and channels ranked from samples in which channels are missing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from idfsmec._columns import channel_columns
from idfsmec._jobs import available_threads, one_blas_thread
from idfsmec._parameters import checks_parameters
from idfsmec.selection._base import RankingSelector, encode_labels
from idfsmec.selection.idfsmec._weighing import weigh
from idfsmec.solver import (
    ChannelFits,
    Options,
    TableMoments,
    solve_channels,
    table_moments,
    total_objective,
)


class IDFSMEC(RankingSelector):
    """Feature selection with missing channels (IDFS-MEC).

    Every channel is fitted by orthogonal regression on the samples that have it; the regression
    weighs its features (``feature_weights_``), avoids features that repeat each other, and its
    final loss weighs the channel (``channel_weights_``). A feature's score is the product of both
    weights. Values at samples where a channel is missing are never used and never invented. A
    channel is any block of features that goes missing together: an electrode, an audio recording,
    a questionnaire.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature. By default the part of the column name before the last ``"__"``; if
        the columns have no such names, all features form one channel.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    lam : float, default=1.0
        Price of redundancy between the features of a channel, >= 0. Small values give few
        features per channel.
    gamma : float, default=2.0
        How evenly channels are weighted, > 1. Close to 1 the best channel takes all.
    standardize : bool, default=True
        Scale every feature to unit variance over its observed samples. The objective is not
        scale invariant, so switch this off only if your features have comparable units.
    missing_correction : {"ipw", None}, default="ipw"
        ``"ipw"`` divides a channel's loss by the share of samples that have it. ``None`` is the
        paper's plain sum, which favours channels that are often missing.
    channel_weighting : bool, default=True
        False weighs all channels alike (an ablation).
    missing_indicator : bool, default=True
        False fills missing values with the mean and treats them as observed (an ablation).
    tol : float, default=1e-6
        A channel is solved when its first-order conditions hold to this relative accuracy.
    max_iter : int, default=10000
        Iterations after which a channel is given up, with a warning.
    device : str, optional
        Solve on this PyTorch device, ``"cuda"`` for instance (extra ``gpu``). Worth it for grids
        of thousands of problems; a single fit is faster without.

    Attributes
    ----------
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    channel_weights_ : ndarray of shape (n_channels,)
        alpha; sums to 1. Zero for channels that carry nothing.
    feature_weights_ : ndarray of shape (n_features,)
        theta; sums to 1 within each channel that carries something.
    scores_ : ndarray of shape (n_features,)
        ``alpha * theta``.
    ranking_ : ndarray of shape (n_features,)
        1 is best. By score; features with score 0 by what adding them alone to their channel's
        model would gain, weighted by alpha; then constant features and those of channels that
        carry nothing; ties in column order.
    support_ : ndarray of shape (n_features,)
    objective_ : ndarray of shape (n_channels,)
        Final loss U of every channel; infinite for channels that carry nothing.
    objective_history_ : ndarray of shape (n_iter + 1,)
        The weighted sum over channels after each iteration; never rises.
    kkt_residuals_ : ndarray of shape (n_channels,)
        How well the first-order conditions hold.
    n_iter_ : int
        Iterations of the slowest channel.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    References
    ----------
    .. [1] Gong, Dong, Xu, Wei, Liu, Zhuo, "Incomplete Depression Feature
       Selection with Missing EEG Channels", arXiv:2511.11651.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import IDFSMEC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "depressed"], 50)
    >>> names = [f"{ch}__{feature}" for ch in ("F3", "Cz", "O2") for feature in ("theta", "alpha")]
    >>> X = pd.DataFrame(rng.normal(size=(100, 6)), columns=names)
    >>> X["F3__alpha"] += y == "depressed"
    >>> X.loc[rng.random(100) < 0.3, ["F3__theta", "F3__alpha"]] = np.nan  # F3 fell off
    >>> selector = IDFSMEC(n_features_to_select=1).fit(X, y)
    >>> selector.get_feature_names_out()
    array(['F3__alpha'], dtype=object)
    """

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        n_features_to_select: int | float = 20,
        lam: float = 1.0,
        gamma: float = 2.0,
        standardize: bool = True,
        missing_correction: str | None = "ipw",
        channel_weighting: bool = True,
        missing_indicator: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.gamma = gamma
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.channel_weighting = channel_weighting
        self.missing_indicator = missing_indicator
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> IDFSMEC:
        """Rank features and channels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing. A channel some of whose features are NaN at a sample
            counts as missing there.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; the indicator of who has a channel generalises to them.

        Returns
        -------
        self : IDFSMEC
        """
        table = self._prepare(X, y, sample_weight)
        with one_blas_thread():
            fits = solve_channels([table.moments()], [float(self.lam)], table.options)
        self._warn(fits)
        self._weigh(fits, table.columns)
        return self

    def _prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> PreparedTable:
        """Check parameters and input; learn classes and channels."""
        options = self._options()
        checked, labels = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2
        )
        if np.isinf(checked).any():
            self._refuse_non_finite(checked)
        codes, self.classes_ = encode_labels(labels)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, checked, dtype=np.float64, ensure_non_negative=True
            )
        self.channel_names_, columns = channel_columns(
            self.channels, checked.shape[1], getattr(self, "feature_names_in_", None)
        )
        return PreparedTable(checked, codes, self.classes_.size, columns, weights, options)

    def _options(self) -> Options:
        _check(self.lam, "lam", Real, lambda v: 0 <= v < np.inf, "a finite number >= 0")
        _check(self.gamma, "gamma", Real, lambda v: 1 < v < np.inf, "a finite number > 1")
        _check(self.tol, "tol", Real, lambda v: v > 0, "a number > 0")
        _check(self.max_iter, "max_iter", Integral, lambda v: v >= 1, "an integer >= 1")
        if self.missing_correction not in ("ipw", None):
            raise ValueError(
                f'missing_correction must be "ipw" or None, got {self.missing_correction!r}.'
            )
        return Options(
            standardize=bool(self.standardize),
            inverse_probability=self.missing_correction == "ipw",
            missing_indicator=bool(self.missing_indicator),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            device=self.device,
            n_threads=available_threads(),
        )

    def _warn(self, fits: ChannelFits) -> None:
        warn_of_unusable(self.channel_names_, fits.unusable[0])
        warn_of_unsolved(self.channel_names_, fits.kkt_residuals[0, 0], self.tol, self.max_iter)

    def _weigh(self, fits: ChannelFits, columns: list[NDArray[np.intp]]) -> None:
        """Channel weights, scores and ranking from the solved channels."""
        weighting = bool(self.channel_weighting)
        self.objective_ = fits.objectives[0, 0]
        self.feature_weights_ = fits.feature_weights[0, 0]
        self.kkt_residuals_ = fits.kkt_residuals[0, 0]
        weighing = weigh(
            self.objective_,
            self.feature_weights_,
            fits.gains[0, 0],
            columns,
            gamma=self.gamma,
            channel_weighting=weighting,
        )
        self.channel_weights_ = weighing.channel_weights
        history = total_objective(
            fits.history[:, np.isfinite(self.objective_)], self.gamma, weighting=weighting
        )
        # Every channel's own loss never rises; this only removes rounding of the sum.
        self.objective_history_ = np.minimum.accumulate(history)
        self.n_iter_ = int(fits.n_iter.max())
        self._set_ranking(weighing.scores, weighing.order)


@dataclass(frozen=True)
class PreparedTable:
    """Checked input in the form the solver takes."""

    X: NDArray[np.float64]
    codes: NDArray  # of classes; the standardised score if n_classes is 1
    n_classes: int
    columns: list[NDArray[np.intp]]
    weights: NDArray[np.float64] | None
    options: Options

    def moments(self) -> TableMoments:
        """Moments of all samples."""
        return table_moments(self.X, self.codes, self.n_classes, self.columns, self.weights)


def warn_of_unusable(channel_names: NDArray, unusable: dict[int, str]) -> None:
    """Name the channels that carry nothing; refuse if none carries anything."""
    if not unusable:
        return
    said = "; ".join(f"{channel_names[v]} ({reason})" for v, reason in sorted(unusable.items()))
    if len(unusable) == channel_names.size:
        raise ValueError(f"No channel carries information: {said}.")
    warnings.warn(
        f"Channels that carry nothing get weight 0 and rank last: {said}.",
        UserWarning,
        stacklevel=4,
    )


def warn_of_unsolved(
    channel_names: NDArray, residuals: NDArray[np.float64], tol: float, max_iter: int
) -> None:
    """Name the channels whose first-order conditions do not hold yet."""
    slow = np.flatnonzero(residuals > tol)
    if slow.size:
        names = ", ".join(str(channel_names[v]) for v in slow[:10])
        warnings.warn(
            f"{slow.size} of {channel_names.size} channels did not reach tol={tol} in {max_iter} "
            f"iterations ({names}{', ...' if slow.size > 10 else ''}; worst residual "
            f"{residuals.max():.1e}). Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _check(value: Any, name: str, kind: type, valid: Any, wanted: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not valid(value):
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
