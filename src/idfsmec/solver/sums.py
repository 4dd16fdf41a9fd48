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
from idfsmec.solver.scaling import safe_scale
from idfsmec.solver.table_moments import Columns, Group, TableMoments

Array = NDArray[np.float64]

# Samples that decide the shift, at least: spread over the table, few enough to cost nothing.
_SHIFT_SAMPLES = 1024
# Sums of squares beyond might have lost values to over- or underflow.
_SMALL, _LARGE = 1e-180, 1e180
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
    values: Sequence[Array] | Array,
    fold: NDArray[np.intp],
    codes: NDArray[np.intp],
    shape: tuple[int, int],
    columns: Sequence[Columns],
) -> tuple[list[ChannelSums], NDArray[np.bool_]]:
    """Sum up every channel of a table by fold and class, in one pass over its columns.

    Parameters
    ----------
    values : sequence of D arrays of shape (n,), or ndarray of shape (D, n)
        The columns of the table, so ``X.T``; NaN where a channel is missing.
    fold, codes : ndarray of shape (n,)
        Fold and class of every sample.
    shape : tuple of int
        Numbers of folds and classes.
    columns : sequence of integer arrays
        The columns of each channel.

    Returns
    -------
    sums : list of ChannelSums
    observed : ndarray of bool, shape (n, n_channels)
        Which channels each sample has.

    Raises
    ------
    FloatingPointError
        A column holds infinity; its number is the error's argument.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [np.nan], [7.0]])
    >>> fold, codes = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> sums, observed = cell_sums(X.T, fold, codes, (2, 2), [np.array([0])])
    >>> sums[0].count
    array([[1., 1.],
           [0., 1.]])
    """
    cell = fold * shape[1] + codes
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=shape[0] * shape[1]))
    cells = [slice(a, b) for a, b in zip(np.r_[0, ends[:-1]], ends, strict=True)]
    observed = np.empty((len(columns), cell.size), dtype=bool)
    found = []
    for own, has in zip(columns, observed, strict=True):
        # A last row of ones, so that one product gives counts, sums and products.
        block = np.empty((own.size + 1, cell.size))
        for row, column in zip(block, own, strict=False):
            np.take(values[column], order, out=row, mode="clip")
        with np.errstate(over="ignore", invalid="ignore"):
            there = np.isfinite(block[:-1].sum(axis=0))
        if not there.all():
            there = _is_there(block[:-1], there, own)
        has[order] = there
        found.append(_sum_channel(block, there, cells, shape))
    return found, observed.T


def _is_there(
    block: Array, there: NDArray[np.bool_], columns: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Who has the channel, of those whose features do not sum up to a number: no NaN."""
    doubtful = np.flatnonzero(~there)
    some = block[:, doubtful]
    infinite = np.isinf(some).any(axis=1)
    if infinite.any():
        raise FloatingPointError(int(columns[infinite.argmax()]))
    there[doubtful] = ~np.isnan(some).any(axis=0)
    return there


def _sum_channel(
    values: Array, there: NDArray[np.bool_], cells: Sequence[slice], shape: tuple[int, int]
) -> ChannelSums:
    """Sums of one channel by cell; overwrites the values."""
    d = len(values) - 1
    rows = np.flatnonzero(there)
    some = rows[:: max(1, rows.size // _SHIFT_SAMPLES)]
    shift = values[:-1, some].mean(axis=1) if rows.size else np.zeros(d)
    values[:-1] -= shift[:, None]
    values[-1] = 1.0
    if rows.size < there.size:
        values[:, ~there] = 0.0
    scale = np.ones(d)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        products = np.stack([values[:, cell] @ values[:, cell].T for cell in cells])
        squares = np.diagonal(products, axis1=1, axis2=2)[:, :-1].sum(axis=0)
        if not ((squares > _SMALL) & (squares < _LARGE)).all():
            scale = safe_scale(np.abs(values[:-1]).max(axis=1, initial=0.0))
            values[:-1] /= scale[:, None]
            products = np.stack([values[:, cell] @ values[:, cell].T for cell in cells])
    products = products.reshape(*shape, d + 1, d + 1)
    return ChannelSums(
        products[..., -1, -1].copy(),
        products[..., -1, :-1].copy(),
        products[..., :-1, :-1].copy(),
        shift,
        scale,
    )


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
