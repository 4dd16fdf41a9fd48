"""How predicted scores of held-out subjects agree with the true ones, for models of a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from idfsmec.metrics import (
    SCORE_METRICS,
    Codes,
    Floats,
    Scores,
    fold_interval,
    score_predictions,
)
from idfsmec.prediction.calibration import interval_reach
from idfsmec.selection.effects import fisher_interval


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


def measure_fixed(predicted: Floats, true: Floats, trained_mean: float) -> dict[str, Scores]:
    """Return the scores of a model that is fixed on other subjects, each with its 95 % CI.

    R2 is 1 minus the ratio of the squared errors to those of the mean of training; its CI is that
    of the logarithm of this ratio (delta method). Correlations have Fisher's CI.
    ``benchmarks/quality/scores.py`` has the coverage.
    """
    found = score_predictions(predicted, true, np.arange(true.size), true, SCORE_METRICS)
    squares, of_mean = (true - predicted) ** 2, (true - trained_mean) ** 2
    ratio = squares.mean() / of_mean.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = _t_interval(squares / squares.mean() - of_mean / of_mean.mean())
        low, high = (1 - float(ratio * np.exp(relative[end])) for end in ("high", "low"))
    scores = {"subject_r2": {"mean": 1 - float(ratio), "low": low, "high": high}}
    for name in ("subject_spearman", "subject_pearson"):
        r = found[name]
        ends = fisher_interval(r, true.size, r**2 / 2 if "spearman" in name else 0.0)
        scores[name] = {"mean": r, "low": float(ends[0]), "high": float(ends[1])}
    chance = float(np.abs(true - trained_mean).mean())
    scores["subject_mae"] = {**measure_errors(predicted, true)["mae"], "chance": chance}
    return scores


def measure_errors(predicted: Floats, true: Floats) -> dict[str, Scores]:
    """Return the mean error (score minus prediction) and the mean absolute one, with 95 % CI."""
    errors = true - predicted
    mae = _t_interval(np.abs(errors))
    return {"error": _t_interval(errors), "mae": mae | {"low": max(mae["low"], 0.0)}}


def _t_interval(values: Floats) -> Scores:
    """Return the mean with Student's 95 % CI; the ends are NaN for a single value."""
    mean, half = float(values.mean()), float("nan")
    if values.size > 1:
        error = values.std(ddof=1) / np.sqrt(values.size)
        half = float(special.stdtrit(values.size - 1, 0.975) * error)
    return {"mean": mean, "low": mean - half, "high": mean + half}


def calibration_line(predicted: Floats, true: Floats) -> dict[str, Scores | None]:
    """Return intercept and slope of the regression of scores on predictions, and the mean error.

    With 95 % CIs whose variances allow for errors of unequal spread (HC3; MacKinnon and White,
    Journal of Econometrics 29, 305-325, 1985). None where all predictions are equal.
    """
    line = calibrate(predicted, true)
    measured: dict[str, Scores | None] = {"error": measure_errors(predicted, true)["error"]}
    if np.isnan(line["slope"]):
        return measured | {"intercept": None, "slope": None}
    design = np.column_stack([np.ones(true.size), predicted])
    inverse = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residuals = (true - line["intercept"] - line["slope"] * predicted) / (1 - leverage)
    spread = inverse @ (design.T * residuals**2) @ design @ inverse
    t = float(special.stdtrit(true.size - 2, 0.975))
    for place, name in enumerate(("intercept", "slope")):
        half = float(t * np.sqrt(spread[place, place]))
        mean = line[name]
        measured[name] = {"mean": mean, "low": mean - half, "high": mean + half}
    return measured


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
