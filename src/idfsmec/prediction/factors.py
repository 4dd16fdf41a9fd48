"""What all channels have in common: a few factors, learned from samples with gaps.

Neighbouring channels see the same sources, and most of what they share has nothing to do with the
target. Given the target, a sample is modelled as ``centre + loadings @ factors + noise``. The
factors of a sample follow from the channels it has; missing ones are integrated out, none is
filled in. What is left after taking the factors out is, up to a constant, the sample times the
inverse covariance of its own observed features: what linear discriminant analysis would look at,
for every pattern of gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_N_ITER = 12
# Loadings seen in few samples are drawn towards 0 as if by this many samples without any.
_PRIOR_SAMPLES = 1.0
# Smallest variance left to the noise, of standardised features.
_SMALLEST_NOISE = 0.02


@dataclass(frozen=True)
class CommonFactors:
    """Factors that channels share, given the target.

    Attributes
    ----------
    channel : ndarray of shape (n_features,)
        Number of each feature's channel.
    centre : ndarray of shape (n_features,)
        Where a feature speaks neither for nor against: the mean of the classes' means.
    loadings : ndarray of shape (n_features, n_factors)
    noise : float
        Variance that the factors leave, per feature.
    """

    channel: NDArray[np.intp]
    centre: Array
    loadings: Array
    noise: float

    @classmethod
    def learn(
        cls,
        values: Array,
        observed: Mask,
        channel: NDArray[np.intp],
        design: Array,
        neutral: Array,
        n_factors: int,
        n_iter: int = _N_ITER,
    ) -> CommonFactors:
        """Learn from samples of which channels are missing, by expectation maximisation.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_features)
            Standardised; 0 for the features of missing channels.
        observed : ndarray of bool, shape (n_samples, n_channels)
        channel : ndarray of shape (n_features,)
            Number of each feature's channel.
        design : ndarray of shape (n_samples, c)
            What of the target shifts the features: class indicators, or 1 and the score.
        neutral : ndarray of shape (c,)
            The row of ``design`` that stands for no class in particular.
        n_factors : int
            At most; never more than a quarter of the features or of the samples.
        n_iter : int
            Steps; each makes the observed values more probable.
        """
        effects = _effects(values, observed, channel, design)
        rest = np.where(observed[:, channel], values - design @ effects, 0.0)
        varying = np.any(rest != 0.0, axis=0)
        n_factors = min(n_factors, int(varying.sum()) // 4, len(values) // 4)
        loadings, noise = np.zeros((values.shape[1], 0)), 1.0
        if n_factors > 0:
            loadings, noise = _start(rest, observed, n_factors), 0.5
            for _ in range(n_iter):
                loadings, noise = _improve(rest, observed, channel, varying, loadings, noise)
        return cls(channel, neutral @ effects, loadings, noise)

    def centred(self, values: Array, observed: Mask) -> Array:
        """Distance from the centre; 0 for the features of missing channels."""
        return np.where(observed[:, self.channel], values - self.centre, 0.0)

    def specific(self, values: Array, observed: Mask) -> Array:
        """What each channel says beyond what the sample's channels have in common.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_features)
        observed : ndarray of bool, shape (n_samples, n_channels)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            0 for the features of missing channels.
        """
        centred = self.centred(values, observed)
        if self.loadings.shape[1] == 0:
            return centred
        spread = _posterior(observed, self.channel, self.loadings, self.noise)
        factors = _apply(spread, centred @ self.loadings / self.noise)
        return np.where(observed[:, self.channel], centred - factors @ self.loadings.T, 0.0)


def _effects(values: Array, observed: Mask, channel: NDArray[np.intp], design: Array) -> Array:
    """Least squares of every feature on the design, over the samples that have it: (c, D)."""
    weights = observed.astype(float)
    c = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(design), c * c)
    grams = (weights.T @ products).reshape(-1, c, c)
    inverse = np.linalg.pinv(grams, hermitian=True)
    return np.einsum("dcb,bd->cd", inverse[channel], design.T @ values)


def _start(rest: Array, observed: Mask, n_factors: int) -> Array:
    """Leading directions of the samples with zeros in the gaps."""
    _, stretch, right = randomized_svd(rest, n_factors, random_state=0)
    share = max(float(observed.mean()), 0.05)
    return right.T * stretch / np.sqrt(len(rest) * share)


def _posterior(observed: Mask, channel: NDArray[np.intp], loadings: Array, noise: float) -> Array:
    """Covariance of every sample's factors given its channels: (n, q, q)."""
    q = loadings.shape[1]
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(-1, q * q)
    per_channel = np.zeros((observed.shape[1], q * q))
    np.add.at(per_channel, channel, products)
    known = (observed.astype(float) @ per_channel).reshape(-1, q, q) / noise
    return np.asarray(np.linalg.inv(np.eye(q) + known), dtype=np.float64)


def _apply(matrices: Array, vectors: Array) -> Array:
    return np.einsum("nqr,nr->nq", matrices, vectors)


def _improve(
    rest: Array,
    observed: Mask,
    channel: NDArray[np.intp],
    varying: Mask,
    loadings: Array,
    noise: float,
) -> tuple[Array, float]:
    """One step: expected factors of every sample, then the loadings and noise that fit them."""
    n, q = len(rest), loadings.shape[1]
    weights = observed.astype(float)
    spread = _posterior(observed, channel, loadings, noise)
    factors = _apply(spread, rest @ loadings / noise)
    squares = spread + factors[:, :, None] * factors[:, None, :]
    grams = (weights.T @ squares.reshape(n, q * q)).reshape(-1, q, q)
    grams += _PRIOR_SAMPLES * noise * np.eye(q)
    solved = np.linalg.solve(grams[channel], (rest.T @ factors)[:, :, None])
    fitted = np.asarray(solved[:, :, 0], dtype=np.float64)
    there = observed[:, channel] & varying
    unexplained = np.sum((rest - factors @ fitted.T)[there] ** 2)
    uncertain = np.einsum("nqr,dq,dr,nd->", spread, fitted, fitted, there, optimize=True)
    noise = float((unexplained + uncertain) / max(int(there.sum()), 1))
    return fitted, max(noise, _SMALLEST_NOISE)
