"""Sizes of effects, missing channels by diagnosis, stability: coverage of CIs and false alarms.

``python -m benchmarks.quality.effects --studies 4000 --seed 1`` simulates studies. Values of
participants are normal, heavy-tailed (t with 6 degrees of freedom) or skewed (gamma with shape 6);
classes differ by a shift. Each column of a simulated table is a study of its own. Fewer studies
are simulated of false discoveries, missing channels and stability.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmarks.quality._cohorts import draw_cohort
from idfsmec.missing.association import ALPHA, missingness_by_class
from idfsmec.selection import StabilitySelector
from idfsmec.selection.effects import adjusted_effects, feature_effects

SIZES = ((12, 12), (20, 20), (40, 40), (100, 100), (32, 8), (64, 16), (160, 40))
SHIFTS = (0.0, 0.5, 0.8, 1.2)
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
NOISE: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(6, size=shape) / np.sqrt(1.5),
    "skewed": lambda rng, shape: (rng.gamma(6, size=shape) - 6) / np.sqrt(6),
}
Row = dict[str, object]


def hedges(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """Coverage of CIs of Hedges' g and of the AUC, and p below 0.05 without any difference."""
    for (name, draw), sizes, shift in itertools.product(NOISE.items(), SIZES, SHIFTS):
        y = np.repeat([0, 1], sizes)
        X = draw(rng, (y.size, n_studies)) + shift * y[:, None]
        found = feature_effects(X, y)
        held = (found["hedges_g_low"] <= shift) & (shift <= found["hedges_g_high"])
        cell = f"{name}, {sizes[0]} + {sizes[1]}, {shift:g}"
        yield {"statement": f"g, {name}", "cell": cell, "rate": held.mean()}
        first, second = draw(np.random.default_rng(0), (2, 500_000))
        truth = (second + shift > first).mean() if shift else 0.5
        above = rankdata(X, axis=0)[sizes[0] :].sum(axis=0) - sizes[1] * (sizes[1] + 1) / 2
        truth = np.where(2 * above < sizes[0] * sizes[1], 1 - truth, truth)  # as auc is oriented
        held = (found["auc_low"] <= truth) & (truth <= found["auc_high"])
        yield {"statement": f"AUC, {name}", "cell": cell, "rate": held.mean()}
        if shift == 0:
            yield {"statement": "p < 0.05", "cell": cell, "rate": (found["p"] < 0.05).mean()}


