"""Summary: all that the method needs of a table, as sums over people, without any person's row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._columns import SEPARATOR, channel_columns
from idfsmec._table_checks import same_info
from idfsmec.errors import InputError
from idfsmec.missing.association import missingness_from_counts
from idfsmec.solver import Cells, ChannelSums, PatternSums, add_sums
from idfsmec.solver.patterns import add_patterns, subtract_patterns
from idfsmec.summaries import _files as files
from idfsmec.summaries.in_words import in_words

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Counts, sums and products by channel, class and fold of people: what a hospital may share.

    Summaries add up (``+``) to that of all their people, and one can be taken away again (``-``).
    Made by :func:`idfsmec.summarise`; :meth:`idfsmec.IDFSMEC.fit_summaries` ranks from them.

    Attributes
    ----------
    columns, column_channels : tuple of str
        The features and their channels.
    labels : tuple
        Of the classes, in their order.
    sums : tuple of ChannelSums
        One for each channel: samples that have it, sums and products of its features.
    class_total : ndarray of shape (n_deals, n_folds, n_classes)
        Samples, whatever channels they have. Every deal sends all people to folds.
    fold_people : ndarray of int, shape (n_deals, n_folds, n_classes)
        People, likewise.
    seen : ndarray of int, shape (n_classes,)
        Samples that have any channel.
    have : ndarray of int, shape (n_channels, n_classes)
        People who have the channel in at least half of their samples.
    settings : mapping
        How the features were computed.
    withheld : tuple of str
        What too few people have to be told.
    min_people : int
        How many are too few.
    n_tables : int
        Tables that are summed up.
    patterns : tuple of PatternSums
        Sums of samples that have the same channels, with products between channels; none unless
        they were asked for.
    """

    columns: tuple[str, ...]
    column_channels: tuple[str, ...]
    labels: tuple[Any, ...]
    sums: tuple[ChannelSums, ...]
    class_total: Array
    fold_people: Counts
    seen: Counts
    have: Counts
    settings: Mapping[str, Any] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    min_people: int = 1
    n_tables: int = 1
    patterns: tuple[PatternSums, ...] = ()

    @cached_property
    def _channel_columns(self) -> tuple[NDArray, list[NDArray[np.intp]]]:
        return channel_columns(list(self.column_channels), len(self.columns), None)

    @property
    def channels(self) -> list[str]:
        """Names of the channels, in order of first appearance."""
        return self._channel_columns[0].tolist()

    @property
    def places(self) -> list[NDArray[np.intp]]:
        """The columns of each channel."""
        return self._channel_columns[1]

    @property
    def people(self) -> Counts:
        """How many people there are of each class."""
        return self.fold_people[0].sum(axis=0)

    @property
    def n_folds(self) -> int:
        """Folds of people that hold anybody, in a deal."""
        return int((self.class_total[0].sum(axis=1) > 0).sum())

    def cells(self) -> Cells:
        """The sums as the solver takes them."""
        people = self.fold_people.astype(np.float64)
        return Cells.stack(
            self.sums, self.places, self.class_total, people, self.seen.astype(float)
        )

    def __repr__(self) -> str:
        people = ", ".join(f"{k}: {n}" for k, n in zip(self.labels, self.people, strict=True))
        return (
            f"Summary({self.n_tables} tables; people {people}; {len(self.channels)} channels, "
            f"{len(self.columns)} features; {len(self.withheld)} sums withheld)"
        )

    def __add__(self, other: Summary) -> Summary:
        return combine([self, other])

    def __sub__(self, other: Summary) -> Summary:
        _check([self, other], ("the sum", "what is taken away"))
        if not set(other.columns) <= set(self.columns) or other.n_tables >= self.n_tables:
            raise InputError("Only a summary that was added can be taken away again.")
        own = other.among(self.columns, self.column_channels, self.labels)
        sums = tuple(whole - part for whole, part in zip(self.sums, own.sums, strict=True))
        total = self.class_total - own.class_total
        try:
            patterns = subtract_patterns(self.patterns, own.patterns)
        except KeyError:
            raise InputError("What is taken away has other patterns of channels.") from None
        if total.min() < 0 or min(one.count.min() for one in sums) < 0:
            raise InputError("What is taken away has more samples: it was never added.")
        return Summary(
            self.columns,
            self.column_channels,
            self.labels,
            sums,
            total,
            self.fold_people - own.fold_people,
            self.seen - own.seen,
            self.have - own.have,
            self.settings,
            tuple(one for one in self.withheld if one not in own.withheld),
            self.min_people,
            self.n_tables - own.n_tables,
            patterns,
        )

    def among(
        self, columns: tuple[str, ...], channels: tuple[str, ...], labels: tuple[Any, ...]
    ) -> Summary:
        """The same among more channels and classes."""
        names, places = channel_columns(list(channels), len(columns), None)
        classes = np.array([labels.index(label) for label in self.labels], dtype=np.intp)
        own = {name: (at, self.places[at]) for at, name in enumerate(self.channels)}
        shape = (*self.class_total.shape[:2], len(labels))
        sums, have = [], np.zeros((len(names), len(labels)), dtype=np.int64)
        for row, (name, wanted) in enumerate(zip(names.tolist(), places, strict=True)):
            if name not in own:
                sums.append(ChannelSums.empty(shape, wanted.size))
                continue
            at, mine = own[name]
            order = [[self.columns[i] for i in mine].index(columns[j]) for j in wanted]
            sums.append(self.sums[at].reordered(order).at(classes, len(labels)))
            have[row, classes] = self.have[at]
        seen = np.zeros(len(labels), dtype=np.int64)
        seen[classes] = self.seen
        total, people = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        total[..., classes], people[..., classes] = self.class_total, self.fold_people
        patterns = tuple(one.among(columns, classes, len(labels)) for one in self.patterns)
        rest = (self.settings, self.withheld, self.min_people, self.n_tables, patterns)
        return Summary(columns, channels, labels, tuple(sums), total, people, seen, have, *rest)

    def feature_sums(self) -> list[tuple[Array, Array, Array]]:
        """Of every class the people who have each feature, sums of their means and squares."""
        parts = np.zeros((len(self.labels), 3, len(self.columns)))
        for one, own in zip(self.sums, self.places, strict=True):
            parts[:, 0, own] = one.people[0].sum(axis=0)[:, None]
            parts[:, 1, own] = one.sum_m[0].sum(axis=0)
            parts[:, 2, own] = np.diagonal(one.sum_mm[0].sum(axis=0), axis1=-2, axis2=-1)
        return [(n, sums, squares) for n, sums, squares in parts]

    def write(self, path: str | PathLike[str]) -> Path:
        """Refuse to write a file.

        Raises
        ------
        InputError
            Always: a file of this version can reveal single participants.
        """
        raise InputError(f"{path}: is not written. {files.NOT_WRITTEN}")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Summary:
        """Read what :meth:`write` wrote; a damaged file is refused."""
        return cls(**files.read(Path(path)))

    def missingness(self) -> pd.DataFrame:
        """Who has each channel, by class; see :func:`idfsmec.missing.missingness_by_class`."""
        seen = np.stack([one.count[0].sum(axis=0) > 0 for one in self.sums])
        return missingness_from_counts(self.have, self.people, seen, self.labels, self.channels)

    def describe(self) -> str:
        """Say in words all that is in it."""
        return in_words(self)


