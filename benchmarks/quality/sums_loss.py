"""Channels judged by sums, where values are wild: ``python -m benchmarks.quality.sums_loss``.

Four of sixteen channels differ between two classes; how many of them are among the four heaviest?
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import spearmanr

from idfsmec import IDFSMEC

LOSSES = ("held-out", "in-sample")
EFFECTS = (1.2, 0.9, 0.7, 0.5)
N_PEOPLE, N_CHANNELS, N_FEATURES, PER_PERSON = 60, 16, 6, 4
SEEDS = range(100, 140)


def cohort(seed: int, wild: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A table with 20 % of the channels missing by person, and a share of wild values."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(N_PEOPLE), PER_PERSON)
    y = person % 2
    X = rng.normal(size=(N_PEOPLE, N_CHANNELS, N_FEATURES))[person] * 0.7
    X = X + rng.normal(size=(person.size, N_CHANNELS, N_FEATURES))
    X[:, : len(EFFECTS), 0] += np.array(EFFECTS) * y[:, None]
    if wild:
        X[rng.random(X.shape) < wild] *= 50
    X[rng.random((N_PEOPLE, N_CHANNELS))[person] < 0.2] = np.nan
    channels = np.repeat(np.arange(N_CHANNELS), N_FEATURES)
    return X.reshape(person.size, -1), y, channels, person


def main() -> None:
    """Print means over the seeds."""
    for wild in (0.0, 0.001):
        found: dict[str, list[int]] = {loss: [] for loss in LOSSES}
        agreement = []
        for seed in SEEDS:
            X, y, channels, person = cohort(seed, wild)
            weights = {}
            for loss in LOSSES:
                # Names of people decide about folds: others in every table.
                names = [f"{seed}-{one}" for one in person]
                selector = IDFSMEC(channels, channel_loss=loss).fit(X, y, names)
                weights[loss] = selector.channel_weights_
                heaviest = np.argsort(-weights[loss])[: len(EFFECTS)]
                found[loss].append(int((heaviest < len(EFFECTS)).sum()))
            agreement.append(spearmanr(*(weights[loss] for loss in LOSSES[:2]))[0])
        means = ", ".join(f"{loss} {np.mean(own):.2f}" for loss, own in found.items())
        print(f"wild {wild}: {means}; correlation of weights {np.mean(agreement):.2f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
