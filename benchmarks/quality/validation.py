"""Coverage of the confidence intervals of ``idfsmec validate``.

``python -m benchmarks.quality.validation --studies 2000`` draws the probabilities that a fixed
model gives to participants, and counts how often each 95 % interval contains the value in the
population, of 100 000 participants. Log odds are normal, heavy-tailed, skewed, of unequal spread
or in five steps; right, too extreme and shifted, or too cautious.

``--models 60`` instead trains models on 80 participants, validates each on 80 others, of the same
population or of one with half the effects, and counts how often the interval of the difference
from the card contains the difference of the AUCs on 2000 new participants of each.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special

from benchmarks._timing import markdown
from benchmarks.quality._cohorts import draw_cohort
from idfsmec.evaluation import train_model, validate
from idfsmec.evaluation.validation import _adjust, _auc, _brier, _calibration, _mean_share
from idfsmec.metrics import auc, diagnostic_scores

SHAPES = ("normal", "heavy tails", "skewed", "unequal spread", "five steps")
#: Intercept and slope of the log odds that a model states, on those that are right.
CALIBRATIONS = {"right": (0.0, 1.0), "extreme": (0.7, 2.0), "cautious": (-0.3, 0.5)}
SIZES = ((20, 20), (50, 50), (80, 20), (200, 200))
DISTANCES = {"0.64": 0.5, "0.80": 1.2, "0.94": 2.2}
N_POPULATION = 100_000


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
        "five steps": lambda: rng.normal(size=size),
    }[shape]()
    values = noise + np.where(positive, distance / 2, -distance / 2)
    if shape == "five steps":
        values = np.clip(np.round(values), -2, 2)
    return distance * values, positive


def measure(log_odds: np.ndarray, positive: np.ndarray, share: float) -> dict[str, Any]:
    """Return the intervals of ``validate`` for probabilities with a prior of 0.5."""
    probability = special.expit(log_odds)
    adjusted = _adjust(probability, 0.5, share)
    scores = diagnostic_scores(positive, probability > 0.5, share)
    fitted = _calibration(adjusted, positive, ["HC", "MDD"])
    return {
        "AUC": _auc(probability, positive),
        "balanced accuracy": _mean_share([scores["sensitivity"], scores["specificity"]]),
        "Brier score": _brier(adjusted, positive, share)["brier"],
        "intercept": fitted["intercept"],
        "slope": fitted["slope"],
    }


def cover(
    shape: str, distance: str, calibration: str, counts: tuple[int, int], n_studies: int
) -> list[dict[str, Any]]:
    """Count how often the intervals of studies contain the values of the population."""
    place = [SHAPES.index(shape), list(DISTANCES).index(distance), *counts]
    rng = np.random.default_rng([*place, list(CALIBRATIONS).index(calibration)])
    shift, slope = CALIBRATIONS[calibration]
    share = counts[1] / sum(counts)
    large = (round((1 - share) * N_POPULATION), round(share * N_POPULATION))
    right, positive = draw(shape, DISTANCES[distance], large, rng)
    truth = measure(shift + slope * right, positive, share)
    hits: dict[str, list[bool]] = {name: [] for name in truth}
    for _ in range(n_studies):
        right, positive = draw(shape, DISTANCES[distance], counts, rng)
        for name, found in measure(shift + slope * right, positive, share).items():
            if found is not None:  # classes that are apart have no slope
                hits[name].append(found["low"] <= truth[name]["mean"] <= found["high"])
    where = {"shape": shape, "AUC": distance, "calibration": calibration, "counts": counts}
    return [{**where, "score": name, "covered": np.mean(of)} for name, of in hits.items()]


def _score(model: Any, table: Any) -> float:
    """AUC of a model on the participants of a table."""
    probability = model.estimator.predict_proba(table.X)[:, 1]
    values = pd.Series(probability).groupby(table.subjects.to_numpy()).mean()
    labels = table.y.groupby(table.subjects.to_numpy()).first()
    return auc(values.to_numpy(), labels.to_numpy() == 1)


def difference(effect: float, n_epochs: int, seed: int) -> dict[str, Any]:
    """Train, validate elsewhere, and look whether the interval contains the true difference."""
    options = {"n_epochs": n_epochs, "of_population": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = draw_cohort(80, effect=0.6, seed=9 * seed, **options)
        model = train_model(table, n_repeats=1, seed=seed)
        other = draw_cohort(80, effect=effect, seed=9 * seed + 1, **options)
        (row,) = [
            row for row in validate(model, other).measured["card"] if row["score"] == "roc_auc"
        ]
        there = draw_cohort(2000, effect=0.6, seed=9 * seed + 2, **options)
        here = draw_cohort(2000, effect=effect, seed=9 * seed + 3, **options)
        at_home, elsewhere = _score(model, there), _score(model, here)
    found, card, now = row["difference"], row["card"], row["here"]
    return {
        "effect elsewhere": effect,
        "epochs": n_epochs,
        "card": card["low"] <= at_home <= card["high"],
        "here": now["low"] <= elsewhere <= now["high"],
        "difference": found["low"] <= elsewhere - at_home <= found["high"],
        "excludes 0": found["low"] > 0 or found["high"] < 0,
        "true difference": elsewhere - at_home,
    }


def _cells() -> Iterator[tuple[str, str, str, tuple[int, int]]]:
    yield from itertools.product(SHAPES, DISTANCES, CALIBRATIONS, SIZES)


def main() -> None:
    """Print coverage: mean and least over shapes and calibrations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    run = Parallel(n_jobs=options.jobs)
    if options.models:
        tasks = itertools.product((0.6, 0.3), (1, 4), range(options.models))
        frame = pd.DataFrame(run(delayed(difference)(*task) for task in tasks))
        table = frame.groupby(["effect elsewhere", "epochs"]).mean().round(3).reset_index()
        print(markdown(list(table.columns), table.astype(str).to_numpy().tolist()))
        return
    cells = run(delayed(cover)(*cell, options.studies) for cell in _cells())
    frame = pd.DataFrame([row for rows in cells for row in rows])
    frame["participants"] = [f"{n} + {m}" for n, m in frame["counts"]]
    grouped = frame.groupby(["score", "participants", "AUC"])["covered"]
    table = grouped.agg(["mean", "min", "max"]).round(3).reset_index()
    print(markdown(list(table.columns), table.astype(str).to_numpy().tolist()))


if __name__ == "__main__":
    main()
