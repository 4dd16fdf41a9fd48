"""The classifiers behind the selection: a linear SVM on filled data, boosting on gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import LinearSVC

Floats = NDArray[np.float64]


def svm_decisions(
    train: Floats,
    y: NDArray[np.intp],
    test: Floats,
    *,
    n_classes: int,
    C: float,
    class_weight: str | None,
) -> Floats:
    """Fit a linear SVM (squared hinge loss) and give its decision values.

    The primal problem is solved by Newton's method, which is deterministic and, for these
    shapes, faster than the dual (n = 1485 samples, 50 features, C = 1: 0.016 s against 1.1 s).

    Returns
    -------
    ndarray of shape (n_test, n_classes)
        A class that training lacks gets a value below all others.
    """
    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-4, max_iter=2000)
    svm.fit(train, y)
    return _by_class(svm.decision_function(test), svm.classes_, n_classes)


def boosting_decisions(
    train: Floats,
    y: NDArray[np.intp],
    test: Floats,
    *,
    n_classes: int,
    class_weight: str | None,
    seed: int,
) -> Floats:
    """Fit gradient boosting, which takes NaN as it is, and give its decision values."""
    boosting = HistGradientBoostingClassifier(class_weight=class_weight, random_state=seed)
    boosting.fit(train, y)
    return _by_class(boosting.decision_function(test), boosting.classes_, n_classes)


def _by_class(values: Floats, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """Give one column per class, whether training had it or not."""
    columns = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if classes.size == n_classes:
        return columns
    # A class that training lacks is never predicted.
    decisions = np.full((values.shape[0], n_classes), columns.min(initial=0.0) - 1.0)
    decisions[:, classes] = columns
    return decisions
