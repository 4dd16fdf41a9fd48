"""Blocks, masks and missing channels in the computation itself."""

import numpy as np
import pytest

from idfsmec.features import FeatureSettings
from idfsmec.features.extract import compute_features


@pytest.fixture
def noise():
    return np.random.default_rng(2).standard_normal((5, 4, 1000))


def test_epochs_give_the_same_values_together_and_alone(noise):
    many = np.tile(noise, (1, 1, 15))  # more samples than are computed at once
    together, _ = compute_features(np.concatenate([many] * 3), 250)
    alone = [compute_features(epoch[np.newaxis], 250)[0][0] for epoch in many]
    np.testing.assert_allclose(together, np.concatenate([alone] * 3), rtol=1e-10, atol=1e-12)


def test_a_channel_that_is_known_to_be_missing_is_nan(noise):
    known = np.zeros((5, 4), dtype=bool)
    known[1, 2] = known[4, 0] = True
    values, _ = compute_features(noise, 250, missing=known)
    np.testing.assert_array_equal(np.isnan(values).all(axis=2), known)
    np.testing.assert_array_equal(np.isnan(values).any(axis=2), known)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e6, 1e-9])
def test_a_flat_channel_gives_nan_for_that_channel_and_epoch_only(noise, value):
    noise[3, 1] = value
    values, _ = compute_features(noise, 250)
    assert np.argwhere(np.isnan(values).any(axis=2)).tolist() == [[3, 1]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_sample_that_is_not_finite_costs_its_channel_and_epoch_only(noise, value):
    before, _ = compute_features(noise, 250)
    noise[0, 3, -1] = value
    values, _ = compute_features(noise, 250)
    assert np.isnan(values[0, 3]).all()
    values[0, 3] = before[0, 3]
    np.testing.assert_allclose(values, before, rtol=1e-10, atol=1e-12)


def test_rounding_noise_on_a_large_offset_is_flat(noise):
    noise[2, 2] = 1e6 + 1e-9 * noise[2, 2]
    values, _ = compute_features(noise, 250)
    assert np.isnan(values[2, 2]).all()


def test_a_small_signal_on_a_large_offset_is_not_flat(noise):
    # MODMA: a few hundred counts of EEG on an offset of 1.5 million.
    noise[2, 2] = 1.5e6 + 100 * noise[2, 2]
    values, _ = compute_features(noise, 250)
    assert np.isfinite(values).all()


def test_everything_missing_is_no_error(noise):
    values, _ = compute_features(np.full_like(noise, np.nan), 250)
    assert np.isnan(values).all()


def test_no_features_give_no_columns(noise):
    values, names = compute_features(noise, 250, FeatureSettings(features=[]))
    assert values.shape == (5, 4, 0)
    assert names == []
