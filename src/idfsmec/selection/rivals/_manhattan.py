"""Nearest neighbours in Manhattan distance: screened on a grid of integers, told apart in double.

Values are rounded to a grid of 1024 levels: 16-bit integers are compared several times as fast as
doubles. It is known how far rounding moved each sample, and so how well the distance of two is
known. Where that leaves open who is among the nearest, exact distances decide: a few pairs of
every sample.

Samples are compared with those a fixed number of places later, all at once. So both sides of a
comparison are contiguous, which is three times as fast for numpy as one sample with many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: Two samples each, and what their difference counts.
Pairs = tuple[Indices, Indices, Floats]

# Sums of so many features with values up to the last level fit into 16 bits.
_LEVELS = 1023
_FEATURES_PER_SUM = 64
# Offsets that one task compares.
_OFFSETS_PER_TASK = 64
# Distances searched by one call.
_DISTANCES_PER_SEARCH = 2**18
# Differences of single values handled by one numpy call when pairs are looked at.
_DIFFERENCES_PER_CALL = 2**16
# Distances closer than this are ties (rounding only).
_TIE = 1e-10
# In levels, many times what sums of doubles and ties are off.
_ROUNDING = 1e-3
# How far a sample is from itself.
_ITSELF = np.iinfo(np.int32).max
# With a larger share of open pairs all of them are measured: that is faster than picking some.
_MANY_OPEN = 1 / 6
# Up to this size the matrix of screened distances is kept; otherwise all of them are measured.
_MATRIX_BYTES = 512 * 2**20


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
    >>> for offsets in neighbours.offsets():
    ...     neighbours.screen(offsets)
    >>> row, neighbour, share = neighbours.nearest(slice(0, 1), slice(0, 4), k=2)
    >>> neighbour, share
    (array([1, 3]), array([1., 1.]))
    >>> neighbours.summed_differences(row, neighbour, share)
    array([0.5])
    """

    def __init__(self, Z: Floats) -> None:
        self.Z = Z
        self.n_samples, self.n_features = Z.shape
        keep = 4 * self.n_samples**2 <= _MATRIX_BYTES
        shape = (self.n_samples, self.n_samples)
        self._matrix = np.full(shape, _ITSELF, dtype=np.int32) if keep else None
        #: By how many levels rounding may have moved the distances of a sample.
        self._moved = np.zeros(self.n_samples)
        if keep:
            levels = np.rint(_LEVELS * Z)
            self._moved = np.abs(_LEVELS * Z - levels).sum(axis=1)
            self._levels = np.empty((self.n_features, self._width), dtype=np.uint16)
            self._levels[:, : self.n_samples] = levels.T
            self._levels[:, self.n_samples :] = self._levels[:, : self._width - self.n_samples]
            self._sums = self._levels.sum(axis=0, dtype=np.int32)

    @property
    def _width(self) -> int:
        """Samples in a circle, as far as any of them looks ahead."""
        return self.n_samples + self.n_samples // 2

    def offsets(self) -> list[slice]:
        """Offsets that :meth:`screen` must see before :meth:`nearest`.

        There are none for large problems.
        """
        if self._matrix is None:
            return []
        return list(_chunks(1, self.n_samples // 2 + 1, _OFFSETS_PER_TASK))

    def search_strips(self, rows: slice) -> list[slice]:
        """Parts of these rows that :meth:`nearest` handles well at a time."""
        n_rows = max(1, _DISTANCES_PER_SEARCH // self.n_samples)
        return list(_chunks(rows.start, rows.stop, n_rows))

    def screen(self, offsets: slice) -> None:
        """Measure on the grid how far all samples are from those so many places later."""
        n = self.n_samples
        larger = np.zeros((offsets.stop - offsets.start, n), dtype=np.int32)
        buffer = np.empty((_FEATURES_PER_SUM, self._width), dtype=np.uint16)
        sums = np.empty(n, dtype=np.uint16)
        for features in _chunks(0, self.n_features, _FEATURES_PER_SUM):  # they stay in the cache
            levels = self._levels[features]
            size = levels.size - self._width + n
            levels, found = levels.ravel(), buffer[: len(levels)]
            ours, out = levels[:size], buffer.ravel()[:size]
            for total, offset in zip(larger, range(offsets.start, offsets.stop), strict=True):
                np.maximum(levels[offset : offset + size], ours, out=out)
                np.add.reduce(found[:, :n], axis=0, dtype=np.uint16, out=sums)
                total += sums
        own = self._sums
        for total, offset in zip(larger, range(offsets.start, offsets.stop), strict=True):
            distances = 2 * total - own[:n] - own[offset : offset + n]  # |a - b| of each
            self._keep(offset, distances[: n - offset])
            self._keep(n - offset, distances[n - offset :])

    def _keep(self, offset: int, distances: NDArray[np.int32]) -> None:
        """Write distances between samples i and i + offset into both halves of the matrix."""
        if self._matrix is not None:
            n, flat = self.n_samples, self._matrix.ravel()
            flat[offset : (n - offset) * n : n + 1] = distances
            flat[offset * n :: n + 1] = distances

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
        screened = self._screened(rows, among)
        kth = np.partition(screened, k - 1, axis=1)[:, k - 1]
        # The distance of the kth is between kth - doubt and kth + doubt, as is everyone's own.
        doubt = self._moved[rows] + self._moved[among].max() + _ROUNDING
        limit = np.ceil(kth + 2 * doubt).astype(screened.dtype)
        row, column = np.nonzero(screened <= limit[:, None])
        sure = screened[row, column] < (kth - 2 * doubt)[row]
        places = k - np.bincount(row[sure], minlength=kth.size)
        own, other = row[~sure], column[~sure]
        share = np.ones(row.size)
        share[~sure] = _shares(own, self._exact(rows, among, own, other), places)
        near = share > 0
        return row[near] + rows.start, column[near] + among.start, share[near]

    def _screened(self, rows: slice, among: slice) -> NDArray:
        """Distances of these rows in levels; a row to itself is infinitely far."""
        if self._matrix is not None:
            return self._matrix[rows, among]
        distances: Floats = _LEVELS * cdist(self.Z[rows], self.Z[among], "cityblock")
        here = np.arange(max(rows.start, among.start), min(rows.stop, among.stop))
        distances[here - rows.start, here - among.start] = _ITSELF
        return distances

    def _exact(self, rows: slice, among: slice, row: Indices, column: Indices) -> Floats:
        """Distances of pairs of these rows and others."""
        if row.size > _MANY_OPEN * (rows.stop - rows.start) * (among.stop - among.start):
            found: Floats = cdist(self.Z[rows], self.Z[among], "cityblock")[row, column]
            return found
        found = np.empty(row.size)
        for pairs, differences in self._differences(row + rows.start, column + among.start):
            differences.sum(axis=1, out=found[pairs])
        return found

    def summed_differences(self, first: Indices, second: Indices, weights: Floats) -> Floats:
        """Weighted sum over pairs of the absolute differences in each feature."""
        total = np.zeros(self.n_features)
        for pairs, differences in self._differences(first, second):
            total += weights[pairs] @ differences
        return total

    def _differences(self, first: Indices, second: Indices) -> Iterator[tuple[slice, Floats]]:
        """Absolute differences of pairs, a few at a time."""
        n_pairs = max(1, _DIFFERENCES_PER_CALL // self.n_features)
        buffers = np.empty((2, n_pairs, self.n_features))  # used again: fresh memory is slow
        for pairs in _chunks(0, first.size, n_pairs):
            own, other = buffers[:, : pairs.stop - pairs.start]
            self.Z.take(first[pairs], axis=0, out=own, mode="clip")
            self.Z.take(second[pairs], axis=0, out=other, mode="clip")
            np.subtract(own, other, out=own)
            yield pairs, np.abs(own, out=own)


def _shares(row: Indices, distance: Floats, places: Indices) -> Floats:
    """What each of the open pairs gets of the places left in its row; rows are sorted."""
    by_distance = np.lexsort([distance, row])
    counts = np.bincount(row, minlength=places.size)
    starts = np.cumsum(counts) - counts
    last = distance[by_distance[starts + places - 1]]
    nearer = distance < (last - _TIE)[row]
    tied = ~nearer & (distance <= (last + _TIE)[row])
    n_nearer, n_tied = (np.bincount(row[mask], minlength=places.size) for mask in (nearer, tied))
    return np.where(tied, ((places - n_nearer) / n_tied)[row], nearer)


def _chunks(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
