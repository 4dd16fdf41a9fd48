"""The channel weights alpha: closed form, computed once when the channels are solved.

``min sum_v alpha_v^gamma U_v`` over the simplex has ``alpha_v`` proportional to
``U_v^(1 / (1 - gamma))``. A channel's problem does not depend on its weight, so all values of
gamma share one solve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A perfect fit has U = 0; this floor, relative to the largest U, keeps its logarithm finite.
_FLOOR = 1e-15


def channel_weights(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """Weights of channels from their objectives; the lower the objective, the larger the weight.

    Parameters
    ----------
    objectives : ndarray of shape (..., n_channels)
    gamma : float
        Greater than 1; the closer to 1, the more the best channel takes.
    weighting : bool, default=True
        False gives every channel the same weight.

    Examples
    --------
    >>> channel_weights(np.array([1.0, 2.0, 4.0]), gamma=2.0)
    array([0.571, 0.286, 0.143])
    """
    if not weighting:
        return np.full_like(objectives, 1.0 / objectives.shape[-1])
    logs = _safe_log(objectives) / (1.0 - gamma)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def total_objective(objectives: Array, gamma: float, *, weighting: bool = True) -> Array:
    """``sum_v alpha_v^gamma U_v`` at the best alpha, for each row of objectives."""
    weights = channel_weights(objectives, gamma, weighting=weighting)
    return np.sum(weights**gamma * objectives, axis=-1)


def _safe_log(objectives: Array) -> Array:
    top = np.maximum(objectives.max(axis=-1, keepdims=True), np.finfo(float).tiny)
    return np.log(np.maximum(objectives, _FLOOR * top))
