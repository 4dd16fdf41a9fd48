"""The target of a table is chosen, kept by files, and never guessed from numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable
from idfsmec.table.feature_table import table_digest
from idfsmec.table.target import Target


@pytest.fixture
def table():
    X = pd.DataFrame({"O2__alpha": np.arange(12.0)})
    rows = pd.DataFrame(
        {"BDI": [np.nan, np.nan, *range(10)], "age": range(12), "sex": ["F", "M"] * 6}
    )
    subjects = [f"s{i // 2}" for i in range(12)]
    return FeatureTable(X, ["HC", "HC", "MDD", "MDD"] * 3, subjects, rows=rows)


def test_a_column_becomes_the_score_and_the_labels_stay_as_diagnosis(table):
    with pytest.warns(UserWarning, match=r"1 of 6 participants have no BDI .*2 of 12 samples"):
        scored = table.with_target("bdi")
    assert scored.y.tolist() == list(range(10))
    assert scored.target == Target("score", "BDI", n_without=1)
    assert scored.rows.columns.tolist() == ["age", "sex", "diagnosis"]
    assert scored.rows["diagnosis"].tolist() == table.y.tolist()[2:]
    assert scored.scores.index.equals(scored.X.index)


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_files_keep_the_target(table, tmp_path, name):
    for made in (table.with_target("age"), table.with_order(["HC", "MDD"])):
        read = FeatureTable.read(made.write(tmp_path / name))
        assert read.equals(made)
        assert read.target == made.target


def test_grades_are_numbered_in_their_order(table):
    grades = table.with_order(["MDD", "HC"])
    assert grades.scores.tolist() == [1.0, 1.0, 0.0, 0.0] * 3
    assert "grades MDD < HC" in repr(grades)
    assert grades.target.order == ("MDD", "HC")


def test_more_than_ten_numbers_as_labels_are_refused_with_both_remedies(table):
    X = table.X.reset_index(drop=True)
    numbers = FeatureTable(X, range(12), table.subjects)
    with pytest.raises(InputError, match=r"12 different numbers: give --target label .* --order"):
        _ = numbers.target
    assert numbers.with_target("label").target.kind == "score"
    assert FeatureTable(X, [i % 10 for i in range(12)], table.subjects).target.kind == "classes"
    assert FeatureTable(X, map(str, range(12)), table.subjects).target.kind == "classes"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("hamd", "no column 'hamd' to predict; it has label, BDI, age, sex"),
        ("sex", "'sex' does not hold numbers"),
        ("label", "'label' does not hold numbers"),
    ],
)
def test_what_cannot_be_a_score_is_refused(table, column, message):
    with pytest.raises(InputError, match=message):
        table.with_target(column)


def test_a_score_needs_two_values(table):
    table.rows["age"] = 30
    with pytest.raises(InputError, match="'age' holds fewer than 2 different numbers"):
        table.with_target("age")


def test_orders_name_all_labels(table):
    with pytest.raises(InputError, match="the order HC, mild lacks the label MDD"):
        table.with_order(["HC", "mild"])
    with pytest.raises(InputError, match="which are no numbers"):
        _ = table.scores


def test_numbers_as_classes_and_as_a_score_have_different_digests(table):
    codes = FeatureTable(table.X.reset_index(drop=True), [0, 1] * 6, table.subjects)
    assert table_digest(codes) != table_digest(codes.with_target("label"))
    assert table_digest(codes) == table_digest(codes.take(np.arange(12)))


def test_parts_of_a_table_keep_the_target(table):
    scored = table.with_target("age")
    assert scored.take(np.arange(4)).target == scored.target
    assert FeatureTable.concat([scored, scored]).target == scored.target
    assert scored.select_channels(["O2"]).target == scored.target


def test_scores_that_a_manifest_holds_as_text_are_numbers(table):
    text = ["n/a", "", *(f"{v}.5" for v in range(10))]
    with pytest.warns(UserWarning, match="1 of 6 participants have no phq9"):
        scored = replace(table, rows=pd.DataFrame({"phq9": text})).with_target("PHQ9")
    assert scored.y.tolist() == [v + 0.5 for v in range(10)]
    with pytest.raises(InputError, match="does not hold numbers"):
        replace(table, rows=pd.DataFrame({"phq9": [*text[:-1], "high"]})).with_target("phq9")


def test_targets_are_labels_or_numbers(table):
    assert table.targets.tolist() == table.y.tolist()
    assert table.with_order(["HC", "MDD"]).targets.tolist() == [0, 0, 1, 1] * 3
