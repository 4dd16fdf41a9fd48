"""How good is a subset of features for nearest neighbours: error, size and separation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

_STEEPNESS = 5.0
_DIGITS = 12

Floats = NDArray[np.float64]


class SubsetFitness:
    """Three objectives of feature subsets, each to be minimised, remembered once computed.

    1. Balanced error of the nearest neighbour (Euclidean) over fixed folds.
    2. Share of features in the subset.
    3. 1 / (1 + exp(-5 (within - between))): mean distance to the farthest sample of the same
       class against mean distance to the nearest of another class, Manhattan per feature.

    The empty subset has (1, 1, 1). Distances are sums over features, so those of a sample for many
    subsets come from one product of its differences to the others with the subsets' masks, and
    no distances are kept: only the farthest and the nearest count.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled to [0, 1].
    y : ndarray of shape (n_samples,)
        Classes from 0.
    folds : ndarray of shape (n_samples,)
        The fold each sample is tested in.
    n_threads : int, default=1
        Threads that share the samples and the subsets; the objectives are the same for any
        number.

    Attributes
    ----------
    n_evaluations : int
        Subsets computed so far; asking for one again is free.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.1, 0.9], [0.9, 0.2], [1.0, 0.8]])
    >>> fitness = SubsetFitness(X, np.array([0, 0, 1, 1]), np.arange(4))
    >>> fitness(np.array([[True, False], [False, True], [True, False]])).round(3)
    array([[0.   , 0.5  , 0.023],
           [1.   , 0.5  , 0.953],
           [0.   , 0.5  , 0.023]])
    >>> fitness.n_evaluations
    2
    """

    def __init__(
        self,
        X: Floats,
        y: NDArray[np.intp],
        folds: NDArray[np.intp],
        n_threads: int = 1,
    ) -> None:
        self.X = X
        self._n_threads = n_threads
        self.n_evaluations = 0
        self._memory: dict[bytes, Floats] = {}
        self._sizes = np.bincount(y)
        # Samples of a class, or of a fold, side by side: their distances are slices then.
        by_class, by_fold = np.argsort(y, kind="stable"), np.argsort(folds, kind="stable")
        self._of_class = X[by_class]
        self._class_ends = np.repeat(np.cumsum(self._sizes), self._sizes)
        self._of_fold, self._y_of_fold = X[by_fold], y[by_fold]
        ends = np.cumsum(np.bincount(folds))
        self._folds = list(zip([0, *ends[:-1]], ends, strict=True))

    def __call__(self, masks: NDArray[np.bool_]) -> Floats:
        """Give the objectives of each mask, shape (n_masks, 3)."""
        keys = [np.packbits(mask).tobytes() for mask in masks]
        new = {key: place for place, key in enumerate(keys) if key not in self._memory}
        if new:
            self.n_evaluations += len(new)
            values = self._evaluate(masks[list(new.values())])
            self._memory.update(zip(new, values, strict=True))
        return np.array([self._memory[key] for key in keys])

    def _evaluate(self, masks: NDArray[np.bool_]) -> Floats:
        sizes = masks.sum(axis=1)
        objectives = np.ones((len(masks), 3))
        some = np.flatnonzero(sizes)
        with ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else nullcontext() as pool:
            in_turn = pool.map if pool is not None else map
            objectives[some, 0] = list(in_turn(self._balanced_error, masks[some]))
            objectives[some, 1] = sizes[some] / masks.shape[1]
            apart = self._separation(masks[some], in_turn) / sizes[some]
        # Digits that depend on the order of sums must not decide who beats whom.
        objectives[some, 2] = (1 / (1 + np.exp(-_STEEPNESS * apart))).round(_DIGITS)
        return objectives

    def _balanced_error(self, mask: NDArray[np.bool_]) -> float:
        """1 - mean recall when each sample gets the class of the nearest in another fold."""
        X = self._of_fold[:, mask]
        squares = np.einsum("ij,ij->i", X, X)
        # Of |a - b|^2, what depends on b: its own square, and -2 times the product with a.
        target = np.column_stack([-2 * X, squares])
        source = np.column_stack([X, np.ones(len(X))])
        hit = np.zeros(len(X), dtype=bool)
        for begin, end in self._folds:
            if end - begin in (0, len(X)):
                continue
            own, rows = source[begin:end], np.arange(end - begin)
            nearest, least = np.zeros(rows.size, dtype=np.intp), np.full(rows.size, np.inf)
            for first, last in ((0, begin), (end, len(X))):
                if first == last:
                    continue
                distance = own @ target[first:last].T
                place = distance.argmin(axis=1)
                closer = distance[rows, place] < least
                nearest[closer] = first + place[closer]
                least[closer] = distance[rows, place][closer]
            hit[begin:end] = self._y_of_fold[nearest] == self._y_of_fold[begin:end]
        recall = np.bincount(self._y_of_fold, hit, self._sizes.size) / self._sizes
        return float(1 - recall.mean())

    def _separation(
        self, masks: NDArray[np.bool_], in_turn: Callable[..., Iterable[tuple[Floats, Floats]]]
    ) -> Floats:
        """How much farther the own class reaches than the next class begins, on average."""
        used = masks.any(axis=0)
        X = np.ascontiguousarray(self._of_class[:, used])
        weights = np.ascontiguousarray(masks[:, used].T, dtype=np.float64)
        shares = [range(part, len(X) - 1, self._n_threads) for part in range(self._n_threads)]
        parts = list(in_turn(lambda rows: self._extremes(X, weights, rows), shares))
        within = np.maximum.reduce([far for far, _ in parts])
        between = np.minimum.reduce([near for _, near in parts])
        return within.mean(axis=0) - between.mean(axis=0)

    def _extremes(self, X: Floats, weights: Floats, rows: Iterable[int]) -> tuple[Floats, Floats]:
        """Farthest of the own class and nearest of the others, from some samples to later ones.

        Both ends of a pair take notice, so that each pair is looked at once.
        """
        n_samples, n_masks = len(X), weights.shape[1]
        far, near = np.zeros((n_samples, n_masks)), np.full((n_samples, n_masks), np.inf)
        larger, distances = np.empty_like(X), np.empty((n_samples, n_masks))
        totals = X @ weights
        for row in rows:
            rest, end = row + 1, self._class_ends[row]
            # |a - b| = 2 max(a, b) - a - b: one pass over the features instead of two.
            np.maximum(X[rest:], X[row], out=larger[rest:])
            found = np.matmul(larger[rest:], weights, out=distances[rest:])
            found *= 2
            found -= totals[rest:]
            found -= totals[row]
            if rest < end:
                own = distances[rest:end]
                np.maximum(far[rest:end], own, out=far[rest:end])
                np.maximum(far[row], own.max(axis=0), out=far[row])
            if end < n_samples:
                other = distances[end:]
                np.minimum(near[end:], other, out=near[end:])
                np.minimum(near[row], other.min(axis=0), out=near[row])
        return far, near


def stratified_folds(
    y: NDArray[np.intp], n_folds: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Deal the samples of each class, shuffled, to folds in turn; any class size works.

    Examples
    --------
    >>> import numpy as np
    >>> folds = stratified_folds(np.array([0, 0, 0, 1, 1, 1]), 3, np.random.RandomState(0))
    >>> sorted(folds[:3].tolist()), sorted(folds[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    shuffled = rng.permutation(y.size)
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    folds = np.empty(y.size, dtype=np.intp)
    folds[by_class] = np.arange(y.size) % n_folds
    return folds
