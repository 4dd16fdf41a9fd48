"""Generated tables of the sizes the paper's data sets have."""

from __future__ import annotations

import numpy as np


def channel_table(
    n_channels: int = 128,
    n_features: int = 18,
    n_samples: int = 2000,
    missing: float = 0.3,
    n_classes: int = 2,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features that share factors within a channel; a few channels tell the classes apart.

    Returns X (n_samples, n_channels * n_features) with NaN where a channel is missing, y, and the
    channel of every column.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    X = np.empty((n_samples, n_channels, n_features))
    for v in range(n_channels):
        factors = rng.normal(size=(n_samples, 6))
        factors[:, :2] += 0.3 * rng.normal(size=(n_classes, 2))[y]
        X[:, v] = factors @ rng.normal(size=(6, n_features))
        X[:, v] += 0.5 * rng.normal(size=(n_samples, n_features))
    X[rng.random((n_samples, n_channels)) < missing] = np.nan
    return X.reshape(n_samples, -1), y, np.repeat(np.arange(n_channels), n_features)
