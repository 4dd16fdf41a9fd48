"""ReliefF: a good feature differs between near neighbours of other classes, not of the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import N_JOBS, Constraints, integer
from idfsmec.selection._base import CompleteSelector, constant_features
from idfsmec.selection.rivals._manhattan import ManhattanNeighbours, Pairs

# Below so many differences of single values, starting threads costs more than it saves.
_WORTH_THREADS = 5e7
_DIFFERENCES_PER_TASK = 2**20


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
        constant = constant_features(X)
        # Classes side by side, so that each is a range of rows.
        by_class = np.argsort(y, kind="stable")
        Z = X[by_class]
        Z -= lowest
        Z /= np.where(constant, np.inf, extent)  # what is constant tells nobody apart
        with one_blas_thread():  # the threads here are our own
            scores = self._weigh(Z, np.bincount(y))
        scores[constant] = min(scores.min(), 0)
        order = np.lexsort([-scores, constant])
        self._set_ranking(scores, order)

    def _weigh(self, Z: NDArray[np.float64], class_sizes: NDArray[np.intp]) -> NDArray[np.float64]:
        neighbours = ManhattanNeighbours(Z)
        ends = np.cumsum(class_sizes)
        classes = [
            slice(int(end - size), int(end)) for end, size in zip(ends, class_sizes, strict=True)
        ]
        work = float(Z.shape[0]) ** 2 * Z.shape[1]
        n_threads = effective_n_jobs(self.n_jobs) if work > _WORTH_THREADS else 1
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            in_turn = pool.map if pool is not None else map
            list(in_turn(neighbours.screen, neighbours.offsets()))
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
    neighbours: ManhattanNeighbours, classes: list[slice], search: tuple[int, slice], k: int
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
