"""Simulated cohorts of feature tables, with effects that are known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from idfsmec.missing import simulate_missing
from idfsmec.table import FeatureTable


def draw_cohort(
    n_subjects: int,
    *,
    n_effects: int = 6,
    effect: float = 0.6,
    n_epochs: int = 1,
    missing: float = 0.0,
    share_second: float = 0.5,
    correlations: tuple[float, float] = (0.5, 0.25),
    n_channels: int = 12,
    n_features: int = 6,
    of_population: int = 0,
    seed: int = 0,
) -> FeatureTable:
    """Draw participants of a population.

    Features correlate within a channel and with those of the same kind elsewhere, by 0.5 and 0.25.
    ``n_effects`` features differ between the classes by ``effect`` standard deviations, up or
    down; which ones is a matter of ``of_population`` alone. Epochs vary about their participant's
    values by as much as participants do.
    """
    population = np.random.default_rng([of_population, n_effects])
    size = n_channels * n_features
    shift = np.zeros(size)
    shift[population.permutation(size)[:n_effects]] = effect
    shift *= population.choice([-1.0, 1.0], size)
    rng = np.random.default_rng([seed, of_population, n_subjects])
    y = (np.arange(n_subjects) < round(share_second * n_subjects)).astype(int)

    def noise(n: int) -> np.ndarray:
        within, across = correlations
        parts = np.sqrt(within) * rng.normal(size=(n, n_channels, 1))
        parts = parts + np.sqrt(across) * rng.normal(size=(n, 1, n_features))
        alone = np.sqrt(1 - within - across) * rng.normal(size=(n, n_channels, n_features))
        return np.asarray(parts + alone).reshape(n, size)

    X = noise(n_subjects) + y[:, None] * shift
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    X = X[subjects] + (noise(subjects.size) if n_epochs > 1 else 0.0)
    columns = [f"E{v}__f{j}" for v in range(n_channels) for j in range(n_features)]
    table = FeatureTable(pd.DataFrame(X, columns=columns), y[subjects], subjects)
    return simulate_missing(table, missing, random_state=seed) if missing else table
