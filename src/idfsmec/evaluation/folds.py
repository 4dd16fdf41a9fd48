"""Folds by subject, sample or site; gaps made, and features standardised, inside a fold only."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from idfsmec._random import derive_seed
from idfsmec.errors import InputError
from idfsmec.evaluation.parts import Filler
from idfsmec.evaluation.protocol import Folds, Protocol
from idfsmec.evaluation.site_folds import Fold, split_remaining_sites, split_sites
from idfsmec.evaluation.tables import TableArrays
from idfsmec.missing import make_gap_mask
from idfsmec.solver.scaling import Scaling

Floats = NDArray[np.float64]


def make_folds(
    y: ArrayLike,
    subjects: ArrayLike,
    folds: Folds = "subject",
    n_splits: int = 10,
    random_state: int = 0,
    sites: ArrayLike | None = None,
) -> list[Fold]:
    """Split samples into training and held-out ones, in proportion to the classes or by site.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels.
    subjects : array-like of shape (n_samples,)
        Who each sample comes from.
    folds : {"subject", "sample", "site"}
        ``subject`` keeps all samples of a subject on one side: the test is about new people.
        ``sample`` spreads them, so a classifier may recognise the person instead of the
        condition. ``site`` holds out one site after the other: the test is about new hospitals.
    n_splits : int
        Number of folds; every sample is held out once. Sites have one fold each.
    random_state : int
        Seed of the shuffling; by site nothing is shuffled.
    sites : array-like of shape (n_samples,), optional
        Where each sample was recorded; needed by ``site``.

    Returns
    -------
    list of (train, test)
        Positions of the samples, in rising order.

    Raises
    ------
    InputError
        Some class has too few subjects (or samples) for so many folds. By site: there are no
        sites or one, a site has one class alone, or a subject was at two.

    Examples
    --------
    >>> y, subjects = [0, 0, 1, 1, 0, 1], ["a", "a", "b", "b", "c", "d"]
    >>> for train, test in make_folds(y, subjects, n_splits=2):
    ...     print(sorted({subjects[i] for i in test}))
    ['b', 'c']
    ['a', 'd']
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds not in get_args(Folds):
        raise InputError(f"folds is {folds!r}; choose 'subject', 'sample' or 'site'")
    if folds == "site":
        return split_sites(labels, groups, sites)
    most = most_splits(labels, groups, folds)
    if not 2 <= n_splits <= most:
        raise InputError(
            f"{n_splits} folds by {folds} are not possible: the smallest class has {most} "
            f"{folds}{'' if most == 1 else 's'}, so n_splits can be 2 to {most}"
            if most >= 2
            else f"{_lone(labels, groups, folds)}: folds by {folds} need at least 2 in each "
            "class; add more, or leave that class out"
        )
    if folds == "sample":
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        return [(np.sort(a), np.sort(b)) for a, b in splitter.split(labels, labels)]
    return _split_subjects(labels, groups, n_splits, random_state)


def count_folds(table: TableArrays, protocol: Protocol) -> int:
    """Say how many outer folds a table has: as the protocol says, or one for each site."""
    if protocol.folds == "site" and table.sites is not None:
        return int(np.unique(table.sites).size)
    return protocol.n_splits


