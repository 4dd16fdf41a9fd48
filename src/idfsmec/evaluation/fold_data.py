"""The samples of a fold: gaps made, features standardised and filled inside it, when asked for.

A table may be large, and a fold with its inner ones is a dozen copies of it. So a fold knows which
rows it has and where its gaps are, and makes arrays of them when somebody asks. What fits into
:data:`KEPT` bytes is kept for the next one who asks.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from idfsmec._random import derive_seed
from idfsmec._remembered import fix
from idfsmec.evaluation.folds import make_folds, most_splits
from idfsmec.evaluation.harmonizing import learn_sites, make_alike
from idfsmec.evaluation.parts import Filler
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.shelf import Shelf
from idfsmec.evaluation.site_folds import Fold, split_remaining_sites
from idfsmec.evaluation.tables import Codes, Floats, TableArrays
from idfsmec.missing import simulate_missing_mask
from idfsmec.prediction import SiteHarmonizer
from idfsmec.solver.scaling import Scaling

#: Bytes of arrays that a process keeps between two who ask for them, such as two methods.
KEPT = 256 * 2**20
# Rows worked on at a time, in place; where a step is short, numbers that a cache holds.
_BLOCK_ROWS, _BLOCK_ELEMENTS = 2048, 100_000


class Samples(NamedTuple):
    """The samples of a fold as arrays: for the selector, and both sides for the classifier."""

    selecting: Floats
    train: Floats
    test: Floats


@dataclass(frozen=True)
class Rows:
    """Some samples of a table.

    Attributes
    ----------
    table : TableArrays
    places : ndarray of shape (n_samples,)
        Where they are in it.
    gone : ndarray of bool, shape (n_samples, n_channels), optional
        Which channels are taken away from them.
    """

    table: TableArrays = field(repr=False)
    places: Codes
    gone: NDArray[np.bool_] | None = None

    def take(self, some: Codes) -> Rows:
        """Some of these samples."""
        return Rows(self.table, self.places[some], None if self.gone is None else self.gone[some])

    def untouched(self) -> Rows:
        """The same samples with nothing taken away."""
        return Rows(self.table, self.places)

    def with_gaps(self, pattern: str, rate: float, seed: int) -> Rows:
        """Take channels away; see :func:`idfsmec.missing.simulate_missing_mask`."""
        if rate == 0:
            return self
        before = self._observed()
        after = simulate_missing_mask(
            before,
            rate,
            pattern,  # type: ignore[arg-type]
            seed,
            recordings=self.table.subjects[self.places],
            positions=self.table.positions,
        )
        return replace(self, gone=before & ~after)

    def values(self) -> Floats:
        """Give an array of one's own, NaN where a channel is missing or taken away."""
        X = np.asarray(self.table.X[self.places])
        if self.gone is not None:
            for block in _blocks(len(X), _rows_in_cache(X)):
                np.copyto(X[block], np.nan, where=self.gone[block][:, self.table.channel_of])
        return X

    def _observed(self) -> NDArray[np.bool_]:
        channel_of = self.table.channel_of
        found = np.empty((self.places.size, int(channel_of.max()) + 1), dtype=bool)
        for block in _blocks(self.places.size):
            present = ~np.isnan(self.table.X[self.places[block]])
            for channel in range(found.shape[1]):
                found[block, channel] = present[:, channel_of == channel].all(axis=1)
        return found


@dataclass(frozen=True)
class FoldData:
    """One split into training and held-out samples, ready for selectors and classifiers.

    Everything is standardised by the observed training values, and has NaN where channels are
    missing; :meth:`filled` gives the same without gaps. Arrays are made when they are asked for,
    and nobody changes them.
    """

    training: Rows  # as the selector may see them
    testing: Rows
    gaps_everywhere: bool  # or for the selector only
    harmonize: bool = False  # whether sites are made alike first
    inner: tuple[FoldData, ...] = ()
    held_out: tuple[Codes, ...] = ()  # by each inner fold, among the training samples
    place: int = -1  # among the inner folds
    _shelf: Shelf = field(default_factory=lambda: Shelf(KEPT), repr=False, compare=False)

    @property
    def selecting(self) -> Floats:
        """Training samples as the selector may see them."""
        return self._scaled().selecting

    @property
    def train(self) -> Floats:
        """Training samples for the classifier."""
        return self._scaled().train

    @property
    def test(self) -> Floats:
        """Held-out samples."""
        return self._scaled().test

    @property
    def y_train(self) -> Codes:
        """Classes of the training samples."""
        return self.table.y[self.training.places]

    @property
    def y_test(self) -> Codes:
        """Classes of the held-out samples."""
        return self.table.y[self.testing.places]

    @property
    def people_train(self) -> NDArray[np.str_]:
        """Names of who the training samples come from."""
        return self.table.people[self.training.places]

    @property
    def subjects_test(self) -> Codes:
        """Who the held-out samples come from."""
        return self.table.subjects[self.testing.places]

    @property
    def table(self) -> TableArrays:
        """Of which all samples are."""
        return self.training.table

    @property
    def channel_of(self) -> Codes:
        """The channel of each column."""
        return self.table.channel_of

    @property
    def n_classes(self) -> int:
        """Classes of the table."""
        return self.table.n_classes

    def filled(self, filler: Filler, about: str | None = None) -> Samples:
        """Fill gaps, learning from training samples only; who asks often says what it is about."""
        about = about or str(filler.describe())
        return self._shelf.get((self.place, about), self._size, lambda: self._make(filler))

    def rest(self) -> None:
        """Keep no more than fits, until the next one asks."""
        self._shelf.trim()

    def _scaled(self) -> Samples:
        return self._shelf.get((self.place, ""), self._size, self._make)

    @property
    def _size(self) -> int:
        n_train = self.training.places.size * (1 if self.gaps_everywhere else 2)
        return 8 * self.channel_of.size * (n_train + self.testing.places.size)

    def _make(self, filler: Filler | None = None) -> Samples:
        training, testing = self.training, self.testing
        selecting, sites, steps = self._learn(training, filler)
        train = selecting
        if not self.gaps_everywhere:
            testing = testing.untouched()
            train, sites, steps = self._learn(training.untouched(), filler)
        test = make_alike(sites, self.table, testing.values(), testing.places)
        for step in steps:
            _in_place(step, test)
        for array in (selecting, train, test):
            fix(array)
        return Samples(selecting, train, test)

    def _learn(
        self, rows: Rows, filler: Filler | None
    ) -> tuple[Floats, SiteHarmonizer | None, list[Callable[[Floats], Any]]]:
        """Training samples, standardised and perhaps filled, and what was done to them."""
        sites = learn_sites(self.table, rows.values(), rows.places) if self.harmonize else None
        X = make_alike(sites, self.table, rows.values(), rows.places)
        scaling = Scaling.learn(X)
        steps: list[Callable[[Floats], Any]] = [scaling.apply]
        _in_place(scaling.apply, X, _rows_in_cache(X))
        if filler is not None:
            about = (self.channel_of, self.table.feature_of, self.table.positions)
            filling = filler.build(*about)
            steps.append(filling.transform)
            if hasattr(filling, "fill_in_place"):  # both at once, without another copy
                X = filling.fill_in_place(X)
            else:
                _in_place(filling.fit(X).transform, X)
        return X, sites, steps


