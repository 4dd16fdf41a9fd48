"""ReliefF: a good feature differs between near neighbours of other classes, not of the same."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from idfsmec._validation import N_JOBS, Constraints, integer
from idfsmec.selection._base import CompleteSelector, constant_features

_DISTANCES_PER_CHUNK = 2**18
# Distances closer than this are ties (rounding only).
_TIE = 1e-10


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
        Threads, as in joblib; -1 uses all cores. The result is the same for any number.

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
        constant = constant_features(X)
        Z = (X - X.min(axis=0)) / np.where(constant, np.inf, np.ptp(X, axis=0))
        n_rows = max(1, _DISTANCES_PER_CHUNK // y.size)
        sums = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_sum_differences)(Z, y, rows, self.n_neighbors)
            for rows in gen_batches(y.size, n_rows)
        )
        scores = np.sum(sums, axis=0) / y.size
        scores[constant] = min(scores.min(), 0)
        self._set_ranking(scores, np.lexsort([-scores, constant]))


def _sum_differences(
    Z: NDArray[np.float64], y: NDArray[np.intp], rows: slice, k: int
) -> NDArray[np.float64]:
    """Sum the weighted differences of some samples to their nearest hits and misses."""
    distance = cdist(Z[rows], Z, "cityblock")
    distance[np.arange(len(distance)), np.arange(y.size)[rows]] = np.inf  # no sample is its own
    total = np.zeros(Z.shape[1])
    for other, size in enumerate(np.bincount(y)):
        hits = y[rows] == other
        members = np.flatnonzero(y == other)
        # The share of the other class among all samples that are not of the own class.
        factor = np.where(hits, -1.0, size / np.maximum(y.size - np.bincount(y)[y[rows]], 1))
        n_near = np.minimum(k, size - hits)
        weights = _shares(distance[:, members], n_near)
        weights *= (factor / np.maximum(n_near, 1))[:, None]
        for own, row in zip(Z[rows], weights, strict=True):
            (near,) = row.nonzero()
            total += row[near] @ np.abs(Z[members[near]] - own)
    return total


def _shares(distance: NDArray[np.float64], n_near: NDArray[np.intp]) -> NDArray[np.float64]:
    """Share out ``n_near`` places per row to the nearest; ties for the last places share them."""
    last = np.sort(distance, axis=1)[np.arange(n_near.size), np.maximum(n_near, 1) - 1]
    nearer = distance < (last - _TIE)[:, None]
    tied = ~nearer & (distance <= (last + _TIE)[:, None])
    left = n_near - nearer.sum(axis=1)
    return nearer + tied * (left / tied.sum(axis=1))[:, None]
