"""Classifiers by name: linear SVM, ridge, IDFSMECClassifier, boosting on NaN, LDA by pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifier

from idfsmec.prediction import IDFSMECClassifier
from idfsmec.selection.linear_svm import by_class, svm_decisions

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def linear_svm(
    train: Floats, y: Codes, test: Floats, *, C: float, n_classes: int, **options: Any
) -> Floats:
    """Linear SVM on filled data; deterministic."""
    weight = options["class_weight"]
    return svm_decisions(train, y, test, n_classes=n_classes, C=C, class_weight=weight)


def ridge(
    train: Floats, y: Codes, test: Floats, *, C: float, n_classes: int, **options: Any
) -> Floats:
    """Ridge regression on -1 and 1, on filled data; C is the inverse of its penalty."""
    model = RidgeClassifier(alpha=1.0 / C, class_weight=options["class_weight"]).fit(train, y)
    return by_class(model.decision_function(test), model.classes_, n_classes)


def idfsmec(
    train: Floats, y: Codes, test: Floats, *, n_classes: int, channels: Codes, **options: Any
) -> Floats:
    """IDFSMECClassifier, which takes gaps and chooses its own penalty by folds of people."""
    model = IDFSMECClassifier(channels, class_weight=options["class_weight"])
    model.fit(train, y, groups=options["groups"])
    # Its log probabilities: decisions that know how much of a sample was there.
    values = np.log(np.maximum(model.predict_proba(test), 1e-3))
    return by_class(values, model.classes_, n_classes)


def boosting(
    train: Floats, y: Codes, test: Floats, *, n_classes: int, random_state: int, **options: Any
) -> Floats:
    """Gradient boosting, which takes NaN as it is.

    For balanced classes the log prior is taken off the log odds. Sample weights would do much
    the same, but binning weighted samples makes a fit ten times as long.
    """
    model = HistGradientBoostingClassifier(random_state=random_state).fit(train, y)
    values = by_class(model.decision_function(test), model.classes_, n_classes)
    return values - _log_shares(y, n_classes) if options["class_weight"] == "balanced" else values


def pattern_lda(
    train: Floats, y: Codes, test: Floats, *, C: float, n_classes: int, **options: Any
) -> Floats:
    """Linear discriminants of exactly those features that a sample has.

    Means and the covariance within classes come from all samples that have a feature, or both of
    a pair. The covariance is shrunk towards its diagonal, by ``1 / (1 + 10 C)``; a sample's
    discriminant uses its own part of both. A sample without any feature gets the prior alone.
    """
    classes = np.unique(y)
    means = np.zeros((classes.size, train.shape[1]))
    centred = np.array(train)
    for place, one in enumerate(classes):
        own = train[y == one]
        counts = (~np.isnan(own)).sum(axis=0)
        means[place] = np.nansum(own, axis=0) / np.maximum(counts, 1)
        centred[y == one] -= means[place]
    covariance = _shrunk_covariance(centred, 1.0 / (1.0 + 10.0 * C))
    values = np.zeros((test.shape[0], classes.size))
    patterns, which = np.unique(~np.isnan(test), axis=0, return_inverse=True)
    for place, there in enumerate(patterns):
        rows = which.ravel() == place
        directions = np.linalg.solve(covariance[np.ix_(there, there)], means[:, there].T)
        offsets = 0.5 * (means[:, there] * directions.T).sum(axis=1)
        values[rows] = test[np.ix_(rows, there)] @ directions - offsets
    if options["class_weight"] != "balanced":
        values = values + _log_shares(y, n_classes)[classes]
    return by_class(log_softmax(values, axis=1), classes, n_classes)


def _shrunk_covariance(centred: Floats, share: float) -> Floats:
    """Covariances over the samples that have both features, shrunk, and made positive."""
    seen = ~np.isnan(centred)
    values = np.where(seen, centred, 0.0)
    pairs = seen.T.astype(float) @ seen.astype(float)
    covariance = (1.0 - share) * (values.T @ values) / np.maximum(pairs, 1.0)
    variances = (values**2).sum(axis=0) / np.maximum(np.diag(pairs), 1.0)
    np.fill_diagonal(covariance, np.where(variances > 1e-12, variances, 1.0))
    lowest = np.linalg.eigvalsh(covariance)[0]
    # Pairs seen together in different samples need not fit together.
    short = max(0.0, 0.05 * float(np.diag(covariance).mean()) - float(lowest))
    covariance[np.diag_indices_from(covariance)] += short
    return covariance


def _log_shares(y: Codes, n_classes: int) -> Floats:
    """Logarithms of the classes' shares; 0 for a class that is not there."""
    counts = np.bincount(y, minlength=n_classes)
    return np.log(np.where(counts > 0, counts, y.size) / y.size)
