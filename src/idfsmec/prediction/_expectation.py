"""What is expected of the factors of samples with gaps: the work of one round of learning.

Samples with the same channels share a covariance of their factors. Arrays have the samples last:
each operation runs through all of them. Of symmetric matrices one half is multiplied.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Numbers of a block of samples: so few that the second of two products finds them in the cache.
_BLOCK_ELEMENTS = 100_000


class Patterns:
    """Which channels samples have, each set of them once if many samples have the same.

    Attributes
    ----------
    rows : ndarray of shape (n_patterns, n_channels)
        1 where the channel is there.
    of : ndarray of shape (n_samples,)
        Which pattern each sample has.
    times : ndarray of shape (n_patterns,)
        How many samples have it.

    Examples
    --------
    >>> seen = Patterns(np.array([[True, False], [True, True], [True, False], [True, False]]))
    >>> seen.rows.tolist(), seen.of.tolist(), seen.times.tolist()
    ([[1.0, 0.0], [1.0, 1.0]], [0, 1, 0, 0], [3, 1])
    """

    def __init__(self, observed: Mask) -> None:
        packed = np.packbits(observed, axis=1)
        # As one thing a row is sorted faster than as a row of numbers.
        whole = packed.view(f"V{packed.shape[1]}").ravel()
        _, first, of, times = np.unique(
            whole, return_index=True, return_inverse=True, return_counts=True
        )
        if 2 * first.size > len(observed):  # gathering would take longer than it spares
            first = of = np.arange(len(observed))
            times = np.ones(of.size, dtype=np.intp)
        self.rows: Array = observed[first].astype(np.float64)
        self.of: Indices = of.reshape(-1)
        self.times: Indices = times
        self._order = np.argsort(self.of, kind="stable")

    @property
    def _each_its_own(self) -> bool:
        return self.times.size == self.of.size

    def sums(self, per_sample: Array) -> Array:
        """Sum the last axis over the samples of each pattern."""
        if self._each_its_own:
            return per_sample
        starts = np.cumsum(self.times) - self.times
        return np.asarray(np.add.reduceat(per_sample[..., self._order], starts, axis=-1))

    def by_sample(self, per_pattern: Array) -> Array:
        """Give each sample, on the last axis, what its pattern has."""
        return per_pattern if self._each_its_own else per_pattern[..., self.of]


@functools.cache
def pairs(n_factors: int) -> tuple[Indices, Indices]:
    """Places of one half of a symmetric matrix, with its diagonal."""
    return np.triu_indices(n_factors)


@functools.cache
def _places(n_factors: int) -> Indices:
    """Where in its half each element of a symmetric matrix is."""
    rows, columns = pairs(n_factors)
    places = np.empty((n_factors, n_factors), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    return places


def unfolded(half: Array, n_factors: int) -> Array:
    """Give symmetric matrices (q, q, n) by one half (q (q + 1) / 2, n) of each."""
    return half[_places(n_factors)]


def inverses(matrices: Array) -> Array:
    """Invert positive definite matrices (q, q, n), all at once, in their place.

    Each of q steps sweeps one row and column of all matrices, which needs no pivots.

    Examples
    --------
    >>> inverses(np.array([[[2.0], [1.0]], [[1.0], [1.0]]]))[:, :, 0]
    array([[ 1., -1.],
           [-1.,  2.]])
    """
    product = np.empty_like(matrices)
    for k in range(len(matrices)):
        row = matrices[k].copy()
        pivot = 1.0 / row[k]
        scaled = row * pivot
        matrices -= np.multiply(row[:, None], scaled, out=product)
        matrices[k] = matrices[:, k] = scaled
        matrices[k, k] = -pivot
    return np.negative(matrices, out=matrices)


def blocks(values: Array) -> list[slice]:
    """Samples that fit into the cache together."""
    rows = max(_BLOCK_ELEMENTS // max(values.shape[1], 1), 16)
    return [slice(first, first + rows) for first in range(0, len(values), rows)]


def factor_moments(
    values: Array, seen: Patterns, weights: Array, spread: Array
) -> tuple[Array, Array]:
    """Products of factors over who has each channel, and of features and factors.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        0 where missing.
    seen : Patterns
    weights : ndarray of shape (n_features, q)
        Loadings over noise.
    spread : ndarray of shape (q, q, n_patterns)
        Covariance of the factors.

    Returns
    -------
    grams : ndarray of shape (n_channels, q, q)
    toward : ndarray of shape (n_features, q)
    """
    n_factors = len(spread)
    means = np.empty((n_factors, len(values)))
    toward, own = np.zeros((values.shape[1], n_factors)), seen.by_sample(spread)
    for block in blocks(values):
        part = values[block]
        means[:, block] = apply(own[:, :, block], (part @ weights).T)
        toward += part.T @ means[:, block].T
    rows, columns = pairs(n_factors)
    second = seen.sums(means[rows] * means[columns])
    second += spread[rows, columns] * seen.times
    return np.moveaxis(unfolded(second @ seen.rows, n_factors), 2, 0), toward


def apply(matrices: Array, vectors: Array) -> Array:
    """Multiply matrices (q, q, n) by vectors (q, n)."""
    return np.asarray(np.einsum("qrn,rn->qn", matrices, vectors))
