"""From solved channels to channel weights, scores and an order of all features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver import channel_weights

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Weighing:
    """Channel weights, feature scores and the features from best to worst."""

    channel_weights: Array
    scores: Array
    order: NDArray[np.intp]


def weigh(
    objectives: Array,
    feature_weights: Array,
    gains: Array,
    columns: Sequence[NDArray[np.intp]],
    *,
    gamma: float,
    channel_weighting: bool,
) -> Weighing:
    """Weigh channels and order features.

    Features are ordered by score (channel weight times feature weight). Those with score zero
    follow by what adding them alone to their channel's model would take off the loss, weighted by
    the channel; those that were left out come last. Ties stay in column order.

    Parameters
    ----------
    objectives : ndarray of shape (n_channels,)
        Infinite for channels that carry nothing: these get weight 0.
    feature_weights, gains : ndarray of shape (n_features,)
        See :class:`~idfsmec.solver.ChannelFits`.
    columns : sequence of integer arrays
        The columns of each channel.
    gamma : float
    channel_weighting : bool
    """
    usable = np.isfinite(objectives)
    alpha = np.zeros(objectives.size)
    alpha[usable] = channel_weights(objectives[usable], gamma, weighting=channel_weighting)
    per_feature = np.empty(gains.size)
    for weight, own in zip(alpha, columns, strict=True):
        per_feature[own] = weight
    scores = per_feature * feature_weights
    after_support = np.where(gains < 0, -1.0, per_feature * gains)
    # lexsort takes its last key first and is stable.
    return Weighing(alpha, scores, np.lexsort((-after_support, -scores)))
