import gzip
import pickle
import zipfile
from pathlib import Path

import edfio
import mne
import numpy as np
import pytest

from idfsmec.errors import ExistingFileError, InputError, RecordingError
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.recordings import channel_plan, read_manifest
from idfsmec.recordings.recording import files_of
from idfsmec.recordings.sources import draft_manifest


def write_bdf(raw, path):
    """Write BDF by edfio; MNE's own export came only after the oldest MNE we support."""
    person = raw.info["subject_info"] or {}
    signals = [
        edfio.BdfSignal(samples * 1e6, raw.info["sfreq"], label=name, physical_dimension="uV")
        for name, samples in zip(raw.ch_names, raw.get_data(), strict=True)
    ]
    patient = edfio.Patient(
        code=person.get("his_id", "X"),
        name=f"{person.get('first_name', 'X')}_{person.get('last_name', 'X')}",
        birthdate=person.get("birthday"),
    )
    edfio.Bdf(signals, patient=patient).write(path)


WRITERS = {
    "edf": lambda raw, path: mne.export.export_raw(path, raw, verbose="ERROR"),
    "bdf": write_bdf,
    "vhdr": lambda raw, path: mne.export.export_raw(path, raw, verbose="ERROR"),
    "set": lambda raw, path: mne.export.export_raw(path, raw, verbose="ERROR"),
    "fif": lambda raw, path: raw.save(path, verbose="ERROR"),
}


@pytest.fixture
def write_manifest(tmp_path):
    """Write a manifest and empty files for the paths in it."""

    def write(text, *files, encoding="utf-8"):
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"")
        path = tmp_path / "study.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


# --- real files -----------------------------------------------------------------------


@pytest.mark.parametrize("ending", list(WRITERS))
def test_every_format_gives_the_same_signal(tmp_path, make_raw, ending):
    raw = make_raw(["EEG Fp1-LE", "T3", "EKG"])
    WRITERS[ending](raw, tmp_path / f"s1_raw.{ending}")
    (tmp_path / "study.csv").write_text(
        f"path,subject,label,bads\ns1_raw.{ending},01,HC,T3\n", encoding="utf-8"
    )
    [recording] = read_manifest(tmp_path / "study.csv")
    loaded = recording.load()
    assert loaded.ch_names == ["Fp1", "T7"]
    assert loaded.info["bads"] == ["T7"]
    assert loaded.info["sfreq"] == 250.0
    assert channel_plan(loaded).dropped.keys() == {"EKG"}
    np.testing.assert_allclose(loaded.get_data()[:, :1000], raw.get_data()[:2], atol=5e-9)


@pytest.mark.parametrize("ending", ["edf", "bdf", "fif"])
def test_names_and_birthdays_in_headers_are_not_passed_on(tmp_path, make_raw, identified, ending):
    file = tmp_path / f"s1_raw.{ending}"
    WRITERS[ending](identified(make_raw()), file)
    before = mne.io.read_raw(file, verbose="ERROR").info["subject_info"]
    assert before["last_name"] == "Zhang"
    (tmp_path / "study.csv").write_text(f"path,subject,label\n{file.name},01,HC\n")
    loaded = read_manifest(tmp_path / "study.csv")[0].load()
    known = repr(dict(loaded.info)) + repr(vars(loaded))
    for secret in ("Zhang", "P0815", "1980"):
        assert secret not in known


def test_mne_can_hash_and_cut_and_save_what_is_loaded(tmp_path, make_raw):
    names = ["EEG Fp1-LE", "EEG 23A-23R", "Cz"]
    make_raw(names, seconds=8).save(tmp_path / "s1_raw.fif", verbose="ERROR")
    (tmp_path / "study.csv").write_text("path,subject,label\ns1_raw.fif,01,HC\n")
    recordings = read_manifest(tmp_path / "study.csv")
    raw = recordings[0].load().load_data(verbose="error")
    assert hash(raw) == hash(recordings[0].load().load_data(verbose="error"))
    epochs = mne.make_fixed_length_epochs(raw, 4.0, preload=True, verbose="error").pick("eeg")
    epochs.save(tmp_path / "s1-epo.fif", verbose="error")
    saved = mne.read_epochs(tmp_path / "s1-epo.fif", verbose="error")
    settings = FeatureSettings(features=["mean"], epoch=4)
    assert saved.ch_names == extract_table(recordings, settings).table.channels == ["Fp1", "Cz"]


def test_recordings_can_be_sent_to_worker_processes(tmp_path, make_raw):
    make_raw().save(tmp_path / "s1_raw.fif", verbose="ERROR")
    (tmp_path / "study.csv").write_text("path,subject,label\ns1_raw.fif,01,HC\n")
    [recording] = read_manifest(tmp_path / "study.csv")
    assert pickle.loads(pickle.dumps(recording)) == recording
    assert pickle.loads(pickle.dumps(recording)).load().ch_names == ["Fp1", "Cz"]


