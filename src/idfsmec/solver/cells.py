"""Cells: a table summed up by folds of people, from which any fold can be solved and judged.

The only pass over the samples that a fit with held-out weights needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.blocks import Source, blocks
from idfsmec.solver.moments import Moments
from idfsmec.solver.seats import Seats
from idfsmec.solver.sums import ADDED, ChannelSums
from idfsmec.solver.table_moments import Columns, Group, TableMoments

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CellGroup:
    """Channels with equally many features: their places, columns (b, d) and sums.

    The sums of a score have it as a last feature, d + 1.
    """

    channels: NDArray[np.intp]
    columns: Columns
    sums: ChannelSums


@dataclass(frozen=True)
class Cells:
    """What the method needs to know of a table, by deal (R), fold (F) and class (c).

    Attributes
    ----------
    groups : tuple of CellGroup
        One for each number of features per channel.
    total : ndarray of shape (R, F, c)
        Weight of all samples.
    people : ndarray of shape (R, F, c)
        All people.
    seen : ndarray of shape (c,)
        Weight of the samples that have any channel.
    score : bool
        Whether the target is a number. There is one class then.
    """

    groups: tuple[CellGroup, ...]
    total: Array
    people: Array
    seen: Array
    score: bool = False

    @classmethod
    def stack(
        cls,
        channels: Sequence[ChannelSums],
        columns: Sequence[Columns],
        total: Array,
        people: Array,
        seen: Array,
    ) -> Cells:
        """Put the sums of single channels together; ``columns`` says where their features are."""
        sizes = np.array([own.size for own in columns])
        groups = []
        for size in np.unique(sizes):
            places = np.flatnonzero(sizes == size)
            own = [channels[int(v)] for v in places]
            parts = [np.stack([getattr(one, name) for one in own]) for name in vars(own[0])]
            where = np.stack([columns[int(v)] for v in places])
            groups.append(CellGroup(places, where, ChannelSums(*parts)))
        return cls(tuple(groups), total, people, seen)

    def first_deals(self, n_deals: int) -> Cells:
        """The same with fewer deals."""
        return replace(
            self,
            groups=self._picked(lambda sums: sums[:, :n_deals]),
            total=self.total[:n_deals],
            people=self.people[:n_deals],
        )

    def only(self, deal: int, folds: Sequence[int]) -> Cells:
        """The same with the people of some folds of a deal alone.

        Who of them has any channel is not known by fold: all count as if they had one.
        """
        own = list(folds)
        total = self.total[[deal]][:, own]
        return replace(
            self,
            groups=self._picked(lambda sums: sums[:, [deal]][:, :, own]),
            total=total,
            people=self.people[[deal]][:, own],
            seen=total.sum(axis=(0, 1)),
        )

    def _picked(self, pick: Callable[[Array], Array]) -> tuple[CellGroup, ...]:
        """The groups with some of their sums, which are by channel, deal, fold and class."""
        found = []
        for group in self.groups:
            parts = {name: pick(getattr(group.sums, name)) for name in ADDED}
            found.append(replace(group, sums=replace(group.sums, **parts)))
        return tuple(found)

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return sum(group.channels.size for group in self.groups)

    @property
    def size(self) -> float:
        """Samples x features."""
        return float(self.total[0].sum()) * sum(group.columns.size for group in self.groups)

    def folds(self) -> list[tuple[int, int]]:
        """Deals and folds that hold somebody, where other folds of the deal do, too."""
        some = self.total.sum(axis=2) > 0
        return [(r, f) for r, f in np.argwhere(some).tolist() if some[r].sum() > 1]

    def whole(self) -> TableMoments:
        """Moments of all samples."""
        return self._moments(0, list(range(self.total.shape[1])))

    def training(self, deal: int, fold: int) -> TableMoments:
        """Moments of the samples of all folds of a deal but one."""
        return self._moments(deal, [f for f in range(self.total.shape[1]) if f != fold])

    def _moments(self, deal: int, folds: list[int]) -> TableMoments:
        total = self.total[deal, folds].sum(axis=0)
        groups = []
        for group in self.groups:
            sums = group.sums
            count = sums.count[:, deal, folds].sum(axis=1)
            sum_x = sums.sum_x[:, deal, folds].sum(axis=1)
            sum_xx = sums.sum_xx[:, deal, folds].sum(axis=(1, 2))
            parts = (count, sum_x, sum_xx, sums.shift, sums.scale)
            make = _score_moments if self.score else _class_moments
            groups.append(Group(group.channels, group.columns, make(float(total.sum()), *parts)))
        # Only class labels are ever filled in by their total.
        return TableMoments(tuple(groups), total)


def _class_moments(
    total: float, count: Array, sum_x: Array, sum_xx: Array, shift: Array, scale: Array
) -> Moments:
    everybody = count.sum(axis=1)
    return Moments(
        total, everybody, count, everybody, sum_x.sum(axis=1), sum_x, sum_xx, shift, scale
    )


def _score_moments(
    total: float, count: Array, sum_x: Array, sum_xx: Array, shift: Array, scale: Array
) -> Moments:
    """Moments of sums in which the target is the last feature, about 0 in units of 1."""
    return Moments(
        total=total,
        count=count[:, 0],
        class_count=sum_x[:, :, -1],
        sum_yy=sum_xx[:, -1, -1],
        sum_x=sum_x[:, 0, :-1],
        sum_xy=sum_xx[:, -1:, :-1],
        sum_xx=sum_xx[:, :-1, :-1],
        shift=shift[:, :-1],
        scale=scale[:, :-1],
    )


def table_cells(
    values: Source,
    seats: Seats,
    columns: Sequence[Columns],
    weights: Array | None = None,
    score: Array | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Cells:
    """Sum up a table by folds of people.

    Parameters
    ----------
    values : ndarray of shape (n, D), or sequence of D arrays of shape (n,)
        The table, or its columns; NaN where a channel is missing.
    seats : Seats
        Of the samples.
    columns : sequence of integer arrays
        The columns of each channel.
    weights : ndarray of shape (n,), optional
        Of the samples, positive. A person counts once all the same; where there are no people, a
        sample counts by its weight.
    score : ndarray of shape (n,), optional
        The target, if it is a number.
    rows : ndarray of shape (n,), optional
        Where the samples are among the values, if these have others too.

    Raises
    ------
    FloatingPointError
        A column holds infinity; its number is the error's argument.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [np.nan], [7.0]])
    >>> fold, codes = np.array([[0, 0, 1, 1]]), np.array([0, 1, 0, 1])
    >>> cells = table_cells(X, Seats.of(fold, codes, (2, 2)), [np.array([0])])
    >>> cells.groups[0].sums.count[0, 0]
    array([[1., 1.],
           [0., 1.]])
    """
    found: dict[int, list[CellGroup]] = {}
    some = np.zeros(seats.order.size, dtype=bool)
    for block in blocks(values, seats, columns, weights, score, rows):
        some |= (block.there > 0).any(axis=0)
        samples = block.sample_sums(seats)
        people = samples if seats.person_starts is None else block.people_sums(seats)
        sums = ChannelSums(*samples, *people, block.shift, block.scale)
        group = CellGroup(block.channels, block.columns, sums)
        found.setdefault(block.columns.shape[1], []).append(group)
    groups = tuple(_joined(parts) for parts in found.values())
    total = seats.totals(weights)
    crowds = total if seats.person_starts is None else seats.crowds()
    return Cells(groups, total, crowds, seats.seen(some, weights), score is not None)


def _joined(parts: list[CellGroup]) -> CellGroup:
    if len(parts) == 1:
        return parts[0]
    sums = (
        np.concatenate([getattr(part.sums, name) for part in parts])
        for name in vars(parts[0].sums)
    )
    channels, columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("channels", "columns")
    )
    return CellGroup(channels, columns, ChannelSums(*sums))
