"""From samples to summaries: sums that grow, and what of them may be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec._columns import channel_columns
from idfsmec._groups import name_folds
from idfsmec._jobs import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.selection.idfsmec.channel_loss import N_NAME_FOLDS
from idfsmec.selection.idfsmec.summary import Summary
from idfsmec.solver import ChannelSums, add_sums, cell_sums

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Collector:
    """Sums over samples that come piece by piece; people may come again in later pieces.

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
        self._places = channel_columns(list(channels), len(columns), None)[1]
        self._names = channel_columns(list(channels), len(columns), None)[0].tolist()
        # Names stay here no longer than their digests need.
        self._people: dict[tuple[Any, bytes], Counts] = {}
        self._labels: list[Any] = []  # in order of first appearance
        self._sums: list[ChannelSums] = []
        self._total = np.zeros((N_NAME_FOLDS, 0))

    @property
    def labels(self) -> list[Any]:
        """Of the classes seen so far, in order."""
        return sorted(self._labels)

    def add(self, X: Array, labels: ArrayLike, people: ArrayLike) -> None:
        """Add samples.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_columns)
            NaN where a channel is missing.
        labels, people : array-like of shape (n_samples,)
        """
        self.add_columns(X.T, labels, people)

    def add_columns(
        self, values: Sequence[Array] | Array, labels: ArrayLike, people: ArrayLike
    ) -> None:
        """Add samples whose columns are given one by one."""
        names, member = np.unique(np.asarray(people).astype(str), return_inverse=True)
        classes, codes = np.unique(np.asarray(labels), return_inverse=True)
        new = [label for label in classes.tolist() if label not in self._labels]
        known = [*self._labels, *new]
        codes = np.array([known.index(label) for label in classes.tolist()])[codes]
        fold, shape = name_folds(names, N_NAME_FOLDS)[member], (N_NAME_FOLDS, len(known))
        try:
            with one_blas_thread():
                found, observed = cell_sums(values, fold, codes, shape, self._places)
        except FloatingPointError as error:
            column = self.columns[error.args[0]]
            raise InputError(
                f"Column {column!r} contains infinity: repair or drop these values first."
            ) from None
        old = np.arange(self._total.shape[1])
        total = np.zeros(shape)
        np.add.at(total, (fold, codes), 1.0)
        total[:, old] += self._total
        if self._sums:
            before = [one.at(old, len(known)) for one in self._sums]
            found = [add_sums(pair) for pair in zip(before, found, strict=True)]
        self._labels, self._sums, self._total = known, found, total
        self._count(observed, codes, names, member)

    def _count(
        self, observed: NDArray[np.bool_], codes: NDArray, names: NDArray, member: NDArray
    ) -> None:
        """Count, of every person and class, samples and those that have each channel."""
        n_classes = len(self._labels)
        units, unit = np.unique(member * n_classes + codes, return_inverse=True)
        samples = np.bincount(unit)
        ordered = observed[np.argsort(unit, kind="stable")].astype(np.int64)
        there = np.add.reduceat(ordered, np.cumsum(samples) - samples, axis=0)
        for row, one in enumerate(units.tolist()):
            person, code = divmod(one, n_classes)
            key = self._labels[code], sha256(str(names[person]).encode()).digest()
            found = np.concatenate([[samples[row]], there[row]])
            self._people[key] = self._people.get(key, 0) + found

    def summary(
        self, min_people: int = 1, n_folds: int = N_NAME_FOLDS, labels: Iterable[Any] = ()
    ) -> Summary:
        """Give the sums, without those over fewer than ``min_people`` people of a class."""
        classes = sorted({*self._labels, *labels})
        people, have, met = self._tally(classes)
        own = np.array([classes.index(label) for label in self._labels], dtype=np.intp)
        sums = [one.at(own, len(classes)) for one in self._sums]
        total = np.zeros((N_NAME_FOLDS, len(classes)))
        total[:, own] = self._total
        withheld: list[str] = []
        for k, label in enumerate(classes):
            if 0 < people[:, k].sum() < min_people:
                withheld.append(
                    f"class {label}, of which there are fewer than {min_people} people"
                )
                total[:, k], people[:, k], have[:, :, k], met[:, :, k] = 0, 0, 0, 0
                sums = [_without(one, k) for one in sums]
        n_folds = _affordable(people, min_people, n_folds)
        first = self._first_fold(n_folds)
        total, have, met = (_merged(part, n_folds, first) for part in (total, have, met))
        for at, name in enumerate(self._names):
            sums[at] = sums[at].merged(n_folds, first)
            for k, label in enumerate(classes):
                if _too_few(met[:, at, k], have[:, at, k], min_people):
                    sums[at] = _in_one_fold(sums[at], k, first)
                    counts = met[:, at, k].sum(keepdims=True), have[:, at, k].sum(keepdims=True)
                    if _too_few(*counts, min_people):
                        withheld.append(f"{name} of class {label}")
                        sums[at], have[:, at, k] = _without(sums[at], k), 0
        return Summary(
            self.columns,
            self.channels,
            tuple(classes),
            tuple(one.centred() for one in sums),
            total,
            people.sum(axis=0),
            have.sum(axis=0),
            self.settings,
            tuple(withheld),
            min_people,
        )

    def _first_fold(self, n_folds: int) -> int:
        """Where the folds of a table that has few begin: tables should not all take the first."""
        everyone = b"".join(sorted({digest for _, digest in self._people}))
        chance = int.from_bytes(sha256(everyone).digest()[:8], "big")
        return n_folds * (chance % (N_NAME_FOLDS // n_folds))

    def _tally(self, classes: list[Any]) -> tuple[Counts, Counts, Counts]:
        """People by fold and class; those who have each channel mostly, and at all."""
        n_channels = len(self._names)
        people = np.zeros((N_NAME_FOLDS, len(classes)), dtype=np.int64)
        have = np.zeros((N_NAME_FOLDS, n_channels, len(classes)), dtype=np.int64)
        met = np.zeros_like(have)
        for (label, digest), counts in self._people.items():
            fold = int.from_bytes(digest[:8], "big") % N_NAME_FOLDS
            k = classes.index(label)
            people[fold, k] += 1
            have[fold, :, k] += 2 * counts[1:] >= counts[0]
            met[fold, :, k] += counts[1:] > 0
        return people, have, met


def _without(sums: ChannelSums, k: int) -> ChannelSums:
    """The same without a class."""
    parts = {name: getattr(sums, name).copy() for name in ("count", "sum_x", "sum_xx")}
    for part in parts.values():
        part[:, k] = 0.0
    return replace(sums, **parts)


def _in_one_fold(sums: ChannelSums, k: int, fold: int) -> ChannelSums:
    """The same with all samples of a class in one fold."""
    parts = {name: getattr(sums, name).copy() for name in ("count", "sum_x", "sum_xx")}
    for part in parts.values():
        whole = part[:, k].sum(axis=0)
        part[:, k] = 0.0
        part[fold, k] = whole
    return replace(sums, **parts)


def _too_few(met: Counts, have: Counts, min_people: int) -> bool:
    """Whether a fold's sums are over too few people, or the number of who has it is too small."""
    return bool(((met > 0) & (met < min_people) | (have > 0) & (have < min_people)).any())


def _affordable(people: Counts, min_people: int, n_folds: int) -> int:
    """Folds that leave enough people of every class that is there in each; half as many if not."""
    while n_folds > 1:
        merged = _merged(people, n_folds)[:n_folds, people.sum(axis=0) > 0]
        if min_people <= 1 or (merged >= min_people).all():
            return n_folds
        n_folds //= 2
    return n_folds


def _merged(counts: NDArray[Any], n_folds: int, first: int = 0) -> NDArray[Any]:
    found = np.zeros_like(counts)
    for fold, part in enumerate(counts):
        found[first + fold % n_folds] += part
    return found


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
