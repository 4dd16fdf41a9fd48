"""TDBRAIN: files and tables as released, versions 2 and 3.1, with their irregularities."""

import numpy as np
import openpyxl
import pandas as pd
import pytest

from idfsmec.errors import ArgumentError, InputError
from idfsmec.recordings import find_recordings, read_tdbrain
from tests.corpus.sound import write_raw

CAP = "Fp1 Fp2 F7 F3 Fz F4 F8 FC3 FCz FC4 T7 C3 Cz C4 T8 CP3 CPz CP4 P7 P3 Pz P4 P8 O1 Oz O2"
NAMES = [*CAP.split(), "VPVA", "VNVB", "HPHL", "HNHR", "Erbs", "OrbOcc", "Mass"]
COLUMNS = ["DISC/REP", "indication", "formal_status", "sessID", "nrSessions", "gender", "age"]
# By number: discovery or replication, indication, formal status, session, sessions, gender, age.
LINES = [
    ["sub-19681349", "DISCOVERY", "MDD", "UNKNOWN", 1, 2, 0, "43,66"],
    ["sub-19681349", "DISCOVERY", "MDD", "UNKNOWN", 2, 2, 0, "43,91"],  # the same, half a year on
    ["sub-19694366", "DISCOVERY", " mdd/OCD/ADHD", "MDD", 1, 1, 1, "n/a"],
    ["sub-19700001", "DISCOVERY", "HEALTHY", "HEALTHY", 1, 1, 1, "25,1"],
    ["sub-19700002", "DISCOVERY", "ADHD", "ADHD", 1, 1, 1, "9,5"],
    ["sub-19700003", "REPLICATION", "REPLICATION", "REPLICATION", 1, 1, 1, "31,25"],
    ["sub-19700004", "DISCOVERY", "", "UNKNOWN", 1, 1, 0, "31,25"],
    ["sub-19703068", "DISCOVERY", "MDD", "UNKNOWN", 1, 1, 0, "50,0"],
    ["", "DISCOVERY", "MDD", "UNKNOWN", 1, 1, 0, "50,0"],  # a row without id
]


def path_of(root, subject, session=1, task="restEC", ending="vhdr"):
    path = root / subject / f"ses-{session}/eeg/{subject}_ses-{session}_task-{task}_eeg.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_table(path, id_column, lines):
    if path.suffix == ".tsv":
        frame = pd.DataFrame(lines, columns=[id_column, *COLUMNS])
        frame.to_csv(path, sep="\t", index=False)
        return
    book = openpyxl.Workbook()
    for line in [[id_column, *COLUMNS], *lines]:
        book.active.append([cell if cell != "" else None for cell in line])
    book.save(path)


@pytest.fixture
def version2(tmp_path, make_raw):
    """BrainVision files of every subject, and the derivatives as CSV."""
    root = tmp_path / "TDBRAIN"
    for subject in dict.fromkeys(line[0] for line in LINES if line[0]):
        for task in ("restEC", "restEO"):
            raw = make_raw(NAMES, sfreq=500.0, seconds=1, seed=int(subject[4:]))
            write_raw(raw, path_of(root, subject, task=task))
    write_raw(make_raw(NAMES, sfreq=500.0, seconds=1), path_of(root, "sub-19681349", 2))
    header = path_of(root, "sub-19703068")
    for path in (header, path_of(root, "sub-19703068", task="restEO")):
        path.write_text(path.read_text().replace("DataFile=sub-", "DataFile=sub="))
    signals = make_raw(NAMES, sfreq=500.0, seconds=1, seed=7).get_data() * 1e6
    derivative = path_of(root / "derivatives", "sub-19700001", ending="csv")
    pd.DataFrame(signals.T, columns=NAMES).to_csv(derivative, index=False)
    write_table(root / "TDBRAIN_participants_V2.tsv", "participants_ID", LINES)
    return root


def found(recordings):
    return [(r.subject, r.session, r.condition, r.label) for r in recordings]


