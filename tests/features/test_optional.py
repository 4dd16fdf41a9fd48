"""Optional columns are what their libraries give, and NaN where a channel is missing."""

import numpy as np
import pytest
from specparam import SpectralModel

from idfsmec.errors import InputError
from idfsmec.features import (
    DEFAULT_FEATURES,
    FEATURE_SETS,
    EpochSignal,
    FeatureSettings,
    families,
)
from idfsmec.features.extract import compute_features
from idfsmec.recordings import simulate_cohort

SFREQ = 250.0


@pytest.fixture(scope="module")
def epochs():
    raw = simulate_cohort(1, 3, duration=20, detached=0, random_state=0).recordings[0].load()
    return 1e6 * raw.get_data().reshape(3, 2, 2500).swapaxes(0, 1)


def computed(epochs, features):
    values, names = compute_features(epochs, SFREQ, FeatureSettings(features=features))
    return {name: values[..., i] for i, name in enumerate(names)}


def test_logarithms_are_those_of_the_columns(epochs):
    got = computed(epochs, ["variance", "ap", "ap_beta_theta_ratio", *FEATURE_SETS["log"]])
    for name in [name for name in got if name.startswith("log_")]:
        np.testing.assert_allclose(got[name], np.log(got[name.removeprefix("log_")]))


def test_sets_have_names(epochs):
    assert FeatureSettings(features="paper").columns == FeatureSettings().columns
    log = FeatureSettings(features="log").columns
    assert len(log) == 18
    assert {"log_variance", "log_ap_delta", "log_ap_beta_theta_ratio", "de_alpha"} <= set(log)
    assert not {"variance", "ap_delta"} & set(log)
    assert len(FeatureSettings(features="extended").columns) == 18 + 7
    again = FeatureSettings.from_dict(FeatureSettings().as_dict(), log)
    assert again.columns == log
    assert FEATURE_SETS["paper"] == DEFAULT_FEATURES


def test_hjorth_lempel_ziv_and_permutation_entropy_are_those_of_antropy(epochs):
    import antropy  # which compiles for seconds: not while tests are collected

    got = computed(epochs, ["hjorth", "lempel_ziv", "permutation_entropy"])
    for cell in np.ndindex(2, 3):
        epoch = epochs[cell]
        mobility, complexity = antropy.hjorth_params(epoch)
        assert got["hjorth_mobility"][cell] == pytest.approx(mobility)
        assert got["hjorth_complexity"][cell] == pytest.approx(complexity)
        binary = "".join("1" if value > epoch.mean() else "0" for value in epoch)
        expected = antropy.lziv_complexity(binary, normalize=True)
        assert got["lempel_ziv"][cell] == pytest.approx(expected)
        expected = antropy.perm_entropy(epoch, order=3, delay=1, normalize=True)
        assert got["permutation_entropy"][cell] == pytest.approx(expected)


def test_the_aperiodic_spectrum_is_that_of_specparam(epochs):
    got = computed(epochs, ["aperiodic"])
    signal = EpochSignal(epochs, SFREQ)
    for cell in np.ndindex(2, 3):
        model = SpectralModel(peak_width_limits=(1, 12), max_n_peaks=6, verbose=False)
        model.fit(signal.welch_frequencies, signal.psd[cell], freq_range=[1, 45])
        offset, exponent = model.get_params("aperiodic")
        assert got["aperiodic_exponent"][cell] == pytest.approx(exponent)
        assert got["aperiodic_offset"][cell] == pytest.approx(offset)


def test_the_alpha_peak_is_found_where_it_is():
    time = np.arange(2500) / SFREQ
    rng = np.random.default_rng(0)
    noise = np.cumsum(rng.standard_normal((1, 3, 2500)), axis=-1)
    for channel, frequency in enumerate((8.5, 10.0, 12.0)):
        noise[0, channel] += 20 * np.sin(2 * np.pi * frequency * time)
    peaks = computed(noise, ["aperiodic"])["alpha_peak"][0]
    np.testing.assert_allclose(peaks, [8.5, 10, 12], atol=0.3)


def test_a_channel_without_an_alpha_peak_is_not_missing():
    rng = np.random.default_rng(1)
    noise = np.cumsum(rng.standard_normal((30, 2, 2500)), axis=-1)  # 1/f squared and no peak
    peaks = computed(noise, ["aperiodic"])["alpha_peak"]
    assert np.isfinite(peaks).all()
    assert ((peaks > 7) & (peaks < 14)).all()


def test_without_a_peak_the_centre_follows_the_power():
    # Spectra that are flat or fall as f squared, and the same with a little more at 12 Hz.
    frequencies = np.arange(0, 125.5, 0.5)
    pure = np.stack([np.maximum(frequencies, 0.5) ** -power for power in (0.0, 2.0)])
    signal = EpochSignal(np.random.default_rng(0).standard_normal((2, 2500)), SFREQ)
    signal.psd = pure
    np.testing.assert_allclose(families.aperiodic(signal)[:, 2], 10.5, atol=1e-6)
    signal.psd = pure * (1 + 0.1 * np.exp(-((frequencies - 12) ** 2)))
    assert (families.aperiodic(signal)[:, 2] > 10.5).all()


def test_missing_channels_have_none_of_it(epochs):
    given = epochs.copy()
    given[0, 1] = 0.0
    got = computed(given, "extended")
    rest = computed(epochs, "extended")
    for name, values in got.items():
        assert np.isnan(values[0, 1])
        np.testing.assert_allclose(values[1], rest[name][1], rtol=1e-6)


def test_a_library_that_is_not_there_is_named(epochs, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "antropy", None)
    with pytest.raises(InputError, match=r"needs the package antropy.*idfsmec\[spectra\]"):
        families.hjorth(EpochSignal(epochs, SFREQ))
