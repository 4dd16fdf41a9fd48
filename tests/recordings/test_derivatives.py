"""BIDS derivatives: what mne-bids-pipeline and others have cleaned comes in as it is."""

import json

import mne
import mne_bids
import numpy as np
import pytest

from idfsmec.errors import ArgumentError, InputError, RecordingError
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.recordings import find_recordings, read_bids

PLAIN = FeatureSettings(features=["variance"], detect=False, epoch=2)


def cut(make_raw, seed=0):
    raw = make_raw(["Fp1", "Cz"], seconds=10, seed=seed)
    events = np.column_stack([[0, 500, 1000, 1500], [0] * 4, [1, 2, 1, 2]])
    options = {"tmin": 0, "tmax": 2 - 1 / 250, "baseline": None, "preload": True}
    epochs = mne.Epochs(
        raw, events, {"eyes/open": 1, "eyes/closed": 2}, verbose="error", **options
    )
    return raw, epochs


@pytest.fixture
def pipeline(tmp_path, make_raw):
    """Write what mne-bids-pipeline leaves: cleaned epochs of 01, the cleaned signal of 02."""
    root = tmp_path / "study" / "derivatives" / "mne-bids-pipeline"
    raw, epochs = cut(make_raw)
    for subject in ("01", "02"):
        where = mne_bids.BIDSPath(
            subject=subject, task="rest", datatype="eeg", root=root, check=False, extension=".fif"
        )
        where.mkdir(exist_ok=True)

        def save(measured, suffix, where=where, **entities):
            path = where.copy().update(suffix=suffix, **entities).fpath
            measured.save(path, overwrite=True, verbose="error")

        save(raw, "raw", processing="filt", run="01")
        save(epochs, "epo")
        if subject == "01":
            save(epochs.copy().drop([0], verbose="error"), "epo", processing="clean")
        for run in ("01", "02"):
            save(raw, "raw", processing="clean", run=run)
    (root / "dataset_description.json").write_text(json.dumps({"Name": "x", "BIDSVersion": "1"}))
    (root.parents[1] / "participants.tsv").write_text(
        "participant_id\tgroup\nsub-01\tMDD\nsub-02\tHC\n"
    )
    return root


def test_cleaned_epochs_come_first_and_the_cleaned_signal_next(pipeline):
    recordings = read_bids(pipeline)
    assert [recording.files[0].name for recording in recordings] == [
        "sub-01_task-rest_proc-clean_epo.fif",
        "sub-02_task-rest_run-01_proc-clean_raw.fif",
        "sub-02_task-rest_run-02_proc-clean_raw.fif",
    ]
    assert [recording.label for recording in recordings] == ["MDD", "HC", "HC"]
    rows = extract_table(recordings, PLAIN).table.rows
    assert rows["condition"].unique().tolist() == [
        "task-rest_eyes/closed",
        "task-rest_eyes/open",
        "task-rest_run-01",
        "task-rest_run-02",
    ]
    assert rows["onset"][:3].tolist() == [2.0, 4.0, 6.0]


def test_another_step_can_be_chosen(pipeline):
    recordings = find_recordings(pipeline, processing="filt")
    assert {recording.files[0].name.split("_", 1)[1] for recording in recordings} == {
        "task-rest_run-01_proc-filt_raw.fif"
    }
    with pytest.raises(ArgumentError, match=r"no files of the processing 'ica'.*clean, filt"):
        find_recordings(pipeline, processing="ica")


def test_conditions_choose_files_and_epochs(pipeline):
    [recording] = find_recordings(pipeline, condition=["task-rest", "closed"])[:1]
    assert recording.load().events[:, 2].tolist() == [2, 2]
    rows = extract_table([recording], PLAIN).table.rows
    assert rows["condition"].unique().tolist() == ["task-rest_eyes/closed"]
    assert rows["epoch"].tolist() == [1, 3]
    [recording] = find_recordings(pipeline, condition="asleep")[:1]
    with pytest.raises(RecordingError, match="no epochs of the condition asleep; it has eyes/"):
        recording.load()
    with pytest.raises(ArgumentError, match="asleep"):
        find_recordings(pipeline, condition="asleep", processing="filt")


def test_a_root_that_says_it_is_a_derivative_is_read_as_one(tmp_path, make_raw):
    folder = tmp_path / "sub-01" / "eeg"
    folder.mkdir(parents=True)
    raw, _ = cut(make_raw)
    raw.export(folder / "sub-01_task-rest_desc-preproc_eeg.edf", verbose="error")
    (tmp_path / "participants.tsv").write_text("participant_id\tgroup\nsub-01\tMDD\n")
    about = {"Name": "x", "BIDSVersion": "1.8", "DatasetType": "derivative"}
    (tmp_path / "dataset_description.json").write_text(json.dumps(about))
    [recording] = read_bids(tmp_path)
    assert recording.condition == "task-rest"
    assert recording.load().ch_names == ["Fp1", "Cz"]
    (tmp_path / "dataset_description.json").unlink()
    with pytest.raises(ArgumentError, match="is no BIDS derivative"):
        read_bids(tmp_path, processing="clean")


def test_an_empty_derivative_is_refused(tmp_path):
    root = tmp_path / "derivatives" / "mine"
    root.mkdir(parents=True)
    (tmp_path / "participants.tsv").write_text("participant_id\tgroup\nsub-01\tMDD\n")
    with pytest.raises(InputError, match="no recording"):
        read_bids(root)
