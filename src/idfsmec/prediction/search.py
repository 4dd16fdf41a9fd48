"""IDFSMECCV: IDFS-MEC with its parameters chosen by inner folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from idfsmec._validation import (
    Constraints,
    HasMethods,
    SequenceOf,
    StrOptions,
    fraction,
    group_names,
    integer,
    number,
    validate_params,
    warn_without_groups,
)
from idfsmec.metrics import CRITERIA, SCORE_CRITERIA
from idfsmec.prediction.pipeline import TunedPipeline, TunedRegressor
from idfsmec.progress import Listener
from idfsmec.selection import IDFSMEC, defaults
from idfsmec.selection.base import check_samples, encode_labels
from idfsmec.selection.idfsmec import GRID, ChannelSelector

# What a search has from the selector that it fits last.
_OF_SELECTOR = (
    *("scores_", "ranking_", "support_", "n_iter_", "missingness_"),
    *("channel_names_", "channel_weights_", "feature_weights_"),
)


@dataclass(eq=False, repr=False, kw_only=True)
class IDFSMECCV(ChannelSelector):
    """:class:`IDFSMEC` with ``lam``, ``gamma`` and the number of features chosen by inner folds.

    This is :class:`~idfsmec.prediction.TunedPipeline` as a selector.

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
    n_features_to_select : sequence of int or float, default=(10, 20, ..., 100, 1.0)
        Numbers (or fractions) of features to try; those beyond what there is are left out.
    costs : sequence of float, default=(0.001, 0.01, 0.1, 1.0)
        Costs C of the linear SVM to try.
    cv : int, splitter or iterable, default=5
        Inner folds. With an integer and ``groups``, folds are stratified and keep groups
        together; there are fewer where a class has too few samples or groups.
    imputer : transformer, optional
        Imputer of missing values, fitted on the training part of each fold; ``channels`` are set
        where it has them. By default :class:`~idfsmec.ChannelImputer`.
    class_weight : {"balanced", None}, default="balanced"
        Of the linear SVM.
    numeric : bool, default=False
        Whether y is a score; a ridge regression is then in place of the SVM.
    scoring : str, optional
        One of ``idfsmec.metrics.CRITERIA``, by default ``"subject_neg_log_loss"``, or with a score
        of ``SCORE_CRITERIA``, by default ``"subject_neg_squared_error"``; those by subject take
        ``groups`` as subjects.
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
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X[::3, :10] = np.nan
    >>> channels = [0] * 10 + [1] * 10 + [2] * 10
    >>> search = IDFSMECCV(channels, n_features_to_select=[2, 5, 10])
    >>> search = search.fit(X, y, groups=np.arange(len(y)))
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
        "scoring": [StrOptions({*CRITERIA, *SCORE_CRITERIA}), None],
    }

    lams: Sequence[float] = defaults.LAMS
    gammas: Sequence[float] = defaults.GAMMAS
    n_features_to_select: Sequence[int | float] = defaults.N_FEATURES
    costs: Sequence[float] = defaults.SVM_COSTS
    cv: Any = defaults.N_INNER_SPLITS
    imputer: BaseEstimator | None = None
    class_weight: str | None = "balanced"
    scoring: str | None = None
    progress: Listener | None = None

    @validate_params
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
        labels = check_samples(self, X, y, ensure_min_samples=2)[1]
        selector = IDFSMEC(self.channels, numeric=self.numeric, **self._options())
        options: dict[str, Any] = {
            "settings": [{"lam": lam, "gamma": gam} for lam in self.lams for gam in self.gammas],
            "imputer": self.imputer,
            "n_features_to_select": self.n_features_to_select,
            "costs": self.costs,
            "cv": self.cv,
            "channels": self.channels,
            "progress": self.progress,
        }
        usual = defaults.SCORE_CRITERION if self.numeric else defaults.CRITERION
        options["scoring"] = self.scoring or usual
        pipeline: TunedPipeline | TunedRegressor
        if self.numeric:
            pipeline = TunedRegressor(selector, **options)
        else:
            self.classes_ = encode_labels(labels)[1]
            pipeline = TunedPipeline(selector, class_weight=self.class_weight, **options)
        if group_names(X, groups) is None:
            warn_without_groups(type(self).__name__)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* got no groups")  # said above
            pipeline.tune_on(X, y, groups)
            self.selector_ = selector.set_params(**pipeline.best_params_).fit(X, y, groups)
        for name in ("cv_results_", "best_index_", "best_params_", "best_cost_", "best_score_"):
            setattr(self, name, getattr(pipeline, name))
        for name in _OF_SELECTOR:
            setattr(self, name, getattr(self.selector_, name))
        return self

    @property
    def effects_(self) -> pd.DataFrame:
        """Direction and size of every feature, by subject."""
        effects: pd.DataFrame = self.selector_.effects_
        return effects
