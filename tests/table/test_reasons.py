"""Why a cell is empty: every one has a reason, kept with the table through files and choices."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.features import extract_table, extract_to_file
from idfsmec.recordings import read_manifest
from idfsmec.table import FeatureTable
from idfsmec.table.columns import same_name

COLUMNS = ["recording", "epoch", "channel", "reason"]


@pytest.fixture
def table():
    X = pd.DataFrame({"Fp1__a": [np.nan, 2.0, np.nan], "Cz__a": [1.0, np.nan, 3.0]})
    rows = pd.DataFrame({"recording": ["a", "a", "b"], "epoch": [0, 3, 0]})
    reasons = pd.DataFrame(
        [
            ("a", 0, "Fp1", "marked bad"),
            ("a", 0, "Fp1", "flat"),
            ("a", 3, "Cz", "flat"),
            ("b", 0, "Fp1", "not in the recording"),
            ("b", 9, "Fp1", "an epoch that is not there"),
        ],
        columns=COLUMNS,
    )
    return FeatureTable(X, ["HC", "HC", "MDD"], ["s", "s", "t"], rows=rows, reasons=reasons)


def explained(table):
    """Cells of a table that have a reason, as a mask of rows by channels."""
    keys = table.rows[["recording", "epoch"]].apply(tuple, axis=1)
    known = set(
        table.reasons[["recording", "epoch", "channel"]].itertuples(index=False, name=None)
    )
    return np.array([[(*key, channel) in known for channel in table.channels] for key in keys])


def test_every_empty_cell_of_a_study_has_a_reason_and_no_other_one(study):
    table = extract_table(read_manifest(study)).table
    np.testing.assert_array_equal(explained(table), ~table.observed.to_numpy())
    of_s04 = table.reasons[table.reasons["recording"] == "s04"]
    assert set(of_s04["reason"]) == {"marked bad"}
    assert set(of_s04["channel"]) == {"C3", "C4"}
    absent = table.reasons[table.reasons["reason"] == "not in the recording"]
    assert absent.groupby("recording")["channel"].unique().map(sorted).to_dict() == {
        "s02_raw": ["Fz", "Pz"],
        "s03": ["O1"],
    }


def test_the_summary_names_the_channels_that_recordings_lack(study):
    said = extract_table(read_manifest(study)).summary()
    assert "not in the recording: 8 channel epochs (Fz 3, Pz 3, O1 2)" in said


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_a_file_beside_the_table_keeps_them(table, tmp_path, name):
    path = table.write(tmp_path / name)
    beside = path.with_name(f"{name}.reasons.tsv.gz")
    assert pd.read_csv(beside, sep="\t").columns.tolist() == COLUMNS
    assert FeatureTable.read(path).equals(table)
    beside.unlink()
    assert FeatureTable.read(path).reasons is None


def test_reasons_of_another_table_are_left_aside_and_stale_ones_removed(table, tmp_path):
    path = table.write(tmp_path / "t.parquet")
    beside = path.with_name("t.parquet.reasons.tsv.gz")
    table.take([0]).write(tmp_path / "other.parquet")
    (tmp_path / "other.parquet.reasons.tsv.gz").replace(beside)
    with pytest.warns(UserWarning, match="was not written with t.parquet"):
        assert FeatureTable.read(path).reasons is None
    FeatureTable(table.X, table.y, table.subjects).write(path)
    assert not beside.exists()


def test_they_follow_the_rows_and_channels_that_are_left(table):
    assert len(table.reasons) == 4
    assert table.take([1]).reasons.to_numpy().tolist() == [["a", 3, "Cz", "flat"]]
    assert table.select_channels(["Cz"]).reasons["channel"].tolist() == ["Cz"]
    assert table.take([1]).select_channels(["Fp1"]).reasons is None


def test_joined_tables_have_those_of_both_and_of_what_one_lacks(table):
    parts = [table.take([0, 1]), table.take([2])]
    assert FeatureTable.concat(parts).equals(table)
    other = FeatureTable(
        pd.DataFrame({"Cz__a": [1.0]}),
        ["HC"],
        ["u"],
        rows=pd.DataFrame({"recording": ["a"], "epoch": [0]}),
    )
    both = FeatureTable.concat([table, other])
    assert both.reasons.to_numpy().tolist()[-1] == ["a-2", 0, "Fp1", "not in the table"]
    np.testing.assert_array_equal(explained(both), ~both.observed.to_numpy())


def test_without_rows_nobody_could_tell_which_are_meant(table):
    assert FeatureTable(table.X, table.y, table.subjects, reasons=table.reasons).reasons is None
    with pytest.raises(InputError, match="recording, epoch, channel, reason"):
        FeatureTable(table.X, table.y, table.subjects, reasons=table.reasons[["epoch"]])


@pytest.mark.slow
def test_a_resumed_run_gives_the_same_reasons(study, tmp_path):
    recordings = read_manifest(study)
    first = extract_table(recordings, parts=tmp_path / "parts").table
    again = extract_table(recordings, parts=tmp_path / "parts").table
    assert again.reasons.equals(first.reasons)
    extract_to_file(recordings, tmp_path / "t.csv")
    assert FeatureTable.read(tmp_path / "t.csv").reasons.equals(first.reasons)


odd = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda text: text.strip() == text and "\0" not in text
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(name=odd, reason=odd)
def test_any_name_and_reason_survives_the_file(tmp_path, name, reason):
    cell = pd.DataFrame([(name, 1, name, reason)], columns=COLUMNS)
    X = pd.DataFrame({f"{name}__x": [np.nan], "another__x": [1.0]})
    rows = pd.DataFrame({"recording": [name], "epoch": [1]})
    assume("__" not in name and not name.endswith("_") and same_name(name) != "another")
    table = FeatureTable(X, ["a"], ["b"], rows=rows, reasons=cell)
    assert len(table.reasons) == 1
    assert FeatureTable.read(table.write(tmp_path / "t.parquet")).equals(table)
