"""What of sums may be told: nothing over too few people, nor what would follow from two sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection.idfsmec._people import Tally
from idfsmec.selection.idfsmec.channel_loss import N_DEALS, N_FOLDS
from idfsmec.solver import ChannelSums, merge_folds

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Disclosed:
    """What may be told, and in words what may not."""

    sums: list[ChannelSums]
    total: Array
    people: Counts
    have: Counts
    withheld: tuple[str, ...]


def disclose(
    tally: Tally,
    sums: Sequence[ChannelSums],
    total: Array,
    names: tuple[Sequence[Any], Sequence[Any]],
    min_people: int,
    n_folds: int,
) -> Disclosed:
    """Withhold sums over fewer than ``min_people`` people of a class.

    A class that has fewer is left out. Where a fold would have fewer, there are half as many
    folds. A channel that fewer people of some fold have goes into one fold; if it has fewer even
    so, it is left out. Two deals are two ways to part the same people: where sums of the one less
    sums of the other would be over fewer people, the second deal is the first again.

    Parameters
    ----------
    tally : Tally
    sums : sequence of ChannelSums
    total : ndarray of shape (R, F, c)
        Samples.
    names : tuple
        Of the channels and of the classes.
    min_people, n_folds : int
    """
    channels, classes = names
    parts, withheld = list(sums), []
    people, have, met = (part.copy() for part in (tally.people, tally.have, tally.met))
    for k, label in enumerate(classes):
        if 0 < people[0, :, k].sum() < min_people:
            withheld.append(f"class {label}, of which there are fewer than {min_people} people")
            total[..., k], people[..., k], have[..., k], met[..., k] = 0, 0, 0, 0
            parts = [one.without(k) for one in parts]
    n_folds = _affordable(people, min_people, n_folds)
    firsts = [_first_fold(tally.everyone, n_folds)] * N_DEALS
    total, people, have, met = (
        merge_folds(part, n_folds, firsts) for part in (total, people, have, met)
    )
    parts = [one.merged(n_folds, firsts) for one in parts]
    for k, label in enumerate(classes):
        once = not _far_apart(tally.people_pairs[..., k], n_folds, min_people)
        if once:
            total[1:, :, k], people[1:, :, k] = total[:1, :, k], people[:1, :, k]
        for at, name in enumerate(channels):
            if _too_few(met[:, :, at, k], have[:, :, at, k], min_people):
                parts[at] = parts[at].in_one_fold(k, firsts)
                if _too_few(met[0, :, at, k].sum(), have[0, :, at, k].sum(), min_people):
                    withheld.append(f"{name} of class {label}")
                    parts[at], have[:, :, at, k] = parts[at].without(k), 0
            elif once or not _far_apart(tally.met_pairs[..., at, k], n_folds, min_people):
                parts[at] = parts[at].dealt_once(k)
    return Disclosed(parts, total, people, have[0].sum(axis=0), tuple(withheld))


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
