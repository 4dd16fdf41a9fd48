"""CrossChannelReranker: leading features ordered anew, with what channels repeat of one another.

``IDFSMEC`` sees redundancy within a channel only. Here its leading candidates are ordered by
forward selection: each step takes the feature that lowers the squared error of a ridge regression
the most. The regression is that of a linear classifier on features whose gaps are filled with the
mean, planned from how often each channel is missing: a copy in another channel is worth little
when channels are reliable, and is a backup when they are not.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import has_fit_parameter

from idfsmec._columns import observed_channels
from idfsmec._parameters import Constraints, HasMethods, checks_parameters, integer, number
from idfsmec.selection._base import RankingSelector
from idfsmec.selection.idfsmec.engine import Engine, table_engine
from idfsmec.selection.idfsmec.estimator import IDFSMEC

Array = NDArray[np.float64]

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
        plain = IDFSMEC(lam=0.01, gamma=1.1) if self.estimator is None else self.estimator
        selector = clone(plain)
        if self.channels is not None:
            selector.set_params(channels=self.channels)
        given = {"groups": groups} if has_fit_parameter(selector, "groups") else {}
        self.selector_ = selector.fit(X, y, **given)
        engine = table_engine(type(self).__name__, X, y, selector.channels)
        for name in ("n_features_in_", "feature_names_in_", "classes_", "channel_names_"):
            if hasattr(selector, name):
                setattr(self, name, getattr(selector, name))
        order = np.argsort(selector.ranking_)
        first, rest = np.split(order, [int(self.n_candidates)])
        S, c, self.missing_rates_ = filled_moments(engine, first)
        S[np.diag_indices_from(S)] += float(self.ridge)
        self._set_order(np.r_[first[forward_order(S, c)], rest])
        return self


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
    together = there.T @ there
    R = values.T @ values / (together + _PRIOR_SAMPLES)
    np.fill_diagonal(R, 1.0)
    share = observed.mean(axis=0)
    own = share[channel]
    both = np.where(channel[:, None] == channel, own[:, None], np.outer(own, own))
    classes = np.eye(engine.n_classes)[engine.target]
    classes = (classes - classes.mean(axis=0)) / classes.std(axis=0)
    return R * both, values.T @ classes / len(values), 1.0 - share


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
