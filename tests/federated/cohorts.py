"""Tables of sites for the tests of summaries."""

import numpy as np
import pandas as pd

from idfsmec import FeatureTable

CHANNELS = ("F3", "Cz", "O2")
FEATURES = ("theta", "alpha", "beta", "gamma")


def cohort(
    n_subjects=80,
    epochs=3,
    missing=0.15,
    seed=0,
    effect=1.0,
    channels=CHANNELS,
    features=FEATURES,
    prefix="s",
    jitter=0.5,
):
    """Subjects of two classes with several epochs; F3__alpha differs between the classes."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, epochs + 1, n_subjects) if epochs > 1 else np.ones(n_subjects, dtype=int)
    subject = np.repeat(np.arange(n_subjects), n)
    label = np.where(np.arange(n_subjects) % 2, "MDD", "HC")
    means = rng.normal(size=(n_subjects, len(channels), len(features)))
    means += 0.5 * rng.normal(size=(n_subjects, len(channels), 1))
    means[label == "MDD", 0, 1] += effect
    X = means[subject] + jitter * rng.normal(size=(subject.size, *means.shape[1:]))
    X[(rng.random((n_subjects, len(channels))) < missing)[subject]] = np.nan
    columns = [f"{channel}__{feature}" for channel in channels for feature in features]
    frame = pd.DataFrame(X.reshape(subject.size, -1), columns=columns)
    return FeatureTable(frame, label[subject], [f"{prefix}{i:03d}" for i in subject])


def assert_same_ranking(found, wanted):
    np.testing.assert_allclose(found.scores_, wanted.scores_, atol=1e-9)
    np.testing.assert_array_equal(found.ranking_, wanted.ranking_)