def test_version_2_is_read_and_who_has_no_label_is_counted(version2):
    with pytest.warns(UserWarning, match="TDBRAIN_participants_V2") as caught:
        recordings = find_recordings("tdbrain", data=version2, condition="restEC")
    assert found(recordings) == [
        ("19681349", "ses-1", "restEC", "MDD"),
        ("19681349", "ses-2", "restEC", "MDD"),
        ("19694366", "ses-1", "restEC", "MDD"),
        ("19700001", "ses-1", "restEC", "HC"),
    ]
    for reason in (
        "1 blinded (REPLICATION) (19700003)",
        "1 with another indication (19700002)",
        "1 without indication (19700004)",
        "1 with a header that names a file that is not there (19703068)",
    ):
        assert reason in str(caught[0].message)
    assert [r.details["age"] for r in recordings[:3]] == ["43.66", "43.91", "n/a"]
    assert recordings[0].details["gender"] == "F"
    raw = recordings[0].load()
    assert raw.ch_names == CAP.split()
    assert raw.info["sfreq"] == 500


@pytest.mark.filterwarnings("ignore:.*left out")
def test_the_formal_status_gives_other_labels(version2):
    recordings = find_recordings("tdbrain", data=version2, labels="formal_status")
    assert {(r.subject, r.label) for r in recordings} == {("19694366", "MDD"), ("19700001", "HC")}
    assert {r.condition for r in recordings} == {"restEC", "restEO"}
    with pytest.raises(ArgumentError, match="use one of indication, formal_status"):
        read_tdbrain(version2, labels="BDI_pre")
    with pytest.raises(ArgumentError, match="restEC, restEO, oddball"):
        read_tdbrain(version2, condition="EC")


def test_derivatives_alone_are_read_as_microvolts(version2, make_raw):
    [recording] = read_tdbrain(version2 / "derivatives")
    signals = make_raw(NAMES, sfreq=500.0, seconds=1, seed=7).get_data()
    raw = recording.load()
    assert raw.ch_names == CAP.split()
    np.testing.assert_allclose(raw.get_data(), signals[:26], rtol=1e-9)


def test_version_3_is_read_with_the_table_beside_its_root(tmp_path, make_raw):
    root = tmp_path / "TDBRAIN_Dataset_V3_1"
    for subject, task in (("88006477", "restEO"), ("88006477", "oddball"), ("19681349", "restEC")):
        raw = make_raw(NAMES[:-2], sfreq=500.0, seconds=1, seed=int(subject))
        write_raw(raw, path_of(root, f"sub-{subject}", task=task, ending="bdf"))
    lines = [[88006477, "DISCOVERY", "HEALTHY ", "HEALTHY", 1, 1, 1, "25,1"]]
    lines += [[19681349, "DISCOVERY", "MDD", "UNKNOWN", 1, 1, 0, 43.5]]
    write_table(tmp_path / "TDBRAIN_participants_V3.xlsx", "TDBRAIN_ID", lines)
    recordings = read_tdbrain(root)
    assert found(recordings) == [
        ("19681349", "ses-1", "restEC", "MDD"),
        ("88006477", "ses-1", "restEO", "HC"),
    ]
    assert [r.details["batch"] for r in recordings] == ["early", "late"]
    assert [r.details["gender"] for r in recordings] == ["F", "M"]
    assert recordings[1].load().ch_names == CAP.split()
    assert found(read_tdbrain(root, condition="oddball"))[0][2] == "oddball"


def test_pickles_and_other_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="no recording of tdbrain"):
        read_tdbrain(tmp_path)
    (tmp_path / "sub-19681349_ses-1_task-restEC_preprocessed.npy").write_bytes(b"\x80")
    with pytest.raises(InputError, match=r"preprocessed\.npy: .*are pickles"):
        read_tdbrain(tmp_path)


def test_the_table_of_participants_is_asked_for_by_its_name(version2):
    table = version2 / "TDBRAIN_participants_V2.tsv"
    table.write_text(table.read_text().replace("participants_ID", "number"))
    with pytest.raises(InputError, match="needs a column 'indication' and one of participants_id"):
        read_tdbrain(version2)
    table.unlink()
    with pytest.raises(InputError, match=r"TDBRAIN_participants_V2\.tsv or .*is missing"):
        read_tdbrain(version2)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_without_any_label_there_is_nothing_to_read(version2):
    with pytest.raises(InputError, match="no recording of a depressed or healthy participant"):
        read_tdbrain(version2, condition="oddball")
