"""Sums of a channel by fold and class: what several tables can add up without sharing samples.

Every table sums about its own shift, near its own means. Sums in other units follow exactly, so
the sums of tables can be added and subtracted, and all that the method asks of a sample follows
from them: the moments of any folds, and the squared errors on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.channels import ChannelFits
from idfsmec.solver.moments import Moments
from idfsmec.solver.table_moments import Columns, Group, TableMoments, table_moments

Array = NDArray[np.float64]

# Samples that decide the shift: spread over the table, few enough to cost nothing.
_SHIFT_SAMPLES = 2048
# Beyond, squares might overflow.
_LARGE = 1e100
_ADDED = ("count", "sum_x", "sum_xx")


@dataclass(frozen=True)
class ChannelSums:
    """Sums over the samples that have a channel, by fold (F) and class (c), of its d features.

    Attributes
    ----------
    count : ndarray of shape (F, c)
    sum_x : ndarray of shape (F, c, d)
        Of the features, after ``shift`` and ``scale``.
    sum_xx : ndarray of shape (F, c, d, d)
        Of their products.
    shift, scale : ndarray of shape (d,)
        What was subtracted from each feature, then divided by, before summing.
    """

    count: Array
    sum_x: Array
    sum_xx: Array
    shift: Array
    scale: Array

    @classmethod
    def empty(cls, n_folds: int, n_classes: int, n_features: int) -> ChannelSums:
        """Nobody has it."""
        shape, d = (n_folds, n_classes), n_features
        return cls(
            np.zeros(shape),
            np.zeros((*shape, d)),
            np.zeros((*shape, d, d)),
            np.zeros(d),
            np.ones(d),
        )

    def in_units(self, shift: Array, scale: Array) -> ChannelSums:
        """The sums of the same samples after another shift and scale."""
        rate, move = self.scale / scale, (self.shift - shift) / scale
        scaled = self.sum_x * rate
        crossed = scaled[..., :, None] * move
        count = self.count[..., None]
        sum_xx = self.sum_xx * (rate[:, None] * rate)
        sum_xx = sum_xx + crossed + np.swapaxes(crossed, -1, -2)
        return ChannelSums(
            self.count,
            scaled + count * move,
            sum_xx + count[..., None] * (move[:, None] * move),
            shift,
            scale,
        )

    def centred(self) -> ChannelSums:
        """The same about the mean of the samples that are in it: of nobody else it tells."""
        count = self.count.sum()
        mean = self.sum_x.sum(axis=(0, 1)) / (count or 1.0)
        return self.in_units(
            self.shift + self.scale * mean if count else self.shift * 0, self.scale
        )

    def __sub__(self, other: ChannelSums) -> ChannelSums:
        own = other.in_units(self.shift, self.scale)
        return replace(
            self,
            count=self.count - own.count,
            sum_x=self.sum_x - own.sum_x,
            sum_xx=self.sum_xx - own.sum_xx,
        )

    def at(self, classes: NDArray[np.intp], n_classes: int) -> ChannelSums:
        """The same among more classes: its own have the places ``classes``."""
        wider = ChannelSums.empty(len(self.count), n_classes, self.shift.size)
        for name in _ADDED:
            getattr(wider, name)[:, classes] = getattr(self, name)
        return replace(wider, shift=self.shift, scale=self.scale)

    def merged(self, n_folds: int, first: int = 0) -> ChannelSums:
        """Folds f, f + n_folds, f + 2 n_folds, ... put together as fold f + first."""
        parts = {}
        for name in _ADDED:
            old = getattr(self, name)
            parts[name] = np.zeros_like(old)
            for fold, part in enumerate(old):
                parts[name][first + fold % n_folds] += part
        return replace(self, **parts)


def add_sums(parts: Sequence[ChannelSums]) -> ChannelSums:
    """Sums over the samples of all parts, about their common mean."""
    counts = np.array([part.count.sum() for part in parts])
    if not counts.any():
        return parts[0]
    share = counts / counts.sum()
    scale = np.max([part.scale for part in parts], axis=0)
    shift = np.sum([s * part.shift for s, part in zip(share, parts, strict=True)], axis=0)
    alike = [part.in_units(shift, scale) for part in parts]
    count, sum_x, sum_xx = (
        np.sum([getattr(one, name) for one in alike], axis=0) for name in _ADDED
    )
    return ChannelSums(count, sum_x, sum_xx, shift, scale)


def cell_sums(
    X: Array,
    fold: NDArray[np.intp],
    codes: NDArray[np.intp],
    shape: tuple[int, int],
    columns: Sequence[Columns],
) -> list[ChannelSums]:
    """Sum up every channel of a table by fold and class.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN where a channel is missing.
    fold, codes : ndarray of shape (n,)
        Fold and class of every sample.
    shape : tuple of int
        Numbers of folds and classes.
    columns : sequence of integer arrays
        The columns of each channel.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [np.nan], [7.0]])
    >>> fold, codes = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> sums = cell_sums(X, fold, codes, (2, 2), [np.array([0])])[0]
    >>> sums.count
    array([[1., 1.],
           [0., 1.]])
    """
    about = _units(X, columns)
    cell = fold * shape[1] + codes
    order, sizes = (
        np.argsort(cell, kind="stable"),
        np.bincount(cell, minlength=shape[0] * shape[1]),
    )
    ends = np.cumsum(sizes)
    tables = []
    for first, last in zip(ends - sizes, ends, strict=True):
        own = X[order[first:last]]
        tables.append(table_moments(own, np.ones(len(own)), 1, columns, None, about))
    found: list[ChannelSums | None] = [None] * len(columns)
    for place, group in enumerate(about.groups):
        parts = [table.groups[place].moments for table in tables]
        for at, channel in enumerate(group.channels):
            d = group.columns.shape[1]
            found[channel] = ChannelSums(
                np.array([part.count[at] for part in parts]).reshape(shape),
                np.array([part.sum_x[at] for part in parts]).reshape(*shape, d),
                np.array([part.sum_xx[at] for part in parts]).reshape(*shape, d, d),
                group.moments.shift[at],
                group.moments.scale[at],
            )
    return [one for one in found if one is not None]


def _units(X: Array, columns: Sequence[Columns]) -> TableMoments:
    """Shift and scale from some samples; from all, where these do not have every channel."""
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), _SHIFT_SAMPLES)).astype(np.intp))
    some = table_moments(X[rows], np.ones(rows.size), 1, columns)
    enough = all((group.moments.count > 0).all() for group in some.groups)
    if rows.size == len(X) or (enough and not _is_huge(X)):
        return some
    return table_moments(X, np.ones(len(X)), 1, columns)


def _is_huge(X: Array) -> bool:
    """Whether squares might overflow, so that every value must decide the scale."""
    return bool(max(np.nanmax(X), -np.nanmin(X)) > _LARGE)


def table_of_sums(
    channels: Sequence[ChannelSums],
    class_total: Array,
    columns: Sequence[Columns],
    folds: Sequence[int] | None = None,
) -> TableMoments:
    """Moments of the samples of some folds; of all by default.

    Parameters
    ----------
    channels : sequence of ChannelSums
    class_total : ndarray of shape (F, c)
        All samples by fold and class, whatever channels they have.
    columns : sequence of integer arrays
        The place of each channel's features.
    folds : sequence of int, optional
    """
    which = list(range(len(class_total))) if folds is None else list(folds)
    total = class_total[which].sum(axis=0)
    sizes = np.array([own.size for own in columns])
    groups = []
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size)
        own = [channels[int(v)] for v in places]
        count = np.stack([one.count[which].sum(axis=0) for one in own])
        sum_xy = np.stack([one.sum_x[which].sum(axis=0) for one in own])
        moments = Moments(
            total=float(total.sum()),
            count=count.sum(axis=1),
            class_count=count,
            sum_yy=count.sum(axis=1),
            sum_x=sum_xy.sum(axis=1),
            sum_xy=sum_xy,
            sum_xx=np.stack([one.sum_xx[which].sum(axis=(0, 1)) for one in own]),
            shift=np.stack([one.shift for one in own]),
            scale=np.stack([one.scale for one in own]),
        )
        groups.append(Group(places, np.stack([columns[int(v)] for v in places]), moments))
    return TableMoments(tuple(groups), total)


def losses_of_sums(
    channels: Sequence[ChannelSums],
    class_total: Array,
    columns: Sequence[Columns],
    folds: Sequence[int],
    fits: ChannelFits,
    *,
    missing_indicator: bool = True,
) -> Array:
    """Mean squared error of every channel's regression on the samples of folds it has not seen.

    The loss of :func:`idfsmec.solver.held_out_losses` with predictions that are not clipped: of
    these the squared error is a sum of products, so no sample is needed.

    Parameters
    ----------
    channels, class_total, columns
        As in :func:`table_of_sums`.
    folds : sequence of int
        Those left out, one after the other.
    fits : ChannelFits
        Solved for each of them from the other folds.
    missing_indicator : bool, default=True
        False counts a sample without the channel as one at its mean.

    Returns
    -------
    ndarray of shape (L, n_channels)
        Infinite where a channel lacks a class in what is left, or in all that was left out.
    """
    n_lams, n_classes = fits.feature_weights.shape[1], class_total.shape[1]
    overall = class_total[list(folds)].sum(axis=0)
    losses = np.full((n_lams, len(channels)), np.inf)
    everyone = set(range(len(class_total)))
    for place, (sums, own) in enumerate(zip(channels, columns, strict=True)):
        total, count = np.zeros((n_lams, n_classes)), np.zeros(n_classes)
        learned = True
        for at, fold in enumerate(folds):
            learned &= bool((sums.count[sorted(everyone - {fold})].sum(axis=0) > 0).all())
            share = fits.class_shares[at, place]
            coefficients = fits.coefficients[at][:, :, own]
            held_out = sums.in_units(fits.centres[at, own], np.ones(own.size))
            errors = _squared_errors(held_out, fold, share, coefficients)
            count += class_total[fold] if not missing_indicator else sums.count[fold]
            if not missing_indicator:
                constant = np.sum((np.eye(n_classes) - share) ** 2, axis=1)
                errors = errors + (class_total[fold] - sums.count[fold]) * constant
            total += errors
        if learned and (count > 0).all():
            losses[:, place] = (total / count) @ (overall / overall.sum())
    return losses


def _squared_errors(sums: ChannelSums, fold: int, share: Array, coefficients: Array) -> Array:
    """Sum over a fold's samples of each class of the squared errors, shape (L, c)."""
    count, sum_z, sum_zz = sums.count[fold], sums.sum_x[fold], sums.sum_xx[fold]
    # The error of a sample of class k is a_k - C z, with a_k its indicators less the shares.
    a = np.eye(share.size) - share
    said = np.einsum("lcd,kd->lkc", coefficients, sum_z)
    spread = np.einsum("lcd,kde,lce->lk", coefficients, sum_zz, coefficients, optimize=True)
    errors = count * np.sum(a**2, axis=1) - 2.0 * np.einsum("kc,lkc->lk", a, said) + spread
    return np.maximum(errors, 0.0)
