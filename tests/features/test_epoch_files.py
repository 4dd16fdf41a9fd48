"""Epochs in files: what a laboratory has cleaned and cut comes in as it is."""

from dataclasses import replace

import autoreject
import h5py
import mne
import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat, savemat

from idfsmec.errors import InputError
from idfsmec.features import (
    FeatureSettings,
    extract_features,
    extract_recording,
    extract_table,
)
from idfsmec.recordings import read_manifest, simulate_cohort

PLAIN = FeatureSettings(features=["variance", "ap"], detect=False)


@pytest.fixture
def raw():
    cohort = simulate_cohort(1, 3, duration=60, detached=0, random_state=1)
    return cohort.recordings[0].load().load_data()


def study(folder, name):
    (folder / "study.csv").write_text(f"path,subject,label\n{name},s1,HC\n")
    return read_manifest(folder / "study.csv")


def cut(raw, onsets, **options):
    codes = 1 + np.arange(len(onsets)) % 2
    samples = np.round(np.array(onsets) * raw.info["sfreq"]).astype(int)
    events = np.column_stack([samples, np.zeros_like(samples), codes])
    about = {"tmin": 0, "tmax": 10 - 1 / raw.info["sfreq"], "baseline": None, "preload": True}
    return mne.Epochs(raw, events, {"open": 1, "closed": 2}, verbose="error", **about | options)


@pytest.mark.parametrize("name", ["s1-epo.fif", "sub-1_proc-clean_epo.fif", "s1-epo.fif.gz"])
def test_epochs_keep_their_onsets_and_conditions_and_those_dropped_have_no_row(
    raw, tmp_path, name
):
    epochs = cut(raw, [3.0, 15.0, 28.0, 44.0]).drop([1], verbose="error")
    epochs.save(tmp_path / name, verbose="error")
    table = extract_table(study(tmp_path, name), PLAIN).table
    assert table.rows["onset"].tolist() == [3.0, 28.0, 44.0]
    assert table.rows["condition"].tolist() == ["open", "open", "closed"]
    assert table.info["recordings"][0]["facts"]["processing"] == "epochs, filtered 1-45 Hz"


def test_an_interrupted_run_still_knows_the_conditions(raw, tmp_path):
    cut(raw, [3.0, 15.0]).save(tmp_path / "s1-epo.fif", verbose="error")
    recordings, parts = study(tmp_path, "s1-epo.fif"), tmp_path / "parts"
    parts.mkdir()
    first, again = (extract_table(recordings, PLAIN, parts=parts) for _ in range(2))
    assert again.outcomes[0].status == "resumed"
    assert again.table.rows["condition"].tolist() == ["open", "closed"]
    np.testing.assert_array_equal(first.table.X, again.table.X)


def test_what_was_filtered_before_is_not_filtered_again(raw, tmp_path):
    raw.filter(1, 40, picks="all", verbose="error")
    epochs = cut(raw, [3.0, 15.0, 28.0])
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    [recording] = study(tmp_path, "s1-epo.fif")
    made = extract_recording(recording, PLAIN)
    assert made.acquisition["processing"] == "epochs, not filtered"
    variance = (epochs.get_data() * 1e6).var(axis=-1)
    columns = [f"{name}__variance" for name in epochs.ch_names]
    np.testing.assert_allclose(made.X[columns], variance, rtol=1e-4)


def test_an_amplifier_s_wider_band_is_filtered(raw, tmp_path):
    raw.filter(0.5, None, picks="all", verbose="error")
    cut(raw, [3.0, 15.0]).save(tmp_path / "s1-epo.fif", verbose="error")
    made = extract_recording(study(tmp_path, "s1-epo.fif")[0], PLAIN)
    assert made.acquisition["processing"] == "epochs, filtered 1-45 Hz"


def test_epochs_of_eeglab_come_in(raw, tmp_path):
    eyes = mne.io.RawArray(raw.get_data()[:1], mne.create_info(["VEOG"], 250.0, "eog"))
    epochs = cut(raw.add_channels([eyes], force_update_info=True), [3.0, 15.0, 28.0])
    mne.export.export_epochs(tmp_path / "s1.set", epochs, verbose="error")
    table = extract_table(study(tmp_path, "s1.set"), PLAIN).table
    assert table.rows["condition"].tolist() == ["open", "closed", "open"]
    straight = extract_recording(epochs, PLAIN).X
    np.testing.assert_allclose(table.X[straight.columns], straight, rtol=1e-3)


def test_a_continuous_recording_says_how_it_was_filtered(raw):
    assert extract_recording(raw, PLAIN).acquisition["processing"] == (
        "continuous, filtered 1-45 Hz"
    )


def test_a_numbered_event_that_mne_made_is_no_condition(raw, tmp_path):
    epochs = mne.make_fixed_length_epochs(raw, 10, preload=True, verbose="error")
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    table = extract_table(study(tmp_path, "s1-epo.fif"), PLAIN).table
    assert "condition" not in table.rows or table.rows["condition"].isna().all()


def test_metadata_gives_the_condition_and_columns_of_rows(raw, tmp_path):
    about = pd.DataFrame({"Condition": ["rest", "task", "rest"], "load": [1, 2, 3]})
    epochs = cut(raw, [3.0, 15.0, 28.0], metadata=about).drop([0], verbose="error")
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    rows = extract_table(study(tmp_path, "s1-epo.fif"), PLAIN).table.rows
    assert rows["condition"].tolist() == ["task", "rest"]
    assert rows["load"].tolist() == [2, 3]
    frame = extract_features(epochs, PLAIN)
    assert frame.index.names == ["start", "load", "condition"]
    assert frame.index.tolist() == [(15.0, 2, "task"), (28.0, 3, "rest")]


