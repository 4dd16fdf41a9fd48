"""What one outer fold consists of: gaps made, standardised and filled inside the fold only."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from idfsmec._random import derive_seed
from idfsmec.evaluation.folds import make_folds, most_splits
from idfsmec.evaluation.protocol import Protocol
from idfsmec.missing import make_gap_mask
from idfsmec.montage import channel_positions
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TableArrays:
    """A FeatureTable as plain arrays: what is sent to workers, once for each."""

    name: str
    digest: str
    X: Floats = field(repr=False)
    y: NDArray[np.intp] = field(repr=False)
    subjects: NDArray[np.intp] = field(repr=False)
    channel_of: NDArray[np.intp] = field(repr=False)
    n_classes: int = 2
    positions: Floats | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, table: FeatureTable, with_positions: bool = False) -> TableArrays:
        """Take a table apart; the digest covers everything that can influence a result."""
        positions = None
        if with_positions:
            montage = table.info.get("montage")
            positions = channel_positions(
                table.channels, montage if isinstance(montage, str) else None
            )
        _, y = np.unique(table.y.to_numpy(), return_inverse=True)
        _, subjects = np.unique(table.subjects.astype(str).to_numpy(), return_inverse=True)
        channels = np.array(table.column_channels, dtype=object)
        order = {channel: i for i, channel in enumerate(table.channels)}
        return cls(
            name=name,
            digest=table_digest(table),
            X=np.ascontiguousarray(table.X.to_numpy(dtype=np.float64)),
            y=y.astype(np.intp),
            subjects=subjects.astype(np.intp),
            channel_of=np.array([order[channel] for channel in channels], dtype=np.intp),
            n_classes=int(y.max()) + 1,
            positions=positions,
        )


#: What a run works on, by name.
Tables = Mapping[str, TableArrays]


@dataclass(frozen=True)
class FoldData:
    """One split into training and held-out samples, ready for selectors and classifiers.

    Everything is standardised by the observed training values. ``gappy`` has NaN where
    channels are missing; ``filled`` is the same with training means in their place (zeros).
    """

    gappy: Floats  # training samples as the selector may see them
    filled: Floats
    train: Floats  # training samples for the classifier, filled
    test: Floats
    train_gappy: Floats  # the same two with NaN kept, for classifiers that take it
    test_gappy: Floats
    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]
    subjects_test: NDArray[np.intp]
    channel_of: NDArray[np.intp]
    n_classes: int
    inner: tuple[FoldData, ...] = ()
    held_out: tuple[NDArray[np.intp], ...] = ()  # by each inner fold, among the training samples


def table_digest(table: FeatureTable) -> str:
    """Hash what a table holds: values, columns, labels, subjects, montage."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(table.X.to_numpy(dtype=np.float64)).tobytes())
    for part in (table.X.columns, table.y, table.subjects):
        digest.update("\x1f".join(str(one) for one in part).encode() + b"\x1e")
    digest.update(str(table.info.get("montage", "")).encode())
    return digest.hexdigest()


@functools.lru_cache(maxsize=2)
def _cached(loader: _Loader) -> FoldData:
    return loader.load()


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
        folds = make_folds(table.y, table.subjects, protocol.folds, protocol.n_splits, self.seed)
        train, test = folds[self.fold]
        # Each side gets its gaps on its own: nothing held out can move a gap in training. The
        # seed is the same, so channels that fail often in training fail often in the test.
        seed = derive_seed("gaps", self.pattern, self.rate, self.seed, self.fold)
        gaps = {
            "train": _with_gaps(table, train, self.pattern, self.rate, seed),
            "test": _with_gaps(table, test, self.pattern, self.rate, seed),
        }
        split = _prepare(table, train, test, gaps["train"], gaps["test"], protocol)
        if not self.with_inner:
            return split
        inner, held_out = self._inner_folds(train, gaps["train"])
        return FoldData(**{**split.__dict__, "inner": inner, "held_out": held_out})

    def _inner_folds(
        self, train: NDArray[np.intp], gappy: Floats
    ) -> tuple[tuple[FoldData, ...], tuple[NDArray[np.intp], ...]]:
        table, protocol = self.table, self.protocol
        y, subjects = table.y[train], table.subjects[train]
        n_splits = min(protocol.n_inner_splits, most_splits(y, subjects, protocol.folds))
        seed = derive_seed("inner folds", self.seed, self.fold)
        folds = make_folds(y, subjects, protocol.folds, n_splits, seed)
        inner = (
            _prepare(table, train[a], train[b], gappy[a], gappy[b], protocol) for a, b in folds
        )
        return tuple(inner), tuple(held_out for _, held_out in folds)


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

    Units that share a fold follow each other in the queue, so a small cache per process is
    enough for the work to be done once.
    """
    return _cached(_Loader(table.digest, pattern, rate, seed, fold, protocol, with_inner, table))


def _with_gaps(
    table: TableArrays, rows: NDArray[np.intp], pattern: str, rate: float, seed: int
) -> Floats:
    X = np.array(table.X[rows])
    if rate == 0:
        return X
    n_channels = int(table.channel_of.max()) + 1
    present = ~np.isnan(X)
    before = np.column_stack(
        [present[:, table.channel_of == channel].all(axis=1) for channel in range(n_channels)]
    )
    after = make_gap_mask(
        before,
        rate,
        pattern,  # type: ignore[arg-type]
        seed,
        recordings=table.subjects[rows],
        positions=table.positions,
    )
    X[(before & ~after)[:, table.channel_of]] = np.nan
    return X


def _prepare(
    table: TableArrays,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    gappy_train: Floats,
    gappy_test: Floats,
    protocol: Protocol,
) -> FoldData:
    gappy, gappy_test_scaled = _standardize(gappy_train, gappy_test)
    if protocol.gaps == "everywhere":
        train_gappy, test_gappy = gappy, gappy_test_scaled
    else:
        train_gappy, test_gappy = _standardize(table.X[train], table.X[test])
    filled = np.nan_to_num(gappy)
    return FoldData(
        gappy=gappy,
        filled=filled,
        train=filled if train_gappy is gappy else np.nan_to_num(train_gappy),
        test=np.nan_to_num(test_gappy),
        train_gappy=train_gappy,
        test_gappy=test_gappy,
        y_train=table.y[train],
        y_test=table.y[test],
        subjects_test=table.subjects[test],
        channel_of=table.channel_of,
        n_classes=table.n_classes,
    )


def _standardize(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Scale both by mean and standard deviation of the observed training values.

    A column that is constant or never observed in training becomes 0 where it is observed: it
    carries nothing, and its values in the test must not carry anything either.
    """
    seen = ~np.isnan(train)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, train, 0.0).sum(axis=0) / count
    centred = train - mean
    spread = np.sqrt(np.where(seen, centred**2, 0.0).sum(axis=0) / count)
    flat = spread <= 1e-12 * np.abs(mean)
    factor = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
    return centred * factor, (test - mean) * factor
