"""Sums of a channel by fold and class: what several tables can add up without sharing samples.

There are sums over samples, from which regressions are solved, and sums over people, each of them
the mean of their samples, by which regressions are judged. Every table sums about its own shift,
near its own means. Sums in other units follow exactly, so the sums of tables can be added and
subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Three = tuple[Array, Array, Array]

#: What adds up: counts, sums and products of samples, and of people.
ADDED = ("count", "sum_x", "sum_xx", "people", "sum_m", "sum_mm")


@dataclass(frozen=True)
class ChannelSums:
    """Sums over who has a channel, by deal (R), fold (F) and class (c), of its d features.

    Every deal sends all people to folds, each time with others. Axes in front, if there are any,
    are of channels with equally many features.

    Attributes
    ----------
    count : ndarray of shape (..., R, F, c)
        Samples, or their weight.
    sum_x : ndarray of shape (..., R, F, c, d)
        Of the features, after ``shift`` and ``scale``.
    sum_xx : ndarray of shape (..., R, F, c, d, d)
        Of their products.
    people, sum_m, sum_mm
        The same over people, who count once: of the means of their samples that have the channel.
    shift, scale : ndarray of shape (..., d)
        What was subtracted from each feature, then divided by, before summing.
    """

    count: Array
    sum_x: Array
    sum_xx: Array
    people: Array
    sum_m: Array
    sum_mm: Array
    shift: Array
    scale: Array

    @classmethod
    def empty(cls, shape: tuple[int, ...], n_features: int) -> ChannelSums:
        """Nobody has it; the shape is that of the counts."""
        d = n_features
        parts = (np.zeros((*shape, *own)) for own in 2 * ((), (d,), (d, d)))
        return cls(**dict(zip(ADDED, parts, strict=True)), shift=np.zeros(d), scale=np.ones(d))

    def in_units(self, shift: Array, scale: Array) -> ChannelSums:
        """The sums of the same samples after another shift and scale."""
        rate, move = self.scale / scale, (self.shift - shift) / scale
        samples = _moved(self.count, self.sum_x, self.sum_xx, rate, move)
        people = _moved(self.people, self.sum_m, self.sum_mm, rate, move)
        return ChannelSums(*samples, *people, shift, scale)

    def centred(self) -> ChannelSums:
        """The same about the mean of the samples that are in it: of nobody else it tells."""
        count = self.count[0].sum()
        mean = self.sum_x[0].sum(axis=(0, 1)) / (count or 1.0)
        return self.in_units(
            self.shift + self.scale * mean if count else self.shift * 0, self.scale
        )

    def __sub__(self, other: ChannelSums) -> ChannelSums:
        own = other.in_units(self.shift, self.scale)
        return replace(self, **{name: getattr(self, name) - getattr(own, name) for name in ADDED})

    def at(self, classes: NDArray[np.intp], n_classes: int) -> ChannelSums:
        """The same among more classes: its own have the places ``classes``."""
        shape = (*self.count.shape[:2], n_classes)
        wider = ChannelSums.empty(shape, self.shift.size)
        for name in ADDED:
            getattr(wider, name)[:, :, classes] = getattr(self, name)
        return replace(wider, shift=self.shift, scale=self.scale)

    def reordered(self, order: Sequence[int]) -> ChannelSums:
        """The same with the features in another order."""
        own = list(order)
        parts = {name: getattr(self, name)[..., own] for name in ("sum_x", "sum_m")}
        for name in ("sum_xx", "sum_mm"):
            parts[name] = getattr(self, name)[..., own, :][..., own]
        return replace(self, **parts, shift=self.shift[own], scale=self.scale[own])

    def without(self, k: int) -> ChannelSums:
        """The same without a class."""
        parts = {name: getattr(self, name).copy() for name in ADDED}
        for part in parts.values():
            part[:, :, k] = 0.0
        return replace(self, **parts)

    def by_samples(self, k: int, products: Array) -> ChannelSums:
        """The same with people of a class who count by their samples, as many as before in all.

        Parameters
        ----------
        k : int
        products : ndarray of shape (R, F, c, d, d)
            Of people's means, each as often as the person has samples.
        """
        n = self.people[0, :, k].sum()
        rate = n / self.count[0, :, k].sum() if n else 1.0
        own = (self.count, self.sum_x, products)
        parts = {name: getattr(self, name).copy() for name in ("people", "sum_m", "sum_mm")}
        for part, samples in zip(parts.values(), own, strict=True):
            part[:, :, k] = rate * samples[:, :, k]
        return replace(self, **parts)

    def in_one_fold(self, k: int, folds: Sequence[int]) -> ChannelSums:
        """The same with all of a class in one fold of each deal."""
        parts = {name: getattr(self, name).copy() for name in ADDED}
        for part in parts.values():
            for deal, fold in enumerate(folds):
                whole = part[deal, :, k].sum(axis=0)
                part[deal, :, k] = 0.0
                part[deal, fold, k] = whole
        return replace(self, **parts)

    def dealt_once(self, k: int) -> ChannelSums:
        """The same with all deals of a class like the first."""
        parts = {name: getattr(self, name).copy() for name in ADDED}
        for part in parts.values():
            part[1:, :, k] = part[:1, :, k]
        return replace(self, **parts)

    def merged(self, n_folds: int, firsts: Sequence[int]) -> ChannelSums:
        """The same with fewer folds; see :func:`merge_folds`."""
        return replace(
            self, **{name: merge_folds(getattr(self, name), n_folds, firsts) for name in ADDED}
        )


def _moved(count: Array, sums: Array, products: Array, rate: Array, move: Array) -> Three:
    """Counts, sums and products of values that are multiplied, then moved."""
    rate, move = (part[..., None, None, None, :] for part in (rate, move))
    scaled = sums * rate
    crossed = scaled[..., :, None] * move[..., None, :]
    squares = products * (rate[..., :, None] * rate[..., None, :])
    squares = squares + crossed + np.swapaxes(crossed, -1, -2)
    squares += count[..., None, None] * (move[..., :, None] * move[..., None, :])
    return count, scaled + count[..., None] * move, squares


def merge_folds(parts: NDArray, n_folds: int, firsts: Sequence[int]) -> NDArray:
    """Put folds f, f + n_folds, f + 2 n_folds, ... of every deal together.

    Parameters
    ----------
    parts : ndarray of shape (R, F, ...)
    n_folds : int
        How many are left.
    firsts : sequence of int
        The place of the first of them, for every deal.
    """
    merged = np.zeros_like(parts)
    for deal, first in enumerate(firsts):
        for fold, part in enumerate(parts[deal]):
            merged[deal, first + fold % n_folds] += part
    return merged


def add_sums(parts: Sequence[ChannelSums]) -> ChannelSums:
    """Sums over the samples and people of all parts, about their common mean."""
    counts = np.array([part.count.sum() for part in parts])
    if not counts.any():
        return parts[0]
    share = counts / counts.sum()
    scale = np.max([part.scale for part in parts], axis=0)
    shift = np.sum([s * part.shift for s, part in zip(share, parts, strict=True)], axis=0)
    alike = [part.in_units(shift, scale) for part in parts]
    added = {name: np.sum([getattr(one, name) for one in alike], axis=0) for name in ADDED}
    return ChannelSums(**added, shift=shift, scale=scale)