def test_metadata_may_have_a_column_start_dates_and_long_numbers(raw, tmp_path):
    times = ["2020-01-31 10:00:00", "2020-02-01 11:30:00"]
    about = pd.DataFrame(
        {"start": ["a", "b"], "time": pd.to_datetime(times), "speed": [0.1234567890123, 2 / 3]}
    )
    epochs = cut(raw, [3.0, 15.0], metadata=about)
    dates = ["2020-01-31T10:00:00.000", "2020-02-01T11:30:00.000"]
    index = extract_features(epochs, PLAIN).index
    assert index.names == ["start", "metadata_start", "time", "speed"]
    assert index.get_level_values("start").tolist() == [3.0, 15.0]
    assert index.get_level_values("metadata_start").tolist() == ["a", "b"]
    assert index.get_level_values("time").tolist() == dates
    assert index.get_level_values("speed").tolist() == pytest.approx([0.1234567890123, 2 / 3])
    epochs.metadata = about.drop(columns="time")  # MNE writes dates as integers
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    rows = extract_table(study(tmp_path, "s1-epo.fif"), PLAIN).table.rows
    assert rows["start"].tolist() == ["a", "b"]


def write_zeros(path, epochs):
    """Write epochs so that the file is small and its content is not."""
    epochs.apply_function(lambda values: 0 * values)
    if path.stem == "v73":
        with h5py.File(path, "w", userblock_size=512) as file:
            file.create_dataset("data", epochs.get_data().shape, "f4", compression="gzip")
        with path.open("r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    elif path.suffix == ".set":
        mne.export.export_epochs(path, epochs, verbose="error")
        content = {name: value for name, value in loadmat(path).items() if name[0] != "_"}
        savemat(path, content, do_compression=True)
    else:
        epochs.save(path, verbose="error")


@pytest.mark.parametrize("name", ["s1-epo.fif", "s1-epo.fif.gz", "s1.set", "v73.set"])
def test_epochs_that_no_machine_holds_are_refused_before_they_are_read(
    raw, tmp_path, monkeypatch, name
):
    write_zeros(tmp_path / name, cut(raw, [3.0, 15.0]))
    monkeypatch.setattr("os.sysconf", lambda name: 500)
    with pytest.raises(InputError, match=rf"{name}: .*: needs about .*GB of memory"):
        extract_table(study(tmp_path, name), PLAIN)


def test_dropped_epochs_are_counted_and_leave_holes(raw, tmp_path):
    epochs = cut(raw, [3.0, 15.0, 28.0, 44.0]).drop([1], verbose="error")
    assert extract_features(epochs, PLAIN).index.tolist() == [3.0, 28.0, 44.0]
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    table = extract_table(study(tmp_path, "s1-epo.fif"), PLAIN).table
    assert table.rows["epoch"].tolist() == [0, 2, 3]
    assert table.info["recordings"][0]["facts"]["dropped"] == 0.25
    numbered = mne.EpochsArray(epochs.get_data(), epochs.info, verbose="error").drop([1])
    assert extract_features(numbered, PLAIN).index.tolist() == [0, 20]


def reject_log(bad_epochs, ch_names):
    labels = np.zeros((4, 3))
    labels[2, 0], labels[3, 1] = 1, 2  # rejected, interpolated
    return autoreject.RejectLog(np.array(bad_epochs), labels, ch_names)


@pytest.mark.parametrize("column", [False, True], ids=["beside the file", "in the manifest"])
def test_the_log_of_autoreject_marks_channel_epochs(raw, tmp_path, column):
    raw.rename_channels(lambda name: f"EEG {name}-LE")
    epochs = cut(raw, [3.0, 15.0, 28.0, 44.0])
    log = reject_log([False, True, False, False], epochs.ch_names)
    epochs.drop(log.bad_epochs, verbose="error").save(tmp_path / "s1-epo.fif", verbose="error")
    log.save(tmp_path / ("mine.npz" if column else "s1_reject-log.npz"))
    (tmp_path / "study.csv").write_text(
        f"path,subject,label{',reject_log' * column}\ns1-epo.fif,s1,HC{',mine.npz' * column}\n"
    )
    [recording] = read_manifest(tmp_path / "study.csv")
    first, second, _ = (name.removeprefix("EEG ").removesuffix("-LE") for name in log.ch_names)
    made = extract_recording(recording, PLAIN)
    assert made.cells == {"rejected by autoreject": {first: [2]}}
    made = extract_recording(recording, replace(PLAIN, autoreject_interpolated="missing"))
    assert made.cells == {"rejected by autoreject": {first: [2], second: [3]}}


def test_a_log_of_other_epochs_and_one_with_objects_are_refused(raw, tmp_path):
    cut(raw, [3.0, 15.0]).save(tmp_path / "s1-epo.fif", verbose="error")
    log = tmp_path / "s1.npz"
    reject_log([False] * 4, raw.ch_names).save(log)
    [recording] = study(tmp_path, "s1-epo.fif")
    with pytest.raises(InputError, match=r"s1\.npz: has 4 epochs, 0 of them bad.*has 2"):
        extract_recording(recording, PLAIN)
    np.savez(log, labels=np.array([None]), bad_epochs=[0], ch_names=["Cz"])
    with pytest.raises(InputError, match=r"s1\.npz: cannot be read as a reject log"):
        extract_recording(recording, PLAIN)
