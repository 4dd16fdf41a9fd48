"""The pipeline of a method: harmonize, scale, impute, select, classify.

Benchmark, training, audit, leakage checks and resampling all go this way. Everything is learned
from training samples alone, and then done to test samples:

    samples with NaN where channels are missing
      harmonize   sites are brought to one location and scale, where that is asked for
      scale       by mean and standard deviation of the observed values
      impute      with the method's imputer; not for a selector or classifier that takes NaN
      select      the method's selector ranks the columns, and the first k are kept
      classify    with the method's classifier; values count as at most 6 standard deviations

:class:`FoldSamples` are the samples of a fold before and after the first three steps,
:class:`MethodPipeline` a method that ranks, is tuned, scored or fitted on them, and
:class:`FittedMethod` what is left of it when it is kept. A method that is a whole classifier of
the user's own replaces all steps but the first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils import resample
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from idfsmec.errors import InputError
from idfsmec.metrics import METRICS, Codes, Floats
from idfsmec.prediction.harmonizer import SiteHarmonizer, reference_class
from idfsmec.prediction.methods import Imputer, Method
from idfsmec.selection import rank_grid
from idfsmec.selection.defaults import CRITERION, N_FEATURES, SVM_COSTS
from idfsmec.selection.search import Sets, Split, SplitScorer, Tuned, by_class, middle_cost, tune
from idfsmec.solver.scaling import FAR, Scaling
from idfsmec.table import FeatureTable
from idfsmec.table.columns import observed_channels
from idfsmec.table.positions import channel_positions

Rows = Codes | slice

#: Bytes of prepared samples that are kept for the next method on the same fold.
KEPT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class TableArrays:
    """A FeatureTable, or some samples of it, as plain arrays: what is sent to workers.

    Workers share the table's values. Samples of a fold refer to them, and ``X`` copies them when
    it is asked for: the folds of a large table would otherwise be a dozen copies of it.
    """

    name: str
    digest: str
    source: Floats = field(repr=False)
    y: Codes = field(repr=False)
    subjects: Codes = field(repr=False)
    subject_names: NDArray[np.str_] = field(repr=False)  # they decide folds of channels
    channel_of: Codes = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    channels: tuple[str, ...] = field(repr=False)
    classes: tuple[Any, ...] = field(default=(0, 1), repr=False)
    positions: Floats | None = field(default=None, repr=False)
    sites: NDArray[np.str_] | None = field(default=None, repr=False)
    rows: Codes | None = field(default=None, repr=False)  # of the source; by default all
    # Channels that are taken away, (n_samples, n_channels).
    hidden: NDArray[np.bool_] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, name: str, table: FeatureTable, with_positions: bool = False, digest: str = ""
    ) -> TableArrays:
        """Take a table apart."""
        montage = table.info.get("montage")
        montage = montage if isinstance(montage, str) else None
        classes, y = np.unique(table.y.to_numpy(), return_inverse=True)
        names = table.subjects.to_numpy().astype(str)
        return cls(
            name=name,
            digest=digest,
            source=np.ascontiguousarray(table.X.to_numpy(dtype=np.float64)),
            y=y.astype(np.intp),
            subjects=np.unique(names, return_inverse=True)[1].astype(np.intp),
            subject_names=names,
            channel_of=pd.Index(table.channels).get_indexer(pd.Index(table.column_channels)),
            columns=tuple(map(str, table.X.columns)),
            channels=tuple(map(str, table.channels)),
            classes=tuple(classes.tolist()),
            positions=channel_positions(table.channels, montage) if with_positions else None,
            sites=None if table.sites is None else table.sites.astype(str).to_numpy(dtype=str),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes of the table."""
        return len(self.classes)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Values of the samples: those of the table itself if they are all, else a copy."""
        if self.rows is None and self.hidden is None:
            return self.source
        X = self.source.copy() if self.rows is None else self.source[self.rows]
        if self.hidden is not None:
            X[self.hidden[:, self.channel_of]] = np.nan
        return X

    def with_values(self, X: Floats) -> TableArrays:
        """Return the same samples with other values."""
        return replace(self, source=X, rows=None, hidden=None)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which channels each sample has, shape (n_samples, n_channels)."""
        columns = [np.flatnonzero(self.channel_of == v) for v in range(len(self.channels))]
        return observed_channels(self.X, columns)

    def take(self, rows: Rows) -> TableArrays:
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
        )

    def take_channels(self, kept: Sequence[int]) -> tuple[TableArrays, Codes]:
        """Keep some channels, in the order of the table; also return their columns."""
        kept = sorted(kept)
        columns = np.flatnonzero(np.isin(self.channel_of, kept))
        smaller = replace(
            self.with_values(np.ascontiguousarray(self.X[:, columns])),
            digest=f"{self.digest}/{kept}",
            channel_of=np.searchsorted(kept, self.channel_of[columns]),
            columns=tuple(self.columns[column] for column in columns),
            channels=tuple(self.channels[channel] for channel in kept),
            positions=None if self.positions is None else self.positions[kept],
        )
        return smaller, columns


