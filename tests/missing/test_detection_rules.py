"""Rules of the detection on both sides of their limits, and its numbers by their definitions."""

from dataclasses import replace

import numpy as np
import pytest

from idfsmec.missing import Detection, DetectionLimits, detect_missing, estimate_typical_amplitude
from idfsmec.missing.detection import (
    _apply_rules,
    _block_stats,
    _EpochStats,
    _middle_channel,
    find_reasons,
    unusable,
)
from idfsmec.table.positions import channel_positions

NAMES = ["C3", "C4", "P3", "P4", "O1", "O2", "Cz", "Pz"]  # all far from the eyes
SHAPE = N_EPOCHS, N_CHANNELS = 5, 8
N_WINDOWS = 8
AT = 2, 3  # the epoch and channel that rules are tried on


def ordinary(correlation=0.5):
    """Voltages in typical amplitudes of epochs that no rule hits."""
    among = np.full((N_CHANNELS, N_CHANNELS), correlation)
    np.fill_diagonal(among, 1.0)
    return _EpochStats(
        broken=np.zeros(SHAPE, dtype=bool),
        at_extremes=np.full(SHAPE, 0.01),
        tilt=np.full(SHAPE, 10.0),
        correlation=np.tile(among, (N_EPOCHS, 1, 1)),
        window_sd=np.ones((*SHAPE, N_WINDOWS)),
        jumps=np.full((*SHAPE, N_WINDOWS), 5.0),
        line=np.full(SHAPE, 0.1),
        eeg=np.ones(SHAPE),
        drift=np.full(SHAPE, 0.5),
    )


def found(stats, names=NAMES, removed=None, **limits):
    """Reasons with the cells they hit."""
    positions = channel_positions(names)
    removed = np.zeros(SHAPE) if removed is None else removed
    reasons = _apply_rules(stats, removed, positions, DetectionLimits(**limits))
    return {name: set(map(tuple, np.argwhere(hit))) for name, hit in reasons.items() if hit.any()}


def with_value(stats, name, value, where=AT, everywhere=None):
    """Change a number of some cells, and set it for all others before."""
    values = getattr(stats, name).copy()
    if everywhere is not None:
        values[...] = everywhere
    values[where] = value
    return replace(stats, **{name: values})


def hits(*arguments, reason, cells=None, **options):
    """Whether the rule hits exactly these cells, or nothing is hit at all."""
    result = found(with_value(*arguments, **options))
    if result:
        assert result == {reason: {AT} if cells is None else cells}
    return bool(result)


EVERY = {tuple(map(int, cell)) for cell in np.ndindex(SHAPE)}
ALL = (slice(None), slice(None))


def test_the_limits_are_those_that_are_documented():
    limits = DetectionLimits()
    assert (limits.flat, limits.clipped_share, limits.correlation) == (0.05, 0.05, 0.35)
    assert (limits.amplitude, limits.drift, limits.pop, limits.line) == (30, 15, 60, 10)
    assert limits.neighbours == 6


def test_ordinary_epochs_pass():
    assert found(ordinary()) == {}


@pytest.mark.parametrize(("n_flat", "hit"), [(1, False), (2, True)])
def test_flat_is_a_quarter_of_windows_below_a_twentieth(n_flat, hit):
    for level, low in ((0.049, True), (0.05, False)):
        stats = with_value(ordinary(), "window_sd", level, (*AT, slice(n_flat)))
        assert found(stats) == ({"flat": {AT}} if hit and low else {})
    assert found(with_value(ordinary(), "window_sd", 0.0, (*AT,)), flat=0) != {"flat": {AT}}


@pytest.mark.parametrize("level", [2.0, 4.0])
def test_flat_is_also_a_twentieth_of_the_other_channels(level):
    for share, hit in ((0.049, True), (0.05, False)):
        stats = with_value(ordinary(), "window_sd", share * level, everywhere=level)
        assert found(stats) == ({"flat": {AT}} if hit else {})


