"""Epochs: where they lie, what the filters keep of them, and that a gap stays where it is."""

from types import SimpleNamespace

import mne
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings
from idfsmec.features.extract import compute_features
from idfsmec.features.signals import Channels, Signals, cut_epochs, epoch_grid
from idfsmec.features.signals import prepare_epochs as prepare

DEFAULT = FeatureSettings()


def prepare_recording(data, sfreq, settings=DEFAULT):
    """Filter and cut a recording; gives epochs, where they are unusable, rate and starts."""
    grid = epoch_grid(data.shape[1], sfreq, settings)
    signals = Signals(data.copy(), sfreq, channels(len(data)), grid, unit=None)
    epochs, broken = prepare(
        signals, np.zeros((len(signals.starts), len(signals.names)), dtype=bool), settings
    )
    return SimpleNamespace(
        data=epochs, missing=broken, sfreq=settings.rate(sfreq), starts=signals.starts
    )


def prepare_epochs(data, sfreq, settings=DEFAULT, passed=(0.0, np.inf)):
    """The same with epochs that are cut already."""
    signals = Signals(data, sfreq, channels(data.shape[1]), unit=None, passed=passed)
    epochs, broken = prepare(
        signals, np.zeros((len(signals.starts), len(signals.names)), dtype=bool), settings
    )
    return SimpleNamespace(data=epochs, missing=broken)


def channels(number):
    names = [f"ch{i}" for i in range(number)]
    return Channels(names, names)


def sines(sfreq, seconds, frequencies, offset=0.0):
    time = np.arange(int(seconds * sfreq)) / sfreq
    return np.array([np.sin(2 * np.pi * f * time) for f in frequencies]) + offset


def noise(n_channels, n_times, seed=0):
    return np.random.default_rng(seed).standard_normal((n_channels, n_times))


@pytest.mark.parametrize("sfreq", [100.0, 128.0, 200.0, 250.0, 256.0, 499.99998, 512.0, 1000.0])
def test_a_sine_in_the_pass_band_survives_any_sampling_rate(sfreq):
    epochs = prepare_recording(sines(sfreq, 41, [10.0]), sfreq)
    assert epochs.sfreq == 250.0
    assert epochs.data.shape == (4, 1, 2500)
    inner = epochs.data[1:3, 0].ravel()
    expected = np.sin(2 * np.pi * 10 * np.arange(2500, 7500) / 250)
    # Zero phase: compared sample by sample, not by power.
    np.testing.assert_allclose(inner, expected, atol=0.02)


def test_what_lies_outside_the_pass_band_is_taken_out():
    recording = sines(500, 60, [0.1, 10.0, 100.0])
    power = prepare_recording(recording, 500).data[1:-1].var(axis=(0, 2))
    np.testing.assert_allclose(power, [0, 0.5, 0], atol=0.005)


def test_a_huge_offset_leaves_no_trace():
    # MODMA's three-channel recordings carry an offset of over a million counts.
    plain = prepare_recording(sines(500, 30, [10.0]), 500)
    shifted = prepare_recording(sines(500, 30, [10.0], offset=1.5e6), 500)
    np.testing.assert_allclose(shifted.data, plain.data, atol=1e-5)


def test_epochs_are_cut_one_after_the_other_and_the_rest_is_left_out():
    epochs = prepare_recording(noise(2, 250 * 35 + 17), 250, FeatureSettings(band_pass=None))
    assert epochs.data.shape == (3, 2, 2500)
    assert epochs.starts.tolist() == [0, 10, 20]


def test_epochs_may_overlap():
    recording = noise(2, 250 * 20)
    epochs = prepare_recording(recording, 250, FeatureSettings(band_pass=None, epoch=8, overlap=6))
    assert epochs.starts.tolist() == [0, 2, 4, 6, 8, 10, 12]
    np.testing.assert_array_equal(epochs.data[3], recording[:, 1500:3500])


def test_a_nan_costs_the_epochs_it_lies_in_and_nothing_else():
    recording = noise(3, 250 * 60)
    clean = prepare_recording(recording, 250)
    recording[1, 250 * 22 : 250 * 27] = np.nan
    gapped = prepare_recording(recording, 250)
    assert np.argwhere(gapped.missing).tolist() == [[2, 1]]
    np.testing.assert_array_equal(gapped.data[:, [0, 2]], clean.data[:, [0, 2]])
    assert np.isfinite(gapped.data).all()
    # Away from the gap the filter forgets it: bridged at 22 s, nothing left before 18 s.
    np.testing.assert_allclose(gapped.data[:1, 1], clean.data[:1, 1], atol=1e-6)


