"""Acquisition facts: each number against a signal made to have it."""

import mne
import numpy as np
import pytest

from idfsmec.features import extract_recording, extract_table
from idfsmec.features.acquisition import (
    describe_other_references,
    describe_study,
    recorded_references,
)
from idfsmec.recordings import Recording, prepare_raw, simulate_cohort

SFREQ = 256.0


def recorded(data, sfreq=SFREQ, names=("Fp1", "Cz", "O2")):
    info = mne.create_info(list(names[: len(data)]), sfreq, "eeg")
    return mne.io.RawArray(data * 1e-6, info, verbose="error")


def facts(data, sfreq=SFREQ):
    return extract_recording(recorded(data, sfreq)).acquisition


@pytest.fixture
def noise():
    return np.random.default_rng(0).normal(scale=10.0, size=(3, int(30 * SFREQ)))


@pytest.fixture
def time(noise):
    return np.arange(noise.shape[1]) / SFREQ


def test_size_and_rate(noise):
    found = facts(noise)
    assert (found["n_channels"], found["n_recorded"]) == (3, 3)
    assert (found["sfreq"], found["duration"], found["format"]) == (SFREQ, 30.0, "")


def test_channels_that_are_no_eeg_count_as_recorded(noise):
    info = mne.create_info(["Fp1", "Cz", "EKG"], SFREQ, "eeg")
    raw = mne.io.RawArray(noise * 1e-6, info, verbose="error")
    found = extract_recording(raw).acquisition
    assert (found["n_channels"], found["n_recorded"]) == (2, 3)


@pytest.mark.parametrize("line", [50.0, 60.0])
def test_line_noise_is_found_with_its_amplitude(noise, time, line):
    found = facts(noise + 30 * np.sin(2 * np.pi * line * time))
    assert found["line_freq"] == line
    assert found["line_amplitude"] == pytest.approx(30.0, rel=0.05)


def test_a_slow_recording_has_no_line_noise(noise):
    found = facts(noise, sfreq=90.0)
    assert found["line_freq"] is None
    assert found["line_amplitude"] is None


def test_amplitude_of_white_noise_is_its_share_of_the_band(noise):
    # 42 of the 44 Hz are used: line noise of 50 Hz may touch from 48 on, harmonics of 0 up to 2.
    share = np.sqrt(43 / (SFREQ / 2))
    assert facts(noise)["amplitude"] == pytest.approx(10 * share * np.sqrt(np.log(2)), rel=0.05)


def test_line_noise_moves_neither_amplitude_nor_muscle(noise, time):
    plain, humming = facts(noise), facts(noise + 500 * np.sin(2 * np.pi * 50 * time))
    assert humming["amplitude"] == pytest.approx(plain["amplitude"], rel=0.01)
    assert humming["muscle"] == pytest.approx(plain["muscle"], rel=0.05)


def test_upper_edge_is_where_a_low_pass_ends_the_spectrum(noise):
    low = mne.filter.filter_data(noise, SFREQ, None, 70.0, verbose="error")
    assert 70.0 < facts(low)["upper_edge"] < 87.5  # where its transition begins and ends
    assert facts(noise)["upper_edge"] == pytest.approx(SFREQ / 2, abs=1.0)


def test_a_file_that_was_scaled_and_written_anew_keeps_its_step(noise):
    once = np.round(noise / 0.25) * 0.25
    again = np.round(once / 0.02) * 0.02
    assert facts(again)["quantisation"] == pytest.approx(0.25, rel=0.05)


def test_the_step_of_a_converter_is_found_and_none_where_there_is_none(noise):
    assert facts(np.round(noise / 0.25) * 0.25)["quantisation"] == pytest.approx(0.25)
    assert facts(noise)["quantisation"] is None


def test_drift_is_slow_change(noise, time):
    still, drifting = facts(noise), facts(noise + 200 * np.sin(2 * np.pi * time / 20))
    assert drifting["drift"] == pytest.approx(200 / np.sqrt(2), rel=0.1)
    assert still["drift"] < 2


