"""How far classes lie apart on subsets of features: farthest of the own class, nearest other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 2.0**-24  # of one operation in single precision
# Rows whose distances are looked at together, copies of a row that are compared in one go, values
# that stay in a core's cache, and multiplications up to which a product needs no preparation.
_ROWS = 16
_COPIES = 16
_VALUES = 2**18
_PRODUCT = 10**6
# Subsets that share the comparisons.
_SUBSETS = 64
# Farther than any pair, and what is known of a sample that was not compared yet.
_NO_PAIR = np.float32(3e38)
_NOTHING_YET = np.float32(1e30)
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

    Distances are Manhattan's: |a - b| = a + b - 2 min(a, b). All pairs are measured for many
    subsets at once, in single precision, as products of their minima with the subsets' masks; the
    pairs that rounding leaves as candidates are measured in double precision.

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
        task = _Task.of(self._single, masks)
        parts = [self._blocks[part::n_parts] for part in range(n_parts)]
        found = list(in_turn(lambda blocks: _Search(task).look(blocks), parts))
        far, near = zip(*found, strict=True)
        return _merged(far, task.doubt), _merged(near, task.doubt)

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
    ordered = sample[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    return partner[order[first]]


def _different(partners: Sequence[Codes]) -> Ends:
    """Each pair of a sample and one of its partners once, in the order of samples."""
    n_samples = partners[0].size
    paired = np.zeros((n_samples, n_samples), dtype=bool)
    paired[np.arange(n_samples), np.array(partners)] = True
    sample, partner = paired.nonzero()
    return sample, partner


def _mean_least(X: Singles, sample: Codes, partner: Codes, weights: Singles) -> Floats:
    """Mean over samples of the least distance to its partners, for each subset."""
    n_features, n_subsets = weights.shape
    distance = np.empty((sample.size, n_subsets), dtype=np.float32)
    step = max(_PRODUCT // (n_features * n_subsets), _COPIES)
    for start in range(0, sample.size, step):
        here = slice(start, start + step)
        apart = X.take(sample[here], axis=0)
        apart -= X.take(partner[here], axis=0)
        np.matmul(np.abs(apart, out=apart), weights, out=distance[here])
    starts = np.searchsorted(sample, np.arange(len(X)))
    least = np.minimum.reduceat(distance, starts, axis=0)
    return np.asarray(least.mean(axis=0, dtype=np.float64))


class _Task(NamedTuple):
    """Samples with a one behind their values, and rows of zeros behind the last of them.

    Attributes
    ----------
    values : ndarray of shape (n_samples + _COPIES, n_features + 1)
        Features that some subset has.
    weights : ndarray of shape (n_features, n_subsets)
        Masks.
    sums : ndarray of shape (n_samples + _COPIES, n_subsets)
        Of each sample's values in each subset.
    doubt : ndarray of shape (n_subsets,)
        How far the difference of two distances can be off.
    """

    values: Singles
    weights: Singles
    sums: Singles
    doubt: Singles

    @classmethod
    def of(cls, X: Singles, masks: NDArray[np.bool_]) -> _Task:
        used, sizes = masks.any(axis=0), masks.sum(axis=1)
        values = np.zeros((len(X) + _COPIES, np.count_nonzero(used) + 1), dtype=np.float32)
        np.compress(used, X, axis=1, out=values[: len(X), :-1])
        weights = np.ascontiguousarray(masks[:, used].T, dtype=np.float32)
        sums = values[:, :-1] @ weights
        values[:, -1] = 1
        # Twice a sum of n minima, each off by a rounding of at most the largest sum of a sample,
        # and a few more for values, sums and what is added; two distances are compared.
        doubt = 4 * (sizes + 8) * _ROUNDING * sums.max(axis=0) * 1.01
        return cls(values, weights, sums, doubt.astype(np.float32))


class _Search:
    """Extreme distances of some rows to all later ones, with the pairs that may have them."""

    def __init__(self, task: _Task) -> None:
        self._task = task
        n_rows, n_values = task.values.shape
        n_subsets = task.doubt.size
        most = _PRODUCT // (n_values * n_subsets)
        self._step = min(max(most // _COPIES, 1), 8) * _COPIES
        self._together = min(max(_VALUES // (self._step * n_values), 1), _ROWS)
        self._copies = np.empty((self._together, 1, _COPIES * n_values), dtype=np.float32)
        self._minima = np.empty(self._together * self._step * n_values, dtype=np.float32)
        self._room = np.empty(_ROWS * n_rows * n_subsets, dtype=np.float32)
        # The last weights are the sums of the rows at work.
        lengthened = np.concatenate([-2 * task.weights, np.zeros((1, n_subsets), np.float32)])
        self._near = np.repeat(lengthened[None], _ROWS, axis=0)
        self._far = -self._near

    def look(self, blocks: Sequence[tuple[int, int, int]]) -> tuple[_Extremes, _Extremes]:
        """Farthest of the own class and nearest of the others for blocks (begin, end, class end).

        Both samples of a pair take notice, so that each pair is measured once.
        """
        sums, n_samples = self._task.sums, len(self._task.values) - _COPIES
        far, near = (_Extremes(len(sums), self._task.doubt) for _ in range(2))
        for begin, end, class_end in blocks:
            self._far[: end - begin, -1] = -sums[begin:end]
            apart = self._products(begin, end, begin, class_end, self._far)
            apart -= sums[begin : begin + apart.shape[1]]
            apart[:, class_end - begin :] = _NO_PAIR
            far.add(apart, begin, begin)
            if class_end < n_samples:
                self._near[: end - begin, -1] = sums[begin:end]
                apart = self._products(begin, end, class_end, n_samples, self._near)
                apart += sums[class_end : class_end + apart.shape[1]]
                apart[:, n_samples - class_end :] = _NO_PAIR
                near.add(apart, begin, class_end)
        return far, near

    def _products(self, begin: int, end: int, first: int, last: int, weights: Singles) -> Singles:
        """Products of minima with weights, shape (rows, others, subsets).

        Others come in whole blocks of _COPIES, so that there may be some more behind the last.
        """
        X, n_values = self._task.values, self._task.values.shape[1]
        n_rows, n_others = end - begin, -(-(last - first) // _COPIES) * _COPIES
        shape = (n_rows, n_others, weights.shape[2])
        found = self._room[: n_rows * n_others * shape[2]].reshape(shape)
        for top in range(0, n_rows, self._together):
            own = slice(top, min(top + self._together, n_rows))
            copies = self._copies[: own.stop - top]
            copies.reshape(len(copies), _COPIES, n_values)[...] = X[begin:end][own, None]
            for start in range(0, n_others, self._step):
                there = slice(start, min(start + self._step, n_others))
                others = X[first + start : first + there.stop].reshape(-1, copies.shape[2])
                minima = self._minima[: len(copies) * others.size]
                minima = minima.reshape(len(copies), *others.shape)
                np.minimum(copies, others, out=minima)
                minima = minima.reshape(len(copies), -1, n_values)
                np.matmul(minima, weights[own], out=found[own, there])
        return found


class _Extremes:
    """Least distances so far, and the pairs that may have them."""

    def __init__(self, n_rows: int, doubt: Singles) -> None:
        self.least = np.full((n_rows, doubt.size), _NOTHING_YET)
        self.found: list[tuple[Codes, Singles]] = []
        self._doubt = doubt

    def add(self, distance: Singles, begin: int, first: int) -> None:
        """Look at distances of rows from `begin` on to others from `first` on."""
        n_rows, n_others, n_subsets = distance.shape
        rows, others = self.least[begin : begin + n_rows], self.least[first : first + n_others]
        # Several others side by side: an operation on few values takes as long as on many.
        wide = distance.reshape(n_rows, -1, _COPIES * n_subsets)
        least = wide.min(axis=1).reshape(n_rows, _COPIES, n_subsets).min(axis=1)
        np.minimum(rows, least, out=rows)
        np.minimum(others, distance.min(axis=0), out=others)
        near = wide <= np.tile(rows + self._doubt, _COPIES)[:, None]
        near = near.reshape(distance.shape)
        near |= distance <= others + self._doubt
        place = near.ravel().nonzero()[0]
        row, rest = np.divmod(place, n_others * n_subsets)
        # One number for row, other and subset.
        codes = (row + begin) * self.least.size + rest + first * n_subsets
        self.found.append((codes, distance.ravel()[place]))


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
