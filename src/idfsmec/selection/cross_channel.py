"""CrossChannelReranker: leading features ordered anew, with what channels repeat of one another.

``IDFSMEC`` sees redundancy within a channel only. Here its leading candidates are ordered by
forward selection: each step takes the feature that lowers the squared error of a ridge regression
the most. The regression is that of a linear classifier on features whose gaps are filled with the
mean, planned from how often each channel is missing: a copy in another channel is worth little
when channels are reliable, and is a backup when they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import has_fit_parameter

from idfsmec._columns import channel_codes, observed_channels
from idfsmec._parameters import Constraints, HasMethods, checks_parameters, integer, number
from idfsmec.errors import InputError
from idfsmec.selection._base import RankingSelector
from idfsmec.selection.idfsmec.engine import Engine, table_engine
from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.summaries.summary import Summary, combine_products

Array = NDArray[np.float64]
Three = tuple[Array, Array, Array]

# Correlations over few common samples are drawn towards 0 as if by this many samples without any.
_PRIOR_SAMPLES = 5


class CrossChannelReranker(RankingSelector):
    """Order the leading features of :class:`IDFSMEC` anew, aware of other channels and of gaps.

    Selections become more stable; whether they become more accurate depends on the table (the
    guide has the numbers). Worth trying where up to 20 features of many channels are kept.

    Parameters
    ----------
    estimator : IDFSMEC, optional
        Finds the candidates; ``IDFSMEC(lam=0.01, gamma=1.1)`` by default.
    n_features_to_select : int or float, default=20
        How many features to keep: a number (all, if there are fewer) or a fraction.
    n_candidates : int, default=200
        How many of the leading features are ordered anew; the others follow in their order.
    ridge : float, default=3.0
        Penalty of the regression, in units of a feature's variance. Small values avoid features
        that repeat others, large values order features by what each tells alone.
    channels : array-like of shape (n_features,), optional
        As in :class:`IDFSMEC`; by default those of the estimator.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Equal steps from 1 (best) down.
    ranking_ : ndarray of shape (n_features,)
    support_ : ndarray of shape (n_features,)
    selector_ : IDFSMEC
        As fitted for the candidates.
    channel_names_ : ndarray of shape (n_channels,)
    missing_rates_ : ndarray of shape (n_channels,)
        Share of training samples that lack the channel: what is expected of new samples.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Examples
    --------
    Two channels carry the same; a third tells something else, less clearly:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 9))
    >>> X[:, 0] += 1.2 * y
    >>> X[:, 3] = X[:, 0] + 0.1 * rng.normal(size=400)
    >>> X[:, 6] += 0.9 * y
    >>> channels = ["F3"] * 3 + ["F1"] * 3 + ["Pz"] * 3
    >>> ranker = CrossChannelReranker(n_features_to_select=2, ridge=0.1, channels=channels)
    >>> sorted(int(j) // 3 for j in ranker.fit(X, y).get_support(indices=True))[-1]
    2
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [HasMethods(["fit", "set_params"]), None],
        "n_candidates": [integer(1)],
        "ridge": [number(0)],
        "channels": ["array-like", None],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        n_features_to_select: int | float = 20,
        n_candidates: int = 200,
        ridge: float = 3.0,
        channels: ArrayLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.n_candidates = n_candidates
        self.ridge = ridge
        self.channels = channels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Rank features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a channel is missing.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), optional
            As of :meth:`IDFSMEC.fit`.

        Returns
        -------
        self : CrossChannelReranker
        """
        selector = self._selector()
        if self.channels is not None:
            selector.set_params(channels=self.channels)
        given = {"groups": groups} if has_fit_parameter(selector, "groups") else {}
        self.selector_ = selector.fit(X, y, **given)
        engine = table_engine(type(self).__name__, X, y, selector.channels)
        self._order_anew(lambda first: filled_moments(engine, first))
        return self

    @checks_parameters
    def fit_summaries(self, summaries: Sequence[Summary]) -> Self:
        """Rank features from summaries, as if their tables were one.

        The ranking is that of :meth:`fit` on all rows with the people as ``groups``, if nothing
        was withheld. What two channels have in common is known from the samples whose patterns of
        channels are told; of pairs that none of these have it counts as nothing.

        Parameters
        ----------
        summaries : sequence of Summary
            From ``idfsmec.summarise(..., between=True)``.

        Returns
        -------
        self : CrossChannelReranker
        """
        whole = combine_products(summaries)
        selector = self._selector()
        if not hasattr(selector, "fit_summaries"):
            raise InputError(f"{type(selector).__name__} cannot learn from summaries.")
        self.selector_ = selector.fit_summaries([whole])
        self._order_anew(lambda first: summed_moments(whole, first))
        return self

    def _selector(self) -> Any:
        plain = IDFSMEC(lam=0.01, gamma=1.1) if self.estimator is None else self.estimator
        return clone(plain)

    def _order_anew(self, moments: Callable[[NDArray[np.intp]], Three]) -> None:
        """Order the selector's candidates, of which the moments are known."""
        for name in ("n_features_in_", "feature_names_in_", "classes_", "channel_names_"):
            if hasattr(self.selector_, name):
                setattr(self, name, getattr(self.selector_, name))
        order = np.argsort(self.selector_.ranking_)
        first, rest = np.split(order, [int(self.n_candidates)])
        S, c, self.missing_rates_ = moments(first)
        S[np.diag_indices_from(S)] += float(self.ridge)
        self._set_order(np.r_[first[forward_order(S, c)], rest])