def test_a_dead_channel_does_not_move_medians(noise):
    dead = noise.copy()
    dead[1] = 0.0
    assert facts(dead)["amplitude"] == pytest.approx(facts(noise)["amplitude"], rel=0.05)


def test_missing_channels_are_shares_by_reason(noise):
    raw = recorded(noise)
    raw.info["bads"] = ["Cz"]
    assert extract_recording(raw).acquisition["gaps"]["marked bad"] == pytest.approx(1 / 3)


def blinking(time, per_minute):
    """Blinks of 120 microvolts that last a third of a second, and their number per minute."""
    rng = np.random.default_rng(1)
    spaces = rng.uniform(0.7, 1.3, int(per_minute * time[-1] / 60)) * 60 / per_minute
    onsets = np.cumsum(spaces)
    onsets = onsets[onsets < time[-1] - 1]
    waves = [np.exp(-0.5 * ((time - onset) / 0.07) ** 2) for onset in onsets]
    return 120 * np.sum(waves, axis=0), 60 * len(onsets) / (time[-1] + time[1])


@pytest.mark.parametrize("per_minute", [6, 30])
@pytest.mark.parametrize("eyes", ["VEOG", None], ids=["in the EOG", "in frontal channels"])
def test_blinks_are_counted(noise, time, per_minute, eyes):
    blinks, truth = blinking(time, per_minute)
    noise = noise[0] + 0.5 * noise  # neighbours are alike
    if eyes is None:
        raw = recorded(noise + np.outer([1.0, 0.1, 0.0], blinks))
    else:  # of the other sign, and with a channel of sideways movements beside it
        raw = recorded(noise)
        types = mne.create_info([eyes, "HEOG"], SFREQ, ["eog", "eog"])
        pair = np.stack([noise[0] - 3 * blinks, noise[1]]) * 1e-6
        raw.add_channels([mne.io.RawArray(pair, types, verbose="error")], force_update_info=True)
    assert extract_recording(raw).acquisition["blinks"] == pytest.approx(truth)
    prepared = Recording("s", "HC", lambda: prepare_raw(raw), "mine")
    assert extract_recording(prepared).acquisition["blinks"] == pytest.approx(truth)
    epochs = mne.make_fixed_length_epochs(raw, 10.0, preload=True, verbose="error")
    assert extract_recording(epochs).acquisition["blinks"] == pytest.approx(truth, abs=4)


def test_without_blinks_there_are_none_and_without_eyes_nothing_is_known(noise):
    alike = noise[0] + 0.5 * noise
    assert facts(alike)["blinks"] == 0
    raw = recorded(alike, names=("Pz", "Cz", "O2"))
    assert extract_recording(raw).acquisition["blinks"] is None


