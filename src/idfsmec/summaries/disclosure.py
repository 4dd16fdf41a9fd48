"""What of sums may be told: nothing over too few people, nor what would follow from two sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver import ChannelSums, merge_folds
from idfsmec.summaries._people import Tally
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS
from idfsmec.summaries.differences import Seating, hides_samples

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Disclosed:
    """What may be told, and in words what may not.

    Attributes
    ----------
    sums, total, people, have
        As of a :class:`~idfsmec.Summary`.
    withheld : tuple of str
    seating : list of list of Seating
        For every class and channel how its sums are told.
    """

    sums: list[ChannelSums]
    total: Array
    people: Counts
    have: Counts
    withheld: tuple[str, ...]
    seating: list[list[Seating]]


#: Of a channel (its place, and its sums), products of people who count by their samples.
BySamples = Callable[[int, ChannelSums], Array]


def disclose(
    tally: Tally,
    sums: Sequence[ChannelSums],
    total: Array,
    names: tuple[Sequence[Any], Sequence[Any]],
    min_people: int,
    n_folds: int,
    by_samples: BySamples,
) -> Disclosed:
    """Withhold sums over fewer than ``min_people`` people of a class.

    A class that has fewer is left out. Where a fold would have fewer, there are half as many
    folds. A channel that fewer people of some fold have goes into one fold; if it has fewer even
    so, it is left out. Two deals are two ways to part the same people: where sums of the one less
    sums of the other would be over fewer people, the second deal is the first again. Where sums
    over samples less sums over people's means would be, people count by their samples.

    Parameters
    ----------
    tally : Tally
    sums : sequence of ChannelSums
    total : ndarray of shape (R, F, c)
        Samples.
    names : tuple
        Of the channels and of the classes.
    min_people, n_folds : int
    by_samples : callable
    """
    channels, classes = names
    people, withheld = tally.people.copy(), []
    for k, label in enumerate(classes):
        if 0 < people[0, :, k].sum() < min_people:
            withheld.append(f"class {label}, of which there are fewer than {min_people} people")
            total[..., k], people[..., k] = 0, 0
    n_folds = _affordable(people, min_people, n_folds)
    firsts = [_first_fold(tally.everyone, n_folds)] * N_DEALS
    total, people = (merge_folds(part, n_folds, firsts) for part in (total, people))
    parts, have, seating = list(sums), tally.have[0].sum(axis=0), []
    for k, label in enumerate(classes):
        gone = not people[..., k].any()
        once = not _far_apart(tally.people_pairs[..., k], n_folds, min_people)
        if once:
            total[1:, :, k], people[1:, :, k] = total[:1, :, k], people[:1, :, k]
        seats = [
            Seating(0) if gone else _seating(tally, at, k, once, min_people, n_folds)
            for at in range(len(channels))
        ]
        for at, seat in enumerate(seats):
            parts[at] = _seated(parts[at], k, seat, n_folds, firsts, at, by_samples)
            have[at, k] *= seat.n_folds > 0
        withheld += [] if gone else _in_words(seats, channels, label)
        seating.append(seats)
    parts = [one.merged(n_folds, firsts) for one in parts]
    return Disclosed(parts, total, people, have, tuple(withheld), seating)


def _seating(tally: Tally, at: int, k: int, once: bool, min_people: int, n_folds: int) -> Seating:
    """How the sums of a channel can be told for a class."""
    met, have = (
        merge_folds(part[:, :, at, k], n_folds, [0] * N_DEALS) for part in (tally.met, tally.have)
    )
    folds, deals = n_folds, N_DEALS
    if _too_few(met, have, min_people):
        folds = 1
        if _too_few(met[0].sum(), have[0].sum(), min_people):
            return Seating(0)
    elif once or not _far_apart(tally.met_pairs[..., at, k], n_folds, min_people):
        deals = 1
    own = (tally.codes == k) & (tally.samples[:, at] > 0)
    n, seats = tally.samples[own, at], tally.folds[:deals, own] % folds
    return Seating(folds, deals, not hides_samples(n, seats, folds, min_people))


def _seated(
    sums: ChannelSums,
    k: int,
    seat: Seating,
    n_folds: int,
    firsts: Sequence[int],
    at: int,
    by_samples: BySamples,
) -> ChannelSums:
    """The sums of a channel, for a class as they can be told."""
    if seat.n_folds == 0:
        return sums.without(k)
    if seat.by_samples:
        sums = sums.by_samples(k, by_samples(at, sums))
    if seat.n_folds < n_folds:
        return sums.in_one_fold(k, firsts)
    return sums.dealt_once(k) if seat.n_deals == 1 else sums


def _in_words(seats: Sequence[Seating], channels: Sequence[Any], label: Any) -> list[str]:
    """What is not told of the channels of a class."""
    said = [
        f"{name} of class {label}"
        for seat, name in zip(seats, channels, strict=True)
        if seat.n_folds == 0
    ]
    if alike := sum(seat.by_samples for seat in seats):
        said.append(
            f"sums in which each person of class {label} counts once, for {alike} of "
            f"{len(seats)} channels: people count by their samples there, or those would follow "
            "who have another number of samples than most"
        )
    return said


def _first_fold(everyone: bytes, n_folds: int) -> int:
    """Where the folds of a table that has few begin: tables should not all take the first."""
    chance = int.from_bytes(sha256(everyone).digest()[:8], "big")
    return n_folds * (chance % (N_FOLDS // n_folds))


def _too_few(met: Any, have: Any, min_people: int) -> bool:
    """Whether a fold's sums are over too few people, or the number of who has it is too small."""
    return bool(np.any((met > 0) & (met < min_people) | (have > 0) & (have < min_people)))


def _affordable(people: Counts, min_people: int, n_folds: int) -> int:
    """Folds that leave enough people of every class that is there in each; half as many if not."""
    while n_folds > 1:
        merged = merge_folds(people, n_folds, [0] * N_DEALS)[:, :n_folds]
        if min_people <= 1 or (merged[..., people[0].sum(axis=0) > 0] >= min_people).all():
            return n_folds
        n_folds //= 2
    return n_folds


def _far_apart(pairs: Counts, n_folds: int, min_people: int) -> bool:
    """Whether any folds of one deal differ from any of the other by enough people, or by none.

    Parameters
    ----------
    pairs : ndarray of shape (F, F)
        People by the folds of both deals.
    n_folds, min_people : int
    """
    if min_people <= 1:
        return True
    merged = pairs.reshape(N_FOLDS // n_folds, n_folds, N_FOLDS // n_folds, n_folds).sum((0, 2))
    some = (np.arange(2**n_folds)[:, None] >> np.arange(n_folds)) & 1
    differ = some @ merged @ (1 - some).T + (1 - some) @ merged @ some.T
    return not bool(((differ > 0) & (differ < min_people)).any())
