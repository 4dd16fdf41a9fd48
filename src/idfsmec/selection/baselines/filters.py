"""Filters rank by statistics of the data: ReliefF; mRMR, CMIM, MRMSR and RRCT.

ReliefF looks at near neighbours; the others are forward searches by what features tell of classes
or of a score.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import type_of_target

from idfsmec._validation import Constraints, StrOptions, integer
from idfsmec.selection.base import ScoreSelector, check_score, count_features
from idfsmec.solver.scaling import Scaling

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

_DISTANCES_PER_CHUNK = 2**18
# Distances closer than this are ties (rounding only).
_NEIGHBOUR_TIE = 1e-10
# Criteria closer than this are ties (rounding only): the first column wins.
_TIE, _TIE_DECIMALS = 1e-12, 12
# Numbers in contingency tables, or samples of the features, that are counted together.
_COUNTED_TOGETHER = 2**18
# Keeps the quotient finite for a feature that shares nothing with those chosen.
_NO_REDUNDANCY = 1e-9
# Information of a perfect rank correlation, where the formula is infinite.
_PERFECT = 1000.0
# A variable with less of its variance than this left is explained by the chosen features.
_EXPLAINED = 1e-10


@dataclass(eq=False, repr=False, kw_only=True)
class ReliefF(ScoreSelector):
    """ReliefF with all samples as probes, or RReliefF for a score.

    Every feature is scaled to [0, 1]. For each sample, the score of a feature falls by its
    mean absolute difference to the nearest samples of the same class (hits), and rises by that
    to the nearest samples of each other class (misses), weighted by the other class's share.

    RReliefF weights differences of a feature to the nearest samples by those of the target, scaled
    to [0, 1] too: the mean with these weights, less the mean with the weights 1 - difference.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    numeric : bool, default=False
        Whether y is a score.
    n_neighbors : int, default=10
        Hits, and misses per class; a class with fewer samples gives those it has. With a score,
        all neighbours.
    n_jobs : int or None, default=None
        Threads, as in joblib; -1 uses all cores. The result is the same for any number.

    Attributes
    ----------
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        ReliefF weights, between -1 and 1; ranks, 1 is best: equal scores in column order, constant
        features last; and the mask of the features that are kept.

    Notes
    -----
    Neighbours are nearest in Manhattan distance. Those that tie for the last places share
    them, so that the order of the samples does not matter.
    A constant feature has weight 0. Since it comes last, features with a negative weight do
    not stand below it by their score: all constant ones get the lowest weight found.

    References
    ----------
    I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994.
    M. Robnik-Šikonja, I. Kononenko, "Theoretical and empirical analysis of ReliefF and
    RReliefF", Machine Learning 53, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ReliefF().fit(X, y).scores_.round(4)
    array([0.1399, 0.1226, 0.359 , 0.3754])
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_neighbors": [integer(1)]}

    n_neighbors: int = 10
    n_jobs: int | None = None

    def _rank(self, X: Array, y: NDArray[Any]) -> None:
        constant = Scaling.learn(X).constant
        Z = (X - X.min(axis=0)) / np.where(constant, np.inf, np.ptp(X, axis=0))
        n_rows = max(1, _DISTANCES_PER_CHUNK // y.size)
        target = (y - y.min()) / np.ptp(y) if self.numeric else y
        sums = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_sum_by_score if self.numeric else _sum_differences)(
                Z, target, rows, self.n_neighbors
            )
            for rows in gen_batches(y.size, n_rows)
        )
        scores = np.sum(sums, axis=0) / y.size
        if self.numeric:
            (both, alone), (apart, every) = scores[:, :-1], scores[:, -1]
            scores = both / max(apart, _TIE) - (alone - both) / max(every - apart, _TIE)
        scores[constant] = min(scores.min(), 0)
        self._set_ranking(scores, np.lexsort([-scores, constant]))


def _distances(Z: Array, rows: slice) -> Array:
    """Distances of some samples from all; no sample is its own neighbour."""
    distance = cdist(Z[rows], Z, "cityblock")
    distance[np.arange(len(distance)), np.arange(len(Z))[rows]] = np.inf
    return np.asarray(distance)


