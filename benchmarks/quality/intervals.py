"""Coverage of intervals of cross-validated scores, errors and power of tests between methods.

``python -m benchmarks.quality.intervals --studies 200 --jobs 16`` simulates studies,
cross-validates fast linear discriminants on them, and compares each interval with the performance
of the model that is fitted to the whole study, on 1500 new participants. Cells: no, a moderate and
a strong signal; 40, 80 and 200 participants, balanced or 20 % of the second class; 1 and 6 epochs;
5 and 10 folds; 1 and 5 repeats.

Of 19 intervals that were tried (Nadeau and Bengio with four numbers of degrees of freedom; plain,
on the logit scale with six floors and centres, Wilson's with three effective numbers; LeDell's
influence curves with five factors; Newcombe), three are kept here for comparison. They were chosen
with the generator ``factors`` and seeds 0 to 6019; the generator ``skewed`` with its own
classifier was used to judge only.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special
from threadpoolctl import threadpool_limits

from idfsmec.evaluation.statistics import compare_folds, power
from idfsmec.evaluation.study_size import MARGIN
from idfsmec.metrics import (
    CROSS_VALIDATED,
    auc,
    auc_interval,
    fold_interval,
    holm,
    wilson_interval,
)
from idfsmec.prediction.folds import make_folds

N_CHANNELS, N_FEATURES, N_NEW, N_METHODS = 8, 5, 1500, 9
SIGNALS = {"none": 0.0, "moderate": 0.45, "strong": 0.9}
GENERATORS = ("factors", "skewed")
REPEATS = (1, 5)
SCORES = ("AUC", "balanced accuracy")
#: Where power is measured, the true difference is between these.
DIFFERENCE, NEAR = 0.15, 0.03
FIRST_SEED = 50_000


class Population:
    """Participants with correlated features, some of which differ; epochs vary about them."""

    def __init__(self, signal: float, seed: int, kind: str = "factors") -> None:
        self.kind, self.rng = kind, np.random.default_rng([seed, 4711])
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
        X = self._noise(n, 1) + (y[:, None] * self.shift)[:, None]
        X = X + (self._noise(n, n_epochs) if n_epochs > 1 else 0.0)
        return (np.exp(0.5 * X) if self.kind == "skewed" else X), y

    def _noise(self, *shape: int) -> np.ndarray:
        size = self.shift.size
        if self.kind == "factors":
            common = self.rng.normal(size=(*shape, 4)) @ self.loadings
            return np.asarray(common + self.rng.standard_t(6, size=(*shape, size)))
        steps = self.rng.normal(size=(*shape, size + 3))
        moving = sum(steps[..., i : i + size] for i in range(4)) / 2  # neighbours correlate
        return np.asarray(moving * self.rng.uniform(0.6, 1.6, (*shape[:-1], 1, 1)))


def decide(X: np.ndarray, y: np.ndarray, new: np.ndarray, kind: str) -> np.ndarray:
    """Mean decision of each new participant, by a ridge or a diagonal discriminant."""
    n_epochs = X.shape[1]
    rows, labels = X.reshape(-1, X.shape[2]), np.repeat(y, n_epochs)
    means = [rows[labels == k].mean(axis=0) for k in (0, 1)]
    centred = rows - np.where(labels[:, None], means[1], means[0])
    if kind == "skewed":
        w = (means[1] - means[0]) / centred.var(axis=0)
    else:
        covariance = centred.T @ centred / len(rows)
        covariance += 0.3 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        w = np.linalg.solve(covariance, means[1] - means[0])
    return np.asarray((new.mean(axis=1) - (means[0] + means[1]) / 2) @ w)


def score(decisions: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """AUC and balanced accuracy."""
    hits, rejections = (decisions[y == 1] > 0).mean(), (decisions[y == 0] <= 0).mean()
    return auc(decisions, y == 1), (hits + rejections) / 2


def study(
    kind: str, signal: str, n: int, share: float, n_epochs: int, n_splits: int, seed: int
) -> dict[str, Any]:
    """Cross-validate on one study: scores of folds, decisions, and the truth of final models."""
    with threadpool_limits(1):
        population = Population(SIGNALS[signal], seed, kind)
        X, y = population.draw(n, share, n_epochs)
        new, new_y = population.draw(N_NEW, 0.5, n_epochs)
        truth = [
            score(decide(X[..., of], y, new[..., of], kind), new_y) for of in population.methods
        ]
        scores = np.full((max(REPEATS), n_splits, N_METHODS, 2), np.nan)
        decisions = np.zeros((max(REPEATS), n))
        influence = np.zeros((max(REPEATS), n))
        for repeat in range(max(REPEATS)):
            splits = make_folds(
                y, np.arange(n), n_splits=n_splits, random_state=1000 * seed + repeat
            )
            for at, (train, test) in enumerate(splits):
                for method, of in enumerate(population.methods):
                    held_out = decide(X[train][..., of], y[train], X[test][..., of], kind)
                    scores[repeat, at, method] = score(held_out, y[test])
                    if method == 0:
                        decisions[repeat, test] = held_out
                        influence[repeat, test] = influences(
                            held_out, y[test], scores[repeat, at, 0, 0], y.mean()
                        )
    return {
        "truth": np.array(truth),
        "scores": scores,
        "decisions": decisions,
        "influence": influence,
        "y": y,
    }


def shares(signal: str, n: int, share: float, kind: str, seed: int) -> list[dict[str, Any]]:
    """Whether CIs of sensitivity and specificity hold those of the final model."""
    population = Population(SIGNALS[signal], seed, kind)
    X, y = population.draw(n, share, 1)
    new, new_y = population.draw(N_NEW, 0.5, 1)
    final, held_out = decide(X, y, new, kind) > 0, np.zeros(n)
    for repeat in range(3):
        folds = make_folds(
            y, np.arange(n), n_splits=min(10, int(y.sum())), random_state=100 * seed + repeat
        )
        for train, test in folds:
            held_out[test] += decide(X[train], y[train], X[test], kind)
    rows = []
    for k in (0, 1):
        hits, n_class = ((held_out > 0) == k)[y == k].sum(), (y == k).sum()
        row: dict[str, Any] = {"signal": signal, "n": n, "share": share, "class": k}
        for name, inflation in (("Wilson", 1.0), ("CI", CROSS_VALIDATED)):
            low, high = wilson_interval(hits / inflation, n_class / inflation)
            row |= {
                name: low <= (final == k)[new_y == k].mean() <= high,
                f"{name} width": high - low,
            }
        rows.append(row)
    return rows


def measure_shares(n_studies: int, n_jobs: int, kind: str = "skewed") -> dict[str, Any]:
    """Mean and worst coverage of the CIs of sensitivity and specificity, and mean width."""
    cells = itertools.product(SIGNALS, (200, 80, 40), (0.5, 0.2))
    seeds = range(FIRST_SEED, FIRST_SEED + n_studies)
    jobs = [delayed(shares)(*cell, kind, seed) for cell in cells for seed in seeds]
    rows = pd.DataFrame(itertools.chain.from_iterable(Parallel(n_jobs, verbose=1)(jobs)))
    means = rows.groupby(["signal", "n", "share"]).mean()
    return {
        name: {
            "mean": round(float(means[name].mean()), 4),
            "worst": round(float(means[name].min()), 4),
            "width": round(float(means[f"{name} width"].mean()), 4),
        }
        for name in ("Wilson", "CI")
    }


def influences(decisions: np.ndarray, y: np.ndarray, auc: float, share: float) -> np.ndarray:
    """Influence of each participant held out on the AUC of a fold (LeDell et al. 2015)."""
    won = (decisions[:, None] > decisions) + 0.5 * (decisions[:, None] == decisions)
    above = won[:, y == 0].mean(axis=1)
    below = won[y == 1].mean(axis=0)
    return np.where(y == 1, (above - auc) / share, (below - auc) / (1 - share))


def judge(studied: dict[str, Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield for each statement whether it is right, with its width."""
    y, truth, scores = studied["y"], studied["truth"], studied["scores"][:repeats]
    n_splits, n_ill = scores.shape[1], int(y.sum())

    def compared(what: str, low: float, high: float, true: float) -> dict[str, Any]:
        return {
            "statement": what,
            "right": low <= true <= high,
            "width": high - low,
            "above chance": low > 0.5,
        }

    for at, name in enumerate(SCORES):
        folds = scores[:, :, 0, at]
        ci = fold_interval(folds, y.size)
        yield compared(f"{name}: CI", ci.low, ci.high, truth[0, at])
        plain = fold_interval(folds)
        reach = special.stdtrit(folds.size - 1, 0.975) * plain.standard_error
        ends = ci.mean - reach, ci.mean + reach
        yield compared(f"{name}: repeats x k - 1 degrees of freedom", *ends, truth[0, at])
    decisions = studied["decisions"][:repeats]
    pooled = float(np.mean([auc(of, y == 1) for of in decisions]))
    newcombe = auc_interval(pooled, n_ill, y.size - n_ill)
    yield compared("AUC: Newcombe, pooled", *newcombe, truth[0, 0])
    mean = np.clip(scores[:, :, 0, 0].mean(), 0.5 / y.size, 1 - 0.5 / y.size)
    error = np.sqrt((studied["influence"][:repeats] ** 2).mean() / y.size)
    reach = 1.96 * error / (mean * (1 - mean))
    ends = special.expit(special.logit(mean) + np.array([-reach, reach]))
    yield compared("AUC: influence curves", *ends, truth[0, 0])
    index = pd.MultiIndex.from_product([range(repeats), range(n_splits)])
    for at, name in enumerate(SCORES):
        frame = pd.DataFrame(scores[..., at].reshape(-1, N_METHODS), index)
        found = compare_folds(frame, 0)
        true = truth[0, at] - truth[1:, at]
        inside = (found["low"] <= true) & (true <= found["high"])
        yield {
            "statement": f"{name}, difference: CI",
            "right": inside.mean(),
            "width": (found["high"] - found["low"]).mean(),
        }
        yield {
            "statement": f"{name}: test, no signal",
            "wrong": (found["p_value"] < 0.05).mean(),
            "family wrong": bool((holm(found["p_value"]) < 0.05).any()),
        }
        if at:
            continue
        for row in found[np.abs(np.abs(true) - DIFFERENCE) < NEAR].itertuples():
            yield {
                "statement": "AUC: power at 0.15",
                "found": row.p_value < 0.05,
                "stated": power(DIFFERENCE, row.standard_error, row.df),
            }
        not_inferior = (found["high"] <= MARGIN).to_numpy()
        for what, of in (
            (
                f"not inferior, loses {MARGIN} to {2 * MARGIN}",
                (true > MARGIN) & (true < 2 * MARGIN),
            ),
            ("not inferior, loses nothing", np.abs(true) < 0.01),
        ):
            yield from ({"statement": f"AUC: {what}", "found": hit} for hit in not_inferior[of])