def test_loading_does_not_read_the_signal_yet(tmp_path, make_raw):
    make_raw().save(tmp_path / "s1_raw.fif", verbose="ERROR")
    (tmp_path / "study.csv").write_text("path,subject,label\ns1_raw.fif,01,HC\n")
    assert not read_manifest(tmp_path / "study.csv")[0].load().preload


@pytest.mark.parametrize("name", ["s1.edf", "s1_raw.fif", "s1.set", "s1.vhdr", "s1.xyz"])
def test_a_file_that_is_no_recording_is_named_when_loaded(write_manifest, name):
    [recording] = read_manifest(write_manifest(f"path,subject,label\n{name},01,HC\n", name))
    with pytest.raises(InputError, match=rf"{name}: (MNE cannot open this recording|the header)"):
        recording.load()


def test_a_bad_channel_that_is_not_there_is_named_when_loaded(tmp_path, make_raw):
    make_raw().save(tmp_path / "s1_raw.fif", verbose="ERROR")
    (tmp_path / "study.csv").write_text("path,subject,label,bads\ns1_raw.fif,01,HC,F99\n")
    with pytest.raises(InputError, match=r"s1_raw\.fif: the bad channel 'F99'"):
        read_manifest(tmp_path / "study.csv")[0].load()


@pytest.mark.parametrize("name", ["s1_raw.fif", "s1_raw.fif.gz"])
def test_a_fif_file_that_leads_in_a_circle_is_refused(tmp_path, make_raw, name):
    make_raw().save(tmp_path / "s1_raw.fif", verbose="ERROR")
    content = bytearray((tmp_path / "s1_raw.fif").read_bytes())
    content[48:56] = (36).to_bytes(4, "big") + (-1).to_bytes(4, "big", signed=True)
    # The second tag names itself as the next; no list of tags.
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "study.csv").write_text(f"path,subject,label\n{name},01,HC\n")
    with pytest.raises(InputError, match=rf"{name}: the file is damaged \(its tags lead"):
        read_manifest(tmp_path / "study.csv")[0].load()


# --- the files that belong to a recording ----------------------------------------------


def test_a_brainvision_recording_is_three_files(tmp_path, make_raw):
    WRITERS["vhdr"](make_raw(), tmp_path / "s1.vhdr")
    assert [path.name for path in files_of(tmp_path / "s1.vhdr")] == [
        "s1.vhdr",
        "s1.eeg",
        "s1.vmrk",
    ]


