"""Blocks of channels, read from a table, shifted and summed up by cell and by person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.moments import as_slice
from idfsmec.solver.scaling import safe_scale
from idfsmec.solver.seats import Seats
from idfsmec.solver.sums import Three
from idfsmec.solver.table_moments import Columns

Array = NDArray[np.float64]
Source = Array | Sequence[Array]

# Samples x features handled at a time: small enough for the processor's cache.
_BLOCK_ELEMENTS = 400_000


@dataclass(frozen=True)
class Block:
    """Some channels with equally many features, their samples seated, shifted and scaled.

    Attributes
    ----------
    channels, columns
        Places and columns (b, d).
    values : ndarray of shape (b, n, d)
        0 where a channel is missing.
    weighted : ndarray of shape (b, n, d)
        Times the weights.
    there : ndarray of shape (b, n)
        The weight of samples that have the channel.
    shift, scale : ndarray of shape (b, d)
    """

    channels: NDArray[np.intp]
    columns: Columns
    values: Array
    weighted: Array
    there: Array
    shift: Array
    scale: Array

    def sample_sums(self, seats: Seats) -> Three:
        """Counts, sums and products of samples by deal, fold and class."""
        found = _by_cell(self.there, self.weighted, self.values, seats.starts)
        return _spread(found, seats)

    def people_sums(self, seats: Seats) -> Three:
        """The same of people."""
        n, sums = self.by_person(seats)
        return people_sums(n, sums, seats)

    def by_person(self, seats: Seats) -> tuple[Array, Array]:
        """Weight (b, p) and sums (b, p, d) of the samples of each person."""
        starts = (
            np.arange(seats.order.size) if seats.person_starts is None else seats.person_starts
        )
        n = np.add.reduceat(self.there, starts, axis=1)
        return n, np.add.reduceat(self.weighted, starts, axis=1)


def _by_cell(there: Array, weighted: Array, values: Array, starts: NDArray[np.intp]) -> Three:
    """Counts (b, J), sums (b, J, d) and products (b, J, d, d) of rows (b, n, d) by cell."""
    b, n, d = values.shape
    count = np.add.reduceat(there, starts, axis=1)
    sums, products = np.empty((b, starts.size, d)), np.empty((b, starts.size, d, d))
    ones = np.ones((1, n))
    for cell, (first, last) in enumerate(zip(starts, [*starts[1:], n], strict=True)):
        own = weighted[:, first:last]
        sums[:, cell] = (ones[:, first:last] @ own)[:, 0]
        products[:, cell] = np.swapaxes(own, 1, 2) @ values[:, first:last]
    return count, sums, products


def people_sums(n: Array, sums: Array, seats: Seats) -> Three:
    """Counts, sums and products of people's means by deal, fold and class.

    Parameters
    ----------
    n : ndarray of shape (b, p)
        Weight of each person's samples that have the channel.
    sums : ndarray of shape (b, p, d)
        Over these.
    seats : Seats
        Of the samples, or of the people themselves.
    """
    starts = seats.starts if seats.person_cells is None else seats.person_cells
    means = sums / np.where(n > 0, n, 1.0)[:, :, None]
    return _spread(_by_cell((n > 0).astype(np.float64), means, means, starts), seats)


def _spread(parts: Three, seats: Seats) -> Three:
    """Sums over cells as sums over folds of every deal."""
    count, sums, products = (seats.spread(part) for part in parts)
    return count, sums, products


def blocks(
    values: Source,
    seats: Seats,
    columns: Sequence[Columns],
    weights: Array | None = None,
    score: Array | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Iterator[Block]:
    """Read the channels of a table, some at a time; parameters as of ``table_cells``."""
    sizes = np.array([own.size for own in columns])
    order = seats.order
    places = order if rows is None else rows[order]
    weight = None if weights is None else weights[order]
    for size in np.unique(sizes):
        channels = np.flatnonzero(sizes == size)
        per_block = max(1, _BLOCK_ELEMENTS // max(1, order.size * int(size)))
        for first in range(0, channels.size, per_block):
            part = channels[first : first + per_block]
            own = np.stack([columns[int(v)] for v in part])
            loaded = _loaded(values, places, own)
            yield _block(part, own, loaded, weight, None if score is None else score[order])


def _loaded(values: Source, order: NDArray[np.intp], own: Columns) -> Array:
    """The values (b, n, d) of some channels, in the order of the seats."""
    b, d = own.shape
    if isinstance(values, np.ndarray):
        block = np.empty((b, order.size, d))
        for channel, columns in zip(block, own, strict=True):
            np.take(values[:, as_slice(columns)], order, axis=0, out=channel, mode="clip")
        return block
    turned = np.empty((b, d, order.size))
    for channel, columns in zip(turned, own, strict=True):
        for row, column in zip(channel, columns, strict=True):
            np.take(values[column], order, out=row, mode="clip")
    return turned.transpose(0, 2, 1)


def _block(
    channels: NDArray[np.intp],
    columns: Columns,
    values: Array,
    weights: Array | None,
    score: Array | None,
) -> Block:
    """Shift and scale values, which are overwritten."""
    observed = _observed(values, columns)
    there = observed.astype(float) if weights is None else observed * weights
    gaps = not observed.all()
    if gaps:
        values[~observed] = 0.0
    count = np.maximum(there.sum(axis=1), 1e-300)[:, None]
    shift = (there[:, None, :] @ values)[:, 0] / count
    values -= shift[:, None, :]
    if gaps:
        values[~observed] = 0.0
    scale = safe_scale(np.maximum(values.max(axis=1), -values.min(axis=1)))
    if (scale != 1).any():
        values /= scale[:, None, :]
    if score is not None:
        with_score = observed[:, :, None] * score[None, :, None]
        values = np.concatenate([values, with_score], axis=2)
        shift, scale = np.pad(shift, ((0, 0), (0, 1))), np.pad(scale, ((0, 0), (0, 1)))
        scale[:, -1] = 1.0
    weighted = values if weights is None else values * weights[None, :, None]
    return Block(channels, columns, values, weighted, there, shift, scale)


def _observed(values: Array, columns: Columns) -> NDArray[np.bool_]:
    """Who has each channel: no NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        observed = np.isfinite(values @ np.ones(values.shape[2]))
    if not observed.all():
        channel, sample = np.nonzero(~observed)
        doubtful = values[channel, sample]
        place, feature = np.nonzero(np.isinf(doubtful))
        if place.size:
            raise FloatingPointError(int(columns[channel[place[0]], feature[0]]))
        observed[channel, sample] = ~np.isnan(doubtful).any(axis=1)
    return observed
