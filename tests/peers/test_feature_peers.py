"""The same quantities in antropy, mne-features and MNE, with their known differences."""

import numpy as np
import pytest
from mne.time_frequency import psd_array_welch

from idfsmec.features import DEFAULT_BANDS, FeatureSettings
from idfsmec.features.extract import compute_features

pytestmark = pytest.mark.long

SFREQ = 250.0


@pytest.fixture(scope="module")
def epochs():
    """Coloured noise with an alpha rhythm, (1 epoch, 6 channels, 10 s)."""
    rng = np.random.default_rng(11)
    noise = rng.standard_normal((6, 2500))
    noise[:, 1:] += 0.9 * noise[:, :-1]
    alpha = np.sin(2 * np.pi * 10.3 * np.arange(2500) / SFREQ)
    return (noise + 2 * alpha)[np.newaxis]


def ours(name, epochs):
    return compute_features(epochs, SFREQ, FeatureSettings(features=[name]))[0][0].squeeze()


def test_spectral_entropy_is_antropys_times_ln_2(epochs):
    # antropy takes log2 and keeps the DC bin, which its periodogram's detrending makes 0.
    antropy = pytest.importorskip("antropy")
    theirs = antropy.spectral_entropy(epochs[0], sf=SFREQ, method="fft")
    np.testing.assert_allclose(ours("spectral_entropy", epochs), theirs * np.log(2), rtol=1e-10)


def test_hoc_is_antropys_number_of_zero_crossings(epochs):
    antropy = pytest.importorskip("antropy")
    centred = epochs[0] - epochs[0].mean(axis=-1, keepdims=True)
    np.testing.assert_array_equal(ours("hoc", epochs), antropy.num_zerocross(centred))


def test_mean_and_variance_are_those_of_mne_features(epochs):
    # mne-features divides by n - 1.
    univariate = pytest.importorskip("mne_features.univariate")
    np.testing.assert_allclose(ours("mean", epochs), univariate.compute_mean(epochs[0]))
    theirs = univariate.compute_variance(epochs[0]) * 2499 / 2500
    np.testing.assert_allclose(ours("variance", epochs), theirs)


def test_hoc_is_mne_features_zero_crossings(epochs):
    # Equal where no sample is exactly zero: mne-features counts a touch of zero as a crossing.
    univariate = pytest.importorskip("mne_features.univariate")
    centred = epochs[0] - epochs[0].mean(axis=-1, keepdims=True)
    np.testing.assert_array_equal(ours("hoc", epochs), univariate.compute_zero_crossings(centred))


def test_de_is_that_of_mne_features_fft_power_without_the_upper_edge(epochs):
    # mne-features includes both edges: ours are moved down by half a bin.
    univariate = pytest.importorskip("mne_features.univariate")
    bands = np.array(list(DEFAULT_BANDS.values())) - 0.05
    power = univariate.compute_pow_freq_bands(
        SFREQ, epochs[0], freq_bands=bands, normalize=False, psd_method="fft"
    )
    theirs = 0.5 * np.log(2 * np.pi * np.e * power.reshape(6, 5))
    np.testing.assert_allclose(ours("de", epochs), theirs, rtol=1e-10)


def test_spectral_entropy_is_that_of_mne_features_times_ln_2(epochs):
    univariate = pytest.importorskip("mne_features.univariate")
    theirs = univariate.compute_spect_entropy(SFREQ, epochs[0], psd_method="fft")
    np.testing.assert_allclose(ours("spectral_entropy", epochs), theirs * np.log(2), rtol=1e-10)


def test_ap_is_mne_features_power_once_bins_are_weighed_and_edges_cut(epochs):
    # mne-features sums the density without the bins' width, includes both edges and has a
    # Hamming window without overlap: same total, other leakage.
    univariate = pytest.importorskip("mne_features.univariate")
    bands = np.array([(lower, upper - 0.25) for lower, upper in DEFAULT_BANDS.values()])
    theirs = univariate.compute_pow_freq_bands(
        SFREQ,
        epochs[0],
        freq_bands=bands,
        normalize=False,
        psd_params={"welch_n_fft": 500, "welch_n_per_seg": 500, "welch_n_overlap": 250},
    )
    np.testing.assert_allclose(ours("ap", epochs), theirs.reshape(6, 5) * 0.5, rtol=0.1)


def test_ap_is_the_integral_of_mnes_welch(epochs):
    density, frequencies = psd_array_welch(
        epochs[0],
        SFREQ,
        n_fft=500,
        n_per_seg=500,
        n_overlap=250,
        window="hann",
        remove_dc=True,
        verbose="error",
    )
    for which, (lower, upper) in enumerate(DEFAULT_BANDS.values()):
        inside = (frequencies >= lower) & (frequencies < upper)
        np.testing.assert_allclose(
            ours("ap", epochs)[:, which], density[:, inside].sum(axis=-1) * 0.5, rtol=1e-9
        )


def test_nsi_and_c0_and_shannon_entropy_by_plain_loops(epochs):
    # No package known to us has these three: written out sample by sample instead.
    for channel, epoch in enumerate(epochs[0]):
        z = (epoch - epoch.mean()) / epoch.std()
        means = [z[start : start + 250].mean() for start in range(0, 2500, 250)]
        assert ours("nsi", epochs)[channel] == pytest.approx(np.std(means))
        shares = [abs(x) / np.abs(epoch).sum() for x in epoch]
        entropy = -sum(p * np.log(p) for p in shares)
        assert ours("shannon_entropy", epochs)[channel] == pytest.approx(entropy)
        power = np.abs(np.fft.fft(epoch)) ** 2
        left = sum(p for p in power if p <= 5 * power.mean()) / power.sum()
        assert ours("c0", epochs)[channel] == pytest.approx(left)
