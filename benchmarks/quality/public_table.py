"""A public table of real people: all methods compared under subject-wise folds, whoever wins.

``python -m benchmarks.quality.public_table FEATURES.csv.gz --out DIR`` takes the features that
github.com/djan4848/ais-mdd-eeg computed from OpenNeuro ds003478: 91 people, 60 channels x 16
features, columns ``<feature>_ch<NNN>``, ``group`` (1: BDI above 13) and ``BDI``, which is what the
groups were made of and therefore not a feature.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks._timing import markdown
from idfsmec.evaluation import Protocol, Results, accuracy
from idfsmec.table import FeatureTable

RATES = (0.0, 0.1, 0.5)


def main() -> None:
    """Compare, and print the table of means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--methods", help="by default all")
    given = parser.parse_args()
    table = read_features(given.features)
    print(table)
    results = accuracy(
        {"ds003478": table},
        given.out,
        methods=given.methods.split(",") if given.methods else None,
        protocol=Protocol(rates=RATES),
        n_jobs=given.jobs,
    )
    print(summary(results))


def read_features(path: Path) -> FeatureTable:
    """Rename ``<feature>_ch<NNN>`` to ``<channel>__<feature>``, channel by channel."""
    found = pd.read_csv(path)
    features = [name for name in found.columns if "_ch" in name]
    names = {name: "ch{1}__{0}".format(*name.rsplit("_ch", 1)) for name in features}
    X = found[features].rename(columns=names)
    X = X[sorted(X.columns, key=lambda name: name.split("__")[0])]
    labels = found["group"].map({0: "control", 1: "BDI above 13"})
    return FeatureTable(X, labels, found["subject_id"].astype(str))


def summary(results: Results) -> str:
    """Means by rate in percent, by their mean, with chance."""
    metric = results.protocol["metric"]
    means = results.mean_scores(metric).droplevel(["table", "pattern"])
    order = means.mean(axis=1).sort_values(ascending=False).index
    rows = [[name, *(f"{100 * value:.1f}" for value in means.loc[name])] for name in order]
    heads = ["method", *(f"{100 * rate:g} % missing" for rate in means.columns)]
    band = results.protocol["chance"]["ds003478"][metric]
    return f"{markdown(heads, rows)}\n\nThe band of chance ends at {100 * band['high']:.1f}."


if __name__ == "__main__":
    main()
