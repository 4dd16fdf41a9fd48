"""How good is a subset of features for nearest neighbours: error, size and separation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection.rivals._class_separation import ClassSeparation, InTurn
from idfsmec.selection.rivals._nearest_error import NearestError

_STEEPNESS = 5.0
_DIGITS = 12
# Subsets from which the gap between bound and separation is guessed, and what it is at least.
_REMEMBERED = 60
_LEAST_GAP = 1e-6

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


class SubsetFitness:
    """Three objectives of feature subsets, each to be minimised, remembered once computed.

    1. Balanced error of the nearest neighbour (Euclidean) over fixed folds.
    2. Share of features in the subset.
    3. 1 / (1 + exp(-5 (within - between))): mean distance to the farthest sample of the same
       class against mean distance to the nearest of another class, Manhattan per feature.

    The empty subset has (1, 1, 1). The third takes the longest; :meth:`bounds` does without.

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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.1, 0.9], [0.9, 0.2], [1.0, 0.8]])
    >>> fitness = SubsetFitness(X, np.array([0, 0, 1, 1]), np.arange(4))
    >>> fitness(np.array([[True, False], [False, True], [True, False]])).round(3)
    array([[0.   , 0.5  , 0.023],
           [1.   , 0.5  , 0.953],
           [0.   , 0.5  , 0.023]])
    >>> fitness.bounds(np.array([[True, True]])).round(3)
    array([[0.   , 1.   , 0.378]])
    """

    def __init__(
        self,
        X: Floats,
        y: NDArray[np.intp],
        folds: NDArray[np.intp],
        n_threads: int = 1,
    ) -> None:
        self.n_features = X.shape[1]
        self._n_threads = n_threads
        self._error = NearestError(X, y, folds)
        self._separation = ClassSeparation(X, y)
        self._errors: dict[bytes, float] = {}
        self._memory: dict[bytes, Floats] = {}
        self._counted: set[bytes] = set()
        self._bounds: dict[bytes, float] = {}
        self._gaps = _Gaps()

    @property
    def n_evaluations(self) -> int:
        """Different subsets that were counted."""
        return len(self._counted)

    def count(self, masks: Masks) -> None:
        """Count subsets that a search has looked at; one that turns up again counts once."""
        self._counted.update(subset_keys(masks))

    def __call__(self, masks: Masks) -> Floats:
        """Give the objectives of each mask, shape (n_masks, 3)."""
        keys = subset_keys(masks)
        new = {key: place for place, key in enumerate(keys) if key not in self._memory}
        if new:
            values = self._evaluate(masks[list(new.values())])
            self._memory.update(zip(new, values, strict=True))
        return np.array([self._memory[key] for key in keys]).reshape(-1, 3)

    def bounds(self, masks: Masks) -> Floats:
        """Give what the objectives are at least: what is known, or two exactly and a bound.

        Whoever beats the bounds of a subset beats the subset.
        """
        return self._without_separation(masks, likely=False)

    def likely(self, masks: Masks) -> Floats:
        """Give what is known, or two objectives and the third as bounds have been off of late."""
        return self._without_separation(masks, likely=True)

    def _without_separation(self, masks: Masks, *, likely: bool) -> Floats:
        keys = subset_keys(masks)
        found = np.array([self._memory.get(key, np.ones(3)) for key in keys]).reshape(-1, 3)
        lacking = np.array([key not in self._memory for key in keys], dtype=bool)
        lacking &= masks.any(axis=1)
        if lacking.any():
            some = masks[lacking]
            sizes = some.sum(axis=1)
            with self._threads() as in_turn:
                found[lacking, 0] = self._balanced_errors(some, in_turn)
            apart = self._least_separations(some)
            if likely:
                apart += self._gaps.likely(sizes)
            found[lacking, 1] = sizes / self.n_features
            found[lacking, 2] = _overlap(apart).round(_DIGITS)
        return found

    def _evaluate(self, masks: Masks) -> Floats:
        objectives = np.ones((len(masks), 3))
        some = masks.any(axis=1)
        if some.any():
            sizes = masks[some].sum(axis=1)
            with self._threads() as in_turn:
                objectives[some, 0] = self._balanced_errors(masks[some], in_turn)
                least = self._least_separations(masks[some])
                apart = self._separation.measure(masks[some], in_turn, self._n_threads)
            self._gaps.add(sizes, apart - least)
            objectives[some, 1] = sizes / self.n_features
            # Digits that depend on the order of sums must not decide who beats whom.
            objectives[some, 2] = _overlap(apart).round(_DIGITS)
        return objectives

    def _least_separations(self, masks: Masks) -> Floats:
        keys = subset_keys(masks)
        new = {key: place for place, key in enumerate(keys) if key not in self._bounds}
        if new:
            values = self._separation.bound(masks[list(new.values())])
            self._bounds.update(zip(new, values, strict=True))
        return np.array([self._bounds[key] for key in keys])

    def _balanced_errors(self, masks: Masks, in_turn: InTurn) -> list[float]:
        keys = subset_keys(masks)
        new = {key: place for place, key in enumerate(keys) if key not in self._errors}
        values = in_turn(self._error, masks[list(new.values())])
        self._errors.update(zip(new, values, strict=True))
        return [self._errors[key] for key in keys]

    @contextmanager
    def _threads(self) -> Iterator[InTurn]:
        if self._n_threads == 1:
            yield map
            return
        with ThreadPoolExecutor(self._n_threads) as pool:
            yield pool.map


class _Gaps:
    """How far bounds of the separation have been off: a power of the number of features."""

    def __init__(self) -> None:
        self._lately: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)

    def add(self, sizes: NDArray[np.intp], gaps: Floats) -> None:
        """Take notice of gaps between bounds and what was measured."""
        sure = np.isfinite(gaps)
        logs = np.log(sizes[sure]), np.log(np.maximum(gaps[sure], _LEAST_GAP))
        self._lately.extend(zip(*logs, strict=True))

    def likely(self, sizes: NDArray[np.intp]) -> Floats:
        """What the gap will be for subsets of these sizes."""
        if not self._lately:
            return np.zeros(sizes.size)
        size, gap = np.array(self._lately).T
        centred = size - size.mean()
        power = centred @ gap / max(centred @ centred, 1.0)
        return np.asarray(np.exp(gap.mean() + power * (np.log(sizes) - size.mean())))


def subset_keys(masks: Masks) -> list[bytes]:
    """Say which masks are the same.

    Examples
    --------
    >>> import numpy as np
    >>> len(set(subset_keys(np.array([[True, False], [False, True], [True, False]]))))
    2
    """
    return [row.tobytes() for row in np.packbits(masks, axis=1)]


def _overlap(apart: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-_STEEPNESS * apart)))


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
    folds = np.empty(y.size, dtype=np.intp)
    folds[_shuffled_by_class(y, rng)] = np.arange(y.size) % n_folds
    return folds


def draw_by_class(
    y: NDArray[np.intp], n_samples: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw samples, in their order: the same share of each class, and of each one at least.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    >>> y[draw_by_class(y, 6, np.random.RandomState(0))]
    array([0, 0, 0, 1, 1, 2])
    """
    by_class, sizes = _shuffled_by_class(y, rng), np.bincount(y)
    before = np.concatenate([np.arange(size) / size for size in sizes])
    first = np.argsort(before, kind="stable")[: max(n_samples, sizes.size)]
    return np.sort(by_class[first])


def _shuffled_by_class(y: NDArray[np.intp], rng: np.random.RandomState) -> NDArray[np.intp]:
    shuffled = rng.permutation(y.size)
    return shuffled[np.argsort(y[shuffled], kind="stable")]
