"""People whose samples come in pieces: what is known of each until all pieces are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec._groups import digest_folds
from idfsmec.solver import Block, ChannelSums, Seats, add_sums, people_sums
from idfsmec.solver.scaling import safe_scale
from idfsmec.summaries.dealing import N_DEALS, N_FOLDS

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Tally:
    """Numbers of people, by deal, fold, channel and class.

    Attributes
    ----------
    people : ndarray of shape (R, F, c)
    have, met : ndarray of shape (R, F, n_channels, c)
        Who has a channel in at least half of their samples, and who at all.
    people_pairs : ndarray of shape (F, F, c)
        By the folds of both deals.
    met_pairs : ndarray of shape (F, F, n_channels, c)
    everyone : bytes
        The digests of all names, sorted.
    samples : ndarray of shape (p, n_channels)
        Of each person, those that have the channel.
    folds : ndarray of shape (R, p)
        Of each person, by deal.
    codes : ndarray of shape (p,)
        Their classes.
    """

    people: Counts
    have: Counts
    met: Counts
    people_pairs: Counts
    met_pairs: Counts
    everyone: bytes
    samples: Counts
    folds: Indices
    codes: Indices


class People:
    """Samples and sums of each person (of each class), by the digest of their name.

    Parameters
    ----------
    places : sequence of integer arrays
        The columns of each channel.
    """

    def __init__(self, places: Sequence[Indices]) -> None:
        self._places = places
        n_columns = sum(own.size for own in places)
        self._rows: dict[tuple[int, bytes], int] = {}
        self._samples = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros((0, len(places)), dtype=np.int64)
        self._sums = np.zeros((0, n_columns))
        # What sums are taken about: near the means, as of the first samples that have a channel.
        self._about = np.zeros(n_columns)
        self._met = np.zeros(len(places), dtype=bool)
        self._piece: tuple[Counts, Counts, Array] = (self._samples, self._counts, self._sums)

    def expect(self, seats: Seats) -> None:
        """Prepare for the people of a piece."""
        if seats.person_starts is None:
            return
        samples = np.diff(seats.person_starts, append=seats.order.size)
        n = samples.size
        counts = np.zeros((n, len(self._places)), dtype=np.int64)
        self._piece = (samples, counts, np.zeros((n, self._about.size)))

    def note(self, block: Block, seats: Seats) -> None:
        """Sum up some channels of the people of a piece."""
        found, sums = block.by_person(seats)
        _, counts, piece = self._piece
        for row, channel in enumerate(block.channels.tolist()):
            own, n = self._places[channel], found[row]
            if not self._met[channel] and n.any():
                self._met[channel] = True
                self._about[own] = block.shift[row]
            move = block.shift[row] - self._about[own]
            piece[:, own] = sums[row] * block.scale[row] + n[:, None] * move
            counts[:, channel] = n

    def take_in(self, digests: Sequence[bytes], codes: Indices) -> None:
        """Add the piece to what is known of its people."""
        keys = zip(codes.tolist(), digests, strict=True)
        rows = np.array([self._rows.setdefault(key, len(self._rows)) for key in keys], np.intp)
        if len(self._rows) > len(self._samples):
            more = max(len(self._rows), 2 * len(self._samples)) - len(self._samples)
            self._samples = np.pad(self._samples, (0, more))
            self._counts = np.pad(self._counts, ((0, more), (0, 0)))
            self._sums = np.pad(self._sums, ((0, more), (0, 0)))
        samples, counts, sums = self._piece
        self._samples[rows] += samples
        self._counts[rows] += counts
        self._sums[rows] += sums

    def _seated(self, places: Indices) -> tuple[Indices, Indices]:
        """Folds by deal, and classes, of all people."""
        codes = np.array([code for code, _ in self._rows], dtype=np.intp)
        folds = digest_folds([digest for _, digest in self._rows], N_FOLDS, N_DEALS)
        return folds, places[codes]

    def added_to(self, sums: Sequence[ChannelSums], places: Indices) -> list[ChannelSums]:
        """Add sums over people to those over samples; ``places`` says where classes are."""
        if not self._rows:
            return list(sums)
        folds, codes = self._seated(places)
        seats = Seats.of(folds, codes, (N_FOLDS, sums[0].count.shape[-1]))
        found = []
        for channel, (own, known) in enumerate(zip(self._places, sums, strict=True)):
            n = self._counts[seats.order, channel].astype(float)
            values = self._sums[seats.order][:, own]
            scale = safe_scale(np.abs(values).max(axis=0))
            parts = people_sums(n[None], (values / scale)[None], seats)
            of_people = dict(
                zip(("people", "sum_m", "sum_mm"), (p[0] for p in parts), strict=True)
            )
            empty = ChannelSums.empty(known.count.shape, own.size)
            alike = replace(empty, **of_people, shift=self._about[own], scale=scale)
            found.append(add_sums([known, alike]))
        return found

    def tally(self, places: Indices, n_classes: int) -> Tally:
        """Count people; ``places`` says where classes are."""
        n = len(self._rows)
        folds, codes = self._seated(places)
        there = self._counts[:n]
        mostly = 2 * there >= self._samples[:n, None]
        n_channels = len(self._places)
        pairs = np.zeros((N_FOLDS, N_FOLDS, n_classes), dtype=np.int64)
        met_pairs = np.zeros((N_FOLDS, N_FOLDS, n_classes, n_channels), dtype=np.int64)
        have = np.zeros((N_DEALS, N_FOLDS, n_classes, n_channels), dtype=np.int64)
        np.add.at(pairs, (folds[0], folds[1], codes), 1)
        np.add.at(met_pairs, (folds[0], folds[1], codes), there > 0)
        for deal, fold in enumerate(folds):
            np.add.at(have[deal], (fold, codes), mostly)
        met_pairs = met_pairs.swapaxes(2, 3)
        by_deal = [np.stack([part.sum(axis=1), part.sum(axis=0)]) for part in (pairs, met_pairs)]
        everyone = b"".join(sorted({digest for _, digest in self._rows}))
        counted = (by_deal[0], have.swapaxes(2, 3), by_deal[1], pairs, met_pairs)
        return Tally(*counted, everyone, there, folds, codes)

    def by_samples(self, channel: int, like: ChannelSums, places: Indices) -> Array:
        """Products of people's means, of whom each counts as often as they have samples.

        In a class in which somebody has a single sample they are the products of samples: those of
        means would tell, by the difference, the few who have more.

        Parameters
        ----------
        channel : int
        like : ChannelSums
            Of the channel, in whose units they shall be.
        places : ndarray
            Says where classes are.
        """
        folds, codes = self._seated(places)
        seats = Seats.of(folds, codes, (N_FOLDS, like.count.shape[-1]))
        own = self._places[channel]
        n = self._counts[seats.order, channel].astype(float)[:, None]
        values = self._sums[seats.order][:, own] + n * (self._about[own] - like.shift)
        # A mean times the root of its weight: its products have the weight itself.
        values /= like.scale * np.sqrt(np.where(n > 0, n, 1.0))
        found = people_sums((n[:, 0] > 0).astype(float)[None], values[None], seats)[2][0]
        alone = codes[self._counts[: codes.size, channel] == 1]
        found[:, :, alone] = like.sum_xx[:, :, alone]
        return found
