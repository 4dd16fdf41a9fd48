"""How often the joint test of a multiverse finds something in studies without any effect.

``python -m benchmarks.quality.multiverse --studies 300`` simulates means of participants for 60
correlated features under 16 specifications of four choices: every option adds deviations of its
own, one takes exponentials (heavy tails), one lacks participants, and channels are missing more
often in some participants. Labels are independent of all that; or one feature differs by 1.2
standard deviations in all specifications and another under one of two references alone.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from idfsmec.multiverse import joint_test

N_FEATURES, EFFECT, N_PERMUTATIONS = 60, 1.2, 199
#: Participants, share of patients.
STUDIES = ((20, 0.5), (40, 0.5), (40, 0.25), (80, 0.5), (80, 0.25))


def simulate(n: int, share: float, effect: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return values, (n_specifications, n, n_features), and labels."""
    y = (np.arange(n) < round(share * n)).astype(int)
    factors = rng.normal(size=(n, 8)) @ rng.normal(size=(8, N_FEATURES)) / np.sqrt(8)
    signal = factors + rng.normal(size=(n, N_FEATURES))
    signal /= signal.std(axis=0)
    deviations = 0.4 * rng.normal(size=(4, 2, n, N_FEATURES))
    signal[:, 0] += effect * y
    deviations[0, 1, :, 1] += effect * y
    absent = rng.random((n, 1)) * rng.random((n, N_FEATURES)) > 0.85
    lost = rng.random(n) < 0.1
    values = []
    for options in itertools.product((0, 1), repeat=4):
        of_one = signal + sum(deviations[choice, option] for choice, option in enumerate(options))
        of_one = np.exp(of_one) if options[1] else of_one
        of_one = np.where(absent & (options[2] == 0), np.nan, of_one)
        values.append(np.where((lost & (options[3] == 1))[:, None], np.nan, of_one))
    return np.stack(values), y


def measure(n: int, share: float, effect: float, seed: int) -> dict[str, Any]:
    """Return what is significant at 5 % in one study."""
    rng = np.random.default_rng([seed, n, round(100 * share), round(10 * effect)])
    values, y = simulate(n, share, effect, rng)
    joint = joint_test(values, y, n_permutations=N_PERMUTATIONS, seed=seed)
    others = slice(2 if effect else 0, None)
    return {
        "participants": n,
        "patients": share,
        "effect": effect,
        "median": bool((joint.p_median[others] <= 0.05).any()),
        "share": bool((joint.p_share[others] <= 0.05).any()),
        "default alone": bool((joint.q[0, others] <= 0.05).any()),
        "some specification": bool((joint.q[:, others] <= 0.05).any()),
        "found": bool(effect and joint.p_median[0] <= 0.05),
        "found, one reference": bool(effect and joint.p_median[1] <= 0.05),
    }


def run(n_studies: int, n_jobs: int, first_seed: int = 700_000) -> pd.DataFrame:
    """Return a row for each study, those with an effect in a third of the number."""
    jobs = [
        delayed(measure)(n, share, effect, seed)
        for n, share in STUDIES
        for effect, count in ((0.0, n_studies), (EFFECT, n_studies // 3))
        for seed in range(first_seed, first_seed + count)
    ]
    return pd.DataFrame(Parallel(n_jobs)(jobs))


def summarise(rows: pd.DataFrame) -> dict[str, Any]:
    """Return shares of studies: the mean over cells, and the worst one."""
    cells, wrong = ["participants", "patients"], list(rows.columns[3:7])
    null = rows[rows["effect"] == 0].groupby(cells)[wrong].mean()
    real = rows[rows["effect"] > 0].groupby(cells)[list(rows.columns[7:])].mean()
    return {
        **{name: {"mean": null[name].mean(), "worst": null[name].max()} for name in null},
        **{name: {"mean": real[name].mean(), "worst": real[name].min()} for name in real},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    rows = run(options.studies, options.jobs)
    print(rows.groupby(["effect", "participants", "patients"]).mean().round(3).to_string())
    print(summarise(rows))


if __name__ == "__main__":
    main()
