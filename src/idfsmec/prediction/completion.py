"""ChannelCompleter: what missing channels are expected to be, given those that were recorded.

One factor model of all channels together, x = mean + L z + noise, learned from incomplete samples.
The classifier and the regressor stand on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._columns import SEPARATOR, channel_codes, channel_columns, observed_channels
from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    StrOptions,
    checks_parameters,
    integer,
    number,
)
from idfsmec.solver import Scaling

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Numbers of factors that "auto" tries, from few to many, until one is worse than the one before.
CANDIDATES = (1, 2, 3, 5, 8, 12, 20)
# Of this many folds of cells, "auto" holds out the first three, one after the other.
_CELL_FOLDS, _FOLDS_USED = 5, 3
# Of more samples than this, evenly spaced ones choose.
_SAMPLES_USED = 2000
# Two irrational steps spread any run of samples and channels evenly over the folds.
_STEPS = (0.7548776662466927, 0.5698402909980532)


@dataclass(frozen=True)
class FactorModel:
    """Standardised features as factors times loadings plus a noise of their own.

    Attributes
    ----------
    loadings : ndarray of shape (n_features, n_factors)
        How each feature goes with each factor; factors are independent, of variance 1.
    noise : ndarray of shape (n_features,)
        Variance of what is each feature's own.
    channel : ndarray of shape (n_features,)
        Number of the channel of every feature.
    """

    loadings: Array
    noise: Array
    channel: Indices

    @classmethod
    def learn(
        cls,
        values: Array,
        observed: Mask,
        channel: Indices,
        n_factors: int,
        *,
        ridge: float = 1.0,
        min_noise: float = 0.02,
        n_rounds: int = 25,
    ) -> FactorModel:
        """Learn by expectation-maximisation; each round makes what was observed more probable.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_features)
            Standardised; 0 where the channel is missing.
        observed : ndarray of bool, shape (n_samples, n_channels)
        channel : ndarray of shape (n_features,)
        n_factors : int
            At most; never more than half of the samples or of the features that vary.
        ridge, min_noise, n_rounds
            See :class:`ChannelCompleter`.
        """
        n, n_features = values.shape
        squares = np.einsum("nd,nd->d", values, values)
        n_factors = min(n_factors, n // 2, int(np.count_nonzero(squares)) // 2)
        counts = observed.sum(axis=0)[channel]
        model = cls(_start(values, observed, n_factors), np.full(n_features, 0.5), channel)
        if n_factors == 0:
            noise = np.divide(squares, counts, out=np.ones(n_features), where=counts > 0)
            return cls(model.loadings, np.maximum(noise, min_noise), channel)
        patterns, pattern_of, times = _patterns(observed)
        there = observed.astype(np.float64)
        tiny = 1e-9  # without a ridge, a channel that nobody has would leave nothing to solve
        for _ in range(n_rounds):
            spread = model._spread(patterns)
            means = _apply(spread[pattern_of], model._evidence(values))
            grams = patterns.T @ (spread * times[:, None, None]).reshape(len(spread), -1)
            grams += there.T @ (means[:, :, None] * means[:, None, :]).reshape(n, -1)
            grams = grams.reshape(-1, n_factors, n_factors)[channel]
            toward = values.T @ means
            penalty = (ridge * model.noise + tiny)[:, None, None] * np.eye(n_factors)
            solved = np.linalg.solve(grams + penalty, toward[:, :, None])
            loadings = np.asarray(solved[:, :, 0], dtype=np.float64)
            left = squares - 2 * np.einsum("dq,dq->d", toward, loadings)
            left += np.einsum("dqr,dq,dr->d", grams, loadings, loadings)
            noise = np.divide(left, counts, out=np.ones(n_features), where=counts > 0)
            model = cls(loadings, np.maximum(noise, min_noise), channel)
        return model

    def posterior(self, values: Array, observed: Mask) -> tuple[Array, Array]:
        """Mean (n, q) and covariance (n, q, q) of every sample's factors, given its channels."""
        patterns, pattern_of, _ = _patterns(observed)
        spread = self._spread(patterns)[pattern_of]
        return _apply(spread, self._evidence(values)), spread

    def complete(self, values: Array, observed: Mask) -> Array:
        """Give ``values`` with what is expected in place of what is missing."""
        means, _ = self.posterior(values, observed)
        return np.where(observed[:, self.channel], values, means @ self.loadings.T)

    def per_channel(self, per_feature: Array) -> Array:
        """Sum the rows of features over each channel's features."""
        order = np.argsort(self.channel, kind="stable")
        first = np.searchsorted(self.channel[order], np.arange(self.channel.max() + 1))
        return np.asarray(np.add.reduceat(per_feature[order], first, axis=0))

    def _evidence(self, values: Array) -> Array:
        return np.asarray(values @ (self.loadings / self.noise[:, None]))

    def _spread(self, patterns: Array) -> Array:
        """Covariance of the factors for every pattern of channels: (n_patterns, q, q)."""
        q = self.loadings.shape[1]
        products = _products(self.loadings) / self.noise[:, None]
        known = (patterns @ self.per_channel(products)).reshape(len(patterns), q, q)
        return np.asarray(np.linalg.inv(np.eye(q) + known), dtype=np.float64)


