"""mRMR: relevant to the classes, not redundant with what is chosen already."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from idfsmec._parameters import Constraints, StrOptions
from idfsmec.selection.rivals._discretize import Strategy
from idfsmec.selection.rivals._greedy import GreedyInformationSelector
from idfsmec.selection.rivals._mutual_information import PairInformation

# Keeps the quotient finite for a feature that shares nothing with those chosen.
_NO_REDUNDANCY = 1e-9


class MRMR(GreedyInformationSelector):
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

    def _judge_pairs(
        self, information: PairInformation, others: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        return information.between_features(others)

    def _criterion(
        self, information: PairInformation, combined: NDArray[np.float64], n_chosen: int
    ) -> NDArray[np.float64]:
        redundancy = combined / n_chosen
        if self.method == "MID":
            return information.relevance - redundancy
        return information.relevance / (np.maximum(redundancy, 0) + _NO_REDUNDANCY)
