"""Coverage of what is said of a predicted score: prediction intervals, R2, correlations, effects.

``python -m benchmarks.quality.scores --studies 40`` simulates studies, trains the default model of
a score on each as ``idfsmec train`` does (with one repeat of the folds), and compares its
statements with 1000 new participants of the population, who lack as many channels. ``interval`` is
the share of them whose score lies in the prediction interval; ``R2`` and ``spearman``, how often
the 95 % CI of the card holds the value of the final model among them. ``effect`` is how often the
CI of a feature's own correlation holds the true one.

Cells: 40, 80 and 200 participants; no or a moderate signal; three populations: ``normal``;
``questionnaire``, whose scores are whole numbers, a third of them 0; ``uneven``, whose errors grow
with the score and whose features have heavy tails. The interval was written down once, from its
formula, and no other was tried; R2 was first the mean of ratios of folds, which simulations of its
formula, not of this module, showed to be too low.

``--fixed 1000`` instead draws what a fixed model predicts for other participants, and counts how
often each 95 % interval of ``idfsmec validate`` holds the value in a population of 200 000. The
predictions are as wide apart as they should be, too far, or too close. These intervals were
written down once, and no other was tried; the generator is the second: the first standardised
severity by each sample's own SD, and its errors grew exponentially in heavy-tailed features (R2
0.93, single cells of Pearson near 0).
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from idfsmec.evaluation import train_model
from idfsmec.evaluation.agreement import calibration_line, measure_fixed
from idfsmec.prediction.subjects import _reach
from idfsmec.selection import feature_effects
from idfsmec.table import FeatureTable

N_CHANNELS, N_FEATURES, N_NEW = 6, 3, 1000
POPULATIONS = ("normal", "questionnaire", "uneven")
SIGNALS = {"none": 0.0, "moderate": 0.6}
SIZES = (40, 80, 200)
FIRST_SEED = 70_000
#: What ``validate`` states of a score, and its name among the results.
NAMES = {
    "subject_r2": "R2",
    "subject_spearman": "Spearman",
    "subject_pearson": "Pearson",
    "subject_mae": "mean absolute error",
    "slope": "slope",
    "error": "mean error",
}


def draw(rng: np.random.Generator, n: int, signal: float, kind: str, mixing: np.ndarray):
    """Return features of one sample for each participant, and their scores."""
    X = rng.normal(size=(n, 4)) @ mixing + rng.normal(size=(n, mixing.shape[1]))
    if kind == "uneven":
        X = X + 0.5 * rng.standard_t(3, size=X.shape)
    severity = signal * (X[:, 4] + X[:, 8]) / np.sqrt(2) / X[:, 4].std()
    noise = np.sqrt(1 - signal**2) * rng.normal(size=n)
    if kind == "uneven":
        return X, 20 + 6 * (severity + noise * np.exp(0.4 * severity))
    if kind == "questionnaire":
        return X, np.maximum(0, np.round(4 + 10 * (severity + noise)))
    return X, 20 + 6 * (severity + noise)


def table_of(X: np.ndarray, score: np.ndarray) -> FeatureTable:
    """Return a table of participants with a score."""
    columns = [f"E{v}__f{j}" for v in range(N_CHANNELS) for j in range(N_FEATURES)]
    names = [f"p{number:04d}" for number in range(len(score))]
    table = FeatureTable(pd.DataFrame(X, columns=columns), pd.Series(score), pd.Series(names))
    return table.with_target("label")


def study(n: int, signal: str, kind: str, seed: int) -> dict[str, object]:
    """Train on one study, and hold its statements against new participants."""
    rng = np.random.default_rng([seed, n, POPULATIONS.index(kind)])
    mixing = 0.6 * rng.normal(size=(4, N_CHANNELS * N_FEATURES))
    part = SIGNALS[signal], kind, mixing
    X, score = draw(rng, n, *part)
    new_X, new_score = draw(rng, N_NEW, *part)
    for values in (X, new_X):
        missing = rng.random((len(values), N_CHANNELS)) < 0.15
        missing[missing.all(axis=1), 0] = False
        values[np.repeat(missing, N_FEATURES, axis=1)] = np.nan
    new = table_of(new_X, new_score)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train_model(table_of(X, score), n_repeats=1, seed=seed)
        predicted = np.asarray(model.estimator.predict(new.X))
        reach = [_reach(model, share) for share in new.observed.mean(axis=1)]
        effects = feature_effects(X, score, np.arange(n), numeric=True)
    inside = np.abs(new_score - predicted) <= reach
    spread = np.mean((new_score - score.mean()) ** 2)
    truth = {
        "R2": 1 - np.mean((new_score - predicted) ** 2) / spread,
        "spearman": spearmanr(predicted, new_score).statistic if np.ptp(predicted) else 0.0,
    }
    metrics = model.performance["metrics"]
    found: dict[str, object] = {"n": n, "signal": signal, "population": kind, "seed": seed}
    found["interval"] = float(inside.mean())
    for name, metric in (("R2", "subject_r2"), ("spearman", "subject_spearman")):
        ci = metrics[metric]
        found[name] = ci["low"] <= truth[name] <= ci["high"]
        found[f"{name} bias"] = ci["mean"] - truth[name]
    found["better"] = metrics["subject_r2"]["low"] > 0
    many_X, many_score = draw(np.random.default_rng([seed, 5]), 20_000, *part)
    rho = spearmanr(many_X[:, 4], many_score).statistic
    found["effect"] = effects["spearman_low"][4] <= rho <= effects["spearman_high"][4]
    return found


def summarise(studies: pd.DataFrame, of_fixed: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return mean and worst coverage over cells; of CIs in training, over numbers of subjects."""
    cells = studies.groupby(["n", "population", "signal"]).mean(numeric_only=True)
    found = {f"interval, {n}": cells["interval"].loc[n] for n in SIZES}
    found |= {name: studies.groupby("n")[name].mean() for name in ("R2", "spearman")}
    found |= {f"fixed: {name}": of_fixed[key] for key, name in NAMES.items()}
    return {
        name: {"mean": round(float(of.mean()), 4), "worst": round(float(of.min()), 4)}
        for name, of in found.items()
    }


