"""Classifiers of incomplete samples, compared at 10-90 % missing under subject-wise folds.

``python -m benchmarks.quality.classifier`` takes a generated table and a simulated cohort, neither
of which was used to choose the classifier's defaults; ``python -m benchmarks.quality.classifier
TABLE...`` takes tables written by ``FeatureTable.write``. Gaps are in training and test samples
alike. Every method chooses its strength by inner folds that keep subjects together. Prints
balanced accuracy and, after the slash, the area under the ROC curve, both in percent, as means
over repetitions (new gaps, new folds); then by how much IDFSMECClassifier's area is larger than
that of each other method, over all rates and repetitions, with twice the standard error of the
paired differences.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.svm import LinearSVC

from idfsmec import IDFSMEC
from idfsmec.features import extract_table
from idfsmec.missing import simulate_missing
from idfsmec.prediction import IDFSMECClassifier
from idfsmec.recordings import simulate_cohort
from idfsmec.solver.scaling import Scaling
from idfsmec.solver.solve import solve_channels
from idfsmec.solver.sums import table_sums
from idfsmec.solver.updates import channel_weights
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_codes, channel_columns

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
REPETITIONS = 2
LAM, GAMMA, K = 0.01, 1.1, 20
STRENGTHS = {"C": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]}


# Seeds 0 to 4 were used to choose the classifier's defaults.
SEED = 101


def source_table(
    n_subjects: int = 60,
    n_epochs: int = 4,
    n_channels: int = 30,
    n_features: int = 8,
    seed: int = SEED,
) -> FeatureTable:
    """Twelve sources seen by thirty channels: neighbours are nearly copies of one another."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    y = subjects % 2
    shape = (12, n_features)
    sources = rng.normal(size=(n_subjects, *shape))[subjects]
    sources += 0.5 * rng.normal(size=(subjects.size, *shape))
    effect = np.zeros(shape)
    effect[rng.integers(0, 12, 6), rng.integers(0, n_features, 6)] = 0.9
    sources += y[:, None, None] * effect
    places = np.linspace(0, 11, n_channels)
    mixing = np.exp(-0.5 * ((places[:, None] - np.arange(12)) / 0.7) ** 2)
    X = np.einsum("vs,nsd->nvd", mixing, sources)
    X += 0.7 * rng.normal(size=X.shape)
    columns = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(pd.DataFrame(X.reshape(y.size, -1), columns=columns), y, subjects)


def cohort_table() -> FeatureTable:
    """Features of simulated EEG."""
    cohort = simulate_cohort(60, 19, duration=40.0, detached=0.0, random_state=SEED)
    return extract_table(cohort.recordings).table


class Channels:
    """The regressions of the channels of a training part, and their votes."""

    def __init__(self, X, y, columns, held_out=None):
        self.columns = columns
        kept = (
            [np.arange(len(y))]
            if held_out is None
            else [np.delete(np.arange(len(y)), out) for out in held_out]
        )
        folds = np.zeros((1, len(y)), dtype=int)
        sums = [table_sums(X, columns, y[rows], folds[:, rows], 2, rows=rows) for rows in kept]
        self.fits = solve_channels([part.moments() for part in sums], [LAM])

    def weights(self):
        """Channel weights alpha."""
        U = self.fits.objectives[0, 0]
        alpha = np.zeros(U.size)
        alpha[np.isfinite(U)] = channel_weights(U[np.isfinite(U)], GAMMA)
        return alpha

    def votes(self, X, fold=0, kept=None):
        """In favour of class 1, shape (n_samples, n_channels); NaN where a channel is missing."""
        toward = np.diff(self.fits.coefficients[fold, 0], axis=0)[0]
        if kept is not None:
            toward = toward * kept
        parts = (X - self.fits.centres[fold]) * toward
        return np.stack([parts[:, own].sum(axis=1) for own in self.columns], axis=1)


def weighted_mean(votes, weights):
    """Over the channels that each sample has."""
    share = ~np.isnan(votes) * weights
    total = share.sum(axis=1)
    return (np.nan_to_num(votes) * share).sum(axis=1) / np.where(total > 0, total, 1.0)


def filled(train, test):
    """Both in units of the training part, its mean in the gaps."""
    scaling = Scaling.learn(train)
    return scaling.imputed(train), scaling.imputed(test)


def inner_folds(y, groups):
    return list(StratifiedGroupKFold(4).split(y, y, groups))


def tuned(model, grid, train, y, groups):
    """The model with the strength that does best on held-out subjects."""
    search = GridSearchCV(model, grid, scoring="roc_auc", cv=inner_folds(y, groups))
    return search.fit(train, y)


def plain_vote(X, y, groups, columns, T):
    channels = Channels(X, y, columns)
    return weighted_mean(channels.votes(T), channels.weights())


def leading_vote(X, y, groups, columns, T):
    kept = leading(X, y, columns)
    channels = Channels(X, y, columns)
    having = np.array([kept[own].any() for own in columns])
    return weighted_mean(channels.votes(T, kept=kept), channels.weights() * having)


def ridge_vote(X, y, groups, columns, T):
    channels = Channels(X, y, columns)
    votes = np.full((len(T), len(columns)), np.nan)
    for v, own in enumerate(columns):
        own = own[channels.fits.feature_weights[0, 0, own] > 0]
        here, there = ~np.isnan(X[:, own]).any(axis=1), ~np.isnan(T[:, own]).any(axis=1)
        if own.size and there.any() and np.unique(y[here]).size == 2:
            train, test = filled(X[here][:, own], T[there][:, own])
            model = RidgeClassifier(alpha=len(train), class_weight="balanced")
            votes[there, v] = model.fit(train, y[here]).decision_function(test)
    return weighted_mean(votes, channels.weights())


