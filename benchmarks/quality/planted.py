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
from scipy import stats
from sklearn.metrics import balanced_accuracy_score

from benchmarks._timing import markdown
from idfsmec.evaluation import Protocol, accuracy, find_methods
from idfsmec.evaluation.fold_data import load_fold
from idfsmec.evaluation.folds import make_folds
from idfsmec.evaluation.tables import TableArrays
from idfsmec.features import extract_to_file
from idfsmec.missing import PATTERNS, make_gaps
from idfsmec.prediction import IDFSMECClassifier
from idfsmec.recordings import simulate_cohort
from idfsmec.selection import IDFSMEC
from idfsmec.solver import Scaling
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
    parser.add_argument("--gaps", choices=("everywhere", "selection"), default="everywhere")
    parser.add_argument("--pattern", choices=PATTERNS, default="random")
    parser.add_argument("--only-ranking", action="store_true")
    parser.add_argument("--classifier", action="store_true", help="IDFSMECClassifier too")
    given = parser.parse_args()
    cohorts = {f"seed {seed}": _simulate(given, seed) for seed in given.seeds}
    print(rankings(cohorts, given.pattern))
    print()
    print(heaviest_channels(cohorts, given.pattern))
    if given.only_ranking:
        return
    tables = {name: cohort.table for name, cohort in cohorts.items()}
    protocol = Protocol(
        rates=RATES, n_splits=5, ks=(10, 20, 40, 80), gaps=given.gaps, patterns=[given.pattern]
    )
    results = accuracy(tables, given.out, methods=COMPARED, protocol=protocol, n_jobs=given.jobs)
    scores = 100 * results.mean_scores().droplevel("pattern")
    if given.classifier:
        scores = pd.concat([scores, 100 * by_classifier(tables, protocol, given.jobs)])
    print()
    print(losses(scores))
    highs = [bands["balanced_accuracy"]["high"] for bands in results.protocol["chance"].values()]
    print(f"\nGuessing reaches {100 * max(highs):.1f} by luck in one cohort.")


@dataclass(frozen=True)
class Planted:
    """A table, and what was planted in it."""

    table: FeatureTable
    features: list[str]
    channels: list[str]

    def with_gaps(self, rate: float, pattern: str) -> FeatureTable:
        """The table with more channels missing, always the same ones."""
        return make_gaps(self.table, rate, pattern, random_state=0) if rate else self.table


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


def rankings(cohorts: Mapping[str, Planted], pattern: str) -> str:
    """How early each method ranks what was planted; means over the cohorts."""
    found = pd.DataFrame(
        {"missing": rate, "method": method, **early(cohort, ranking)}
        for rate in RATES
        for cohort in cohorts.values()
        for method, ranking in _rank(cohort.with_gaps(rate, pattern)).items()
    )
    means = found.groupby(["missing", "method"], sort=False).mean()
    rows = [
        [f"{100 * rate:g} %", method, *(f"{value:.1f}" for value in row)]
        for (rate, method), row in zip(means.index, means.to_numpy(), strict=True)
    ]
    return markdown(["missing", "method", *means.columns], rows)


def _rank(gappy: FeatureTable) -> dict[str, np.ndarray]:
    """Rank by each method: IDFS-MEC with the gaps, the others with means in their place."""
    X, y = gappy.X.to_numpy(), gappy.y
    filled = Scaling.learn(X).filled(X)
    ranks = {}
    for one in find_methods(RANKED):
        # What chooses features together is asked for ten of them.
        k = 10 if one.depends_on_k else X.shape[1]
        selector = one.build(
            n_features_to_select=k, random_state=0, channels=np.array(gappy.column_channels)
        )
        # Who takes gaps takes the people from the table's index, too.
        ranks[one.name] = selector.fit(gappy.X if one.takes_gaps else filled, y).ranking_
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


def by_classifier(
    tables: Mapping[str, FeatureTable], protocol: Protocol, n_jobs: int
) -> pd.DataFrame:
    """Score IDFSMECClassifier on the folds and gaps of the comparison, like its mean scores."""
    scores = Parallel(n_jobs, verbose=1)(  # minutes: says how far it is
        delayed(_score_classifier)(TableArrays.of(name, table), protocol, rate)
        for name, table in tables.items()
        for rate in protocol.rates
    )
    index = pd.MultiIndex.from_product([tables, ["IDFSMECClassifier"]], names=["table", "method"])
    return pd.DataFrame(
        np.reshape(scores, (len(tables), -1)), index, pd.Index(protocol.rates, name="rate")
    )


def _score_classifier(table: TableArrays, protocol: Protocol, rate: float) -> float:
    scores = []
    for seed in protocol.seeds:
        folds = make_folds(table.y, table.subjects, protocol.folds, protocol.n_splits, seed)
        for fold, (train, _) in enumerate(folds):
            data = load_fold(table, protocol, protocol.patterns[0], rate, seed, fold, False)
            model = IDFSMECClassifier(channels=data.channel_of)
            model.fit(data.train, data.y_train, groups=table.subjects[train])
            found = model.predict(data.test)
            scores.append(balanced_accuracy_score(data.y_test, found))
    return float(np.mean(scores))


def losses(by_rate: pd.DataFrame) -> str:
    """Mean balanced accuracy by rate, the loss from none to most missing, and differences."""
    means = by_rate.groupby("method").mean()
    loss = (by_rate[RATES[0]] - by_rate[RATES[-1]]).unstack("method")
    overall = by_rate.mean(axis=1).unstack("method")
    rows = [
        [name, *(f"{value:.1f}" for value in means.loc[name])]
        + [f"{overall[name].mean():.1f}", f"{loss[name].mean():.1f}"]
        + [_interval(overall["IDFS-MEC"] - overall[name])]
        + [_interval(loss[name] - loss["IDFS-MEC"])]
        for name in overall.mean().sort_values(ascending=False).index
    ]
    heads = ["method", *(f"{100 * rate:g} %" for rate in RATES), "mean", "loss"]
    heads += ["IDFS-MEC ahead by", "loses more than IDFS-MEC by"]
    return markdown(heads, rows) + f"\n\nDifferences: 95 % intervals over {len(overall)} cohorts."


def _interval(differences: pd.Series) -> str:
    """Mean over the cohorts, which are independent, and Student's interval."""
    if not differences.any():
        return ""
    low, high = stats.ttest_1samp(differences, 0.0).confidence_interval()
    return f"{differences.mean():+.1f} ± {(high - low) / 2:.1f}"


if __name__ == "__main__":
    main()
