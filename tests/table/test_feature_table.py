"""FeatureTable: what it accepts, what it refuses, and that files give it back unchanged."""

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable
from idfsmec.table.columns import same_name

FORMATS = ["table.parquet", "table.csv", "table.csv.gz"]


@pytest.fixture
def table():
    X = pd.DataFrame(
        {
            "Fp1__mean": [0.1, 0.2, np.nan, 1 / 3],
            "Fp1__ap_alpha": [1e-13, np.nan, np.nan, 5e-324],
            "Cz__mean": [-0.0, 1e300, 2.0, 3.0],
            "Cz__ap_alpha": [1.0, 2.0, 3.0, 4.0],
        }
    )
    return FeatureTable(
        X,
        pd.Series(["MDD", "MDD", "HC", "HC"]),
        pd.Series(["02010002", "02010002", "02020008", "02030002"]),
        {"sfreq": 250.0, "bands": {"alpha": [8, 13]}, "montage": None},
    )


def make(columns, y=("a", "b"), subjects=("s", "t")):
    return FeatureTable(pd.DataFrame(columns), pd.Series(y), pd.Series(subjects))


# --- what a table knows ---------------------------------------------------------------


def test_channels_and_features_keep_the_order_of_the_columns(table):
    assert table.channels == ["Fp1", "Cz"]
    assert table.features == ["mean", "ap_alpha"]
    assert table.column_channels == ["Fp1", "Fp1", "Cz", "Cz"]


def test_the_last_double_underscore_parts_channel_from_feature():
    table = make({"a__b__mean": [1, 2], "a__b__var": [1, 2]})
    assert table.channels == ["a__b"]
    assert table.features == ["mean", "var"]


def test_a_channel_with_some_features_missing_counts_as_missing_there(table):
    assert table.observed["Fp1"].tolist() == [True, False, False, True]
    assert table.observed["Cz"].all()
    assert (table.observed.dtypes == np.bool_).all()


def test_observed_works_where_the_columns_of_a_channel_are_apart():
    table = make({"a__x": [1, 2], "b__x": [np.nan, 2], "a__y": [1, np.nan]})
    assert table.observed.to_numpy().tolist() == [[True, False], [False, True]]


def test_all_numbers_become_float64_and_rows_go_by_subject():
    X = pd.DataFrame(
        {
            "a__int": [1, 2],
            "a__float32": np.array([0.5, np.nan], dtype=np.float32),
            "a__nullable": pd.array([1, None], dtype="Int64"),
            "a__object": pd.Series([1.5, None], dtype=object),
            "a__bool": [True, False],
        }
    ).set_axis([7, 3])
    table = FeatureTable(X, pd.Series([1, 0], index=[7, 3]), pd.Series(["s", "t"], index=[7, 3]))
    assert (table.X.dtypes == np.float64).all()
    assert table.X.isna().to_numpy().tolist() == [[False] * 5, [False, True, True, True, False]]
    assert table.X.index.tolist() == ["s", "t"]
    for part in (table.y, table.subjects):
        assert part.index.equals(pd.RangeIndex(2))


def test_the_table_does_not_change_with_the_frame_it_was_made_from():
    X = pd.DataFrame({"a__x": [1.0, 2.0]})
    y = pd.Series(["p", "q"])
    table = FeatureTable(X, y, pd.Series(["s", "t"]))
    X.loc[0, "a__x"] = 99.0
    y.loc[0] = "q"
    assert table.X["a__x"].tolist() == [1.0, 2.0]
    assert table.y[0] == "p"


@pytest.mark.parametrize(
    ("given_values", "dtype"),
    [
        (pd.Series([1, 0], dtype="Int64"), np.int64),
        (pd.Series([1.0, 0.0]), np.int64),
        (pd.Series([1.5, 0.0]), np.float64),
        (pd.Series([True, False], dtype=object), np.bool_),
        (pd.Series(["a", "b"], dtype="category"), pd.Series(["a"]).dtype),
        (pd.Series(["a", "b"], dtype=object), pd.Series(["a"]).dtype),
        (["a", "b"], pd.Series(["a"]).dtype),
        (np.array(["a", "b"]), pd.Series(["a"]).dtype),
    ],
)
def test_labels_are_brought_to_one_of_four_dtypes(given_values, dtype):
    table = FeatureTable(pd.DataFrame({"a__x": [1, 2]}), given_values, ["s", "t"])
    assert table.y.dtype == dtype


