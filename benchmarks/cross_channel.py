"""Does a second stage that sees redundancy between channels select better? At equal k, with gaps.

The leading candidates of IDFS-MEC are ordered anew by forward selection: each step takes the
feature that lowers the squared error of a ridge regression the most. The regression is that of a
linear classifier on features of which the missing ones are filled with the mean, so its moments
follow from the correlations over samples that have both features, and from how often each channel
is there: with ``s`` the share of samples that have a channel, features of different channels have
covariance ``s_u s_v r``, those of one channel ``s r``. A copy in another channel is thus worth
little when channels are reliable, and a planned backup when they are not. ``blind`` is the same
with s = 1.

``python -m benchmarks.cross_channel`` takes a generated table, ``python -m
benchmarks.cross_channel TABLE...`` your own. Prints balanced accuracy / area under the ROC curve
(percent) / Nogueira's stability for 10, 20 and 40 features.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.svm import LinearSVC

from benchmarks.classifier import source_table, tuned
from idfsmec.missing import make_gaps
from idfsmec.selection import IDFSMEC, selection_stability
from idfsmec.selection._channels import channel_columns
from idfsmec.selection._judging import fill_by_train
from idfsmec.table import FeatureTable

RATES = (0.0, 0.1, 0.3, 0.5, 0.7)
COUNTS = (10, 20, 40)
REPETITIONS = 2
CANDIDATES, RIDGE = 200, 0.1
# Correlations over few common samples are drawn towards 0 as if by this many samples without any.
PRIOR_SAMPLES = 5


def expected_moments(X, y, channel, *, aware):
    """Covariance of the filled features and their covariance with the label."""
    seen = ~np.isnan(X)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, X - np.where(seen, X, 0.0).sum(axis=0) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    Z = centred / np.where(deviation > 0, deviation, 1.0)
    common = seen.T.astype(float) @ seen
    R = (Z.T @ Z) / (common + PRIOR_SAMPLES)
    np.fill_diagonal(R, 1.0)
    share = count / len(y) if aware else np.ones(X.shape[1])
    together = np.where(channel[:, None] == channel, share[:, None], np.outer(share, share))
    label = (y - y.mean()) / y.std()
    return R * together, Z.T @ label / count * share


def forward_order(S, c):
    """Features in the order of forward selection with ridge, by sweeping the moments."""
    S, c = S + RIDGE * np.eye(len(S)), c.copy()
    left, order = np.ones(len(S), dtype=bool), []
    for _ in range(len(S)):
        pivots = np.maximum(np.diag(S), 1e-9)
        best = int(np.where(left, c**2 / pivots, -1.0).argmax())
        order.append(best)
        left[best] = False
        column = S[:, best].copy()
        c -= column * (c[best] / pivots[best])
        S -= np.outer(column, column) / pivots[best]
    return np.array(order)


def orders(X, y, channel):
    """The features from best to worst by each way."""
    order = np.argsort(IDFSMEC(channel, lam=0.01, gamma=1.1).fit(X, y).ranking_)
    first, rest = order[:CANDIDATES], order[CANDIDATES:]
    found = {"IDFS-MEC": order}
    for name, aware in (("aware of gaps", True), ("blind to gaps", False)):
        moments = expected_moments(X[:, first], y, channel[first], aware=aware)
        found[name] = np.r_[first[forward_order(*moments)], rest]
    return found


def judge(X, y, groups, T, truth):
    train, test = fill_by_train(X, T)
    svm = LinearSVC(class_weight="balanced")
    said = tuned(svm, {"C": [1e-3, 1e-2, 1e-1]}, train, y, groups).decision_function(test)
    return 100 * balanced_accuracy_score(truth, said > 0), 100 * roc_auc_score(truth, said)


def compare(table: FeatureTable, rate: float) -> dict[str, str]:
    """One cell of the printed table for every way."""
    y = pd.factorize(table.y, sort=True)[0]
    groups = table.subjects.to_numpy()
    _, columns = channel_columns(None, table.X.shape[1], list(table.X.columns))
    channel = np.empty(table.X.shape[1], dtype=int)
    for v, own in enumerate(columns):
        channel[own] = v
    scores: dict = {}
    chosen: dict = {}
    for seed in range(REPETITIONS):
        X = make_gaps(table, rate, random_state=seed).X.to_numpy()
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
