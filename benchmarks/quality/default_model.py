"""Which model ``train`` should fit by default: a classifier of all features, or a tuned pipeline.

``python -m benchmarks.quality.default_model TABLE... --jobs 16`` compares, by the area under the
ROC curve by participant,

- ``IDFSMECClassifier``, which uses all features of all channels;
- ``TunedPipeline`` of IDFS-MEC, factors and L2 logistic regression, that compares 10, 20, 50 and
  all features, with the 42 settings of the benchmark or with the default setting alone.

on new participants of simulated populations with few effects (6 of 72 features, 0.6 standard
deviations) and with many (36, of 0.2), and on held-out participants of tables (5 folds, 4 seeds,
complete and with 40 % of the channel samples missing). Differences are over seeds of populations;
in tables over the means of a table and seed.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

from benchmarks._timing import markdown
from benchmarks.quality._cohorts import draw_cohort
from benchmarks.quality.tuning import read_table
from idfsmec.metrics import score_decisions
from idfsmec.missing import simulate_missing
from idfsmec.prediction import IDFSMECClassifier, TunedPipeline
from idfsmec.prediction.folds import make_folds
from idfsmec.selection import IDFSMEC
from idfsmec.selection.defaults import GAMMAS, LAMS
from idfsmec.table import FeatureTable

COUNTS = (10, 20, 50, 1.0)
N_NEW = 400
EFFECTS = {"few effects": (6, 0.6), "many effects": (36, 0.2)}


def build(name: str) -> Any:
    """Return one of the models that are compared."""
    if name == "IDFSMECClassifier":
        return IDFSMECClassifier()
    every = [{"lam": lam, "gamma": gamma} for lam in LAMS for gamma in GAMMAS]
    return TunedPipeline(
        IDFSMEC(),
        settings=every if name == "tuned, 42 settings" else ({},),
        classifier=LogisticRegression(max_iter=1000),
        n_features_to_select=COUNTS,
    )


MODELS = ("IDFSMECClassifier", "tuned, 1 setting", "tuned, 42 settings")


def score(model: str, train: FeatureTable, test: FeatureTable) -> dict[str, float]:
    """Fit, and score held-out participants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fitted = build(model).fit(train.X, train.y, groups=train.subjects)
        seconds = time.perf_counter() - start
        decisions = np.log(np.maximum(fitted.predict_proba(test.X), 1e-6))
    y = np.searchsorted(fitted.classes_, test.y.to_numpy())
    subjects = np.unique(test.subjects.to_numpy().astype(str), return_inverse=True)[1]
    auc = score_decisions(decisions, y, subjects, ["subject_roc_auc"])["subject_roc_auc"]
    return {"model": model, "auc": 100 * auc, "seconds": seconds}


def simulated(
    cell: tuple[str, int, int, float], seed: int, correlations: tuple[float, float]
) -> list[dict[str, Any]]:
    """Score all models on one population."""
    kind, n_subjects, n_epochs, missing = cell
    n_effects, effect = EFFECTS[kind]
    train, test = (
        draw_cohort(
            n, n_effects=n_effects, effect=effect, n_epochs=n_epochs, missing=missing,
            correlations=correlations, of_population=seed, seed=part,
        )
        for part, n in enumerate((n_subjects, N_NEW))
    )  # fmt: skip
    known = {"data": kind, "participants": n_subjects, "epochs": n_epochs, "missing": missing}
    return [{**known, "seed": seed, **score(model, train, test)} for model in MODELS]


def recorded(
    name: str, table: FeatureTable, missing: float, seed: int, fold: int
) -> list[dict[str, Any]]:
    """Score all models on one fold of a table."""
    if missing:
        table = simulate_missing(table, missing, random_state=seed)
    train, test = make_folds(table.y, table.subjects, n_splits=5, random_state=seed)[fold]
    known = {"data": name, "missing": missing, "seed": seed}
    return [{**known, **score(model, table.take(train), table.take(test))} for model in MODELS]


def main() -> None:
    """Print the means of every cell and the differences to ``IDFSMECClassifier``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="*")
    parser.add_argument("--populations", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument(
        "--correlations", type=float, nargs=2, default=(0.5, 0.25),
        help="of features of a channel, and of channels for the same feature",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="scores as CSV")
    options = parser.parse_args()
    cells = itertools.product(EFFECTS, (160, 80, 40), (6, 1), (0.0, 0.3))
    seeds = range(options.first_seed, options.first_seed + options.populations)
    tables = {path.name.split("_")[0]: read_table(path) for path in options.tables}
    jobs = [
        delayed(recorded)(name, table, missing, seed, fold)
        for name, table in tables.items()
        for missing in (0.0, 0.4)
        for seed in seeds[:4]
        for fold in range(5)
    ] + [
        delayed(simulated)(cell, seed, tuple(options.correlations))
        for cell in cells
        for seed in seeds
    ]
    rows = Parallel(options.jobs, verbose=1)(jobs)
    scores = pd.DataFrame(itertools.chain.from_iterable(rows))
    if options.out:
        scores.to_csv(options.out, index=False)
    cells_of = [name for name in ("data", "participants", "epochs", "missing") if name in scores]
    means = scores.pivot_table(
        index=[*cells_of, "seed"], columns="model", values="auc", dropna=False, observed=True
    ).dropna(how="all")
    by_cell = means.groupby(level=cells_of, dropna=False)[list(MODELS)]
    gains = means.sub(means["IDFSMECClassifier"], axis=0).groupby(level=cells_of, dropna=False)
    table = by_cell.mean().round(1).astype(str)
    for model in MODELS[1:]:
        error = gains[model].std() / np.sqrt(gains[model].count())
        table[f"{model}: gain"] = [
            f"{mean:+.1f} +- {e:.1f}" for mean, e in zip(gains[model].mean(), error, strict=True)
        ]
    rows_of = table.reset_index().astype(str)
    print(markdown(list(rows_of), rows_of.to_numpy().tolist()))
    print(scores.groupby("model").seconds.mean().round(2).to_string())


if __name__ == "__main__":
    main()