def stacked_vote(X, y, groups, columns, T):
    """Logistic regression on out-of-fold votes, more gaps made in copies of them."""
    folds = inner_folds(y, groups)
    inner = Channels(X, y, columns, [test for _, test in folds])
    votes = np.full((len(y), len(columns)), np.nan)
    for fold, (_, test) in enumerate(folds):
        votes[test] = inner.votes(X[test], fold)
    size = np.nanstd(votes, axis=0) + 1e-12
    rng = np.random.default_rng(0)
    copies = [votes] + [
        np.where(rng.random(votes.shape) < np.isnan(votes).mean(), np.nan, votes) for _ in range(4)
    ]
    stacked = np.nan_to_num(np.concatenate(copies) / size)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    grid = {"C": [1e-3, 1e-2, 1e-1]}
    found = tuned(model, grid, stacked, np.tile(y, 5), np.tile(groups, 5))
    return found.decision_function(np.nan_to_num(Channels(X, y, columns).votes(T) / size))


def leading(X, y, columns):
    channels = channel_codes(columns)
    return IDFSMEC(channels, lam=LAM, gamma=GAMMA, n_features_to_select=K).fit(X, y).support_


def svm_on_leading(X, y, groups, columns, T):
    kept = leading(X, y, columns)
    train, test = filled(X[:, kept], T[:, kept])
    svm = LinearSVC(class_weight="balanced")
    return tuned(svm, STRENGTHS, train, y, groups).decision_function(test)


def svm_on_all(X, y, groups, columns, T):
    train, test = filled(X, T)
    svm = LinearSVC(class_weight="balanced")
    return tuned(svm, STRENGTHS, train, y, groups).decision_function(test)


def boosting_on_nan(X, y, groups, columns, T):
    model = HistGradientBoostingClassifier(max_iter=60, class_weight="balanced", random_state=0)
    return model.fit(X, y).decision_function(T)


def joint(n_factors: int) -> Callable:
    def classify(X, y, groups, columns, T):
        channels = np.empty(X.shape[1], dtype=int)
        for v, own in enumerate(columns):
            channels[own] = v
        model = IDFSMECClassifier(channels, n_factors=n_factors)
        return model.fit(X, y, groups).decision_function(T)

    return classify


METHODS: dict[str, Callable] = {
    "IDFSMECClassifier": joint(5),
    "the same, no factors": joint(0),
    "plain vote": plain_vote,
    "vote of the top 20 features": leading_vote,
    "vote, ridge per channel": ridge_vote,
    "vote, stacked with simulated gaps": stacked_vote,
    "SVM, top 20 filled": svm_on_leading,
    "SVM, all features filled": svm_on_all,
    "gradient boosting on NaN": boosting_on_nan,
}


def compare(table: FeatureTable, rate: float, repetitions: int) -> dict[str, np.ndarray]:
    """Balanced accuracy and area under the curve of every method, one row per repetition."""
    y = pd.factorize(table.y, sort=True)[0]
    groups = table.subjects.to_numpy()
    _, columns = channel_columns(None, table.X.shape[1], list(table.X.columns))
    found: dict[str, list] = {name: [] for name in METHODS}
    for seed in range(repetitions):
        X = simulate_missing(table, rate, random_state=seed).X.to_numpy()
        folds = list(StratifiedGroupKFold(5, shuffle=True, random_state=seed).split(X, y, groups))
        for name, classify in METHODS.items():
            found[name].append(
                np.mean(list(_folds(classify, X, y, groups, columns, folds)), axis=0)
            )
    return {name: 100 * np.array(rows) for name, rows in found.items()}


def _folds(classify, X, y, groups, columns, folds) -> Iterator[tuple[float, float]]:
    for train, test in folds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # channels that a small fold never has
            said = classify(X[train], y[train], groups[train], columns, X[test])
        yield balanced_accuracy_score(y[test], said > 0), roc_auc_score(y[test], said)


def main(paths: list[str] | None = None) -> None:
    tables = {path: FeatureTable.read(path) for path in paths or []}
    if not tables:
        tables = {"generated": source_table(), "simulated cohort": cohort_table()}
    for title, table in tables.items():
        print(f"## {title}: {table}\n", flush=True)
        columns = {}
        for rate in RATES:
            columns[rate] = compare(table, rate, REPETITIONS)
            print(f"{rate:.0%} missing: done", file=sys.stderr, flush=True)
        print("| method | " + " | ".join(f"{rate:.0%}" for rate in RATES) + " |")
        print("|---" * (len(RATES) + 1) + "|")
        for method in METHODS:
            means = [columns[rate][method].mean(axis=0) for rate in RATES]
            print(f"| {method} | " + " | ".join(f"{a:.1f} / {b:.1f}" for a, b in means) + " |")
        print(flush=True)
        print_differences(
            {method: [columns[rate][method] for rate in RATES] for method in METHODS}
        )


def print_differences(rows: dict[str, list[np.ndarray]]) -> None:
    """How far the first method is ahead of each other one, area under the curve."""
    first, *others = METHODS
    for other in others:
        ahead = np.concatenate(rows[first])[:, 1] - np.concatenate(rows[other])[:, 1]
        error = ahead.std(ddof=1) / np.sqrt(ahead.size)
        print(f"{first} against {other}: {ahead.mean():+.1f} +- {2 * error:.1f}")
    print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
