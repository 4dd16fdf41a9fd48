"""PatternLDA: a linear discriminant of exactly those features that a sample has."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    StrOptions,
    checks_parameters,
    number,
)

Array = NDArray[np.float64]


class PatternLDA(ClassifierMixin, CheckedEstimator):
    """Linear discriminants of exactly those features that a sample has.

    Means and the covariance within classes come from all samples that have a feature, or both of
    a pair. The covariance is shrunk towards its diagonal; a sample's discriminant uses its own
    part of both. A sample without any feature gets the prior alone.

    Parameters
    ----------
    C : float, default=0.1
        The covariance is shrunk by ``1 / (1 + 10 C)``.
    class_weight : dict, "balanced" or None, default="balanced"
        ``"balanced"``: classes are alike probable; None: as frequent as in training.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    means_ : ndarray of shape (n_classes, n_features)
    covariance_ : ndarray of shape (n_features, n_features)
    priors_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(100) % 2
    >>> X = rng.normal(size=(100, 4)) + 2 * y[:, None]
    >>> X[rng.random((100, 4)) < 0.3] = np.nan
    >>> PatternLDA().fit(X[:50], y[:50]).score(X[50:], y[50:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "C": [number(0)],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(self, C: float = 0.1, class_weight: dict | str | None = "balanced") -> None:
        self.C = C
        self.class_weight = class_weight

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn means, and the covariance within classes; NaN where something is missing."""
        checked, labels = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.means_ = np.zeros((self.classes_.size, checked.shape[1]))
        centred = np.array(checked)
        for code in range(self.classes_.size):
            own = checked[codes == code]
            counts = (~np.isnan(own)).sum(axis=0)
            self.means_[code] = np.nansum(own, axis=0) / np.maximum(counts, 1)
            centred[codes == code] -= self.means_[code]
        self.covariance_ = _shrunk_covariance(centred, 1.0 / (1.0 + 10.0 * self.C))
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        self.priors_ = weights * np.bincount(codes) / (weights @ np.bincount(codes))
        return self

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of the classes' probabilities, (n_samples, n_classes)."""
        check_is_fitted(self, "covariance_")
        checked = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        values = np.zeros((len(checked), self.classes_.size))
        patterns, which = np.unique(~np.isnan(checked), axis=0, return_inverse=True)
        for place, there in enumerate(patterns):
            rows, means = which.ravel() == place, self.means_[:, there]
            directions = np.linalg.solve(self.covariance_[np.ix_(there, there)], means.T)
            offsets = 0.5 * (means * directions.T).sum(axis=1)
            values[rows] = checked[np.ix_(rows, there)] @ directions - offsets
        return np.asarray(log_softmax(values + np.log(self.priors_), axis=1))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each sample."""
        said = self.predict_log_proba(X)
        return np.asarray(self.classes_[said.argmax(axis=1)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _shrunk_covariance(centred: Array, share: float) -> Array:
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
    return np.asarray(covariance)
