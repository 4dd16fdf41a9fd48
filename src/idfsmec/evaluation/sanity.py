"""Sanity lines: simple selectors that a serious method has to beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.utils import check_random_state

from idfsmec._parameters import Constraints, integer
from idfsmec.selection import CompleteSelector
from idfsmec.solver.scaling import Scaling

# How many columns ANOVA looks at together.
_COLUMNS = 64


class ColumnOrder(CompleteSelector):
    """Keep the columns in their order: for lines that use all features."""

    def __init__(self, *, n_features_to_select: int | float = 20) -> None:
        self.n_features_to_select = n_features_to_select

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        self._set_ranking(np.zeros(X.shape[1]))


class RandomOrder(CompleteSelector):
    """Order features by chance: what k features are worth without any selection."""

    _parameter_constraints: ClassVar[Constraints] = {"random_state": ["random_state"]}

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        self._set_ranking(check_random_state(self.random_state).random_sample(X.shape[1]))


class AnovaF(CompleteSelector):
    """Order features by the F statistic of a one-way analysis of variance; constant ones last."""

    def __init__(self, *, n_features_to_select: int | float = 20) -> None:
        self.n_features_to_select = n_features_to_select

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        scores = np.full(X.shape[1], -1.0)
        varied = np.flatnonzero(~Scaling.learn(X).constant)
        # A few columns at a time, because all are copied.
        for part in np.array_split(varied, max(1, varied.size // _COLUMNS)):
            if part.size:
                scores[part] = np.nan_to_num(f_classif(X[:, part], y)[0], nan=-1.0)
        self._set_ranking(scores)


class ForestImportance(CompleteSelector):
    """Order features by the impurity importance of a random forest."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_estimators": [integer(1)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        n_estimators: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_estimators = n_estimators
        self.random_state = random_state

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        forest = RandomForestClassifier(
            self.n_estimators, class_weight="balanced", random_state=self.random_state
        )
        self._set_ranking(forest.fit(X, y).feature_importances_)
