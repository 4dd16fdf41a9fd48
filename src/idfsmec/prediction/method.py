"""A whole method, fitted: scale, fill, keep the selected features, classify, calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.utils.metaestimators import available_if

from idfsmec.selection.svm import by_class
from idfsmec.solver import Scaling
from idfsmec.table.columns import observed_channels

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# How unwilling held-out people find calibration to leave slope and shares as they are.
_STIFFNESS = 1.0


@dataclass(frozen=True)
class GapMarks:
    """For each set of columns that go missing together, a column that says so.

    Attributes
    ----------
    columns : ndarray of shape (n_marks,)
        A column of each set.
    shares : ndarray of shape (n_marks,)
        In how many training samples it is missing; taken off, so that marks are centred.
    """

    columns: Indices
    shares: Array

    @classmethod
    def learn(cls, X: Array) -> GapMarks:
        """Find the different sets of gaps that training has."""
        gone = np.isnan(X)
        first = np.unique(gone, axis=1, return_index=True)[1]
        first = np.sort(first[gone[:, first].any(axis=0)])
        return cls(first, gone[:, first].mean(axis=0))

    def add(self, X: Array) -> Array:
        """Fill with 0, the training mean, and add the marks."""
        return np.hstack([np.nan_to_num(X), np.isnan(X[:, self.columns]) - self.shares])


@dataclass(frozen=True, eq=False, repr=False)
class FittedMethod:
    """What a method has learned: a classifier of incomplete samples that can be kept.

    Made by :class:`idfsmec.evaluation.TunedMethod`.

    Attributes
    ----------
    name : str
        Method, filler, classifier and number of features, for readers.
    classes_ : ndarray of shape (n_classes,)
    scaling : Scaling
        Units of the features.
    filler : transformer or None
        What fills gaps; None if the classifier takes them.
    marks : GapMarks or None
        What tells the classifier about gaps.
    columns_ : ndarray of shape (n_selected,)
        Which features it sees.
    scores_ : ndarray of shape (n_features,)
        Selected ones by their rank, the best the largest; 0 for the others.
    classifier : classifier
        Of classes 0 ... n_classes - 1.
    channel_of : ndarray of shape (n_features,)
    slope : float
    offsets : ndarray of shape (n_classes,)
        ``slope * decisions + offsets`` are log probabilities up to a constant.
    """

    name: str
    classes_: NDArray
    scaling: Scaling
    filler: Any
    marks: GapMarks | None
    columns_: Indices
    scores_: Array
    classifier: Any
    channel_of: Indices
    slope: float
    offsets: Array

    @property
    def class_prior_(self) -> Array:
        """Classes count alike."""
        return np.full(self.classes_.size, 1 / self.classes_.size)

    @property
    def n_features_in_(self) -> int:
        """Features of a sample as given."""
        return int(self.scores_.size)

    def _seen(self, X: ArrayLike) -> Array:
        values = self.scaling.apply(np.asarray(X, dtype=np.float64))
        if self.filler is not None:
            values = np.asarray(self.filler.transform(values))
        values = values[:, self.columns_]
        return values if self.marks is None else self.marks.add(values)

    def decisions(self, X: ArrayLike) -> Array:
        """Decisions of the classifier on every class, (n_samples, n_classes)."""
        seen, model = self._seen(X), self.classifier
        log_proba = not hasattr(model, "decision_function")
        values = np.asarray(
            model.predict_log_proba(seen) if log_proba else model.decision_function(seen)
        )
        return by_class(values, np.asarray(model.classes_), self.classes_.size)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, (n_samples, n_classes)."""
        return np.asarray(softmax(self.slope * self.decisions(X) + self.offsets, axis=1))

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each sample."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(lambda self: hasattr(self.classifier, "coef_"))
    def channel_votes(self, X: ArrayLike) -> Array:
        """What the selected features of each channel add to the log odds; NaN where missing.

        Only where the classifier is linear. What was filled is nobody's vote, unless the
        classifier itself says whose.

        Returns
        -------
        ndarray of shape (n_samples, n_channels) for two classes, else (..., n_classes)
        """
        given, own = np.asarray(X, dtype=np.float64), self.channel_of[self.columns_]
        seen = self._seen(given)
        if hasattr(self.classifier, "channel_votes"):
            parts, own = np.nan_to_num(self.classifier.channel_votes(seen)), np.unique(own)
            parts = self.slope * (parts[:, :, None] if parts.ndim == 2 else parts)
        else:
            coef = self.slope * np.atleast_2d(self.classifier.coef_)[:, : own.size]
            parts = seen[:, : own.size, None] * coef.T
        n_channels = int(self.channel_of.max()) + 1
        votes = np.einsum("nkc,kv->nvc", parts, np.eye(n_channels)[own])
        columns = [np.flatnonzero(self.channel_of == one) for one in range(n_channels)]
        votes[~observed_channels(given, columns)] = np.nan
        return votes[:, :, 0] if parts.shape[2] == 1 else votes


def calibrate(
    decisions: Array, codes: Indices, weights: Array, slope: float
) -> tuple[float, Array]:
    """Slope and offsets that make held-out decisions log probabilities.

    Parameters
    ----------
    decisions : ndarray of shape (n_people, n_classes)
        On people who were held out.
    codes : ndarray of shape (n_people,)
        Their classes.
    weights : ndarray of shape (n_people,)
    slope : float
        Where the search begins, and where few people leave it.

    Returns
    -------
    slope : float
    offsets : ndarray of shape (n_classes,)
        Sum to 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(2000) % 2
    >>> odds = 3 * rng.normal(size=2000) + 4.5 * (2 * codes - 1)
    >>> told = np.column_stack([-odds, odds]) / 20
    >>> found, offsets = calibrate(told, codes, np.ones(2000), 1.0)
    >>> 9 < found < 11, bool(np.abs(offsets).max() < 0.2)
    (True, True)
    """
    rows = np.arange(codes.size)

    def loss(asked: Sequence[float]) -> float:
        offsets = np.asarray(asked[1:]) - np.mean(asked[1:])
        told = log_softmax(slope * np.exp(asked[0]) * decisions + offsets, axis=1)
        far = asked[0] ** 2 + float(np.square(asked[1:]).sum())
        return float(-weights @ told[rows, codes] + _STIFFNESS / 2 * far)

    found = minimize(loss, np.zeros(1 + decisions.shape[1]), method="L-BFGS-B").x
    return float(slope * np.exp(found[0])), np.asarray(found[1:] - found[1:].mean())
