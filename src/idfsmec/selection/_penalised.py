"""Penalised models that trust each feature by its score."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection._weighing import weigh
from idfsmec.solver import ChannelFits

Array = NDArray[np.float64]

# Share of the mean score that every feature of a usable channel is trusted with: a feature that
# repeats another has score 0, yet it stands in when the other's channel is missing.
_FLOOR = 0.02


def check_penalised(name: str, strengths: Any, power: Any, cv: Any) -> list[float]:
    """Check what the penalised estimators share; give the strengths to try.

    Examples
    --------
    >>> check_penalised("C", 2, power=0.5, cv=5)
    [2.0]
    """
    several = [strengths] if isinstance(strengths, Real) else list(strengths)
    if not several or not all(isinstance(one, Real) and float(one) > 0 for one in several):
        raise ValueError(f"{name} must be a number > 0 or several of them, got {strengths!r}.")
    if not isinstance(power, Real) or not 0 <= float(power) < np.inf:
        raise ValueError(f"power must be a finite number >= 0, got {power!r}.")
    if not isinstance(cv, Integral) or cv < 2:
        raise ValueError(f"cv must be an integer >= 2, got {cv!r}.")
    return [float(one) for one in several]


def feature_scales(
    fits: ChannelFits,
    fold: int,
    columns: Sequence[NDArray[np.intp]],
    *,
    gamma: float,
    power: float,
) -> Array:
    """How freely a penalised model may use each feature, from the features' scores.

    Parameters
    ----------
    fits : ChannelFits
        At one price of redundancy.
    fold : int
    columns : sequence of integer arrays
        The columns of each channel.
    gamma : float
        Of the channel weights.
    power : float
        0 trusts all features alike, large values only the leading ones.

    Returns
    -------
    ndarray of shape (n_features,)
        Of norm 1; 0 for constant features and in channels that carry nothing.
    """
    scores = weigh(
        fits.objectives[fold, 0],
        fits.feature_weights[fold, 0],
        fits.gains[fold, 0],
        columns,
        gamma=gamma,
        channel_weighting=True,
    ).scores
    scale = (scores / max(scores.mean(), 1e-300) + _FLOOR) ** power
    scale[fits.gains[fold, 0] < 0] = 0.0
    return scale / max(np.linalg.norm(scale), 1e-300)
