"""Exact nearest neighbours in Manhattan distance, screened in 16-bit fixed point for speed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# 12 bits per feature: 16 of them add up within 16 bits, and numpy works on 32 values at a time.
_LEVELS = 4095
_FEATURES_PER_SUM = 16
# Pairs handled by one numpy call: two such arrays of 16 bits stay in a core's cache.
_PAIRS_PER_CALL = 2**17
# Differences of single values handled by one call when neighbours are measured exactly.
_VALUES_PER_CALL = 2**17
# Distances closer than this are ties (rounding only).
_TIE = 1e-10
_SELF = np.iinfo(np.int32).max
# Up to this size the symmetric distance matrix is kept and each pair is measured once.
_MATRIX_BYTES = 512 * 2**20


class ManhattanNeighbours:
    """Nearest neighbours among points of the unit cube.

    Distances of the points rounded to a grid are cheap and at most
    ``n_features / levels`` wrong, so the true k nearest are surely among those whose rounded
    distance exceeds the k-th smallest by at most twice that. Only these few are measured again
    exactly. Neighbours that tie for the last places share them, so that the order of the rows
    does not matter.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Values in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> neighbours = ManhattanNeighbours(np.array([[0.0], [0.1], [1.0], [0.4]]))
    >>> neighbours.measure(slice(0, 4))
    >>> first = slice(0, 1)
    >>> neighbours.summed_differences(first, neighbours.strip(first), slice(0, 4), k=2)
    array([0.5])
    """

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        self.n_samples, self.n_features = Z.shape
        self._grid = np.rint(Z.T * _LEVELS).astype(np.uint16, order="C")
        self._sums = self._grid.sum(axis=0, dtype=np.int32)
        keep = 4 * self.n_samples**2 <= _MATRIX_BYTES
        self._matrix = np.empty((self.n_samples, self.n_samples), np.int32) if keep else None

    @property
    def keeps_matrix(self) -> bool:
        """Whether :meth:`measure` must have seen all rows before :meth:`strip` is called."""
        return self._matrix is not None

    @property
    def rows_per_strip(self) -> int:
        """How many rows to handle at a time."""
        # At least eight strips, or measuring each pair once would save little.
        return max(1, min(_PAIRS_PER_CALL // self.n_samples, self.n_samples // 8))

    def measure(self, rows: slice) -> None:
        """Fill these rows' distances to themselves and all later rows, and their mirror."""
        if self._matrix is not None:
            distances = self._rounded_distances(rows, rows.start)
            self._matrix[rows, rows.start :] = distances
            self._matrix[rows.start :, rows] = distances.T

    def strip(self, rows: slice) -> NDArray[np.int32]:
        """Rounded distances of these rows to all, shape (rows, n_samples); own ones infinite."""
        if self._matrix is not None:
            distances = self._matrix[rows]
        else:
            distances = self._rounded_distances(rows, 0)
        here = np.arange(rows.start, rows.stop)
        distances[here - rows.start, here] = _SELF
        return distances

    def summed_differences(
        self, rows: slice, strip: NDArray[np.int32], among: slice, k: int
    ) -> NDArray[np.float64]:
        """Absolute differences to the k nearest, per feature, summed over neighbours and rows.

        Parameters
        ----------
        rows : slice
            Whose neighbours.
        strip : ndarray of shape (rows, n_samples)
            Their rounded distances, from :meth:`strip`.
        among : slice
            Which samples may be neighbours; at least k besides the row itself.
        k : int
            Number of neighbours.

        Returns
        -------
        total : ndarray of shape (n_features,)
        """
        distances = strip[:, among]
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
        near = distances <= np.minimum(kth + 2 * self.n_features, _SELF - 1)[:, None]
        row, neighbour = np.nonzero(near)
        counts = near.sum(axis=1)
        row_ends = np.cumsum(counts)
        total = np.zeros(self.n_features)
        n_pairs = max(_VALUES_PER_CALL // self.n_features, int(counts.max()))
        buffers = np.empty((2, n_pairs, self.n_features))
        start = 0
        while start < row.size:
            # Whole rows only, and at least one.
            fits = np.searchsorted(row_ends, start + n_pairs, side="right") - 1
            stop = int(row_ends[max(fits, row[start])])
            pairs = slice(start, stop)
            own, other = buffers[:, : stop - start]
            self.Z.take(row[pairs] + rows.start, axis=0, out=own, mode="clip")
            self.Z.take(neighbour[pairs] + among.start, axis=0, out=other, mode="clip")
            np.subtract(own, other, out=own)
            np.abs(own, out=own)
            total += _neighbour_weights(row[pairs], own, k) @ own
            start = stop
        return total

    def _rounded_distances(self, rows: slice, first: int) -> NDArray[np.int32]:
        """Distances on the grid by |a - b| = 2 max(a, b) - a - b, summed over features."""
        shape = (rows.stop - rows.start, self.n_samples - first)
        total = np.zeros(shape, dtype=np.int32)
        partial, larger = np.empty(shape, np.uint16), np.empty(shape, np.uint16)
        for features in _chunks(self.n_features, _FEATURES_PER_SUM):
            group = self._grid[features]
            np.maximum(group[0, rows, None], group[0, first:], out=partial)
            for values in group[1:]:
                np.maximum(values[rows, None], values[first:], out=larger)
                np.add(partial, larger, out=partial)
            total += partial
        total *= 2
        total -= self._sums[rows, None]
        total -= self._sums[first:]
        return total


def _neighbour_weights(
    row: NDArray[np.intp], differences: NDArray[np.float64], k: int
) -> NDArray[np.float64]:
    """Weigh each row's candidates: 1 for the k nearest, a share for ties on the k-th place."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    counts = np.diff(first, append=row.size)
    if (counts == k).all():
        return np.ones(row.size)
    distance = differences.sum(axis=1)
    by_distance = np.lexsort((distance, row))
    limit = np.repeat(distance[by_distance[first + k - 1]], counts)
    nearer = distance < limit - _TIE
    tied = ~nearer & (distance <= limit + _TIE)
    places_left = k - np.add.reduceat(nearer, first, dtype=np.intp)
    share = places_left / np.add.reduceat(tied, first, dtype=np.intp)
    return np.where(tied, np.repeat(share, counts), nearer)


def _chunks(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
