"""Does a second stage that sees redundancy between channels select better? At equal k, with gaps.

Compares IDFS-MEC with :class:`idfsmec.selection.CrossChannelReranker` at two penalties. ``python
-m benchmarks.quality.cross_channel`` takes a generated table that was not used to choose the
defaults, ``python -m benchmarks.quality.cross_channel TABLE...`` your own. Prints balanced
accuracy / area under the ROC curve (percent) / Nogueira's stability for 10, 20 and 40 features.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.svm import LinearSVC

from benchmarks.quality.classifier import source_table, tuned
from idfsmec._columns import channel_codes, channel_columns
from idfsmec.missing import simulate_missing
from idfsmec.selection import IDFSMEC, CrossChannelReranker, selection_stability
from idfsmec.solver import Scaling
from idfsmec.table import FeatureTable

RATES = (0.0, 0.1, 0.3, 0.5, 0.7)
COUNTS = (10, 20, 40)
REPETITIONS = 2
RIDGES = {"re-ranked": 3.0, "re-ranked, ridge 0.1": 0.1}


def orders(X, y, channel):
    """The features from best to worst by each way."""
    plain = IDFSMEC(channel, lam=0.01, gamma=1.1)
    found = {"IDFS-MEC": np.argsort(plain.fit(X, y).ranking_)}
    for name, ridge in RIDGES.items():
        ranker = CrossChannelReranker(plain, ridge=ridge).fit(X, y)
        found[name] = np.argsort(ranker.ranking_)
    return found


def judge(X, y, groups, T, truth):
    scaling = Scaling.learn(X)
    train, test = scaling.filled(X), scaling.filled(T)
    svm = LinearSVC(class_weight="balanced")
    said = tuned(svm, {"C": [1e-3, 1e-2, 1e-1]}, train, y, groups).decision_function(test)
    return 100 * balanced_accuracy_score(truth, said > 0), 100 * roc_auc_score(truth, said)


def compare(table: FeatureTable, rate: float) -> dict[str, str]:
    """One cell of the printed table for every way."""
    y = pd.factorize(table.y, sort=True)[0]
    groups = table.subjects.to_numpy()
    _, columns = channel_columns(None, table.X.shape[1], list(table.X.columns))
    channel = channel_codes(columns)
    scores: dict = {}
    chosen: dict = {}
    for seed in range(REPETITIONS):
        X = simulate_missing(table, rate, random_state=seed).X.to_numpy()
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        for train, test in folds.split(X, y, groups):
            for name, order in orders(X[train], y[train], channel).items():
                for k in COUNTS:
                    kept = np.isin(np.arange(order.size), order[:k])
                    chosen.setdefault((name, k), []).append(kept)
                    got = judge(
                        X[train][:, kept], y[train], groups[train], X[test][:, kept], y[test]
                    )
                    scores.setdefault((name, k), []).append(got)
    cells: dict[str, list[str]] = {}
    for (name, k), rows in scores.items():
        accuracy, area = np.mean(rows, axis=0)
        stable = selection_stability(chosen[name, k]).value
        cells.setdefault(name, []).append(f"{accuracy:.1f} / {area:.1f} / {stable:.2f}")
    return {name: "; ".join(parts) for name, parts in cells.items()}


def main(paths: list[str] | None = None) -> None:
    warnings.simplefilter("ignore")  # channels that a small fold never has
    tables = {path: FeatureTable.read(path) for path in paths or []}
    for name, table in (tables or {"generated": source_table()}).items():
        print(f"## {name}: {table}\n", flush=True)
        for place, rate in enumerate(RATES):
            found = compare(table, rate)
            if place == 0:
                print("| missing | " + " | ".join(found) + " |")
                print("|---" * (len(found) + 1) + "|")
            print(f"| {rate:.0%} | " + " | ".join(found.values()) + " |", flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
