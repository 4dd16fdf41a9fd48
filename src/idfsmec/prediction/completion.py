"""ChannelCompleter: what missing channels are expected to be, given those that were recorded.

The classifier and the regressor stand on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._columns import SEPARATOR, channel_codes, channel_columns
from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    StrOptions,
    checks_parameters,
    integer,
    number,
)
from idfsmec.errors import InputError
from idfsmec.prediction._expectation import blocks
from idfsmec.prediction._samples import standardised, standardised_products, take_gaps_out
from idfsmec.prediction.factors import FactorModel
from idfsmec.solver import Scaling
from idfsmec.summaries.summary import Summary, combine_products

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Numbers of factors that "auto" tries, from few to many, until one is worse than the one before.
CANDIDATES = (1, 2, 3, 5, 8, 12, 20)
# Of this many folds of cells, "auto" holds out the first three, one after the other.
_CELL_FOLDS, _FOLDS_USED = 5, 3
# Of more samples than this, evenly spaced ones choose.
_SAMPLES_USED = 2000
# Two irrational steps spread any run of samples and channels evenly over the folds.
_STEPS = (0.7548776662466927, 0.5698402909980532)


class ChannelCompleter(OneToOneFeatureMixin, TransformerMixin, CheckedEstimator):
    """Complete samples in which channels are missing, from the channels that are there.

    What channels have in common is described by a few factors, and every feature has noise of its
    own besides: factor analysis of all channels together, learned from samples with gaps as they
    are. A missing value becomes what is expected of it given all the sample's channels.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        Label per feature: what goes missing together. By default the part of the column name
        before the last ``"__"``; if the columns have no such names, every feature is a channel
        of its own.
    n_factors : int or "auto", default=5
        How many factors; never more than half of the samples or of the features that vary. 0
        completes with the mean. ``"auto"`` takes the number out of 1, 2, 3, 5, 8, 12 and 20 that
        restores held-out channels of samples best, and stops at the first that is worse than the
        one before.
    ridge : float, default=1.0
        Penalty on the squared loadings: the larger, the closer to the mean what is completed.
    min_noise : float, default=0.02
        No feature is explained by the factors but for this share of its variance.
    max_iter : int, default=25
        Rounds of expectation-maximisation. There is nothing random in them.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation over observed values; 0 where there are none, and the latter
        for constant features.
    model_ : FactorModel
        ``loadings`` and ``noise`` variance of the standardised features.
    n_factors_ : int
        Factors in use.
    channel_names_ : ndarray of shape (n_channels,)
        In order of first appearance.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Notes
    -----
    A channel some of whose features are NaN at a sample counts as missing there: nothing is
    learned or concluded from the others, but they stay as they are in the output. Values more
    than 6 standard deviations from the mean count as 6 away, and stay too.

    A sample without any channel gets the mean, and so does a feature that nothing goes with. A
    constant feature gets its constant. A feature never seen in training gets 0, and its
    uncertainty is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import ChannelCompleter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 4))
    >>> X[rng.random(200) < 0.3, :2] = np.nan  # the first channel fell off
    >>> completer = ChannelCompleter(["F3", "F3", "F4", "F4"]).fit(X)
    >>> new = [[np.nan, np.nan, 2.0, 2.0]]
    >>> completer.transform(new).round()
    array([[2., 2., 2., 2.]])
    >>> completer.uncertainty(new) < [0.5, 0.5, 0.1, 0.1]
    array([[ True,  True,  True,  True]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "n_factors": [integer(0), StrOptions({"auto"})],
        "ridge": [number(0, closed="left")],
        "min_noise": [number(0, 1)],
        "max_iter": [integer(1)],
    }

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        n_factors: int | str = 5,
        ridge: float = 1.0,
        min_noise: float = 0.02,
        max_iter: int = 25,
    ) -> None:
        self.channels = channels
        self.n_factors = n_factors
        self.ridge = ridge
        self.min_noise = min_noise
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn what channels have in common.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : None
            Not used.

        Returns
        -------
        self : ChannelCompleter
        """
        checked = self._look_at(X)
        scaling = Scaling.learn(checked)
        self._keep(scaling, np.asarray(np.isnan(checked).all(axis=0)))
        self._learn_from(*standardised(checked, self._columns, scaling))
        return self

    @checks_parameters
    def fill_in_place(self, X: Array) -> Array:
        """:meth:`fit` and :meth:`transform` of samples that are standardised already.

        Neither their units nor their gaps are worked out twice, and there is no second copy of
        them.

        Parameters
        ----------
        X : ndarray of float64, shape (n_samples, n_features)
            Observed values of every feature have mean 0 and standard deviation 1, or are all 0.
            Gaps are filled in its memory.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            X.
        """
        checked = self._look_at(X)
        never_seen = np.asarray(np.isnan(checked).all(axis=0))
        observed, changed = take_gaps_out(checked, self._columns)
        varied = np.asarray(checked.any(axis=0), dtype=np.float64)
        self._keep(Scaling.of(np.zeros(varied.size), varied), never_seen)
        self._learn_from(checked, observed)
        means, channel = self.model_.means(checked, observed), channel_codes(self._columns)
        for block in blocks(checked):
            expected = means[block] @ self.model_.loadings.T
            np.copyto(checked[block], expected, where=~observed[block][:, channel])
        checked.flat[changed.places] = changed.values
        return checked

    def _look_at(self, X: ArrayLike) -> Array:
        """Check samples, and find out which columns are a channel."""
        checked: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        n_features = checked.shape[1]
        names = getattr(self, "feature_names_in_", None)
        channels = self.channels
        if channels is None and (names is None or not all(SEPARATOR in name for name in names)):
            channels = np.arange(n_features)
        self.channel_names_, self._columns = channel_columns(channels, n_features, names)
        return checked

    def _learn_from(self, values: Array, observed: Mask) -> None:
        with one_blas_thread():
            auto = self.n_factors == "auto"
            n_factors = self._choose(values, observed) if auto else int(self.n_factors)
            self.model_ = self._learn(values, observed, n_factors)
        self.n_factors_ = self.model_.loadings.shape[1]
        self.n_iter_ = int(self.max_iter)

    @checks_parameters
    def fit_summaries(self, summaries: Sequence[Summary]) -> Self:
        """Learn what channels have in common from summaries, without a sample of anybody.

        The model is that of :meth:`fit` on the samples whose patterns of channels the summaries
        tell, up to rounding, if no value is more than 6 standard deviations from the mean (sums
        cannot take these back). ``n_factors="auto"`` needs samples to restore, and is refused.

        Parameters
        ----------
        summaries : sequence of Summary
            From ``idfsmec.summarise(..., between=True)``. Channels are theirs.

        Returns
        -------
        self : ChannelCompleter
        """
        whole = combine_products(summaries)
        if self.n_factors == "auto":
            raise InputError(
                "n_factors='auto' restores channels of samples, and summaries have none: give a "
                "number.",
                argument="n_factors",
            )
        self.n_features_in_ = len(whole.columns)
        self.feature_names_in_ = np.array(whole.columns, dtype=object)
        self.channel_names_, self._columns = np.array(whole.channels), whole.places
        count, scaling, products = standardised_products(whole)
        self._keep(scaling, count == 0)
        with one_blas_thread():
            self.model_ = FactorModel.learn_products(
                products, channel_codes(self._columns), int(self.n_factors), **self._how()
            )
        self.n_factors_ = self.model_.loadings.shape[1]
        self.n_iter_ = int(self.max_iter)
        return self

    def _keep(self, scaling: Scaling, never_seen: Mask) -> None:
        self._scaling, self.mean_ = scaling, scaling.mean
        self.scale_ = np.where(scaling.constant, 0.0, scaling.unit)
        self._never_seen = never_seen

    def _how(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "min_noise": self.min_noise, "n_rounds": self.max_iter}

    def _learn(self, values: Array, observed: Mask, n_factors: int) -> FactorModel:
        channel = channel_codes(self._columns)
        return FactorModel.learn(values, observed, channel, n_factors, **self._how())

    def _choose(self, values: Array, observed: Mask) -> int:
        """Number of factors that restores channels held out of samples best."""
        step = -(-len(values) // _SAMPLES_USED)
        values, observed = values[::step], observed[::step]
        channel = channel_codes(self._columns)
        steps = [step * np.arange(n) for step, n in zip(_STEPS, observed.shape, strict=True)]
        fold_of = (_CELL_FOLDS * (np.add.outer(*steps) % 1.0)).astype(np.intp)
        best, smallest = 0, np.inf
        for n_factors in CANDIDATES:
            loss = 0.0
            for fold in range(_FOLDS_USED):
                kept = observed & (fold_of != fold)
                known = np.where(kept[:, channel], values, 0.0)
                model = self._learn(known, kept, n_factors)
                if model.loadings.shape[1] < n_factors:  # there are no more
                    return best
                missed = (values - model.complete(known, kept)) ** 2
                loss += float(missed[(observed & ~kept)[:, channel]].sum())
            if loss >= smallest:
                break
            best, smallest = n_factors, loss
        return best

    def _see(self, X: ArrayLike) -> tuple[Array, Array, Mask]:
        """Samples as given, as the model sees them, and which channels they have."""
        check_is_fitted(self, "model_")
        checked = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        return (checked, *standardised(checked, self._columns, self._scaling))

    def transform(self, X: ArrayLike) -> Array:
        """Samples with what is expected in place of NaN; observed values stay as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        checked, values, observed = self._see(X)
        means = self.model_.means(values, observed)
        loadings = (self.model_.loadings * self.scale_[:, None]).T
        for block in blocks(values):  # which have been looked at, and become the result
            expected = np.matmul(means[block], loadings, out=values[block])
            expected += self.mean_
            np.copyto(expected, checked[block], where=~np.isnan(checked[block]))
        return values

    def uncertainty(self, X: ArrayLike) -> Array:
        """Posterior standard deviation of every completed value, in the units of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            0 where a value was observed; infinite for a feature never seen in training.
        """
        checked, values, observed = self._see(X)
        _, spread = self.model_.posterior(values, observed)
        deviation = np.sqrt(self.model_.variances(spread)) * self.scale_
        deviation[:, self._never_seen] = np.inf
        return np.where(np.isnan(checked), deviation, 0.0)

    def factors(self, X: ArrayLike) -> Array:
        """Posterior means of every sample's factors: ``(n_samples, n_factors_)``."""
        _, values, observed = self._see(X)
        return self.model_.means(values, observed)