def test_of_two_channels_neither_is_the_quiet_one():
    stats = with_value(ordinary(), "window_sd", 0.06, everywhere=2.0)
    broken = np.ones(SHAPE, dtype=bool)
    for n_left, hit in ((2, False), (3, True)):
        broken[:, 3 - n_left + 1 : 4] = False
        left = replace(stats, broken=broken.copy())
        assert ("flat" in found(left)) == hit


@pytest.mark.parametrize(("share", "hit"), [(0.049, False), (0.05, True)])
def test_clipped_is_a_twentieth_of_samples_at_the_extremes(share, hit):
    assert hits(ordinary(), "at_extremes", share, reason="clipped") == hit


class TestAmplitude:
    @pytest.mark.parametrize(("value", "hit"), [(30.0, False), (30.1, True)])
    def test_beyond_thirty_typical_ones(self, value, hit):
        assert hits(ordinary(), "window_sd", value, ALL, reason="amplitude", cells=EVERY) == hit

    @pytest.mark.parametrize(
        ("others", "value", "hit"),
        [(1.0, 8.0, False), (1.0, 8.1, True), (0.5, 5.0, False), (0.5, 5.1, True)],
    )
    def test_eight_times_the_others_and_a_sixth_of_the_limit(self, others, value, hit):
        options = {"reason": "amplitude", "everywhere": others}
        assert hits(ordinary(), "window_sd", value, **options) == hit


class TestDrift:
    @pytest.mark.parametrize(("value", "hit"), [(15.0, False), (15.1, True)])
    def test_beyond_fifteen_typical_amplitudes(self, value, hit):
        assert hits(ordinary(), "drift", value, ALL, reason="amplitude", cells=EVERY) == hit

    @pytest.mark.parametrize(
        ("usual", "value", "hit"),
        [(0.5, 7.5, False), (0.5, 7.6, True), (2.0, 8.0, False), (2.0, 8.1, True)],
    )
    def test_four_times_that_of_other_epochs_and_half_of_the_limit(self, usual, value, hit):
        options = {"reason": "amplitude", "everywhere": usual}
        assert hits(ordinary(), "drift", value, **options) == hit

    @pytest.mark.parametrize(
        ("others", "value", "hit"),
        [(0.5, 4.5, False), (0.5, 4.6, True), (1.2, 4.8, False), (1.2, 4.9, True)],
    )
    def test_four_times_that_of_other_channels_that_it_does_not_follow(self, others, value, hit):
        channel = slice(None), AT[1]
        cells = {(epoch, AT[1]) for epoch in range(N_EPOCHS)}
        options = {"reason": "amplitude", "cells": cells, "everywhere": others}
        # With six neighbours alike correlated the multiple correlation is 0.41, and then 0.66.
        assert hits(ordinary(0.25), "drift", value, channel, **options) == hit
        assert not hits(ordinary(0.5), "drift", value, channel, **options)


class TestPops:
    second = slice(None), slice(None), 4  # of all channels: none is alone

    @pytest.mark.parametrize(("value", "hit"), [(60.0, False), (60.1, True)])
    def test_beyond_sixty_typical_amplitudes(self, value, hit):
        everywhere = *ALL, slice(None)
        assert hits(ordinary(), "jumps", value, everywhere, reason="pop", cells=EVERY) == hit

    @pytest.mark.parametrize(
        ("usual", "value", "hit"),
        [(4.0, 30.0, False), (4.0, 30.1, True), (8.0, 48.0, False), (8.0, 48.1, True)],
    )
    def test_six_times_the_usual_jump_and_half_of_the_limit(self, usual, value, hit):
        options = {"reason": "pop", "cells": EVERY, "everywhere": usual}
        assert hits(ordinary(), "jumps", value, self.second, **options) == hit

    @pytest.mark.parametrize(("value", "hit"), [(45.0, False), (45.1, True)])
    def test_fifteen_times_near_the_eyes_and_where_the_place_is_not_known(self, value, hit):
        stats = with_value(ordinary(), "jumps", value, self.second, everywhere=3.0)
        names = ["Fp1", "x1", *NAMES[2:]]
        result = found(stats, names)["pop"]
        assert {channel for _, channel in result} == set(range(0 if hit else 2, 8))

    @pytest.mark.parametrize(
        ("others", "value", "hit"),
        [(4.0, 15.0, False), (4.0, 15.1, True), (6.0, 18.0, False), (6.0, 18.1, True)],
    )
    def test_three_times_that_of_any_neighbour_in_the_same_second(self, others, value, hit):
        options = {"reason": "pop", "everywhere": others}
        assert hits(ordinary(), "jumps", value, (*AT, 4), **options) == hit

    def test_two_neighbours_are_too_few_to_be_alone_among(self):
        stats = with_value(ordinary(), "jumps", 20.0, (*AT, 4))
        assert found(stats, neighbours=3) == {"pop": {AT}}
        assert found(stats, neighbours=2) == {}


