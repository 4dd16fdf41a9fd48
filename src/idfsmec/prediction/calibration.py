"""Calibrate probabilities on held-out subjects, with confidence intervals.

A line takes the log odds that a model gave held-out subjects to the odds that they were of the
class. A new subject's probability lies on that line, and its interval comes from the same fit.
Held-out subjects were predicted by models whose training sets overlap, and the final model has a
training set of its own: as for scores (:func:`idfsmec.metrics.fold_interval`), the variance of
the fit is multiplied by Nadeau and Bengio's ``1 + k / (k - 1)``, with k - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit, stdtrit

from idfsmec.metrics import Floats
from idfsmec.solver.logistic import fit_logistic

# Coverage of the intervals.
_LEVEL = 0.95
# Probabilities beyond are not distinguished.
_LEAST_PROBABILITY = 0.005
# Prior of shift and slope.
_PRIOR_MEAN, _PRIOR_PRECISION = np.array([0.0, 1.0]), np.array([0.25, 1.0])


def interval_reach(errors: Floats) -> float:
    """Return how far about a prediction the score of a new subject lies, in 95 of 100 subjects.

    ``errors`` are those of subjects held out, (n_repeats, n_subjects). Of n of them and a new one,
    which are exchangeable, the new one's is among the smallest 95 % of n + 1 [1]_: the interval
    is that of cross-validated residuals. NaN below 19 subjects, who cannot say it.

    References
    ----------
    .. [1] Barber, Candès, Ramdas, Tibshirani, "Predictive inference with the jackknife+", Annals
       of Statistics 49, 486-507, 2021.

    Examples
    --------
    >>> interval_reach(np.arange(1.0, 40.0)[None])  # the 38th of 39
    38.0
    """
    n_repeats, n = errors.shape
    rank = math.ceil(_LEVEL * (n + 1) - 1e-9)
    if rank > n:
        return float("nan")
    return float(np.sort(np.abs(errors), axis=None)[n_repeats * rank - 1])


class Calibration:
    """Lines of log odds on held-out subjects, as in ``performance["held_out"]`` of a model."""

    def __init__(self, held_out: Mapping[str, Any]) -> None:
        self._shares = np.array(held_out["shares"], dtype=np.float64)
        self._log_odds = log_odds(np.array(held_out["left"], dtype=np.float64))
        true = np.array(held_out["true"])
        self._hits = np.eye(self._log_odds.shape[2])[true]
        # Probabilities are meant for classes that are as frequent as the model's prior.
        self._totals = np.array(held_out["prior"], dtype=np.float64) * true.size
        self._n_splits = int(held_out.get("n_splits", 5))  # older models had five folds

    def apply(self, epochs: Floats, share: float) -> tuple[Floats, float, float]:
        """Calibrate the mean over a subject's epochs, of shape (n_epochs, n_classes).

        The subjects of the calibration had about the same share of the channels. Also return the
        interval of the most probable class: how frequent it is among subjects like this one.
        """
        nearest, n_classes = int(np.abs(self._shares - share).argmin()), epochs.shape[1]
        inputs = np.column_stack([np.ones(n_classes), log_odds(epochs.mean(axis=0))])
        everyone = np.ones((1, len(self._hits)))
        fits = [self._fit(nearest, code, everyone) for code in range(n_classes)]
        coefs, covariances = (np.concatenate(parts) for parts in zip(*fits, strict=True))
        values = np.sum(inputs * coefs, axis=1)
        best = int(values.argmax())
        probabilities = expit(values)
        others = self._n_splits - 1
        overlap = 1 + self._n_splits / others
        variance = overlap * inputs[best] @ covariances[best] @ inputs[best]
        # The mean over epochs varies, too; the slope of the log odds takes that to the line.
        mean = np.clip(epochs[:, best].mean(), _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        of_mean = epochs[:, best].var() / len(epochs) / (mean * (1 - mean)) ** 2
        half = stdtrit(others, (1 + _LEVEL) / 2) * np.sqrt(
            variance + coefs[best, 1] ** 2 * of_mean
        )
        rest = np.arange(n_classes) != best  # they share what is left; of two it is theirs
        probabilities[rest] *= (1 - probabilities[best]) / probabilities[rest].sum()
        low, high = expit([values[best] - half, values[best] + half])
        return probabilities, float(low), float(high)

    def leave_one_out(self) -> Floats:
        """Calibrate each held-out subject, with all channels, by the others: (n, n_classes)."""
        without = 1 - np.eye(len(self._hits))
        values = []
        for code, log_odds in enumerate(self._log_odds[0].T):
            coefs, _ = self._fit(0, code, without)
            values.append(coefs[:, 0] + coefs[:, 1] * log_odds)
        probabilities = expit(np.stack(values, axis=1))
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def _fit(self, share: int, code: int, included: Floats) -> tuple[Floats, Floats]:
        """Fit a line for each choice of subjects (B, n): shift and slope (B, 2), covariance."""
        weights = included * ((self._totals / np.maximum(included @ self._hits, 1)) @ self._hits.T)
        log_odds, hit = self._log_odds[share][:, code], self._hits[:, code]
        design = np.column_stack([np.ones(log_odds.size), log_odds])
        coefs, curvatures = fit_logistic(design, hit, weights, _PRIOR_PRECISION, _PRIOR_MEAN)
        return coefs, np.asarray(np.linalg.inv(curvatures), dtype=np.float64)


def log_odds(probability: Floats) -> Floats:
    """Return log odds of probabilities, which are taken as between 0.005 and 0.995."""
    return np.asarray(logit(np.clip(probability, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)))
