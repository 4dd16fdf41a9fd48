"""Mumtaz: files with the names and the channels of the release, with its irregularities."""

import shutil
import warnings

import mne
import pytest

from idfsmec.errors import ArgumentError, InputError
from idfsmec.features import FeatureSettings, extract_recording
from idfsmec.recordings import channel_plan, check_duplicates, find_recordings, read_mumtaz

CAP = ["Fp1", "F3", "C3", "P3", "O1", "F7", "T3", "T5", "Fz", "Fp2"]
CAP += ["F4", "C4", "P4", "O2", "F8", "T4", "T6", "Cz", "Pz"]
NAMES = [*(f"EEG {name}-LE" for name in CAP), "EEG A2-A1"]
EXTRA = ["EEG 23A-23R", "EEG 24A-24R"]


@pytest.fixture
def write(make_raw, identified):
    def save(path, seed, names=NAMES):
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = identified(make_raw(names, sfreq=256.0, seconds=12, seed=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mne.export.export_raw(path, raw, physical_range="auto", verbose="error")

    return save


@pytest.fixture
def release(tmp_path, write):
    write(tmp_path / "H S1 EC.edf", 0, [*NAMES, *EXTRA])
    write(tmp_path / "H S1 TASK.edf", 1)
    write(tmp_path / "6921143_H S15 EO.edf", 2)
    shutil.copy(tmp_path / "6921143_H S15 EO.edf", tmp_path / "6921959_H S15 EO.edf")
    write(tmp_path / "H S27 EC.edf", 3)
    shutil.copy(tmp_path / "H S27 EC.edf", tmp_path / "H S30 EC.edf")
    shutil.copy(tmp_path / "H S1 TASK.edf", tmp_path / "H S10 TASK.edf")
    write(tmp_path / "MDD S1  EO.edf", 4)
    write(tmp_path / "MDDS10EC.edf", 5)  # a mirror's spelling
    (tmp_path / "readme.txt").write_text("MDD Patients and Healthy Controls EEG Data")
    (tmp_path / "._H S1 EC.edf").write_bytes(b"")  # of a Mac's archive
    return tmp_path


def found(recordings):
    return [(one.subject, one.label, one.condition) for one in recordings]


def test_names_give_subject_group_and_condition_and_copies_are_left_out_and_named(release):
    with pytest.warns(UserWarning, match="counts once") as caught:
        recordings = read_mumtaz(release)
    assert found(recordings) == [
        ("HS1", "HC", "EC"),
        ("HS1", "HC", "TASK"),
        ("HS15", "HC", "EO"),
        ("HS27", "HC", "EC"),
        ("MDDS1", "MDD", "EO"),
        ("MDDS10", "MDD", "EC"),
    ]
    for name in ("6921959_H S15 EO.edf", "H S30 EC.edf", "H S10 TASK.edf"):
        assert name in str(caught[0].message)
    assert check_duplicates(recordings) == recordings


def test_conditions_can_be_chosen_by_the_name_of_the_data_set(release):
    with pytest.warns(UserWarning, match=r"H S30 EC\.edf \(participant HS30\)\.$"):
        recordings = find_recordings("mumtaz", data=release, condition="EC")
    assert found(recordings) == [
        ("HS1", "HC", "EC"),
        ("HS27", "HC", "EC"),
        ("MDDS10", "MDD", "EC"),
    ]
    with pytest.raises(ArgumentError, match="EC, EO, TASK"):
        read_mumtaz(release, condition="rest")


@pytest.mark.filterwarnings("ignore:.*counts once")
def test_features_are_of_the_nineteen_electrodes_and_the_facts_count_all_channels(release):
    recording = read_mumtaz(release, condition="EC")[0]
    raw = recording.load()
    assert channel_plan(raw).renamed["EEG T3-LE"] == "T7"
    assert raw.info["subject_info"] is None
    made = extract_recording(recording, FeatureSettings(detect=False))
    assert len(made.channels) == 19
    assert made.acquisition["n_recorded"] == 22


def test_the_bids_mirror_has_its_labels_in_the_ids(tmp_path, write):
    for seed, (subject, task) in enumerate(
        [("HS1", "eyesClosed"), ("MDDS2", "eyesOpen"), ("MDDS2", "P300")]
    ):
        write(tmp_path / f"sub-{subject}/eeg/sub-{subject}_task-{task}_eeg.edf", seed)
    (tmp_path / "participants.tsv").write_text("participant_id\nsub-HS1\nsub-MDDS2\n")
    assert found(read_mumtaz(tmp_path)) == [
        ("HS1", "HC", "EC"),
        ("MDDS2", "MDD", "EO"),
        ("MDDS2", "MDD", "TASK"),
    ]


def test_another_folder_is_refused(tmp_path):
    (tmp_path / "s01.edf").write_bytes(b"")
    with pytest.raises(InputError, match="no recording of mumtaz"):
        read_mumtaz(tmp_path)
