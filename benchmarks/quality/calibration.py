"""Whether CIs of `train` and `predict` hold: of a participant's probability, of a model's scores.

``python -m benchmarks.quality.calibration --studies 10`` trains models on participants of twelve
populations (no or a moderate effect; 40, 80 and 200 participants; 1 and 3 epochs) and asks each
about 1500 others. Participants with similar probabilities, 150 at a time, have a true frequency of
the second class (0.5 for all where there is no effect); an interval is right if it holds that of
its group. CIs of AUC and balanced accuracy are right if they hold those of the model among the
others. ``--method IDFS-MEC`` trains a tuned pipeline in place of the default, of 40 and 80.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from idfsmec.evaluation import train_model
from idfsmec.metrics import auc, balanced_accuracy
from idfsmec.prediction.calibration import Calibration
from idfsmec.table import FeatureTable

ASKED, GROUP = 1500, 150
EFFECTS, SIZES, EPOCHS = (0.0, 0.9), (40, 80, 200), (1, 3)
# Intervals were chosen on another generator (intervals.Population, seeds 5000 to 5029 and 7000).
FIRST_SEED = 3000


def measure(
    effect: float, n_subjects: int, n_epochs: int, seed: int, method: str | None = None
) -> dict[str, float]:
    """Coverage, width and calibration of a model of one population."""
    warnings.simplefilter("ignore")
    table = source_table(n_subjects + ASKED, n_epochs, 12, 4, seed=seed, effect=effect)
    numbers = table.subjects.to_numpy().astype(int)
    train, asked = table.take(numbers < n_subjects), table.take(numbers >= n_subjects)
    model = train_model(train, method, n_repeats=1, seed=seed)
    epochs = np.asarray(model.estimator.predict_proba(asked.X)).reshape(ASKED, n_epochs, 2)
    calibration = Calibration(model.performance["held_out"])
    rows = []
    for of_subject in epochs:
        probabilities, low, high = calibration.apply(of_subject, 1.0)
        flip = probabilities[0] > probabilities[1]
        rows.append([probabilities[1], *((1 - high, 1 - low) if flip else (low, high))])
    given, low, high = np.array(rows).T
    true, held, off = np.arange(n_subjects, n_subjects + ASKED) % 2, [], []
    for of in np.array_split(np.argsort(given), ASKED // GROUP):
        frequency = true[of].mean() if effect else 0.5
        held.append(np.mean((low[of] <= frequency) & (frequency <= high[of])))
        off.append(abs(given[of].mean() - frequency))
    scores = {
        "roc_auc": auc(given, true == 1),
        "balanced_accuracy": balanced_accuracy(true, given > 0.5),
    }
    measured = {}
    for name, score in scores.items():
        ci = model.performance["metrics"][name]
        measured |= {
            f"{name} right": ci["low"] <= score <= ci["high"],
            f"{name} width": ci["high"] - ci["low"],
        }
        measured[f"{name} above chance"] = np.nan if effect else ci["low"] > 0.5
    return {
        "effect": effect,
        "n": n_subjects,
        "epochs": n_epochs,
        "right": float(np.mean(held)),
        "width": float(np.mean(high - low)),
        "off": float(np.mean(off)),
        **measured,
    }


def run(
    n_studies: int,
    n_jobs: int,
    first_seed: int = FIRST_SEED,
    sizes: Sequence[int] = SIZES,
    epochs: Sequence[int] = EPOCHS,
    method: str | None = None,
) -> pd.DataFrame:
    """Return a row for each model of each population."""
    cells = itertools.product(range(n_studies), EFFECTS, sizes, epochs)
    jobs = [delayed(measure)(*cell, first_seed + study, method) for study, *cell in cells]
    return pd.DataFrame(Parallel(n_jobs, verbose=1)(jobs))


def summarise(rows: pd.DataFrame) -> dict[str, Any]:
    """Return mean and worst coverage over populations, and mean width."""
    cells = rows.groupby(["effect", "n", "epochs"]).mean()
    summary = {}
    for name, of in (
        ("probability", ""),
        ("AUC", "roc_auc "),
        ("balanced accuracy", "balanced_accuracy "),
    ):
        right = cells[f"{of}right"]
        values = {"mean": right.mean(), "worst": right.min(), "width": cells[f"{of}width"].mean()}
        if of:
            above = cells[f"{of}above chance"]
            values |= {"above chance": above.mean(), "above chance, worst": above.max()}
        summary[name] = {key: round(float(value), 4) for key, value in values.items()}
    return summary


def source_table(
    n_subjects: int,
    n_epochs: int,
    n_channels: int,
    n_features: int,
    seed: int,
    effect: float = 0.9,
) -> FeatureTable:
    """Twelve sources seen by many channels: neighbours are nearly copies of one another."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    y = subjects % 2
    shape = (12, n_features)
    sources = rng.normal(size=(n_subjects, *shape))[subjects]
    sources += 0.5 * rng.normal(size=(subjects.size, *shape))
    effects = np.zeros(shape)
    effects[rng.integers(0, 12, 6), rng.integers(0, n_features, 6)] = effect
    sources += y[:, None, None] * effects
    places = np.linspace(0, 11, n_channels)
    mixing = np.exp(-0.5 * ((places[:, None] - np.arange(12)) / 0.7) ** 2)
    X = np.einsum("vs,nsd->nvd", mixing, sources)
    X += 0.7 * rng.normal(size=X.shape)
    columns = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(pd.DataFrame(X.reshape(y.size, -1), columns=columns), y, subjects)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--method", help="as in idfsmec train")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    few = {"sizes": SIZES[:2], "epochs": EPOCHS[:1]} if options.method else {}
    rows = run(options.studies, options.jobs, options.first_seed, **few, method=options.method)
    if options.out:
        rows.to_csv(options.out, index=False)
    print(rows.groupby(["effect", "n", "epochs"]).mean().round(3).to_string())
    print(summarise(rows))


if __name__ == "__main__":
    main()