def is_large(samples: TableArrays) -> bool:
    """Whether a table is so large that only one fold of it is kept prepared."""
    return 4 * samples.source.nbytes > KEPT_BYTES


def harmonize_samples(harmonize: bool | str, *samples: TableArrays) -> list[TableArrays]:
    """Bring sites to one location and scale, as learned from the first, or a class of them."""
    if not harmonize:
        return list(samples)
    train = samples[0]
    if train.sites is None:
        raise InputError("to harmonize sites the table needs a column 'site'")
    reference = reference_class(harmonize, train.classes)
    # Without a reference no labels are given: confounding is a matter of the whole table.
    labels = None if reference is None else np.asarray(train.classes)[train.y]
    harmonizer = SiteHarmonizer(reference=reference).fit(train.X, labels, sites=train.sites)
    return [part.with_values(harmonizer.transform(part.X, sites=part.sites)) for part in samples]


@dataclass(frozen=True, eq=False)
class Preparation:
    """Scale and impute, as learned from training samples."""

    scaling: Scaling
    imputer: Any = None

    @classmethod
    def learn(
        cls, samples: TableArrays, imputer: Imputer | None = None
    ) -> tuple[Preparation, Floats]:
        """Learn from training samples; also return them prepared."""
        X = samples.X
        scaling = Scaling.learn(X)
        X = scaling.apply(X, copy=X is samples.source)
        if imputer is None:
            return cls(scaling), X
        transformer = imputer.build(channels=samples.channel_of).fit(X)
        return cls(scaling, transformer), np.asarray(transformer.transform(X))

    def apply(self, X: Floats, copy: bool = True) -> Floats:
        """Prepare samples; without ``copy`` they are changed."""
        X = self.scaling.apply(X, copy)
        return X if self.imputer is None else np.asarray(self.imputer.transform(X))


class Prepared(NamedTuple):
    """Prepared samples of a fold: for the selector, and both sides for the classifier."""

    selecting: Floats
    train: Floats
    test: Floats

    @property
    def nbytes(self) -> int:
        """Memory; the selector and the classifier may have the same training samples."""
        shared = self.selecting is self.train
        return self.train.nbytes + self.test.nbytes + (0 if shared else self.selecting.nbytes)


@dataclass(eq=False)
class FoldSamples:
    """Training and test samples of a fold, as they are and prepared."""

    train: TableArrays
    test: TableArrays
    selecting: TableArrays  # the training samples as the selector may see them
    harmonize: bool | str = False
    train_rows: Rows = field(default_factory=lambda: slice(None))  # of train
    test_rows: Rows = field(default_factory=lambda: slice(None))  # of test
    # By the fold's id: a fold that is its own key would stay until garbage is collected.
    kept: dict[tuple[int, str], Prepared] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.y_train = self.train.y[self.train_rows]
        self.groups_train = self.train.subject_names[self.train_rows]
        self.y_test = self.test.y[self.test_rows]
        self.subjects_test = self.test.subjects[self.test_rows]
        self.inner: list[FoldSamples] = []

    def add_inner(self, splits: Sequence[tuple[Codes, Codes]]) -> None:
        """Add inner folds, given by rows of the training samples."""
        sides = self.train, self.train, self.selecting, self.harmonize
        self.inner = [FoldSamples(*sides, *split, kept=self.kept) for split in splits]

    def sides(self) -> list[TableArrays]:
        """Return training and test samples; sites are harmonized where that is asked for."""
        # A new site goes by all samples that it has, so that these are harmonized at once.
        both = self.train.take(self.train_rows), self.test.take(self.test_rows)
        return harmonize_samples(self.harmonize, *both)

    def prepare(self, imputer: Imputer | None = None) -> Prepared:
        """Harmonize, scale and impute; what fits into memory is kept for the next method."""
        key = id(self), "" if imputer is None else json.dumps(imputer.describe(), sort_keys=True)
        if key in self.kept:
            return self.kept[key]
        both = 1 if self.selecting is self.train else 2
        n_rows = both * self.y_train.size + self.y_test.size
        left = KEPT_BYTES - 8 * self.train.channel_of.size * n_rows
        if is_large(self.train):
            self.kept.clear()
        while self.kept and left < sum(kept.nbytes for kept in self.kept.values()):
            self.kept.popitem()
        train, test = self.sides()
        steps, train_X = Preparation.learn(train, imputer)
        selecting_X = train_X
        if self.selecting is not self.train:
            (selecting,) = harmonize_samples(self.harmonize, self.selecting.take(self.train_rows))
            selecting_X = Preparation.learn(selecting, imputer)[1]
        test_X = test.X
        test_X = steps.apply(test_X, copy=test_X is test.source)
        self.kept[key] = prepared = Prepared(selecting_X, train_X, test_X)
        for side in prepared:
            side.setflags(write=False)  # methods share them
        return prepared


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


