"""Seconds and memory of ChannelImputer: many samples, many features, few people.

``python -m benchmarks imputation`` fits and transforms tables of factors and noise with half of
the channels missing, and prints the best of the repetitions, beside scikit-learn's nearest
neighbours where these end soon. Peak memory is what Python allocated during the fit, in sizes of
the table.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import KNNImputer

from benchmarks._timing import markdown
from idfsmec import ChannelImputer

#: Samples, channels, features per channel.
SIZES = ((20_000, 19, 18), (2000, 128, 18), (91, 60, 16))
REPEATS = 3
# Distances between all samples: beyond so many differences not worth waiting for.
NEIGHBOURS_UP_TO = 50_000_000


def table(n_samples: int, n_channels: int, n_features: int) -> tuple[NDArray, NDArray]:
    """Five factors, as much noise, half of the channels missing; and the channels' labels."""
    rng = np.random.default_rng(0)
    channels = np.repeat(np.arange(n_channels), n_features)
    X = rng.normal(size=(n_samples, 5)) @ rng.normal(size=(5, channels.size))
    X += rng.normal(scale=2.0, size=X.shape)
    X[(rng.random((n_samples, n_channels)) < 0.5)[:, channels]] = np.nan
    return X, channels


def seconds(program: Callable[[], object]) -> float:
    """Fastest of the repetitions."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        program()
        taken.append(time.perf_counter() - start)
    return min(taken)


def peak(program: Callable[[], object]) -> int:
    """Bytes allocated at most while it runs."""
    tracemalloc.start()
    program()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main() -> None:
    rows = []
    for size in SIZES:
        X, channels = table(*size)
        five = ChannelImputer(channels)
        row = [
            f"{seconds(lambda five=five, X=X: five.fit(X)):.2f}",
            f"{seconds(lambda five=five, X=X: five.transform(X)):.2f}",
            f"{peak(lambda five=five, X=X: five.fit(X)) / X.nbytes:.1f}",
        ]
        neighbours = KNNImputer(n_neighbors=10)
        if X.shape[0] * X.size < NEIGHBOURS_UP_TO:
            row.append(f"{seconds(lambda n=neighbours, X=X: n.fit_transform(X)):.2f}")
        else:
            row.append("")
        rows.append([f"{X.shape[0]} x {X.shape[1]}", *row])
    headings = ["table", "fit, s", "transform, s", "peak / X", "10 neighbours, s"]
    print(markdown(headings, rows))


if __name__ == "__main__":
    main()
