"""What the channels of tables came to: feature weights, objectives and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.table_moments import TableMoments

Array = NDArray[np.float64]


@dataclass
class ChannelFits:
    """The solved channels of ``F`` tables (folds) at ``L`` redundancy weights.

    Attributes
    ----------
    feature_weights : ndarray of shape (F, L, D)
        theta; zero for constant features and unusable channels.
    gains : ndarray of shape (F, L, D)
        What adding the feature alone to its channel's fitted model would take off the loss; -1
        for features that were left out.
    objectives : ndarray of shape (F, L, n_channels)
        U; infinite for unusable channels.
    kkt_residuals : ndarray of shape (F, L, n_channels)
    n_iter : ndarray of shape (F, L, n_channels)
    coefficients : ndarray of shape (F, L, c, D)
        ``(Theta W)'`` for features as they were given: channel v predicts the class indicators of
        a sample as ``class_shares + coefficients @ (x - centres)`` over its own features.
    centres : ndarray of shape (F, D)
        Mean of every feature over its observed samples.
    class_shares : ndarray of shape (F, n_channels, c)
        Share of each class among the samples that have the channel; for a numeric target, its
        mean there.
    unusable : list of dict of int to str
        For every table, why a channel carries nothing.
    history : ndarray of shape (max(n_iter) + 1, n_channels)
        U of every channel of the first table at the first redundancy weight, after each iteration;
        channels that are done keep their value.
    """

    feature_weights: Array
    gains: Array
    objectives: Array
    kkt_residuals: Array
    n_iter: NDArray[np.int64]
    coefficients: Array
    centres: Array
    class_shares: Array
    unusable: list[dict[int, str]]
    history: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def empty(cls, n_tables: int, n_lams: int, like: TableMoments) -> ChannelFits:
        """Nothing solved yet."""
        n_channels, n_features, n_classes = like.n_channels, like.n_features, like.class_total.size
        return cls(
            feature_weights=np.zeros((n_tables, n_lams, n_features)),
            gains=np.full((n_tables, n_lams, n_features), -1.0),
            objectives=np.full((n_tables, n_lams, n_channels), np.inf),
            kkt_residuals=np.zeros((n_tables, n_lams, n_channels)),
            n_iter=np.zeros((n_tables, n_lams, n_channels), dtype=np.int64),
            coefficients=np.zeros((n_tables, n_lams, n_classes, n_features)),
            centres=np.zeros((n_tables, n_features)),
            class_shares=np.zeros((n_tables, n_channels, n_classes)),
            unusable=[{} for _ in range(n_tables)],
            history=np.full((1, n_channels), np.inf),
        )

    def tables(self, which: slice) -> ChannelFits:
        """What was found for some of the tables; without the course, which is of the first."""
        parts = {name: part[which] for name, part in vars(self).items() if name != "history"}
        return ChannelFits(**parts)