def filled_moments(engine: Engine, chosen: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Moments that mean-filled features are expected to have, from those observed together.

    With ``s`` the share of samples that have a channel and ``r`` a correlation over the samples
    that have both features, the covariance is ``s r`` within a channel and ``s_u s_v r`` between
    channels that are missing independently.

    Returns
    -------
    S : ndarray of shape (n_chosen, n_chosen)
    c : ndarray of shape (n_chosen, n_classes)
        With the standardised class indicators.
    missing : ndarray of shape (n_channels,)
    """
    (moments,) = engine.moments()
    channel = engine.channel_of[chosen]
    observed = observed_channels(engine.X, engine.columns)
    there = observed[:, channel].astype(float)
    values = moments.scaling().apply(engine.X)[:, chosen]
    values[there == 0] = 0.0
    share = observed.mean(axis=0)
    S = _expected(values.T @ values, there.T @ there, share, channel)
    classes = np.eye(engine.n_classes)[engine.target]
    classes = (classes - classes.mean(axis=0)) / classes.std(axis=0)
    return S, values.T @ classes / len(values), 1.0 - share


def summed_moments(summary: Summary, chosen: NDArray[np.intp]) -> Three:
    """:func:`filled_moments` of a summary: from sums of channels, between them from patterns."""
    channel_of = channel_codes(summary.places)
    channel, n_features = channel_of[chosen], len(summary.columns)
    scaling = summary.cells().whole().scaling()
    products, together = np.zeros((2, n_features, n_features))
    by_class = np.zeros((n_features, len(summary.labels)))
    place = {column: at for at, column in enumerate(summary.columns)}
    for one in summary.patterns:
        own = np.array([place[column] for column in one.columns])
        alike = one.in_units(scaling.mean[own], scaling.unit[own])
        products[np.ix_(own, own)] += alike.sum_xx.sum(axis=0)
        together[np.ix_(own, own)] += one.count.sum()
    for within, own in zip(summary.sums, summary.places, strict=True):  # over all who have them
        known = within.in_units(scaling.mean[own], scaling.unit[own])
        products[np.ix_(own, own)] = known.sum_xx[0].sum(axis=(0, 1))
        together[np.ix_(own, own)] = known.count[0].sum()
        by_class[own] = known.sum_x[0].sum(axis=0).T
    total = summary.class_total[0].sum(axis=0)
    n, there = total.sum(), total > 0
    shares = total[there] / n
    share = np.array([one.count[0].sum() for one in summary.sums]) / n
    pairs = np.ix_(chosen, chosen)
    S = _expected(products[pairs], together[pairs], share, channel)
    c = by_class[chosen][:, there]
    c = (c - c.sum(axis=1, keepdims=True) * shares) / np.sqrt(shares * (1.0 - shares))
    return S, c / n, 1.0 - share


def _expected(products: Array, together: Array, share: Array, channel: NDArray[np.intp]) -> Array:
    """Covariances expected of filled features, from products over who has both."""
    R = products / (together + _PRIOR_SAMPLES)
    np.fill_diagonal(R, 1.0)
    own = share[channel]
    return R * np.where(channel[:, None] == channel, own[:, None], np.outer(own, own))


def forward_order(S: Array, c: Array) -> NDArray[np.intp]:
    """Features in the order of forward selection.

    Parameters
    ----------
    S : ndarray of shape (n, n)
        Second moments, the penalty added to the diagonal.
    c : ndarray of shape (n, n_targets)

    Examples
    --------
    >>> S = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> forward_order(S, np.array([[0.5], [0.45], [0.2]]))
    array([0, 2, 1])
    """
    S, c = S.copy(), c.copy()
    left = np.ones(len(S), dtype=bool)
    order = np.empty(len(S), dtype=np.intp)
    for step in range(len(S)):
        pivots = np.maximum(np.diag(S), 1e-9)
        gains = np.sum(c**2, axis=1) / pivots
        best = int(np.where(left, gains, -1.0).argmax())
        order[step], left[best] = best, False
        column = S[:, best].copy()
        c -= np.outer(column, c[best] / pivots[best])
        S -= np.outer(column, column) / pivots[best]
    return order
