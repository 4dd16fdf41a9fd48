"""IDFSMECCV: redundancy weight, channel weighting and number of features by inner folds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import indexable

from idfsmec._parallel import one_blas_thread
from idfsmec._validation import (
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
from idfsmec.metrics import CRITERIA
from idfsmec.progress import Listener, Steps
from idfsmec.selection import defaults
from idfsmec.selection.base import (
    count_features,
    encode_labels,
    estimator,
    parameter,
    rank_grid,
)
from idfsmec.selection.idfsmec import GAMMA, IDFSMEC, LAM, ChannelSelector
from idfsmec.selection.tuning import (
    Split,
    SplitScorer,
    Tuned,
    nearest_setting,
    svm_decisions,
    tune,
)
from idfsmec.solver.scaling import FAR, Scaling
from idfsmec.table.columns import channel_codes, channel_columns

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@estimator
class IDFSMECCV(ChannelSelector):
    """:class:`IDFSMEC` with ``lam``, ``gamma`` and the number of features chosen by inner folds.

    All folds, all ``lams`` and all channels are solved in one batch. A linear SVM on the leading
    features, standardised and imputed by the training part and cut at six deviations, then scores
    them on the held-out part. The number of features and the cost are chosen together, with
    ``lam`` and ``gamma`` as :class:`IDFSMEC` has them: 20 features and C = 0.01, or what is
    nearest, unless another pair is better by one standard error over the folds; another ``lam``
    and ``gamma`` have to be by three. :mod:`idfsmec.selection.tuning` is the benchmark's, too.

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
        What stands in for missing values, such as ``ChannelImputer()``, which ``idfsmec select
        --tune`` and the benchmark have; fitted on the training part of each fold, with
        ``channels`` set where it has them. By default the training mean.
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
        The cost chosen along.
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

    lams: Sequence[float] = parameter(SequenceOf(LAM), default=defaults.LAMS)
    gammas: Sequence[float] = parameter(SequenceOf(GAMMA), default=defaults.GAMMAS)
    n_features_to_select: Sequence[int | float] = parameter(
        SequenceOf(integer(1), fraction()), default=defaults.N_FEATURES
    )
    costs: Sequence[float] = parameter(SequenceOf(number(0)), default=defaults.SVM_COSTS)
    cv: Any = parameter("cv_object", default=defaults.N_INNER_SPLITS)
    imputer: BaseEstimator | None = parameter(HasMethods(["fit", "transform"]), None, default=None)
    class_weight: str | None = parameter(StrOptions({"balanced"}), None, default="balanced")
    scoring: str = parameter(StrOptions(set(CRITERIA)), default=defaults.CRITERION)
    progress: Listener | None = parameter(callable, None, default=None)

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose parameters by inner folds, then fit on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Subjects: all samples of one are kept on one side of every inner fold. By default
            what an index of X named ``subject`` says; with neither, a warning says once that
            subjects may be split.

        Returns
        -------
        self : IDFSMECCV
        """
        checked, labels = self._check_samples(X, y)
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
        subjects = everyone if groups is None else np.unique(groups, return_inverse=True)[1]
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
        self.selector_ = selector.set_params(**self.best_params_).fit(X, y, groups)
        self.scores_, self.ranking_ = self.selector_.scores_, self.selector_.ranking_
        self.support_, self.n_iter_ = self.selector_.support_, self.selector_.n_iter_
        self.channel_names_ = self.selector_.channel_names_
        self.channel_weights_ = self.selector_.channel_weights_
        self.feature_weights_ = self.selector_.feature_weights_
        self.missingness_ = self.selector_.missingness_
        steps.end()
        return self

    @property
    def effects_(self) -> pd.DataFrame:
        """Direction and size of every feature, by subject."""
        return self.selector_.effects_

    def _store(self, tuned: Tuned, settings: list[dict[str, float]]) -> None:
        params = [
            {
                **settings[trial.setting],
                "n_features_to_select": trial.n_features,
                "C": trial.cost,
            }
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

    def _folds(
        self, X: Array, codes: Indices, groups: ArrayLike | None
    ) -> list[tuple[Indices, Indices]]:
        folds = self.cv
        _, groups = indexable(X, groups)
        if isinstance(folds, Integral):
            names = np.arange(codes.size) if groups is None else np.asarray(groups)
            fewest = min(np.unique(names[codes == one]).size for one in np.unique(codes))
            if fewest < 2:
                raise ValueError(
                    "Inner folds need at least 2 subjects (or, without groups, samples) of each "
                    "class, but one class has only 1."
                )
            n_splits = min(int(folds), fewest)
            folds = n_splits if groups is None else StratifiedGroupKFold(n_splits)
        return list(check_cv(folds, codes, classifier=True).split(X, codes, groups))

    def _scorers(
        self,
        X: Array,
        codes: Indices,
        subjects: Indices,
        splits: list[tuple[Indices, Indices]],
    ) -> list[SplitScorer]:
        """Standardise, impute and clip each split, learning from its training part alone."""
        how: dict[str, Any] = {"n_classes": self.classes_.size, "class_weight": self.class_weight}
        scorers = []
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
            scorers.append(SplitScorer(split, partial(svm_decisions, **how), [self.scoring]))
        return scorers
