"""IDFSMECCV, and the tuner that it shares with the benchmark.

Inner folds choose how many features, the classifier's cost and a selector's setting, as
:class:`IDFSMECCV` says: the best of many is better by chance alone, so the default stays unless
another is better by some standard errors. The criterion is smooth, the log loss by subject: the
share of some fifty subjects that are classified rightly moves in steps of two percent.

Linear SVMs are solved by Newton's method on the squared hinge loss, ten times as fast as by
liblinear (S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of
large scale linear SVMs", JMLR 6, 2005). Sets of a ranking share their products of features, and a
cost starts from the minimum of the next smaller one.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dposv
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.svm import LinearSVC

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import (
    Constraints,
    HasMethods,
    SequenceOf,
    StrOptions,
    checks_parameters,
    fraction,
    groups_of,
    integer,
    number,
    warn_without_groups,
)
from idfsmec.metrics import CRITERIA, METRICS, SVM_SLOPE, Scores, score_each
from idfsmec.progress import Listener, Steps
from idfsmec.selection import defaults
from idfsmec.selection.base import check_samples, count_features, encode_labels, rank_grid
from idfsmec.selection.idfsmec import GRID, IDFSMEC, ChannelSelector
from idfsmec.solver.scaling import FAR, Scaling
from idfsmec.table.columns import channel_codes, channel_columns

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Columns in the order of their ranks, with a cost each.
Sets = Sequence[tuple[Codes, float]]
#: From training samples, their classes, test samples and sets of columns to the decision values of
#: each set, shape (n_test, n_classes).
Classify = Callable[[Floats, Codes, Floats, Sets], Sequence[Floats]]
#: A ranking (1 = best), how many of the leading features are used, and a cost.
Asked = tuple[Codes, int, float]

#: By how many standard errors over the folds another number of features or cost has to be better
#: than the usual ones.
PAIR_MARGIN = 1.0
#: By how many standard errors over the folds another setting has to be better than the default.
#: The best of the 42 settings of IDFS-MEC is better by one in two folds of five, by chance.
MARGIN = 3.0
# With systems of more unknowns than this, liblinear's iterations cost less.
_MOST_UNKNOWNS = 2000
_MOST_STEPS, _HALVINGS = 60, 30
# What a search has from the selector that it fits last.
_OF_SELECTOR = (
    *("scores_", "ranking_", "support_", "n_iter_", "missingness_"),
    *("channel_names_", "channel_weights_", "feature_weights_"),
)


@dataclass(eq=False, repr=False, kw_only=True)
class IDFSMECCV(ChannelSelector):
    """:class:`IDFSMEC` with ``lam``, ``gamma`` and the number of features chosen by inner folds.

    All folds, all ``lams`` and all channels are solved in one batch. A linear SVM on the leading
    features, standardised and imputed by the training part and cut at six deviations, then scores
    them on the held-out part. First the number of features and the cost are chosen together, with
    the default ``lam`` and ``gamma``: 20 features and C = 0.01, or the nearest values, unless
    another pair is better by one standard error over the folds. Another ``lam`` and ``gamma`` must
    be better by three. The benchmark chooses in the same way.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        As in :class:`IDFSMEC`.
    lams, gammas : sequence of float
        The grid.
    n_features_to_select : sequence of int or float, default=(10, 20, ..., 100)
        Numbers (or fractions) of features to try; those beyond what there is are left out.
    costs : sequence of float, default=(0.001, 0.01, 0.1, 1.0)
        Costs C of the linear SVM to try.
    cv : int, splitter or iterable, default=5
        Inner folds. With an integer and ``groups``, folds are stratified and keep groups
        together; there are fewer where a class has too few samples or groups.
    imputer : transformer, optional
        Imputer of missing values, such as ``ChannelImputer()``, which ``idfsmec select --tune``
        and the benchmark use; fitted on the training part of each fold, with ``channels`` set
        where it has them. By default the training mean.
    class_weight : {"balanced", None}, default="balanced"
        Of the linear SVM.
    scoring : str, default="subject_neg_log_loss"
        One of ``idfsmec.metrics.CRITERIA``; those by subject take ``groups`` as subjects.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` when the work begins and whenever a part
        of it is done; ``print`` will do.
    channel_loss, lam_scale, standardize, missing_correction, channel_weighting, \
missing_indicator, tol, max_iter, device
        As in :class:`IDFSMEC`.

    Attributes
    ----------
    best_params_ : dict
        ``lam``, ``gamma`` and ``n_features_to_select``.
    best_cost_ : float
        The chosen cost.
    best_score_ : float
        Mean over the inner folds; optimistic, as the best of many.
    best_index_ : int
        Place in ``cv_results_``.
    cv_results_ : dict of arrays
        What was tried, in the form of ``GridSearchCV``: parameters (``C`` is the cost), score of
        each split, mean, std and rank.
    selector_ : IDFSMEC
        Fitted with the best parameters on all samples.
    scores_, ranking_, support_, channel_names_, channel_weights_, feature_weights_, n_iter_, \
missingness_, effects_
        Those of ``selector_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X[::3, :10] = np.nan
    >>> channels = [0] * 10 + [1] * 10 + [2] * 10
    >>> search = IDFSMECCV(channels, n_features_to_select=[2, 5, 10]).fit(X, y)
    >>> sorted(search.best_params_), search.best_score_ > -0.3
    (['gamma', 'lam', 'n_features_to_select'], True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **GRID,
        "n_features_to_select": [SequenceOf(integer(1), fraction())],
        "costs": [SequenceOf(number(0))],
        "cv": ["cv_object"],
        "imputer": [HasMethods(["fit", "transform"]), None],
        "class_weight": [StrOptions({"balanced"}), None],
        "scoring": [StrOptions(set(CRITERIA))],
    }

    lams: Sequence[float] = defaults.LAMS
    gammas: Sequence[float] = defaults.GAMMAS
    n_features_to_select: Sequence[int | float] = defaults.N_FEATURES
    costs: Sequence[float] = defaults.SVM_COSTS
    cv: Any = defaults.N_INNER_SPLITS
    imputer: BaseEstimator | None = None
    class_weight: str | None = "balanced"
    scoring: str = defaults.CRITERION
    progress: Listener | None = None

    @checks_parameters
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Choose parameters by inner folds, then fit on all samples.

        Parameters
        ----------
        X, y, groups
            As of :meth:`IDFSMEC.fit`, but no path. All samples of a subject are kept on one side
            of every inner fold.

        Returns
        -------
        self : IDFSMECCV
        """
        checked, labels = check_samples(self, X, y, ensure_min_samples=2)
        codes, self.classes_ = encode_labels(labels)
        groups = groups_of(X, groups)
        if groups is None:
            warn_without_groups(type(self).__name__, stacklevel=4)
        splits = self._folds(checked, codes, groups)
        settings = [{"lam": lam, "gamma": gamma} for lam in self.lams for gamma in self.gammas]
        selector = IDFSMEC(self.channels, **self._options())
        everyone = np.arange(codes.size)
        # One for all rankings, at most three rounds of scores on every fold, one for the last fit.
        steps = Steps("tuning", 3 * len(splits) + 2, self.progress)
        held_out = [np.setdiff1d(everyone, train) for train, _ in splits]
        rankings = rank_grid(selector, X, y, settings, held_out=held_out, groups=groups)
        steps.done()
        subjects = everyone if groups is None else groups
        d = checked.shape[1]
        wanted = [k for k in self.n_features_to_select if not isinstance(k, Integral) or k <= d]
        with one_blas_thread():
            tuned = tune(
                self._scorers(checked, codes, subjects, splits),
                rankings,
                sorted({count_features(k, d) for k in wanted}) or [d],
                default=nearest_setting(settings, IDFSMEC().get_params()),
                costs=sorted({float(cost) for cost in self.costs}),
                metric=self.scoring,
                on_split=steps.done,
            )
        self._store(tuned, settings)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* got no groups")  # said above
            self.selector_ = selector.set_params(**self.best_params_).fit(X, y, groups)
        for name in _OF_SELECTOR:
            setattr(self, name, getattr(self.selector_, name))
        steps.end()
        return self

    @property
    def effects_(self) -> pd.DataFrame:
        """Direction and size of every feature, by subject."""
        return self.selector_.effects_

    def _store(self, tuned: Tuned, settings: list[dict[str, float]]) -> None:
        params = [
            {**settings[trial.setting], "n_features_to_select": trial.n_features, "C": trial.cost}
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
        self.best_params_ = dict(params[self.best_index_])
        self.best_cost_, self.best_score_ = self.best_params_.pop("C"), tuned.best.mean

    def _folds(self, X: Floats, codes: Codes, groups: Codes | None) -> list[tuple[Codes, Codes]]:
        folds = self.cv
        if isinstance(folds, Integral):
            subjects = np.arange(codes.size) if groups is None else groups
            fewest = min(np.unique(subjects[codes == code]).size for code in np.unique(codes))
            if fewest < 2:
                raise ValueError(
                    "Inner folds need at least 2 participants (or, without groups, samples) of "
                    "each class, but one class has only 1."
                )
            n_splits = min(int(folds), fewest)
            folds = n_splits if groups is None else StratifiedGroupKFold(n_splits)
        return list(check_cv(folds, codes, classifier=True).split(X, codes, groups))

    def _scorers(
        self, X: Floats, codes: Codes, subjects: Codes, splits: list[tuple[Codes, Codes]]
    ) -> list[SplitScorer]:
        """Standardise, impute and clip each split, learning from its training part alone."""
        how: dict[str, Any] = {"n_classes": self.classes_.size, "class_weight": self.class_weight}
        classify, scorers = functools.partial(svm_decisions, **how), []
        for train, test in splits:
            scaling = Scaling.learn(X[train])
            sides = [scaling.apply(X[train]), scaling.apply(X[test])]
            if self.imputer is None:
                sides = [np.nan_to_num(side) for side in sides]
            else:
                imputer: Any = clone(self.imputer)
                if "channels" in imputer.get_params():
                    names = getattr(self, "feature_names_in_", None)
                    _, columns = channel_columns(self.channels, X.shape[1], names)
                    imputer.set_params(channels=channel_codes(columns))
                imputer.fit(sides[0])
                sides = [np.asarray(imputer.transform(side)) for side in sides]
            seen, unseen = (np.clip(side, -FAR, FAR) for side in sides)
            split = Split(seen, codes[train], unseen, codes[test], subjects[test])
            scorers.append(SplitScorer(split, classify, [self.scoring]))
        return scorers


@dataclass(frozen=True)
class Trial:
    """A setting (its place in the list), a number of features, a cost; scores on each split."""

    setting: int
    n_features: int
    cost: float
    scores: tuple[float, ...]

    @functools.cached_property
    def mean(self) -> float:
        """Mean over the splits on which the score is defined; minus infinity without any."""
        values = np.array(self.scores)
        return float(np.nanmean(values)) if np.isfinite(values).any() else -np.inf

    def is_better(self, other: Trial, margin: float = 0.0) -> bool:
        """Whether the gain over another trial is above so many standard errors over the splits."""
        gains = np.array(self.scores) - np.array(other.scores)
        gains = gains[np.isfinite(gains)]
        if gains.size == 0:
            return self.mean > other.mean
        # With one split there is no standard error, and any gain counts.
        error = gains.std(ddof=1) / math.sqrt(gains.size) if gains.size > 1 else 0.0
        return bool(gains.mean() > margin * error)


@dataclass(frozen=True)
class Tuned:
    """The chosen number of features, a trial for every number, and all trials."""

    picks: dict[int, Trial]
    n_features: int
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.picks[self.n_features]


class Split(NamedTuple):
    """Training and test samples as a classifier sees them: standardised, imputed, clipped."""

    train: Floats
    y_train: Codes
    test: Floats
    y_test: Codes
    subjects_test: Codes


@dataclass
class SplitScorer:
    """Score feature sets on one split; a set that comes twice is fitted once."""

    # A function is called whenever scores are computed: many splits of a large table need not be
    # held at once.
    split: Split | Callable[[], Split]
    classify: Classify
    metrics: Sequence[str] = METRICS
    slope: float = SVM_SLOPE  # turns decisions into log odds
    _scores: dict[tuple[bytes, float], Scores] = field(default_factory=dict)

    def score_all(self, asked: Sequence[Asked]) -> list[Scores]:
        """Score the leading features of many rankings, which share work."""
        columns = [np.flatnonzero(ranking <= k) for ranking, k, _ in asked]
        keys = [(own.tobytes(), cost) for own, (_, _, cost) in zip(columns, asked, strict=True)]
        # A set has the scores of the order in which it came first: others round otherwise.
        new = {key: at for at, key in enumerate(keys) if key not in self._scores}
        if new:
            split = self.split() if callable(self.split) else self.split
            sets = []
            for at in new.values():
                ranking, _, cost = asked[at]
                order = np.argsort(ranking[columns[at]], kind="stable")
                sets.append((columns[at][order], cost))
            decisions = np.stack(self.classify(split.train, split.y_train, split.test, sets))
            about = split.y_test, split.subjects_test, self.metrics, self.slope
            self._scores.update(zip(new, score_each(decisions, *about), strict=True))
        return [self._scores[key] for key in keys]


def middle_cost(costs: Sequence[float]) -> float:
    """Return the cost that stands for all where only one is tried."""
    return costs[(len(costs) - 1) // 2]


def nearest_setting(settings: Sequence[Mapping[str, Any]], default: Mapping[str, Any]) -> int:
    """Return the place of the setting that is a selector's default, or the first nearest to it."""

    def distance(value: Any, usual: Any) -> float:
        if not (isinstance(value, Real) and isinstance(usual, Real)):
            return float(value != usual)
        a, b = float(value), float(usual)  # compared by their ratio, if it has a logarithm
        return abs(math.log(a / b)) if min(a, b) > 0 else abs(a - b)

    distances = [
        sum(distance(value, default.get(key)) for key, value in setting.items())
        for setting in settings
    ]
    return distances.index(min(distances))


def tune(
    scorers: Sequence[SplitScorer],
    rankings: NDArray[np.intp],
    n_features: Sequence[int],
    *,
    default: int = 0,
    costs: Sequence[float] = defaults.SVM_COSTS,
    metric: str = defaults.CRITERION,
    on_split: Callable[[], object] | None = None,
) -> Tuned:
    """Choose a number of features, a cost and a setting by their scores on inner folds.

    ``rankings`` have shape (n_splits, n_settings, n_features), or (n_splits, n_settings, n_counts,
    n_features) where they depend on the number of features.
    """
    rankings = rankings[:, :, None, :] if rankings.ndim == 3 else rankings
    per_count = rankings.shape[2] > 1

    def attempt(wanted: list[tuple[int, int, int]]) -> list[Trial]:
        """Score a setting, a number of features and a cost, each by its place, on all splits."""
        by_split = []
        for scorer, ranks in zip(scorers, rankings, strict=True):
            asked = [(ranks[s, k * per_count], n_features[k], costs[c]) for s, k, c in wanted]
            by_split.append([scores[metric] for scores in scorer.score_all(asked)])
            if on_split:
                on_split()
        return [
            Trial(setting, n_features[count], costs[cost], tuple(values))
            for (setting, count, cost), *values in zip(wanted, *by_split, strict=True)
        ]

    pairs = [(count, cost) for count in range(len(n_features)) for cost in range(len(costs))]
    tried = attempt([(default, *pair) for pair in pairs])
    trials = list(tried)
    usual_count = nearest_setting([{"k": k} for k in n_features], {"k": defaults.USUAL_N_FEATURES})
    usual_cost = nearest_setting([{"C": C} for C in costs], {"C": defaults.USUAL_COST})
    chosen = pairs.index((usual_count, usual_cost))
    mean = operator.attrgetter("mean")
    leader = tried.index(max(tried, key=mean))  # max() keeps the first of equals
    if tried[leader].is_better(tried[chosen], PAIR_MARGIN):
        chosen = leader
    best, pair = tried[chosen], pairs[chosen]
    compared = attempt([(n, *pair) for n in range(rankings.shape[1]) if n != default])
    trials += compared
    leading = max(compared, key=mean, default=best)
    if leading.is_better(best, MARGIN):
        tried = attempt([(leading.setting, *other) for other in pairs if other != pair])
        trials += tried
        tried.insert(chosen, leading)
    # A curve over numbers of features has the best cost for each.
    picks = {
        k: max(tried[count * len(costs) : (count + 1) * len(costs)], key=mean)
        for count, k in enumerate(n_features)
    }
    picks[best.n_features] = tried[chosen]
    return Tuned(picks, best.n_features, tuple(trials))


def svm_decisions(
    train: Floats,
    y: Codes,
    test: Floats,
    sets: Sets,
    *,
    n_classes: int,
    class_weight: str | None = None,
) -> list[Floats]:
    """Return decisions, shape (n_test, n_classes), of a linear SVM on each set of columns."""
    decisions: list[Floats] = [np.empty(0)] * len(sets)
    counts = np.bincount(y)
    two = counts.size == 2 and bool(counts.all())
    balanced = class_weight == "balanced" and two
    roots = np.sqrt(y.size / (2.0 * counts) if balanced else np.ones(counts.size))[y]
    signs = np.where(y == 1, roots, -roots)
    for longest, by_size in _nested_sets(sets):
        gram, test_columns = np.empty(0), test[:, longest]
        # Otherwise by liblinear in the primal, which is deterministic, too.
        newton = two and min(y.size, longest.size + 1) <= _MOST_UNKNOWNS
        if newton:
            rows = np.vstack([np.ones(y.size), train[:, longest].T]) * signs
            gram = rows @ rows.T
        for k, places in by_size.items():
            costs = [sets[place][1] for place in places]
            path = _newton_path(rows[: k + 1], gram, roots, costs) if newton else {}
            for place, C in zip(places, costs, strict=True):
                w, seen = path.get(C), test_columns[:, :k]
                if w is None:
                    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, max_iter=2000)
                    # Data and parameters are sound; checking them takes longer than a fit.
                    with config_context(assume_finite=True, skip_parameter_validation=True):
                        svm.fit(train[:, longest[:k]], y)
                    values = seen @ svm.coef_.T + svm.intercept_
                    values = values[:, 0] if values.shape[1] == 1 else values
                    decisions[place] = by_class(values, svm.classes_, n_classes)
                else:
                    decisions[place] = by_class(seen @ w[1:] + w[0], np.arange(2), n_classes)
    return decisions


def by_class(values: Floats, classes: Codes, n_classes: int) -> Floats:
    """Return one column of decision values per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions


def _nested_sets(sets: Sets) -> list[tuple[Codes, dict[int, list[int]]]]:
    """Longest sets of columns, with the places of those that are its first columns, by size."""
    nested: list[tuple[Codes, dict[int, list[int]]]] = []
    for place in sorted(range(len(sets)), key=lambda i: -sets[i][0].size):
        columns = sets[place][0]
        for longest, by_size in nested:
            if np.array_equal(longest[: columns.size], columns):
                by_size.setdefault(columns.size, []).append(place)
                break
        else:
            nested.append((columns, {columns.size: [place]}))
    return nested


def _newton_path(
    rows: Floats, gram: Floats, roots: Floats, costs: Sequence[float]
) -> dict[float, Floats | None]:
    """Minimise ``|w|^2 / 2 + C sum_i max(0, r_i - x_i . w)^2`` for every C."""
    k, n = rows.shape
    basis = None
    if k > n:  # w is a combination of samples: n unknowns do
        basis, rows = np.linalg.qr(rows)
        gram = rows @ rows.T
    samples, gram = np.ascontiguousarray(rows.T), gram[:k, :k]
    path: dict[float, Floats | None] = {}
    start = np.zeros(rows.shape[0])
    for C in sorted(set(costs)):
        w = _minimise(rows, samples, gram, roots, C, start)
        path[C] = w if w is None or basis is None else basis @ w
        start = start if w is None else w
    return path


def _minimise(
    rows: Floats, samples: Floats, gram: Floats, roots: Floats, C: float, start: Floats
) -> Floats | None:
    """Take Newton steps, halved until the loss falls; None where they do not end."""
    w, margins = start, start @ rows
    value, inside = _loss(w, margins, roots, C)
    target_all = rows @ roots
    for _ in range(_MOST_STEPS):
        outside = ~inside
        if 2 * np.count_nonzero(outside) <= roots.size:  # all without those outside
            out = samples[outside]
            products, target = gram - out.T @ out, target_all - roots[outside] @ out
        else:
            inner = samples[inside]
            products, target = inner.T @ inner, roots[inside] @ inner
        products.reshape(-1)[:: products.shape[0] + 1] += 0.5 / C
        # Called directly: scipy's checks of its arguments take longer than the solution.
        _, goal, failed = dposv(products.T, target, overwrite_a=True)
        if failed:
            return None
        goal_margins, share = goal @ rows, 1.0
        for _ in range(_HALVINGS):
            trial = w + share * (goal - w) if share < 1 else goal
            at = margins + share * (goal_margins - margins) if share < 1 else goal_margins
            lower, now = _loss(trial, at, roots, C)
            if lower <= value * (1.0 + 1e-14):
                break
            share *= 0.5
        else:
            return None
        w, margins, value = trial, at, lower
        if share == 1.0 and np.array_equal(now, inside):
            return w
        inside = now
    return None


def _loss(w: Floats, margins: Floats, roots: Floats, C: float) -> tuple[float, NDArray[np.bool_]]:
    """The loss, and which samples lie inside the margin."""
    short = np.maximum(roots - margins, 0.0)
    return 0.5 * float(w @ w) + C * float(short @ short), short > 0