def test_a_set_file_counts_with_its_fdt(tmp_path):
    for name in ("s1.set", "s1.fdt", "s2.fdt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in files_of(tmp_path / "s1.set")] == ["s1.set", "s1.fdt"]


def test_a_split_fif_recording_is_all_its_parts(tmp_path, make_raw):
    raw = make_raw([f"X{number}" for number in range(60)], seconds=60)
    raw.save(tmp_path / "long_raw.fif", split_size="2MB", verbose="ERROR")
    parts = [path.name for path in files_of(tmp_path / "long_raw.fif")]
    assert parts[:2] == ["long_raw.fif", "long_raw-1.fif"]
    assert len(parts) == len(list(tmp_path.iterdir()))


def test_a_recording_that_is_a_folder_is_all_its_files(tmp_path):
    (tmp_path / "s1.mff" / "deep").mkdir(parents=True)
    (tmp_path / "s1.mff" / "a.bin").write_bytes(b"")
    (tmp_path / "s1.mff" / "deep" / "b.xml").write_bytes(b"")
    assert [path.name for path in files_of(tmp_path / "s1.mff")] == ["a.bin", "b.xml"]


# --- the text -------------------------------------------------------------------------


def test_all_columns_are_read(write_manifest, tmp_path):
    text = (
        "path,subject,label,session,condition,bads,age\n"
        "sub/a.edf,02010002,MDD,pre,eyes-open,Fp1; F7;,30\n"
        "b.edf,2,HC,,,,31\n"
    )
    first, second = read_manifest(write_manifest(text, "sub/a.edf", "b.edf"))
    assert first.subject == "02010002"
    assert first.label == "MDD"
    assert first.source == str(tmp_path / "sub" / "a.edf")
    assert first.session == "pre"
    assert first.condition == "eyes-open"
    assert first.bads == ("Fp1", "F7")
    assert (second.session, second.condition, second.bads) == (None, None, ())


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_spreadsheets_write_is_read(write_manifest, sign, encoding, newline):
    lines = [" Label ,SUBJECT,path,bads", "", 'HC,é1,a.edf,"Fp1;F7"', ",,,"]
    text = newline.join(line.replace(",", sign) for line in lines)
    [recording] = read_manifest(write_manifest(text, "a.edf", encoding=encoding))
    assert (recording.subject, recording.label, recording.bads) == ("é1", "HC", ("Fp1", "F7"))


def test_paths_may_be_absolute_or_written_on_windows(write_manifest, tmp_path):
    text = f"path,subject,label\n{tmp_path / 'a.edf'},1,HC\nsub\\b.edf,2,HC\n"
    first, second = read_manifest(write_manifest(text, "a.edf", "sub/b.edf"))
    assert first.source == str(tmp_path / "a.edf")
    assert second.source == str(tmp_path / "sub" / "b.edf")


def test_one_subject_may_have_two_labels_in_two_sessions(write_manifest):
    text = "path,subject,label,session\na.edf,1,ill,1\nb.edf,1,well,2\n"
    assert len(read_manifest(write_manifest(text, "a.edf", "b.edf"))) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["line 1", "'path'", "found: none"]),
        ("path,subject,label\n", ["no recordings"]),
        ("path,subject,grp\na.edf,1,HC\n", ["line 1", "'label'", "path, subject, grp"]),
        ("path,subjects,label\na.edf,1,HC\n", ["'subject' is missing", "Rename 'subjects'"]),
        ("path,subject,label,label\na.edf,1,HC,HC\n", ["line 1", "'label'", "2 times"]),
        ("path,subject,label,bad\na.edf,1,HC,F7\n", ["line 1", "'bad' looks like 'bads'"]),
        ("path,subject,label\na.edf,1,HC\nb.edf,2,HC\n", ["line 3", "'path'", "b.edf"]),
        ("path,subject,label\na.edf,1,HC\na.edf,,HC\n", ["line 3", "'subject'", "empty"]),
        ("path,subject,label\n\na.edf,1,\n", ["line 3", "'label'", "empty"]),
        ("path,subject,label\na.edf,1\n", ["line 2", "2 cells", "3 columns"]),
        ("path,subject,label\na.edf,1,HC,x\n", ["line 2", "4 cells", "quotes"]),
        (
            'path,subject,label,bads\na.edf,1,HC,"Fp1, F7"\n',
            ["line 2", "'bads'", "semicolons: Fp1;F7"],
        ),
        (
            "path,subject,label,site\na.edf,1,HC,Bern\na.edf,2,HC,\n",
            ["'site'", "1 of 2 cells are empty"],
        ),
        (
            "path,subject,label\na.edf,1,HC\na.edf,1,MDD\n",
            ["line 3", "'label'", "'MDD' here but 'HC'", "line 2"],
        ),
    ],
)
def test_mistakes_are_named_with_line_and_column(write_manifest, text, words):
    path = write_manifest(text, "a.edf")
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_a_manifest_that_is_not_there_or_not_text_is_named(write_manifest, tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv"):
        read_manifest(tmp_path / "gone.csv")
    with pytest.raises(InputError, match="UTF-8"):
        read_manifest(write_manifest("path,subject,label\né,1,2\n", encoding="latin-1"))
    with zipfile.ZipFile(tmp_path / "study.xlsx", "w") as workbook:
        workbook.writestr("x", "y")
    with pytest.raises(InputError, match=r"study\.xlsx: not a text file"):
        read_manifest(tmp_path / "study.xlsx")


def test_a_text_file_of_modma_is_named_with_the_command_that_reads_it(tmp_path):
    (tmp_path / "02010002_still.txt").write_text("1500000 1400000 1300000\n" * 100)
    manifest = tmp_path / "study.csv"
    manifest.write_text("path,subject,label\n02010002_still.txt,s1,HC\n")
    [recording] = read_manifest(manifest)
    with pytest.raises(RecordingError, match=r"text file of MODMA.*modma3 --data"):
        recording.load()


def test_names_of_bids_are_understood_in_a_manifest(tmp_path):
    (tmp_path / "s.edf").write_bytes(b"")
    manifest = tmp_path / "study.csv"
    manifest.write_text("file,participant_id,group\ns.edf,s01,MDD\n")
    [recording] = read_manifest(manifest)
    assert (recording.subject, recording.label) == ("s01", "MDD")
    manifest.write_text("path,participant_id,group,label\ns.edf,s01,first,MDD\n")
    [recording] = read_manifest(manifest)
    assert (recording.label, recording.details["group"]) == ("MDD", "first")


@pytest.mark.parametrize("labelled", [True, False])
def test_a_manifest_is_drafted_from_a_folder_of_recordings(tmp_path, labelled):
    names = ["HC/s1_raw.fif", "HC/s2.edf", "MDD/deep/s3.fif.gz", "MDD/.s4.edf", "MDD/s5_eeg.vhdr"]
    for name in names if labelled else [Path(name).name for name in names]:
        (tmp_path / "eeg" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "eeg" / name).write_bytes(b"")
    frame = draft_manifest(tmp_path / "eeg", tmp_path / "study.csv")
    assert frame["subject"].tolist() == ["s1", "s2", "s3", "s5"]
    assert frame["label"].tolist() == (["HC", "HC", "MDD", "MDD"] if labelled else [""] * 4)
    assert all((tmp_path / path).is_file() for path in frame["path"])
    with pytest.raises(ExistingFileError):
        draft_manifest(tmp_path / "eeg", tmp_path / "study.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no recording"):
        draft_manifest(tmp_path / "empty", tmp_path / "other.csv")
