"""Coverage of confidence intervals of cross-validated scores; errors of tests between methods.

``python -m benchmarks.quality.intervals --studies 400 --jobs 16`` simulates studies,
cross-validates ridge discriminants on them, and compares each interval with the performance of
the model that is fitted to the whole study, on 4000 new participants. Cells: no, a moderate and a
strong signal; 40, 80 and 200 participants, balanced or 20 % of the second class; 1 and 6 epochs.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special, stats
from threadpoolctl import threadpool_limits

from idfsmec.prediction.folds import make_folds

N_CHANNELS, N_FEATURES, N_NEW, N_METHODS = 8, 5, 4000, 9
SIGNALS = {"none": 0.0, "moderate": 0.45, "strong": 0.9}
SCORES = ("auc", "balanced accuracy")


class Population:
    """Participants with correlated features, some of which differ; epochs vary about them."""

    def __init__(self, signal: float, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 4711])
        size = N_CHANNELS * N_FEATURES
        self.shift = np.zeros(size)
        self.shift[self.rng.permutation(size)[:5]] = signal
        self.loadings = 0.6 * self.rng.normal(size=(4, size))
        # The first method has all features, the others ten each.
        self.methods = [np.arange(size)]
        self.methods += [np.sort(self.rng.permutation(size)[:10]) for _ in range(N_METHODS - 1)]

    def draw(self, n: int, share: float, n_epochs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_epochs, n_features) and classes."""
        y = (np.arange(n) < round(share * n)).astype(int)

        def noise(*shape: int) -> np.ndarray:
            common = self.rng.normal(size=(*shape, 4)) @ self.loadings
            return np.asarray(common + self.rng.standard_t(6, size=(*shape, self.shift.size)))

        X = noise(n, 1) + (y[:, None] * self.shift)[:, None]
        return X + (noise(n, n_epochs) if n_epochs > 1 else 0.0), y


