"""ReliefF: a good feature differs between near neighbours of other classes, not of the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import N_JOBS, Constraints, integer
from idfsmec.selection._base import CompleteSelector
from idfsmec.solver import Scaling

# Below so many differences of single values, starting threads costs more than it saves.
_WORTH_THREADS = 5e7
_DIFFERENCES_PER_TASK = 2**20
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


class ReliefF(CompleteSelector):
    """ReliefF with all samples as probes.

    Every feature is scaled to [0, 1]. For each sample, the score of a feature falls by its
    mean absolute difference to the nearest samples of the same class (hits), and rises by that
    to the nearest samples of each other class (misses), weighted by the other class's share.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    n_neighbors : int, default=10
        Hits, and misses per class; a class with fewer samples gives those it has.
    n_jobs : int or None, default=None
        Threads, as in joblib; -1 uses all cores. Small problems use one. The result is the
        same for any number.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        ReliefF weights, between -1 and 1.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature; equal scores in column order, constant features last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.

    Notes
    -----
    Neighbours are nearest in Manhattan distance. Those that tie for the last places share
    them, so that the order of the samples does not matter.
    A constant feature has weight 0. Since it comes last, features with a negative weight do
    not stand below it by their score: all constant ones get the lowest weight found.

    References
    ----------
    I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994.
    M. Robnik-Šikonja, I. Kononenko, "Theoretical and empirical analysis of ReliefF and
    RReliefF", Machine Learning 53, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ReliefF().fit(X, y).scores_.round(4)
    array([0.1399, 0.1226, 0.359 , 0.3754])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_neighbors": [integer(1)],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        n_neighbors: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        lowest, extent = X.min(axis=0), np.ptp(X, axis=0)
        constant = Scaling.learn(X).constant
        # Classes side by side, so that each is a range of rows.
        by_class = np.argsort(y, kind="stable")
        Z = X[by_class]
        Z -= lowest
        Z /= np.where(constant, 1, extent)
        with one_blas_thread():  # the threads here are our own
            scores = self._weigh(Z, np.bincount(y))
        scores[constant] = min(scores.min(), 0)
        order = np.lexsort([-scores, constant])
        self._set_ranking(scores, order)

    def _weigh(self, Z: NDArray[np.float64], class_sizes: NDArray[np.intp]) -> NDArray[np.float64]:
        neighbours = _Neighbours(Z)
        ends = np.cumsum(class_sizes)
        classes = [
            slice(int(end - size), int(end)) for end, size in zip(ends, class_sizes, strict=True)
        ]
        work = float(Z.shape[0]) ** 2 * Z.shape[1]
        n_threads = effective_n_jobs(self.n_jobs) if work > _WORTH_THREADS else 1
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            in_turn = pool.map if pool is not None else map
            list(in_turn(neighbours.measure, neighbours.tiles()))
            searches = [
                (home, rows)
                for home, members in enumerate(classes)
                for rows in neighbours.search_strips(members)
            ]
            found = in_turn(
                lambda search: _weighted_pairs(neighbours, classes, search, self.n_neighbors),
                searches,
            )
            parts = in_turn(
                lambda pairs: neighbours.summed_differences(*pairs),
                _parts(_merged(list(found), Z.shape[0]), Z.shape[1]),
            )
            # Summed in a fixed order: the same for any number of threads.
            return np.sum(list(parts), axis=0) / Z.shape[0]


def _weighted_pairs(
    neighbours: _Neighbours, classes: list[slice], search: tuple[int, slice], k: int
) -> Pairs:
    """Samples of one class with their neighbours, and what each pair's difference counts."""
    home, rows = search
    n_others = neighbours.n_samples - (classes[home].stop - classes[home].start)
    pairs = []
    for other, members in enumerate(classes):
        size = members.stop - members.start
        n_near = min(k, size - 1 if other == home else size)
        if n_near == 0:
            continue
        row, neighbour, share = neighbours.nearest(rows, members, n_near)
        pairs.append((row, neighbour, share * (-1 if other == home else size / n_others) / n_near))
    return _joined(pairs)


def _joined(pairs: list[Pairs]) -> Pairs:
    first, second, weights = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return first, second, weights


def _merged(found: list[Pairs], n_samples: int) -> Pairs:
    """Each pair once: two samples that are each other's neighbours add their weights."""
    first, second, weights = _joined(found)
    key = np.minimum(first, second) * n_samples + np.maximum(first, second)
    different, place = np.unique(key, return_inverse=True)
    first, second = np.divmod(different, n_samples)
    return first, second, np.bincount(place, weights).astype(np.float64, copy=False)


def _parts(pairs: Pairs, n_features: int) -> list[Pairs]:
    """Cut the pairs into tasks of equal size, regardless of the number of threads."""
    n_parts = -(-pairs[0].size * n_features // _DIFFERENCES_PER_TASK)
    return list(zip(*(np.array_split(column, n_parts) for column in pairs), strict=True))


class _Neighbours:
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
    >>> neighbours = _Neighbours(np.array([[0.0], [0.1], [1.0], [0.4]]))
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
