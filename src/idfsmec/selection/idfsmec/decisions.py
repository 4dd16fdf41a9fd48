"""Decision values of any classifier of scikit-learn, for the tuner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from idfsmec.metrics import SVM_SLOPE
from idfsmec.selection.linear_svm import by_class

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: No classifier is surer than that, so that one bold mistake does not decide a log loss.
_LEAST_PROBABILITY = 1e-3


@dataclass(frozen=True)
class Decisions:
    """Log probabilities of any classifier of scikit-learn, at its own settings, or decisions."""

    classifier: BaseEstimator
    classes: NDArray

    @property
    def slope(self) -> float:
        """What makes log odds of them."""
        return 1.0 if hasattr(self.classifier, "predict_proba") else SVM_SLOPE

    def __call__(self, train: Array, y: Indices, test: Array, cost: float) -> Array:
        """Train and ask; the cost is not used."""
        model: Any = clone(self.classifier).fit(train, self.classes[y])
        places = np.searchsorted(self.classes, model.classes_)
        if hasattr(model, "predict_proba"):
            values = np.log(np.maximum(model.predict_proba(test), _LEAST_PROBABILITY))
        elif hasattr(model, "decision_function"):
            values = model.decision_function(test)
        else:
            values = (model.predict(test)[:, None] == model.classes_).astype(float)
        return by_class(values, places, self.classes.size)
