"""How often missing channels that are associated with the diagnosis are found, and false alarms.

``python -m benchmarks.quality.association --studies 400`` simulates 60 participants with 19
channels and 6 or 20 epochs. Channels are missing at random, at a rate of the participant's own (a
beta distribution of mean 10 %). Patients lack one channel in 35 % of their epochs, or in all
epochs of 35 % of the patients, and controls never; or there is no such channel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from idfsmec.missing.association import ALPHA, missingness_by_class

CASES = ("epochs", "patients", "none")


def measure(case: str, n_epochs: int, seed: int) -> dict[str, object]:
    """Return whether the channel was found, and whether another one was."""
    rng = np.random.default_rng([seed, n_epochs, CASES.index(case)])
    n, n_channels = 60, 19
    y = np.arange(n) % 2
    rates = rng.beta(0.5, 4.5, (n, 1, n_channels))
    observed = rng.random((n, n_epochs, n_channels)) >= rates
    if case == "epochs":
        observed[..., 0] = (rng.random((n, n_epochs)) > 0.35) | (y == 0)[:, None]
    elif case == "patients":
        observed[..., 0] = ((rng.random(n) > 0.35) | (y == 0))[:, None]
    rows = observed.reshape(-1, n_channels)
    subjects, labels = np.repeat(np.arange(n), n_epochs), np.repeat(y, n_epochs)
    frame = missingness_by_class(rows, labels, subjects, np.arange(n_channels))
    found = frame["p_holm"].to_numpy() < ALPHA
    first = 0 if case == "none" else 1
    return {
        "case": case,
        "epochs": n_epochs,
        "found": bool(found[0]) if first else np.nan,
        "false alarm": bool(found[first:].any()),
    }


def run(n_studies: int, n_jobs: int, first_seed: int = 100) -> pd.DataFrame:
    """Return a row for each study."""
    jobs = [
        delayed(measure)(case, n_epochs, seed)
        for case in CASES
        for n_epochs in (6, 20)
        for seed in range(first_seed, first_seed + n_studies)
    ]
    return pd.DataFrame(Parallel(n_jobs)(jobs))


def summarise(rows: pd.DataFrame) -> dict[str, float]:
    """Return shares over all studies of a kind."""
    by_case = rows.groupby("case")[["found", "false alarm"]].mean()
    return {
        "found, 35 % of epochs": float(by_case.loc["epochs", "found"]),
        "found, 35 % of patients": float(by_case.loc["patients", "found"]),
        "false alarms": float(by_case.loc["none", "false alarm"]),
        "studies per cell": len(rows) // 6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    rows = run(options.studies, options.jobs)
    print(rows.groupby(["case", "epochs"]).mean().round(3).to_string())
    print(summarise(rows))


if __name__ == "__main__":
    main()
