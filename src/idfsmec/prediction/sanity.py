"""Simple baselines, and classifiers that are tuned by C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import MultiTaskElasticNet, RidgeClassifier
from sklearn.utils import check_random_state

from idfsmec._validation import Constraints, fraction, integer
from idfsmec.metrics import Codes, Floats
from idfsmec.selection.base import ScoreSelector
from idfsmec.selection.baselines.embedded import regression_data
from idfsmec.solver.scaling import Scaling


class ColumnOrder(ScoreSelector):
    """Keep the columns in their order, for methods that use all features."""

    def _rank(self, X: Floats, y: Codes) -> None:
        self._set_ranking(np.zeros(X.shape[1]))


@dataclass(kw_only=True, eq=False, repr=False)
class PresetOrder(ScoreSelector):
    """Keep an order that was made elsewhere, such as on all samples before splitting."""

    _parameter_constraints: ClassVar[Constraints] = {"ranks": ["array-like"]}

    ranks: ArrayLike

    def _rank(self, X: Floats, y: Codes) -> None:
        self._set_order(np.argsort(self.ranks, kind="stable"))


@dataclass(kw_only=True, eq=False, repr=False)
class RandomOrder(ScoreSelector):
    """Order features at random, as a baseline without selection."""

    _parameter_constraints: ClassVar[Constraints] = {"random_state": ["random_state"]}

    random_state: Any = None

    def _rank(self, X: Floats, y: Codes) -> None:
        self._set_ranking(check_random_state(self.random_state).random_sample(X.shape[1]))


class AnovaF(ScoreSelector):
    """Order features by F, of an analysis of variance or of the regression of a score on each.

    Constant features come last.
    """

    def _rank(self, X: Floats, y: NDArray[Any]) -> None:
        scaling = Scaling.learn(X)
        if self.numeric:
            squares = (scaling.apply(X).T @ (y - y.mean()) / (y.size * y.std())) ** 2
            rest = np.maximum(1 - squares, np.finfo(np.float64).eps)
            self._set_ranking(np.where(scaling.constant, -1.0, squares / rest * (y.size - 2)))
            return
        sizes = np.bincount(y)[:, None]
        # As scikit-learn's f_classif, which loses all digits of what varies little far from 0.
        # Squares of standardised values sum up to n; those of the classes' means are between them.
        sums = (np.eye(sizes.size)[:, y] @ X - sizes * scaling.mean) / scaling.unit
        between = (sums**2 / sizes).sum(axis=0)
        within = np.maximum(y.size - between, y.size * np.finfo(np.float64).eps)
        scores = between / within * (y.size - sizes.size) / (sizes.size - 1)
        self._set_ranking(np.where(scaling.constant, -1.0, np.nan_to_num(scores, nan=-1.0)))


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticNetOrder(ScoreSelector):
    """Order features by their coefficients in an elastic net, one row for all classes or a score.

    Features without a coefficient follow by their correlation with the residuals. ``alpha`` is
    a share of the least penalty at which all features vanish.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [fraction()],
        "l1_ratio": [fraction()],
    }

    alpha: float = 0.1
    l1_ratio: float = 0.9

    def _rank(self, X: Floats, y: NDArray[Any]) -> None:
        Z, Y, constant = regression_data(X, y)
        largest = np.linalg.norm(Z.T @ Y, axis=1).max() / y.size
        penalty = self.alpha * max(largest, np.finfo(np.float64).tiny) / self.l1_ratio
        model = MultiTaskElasticNet(penalty, l1_ratio=self.l1_ratio, fit_intercept=False, tol=1e-3)
        coef = model.fit(Z, Y).coef_.T
        scores, pull = (np.linalg.norm(part, axis=1) for part in (coef, Z.T @ (Y - Z @ coef)))
        self._set_ranking(scores, np.lexsort([-pull, -scores, constant]))


@dataclass(kw_only=True, eq=False, repr=False)
class ForestImportance(ScoreSelector):
    """Order features by the impurity importance of a random forest."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_estimators": [integer(1)],
        "max_samples": [integer(1)],
        "random_state": ["random_state"],
    }

    n_estimators: int = 200
    max_samples: int = 256  # of each tree; those of a subject are alike
    random_state: Any = None

    def _rank(self, X: Floats, y: NDArray[Any]) -> None:
        options = {
            "max_samples": min(self.max_samples, y.size),
            "random_state": self.random_state,
        }
        forest: Any
        if self.numeric:  # a third of the features at each split, as Breiman
            forest = RandomForestRegressor(self.n_estimators, max_features=1 / 3, **options)
        else:
            options["class_weight"] = "balanced"
            forest = RandomForestClassifier(self.n_estimators, **options)
        far = 1e30  # trees take single precision
        self._set_ranking(forest.fit(np.clip(X, -far, far), y).feature_importances_)


class RidgeByCost(RidgeClassifier):
    """Ridge regression on -1 and 1; C is the inverse of its penalty, so that it is tuned."""

    def __init__(self, C: float = 1.0, class_weight: Any = None) -> None:
        super().__init__(class_weight=class_weight)
        self.C = C

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> Self:
        """Fit with the penalty 1 / C."""
        self.alpha = 1.0 / self.C
        super().fit(X, y, sample_weight)
        return self


class Boosting(HistGradientBoostingClassifier):
    """Gradient boosting, which takes NaN; balanced by its decisions, not by sample weights.

    Trees have 8 leaves in place of 31, and features 31 bins in place of 255: subjects are few, and
    more of either only takes longer. For balanced classes the log prior is taken off the decisions
    instead of weighing samples: binning weighted samples makes a fit ten times as long.
    """

    def __init__(self, class_weight: str | None = None, random_state: int | None = None) -> None:
        super().__init__(max_bins=31, max_leaf_nodes=8, random_state=random_state)
        self.class_weight = class_weight

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit without weights, and remember the shares of the classes."""
        balance, self.class_weight = self.class_weight, None
        missing = np.isnan(X).all(axis=0)  # scikit-learn finds no bins for such columns
        try:
            super().fit(np.where(missing, 0.0, X), y)
        finally:
            self.class_weight = balance
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        self.log_prior_ = np.log(counts / counts.sum())
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Log odds, or one column per class up to a constant."""
        values = np.asarray(super().decision_function(X))
        if self.class_weight != "balanced":
            return values
        prior = np.diff(self.log_prior_)[0] if values.ndim == 1 else self.log_prior_
        return np.asarray(values - prior)
