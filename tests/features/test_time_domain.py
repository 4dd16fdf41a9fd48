"""Features of the signal itself against closed forms."""

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings
from idfsmec.features.extract import compute_features

SFREQ = 250.0
N_TIMES = 2500
TIME = np.arange(N_TIMES) / SFREQ


def feature(name, epochs, **constants):
    epochs = np.atleast_2d(epochs)
    settings = FeatureSettings(features=[name], **constants)
    values, _ = compute_features(epochs[np.newaxis], SFREQ, settings)
    return values[0].squeeze()


def sine(frequency, amplitude=1.0, phase=0.3):
    return amplitude * np.sin(2 * np.pi * frequency * TIME + phase)


def square(period):
    """+1 and -1 for half a period each."""
    return np.where(((TIME + 1e-9) % period) < period / 2, 1.0, -1.0)


def white_noise(n_rows=200):
    return np.random.default_rng(3).standard_normal((n_rows, N_TIMES))


def test_mean_and_variance_of_a_shifted_sine():
    assert feature("mean", 5 + sine(10, 2)) == pytest.approx(5.0)
    assert feature("variance", 5 + sine(10, 2)) == pytest.approx(2.0)


def test_variance_is_the_population_one():
    noise = 1e6 + white_noise(5)
    np.testing.assert_allclose(feature("variance", noise), noise.var(axis=-1), rtol=1e-9)


def test_nsi_of_whole_cycles_per_segment_is_zero():
    assert feature("nsi", sine(10)) == pytest.approx(0.0, abs=1e-12)


def test_nsi_of_a_square_wave_that_switches_every_second_is_one():
    # Two-second period: the segments' means are +1 and -1, the signal's deviation is 1.
    assert feature("nsi", 7.0 * square(2.0) + 3.0) == pytest.approx(1.0)


def test_nsi_of_two_segments_is_half_the_distance_of_their_means():
    epoch = square(2.0)[:500]
    assert feature("nsi", 3.0 * epoch + np.r_[np.zeros(250), np.ones(250)]) == pytest.approx(1.0)


def test_nsi_of_a_half_hertz_sine():
    # Means of half waves are 2/pi of the amplitude, which is sqrt(2) standard deviations.
    assert feature("nsi", sine(0.5, phase=0.0)) == pytest.approx(2 * np.sqrt(2) / np.pi, rel=1e-3)


def test_nsi_of_white_noise_falls_with_the_root_of_the_segment_length():
    expected = np.sqrt((1 - 1 / 10) / SFREQ)  # population deviation of ten means
    assert (feature("nsi", white_noise(2000)) ** 2).mean() == pytest.approx(expected**2, rel=0.05)


def test_nsi_leaves_out_what_does_not_fill_a_segment():
    epoch = np.concatenate([square(2.0)[:1000], np.full(100, 1.0)])
    z = (epoch - epoch.mean()) / epoch.std()
    expected = z[:1000].reshape(4, 250).mean(axis=1).std()
    assert feature("nsi", epoch) == pytest.approx(expected)


def test_nsi_of_an_epoch_shorter_than_two_segments_is_refused():
    with pytest.raises(InputError, match=r"'nsi'.*longer epochs"):
        feature("nsi", white_noise(1)[:, :499])


def test_hoc_of_a_sine_is_two_per_cycle():
    assert feature("hoc", 4 + sine(10)) == 200


def test_differences_of_a_sine_cross_zero_as_often_as_the_sine():
    counts = feature("hoc", sine(10), hoc_orders=10)
    assert counts.shape == (10,)
    assert np.abs(counts - 200).max() <= 1


def test_hoc_of_a_square_wave_counts_its_jumps():
    assert feature("hoc", square(2.0)) == 9


def test_hoc_of_white_noise_follows_the_arc_cosine_law():
    # P(sign change) = arccos(rho) / pi, and the (k-1)-th difference has rho = -(k-1)/k.
    counts = feature("hoc", white_noise(), hoc_orders=5).mean(axis=0)
    order = np.arange(1, 6)
    chance = np.arccos(-(order - 1) / order) / np.pi
    np.testing.assert_allclose(counts, chance * (N_TIMES - order), rtol=0.005)


def test_zero_counts_as_positive():
    epoch = np.tile([1.0, 0.0, -1.0, 0.0], 100)
    assert feature("hoc", epoch) == 200  # down at each -1, up at each following 0


def test_hoc_columns_are_numbered_when_there_are_several():
    several = FeatureSettings(features=["hoc"], hoc_orders=3)
    assert several.columns == ["hoc_1", "hoc_2", "hoc_3"]
    assert FeatureSettings(features=["hoc"]).columns == ["hoc"]


def test_shannon_entropy_of_a_square_wave_is_ln_n():
    assert feature("shannon_entropy", 3e-6 * square(2.0)) == pytest.approx(np.log(N_TIMES))


def test_shannon_entropy_of_white_noise():
    # For a Gaussian E[m ln m] with m = |x| / E|x| is (ln pi - Euler's gamma) / 2.
    expected = np.log(N_TIMES) - 0.5 * (np.log(np.pi) - np.euler_gamma)
    assert feature("shannon_entropy", white_noise()).mean() == pytest.approx(expected, abs=1e-3)


def test_shannon_entropy_of_a_sine():
    # The mean of |sin| ln |sin| is (2/pi)(ln 2 - 1), that of |sin| is 2/pi.
    expected = np.log(N_TIMES) - (np.log(2) - 1) + np.log(2 / np.pi)
    value = feature("shannon_entropy", sine(np.sqrt(101)))
    assert value == pytest.approx(expected, abs=2e-3)


def test_shannon_entropy_by_its_definition_with_zeros_in_the_epoch():
    epoch = np.round(white_noise(1)[0])
    shares = np.abs(epoch) / np.abs(epoch).sum()
    shares = shares[shares > 0]
    assert feature("shannon_entropy", epoch) == pytest.approx(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize("name", ["shannon_entropy", "spectral_entropy", "c0", "nsi", "hoc"])
def test_the_unit_of_the_signal_does_not_matter(name):
    noise = white_noise(3)
    np.testing.assert_allclose(feature(name, noise * 1e-6), feature(name, noise), rtol=1e-9)