def _nearest(distance: Array, n_near: Codes) -> Array:
    """Weights of the nearest samples; those that tie for the last places share them."""
    last = np.sort(distance, axis=1)[np.arange(n_near.size), np.maximum(n_near, 1) - 1, None]
    nearer = distance < last - _NEIGHBOUR_TIE
    tied = ~nearer & (distance <= last + _NEIGHBOUR_TIE)
    places = n_near - nearer.sum(axis=1)
    return np.asarray(nearer + tied * (places / tied.sum(axis=1))[:, None])


def _sum_by_score(Z: Array, y: Array, rows: slice, k: int) -> Array:
    """Sum differences to the nearest samples, (2, n_features + 1); the last is of the target.

    In the first row they are weighted by the differences of the target.
    """
    distance = _distances(Z, rows)
    n_near = np.full(len(distance), min(k, y.size - 1))
    weights = _nearest(distance, n_near) / n_near[:, None]
    total = np.zeros((2, Z.shape[1] + 1))
    for sample, of_sample, row in zip(Z[rows], y[rows], weights, strict=True):
        (near,) = row.nonzero()
        apart = np.abs(y[near] - of_sample)
        by = np.stack([row[near] * apart, row[near]])
        total[:, :-1] += by @ np.abs(Z[near] - sample)
        total[:, -1] += by.sum(axis=1)
    return total


def _sum_differences(Z: Array, y: Codes, rows: slice, k: int) -> Array:
    """Sum the weighted differences of some samples to their nearest hits and misses."""
    distance = _distances(Z, rows)
    total = np.zeros(Z.shape[1])
    for other, size in enumerate(np.bincount(y)):
        hits = y[rows] == other
        members = np.flatnonzero(y == other)
        # The share of the other class among all samples that are not of the own class.
        factor = np.where(hits, -1.0, size / np.maximum(y.size - np.bincount(y)[y[rows]], 1))
        n_near = np.minimum(k, size - hits)
        weights = _nearest(distance[:, members], n_near)
        weights *= (factor / np.maximum(n_near, 1))[:, None]
        for sample, row in zip(Z[rows], weights, strict=True):
            (neighbours,) = row.nonzero()
            total += row[neighbours] @ np.abs(Z[members[neighbours]] - sample)
    return total


class _ForwardFilter(ScoreSelector):
    """A filter that adds one feature at a time, by a criterion given those chosen before."""

    def _search(
        self,
        relevance: Array,
        candidates: NDArray[np.bool_],
        criterion_after: Callable[[int], Array],
    ) -> None:
        """Choose features one by one, then order the rest by the last criterion."""
        self.relevance_, self.criterion_ = relevance, relevance.copy()
        values, remaining, chosen = relevance, candidates.copy(), []
        n_chosen = count_features(self.n_features_to_select, relevance.size)
        for _ in range(min(n_chosen, remaining.sum())):
            open_values = np.where(remaining, values, -np.inf)
            best = int(np.argmax(open_values >= open_values.max() - _TIE))
            self.criterion_[best] = values[best]
            chosen.append(best)
            remaining[best] = False
            if remaining.any():
                values = criterion_after(best)
        self.criterion_[remaining] = values[remaining]
        rest = np.flatnonzero(remaining)
        rest = rest[np.argsort(-np.round(values[rest], _TIE_DECIMALS), kind="stable")]
        order = np.concatenate([chosen, rest, np.flatnonzero(~candidates)])
        self._set_order(order.astype(np.intp))


