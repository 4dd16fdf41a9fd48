"""The one estimator of a method: harmonize, scale, impute, select, classify, tuned by inner folds.

Benchmark, training, audit, leakage checks, electrodes and ``IDFSMECCV`` all fit it:

    samples with NaN where channels are missing
      harmonize   sites are brought to one location and scale, where there is a harmonizer
      adjust      what covariates explain is taken out, where there is an adjuster
      select      a selector that takes NaN sees samples as they are, others prepared ones
      scale       by mean and standard deviation of the observed values
      impute      with the imputer; not for a classifier that takes NaN
      classify    the first k features; values count as at most 6 standard deviations

Inner folds choose k, the classifier's cost and the selector's setting (:mod:`.tuning`). Everything
is learned from training samples alone. :class:`HarmonizedClassifier` is the same for a classifier
of the user's own, which replaces all steps but the first.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, check_cv
from sklearn.utils import Tags, get_tags, resample
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import (
    CheckedEstimator,
    Constraints,
    HasMethods,
    SequenceOf,
    StrOptions,
    fraction,
    group_names,
    index_level,
    integer,
    number,
    warn_without_groups,
)
from idfsmec.errors import InputError
from idfsmec.metrics import (
    CRITERIA,
    METRICS,
    SCORE_CRITERIA,
    SCORE_METRICS,
    SVM_SLOPE,
    Codes,
    Floats,
)
from idfsmec.prediction.adjuster import Adjuster, Corrections
from idfsmec.prediction.folds import FEWEST_SCORES, Fold, make_inner_folds, most_splits
from idfsmec.prediction.harmonizer import SiteHarmonizer, per_sample
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.ridge import LinearRidge
from idfsmec.prediction.samples import (
    FoldSamples,
    MissingMarks,
    Samples,
    TrainingSamples,
    with_parameters,
)
from idfsmec.prediction.svm import LinearSVM, by_class
from idfsmec.prediction.tuning import (
    Sets,
    SetScorer,
    Trial,
    Tuned,
    nearest_setting,
    tune,
)
from idfsmec.progress import Listener, Steps
from idfsmec.selection import IDFSMEC, rank_grid
from idfsmec.selection.base import (
    check_new_samples,
    check_samples,
    check_score,
    count_features,
    encode_labels,
)
from idfsmec.selection.defaults import (
    CRITERION,
    N_FEATURES,
    N_INNER_SPLITS,
    SCORE_CRITERION,
    SVM_COSTS,
)
from idfsmec.solver.scaling import FAR
from idfsmec.table.columns import SITE, channel_codes, channel_columns


class SamplesEstimator(CheckedEstimator):
    """Base of estimators that may be given subjects, sites and channels with their samples."""

    channels: ArrayLike | None = None
    harmonizer: SiteHarmonizer | None
    adjuster: Adjuster | None
    numeric = False  # whether y is a score

    @property
    def corrections(self) -> Corrections:
        """What is taken out before all else."""
        return Corrections(self.harmonizer, self.adjuster)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels, or a score.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; inner folds keep subjects together. By default an index of X
            named "subject"; without it every sample is a subject of its own, with a warning.
        sites : array-like of shape (n_samples,), optional
            Where samples were recorded, for folds by site and to harmonize. By default the level
            "site" of the index of X.
        covariates : DataFrame or array-like of shape (n_samples, n_covariates), optional
            Such as age and sex: the adjuster takes their effect out, and the harmonizer, without
            one, keeps it. New samples then need them too.

        Returns
        -------
        self : object
        """
        return self.fit_samples(self.check_training(X, y, groups, sites, covariates))

    def check_training(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> TrainingSamples:
        """Check parameters and samples; see :meth:`fit`."""
        self._validate_params()
        checked, labels = check_samples(self, X, y, ensure_min_samples=2)
        target: NDArray[Any]
        if self.numeric:
            target, classes = check_score(labels), np.empty(0)
        else:
            target, classes = encode_labels(labels)
        subjects = group_names(X, groups)
        is_grouped = subjects is not None
        if not is_grouped:
            warn_without_groups(type(self).__name__, stacklevel=4)
        columns = getattr(self, "feature_names_in_", np.arange(checked.shape[1]).astype(str))
        names, columns_of = channel_columns(
            self.channels, checked.shape[1], getattr(self, "feature_names_in_", None)
        )
        names_of = (np.arange(target.size) if subjects is None else subjects).astype(str)
        samples = Samples(
            checked,
            target,
            np.unique(names_of, return_inverse=True)[1],
            names_of,
            channel_codes(columns_of),
            tuple(map(str, names)),
            tuple(map(str, columns)),
            tuple(classes.tolist()),
            _sites_of(X, sites),
            _covariates_of(X, covariates),
            is_grouped=is_grouped,
        )
        return TrainingSamples(samples)

    def fit_samples(self, training: TrainingSamples) -> Self:
        """Fit to the samples of a fold, whose preparation methods share."""
        raise NotImplementedError

    def decide(self, samples: Samples) -> Floats:
        """Return the decisions of each class, (n_samples, n_classes), or predictions, (..., 1)."""
        raise NotImplementedError

    @property
    def slope(self) -> float:
        """Decisions times this are log odds, roughly."""
        raise NotImplementedError

    def _begin(self, training: TrainingSamples) -> None:
        """Keep what is known of the training samples."""
        samples = training.samples
        if not self.numeric:
            self.classes_ = np.asarray(samples.classes)
        self.n_features_in_ = samples.channel_of.size
        self.channel_names_ = np.asarray(samples.channels)
        self._channel_of = samples.channel_of

    def _samples(
        self, X: ArrayLike, sites: ArrayLike | None, covariates: ArrayLike | None = None
    ) -> Samples:
        """Check new samples."""
        checked = check_new_samples(self, X, "channel_names_")
        unknown = np.zeros(len(checked), dtype=np.intp)
        names = tuple(map(str, getattr(self, "feature_names_in_", range(self.n_features_in_))))
        return Samples(
            checked,
            unknown,
            unknown,
            unknown.astype(str),
            self._channel_of,
            tuple(map(str, self.channel_names_)),
            names,
            () if self.numeric else tuple(self.classes_.tolist()),
            _sites_of(X, sites),
            _covariates_of(X, covariates),
        )


class SamplesClassifier(ClassifierMixin, SamplesEstimator):
    """Base of classifiers of samples."""

    classes_: NDArray[Any]

    def decision_function(
        self, X: ArrayLike, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> Floats:
        """Decision in favour of the second class, or of each, (n_samples[, n_classes]).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        sites : array-like of shape (n_samples,), optional
            As in :meth:`fit`; samples without sites count as those of one new site.
        covariates : array-like of shape (n_samples, n_covariates), optional
            As in :meth:`fit`.
        """
        decisions = self.decide(self._samples(X, sites, covariates))
        return decisions[:, 1] - decisions[:, 0] if decisions.shape[1] == 2 else decisions

    def predict_proba(
        self, X: ArrayLike, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> Floats:
        """Probability of each class, (n_samples, n_classes); rough, before any calibration.

        Parameters as of :meth:`decision_function`.
        """
        decisions = self.decide(self._samples(X, sites, covariates))
        return np.asarray(softmax(self.slope * decisions, axis=1))

    def predict(
        self, X: ArrayLike, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Most probable class of each sample; parameters as of :meth:`decision_function`."""
        decisions = self.decide(self._samples(X, sites, covariates))
        return np.asarray(self.classes_[decisions.argmax(axis=1)])

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> float:
        """Share of samples that are predicted rightly; parameters as of :meth:`predict`."""
        predicted = self.predict(X, sites, covariates)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


class SamplesRegressor(RegressorMixin, SamplesEstimator):
    """Base of regressors of samples."""

    numeric = True

    @property
    def slope(self) -> float:
        """Predictions are in the unit of the score."""
        return 1.0

    def predict(
        self, X: ArrayLike, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> Floats:
        """Score of each sample; parameters as of :meth:`fit`."""
        return self.decide(self._samples(X, sites, covariates))[:, 0]


def _sites_of(X: Any, sites: ArrayLike | None) -> NDArray[np.str_] | None:
    """Return the names of sites: those given, or else the level "site" of the index of X."""
    names = index_level(X, SITE) if sites is None else per_sample("sites", sites, len(X))
    return None if names is None else names.astype(str)


def _covariates_of(X: Any, covariates: Any) -> pd.DataFrame | None:
    """Return covariates in columns, one row per sample."""
    if covariates is None:
        return None
    known = pd.DataFrame(covariates)
    if len(known) != len(X):
        raise InputError(
            f"covariates has {len(known)} rows for {len(X)} samples", argument="covariates"
        )
    return known


@dataclass(eq=False, repr=False)
class TunedSelection(SamplesEstimator):
    """What :class:`TunedPipeline` and :class:`TunedRegressor` share: all but the last step."""

    _parameter_constraints: ClassVar[Constraints] = {
        "selector": [HasMethods(["fit"]), None],
        "imputer": [HasMethods(["fit", "transform"]), None],
        "n_features_to_select": [SequenceOf(integer(1), fraction())],
        "costs": [SequenceOf(number(0))],
        "cv": ["cv_object"],
        "folds": [StrOptions({"subject", "sample", "site"})],
        "harmonizer": [SiteHarmonizer, None],
        "adjuster": [Adjuster, None],
        "add_indicator": ["boolean"],
        "clip": [number(0), None],
        "channels": ["array-like", None],
        "settings": [SequenceOf(Mapping)],
        "ranks_per_count": ["boolean"],
        "inner_parameters": [Mapping, None],
        "inner_samples": [integer(1), None],
        "random_state": ["random_state"],
        "label": [str],
        "progress": [callable, None],
    }

    selector: Any = None
    _: KW_ONLY
    settings: Sequence[Mapping[str, Any]] = ({},)
    imputer: Any = None
    n_features_to_select: Sequence[int | float] = N_FEATURES
    costs: Sequence[float] = SVM_COSTS
    cv: Any = N_INNER_SPLITS
    folds: str = "subject"
    harmonizer: SiteHarmonizer | None = None
    adjuster: Adjuster | None = None
    add_indicator: bool = False
    clip: float | None = FAR
    channels: ArrayLike | None = None
    ranks_per_count: bool = False
    inner_parameters: Mapping[str, Any] | None = None
    inner_samples: int | None = None
    random_state: Any = 0
    label: str = ""
    progress: Listener | None = None

    def fit_samples(self, training: TrainingSamples) -> Self:
        """Tune on inner folds, then fit to all training samples."""
        with one_blas_thread():
            tuned = self.choose(training)
            best = tuned.best
            (ranks,) = self.rank(training, [best.setting], [best.n_features])[0]
            self.fit_selected(training, ranks, best)
        if tuned.trials:
            self._keep_results(tuned)
        return self

    def tune_on(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> TrainingSamples:
        """Tune without the last fit; for samples as in :meth:`fit`, which are returned."""
        training = self.check_training(X, y, groups)
        with one_blas_thread():
            tuned = self.tune(training)
        self._keep(tuned.best)
        self._keep_results(tuned)
        return training

    def choose(self, training: TrainingSamples) -> Tuned:
        """Tune, unless there is nothing to choose from."""
        counts, costs = self.counts(training), self.used_costs
        if len(counts) * len(costs) * len(self.settings) > 1:
            return self.tune(training)
        return Tuned({counts[0]: Trial(0, counts[0], costs[0], ())}, counts[0], ())

    def tune(self, training: TrainingSamples) -> Tuned:
        """Let inner folds choose a setting and C for each number of features, and that number."""
        inner = self._inner_folds(training)
        # One for all rankings, at most three rounds of scores on every fold, one for the last fit.
        steps = Steps("tuning", 3 * len(inner) + 2, self.progress)
        rankings = self._rank_inner(training, inner)
        steps.done()
        tuned = tune(
            [self.scorer(fold, [self.scoring]) for fold in inner],
            rankings,
            self.counts(training),
            default=self.default_setting,
            costs=self.used_costs,
            metric=self.scoring,
            on_split=steps.done,
        )
        steps.end()
        return tuned

    def fit_selected(self, training: TrainingSamples, ranks: Codes, trial: Trial) -> Self:
        """Fit the classifier to the leading features of a ranking."""
        self._begin(training)
        self._keep(trial)
        self.ranking_ = np.asarray(ranks)
        self.columns_ = np.flatnonzero(ranks <= trial.n_features)
        self.scores_ = np.where(ranks <= trial.n_features, trial.n_features + 1.0 - ranks, 0.0)
        prepared = training.prepare(self.corrections, self._predictor_imputer)
        self.preparation_, self.marks_ = prepared.steps, None
        X, samples = self._clipped(prepared.X[:, self.columns_]), training.samples
        if self.add_indicator:
            self.marks_ = MissingMarks.learn(X)
            X = self.marks_.add(X)
        channels = np.unique(samples.channel_of[self.columns_], return_inverse=True)[1]
        model = self._build_predictor(trial.cost, channels)
        self.predictor_ = fit_with_groups(model, X, samples.y, samples.groups)
        return self

    def _keep(self, trial: Trial) -> None:
        number = {"n_features_to_select": trial.n_features}
        self.best_params_ = {**self.settings[trial.setting], **number}
        self.best_cost_, self.best_score_ = trial.cost, trial.mean if trial.scores else np.nan

    def _keep_results(self, tuned: Tuned) -> None:
        """Keep what was tried, in the form of ``GridSearchCV``."""
        params = [
            {**self.settings[trial.setting], "n_features_to_select": trial.n_features}
            | {"C": trial.cost}
            for trial in tuned.trials
        ]
        scores = np.array([trial.scores for trial in tuned.trials])
        mean = np.array([trial.mean for trial in tuned.trials])
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([tried[name] for tried in params]) for name in params[0]},
            **{f"split{fold}_test_score": row for fold, row in enumerate(scores.T)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": np.array([(mean > m).sum() + 1 for m in mean], dtype=np.int32),
        }
        self.best_index_ = [trial is tuned.best for trial in tuned.trials].index(True)

    def counts(self, training: TrainingSamples) -> list[int]:
        """Return the numbers of features that are compared."""
        every = training.samples.channel_of.size
        within = [
            wanted
            for wanted in self.n_features_to_select
            if not isinstance(wanted, Integral) or wanted <= every
        ]
        return sorted({count_features(wanted, every) for wanted in within}) or [every]

    @property
    def used_costs(self) -> list[float]:
        """Values of C that are compared; NaN alone if the classifier has none."""
        has_cost = "C" in self._predictor.get_params()
        return sorted({float(cost) for cost in self.costs}) if has_cost else [float("nan")]

    @property
    def default_setting(self) -> int:
        """Which of the settings the selector has by default, or comes nearest to that."""
        return nearest_setting(self.settings, self._selector.get_params())

    @property
    def harmonizer_(self) -> SiteHarmonizer | None:
        """The fitted harmonizer, if there is one."""
        return self.preparation_.corrections.harmonizer

    @property
    def adjuster_(self) -> Adjuster | None:
        """The fitted adjuster, if there is one."""
        return self.preparation_.corrections.adjuster

    @property
    def name(self) -> str:
        """What readers of cards and pages call it."""
        label = self.label or type(self._selector).__name__
        return f"{label}, {self.columns_.size} features"

    @property
    def _selector(self) -> Any:
        return IDFSMEC(numeric=self.numeric) if self.selector is None else self.selector

    @property
    def _imputer(self) -> Any:
        return ChannelImputer() if self.imputer is None else self.imputer

    @property
    def _predictor_imputer(self) -> Any:
        """What imputes for the classifier; nothing where it takes NaN or sees marks."""
        takes_missing = get_tags(self._predictor).input_tags.allow_nan
        return None if takes_missing or self.add_indicator else self._imputer

    @property
    def _takes_missing(self) -> bool:
        return bool(get_tags(self._selector).input_tags.allow_nan)

    def _inner_folds(self, training: TrainingSamples) -> list[FoldSamples]:
        """Split the training samples; methods with the same folds share their preparation."""
        samples = training.samples
        if not isinstance(self.cv, Integral):
            cv = check_cv(self.cv, samples.y, classifier=not self.numeric)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="The groups parameter is ignored")
                folds = list(cv.split(samples.X, samples.y, samples.subject_names))
            return training.inner_folds(None, lambda: folds)

        def make_splits() -> list[Fold]:
            if self.folds == "site" and samples.sites is None:
                raise InputError("folds by site need sites", argument="sites")
            subjects = samples.subjects_by_value()
            units = np.arange(samples.y.size) if self.folds == "sample" else subjects
            if most_splits(samples.y, units, numeric=self.numeric) < 2:
                raise ValueError(
                    "Inner folds need at least 2 participants (or, without groups, samples) of "
                    "each class, but one class has only 1."
                    if not self.numeric
                    else f"Inner folds need at least {2 * FEWEST_SCORES} participants."
                )
            unit: Any = self.folds
            known = samples.y, subjects, unit, int(self.cv), 0, samples.sites
            return make_inner_folds(*known, numeric=self.numeric)

        return training.inner_folds((self.folds, int(self.cv)), make_splits)

    def prepare_selection(self, training: TrainingSamples) -> None:
        """Prepare what the selector sees, which methods share."""
        if not self._takes_missing:
            training.for_selection.prepare(self.corrections, self._imputer)

    def rank(
        self,
        training: TrainingSamples,
        settings: Sequence[int],
        counts: Sequence[int],
        most_samples: int | None = None,
        **parameters: Any,
    ) -> Codes:
        """Rank the features by the training samples, (n_settings, n_counts, n_features)."""
        every, samples = training.samples.channel_of.size, training.samples
        X = training.values_for(self._takes_missing, self.corrections, self._imputer)
        y, groups = samples.y, samples.groups
        if most_samples is not None and most_samples < y.size:
            drawn = resample(
                np.arange(y.size),
                n_samples=most_samples,
                replace=False,
                random_state=self.random_state,
                stratify=None if self.numeric else y,
            )
            X, y, groups = X[drawn], y[drawn], None if groups is None else groups[drawn]
        # Which features belong to all of them need not be chosen.
        chosen = [k for k in counts if k < every] or [every]
        numbers = [{"n_features_to_select": k} for k in chosen] if self.ranks_per_count else [{}]
        grid = [{**self.settings[place], **number} for place in settings for number in numbers]
        selector = self._build_selector(training, counts, **parameters)
        (ranks,) = rank_grid(selector, X, y, grid, groups=groups)
        ranks = ranks.reshape(len(settings), len(numbers), every)
        places = [min(place, len(numbers) - 1) for place in range(len(counts))]
        return np.asarray(ranks[:, places])

    def _rank_inner(self, training: TrainingSamples, inner: Sequence[FoldSamples]) -> Codes:
        """Rank the features on all inner folds, (n_folds, n_settings, n_counts, n_features).

        A selector that takes NaN sees samples as they are, so that it may share work between inner
        folds; not where sites are harmonized, which is learned in each.
        """
        counts, parameters = self.counts(training), dict(self.inner_parameters or {})
        shared = self._takes_missing and not self.corrections and not self.ranks_per_count
        if not shared or self.inner_samples is not None:
            every = range(len(self.settings))
            rough = {"most_samples": self.inner_samples, **parameters}
            return np.stack([self.rank(fold.training, every, counts, **rough) for fold in inner])
        samples = training.for_selection.samples
        rankings = rank_grid(
            self._build_selector(training, counts, **parameters),
            samples.X,
            samples.y,
            self.settings,
            held_out=[fold.left_out for fold in inner],
            groups=samples.groups,
        )
        return np.repeat(rankings[:, :, None, :], len(counts), axis=2)

    def _build_selector(
        self, training: TrainingSamples, counts: Sequence[int], **parameters: Any
    ) -> Any:
        every = training.samples.channel_of.size
        return with_parameters(
            self._selector,
            # A search for as many features as there are would take long and choose none.
            n_features_to_select=max((k for k in counts if k < every), default=every),
            random_state=self.random_state,
            channels=training.samples.channel_of,
            numeric=self.numeric,
        ).set_params(**parameters)

    def fit_selector(self, training: TrainingSamples, setting: Mapping[str, Any]) -> Any:
        """Fit the selector alone to the training samples, as :meth:`rank` does."""
        selector = self._build_selector(training, self.counts(training), **setting)
        X, samples = (
            training.values_for(self._takes_missing, self.corrections, self._imputer),
            training.samples,
        )
        return fit_with_groups(selector, X, samples.y, samples.groups)

    def scorer(self, fold: FoldSamples, metrics: Sequence[str] | None = None) -> SetScorer:
        """Return what scores sets of features, with a C each, on the samples held out."""
        metrics = metrics or (SCORE_METRICS if self.numeric else METRICS)
        shared = fold.training.scores_of(
            self.corrections,
            self._predictor_imputer,
            self._predictor,
            self.clip,
            self.add_indicator,
            getattr(self, "class_weight", None),
            self.random_state,
            tuple(metrics),
        )
        return SetScorer(fold, self._decide_sets, metrics, self.slope, shared)

    def _decide_sets(self, fold: FoldSamples, sets: Sets) -> list[Floats]:
        """Return decisions on the samples held out with each set of features."""
        training = fold.training.samples
        prepared = fold.training.prepare(self.corrections, self._predictor_imputer)
        # Copies of the columns in use, not of all.
        used = np.unique(np.concatenate([columns for columns, _ in sets]))
        train = self._clipped(prepared.X[:, used])
        test = self._clipped(prepared.steps.apply(fold.held_out)[:, used])
        y, n_classes, results = training.y, training.n_classes, []
        sets = [(np.searchsorted(used, columns), C) for columns, C in sets]
        if hasattr(self._predictor, "decide_sets") and not self.add_indicator:
            model = self._build_predictor(1.0, training.channel_of[used])
            return list(model.decide_sets(train, y, test, sets, n_classes))
        for ranked, C in sets:
            columns = np.sort(ranked)
            seen, unseen = train.take(columns, axis=1), test.take(columns, axis=1)
            if self.add_indicator:
                marks = MissingMarks.learn(seen)
                seen, unseen = marks.add(seen), marks.add(unseen)
            model = self._build_predictor(C, training.channel_of[used[columns]])
            fit_with_groups(model, seen, y, training.groups)
            results.append(_decisions(model, unseen, n_classes))
        return results

    def _build_predictor(self, C: float, channels: Codes) -> Any:
        """Make a fresh classifier with what is known about its columns."""
        return with_parameters(
            self._predictor,
            C=None if np.isnan(C) else C,
            channels=channels,
            class_weight=getattr(self, "class_weight", None),
            random_state=self.random_state,
        )

    def _clipped(self, X: Floats) -> Floats:
        return X if self.clip is None else np.clip(X, -self.clip, self.clip, out=X)

    def _select(self, samples: Samples) -> Floats:
        X = self._clipped(self.preparation_.apply(samples)[:, self.columns_])
        return X if self.marks_ is None else self.marks_.add(X)

    def decide(self, samples: Samples) -> Floats:
        """Return the decisions of each class, (n_samples, n_classes), or predictions, (..., 1)."""
        return _decisions(self.predictor_, self._select(samples), samples.n_classes)

    @available_if(lambda self: hasattr(self.predictor_, "coef_"))  # type: ignore[untyped-decorator]
    def channel_votes(
        self, X: ArrayLike, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> Floats:
        """Return the contribution of each channel to the log odds; NaN where missing.

        Only where the classifier is linear. What was imputed counts for no channel, unless the
        classifier itself says for which. Of shape (n_samples, n_channels) for two classes, else
        (..., n_classes).
        """
        samples = self._samples(X, sites, covariates)
        selected, channels = self._select(samples), self._channel_of[self.columns_]
        if hasattr(self.predictor_, "channel_votes"):
            parts = np.nan_to_num(self.predictor_.channel_votes(selected))
            parts = self.slope * (parts[:, :, None] if parts.ndim == 2 else parts)
            channels = np.unique(channels)
        else:
            coef = self.slope * np.atleast_2d(self.predictor_.coef_)[:, : channels.size]
            parts = selected[:, : channels.size, None] * coef.T
        n_channels = self.channel_names_.size
        votes = np.einsum("nkc,kv->nvc", parts, np.eye(n_channels)[channels])
        votes[~samples.observed] = np.nan
        return np.asarray(votes[:, :, 0] if parts.shape[2] == 1 else votes)

    def for_prediction(self) -> Self:
        """Return a copy for harmonized samples, without what only training needs.

        A model keeps harmonizer and adjuster beside its estimator, and no selector.
        """
        slim = copy.copy(self)
        slim.selector, slim.settings, slim.progress, slim.cv = None, ({},), None, N_INNER_SPLITS
        slim.inner_parameters = slim.harmonizer = slim.adjuster = None
        slim.label = self.label or type(self._selector).__name__
        slim.preparation_ = replace(self.preparation_, corrections=Corrections())
        for name in ("cv_results_", "best_index_"):
            if hasattr(slim, name):
                delattr(slim, name)
        return slim

    @property
    def scoring(self) -> str:
        """What tuning maximises."""
        raise NotImplementedError

    @property
    def _predictor(self) -> Any:
        """The last step, not fitted."""
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class TunedPipeline(SamplesClassifier, TunedSelection):
    """Harmonize, scale, impute, select and classify, tuned by inner folds of subjects.

    Parameters
    ----------
    selector : estimator, optional
        With ``ranking_`` after ``fit`` and a parameter ``n_features_to_select``; by default
        :class:`~idfsmec.IDFSMEC`. One that takes NaN (its tags say so) sees samples as they are,
        others see scaled and imputed ones. ``channels`` and ``random_state`` are set where it has
        them.
    settings : sequence of mappings, default=({},)
        Parameters of the selector to try. The one nearest to the selector's own is the default,
        which tuning leaves only for a clear gain.
    imputer : transformer, optional
        By default :class:`~idfsmec.ChannelImputer`. It sees standardised features.
    classifier : classifier, optional
        By default a linear SVM. ``C``, which is tuned, ``class_weight`` (balanced), ``channels``
        and ``random_state`` are set where it has them.
    n_features_to_select : sequence of int or float, default=(10, 20, ..., 100, 1.0)
        Numbers (or fractions; 1.0 is all) of features to compare. Those beyond what there is are
        left out.
    costs : sequence of float, default=(0.001, 0.01, 0.1, 1.0)
        Values of the classifier's C to compare.
    cv : int or splitter, default=5
        Inner folds; of an integer there are fewer where a class has fewer subjects.
    folds : {"subject", "sample", "site"}, default="subject"
        What inner folds keep together.
    scoring : str, default="subject_neg_log_loss"
        What tuning maximises: one of ``idfsmec.metrics.CRITERIA``.
    harmonizer : SiteHarmonizer, optional
        Brings sites to one location and scale before all else, learned in every fold.
    adjuster : Adjuster, optional
        Takes out what covariates explain, next, likewise.
    add_indicator : bool, default=False
        Whether the classifier also sees which channels of the selected features are missing, and
        the imputed features are 0.
    clip : float or None, default=6.0
        Standardised values further from the mean count as this far for the classifier.
    channels : array-like of shape (n_features,), optional
        As in :class:`~idfsmec.IDFSMEC`.
    class_weight : {"balanced", None}, default="balanced"
        Of the classifier.
    ranks_per_count : bool, default=False
        Whether the selector chooses a number of features together, so that each number needs a
        fit.
    inner_parameters : mapping, optional
        Parameters of the selector on inner folds, where a rougher ranking does.
    inner_samples : int, optional
        Most samples that the selector sees on an inner fold, drawn at random within classes.
    random_state : int, default=0
    label : str, default=""
        What readers of cards and pages call it.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress`; ``print`` will do.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    best_params_ : dict
        The selector's setting and ``n_features_to_select``.
    best_cost_ : float
        NaN if the classifier has no C.
    best_score_ : float
        Mean over the inner folds; optimistic, as the best of many. NaN if nothing was compared.
    cv_results_ : dict of arrays
        What was tried, in the form of ``GridSearchCV``.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature.
    columns_ : ndarray of int
        The features that are selected.
    scores_ : ndarray of shape (n_features,)
        Selected features by their rank, the best the largest; 0 for the others.
    classifier_ : classifier
        Fitted to the selected features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec.prediction import TunedPipeline
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 20)
    >>> X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["F3__a", "F3__b", "Pz__a"])
    >>> X["F3__a"] += 3 * (y == "MDD")
    >>> X.loc[::5, ["F3__a", "F3__b"]] = np.nan
    >>> model = TunedPipeline().fit(X, y, groups=np.arange(40))
    >>> model.best_params_["n_features_to_select"], model.score(X, y) > 0.8
    (3, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "classifier": [HasMethods(["fit"]), None],
        "scoring": [StrOptions(set(CRITERIA))],
        "class_weight": [StrOptions({"balanced"}), None],
    }

    classifier: Any = None
    scoring: str = CRITERION
    class_weight: str | None = "balanced"

    @property
    def slope(self) -> float:
        """Decisions times this are log odds, roughly."""
        return 1.0 if hasattr(self._predictor, "predict_proba") else SVM_SLOPE

    @property
    def class_prior_(self) -> Floats:
        """Classes count alike."""
        return np.full(self.classes_.size, 1 / self.classes_.size)

    @property
    def classifier_(self) -> Any:
        """The classifier, fitted to the selected features."""
        return self.predictor_

    @property
    def _predictor(self) -> Any:
        return LinearSVM() if self.classifier is None else self.classifier


@dataclass(eq=False, repr=False, kw_only=True)
class TunedRegressor(SamplesRegressor, TunedSelection):
    """Harmonize, scale, impute, select and predict a score, tuned by inner folds of subjects.

    Parameters
    ----------
    selector : estimator, optional
        As of :class:`TunedPipeline`; by default :class:`~idfsmec.IDFSMEC`. ``numeric`` is set
        where it has it.
    regressor : regressor, optional
        By default a ridge regression. ``C``, which is tuned, ``channels`` and ``random_state`` are
        set where it has them.
    scoring : str, default="subject_neg_squared_error"
        What tuning maximises: one of ``idfsmec.metrics.SCORE_CRITERIA``.
    settings, imputer, n_features_to_select, costs, cv, folds, harmonizer, adjuster, \
add_indicator, clip, channels, ranks_per_count, inner_parameters, inner_samples, random_state, \
label, progress
        As of :class:`TunedPipeline`. Folds have low and high scores alike.

    Attributes
    ----------
    regressor_ : regressor
        Fitted to the selected features.
    best_params_, best_cost_, best_score_, cv_results_, ranking_, columns_, scores_
        As of :class:`TunedPipeline`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec.prediction import TunedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["F3__a", "F3__b", "Pz__a"])
    >>> bdi = 15 + 6 * X["F3__a"] + rng.normal(size=60)
    >>> X.loc[::5, ["F3__a", "F3__b"]] = np.nan
    >>> model = TunedRegressor().fit(X, bdi, groups=np.arange(60))
    >>> model.best_params_["n_features_to_select"], model.score(X, bdi) > 0.6
    (3, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "regressor": [HasMethods(["fit", "predict"]), None],
        "scoring": [StrOptions(set(SCORE_CRITERIA))],
    }

    regressor: Any = None
    scoring: str = SCORE_CRITERION

    @property
    def regressor_(self) -> Any:
        """The regressor, fitted to the selected features."""
        return self.predictor_

    @property
    def _predictor(self) -> Any:
        return LinearRidge() if self.regressor is None else self.regressor


@dataclass(eq=False, repr=False, kw_only=True)
class WholeEstimator(SamplesEstimator):
    """What :class:`HarmonizedClassifier` and :class:`HarmonizedRegressor` share."""

    _parameter_constraints: ClassVar[Constraints] = {
        "harmonizer": [SiteHarmonizer, None],
        "adjuster": [Adjuster, None],
        "random_state": ["random_state"],
    }

    harmonizer: SiteHarmonizer | None = None
    adjuster: Adjuster | None = None
    random_state: Any = None

    def _fit_whole(self, training: TrainingSamples, estimator: Any, y: NDArray[Any]) -> Any:
        """Return an estimator fitted to all training samples, after corrections."""
        self._begin(training)
        samples = training.samples
        self._columns = list(samples.columns)
        self._corrections, values = samples.learn(self.corrections)
        self.harmonizer_, self.adjuster_ = self._corrections.harmonizer, self._corrections.adjuster
        X = pd.DataFrame(values, columns=self._columns)
        model = with_parameters(estimator, random_state=self.random_state)
        known = {
            name: values
            for name, values in (("sites", samples.sites), ("covariates", samples.covariates))
            if values is not None and has_fit_parameter(model, name)
        }
        model = fit_with_groups(model, X, y, samples.groups, **known)
        # A search is replaced by the estimator it chose.
        return getattr(model, "best_estimator_", model)

    def _corrected(self, samples: Samples) -> pd.DataFrame:
        return pd.DataFrame(samples.corrected(self._corrections), columns=self._columns)


@dataclass(eq=False, repr=False)
class HarmonizedRegressor(SamplesRegressor, WholeEstimator):
    """A regressor of samples as they are, after corrections; see :class:`HarmonizedClassifier`.

    Parameters
    ----------
    regressor : regressor
        Takes a DataFrame with NaN where channels are missing.
    harmonizer, adjuster, random_state
        As of :class:`HarmonizedClassifier`.

    Attributes
    ----------
    regressor_ : regressor
        Fitted; of a search, the estimator that it chose.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.prediction import HarmonizedRegressor, IDFSMECRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> model = HarmonizedRegressor(IDFSMECRegressor())
    >>> model.fit(X, 10 + 5 * X[:, 0], groups=np.arange(60)).score(X, 10 + 5 * X[:, 0]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"regressor": [HasMethods(["fit", "predict"])]}

    regressor: Any

    def fit_samples(self, training: TrainingSamples) -> Self:
        """Fit to all training samples."""
        self.regressor_ = self._fit_whole(training, self.regressor, training.samples.y)
        return self

    def decide(self, samples: Samples) -> Floats:
        """Return the predicted scores, (n_samples, 1)."""
        return np.asarray(self.regressor_.predict(self._corrected(samples)))[:, None]

    def for_prediction(self) -> Any:
        """Return the fitted regressor, which takes corrected samples."""
        return self.regressor_


@dataclass(eq=False, repr=False)
class HarmonizedClassifier(SamplesClassifier, WholeEstimator):
    """A classifier of samples as they are, after sites are brought to one location and scale.

    Parameters
    ----------
    classifier : classifier
        Takes a DataFrame with NaN where channels are missing, such as a ``Pipeline``; it tunes
        itself where it wants to. Subjects are given to ``fit`` where it takes ``groups``, and
        sites where it takes ``sites``.
    harmonizer : SiteHarmonizer, optional
    adjuster : Adjuster, optional
    random_state : int, optional
        Set where the classifier has it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    classifier_ : classifier
        Fitted; of a search, the estimator that it chose.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from idfsmec.prediction import HarmonizedClassifier
    >>> rng = np.random.default_rng(0)
    >>> y, sites = np.repeat([0, 1], 30), np.tile(["Lund", "Oslo"], 30)
    >>> X = rng.normal(size=(60, 3)) + 2 * y[:, None]
    >>> X[sites == "Oslo"] *= 10
    >>> model = HarmonizedClassifier(HistGradientBoostingClassifier(), harmonizer=SiteHarmonizer())
    >>> model = model.fit(X, y, groups=np.arange(60), sites=sites)
    >>> bool(np.mean(model.predict(X, sites=sites) == y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"classifier": [HasMethods(["fit"])]}

    classifier: Any

    def fit_samples(self, training: TrainingSamples) -> Self:
        """Fit to all training samples."""
        labels = np.asarray(training.samples.classes)[training.samples.y]
        self.classifier_ = self._fit_whole(training, self.classifier, labels)
        return self

    @property
    def slope(self) -> float:
        """Decisions count as log odds."""
        return 1.0

    def decide(self, samples: Samples) -> Floats:
        """Return the decisions of each class, (n_samples, n_classes)."""
        values = decision_values(self.classifier_, self._corrected(samples))
        codes = np.searchsorted(self.classes_, self.classifier_.classes_)
        return np.asarray(by_class(values, codes, codes.size))

    def for_prediction(self) -> Any:
        """Return the fitted classifier, which takes harmonized samples."""
        return self.classifier_

    def kept_columns(self) -> Codes:
        """Return the features that a pipeline says it keeps, by default all."""
        names = self._columns
        with suppress(AttributeError, TypeError, ValueError):
            remaining = self.classifier_[:-1].get_feature_names_out(
                np.asarray(names, dtype=object)
            )
            return np.array([names.index(name) for name in remaining], dtype=np.intp)
        return np.arange(len(names))


def fit_with_groups(
    model: Any, X: Any, y: NDArray[Any], groups: ArrayLike | None, **extra: Any
) -> Any:
    """Fit an estimator, with the subjects if it takes groups."""
    searches = isinstance(model, (GridSearchCV, RandomizedSearchCV))
    takes = searches or has_fit_parameter(model, "groups")
    return model.fit(X, y, **({"groups": groups} if takes else {}), **extra)


def _decisions(model: Any, X: Floats, n_classes: int) -> Floats:
    """Return one column of decisions per class, or that of predicted scores."""
    if is_regressor(model):
        return np.asarray(model.predict(X))[:, None]
    codes = np.asarray(model.classes_)
    return np.asarray(by_class(decision_values(model, X), codes, n_classes))


def decision_values(model: Any, X: Any) -> Floats:
    """Return decisions of a fitted classifier: its own, or the logarithms of probabilities."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(np.log(np.maximum(model.predict_proba(X), 1e-3)))
