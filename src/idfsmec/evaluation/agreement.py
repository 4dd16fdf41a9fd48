"""How predicted scores of held-out subjects agree with the true ones, for models of a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from idfsmec.metrics import SCORE_METRICS, Codes, Floats, fold_interval, score_predictions
from idfsmec.prediction.calibration import interval_reach


def measure_scores(
    predicted: Floats, true: Floats, fold_of: Codes, shares: Sequence[float]
) -> dict[str, Any]:
    """Return the ``performance`` of a model of a score.

    Parameters
    ----------
    predicted : ndarray of shape (n_repeats, n_shares, n_subjects)
        Of subjects held out, with all of their channels or a share.
    true : ndarray of shape (n_subjects,)
    fold_of : ndarray of shape (n_repeats, n_subjects)
        The fold that held out each subject.
    shares : sequence of float
        Of the channels.
    """
    by_share = [_scores(predicted[:, at], true, fold_of) for at in range(len(shares))]
    metrics = by_share[0]
    of_mean = metrics.pop("subject_mae_of_mean")["mean"]
    chance = {"subject_mae": of_mean}
    return {
        "metrics": {
            name: {**values, "chance": chance.get(name, 0.0)} for name, values in metrics.items()
        },
        "by_share": [
            {"share": share, **scores["subject_spearman"]}
            for share, scores in zip(shares, by_share, strict=True)
        ],
        "calibration": calibrate(predicted[:, 0].mean(axis=0), true),
        "held_out": {
            "true": true.tolist(),
            "shares": list(shares),
            "left": predicted.mean(axis=0).round(6).tolist(),
            "reach": [interval_reach(predicted[:, at] - true) for at in range(len(shares))],
        },
    }


def calibrate(predicted: Floats, true: Floats) -> dict[str, float]:
    """Return slope and intercept of the regression of scores on their predictions.

    The slope is below 1 where predictions are further apart than the scores they stand for; NaN
    where all predictions are equal.
    """
    away = predicted - predicted.mean()
    varies = float(away @ away) > 1e-18 * true.size * (1 + np.abs(predicted).max()) ** 2
    slope = float(away @ true / (away @ away)) if varies else float("nan")
    return {"slope": slope, "intercept": float(true.mean() - slope * predicted.mean())}


def _scores(predicted: Floats, true: Floats, fold_of: Codes) -> dict[str, dict[str, float]]:
    """Return mean and 95 % CI of each metric over folds and repeats."""
    rows = []
    for values, folds in zip(predicted, fold_of, strict=True):
        for fold in np.unique(folds):
            out = folds == fold
            found = score_predictions(
                values[out], true[out], np.arange(out.sum()), true[~out], SCORE_METRICS
            )
            rows.append([0.0 if np.isnan(value) else value for value in found.values()])
    table = np.array(rows).reshape(len(predicted), -1, len(SCORE_METRICS))
    scores = {}
    for at, name in enumerate(SCORE_METRICS):
        ci = fold_interval(table[:, :, at])
        limit = 1.0 if at < 3 else np.inf
        low, high = (float(np.clip(end, -np.inf, limit)) for end in (ci.low, ci.high))
        scores[name] = {"mean": ci.mean, "low": low, "high": high}
    return scores
