"""What all selectors share: from an order of features to scikit-learn's selector interface."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data


class RankingSelector(SelectorMixin, BaseEstimator):
    """A selector that orders all features and keeps the first ones.

    A subclass validates its input (:meth:`_validate_complete` for those that cannot take NaN),
    computes scores and hands them to :meth:`_set_ranking`; everything else is inherited.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The higher, the better.
    ranking_ : ndarray of shape (n_features,)
        A permutation of 1 ... n_features; 1 is the best feature.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept: those ranked 1 ... k.
    """

    n_features_to_select: int | float | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _validate_complete(
        self, X: ArrayLike, y: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray]:
        """Check a complete X and class labels y.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y_codes : ndarray of shape (n_samples,)
            Labels as 0 ... n_classes - 1.
        classes : ndarray of shape (n_classes,)
        """
        checked, labels = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        if not np.isfinite(checked).all():
            self._refuse_non_finite(checked)
        return checked, *encode_labels(labels)

    def _refuse_non_finite(self, X: NDArray[np.float64]) -> None:
        """Say which columns stop this method and what to put in front of it."""
        name = type(self).__name__
        names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))
        infinite = np.isinf(X).any(axis=0)
        if infinite.any():
            raise ValueError(
                f"{name}: Input X contains infinity, first in column {names[infinite][0]!r}. "
                "Repair or drop these values first."
            )
        holes = np.isnan(X).any(axis=0)
        raise ValueError(
            f"{name}: Input X contains NaN in {int(holes.sum())} columns, first in "
            f"{names[holes][0]!r}. This method needs complete data: put "
            "sklearn.impute.SimpleImputer() in front of it in a pipeline, or use IDFSMEC, "
            "which takes missing channels as they are."
        )

    def _set_ranking(
        self, scores: NDArray[np.float64], order: NDArray[np.intp] | None = None
    ) -> None:
        """Store scores, ranking and support.

        Parameters
        ----------
        scores : ndarray of shape (n_features,)
        order : ndarray of shape (n_features,), optional
            Feature indices from best to worst. By default: descending scores, ties in
            column order.
        """
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
        if isinstance(wanted, Integral) and wanted > n_features:
            warnings.warn(
                f"n_features_to_select={wanted} is more than the {n_features} features "
                "there are; all are kept.",
                UserWarning,
                stacklevel=4,
            )
        return self._resolve_n_to_select(n_features)

    def _resolve_n_to_select(self, n_features: int) -> int:
        """Resolve ``n_features_to_select`` (None: half; float: fraction; int: count)."""
        wanted = self.n_features_to_select
        if wanted is None:
            return max(1, n_features // 2)
        if isinstance(wanted, Integral) and not isinstance(wanted, bool) and wanted >= 1:
            return min(int(wanted), n_features)
        if isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < wanted <= 1:
            return max(1, int(n_features * wanted))
        raise ValueError(
            f"n_features_to_select must be None, an int >= 1 or a float in (0, 1], got {wanted!r}."
        )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_


def ranks(order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rank of each feature, 1 = best, from the features in order.

    Examples
    --------
    >>> ranks(np.array([2, 0, 1]))
    array([2, 3, 1])
    """
    ranking = np.empty(order.size, dtype=np.intp)
    ranking[order] = np.arange(1, order.size + 1)
    return ranking


def encode_labels(y: ArrayLike) -> tuple[NDArray[np.intp], NDArray]:
    """Turn class labels into codes 0 ... n_classes - 1.

    Examples
    --------
    >>> encode_labels(["MDD", "HC", "MDD"])
    (array([1, 0, 1]), array(['HC', 'MDD'], dtype='<U3'))
    """
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            "Selecting features needs at least 2 classes, but y holds only one class: "
            f"{classes[0]!r}."
        )
    return codes.astype(np.intp), classes