def most_splits(y: ArrayLike, subjects: ArrayLike, folds: Folds = "subject") -> int:
    """Say how many folds are possible: the size of the smallest class, in subjects or samples.

    Examples
    --------
    >>> most_splits([0, 0, 1, 1, 1], ["a", "a", "b", "c", "c"])
    1
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds == "sample":
        return int(np.unique(labels, return_counts=True)[1].min())
    return min(np.unique(groups[labels == label]).size for label in np.unique(labels))


def _lone(labels: NDArray, groups: NDArray, folds: Folds) -> str:
    """Name a class of one person, or of one sample."""
    for label in np.unique(labels):
        own = groups[labels == label]
        if folds == "sample" and len(own) == 1:
            return f"class {label} has one sample only, of subject {own[0]}"
        if folds == "subject" and np.unique(own).size == 1:
            return f"class {label} has one subject only, {own[0]}"
    return "there is no class"


def _split_subjects(
    labels: NDArray, groups: NDArray, n_splits: int, random_state: int
) -> list[Fold]:
    names, first, member = np.unique(groups, return_index=True, return_inverse=True)
    if (labels == labels[first][member]).all():
        # One label per subject: stratify the subjects themselves, so that every fold has its
        # share of people of each class, however long their recordings are.
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        held_out = [test for _, test in splitter.split(names, labels[first])]
        masks = [np.isin(member, test) for test in held_out]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    mixed = StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
    return [(np.sort(a), np.sort(b)) for a, b in mixed.split(labels, labels, groups)]


class Filled(NamedTuple):
    """The samples of a fold without gaps."""

    selecting: Floats
    train: Floats
    test: Floats


@dataclass(frozen=True)
class FoldData:
    """One split into training and held-out samples, ready for selectors and classifiers.

    Everything is standardised by the observed training values, and has NaN where channels are
    missing; :meth:`filled` gives the same without gaps.
    """

    selecting: Floats  # training samples as the selector may see them
    train: Floats  # training samples for the classifier
    test: Floats
    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]
    subjects_train: NDArray[np.intp]
    subjects_test: NDArray[np.intp]
    channel_of: NDArray[np.intp]
    feature_of: NDArray[np.intp]
    n_classes: int
    positions: Floats | None = None
    inner: tuple[FoldData, ...] = ()
    held_out: tuple[NDArray[np.intp], ...] = ()  # by each inner fold, among the training samples
    _known: dict[str, Filled] = field(default_factory=dict, repr=False, compare=False)

    def filled(self, filler: Filler) -> Filled:
        """Fill gaps, learning from training samples only; once for all methods that want it."""
        key = str(filler.describe())
        if key not in self._known:
            selecting, test = self._fill(filler, self.selecting, self.test)
            train = selecting
            if self.train is not self.selecting:
                train, test = self._fill(filler, self.train, self.test)
            self._known[key] = Filled(selecting, train, test)
        return self._known[key]

    def _fill(self, filler: Filler, train: Floats, test: Floats) -> tuple[Floats, Floats]:
        about = (self.channel_of, self.feature_of, self.positions)
        transformer = filler.build(*about).fit(train)
        return np.asarray(transformer.transform(train)), np.asarray(transformer.transform(test))


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
        how = protocol.folds, protocol.n_splits, self.seed
        folds = make_folds(table.y, table.subjects, *how, sites=table.sites)
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
        inner, held_out = self.inner_folds(train, gaps["train"])
        return replace(split, inner=inner, held_out=held_out)

    def inner_folds(
        self, train: NDArray[np.intp], gappy: Floats
    ) -> tuple[tuple[FoldData, ...], tuple[NDArray[np.intp], ...]]:
        table, protocol = self.table, self.protocol
        folds = self._inner_splits(train)
        inner = (
            _prepare(table, train[a], train[b], gappy[a], gappy[b], protocol) for a, b in folds
        )
        return tuple(inner), tuple(held_out for _, held_out in folds)

    def _inner_splits(self, train: NDArray[np.intp]) -> list[Fold]:
        table, kind = self.table, self.protocol.folds
        y, subjects = table.y[train], table.subjects[train]
        if kind == "site" and table.sites is not None:
            if folds := split_remaining_sites(y, subjects, table.sites[train]):
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


def load_whole(table: TableArrays, protocol: Protocol, seed: int) -> FoldData:
    """Prepare all samples as one training fold, with inner folds; they stand for the test too."""
    rows = np.arange(table.y.size)
    data = _prepare(table, rows, rows, table.X, table.X, protocol)
    loader = _Loader(table.digest, "none", 0.0, seed, -1, protocol, True, table)
    inner, held_out = loader.inner_folds(rows, table.X)
    return replace(data, inner=inner, held_out=held_out)


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
    scaling = Scaling.learn(gappy_train)
    selecting = for_train = scaling.apply(gappy_train)
    if protocol.gaps == "everywhere":
        for_test = scaling.apply(gappy_test)
    else:
        scaling = Scaling.learn(table.X[train])
        for_train, for_test = scaling.apply(table.X[train]), scaling.apply(table.X[test])
    return FoldData(
        selecting=selecting,
        train=for_train,
        test=for_test,
        y_train=table.y[train],
        y_test=table.y[test],
        subjects_train=table.subjects[train],
        subjects_test=table.subjects[test],
        channel_of=table.channel_of,
        feature_of=table.feature_of,
        n_classes=table.n_classes,
        positions=table.positions,
    )