def test_info_holds_what_json_holds():
    info = {"sfreq": np.float32(250), "bads": ("Fp1",), "n": np.int64(3), "ok": np.bool_(True)}
    table = FeatureTable(pd.DataFrame({"a__x": [1.0]}), ["p"], ["s"], info)
    assert table.info == {"sfreq": 250.0, "bads": ["Fp1"], "n": 3, "ok": True}
    json.dumps(table.info)


def test_the_representation_is_short(table):
    assert repr(table) == (
        "FeatureTable(4 samples of 3 subjects; 2 channels x 2 features; "
        "labels HC: 2, MDD: 2; 25.0% missing)"
    )


def test_the_representation_stays_short_with_many_labels():
    table = make({"a__x": range(50)}, y=range(50), subjects=["s"] * 50)
    assert "labels of 50 kinds" in repr(table)


def test_a_table_can_be_pickled_for_worker_processes(table):
    assert pickle.loads(pickle.dumps(table)).equals(table)


def test_a_table_is_frozen(table):
    with pytest.raises(AttributeError):
        table.X = table.X


# --- what a table refuses -------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({"mean": [1, 2]}, ["'mean'", "<channel>__<feature>"]),
        ({"__mean": [1, 2]}, ["'__mean'"]),
        ({"Fp1__": [1, 2]}, ["'Fp1__'"]),
        ({3: [1, 2]}, ["3", "not text"]),
        ({"a__x": [1, 2], "b__y": [1.0, "bad"]}, ["'b__y'", "'bad'", "row 1"]),
        ({"a__x": ["1", "2"]}, ["'a__x'", "'1'", "row 0"]),
        ({"a__x": [1j, 2]}, ["'a__x'", "row 0"]),
        ({"a__x": [1, 2], "b__y": [1, -np.inf]}, ["'b__y'", "infinity", "row 1"]),
        ({}, ["no feature columns"]),
        ({"a__x": []}, ["no rows"]),
    ],
)
def test_bad_features_are_refused_by_name(X, words):
    with pytest.raises(InputError) as caught:
        make(X)
    for word in words:
        assert word in str(caught.value)


def test_a_column_that_is_there_twice_is_refused_by_name():
    X = pd.DataFrame([[1.0, 2.0]], columns=["a__x", "a__x"])
    with pytest.raises(InputError, match=r"'a__x' occurs more than once"):
        FeatureTable(X, ["p"], ["s"])


def test_an_array_instead_of_a_frame_is_refused():
    with pytest.raises(InputError, match="DataFrame"):
        FeatureTable(np.zeros((2, 2)), ["p", "q"], ["s", "t"])


@pytest.mark.parametrize(
    ("y", "subjects", "words"),
    [
        (["a"], ["s", "t"], "1 labels for 2 rows"),
        (["a", "b"], ["s", "t", "u"], "3 subjects for 2 rows"),
        (["a", None], ["s", "t"], "label is missing in row 1"),
        ([1.0, np.nan], ["s", "t"], "label is missing in row 1"),
        (["a", "b"], [" ", "t"], "subject is missing in row 0"),
        (["a", 1], ["s", "t"], "labels are of kind 'mixed-integer'"),
        ([1.0, np.inf], ["s", "t"], "label is infinite"),
        (["a", "b"], [1, 2**63], "subject is beyond 64 bits"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), ["s", "t"], "labels are of kind 'datetime"),
        (pd.Series(["a", "b"], index=[1, 0]), ["s", "t"], "labels have another index than X"),
        (pd.Series(["a", None], dtype="category"), ["s", "t"], "label is missing in row 1"),
    ],
)
def test_bad_labels_and_subjects_are_refused(y, subjects, words):
    with pytest.raises(InputError, match=words):
        FeatureTable(pd.DataFrame({"a__x": [1.0, 2.0]}), y, subjects)


def test_info_that_no_file_could_hold_is_refused_by_its_key():
    with pytest.raises(InputError, match=r"info\['raw'\]\['made'\] holds a object"):
        FeatureTable(pd.DataFrame({"a__x": [1.0]}), ["p"], ["s"], {"raw": {"made": object()}})
    with pytest.raises(InputError, match="key 3 is not text"):
        FeatureTable(pd.DataFrame({"a__x": [1.0]}), ["p"], ["s"], {3: "x"})


# --- files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_gives_the_table_back_unchanged(table, tmp_path, name):
    path = table.write(tmp_path / "new" / name)
    back = FeatureTable.read(path)
    assert back.equals(table)
    assert np.signbit(back.X["Cz__mean"].iloc[0])
    assert back.subjects[0] == "02010002"
    assert back.info == table.info