class TestLineNoise:
    @pytest.mark.parametrize(
        ("eeg", "value", "hit"),
        [
            (100.0, 10.0, False), (100.0, 10.1, True),  # the limit
            (0.5, 5.0, False), (0.5, 5.1, True),  # ten times the EEG
            (0.01, 0.5, False), (0.01, 0.51, True),  # a twentieth of the limit
        ],
    )  # fmt: skip
    def test_of_all_channels_alike(self, eeg, value, hit):
        stats = replace(ordinary(), eeg=np.full(SHAPE, eeg))
        assert hits(stats, "line", value, ALL, reason="line", cells=EVERY) == hit

    @pytest.mark.parametrize(
        ("others", "value", "hit"),
        [(0.2, 3.0, False), (0.2, 3.1, True), (0.7, 3.5, False), (0.7, 3.6, True)],
    )
    def test_of_one_channel_five_times_the_others_and_three_times_its_eeg(
        self, others, value, hit
    ):
        options = {"reason": "line", "everywhere": others}
        assert hits(ordinary(), "line", value, **options) == hit

    @pytest.mark.parametrize(("value", "reason"), [(2.9, "decorrelated"), (3.1, "line")])
    def test_that_was_removed_counts_where_what_is_left_is_unlike_the_neighbours(
        self, value, reason
    ):
        unlike = alone(0.1)
        removed = np.full(SHAPE, 0.2)
        removed[AT] = np.sqrt(value**2 - 0.1**2)  # with 0.1 that are left
        assert found(unlike, removed=removed) == {reason: {AT}}
        assert found(ordinary(), removed=removed) == {}

    @pytest.mark.parametrize(("tilt", "hit"), [(1.9, True), (2.0, False)])
    def test_without_neighbours_the_tilt_of_the_spectrum_says_whether_there_is_eeg(
        self, tilt, hit
    ):
        stats = with_value(ordinary(), "tilt", tilt)
        removed = np.zeros(SHAPE)
        removed[AT] = 5.0
        assert found(stats, removed=removed, neighbours=1) == ({"line": {AT}} if hit else {})
        assert found(stats, removed=removed, neighbours=2) == {}


def alone(correlation):
    """Epochs with one channel that has this correlation with all others."""
    stats = ordinary()
    among = stats.correlation.copy()
    among[AT[0], AT[1], :] = among[AT[0], :, AT[1]] = correlation
    among[AT[0], AT[1], AT[1]] = 1.0
    return replace(stats, correlation=among)


@pytest.mark.parametrize("n_neighbours", [2, 4, 6])
def test_unlike_its_neighbours_is_a_multiple_correlation_below_the_limit(n_neighbours):
    # k neighbours that correlate by 1/2 with each other and by r with the channel:
    # R^2 = k r^2 / (1 + (k - 1) / 2); the ridge adds 0.01 to the 1.
    for limit in (0.2, 0.35, 0.5):
        r = limit * np.sqrt((1.01 + (n_neighbours - 1) / 2) / n_neighbours)
        options = {"correlation": limit, "neighbours": n_neighbours}
        assert found(alone(0.99 * r), **options) == {"decorrelated": {AT}}
        assert found(alone(1.01 * r), **options) == {}


def test_two_good_neighbours_are_needed():
    stats = alone(0.0)
    broken = np.zeros(SHAPE, dtype=bool)
    broken[AT[0], [c for c in range(N_CHANNELS) if c not in (AT[1], 0, 1)]] = True
    assert "decorrelated" in found(replace(stats, broken=broken), neighbours=7)
    broken[AT[0], 0] = True
    assert "decorrelated" not in found(replace(stats, broken=broken), neighbours=7)


