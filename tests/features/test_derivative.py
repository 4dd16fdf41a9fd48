"""A table as a BIDS derivative: names BIDS takes, every column described, all values there."""

import json

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features import extract_table, write_derivative
from idfsmec.recordings import read_manifest
from idfsmec.table import FeatureTable


@pytest.fixture
def table(study):
    lines = study.read_text().splitlines()
    more = ["condition,age,sex,site", "EC,31,f,A", "EC,45,m,A", "EO,,f,B", "EO,52,,B"]
    study.write_text("\n".join(f"{line},{rest}" for line, rest in zip(lines, more, strict=True)))
    return extract_table(read_manifest(study)).table


def features(root):
    return sorted(root.rglob("sub-*_features.tsv"))


def test_every_value_is_there_and_every_column_described(table, tmp_path):
    root = write_derivative(table, tmp_path / "derivatives" / "idfsmec")
    frames = [pd.read_csv(path, sep="\t", na_values="n/a") for path in features(root)]
    assert len(frames) == 4
    np.testing.assert_allclose(
        pd.concat(frames)[list(table.X)].to_numpy(), table.X.to_numpy(), rtol=1e-12
    )
    described = json.loads((root / "desc-idfsmec_features.json").read_text())
    for frame in frames:
        assert set(frame.columns) <= set(described)
        assert (frame["duration"] == 10.0).all()
    assert described["Fp1__ap_alpha"]["Units"] == "uV^2"
    assert "8 to 13 Hz" in described["Fp1__ap_alpha"]["Description"]
    people = pd.read_csv(root / "participants.tsv", sep="\t", na_values="n/a")
    assert people["participant_id"].tolist() == [f"sub-s0{number}" for number in (1, 2, 3, 4)]
    assert people["label"].tolist() == ["HC", "MDD", "HC", "MDD"]
    assert people["site"].tolist() == ["A", "A", "B", "B"]
    assert set(people.columns[1:]) == set(json.loads((root / "participants.json").read_text()))
    reasons = pd.read_csv(next(root.rglob("sub-s04*_reasons.tsv")), sep="\t")
    assert set(reasons["channel"]) == {"C3", "C4"}


def test_odd_names_become_what_bids_allows_and_stay_apart(tmp_path):
    subjects = ["a-b", "a_b", "前額", "c"]
    rows = pd.DataFrame(
        {
            "recording": ["r1", "r2", "r3", "r4"],
            "session": ["pre/1", None, "", "2"],
            "condition": ["task-rest_run-1", "eyes closed", None, "eyes closed"],
            "participant_id": list("wxyz"),
        }
    )
    X = pd.DataFrame({"Cz__own": [1.0, 2.0, 3.0, 4.0]})
    root = write_derivative(
        FeatureTable(X, ["p", "q", "p", "q"], subjects, rows=rows), tmp_path / "d"
    )
    names = [path.relative_to(root).as_posix() for path in features(root)]
    assert len(names) == 4
    assert all(name.isascii() for name in names)
    assert "sub-c/ses-2/eeg/sub-c_ses-2_task-eyesclosed_desc-idfsmec_features.tsv" in names
    people = pd.read_csv(root / "participants.tsv", sep="\t")
    assert people["participant_id"].is_unique
    assert set(people["subject"]) == set(subjects)


def test_recordings_of_one_name_get_files_of_their_own(tmp_path):
    rows = pd.DataFrame({"recording": ["r1", "r2"]})
    X = pd.DataFrame({"Cz__own": [1.0, 2.0]})
    root = write_derivative(FeatureTable(X, ["p", "q"], ["s", "s"], rows=rows), tmp_path / "d")
    assert len(features(root)) == 2
    people = pd.read_csv(root / "participants.tsv", sep="\t", keep_default_na=False)
    assert people["label"].tolist() == ["n/a"]  # a person of two classes has none of their own


def test_a_table_that_knows_nothing_about_its_rows_has_a_file_per_person(tmp_path):
    X = pd.DataFrame({"Cz__own": [1.0, 2.0, 3.0]})
    root = write_derivative(FeatureTable(X, ["p", "q", "q"], ["s", "t", "t"]), tmp_path / "d")
    assert [path.parent.parent.name for path in features(root)] == ["sub-s", "sub-t"]


def test_what_is_there_is_not_replaced_unasked(table, tmp_path):
    root = write_derivative(table, tmp_path / "d")
    with pytest.raises(ExistingFileError):
        write_derivative(table, root)
    write_derivative(table, root, overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        write_derivative(table, tmp_path / "file")
