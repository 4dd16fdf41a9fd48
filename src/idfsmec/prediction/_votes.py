"""Votes of channels under a penalty: what the classifier and the regressor share.

A sample with gaps is seen as its features and as what is specific to them, both 0 where a channel
is missing; a penalised linear model of that adds up what the channels say, and trusts each feature
by its score.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from idfsmec._columns import observed_channels
from idfsmec._parameters import Constraints, SequenceOf, integer, number
from idfsmec.prediction.factors import CommonFactors
from idfsmec.selection.idfsmec.engine import Engine, Fits
from idfsmec.selection.idfsmec.estimator import ChannelEstimator
from idfsmec.solver import Scaling

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Share of the mean score that every feature of a usable channel is trusted with: a feature that
# repeats another has score 0, yet it stands in when the other's channel is missing.
_FLOOR = 0.02

#: What strengths of a penalty may be: one, or several for inner folds to choose from.
STRENGTHS = [number(0), SequenceOf(number(0))]


class ChannelVotes(ChannelEstimator):
    """What the classifier and the regressor share: votes of channels, learned under a penalty.

    A subclass says how the inner folds are made (:meth:`_inner_folds`), what of the target shifts
    the features (:meth:`_design`), and what a strength of the penalty costs on held-out samples
    (:meth:`_losses`).
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "power": [number(0, closed="left")],
        "n_factors": [integer(0)],
        "cv": [integer(2)],
    }

    power: float
    n_factors: int
    cv: int

    def _inner_folds(self, engine: Engine, subjects: NDArray) -> list[tuple[Indices, Indices]]:
        raise NotImplementedError

    def _design(self, targets: NDArray) -> tuple[Array, Array]:
        raise NotImplementedError

    def _losses(
        self, seen: Array, train: Indices, test: Indices, engine: Engine, strengths: list[float]
    ) -> Array:
        raise NotImplementedError

    def _choose(
        self, given: float | Sequence[float], engine: Engine, groups: ArrayLike | None
    ) -> float:
        """The strength with the smallest loss on subjects that were held out.

        Of several without folds to choose by, the middle one.
        """
        strengths: list[float] = np.ravel(given).astype(float).tolist()
        subjects = np.arange(engine.target.size) if groups is None else np.asarray(groups)
        check_consistent_length(engine.X, subjects)
        folds = self._inner_folds(engine, subjects) if len(strengths) > 1 else []
        if not folds:
            return strengths[len(strengths) // 2]
        fits = engine.solve([self.lam], [test for _, test in folds])
        loss = np.zeros(len(strengths))
        for fold, (train, test) in enumerate(folds):
            view = self._learn_view(fits, fold, train)
            loss += self._losses(view.of(engine.X), train, test, engine, strengths)
        return strengths[int(np.argmin(loss))]

    def _learn_view(self, fits: Fits, fold: int, train: Indices) -> SampleView:
        """How to see samples, learned from a training part."""
        engine, usable = fits.engine, fits.usable(fold)
        scaling = fits.moments[fold].scaling()
        X = engine.X[train]
        observed = observed_channels(X, engine.columns)
        design, neutral = self._design(engine.target[train])
        common = CommonFactors.learn(
            _standardised(X, scaling, observed, engine.channel_of),
            observed & usable,
            engine.channel_of,
            design,
            neutral,
            int(self.n_factors),
        )
        scale = feature_scales(fits, fold, gamma=self.gamma, power=self.power)
        return SampleView.learn(X, engine.columns, scaling, usable, common, scale)

    def _check(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        return validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)


def feature_scales(fits: Fits, fold: int, *, gamma: float, power: float) -> Array:
    """How freely a penalised model may use each feature, from the features' scores.

    Parameters
    ----------
    fits : Fits
        At one redundancy weight.
    fold : int
    gamma : float
        Of the channel weights.
    power : float
        0 trusts all features alike, large values only the leading ones.

    Returns
    -------
    ndarray of shape (n_features,)
        Of norm 1; 0 for constant features and in channels that carry nothing.
    """
    scores = fits.weigh(gamma, fold=fold).scores
    scale = (scores / max(scores.mean(), 1e-300) + _FLOOR) ** power
    scale[fits.channels.gains[fold, 0] < 0] = 0.0
    return scale / max(np.linalg.norm(scale), 1e-300)


@dataclass(frozen=True)
class SampleView:
    """Samples as the penalised models see them: every feature, and what is specific to it.

    Where the target moves all channels alike, features as they are tell most; where a common
    nuisance hides it, what is left without the common factors does. The models see both.

    Attributes
    ----------
    columns : sequence of integer arrays
        The columns of each channel.
    scaling : Scaling
        Units of the features.
    usable : ndarray of bool, shape (n_channels,)
        Channels that carried something in training.
    common : CommonFactors
        What is taken out of a sample.
    scale : ndarray of shape (n_features,)
        How freely each feature may be used.
    specific_scale : ndarray of shape (n_features,)
        The same for what is left of it; 0 without factors.
    """

    columns: Sequence[Indices]
    scaling: Scaling
    usable: Mask
    common: CommonFactors
    scale: Array
    specific_scale: Array

    @classmethod
    def learn(
        cls,
        X: Array,
        columns: Sequence[Indices],
        scaling: Scaling,
        usable: Mask,
        common: CommonFactors,
        scale: Array,
    ) -> SampleView:
        """In units where a complete sample has norm 1 on average."""
        first = cls(columns, scaling, usable, common, scale, scale)
        own, specific = np.hsplit(first.of(X), 2)
        share = (observed_channels(X, columns) & usable).mean()
        shares = (0.5, 0.5) if common.loadings.shape[1] else (1.0, 0.0)
        scales = []
        for wanted, part in zip(shares, (own, specific), strict=True):
            size = np.mean(np.sum(part**2, axis=1))
            scales.append(scale * np.sqrt(wanted * share / size) if size > 0 else scale)
        return cls(columns, scaling, usable, common, *scales)

    def of(self, X: Array) -> Array:
        """Shape (n_samples, 2 * n_features); 0 for the features of missing channels."""
        observed = observed_channels(X, self.columns)
        values = _standardised(X, self.scaling, observed, self.common.channel)
        centred = self.common.centred(values, observed & self.usable)
        left = self.common.specific(values, observed & self.usable)
        return np.hstack([centred * self.scale, left * self.specific_scale])

    def without_any(self, X: Array, answer: str) -> Mask:
        """Which samples have no usable channel, with a warning that says what they get.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        answer : str
            What such samples get.
        """
        empty: Mask = ~np.any(observed_channels(X, self.columns)[:, self.usable], axis=1)
        if empty.any():
            warnings.warn(
                f"{int(empty.sum())} of {empty.size} samples have no channel that carried "
                f"something in training; they get {answer}.",
                UserWarning,
                stacklevel=3,
            )
        return empty

    def votes(self, X: Array, coef: Array) -> Array:
        """What each channel adds: (n_samples, n_channels, c); NaN where it is missing."""
        seen, n_features = self.of(X), self.scale.size
        places = [np.r_[own, own + n_features] for own in self.columns]
        votes = np.stack([seen[:, own] @ coef[:, own].T for own in places], axis=1)
        votes[~observed_channels(X, self.columns)] = np.nan
        return votes

    @property
    def centre(self) -> Array:
        """Values at which the features speak neither for nor against."""
        unit = np.where(self.scaling.constant, 0.0, self.scaling.unit)
        return self.scaling.mean + self.common.centre * unit

    def for_complete_samples(self, coef: Array) -> Array:
        """Coefficients of the features as given, for samples without a gap: (c, D)."""
        own, left = np.hsplit(coef, 2)
        everything = np.broadcast_to(self.usable, (len(coef), self.usable.size))
        # Taking the factors out is symmetric: what it does to samples it does to coefficients.
        left = self.common.specific(left * self.specific_scale + self.common.centre, everything)
        return (own * self.scale + left) / self.scaling.unit


def _standardised(X: Array, scaling: Scaling, observed: Mask, channel: Indices) -> Array:
    """Distance from the mean in standard deviations; 0 for the features of missing channels."""
    values = scaling.apply(X)
    values[~observed[:, channel]] = 0.0
    return values