def decide(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean decision of each new participant by a ridge discriminant."""
    n_epochs = X.shape[1]
    rows, labels = X.reshape(-1, X.shape[2]), np.repeat(y, n_epochs)
    means = [rows[labels == k].mean(axis=0) for k in (0, 1)]
    centred = rows - np.where(labels[:, None], means[1], means[0])
    covariance = centred.T @ centred / len(rows)
    covariance += 0.3 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    w = np.linalg.solve(covariance, means[1] - means[0])
    return np.asarray((new.mean(axis=1) - (means[0] + means[1]) / 2) @ w)


def score(decisions: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """AUC and balanced accuracy."""
    above, below = decisions[y == 1], decisions[y == 0]
    auc = (stats.rankdata(decisions)[y == 1].sum() - above.size * (above.size + 1) / 2) / (
        above.size * below.size
    )
    return float(auc), float(((above > 0).mean() + (below <= 0).mean()) / 2)


def study(
    signal: str, n: int, share: float, n_epochs: int, n_splits: int, n_repeats: int, seed: int
) -> dict[str, Any]:
    """Cross-validate on one study: scores, influences, and the truth of the final models."""
    with threadpool_limits(1):
        population = Population(SIGNALS[signal], seed)
        X, y = population.draw(n, share, n_epochs)
        new, new_y = population.draw(N_NEW, 0.5, n_epochs)
        truth = [score(decide(X[..., of], y, new[..., of]), new_y) for of in population.methods]
        folds = np.full((n_repeats, n_splits, N_METHODS, 2), np.nan)
        influence = np.zeros((n_repeats, n))
        for repeat in range(n_repeats):
            splits = make_folds(
                y, np.arange(n), n_splits=n_splits, random_state=1000 * seed + repeat
            )
            for at, (train, test) in enumerate(splits):
                for method, of in enumerate(population.methods):
                    held_out = decide(X[train][..., of], y[train], X[test][..., of])
                    folds[repeat, at, method] = score(held_out, y[test])
                    if method == 0:
                        influence[repeat, test] = influences(
                            held_out, y[test], folds[repeat, at, 0, 0], y.mean()
                        )
    return {"truth": np.array(truth), "folds": folds, "influence": influence}


def influences(decisions: np.ndarray, y: np.ndarray, auc: float, share: float) -> np.ndarray:
    """Influence of each participant held out on the AUC of a fold (LeDell et al. 2015)."""
    won = (decisions[:, None] > decisions) + 0.5 * (decisions[:, None] == decisions)
    above = won[:, y == 0].mean(axis=1)
    below = won[y == 1].mean(axis=0)
    return np.where(y == 1, (above - auc) / share, (below - auc) / (1 - share))


def logit_interval(mean: float, error: float, quantile: float, n: int) -> tuple[float, float]:
    """Interval on the logit scale; an ideal score counts as one half error in n."""
    inside = np.clip(mean, 1 / (2 * n), 1 - 1 / (2 * n))
    half = quantile * error / (inside * (1 - inside))
    low, high = special.expit(special.logit(inside) + np.array([-half, half]))
    return min(low, mean), max(high, mean)


def intervals(found: dict[str, Any], n_min: int, n: int) -> dict[str, tuple[float, float]]:
    """All candidates, of the AUC and of the balanced accuracy."""
    result = {}
    n_repeats, n_splits = found["folds"].shape[:2]
    for repeats in sorted({1, n_repeats}):
        some = found["folds"][:repeats, :, 0]
        for at, name in enumerate(SCORES):
            values = some[..., at].ravel()
            mean, spread = values.mean(), values.std(ddof=1)
            for kind, factor in (("NB", 1 / values.size + 1 / (n_splits - 1)),):
                error = np.sqrt(factor) * spread
                t = special.stdtrit(n_splits - 1, 0.975)
                result[f"{name}, {kind}, {repeats}"] = logit_interval(mean, error, t, n_min)
            # Variance of folds pooled over repeats, floor by binomial variance
            floor = np.sqrt(mean * (1 - mean) / (4 * n_min))
            error = max(np.sqrt(1 / values.size + 1 / (n_splits - 1)) * spread, floor)
            result[f"{name}, NB floor, {repeats}"] = logit_interval(mean, error, t, n_min)
            if name == "auc":
                error = np.sqrt((found["influence"][:repeats] ** 2).mean() / n)
                for inflate in (1.0, 1.25, 1.5, 2.0):
                    key = f"{name}, influence x{inflate}, {repeats}"
                    result[key] = logit_interval(mean, np.sqrt(inflate) * error, 1.96, n_min)
    return result


def p_values(found: dict[str, Any], repeats: int) -> np.ndarray:
    """P of the AUC of the first method against each other one."""
    folds = found["folds"][:repeats, :, :, 0]
    differences = (folds[:, :, :1] - folds[:, :, 1:]).reshape(-1, N_METHODS - 1)
    n_splits = folds.shape[1]
    error = np.sqrt(1 / len(differences) + 1 / (n_splits - 1)) * differences.std(axis=0, ddof=1)
    t = differences.mean(axis=0) / np.maximum(error, 1e-12)
    return np.asarray(2 * special.stdtr(n_splits - 1, -np.abs(t)))


def cell(
    signal: str, n: int, share: float, n_epochs: int, n_splits: int, n_repeats: int, seeds: range
) -> list[dict[str, Any]]:
    rows = []
    n_min = round(min(share, 1 - share) * n)
    for seed in seeds:
        found = study(signal, n, share, n_epochs, n_splits, n_repeats, seed)
        known = {"signal": signal, "n": n, "share": share, "epochs": n_epochs, "k": n_splits}
        for name, (low, high) in intervals(found, n_min, n).items():
            truth = found["truth"][0][SCORES.index(name.split(",")[0])]
            rows.append(
                {
                    **known,
                    "interval": name,
                    "right": low <= truth <= high,
                    "width": high - low,
                    "above": low > 0.5,
                    "below": high < truth,
                }
            )
        for repeats in sorted({1, n_repeats}):
            p = p_values(found, repeats)
            rows.append(
                {
                    **known,
                    "interval": f"test, {repeats}",
                    "right": p[0] >= 0.05,
                    "width": p.min() * (N_METHODS - 1) >= 0.05,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--splits", type=int, nargs="+", default=(5, 10))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells = list(itertools.product(SIGNALS, (200, 80, 40), (0.5, 0.2), (6, 1), options.splits))
    last = options.first_seed + options.studies
    jobs = [
        delayed(cell)(*one, options.repeats, range(first, min(first + 20, last)))
        for one in cells
        if round(one[1] * one[2]) >= one[4]
        for first in range(options.first_seed, last, 20)
    ]
    rows = Parallel(options.jobs, verbose=1)(jobs)
    scores = pd.DataFrame(itertools.chain.from_iterable(rows))
    keys = ["interval", "k", "signal", "n", "share", "epochs"]
    by_cell = scores.groupby(keys)[["right", "width", "above", "below"]].mean()
    if options.out:
        by_cell.to_csv(options.out)
    summary = by_cell.groupby(level=["interval", "k"]).agg(
        coverage=("right", "mean"),
        worst=("right", "min"),
        best=("right", "max"),
        width=("width", "mean"),
    )
    none = by_cell.xs("none", level="signal").groupby(level=["interval", "k"])["above"]
    print(
        summary.join(none.mean().rename("above chance"))
        .join(none.max().rename("worst above"))
        .round(3)
        .to_string()
    )


if __name__ == "__main__":
    main()
