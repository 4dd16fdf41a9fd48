"""Nearest neighbours in Manhattan distance, and what they differ in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

# Values of each of the two sets of samples that one call of cdist compares: they stay in a core's
# cache, and the call lasts long enough for threads not to wait for each other.
_VALUES_PER_TILE = 2**16
# Distances searched by one call.
_DISTANCES_PER_SEARCH = 2**18
# Differences of single values handled by one numpy call when pairs are added up.
_DIFFERENCES_PER_SUM = 2**16
# Distances closer than this are ties (rounding only).
_TIE = 1e-10
# Up to this size the symmetric distance matrix is kept and each pair is measured once.
_MATRIX_BYTES = 512 * 2**20

Pairs = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


class ManhattanNeighbours:
    """Nearest neighbours among points.

    Neighbours that tie for the last places share them, so that the order of the rows does not
    matter.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Values in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> neighbours = ManhattanNeighbours(np.array([[0.0], [0.1], [1.0], [0.4]]))
    >>> for tile in neighbours.tiles():
    ...     neighbours.measure(tile)
    >>> row, neighbour, share = neighbours.nearest(slice(0, 1), slice(0, 4), k=2)
    >>> neighbour, share
    (array([1, 3]), array([1., 1.]))
    >>> neighbours.summed_differences(row, neighbour, share)
    array([0.5])
    """

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        self.n_samples, self.n_features = Z.shape
        keep = 8 * self.n_samples**2 <= _MATRIX_BYTES
        self._matrix = np.empty((self.n_samples, self.n_samples)) if keep else None

    def tiles(self) -> list[tuple[slice, slice]]:
        """Rows and others that :meth:`measure` must see before :meth:`nearest`.

        There are none for large problems.
        """
        if self._matrix is None:
            return []
        n_rows = min(max(_VALUES_PER_TILE // self.n_features, 32), 128)
        strips = list(_chunks(0, self.n_samples, n_rows))
        return [(rows, others) for i, rows in enumerate(strips) for others in strips[i:]]

    def search_strips(self, rows: slice) -> list[slice]:
        """Parts of these rows that :meth:`nearest` handles well at a time."""
        n_rows = max(1, _DISTANCES_PER_SEARCH // self.n_samples)
        return list(_chunks(rows.start, rows.stop, n_rows))

    def measure(self, tile: tuple[slice, slice]) -> None:
        """Measure the distances between rows and others, for both."""
        if self._matrix is not None:
            rows, others = tile
            distances = cdist(self.Z[rows], self.Z[others], "cityblock")
            self._matrix[rows, others] = distances
            self._matrix[others, rows] = distances.T

    def nearest(self, rows: slice, among: slice, k: int) -> Pairs:
        """Find the k nearest of each row.

        Parameters
        ----------
        rows : slice
            Whose neighbours.
        among : slice
            Which samples may be neighbours; at least k besides the row itself.
        k : int
            Number of neighbours.

        Returns
        -------
        row, neighbour : ndarray of shape (n_pairs,)
        share : ndarray of shape (n_pairs,)
            1, or less for neighbours that share a place; k in sum for every row.
        """
        distances = self._strip(rows, among)
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
        row, neighbour = np.nonzero(distances <= (kth + _TIE)[:, None])
        share = np.ones(row.size)
        crowded = np.flatnonzero((np.bincount(row, minlength=kth.size) > k)[row])
        if crowded.size:
            row_crowded = row[crowded]
            nearer = distances[row_crowded, neighbour[crowded]] < kth[row_crowded] - _TIE
            n_nearer = np.bincount(row_crowded[nearer], minlength=kth.size)
            tied = crowded[~nearer]
            n_tied = np.bincount(row[tied], minlength=kth.size)
            share[tied] = ((k - n_nearer) / np.maximum(n_tied, 1))[row[tied]]
        return row + rows.start, neighbour + among.start, share

    def summed_differences(
        self, first: NDArray[np.intp], second: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weighted sum over pairs of the absolute differences in each feature."""
        total = np.zeros(self.n_features)
        n_pairs = max(1, _DIFFERENCES_PER_SUM // self.n_features)
        buffers = np.empty((2, n_pairs, self.n_features))  # used again: fresh memory is slow
        for pairs in _chunks(0, first.size, n_pairs):
            own, other = buffers[:, : pairs.stop - pairs.start]
            self.Z.take(first[pairs], axis=0, out=own, mode="clip")
            self.Z.take(second[pairs], axis=0, out=other, mode="clip")
            np.subtract(own, other, out=own)
            total += weights[pairs] @ np.abs(own, out=own)
        return total

    def _strip(self, rows: slice, among: slice) -> NDArray[np.float64]:
        """Distances of these rows; a row to itself is infinitely far."""
        if self._matrix is not None:
            distances = self._matrix[rows, among].copy()
        else:
            distances = cdist(self.Z[rows], self.Z[among], "cityblock")
        here = np.arange(max(rows.start, among.start), min(rows.stop, among.stop))
        distances[here - rows.start, here - among.start] = np.inf
        return distances


def _chunks(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