def _start(values: Array, observed: Mask, n_factors: int) -> Array:
    """Leading directions of the samples with zeros in the gaps, by the smaller side."""
    n, n_features = values.shape
    if n_factors == 0:
        return np.zeros((n_features, 0))
    wide = n < n_features
    gram = values @ values.T if wide else values.T @ values
    last = len(gram) - 1
    sizes, vectors = scipy.linalg.eigh(gram, subset_by_index=[last - n_factors + 1, last])
    loadings = values.T @ vectors if wide else vectors * np.sqrt(np.maximum(sizes, 0.0))
    loadings = loadings[:, ::-1]
    largest = np.abs(loadings).argmax(axis=0)
    loadings = loadings * np.where(loadings[largest, np.arange(n_factors)] < 0, -1.0, 1.0)
    # Zeros in the gaps make directions short, by the share of gaps in channels that are known.
    share = observed[:, observed.any(axis=0)].mean()
    return np.asarray(loadings / np.sqrt(n * max(float(share), 0.05)))


def _patterns(observed: Mask) -> tuple[Array, Indices, Indices]:
    """Give the different rows, which of them each sample has, and how often each occurs."""
    _, first, pattern_of, times = np.unique(
        np.packbits(observed, axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    return observed[first].astype(np.float64), pattern_of.reshape(-1), times


def _products(rows: Array) -> Array:
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


def _apply(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("nqr,nr->nq", matrices, vectors))


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
    mean_ : ndarray of shape (n_features,)
        Over observed values; 0 where there are none.
    scale_ : ndarray of shape (n_features,)
        Standard deviation over observed values; 0 for constant features.
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
    learned or concluded from the others, but they stay as they are in the output.

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
        checked = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        n_features = checked.shape[1]
        names = getattr(self, "feature_names_in_", None)
        channels = self.channels
        if channels is None and (names is None or not all(SEPARATOR in name for name in names)):
            channels = np.arange(n_features)
        self.channel_names_, self._columns = channel_columns(channels, n_features, names)
        scaling = Scaling.learn(checked)
        self._scaling, self.mean_ = scaling, scaling.mean
        self.scale_ = np.where(scaling.constant, 0.0, scaling.unit)
        self._never_seen = np.isnan(checked).all(axis=0)
        values, observed = self._standardised(checked)
        with one_blas_thread():
            n_factors = self.n_factors
            if n_factors == "auto":
                n_factors = self._choose(values, observed)
            self.model_ = self._learn(values, observed, int(n_factors))
        self.n_factors_ = self.model_.loadings.shape[1]
        self.n_iter_ = int(self.max_iter)
        return self

    def _learn(self, values: Array, observed: Mask, n_factors: int) -> FactorModel:
        return FactorModel.learn(
            values,
            observed,
            channel_codes(self._columns),
            n_factors,
            ridge=self.ridge,
            min_noise=self.min_noise,
            n_rounds=self.max_iter,
        )

    def _choose(self, values: Array, observed: Mask) -> int:
        """Number of factors that restores channels held out of samples best."""
        step = -(-len(values) // _SAMPLES_USED)
        values, observed = values[::step], observed[::step]
        n, n_channels = observed.shape
        channel = channel_codes(self._columns)
        place = np.add.outer(_STEPS[0] * np.arange(n), _STEPS[1] * np.arange(n_channels))
        fold_of = (_CELL_FOLDS * (place % 1.0)).astype(np.intp)
        best, smallest = 0, np.inf
        for n_factors in CANDIDATES:
            loss = 0.0
            for fold in range(_FOLDS_USED):
                kept = observed & (fold_of != fold)
                known = np.where(kept[:, channel], values, 0.0)
                model = self._learn(known, kept, n_factors)
                if model.loadings.shape[1] < n_factors:
                    return best if best else model.loadings.shape[1]
                missed = (values - model.complete(known, kept)) ** 2
                loss += float(missed[(observed & ~kept)[:, channel]].sum())
            if loss >= smallest:
                break
            best, smallest = n_factors, loss
        return best

    def _standardised(self, X: Array) -> tuple[Array, Mask]:
        """Values, 0 where the channel is missing, and who has which channel."""
        observed = observed_channels(X, self._columns)
        values = self._scaling.apply(X)
        values[~observed[:, channel_codes(self._columns)]] = 0.0
        return values, observed

    def _check(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "model_")
        return np.asarray(
            validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        )

    def transform(self, X: ArrayLike) -> Array:
        """Samples with what is expected in place of NaN; observed values stay as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        checked = self._check(X)
        values, observed = self._standardised(checked)
        means, _ = self.model_.posterior(values, observed)
        expected = means @ (self.model_.loadings * self.scale_[:, None]).T + self.mean_
        return np.where(np.isnan(checked), expected, checked)

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
        checked = self._check(X)
        values, observed = self._standardised(checked)
        _, spread = self.model_.posterior(values, observed)
        variance = spread.reshape(len(spread), -1) @ _products(self.model_.loadings).T
        deviation = np.sqrt(variance + self.model_.noise) * self.scale_
        deviation[:, self._never_seen] = np.inf
        return np.where(np.isnan(checked), deviation, 0.0)

    def factors(self, X: ArrayLike) -> Array:
        """Posterior means of every sample's factors: (n_samples, n_factors_)."""
        means, _ = self.model_.posterior(*self._standardised(self._check(X)))
        return means
