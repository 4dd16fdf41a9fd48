"""Exact nearest neighbours in Manhattan distance, screened in 16-bit fixed point for speed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# 12 bits per feature: 16 of them add up within 16 bits, and numpy works on 32 values at a time.
_LEVELS = 4095
_FEATURES_PER_SUM = 16
# Values handled by one numpy call when distances are screened: they stay in a core's cache, and
# the call lasts long enough for threads not to wait for each other.
_VALUES_PER_CALL = 2**18
# Distances searched by one call.
_PAIRS_PER_CALL = 2**18
# Differences of single values handled by one call when pairs are measured exactly.
_DIFFERENCES_PER_CALL = 2**15
# Distances closer than this are ties (rounding only).
_TIE = 1e-10
_SELF = np.iinfo(np.int32).max
# Up to this size the symmetric distance matrix is kept and each pair is screened once.
_MATRIX_BYTES = 512 * 2**20

Pairs = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


class ManhattanNeighbours:
    """Nearest neighbours among points of the unit cube.

    Distances of the points rounded to a grid are cheap, and how far each point was moved says
    how wrong they can be. So most neighbours are certain at once; only those too close to the
    k-th place to call are measured exactly. Neighbours that tie for the last places share
    them, so that the order of the rows does not matter.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Values in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> neighbours = ManhattanNeighbours(np.array([[0.0], [0.1], [1.0], [0.4]]))
    >>> for rows in neighbours.screening_strips():
    ...     neighbours.screen(rows)
    >>> row, neighbour, share = neighbours.nearest(slice(0, 1), slice(0, 4), k=2)
    >>> neighbour, share
    (array([1, 3]), array([1., 1.]))
    >>> neighbours.summed_differences(row, neighbour, share)
    array([0.5])
    """

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        self.n_samples, self.n_features = Z.shape
        scaled = Z * _LEVELS
        rounded = np.rint(scaled)
        scaled -= rounded
        # A rounded distance is wrong by the moves of its two points at most; the last term
        # is more than rounding in these few operations can amount to.
        self._moved = np.abs(scaled, out=scaled).sum(axis=1) + 1e-6 * self.n_features
        n_groups = -(-self.n_features // _FEATURES_PER_SUM)
        grid = np.zeros((n_groups * _FEATURES_PER_SUM, self.n_samples), np.uint16)
        grid[: self.n_features] = rounded.T
        self._sums = grid.sum(axis=0, dtype=np.int32)
        self._groups = grid.reshape(n_groups, _FEATURES_PER_SUM, self.n_samples)
        keep = 4 * self.n_samples**2 <= _MATRIX_BYTES
        self._matrix = np.empty((self.n_samples, self.n_samples), np.int32) if keep else None

    def screening_strips(self) -> list[slice]:
        """Rows that :meth:`screen` must see before :meth:`nearest`; none for large problems."""
        strips = []
        start = 0 if self._matrix is not None else self.n_samples
        while start < self.n_samples:
            n_rows = _VALUES_PER_CALL // (_FEATURES_PER_SUM * (self.n_samples - start))
            stop = min(start + max(1, min(n_rows, 64)), self.n_samples)
            strips.append(slice(start, stop))
            start = stop
        return strips

    def search_strips(self, rows: slice) -> list[slice]:
        """Parts of these rows that :meth:`nearest` handles well at a time."""
        n_rows = max(1, _PAIRS_PER_CALL // self.n_samples)
        return list(_chunks(rows.start, rows.stop, n_rows))

    def screen(self, rows: slice) -> None:
        """Round the distances of these rows to themselves and all later ones, and mirror them."""
        if self._matrix is not None:
            distances = self._rounded_distances(rows, rows.start)
            self._matrix[rows, rows.start :] = distances
            self._matrix[rows.stop :, rows] = distances[:, rows.stop - rows.start :].T

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
        doubt = np.ceil(2 * (self._moved[rows] + self._moved[among].max())).astype(np.int32)
        near = distances <= (kth + doubt)[:, None]
        row, neighbour = np.nonzero(near)
        share = np.ones(row.size)
        n_near = np.bincount(row, minlength=kth.size)
        unsure = np.flatnonzero((n_near > k)[row])
        if unsure.size:
            row_unsure = row[unsure]
            limit = (kth - doubt)[row_unsure]
            unsure = unsure[distances[row_unsure, neighbour[unsure]] >= limit]
            row_unsure = row[unsure]
            n_sure = n_near - np.bincount(row_unsure, minlength=kth.size)
            exact = self._exact_distances(row_unsure + rows.start, neighbour[unsure] + among.start)
            share[unsure] = _shares(row_unsure, exact, k - n_sure)
        return row + rows.start, neighbour + among.start, share

    def summed_differences(
        self, first: NDArray[np.intp], second: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weighted sum over pairs of the absolute differences in each feature."""
        total = np.zeros(self.n_features)
        for pairs, difference in self._differences(first, second):
            total += weights[pairs] @ difference
        return total

    def _strip(self, rows: slice, among: slice) -> NDArray[np.int32]:
        """Rounded distances of these rows; a row to itself is infinitely far."""
        if self._matrix is not None:
            distances = self._matrix[rows, among]
        else:
            distances = self._rounded_distances(rows, 0)[:, among]
        here = np.arange(max(rows.start, among.start), min(rows.stop, among.stop))
        distances[here - rows.start, here - among.start] = _SELF
        return distances

    def _rounded_distances(self, rows: slice, first: int) -> NDArray[np.int32]:
        """Distances on the grid by |a - b| = 2 max(a, b) - a - b, summed over features."""
        shape = (rows.stop - rows.start, self.n_samples - first)
        total = np.zeros(shape, np.int32)
        partial = np.empty(shape, np.uint16)
        larger = np.empty((_FEATURES_PER_SUM, *shape), np.uint16)
        for group in self._groups:
            np.maximum(group[:, rows, None], group[:, None, first:], out=larger)
            np.add.reduce(larger, axis=0, dtype=np.uint16, out=partial)
            total += partial
        total *= 2
        total -= self._sums[rows, None]
        total -= self._sums[first:]
        return total

    def _exact_distances(
        self, first: NDArray[np.intp], second: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        distances = np.empty(first.size)
        for pairs, difference in self._differences(first, second):
            difference.sum(axis=1, out=distances[pairs])
        return distances

    def _differences(
        self, first: NDArray[np.intp], second: NDArray[np.intp]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Absolute differences of a few pairs at a time; the array is used again."""
        n_pairs = max(1, _DIFFERENCES_PER_CALL // self.n_features)
        buffers = np.empty((2, n_pairs, self.n_features))
        for pairs in _chunks(0, first.size, n_pairs):
            own, other = buffers[:, : pairs.stop - pairs.start]
            self.Z.take(first[pairs], axis=0, out=own, mode="clip")
            self.Z.take(second[pairs], axis=0, out=other, mode="clip")
            np.subtract(own, other, out=own)
            yield pairs, np.abs(own, out=own)


def _shares(
    row: NDArray[np.intp], distance: NDArray[np.float64], places: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Give each row's places to its nearest: 1 each, a share to ties for the last place.

    Examples
    --------
    >>> row, distance = np.array([0, 0, 0, 2]), np.array([0.3, 0.1, 0.3, 0.7])
    >>> _shares(row, distance, places=np.array([2, 0, 1]))
    array([0.5, 1. , 0.5, 1. ])
    """
    start = np.flatnonzero(np.diff(row, prepend=-1))
    n_each = np.diff(start, append=row.size)
    by_distance = np.lexsort((distance, row))
    places = places[row[start]]
    limit = np.repeat(distance[by_distance[start + places - 1]], n_each)
    nearer = distance < limit - _TIE
    tied = ~nearer & (distance <= limit + _TIE)
    places_left = places - np.add.reduceat(nearer, start, dtype=np.intp)
    share = places_left / np.add.reduceat(tied, start, dtype=np.intp)
    return np.where(tied, np.repeat(share, n_each), nearer)


def _chunks(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