def test_with_overlap_every_epoch_that_touches_the_gap_is_missing():
    recording = noise(1, 250 * 40)
    recording[0, 250 * 15] = np.inf
    epochs = prepare_recording(recording, 250, FeatureSettings(overlap=5))
    assert epochs.starts[epochs.missing[:, 0]].tolist() == [10, 15]


def test_a_gap_is_found_at_the_sampling_rate_it_was_recorded_with():
    recording = noise(1, 1000 * 30)
    recording[0, 19_999] = np.nan
    assert prepare_recording(recording, 1000).missing[:, 0].tolist() == [False, True, False]
    recording[0, 20_000] = np.nan
    assert prepare_recording(recording, 1000).missing[:, 0].tolist() == [False, True, True]


def test_a_flat_stretch_is_missing_though_the_filter_would_ring_into_it():
    recording = noise(2, 250 * 40)
    recording[0, 250 * 9 : 250 * 31] = 4.2
    recording[1] = 1e6
    missing = prepare_recording(recording, 250).missing
    assert missing[:, 0].tolist() == [False, True, True, False]
    assert missing[:, 1].all()


def test_a_recording_shorter_than_an_epoch_is_refused():
    with pytest.raises(InputError, match=r"lasts 7 s, less than one epoch of 10 s"):
        prepare_recording(noise(1, 1750), 250)


def test_each_channel_is_filtered_for_itself():
    recording = noise(7, 512 * 25)
    recording[3, 100] = np.nan
    together = prepare_recording(recording, 512)
    for channel in range(7):
        alone = prepare_recording(recording[[channel]], 512)
        np.testing.assert_array_equal(alone.data[:, 0], together.data[:, channel])
        np.testing.assert_array_equal(alone.missing[:, 0], together.missing[:, channel])


@given(
    holes=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from(["nan", "flat", "inf"])),
        max_size=8,
    )
)
def test_holes_in_epochs_never_leak(holes):
    rows = noise(12, 1000).reshape(3, 4, 1000)
    rows = np.concatenate([rows, rows[:2] + 1])
    before, _ = compute_features(prepare_epochs(rows, 250).data, 250)
    gapped = rows.copy()
    expected = np.zeros((5, 4), dtype=bool)
    for channel, epoch, kind in holes:
        expected[epoch, channel] = True
        if kind == "flat":
            gapped[epoch, channel] = 3.0
        else:
            gapped[epoch, channel, 17] = float(kind)
    prepared = prepare_epochs(gapped, 250)
    np.testing.assert_array_equal(prepared.missing, expected)
    after, _ = compute_features(prepared.data, 250, missing=prepared.missing)
    np.testing.assert_array_equal(np.isnan(after).all(axis=2), expected)
    np.testing.assert_allclose(after[~expected], before[~expected], rtol=1e-9, atol=1e-12)


def test_an_array_of_no_epochs_gives_no_rows():
    prepared = prepare_epochs(np.empty((0, 3, 1000)), 500)
    assert prepared.data.shape[:2] == (0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": 0}, "epoch = 0 is not the length of an epoch: seconds above 0"),
        ({"overlap": 10}, "overlap must be at least 0 and less than"),
        ({"overlap": -1}, "overlap"),
        ({"resample": -250}, "resample = -250 is not a sampling rate in Hz above 0"),
        ({"band_pass": (45, 1)}, "band-pass needs"),
        ({"band_pass": (1, 200)}, "125 Hz"),
    ],
)
def test_a_path_without_meaning_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        FeatureSettings(**options)


def test_a_band_pass_beyond_the_recording_is_refused():
    with pytest.raises(InputError, match=r"at 80 Hz a signal holds only.*below 40 Hz"):
        prepare_recording(noise(1, 1600), 80, FeatureSettings(resample=None))


def test_epochs_are_not_filtered_where_that_was_done():
    epochs = np.random.default_rng(3).standard_normal((2, 3, 2500))
    assert prepare_epochs(epochs, 250, passed=(1.0, 45.0)).data is epochs
    assert prepare_epochs(epochs, 250, passed=(2.0, 30.0)).data is epochs
    assert prepare_epochs(epochs, 250, FeatureSettings(band_pass=None)).data is epochs
    assert prepare_epochs(epochs, 250, passed=(0.1, 45.0)).data is not epochs


