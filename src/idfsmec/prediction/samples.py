"""Samples of a table as arrays, and training samples that methods prepare alike.

:class:`Samples` are rows of a table without copies of it. :class:`TrainingSamples` corrects,
scales and imputes them once for all methods that need that, on a fold and on its inner folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from idfsmec._fingerprint import Indescribable, fingerprint
from idfsmec.errors import InputError
from idfsmec.metrics import Codes, Floats, Scores, mean_by_subject
from idfsmec.prediction.adjuster import Corrections, table_covariates
from idfsmec.prediction.folds import Fold
from idfsmec.solver.scaling import Scaling
from idfsmec.solver.sums import number_by_value
from idfsmec.table import FeatureTable
from idfsmec.table.columns import observed_channels
from idfsmec.table.positions import channel_positions

Rows = Codes | slice

#: Nothing is taken out.
NONE = Corrections()
#: Bytes of prepared samples that are kept for the next method on the same fold.
KEPT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Samples:
    """A table, or some samples of it, as arrays: what is sent to workers.

    Workers share the table's values. Samples of a fold refer to them, and ``X`` copies them when
    it is asked for: the folds of a large table would otherwise be a dozen copies of it.
    """

    source: Floats = field(repr=False)
    y: NDArray[Any] = field(repr=False)  # codes of classes, or scores
    subjects: Codes = field(repr=False)  # in the order of their names
    subject_names: NDArray[np.str_] = field(repr=False)  # they decide folds
    channel_of: Codes = field(repr=False)
    channels: tuple[str, ...] = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    classes: tuple[Any, ...] = field(default=(0, 1), repr=False)  # none: y is a score
    sites: NDArray[np.str_] | None = field(default=None, repr=False)
    covariates: pd.DataFrame | None = field(default=None, repr=False)
    positions: Floats | None = field(default=None, repr=False)
    rows: Codes | None = field(default=None, repr=False)  # of the source; by default all
    # Channels that are taken away, (n_samples, n_channels).
    hidden: NDArray[np.bool_] | None = field(default=None, repr=False)
    name: str = ""
    digest: str = ""
    is_grouped: bool = True  # whether subjects are known; else every sample is one

    @classmethod
    def of(
        cls,
        name: str,
        table: FeatureTable,
        with_positions: bool = False,
        digest: str = "",
        covariates: Sequence[str] = (),
    ) -> Samples:
        """Take a table apart."""
        montage = table.info.get("montage")
        montage = montage if isinstance(montage, str) else None
        classes: NDArray[Any] = np.empty(0)
        if table.target.is_numeric:
            y = table.targets
        else:
            classes, codes = np.unique(table.y.to_numpy(), return_inverse=True)
            y = codes.astype(np.intp)
        names = table.subjects.to_numpy().astype(str)
        return cls(
            source=np.ascontiguousarray(table.X.to_numpy(dtype=np.float64)),
            y=y,
            subjects=np.unique(names, return_inverse=True)[1].astype(np.intp),
            subject_names=names,
            channel_of=pd.Index(table.channels).get_indexer(pd.Index(table.column_channels)),
            channels=tuple(map(str, table.channels)),
            columns=tuple(map(str, table.X.columns)),
            classes=tuple(classes.tolist()),
            sites=None if table.sites is None else table.sites.astype(str).to_numpy(dtype=str),
            covariates=table_covariates(table, covariates),
            positions=channel_positions(table.channels, montage) if with_positions else None,
            name=name,
            digest=digest,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes of the table; of columns of decisions: 1 for a score."""
        return max(len(self.classes), 1)

    @property
    def numeric(self) -> bool:
        """Whether y is a score."""
        return not self.classes

    @property
    def subject_scores(self) -> Floats:
        """Score of each subject."""
        return mean_by_subject(self.y, self.subjects)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Values of the samples: those of the table itself if they are all, else a copy."""
        if self.rows is None and self.hidden is None:
            return self.source
        X = self.source.copy() if self.rows is None else self.source[self.rows]
        if self.hidden is not None:
            X[self.hidden[:, self.channel_of]] = np.nan
        return X

    @property
    def groups(self) -> NDArray[np.str_] | None:
        """Names of the subjects for estimators; None where they are not known."""
        return self.subject_names if self.is_grouped else None

    def subjects_by_value(self) -> Codes:
        """Number subjects in an order that neither their names nor the samples' order decides."""
        columns = [np.flatnonzero(self.channel_of == v) for v in range(len(self.channels))]
        return number_by_value(self.X, columns, self.subjects)

    def with_values(self, X: Floats) -> Samples:
        """Return the same samples with other values."""
        return replace(self, source=X, rows=None, hidden=None)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which channels each sample has, shape (n_samples, n_channels)."""
        columns = [np.flatnonzero(self.channel_of == v) for v in range(len(self.channels))]
        return observed_channels(self.X, columns)

    def take(self, rows: Rows) -> Samples:
        """Take some samples."""
        every = np.arange(self.y.size) if self.rows is None else self.rows
        return replace(
            self,
            rows=every[rows],
            hidden=None if self.hidden is None else self.hidden[rows],
            y=self.y[rows],
            subjects=self.subjects[rows],
            subject_names=self.subject_names[rows],
            sites=None if self.sites is None else self.sites[rows],
            covariates=None if self.covariates is None else self.covariates.iloc[rows],
        )

    def take_channels(self, wanted: Sequence[int]) -> tuple[Samples, Codes]:
        """Keep some channels, in the order of the table; also return their columns."""
        wanted = sorted(wanted)
        columns = np.flatnonzero(np.isin(self.channel_of, wanted))
        smaller = replace(
            self.with_values(np.ascontiguousarray(self.X[:, columns])),
            digest=f"{self.digest}/{wanted}",
            channel_of=np.searchsorted(wanted, self.channel_of[columns]),
            columns=tuple(self.columns[column] for column in columns),
            channels=tuple(self.channels[channel] for channel in wanted),
            positions=None if self.positions is None else self.positions[wanted],
        )
        return smaller, columns

    @property
    def frame(self) -> pd.DataFrame:
        """Values of the samples with the names of their columns."""
        return pd.DataFrame(self.X, columns=list(self.columns), copy=False)

    def corrected(self, corrections: Corrections) -> Floats:
        """Values without the effects that fitted corrections take out."""
        if not corrections:
            return self.X
        return corrections.apply(self.frame, self.sites, self.covariates).to_numpy(copy=True)

    def learn(self, corrections: Corrections) -> tuple[Corrections, Floats]:
        """Fit corrections to these samples; also return their corrected values."""
        if not corrections:
            return corrections, self.X
        y = None
        if corrections.needs_labels:
            if self.numeric:
                raise InputError("a score has no class to learn from: use all participants")
            y = np.asarray(self.classes)[self.y]
        fitted, X = corrections.fit(self.frame, y, self.sites, self.covariates, self.groups)
        return fitted, X.to_numpy(copy=True)


@dataclass(frozen=True, eq=False)
class Preparation:
    """Correct, scale and impute, as learned from training samples."""

    corrections: Corrections
    scaling: Scaling
    imputer: Any  # fitted; None leaves NaN

    @classmethod
    def learn(
        cls, samples: Samples, corrections: Corrections = NONE, imputer: Any = None
    ) -> tuple[Preparation, Floats]:
        """Learn the steps from training samples; also return these prepared."""
        corrections, X = samples.learn(corrections)
        scaling = Scaling.learn(X)
        X = scaling.apply(X, copy=X is samples.source)
        if imputer is None:
            return cls(corrections, scaling, None), X
        fitted = with_parameters(imputer, channels=samples.channel_of).fit(X)
        return cls(corrections, scaling, fitted), np.asarray(fitted.transform(X))

    def apply(self, samples: Samples) -> Floats:
        """Prepare samples; a site that training lacks goes by all that are given of it."""
        X = samples.corrected(self.corrections)
        X = self.scaling.apply(X, copy=X is samples.source)
        return X if self.imputer is None else np.asarray(self.imputer.transform(X))


def corrected_samples(samples: Samples, corrections: Corrections) -> Samples:
    """Return samples that are corrected by all of them, where that is asked for."""
    return samples.with_values(samples.learn(corrections)[1]) if corrections else samples


def with_parameters(estimator: Any, **parameters: Any) -> Any:
    """Return an unfitted copy with those parameters that it has and that are not None."""
    fresh = clone(estimator)
    known = fresh.get_params()
    return fresh.set_params(
        **{
            name: value
            for name, value in parameters.items()
            if name in known and value is not None
        }
    )


class Prepared(NamedTuple):
    """Prepared training samples, and the steps that were learned."""

    X: Floats
    steps: Preparation


class FoldSamples(NamedTuple):
    """Training samples of a fold and those held out; which do not train, by their rows."""

    training: TrainingSamples
    held_out: Samples
    left_out: Codes


@dataclass
class _Kept:
    """What methods on one fold share: prepared samples, and scores of all features."""

    prepared: dict[Any, Prepared] = field(default_factory=dict)
    scores: dict[Any, dict[float, Scores]] = field(default_factory=dict)


@dataclass(eq=False)
class TrainingSamples:
    """Training samples, which methods with the same steps share once they are prepared."""

    samples: Samples
    selecting: TrainingSamples | None = None  # as selectors may see them, where that differs
    part: tuple[Any, ...] = ()  # which inner fold this is
    _kept: _Kept = field(default_factory=_Kept, repr=False)
    _inner: dict[Any, list[FoldSamples]] = field(default_factory=dict, repr=False)

    @property
    def for_selection(self) -> TrainingSamples:
        """The samples as selectors may see them."""
        return self if self.selecting is None else self.selecting

    @property
    def is_large(self) -> bool:
        """Whether the table is so large that only one fold of it is kept prepared."""
        return 4 * self.samples.source.nbytes > KEPT_BYTES

    def inner_folds(
        self, key: Any, make_splits: Callable[[], Sequence[Fold]]
    ) -> list[FoldSamples]:
        """Split the samples again; splits of the same key are made once, those of None anew."""
        if key is not None and key in self._inner:
            return self._inner[key]
        folds = [
            FoldSamples(
                self.take(train, key, number),
                self.samples.take(test),
                np.setdiff1d(np.arange(self.samples.y.size), train),
            )
            for number, (train, test) in enumerate(make_splits())
        ]
        if key is not None:
            self._inner[key] = folds
        return folds

    def take(self, rows: Rows, key: Any, number: int) -> TrainingSamples:
        """Take those of an inner fold, which is known by a key and a number."""
        return TrainingSamples(
            self.samples.take(rows),
            None if self.selecting is None else self.selecting.take(rows, key, number),
            (*self.part, key, number),
            _Kept() if key is None else self._kept,
        )

    def values_for(self, takes_missing: bool, corrections: Corrections, imputer: Any) -> Floats:
        """Return what a selector sees: samples as they are if it takes NaN, else prepared."""
        seen = self.for_selection
        if takes_missing:
            return seen.samples.learn(corrections)[1]
        return seen.prepare(corrections, imputer).X

    def prepare(self, corrections: Corrections = NONE, imputer: Any = None) -> Prepared:
        """Correct, scale and impute; what fits into memory is kept for the next method."""
        key = self._key_of(corrections, imputer)
        cache = self._kept.prepared
        if key in cache:
            return cache[key]
        left = KEPT_BYTES - 8 * self.samples.y.size * self.samples.channel_of.size
        if self.is_large:
            cache.clear()
        while cache and left < sum(prepared.X.nbytes for prepared in cache.values()):
            cache.popitem()
        steps, X = Preparation.learn(self.samples, corrections, imputer)
        prepared = Prepared(X, steps)
        X.setflags(write=False)  # methods share them
        if key is not None:
            cache[key] = prepared
        return prepared

    def scores_of(self, *parts: Any) -> dict[float, Scores]:
        """Scores of all features that methods with the same parts have in common."""
        key = self._key_of(*parts)
        if key is None:
            return {}
        return self._kept.scores.setdefault(key, {})

    def _key_of(self, *parts: Any) -> Any:
        try:
            return (self.part, fingerprint(parts))
        except Indescribable:
            return None


@dataclass(frozen=True)
class MissingMarks:
    """For each set of columns that are missing together, a column that says so."""

    columns: Codes  # one of each set
    shares: Floats  # of the training samples that lack it; taken off, so that marks are centred

    @classmethod
    def learn(cls, X: Floats) -> MissingMarks:
        """Find the different sets of columns that are missing together in training."""
        missing = np.isnan(X)
        first = np.unique(missing, axis=1, return_index=True)[1]
        first = np.sort(first[missing[:, first].any(axis=0)])
        return cls(first, missing[:, first].mean(axis=0))

    def add(self, X: Floats) -> Floats:
        """Impute 0, the training mean, and add the marks."""
        return np.hstack([np.nan_to_num(X), np.isnan(X[:, self.columns]) - self.shares])
