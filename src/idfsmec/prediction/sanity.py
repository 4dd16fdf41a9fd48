"""Sanity lines: simple selectors that a serious method has to beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from idfsmec._validation import Constraints, integer
from idfsmec.selection import CompleteSelector
from idfsmec.solver.scaling import Scaling

# Of a tree, as scikit-learn draws it.
_LARGEST_SEED = np.iinfo(np.int32).max


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
        scaling, sizes = Scaling.learn(X), np.bincount(y)[:, None]
        # As scikit-learn's f_classif, which loses all digits of what varies little far from 0.
        # Squares of standardised values sum up to n; those of the classes' means are between them.
        sums = (np.eye(sizes.size)[:, y] @ X - sizes * scaling.mean) / scaling.unit
        between = (sums**2 / sizes).sum(axis=0)
        within = np.maximum(y.size - between, y.size * np.finfo(np.float64).eps)
        scores = between / within * (y.size - sizes.size) / (sizes.size - 1)
        self._set_ranking(np.where(scaling.constant, -1.0, np.nan_to_num(scores, nan=-1.0)))


class ForestImportance(CompleteSelector):
    """Order features by the impurity importance of a random forest.

    Each tree sees samples drawn with replacement, as many of one class as of another on average.
    People have many samples that are alike: some more trees that see a part of them rank as well
    as trees that see all, in a third of the time (docs/studies/speed.md).

    Parameters
    ----------
    n_features_to_select : int or float, default=20
    n_estimators : int, default=100
        Trees.
    max_samples : int, default=256
        Samples that a tree draws; as many as there are, if these are fewer.
    n_further : int, default=100
        Trees more, where each draws fewer samples than there are.
    random_state : int, RandomState or None

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> y = (X[:, 3] > 0).astype(int)
    >>> int(ForestImportance(n_estimators=20, random_state=0).fit(X, y).ranking_[3])
    1
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_estimators": [integer(1)],
        "max_samples": [integer(1)],
        "n_further": [integer(0)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        n_estimators: int = 100,
        max_samples: int = 256,
        n_further: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.n_further = n_further
        self.random_state = random_state

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        # Trees and draws are those of RandomForestClassifier(class_weight="balanced"), which takes
        # as long around small trees as in them. What squares of indicators of classes lose by a
        # split is what the Gini impurity loses, and a regression asks less about its target.
        rng = check_random_state(self.random_state)
        chances = np.cumsum(compute_sample_weight("balanced", y))
        chances /= chances[-1]
        n_drawn = min(y.size, self.max_samples)
        n_trees = self.n_estimators + (self.n_further if n_drawn < y.size else 0)
        far = np.finfo(np.float32).max
        values = np.clip(X, -far, far).astype(np.float32)  # once, as trees take them
        indicators = np.eye(y.max() + 1)[y][:, 1 if y.max() == 1 else 0 :]  # of two, one tells all
        importance, tree = np.zeros(X.shape[1]), DecisionTreeRegressor(max_features="sqrt")
        # Parameters and data are sound, and they are the same ones again and again.
        with config_context(skip_parameter_validation=True, assume_finite=True):
            tree.random_state = own = np.random.RandomState()
            for seed in [rng.randint(_LARGEST_SEED) for _ in range(n_trees)]:
                own.seed(seed)  # making one for each tree takes a hundred times as long
                drawn = own.random_sample(n_drawn)
                times = np.bincount(chances.searchsorted(drawn, side="right"), minlength=y.size)
                # A sample that was not drawn weighs nothing, and trees leave it out.
                weights = times.astype(np.float64)
                own.seed(seed)
                tree.fit(values, indicators, sample_weight=weights, check_input=False)
                importance += tree.feature_importances_
        self._set_ranking(importance)
