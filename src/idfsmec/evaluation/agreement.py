"""How predicted scores of held-out subjects agree with the true ones, for models of a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from idfsmec.metrics import (
    SCORE_METRICS,
    Codes,
    Floats,
    Scores,
    fold_interval,
    score_grades,
    score_predictions,
)
from idfsmec.prediction.calibration import interval_reach
from idfsmec.selection.effects import fisher_interval


def measure_scores(
    predicted: Floats,
    true: Floats,
    fold_of: Codes,
    shares: Sequence[float],
    n_grades: int = 0,
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
    n_grades : int
        Number of grades; 0 for a score.
    """
    by_share = [_scores(predicted[:, at], true, fold_of) for at in range(len(shares))]
    metrics = by_share[0]
    of_mean = metrics.pop("subject_mae_of_mean")["mean"]
    chance = {"subject_mae": of_mean, "grade_auc": 0.5}
    if n_grades:
        metrics |= agree_on_grades(predicted[:, 0], true, fold_of, n_grades)
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


def agree_on_grades(
    predicted: Floats, true: Floats, fold_of: Codes, n_grades: int
) -> dict[str, Scores]:
    """Return weighted kappa and mean AUC of the cuts between grades, with 95 % CI over folds.

    Predictions and folds have a row for each repeat.
    """

    def score(values: Floats, out: NDArray[np.bool_]) -> Scores:
        return score_grades(values[out], true[out].round().astype(np.intp), n_grades)

    return _over_folds(predicted, fold_of, score)


def _scores(predicted: Floats, true: Floats, fold_of: Codes) -> dict[str, Scores]:
    """Return mean and 95 % CI of each metric over folds and repeats."""

    def score(values: Floats, out: NDArray[np.bool_]) -> Scores:
        subjects = np.arange(out.sum())
        found = score_predictions(values[out], true[out], subjects, true[~out], SCORE_METRICS)
        return {name: 0.0 if np.isnan(value) else value for name, value in found.items()}

    return _over_folds(predicted, fold_of, score)


def _over_folds(
    predicted: Floats, fold_of: Codes, score: Callable[[Floats, NDArray[np.bool_]], Scores]
) -> dict[str, Scores]:
    rows = [
        [score(values, folds == fold) for fold in np.unique(folds)]
        for values, folds in zip(predicted, fold_of, strict=True)
    ]
    scores = {}
    for name in rows[0][0]:
        table = np.array([[found[name] for found in row] for row in rows])
        if np.isnan(table).all():
            scores[name] = dict.fromkeys(("mean", "low", "high"), float("nan"))
            continue
        ci = fold_interval(table)
        limit = np.inf if "mae" in name else 1.0
        low, high = (float(np.clip(end, -np.inf, limit)) for end in (ci.low, ci.high))
        scores[name] = {"mean": ci.mean, "low": low, "high": high}
    return scores
