"""Does ``idfsmec plan`` say what studies find? Its formulas beside simulated studies.

``python -m benchmarks.quality.plan --studies 200`` cross-validates pairs of ridge discriminants of
which one knows fewer of the informative features, and compares standard errors, widths and power
with those of the plan; then it counts how often planted features are selected on halves.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.quality.intervals import decide, score
from idfsmec.prediction.folds import make_folds
from idfsmec.selection import IDFSMEC, StabilitySelector

SIZE, N_NEW, N_SPLITS, N_REPEATS = 40, 3000, 10, 5


def draw(rng, n, share, n_epochs, shift, loadings, heavy):
    """Features (n, n_epochs, SIZE) and classes; ``heavy`` is the second generator."""
    y = (np.arange(n) < round(share * n)).astype(int)

    def noise(*shape):
        common = rng.normal(size=(*shape, len(loadings))) @ loadings
        own = (
            rng.exponential(size=(*shape, SIZE)) - 1 if heavy else rng.normal(size=(*shape, SIZE))
        )
        return common + own

    X = noise(n, 1) + (y[:, None] * shift)[:, None]
    return X + (noise(n, n_epochs) if n_epochs > 1 else 0.0), y


def study(n, share, n_epochs, signal, seed, heavy):
    """Scores of a method and two others by fold, and their AUC on new participants."""
    rng = np.random.default_rng([seed, n, n_epochs, 815])
    loadings = (0.9 if heavy else 0.6) * rng.normal(size=(2 if heavy else 4, SIZE))
    shift = np.zeros(SIZE)
    informative = rng.permutation(SIZE)[:8]
    shift[informative] = signal
    # The second method lacks six of the informative features, the third has ten of all by chance.
    nested = np.r_[informative[:2], np.setdiff1d(np.arange(SIZE), informative)]
    methods = [np.arange(SIZE), nested, rng.permutation(SIZE)[:10]]
    how = {"shift": shift, "loadings": loadings, "heavy": heavy}
    X, y = draw(rng, n, share, n_epochs, **how)
    new, new_y = draw(rng, N_NEW, 0.5, n_epochs, **how)
    truth = [score(decide(X[..., of], y, new[..., of]), new_y)[0] for of in methods]
    folds = np.empty((N_REPEATS, N_SPLITS, len(methods)))
    for repeat in range(N_REPEATS):
        splits = make_folds(y, np.arange(n), n_splits=N_SPLITS, random_state=1000 * seed + repeat)
        for at, (train, test) in enumerate(splits):
            for method, of in enumerate(methods):
                decisions = decide(X[train][..., of], y[train], X[test][..., of])
                folds[repeat, at, method] = score(decisions, y[test])[0]
    rows = []
    for at, other in enumerate(("nested", "ten features"), start=1):
        row = {"n": n, "share": share, "epochs": n_epochs, "signal": signal, "other": other}
        row |= {"truth": truth[0], "true difference": truth[0] - truth[at]}
        for repeats in (1, 3, N_REPEATS):
            first, second = folds[:repeats, :, 0], folds[:repeats, :, at]
            difference = (first - second).ravel()
            factor = 1 / difference.size + 1 / (N_SPLITS - 1)
            error = np.sqrt(factor * difference.var(ddof=1))
            row[f"mean {repeats}"], row[f"difference {repeats}"] = first.mean(), difference.mean()
            row[f"error {repeats}"] = np.sqrt(factor * first.var(ddof=1))
            row[f"error of difference {repeats}"] = error
            for df in (N_SPLITS - 1, repeats * N_SPLITS - 1):
                p = 2 * special.stdtr(df, -abs(difference.mean() / max(error, 1e-12)))
                row |= {f"found {repeats} {df} {m}": p < 0.05 / m for m in (1, 13)}
        rows.append(row)
    return rows


def halves(n, effect, seed, k, heavy):
    """Share of halves on which features with this difference are selected, by method."""
    rng = np.random.default_rng([seed, n, 99])
    loadings = np.kron(np.eye(8), np.full((1, SIZE // 8), 0.8 if heavy else 0.5))
    planted = rng.permutation(SIZE)[:4]
    shift = np.zeros(SIZE)
    X, y = draw(rng, n, 0.5, 1, shift, loadings, heavy)
    X = X[:, 0] / np.sqrt(1 + (0.64 if heavy else 0.25))
    X[:, planted] += effect * y[:, None]
    channels = np.repeat(np.arange(8), SIZE // 8)
    selector = StabilitySelector(
        IDFSMEC(), n_features_to_select=k, n_resamples=20, threshold=1.0, max_false=SIZE,
        assumption="none", channels=channels, random_state=seed,
    )  # fmt: skip
    found = selector.fit(X, y, groups=np.arange(n)).frequencies_[planted].mean()
    rows = []
    for _ in range(10):
        order = np.concatenate([rng.permutation(np.flatnonzero(y == c))[: n // 4] for c in (0, 1)])
        t = stats.ttest_ind(X[order][y[order] == 1], X[order][y[order] == 0]).statistic
        rows.append(np.isin(planted, np.argsort(-np.abs(t))[:k]).mean())
    return {
        "n": n,
        "effect": effect,
        "k": k,
        "heavy": heavy,
        "IDFS-MEC": found,
        "t": np.mean(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--heavy", action="store_true", help="the second generator")
    parser.add_argument("--out", type=Path, default=Path("plan"))
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.studies)
    cells = itertools.product((40, 80, 200), (0.5, 0.25), (1,), (0.3, 0.5, 0.8))
    rows = [
        row
        for cell in cells
        if cell[0] * cell[1] >= N_SPLITS
        for seed in seeds
        for row in study(*cell, seed, options.heavy)
    ]
    options.out.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(options.out / "methods.csv", index=False)
    cells = itertools.product((40, 80, 160, 320), (0.4, 0.7, 1.0), (4, 10))
    few = seeds[: max(1, len(seeds) // 5)]
    rows = [halves(n, effect, seed, k, options.heavy) for n, effect, k in cells for seed in few]
    pd.DataFrame(rows).to_csv(options.out / "features.csv", index=False)


if __name__ == "__main__":
    main()
