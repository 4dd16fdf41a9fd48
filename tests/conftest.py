"""Small tables that many tests share."""

import numpy as np
import pytest


def make_channels(
    n_samples=120, n_channels=4, n_features=5, n_classes=2, missing=0.3, seed=0, effect=0.8
):
    """Correlated features of channels, of which the first ones tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = np.empty((n_samples, n_channels, n_features))
    for v in range(n_channels):
        latent = rng.normal(size=(n_samples, 3))
        latent[:, 0] += effect / (1 + v) * rng.normal(size=n_classes)[y]
        X[:, v] = latent @ rng.normal(size=(3, n_features)) + rng.normal(
            size=(n_samples, n_features)
        )
    X[rng.random((n_samples, n_channels)) < missing] = np.nan
    channels = np.repeat([f"E{v + 1}" for v in range(n_channels)], n_features)
    return X.reshape(n_samples, -1), y, channels


@pytest.fixture
def incomplete():
    return make_channels()
