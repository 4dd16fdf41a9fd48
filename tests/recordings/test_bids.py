import os
import pickle
import sys

import numpy as np
import pytest

from idfsmec.errors import InputError, RecordingError
from idfsmec.recordings import check_duplicates, read_bids

mne_bids = pytest.importorskip("mne_bids")


@pytest.fixture
def tree(tmp_path, make_raw):
    """Write a BIDS tree with mne-bids: two subjects, two sessions of the first."""
    root = tmp_path / "study"
    for seed, (subject, session) in enumerate([("01", "pre"), ("01", "post"), ("02", "pre")]):
        raw = make_raw(
            ["EEG Fp1", "T3", "Cz", "brow"], types=["eeg", "eeg", "eeg", "eog"], seed=seed
        )
        raw.info["line_freq"] = 50
        raw.info["bads"] = ["T3"]
        where = mne_bids.BIDSPath(
            subject=subject, session=session, task="rest", run="01", datatype="eeg", root=root
        )
        mne_bids.write_raw_bids(
            raw, where, format="BrainVision", allow_preload=True, overwrite=True, verbose="ERROR"
        )
    set_participants(root, ["participant_id\tage\tgroup", "sub-01\t30\tMDD", "sub-02\t31\tHC"])
    return root


def set_participants(root, lines):
    (root / "participants.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_tree_of_mne_bids_is_read(tree):
    recordings = read_bids(tree)
    assert [(r.subject, r.session, r.label) for r in recordings] == [
        ("01", "post", "MDD"),
        ("01", "pre", "MDD"),
        ("02", "pre", "HC"),
    ]
    assert {r.condition for r in recordings} == {"task-rest_run-01"}
    raw = recordings[2].load()
    assert raw.ch_names == ["Fp1", "T7", "Cz"]
    assert raw.info["bads"] == ["T7"]


def test_the_signal_is_the_one_that_was_written(tree, make_raw):
    raw = read_bids(tree)[2].load()
    expected = make_raw(["1", "2", "3", "4"], seed=2).get_data()[:3]
    np.testing.assert_allclose(raw.get_data(), expected, atol=1e-7)


def test_bad_channels_of_the_sidecar_are_part_of_the_fingerprint(tree):
    recording = read_bids(tree)[0]
    before = recording.fingerprint()
    sidecar = next(path for path in recording.files if path.name.endswith("_channels.tsv"))
    sidecar.write_text(sidecar.read_text().replace("bad", "good"))
    assert recording.fingerprint() != before
    assert recording.load().info["bads"] == []


def test_channels_without_a_type_are_told_by_their_names(tree):
    # ds003478 has "n/a" for all types.
    for sidecar in tree.rglob("*_channels.tsv"):
        sidecar.write_text(
            "name\ttype\tunits\n"
            + "".join(f"{name}\tn/a\tn/a\n" for name in ("EEG Fp1", "T3", "Cz", "brow"))
        )
    assert read_bids(tree)[0].load().ch_names == ["Fp1", "T7", "Cz"]


def test_recordings_can_be_sent_to_worker_processes(tree):
    recording = read_bids(tree)[0]
    assert pickle.loads(pickle.dumps(recording)) == recording


def test_a_tree_without_sessions_in_another_format_is_read(tmp_path, make_raw):
    folder = tmp_path / "sub-A1" / "eeg"
    folder.mkdir(parents=True)
    make_raw().export(folder / "sub-A1_task-rest_eeg.edf", verbose="ERROR")
    set_participants(tmp_path, ["participant_id\tDiagnosis", "sub-A1\tHC"])
    [recording] = read_bids(tmp_path)
    assert (recording.subject, recording.label, recording.session) == ("A1", "HC", None)
    assert recording.load().ch_names == ["Fp1", "Cz"]


def test_participants_without_the_prefix_are_found(tree):
    set_participants(tree, ["participant_id\tgroup", "01\tMDD", "02\tHC"])
    assert {(r.subject, r.label) for r in read_bids(tree)} == {("01", "MDD"), ("02", "HC")}


def test_the_label_column_can_be_named(tree):
    assert {r.label for r in read_bids(tree, label="age")} == {"30", "31"}


def test_a_rule_makes_labels_and_leaves_out_the_rest(tree):
    with pytest.warns(UserWarning, match="left out, without a label in column 'group': sub-02"):
        recordings = read_bids(tree, rule=lambda line: {"MDD": "depressed"}.get(line["group"]))
    assert {(r.subject, r.label) for r in recordings} == {("01", "depressed")}


def test_a_function_makes_labels_of_the_whole_line(tree):
    recordings = read_bids(
        tree, label="age", rule=lambda line: "old" if float(line["age"]) > 30 else line["group"]
    )
    assert {r.label for r in recordings} == {"MDD", "old"}


def test_participants_without_a_value_are_left_out_with_a_word(tree):
    set_participants(tree, ["participant_id\tgroup", "sub-01\tn/a", "sub-02\tHC"])
    with pytest.warns(UserWarning, match="sub-01"):
        assert {r.subject for r in read_bids(tree)} == {"02"}


def test_one_task_can_be_chosen(tree):
    assert len(read_bids(tree, task="Rest")) == 3
    with pytest.raises(InputError, match="no EEG recording of task 'oddball'"):
        read_bids(tree, task="oddball")


def test_derivatives_are_passed_over(tree):
    copy = tree / "derivatives" / "clean" / "sub-01" / "eeg"
    copy.mkdir(parents=True)
    (copy / "sub-01_task-rest_eeg.edf").write_bytes(b"")
    assert len(read_bids(tree)) == 3


def test_the_same_recording_of_two_participants_is_found(tree):
    one, two = (tree / f"sub-{n}" / "ses-pre" / "eeg" for n in ("01", "02"))
    source, target = (next(folder.glob("*.eeg")) for folder in (one, two))
    target.write_bytes(source.read_bytes())
    with pytest.raises(InputError, match=r"sub-01_.*sub-02_"):
        check_duplicates(read_bids(tree))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["participant_id\tage", "sub-01\t3", "sub-02\t4"], "which column .*participant_id, age"),
        (["participant_id\tgroup", "sub-01\tHC"], r"no line for sub-02"),
        (["name\tgroup", "sub-01\tHC"], "column 'participant_id'"),
        (["participant_id\tgroup"], "needs rows"),
    ],
)
def test_mistakes_in_participants_are_named(tree, lines, words):
    set_participants(tree, lines)
    with pytest.raises(InputError, match=rf"participants\.tsv: .*{words}"):
        read_bids(tree)


