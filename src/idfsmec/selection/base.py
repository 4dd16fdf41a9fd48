"""Base of all selectors: from an order of features to scikit-learn's selector interface.

Selectors are dataclasses: their fields are scikit-learn's parameters, and
``_parameter_constraints`` says what these may be.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, _safe_indexing, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from idfsmec._validation import (
    N_JOBS,
    CheckedEstimator,
    Constraints,
    fraction,
    integer,
    number,
    validate_params,
)
from idfsmec.solver.scaling import is_constant
from idfsmec.table.feature_table import refuse_table

#: How many features a selector keeps by default; all, if there are fewer.
DEFAULT_COUNT = 20


class RankingSelector(SelectorMixin, CheckedEstimator):
    """A selector that orders all features and keeps the first ``n_features_to_select``."""

    # Of all parameters that selectors share; a subclass adds its own, or what it means by them.
    _parameter_constraints: ClassVar[Constraints] = {
        "n_features_to_select": [integer(1), fraction()],
        "channels": ["array-like", None],
        "numeric": ["boolean"],
        "standardize": ["boolean"],
        "tol": [number(0)],
        "max_iter": [integer(1)],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "progress": [callable, None],
    }

    n_features_to_select: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _set_ranking(
        self, scores: NDArray[np.float64], order: NDArray[np.intp] | None = None
    ) -> None:
        """Store scores, ranking and support."""
        order = np.argsort(-scores, kind="stable") if order is None else order
        self.scores_, self.ranking_ = scores, ranks(order)
        self.support_ = self.ranking_ <= self._n_to_select(scores.size)

    def _set_order(self, order: NDArray[np.intp]) -> None:
        """Store an order that no score explains; scores fall in equal steps from 1 (best)."""
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
        return np.asarray(self.support_)


@dataclass(eq=False, repr=False, kw_only=True)
class CompleteSelector(RankingSelector):
    """A selector that refuses NaN; a subclass ranks checked data (:meth:`_rank`)."""

    n_features_to_select: int | float = DEFAULT_COUNT

    @validate_params
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete data; NaN is refused.
        y : array-like of shape (n_samples,)
            Class labels; a score for a selector with ``numeric=True``.

        Returns
        -------
        self : object
        """
        self._rank(*self._check_input(X, y))
        return self

    def _check_input(
        self, X: ArrayLike, y: ArrayLike | None
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        checked, labels = check_samples(self, X, y)
        missing = np.isnan(checked)
        if missing.any():
            holes = missing.any(axis=0)
            names = getattr(self, "feature_names_in_", np.arange(checked.shape[1]))
            raise ValueError(
                f"{type(self).__name__}: Input X contains NaN in {int(holes.sum())} columns, "
                f"first in {names[holes].tolist()[0]!r}. This method needs complete data: put "
                "sklearn.impute.SimpleImputer() in front of it in a pipeline, or use IDFSMEC, "
                "which takes missing channels as they are."
            )
        if getattr(self, "numeric", False):
            return checked, check_score(labels)
        return checked, encode_labels(labels)[0]

    @abstractmethod
    def _rank(self, X: NDArray[np.float64], y: NDArray[Any]) -> None:
        """Compute scores and hand them to :meth:`_set_ranking` or :meth:`_set_order`."""


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreSelector(CompleteSelector):
    """A selector that ranks by classes or, with ``numeric=True``, by a score."""

    numeric: bool = False


def check_samples(
    estimator: BaseEstimator, X: Any, y: ArrayLike | None, **checks: Any
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return samples as numbers, NaN allowed; the estimator learns their number and names."""
    refuse_table(X)
    checks |= {"dtype": np.float64, "ensure_all_finite": False}
    checked, target = validate_data(estimator, X, y, **checks)
    infinite = np.isinf(checked)
    if infinite.any():
        names = getattr(estimator, "feature_names_in_", np.arange(checked.shape[1]))
        raise ValueError(
            f"{type(estimator).__name__}: Input X contains infinity, first in column "
            f"{names[infinite.any(axis=0)].tolist()[0]!r}. Repair or drop these values first."
        )
    return checked, target


def check_new_samples(
    estimator: BaseEstimator, X: Any, fitted: str | None = None
) -> NDArray[np.float64]:
    """Return samples as numbers, NaN allowed, with the columns of those that were fitted.

    ``fitted`` is an attribute that only a fitted estimator has.
    """
    refuse_table(X)
    check_is_fitted(estimator, fitted)
    return np.asarray(
        validate_data(estimator, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
    )


def count_features(wanted: int | float, n_features: int) -> int:
    """Return the number of features for a number or a fraction."""
    if isinstance(wanted, Integral):
        return min(int(wanted), n_features)
    return max(1, int(n_features * wanted))


def ranks(order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rank of each feature, 1 = best, from the features in order."""
    return np.argsort(order) + 1


def encode_labels(y: ArrayLike) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Turn class labels into codes 0 ... n_classes - 1."""
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            "Selecting features needs at least 2 classes, but y holds only one class: "
            f"{classes.tolist()[0]!r}."
        )
    return codes.astype(np.intp), classes


def check_score(y: ArrayLike) -> NDArray[np.float64]:
    """Return a score as finite numbers that are not all equal."""
    score = column_or_1d(y, dtype=np.float64)
    if not np.isfinite(score).all():
        raise ValueError("y contains NaN or infinity; drop samples without a score first.")
    if is_constant(score.mean(), score.std()):
        raise ValueError("All values of y are equal; there is nothing to predict.")
    return np.asarray(score)


def rank_grid(
    selector: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    settings: Sequence[Mapping[str, Any]],
    *,
    held_out: Sequence[NDArray[np.intp]] | None = None,
    groups: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Rank features with every setting of a selector, on every fold.

    A clone is fitted for each, unless the selector has a method ``rank_grid`` with the other
    arguments of this function that ranks all at once, or returns None where it cannot.

    Parameters
    ----------
    selector : estimator
        With ``ranking_`` after ``fit``. It is not changed.
    X : array-like of shape (n_samples, n_features)
        Passed on as it is: missing values must be imputed before if the selector takes none.
    y : array-like of shape (n_samples,)
    settings : sequence of mappings
        Parameters of the selector; an empty mapping leaves it as it is.
    held_out : sequence of int arrays, optional
        For each fold the samples that are left out of the fit. By default one fold, with all
        samples.
    groups : array-like of shape (n_samples,), optional
        Subjects, for selectors whose ``fit`` takes ``groups``.

    Returns
    -------
    ranks : ndarray of shape (n_folds, n_settings, n_features)
        1 is the best feature.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from idfsmec.selection import RFS
    >>> X, y = load_iris(return_X_y=True)
    >>> settings = [{"gamma": 0.1}, {"gamma": 10.0}]
    >>> halves = [np.arange(0, 150, 2), np.arange(1, 150, 2)]
    >>> rank_grid(RFS(), X, y, settings, held_out=halves).shape
    (2, 2, 4)
    """
    if callable(getattr(selector, "rank_grid", None)):
        ranks: NDArray[np.intp] | None
        ranks = clone(selector).rank_grid(X, y, settings, held_out=held_out, groups=groups)
        if ranks is not None:
            return np.asarray(ranks)
    check_consistent_length(X, y, groups)
    takes_groups = groups is not None and has_fit_parameter(selector, "groups")
    rankings = []
    for train in training_samples(_num_samples(X), held_out):
        data = {"X": X, "y": y, **({"groups": groups} if takes_groups else {})}
        if held_out is not None:  # a table may be large: no copy of all of it
            data = {name: _safe_indexing(part, train) for name, part in data.items()}
        fits = [clone(selector).set_params(**setting).fit(**data) for setting in settings]
        rankings.append([fitted.ranking_ for fitted in fits])
    return np.array(rankings, dtype=np.intp)


def training_samples(
    n_samples: int, held_out: Sequence[NDArray[np.intp]] | None
) -> list[NDArray[np.intp]]:
    """Samples that each fold is fitted on: all but those held out."""
    everyone = np.arange(n_samples)
    if held_out is None:
        return [everyone]
    return [np.delete(everyone, left_out) for left_out in held_out]