def of_three(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """Coverage of the CI of eta squared, of normal values."""
    for sizes, shift in itertools.product(((12, 12, 12), (40, 40, 40), (60, 20, 10)), SHIFTS):
        means = np.repeat([0, shift, shift / 2], sizes)
        between = ((means - means.mean()) ** 2).mean()
        truth = between / (between + 1)
        X = rng.normal(size=(means.size, n_studies)) + means[:, None]
        found = feature_effects(X, np.repeat([0, 1, 2], sizes))
        held = (found["eta_squared_low"] <= truth) & (truth <= found["eta_squared_high"])
        yield {"statement": "eta squared", "cell": f"{sizes}, {shift:g}", "rate": held.mean()}


def false_discoveries(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """Share of false ones among features with q below 0.05: 20 of 200 differ by one SD."""
    for (name, draw), sizes in itertools.product(NOISE.items(), SIZES):
        y, shifts, shares = np.repeat([0, 1], sizes), np.r_[np.ones(20), np.zeros(180)], []
        for _ in range(n_studies):
            common = draw(rng, (y.size, 4)) @ rng.normal(size=(4, 200)) / 3
            X = draw(rng, (y.size, 200)) + common + np.outer(y, shifts)
            found = feature_effects(X, y)["q"] < 0.05
            shares.append(found[20:].sum() / max(found.sum(), 1))
        yield {"statement": "q < 0.05", "cell": f"{name}, {sizes}", "rate": np.mean(shares)}


def adjusted(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """Rate of p below 0.05 where classes differ in age and sex alone."""
    for (name, draw), sizes in itertools.product(NOISE.items(), SIZES):
        y, wrong, raw = np.repeat([0, 1], sizes), [], []
        for _ in range(max(1, n_studies // 100)):
            known = pd.DataFrame({"age": 35 + 12 * draw(rng, (y.size,)) + 8 * y})
            known["sex"] = np.where(rng.random(y.size) < 0.4 + 0.2 * y, "f", "m")
            of_age = 0.05 * known["age"].to_numpy() + 0.5 * (known["sex"] == "f").to_numpy()
            X = draw(rng, (y.size, 100)) + of_age[:, None]
            wrong.append(adjusted_effects(X, y, np.arange(y.size), known)["p_adjusted"] < 0.05)
            raw.append((feature_effects(X, y)["p"] < 0.05).mean())
        cell = f"{name}, {sizes}"
        yield {"statement": "p adjusted < 0.05", "cell": cell, "rate": np.mean(wrong)}
        yield {"statement": "p not adjusted < 0.05", "cell": cell, "rate": np.mean(raw)}


def study(
    n: int, share: float, by_class: tuple[float, float], rng: np.random.Generator, epochs: int = 20
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether channels are observed: of 16 the first is lost at its classes' rates, 8 at others'.

    Participants lose epochs of a channel at rates of their own about the mean, have from half
    to all of the epochs, and each lacks the last two channels altogether with a chance of 20 %.
    """
    y = (np.arange(n) < round(share * n)).astype(int)
    counts = rng.integers(epochs // 2, epochs + 1, n)
    means = np.zeros((n, 16))
    means[:, 0] = np.where(y, by_class[1], by_class[0])
    means[:, 1:9] = np.linspace(0.05, 0.6, 8)
    rates = rng.beta(4 * np.maximum(means, 1e-12), 4 * (1 - means))
    rates[:, 14:] = rng.random((n, 1)) < 0.2
    rows = np.repeat(np.arange(n), counts)
    return rng.random((rows.size, 16)) >= rates[rows], y[rows], rows


def missing(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """Channels that patients lack in 35 % of epochs and controls never; and no association."""
    names = np.array([f"c{j}" for j in range(16)])
    for n, share in itertools.product((40, 60, 120), (0.5, 0.2)):
        for of, rates in (("found", (0.0, 0.35)), ("false alarm", (0.3, 0.3))):
            alarms = []
            for _ in range(n_studies):
                frame = missingness_by_class(*study(n, share, rates, rng), names)
                hits = frame["p_holm"] < ALPHA
                alarms.append(hits[0] if of == "found" else hits.any())
            cell = f"{n}, {share:.0%} patients"
            yield {"statement": f"missing channel, {of}", "cell": cell, "rate": np.mean(alarms)}


def stable(n_studies: int, rng: np.random.Generator) -> Iterator[Row]:
    """False selections by the bound of 1, and what the CI of stability holds.

    Without effects features correlate; with six of 0.8 SD they do not, so that all others tell
    nothing.
    """
    for n, (n_effects, correlations) in itertools.product(
        (40, 80), ((0, (0.5, 0.25)), (6, (0.0, 0.0)))
    ):
        false, same, others = [], [], []
        for population in rng.integers(1_000_000, size=n_studies):
            known = {"effect": 0.8, "correlations": correlations, "of_population": population}
            tables = [draw_cohort(n, n_effects=n_effects, seed=s, **known) for s in (1, 2)]
            fitted = [
                StabilitySelector(n_resamples=halves, random_state=0).fit(table.X, table.y)
                for table, halves in ((tables[0], 100), (tables[0], 600), (tables[1], 600))
            ]
            differ = np.zeros(fitted[0].support_.size, dtype=bool)
            if n_effects:
                population_rng = np.random.default_rng([population, n_effects])
                differ[population_rng.permutation(differ.size)[:n_effects]] = True
            false.append((fitted[0].support_ & ~differ).sum())
            ci, truth, other = (of.stability_ for of in fitted)
            same.append(ci.low <= truth.value <= ci.high)
            others.append(ci.low <= other.value <= ci.high)
        cell = f"{n}, {n_effects} effects"
        yield {"statement": "false selections", "cell": cell, "rate": np.mean(false)}
        yield {"statement": "stability, same participants", "cell": cell, "rate": np.mean(same)}
        yield {"statement": "stability, others", "cell": cell, "rate": np.mean(others)}


#: What is measured, and how many of 4000 studies.
PARTS: dict[str, tuple[Callable[[int, np.random.Generator], Iterator[Row]], int]] = {
    "hedges": (hedges, 1),
    "classes": (of_three, 1),
    "discoveries": (false_discoveries, 20),
    "adjusted": (adjusted, 1),
    "missing": (missing, 10),
    "stable": (stable, 100),
}


def run(n_studies: int, seed: int, parts: Sequence[str] = tuple(PARTS)) -> pd.DataFrame:
    """Return the rate of each statement in each cell."""
    rows: list[Row] = []
    for at, (name, (measure, divisor)) in enumerate(PARTS.items()):
        if name in parts:
            rng = np.random.default_rng([seed, at])
            rows += measure(max(1, n_studies // divisor), rng)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=tuple(PARTS))
    options = parser.parse_args()
    found = run(options.studies, options.seed, options.only)
    print(found.to_string(index=False))
    print(found.groupby("statement", sort=False)["rate"].agg(["mean", "min", "max"]).round(3))


if __name__ == "__main__":
    main()