@dataclass
class MethodPipeline:
    """A method on the samples of a fold: it ranks, is tuned, scored or fitted."""

    method: Method
    n_features: Sequence[int] = N_FEATURES  # numbers that tuning compares
    costs: Sequence[float] = SVM_COSTS  # of the classifier, unless the method has its own
    clip: float | None = FAR  # standardised values further from 0 count as this far away
    tuned_by: str = CRITERION  # what tuning maximises
    random_state: int = 0

    def __post_init__(self) -> None:
        self.imputer, self.classifier = self.method.imputing, self.method.classifying
        self.costs = self.costs if self.method.costs is None else self.method.costs
        if not self.classifier.has_cost:
            self.costs = (float("nan"),)
        self.marks_missing = self.imputer.marks_missing and not self.classifier.takes_missing
        self.selector_imputer = None if self.method.takes_missing else self.imputer
        skipped = self.classifier.takes_missing or self.marks_missing
        self.classifier_imputer = None if skipped else self.imputer

    def ks(self, fold: FoldSamples) -> list[int]:
        """Return the numbers of features that are compared on a fold."""
        n_columns = fold.train.channel_of.size
        if self.method.all_features:
            return [n_columns]
        return sorted(k for k in self.n_features if k <= n_columns) or [n_columns]

    def rank(
        self,
        fold: FoldSamples,
        settings: Sequence[int] | None = None,
        ks: Sequence[int] | None = None,
        most_samples: int | None = None,
        **parameters: Any,
    ) -> Codes:
        """Rank the columns by the training samples, (n_settings, n_ks, n_columns), 1 is best."""
        settings = range(len(self.method.settings)) if settings is None else settings
        ks = self.ks(fold) if ks is None else ks
        counts = [{"n_features_to_select": k} for k in ks] if self.method.depends_on_k else [{}]
        grid = [{**self.method.settings[i], **count} for i in settings for count in counts]
        X = fold.prepare(self.selector_imputer).selecting
        y, groups = fold.y_train, fold.groups_train
        if most_samples is not None and most_samples < y.size:
            how = {"n_samples": most_samples, "replace": False, "random_state": self.random_state}
            X, y, groups = resample(X, y, groups, stratify=y, **how)
        selector = self._selector(fold, **parameters)
        (ranks,) = rank_grid(selector, X, y, grid, groups=groups)
        ranks = ranks.reshape(len(settings), len(counts), -1)
        return np.broadcast_to(ranks, (len(settings), len(ks), ranks.shape[2]))

    def rank_inner(self, fold: FoldSamples) -> Codes:
        """Rank the columns on all inner folds, (n_folds, n_settings, n_ks, n_columns).

        A selector that takes NaN and standardises features itself sees the same in all samples of
        a fold as in those of an inner one, so that it may share work between inner folds; not
        where sites are harmonized, which is learned in each.
        """
        selector = self._selector(fold, **self.method.inner)
        alike = self.method.takes_missing and selector.get_params().get("standardize", False)
        if not alike or fold.harmonize or self.method.depends_on_k:
            how = {"most_samples": self.method.inner_samples, **self.method.inner}
            return np.stack([self.rank(part, **how) for part in fold.inner])
        given = fold.prepare().selecting, fold.y_train, self.method.settings
        held_out: list[Any] = [part.test_rows for part in fold.inner]
        ranks = rank_grid(selector, *given, held_out=held_out, groups=fold.groups_train)
        return np.repeat(ranks[:, :, None, :], len(self.ks(fold)), axis=2)

    def _selector(self, fold: FoldSamples, **parameters: Any) -> BaseEstimator:
        return self.method.build(
            n_features_to_select=max(self.ks(fold)),
            random_state=self.random_state,
            channels=fold.train.channel_of,
            **parameters,
        )

    def tune(self, fold: FoldSamples) -> Tuned:
        """Let inner folds choose a setting and C for each number of features, and that number."""
        return tune(
            [self.scorer(part, [self.tuned_by]) for part in fold.inner],
            self.rank_inner(fold),
            self.ks(fold),
            default=self.method.default_setting,
            costs=self.costs,
            metric=self.tuned_by,
        )

    def decide(
        self,
        fold: FoldSamples,
        ranks: Codes | None = None,
        k: int | None = None,
        C: float | None = None,
    ) -> Floats:
        """Return decisions on the test samples, (n_test, n_classes), by default untuned."""
        if self.method.is_whole:
            return self.fit_whole(fold)[0]
        k = max(self.ks(fold)) if k is None else k
        if ranks is None:
            ranks = self.rank(fold, [self.method.default_setting], [k])[0, 0]
        split, columns = self._split(fold), np.flatnonzero(ranks <= k)
        sets = [(columns, middle_cost(self.costs) if C is None else C)]
        return self._classify(fold, split.train, split.y_train, split.test, sets)[0]

    def scorer(self, fold: FoldSamples, metrics: Sequence[str] = METRICS) -> SplitScorer:
        """Return what scores sets of features, with a C each, on the test samples."""
        # Samples are prepared when they are scored: the next fold may be as large.
        split, classify = partial(self._split, fold), partial(self._classify, fold)
        return SplitScorer(split, classify, metrics, self.classifier.log_odds_slope)

    def _split(self, fold: FoldSamples) -> Split:
        """Return both sides of a fold; the classifier clips what it sees of them."""
        _, train, test = fold.prepare(self.classifier_imputer)
        return Split(train, fold.y_train, test, fold.y_test, fold.subjects_test)

    def _classify(
        self, fold: FoldSamples, train: Floats, y: Codes, test: Floats, sets: Sets
    ) -> list[Floats]:
        """Return decisions on the test samples with each set of columns."""
        # Copies of the columns in use, not of all.
        used = np.unique(np.concatenate([columns for columns, _ in sets]))
        train, test = train[:, used], test[:, used]
        if self.clip is not None:
            for side in (train, test):
                np.clip(side, -self.clip, self.clip, out=side)
        sets = [(np.searchsorted(used, columns), C) for columns, C in sets]
        n_classes, decide = fold.train.n_classes, self.classifier.decide_many
        if decide is not None:
            decide = partial(decide, n_classes=n_classes, class_weight="balanced")
            if not self.marks_missing:
                return list(decide(train, y, test, sets))
        results = []
        for ranked, C in sets:
            columns = np.sort(ranked)
            seen, unseen = train.take(columns, axis=1), test.take(columns, axis=1)
            if self.marks_missing:
                marks = MissingMarks.learn(seen)
                seen, unseen = marks.add(seen), marks.add(unseen)
            if decide is not None:
                results += decide(seen, y, unseen, [(np.arange(seen.shape[1]), C)])
                continue
            model = self.build_classifier(C, fold.train.channel_of[used[columns]])
            fit_with_groups(model, seen, y, fold.groups_train)
            results.append(by_class(decision_values(model, unseen), model.classes_, n_classes))
        return results

    def build_classifier(self, C: float, channels: Codes) -> Any:
        """Make a fresh classifier with what is known about its columns."""
        how = {"class_weight": "balanced", "random_state": self.random_state}
        return self.classifier.build(C=None if np.isnan(C) else C, channels=channels, **how)

    def fit_tuned(self, fold: FoldSamples) -> tuple[FittedMethod, dict[str, Any]]:
        """Tune on inner folds, fit on all training samples; also return what tuning chose."""
        best = self.tune(fold).best
        k, C = best.n_features, best.cost
        ranks = self.rank(fold, [best.setting], [k])[0, 0]
        columns, marks = np.flatnonzero(ranks <= k), None
        samples = fold.sides()[0]
        preparation, X = Preparation.learn(samples, self.classifier_imputer)
        X = np.clip(X[:, columns], -FAR, FAR)
        if self.marks_missing:
            marks = MissingMarks.learn(X)
            X = marks.add(X)
        channels = np.unique(samples.channel_of[columns], return_inverse=True)[1]
        model = self.build_classifier(C, channels)
        imputed = self.marks_missing or self.classifier_imputer is not None
        how = f"imputed by {self.imputer.name}" if imputed else "missing values as they are"
        fitted = FittedMethod(
            name=f"{self.method.name}, {how}, {self.classifier.name}, {columns.size} features",
            classes_=np.asarray(samples.classes),
            preparation=preparation,
            columns_=columns,
            marks=marks,
            classifier=fit_with_groups(model, X, samples.y, samples.subject_names),
            scores_=np.where(ranks <= k, k + 1.0 - ranks, 0.0),
            channel_of=samples.channel_of,
            slope=self.classifier.log_odds_slope,
        )
        return fitted, {"n_features": k, "C": C, **self.method.settings[best.setting]}

    def fit_whole(self, fold: FoldSamples) -> tuple[Floats, Codes]:
        """Fit a whole classifier on samples as they are; return its decisions and its columns."""
        train, test = fold.sides()
        labels, names = np.asarray(train.classes), list(train.columns)
        X, new = (pd.DataFrame(side.X, columns=names) for side in (train, test))
        model = self.method.build(random_state=self.random_state)
        model = fit_with_groups(model, X, labels[train.y], train.subject_names)
        codes = np.searchsorted(labels, model.classes_)
        columns = np.arange(len(names))
        with suppress(AttributeError, TypeError, ValueError):  # if a pipeline says what it keeps
            kept = model[:-1].get_feature_names_out(np.asarray(names, dtype=object))
            columns = np.array([names.index(name) for name in kept], dtype=np.intp)
        return by_class(decision_values(model, new), codes, labels.size), columns


