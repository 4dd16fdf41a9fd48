"""How people are dealt to folds, and samples of nobody in particular: these by their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver import Scaling

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Folds of people that judge the channels.
N_FOLDS = 4
#: Ways to deal people to folds, all of which judge: who happens to be in a fold with whom counts
#: less.
N_DEALS = 2

# Samples x features handled at a time: small enough for the processor's cache.
_BLOCK_ELEMENTS = 100_000
# Bends the sum over a sample's features, so that it is not 0 where these cancel out.
_BEND = 0.37
# Numbers closer than this may be the same one in another order of summing.
_GRAIN = 1e-4
_MIX = 0x9E3779B97F4A7C15


def value_folds(
    X: Array,
    columns: Sequence[Indices],
    n_folds: int,
    n_deals: int = 1,
    *,
    weights: Array | None = None,
    scaling: Scaling | None = None,
) -> Indices:
    """Deal samples to folds by their values.

    Without names every sample is a person of its own, but a sample that is there twice is one of
    weight two: both must be on the same side of every fold. The fold depends neither on the order
    of samples, features and channels, nor on their units, nor on what a channel holds where it
    counts as missing.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where a channel is missing.
    columns : sequence of integer arrays
        The columns of each channel.
    n_folds, n_deals : int
    weights : ndarray of shape (n_samples,), optional
    scaling : Scaling, optional
        Units of the features; by default those of X.

    Returns
    -------
    ndarray of shape (n_deals, n_samples)

    Examples
    --------
    >>> X = np.array([[0.0, np.nan], [1.0, 2.0], [0.0, np.nan], [3.0, 1.0]])
    >>> folds = value_folds(X, [np.array([0]), np.array([1])], 4)[0]
    >>> bool(folds[0] == folds[2])
    True
    """
    numbers = np.zeros(len(X))
    weights = np.ones(len(X)) if weights is None else weights
    first, most = 0, max(1, _BLOCK_ELEMENTS // max(1, len(X)))
    while first < len(columns):
        last, width = first + 1, columns[first].size
        while last < len(columns) and width + columns[last].size <= most:
            width += columns[last].size
            last += 1
        own = np.concatenate(columns[first:last])
        starts = np.cumsum([0, *(one.size for one in columns[first : last - 1])])
        values = X[:, own[0] : own[-1] + 1] if _neighbours(own) else X[:, own]
        units = None if scaling is None else (scaling.mean[own], scaling.unit[own])
        values = _standardised(_with_whole_gaps(values, starts), weights, units)
        values += _BEND * values**2
        sums = np.add.reduceat(values, starts, axis=1)
        sums[np.isnan(sums)] = 0.0
        numbers += sums.sum(axis=1)
        first = last
    grains = np.round(np.clip(numbers, -1e12, 1e12) / _GRAIN).astype(np.int64).view(np.uint64)
    folds = [_stirred(grains, deal) % np.uint64(n_folds) for deal in range(n_deals)]
    return np.stack(folds).astype(np.intp)


def _neighbours(columns: Indices) -> bool:
    return np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size))


def _with_whole_gaps(values: Array, starts: Indices) -> Array:
    """A channel with any NaN in a sample is missing there."""
    gaps = np.isnan(values)
    some = np.add.reduceat(gaps, starts, axis=1, dtype=np.intp)
    sizes = np.diff(starts, append=values.shape[1])
    torn = (some > 0) & (some < sizes)
    if not torn.any():
        return values
    values = values.copy()
    values[np.repeat(torn, sizes, axis=1)] = np.nan
    return values


def _standardised(values: Array, weights: Array, units: tuple[Array, Array] | None) -> Array:
    """A copy in units of standard deviations, NaN where values are."""
    if units is not None:
        return (values - units[0]) / units[1]
    seen = ~np.isnan(values)
    count = np.maximum(weights @ seen, 1e-300)
    mean = (weights @ np.where(seen, values, 0.0)) / count
    centred = values - mean
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = weights @ np.where(seen, centred**2, 0.0)
    if not (np.isfinite(squares) & (squares > 1e-200)).all():
        scaling = Scaling.learn(values[weights > 0])
        return (values - scaling.mean) / scaling.unit
    unit = Scaling.of(mean, np.sqrt(squares / count)).unit
    return np.divide(centred, unit, out=centred)


def _stirred(numbers: NDArray[np.uint64], deal: int) -> NDArray[np.uint64]:
    """Spread numbers evenly (the end of SplitMix64), otherwise for every deal."""
    numbers = numbers + np.uint64((deal + 1) * _MIX % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