def test_a_name_without_an_ending_is_a_parquet_file(table, tmp_path):
    assert pq.read_table(table.write(tmp_path / "table")).num_rows == 4


# Text that a table can hold: anything but surrogates, control characters and blanks only.
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    str.strip
)
# A feature that begins with "_" would hand it to its channel.
column_names = st.tuples(words, words.filter(lambda word: word[0] != "_")).map("__".join)
label_lists = st.sampled_from(
    [words, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(-10, 10)]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 5))
    names = draw(st.lists(column_names, min_size=1, max_size=4, unique=True))
    cells = st.floats(-1e300, 1e300) | st.just(float("nan"))
    column = st.lists(cells, min_size=n_rows, max_size=n_rows)
    X = pd.DataFrame({name: draw(column) for name in names}, dtype=float)
    groups = [
        pd.Series(draw(st.lists(draw(label_lists), min_size=n_rows, max_size=n_rows)))
        for _ in range(2)
    ]
    # What only looks different is refused, as other tests say.
    for many in (names, [name.rpartition("__")[0] for name in names], *groups):
        folded = {same_name(one).replace(" ", "") for one in many if isinstance(one, str)}
        assume(len(folded) == len({one for one in many if isinstance(one, str)}))
    return FeatureTable(X, *groups, draw(st.dictionaries(words, json_values, max_size=3)))


@pytest.mark.parametrize("name", FORMATS)
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(table=tables())
def test_any_table_survives_any_file(tmp_path, name, table):
    back = FeatureTable.read(table.write(tmp_path / name))
    assert back.equals(table)
    assert back.y.dtype == table.y.dtype
    assert back.subjects.dtype == table.subjects.dtype
    assert back.channels == table.channels


@pytest.mark.parametrize("name", FORMATS)
def test_text_that_looks_like_something_else_stays_text(tmp_path, name):
    odd = ["NA", "nan", "01", "2", "True", "1e5", "a,b", 'say "hi"', "two\nlines", "a  b"]
    table = FeatureTable(pd.DataFrame({"a__x": range(len(odd))}), odd, odd[::-1])
    back = FeatureTable.read(table.write(tmp_path / name))
    assert back.y.tolist() == odd
    assert back.subjects.tolist() == odd[::-1]


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_table_gives_the_same_bytes(table, tmp_path, name):
    first = table.write(tmp_path / "one" / name).read_bytes()
    assert table.write(tmp_path / "two" / name).read_bytes() == first


def test_the_format_version_is_in_the_metadata(table, tmp_path):
    metadata = pq.read_schema(table.write(tmp_path / "t.parquet")).metadata
    assert json.loads(metadata[b"idfsmec"])["format_version"] == 1
    table.write(tmp_path / "t.csv")
    assert json.loads((tmp_path / "t.csv.info.json").read_text())["format_version"] == 1


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_file_of_a_newer_format_is_refused(table, tmp_path, name, monkeypatch):
    monkeypatch.setattr("idfsmec.table.files.FORMAT_VERSION", 99)
    path = FeatureTable(table.X, table.y, table.subjects, sites=["Bern"] * 4).write(
        tmp_path / name
    )
    monkeypatch.undo()
    with pytest.raises(InputError, match=rf"{name}: .*version 99.*upgrade"):
        FeatureTable.read(path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_write_leaves_the_old_table_and_no_rubbish(table, tmp_path, name, monkeypatch):
    path = table.write(tmp_path / name)
    before = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())

    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        table.take([0]).write(path)
    assert sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["table.xlsx", "table.txt", "table.pkl"])
def test_other_endings_are_refused_for_reading_and_writing(table, tmp_path, name):
    with pytest.raises(InputError, match=r"ends in \.parquet, \.csv or \.csv\.gz"):
        table.write(tmp_path / name)
    (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=name):
        FeatureTable.read(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv: there is no such file"):
        FeatureTable.read(tmp_path / "gone.csv")


# --- tables made by hand --------------------------------------------------------------


def read_text(tmp_path, text, name="hand.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return FeatureTable.read(path)


def test_a_plain_csv_needs_nothing_else(tmp_path):
    table = read_text(tmp_path, "subject,label,Fp1__mean,Cz__mean\n01,1,0.5,\n02,0,,1e-3\n")
    assert table.subjects.tolist() == ["01", "02"]
    assert table.y.tolist() == [1, 0]
    assert table.y.dtype == np.int64
    assert table.observed.to_numpy().tolist() == [[True, False], [False, True]]
    assert table.info == {}


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1.0", "0.0"], [1, 0]),
        (["-1", "1"], [-1, 1]),
        (["1", "x"], ["1", "x"]),
        (["01", "02"], ["01", "02"]),
        (["1.5", "2.0"], ["1.5", "2.0"]),
    ],
)
def test_labels_of_a_plain_csv_are_integers_only_if_all_are(tmp_path, cells, labels):
    lines = [f"s{row},{cell},1" for row, cell in enumerate(cells)]
    table = read_text(tmp_path, "\n".join(["subject,label,a__x", *lines]))
    assert table.y.tolist() == labels


