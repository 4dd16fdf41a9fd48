"""Sites, and what a table knows about its rows: kept through files, choices and joins."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable
from idfsmec.table.feature_table import table_digest

FORMATS = ["table.parquet", "table.csv", "table.csv.gz"]


def known(n=4):
    return pd.DataFrame(
        {
            "age": [31.0, np.nan, 45.5, 50.0][:n],
            "recording": ["a", "a", "b", "b"][:n],
            "condition": ["open", None, "closed", "NA"][:n],
            "epoch": [0, 2, 0, 1][:n],
            "onset": [0.0, 20.0, 0.0, 1 / 3][:n],
            "right_handed": [True, False, True, True][:n],
            "score": [3, 4, 5, 2**60][:n],
        }
    )


@pytest.fixture
def table():
    X = pd.DataFrame({"Fp1__a": [1.0, np.nan, 3.0, 4.0], "Cz__a": [1.0, 2.0, 3.0, 4.0]})
    recordings = [
        {"recording": "a", "subject": "s1", "rows": 2, "facts": {"sfreq": 250.0}},
        {"recording": "b", "subject": "s2", "rows": 2, "facts": {"sfreq": 500.0}},
    ]
    return FeatureTable(
        X,
        ["HC", "HC", "MDD", "MDD"],
        ["s1", "s1", "s2", "s2"],
        {"sfreq": 250.0, "recordings": recordings},
        sites=["Bern", "Bern", "Lyon", "Lyon"],
        rows=known(),
    )


def test_known_columns_come_first_and_blank_text_is_missing(table):
    assert list(table.rows) == [
        *("recording", "condition", "epoch", "onset"),
        *("age", "right_handed", "score"),
    ]
    assert table.rows["condition"].isna().tolist() == [False, True, False, False]
    blank = FeatureTable(
        table.X, table.y, table.subjects, rows=pd.DataFrame({"sex": list("f  m")})
    )
    assert blank.rows["sex"].isna().tolist() == [False, True, True, False]
    assert "at 2 sites" in repr(table)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_gives_sites_and_rows_back_unchanged(table, tmp_path, name):
    back = FeatureTable.read(table.write(tmp_path / name))
    assert back.equals(table)
    assert back.rows.dtypes.equals(table.rows.dtypes)
    assert back.sites.tolist() == ["Bern", "Bern", "Lyon", "Lyon"]


def test_they_stand_between_label_and_features(table, tmp_path):
    header = (table.write(tmp_path / "t.csv")).read_text().splitlines()[0].replace('"', "")
    assert header.split(",")[:4] == ["subject", "label", "site", "recording"]
    assert header.endswith("score,Fp1__a,Cz__a")


def test_only_a_table_that_needs_it_has_the_new_version(table, tmp_path):
    def version(one):
        metadata = pq.read_schema(one.write(tmp_path / "t.parquet")).metadata
        return json.loads(metadata[b"idfsmec"])["format_version"]

    assert version(table) == 2
    assert version(FeatureTable(table.X, table.y, table.subjects)) == 1


cells = st.sampled_from(
    [
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
        st.none() | st.text("ab01. ", max_size=3),
        st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-9, 9),
        st.booleans(),
        st.none() | st.booleans(),
        st.none() | st.floats(allow_infinity=False),
    ]
)
names = st.text("abcde _1", min_size=1, max_size=4).filter(lambda name: "__" not in name)


@st.composite
def frames(draw):
    n = draw(st.integers(1, 4))
    columns = draw(st.lists(names, max_size=3, unique=True))
    columns += draw(st.lists(st.sampled_from(["session", "condition"]), max_size=2, unique=True))
    return pd.DataFrame(
        {name: draw(st.lists(draw(cells), min_size=n, max_size=n)) for name in columns},
        index=range(n),
    )


@pytest.mark.parametrize("name", FORMATS)
@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=frames())
@example(rows=pd.DataFrame({"sex": [" ", ""], "session": ["", None]}))
def test_whatever_is_known_about_rows_survives_any_file(tmp_path, name, rows):
    X = pd.DataFrame({"Fp1__x": np.arange(len(rows))})
    groups = ["a"] * len(rows)
    try:
        table = FeatureTable(X, groups, groups, rows=rows)
    except InputError as error:
        if "differ only in case" not in str(error):
            raise
        reject()  # such as the sessions "1" and "01"
    back = FeatureTable.read(table.write(tmp_path / name))
    assert back.equals(table)
    halves = [table.take([row]) for row in range(len(rows))]
    joined = FeatureTable.concat(halves).rows
    assert (joined is None) == (table.rows is None)
    if joined is not None:
        assert list(joined) == list(table.rows)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"label": [1, 2]}, "give column 'label' as y= of the table"),
        ({"a__b": [1, 2]}, "'a__b'"),
        ({3: [1, 2]}, "column 3 must be text"),
        ({"age": [1, 2, 3]}, "3 lines for 2 rows"),
        ({"epoch": ["first", "second"]}, "'epoch' must hold numbers"),
    ],
)
def test_what_no_file_could_hold_is_refused(rows, words):
    X = pd.DataFrame({"Fp1__x": [1.0, 2.0]})
    with pytest.raises(InputError, match=words):
        FeatureTable(X, ["a", "b"], ["s", "t"], rows=pd.DataFrame(rows))
    with pytest.raises(InputError, match="DataFrame"):
        FeatureTable(X, ["a", "b"], ["s", "t"], rows=[1, 2])
    with pytest.raises(InputError, match="another index"):
        FeatureTable(X, ["a", "b"], ["s", "t"], rows=pd.DataFrame({"age": [1, 2]}, index=[1, 0]))
    with pytest.raises(InputError, match="site is missing in row 1"):
        FeatureTable(X, ["a", "b"], ["s", "t"], sites=["Bern", None])


def test_samples_taken_keep_what_is_known_about_them(table):
    part = table.take([3, 0])
    assert part.sites.tolist() == ["Lyon", "Bern"]
    assert part.rows["onset"].tolist() == [1 / 3, 0.0]
    assert part.rows.index.equals(pd.RangeIndex(2))
    assert table.select_channels(["Cz"]).rows.equals(table.rows)


def test_the_list_of_recordings_follows_the_samples(table):
    assert [
        (one["recording"], one["rows"]) for one in table.take([1, 2, 3]).info["recordings"]
    ] == [("a", 1), ("b", 2)]
    [left] = table.take(table.subjects == "s2").info["recordings"]
    assert left == {"recording": "b", "subject": "s2", "rows": 2, "facts": {"sfreq": 500.0}}


def test_the_list_of_an_old_table_goes_where_it_cannot_be_shortened(table):
    old = FeatureTable(
        table.X,
        table.y,
        table.subjects,
        {
            "recordings": [
                {"name": f"{who}.edf", "subject": who, "rows": 2} for who in ("s1", "s2")
            ]
        },
    )
    assert "recordings" not in old.take([3]).info


def test_tables_that_were_one_become_it_again(table):
    parts = [table.take([0]), table.take([1, 2]), table.take([3])]
    assert FeatureTable.concat(parts).equals(table)


def test_recordings_of_two_tables_that_have_one_name_get_two(table):
    other = FeatureTable(
        table.X,
        table.y,
        ["t1", "t1", "t2", "t2"],
        {"recordings": [{"recording": "a", "subject": "t1", "rows": 2, "facts": {}}]},
        sites=["Rom"] * 4,
        rows=pd.DataFrame({"recording": ["a", "a", "c", "c"], "sex": list("ffmm")}),
    )
    both = FeatureTable.concat([table, other])
    assert both.rows["recording"].tolist() == ["a", "a", "b", "b", "a-2", "a-2", "c", "c"]
    assert both.rows["sex"].isna().tolist() == [True] * 4 + [False] * 4
    assert both.rows["epoch"].isna().tolist() == [False] * 4 + [True] * 4
    assert [one["recording"] for one in both.info["recordings"]] == ["a", "b", "a-2"]
    assert FeatureTable.concat([table, other, other]).rows["recording"].nunique() == 4


def test_sites_of_some_tables_only_are_refused(table):
    without = FeatureTable(table.X, table.y, table.subjects)
    with pytest.raises(InputError, match="give sites to all of them, or to none"):
        FeatureTable.concat([table, without])


def test_the_digest_covers_them(table):
    bare = FeatureTable(table.X, table.y, table.subjects)
    moved = FeatureTable(table.X, table.y, table.subjects, sites=["Bern"] * 4)
    older = FeatureTable(table.X, table.y, table.subjects, rows=table.rows.assign(age=60.0))
    younger = FeatureTable(table.X, table.y, table.subjects, rows=table.rows.assign(age=20.0))
    digests = {table_digest(one) for one in (bare, moved, older, younger)}
    assert len(digests) == 4


def test_samples_of_some_conditions_are_kept(table):
    assert table.select_conditions(["NA", "open"]).rows["condition"].tolist() == ["open", "NA"]
    with pytest.raises(InputError, match=r"no condition 'opn', did you mean 'open'\? Choose from"):
        table.select_conditions(["opn"])
    with pytest.raises(InputError, match="no condition 'open'"):
        FeatureTable(table.X, table.y, table.subjects).select_conditions(["open"])


# --- made by hand -------------------------------------------------------------------------


def read(tmp_path, text):
    path = tmp_path / "hand.csv"
    path.write_text(text)
    return FeatureTable.read(path)


def test_columns_before_the_features_say_something_about_rows(tmp_path):
    table = read(
        tmp_path,
        "subject,label,site,session,sex,age,code,Fp1__x,epoch\n"
        "s1,a,Bern,01,f,30,007,1,0\ns2,b,Lyon,02,,n/a,008,2,1\n",
    )
    assert table.channels == ["Fp1"]
    assert table.sites.tolist() == ["Bern", "Lyon"]
    assert list(table.rows) == ["session", "epoch", "sex", "age", "code"]
    assert table.rows["session"].tolist() == ["01", "02"]
    assert table.rows["age"].tolist()[0] == 30.0
    assert table.rows["code"].tolist() == ["007", "008"]
    assert table.rows["sex"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("subject,label,Fp1__x,age", "'age' stands among the features"),
        ("subject,label,Fp1_y,Fp1__x", "'Fp1_y' looks like a feature of channel 'Fp1'"),
        ("subject,label,age,age,Fp1__x", "'age' occurs more than once"),
        ("subject,label,site,site,Fp1__x", "exactly one column 'site', has 2"),
        ("subject,label,age", "'age' is not of the form"),
    ],
)
def test_a_feature_misspelt_is_not_taken_for_something_about_rows(tmp_path, header, words):
    line = ",".join("1" for _ in header.split(","))
    with pytest.raises(InputError, match=words):
        read(tmp_path, f"{header}\n{line}\n")


def test_what_pandas_keeps_in_its_index_is_found(tmp_path, table):
    frame = table.X.reset_index().assign(label=table.y, epoch=range(4))
    frame.set_index(["subject", "epoch"]).to_parquet(tmp_path / "t.parquet")
    assert FeatureTable.read(tmp_path / "t.parquet").rows["epoch"].tolist() == [0, 1, 2, 3]
