"""Sums over samples: all that the method needs to know of a table.

Everything is computed from one representation, :class:`Sums`: fit, cross-validation, the held-out
loss of channels, the path over settings, stability, streaming and what a site releases.

**Cells.** Every sample belongs to one cell ``j``: a class (1 ... c) and a fold of every repeat.
Sums of a fold, of a training part or of all samples are sums over cells, so they are added and
subtracted by choosing cells. A study of several sites has the cells of all of them.

**Weights.** ``o_iv`` is 1 if sample i has channel v (none of its features is NaN) and else 0. Let
``n_sv`` be the number of samples of subject s and of the class of i that have channel v. Then

    w_iv = o_iv * sample_weight_i / n_sv        with groups: each subject counts once
    w_iv = o_iv * sample_weight_i               without groups: each sample counts once

**Sums** of channel v over the samples of cell j, with x the d features of the channel:

    N_vj = sum_i w_iv        S_vj = sum_i w_iv x_i        P_vj = sum_i w_iv x_i x_i'

With groups and without weights N is a number of subjects, S the sum of each subject's mean of x
and P the sum of each subject's mean of x x'. For a numeric target y (one class) the target is the
last feature, so that S and P also hold the sums of y, x y and y^2.

**Totals.** ``total_j`` is the weight of all samples of the cell, whichever channels they have, by
the same rule; ``seen_j`` that of the samples that have any channel.

**Targets.** Y is one-hot. With ``n = sum_j N_j``, ``m = sum_j S_j / n`` and the share ``p_k`` of
class k among n, the moments about the observed mean are

    A = sum_j P_j - n m m'     (Yc Xc')_k = S_k - n p_k m     ||Yc||^2 = n - sum_k n p_k^2

**Standardisation.** The standard deviation of feature a is ``sqrt(A_aa / n)``: A and P are divided
by it, samples are never changed. Sums are taken about a shift near the mean and in units of a
scale (1 unless squares would overflow), which loses no digits; :meth:`Sums.in_units` changes both.

**Missing channels.** With inverse-probability weighting A, Yc Xc' and ||Yc||^2 of channel v are
multiplied by ``sum_j total_j / n_v``, and the redundancy weight by ``sum_j total_j / 1000``, so
that the solution does not depend on the scale of the weights.

**Held-out loss.** The regression of a training part predicts class indicators linearly. Their mean
and variance over the samples of a held-out cell follow from its N, S and P, and with them the
expected squared error of predictions clipped to [0, 1]. Errors are averaged over subjects (over
samples without groups) within each class, and classes by their shares among all.

**Folds.** Without a site's own assignment there are two repeats of four folds: with groups by a
hash of all values of the subject, without by the sample's values. Neither depends on the order of
rows or on names, and with groups no subject's fold depends on the other subjects. A site that
releases sums assigns subjects by their names and the key of the study.

**What a site releases** (:mod:`idfsmec.federated`) are N, S and P of its cells, with one repeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.scaling import Scaling, is_constant, safe_scale

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Folds, and repeats of the assignment to folds, of the held-out loss.
N_FOLDS, N_REPEATS = 4, 2
# Tables of more numbers (samples x features) have one repeat.
_LARGE_TABLE = 1_000_000
# Samples x features summed at a time: small enough for the processor's cache.
_BLOCK_ELEMENTS = 400_000


@dataclass(frozen=True)
class Moments:
    """Sums of b channels with d features each over some cells; c classes, 1 if y is numeric."""

    channels: Indices  # which channels of the table, (b,)
    columns: Indices  # (b, d)
    total: float  # weight of all samples, whether they have the channel or not
    class_total: Array  # (c,)
    count: Array  # weight of the samples that have the channel, (b,)
    class_count: Array  # (b, c); the sum of a numeric target
    sum_yy: Array  # (b,); the count for one-hot labels
    sum_x: Array  # (b, d)
    sum_xy: Array  # (b, c, d)
    sum_xx: Array  # (b, d, d)
    shift: Array  # what was subtracted from each feature, (b, d)
    scale: Array  # what it was divided by then

    def imputed(self) -> Moments:
        """Count samples without the channel as if they had its mean (an ablation)."""
        mean = self.sum_x / self._divisor
        missing = self.class_total[None, :] - self.class_count
        n_missing = missing.sum(axis=1)
        return replace(
            self,
            count=self.count + n_missing,
            class_count=self.class_count + missing,
            sum_yy=self.sum_yy + n_missing,
            sum_x=self.sum_x + n_missing[:, None] * mean,
            sum_xy=self.sum_xy + missing[:, :, None] * mean[:, None, :],
            sum_xx=self.sum_xx + n_missing[:, None, None] * mean[:, :, None] * mean[:, None, :],
        )

    @property
    def _divisor(self) -> Array:
        """The counts, with 1 for channels that were never observed, shape (b, 1)."""
        return np.where(self.count > 0, self.count, 1.0)[:, None]

    @property
    def mean(self) -> Array:
        """Mean of each feature over the observed samples, shape (b, d)."""
        return self.shift + self.scale * self.sum_x / self._divisor

    @property
    def class_share(self) -> Array:
        """Share of each class among the observed samples (mean of the target), shape (b, c)."""
        return self.class_count / self._divisor

    @property
    def std(self) -> Array:
        """Population standard deviation of each feature, shape (b, d)."""
        squares = np.diagonal(self.sum_xx, axis1=-2, axis2=-1)
        variance = squares - self.sum_x * (self.sum_x / self._divisor)
        return self.scale * np.sqrt(np.maximum(variance, 0.0) / self._divisor)

    def centred(self) -> tuple[Array, Array, Array]:
        """Return ``Xc Xc'``, ``Yc Xc'`` and ``||Yc||^2`` about the mean, in units of scale."""
        mean, share = self.sum_x / self._divisor, self.class_share
        A = self.sum_xx - self.sum_x[:, :, None] * mean[:, None, :]
        P = self.sum_xy - share[:, :, None] * self.sum_x[:, None, :]
        y2 = self.sum_yy - np.sum(self.class_count * share, axis=1)
        # Rounding must not make a variance negative.
        diagonal = np.arange(A.shape[1])
        A[:, diagonal, diagonal] = np.maximum(A[:, diagonal, diagonal], 0.0)
        return A, P, y2

    def constant(self) -> Mask:
        """Return which features are constant over the observed samples, shape (b, d)."""
        return is_constant(self.mean, self.std)


class Split(NamedTuple):
    """Cells of a training part and of the part held out."""

    train: Mask
    test: Mask


@dataclass(frozen=True)
class Block:
    """Sums by cell (J) of b channels with d features each; a numeric target is one more."""

    channels: Indices  # (b,)
    columns: Indices  # (b, d)
    count: Array  # (b, J)
    sum_x: Array  # (b, J, d)
    sum_xx: Array  # (b, J, d, d)
    shift: Array  # (b, d)
    scale: Array

    def in_units(self, shift: Array, scale: Array) -> Block:
        """Give the sums of the same samples after another shift and scale."""
        rate, move = self.scale / scale, (self.shift - shift) / scale
        scaled = self.sum_x * rate[:, None, :]
        crossed = scaled[..., :, None] * move[:, None, None, :]
        sum_xx = self.sum_xx * (rate[:, :, None] * rate[:, None, :])[:, None]
        sum_xx = sum_xx + crossed + np.swapaxes(crossed, -1, -2)
        sum_xx += self.count[..., None, None] * (move[:, :, None] * move[:, None, :])[:, None]
        sum_x = scaled + self.count[..., None] * move[:, None, :]
        return replace(self, sum_x=sum_x, sum_xx=sum_xx, shift=shift, scale=scale)


@dataclass(frozen=True)
class Sums:
    """Sums of a table by channel and cell (J); the module says what they are."""

    blocks: tuple[Block, ...]  # channels with equally many features together
    classes: Indices  # class of each cell, (J,)
    folds: Indices  # fold of each cell in every repeat, (n_repeats, J)
    total: Array  # weight of all samples, (J,)
    seen: Array  # weight of the samples that have any channel, (J,)
    n_classes: int  # 1 for a numeric target
    numeric: bool = False

    def splits(self) -> list[Split]:
        """Give the training and held-out cells of every fold of every repeat."""
        splits = []
        for folds in self.folds:
            present = [f for f in np.unique(folds) if self.total[folds == f].sum() > 0]
            if len(present) > 1:
                splits += [Split(folds != f, folds == f) for f in present]
        return splits

    def moments(self, cells: Mask | None = None) -> list[Moments]:
        """Return the moments over some cells, by default all, one for each block."""
        mask = np.ones(self.classes.size, dtype=bool) if cells is None else cells
        totals = np.bincount(self.classes[mask], self.total[mask], self.n_classes)
        class_total = totals.astype(np.float64)
        total = float(class_total.sum())
        # One matrix product adds up cells by class.
        by_class = (self.classes[None, mask] == np.arange(self.n_classes)[:, None]).astype(float)
        result = []
        for block in self.blocks:
            count = block.count[:, mask] @ by_class.T
            sum_x = by_class @ block.sum_x[:, mask]
            sum_xx = block.sum_xx[:, mask].sum(axis=1)
            shift, scale = block.shift, block.scale
            parts: tuple[Array, ...]
            if self.numeric:  # the target is the last feature, about 0 in units of 1
                parts = (count[:, 0], sum_x[:, :, -1], sum_xx[:, -1, -1], sum_x[:, 0, :-1])
                parts += (sum_xx[:, -1:, :-1], sum_xx[:, :-1, :-1], shift[:, :-1], scale[:, :-1])
            else:
                n = count.sum(axis=1)
                parts = (n, count, n, sum_x.sum(axis=1), sum_x, sum_xx, shift, scale)
            result.append(Moments(block.channels, block.columns, total, class_total, *parts))
        return result


def table_sums(
    X: Array,
    columns: Sequence[Indices],
    codes: Indices,
    folds: Indices,
    n_classes: int,
    *,
    n_folds: int = N_FOLDS,
    groups: Indices | None = None,
    sample_weight: Array | None = None,
    target: Array | None = None,
    rows: Indices | None = None,
    counts: Array | None = None,
    units: tuple[Array, Array] | None = None,
) -> Sums:
    """Sum up the samples of a table (n_rows, D) by channel, class and fold.

    Samples (n) are the ``rows`` of X, by default all, with classes ``codes`` (n,), ``folds``
    (n_repeats, n) from 0 to ``n_folds - 1``, and numbers of their subjects, ``groups`` (n,), each
    of whom counts once. Where X holds a part of the subjects' samples only, ``counts`` says how
    many there are of each subject: with each channel, in all, and with any channel; a group is a
    subject of one class then. ``target`` (n,) is numeric; there is one class then. ``units`` are
    shift and scale (D,) in place of those of the samples.
    """
    shape = (*[n_folds] * len(folds), n_classes)
    cell_of = np.ravel_multi_index((*folds, codes), shape)
    if groups is None:
        order, starts = np.argsort(cell_of, kind="stable"), None
    else:  # where the subject or the cell, and with it the class, changes
        order = np.lexsort((groups, cell_of))
        changes = np.diff(np.stack([groups, cell_of])[:, order], axis=1, prepend=-1) != 0
        starts = np.flatnonzero(changes.any(axis=0))
    samples = _Samples(
        order if rows is None else rows[order],
        np.searchsorted(cell_of[order], np.arange(np.prod(shape) + 1)),
        None if sample_weight is None else sample_weight[order],
        starts,
        None if groups is None or counts is None else counts[groups[order]],
        None if target is None else target[order],
    )
    seen, blocks = np.zeros(order.size, dtype=bool), []
    for channels, block_columns in _channel_blocks(columns, order.size):
        block, observed = _sum_block(X, samples, channels, block_columns, units)
        seen |= observed.any(axis=0)
        blocks.append(block)
    *cell_folds, cell_classes = np.unravel_index(np.arange(np.prod(shape)), shape)
    return Sums(
        join_blocks(blocks),
        cell_classes,
        np.stack(cell_folds),
        samples.by_cell(samples.weights(np.ones((1, order.size), dtype=bool), -2))[0],
        samples.by_cell(samples.weights(seen[None], -1))[0],
        n_classes,
        target is not None,
    )


@dataclass(frozen=True)
class _Samples:
    """Samples sorted by cell, and within a cell by subject."""

    rows: Indices
    cell_starts: Indices
    sample_weight: Array | None
    subject_starts: Indices | None  # None without groups
    counts: Array | None  # of each sample's subject, by channel; None if they follow from here
    target: Array | None

    def weights(self, observed: Mask, which: Indices | int) -> Array:
        """Weight of every sample that has a channel, shape (b, n); see the module's formulas."""
        weights = observed.astype(float)
        if self.subject_starts is not None:
            if self.counts is not None:
                counts = np.atleast_2d(self.counts[:, which].T)
            else:
                starts = self.subject_starts
                sizes = np.diff(starts, append=observed.shape[1])
                counts = np.repeat(np.add.reduceat(weights, starts, axis=1), sizes, axis=1)
            weights /= np.maximum(counts, 1.0)
        return weights if self.sample_weight is None else weights * self.sample_weight

    def by_cell(self, values: Array) -> Array:
        """Add up values (b, n) by cell, shape (b, J)."""
        bounds = zip(self.cell_starts[:-1], self.cell_starts[1:], strict=True)
        return np.stack([values[:, first:last].sum(axis=1) for first, last in bounds], axis=1)


