"""Simulated cohorts whose truth is known: whether it is found, and what gaps cost.

``python -m benchmarks.planted --out DIR`` simulates one cohort per seed (40 people, 19 channels,
planted differences in 11 of 342 features) and prints, with means and ranges over the seeds,

- where IDFS-MEC ranks the planted features and channels on the whole table, beside ANOVA F;
- balanced accuracy of all named methods against the missing rate, and what they lose.

Settings were fixed before the first run and are the defaults of the package: lam = 1 and gamma = 2
for the ranking, nested tuning over the default grid for the accuracy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._timing import markdown
from idfsmec.data import SimulatedCohort, simulate_cohort
from idfsmec.evaluation import Protocol, Results, accuracy
from idfsmec.evaluation._sanity import AnovaF
from idfsmec.extraction import extract_to_file
from idfsmec.missing import make_gaps
from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable

SEEDS = (0, 1, 2)
RATES = (0.0, 0.1, 0.3, 0.5)
METHODS = ["IDFS-MEC", "mRMR", "CMIM", "RRCT", "RFS", "FSOR", "CD-LSR"]
METHODS += ["ANOVA F", "all features", "random"]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="resumes from what is there")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--effect", type=float, default=0.8, help="in standard deviations")
    parser.add_argument("--subjects", type=int, default=40)
    parser.add_argument("--only-ranking", action="store_true")
    given = parser.parse_args()
    tables, truths = {}, {}
    for seed in given.seeds:
        cohort = simulate_cohort(given.subjects, 19, effect_size=given.effect, random_state=seed)
        tables[f"seed {seed}"] = _table(cohort, given, seed)
        truths[f"seed {seed}"] = (cohort.informative_features, cohort.informative_channels)
    print(ranking(tables, truths))
    if not given.only_ranking:
        protocol = Protocol(rates=RATES, n_splits=5, ks=(10, 20, 40, 80))
        results = accuracy(
            tables, given.out, methods=METHODS, protocol=protocol, n_jobs=given.jobs
        )
        print()
        print(losses(results))


def _table(cohort: SimulatedCohort, given: argparse.Namespace, seed: int) -> FeatureTable:
    path = given.out / f"{given.subjects}-{given.effect:g}-{seed}.parquet"
    if not path.exists():
        given.out.mkdir(parents=True, exist_ok=True)
        extract_to_file(cohort.recordings, path, jobs=given.jobs)
    return FeatureTable.read(path)


def ranking(tables: dict[str, FeatureTable], truths: dict[str, tuple[list, list]]) -> str:
    """Planted features among the first and planted channels among the heaviest."""
    rows = []
    for rate in (0.0, 0.3, 0.5):
        for name, table in tables.items():
            planted, channels = truths[name]
            gappy = make_gaps(table, rate, random_state=0) if rate else table
            X = gappy.X.to_numpy()
            ours = IDFSMEC(table.column_channels).fit(X, table.y)
            heaviest = ours.channel_names_[np.argsort(-ours.channel_weights_)]
            filled = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))
            anova = AnovaF().fit(filled, table.y)
            mine = planted_ranks(table, ours.ranking_, planted)
            theirs = planted_ranks(table, anova.ranking_, planted)
            n = len(planted)
            rows.append(
                [f"{100 * rate:g} %", name]
                + [f"{(mine <= n).sum()} of {n}", f"{np.median(mine):.0f}"]
                + [f"{(theirs <= n).sum()} of {n}", f"{np.median(theirs):.0f}"]
                + [f"{np.isin(heaviest[: len(channels)], channels).sum()} of {len(channels)}"]
                + [", ".join(heaviest[:3])]
            )
    heads = ["missing", "cohort", "planted at the top", "median rank", "ANOVA F: at the top"]
    heads += ["median rank", "planted channels at the top", "three heaviest"]
    return markdown(heads, rows)


def planted_ranks(table: FeatureTable, ranks: np.ndarray, planted: list[str]) -> np.ndarray:
    """Ranks of the planted features, best first."""
    return np.sort(ranks[[table.X.columns.get_loc(name) for name in planted]])


def losses(results: Results) -> str:
    """Mean balanced accuracy over cohorts by rate, and the loss from none to most missing."""
    means = 100 * results.mean_scores()
    first, last = means.columns[0], means.columns[-1]
    means["loss"] = means[first] - means[last]
    by_method = means.groupby("method")
    mean, low, high = by_method.mean(), by_method["loss"].min(), by_method["loss"].max()
    rows = [
        [name, *(f"{row[rate]:.1f}" for rate in means.columns[:-1])]
        + [f"{row['loss']:.1f} ({low[name]:.1f} to {high[name]:.1f})"]
        for name, row in mean.sort_values(first, ascending=False).iterrows()
    ]
    heads = ["method", *(f"{100 * rate:g} %" for rate in RATES), "loss (range over cohorts)"]
    return markdown(heads, rows) + f"\n\n{_chance(results)}"


def _chance(results: Results) -> str:
    highs = pd.Series(
        {name: bands["balanced_accuracy"]["high"] for name, bands in _bands(results).items()}
    )
    return f"Guessing reaches {100 * highs.max():.1f} by luck in one cohort."


def _bands(results: Results) -> dict:
    return results.protocol["chance"]


if __name__ == "__main__":
    main()