def test_the_columns_subject_and_label_may_stand_anywhere(tmp_path):
    table = read_text(tmp_path, "Fp1__mean,label,subject\n0.5,a,1\n")
    assert (table.y[0], table.subjects[0], table.X.iloc[0, 0]) == ("a", "1", 0.5)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize(
    "text",
    [
        '"","subject","label","Fp1__mean","Cz__mean"\n"1","é1","a",0.5,NA\n"2","NA","b",NaN,2\n',
        "subject;label;Fp1__mean;Cz__mean\né1;a;0,5;\nNA;b;;2,0\n",
        "subject\tlabel\tFp1__mean\tCz__mean\r\né1\ta\t0.5\t\r\nNA\tb\t\t2\r\n",
    ],
    ids=["R-write.csv", "semicolons", "tabs"],
)
def test_csv_dialects_of_r_and_spreadsheets_are_read(tmp_path, text, encoding):
    if text.startswith('""'):
        quoted_na_is_text = read_text(tmp_path, text, encoding=encoding)
        assert quoted_na_is_text.subjects.tolist() == ["é1", "NA"]
        X = quoted_na_is_text.X
    else:
        X = read_text(tmp_path, text.replace("NA", "x"), encoding=encoding).X
    expected = pd.DataFrame({"Fp1__mean": [0.5, np.nan], "Cz__mean": [np.nan, 2.0]})
    pd.testing.assert_frame_equal(X.reset_index(drop=True), expected)


@pytest.mark.parametrize("first", ["", "s0;a;;\n", "s0;a;1;2\ns0;a;;\n"])
def test_decimal_commas_are_seen_behind_empty_and_whole_rows(tmp_path, first):
    table = read_text(tmp_path, f"subject;label;a__x;b__x\n{first}s1;a;0,5;1,5e-3\n")
    assert table.X.iloc[-1].tolist() == [0.5, 0.0015]


def test_a_table_of_pandas_with_its_index_is_read(table, tmp_path):
    frame = table.X.reset_index().assign(label=table.y).set_axis(list("wxyz"))
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        back = FeatureTable.read(tmp_path / name)
        pd.testing.assert_frame_equal(back.X, table.X)
        assert back.subjects.tolist() == table.subjects.tolist()


def test_subjects_in_the_index_of_pandas_are_found(table, tmp_path):
    frame = table.X.reset_index().assign(label=table.y)
    frame["epoch"] = range(4)
    frame.set_index(["subject", "epoch"]).to_parquet(tmp_path / "t.parquet")
    assert FeatureTable.read(tmp_path / "t.parquet").subjects.equals(table.subjects)


def test_a_parquet_file_of_polars_is_read(table, tmp_path):
    frame = pl.DataFrame(
        {
            "subject": table.subjects.tolist(),
            "label": pl.Series(table.y.tolist(), dtype=pl.Categorical),
            "Fp1__mean": pl.Series([1, None, 3, 4], dtype=pl.Int32),
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    back = FeatureTable.read(tmp_path / "t.parquet")
    assert back.y.tolist() == table.y.tolist()
    np.testing.assert_array_equal(back.X["Fp1__mean"], [1, np.nan, 3, 4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["'subject'", "has 0"]),
        ("subject,group,a__x\n1,p,1\n", ["'label'", "has 0", "'group'"]),
        ("subject,label,label,a__x\n1,p,p,1\n", ["'label'", "has 2"]),
        ("subject,label\n1,p\n", ["no feature columns"]),
        ("subject,label,a__x\n", ["no rows"]),
        ("subject,label,a__x,age\n1,p,30,1\n", ["'age'", "<channel>__<feature>"]),
        ("subject,label,a__x,a__x\n1,p,3,1\n", ["'a__x'", "more than once"]),
        ("subject,label,a__x\n1,p,3\n2,q,three\n", ["'a__x'", "'three'", "line 3"]),
        ("subject,label,a__x\n1,p,3\n2,q,inf\n", ["'a__x'", "infinity", "line 3"]),
        ("subject,label,a__x\n1,p,3\n2,,3\n", ["label is missing in line 3"]),
        ("subject,label,a__x\nNA,p,3\n", ["subject is missing in line 2"]),
        ("subject,label,a__x,b__x\n1,p,3,4\n2,q,3\n", ["not a readable CSV", "got 3"]),
        ("subject,label,a__x\n1,p,3,4\n", ["not a readable CSV", "got 4"]),
    ],
)
def test_mistakes_in_a_csv_are_named_with_file_and_place(tmp_path, text, words):
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "hand.csv"))
    for word in words:
        assert word in str(caught.value)


