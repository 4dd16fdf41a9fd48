"""Whether intervals of probabilities hold the true frequency.

``python -m benchmarks.quality.calibration`` trains a model on 80 participants of a simulated
population (:func:`source_table`) and asks it about 1000 others of the same population, with all
channels and with half of them missing. Participants with similar probabilities, 100 at a time,
have a true frequency of the second class; an interval is right if it holds that of its group.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from idfsmec.evaluation import train_model
from idfsmec.missing import simulate_missing
from idfsmec.prediction import predict_subjects
from idfsmec.table import FeatureTable

TRAINED, ASKED, GROUP = 80, 1000, 100
# Seeds 501 to 504 were used to choose how intervals are computed.
SEEDS = (*range(601, 607), *range(701, 705))
SHARES_MISSING = (0.0, 0.5)


def measure(seed: int, missing: float) -> dict[str, float]:
    """Coverage, width and calibration on one population."""
    table = source_table(TRAINED + ASKED, 3, 24, 6, seed=seed)
    numbers = table.subjects.to_numpy().astype(int)
    train, asked = table.take(numbers < TRAINED), table.take(numbers >= TRAINED)
    if missing:
        train, asked = (
            simulate_missing(part, missing, random_state=seed) for part in (train, asked)
        )
    model = train_model(train, n_repeats=2, seed=seed)
    subjects = predict_subjects(model, asked, allow_unusual=True).subjects
    given = np.array([subject.probabilities[model.classes[1]] for subject in subjects])
    flip = np.array([subject.predicted == model.classes[0] for subject in subjects])
    limits = np.array([[subject.low, subject.high] for subject in subjects])
    limits = np.where(flip[:, None], 1 - limits[:, ::-1], limits)
    true = np.array([int(subject.subject) % 2 for subject in subjects])
    held, off = [], []
    for rows in np.array_split(np.argsort(given), ASKED // GROUP):
        frequency = true[rows].mean()
        held.append(np.mean((limits[rows, 0] <= frequency) & (frequency <= limits[rows, 1])))
        off.append(abs(given[rows].mean() - frequency))
    return {
        "intervals right": float(np.mean(held)),
        "mean width": float(np.diff(limits, axis=1).mean()),
        "off by": float(np.mean(off)),
        "Brier score": float(np.mean((given - true) ** 2)),
        "called unusual": float(np.mean([subject.distance > 1 for subject in subjects])),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    for missing in SHARES_MISSING:
        rows = []
        for seed in SEEDS:
            scores = measure(seed, missing)
            if not rows and not missing:
                print(f"| missing | seed | {' | '.join(scores)} |")
                print("|---" * (len(scores) + 2) + "|")
            rows.append(list(scores.values()))
            _print_row(missing, str(seed), rows[-1])
        _print_row(missing, "mean", np.mean(rows, axis=0).tolist())


def _print_row(missing: float, name: str, values: list[float]) -> None:
    numbers = " | ".join(f"{value:.3f}" for value in values)
    print(f"| {missing:.0%} | {name} | {numbers} |", flush=True)


def source_table(
    n_subjects: int, n_epochs: int, n_channels: int, n_features: int, seed: int
) -> FeatureTable:
    """Twelve sources seen by many channels: neighbours are nearly copies of one another."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    y = subjects % 2
    shape = (12, n_features)
    sources = rng.normal(size=(n_subjects, *shape))[subjects]
    sources += 0.5 * rng.normal(size=(subjects.size, *shape))
    effect = np.zeros(shape)
    effect[rng.integers(0, 12, 6), rng.integers(0, n_features, 6)] = 0.9
    sources += y[:, None, None] * effect
    places = np.linspace(0, 11, n_channels)
    mixing = np.exp(-0.5 * ((places[:, None] - np.arange(12)) / 0.7) ** 2)
    X = np.einsum("vs,nsd->nvd", mixing, sources)
    X += 0.7 * rng.normal(size=X.shape)
    columns = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(pd.DataFrame(X.reshape(y.size, -1), columns=columns), y, subjects)


if __name__ == "__main__":
    main()
