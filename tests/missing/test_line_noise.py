"""Line noise is found, whatever its frequency does, and removed with nothing else."""

import mne
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from idfsmec.errors import InputError
from idfsmec.missing import detect_missing
from idfsmec.missing.line_noise import remove_line_noise
from idfsmec.recordings import simulate_cohort

SFREQ = 250.0
TIME = np.arange(60 * 250) / SFREQ


@pytest.fixture(scope="module")
def eeg():
    """A minute of 1/f noise without a line in it, 4 channels of 10 microvolts."""
    noise = np.random.default_rng(0).standard_normal((4, len(TIME)))
    frequencies = np.maximum(np.fft.rfftfreq(len(TIME), 1 / SFREQ), 0.5)
    pink = np.fft.irfft(np.fft.rfft(noise) / np.sqrt(frequencies), len(TIME))
    return 10e-6 * pink / pink.std(axis=1, keepdims=True)


def hum(frequency, amplitude, swell=0.0, period=60.0):
    """Line noise whose amplitude changes slowly."""
    size = 1 + swell * np.sin(2 * np.pi * TIME / period)
    return amplitude * np.sqrt(2) * size * np.sin(2 * np.pi * frequency * TIME + 0.3)


@pytest.mark.parametrize("frequency", [50.0, 49.97, 50.2, 60.0, 60.03, 59.8])
@pytest.mark.parametrize("swell", [0.0, 0.1])
def test_fifty_times_the_eeg_is_removed(eeg, frequency, swell):
    clean, found = remove_line_noise(eeg + hum(frequency, 500e-6, swell), SFREQ)
    assert found.lines[0][0] == pytest.approx(frequency, abs=2e-3)
    assert np.median(found.rms) == pytest.approx(500e-6, rel=0.02)
    rest = clean - eeg
    # A little of the EEG itself has that frequency.
    assert rest.std() < 0.06 * eeg.std()
    assert np.abs(rest).max() < 0.5 * eeg.std()  # at the ends too


def test_harmonics_below_half_the_sampling_rate_go_too(eeg):
    wave = hum(49.98, 100e-6) + hum(99.96, 30e-6)
    clean, found = remove_line_noise(eeg + wave, SFREQ)
    assert found.lines[0] == pytest.approx((49.98, 99.96), abs=5e-3)
    assert (clean - eeg).std() < 0.05 * eeg.std()


def test_without_line_noise_nothing_changes(eeg):
    clean, found = remove_line_noise(eeg, SFREQ)
    assert clean is eeg
    assert not any(found.lines)
    assert not found.rms.any()


@given(seed=st.integers(0, 10_000), seconds=st.sampled_from([1, 3, 10, 30]))
def test_noise_is_hardly_ever_taken_for_line_noise(seed, seconds):
    noise = np.random.default_rng(seed).standard_normal((8, round(seconds * SFREQ)))
    assert remove_line_noise(noise, SFREQ)[0] is noise


def test_only_the_channels_that_have_it_are_touched(eeg):
    given = eeg.copy()
    given[2] += hum(50, 30e-6)
    clean, found = remove_line_noise(given, SFREQ)
    assert [bool(lines) for lines in found.lines] == [False, False, True, False]
    np.testing.assert_array_equal(np.delete(clean, 2, axis=0), np.delete(eeg, 2, axis=0))
    alone, _ = remove_line_noise(given[2:3], SFREQ)
    np.testing.assert_array_equal(clean[2], alone[0])


def test_a_pop_is_no_line_noise(eeg):
    given = eeg.copy()
    given[1, 7000:] += 5e-3
    given[2, 7000:7010] -= 5e-3
    assert remove_line_noise(given, SFREQ)[0] is given


def test_drift_and_offsets_stay(eeg):
    slow = 0.03 + 5e-3 * np.sin(2 * np.pi * 0.03 * TIME)
    clean, _ = remove_line_noise(eeg + slow + hum(50, 150e-6), SFREQ)
    assert (clean - eeg - slow).std() < 0.05 * eeg.std()


def test_samples_that_are_not_finite_do_not_count(eeg):
    given = eeg + hum(50, 500e-6)
    given[0, 6100:6400] = np.nan
    given[1, 3000] = np.inf
    clean, _ = remove_line_noise(given, SFREQ)
    kept = np.isfinite(given)
    np.testing.assert_array_equal(np.isfinite(clean), kept)
    assert np.abs((clean - eeg)[kept]).max() < 0.2 * eeg.std()


