"""IDFSMECCV: price of redundancy, channel weighting and number of features by inner folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid, StratifiedGroupKFold, check_cv
from sklearn.utils import Tags, indexable
from sklearn.utils.validation import check_is_fitted

from idfsmec._jobs import one_blas_thread
from idfsmec.selection._base import RankingSelector
from idfsmec.selection._judging import Split, judge_by, judge_fold
from idfsmec.selection.idfsmec.estimator import IDFSMEC, PreparedTable
from idfsmec.selection.idfsmec.path import GAMMAS, LAMS, IDFSPath, weigh_path
from idfsmec.solver import fold_moments, solve_channels, table_moments

Array = NDArray[np.float64]

_OF_THE_SELECTOR = (
    "scores_",
    "ranking_",
    "support_",
    "channel_weights_",
    "feature_weights_",
    "n_iter_",
)


class IDFSMECCV(RankingSelector):
    """:class:`IDFSMEC` with ``lam``, ``gamma`` and the number of features chosen by inner folds.

    All folds, all ``lams`` and all channels are solved in one batch, and further ``gammas`` and
    numbers of features cost only the judging classifier. The choice equals that of
    ``GridSearchCV`` over a pipeline of :class:`IDFSMEC`, ``StandardScaler``, ``SimpleImputer``
    and the classifier.

    Parameters
    ----------
    channels : array-like of shape (n_features,), optional
        As in :class:`IDFSMEC`.
    lams, gammas : sequence of float
        The grid.
    n_features : sequence of int or float
        Numbers (or fractions) of features to try; those beyond what there is are left out.
    cv : int, splitter or iterable, default=5
        Inner folds. With an integer and ``groups``, folds are stratified and keep groups
        together.
    classifier : classifier, optional
        Judges the selections; by default ``LinearSVC()``. It sees standardised features with gaps
        filled by the training mean.
    scoring : str or callable, default="balanced_accuracy"
    n_jobs : int, optional
        Processes over folds for the judging.
    standardize, missing_correction, channel_weighting, missing_indicator, tol, max_iter, device
        As in :class:`IDFSMEC`.

    Attributes
    ----------
    best_params_ : dict
        ``lam``, ``gamma`` and ``n_features_to_select``.
    best_score_ : float
    best_index_ : int
    cv_results_ : dict of arrays
        As of ``GridSearchCV``: parameters, score of each split, mean, std and rank.
    selector_ : IDFSMEC
        Fitted with the best parameters on all samples.
    scores_, ranking_, support_, channel_names_, channel_weights_, feature_weights_, n_iter_
        Those of ``selector_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X[::3, :10] = np.nan
    >>> search = IDFSMECCV([0] * 10 + [1] * 10 + [2] * 10, n_features=[2, 5, 10]).fit(X, y)
    >>> sorted(search.best_params_), search.best_score_ > 0.9
    (['gamma', 'lam', 'n_features_to_select'], True)
    """

    def __init__(
        self,
        channels: ArrayLike | None = None,
        *,
        lams: Sequence[float] = LAMS,
        gammas: Sequence[float] = GAMMAS,
        n_features: Sequence[int | float] = (5, 10, 20, 50, 100),
        cv: Any = 5,
        classifier: BaseEstimator | None = None,
        scoring: Any = "balanced_accuracy",
        n_jobs: int | None = None,
        standardize: bool = True,
        missing_correction: str | None = "ipw",
        channel_weighting: bool = True,
        missing_indicator: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        device: str | None = None,
    ) -> None:
        self.channels = channels
        self.lams = lams
        self.gammas = gammas
        self.n_features = n_features
        self.cv = cv
        self.classifier = classifier
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.missing_correction = missing_correction
        self.channel_weighting = channel_weighting
        self.missing_indicator = missing_indicator
        self.tol = tol
        self.max_iter = max_iter
        self.device = device

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> IDFSMECCV:
        """Choose parameters by inner folds, then fit on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Subjects: all samples of one are kept on one side of every inner fold.

        Returns
        -------
        self : IDFSMECCV
        """
        selector = self._selector()
        table = selector._prepare(X, y, None)
        self._adopt_input(selector)
        counts = _feature_counts(self.n_features, table.X.shape[1])
        splits = self._splits(table, groups)
        with one_blas_thread():
            paths = self._paths(table, splits, selector)
        self._judge(table, splits, paths, counts)
        selector.set_params(**self.best_params_).fit(X, y)
        self.selector_ = selector
        for name in _OF_THE_SELECTOR:
            setattr(self, name, getattr(selector, name))
        return self

    def _selector(self) -> IDFSMEC:
        shared = set(IDFSMEC().get_params()) & set(self.get_params())
        selector = IDFSMEC(**{name: getattr(self, name) for name in shared})
        for name, values in (("lam", self.lams), ("gamma", self.gammas)):
            if len(values) == 0:
                raise ValueError(f"{name}s is empty; give at least one value to try.")
            for value in values:
                selector.set_params(**{name: value})._options()
        return selector

    def _adopt_input(self, selector: IDFSMEC) -> None:
        for name in ("n_features_in_", "feature_names_in_", "classes_", "channel_names_"):
            if hasattr(selector, name):
                setattr(self, name, getattr(selector, name))

    def _splits(self, table: PreparedTable, groups: ArrayLike | None) -> list[Split]:
        folds = self.cv
        if groups is not None and isinstance(folds, int):
            folds = StratifiedGroupKFold(folds)
        _, groups = indexable(table.X, groups)
        return list(
            check_cv(folds, table.codes, classifier=True).split(table.X, table.codes, groups)
        )

    def _paths(
        self, table: PreparedTable, splits: list[Split], selector: IDFSMEC
    ) -> list[IDFSPath]:
        """Rankings of every fold for the whole grid."""
        source = (table.X, table.codes, table.n_classes, table.columns)
        everything = np.arange(table.codes.size)
        if all(np.array_equal(np.union1d(*split), everything) for split in splits):
            moments = fold_moments(*source, [held_out for _, held_out in splits])
        else:  # folds that use a part of the samples only
            moments = [
                table_moments(table.X[train], table.codes[train], *source[2:])
                for train, _ in splits
            ]
        fits = solve_channels(moments, [float(lam) for lam in self.lams], table.options)
        return [
            weigh_path(fits, fold, table.columns, self.lams, self.gammas, selector)
            for fold in range(len(splits))
        ]

    def _judge(
        self,
        table: PreparedTable,
        splits: list[Split],
        paths: list[IDFSPath],
        counts: list[int],
    ) -> None:
        judge = judge_by(self.classifier, self.scoring, self.classes_)
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(judge_fold)(table.X, table.codes, split, path.rankings, counts, judge)
            for split, path in zip(splits, paths, strict=True)
        )
        self.cv_results_ = _results(self.lams, self.gammas, counts, np.array(scores))
        self.best_index_ = int(self.cv_results_["rank_test_score"].argmin())
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selector_")
        return self.selector_.support_


def _feature_counts(wanted: Iterable[int | float], n_features: int) -> list[int]:
    """Numbers of features to try, ascending, none beyond what there is."""
    probe = IDFSMEC()
    counts = set()
    for one in wanted:
        if isinstance(one, int | np.integer) and not isinstance(one, bool) and one > n_features:
            continue
        counts.add(probe.set_params(n_features_to_select=one)._n_to_select(n_features))
    return sorted(counts) or [n_features]


def _results(
    lams: Sequence[float], gammas: Sequence[float], counts: list[int], scores: Array
) -> dict[str, Any]:
    """``cv_results_`` in the order of ``ParameterGrid``: gamma, lam, number of features."""
    grid = {"gamma": list(gammas), "lam": list(lams), "n_features_to_select": counts}
    params = list(ParameterGrid(grid))
    flat = scores.reshape(scores.shape[0], -1)
    mean = flat.mean(axis=0)
    order = np.array([int((mean > one).sum()) + 1 for one in mean], dtype=np.int32)
    return {
        "params": params,
        **{f"param_{name}": np.array([one[name] for one in params]) for name in grid},
        **{f"split{fold}_test_score": row for fold, row in enumerate(flat)},
        "mean_test_score": mean,
        "std_test_score": flat.std(axis=0),
        "rank_test_score": order,
    }