def cell(
    kind: str, signal: str, n: int, share: float, n_epochs: int, n_splits: int, seeds: range
) -> list[dict[str, Any]]:
    """Return the rows of some studies of a cell."""
    known = {"generator": kind, "signal": signal, "n": n, "share": share, "epochs": n_epochs}
    return [
        {**known, "folds": n_splits, "repeats": repeats, **row}
        for studied in (study(kind, signal, n, share, n_epochs, n_splits, s) for s in seeds)
        for repeats in REPEATS
        for row in judge(studied, repeats)
    ]


KEYS = ["generator", "signal", "n", "share", "epochs", "folds", "repeats"]


def run(
    n_studies: int,
    n_jobs: int,
    kind: str = "skewed",
    splits: Sequence[int] = (5, 10),
    first_seed: int = FIRST_SEED,
) -> pd.DataFrame:
    """Return the mean of each statement in each cell."""
    grid = itertools.product(SIGNALS, (200, 80, 40), (0.5, 0.2), (6, 1), splits)
    last = first_seed + n_studies
    jobs = [
        delayed(cell)(kind, *where, range(first, min(first + 20, last)))
        for where in grid
        if round(where[1] * where[2]) >= where[4]
        for first in range(first_seed, last, 20)
    ]
    rows = pd.DataFrame(itertools.chain.from_iterable(Parallel(n_jobs, verbose=1)(jobs)))
    grouped = rows.groupby(["statement", *KEYS])
    values = ["right", "width", "above chance", "wrong", "family wrong", "found", "stated"]
    return grouped[values].mean().join(grouped.size().rename("count")).reset_index()