def draw_fixed(
    rng: np.random.Generator, n: int, signal: float, kind: str, stretch: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a fixed model predicts for participants, and their scores."""
    severity, noise = rng.normal(size=n), np.sqrt(1 - signal**2) * rng.normal(size=n)
    if kind == "uneven":
        noise = (
            noise * np.exp(0.4 * np.clip(severity, -2.5, 2.5)) * np.sqrt(rng.chisquare(9, n) / 9)
        )
    total = signal * severity + noise
    score = np.maximum(0, np.round(4 + 10 * total)) if kind == "questionnaire" else 20 + 6 * total
    return 15 + 3 * stretch * severity + rng.normal(size=n), score


def fixed(n_studies: int) -> pd.DataFrame:
    """Return how often the intervals of a fixed model hold the value in the population."""
    rows = []
    for cell, (n, signal, kind, stretch) in enumerate(
        itertools.product(SIZES, SIGNALS, POPULATIONS, (1.0, 2.0, 0.5))
    ):
        rng, part = np.random.default_rng([cell, 90_000]), (SIGNALS[signal], kind, stretch)
        truth = measure(*draw_fixed(rng, 200_000, *part))
        held = pd.DataFrame(
            {
                name: of["low"] <= truth[name]["mean"] <= of["high"]
                for name, of in measure(*draw_fixed(rng, n, *part)).items()
            }
            for _ in range(n_studies)
        )
        where = {"n": n, "signal": signal, "population": kind, "stretch": stretch}
        rows.append(where | held.mean().to_dict())
    return pd.DataFrame(rows)


def measure(predicted: np.ndarray, score: np.ndarray) -> dict[str, dict[str, float]]:
    """Return all that ``validate`` states of a fixed model."""
    return measure_fixed(predicted, score, 15.0) | calibration_line(predicted, score)


def run(n_studies: int, n_jobs: int, out: Path | None = None) -> pd.DataFrame:
    """Simulate all cells, a row for each study, which a file keeps."""
    rows = [] if out is None or not out.exists() else pd.read_csv(out).to_dict("records")
    done = {(row["n"], row["signal"], row["population"], row["seed"]) for row in rows}
    cells = itertools.product(SIZES, SIGNALS, POPULATIONS)
    seeds = range(FIRST_SEED, FIRST_SEED + n_studies)
    to_do = [(*c, s) for s, c in itertools.product(seeds, cells) if (*c, s) not in done]
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    for row in parallel(delayed(study)(*task) for task in to_do):
        rows.append(row)
        if out is not None:
            pd.DataFrame(rows).to_csv(out, index=False)
    return pd.DataFrame(rows)


def main() -> None:
    """Print the table, and keep it with ``--out``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--fixed", type=int, default=0, help="studies of a fixed model instead")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keeps each study; given again, the rest is done")
    given = parser.parse_args()
    if given.fixed:
        print((table := fixed(given.fixed)).round(3).to_string())
        if given.out is not None:
            table.to_csv(given.out, index=False)
        return
    rows = run(given.studies, given.jobs, given.out).drop(columns="seed")
    print(rows.groupby(["population", "signal", "n"]).mean().round(3).to_string())


if __name__ == "__main__":
    main()
