"""Spectral features against closed forms and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import fft, signal

from idfsmec.errors import InputError
from idfsmec.features import DEFAULT_BANDS, EpochSignal, FeatureSettings
from idfsmec.features.extract import compute_features

SFREQ = 250.0
N_TIMES = 2500
TIME = np.arange(N_TIMES) / SFREQ
EULER = np.euler_gamma


def feature(name, epochs, sfreq=SFREQ, **constants):
    epochs = np.atleast_2d(epochs)
    settings = FeatureSettings(features=[name], **constants)
    values, names = compute_features(epochs[np.newaxis], sfreq, settings)
    assert len(names) == values.shape[2]
    return values[0].squeeze()


def sine(frequency, amplitude=1.0, phase=0.3):
    return amplitude * np.sin(2 * np.pi * frequency * TIME + phase)


def white_noise(n_rows=200, n_times=N_TIMES):
    return np.random.default_rng(7).standard_normal((n_rows, n_times))


def gaussian_entropy(variance):
    return 0.5 * np.log(2 * np.pi * np.e * variance)


def test_power_sums_to_the_mean_square_and_without_dc_to_the_variance():
    for n_times in (500, 501):
        noise = 3 + white_noise(4, n_times)
        epoch = EpochSignal(noise, SFREQ)
        np.testing.assert_allclose(epoch.power.sum(axis=-1), (noise**2).mean(axis=-1))
        np.testing.assert_allclose(epoch.power[:, 1:].sum(axis=-1), noise.var(axis=-1))


def test_the_spectra_are_computed_once_and_shared(monkeypatch):
    shapes = []
    original = fft.rfft
    monkeypatch.setattr("scipy.fft.rfft", lambda x: shapes.append(x.shape) or original(x))
    compute_features(white_noise(6).reshape(2, 3, N_TIMES), SFREQ)
    n_windows = N_TIMES // 250 - 1  # of 2 s, by half
    assert shapes == [(2, 3, N_TIMES), (2, 3, n_windows, 500)]


def test_the_density_is_that_of_scipy():
    for n_times, rate in ((N_TIMES, 250.0), (501, 125.5), (300, 250.0)):
        noise = 1000 + white_noise(2, n_times)
        size = min(round(2 * rate), n_times)
        np.testing.assert_allclose(
            EpochSignal(noise, rate).psd, signal.welch(noise, rate, nperseg=size)[1], rtol=1e-9
        )


@pytest.mark.parametrize("band", DEFAULT_BANDS)
def test_de_of_a_sine_is_that_of_its_power_in_its_band(band):
    lower, upper = DEFAULT_BANDS[band]
    entropies = feature("de", sine((lower + upper) / 2, amplitude=20.0))
    which = list(DEFAULT_BANDS).index(band)
    assert entropies[which] == pytest.approx(gaussian_entropy(200.0), abs=1e-9)
    assert np.delete(entropies, which).max() < gaussian_entropy(1e-20)


def test_de_of_white_noise_follows_from_the_share_of_bins():
    entropies = feature("de", white_noise()).mean(axis=0)
    shares = [2 * (upper - lower) / SFREQ for lower, upper in DEFAULT_BANDS.values()]
    np.testing.assert_allclose(entropies, gaussian_entropy(np.array(shares)), atol=0.03)


def test_de_is_that_of_the_signal_behind_an_ideal_band_pass():
    noise = white_noise(5)
    spectrum = np.fft.fft(noise)
    frequencies = np.abs(np.fft.fftfreq(N_TIMES, 1 / SFREQ))
    for which, (lower, upper) in enumerate(DEFAULT_BANDS.values()):
        keep = (frequencies >= lower - 1e-9) & (frequencies < upper - 1e-9)
        passed = np.fft.ifft(spectrum * keep).real
        expected = gaussian_entropy(passed.var(axis=-1))
        np.testing.assert_allclose(feature("de", noise)[:, which], expected, rtol=1e-10)


def test_de_is_close_to_that_behind_a_real_steep_band_pass():
    noise = white_noise(20)
    for which, edges in enumerate(DEFAULT_BANDS.values()):
        sections = signal.butter(8, edges, "bandpass", fs=SFREQ, output="sos")
        passed = signal.sosfiltfilt(sections, noise)
        np.testing.assert_allclose(
            feature("de", noise)[:, which].mean(),
            gaussian_entropy(passed.var(axis=-1)).mean(),
            atol=0.15,  # ends of the filter, most in the narrow delta band
        )


@pytest.mark.parametrize("name", ["de", "ap"])
@pytest.mark.parametrize(("edge", "below", "above"), [(4.0, 0, 1), (8.0, 1, 2), (30.0, 3, 4)])
def test_a_sine_on_an_edge_belongs_mostly_to_the_band_above(name, edge, below, above):
    # A Hann window spreads the sine over three bins, of which the lowest is below the edge.
    values = feature(name, sine(edge))
    assert values[above] > values[below]


def test_the_lower_edge_is_in_and_the_upper_edge_is_out():
    values = feature("de", sine(4.0, amplitude=20.0))
    assert values[1] == pytest.approx(gaussian_entropy(200.0))
    assert values[0] < gaussian_entropy(1e-20)


@given(
    cuts=st.lists(st.integers(3, 89), min_size=1, max_size=6, unique=True).map(sorted),
    seed=st.integers(0, 2**16),
)
def test_adjacent_bands_add_up(cuts, seed):
    noise = np.random.default_rng(seed).standard_normal((2, N_TIMES))
    edges = [1.0, *(cut / 2 for cut in cuts), 45.0]
    narrow = {f"b{i}": pair for i, pair in enumerate(itertools.pairwise(edges))}
    parts = feature("ap", noise, bands=narrow).reshape(2, -1)
    whole = feature("ap", noise, bands={"all": (1.0, 45.0)})
    np.testing.assert_allclose(parts.sum(axis=-1), whole)
    variances = np.exp(2 * feature("de", noise, bands=narrow)).reshape(2, -1).sum(axis=-1)
    np.testing.assert_allclose(
        variances, np.exp(2 * feature("de", noise, bands={"all": (1.0, 45.0)}))
    )


@pytest.mark.parametrize("band", DEFAULT_BANDS)
def test_ap_of_a_sine_is_half_its_squared_amplitude(band):
    lower, upper = DEFAULT_BANDS[band]
    powers = feature("ap", sine(np.floor((lower + upper) / 2), amplitude=20.0))
    assert powers[list(DEFAULT_BANDS).index(band)] == pytest.approx(200.0, rel=1e-6)
    assert powers.sum() == pytest.approx(200.0, rel=1e-6)


def test_ap_of_white_noise_is_the_width_of_the_band():
    powers = feature("ap", white_noise()).mean(axis=0)
    widths = [upper - lower for lower, upper in DEFAULT_BANDS.values()]
    np.testing.assert_allclose(powers, np.array(widths) / (SFREQ / 2), rtol=0.02)


def test_ap_is_the_integral_of_scipys_welch():
    noise = white_noise(3)
    frequencies, density = signal.welch(noise, SFREQ, nperseg=500)
    for which, (lower, upper) in enumerate(DEFAULT_BANDS.values()):
        inside = (frequencies >= lower) & (frequencies < upper)
        expected = density[:, inside].sum(axis=-1) * 0.5
        np.testing.assert_allclose(feature("ap", noise)[:, which], expected)


@pytest.mark.parametrize("n_times", [2500, 2501, 1100, 501, 499, 120])
@pytest.mark.parametrize("window", [2.0, 2.004, 0.5])
def test_psd_is_scipys_welch(n_times, window):
    noise = 100 + white_noise(3, n_times)
    epoch = EpochSignal(noise, SFREQ, FeatureSettings(welch_window=window))
    samples = min(round(window * SFREQ), n_times)
    frequencies, density = signal.welch(noise, SFREQ, nperseg=samples)
    np.testing.assert_allclose(epoch.psd, density, rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(epoch.welch_frequencies, frequencies)


def test_a_square_wave_has_the_power_of_its_odd_harmonics():
    sfreq = 6000.0
    time = (np.arange(int(10 * sfreq)) + 0.5) / sfreq
    square = np.sign(np.sin(2 * np.pi * 7 * time))
    powers = feature("ap", square, sfreq=sfreq)
    # The fundamental and the harmonics at 21 and 35 Hz: 8 / (pi n)^2 each.
    expected = 8 / (np.pi * np.array([1, 3, 5])) ** 2
    np.testing.assert_allclose(powers[[1, 3, 4]], expected, rtol=1e-3)
    np.testing.assert_allclose(powers.sum(), expected.sum(), rtol=1e-3)
    ratio = feature("ap_beta_theta_ratio", square, sfreq=sfreq)
    assert ratio == pytest.approx(powers[3] / powers[1])


def test_beta_theta_ratio_of_two_sines_is_that_of_their_powers():
    both = sine(20, amplitude=3.0) + sine(6, amplitude=2.0)
    assert feature("ap_beta_theta_ratio", both) == pytest.approx(9 / 4, rel=1e-6)


def test_without_beta_or_theta_there_is_no_ratio_column():
    names = FeatureSettings(bands={"mu": (8, 12)}).columns
    assert names[-2:] == ["de_mu", "ap_mu"]


def test_spectral_entropy_of_a_sine_is_zero():
    assert feature("spectral_entropy", sine(10)) == pytest.approx(0.0, abs=1e-9)


def test_spectral_entropy_of_k_equal_sines_is_ln_k():
    frequencies = [3, 7, 11, 20, 33]
    together = sum(sine(frequency, phase=frequency) for frequency in frequencies)
    assert feature("spectral_entropy", together) == pytest.approx(np.log(5), abs=1e-9)


def test_spectral_entropy_of_white_noise():
    # Bins of a periodogram are exponential: E[p ln p] gives ln(n_bins) - (1 - Euler's gamma).
    expected = np.log(N_TIMES / 2) - (1 - EULER)
    assert feature("spectral_entropy", white_noise()).mean() == pytest.approx(expected, abs=0.01)


def test_spectral_entropy_ignores_the_mean():
    noise = white_noise(3)
    np.testing.assert_allclose(
        feature("spectral_entropy", noise + 1000.0), feature("spectral_entropy", noise)
    )


def test_c0_of_a_sine_is_zero():
    assert feature("c0", sine(10)) == pytest.approx(0.0, abs=1e-12)


def test_c0_of_white_noise():
    # Exponential bins: the share of power in bins below r times the mean is 1 - (1 + r) exp(-r).
    for ratio in (1.0, 5.0):
        expected = 1 - (1 + ratio) * np.exp(-ratio)
        assert feature("c0", white_noise(), c0_ratio=ratio).mean() == pytest.approx(
            expected, abs=0.005
        )


@given(
    epoch=arrays(np.float64, st.integers(16, 65), elements=st.floats(-100, 100)),
    ratio=st.sampled_from([1.0, 2.0, 5.0]),
)
def test_c0_is_the_energy_left_when_strong_bins_are_taken_out(epoch, ratio):
    epoch = epoch + np.random.default_rng(0).standard_normal(epoch.size)
    spectrum = np.fft.fft(epoch)
    power = np.abs(spectrum) ** 2
    strong = np.where(power > ratio * power.mean(), spectrum, 0)
    left = epoch - np.fft.ifft(strong).real
    expected = (left**2).sum() / (epoch**2).sum()
    assert feature("c0", epoch, c0_ratio=ratio) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_band_that_the_epochs_cannot_resolve_is_refused_by_name():
    with pytest.raises(InputError, match=r"'slow' \(0.1-0.3 Hz\).*longer epochs"):
        feature("ap", sine(10), bands={"slow": (0.1, 0.3)})
    with pytest.raises(InputError, match=r"'high' \(100-200 Hz\)"):
        feature("de", sine(10), bands={"high": (100, 200)})
