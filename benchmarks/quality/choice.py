"""When to use which ranking: recovery of effects, and AUC of a small classifier.

``python -m benchmarks.quality.choice TABLE... --studies 40`` simulates studies of 40 and 80
participants with one or four epochs, 16 channels on a ring and 6 features each. Features of a
channel and neighbouring channels correlate, values have heavy tails, and features differ by 0.7
standard deviations

- ``few channels``: two features in each of three neighbouring channels;
- ``one channel``: all six features of one channel;
- ``spread``: 18 features of all channels.

Rankings learn from participants' means, IDFS-MEC from epochs. Found effects are those among as
many leading features; the AUC is that of an L2 logistic regression with ten features among 1000
new participants. Of tables the AUC is that of five folds in five repeats with 20 features. Seeds
are used for nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.quality._paired import compare_paired
from benchmarks.quality.tuning import read_table
from idfsmec.evaluation.statistics import compare_folds
from idfsmec.metrics import auc, holm, mean_by_subject
from idfsmec.prediction.folds import make_folds
from idfsmec.prediction.methods import find_methods
from idfsmec.selection import IDFSMEC
from idfsmec.solver.scaling import Scaling

OURS = "IDFS-MEC"
METHODS = (OURS, "ANOVA F", "group lasso", "elastic net", "mRMR", "random")
CHANNELS, FEATURES, EFFECT, N_NEW = 16, 6, 0.7, 1000
SCENARIOS = ("few channels", "one channel", "spread")


def draw(
    scenario: str, n: int, n_epochs: int, rng: np.random.Generator, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return epochs (n * n_epochs, columns), classes and participants."""
    at = np.arange(CHANNELS)
    away = np.abs(at[:, None] - at)
    near = np.exp(-np.minimum(away, CHANNELS - away) / 1.5)
    alike = 0.6 + 0.4 * np.eye(FEATURES)
    root = np.linalg.cholesky(np.kron(near, alike))

    def noise(rows: int) -> np.ndarray:
        tails = np.sqrt(rng.chisquare(6, (rows, 1)) / 6)
        return np.asarray(rng.normal(size=(rows, root.shape[0])) @ root.T / tails)

    y, subjects = np.arange(n) % 2, np.repeat(np.arange(n), n_epochs)
    X = noise(n) + y[:, None] * shift
    return X[subjects] + 0.8 * noise(subjects.size), y, subjects


def effects(scenario: str, rng: np.random.Generator) -> np.ndarray:
    """Return by how much each feature differs between the classes."""
    shift, start = np.zeros((CHANNELS, FEATURES)), int(rng.integers(CHANNELS))
    if scenario == "one channel":
        shift[start] = EFFECT
    elif scenario == "few channels":
        for channel in (np.arange(3) + start) % CHANNELS:
            shift[channel, rng.permutation(FEATURES)[:2]] = EFFECT
    else:
        shift.ravel()[rng.permutation(shift.size)[:18]] = EFFECT
    return np.asarray(shift.ravel() * rng.choice([-1.0, 1.0], shift.size))


def rank(
    name: str, X: np.ndarray, y: np.ndarray, subjects: np.ndarray, channels: np.ndarray, k: int
) -> np.ndarray:
    """Return the columns in the order of a method; X and y are of epochs."""
    if name == OURS:
        return np.argsort(IDFSMEC(channels=channels).fit(X, y, groups=subjects).ranking_)
    (method,) = find_methods([name])
    selector = method.build(n_features_to_select=k, random_state=0, channels=channels)
    _, first = np.unique(subjects, return_index=True)
    return np.argsort(selector.fit(mean_by_subject(X, subjects), y[first]).ranking_)


def classify(X: np.ndarray, y: np.ndarray, new: np.ndarray, new_y: np.ndarray) -> float:
    """AUC of an L2 logistic regression among new participants."""
    scaling = Scaling.learn(X)
    fitted = LogisticRegression(C=0.1, max_iter=1000).fit(scaling.apply(X), y)
    return auc(fitted.decision_function(scaling.apply(new)), new_y == 1)


def study(scenario: str, n: int, n_epochs: int, seed: int) -> list[dict[str, object]]:
    """Rank and classify by each method."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, n, n_epochs, SCENARIOS.index(scenario), 2026])
    shift = effects(scenario, rng)
    X, y, subjects = draw(scenario, n, n_epochs, rng, shift)
    new, new_y, of_new = draw(scenario, N_NEW, n_epochs, rng, shift)
    means, new_means = mean_by_subject(X, subjects), mean_by_subject(new, of_new)
    channels, planted = np.repeat(np.arange(CHANNELS), FEATURES), np.flatnonzero(shift)
    rows = []
    with threadpool_limits(1):
        for name in METHODS:
            order = rank(name, X, y[subjects], subjects, channels, 10)
            leading = order[:10]
            found = np.isin(order[: planted.size], planted).mean()
            score = classify(means[:, leading], y, new_means[:, leading], new_y)
            known = {"scenario": scenario, "n": n, "epochs": n_epochs, "seed": seed}
            rows.append({**known, "method": name, "found": 100 * found, "auc": 100 * score})
    return rows


def recorded(path: Path, n_repeats: int, n_splits: int = 5) -> pd.DataFrame:
    """AUC of each method by repeat and fold of a table, with its first 20 features."""
    warnings.simplefilter("ignore")
    table = read_table(path)
    X, y = table.X.to_numpy(dtype=float), np.unique(table.y, return_inverse=True)[1]
    subjects = np.unique(table.subjects, return_inverse=True)[1]
    channels, rows = np.array(table.column_channels), {}
    for repeat in range(n_repeats):
        splits = make_folds(y, subjects, n_splits=n_splits, random_state=9000 + repeat)
        for fold, (train, test) in enumerate(splits):
            imputing = Scaling.learn(X[train])
            known, new = imputing.imputed(X[train]), imputing.imputed(X[test])
            sides = []
            for side, of in ((known, train), (new, test)):
                _, first, codes = np.unique(subjects[of], return_index=True, return_inverse=True)
                sides.append((mean_by_subject(side, codes), y[of][first], codes))
            for name in METHODS:
                order = rank(name, known, y[train], sides[0][2], channels, 20)[:20]
                parts = [part for means, of, _ in sides for part in (means[:, order], of)]
                rows[repeat, fold, name] = classify(*parts)
    return pd.Series(rows).unstack()


def compare(scores: pd.DataFrame, column: str) -> pd.DataFrame:
    """Means, and differences of IDFS-MEC to each method, paired by study."""
    cells = ["n", "epochs", "seed"]
    wide = scores.pivot_table(index=cells, columns="method", values=column)[list(METHODS)]
    return wide.mean().to_frame("mean").join(compare_paired(wide, OURS))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="*")
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5, help="of tables")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.studies)
    cells = itertools.product(seeds, SCENARIOS, (40, 80), (1, 4))
    jobs = [delayed(study)(*cell, seed) for seed, *cell in cells]
    rows = pd.DataFrame(itertools.chain.from_iterable(Parallel(options.jobs, verbose=1)(jobs)))
    if options.out:
        rows.to_csv(options.out, index=False)
    for scenario, of in rows.groupby("scenario", sort=False):
        for column in ("found", "auc"):
            print(f"\n{scenario}, {column}\n{compare(of, column).round(4).to_string()}")
    for path in options.tables:
        folds = recorded(path, options.repeats)
        found = compare_folds(folds, OURS)
        found["p_holm"] = holm(found["p_value"])
        print(f"\n{path.name}\n{folds.mean().round(3).to_string()}\n{found.round(3).to_string()}")


if __name__ == "__main__":
    main()