def combine(summaries: Sequence[Summary], names: Sequence[str] | None = None) -> Summary:
    """Sum up summaries: as if the samples of all tables had been in one.

    Parameters
    ----------
    summaries : sequence of Summary
    names : sequence of str, optional
        What messages call them, such as their files.

    Raises
    ------
    InputError
        They differ in feature settings, in the features of a channel or in labels.
    """
    if not summaries:
        raise InputError("There are no summaries to add up.")
    named = names or [f"summary {number}" for number in range(1, len(summaries) + 1)]
    if len(summaries) == 1:
        return summaries[0]
    _check(summaries, named)
    channel_of: dict[str, str] = {}
    for one in summaries:
        channel_of |= dict(zip(one.columns, one.column_channels, strict=True)) | channel_of
    first = {channel: at for at, channel in enumerate(dict.fromkeys(channel_of.values()))}
    columns = tuple(sorted(channel_of, key=lambda column: first[channel_of[column]]))
    channels = tuple(channel_of[column] for column in columns)
    labels = max((one.labels for one in summaries), key=len)
    alike = [one.among(columns, channels, labels) for one in summaries]
    return Summary(
        columns,
        channels,
        labels,
        tuple(add_sums(parts) for parts in zip(*(one.sums for one in alike), strict=True)),
        np.sum([one.class_total for one in alike], axis=0),
        np.sum([one.fold_people for one in alike], axis=0),
        np.sum([one.seen for one in alike], axis=0),
        np.sum([one.have for one in alike], axis=0),
        summaries[0].settings,
        tuple(said for one in summaries for said in one.withheld),
        min(one.min_people for one in summaries),
        sum(one.n_tables for one in summaries),
        add_patterns([one.patterns for one in alike]),
    )


def combine_products(summaries: Sequence[Summary]) -> Summary:
    """Sum up summaries for whoever needs products between channels."""
    whole = combine(list(summaries))
    if not whole.patterns:
        raise InputError(
            "The summaries have no products between channels: summarise the tables with "
            "between=True (--between-channels). What would be over too few people is withheld."
        )
    return whole


def _check(summaries: Sequence[Summary], names: Sequence[str]) -> None:
    """Refuse what does not belong together, and say why."""
    most = max(range(len(summaries)), key=lambda at: len(summaries[at].labels))
    for one, name in zip(summaries, names, strict=True):
        _check_settings(summaries[0], names[0], one, name)
        if strange := [label for label in one.labels if label not in summaries[most].labels]:
            raise InputError(
                f"{name} has the label {strange[0]!r}, and {names[most]} has "
                f"{', '.join(map(repr, summaries[most].labels))}: give the labels of the whole "
                "study when summarising, or rename them."
            )
        known = _features(summaries[0])
        for channel, features in _features(one).items():
            if channel in known and (differing := set(features) ^ set(known[channel])):
                raise InputError(
                    f"{name} and {names[0]} have different features of channel {channel}: "
                    f"{', '.join(sorted(differing)[:5])}."
                )


def _check_settings(first: Summary, name: str, other: Summary, other_name: str) -> None:
    for key in sorted({*first.settings, *other.settings}):
        values = [one.settings.get(key, "not known") for one in (first, other)]
        if not same_info({"": values[0]}, {"": values[1]}):
            raise InputError(
                f"{other_name} and {name} were computed with different settings: {key} is "
                f"{values[1]!r} in the one and {values[0]!r} in the other."
            )


def _features(summary: Summary) -> dict[str, list[str]]:
    return {
        channel: [summary.columns[at].rpartition(SEPARATOR)[2] for at in own]
        for channel, own in zip(summary.channels, summary.places, strict=True)
    }