def test_epochs_that_are_cut_already_are_cleaned_one_by_one(eeg):
    given = (eeg + hum(49.97, 500e-6)).reshape(4, 6, 2500).swapaxes(0, 1)
    clean, found = remove_line_noise(given, SFREQ)
    assert found.rms.shape[:2] == (6, 4)
    rest = clean - eeg.reshape(4, 6, 2500).swapaxes(0, 1)
    assert rest.std() < 0.08 * eeg.std()


def test_a_frequency_can_be_said_or_switched_off(eeg):
    given = eeg + hum(16.7, 50e-6)
    assert remove_line_noise(given, SFREQ, "off")[0] is given
    assert remove_line_noise(given, SFREQ, None)[0] is given
    assert remove_line_noise(given, SFREQ)[0] is given
    clean, found = remove_line_noise(given, SFREQ, 16.7)
    assert found.lines[0][0] == pytest.approx(16.7, abs=2e-3)
    assert (clean - eeg).std() < 0.1 * eeg.std()
    assert remove_line_noise(given, SFREQ, 400.0)[0] is given  # above what the signal holds
    for wrong in ("fifty", 0, -50, np.nan):
        with pytest.raises(InputError, match="give auto, off, or a frequency"):
            remove_line_noise(given, SFREQ, wrong)


def test_a_weaker_line_is_enough_where_the_header_names_it(eeg):
    faint = next(
        given
        for given in (eeg + hum(50, size) for size in np.geomspace(1e-8, 1e-5, 60))
        if any(remove_line_noise(given, SFREQ, header_freq=50.0)[1].lines)
    )
    assert remove_line_noise(faint, SFREQ)[0] is faint
    assert remove_line_noise(faint, SFREQ, header_freq=60.0)[0] is faint


def test_it_removes_less_than_a_notch_filter(eeg):
    given = eeg + hum(49.97, 500e-6, swell=0.1)
    ours = remove_line_noise(given, SFREQ)[0] - eeg
    theirs = signal.filtfilt(*signal.iirnotch(50.0, 30.0, SFREQ), given) - eeg
    assert ours.std() < 0.1 * theirs.std()


@pytest.mark.parametrize("frequency", [50.0, 60.0])
@pytest.mark.parametrize("n_channels", [3, 19])
def test_line_noise_hides_no_channel(frequency, n_channels):
    raw = simulate_cohort(1, n_channels, duration=60, detached=0, random_state=2)
    raw = raw.recordings[0].load()
    data = raw.get_data() + hum(frequency, 700e-6)
    epochs = data.reshape(n_channels, 6, 2500).swapaxes(0, 1)
    assert not detect_missing(epochs, SFREQ, ch_names=raw.ch_names).missing.any()
    kept = detect_missing(epochs, SFREQ, ch_names=raw.ch_names, line_freq="off")
    assert kept.reasons["line"].all()


@pytest.mark.parametrize("n_channels", [1, 3, 19])
def test_an_electrode_that_records_line_and_other_noise_is_lost(n_channels):
    raw = simulate_cohort(1, 19, duration=60, detached=0, random_state=2).recordings[0].load()
    data = raw.get_data()[:n_channels] + hum(50, 50e-6)
    lost = 3e-6 * np.random.default_rng(0).standard_normal(len(TIME)) + hum(50, 300e-6)
    data[0] = lost
    epochs = data.reshape(n_channels, 6, 2500).swapaxes(0, 1)
    found = detect_missing(epochs, SFREQ, ch_names=raw.ch_names[:n_channels])
    assert found.reasons["line"][:, 0].all()
    assert not found.missing[:, 1:].any()


@pytest.mark.parametrize("frequency", [50.0, 49.97])
def test_it_is_removed_at_least_as_well_as_by_mne(eeg, frequency):
    mixed = eeg + hum(frequency, 500e-6, swell=0.5, period=15.0)
    theirs = mne.filter.notch_filter(mixed, SFREQ, 50.0, method="spectrum_fit", verbose="error")
    ours, _ = remove_line_noise(mixed, SFREQ)

    def variance(signals):
        return mne.filter.filter_data(signals, SFREQ, 1, 45, verbose="error").var(axis=1)

    np.testing.assert_allclose(variance(ours), variance(eeg), rtol=0.02)
    assert (variance(theirs) > 1.5 * variance(eeg)).all()