def fit_with_groups(model: Any, X: Any, y: NDArray, groups: ArrayLike, **extra: Any) -> Any:
    """Fit a classifier, with the subjects if it takes groups."""
    searches = isinstance(model, (GridSearchCV, RandomizedSearchCV))
    takes = searches or has_fit_parameter(model, "groups")
    return model.fit(X, y, **({"groups": groups} if takes else {}), **extra)


def decision_values(model: Any, X: Any) -> Floats:
    """Return decisions of a fitted classifier: its own, or the logarithms of probabilities."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.log(np.maximum(model.predict_proba(X), 1e-3))


@dataclass(frozen=True, eq=False, repr=False)
class FittedMethod:
    """A fitted method: a classifier of incomplete samples that can be saved."""

    name: str  # method, imputer, classifier and number of features, for readers
    classes_: NDArray
    preparation: Preparation
    columns_: Codes  # the features that are selected
    marks: MissingMarks | None  # what tells the classifier about missing channels
    classifier: Any  # of classes 0 ... n_classes - 1
    scores_: Floats  # selected features by their rank, the best the largest; 0 for the others
    channel_of: Codes
    slope: float  # slope * decisions are log probabilities up to a constant, roughly

    @property
    def class_prior_(self) -> Floats:
        """Classes count alike."""
        return np.full(self.classes_.size, 1 / self.classes_.size)

    def _select(self, X: ArrayLike) -> Floats:
        values = self.preparation.apply(np.asarray(X, dtype=np.float64))[:, self.columns_]
        values = np.clip(values, -FAR, FAR)
        return values if self.marks is None else self.marks.add(values)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class, (n_samples, n_classes); rough, before any calibration."""
        values = decision_values(self.classifier, self._select(X))
        decisions = by_class(values, self.classifier.classes_, self.classes_.size)
        return np.asarray(softmax(self.slope * decisions, axis=1))

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each sample."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(lambda self: hasattr(self.classifier, "coef_"))
    def channel_votes(self, X: ArrayLike) -> Floats:
        """Return the contribution of each channel to the log odds; NaN where missing.

        Only where the classifier is linear. What was imputed counts for no channel, unless the
        classifier itself says for which. Of shape (n_samples, n_channels) for two classes, else
        (..., n_classes).
        """
        given, channels = np.asarray(X, dtype=np.float64), self.channel_of[self.columns_]
        selected = self._select(given)
        if hasattr(self.classifier, "channel_votes"):
            parts = np.nan_to_num(self.classifier.channel_votes(selected))
            parts = self.slope * (parts[:, :, None] if parts.ndim == 2 else parts)
            channels = np.unique(channels)
        else:
            coef = self.slope * np.atleast_2d(self.classifier.coef_)[:, : channels.size]
            parts = selected[:, : channels.size, None] * coef.T
        n_channels = int(self.channel_of.max()) + 1
        votes = np.einsum("nkc,kv->nvc", parts, np.eye(n_channels)[channels])
        columns = [np.flatnonzero(self.channel_of == v) for v in range(n_channels)]
        votes[~observed_channels(given, columns)] = np.nan
        return votes[:, :, 0] if parts.shape[2] == 1 else votes
