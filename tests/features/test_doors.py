"""One recording by every door: the same numbers, the same names, the same missing channels."""

import mne
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.features import (
    FeatureExtractor,
    FeatureSettings,
    extract_features,
    extract_recording,
    extract_table,
)
from idfsmec.recordings import Recording, prepare_raw, read_manifest, simulate_cohort
from idfsmec.table import FeatureTable

# What is left to do when a recording was resampled and filtered before.
DONE = FeatureSettings(resample=None, band_pass=None, line_freq="off")
DEAD, HUMMING, BROKEN = "F3", "F4", "Pz"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a recording with all that can be missing, under the names an amplifier gives."""
    cohort = simulate_cohort(1, 19, duration=61, detached=0, artifacts=False, random_state=4)
    raw = cohort.recordings[0].load()
    time = raw.times
    dead, humming, broken = map(raw.ch_names.index, (DEAD, HUMMING, BROKEN))
    raw._data[dead] = 0.0
    raw._data[humming, time >= 30] = 300e-6 * np.sin(2 * np.pi * 50 * time[time >= 30])
    raw._data[broken, 250 * 12] = np.nan
    eyes = raw.copy().pick(["Fp1"]).rename_channels({"Fp1": "EOG"})
    ears = raw.copy().pick(["Fp2"]).rename_channels({"Fp2": "EEG A2-A1"})
    raw.rename_channels({name: f"EEG {name}-LE" for name in raw.ch_names})
    raw.rename_channels({"EEG T7-LE": "EEG T3-LE"})
    raw.add_channels([eyes.set_channel_types({"EOG": "eog"}), ears])
    raw.info["bads"] = ["EEG O1-LE", "EOG"]
    marks = mne.Annotations(
        [11.0, 45.0, 52.0],
        [2.0, 1.0, 0.0],
        ["BAD_loose", "BAD movement", "blink"],
        ch_names=[["EEG Cz-LE", "EOG"], [], []],
    )
    raw.set_annotations(marks)
    path = tmp_path_factory.mktemp("doors") / "s01_raw.fif"
    raw.save(path, verbose="error")
    return path


@pytest.fixture
def raw(written):
    return mne.io.read_raw(written, preload=True, verbose="error")


@pytest.fixture
def recordings(written):
    manifest = written.with_name("study.csv")
    manifest.write_text(f"path,subject,label\n{written.name},s01,HC\n")
    return read_manifest(manifest)


def cut(raw, **options):
    options = {"duration": 10.0, "preload": True, "reject_by_annotation": False} | options
    return mne.make_fixed_length_epochs(raw, verbose="error", **options)


def observed(frame):
    """Which channel is there in which epoch."""
    return FeatureTable(frame, ["HC"] * len(frame), ["s01"] * len(frame)).observed


def test_raw_table_and_command_agree_to_the_bit(raw, recordings, tmp_path):
    frame = extract_features(raw)
    table = extract_table(recordings).table
    pd.testing.assert_frame_equal(
        frame.reset_index(drop=True), table.X.reset_index(drop=True), check_exact=True
    )
    output = tmp_path / "table.parquet"
    manifest = recordings[0].files[0].with_name("study.csv")
    result = CliRunner().invoke(app, ["features", str(manifest), "-o", str(output)])
    assert result.exit_code == 0
    assert FeatureTable.read(output).equals(table)
    assert extract_features(recordings[0]).equals(frame)


def test_everything_that_can_be_missing_is(raw):
    found = extract_recording(raw)
    assert found.X.index.tolist() == [0, 10, 20, 30, 50]  # at 40 s all channels are bad
    assert found.n_epochs == 6
    seen = observed(found.X)
    assert not seen[[DEAD, "O1"]].any(axis=None)
    assert seen[HUMMING].tolist() == [True, True, True, False, False]
    assert seen[BROKEN].tolist() == seen["Cz"].tolist() == [True, False, True, True, True]
    assert found.reasons["annotated BAD"]["Cz"] == 2
    assert found.reasons["marked bad"] == {"O1": 6}


def test_names_are_those_of_the_standard_whatever_the_door(raw, recordings):
    table = extract_table(recordings).table
    assert len(table.channels) == 19
    assert {"Fp1", "T7"} <= set(table.channels)
    epochs = extract_features(cut(raw))
    assert list(epochs.columns) == list(table.X.columns)
    other = FeatureTable(epochs.dropna(how="all"), ["MDD"] * 5, ["s02"] * 5)
    assert len(FeatureTable.concat([table, other]).channels) == 19


@pytest.mark.parametrize("meas_date", [None, 1_000_000_000])
@pytest.mark.parametrize("crop", [0.0, 3.5])
def test_epochs_cut_from_raw_give_its_rows(raw, meas_date, crop):
    raw.set_meas_date(meas_date).crop(crop)
    frame = extract_features(raw, DONE)
    epochs = extract_features(cut(raw), DONE)
    assert epochs.isna().all(axis=1).sum() == len(epochs) - len(frame) > 0
    kept = epochs.dropna(how="all")
    kept.index -= crop  # events count from the first sample of the uncropped recording
    pd.testing.assert_frame_equal(kept, frame, check_exact=True)
    lazy = extract_features(cut(raw, preload=False), DONE)
    assert lazy.equals(epochs)


def test_epochs_of_a_filtered_raw_need_no_settings(raw):
    filtered = raw.copy()
    filtered._data[~np.isfinite(filtered._data)] = 0.0
    filtered.filter(1.0, 45.0, picks="all", verbose="error")
    epochs = extract_features(cut(filtered), FeatureSettings(line_freq="off"))
    assert epochs.dropna(how="all").equals(extract_features(filtered, DONE))


def test_an_array_in_microvolts_gives_the_rows_of_its_epochs(raw):
    raw.set_annotations(None)
    raw.info["bads"] = []
    epochs = cut(raw.pick("eeg", exclude=["EEG A2-A1"]))
    volts = epochs.get_data()
    in_volts = extract_features(volts, DONE, sfreq=250, ch_names=epochs.ch_names, unit=1.0)
    in_microvolts = extract_features(
        volts * 1e6, DONE, sfreq=250, ch_names=epochs.ch_names, unit=1e-6
    )
    expected = extract_features(epochs, DONE)
    pd.testing.assert_frame_equal(in_volts, expected, check_exact=True)
    pd.testing.assert_frame_equal(in_microvolts, expected, rtol=1e-9)
    assert expected.isna().any(axis=None)


def test_the_transformer_gives_what_the_function_gives_of_epochs(raw):
    epochs = cut(raw)
    frame = extract_features(epochs)
    extractor = FeatureExtractor().fit(epochs)
    np.testing.assert_array_equal(extractor.transform(epochs), frame)
    assert list(extractor.get_feature_names_out()) == list(frame.columns)
    assert extractor.n_channels_in_ == 19


def test_a_recording_of_ones_own_is_prepared_like_the_others(raw, recordings):
    mine = Recording("s01", "HC", raw.copy, "my Raw")
    prepared = Recording("s01", "HC", lambda: prepare_raw(raw.copy()), "my Raw")
    tables = [extract_table([one]).table for one in (mine, prepared, *recordings)]
    assert tables[0].X.equals(tables[2].X)
    assert tables[1].X.equals(tables[2].X)
    assert tables[0].info["montage"] == tables[2].info["montage"]


def test_nothing_of_the_caller_is_changed(raw):
    epochs = cut(raw)
    array = epochs.get_data()
    before = [raw.copy(), epochs.copy(), array.copy()]
    extract_features(raw)
    extract_features(epochs)
    extract_features(array, sfreq=250, unit=1.0)
    for ours, theirs in zip(before[:2], (raw, epochs), strict=True):
        np.testing.assert_array_equal(ours.get_data(), theirs.get_data())
        assert repr(dict(ours.info)) == repr(dict(theirs.info))
        assert list(ours.annotations) == list(theirs.annotations)
    np.testing.assert_array_equal(array, before[2])
