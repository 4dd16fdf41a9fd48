"""MRMSR: redundancy counts only where it concerns what the features tell about the classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection.rivals._discretize import Strategy
from idfsmec.selection.rivals._greedy import GreedyInformationSelector
from idfsmec.selection.rivals._mutual_information import PairInformation


class MRMSR(GreedyInformationSelector):
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

    _with_classes = True

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

    def _judge_pairs(
        self, information: PairInformation, others: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        relevance = information.relevance
        # I(f; y | s) + I(s; y | f) = 2 I(f, s; y) - I(f; y) - I(s; y): one table per pair.
        added = 2 * information.joint_with_target(others) - relevance[:, None] - relevance[others]
        return 1 - added / (2 * information.class_entropy)

    def _criterion(
        self, information: PairInformation, combined: NDArray[np.float64], n_chosen: int
    ) -> NDArray[np.float64]:
        return information.relevance / information.class_entropy - combined / n_chosen