def test_an_unknown_column_is_refused_with_those_there_are(tree):
    with pytest.raises(InputError, match="no column 'BDI'; there are participant_id, age, group"):
        read_bids(tree, label="BDI")


def test_a_rule_that_fails_is_named_with_the_participant(tree):
    with pytest.raises(InputError, match=r"the rule fails for sub-01 \(KeyError\('x'\)\)"):
        read_bids(tree, rule=lambda line: line["x"])


def test_a_folder_that_is_no_tree_is_refused(tmp_path):
    with pytest.raises(InputError, match="root folder of a BIDS tree"):
        read_bids(tmp_path)
    set_participants(tmp_path, ["participant_id\tgroup", "sub-01\tHC"])
    with pytest.raises(InputError, match="no EEG recording"):
        read_bids(tmp_path)


def test_a_damaged_recording_is_named_when_loaded(tree):
    recording = read_bids(tree)[0]
    recording.files[0].write_text("nothing")
    with pytest.raises(InputError, match=r"sub-01_ses-post_.*MNE cannot open"):
        recording.load()


def test_without_mne_bids_the_error_says_how_to_get_it(tree, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne_bids", None)
    with pytest.raises(InputError, match=r"pip install 'idfsmec\[bids\]'"):
        read_bids(tree)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.usefixtures("at_most_a_minute")
@pytest.mark.parametrize("ending", ["channels.tsv", "events.tsv", "eeg.json", "electrodes.tsv"])
def test_a_pipe_in_place_of_a_sidecar_is_refused_and_never_waited_for(tree, ending):
    recording = read_bids(tree)[0]
    name = recording.files[0].name.replace("eeg.vhdr", ending)
    for place in (recording.files[0].parent / name, tree / "dataset_description.json"):
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            place.unlink(missing_ok=True)
            make(place)
            with pytest.raises(RecordingError, match=f"{place.name}:? is a pipe or a device"):
                recording.load()
        place.unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.usefixtures("at_most_a_minute")
def test_a_pipe_in_place_of_the_participants_is_refused_and_never_waited_for(tree):
    (tree / "participants.tsv").unlink()
    os.mkfifo(tree / "participants.tsv")
    with pytest.raises(InputError, match=r"participants\.tsv: is a pipe or a device"):
        read_bids(tree)
