"""How good is a subset of features for nearest neighbours: error, size and separation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

# Differences of all pairs of samples are kept up to this size, else computed block by block.
_KEPT_BYTES = 256 * 2**20
_BLOCK_BYTES = 32 * 2**20
_STEEPNESS = 5.0


class SubsetFitness:
    """Three objectives of feature subsets, each to be minimised, remembered once computed.

    1. Balanced error of the nearest neighbour (Euclidean) over fixed folds.
    2. Share of features in the subset.
    3. 1 / (1 + exp(-5 (within - between))): mean distance to the farthest sample of the same
       class against mean distance to the nearest of another class, Manhattan per feature.

    The empty subset has (1, 1, 1). Distances are sums over features, so those of many subsets
    come from one product of the pairs' differences with the subsets' masks.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled to [0, 1].
    y : ndarray of shape (n_samples,)
        Classes from 0.
    folds : ndarray of shape (n_samples,)
        The fold each sample is tested in.
    n_threads : int, default=1
        Threads that share the pairs of samples and the subsets; the objectives are the same for
        any number.

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
        X: NDArray[np.float64],
        y: NDArray[np.intp],
        folds: NDArray[np.intp],
        n_threads: int = 1,
    ) -> None:
        self.X = X
        self._n_threads = n_threads
        self.n_classes = int(y.max()) + 1
        self.y = y
        self.n_evaluations = 0
        self._memory: dict[bytes, NDArray[np.float64]] = {}
        self._pairs = np.triu_indices(X.shape[0], 1)
        self._same_fold = folds[:, None] == folds
        self._same_class = y[:, None] == y
        self._others_exist = (~self._same_fold).any(axis=1)
        small = 2 * self._pairs[0].size * X.shape[1] * 8 <= _KEPT_BYTES
        self._kept = self._differences(slice(None)) if small else None

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Give the objectives of each mask, shape (n_masks, 3)."""
        keys = [np.packbits(mask).tobytes() for mask in masks]
        new = {key: place for place, key in enumerate(keys) if key not in self._memory}
        if new:
            self.n_evaluations += len(new)
            values = self._evaluate(masks[list(new.values())])
            self._memory.update(zip(new, values, strict=True))
        return np.array([self._memory[key] for key in keys])

    def _evaluate(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        with ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else nullcontext() as pool:
            in_turn = pool.map if pool is not None else map
            euclidean, manhattan = self._distances(masks.astype(np.float64), in_turn)
            sizes = masks.sum(axis=1)

            def objectives(at: int) -> tuple[float, float, float]:
                if sizes[at] == 0:
                    return 1.0, 1.0, 1.0
                return (
                    self._balanced_error(squareform(euclidean[:, at], checks=False)),
                    sizes[at] / masks.shape[1],
                    self._overlap(squareform(manhattan[:, at], checks=False) / sizes[at]),
                )

            return np.array(list(in_turn(objectives, range(masks.shape[0]))))

    def _distances(
        self, masks: NDArray[np.float64], in_turn: Callable[..., Iterable[None]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared Euclidean and Manhattan distances of all pairs, shape (n_pairs, n_masks)."""
        n_pairs = self._pairs[0].size
        euclidean = np.empty((n_pairs, masks.shape[0]))
        manhattan = np.empty_like(euclidean)

        def measure(block: slice) -> None:
            if self._kept is None:
                absolute, squared = self._differences(block)
            else:
                absolute, squared = self._kept[0][block], self._kept[1][block]
            np.matmul(absolute, masks.T, out=manhattan[block])
            np.matmul(squared, masks.T, out=euclidean[block])

        # Blocks do not depend on the number of threads, so neither do the sums.
        step = max(1, _BLOCK_BYTES // (8 * self.X.shape[1]))
        for _ in in_turn(measure, [slice(at, at + step) for at in range(0, n_pairs, step)]):
            pass
        return euclidean, manhattan

    def _differences(self, block: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Absolute and squared differences of a block of pairs in each feature."""
        first, second = (part[block] for part in self._pairs)
        difference = self.X[first]
        difference -= self.X[second]
        np.abs(difference, out=difference)
        return difference, difference**2

    def _balanced_error(self, squared: NDArray[np.float64]) -> float:
        """1 - mean recall when each sample gets the class of the nearest in another fold."""
        nearest = np.where(self._same_fold, np.inf, squared).argmin(axis=1)
        hit = (self.y[nearest] == self.y) & self._others_exist
        recall = np.bincount(self.y, hit, self.n_classes) / np.bincount(self.y)
        return float(1 - recall.mean())

    def _overlap(self, distance: NDArray[np.float64]) -> float:
        """Logistic of how much farther the own class reaches than the next class begins."""
        within = np.where(self._same_class, distance, 0).max(axis=1).mean()
        between = np.where(self._same_class, np.inf, distance).min(axis=1).mean()
        return float(1 / (1 + np.exp(-_STEEPNESS * (within - between))))


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