def _channel_blocks(
    columns: Sequence[Indices], n_samples: int
) -> Iterator[tuple[Indices, Indices]]:
    """Channels with equally many features and their columns (b, d), some at a time."""
    sizes = np.array([channel_columns.size for channel_columns in columns])
    for size in np.unique(sizes):
        channels = np.flatnonzero(sizes == size)
        step = max(1, _BLOCK_ELEMENTS // max(1, n_samples * int(size)))
        for first in range(0, channels.size, step):
            block_channels = channels[first : first + step]
            yield block_channels, np.stack([columns[v] for v in block_channels])


def _sum_block(
    X: Array,
    samples: _Samples,
    channels: Indices,
    columns: Indices,
    units: tuple[Array, Array] | None,
) -> tuple[Block, Mask]:
    values = np.empty((channels.size, samples.rows.size, columns.shape[1]))
    for channel, channel_columns in zip(values, columns, strict=True):
        np.take(X[:, _as_slice(channel_columns)], samples.rows, axis=0, out=channel, mode="clip")
    observed = is_observed(values)
    complete = bool(observed.all())
    if not complete:
        values[~observed] = 0.0
    weights = samples.weights(observed, channels)
    if units is None:
        count = np.maximum(weights.sum(axis=1), 1e-300)[:, None]
        shift = (weights[:, None, :] @ values)[:, 0] / count
    else:
        shift = units[0][columns]
    values -= shift[:, None, :]
    if not complete:
        values[~observed] = 0.0
    if units is None:
        scale = safe_scale(np.maximum(values.max(axis=1), -values.min(axis=1)))
    else:
        scale = units[1][columns]
    if (scale != 1).any():
        values /= scale[:, None, :]
    if samples.target is not None:
        target = observed[:, :, None] * samples.target[None, :, None]
        values = np.concatenate([values, target], axis=2)
        shift, scale = np.pad(shift, ((0, 0), (0, 1))), np.pad(scale, ((0, 0), (0, 1)))
        scale[:, -1] = 1.0
    plain = samples.sample_weight is None and samples.subject_starts is None
    weighted = values if plain else values * weights[:, :, None]
    b, n, d = values.shape
    n_cells = samples.cell_starts.size - 1
    sum_x, sum_xx = np.zeros((b, n_cells, d)), np.zeros((b, n_cells, d, d))
    ones = np.ones((1, n))
    for cell in range(n_cells):
        members = slice(samples.cell_starts[cell], samples.cell_starts[cell + 1])
        if members.start < members.stop:
            sum_x[:, cell] = (ones[:, members] @ weighted[:, members])[:, 0]
            sum_xx[:, cell] = np.swapaxes(weighted[:, members], 1, 2) @ values[:, members]
    count = samples.by_cell(weights)
    return Block(channels, columns, count, sum_x, sum_xx, shift, scale), observed


def _as_slice(columns: Indices) -> slice | Indices:
    """Give neighbouring columns as a slice: copying them is several times faster."""
    first = int(columns[0])
    if np.array_equal(columns, np.arange(first, first + columns.size)):
        return slice(first, first + columns.size)
    return columns


def is_observed(values: Array) -> Mask:
    """Return which samples have each channel, (b, n): those without NaN."""
    # A mean of finite numbers is finite; half of it does not overflow on the way either.
    return ~np.asarray(np.isnan(values @ np.full(values.shape[2], 0.5 / values.shape[2])))


def join_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Join blocks of channels with equally many features."""
    by_size: dict[int, list[Block]] = {}
    for block in blocks:
        by_size.setdefault(block.columns.shape[1], []).append(block)
    return tuple(
        Block(*map(np.concatenate, zip(*(vars(block).values() for block in same), strict=True)))
        for same in by_size.values()
    )


def join_sums(parts: Sequence[Sums]) -> Sums:
    """Add up sums of the same columns, in common units; cells of equal class and folds join."""
    keys = np.concatenate([np.vstack([part.classes, part.folds]) for part in parts], axis=1)
    cells, cell_of = np.unique(keys, axis=1, return_inverse=True)
    adding = (cell_of.ravel() == np.arange(cells.shape[1])[:, None]).astype(float)
    blocks = []
    for same in zip(*(part.blocks for part in parts), strict=True):
        weight = np.stack([block.count.sum(axis=1) for block in same])
        share = (weight / np.maximum(weight.sum(axis=0), 1e-300))[:, :, None]
        shift = np.sum(share * np.stack([block.shift for block in same]), axis=0)
        scale = np.max([block.scale for block in same], axis=0)
        alike = [block.in_units(shift, scale) for block in same]
        count, sum_x, sum_xx = (
            np.concatenate([getattr(block, name) for block in alike], axis=1)
            for name in ("count", "sum_x", "sum_xx")
        )
        products = adding @ sum_xx.reshape(*sum_xx.shape[:2], -1)
        sums = {
            "count": count @ adding.T,
            "sum_x": adding @ sum_x,
            "sum_xx": products.reshape(products.shape[:2] + sum_xx.shape[2:]),
        }
        blocks.append(replace(same[0], **sums, shift=shift, scale=scale))
    total, seen = (
        adding @ np.concatenate([getattr(part, name) for part in parts])
        for name in ("total", "seen")
    )
    first = parts[0]
    return Sums(tuple(blocks), cells[0], cells[1:], total, seen, first.n_classes, first.numeric)


def n_repeats(n_values: float) -> int:
    """Return the number of repeats of the folds for a table of this size."""
    return N_REPEATS if n_values <= _LARGE_TABLE else 1


def name_folds(names: Iterable[object], key: bytes = b"") -> Indices:
    """Assign subjects to :data:`N_FOLDS` folds by a hash of their names: eight bytes, modulo 4."""
    # What is keyed no one can compute from a list of names without the key.
    digests = [
        hashlib.blake2b(name.encode(), key=key, digest_size=32).digest()
        if key
        else hashlib.sha256(name.encode()).digest()
        for name in map(str, names)
    ]
    return np.array([int.from_bytes(digest[:8], "big") % N_FOLDS for digest in digests])


def sum_bits(X: Array, columns: Sequence[Indices]) -> NDArray[np.uint64]:
    """Add up the bits of every sample's values, those of each channel that it has."""
    sums = np.zeros(len(X), dtype=np.uint64)
    for channel_columns in columns:
        values = X[:, _as_slice(channel_columns)]
        # The upper half of the bits, rounded: sign, exponent and 20 bits of the fraction. Rounding
        # of the values must not move a subject.
        bits = values.view(np.uint64) + np.uint64(2**31)
        bits >>= np.uint64(32)
        sums += np.einsum("ij->i", bits) * is_observed(values[None])[0]
    return sums


def hash_samples(X: Array, columns: Sequence[Indices]) -> NDArray[np.uint64]:
    """Return a hash of every sample's values to six digits, in any order of features."""
    return mixed(sum_bits(X, columns))


def subject_folds(hashes: NDArray[np.uint64], member: Indices, n_repeats: int) -> Indices:
    """Assign subjects to folds by the hashes of their samples, shape (n_repeats, n_subjects)."""
    totals = np.zeros(int(member.max()) + 1, dtype=np.uint64)
    np.add.at(totals, member, hashes)
    return _hash_folds(totals, n_repeats)


def _hash_folds(hashes: NDArray[np.uint64], n_repeats: int) -> Indices:
    folds = [mixed(hashes, repeat) % np.uint64(N_FOLDS) for repeat in range(n_repeats)]
    return np.stack(folds).astype(np.intp)


# Bends the sum over a sample's features, so that it is not 0 where these cancel out.
_BEND = 0.37
# Numbers closer than this may be the same one in another order of summing.
_GRAIN = 1e-4


def value_folds(
    X: Array, columns: Sequence[Indices], n_repeats: int = 1, *, sample_weight: Array | None = None
) -> Indices:
    """Assign samples to :data:`N_FOLDS` folds by their values, where subjects are not known.

    Equal samples share a fold.
    """
    numbers = _sum_values(X, columns, sample_weight)
    grains = np.round(np.clip(numbers, -1e12, 1e12) / _GRAIN).astype(np.int64).view(np.uint64)
    return _hash_folds(grains, n_repeats)


def number_by_value(X: Array, columns: Sequence[Indices], member: Indices) -> Indices:
    """Number the subjects of samples by their values, which folds then follow.

    ``member`` has the number of each sample's subject so far.
    """
    totals = np.bincount(member, _sum_values(X, columns))
    numbers = np.random.default_rng(0).permutation(totals.size)  # no fold has the largest values
    return numbers[np.argsort(np.argsort(totals, kind="stable"), kind="stable")][member]


def _sum_values(X: Array, columns: Sequence[Indices], sample_weight: Array | None = None) -> Array:
    """Make a number of each sample's values.

    It depends neither on the order of samples, features and channels, nor on their units, nor on
    what a channel holds where it counts as missing.
    """
    numbers = np.zeros(len(X))
    for channel_columns in columns:
        values = X[:, _as_slice(channel_columns)]
        observed = is_observed(values[None])[0]
        if not observed.any():
            continue
        values = values[observed]
        weights = np.ones(len(values)) if sample_weight is None else sample_weight[observed]
        total = weights.sum()
        mean = weights @ values / total
        values -= mean
        scale = safe_scale(np.abs(values).max(axis=0))
        scaled = values if (scale == 1).all() else values / scale
        # A constant column is off its mean by rounding, everywhere alike.
        variance = weights @ scaled**2 / total - (weights @ scaled / total) ** 2
        values /= Scaling.of(mean, scale * np.sqrt(np.maximum(variance, 0.0))).unit
        squares = np.einsum("ij,ij->i", values, values)
        numbers[observed] += values @ np.ones(channel_columns.size) + _BEND * squares
    return np.nan_to_num(numbers)


def mixed(numbers: NDArray[np.uint64], repeat: int = 0) -> NDArray[np.uint64]:
    """Spread numbers evenly (the end of SplitMix64), differently for every repeat."""
    numbers = numbers + np.uint64((repeat + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