def test_the_middle_channel_is_the_lower_median_of_medians_of_what_is_left():
    values = np.array([[1.0, 5.0, 2.0, 9.0], [3.0, 5.0, 2.0, 9.0], [8.0, 5.0, 100.0, 9.0]])
    left = np.ones((3, 4), dtype=bool)
    assert _middle_channel(values, left) == 3.0  # of 3, 5, 2 and 9
    left[:, 0] = False
    assert _middle_channel(values, left) == 5.0
    left[2] = False
    left[:2, 0] = True
    assert _middle_channel(values, left) == 2.0  # of 2, 5, 2 and 9


# --- the numbers -------------------------------------------------------------------------------

SFREQ, TIME = 250.0, np.arange(2500) / 250.0


def stats_of(*signals, high_pass=1.0, line_freqs=(50.0,), n_times=2500):
    signals = np.stack(signals)[None, :, :n_times]
    names = ["broken", "at_extremes", "tilt", "correlation", "window_sd", "jumps"]
    names += ["line", "eeg", "drift"]
    values = _block_stats(signals, signals, SFREQ, line_freqs, high_pass)
    return dict(zip(names, values, strict=True))


def sine(frequency, amplitude=1.0):
    return amplitude * np.sin(2 * np.pi * frequency * TIME + 0.3)


@pytest.mark.parametrize(
    ("frequency", "seen"),
    [
        (0.6, set()), (1.5, {"drift"}), (3.0, {"drift", "eeg"}), (10.0, {"eeg"}), (38.0, {"eeg"}),
        (42.0, set()), (48.5, set()), (49.5, {"line"}), (50.5, {"line"}), (51.5, set()),
        (100.5, {"line"}), (99.5, {"line"}), (70.0, set()), (124.0, set()),
    ],
)  # fmt: skip
def test_a_sine_counts_with_its_root_mean_square_in_the_bands_it_is_in(frequency, seen):
    found = stats_of(5.0 + sine(frequency, amplitude=3.0))
    for band in ("line", "eeg", "drift"):
        expected = 3 / np.sqrt(2) if band in seen else 0.0
        assert found[band][0, 0] == pytest.approx(expected, abs=0.05)


def test_drift_begins_at_the_high_pass():
    assert stats_of(sine(2.0), high_pass=3.0)["drift"][0, 0] == pytest.approx(0, abs=0.02)
    assert stats_of(sine(0.6), high_pass=0.3)["drift"][0, 0] == pytest.approx(0.5**0.5, abs=0.02)


def test_the_larger_of_two_line_frequencies_counts():
    both = stats_of(sine(50.0, 1.0) + sine(60.0, 2.0), line_freqs=(50.0, 60.0))
    assert both["line"][0, 0] == pytest.approx(2 / np.sqrt(2), rel=1e-3)


def test_the_tilt_is_the_ratio_of_powers_per_hertz():
    # Bins of 0.1 Hz: 110 from 2 to 13 Hz, 200 from 20 to 40 Hz.
    found = stats_of(sine(7.0, 3.0) + sine(30.0, 1.0))
    assert found["tilt"][0, 0] == pytest.approx(9 * 200 / 110, rel=1e-3)