def summarise(cells: pd.DataFrame) -> dict[str, Any]:
    """Return mean and worst cell of each statement, by repeats; folds together."""
    summary: dict[str, Any] = {}
    for (statement, repeats), rows in cells.groupby(["statement", "repeats"]):
        values: dict[str, float] = {}

        def cell_means(column: str, rows: pd.DataFrame, by: Sequence[str]) -> pd.Series:
            known = rows.dropna(subset=[column])
            sums = known.assign(sum=known[column] * known["count"]).groupby(list(by))
            return sums["sum"].sum() / sums["count"].sum()

        where = ["signal", "n", "share", "epochs"]
        if rows["right"].notna().any():
            right = cell_means("right", rows, where)
            width = cell_means("width", rows, where)
            values = {"mean": right.mean(), "worst": right.min(), "width": width.mean()}
            values |= {f"width, {n}": of.mean() for n, of in width.groupby("n")}
        none = rows[rows["signal"] == "none"]
        for column in ("above chance", "wrong", "family wrong"):
            if none[column].notna().any() and not str(statement).startswith("sens"):
                rates = cell_means(column, none, where)
                values |= {column: rates.mean(), f"{column}, worst": rates.max()}
        for column in ("found", "stated"):
            if rows[column].notna().any():
                by_size = cell_means(column, rows, ["n"])
                values |= {f"{column}, {n}": rate for n, rate in by_size.items()}
        summary[f"{statement}, {repeats} repeats"] = {
            name: round(float(value), 4) for name, value in values.items()
        }
    return summary


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--splits", type=int, nargs="+", default=(5, 10))
    parser.add_argument("--generator", choices=GENERATORS, default="skewed")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    known = options.generator, options.splits, options.first_seed
    cells = run(options.studies, options.jobs, *known)
    if options.out:
        cells.to_csv(options.out, index=False)
    print(pd.DataFrame(summarise(cells)).T.round(3).to_string())


if __name__ == "__main__":
    main()
