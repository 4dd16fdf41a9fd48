"""What all selectors share: from an order of features to scikit-learn's selector interface."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._validation import CheckedEstimator, Constraints, checks_parameters, fraction, integer
from idfsmec.solver import Scaling

#: How many features a selector keeps by default; all, if there are fewer.
DEFAULT_COUNT = 20


class RankingSelector(SelectorMixin, CheckedEstimator):
    """A selector that orders all features and keeps the first ones.

    A subclass validates its input, computes scores and hands them to :meth:`_set_ranking`, or an
    order to :meth:`_set_order`; everything else is inherited. It has a parameter
    ``n_features_to_select``: how many features to keep, as a number (all, if there are fewer) or
    a fraction.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The higher, the better.
    ranking_ : ndarray of shape (n_features,)
        A permutation of 1 ... n_features; 1 is the best feature.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept: those ranked 1 ... k.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_features_to_select": [integer(1), fraction()]
    }

    n_features_to_select: Any  # as declared above, or by a subclass that means more by it

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _set_ranking(
        self, scores: NDArray[np.float64], order: NDArray[np.intp] | None = None
    ) -> None:
        """Store scores, ranking and support."""
        n_features = scores.shape[0]
        if order is None:
            order = np.argsort(-scores, kind="stable")
        self.scores_ = scores
        self.ranking_ = ranks(order)
        self.support_ = self.ranking_ <= self._n_to_select(n_features)

    def _set_order(self, order: NDArray[np.intp]) -> None:
        """Store an order that no single score explains, such as that of a greedy search.

        ``scores_`` then falls in equal steps from 1 (best) to 1 / n_features (worst).
        """
        scores = np.empty(order.shape[0])
        scores[order] = np.arange(order.shape[0], 0, -1) / order.shape[0]
        self._set_ranking(scores, order)

    def _n_to_select(self, n_features: int) -> int:
        """Resolve ``n_features_to_select`` and warn if it asks for more than there is."""
        wanted = self.n_features_to_select
        if isinstance(wanted, Integral) and DEFAULT_COUNT != int(wanted) > n_features:
            warnings.warn(
                f"n_features_to_select={wanted} is more than the {n_features} features "
                "there are; all are kept.",
                UserWarning,
                stacklevel=2,
            )
        return count_features(wanted, n_features)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_


class CompleteSelector(RankingSelector):
    """A selector that refuses NaN; a subclass ranks checked data (:meth:`_rank`).

    Examples
    --------
    A selector by the difference of the class means:

    >>> class MeanDifference(CompleteSelector):
    ...     def __init__(self, *, n_features_to_select=20):
    ...         self.n_features_to_select = n_features_to_select
    ...     def _rank(self, X, y):
    ...         self._set_ranking(abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)))
    >>> X = [[0.0, 1.0, 5.0], [0.1, 7.0, 5.0], [0.0, 9.0, 6.0]]
    >>> MeanDifference(n_features_to_select=1).fit(X, ["HC", "MDD", "MDD"]).ranking_
    array([3, 1, 2])
    """

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete data; NaN is refused.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
        """
        self._rank(*self._check_input(X, y))
        return self

    def _check_input(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray]:
        checked, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        if not np.isfinite(checked).all():
            name = type(self).__name__
            names = getattr(self, "feature_names_in_", np.arange(checked.shape[1]))
            refuse_infinite(name, checked, names)
            holes = np.isnan(checked).any(axis=0)
            raise ValueError(
                f"{name}: Input X contains NaN in {int(holes.sum())} columns, first in "
                f"{names[holes].tolist()[0]!r}. This method needs complete data: put "
                "sklearn.impute.SimpleImputer() in front of it in a pipeline, or use IDFSMEC, "
                "which takes missing channels as they are."
            )
        return checked, encode_labels(labels)[0]

    @abstractmethod
    def _rank(self, X: NDArray[np.float64], y: NDArray) -> None:
        """Compute scores and hand them to :meth:`_set_ranking` or :meth:`_set_order`."""


def refuse_infinite(owner: str, X: NDArray[np.float64], names: ArrayLike) -> None:
    """Say which column of X holds infinity, if one does."""
    infinite = np.isinf(X)
    if infinite.any():
        first = np.asarray(names)[infinite.any(axis=0)].tolist()[0]
        raise ValueError(
            f"{owner}: Input X contains infinity, first in column {first!r}. Repair or drop "
            "these values first."
        )


def constant_features(X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which features carry nothing, by the one rule for that."""
    return Scaling.learn(X).constant


def regression_data(
    X: NDArray[np.float64], y: NDArray[np.intp], *, scale: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Centre features and one-hot classes, for regressions of the classes on the features."""
    scaling = Scaling.learn(X)
    constant = scaling.constant
    if not scale:
        scaling = Scaling(scaling.mean, np.where(constant, np.inf, 1.0))
    Y = one_hot(y)
    return scaling.apply(X), Y - Y.mean(axis=0), constant


def one_hot(codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Turn class codes into 0/1 columns, shape (n_samples, n_classes)."""
    return np.eye(int(codes.max()) + 1)[codes]


def count_features(wanted: int | float, n_features: int) -> int:
    """How many features a number or a fraction of them means."""
    if isinstance(wanted, Integral):
        return min(int(wanted), n_features)
    return max(1, int(n_features * wanted))


def ranks(order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rank of each feature, 1 = best, from the features in order."""
    ranking = np.empty(order.size, dtype=np.intp)
    ranking[order] = np.arange(1, order.size + 1)
    return ranking


def encode_labels(y: ArrayLike) -> tuple[NDArray[np.intp], NDArray]:
    """Turn class labels into codes 0 ... n_classes - 1."""
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            "Selecting features needs at least 2 classes, but y holds only one class: "
            f"{classes.tolist()[0]!r}."
        )
    return codes.astype(np.intp), classes