def test_a_csv_in_another_encoding_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a readable CSV"):
        read_text(tmp_path, "subject,label,a__x\né,p,1\n", encoding="latin-1")


def test_a_file_cut_off_in_the_middle_is_refused(table, tmp_path):
    for name in ("t.parquet", "t.csv.gz"):
        path = table.write(tmp_path / name)
        path.write_bytes(path.read_bytes()[:-12])
        with pytest.raises(InputError, match=f"{name}: not a readable"):
            FeatureTable.read(path)


def test_a_sidecar_that_no_longer_fits_is_named(table, tmp_path):
    path = FeatureTable(table.X, [1, 1, 0, 0], table.subjects).write(tmp_path / "t.csv")
    path.write_text("subject,label,a__x\n1,MDD,0.5\n")
    with pytest.raises(InputError, match=r"t\.csv: .*info\.json.*delete"):
        FeatureTable.read(path)
    for rubbish in ("{", "[]", '{"info": {}}', '{"format_version": 1, "info": []}'):
        (tmp_path / "t.csv.info.json").write_text(rubbish)
        with pytest.raises(InputError, match="damaged"):
            FeatureTable.read(path)


def test_a_folder_named_like_a_column_adds_none(table, tmp_path):
    path = table.write(tmp_path / "session=1" / "t.parquet")
    assert FeatureTable.read(path).equals(table)


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path):
    arrays = [pa.array(["s"]), pa.array(["p"]), pa.array([1.0]), pa.array([2.0])]
    names = ["subject", "label", "a__x", "a__x"]
    pq.write_table(pa.Table.from_arrays(arrays, names=names), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: .*a__x"):
        FeatureTable.read(tmp_path / "t.parquet")


def test_mistakes_in_a_parquet_file_are_named(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pa.table({"subject": ["s"], "label": ["p"], "a__x": ["text"]})
    pq.write_table(frame, path)
    with pytest.raises(InputError, match=r"t\.parquet: Column 'a__x' holds 'text' in row 0"):
        FeatureTable.read(path)
    path.write_bytes(gzip.compress(b"no table"))
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet"):
        FeatureTable.read(path)


# --- choosing and joining -------------------------------------------------------------


def test_channels_come_in_the_order_asked_for(table):
    chosen = table.select_channels(["Cz", "Fp1"])
    assert list(chosen.X) == ["Cz__mean", "Cz__ap_alpha", "Fp1__mean", "Fp1__ap_alpha"]
    assert chosen.info == table.info
    assert table.select_channels(["Cz"]).channels == ["Cz"]


def test_features_and_subjects_keep_their_order(table):
    chosen = table.take(table.subjects.isin(["02030002", "02010002"]))
    assert chosen.subjects.tolist() == ["02010002", "02010002", "02030002"]
    assert chosen.X.index.tolist() == chosen.subjects.tolist()
    assert chosen.y.index.equals(pd.RangeIndex(3))


def test_rows_are_taken_by_position_or_mask(table):
    assert table.take([3, 0]).subjects.tolist() == ["02030002", "02010002"]
    assert table.take(np.array([False, True, False, False])).X["Cz__mean"].tolist() == [1e300]


def test_a_choice_that_leaves_nothing_is_refused(table):
    for rows in ([], [False] * 4):
        with pytest.raises(InputError, match=r"No samples are left|no rows"):
            table.take(rows)


def test_unknown_channels_are_refused_with_a_guess(table):
    with pytest.raises(InputError, match=r"no channel 'FPP1', did you mean 'Fp1'"):
        table.select_channels(["FPP1"])


def test_one_name_instead_of_a_list_is_refused(table):
    with pytest.raises(InputError, match=r"\['Cz'\]"):
        table.select_channels("Cz")


def test_what_a_table_lacks_is_missing_after_concat(table):
    other = FeatureTable(
        pd.DataFrame({"Pz__mean": [7.0], "Cz__mean": [8.0], "Cz__extra": [9.0]}),
        ["HC"],
        ["new"],
        {"sfreq": 500.0, "bands": {"alpha": [8, 13]}},
    )
    both = FeatureTable.concat([table, other])
    assert list(both.X) == [*table.X, "Cz__extra", "Pz__mean"]
    assert both.X.loc["new"].dropna().to_dict() == {
        "Cz__mean": 8.0,
        "Cz__extra": 9.0,
        "Pz__mean": 7.0,
    }
    assert not both.observed.loc[4, ["Fp1", "Cz"]].any()
    assert both.info == {
        "bands": {"alpha": [8, 13]},
        "parts": [{"sfreq": 250.0, "montage": None}, {"sfreq": 500.0}],
    }


def test_concat_of_the_parts_of_a_table_is_the_table(table):
    assert FeatureTable.concat([table.take([0]), table.take([1, 2]), table.take([3])]).equals(
        table
    )


def test_concat_refuses_labels_of_different_types_and_nothing_at_all(table):
    other = FeatureTable(table.X, [0, 1, 0, 1], table.subjects)
    with pytest.raises(InputError, match="labels of different types"):
        FeatureTable.concat([table, other])
    with pytest.raises(InputError, match="no tables"):
        FeatureTable.concat([])


def test_importing_the_table_does_not_wait_for_mne():
    code = "import sys, idfsmec.table; sys.exit('mne' in sys.modules)"
    path = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    assert subprocess.run([sys.executable, "-c", code], env=path, check=False).returncode == 0


# --- in a notebook -----------------------------------------------------------------------


def small_table(channel="F3", missing=True):
    X = pd.DataFrame(np.arange(8.0).reshape(4, 2), columns=[f"{channel}__a", "Cz__a"])
    if missing:
        X.iloc[0, 0] = np.nan
    labels, subjects = pd.Series(["HC", "HC", "MDD", "MDD"]), pd.Series(["s1", "s1", "s2", "s2"])
    return FeatureTable(X, labels, subjects, {})


def test_subjects_travel_with_the_features(table):
    assert table.X.index.name == "subject"
    assert table.X.index.tolist() == table.subjects.tolist()
    again = FeatureTable(table.X, table.y, table.subjects, table.info)
    assert again.equals(table)
    part = table.take([3, 0])
    assert part.X.index.tolist() == part.subjects.tolist() == table.subjects[[3, 0]].tolist()


# --- other shapes -------------------------------------------------------------------------


def test_a_frame_has_what_is_known_about_samples_then_the_features(table):
    frame = table.to_frame()
    assert frame.columns.tolist() == ["subject", "label", *table.X.columns]
    assert frame["subject"].tolist() == table.subjects.tolist()
    assert frame.index.equals(pd.RangeIndex(4))
    with_sites = FeatureTable(table.X, table.y, table.subjects, sites=["Bern"] * 4)
    assert with_sites.to_frame().columns.tolist()[:3] == ["subject", "label", "site"]


def test_a_feature_is_taken_by_its_column(table):
    assert table["Cz__mean"].equals(table.X["Cz__mean"])
    with pytest.raises(InputError, match=r"no column 'Cz__men', did you mean 'Cz__mean'"):
        table["Cz__men"]


def test_a_table_by_subject_has_the_means_of_the_samples_that_have_a_channel(table):
    rows = pd.DataFrame({"age": [30, 30, 40, 50], "epoch": [0, 1, 0, 0]})
    given = FeatureTable(table.X, table.y, table.subjects, sites=["Bern"] * 4, rows=rows)
    by_subject = given.by_subject()
    assert by_subject.subjects.tolist() == ["02010002", "02020008", "02030002"]
    assert by_subject.y.tolist() == ["MDD", "HC", "HC"]
    assert by_subject.sites.tolist() == ["Bern"] * 3
    assert by_subject.rows.columns.tolist() == ["age"]
    assert by_subject["Fp1__mean"].tolist()[0] == pytest.approx(0.15)
    assert by_subject["Fp1__ap_alpha"].tolist()[0] == 1e-13  # of the one that has it
    assert by_subject.observed["Fp1"].tolist() == [True, False, True]
    assert table.by_subject().rows is None
