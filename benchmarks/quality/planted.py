"""Simulated cohorts whose truth is known: whether it is found, and what gaps cost.

``python -m benchmarks.quality.planted --out DIR`` simulates one cohort per seed (40 people, 19
channels, differences of the groups planted in one band of five channels) and prints, over the
cohorts,

- how early each method ranks what was planted, on the whole table with gaps;
- whether the channels that IDFS-MEC weighs most are planted ones;
- balanced accuracy against the missing rate, what the methods lose, and how far the others are
  from IDFS-MEC in both. With ``--classifier`` also IDFSMECClassifier with its defaults, on the
  same folds and gaps.

All settings are the package's defaults: lam = 1 and gamma = 2 for the ranking, nested tuning over
the default grid for the accuracy. The seeds were used for nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from benchmarks._timing import markdown
from benchmarks.quality._classifier import METRICS, score_classifier
from benchmarks.quality._paired import describe_paired
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.features import extract_to_file
from idfsmec.missing import PATTERNS, simulate_missing
from idfsmec.prediction.methods import find_methods
from idfsmec.recordings import simulate_cohort
from idfsmec.selection import IDFSMEC
from idfsmec.solver.scaling import Scaling
from idfsmec.table import FeatureTable

SEEDS = tuple(range(100, 160))
RATES = (0.0, 0.3, 0.5)
RANKED = ["IDFS-MEC", "mRMR", "CMIM", "RRCT", "RFS", "FSOR", "CD-LSR", "ANOVA F"]
COMPARED = [*RANKED, "all features", "random"]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="resumes from what is there")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--effect", type=float, default=0.8, help="in standard deviations")
    parser.add_argument("--subjects", type=int, default=40)
    parser.add_argument("--missing-in", choices=("everywhere", "selection"), default="everywhere")
    parser.add_argument("--pattern", choices=PATTERNS, default="random")
    parser.add_argument("--only-ranking", action="store_true")
    parser.add_argument("--classifier", action="store_true", help="IDFSMECClassifier too")
    given = parser.parse_args()
    several = Parallel(given.jobs)
    given.jobs, n_jobs = 1, given.jobs
    planted = several(delayed(_simulate)(given, seed) for seed in given.seeds)
    cohorts = {f"seed {seed}": one for seed, one in zip(given.seeds, planted, strict=True)}
    print(rankings(cohorts, given.pattern, n_jobs))
    print()
    print(heaviest_channels(cohorts, given.pattern))
    if given.only_ranking:
        return
    tables = {name: cohort.table for name, cohort in cohorts.items()}
    protocol = Protocol(
        rates=RATES,
        n_splits=5,
        ks=(10, 20, 40, 80),
        missing_in=given.missing_in,
        patterns=[given.pattern],
    )
    results = accuracy(tables, given.out, methods=COMPARED, protocol=protocol, n_jobs=n_jobs)
    folds = results.chosen()
    if given.classifier:
        folds = pd.concat([folds, score_classifier(tables, protocol, n_jobs)])
    print()
    print(losses(folds))


@dataclass(frozen=True)
class Planted:
    """A table, and what was planted in it."""

    table: FeatureTable
    features: list[str]
    channels: list[str]

    def with_gaps(self, rate: float, pattern: str) -> FeatureTable:
        """The table with more channels missing, always the same ones."""
        return simulate_missing(self.table, rate, pattern, random_state=0) if rate else self.table


def _simulate(given: argparse.Namespace, seed: int) -> Planted:
    cohort = simulate_cohort(given.subjects, 19, effect_size=given.effect, random_state=seed)
    path = given.out / f"{given.subjects}-{given.effect:g}-{seed}.parquet"
    if not path.exists():
        given.out.mkdir(parents=True, exist_ok=True)
        extract_to_file(cohort.recordings, path, n_jobs=given.jobs)
    table = FeatureTable.read(path)
    # Names of people decide about folds: others in every cohort.
    table = replace(table, subjects=pd.Series([f"{seed}-{one}" for one in table.subjects]))
    return Planted(table, cohort.informative_features, cohort.informative_channels)


def rankings(cohorts: Mapping[str, Planted], pattern: str, n_jobs: int) -> str:
    """How early each method ranks what was planted; means over the cohorts."""
    tasks = [(rate, cohort) for rate in RATES for cohort in cohorts.values()]
    ranked = Parallel(n_jobs)(
        delayed(_rank)(cohort.with_gaps(rate, pattern)) for rate, cohort in tasks
    )
    found = pd.DataFrame(
        {"missing": rate, "method": method, **early(cohort, ranking)}
        for (rate, cohort), ranks in zip(tasks, ranked, strict=True)
        for method, ranking in ranks.items()
    )
    means = found.groupby(["missing", "method"], sort=False).mean()
    found["cohort"] = found.groupby(["missing", "method"]).cumcount()
    wide = found.pivot_table(index="cohort", columns=["missing", "method"], values="median rank")
    paired = {rate: describe_paired(wide[rate], "IDFS-MEC") for rate in RATES}
    rows = [
        [f"{100 * rate:g} %", method, *(f"{value:.1f}" for value in row), paired[rate][method]]
        for (rate, method), row in zip(means.index, means.to_numpy(), strict=True)
    ]
    return markdown(["missing", "method", *means.columns, "rank, IDFS-MEC minus it"], rows)


def _rank(gappy: FeatureTable) -> dict[str, np.ndarray]:
    """Rank by each method: IDFS-MEC with the gaps, the others with means in their place."""
    X, y = gappy.X.to_numpy(), gappy.y
    filled = Scaling.learn(X).imputed(X)
    ranks = {}
    for one in find_methods(RANKED):
        # What chooses features together is asked for ten of them.
        k = 10 if one.depends_on_k else X.shape[1]
        selector = one.build(
            n_features_to_select=k, random_state=0, channels=np.array(gappy.column_channels)
        )
        # Who takes gaps takes the people from the table's index, too.
        ranks[one.name] = selector.fit(gappy.X if one.takes_missing else filled, y).ranking_
    return ranks


def early(cohort: Planted, ranking: np.ndarray) -> dict[str, float]:
    """Where in a ranking the planted differences come, and the features that show them.

    A difference shows in two or three features of its channel, which say nearly the same (the
    power of a band, its logarithm, a ratio to it). It counts as found at the first of them.
    """
    ranks = pd.Series(ranking, index=cohort.table.X.columns)[cohort.features]
    first = ranks.groupby([name.split("__")[0] for name in cohort.features]).min()
    n_differences, n_features = len(first), len(ranks)
    return {
        f"differences of {n_differences} in the first {n_differences}": float(
            (first <= n_differences).sum()
        ),
        "in the first 10": float((first <= 10).sum()),
        "in the first 20": float((first <= 20).sum()),
        "median rank": float(first.median()),
        f"features of {n_features} in the first {n_features}": float((ranks <= n_features).sum()),
    }


def heaviest_channels(cohorts: Mapping[str, Planted], pattern: str) -> str:
    """Whether the channels that IDFS-MEC weighs most are planted ones."""
    rows = []
    for rate in RATES:
        first, hits = [], []
        for cohort in cohorts.values():
            ours = IDFSMEC().fit(cohort.with_gaps(rate, pattern).X, cohort.table.y)
            planted = np.isin(ours.channel_names_, cohort.channels)
            by_weight = planted[np.argsort(-ours.channel_weights_)]
            first.append(by_weight[0])
            hits.append(by_weight[: planted.sum()].sum())
        rows.append(
            [f"{100 * rate:g} %", f"{sum(first)} of {len(cohorts)}"]
            + [f"{np.mean(hits):.1f} of {planted.sum()}", f"{min(hits)} to {max(hits)}"]
        )
    return markdown(
        ["missing", "heaviest is planted", "planted among as many heaviest", "range"], rows
    )


def losses(folds: pd.DataFrame) -> str:
    """Mean balanced accuracy by rate, the loss from none to most missing, and differences."""
    by_rate, areas = (
        100 * folds.pivot_table(index=["table", "method"], columns="rate", values=metric)
        for metric in METRICS
    )
    means = by_rate.groupby("method").mean()
    loss = (by_rate[RATES[0]] - by_rate[RATES[-1]]).unstack("method")
    overall = by_rate.mean(axis=1).unstack("method")
    ahead, more = describe_paired(overall, "IDFS-MEC"), describe_paired(-loss, "IDFS-MEC")
    rows = [
        [name, *(f"{value:.1f}" for value in means.loc[name])]
        + [f"{overall[name].mean():.1f}", f"{loss[name].mean():.1f}"]
        + [ahead[name], more[name]]
        + [f"{areas.groupby('method').mean().mean(axis=1)[name]:.1f}"]
        for name in overall.mean().sort_values(ascending=False).index
    ]
    heads = ["method", *(f"{100 * rate:g} %" for rate in RATES), "mean", "loss"]
    heads += ["IDFS-MEC ahead by", "loses more than IDFS-MEC by", "area by person"]
    return (
        markdown(heads, rows)
        + f"\n\nDifferences: 95 % CIs over {len(overall)} cohorts, p after Holm."
    )


if __name__ == "__main__":
    main()
