"""What a user may name as the source of recordings."""

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.features import extract_table
from idfsmec.recordings import find_recordings


@pytest.fixture
def modma3(tmp_path):
    """Two recordings in the layout of the release: counts with a large offset."""
    folder = tmp_path / "EEG_3channels_resting_lanzhou_2015"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for subject in ("02010002", "02020008"):
        counts = rng.normal(1.5e6, 800, size=(3000, 3)).astype(int)
        np.savetxt(folder / f"{subject}_still.txt", counts, fmt="%d")
    return folder


@pytest.fixture
def bids(tmp_path, raws):
    """A BIDS tree written by mne-bids, with the diagnosis in participants.tsv."""
    mne_bids = pytest.importorskip("mne_bids")
    root = tmp_path / "tree"
    for subject in ("01", "02"):
        raw = raws["s03.vhdr"].copy()
        raw.info["line_freq"] = 50
        path = mne_bids.BIDSPath(subject=subject, task="rest", datatype="eeg", root=root)
        mne_bids.write_raw_bids(
            raw, path, allow_preload=True, format="BrainVision", verbose="error"
        )
    table = root / "participants.tsv"
    header, *lines = table.read_text(encoding="utf-8-sig").splitlines()
    labels = ["diagnosis", "MDD", "HC"]
    table.write_text(
        "".join(f"{line}\t{x}\n" for line, x in zip([header, *lines], labels, strict=True))
    )
    return root


def test_a_manifest_is_told_by_being_a_file(study):
    assert [r.subject for r in find_recordings(study)] == ["s01", "s02", "s03", "s04"]


def test_a_bids_tree_is_told_by_being_a_folder(bids):
    recordings = find_recordings(bids, labels="diagnosis", task="rest")
    assert [(r.subject, r.label) for r in recordings] == [("01", "MDD"), ("02", "HC")]
    table = extract_table(recordings).table
    assert (len(table), len(table.channels)) == (4, 18)


def test_a_data_set_is_known_by_name(modma3):
    recordings = find_recordings("modma3", data=modma3)
    assert [(r.subject, r.label) for r in recordings] == [("02010002", "MDD"), ("02020008", "HC")]


def test_the_unit_of_a_data_set_can_be_set(modma3):
    volts = [find_recordings("modma3", data=modma3, unit=unit)[0] for unit in ("1e-6", "uV", "2")]
    peaks = [recording.load().get_data().max() for recording in volts]
    assert peaks[0] == peaks[1]
    assert peaks[2] == pytest.approx(peaks[0] * 2e6)


def test_a_data_set_needs_its_folder():
    with pytest.raises(InputError, match=r"modma3.*data=FOLDER"):
        find_recordings("modma3")


def test_rule_and_condition_reach_the_reader_of_pred(tmp_path):
    # A tree without recordings: the reader's own refusals show what it was asked for.
    (tmp_path / "participants.tsv").write_text(
        "participant_id\tOriginal_ID\tBDI\tSCID\nsub-001\t507\t2\t50\n"
    )
    with pytest.raises(InputError, match="nosuchrule"):
        find_recordings("pred-d003", data=tmp_path, labels="nosuchrule")
    with pytest.raises(InputError, match="eyes-shut"):
        find_recordings("pred-d003", data=tmp_path, condition="eyes-shut")


def test_a_source_that_is_nothing_is_refused_with_the_choices(tmp_path):
    with pytest.raises(InputError, match=r"no such manifest.*modma3, .*tdbrain, ds005356"):
        find_recordings(tmp_path / "nothing.csv")


def test_options_that_would_be_ignored_are_refused(study, modma3, bids):
    with pytest.raises(InputError, match="labels='bdi13': has no meaning for a manifest"):
        find_recordings(study, labels="bdi13")
    with pytest.raises(InputError, match="condition='eyes-open': has no meaning for modma3"):
        find_recordings("modma3", data=modma3, condition="eyes-open")
    with pytest.raises(InputError, match=r"condition='eyes-open': .* has task-"):
        find_recordings(bids, condition="eyes-open")
    with pytest.raises(InputError, match=r"data=.*: applies to"):
        find_recordings(study, data=modma3)


def test_conditions_of_a_manifest_are_kept_by_name(study):
    lines = study.read_text().splitlines()
    names = ["condition", "eyes-open", "eyes-closed", "Task A", ""]
    study.write_text("\n".join(f"{line},{x}" for line, x in zip(lines, names, strict=True)))

    def subjects(condition):
        return [one.subject for one in find_recordings(study, condition=condition)]

    assert subjects("eyes-open") == ["s01"]
    assert subjects(["task a", "eyes-open"]) == ["s01", "s03"]
    assert subjects(None) == ["s01", "s02", "s03", "s04"]
    with pytest.raises(InputError, match=r"condition='EO': .* has eyes-open, eyes-closed, Task A"):
        subjects(["eyes-open", "EO"])


def test_conditions_of_bids_are_kept_as_a_whole_or_by_their_parts(bids):
    assert len(find_recordings(bids, labels="diagnosis", condition="task-rest")) == 2
    study = find_recordings(bids, labels="diagnosis")
    assert {one.condition for one in study} == {"task-rest"}
    assert study[0].details.keys() >= {"age", "sex"}
