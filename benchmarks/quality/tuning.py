"""Whether tuning pays: every method tuned by inner folds against the same one at its defaults.

``python -m benchmarks.quality.tuning TABLE... --out DIR`` takes feature tables (those of this
package, or those of :func:`read_features`) and simulates ``--cohorts`` small ones.
For each method it prints the area under the ROC curve by person, tuned and with 20 features, C =
0.01 and the selector as it is, the mean of the differences over tables and seeds, and their
standard error; then, for the tables given, the tuned area by table and rate and how far IDFS-MEC
is ahead, with ``--classifier`` also of IDFSMECClassifier.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._timing import markdown
from benchmarks.quality._classifier import score_classifier
from benchmarks.quality._paired import describe_paired
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.prediction.methods import Method, find_methods
from idfsmec.table import FeatureTable

# Seeds that no rule was chosen on.
SEEDS, FIRST_COHORT = tuple(range(200, 206)), 100
COMPARED = ["IDFS-MEC", "mRMR", "CMIM", "RRCT", "RFS", "FSOR", "ANOVA F", "all features", "random"]
SCORE = "subject_roc_auc"


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, required=True, help="resumes from what is there")
    parser.add_argument("--cohorts", type=int, default=20)
    parser.add_argument("--methods", nargs="+", default=COMPARED)
    parser.add_argument("--rates", type=float, nargs="+", default=(0.0, 0.4))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--tuned-by", default=Protocol().tuned_by)
    parser.add_argument("--imputer")
    parser.add_argument("--clip", type=float, default=Protocol().clip, help="inf for none")
    parser.add_argument("--classifier", action="store_true", help="IDFSMECClassifier too")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    protocol = Protocol(
        rates=given.rates,
        n_splits=5,
        seeds=given.seeds,
        tuned_by=given.tuned_by,
        clip=given.clip,
    )
    tuned = find_methods(given.methods)
    tables = {path.name.split(".")[0]: read_table(path) for path in given.tables}
    cohorts = range(FIRST_COHORT, FIRST_COHORT + given.cohorts)
    planted = {f"planted {seed}": plant(seed) for seed in cohorts}
    found = []
    for kind, some, seeds in (
        ("tables", tables, given.seeds),
        ("planted", planted, given.seeds[:1]),
    ):
        for how, methods, changes in (
            ("tuned", tuned, {}),
            ("default", [untuned(one) for one in tuned], {"ks": [20], "svm_costs": [0.01]}),
        ):
            if some:
                results = accuracy(
                    some,
                    given.out / kind / how,
                    methods=methods,
                    imputer=given.imputer,
                    protocol=protocol.with_changes(seeds=seeds, **changes),
                    n_jobs=given.jobs,
                )
                found.append(results.chosen().assign(how=how))
    print(summary(pd.concat(found)))
    if tables:
        tuned_folds = found[0]
        if given.classifier:
            scored = score_classifier(tables, protocol, given.jobs)
            tuned_folds = pd.concat([tuned_folds, scored])
        print(f"\n{by_table(tuned_folds)}")


def read_features(path: Path) -> FeatureTable:
    """Read features that github.com/djan4848/ais-mdd-eeg computed from OpenNeuro ds003478.

    Columns ``<feature>_ch<NNN>`` become ``<channel>__<feature>``; ``group`` (1: BDI above 13) is
    the label, and ``BDI``, which the groups were made of, no feature.
    """
    found = pd.read_csv(path)
    features = [name for name in found.columns if "_ch" in name]
    names = {name: "ch{1}__{0}".format(*name.rsplit("_ch", 1)) for name in features}
    X = found[features].rename(columns=names)
    X = X[sorted(X.columns, key=lambda name: name.split("__")[0])]
    labels = found["group"].map({0: "control", 1: "BDI above 13"})
    return FeatureTable(X, labels, found["subject_id"].astype(str))


def read_table(path: Path) -> FeatureTable:
    """Read a table in either of the two layouts."""
    return read_features(path) if "ds003478" in path.name else FeatureTable.read(path)


def untuned(method: Method) -> Method:
    """The method with the selector as it is and C = 0.01."""
    return replace(method, settings=({},), costs=(0.01,))


def plant(seed: int, n_subjects: int = 60, n_epochs: int = 3) -> FeatureTable:
    """Sixteen channels with eight features, common factors, five features that differ by class."""
    rng = np.random.default_rng([seed, 7])
    who = np.repeat(np.arange(n_subjects), n_epochs)
    y, n_columns = who % 2, 16 * 8
    loadings = rng.normal(size=(n_columns, 4))
    of_person = rng.normal(size=(n_subjects, 4)) @ loadings.T + rng.normal(
        size=(n_subjects, n_columns)
    )
    of_epoch = 0.5 * rng.normal(size=(who.size, 4)) @ loadings.T
    X = of_person[who] + of_epoch + rng.normal(size=(who.size, n_columns))
    planted = 8 * rng.choice(16, 5, replace=False) + rng.integers(0, 8, 5)
    X[:, planted] += 0.8 * y[:, None] * X[:, planted].std(axis=0)
    columns = [f"E{channel + 1}__f{one + 1}" for channel in range(16) for one in range(8)]
    names = pd.Series([f"s{one:03d}" for one in who])
    return FeatureTable(
        pd.DataFrame(X, columns=columns), pd.Series(y).map("HM".__getitem__), names
    )


def summary(chosen: pd.DataFrame) -> str:
    """Means over everything, and differences paired by table, rate and seed."""
    cells = chosen.groupby(["method", "table", "rate", "seed", "how"])[SCORE].mean().unstack()
    gains = cells["tuned"] - cells["default"]
    rows = [
        [
            str(method),
            *(f"{100 * cells.loc[method, how].mean():.1f}" for how in ("tuned", "default")),
            f"{100 * gains[method].mean():.2f}",
            f"{100 * gains[method].sem():.2f}",
        ]
        for method in dict.fromkeys(chosen["method"])
    ]
    return markdown(["method", "tuned", "default", "difference", "standard error"], rows)


def by_table(folds: pd.DataFrame) -> str:
    """Areas by table and rate, and how far IDFS-MEC is ahead: intervals over seeds."""
    areas = 100 * folds.pivot_table(
        index=["method", "seed"], columns=["rate", "table"], values=SCORE, sort=False
    )
    means = areas.groupby("method").mean()
    rates = list(means.columns.unique("rate"))
    by_seed = {rate: areas[rate].mean(axis=1).unstack("method") for rate in rates}
    ahead = {rate: describe_paired(wide, "IDFS-MEC") for rate, wide in by_seed.items()}
    tables = list(means.columns.unique("table"))
    rows = []
    for name in means.mean(axis=1).sort_values(ascending=False).index:
        cells = [", ".join(f"{means.loc[name, (r, one)]:.1f}" for r in rates) for one in tables]
        rows.append([name, *cells, *(ahead[rate][name] for rate in rates)])
    heads = [*tables, *(f"IDFS-MEC ahead at {100 * rate:g} %" for rate in rates)]
    return markdown(["method", *heads], rows)


if __name__ == "__main__":
    main()
