"""Products between channels, as far as they can be told: by which channels samples have.

Told is, for a class and a pattern of channels, the sums over all samples that have exactly these
channels, if what follows from them and from the sums of single channels is over enough people:

1. A pattern has at least ``min_people`` people, and more samples than columns: the products of
   fewer hold the samples themselves, but for a rotation.
2. Of every channel, who has samples of patterns that are not told are nobody or at least
   ``min_people`` people: their sums are those of the channel less those of the patterns.
3. The sums of a channel are told by folds, too. A combination of folds, patterns and sums over
   people gives a sample the coefficient of its person plus that of its pattern. Some pattern (or
   what is left of all that are not told) must have so many people in all folds that whatever is
   combined of folds alone, less any constant, is over ``min_people`` of them. Then a combination
   is over these, or folds take no part in it, and it is over whole patterns.

A person who has samples of several patterns is one of each.

A few samples of rare patterns are enough to break the second rule. Where these are at most a tenth
of a class, and more is told without them, they are left out of all sums: what is not in any sum
does not follow from differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec._groups import name_folds
from idfsmec.solver import PatternSums
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS
from idfsmec.summaries.differences import Seating, anchors
from idfsmec.summaries.summary import Summary
from idfsmec.table import FeatureTable

# So large a share of a class's samples may be left out.
_RARE = 0.1

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Holders:
    """Who of a class has samples of which pattern of channels.

    Attributes
    ----------
    patterns : ndarray of bool, shape (q, n_channels)
        Which channels are there.
    holds : ndarray of bool, shape (q, p)
        Who has samples of it.
    samples : ndarray of int, shape (p, n_channels)
        Of each person, those that have the channel.
    folds : ndarray of shape (R, p)
    rows : ndarray of shape (n,)
        The pattern of each sample of the class.
    """

    patterns: Mask
    holds: Mask
    samples: Counts
    folds: Indices
    rows: Indices

    @classmethod
    def of(cls, observed: Mask, names: NDArray) -> Holders:
        """Look at the samples of a class: who has which channels."""
        patterns, rows = np.unique(observed, axis=0, return_inverse=True)
        rows = rows.reshape(-1)
        people, member = np.unique(names, return_inverse=True)
        holds = np.zeros((len(patterns), people.size), dtype=bool)
        holds[rows, member] = True
        samples = np.zeros((people.size, observed.shape[1]), dtype=np.int64)
        np.add.at(samples, member, observed)
        return cls(patterns, holds, samples, name_folds(people, N_FOLDS, N_DEALS), rows)

    def common(self, widths: Indices, min_people: int) -> Mask:
        """Patterns of which each has enough people and samples to be told, if all others are."""
        people, samples = self.holds.sum(axis=1), np.bincount(self.rows)
        return (people >= min_people) & (samples > self.patterns @ widths)


def common_samples(table: FeatureTable, min_people: int) -> Mask:
    """Which samples do not have a rare pattern of channels, as far as these are few.

    Parameters
    ----------
    table : FeatureTable
    min_people : int

    Returns
    -------
    ndarray of bool, shape (n_samples,)
    """
    observed, names = table.observed.to_numpy(), table.subjects.astype(str).to_numpy()
    widths = np.array([table.column_channels.count(channel) for channel in table.channels])
    kept = np.ones(len(table), dtype=bool)
    for label in table.y.unique():
        own = np.flatnonzero((table.y == label).to_numpy())
        holders = Holders.of(observed[own], names[own])
        common = holders.common(widths, min_people) | ~holders.patterns.any(axis=1)
        if not common.all() and (rare := ~common[holders.rows]).mean() <= _RARE:
            kept[own[rare]] = False
    return kept


def between_channels(
    table: FeatureTable, summary: Summary, seating: Sequence[Sequence[Seating]]
) -> tuple[tuple[PatternSums, ...], tuple[str, ...]]:
    """Sums by patterns of channels that can be told beside a summary.

    Parameters
    ----------
    table : FeatureTable
    summary : Summary
        Of the table.
    seating : sequence of sequence of Seating
        For every class and channel, how its sums are told.

    Returns
    -------
    patterns : tuple of PatternSums
    withheld : tuple of str
        What of them is not told.
    """
    observed, names = table.observed.to_numpy(), table.subjects.astype(str).to_numpy()
    wanted: dict[bytes, list[tuple[int, Indices, int]]] = {}
    withheld: list[str] = []
    for k, label in enumerate(summary.labels):
        own = np.flatnonzero((table.y == label).to_numpy())
        if not own.size or not summary.people[k]:
            continue
        holders = Holders.of(observed[own], names[own])
        widths = np.array([columns.size for columns in summary.places])
        told = tell(holders, seating[k], widths, summary.min_people)
        for at in np.flatnonzero(told):
            rows = own[holders.rows == at]
            n_people = int(holders.holds[at].sum())
            wanted.setdefault(holders.patterns[at].tobytes(), []).append((k, rows, n_people))
        withheld += _in_words(holders, told, label)
    found = [_sum_up(table, summary, pattern, parts) for pattern, parts in wanted.items()]
    return tuple(found), tuple(withheld)


def _sum_up(
    table: FeatureTable, summary: Summary, pattern: bytes, parts: list[tuple[int, Indices, int]]
) -> PatternSums:
    there = np.frombuffer(pattern, dtype=bool)
    columns = np.sort(np.concatenate([summary.places[v] for v in np.flatnonzero(there)]))
    people = np.zeros(len(summary.labels), dtype=np.int64)
    for k, _, n in parts:
        people[k] = n
    rows = np.concatenate([own for _, own, _ in parts])
    codes = np.concatenate([np.full(own.size, k, dtype=np.intp) for k, own, _ in parts])
    X = table.X.to_numpy()[np.ix_(rows, columns)]
    return PatternSums.of([summary.columns[j] for j in columns], X, codes, people)


def _in_words(holders: Holders, told: Mask, label: object) -> list[str]:
    """What is not told of a class; samples without any channel have nothing to tell."""
    some = holders.patterns.any(axis=1)
    left = some & ~told
    if not left.any():
        return []
    share = np.isin(holders.rows, np.flatnonzero(left)).mean()
    return [
        f"products between channels of class {label} for {int(left.sum())} of {int(some.sum())} "
        f"patterns of channels, which {100 * share:.0f} % of its samples have"
    ]


def tell(holders: Holders, seats: Sequence[Seating], widths: Indices, min_people: int) -> Mask:
    """Which patterns of a class can be told.

    Parameters
    ----------
    holders : Holders
    seats : sequence of Seating
        How the sums of each channel are told.
    widths : ndarray of shape (n_channels,)
        Columns of each channel.
    min_people : int

    Returns
    -------
    ndarray of bool, shape (q,)
    """
    hidden = np.array([seat.n_folds == 0 for seat in seats])
    n_people = holders.holds.sum(axis=1)
    told = np.asarray(holders.patterns.any(axis=1))
    told = told & ~holders.patterns[:, hidden].any(axis=1)
    if min_people > 1:
        told = told & holders.common(widths, min_people)
    while min_people > 1:
        for v, seat in enumerate(seats):
            own = told & holders.patterns[:, v]
            left = holders.holds[~told & holders.patterns[:, v]].any(axis=0)
            if not own.any():
                continue
            if 0 < left.sum() < min_people:
                # The smallest goes: what is left is then over its people, too.
                told[np.where(own, n_people, np.iinfo(n_people.dtype).max).argmin()] = False
                break
            groups = [*holders.holds[own], left]
            if not anchors(groups, holders.samples[:, v], holders.folds, seat, min_people):
                told[own] = False
                break
        else:
            break
    return told
