"""Interval of a person's probability: how often it came true for people who were held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Array = NDArray[np.float64]

_RESAMPLES = 1000
_STEPS = 8
# Probabilities beyond are not told apart.
_LEAST = 0.005
# Precision with which nobody held out would be believed: no shift, slope 1.
_BELIEF = np.array([0.25, 1.0])


class Intervals:
    """Intervals of mean probabilities over a person's epochs.

    With people who were held out, they are of the frequency of a class among people about whom as
    much is said: log odds are calibrated anew on resampled people, who had as many channels, and
    epochs are resampled along. Without, only the epochs vary, and one epoch has no interval.

    Parameters
    ----------
    held_out : mapping, optional
        ``true``, ``prior``, ``shares`` and ``left`` of ``performance["held_out"]``.
    level : float
    """

    def __init__(self, held_out: Mapping[str, Any] | None, level: float) -> None:
        self._held_out = held_out
        self._tails = [(1 - level) / 2, (1 + level) / 2]
        self._known: dict[tuple[int, int], Array] = {}

    def of(self, each: Array, code: int, share: float) -> tuple[float, float]:
        """Interval for epochs with these probabilities of a class and this share of channels.

        The mean itself is always in it. NaN if there is nothing to go by.
        """
        rng = np.random.default_rng(0)
        drawn = each[rng.integers(each.size, size=(_RESAMPLES, each.size))].mean(axis=1)
        if self._held_out:
            place = int(np.abs(np.array(self._held_out["shares"]) - share).argmin())
            if (place, code) not in self._known:
                self._known[place, code] = _calibrations(self._held_out, place, code)
            shift, slope = self._known[place, code].T
            drawn = expit(shift + slope * _odds(drawn))
        elif each.size < 2:
            return np.nan, np.nan
        low, high = np.quantile(drawn, self._tails)
        return float(min(low, each.mean())), float(max(high, each.mean()))


def _odds(probability: Array) -> Array:
    return np.asarray(logit(np.clip(probability, _LEAST, 1 - _LEAST)))


def _calibrations(held_out: Mapping[str, Any], place: int, code: int) -> Array:
    """Shift and slope of the log odds by logistic regression on resampled people: (B, 2)."""
    rng = np.random.default_rng(1)
    true, given = np.array(held_out["true"]), np.array(held_out["left"])[place][:, code]
    hit = (true == code).astype(np.float64)
    # Probabilities are meant for classes that are as frequent as the model's prior.
    weights = (np.array(held_out["prior"]) * true.size / np.bincount(true))[true]
    counts = rng.multinomial(true.size, np.full(true.size, 1 / true.size), _RESAMPLES) * weights
    design = np.column_stack([np.ones(true.size), _odds(given)])
    products = (design[:, :, None] * design[:, None, :]).reshape(true.size, 4)
    usual = np.array([0.0, 1.0])
    found = np.tile(usual, (_RESAMPLES, 1))
    for _ in range(_STEPS):
        expected = expit(found @ design.T)
        slope = (counts * (hit - expected)) @ design - _BELIEF * (found - usual)
        curvature = (counts * expected * (1 - expected)) @ products
        curvature = curvature.reshape(-1, 2, 2) + np.diag(_BELIEF)
        found = found + np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
    return np.asarray(found)
