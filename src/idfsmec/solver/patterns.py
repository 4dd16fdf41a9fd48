"""Sums over samples that have the same channels: products between channels, without the samples.

Products of two channels are over those who have both. Where samples are sorted by which channels
they have, all sums of one such pattern are over the same people, whatever channels they are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.scaling import safe_scale

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PatternSums:
    """Sums of samples that have exactly certain channels, by class (c), of their d columns.

    Attributes
    ----------
    columns : tuple of str
        Of the channels that are there.
    people : ndarray of int, shape (c,)
        Who has samples of this pattern.
    count : ndarray of shape (c,)
        Samples.
    sum_x : ndarray of shape (c, d)
        Of the features, after ``shift`` and ``scale``.
    sum_xx : ndarray of shape (c, d, d)
        Of their products.
    shift, scale : ndarray of shape (d,)
    """

    columns: tuple[str, ...]
    people: NDArray[np.int64]
    count: Array
    sum_x: Array
    sum_xx: Array
    shift: Array
    scale: Array

    @classmethod
    def of(
        cls, columns: Sequence[str], X: Array, codes: NDArray[np.intp], people: NDArray[np.int64]
    ) -> PatternSums:
        """Sum up samples.

        Parameters
        ----------
        columns : sequence of str
        X : ndarray of shape (n, d)
            Without gaps.
        codes : ndarray of shape (n,)
            Classes.
        people : ndarray of shape (c,)
            How many they come from.
        """
        c, d = people.size, X.shape[1]
        shift = X.mean(axis=0)
        values = X - shift
        scale = safe_scale(np.abs(values).max(axis=0, initial=0.0))
        values /= scale
        sums, products = np.zeros((c, d)), np.zeros((c, d, d))
        for k in np.unique(codes):
            own = values[codes == k]
            sums[k], products[k] = own.sum(axis=0), own.T @ own
        count = np.bincount(codes, minlength=c).astype(float)
        return cls(tuple(columns), people, count, sums, products, shift, scale)

    def in_units(self, shift: Array, scale: Array) -> PatternSums:
        """The sums of the same samples after another shift and scale."""
        rate, move = self.scale / scale, (self.shift - shift) / scale
        sums = self.sum_x * rate
        crossed = sums[:, :, None] * move
        products = self.sum_xx * (rate[:, None] * rate)
        products += crossed + crossed.swapaxes(1, 2)
        products += self.count[:, None, None] * (move[:, None] * move)
        sums = sums + self.count[:, None] * move
        return replace(self, sum_x=sums, sum_xx=products, shift=shift, scale=scale)

    def among(
        self, columns: Sequence[str], classes: NDArray[np.intp], n_classes: int
    ) -> PatternSums:
        """The same with columns in the order of others, and among more classes."""
        known = set(self.columns)
        names = [column for column in columns if column in known]
        order = np.array([self.columns.index(name) for name in names], dtype=np.intp)
        d = order.size
        people, count = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes)
        sums, products = np.zeros((n_classes, d)), np.zeros((n_classes, d, d))
        people[classes], count[classes] = self.people, self.count
        sums[classes], products[classes] = self.sum_x[:, order], self.sum_xx[:, order][:, :, order]
        own = (self.shift[order], self.scale[order])
        return PatternSums(tuple(names), people, count, sums, products, *own)

    def plus(self, other: PatternSums, sign: int = 1) -> PatternSums:
        """Add the samples of another, or take them away again."""
        own = other.in_units(self.shift, self.scale)
        added = {
            name: getattr(self, name) + sign * getattr(own, name)
            for name in ("people", "count", "sum_x", "sum_xx")
        }
        return replace(self, **added)


def add_patterns(parts: Sequence[Sequence[PatternSums]]) -> tuple[PatternSums, ...]:
    """Sums over the samples of several tables, whose columns have one order."""
    found: dict[tuple[str, ...], PatternSums] = {}
    for one in (one for part in parts for one in part):
        known = found.get(one.columns)
        found[one.columns] = one if known is None else known.plus(one)
    return tuple(found.values())


def subtract_patterns(
    whole: Sequence[PatternSums], part: Sequence[PatternSums]
) -> tuple[PatternSums, ...]:
    """Sums without those of a table that was added; KeyError if it was not."""
    found = {one.columns: one for one in whole}
    for one in part:
        found[one.columns] = found[one.columns].plus(one, -1)
    return tuple(one for one in found.values() if one.count.any())
