"""Coverage of the confidence intervals of ``idfsmec validate``.

``python -m benchmarks.quality.validation --studies 400`` draws the probabilities that a fixed
model gives to participants, and counts how often each 95 % interval contains the value in the
population, of 100 000 participants. Log odds are normal, heavy-tailed, skewed, of unequal spread
or in five steps; right, too extreme and shifted, or too cautious. Two further shapes, patients of
two kinds and participants of whom the model knows nothing, were used for nothing else; on the
others, intervals of intercept and slope by variances of scores were preferred to Wald's, and the
interval of the AUC to six: Newcombe's, DeLong's on the logit scale, and four with another number
of participants or degrees of freedom.

``--models 40`` instead trains logistic regressions on 80 participants, validates each on 80
others, of the same population or of one with half the effects, and counts how often the interval
of the difference from the card contains the difference of the AUCs on 1000 new participants of
each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.quality._cohorts import draw_cohort
from idfsmec.evaluation import train_model, validate
from idfsmec.evaluation.validation import (
    _adjust,
    _brier,
    _calibration,
    _mean_share,
    _recalibration,
)
from idfsmec.metrics import auc, diagnostic_scores, fixed_auc

SHAPES = ("normal", "heavy tails", "skewed", "unequal spread", "five steps")
NEW_SHAPES = ("two kinds of patients", "unknown participants")
#: Intercept and slope of the log odds that a model states, on those that are right.
CALIBRATIONS = {"right": (0.0, 1.0), "extreme": (0.7, 2.0), "cautious": (-0.3, 0.5)}
SIZES = ((20, 20), (50, 50), (80, 20), (200, 200))
DISTANCES = {"0.64": 0.5, "0.80": 1.2, "0.94": 2.2}
N_POPULATION = 100_000
FIRST_SEED = 1000
CLASSIFIER = make_pipeline(StandardScaler(), SimpleImputer(), LogisticRegression(C=0.01))


def draw(
    shape: str, distance: float, counts: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return right log odds of participants, for equally frequent classes, and their class."""
    positive = np.arange(sum(counts)) >= counts[0]
    size = positive.size
    noise = {
        "normal": lambda: rng.normal(size=size),
        "heavy tails": lambda: rng.standard_t(4, size) / np.sqrt(2),
        "skewed": lambda: (rng.gamma(2, size=size) - 2) / np.sqrt(2),
        "unequal spread": lambda: rng.normal(size=size) * np.where(positive, 1.4, 0.7),
    }.get(shape, lambda: rng.normal(size=size))()
    values = noise + np.where(positive, distance / 2, -distance / 2)
    if shape == "five steps":
        values = np.clip(np.round(values), -2, 2)
    elif shape == "two kinds of patients":  # a third of them is like controls
        values = values - distance * (positive & (rng.random(size) < 1 / 3))
    elif shape == "unknown participants":
        values = values * (rng.random(size) > 0.2)
    return distance * values, positive


def measure(log_odds: np.ndarray, positive: np.ndarray, share: float) -> dict[str, Any]:
    """Return the intervals of ``validate`` for probabilities with a prior of 0.5."""
    probability = special.expit(log_odds)
    adjusted = _adjust(probability, 0.5, share)
    scores = diagnostic_scores(positive, probability > 0.5, share)
    fitted = _calibration(adjusted, positive, ["HC", "MDD"])
    return {
        "AUC": dict(zip(("mean", "low", "high"), fixed_auc(probability, positive), strict=True)),
        "balanced accuracy": _mean_share(
            [scores[name] for name in ("sensitivity", "specificity")]
        ),
        "Brier score": _brier(adjusted, positive, share)["brier"],
        "intercept": fitted["intercept"],
        "slope": fitted["slope"],
    }


def cover(
    shape: str, distance: str, calibration: str, counts: tuple[int, int], n_studies: int
) -> list[dict[str, Any]]:
    """Count how often the intervals of studies contain the values of the population."""
    shapes = (*SHAPES, *NEW_SHAPES)
    place = [shapes.index(shape), list(DISTANCES).index(distance), *counts]
    rng = np.random.default_rng([*place, list(CALIBRATIONS).index(calibration), FIRST_SEED])
    shift, slope = CALIBRATIONS[calibration]
    share = counts[1] / sum(counts)
    large = (round((1 - share) * N_POPULATION), round(share * N_POPULATION))
    right, positive = draw(shape, DISTANCES[distance], large, rng)
    truth = measure(shift + slope * right, positive, share)
    hits: dict[str, list[bool]] = {name: [] for name in truth}
    is_right = (shape, calibration) == ("normal", "right")  # nothing can be gained
    for _ in range(n_studies):
        right, positive = draw(shape, DISTANCES[distance], counts, rng)
        for name, found in measure(shift + slope * right, positive, share).items():
            if found is not None:  # classes that are apart have no slope
                hits[name].append(found["low"] <= truth[name]["mean"] <= found["high"])
        if is_right:
            adjusted = _adjust(special.expit(right), 0.5, share)
            gain = _recalibration(adjusted, positive, share)["gain"]
            hits.setdefault("gain", []).append(gain["low"] > 0)
    where = {"shape": shape, "AUC": distance, "calibration": calibration, "counts": counts}
    return [
        {**where, "score": name, "share": np.mean(of), "n": len(of)} for name, of in hits.items()
    ]