def test_windows_are_seconds_and_jumps_ranges_within_sliding_seconds():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=2500)
    step = np.where(TIME < 4.3, 0.0, 7.0)
    found = stats_of(noise, step, n_times=2400)
    windows = noise[:2250].reshape(9, 250)  # what does not fill a second is left out
    np.testing.assert_allclose(found["window_sd"][0, 0], windows.std(axis=1))
    # Means over 3 samples, half seconds of 42 of them, sliding by one.
    means = noise[: 2400 // 126 * 126].reshape(-1, 42, 3).mean(axis=2)
    ranges = [np.ptp(means[k : k + 2]) for k in range(len(means) - 1)]
    np.testing.assert_allclose(found["jumps"][0, 0], ranges)
    assert np.flatnonzero(found["jumps"][0, 1]).tolist() == [7, 8]
    np.testing.assert_allclose(found["jumps"][0, 1].max(), 7.0)


def test_jumps_are_of_means_over_eleven_milliseconds():
    noise = np.random.default_rng(1).normal(size=2000)
    names = _block_stats(noise[None, None], noise[None, None], 227.0, (50.0,), 1.0)
    means = noise[: 2000 // 114 * 114].reshape(-1, 38, 3).mean(axis=2)  # 227 / 90 is about 3
    ranges = [np.ptp(means[k : k + 2]) for k in range(len(means) - 1)]
    np.testing.assert_allclose(names[5][0, 0], ranges)


def test_extremes_are_counted_at_both_ends_and_correlations_have_signs():
    clipped = np.clip(sine(3.0), -0.9, 0.8)
    found = stats_of(clipped, -clipped, sine(7.0))
    share = (clipped == -0.9).mean() + (clipped == clipped.max()).mean()
    assert found["at_extremes"][0, :2] == pytest.approx([share, share])
    np.testing.assert_allclose(
        found["correlation"][0], [[1, -1, 0], [-1, 1, 0], [0, 0, 1]], atol=0.01
    )


def test_frequencies_count_alike_in_the_correlation():
    """Powers times frequency: at 16 Hz a sine of half the amplitude weighs as one at 4 Hz."""
    found = stats_of(sine(4.0, 2.0) + sine(16.0, 1.0), sine(4.0, 2.0), sine(16.0), sine(30.0))
    assert found["correlation"][0, 0, 1:3] == pytest.approx([0.5**0.5] * 2, abs=0.01)
    assert found["correlation"][0, 0, 3] == pytest.approx(0, abs=0.01)


def test_a_channel_is_bad_in_more_than_half_of_the_epochs():
    cells = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    assert Detection({"flat": cells}, ("a", "b", "c")).bads == ["a"]


@pytest.mark.parametrize(("spread", "useless"), [(0.9e-12, True), (1.2e-12, False)])
def test_a_range_of_a_million_millionth_of_the_offset_is_rounding(spread, useless):
    high = np.array([1.0, 1.0])
    low = high - spread
    assert unusable(low, high).tolist() == [useless] * 2
    assert unusable(-high, -low).tolist() == [useless] * 2
    assert unusable(np.array([0.0, np.nan, -np.inf]), np.array([0.0, 1.0, 1.0])).all()


def test_the_typical_amplitude_is_the_median_over_recordings_of_medians_over_windows():
    windows = np.array([np.tile([-s, s], 250) for s in (1.0, 2.0, 6.0, 0.0)])
    assert estimate_typical_amplitude([windows], 250.0) == 2.0  # constant ones do not count
    others = [windows, 10 * windows, 100 * windows]
    assert estimate_typical_amplitude(others, 250.0) == 20.0


@pytest.mark.parametrize(
    ("factor", "said"), [(4e4, False), (6e4, True), (1.9e7, True), (2.1e7, False)]
)
def test_the_hint_knows_microvolts_that_were_read_as_volts(factor, said):
    rng = np.random.default_rng(0)
    epochs = rng.normal(size=(2, 3, 1000))
    epochs /= epochs.std(axis=-1, keepdims=True)
    recorded = 10e-6 * factor * epochs
    hint = detect_missing(recorded, 250.0, line_freq=None).hint
    assert ("microvolts that were read as volts" in hint) == said
    assert "far beyond a typical amplitude" in hint


def test_there_is_a_hint_where_more_than_half_of_the_cells_are_large():
    rng = np.random.default_rng(1)
    epochs = rng.normal(scale=10e-6, size=(2, 2, 1000))
    for n_large, said in ((2, False), (3, True)):
        large = epochs.copy()
        large.reshape(4, 1000)[:n_large] *= 100
        removed = np.zeros((2, 2))
        _, hint = find_reasons(
            large, large, removed, 250.0, np.full((2, 3), np.nan),
            typical_amplitude=10e-6, header_freq=None, high_pass=1.0, limits=DetectionLimits(),
        )  # fmt: skip
        assert bool(hint) == said
