"""What penalised models see of a sample with gaps: its features, and what is specific to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.prediction._factors import CommonFactors
from idfsmec.prediction._observed import Units

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Samples as the penalised models see them: every feature, and what is specific to it.

    Where the target moves all channels alike, features as they are tell most; where a common
    nuisance hides it, what is left without the common factors does. The models see both.

    Attributes
    ----------
    units : Units
    usable : ndarray of bool, shape (n_channels,)
        Channels that carried something in training.
    common : CommonFactors
        What is taken out of a sample.
    scale : ndarray of shape (n_features,)
        How freely each feature may be used.
    specific_scale : ndarray of shape (n_features,)
        The same for what is left of it; 0 without factors.
    """

    units: Units
    usable: NDArray[np.bool_]
    common: CommonFactors
    scale: Array
    specific_scale: Array

    @classmethod
    def learn(
        cls,
        X: Array,
        units: Units,
        usable: NDArray[np.bool_],
        common: CommonFactors,
        scale: Array,
    ) -> Evidence:
        """In units where a complete sample has norm 1 on average."""
        parts = cls(units, usable, common, scale, scale)._parts(X)
        share = (units.observed(X) & usable).mean()
        sizes = [np.mean(np.sum(part**2, axis=1)) for part in parts]
        shares = (0.5, 0.5) if common.loadings.shape[1] else (1.0, 0.0)
        own, specific = (
            scale * np.sqrt(part * share / size) if size > 0 else scale
            for part, size in zip(shares, sizes, strict=True)
        )
        return cls(units, usable, common, own, specific)

    def _parts(self, X: Array) -> tuple[Array, Array]:
        values, observed = self.units.standardised(X), self.units.observed(X) & self.usable
        centred = self.common.centred(values, observed)
        left = self.common.specific(values, observed)
        return centred * self.scale, left * self.specific_scale

    def of(self, X: Array) -> Array:
        """Shape (n_samples, 2 * n_features); 0 for the features of missing channels."""
        return np.hstack(self._parts(X))

    def without_any(self, X: Array, answer: str) -> NDArray[np.bool_]:
        """Which samples have no usable channel, with a warning that says what they get."""
        return self.units.without_any(X, self.usable, answer)

    def votes(self, X: Array, coef: Array) -> Array:
        """What each channel adds: (n_samples, n_channels, c); NaN where it is missing."""
        seen, n_features = self.of(X), self.scale.size
        places = [np.r_[own, own + n_features] for own in self.units.columns]
        votes = np.stack([seen[:, own] @ coef[:, own].T for own in places], axis=1)
        votes[~self.units.observed(X)] = np.nan
        return votes

    @property
    def centre(self) -> Array:
        """Values at which the features speak neither for nor against."""
        unit = np.where(np.isfinite(self.units.unit), self.units.unit, 0.0)
        return self.units.centre + self.common.centre * unit

    def for_complete_samples(self, coef: Array) -> Array:
        """Coefficients of the features as given, for samples without a gap: (c, D)."""
        own, left = np.hsplit(coef, 2)
        everything = np.broadcast_to(self.usable, (len(coef), self.usable.size))
        # Taking the factors out is symmetric: what it does to samples it does to coefficients.
        left = self.common.specific(left * self.specific_scale + self.common.centre, everything)
        return (own * self.scale + left) / self.units.unit
