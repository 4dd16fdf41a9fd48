"""Gradient boosting on gaps, the classifier behind one of the sanity lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from idfsmec.selection.linear_svm import by_class

Floats = NDArray[np.float64]


def boosting_decisions(
    train: Floats,
    y: NDArray[np.intp],
    test: Floats,
    *,
    n_classes: int,
    class_weight: str | None,
    seed: int,
) -> Floats:
    """Fit gradient boosting, which takes NaN as it is, and give its decision values.

    For balanced classes the log prior is taken off the log odds. Sample weights would do much
    the same, but binning weighted samples makes a fit ten times as long.
    """
    boosting = HistGradientBoostingClassifier(random_state=seed).fit(train, y)
    values = by_class(boosting.decision_function(test), boosting.classes_, n_classes)
    if class_weight == "balanced":
        counts = np.bincount(y, minlength=n_classes)
        values = values - np.log(np.where(counts > 0, counts, y.size) / y.size)
    return values
