"""Connectivity strength per channel, against mne-connectivity pair by pair."""

import sys

import numpy as np
import pytest
from mne_connectivity import spectral_connectivity_epochs
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import coherence

from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings
from idfsmec.features.extract import compute_features

SFREQ = 250.0
BANDS = {"theta": (4.0, 8.0), "alpha": (8.0, 13.0)}
METHODS = {"wpli": "wpli", "coherence": "coh"}


@pytest.fixture(scope="module")
def epochs():
    rng = np.random.default_rng(0)
    own, common = rng.standard_normal((3, 4, 2500)), rng.standard_normal((3, 1, 2505))
    shared = np.concatenate([common[..., lag : lag + 2500] for lag in (0, 2, 5, 0)], axis=1)
    return own + shared


def computed(epochs, *features, missing=None):
    settings = FeatureSettings(features=features, bands=BANDS)
    return compute_features(epochs, SFREQ, settings, missing=missing)


def of_pair(first, second, method):
    """One pair in one epoch, each band: bins of 0.5 Hz, upper edge out."""
    windows = sliding_window_view(np.stack([first, second]), 500, axis=-1)[:, ::250]
    found = spectral_connectivity_epochs(
        windows.swapaxes(0, 1),
        method=method,
        indices=(np.array([0]), np.array([1])),
        sfreq=SFREQ,
        mode="fourier",
        fmin=(4.0, 8.0),
        fmax=(7.5, 12.5),
        faverage=True,
        verbose="ERROR",
    )
    return found.get_data()[0]


def expected(epoch, there, method):
    strength = np.full((len(epoch), 2), np.nan)
    for one in there:
        pairs = [of_pair(epoch[one], epoch[other], method) for other in there if other != one]
        if pairs:
            strength[one] = np.mean(pairs, axis=0)
    return strength


@pytest.mark.parametrize("name", METHODS)
def test_strength_is_the_mean_over_pairs_whose_both_ends_are_there(epochs, name):
    given, missing = epochs.copy(), np.zeros((3, 4), dtype=bool)
    given[0, 1] = np.nan
    missing[1, :3] = True
    values, columns = computed(given, name, missing=missing)
    assert columns == [f"{name}_theta", f"{name}_alpha"]
    for epoch, there in enumerate([(0, 2, 3), (3,), (0, 1, 2, 3)]):
        want = expected(epochs[epoch], there, METHODS[name])
        np.testing.assert_allclose(values[epoch], want, atol=1e-12)


def test_coherence_is_that_of_the_definition(epochs):
    values, _ = computed(epochs[:1, :2], "coherence")
    f, squared = coherence(epochs[0, 0], epochs[0, 1], SFREQ, nperseg=500)
    mean = np.sqrt(squared)[(f >= 8) & (f < 13)].mean()
    # The library's Hann window is the symmetric one.
    assert values[0, 0, 1] == pytest.approx(mean, abs=0.01)
    np.testing.assert_allclose(values[0, 0], values[0, 1])


def test_one_channel_has_nothing_to_go_with(epochs):
    values, _ = computed(epochs[:, :1], "wpli")
    assert np.isnan(values).all()


def test_all_channels_are_in_one_block_however_many(epochs):
    many = np.tile(epochs[:1, :1], (1, 170, 1)) + np.random.default_rng(1).normal(
        size=(1, 170, 2500)
    )
    together, _ = computed(many, "coherence")
    np.testing.assert_allclose(together[0, ::-1], computed(many[:, ::-1], "coherence")[0][0])
    alone, _ = computed(many, "variance")
    beside, _ = computed(many, "variance", "coherence")
    np.testing.assert_array_equal(beside[..., :1], alone)


def test_epochs_of_one_window_are_refused(epochs):
    with pytest.raises(InputError, match=r"several of Welch's windows \(2 s\)"):
        computed(epochs[..., :600], "wpli")


def test_bands_without_a_bin_are_refused(epochs):
    settings = FeatureSettings(features=["wpli"], bands={"thin": (8.1, 8.2)})
    with pytest.raises(InputError, match="'thin'"):
        compute_features(epochs, SFREQ, settings)


def test_without_the_library_it_says_what_to_install(epochs, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne_connectivity", None)
    with pytest.raises(InputError, match=r"mne_connectivity, .* 'idfsmec\[connectivity\]'"):
        computed(epochs, "wpli")
