"""mRMR, CMIM and MRMSR: features chosen one by one by what they tell about the classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from idfsmec._parameters import Constraints, StrOptions, integer
from idfsmec._remembered import is_fixed, remember
from idfsmec.selection._base import CompleteSelector, constant_features, count_features
from idfsmec.selection.rivals._forward import Array, Mask, TermsAhead, forward_search
from idfsmec.selection.rivals.mutual_information import PairInformation, Strategy, discretize

Indices = NDArray[np.intp]

# Keeps the quotient finite for a feature that shares nothing with those chosen.
_NO_REDUNDANCY = 1e-9


class _InformationFilter(CompleteSelector):
    """A filter that adds one feature at a time, by a term for each pair with those before.

    A subclass gives the term of a pair of features (:meth:`_pairwise`), how terms over the
    chosen features are combined (:attr:`_combine`) and how the criterion follows from them
    (:meth:`_criterion`).
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_bins": [integer(2, 255), None],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    n_bins: int | None
    strategy: Strategy
    _combine: np.ufunc = np.add

    def _rank(self, X: Array, y: Indices) -> None:
        information = remember(
            X,
            ("pairs", self.n_bins, self.strategy, y.tobytes()),
            lambda: PairInformation(
                discretize(X, self.n_bins, self.strategy), y, keep=is_fixed(X)
            ),
        )
        candidates = information.varied & ~constant_features(X)
        wanted = min(count_features(self.n_features_to_select, X.shape[1]), int(candidates.sum()))
        terms = TermsAhead(
            lambda others: self._pairwise(information, others),
            (information.n_values * X.shape[1], information.n_values),
            wanted,
        )
        combined = np.full(X.shape[1], 0.0 if self._combine is np.add else np.inf)
        n_chosen = 0

        def criterion_after(best: int, values: Array, left: Mask) -> Array:
            nonlocal combined, n_chosen
            combined = self._combine(combined, terms.of(best, values, left))
            n_chosen += 1
            return self._criterion(information, combined, n_chosen)

        order, self.criterion_ = forward_search(
            information.relevance, candidates, wanted, criterion_after
        )
        self.relevance_ = information.relevance.copy()
        information.rest()
        self._set_order(order)

    @abstractmethod
    def _pairwise(self, information: PairInformation, others: Indices) -> Array:
        """Terms of all features with each of `others`, shape (n_features, len(others))."""

    @abstractmethod
    def _criterion(self, information: PairInformation, combined: Array, n_chosen: int) -> Array:
        """Value of every feature given its combined terms; the highest is chosen next."""