def test_the_share_of_muscle_is_that_of_windows_with_bursts(noise):
    assert facts(noise)["muscle_share"] == 0
    tense = noise.copy()
    tense[0, : noise.shape[1] // 5] *= 5
    assert facts(tense)["muscle_share"] == pytest.approx(1 / 3 / 5)


def test_epochs_and_the_recording_they_are_cut_from_agree(noise):
    raw = recorded(noise)
    epochs = mne.make_fixed_length_epochs(raw, 2.0, preload=True, verbose="error")
    whole, cut = extract_recording(raw).acquisition, extract_recording(epochs).acquisition
    for name in ("sfreq", "duration", "amplitude", "muscle", "upper_edge"):
        assert cut[name] == pytest.approx(whole[name]), name


def test_tables_keep_the_facts_of_each_recording():
    cohort = simulate_cohort(2, 3, duration=20, detached=0, random_state=0)
    kept = extract_table(cohort.recordings).table.info["recordings"]
    assert [one["facts"]["n_channels"] for one in kept] == [3, 3]
    assert all(one["facts"]["amplitude"] > 1 for one in kept)


def test_a_flat_recording_has_no_share_of_muscle(noise):
    assert facts(0 * noise)["muscle_share"] is None  # and no warning


# --- reference, limits, generated files -------------------------------------------------------


def eeg(n_channels=5, seconds=30, seed=0):
    """Channels that share half of their variance, as those of a head do."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=(1, seconds * 256)), rng.normal(size=(n_channels, seconds * 256))
    return 10.0 * (shared + own)


NAMES = ("F3", "F4", "Cz", "O1", "O2")


def test_a_mean_of_zero_over_channels_is_the_average_reference():
    assert extract_recording(recorded(eeg(), names=NAMES)).acquisition["reference"] is None
    raw = recorded(eeg(), names=NAMES)
    raw.set_eeg_reference("average", projection=False, verbose="error")
    assert extract_recording(raw).acquisition["reference"] == "average"
    part = raw.copy().pick(list(NAMES[:3]))  # whose mean is not zero any more, but MNE knows
    assert extract_recording(part).acquisition["reference"] == "changed before"


@pytest.mark.parametrize(
    ("ending", "reference"),
    [("LE", "linked ears"), ("Cz", "Cz"), ("AVG", "average"), ("REF", None)],
)
def test_names_of_channels_tell_the_reference(ending, reference):
    raw = recorded(eeg(4), names=[f"EEG {name}-{ending}" for name in ("F3", "F4", "O1", "O2")])
    assert extract_recording(raw).acquisition["reference"] == reference


def test_references_that_differ_are_named_and_those_unlike_the_model_are_warned_of():
    def info(*references, **settings):
        recordings = [{"facts": {"reference": name}} for name in references]
        return {"recordings": recordings, **settings}

    ears = info("linked ears", "linked ears", None)
    assert recorded_references(ears) == {"linked ears": 2}
    assert recorded_references({**ears, "reference": "average"}) == {"average": 3}
    assert describe_other_references(["linked ears"], ears) == ""
    assert describe_other_references([], ears) == ""
    said = describe_other_references(["linked ears"], info("linked ears", "average", "average"))
    assert "2 of 3 recordings have another: average (2)." in said
    unnamed = recorded_references({"recordings": [{"facts": facts_of(eeg())}]})
    assert list(unnamed.values()) == [1]
    assert describe_other_references(list(unnamed), ears) == ""  # it may be that of linked ears
    assert describe_other_references(["linked ears", *unnamed], ears) == ""
    assert "another: average (1)" in describe_other_references(list(unnamed), info("average"))
    (line,) = describe_study([{"reference": "Cz"}, {"reference": "average"}, {}])
    assert line.startswith("reference   differs between recordings: Cz (1) and average (1).")


def test_samples_at_the_amplifiers_limits_are_counted_by_channel_epoch():
    data = eeg()
    assert facts_of(data)["clipped"] == 0
    assert facts_of(np.round(data))["clipped"] == 0  # the extremes of steps are rare
    data[1, 10:60] = data.max() + 1.0  # in the first of three epochs of one channel of five
    assert facts_of(data)["clipped"] == pytest.approx(1 / 15)
    (line,) = describe_study([{"clipped": 0.5}, {"clipped": 0.3}, {"clipped": 0.01}])
    assert line.startswith("limits      2 recordings")
    assert "40 %" in line


def facts_of(data):
    return extract_recording(recorded(data, names=NAMES)).acquisition


def test_channels_without_correlation_and_windows_that_repeat_are_no_recording():
    assert facts_of(eeg())["generated"] == 0
    noise = np.random.default_rng(0).normal(scale=10, size=(5, 256 * 30))
    assert facts_of(noise)["generated"] == 1
    assert facts_of(np.tile(eeg(seconds=2), 15))["generated"] == 1
    (line,) = describe_study([{"generated": 1}, {"generated": 0}])
    assert line.startswith("generated   1 recordings look generated")
