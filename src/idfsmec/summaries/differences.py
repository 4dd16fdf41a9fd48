"""Whom differences of sums are over: what follows from several sums that are told together.

Told are, for a class and a channel, sums over folds of people by one or two deals. From these
anybody can compute every combination of them, and some are over very few people: sums over nearly
the same people, one less the other. What is asked here is whether any combination, with any
coefficients, is over somebody but over fewer than ``min_people``.

A combination gives each fold of both deals a coefficient, and each person the sum of two. Folds
with equal coefficients form a level; people fall into blocks, of a level of the one deal and a
level of the other, and a block takes no part where both coefficients cancel: for each level with
one level of the other deal at most. So there are few ways to combine, and all are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idfsmec.summaries.dealing import N_DEALS

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]


class Seating(NamedTuple):
    """How the sums of a channel are told for a class: by so many folds of so many deals.

    No folds: withheld. ``by_samples``: people count by their samples.
    """

    n_folds: int
    n_deals: int = N_DEALS
    by_samples: bool = False


def hides_samples(n: Counts, folds: Indices, n_folds: int, min_people: int) -> bool:
    """Whether sums over samples, less sums over people's means, are over enough people or nobody.

    Someone's mean times ``c`` is their sum if they have ``c`` samples: where nearly everybody has
    as many, this many times the sums over people, less the sums over samples, are over the others.

    Parameters
    ----------
    n : ndarray of shape (p,)
        Samples of each person, all of whom are in the sums.
    folds : ndarray of shape (R, p)
        Their folds, by deal.
    n_folds, min_people : int
    """
    if min_people <= 1 or np.all(n == n[:1]):
        return True
    others, everyone = _off_the_mode(n, folds, n_folds)
    if len(folds) == 1 or n_folds == 1:
        # Each fold by itself: more of them are over more people.
        alone = others[1 << np.arange(n_folds), -1]
        return bool(((alone == 0) | (alone >= min_people)).all())
    ways = _ways(n_folds)
    least, there = (table.ravel()[ways].sum(axis=1) for table in (others, everyone))
    return bool((least[there > 0] >= min_people).all())


def _off_the_mode(n: Counts, folds: Indices, n_folds: int) -> tuple[Counts, Counts]:
    """People of each block that do not have the number of samples most have, and all of it.

    A block is a set of folds of the first deal and one of the second, each a number in binary;
    with one deal the second set is empty or everything.

    Returns
    -------
    ndarray of shape (2 ** n_folds, 2 ** n_folds), twice
    """
    values, kind = np.unique(n, return_inverse=True)
    second = folds[1] if len(folds) > 1 else np.zeros_like(folds[0])
    found = np.zeros((n_folds, n_folds, values.size), dtype=np.int64)
    np.add.at(found, (folds[0], second, kind), 1)
    sets = (np.arange(2**n_folds)[:, None] >> np.arange(n_folds)) & 1
    blocks = np.einsum("bj,aju->abu", sets, np.einsum("ai,iju->aju", sets, found))
    everyone = blocks.sum(axis=2)
    return everyone - blocks.max(axis=2, initial=0), everyone


@cache
def _ways(n_folds: int) -> Indices:
    """Ways to combine folds of two deals: the blocks that take part in each, 0 for no block."""
    ways: list[list[int]] = []
    size = 2**n_folds
    levels = list(_partitions(n_folds))
    for first in levels:
        for second in levels:
            few, many = sorted((first, second), key=len)
            for chosen in permutations(many, len(few)):
                cancelled = set(zip(few, chosen, strict=True))
                taken = [
                    a * size + b
                    for a in first
                    for b in second
                    if ((a, b) if few is first else (b, a)) not in cancelled
                ]
                # One level each, which cancel: nothing is combined. Otherwise it is everything.
                ways.append(taken or [size * size - 1])
    width = max(map(len, ways))
    return np.array([way + [0] * (width - len(way)) for way in ways], dtype=np.intp)


def _partitions(n: int) -> Iterator[list[int]]:
    """Ways to part ``n`` folds into levels; a level is a number whose bits say who is in it."""
    if n == 0:
        yield []
        return
    for levels in _partitions(n - 1):
        yield [*levels, 1 << (n - 1)]
        for at, level in enumerate(levels):
            yield [*levels[:at], level | 1 << (n - 1), *levels[at + 1 :]]


def anchors(
    groups: Iterable[NDArray[np.bool_]],
    n: Counts,
    folds: Indices,
    seat: Seating,
    min_people: int,
) -> bool:
    """Whether some group has ``min_people`` people in whatever is combined of folds.

    Parameters
    ----------
    groups : iterable of bool arrays of shape (p,)
        Of people.
    n : ndarray of shape (p,)
        Samples of each person; 0 for who is not in the sums.
    folds : ndarray of shape (R, p)
    seat : Seating
        How the sums are told.
    min_people : int
    """
    uniform = seat.by_samples or np.unique(n[n > 0]).size == 1
    if uniform and seat.n_folds == 1:
        return True  # nothing to combine: one fold, in which all count alike
    kind = np.zeros_like(n) if uniform else n
    for group in groups:
        own = group & (n > 0)
        seats = folds[: seat.n_deals, own] % seat.n_folds
        others, everyone = _off_the_mode(kind[own], seats, seat.n_folds)
        over = everyone if uniform else others
        if seat.n_deals == 1 or seat.n_folds == 1:
            least = over[1 << np.arange(seat.n_folds), -1].min()
        else:
            least = over.ravel()[_ways(seat.n_folds)].sum(axis=1).min()
        if least >= min_people:
            return True
    return False
