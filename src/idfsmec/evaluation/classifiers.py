"""Classifiers by name: linear SVM, ridge, IDFSMECClassifier, boosting on NaN.

For each, ``make_NAME`` gives a classifier that can be kept, and ``NAME`` trains and asks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from idfsmec.prediction import IDFSMECClassifier
from idfsmec.selection.linear_svm import LinearSVM, by_class, svm_decisions

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def make_svm(*, C: float, class_weight: Any, **_: Any) -> LinearSVC:
    """Linear SVM with the squared hinge loss, in the primal."""
    return LinearSVC(C=C, class_weight=class_weight, dual=False)


def svm(
    train: Floats, y: Codes, test: Floats, *, C: float, n_classes: int, **options: Any
) -> Floats:
    """Linear SVM on filled data; deterministic."""
    weight = options["class_weight"]
    return svm_decisions(train, y, test, n_classes=n_classes, C=C, class_weight=weight)


def many_svms(
    train: Floats,
    y: Codes,
    test: Floats,
    sets: Sequence[tuple[Codes, float]],
    *,
    n_classes: int,
    **options: Any,
) -> list[Floats]:
    """Give the linear SVM's decisions for many sets of columns and costs."""
    return LinearSVM(n_classes, options["class_weight"]).many(train, y, test, sets)


def make_ridge(*, C: float, class_weight: Any, **_: Any) -> RidgeClassifier:
    """Ridge regression on -1 and 1; C is the inverse of its penalty."""
    return RidgeClassifier(alpha=1.0 / C, class_weight=class_weight)


def ridge(train: Floats, y: Codes, test: Floats, *, n_classes: int, **options: Any) -> Floats:
    """Ridge regression on filled data."""
    model = make_ridge(**options).fit(train, y)
    return by_class(model.decision_function(test), model.classes_, n_classes)


def make_idfsmec(*, channels: Codes, class_weight: Any, **_: Any) -> IDFSMECClassifier:
    """IDFSMECClassifier, which takes gaps and chooses its own penalty by folds of people."""
    return IDFSMECClassifier(channels, class_weight=class_weight)


def idfsmec(
    train: Floats, y: Codes, test: Floats, *, n_classes: int, groups: Codes, **options: Any
) -> Floats:
    """Log probabilities of IDFSMECClassifier, which know how much of a sample was there."""
    model = make_idfsmec(**options).fit(train, y, groups=groups)
    values = np.log(np.maximum(model.predict_proba(test), 1e-3))
    return by_class(values, model.classes_, n_classes)


def make_boosting(*, random_state: int, **_: Any) -> HistGradientBoostingClassifier:
    """Gradient boosting, which takes NaN as it is; classes count by their shares.

    Trees have 8 leaves in place of 31, and features 31 bins in place of 255: people are few, and
    more of either only takes longer.
    """
    return HistGradientBoostingClassifier(max_bins=31, max_leaf_nodes=8, random_state=random_state)


def boosting(train: Floats, y: Codes, test: Floats, *, n_classes: int, **options: Any) -> Floats:
    """Gradient boosting.

    For balanced classes the log prior is taken off the log odds. Sample weights would do much
    the same, but binning weighted samples makes a fit ten times as long.
    """
    model = make_boosting(**options).fit(train, y)
    values = by_class(model.decision_function(test), model.classes_, n_classes)
    if options["class_weight"] != "balanced":
        return values
    counts = np.bincount(y, minlength=n_classes)
    return np.asarray(values - np.log(np.where(counts > 0, counts, y.size) / y.size))
