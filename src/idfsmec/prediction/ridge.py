"""Ridge regression of a score, solved for many sets of features and penalties at once.

It is for scores what :mod:`idfsmec.prediction.svm` is for classes, with the same cost C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._validation import CheckedEstimator, Constraints, number, validate_params
from idfsmec.metrics import Floats
from idfsmec.prediction.svm import Sets


@dataclass(eq=False, repr=False)
class LinearRidge(RegressorMixin, CheckedEstimator):
    """Linear regression with a squared penalty; C weighs the errors, so that it is tuned.

    Minimises ``||w||^2 / 2 + C ||t - X w - b||^2`` for the standardised score t, so that a cost
    means the same in any unit of the score.

    Parameters
    ----------
    C : float, default=1.0
        Cost of squared errors.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _parameter_constraints: ClassVar[Constraints] = {"C": [number(0)]}

    C: float = 1.0

    @validate_params
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to samples without missing values."""
        checked, score = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        every = np.arange(checked.shape[1])
        ((self.coef_, self.intercept_),) = _solve(checked, score, [(every, self.C)])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Score of each sample."""
        check_is_fitted(self)
        checked = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(checked @ self.coef_ + self.intercept_)

    def decide_sets(
        self, train: Floats, y: Floats, test: Floats, sets: Sets, n_classes: int
    ) -> list[Floats]:
        """Return the predictions (n_test, 1) of a fit on each set of columns, at its cost."""
        solutions = _solve(train, y, sets)
        return [
            (test[:, columns] @ coef + intercept)[:, None]
            for (columns, _), (coef, intercept) in zip(sets, solutions, strict=True)
        ]


def _solve(train: Floats, y: Floats, sets: Sets) -> list[tuple[Floats, float]]:
    """Return coefficients and intercept of each set of columns; costs share a decomposition."""
    mean, spread = train.mean(axis=0), float(y.std()) or 1.0
    centred, target = train - mean, (y - y.mean()) / spread
    parts: dict[bytes, tuple[Floats, Floats, Floats]] = {}
    solutions = []
    for columns, C in sets:
        key = columns.tobytes()
        if key not in parts:
            X = centred[:, columns]
            wide = X.shape[1] > X.shape[0]
            sizes, vectors = eigh(X @ X.T if wide else X.T @ X)
            left = vectors.T @ (target if wide else X.T @ target)
            parts[key] = np.maximum(sizes, 0.0), X.T @ vectors if wide else vectors, left
        sizes, vectors, left = parts[key]
        coef = spread * (vectors @ (left / (sizes + 0.5 / C)))
        solutions.append((coef, float(y.mean() - mean[columns] @ coef)))
    return solutions


class BoostedScore(HistGradientBoostingRegressor):
    """Gradient boosting of a score, with trees as small as those of classes; takes NaN."""

    def __init__(self, random_state: int | None = None) -> None:
        super().__init__(max_bins=31, max_leaf_nodes=8, random_state=random_state)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> Self:
        """Fit; columns without any value count as 0."""
        values: NDArray[np.float64] = np.asarray(X, dtype=np.float64)
        super().fit(np.where(np.isnan(values).all(axis=0), 0.0, values), y, sample_weight)
        return self