class MRMR(_InformationFilter):
    """Minimum redundancy, maximum relevance.

    The first feature has the highest mutual information with the classes, I(f; y). Each next
    one maximises I(f; y) minus (MID) or divided by (MIQ) its mean mutual information with the
    features chosen so far.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction. The search
        goes on until so many are chosen; the other features follow in the order of the criterion
        after the last step.
    method : {"MID", "MIQ"}, default="MID"
        Difference or quotient.
    n_bins : int or None, default=5
        Bins per feature; None if X is discrete already.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equally many samples, or of equal width.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features with a single value (bin) come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    criterion_ : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or after the last step if it was not.
    relevance_ : ndarray of shape (n_features,)
        I(f; y) in nats.

    References
    ----------
    H. Peng, F. Long, C. Ding, "Feature selection based on mutual information: criteria of
    max-dependency, max-relevance, and min-redundancy", IEEE TPAMI 27(8), 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MRMR(n_features_to_select=3, strategy="uniform").fit(X, y).get_support(indices=True)
    array([21, 23, 27])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [StrOptions({"MID", "MIQ"})],
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        method: Literal["MID", "MIQ"] = "MID",
        n_bins: int | None = 5,
        strategy: Strategy = "quantile",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.method = method
        self.n_bins = n_bins
        self.strategy = strategy

    def _pairwise(self, information: PairInformation, others: Indices) -> Array:
        return information.between_features(others)

    def _criterion(self, information: PairInformation, combined: Array, n_chosen: int) -> Array:
        redundancy = combined / n_chosen
        if self.method == "MID":
            return information.relevance - redundancy
        return information.relevance / (np.maximum(redundancy, 0) + _NO_REDUNDANCY)


class CMIM(_InformationFilter):
    """Conditional mutual information maximisation.

    The first feature has the highest mutual information with the classes, I(f; y). Each next
    one maximises the smallest of I(f; y) and I(f; y | s) over the features s chosen so far.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction. The search
        goes on until so many are chosen; the other features follow in the order of the criterion
        after the last step.
    variant : {"A", "B"}, default="A"
        "A" is Fleuret's criterion. "B" leaves I(f; y) out of the minimum, as some packages do.
    n_bins : int or None, default=5
        Bins per feature; None if X is discrete already.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equally many samples, or of equal width.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features with a single value (bin) come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    criterion_ : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or after the last step if it was not.
    relevance_ : ndarray of shape (n_features,)
        I(f; y) in nats.

    Notes
    -----
    Fleuret's lazy evaluation skips tables that cannot change the choice. Here all tables of a
    newly chosen feature come from one matrix product, which is faster than skipping in Python
    and gives the remaining features their order as well; the choice is the same.

    References
    ----------
    F. Fleuret, "Fast binary feature selection with conditional mutual information", Journal of
    Machine Learning Research 5, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> CMIM(n_features_to_select=3).fit(X, y).get_support(indices=True)
    array([ 0,  6, 12])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "variant": [StrOptions({"A", "B"})],
    }

    _combine = np.minimum

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        variant: Literal["A", "B"] = "A",
        n_bins: int | None = 5,
        strategy: Strategy = "quantile",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.variant = variant
        self.n_bins = n_bins
        self.strategy = strategy

    def _pairwise(self, information: PairInformation, others: Indices) -> Array:
        # I(f; y | s) by the chain rule.
        return information.joint_with_target(others) - information.relevance[others]

    def _criterion(self, information: PairInformation, combined: Array, n_chosen: int) -> Array:
        if self.variant == "B":
            return combined
        return np.minimum(information.relevance, combined)


class MRMSR(_InformationFilter):
    """Maximum relevance, minimum supervised redundancy.

    Relevance is R_i = I(f_i; y) / H(y). Two features are alike to the degree that neither adds
    to what the other tells about the classes,
    S_ij = 1 - [I(f_i; y | f_j) + I(f_j; y | f_i)] / (2 H(y)), between 0 and 1. The first
    feature has the highest R; each next one maximises R_i minus its mean S with those chosen.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction. The search
        goes on until so many are chosen; the other features follow in the order of the criterion
        after the last step.
    n_bins : int or None, default=5
        Bins per feature; None if X is discrete already.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equally many samples, or of equal width.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Features with a single value (bin) come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    criterion_ : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or after the last step if it was not.
    relevance_ : ndarray of shape (n_features,)
        I(f; y) in nats.

    References
    ----------
    Yadi Wang et al., "Feature selection with maximal relevance and minimal supervised
    redundancy", IEEE Transactions on Cybernetics.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> MRMSR(n_features_to_select=3).fit(X, y).get_support(indices=True)
    array([ 6,  9, 12])
    """

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        n_bins: int | None = 5,
        strategy: Strategy = "quantile",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_bins = n_bins
        self.strategy = strategy

    def _pairwise(self, information: PairInformation, others: Indices) -> Array:
        relevance = information.relevance
        # I(f; y | s) + I(s; y | f) = 2 I(f, s; y) - I(f; y) - I(s; y): one table per pair.
        added = 2 * information.joint_with_target(others) - relevance[:, None] - relevance[others]
        return 1 - added / (2 * information.class_entropy)

    def _criterion(self, information: PairInformation, combined: Array, n_chosen: int) -> Array:
        return information.relevance / information.class_entropy - combined / n_chosen