@pytest.mark.parametrize(
    ("passed", "power"),
    [((0.0, np.inf), [0, 0.5, 0]), ((1.0, 125.0), [0.5, 0.5, 0]), ((0.1, 45.0), [0, 0.5, 0.5])],
)
def test_of_the_band_pass_of_epochs_only_the_edge_that_is_left_is_run(passed, power):
    epochs = sines(250, 60, [0.2, 10.0, 100.0])[np.newaxis]
    clean = prepare_epochs(epochs, 250, passed=passed).data[0, :, 2500:-2500]
    np.testing.assert_allclose(clean.var(axis=-1), power, atol=0.01)


@given(
    sfreq=st.sampled_from([100.0, 128.0, 160.0, 250.0, 256.0, 499.9998, 500.0, 512.0, 1000.0]),
    n_times=st.integers(2000, 40_000),
    epoch=st.sampled_from([1.0, 1.5, 2.0]),
    overlap=st.sampled_from([0.0, 0.3, 0.5, 0.96]),
)
def test_epochs_stay_inside_the_recording_at_any_rate(sfreq, n_times, epoch, overlap):
    grid = epoch_grid(n_times, sfreq, FeatureSettings(epoch=epoch, overlap=overlap))
    assert grid.begins[0] == 0
    assert (grid.ends <= n_times).all()
    np.testing.assert_allclose(grid.begins / sfreq, grid.starts, atol=1.01 / sfreq + 1e-3)
    np.testing.assert_allclose((grid.ends - grid.begins) / sfreq, epoch, atol=2.01 / sfreq)
    # One more epoch would not fit.
    step = np.round(epoch * 250) / 250 - np.round(overlap * 250) / 250
    assert (grid.starts[-1] + step + epoch) * sfreq > n_times - 2


@pytest.mark.parametrize(("sfreq", "overlap"), [(500.0, 0.0), (500.0, 1.0), (256.0, 0.3)])
def test_the_recording_as_it_came_is_cut_at_the_same_times(sfreq, overlap):
    time = np.arange(int(20 * sfreq)) / sfreq
    grid = epoch_grid(time.size, sfreq, FeatureSettings(epoch=2, overlap=overlap))
    epochs = Signals(time[np.newaxis], sfreq, channels(1), grid).as_epochs()
    assert epochs.shape[:2] == (len(grid.starts), 1)
    np.testing.assert_allclose(epochs[:, 0, 0], grid.starts, atol=1 / sfreq)
    np.testing.assert_allclose(epochs[:, 0, -1], grid.starts + 2, atol=2.5 / sfreq)


def test_epochs_of_the_resampled_signal_are_views():
    grid = epoch_grid(2500, 250.0, FeatureSettings(epoch=2, overlap=1))
    signal = np.arange(2500.0)[np.newaxis]
    epochs = cut_epochs(signal, grid.first, grid.length)
    assert np.shares_memory(epochs, signal)
    assert epochs[:, 0, 0].tolist() == [0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000]


def test_an_overlap_that_leaves_no_step_is_refused():
    with pytest.raises(InputError, match="are not possible at 250 Hz"):
        epoch_grid(5000, 250.0, FeatureSettings(epoch=2, overlap=1.999))


@pytest.mark.parametrize("sfreq", [250.0, 256.0, 500.0, 1000.0])
def test_every_band_has_the_power_that_mne_and_welch_give(sfreq):
    n_times = int(60 * sfreq)
    frequencies = np.maximum(np.fft.rfftfreq(n_times, 1 / sfreq), 0.5)
    pink = np.fft.irfft(np.fft.rfft(noise(3, n_times)) / frequencies**0.75, n_times)
    epochs = prepare_recording(pink, sfreq)
    columns = FeatureSettings(features=["ap"])
    ours, names = compute_features(epochs.data, epochs.sfreq, columns)
    filtered = mne.filter.filter_data(pink, sfreq, 1, 45, verbose="error")
    cut = filtered.reshape(3, 6, -1).swapaxes(0, 1)
    density_at, density = signal.welch(cut, sfreq, nperseg=int(2 * sfreq))
    for i, (lower, upper) in enumerate(columns.bands.values()):
        inside = (density_at >= lower) & (density_at < upper)
        theirs = density[..., inside].sum(axis=-1) * density_at[1]
        np.testing.assert_allclose(ours[..., i], theirs, rtol=0.02, err_msg=names[i])


def test_the_edges_of_the_pass_band_are_passed_and_what_lies_beyond_is_not():
    inner = prepare_recording(sines(250.0, 40, [1.0, 45.0, 0.05, 60.0]), 250.0).data[1:3]
    size = np.sqrt(2 * inner.var(axis=(0, 2)))
    np.testing.assert_allclose(size[:2], 1.0, rtol=0.02)
    assert (size[2:] < 0.02).all()
