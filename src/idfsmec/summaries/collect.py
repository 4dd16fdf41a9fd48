"""From samples to summaries: sums that grow, and what of them may be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec._columns import channel_columns
from idfsmec._groups import digest_folds
from idfsmec._jobs import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.solver import ChannelSums, Scaling, Seats, add_sums, blocks
from idfsmec.summaries._people import People
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS, value_folds
from idfsmec.summaries.differences import Seating
from idfsmec.summaries.disclosure import disclose
from idfsmec.summaries.summary import Summary

Array = NDArray[np.float64]


class Collector:
    """Sums over samples that come piece by piece; people may come again in later pieces.

    Sums over people can be told only when all their samples are there, so those of each person are
    kept until then: memory grows with people x columns, not with samples.

    Parameters
    ----------
    columns, channels : sequence of str
        The features and their channels.
    settings : mapping, optional
        How they were computed.

    Examples
    --------
    >>> collector = Collector(["Cz__alpha"], ["Cz"])
    >>> collector.add(np.array([[1.0], [np.nan]]), ["HC", "MDD"], ["ann", "bob"])
    >>> collector.add(np.array([[3.0]]), ["MDD"], ["eve"])
    >>> collector.summary(min_people=1)
    Summary(1 tables; people HC: 1, MDD: 2; 1 channels, 1 features; 0 sums withheld)
    """

    def __init__(
        self,
        columns: Sequence[str],
        channels: Sequence[Any],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.columns, self.channels = tuple(columns), tuple(channels)
        self.settings = dict(settings or {})
        names, self._places = channel_columns(list(channels), len(columns), None)
        self._names = names.tolist()
        self._people = People(self._places)
        self._labels: list[Any] = []  # in order of first appearance
        self._sums: list[ChannelSums] = []
        self._total = np.zeros((N_DEALS, N_FOLDS, 0))
        self._seen = np.zeros(0)
        self._alone = np.zeros((N_DEALS, N_FOLDS, 0), dtype=np.int64)  # samples without a name
        self._units: Scaling | None = None  # of the first of these

    @property
    def labels(self) -> list[Any]:
        """Of the classes seen so far, in order."""
        return sorted(self._labels)

    def add(self, X: Array, labels: ArrayLike, people: ArrayLike | None = None) -> None:
        """Add samples.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_columns)
            NaN where a channel is missing.
        labels : array-like of shape (n_samples,)
        people : array-like of shape (n_samples,), optional
            Their names; by default every sample is a person of its own.
        """
        if people is None:
            self._units = self._units or Scaling.learn(X)
            fold = value_folds(X, self._places, N_FOLDS, N_DEALS, scaling=self._units)
            self._add(X, labels, fold, None, [])
        else:
            self.add_columns(X, labels, people)

    def add_columns(
        self, values: Sequence[Array] | Array, labels: ArrayLike, people: ArrayLike
    ) -> None:
        """Add samples whose columns are given one by one."""
        names, member = np.unique(np.asarray(people).astype(str), return_inverse=True)
        # Names stay here no longer than their digests need.
        digests = [sha256(name.encode()).digest() for name in names.tolist()]
        fold = digest_folds(digests, N_FOLDS, N_DEALS)[:, member]
        self._add(values, labels, fold, member, digests)

    def _add(
        self,
        values: Sequence[Array] | Array,
        labels: ArrayLike,
        fold: NDArray[np.intp],
        member: NDArray[np.intp] | None,
        digests: list[bytes],
    ) -> None:
        classes, codes = np.unique(np.asarray(labels), return_inverse=True)
        new = [label for label in classes.tolist() if label not in self._labels]
        known = [*self._labels, *new]
        codes = np.array([known.index(label) for label in classes.tolist()])[codes]
        seats = Seats.of(fold, codes, (N_FOLDS, len(known)), member)
        try:
            with one_blas_thread():
                found, seen = self._sum_up(values, seats)
        except FloatingPointError as error:
            column = self.columns[error.args[0]]
            raise InputError(
                f"Column {column!r} contains infinity: repair or drop these values first."
            ) from None
        old, total = np.arange(len(self._labels)), seats.totals()
        alone = (total if member is None else np.zeros_like(total)).astype(np.int64)
        total[..., old] += self._total
        alone[..., old] += self._alone
        seen[old] += self._seen
        if self._sums:
            before = [one.at(old, len(known)) for one in self._sums]
            found = [add_sums(pair) for pair in zip(before, found, strict=True)]
        if member is not None and seats.person_starts is not None:
            first = seats.order[seats.person_starts]
            self._people.take_in([digests[p] for p in member[first]], codes[first])
        self._labels, self._sums, self._total = known, found, total
        self._seen, self._alone = seen, alone

    def _sum_up(
        self, values: Sequence[Array] | Array, seats: Seats
    ) -> tuple[list[ChannelSums], Array]:
        """Sums over samples, over people if each is of somebody else; samples of any channel."""
        found: dict[int, ChannelSums] = {}
        some = np.zeros(seats.order.size, dtype=bool)
        self._people.expect(seats)
        for block in blocks(values, seats, self._places):
            some |= (block.there > 0).any(axis=0)
            samples = block.sample_sums(seats)
            alone = seats.person_starts is None
            if not alone:
                self._people.note(block, seats)
            people = samples if alone else tuple(np.zeros_like(part) for part in samples)
            parts = [*samples, *people, block.shift, block.scale]
            for row, channel in enumerate(block.channels.tolist()):
                found[channel] = ChannelSums(*(part[row] for part in parts))
        return [found[at] for at in range(len(self._places))], seats.seen(some)

    def summary(
        self, min_people: int = 1, n_folds: int = N_FOLDS, labels: Iterable[Any] = ()
    ) -> Summary:
        """Give the sums, without those over fewer than ``min_people`` people of a class."""
        return self.told(min_people, n_folds, labels)[0]

    def told(
        self, min_people: int, n_folds: int, labels: Iterable[Any]
    ) -> tuple[Summary, list[list[Seating]]]:
        """Give the summary, and how the sums are told, for every class and channel."""
        classes = sorted({*self._labels, *labels})
        own = np.array([classes.index(label) for label in self._labels], dtype=np.intp)
        shape = (N_DEALS, N_FOLDS, len(classes))
        with one_blas_thread():
            sums = self._people.added_to([one.at(own, len(classes)) for one in self._sums], own)
        total = np.zeros(shape)
        seen = np.zeros(len(classes))
        total[..., own], seen[own] = self._total, self._seen
        tally = self._people.tally(own, len(classes))
        alone = np.stack([one.people.astype(np.int64) for one in self._sums], axis=2)
        for part in (tally.have, tally.met):
            part[..., own] += alone
        tally.people[..., own] += self._alone

        def by_samples(channel: int, like: ChannelSums) -> Array:
            return self._people.by_samples(channel, like, own)

        names = (self._names, classes)
        told = disclose(tally, sums, total, names, min_people, n_folds, by_samples)
        summary = Summary(
            self.columns,
            self.channels,
            tuple(classes),
            tuple(one.centred() for one in told.sums),
            told.total,
            told.people,
            np.where(told.people[0].sum(axis=0) > 0, seen, 0).astype(np.int64),
            told.have,
            self.settings,
            told.withheld,
            min_people,
        )
        return summary, told.seating


def settings_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is known about a table, how its features were computed."""
    # Only tables have settings to compare: who fits arrays need not wait for MNE.
    from idfsmec.features.settings import FeatureSettings

    known = FeatureSettings().as_dict()
    parts = info.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if differing := sorted(set(part) & set(known)):
            raise InputError(
                f"The table is made of parts with different settings ({', '.join(differing)}): "
                "its features do not mean the same."
            )
    return {key: info[key] for key in known if key in info}
