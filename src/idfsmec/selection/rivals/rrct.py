"""RRCT: relevance minus redundancy plus what a feature adds once the chosen ones are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from idfsmec.selection._base import CompleteSelector, constant_features, count_features
from idfsmec.selection.rivals._forward import Array, Mask, TermsAhead, forward_search

# Information of a perfect rank correlation, where the formula is infinite.
_PERFECT = 1000.0
# Correlations take little: of more features than so many columns make, most would be for nothing.
_COLUMNS_PER_FEATURE = 5
# A variable with less of its variance than this left is explained by the chosen features.
_EXPLAINED = 1e-10


class RRCT(CompleteSelector):
    """Relevance, redundancy and complementarity trade-off.

    A Spearman correlation r counts as information -0.5 ln(1 - r^2). The first feature has the
    most information on y. Each next one maximises its information on y, minus its mean
    information on the chosen features, plus (or minus) that of its partial correlation with y
    given the chosen features: plus if knowing them strengthens the correlation.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction. The search
        goes on until so many are chosen; the other features follow in the order of the criterion
        after the last step.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Constant features come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    criterion_ : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or after the last step if it was not.
    relevance_ : ndarray of shape (n_features,)
        Information of each feature on y.

    Notes
    -----
    y may be class labels or a continuous target. Classes are ranked by their labels: with more
    than two, name them so that their order means something.

    All variables are ranked, centred and normalised once; partial correlations follow from a
    Gram-Schmidt step per chosen feature, which needs the correlations with that feature only.
    They stop counting when the chosen features leave no degree of freedom (n_samples - 2).

    References
    ----------
    A. Tsanas, "Relevance, redundancy, and complementarity trade-off (RRCT): a principled,
    generic, robust feature-selection tool", Patterns 3(5), 100471, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> RRCT(n_features_to_select=3).fit(X, y).get_support(indices=True)
    array([1, 2, 8])
    """

    def __init__(self, *, n_features_to_select: int | float = 20) -> None:
        self.n_features_to_select = n_features_to_select

    def _rank(self, X: Array, y: Array) -> None:
        candidates = ~constant_features(X)
        wanted = min(count_features(self.n_features_to_select, X.shape[1]), int(candidates.sum()))
        ranks = _normalised_ranks(X)
        correlation = ranks @ _normalised_ranks(y[:, None])[0]
        self.relevance_ = _information(correlation)
        partial = _Partial(correlation, wanted, X.shape[0])
        redundancy = np.zeros(X.shape[1])
        terms = TermsAhead(
            lambda others: ranks @ ranks[others].T, (X.shape[1], _COLUMNS_PER_FEATURE), wanted
        )

        def criterion_after(best: int, values: Array, left: Mask) -> Array:
            with_best = terms.of(best, values, left)
            np.add(redundancy, _information(with_best), out=redundancy)
            partial.condition_on(best, with_best)
            given = partial.correlations()
            complement = np.sign(given) * np.sign(given - correlation) * _information(given)
            return self.relevance_ - redundancy / partial.n_chosen + complement

        order, self.criterion_ = forward_search(
            self.relevance_, candidates, wanted, criterion_after
        )
        self._set_order(order)

    def _check_input(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        if y is not None and type_of_target(y) == "continuous":
            target = column_or_1d(y, dtype=np.float64)
            # Any labels do for validating X; a target of one value has no ranks to explain.
            X, _ = super()._check_input(X, np.unique(target, return_inverse=True)[1])
            return X, target
        X, codes = super()._check_input(X, y)
        return X, codes.astype(np.float64)


def _normalised_ranks(X: Array) -> Array:
    """Ranks of each column in a row, with mean 0 and norm 1: products are Spearman correlations.

    Equal values share the mean of their ranks.
    """
    ranks = np.array(X.T, order="C")
    in_order = np.arange(1.0, X.shape[0] + 1)
    for row in ranks:  # one after the other they stay in a core's cache
        order = np.argsort(row)
        values = row[order]
        starts = np.flatnonzero(values[1:] != values[:-1]) + 1
        if starts.size + 1 == row.size:
            row[order] = in_order
        else:
            ends = np.concatenate([[0], starts, [row.size]])
            row[order] = np.repeat(0.5 * (ends[1:] + ends[:-1] + 1), np.diff(ends))
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=1, keepdims=True)
    return np.divide(ranks, norms, out=np.zeros_like(ranks), where=norms > 0)


def _information(correlation: Array) -> Array:
    """-0.5 ln(1 - r^2), finite for a perfect correlation."""
    rest = 1 - np.square(correlation)
    # Rounding must not turn a perfect correlation into a merely strong one.
    perfect = rest <= 4 * np.finfo(float).eps
    return np.where(perfect, _PERFECT, -0.5 * np.log(np.where(perfect, 1.0, rest)))


class _Partial:
    """Partial correlations of all features with y given a growing set of chosen features."""

    def __init__(self, correlation: Array, n_wanted: int, n_samples: int) -> None:
        self.with_target = correlation.copy()
        self.feature_left = np.ones_like(correlation)
        self.target_left = 1.0
        self.n_chosen = 0
        self._n_free = n_samples - 2
        self._loadings = np.empty((n_wanted, correlation.size))
        self._n_loadings = 0

    def condition_on(self, feature: int, with_feature: Array) -> None:
        """Take out of everything what `feature` explains; `with_feature` are its correlations."""
        self.n_chosen += 1
        left = self.feature_left[feature]
        if left <= _EXPLAINED or self.n_chosen >= self._n_free:
            return
        before = self._loadings[: self._n_loadings]
        loading = (with_feature - before[:, feature] @ before) / np.sqrt(left)
        self._loadings[self._n_loadings] = loading
        self._n_loadings += 1
        target_loading = self.with_target[feature] / np.sqrt(left)
        self.with_target -= loading * target_loading
        self.feature_left -= loading**2
        self.target_left -= target_loading**2

    def correlations(self) -> Array:
        """Partial correlations; 0 where undefined or without a degree of freedom."""
        defined = self.feature_left > _EXPLAINED
        if self.n_chosen >= self._n_free or self.target_left <= _EXPLAINED:
            defined[:] = False
        scale = np.sqrt(np.where(defined, self.feature_left, 1.0) * max(self.target_left, 0.0))
        partial = np.divide(
            self.with_target, scale, out=np.zeros_like(scale), where=defined & (scale > 0)
        )
        return np.clip(partial, -1.0, 1.0)
