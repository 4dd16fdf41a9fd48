"""How far classes lie apart on subsets of features: farthest of the own class, nearest other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 2.0**-24  # of one operation in single precision
# Rows whose distances are looked at together, differences that stay in a core's cache, others in
# it at least (a product of few rows is a slow one), and subsets that share them.
_ROWS = 8
_DIFFERENCES = 2**18
_OTHERS = 48
_SUBSETS = 64
# Up to so many distances are compared one by one.
_FEW = 24
# Subsets whose extreme pairs are looked at first.
_KEPT = 60

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Codes = NDArray[np.intp]
InTurn = Callable[..., Iterable]
#: Samples and their partners.
Ends = tuple[Codes, Codes]


class ClassSeparation:
    """Mean distance to the farthest of the own class, less that to the nearest of another.

    Distances are Manhattan's. All pairs are measured for many subsets at once, in single
    precision, as products of their differences with the subsets' masks; the pairs that rounding
    leaves as candidates are measured in double precision.

    Looking at some pairs only makes the mean too small. Those that were extreme for subsets
    measured lately are mostly so for the next: they bound it from below, in little time.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Values in [0, 1].
    y : ndarray of shape (n_samples,)
        Classes from 0, at least two.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.1, 0.9], [0.9, 0.2], [1.0, 0.8]])
    >>> apart = ClassSeparation(X, np.array([0, 0, 1, 1]))
    >>> both = np.array([[True, True]])
    >>> apart.bound(both)
    array([-inf])
    >>> apart.measure(np.array([[True, False], [False, True]])).round(3)
    array([-0.75,  0.6 ])
    >>> apart.bound(both) <= apart.measure(both)
    array([ True])
    """

    def __init__(self, X: Floats, y: Codes) -> None:
        order = np.argsort(y, kind="stable")
        self._X = X[order]
        self._single = self._X.astype(np.float32)
        sizes = np.bincount(y)
        ends = np.cumsum(sizes)
        self._blocks = [
            (begin, min(begin + _ROWS, end), end)
            for first, end in zip(ends - sizes, ends, strict=True)
            for begin in range(first, end, _ROWS)
        ]
        self._lately: deque[tuple[Codes, Codes]] = deque(maxlen=_KEPT)
        self._known: list[Ends] = []

    def measure(self, masks: NDArray[np.bool_], in_turn: InTurn = map, n_parts: int = 1) -> Floats:
        """Separation of each subset, which must not be empty, per feature.

        Parameters
        ----------
        masks : ndarray of shape (n_subsets, n_features)
        in_turn : callable
            ``map``, or that of a pool of threads.
        n_parts : int
            Parts of the work that it is given.
        """
        found = []
        for first in range(0, len(masks), _SUBSETS):
            some = masks[first : first + _SUBSETS]
            far, near = self._candidates(some, in_turn, n_parts)
            tasks = zip(some, far, near, strict=True)
            found += list(in_turn(lambda task: self._exactly(*task), tasks))
        self._lately.extend((far, near) for _, far, near in found)
        self._known = [_different(partners) for partners in zip(*self._lately, strict=True)]
        return np.array([value for value, _, _ in found])

    def bound(self, masks: NDArray[np.bool_]) -> Floats:
        """What the separation is at least, by pairs that were extreme lately; per feature."""
        if not self._known:
            return np.full(len(masks), -np.inf)
        X, weights, doubt = self._single_precision(masks)
        signed = (-weights, weights)
        less = [_mean_least(X, *pairs, w) for pairs, w in zip(self._known, signed, strict=True)]
        return np.asarray(-(less[0] + less[1] + doubt) / masks.sum(axis=1))

    def _single_precision(self, masks: NDArray[np.bool_]) -> tuple[Singles, Singles, Singles]:
        """Features that some subset has, masks as weights, and how far off distances can be."""
        used, sizes = masks.any(axis=0), masks.sum(axis=1)
        X = np.ascontiguousarray(self._single[:, used])
        weights = np.ascontiguousarray(masks[:, used].T, dtype=np.float32)
        # n differences and sums, each off by a rounding of at most n; two results are compared.
        return X, weights, (2 * sizes * (sizes + 4) * _ROUNDING).astype(np.float32)

    def _candidates(
        self, masks: NDArray[np.bool_], in_turn: InTurn, n_parts: int
    ) -> tuple[list[Ends], list[Ends]]:
        """For each subset the pairs that may be farthest of a class, and nearest of two."""
        X, weights, doubt = self._single_precision(masks)
        parts = [self._blocks[part::n_parts] for part in range(n_parts)]
        found = list(in_turn(lambda blocks: _Search(X, weights, doubt).look(blocks), parts))
        far, near = zip(*found, strict=True)
        return _merged(far, doubt), _merged(near, doubt)

    def _exactly(
        self, mask: NDArray[np.bool_], far: Ends, near: Ends
    ) -> tuple[float, Codes, Codes]:
        """Separation of a subset, and the farthest and nearest of each sample."""
        X = self._X[:, mask]
        means, partners = [], []
        for (sample, partner), sign in ((far, -1.0), (near, 1.0)):
            if sample.size > len(X):
                partner = _best_partners(X, sample, partner, sign)
            apart = X.take(partner, axis=0)
            apart -= X
            means.append(np.abs(apart, out=apart).sum() / apart.size)
            partners.append(partner)
        return float(means[0] - means[1]), partners[0], partners[1]


def _best_partners(X: Floats, sample: Codes, partner: Codes, sign: float) -> Codes:
    """One partner of each sample; samples come in order, some of them repeatedly."""
    several = np.flatnonzero((np.bincount(sample) > 1)[sample])
    distance = np.zeros(sample.size)
    apart = X.take(sample[several], axis=0)
    apart -= X.take(partner[several], axis=0)
    distance[several] = sign * np.abs(apart, out=apart).sum(axis=1)
    order = np.lexsort([distance, sample])
    return partner[order[np.flatnonzero(np.diff(sample[order], prepend=-1))]]


def _different(partners: Sequence[Codes]) -> Ends:
    """Each pair of a sample and one of its partners once, in the order of samples."""
    n_samples = partners[0].size
    codes = np.unique(np.arange(n_samples) * n_samples + np.array(partners))
    return np.divmod(codes, n_samples)


def _mean_least(X: Singles, sample: Codes, partner: Codes, weights: Singles) -> Floats:
    """Mean over samples of the least distance to its partners, for each subset."""
    n_features, n_subsets = weights.shape
    distance = np.empty((sample.size, n_subsets), dtype=np.float32)
    step = max(_DIFFERENCES // n_features, 1)
    for start in range(0, sample.size, step):
        here = slice(start, start + step)
        apart = X.take(sample[here], axis=0)
        apart -= X.take(partner[here], axis=0)
        np.matmul(np.abs(apart, out=apart), weights, out=distance[here])
    starts = np.searchsorted(sample, np.arange(len(X)))
    least = np.minimum.reduceat(distance, starts, axis=0)
    return np.asarray(least.mean(axis=0, dtype=np.float64))


class _Search:
    """Extreme distances of some rows to all later ones, with the pairs that may have them."""

    def __init__(self, X: Singles, weights: Singles, doubt: Singles) -> None:
        self._X, self._weights, self._doubt = X, weights, doubt
        n_samples, (n_features, n_subsets) = len(X), weights.shape
        self._together = max(min(_DIFFERENCES // (_OTHERS * n_features), _ROWS), 1)
        self._step = max(_DIFFERENCES // (self._together * n_features), 1)
        size = self._together * self._step * n_features
        self._differences = np.empty(size, dtype=np.float32)
        self._room = np.empty(_ROWS * n_samples * n_subsets, dtype=np.float32)

    def look(self, blocks: Sequence[tuple[int, int, int]]) -> tuple[_Extremes, _Extremes]:
        """Farthest of the own class and nearest of the others for blocks (begin, end, class end).

        Both samples of a pair take notice, so that each pair is measured once.
        """
        n_samples = len(self._X)
        far, near = (_Extremes(n_samples, self._doubt) for _ in range(2))
        for begin, end, class_end in blocks:
            far.add(self._distances(begin, end, begin, class_end, -self._weights), begin, begin)
            if class_end < n_samples:
                apart = self._distances(begin, end, class_end, n_samples, self._weights)
                near.add(apart, begin, class_end)
        return far, near

    def _distances(self, begin: int, end: int, first: int, last: int, weights: Singles) -> Singles:
        """Distances of shape (rows, others, subsets)."""
        n_features, n_subsets = weights.shape
        shape = (end - begin, last - first, n_subsets)
        found = self._room[: shape[0] * shape[1] * n_subsets].reshape(shape)
        for top in range(0, shape[0], self._together):
            own = slice(top, min(top + self._together, shape[0]))
            rows = self._X[begin:end][own, None]
            for start in range(0, shape[1], self._step):
                there = slice(start, min(start + self._step, shape[1]))
                others = self._X[None, first:last][:, there]
                apart = self._differences[: rows.size * others.shape[1]]
                apart = apart.reshape(len(rows), others.shape[1], n_features)
                np.abs(np.subtract(rows, others, out=apart), out=apart)
                np.matmul(apart, weights, out=found[own, there])
        return found


class _Extremes:
    """Least distances so far, and the pairs that may have them."""

    def __init__(self, n_samples: int, doubt: Singles) -> None:
        self.least = np.full((n_samples, doubt.size), np.inf, dtype=np.float32)
        self.found: list[tuple[Codes, Singles]] = []
        self._doubt = doubt

    def add(self, distance: Singles, begin: int, first: int) -> None:
        """Look at distances of rows from `begin` on to others from `first` on."""
        n_rows, n_others, n_subsets = distance.shape
        rows, others = self.least[begin : begin + n_rows], self.least[first : first + n_others]
        np.minimum(rows, _least_of_others(distance), out=rows)
        np.minimum(others, distance.min(axis=0), out=others)
        near = distance <= (rows + self._doubt)[:, None]
        near |= distance <= others + self._doubt
        place = near.ravel().nonzero()[0]
        row, rest = np.divmod(place, n_others * n_subsets)
        # One number for row, other and subset.
        codes = (row + begin) * self.least.size + rest + first * n_subsets
        self.found.append((codes, distance.ravel()[place]))


def _least_of_others(distance: Singles) -> Singles:
    """The least over the second axis; halves are compared while they are long, which is faster."""
    while (size := distance.shape[1]) > _FEW:
        half = (size + 1) // 2
        distance = np.minimum(distance[:, :half], distance[:, -half:])
    return np.asarray(distance.min(axis=1))


def _merged(parts: Sequence[_Extremes], doubt: Singles) -> list[Ends]:
    """Samples and partners that are candidates in the light of all parts, for each subset."""
    limit = np.minimum.reduce([part.least for part in parts]) + doubt
    codes, distance = (
        np.concatenate(column)
        for column in zip(*(one for part in parts for one in part.found), strict=True)
    )
    first, rest = np.divmod(codes, limit.size)
    second, subset = np.divmod(rest, doubt.size)
    ends = []
    for one, other in ((first, second), (second, first)):
        kept = np.flatnonzero(distance <= limit[one, subset])
        ends.append((subset[kept], one[kept], other[kept]))
    subset, sample, partner = map(np.concatenate, zip(*ends, strict=True))
    order = np.lexsort([sample, subset])
    cuts = np.cumsum(np.bincount(subset, minlength=doubt.size))[:-1]
    columns = np.split(sample[order], cuts), np.split(partner[order], cuts)
    return list(zip(*columns, strict=True))
