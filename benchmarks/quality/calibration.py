"""Whether intervals of probabilities hold the true frequency.

``python -m benchmarks.quality.calibration`` trains a model on 80 people of a made-up population
(:func:`source_table`) and asks it about 1000 others of the same population, with all channels and
with half of them missing. People with similar probabilities, 100 at a time, have a true frequency
of the second class; an interval is right if it holds that of its group. Beside it stands what an
interval over resampled epochs alone would hold.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.quality.classifier import source_table
from idfsmec.evaluation import train_model
from idfsmec.missing import simulate_missing
from idfsmec.prediction import predict_subjects
from idfsmec.prediction.model import Intervals

TRAINED, ASKED, GROUP = 80, 1000, 100
SEEDS = range(501, 505)
SHARES_MISSING = (0.0, 0.5)


def measure(seed: int, missing: float) -> dict[str, float]:
    """Coverage, width and calibration on one population."""
    table = source_table(TRAINED + ASKED, 3, 24, 6, seed=seed)
    subjects = table.subjects.to_numpy().astype(int)
    train, asked = table.take(subjects < TRAINED), table.take(subjects >= TRAINED)
    if missing:
        train, asked = (
            simulate_missing(one, missing, random_state=seed) for one in (train, asked)
        )
    model = train_model(train, n_repeats=2, seed=seed)
    people = predict_subjects(model, asked).subjects
    first = model.classes[0]
    given = np.array([one.probabilities[model.classes[1]] for one in people])
    flip = np.array([one.predicted == first for one in people])[:, None]
    ours = np.array([[one.low, one.high] for one in people])
    alone = Intervals(None, 0.95)
    epochs = np.array([alone.of(np.array(one.epochs), 0, 1.0) for one in people])
    ours, epochs = (np.where(flip, 1 - one[:, ::-1], one) for one in (ours, epochs))
    true = np.array([int(one.subject) % 2 for one in people])
    found = {"held": [], "epochs alone": [], "off": []}
    for rows in np.array_split(np.argsort(given), ASKED // GROUP):
        frequency = true[rows].mean()
        for name, one in (("held", ours[rows]), ("epochs alone", epochs[rows])):
            found[name].append(np.mean((one[:, 0] <= frequency) & (frequency <= one[:, 1])))
        found["off"].append(abs(given[rows].mean() - frequency))
    return {
        **{name: float(np.mean(values)) for name, values in found.items()},
        "width": float(np.diff(ours, axis=1).mean()),
        "brier": float(np.mean((given - true) ** 2)),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        "| missing | seed | intervals right | epochs alone | mean width | off by | Brier score |"
    )
    print("|---|---|---|---|---|---|---|")
    for missing in SHARES_MISSING:
        rows = []
        for seed in SEEDS:
            one = measure(seed, missing)
            rows.append([one[key] for key in ("held", "epochs alone", "width", "off", "brier")])
            print(
                f"| {missing:.0%} | {seed} |" + " | ".join(f"{v:.2f}" for v in rows[-1]) + " |",
                flush=True,
            )
        mean = " | ".join(f"{value:.2f}" for value in np.mean(rows, axis=0))
        print(f"| {missing:.0%} | mean | {mean} |", flush=True)


if __name__ == "__main__":
    main()