def _in_place(step: Callable[[Floats], Any], X: Floats, rows: int = 0) -> None:
    """Replace samples by what becomes of them, a few at a time."""
    for block in _blocks(len(X), rows):
        X[block] = step(X[block])


def _blocks(n_rows: int, rows: int = 0) -> list[slice]:
    rows = rows or _BLOCK_ROWS
    return [slice(first, first + rows) for first in range(0, n_rows, rows)]


def _rows_in_cache(X: Floats) -> int:
    return max(_BLOCK_ELEMENTS // max(X.shape[1], 1), 16)


@dataclass(frozen=True)
class _Loader:
    """A fold's coordinates as the key of the cache; the arrays only come along."""

    digest: str
    pattern: str
    rate: float
    seed: int
    fold: int
    protocol: Protocol
    with_inner: bool
    table: TableArrays = field(compare=False, hash=False)

    def load(self) -> FoldData:
        table, protocol = self.table, self.protocol
        how = protocol.folds, protocol.n_splits, self.seed
        folds = make_folds(table.y, table.subjects, *how, sites=table.sites)
        # Each side gets its gaps on its own: nothing held out can move a gap in training. The
        # seed is the same, so channels that fail often in training fail often in the test.
        seed = derive_seed("gaps", self.pattern, self.rate, self.seed, self.fold)
        train, test = (
            Rows(table, side).with_gaps(self.pattern, self.rate, seed) for side in folds[self.fold]
        )
        return self.split(train, test)

    def split(self, train: Rows, test: Rows) -> FoldData:
        """Split as given, with inner folds where they are wanted."""
        how = self.protocol.gaps == "everywhere", self.protocol.harmonize
        data = FoldData(train, test, *how)
        if not self.with_inner:
            return data
        folds = self._inner_folds(train)
        inner = (
            replace(data, training=train.take(a), testing=train.take(b), place=place)
            for place, (a, b) in enumerate(folds)
        )
        return replace(data, inner=tuple(inner), held_out=tuple(b for _, b in folds))

    def _inner_folds(self, train: Rows) -> list[Fold]:
        table, kind = self.table, self.protocol.folds
        y, subjects = table.y[train.places], table.subjects[train.places]
        if kind == "site" and table.sites is not None:
            if folds := split_remaining_sites(y, subjects, table.sites[train.places]):
                return folds
            warnings.warn(
                "Inner folds are by subject: fewer than 2 of the sites in training can be held "
                "out there.",
                UserWarning,
                stacklevel=2,
            )
        kind = "subject" if kind == "site" else kind
        n_splits = min(self.protocol.n_inner_splits, most_splits(y, subjects, kind))
        seed = derive_seed("inner folds", self.seed, self.fold)
        return make_folds(y, subjects, kind, n_splits, seed)


@functools.lru_cache(maxsize=1)
def _cached(loader: _Loader) -> FoldData:
    return loader.load()


def load_fold(
    table: TableArrays,
    protocol: Protocol,
    pattern: str,
    rate: float,
    seed: int,
    fold: int,
    with_inner: bool,
) -> FoldData:
    """Prepare an outer fold, or give the one prepared last if it is the same.

    Units that share a fold follow each other in the queue, so that what a process keeps of one
    is mostly what the next needs.
    """
    return _cached(_Loader(table.digest, pattern, rate, seed, fold, protocol, with_inner, table))


def load_whole(table: TableArrays, protocol: Protocol, seed: int) -> FoldData:
    """Prepare all samples as one training fold, with inner folds; they stand for the test too."""
    everyone = Rows(table, np.arange(table.y.size))
    loader = _Loader(table.digest, "none", 0.0, seed, -1, protocol, True, table)
    return loader.split(everyone, everyone)
