"""Sanity lines: simple selectors that a serious method has to beat."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.utils import check_random_state

from idfsmec.selection._base import RankingSelector


class ColumnOrder(RankingSelector):
    """Keep the columns in their order: for lines that use all features."""

    def __init__(self, *, n_features_to_select: int | float | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Rank the columns as they come."""
        X, _, _ = self._validate_complete(X, y)
        self._set_ranking(np.zeros(X.shape[1]))
        return self


class RandomOrder(RankingSelector):
    """Order features by chance: what k features are worth without any selection."""

    def __init__(
        self,
        *,
        n_features_to_select: int | float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Draw an order."""
        X, _, _ = self._validate_complete(X, y)
        self._set_ranking(check_random_state(self.random_state).random_sample(X.shape[1]))
        return self


class AnovaF(RankingSelector):
    """Order features by the F statistic of a one-way analysis of variance."""

    def __init__(self, *, n_features_to_select: int | float | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Compute F per feature; constant features come last."""
        X, codes, _ = self._validate_complete(X, y)
        scores = np.full(X.shape[1], -1.0)
        varied = np.ptp(X, axis=0) > 0
        if varied.any():
            scores[varied] = np.nan_to_num(f_classif(X[:, varied], codes)[0], nan=-1.0)
        self._set_ranking(scores)
        return self


class ForestImportance(RankingSelector):
    """Order features by the impurity importance of a random forest."""

    def __init__(
        self,
        *,
        n_features_to_select: int | float | None = None,
        n_estimators: int = 100,
        random_state: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Grow the forest."""
        X, codes, _ = self._validate_complete(X, y)
        forest = RandomForestClassifier(
            self.n_estimators, class_weight="balanced", random_state=self.random_state
        )
        self._set_ranking(forest.fit(X, codes).feature_importances_)
        return self