def discretize(X: Array, n_bins: int | None = 5, strategy: str = "quantile") -> Codes:
    """Cut every column into bins that hold equally many samples, or that have equal width."""
    # The same as scikit-learn's KBinsDiscretizer, which takes 1.1 to 1.5 times as long, joins bins
    # narrower than 1e-8 whatever the units (power in V² has one bin), and whose quantiles have
    # another default in later versions.
    codes = np.empty(X.shape, dtype=np.intp)
    inner = np.linspace(0, 1, (n_bins or 1) + 1)[1:-1]
    for column, bins in zip(X.T, codes.T, strict=True):
        values = np.unique(column)
        # Quantiles of few values would coincide and hide rare ones.
        if n_bins is None or (strategy == "quantile" and values.size <= n_bins):
            bins[:] = np.searchsorted(values, column)
        elif strategy == "quantile":
            bins[:] = np.digitize(column, np.quantile(column, inner))
        else:
            bins[:] = np.digitize(column, values[0] + inner * (values[-1] - values[0]))
    return codes


class DiscreteFeatures:
    """Entropies in nats of features f and classes y, integers from 0: H(f), H(y) and I(f; y)."""

    def __init__(self, codes: Codes, y: Codes) -> None:
        self._codes, self._y, self._n_bins = codes.T, y, int(codes.max()) + 1
        # A number for each value of each feature.
        offsets = self._n_bins * np.arange(codes.shape[1])
        self._values = np.ascontiguousarray((codes + offsets).T)
        counts = np.arange(y.size + 1)
        self._xlogx = counts * np.log(np.maximum(counts, 1))
        self.entropy, with_classes = self._joint_entropies(np.zeros_like(y))
        self.class_entropy = float(np.log(y.size) - self._xlogx[np.bincount(y)].sum() / y.size)
        self.relevance: Array = self.entropy + self.class_entropy - with_classes

    def shared_with(self, chosen: int) -> Array:
        """Give I(f; s) for all features f and the chosen s."""
        pairs, _ = self._joint_entropies(self._codes[chosen])
        return np.asarray(self.entropy + self.entropy[chosen] - pairs)

    def joint_relevance(self, chosen: int) -> Array:
        """Give I(f, s; y) for all features f and the chosen s."""
        pairs, with_classes = self._joint_entropies(self._codes[chosen])
        return pairs + self.class_entropy - with_classes

    def _joint_entropies(self, other: Codes) -> tuple[Array, Array]:
        """Give H(f, other) and H(f, other, y) for all features f, from counts of joint values."""
        shape = int(other.max()) + 1, int(self._y.max()) + 1
        cell, n_cells = np.ravel_multi_index((other, self._y), shape), shape[0] * shape[1]
        step = max(1, _COUNTED_TOGETHER // max(n_cells * self._n_bins, other.size))
        sums = []
        for batch in gen_batches(len(self._values), step):
            n_values = self._n_bins * (batch.stop - batch.start)
            joint = self._values[batch] + (cell * n_values - self._n_bins * batch.start)
            counts = np.bincount(joint.ravel(), minlength=n_cells * n_values)
            counts = counts.reshape(*shape, -1, self._n_bins)
            pairs = self._xlogx[counts.sum(axis=1)].sum(axis=(0, 2))
            sums.append([pairs, self._xlogx[counts].sum(axis=(0, 1, 3))])
        of_pairs, with_classes = np.log(other.size) - np.concatenate(sums, axis=1) / other.size
        return of_pairs, with_classes


@dataclass(eq=False, repr=False, kw_only=True)
class _InformationFilter(_ForwardFilter):
    """A forward filter by a term for each pair of a feature with those chosen before."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_bins": [integer(2, 255), None],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    n_bins: int | None = 5
    strategy: Literal["quantile", "uniform"] = "quantile"

    def _rank(self, X: Array, y: NDArray[Any]) -> None:
        codes = discretize(X, self.n_bins, self.strategy)
        classes = discretize(y[:, None], self.n_bins)[:, 0] if self.numeric else y
        features = DiscreteFeatures(codes, classes)
        terms: list[Array] = []

        def criterion_after(chosen: int) -> Array:
            terms.append(self._terms(features, chosen))
            return self._criterion(features, np.array(terms))

        varied = (np.ptp(codes, axis=0) > 0) & ~Scaling.learn(X).constant
        self._search(features.relevance, varied, criterion_after)

    @abstractmethod
    def _terms(self, features: DiscreteFeatures, chosen: int) -> Array:
        """Terms of all features with the chosen one."""

    @abstractmethod
    def _criterion(self, features: DiscreteFeatures, terms: Array) -> Array:
        """Value of every feature given its terms with those chosen; the highest is next."""


@dataclass(eq=False, repr=False, kw_only=True)
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
    numeric : bool, default=False
        Whether y is a score, which is cut into as many bins as features.
    n_bins : int or None, default=5
        Bins per feature; None if X is discrete already.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equally many samples, or of equal width.

    Attributes
    ----------
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features; ranks, 1 is best: features with a
        single value (bin) come last; and the mask of the features that are kept.
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

    _parameter_constraints: ClassVar[Constraints] = {"method": [StrOptions({"MID", "MIQ"})]}

    method: Literal["MID", "MIQ"] = "MID"

    def _terms(self, features: DiscreteFeatures, chosen: int) -> Array:
        return features.shared_with(chosen)

    def _criterion(self, features: DiscreteFeatures, terms: Array) -> Array:
        redundancy: Array = terms.mean(axis=0)
        if self.method == "MID":
            return np.asarray(features.relevance - redundancy)
        return np.asarray(features.relevance / (np.maximum(redundancy, 0) + _NO_REDUNDANCY))


@dataclass(eq=False, repr=False, kw_only=True)
class CMIM(_InformationFilter):
    """Conditional mutual information maximisation.

    The first feature has the highest mutual information with the classes, I(f; y). Each next
    one maximises the smallest of I(f; y) and I(f; y | s) over the features s chosen so far.

    Parameters
    ----------
    variant : {"A", "B"}, default="A"
        "A" is Fleuret's criterion. "B" leaves I(f; y) out of the minimum, as some packages do.
    n_features_to_select, numeric, n_bins, strategy
        As in :class:`MRMR`.

    Attributes
    ----------
    scores_, ranking_, support_, criterion_, relevance_ : ndarray of shape (n_features,)
        As in :class:`MRMR`.

    Notes
    -----
    Fleuret's lazy evaluation skips tables that cannot change the choice. Here all tables of a
    newly chosen feature are counted at once, which gives the remaining features their order as
    well; the choice is the same.

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

    _parameter_constraints: ClassVar[Constraints] = {"variant": [StrOptions({"A", "B"})]}

    variant: Literal["A", "B"] = "A"

    def _terms(self, features: DiscreteFeatures, chosen: int) -> Array:
        # I(f; y | s) by the chain rule.
        return np.asarray(features.joint_relevance(chosen) - features.relevance[chosen])

    def _criterion(self, features: DiscreteFeatures, terms: Array) -> Array:
        least: Array = terms.min(axis=0)
        return least if self.variant == "B" else np.minimum(features.relevance, least)


class MRMSR(_InformationFilter):
    """Maximum relevance, minimum supervised redundancy.

    Relevance is R_i = I(f_i; y) / H(y). Two features are alike to the degree that neither adds
    to what the other tells about the classes,
    S_ij = 1 - [I(f_i; y | f_j) + I(f_j; y | f_i)] / (2 H(y)), between 0 and 1. The first
    feature has the highest R; each next one maximises R_i minus its mean S with those chosen.

    Parameters
    ----------
    n_features_to_select, numeric, n_bins, strategy
        As in :class:`MRMR`.

    Attributes
    ----------
    scores_, ranking_, support_, criterion_, relevance_ : ndarray of shape (n_features,)
        As in :class:`MRMR`.

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

    def _terms(self, features: DiscreteFeatures, chosen: int) -> Array:
        relevance = features.relevance
        # I(f; y | s) + I(s; y | f) = 2 I(f, s; y) - I(f; y) - I(s; y): one table per pair.
        added = 2 * features.joint_relevance(chosen) - relevance - relevance[chosen]
        return np.asarray(1 - added / (2 * features.class_entropy))

    def _criterion(self, features: DiscreteFeatures, terms: Array) -> Array:
        similarity: Array = terms.mean(axis=0)
        return features.relevance / features.class_entropy - similarity


class RRCT(_ForwardFilter):
    """Relevance, redundancy and complementarity trade-off.

    A Spearman correlation r counts as information -0.5 ln(1 - r^2). The first feature has the
    most information on y. Each next one maximises its information on y, minus its mean
    information on the chosen features, plus (or minus) that of its partial correlation with y
    given the chosen features: plus if knowing them strengthens the correlation.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        As in :class:`MRMR`.
    numeric : bool, default=False
        Whether y is a score; one that is not of whole numbers is taken as one in any case.

    Attributes
    ----------
    scores_, support_, criterion_ : ndarray of shape (n_features,)
        As in :class:`MRMR`.
    ranking_ : ndarray of shape (n_features,)
        1 is the best feature. Constant features come last.
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

    def _rank(self, X: Array, y: Array) -> None:
        ranks = _normalised_ranks(X)
        correlation = _normalised_ranks(y[:, None]).T[0] @ ranks
        relevance = _information(correlation)
        partial = _partial_correlations(correlation, X.shape[0])
        redundancy: list[Array] = []

        def criterion_after(chosen: int) -> Array:
            with_chosen = ranks[:, chosen] @ ranks
            redundancy.append(_information(with_chosen))
            left = partial(chosen, with_chosen)
            complement = np.sign(left) * np.sign(left - correlation) * _information(left)
            return np.asarray(relevance - np.mean(redundancy, axis=0) + complement)

        self._search(relevance, ~Scaling.learn(X).constant, criterion_after)

    def _check_input(self, X: ArrayLike, y: ArrayLike | None) -> tuple[Array, NDArray[Any]]:
        if not self.numeric and y is not None and type_of_target(y) == "continuous":
            target = check_score(y)
            # Any labels do for validating X.
            X, _ = super()._check_input(X, np.unique(target, return_inverse=True)[1])
            return X, target
        X, codes = super()._check_input(X, y)
        return X, codes.astype(np.float64)


def _normalised_ranks(X: Array) -> Array:
    """Ranks of each column with mean 0 and norm 1: products are Spearman correlations."""
    ranks = rankdata(X, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.linalg.norm(ranks, axis=0)
    normalised: Array = np.divide(ranks, norms, out=np.zeros_like(ranks), where=norms > 0)
    return normalised


def _information(correlation: Array) -> Array:
    """-0.5 ln(1 - r^2), finite for a perfect correlation."""
    rest = 1 - np.square(correlation)
    # Rounding must not turn a perfect correlation into a merely strong one.
    perfect = rest <= 4 * np.finfo(float).eps
    return np.where(perfect, _PERFECT, -0.5 * np.log(np.where(perfect, 1.0, rest)))


def _partial_correlations(correlation: Array, n_samples: int) -> Callable[[int, Array], Array]:
    """Return partial correlations of all features with y given more and more chosen features."""
    with_target, feature_left, target_left = correlation, np.ones_like(correlation), 1.0
    n_free, loadings = n_samples - 2, np.empty((0, correlation.size))

    def condition_on(chosen: int, with_chosen: Array) -> Array:
        """Take a Gram-Schmidt step with the correlations of all features with the chosen one."""
        nonlocal with_target, feature_left, target_left, n_free, loadings
        n_free -= 1
        left = feature_left[chosen]
        if left > _EXPLAINED and n_free > 0:
            loading = (with_chosen - loadings[:, chosen] @ loadings) / np.sqrt(left)
            target_loading = with_target[chosen] / np.sqrt(left)
            loadings = np.vstack([loadings, loading])
            with_target = with_target - loading * target_loading
            feature_left = feature_left - loading**2
            target_left -= target_loading**2
        if n_free <= 0 or target_left <= _EXPLAINED:  # not defined
            return np.zeros_like(with_target)
        defined = np.where(feature_left > _EXPLAINED, feature_left, np.inf)
        return np.clip(with_target / np.sqrt(defined * target_left), -1.0, 1.0)

    return condition_on
