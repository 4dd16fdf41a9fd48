"""Exact nearest neighbours in Manhattan distance, screened in 16-bit fixed point for speed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

# 12 bits per feature: 16 of them add up within 16 bits, and numpy works on 32 values at a time.
_LEVELS = 4095
_FEATURES_PER_SUM = 16
# Pairs handled by one numpy call: two such arrays of 16 bits stay in a core's cache.
_PAIRS_PER_CALL = 2**17
_SELF = np.iinfo(np.int32).max
# Up to this size the symmetric distance matrix is kept and each pair is measured once.
_MATRIX_BYTES = 512 * 2**20


class ManhattanNeighbours:
    """Nearest neighbours among points of the unit cube.

    Distances of the points rounded to a grid are cheap and at most
    ``n_features / levels`` wrong, so the true k nearest are surely among those whose rounded
    distance exceeds the k-th smallest by at most twice that. Only these few are measured again
    exactly. Equally far neighbours: the first rows win.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Values in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> neighbours = ManhattanNeighbours(np.array([[0.0], [0.1], [1.0], [0.4]]))
    >>> neighbours.nearest(slice(0, 1), neighbours.strip(slice(0, 1)), slice(0, 4), 2)
    (array([0, 0]), array([1, 3]))
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
        return max(1, _PAIRS_PER_CALL // self.n_samples)

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

    def nearest(
        self, rows: slice, strip: NDArray[np.int32], among: slice, k: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs (row, neighbour): the k nearest of each row among a range of rows."""
        distances = strip[:, among]
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
        near = distances <= (kth + 2 * self.n_features)[:, None]
        near &= distances != _SELF
        surplus = np.flatnonzero(near.sum(axis=1) > k)
        for row in surplus:
            maybe = np.flatnonzero(near[row])
            at = rows.start + row
            exact = cdist(self.Z[at : at + 1], self.Z[among.start + maybe], "cityblock")[0]
            near[row, maybe[np.argsort(exact, kind="stable")[k:]]] = False
        row, neighbour = np.nonzero(near)
        return row + rows.start, neighbour + among.start

    def summed_differences(
        self, rows: NDArray[np.intp], others: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Sum over pairs of the absolute difference in each feature."""
        total = np.zeros(self.n_features)
        for pairs in _chunks(rows.size, max(1, 2**17 // self.n_features)):
            difference = self.Z[rows[pairs]]
            difference -= self.Z[others[pairs]]
            total += np.abs(difference, out=difference).sum(axis=0)
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


def _chunks(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
