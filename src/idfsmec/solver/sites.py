"""Location and scale of sites: one model of all sites, and empirical Bayes over features.

Everything follows from the count, the mean and the squares about the mean of every site and
feature, so that samples and sums of sites give the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Iterations end when nothing changes by more than this, or after so many.
_TOLERANCE, _MAX_ITER = 1e-10, 1000
# Deviations below this share of the values are rounding.
_ROUNDING = 1e-10


def site_moments(X: Array, member: NDArray[np.intp], n_sites: int) -> tuple[Array, Array, Array]:
    """Count, mean and squares about the mean of every site's observed values."""
    count, mean, squares = np.zeros((3, n_sites, X.shape[1]))
    for site in range(n_sites):
        samples = X[member == site]
        count[site] = np.sum(~np.isnan(samples), axis=0)
        mean[site] = np.nansum(samples, axis=0) / np.maximum(count[site], 1)
        squares[site] = np.nansum((samples - mean[site]) ** 2, axis=0)
    return count, mean, squares


def common_location(
    count: Array, mean: Array, squares: Array, shares: Array
) -> tuple[Array, Array]:
    """Mean over sites, and standard deviation within sites, of every feature."""
    weights = np.where(count > 0, shares[:, None], 0.0)
    total, n = weights.sum(axis=0), np.maximum(count.sum(axis=0), 1)
    location = np.sum(weights * mean, axis=0) / np.where(total > 0, total, 1.0)
    scale = np.sqrt(squares.sum(axis=0) / n)
    size = np.sqrt(np.sum(squares + count * mean**2, axis=0) / n)
    return location, np.where(scale > _ROUNDING * size, scale, 0.0)


def site_effects(
    count: Array, mean: Array, squares: Array, empirical_bayes: bool = True
) -> tuple[Array, Array]:
    """Shift and variance of every feature at one site, in units of the common scale."""
    variance = np.divide(squares, count - 1, out=np.ones(count.size), where=count > 1)
    varies = (count > 1) & (variance > (_ROUNDING * (1 + np.abs(mean))) ** 2)
    variance[~varies] = 1.0
    if not empirical_bayes or varies.sum() < 2:
        return mean, variance
    centre, spread = mean[varies].mean(), mean[varies].var(ddof=1)
    prior, about = variance[varies].mean(), variance[varies].var(ddof=1)
    equal = about <= 1e-12 * prior**2  # every feature has the same variance
    shape = np.inf if equal else prior**2 / about + 2
    shift = mean
    for _ in range(_MAX_ITER):  # each posterior mean given the other
        before = shift, variance
        shift = (spread * count * mean + variance * centre) / (spread * count + variance)
        around = squares + count * (mean - shift) ** 2
        variance = (
            np.full(count.size, prior)
            if equal
            else (around / 2 + prior * (shape - 1)) / (count / 2 + shape - 1)
        )
        change = max(np.abs(shift - before[0]).max(), np.abs(variance / before[1] - 1).max())
        if change <= _TOLERANCE:
            break
    return shift, variance


def site_maps(count: Array, mean: Array, squares: Array, shares: Array) -> tuple[Array, Array]:
    """Maps that bring each site to one location and scale: x becomes ``slope * x + offset``."""
    mean, squares = np.where(count > 0, mean, 0.0), np.where(count > 0, squares, 0.0)
    location, scale = common_location(count, mean, squares, shares)
    varies, unit = scale > 0, np.where(scale > 0, scale, 1.0)
    slope, offset = np.ones_like(mean), np.zeros_like(mean)
    for site, n in enumerate(count):
        seen = varies & (n > 0)
        shift, variance = site_effects(
            n,
            np.where(seen, (mean[site] - location) / unit, 0.0),
            np.where(seen, squares[site] / unit**2, 0.0),
        )
        rate = 1 / np.sqrt(variance)
        slope[site] = np.where(varies, rate, 1.0)
        offset[site] = np.where(varies, location - rate * (location + unit * shift), 0.0)
    return slope, offset