def _score(model: Any, table: Any) -> float:
    """AUC of a model on the participants of a table."""
    probability = model.estimator.predict_proba(table.X)[:, 1]
    values = pd.Series(probability).groupby(table.subjects.to_numpy()).mean()
    labels = table.y.groupby(table.subjects.to_numpy()).first()
    return auc(values.to_numpy(), labels.to_numpy() == 1)


def difference(effect: float, n_epochs: int, share: float, seed: int) -> dict[str, Any]:
    """Train, validate elsewhere, and look whether the interval contains the true difference."""
    options: dict[str, Any] = {"n_epochs": n_epochs, "share_second": share, "of_population": seed}
    options |= {"n_effects": 4, "correlations": (0.3, 0.4)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = draw_cohort(80, effect=0.7, seed=9 * seed, **options)
        model = train_model(table, CLASSIFIER, n_repeats=1, seed=seed)
        other = draw_cohort(80, effect=effect, seed=9 * seed + 1, **options)
        (row,) = [
            row for row in validate(model, other).measured["card"] if row["score"] == "roc_auc"
        ]
        at_home = _score(model, draw_cohort(1000, effect=0.7, seed=9 * seed + 2, **options))
        elsewhere = _score(model, draw_cohort(1000, effect=effect, seed=9 * seed + 3, **options))
    found, card, now = row["difference"], row["card"], row["here"]
    return {
        "effect elsewhere": effect,
        "epochs": n_epochs,
        "share": share,
        "seed": seed,
        "card": card["low"] <= at_home <= card["high"],
        "here": now["low"] <= elsewhere <= now["high"],
        "difference": found["low"] <= elsewhere - at_home <= found["high"],
        "differs": found["low"] > 0 or found["high"] < 0,
        "true difference": elsewhere - at_home,
    }


def run(n_studies: int, n_jobs: int) -> pd.DataFrame:
    """Return how often each interval of a fixed model held, by cell."""
    cells = itertools.product((*SHAPES, *NEW_SHAPES), DISTANCES, CALIBRATIONS, SIZES)
    parts = Parallel(n_jobs)(delayed(cover)(*cell, n_studies) for cell in cells)
    return pd.DataFrame(itertools.chain.from_iterable(parts))


def summarise(cells: pd.DataFrame) -> dict[str, Any]:
    """Return mean and worst cell of each interval, of shapes that it was chosen on and of new."""
    summary: dict[str, Any] = {}
    for score, rows in cells.groupby("score"):
        is_new = rows["shape"].isin(NEW_SHAPES)
        for shapes, part in (("chosen on", rows[~is_new]), ("new", rows[is_new])):
            if part.empty:
                continue
            worst = part["share"].idxmax() if score == "gain" else part["share"].idxmin()
            where = part.loc[worst]
            summary[f"{score}, shapes {shapes}"] = {
                "mean": round(float(part["share"].mean()), 4),
                "worst": round(float(where["share"]), 4),
                "worst cell": f"{where['shape']}, AUC {where['AUC']}, {where['calibration']}, "
                f"{where['counts'][0]} + {where['counts'][1]}",
            }
    return summary


def run_models(n_studies: int, n_jobs: int, first_seed: int = FIRST_SEED) -> pd.DataFrame:
    """Return what the intervals of trained models held, a row for each study."""
    seeds = range(first_seed, first_seed + n_studies)
    tasks = itertools.product((0.7, 0.35), ((1, 0.5), (4, 0.5), (1, 0.3)), seeds)
    return pd.DataFrame(
        Parallel(n_jobs)(delayed(difference)(effect, *how, seed) for effect, how, seed in tasks)
    )


def summarise_models(studies: pd.DataFrame) -> dict[str, Any]:
    """Return mean and worst cell, and how often a difference is stated, by the effect there."""
    cells = studies.groupby(["effect elsewhere", "epochs", "share"]).mean()
    summary: dict[str, Any] = {"studies": len(studies)}
    for name in ("card", "here", "difference"):
        summary[name] = {"mean": studies[name].mean(), "worst": cells[name].min()}
    for effect, rows in cells.groupby(level=0):
        values = {"mean": rows["differs"].mean(), "most": rows["differs"].max()}
        values["true difference"] = rows["true difference"].mean()
        summary[f"differs, effect {effect} of 0.7"] = values
    return {
        name: {key: round(float(value), 4) for key, value in of.items()}
        if isinstance(of, dict)
        else of
        for name, of in summary.items()
    }


def main() -> None:
    """Print coverage: mean and least over cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.models:
        print(json.dumps(summarise_models(run_models(options.models, options.jobs)), indent=1))
    else:
        print(json.dumps(summarise(run(options.studies, options.jobs)), indent=1))


if __name__ == "__main__":
    main()
