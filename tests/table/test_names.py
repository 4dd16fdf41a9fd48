"""Names that only look different: stripped, or refused with both spellings."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.evaluation import accuracy
from idfsmec.recordings import read_manifest
from idfsmec.table import FeatureTable
from idfsmec.table.columns import same_name

PAIRS = [
    ("s01", "S01"),
    ("7", "007"),
    ("s1", "s01"),
    ("MDD", "mdd"),
    ("ＭＤＤ", "MDD"),
    ("a b", "a  b"),
    ("straße", "STRASSE"),
]


def make(subjects=("s", "t"), labels=("a", "b"), columns=("Fz__x", "Cz__x"), **options):
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=list(columns))
    return FeatureTable(X, list(labels), list(subjects), **options)


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u3000"])
def test_blanks_around_names_are_stripped(blank):
    table = make(
        subjects=["s01", f"s01{blank}"],
        labels=["HC", f"{blank}HC"],
        columns=[f"Fz{blank}__x", f"{blank}Cz__x"],
        sites=["A", f"A{blank}"],
    )
    assert table.subjects.tolist() == ["s01", "s01"]
    assert table.y.tolist() == ["HC", "HC"]
    assert table.sites.tolist() == ["A", "A"]
    assert list(table.X) == ["Fz__x", "Cz__x"]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_only_looks_different_is_refused_with_both_spellings(one, other):
    for options in (
        {"subjects": (one, other)},
        {"labels": (one, other)},
        {"sites": (one, other)},
        {"columns": (f"{one}__x", f"{other}__x")},
        {"rows": pd.DataFrame({"condition": [one, other]})},
    ):
        with pytest.raises(InputError) as refused:
            make(**options)
        assert repr(one) in str(refused.value)
        assert repr(other) in str(refused.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [("s1", "s10"), ("0.05", "0.5"), ("10", "1"), ("a1", "a2"), ("0", "1"), ("A-B", "AB")],
)
def test_what_is_different_stays_two(one, other):
    assert make((one, other)).subjects.tolist() == [one, other]


def test_a_column_that_is_there_twice_but_for_a_blank_is_refused():
    with pytest.raises(InputError, match=r"'Fz__x' occurs more than once, as .*'Fz __x'"):
        make(columns=["Fz__x", "Fz __x"])


@given(st.text(max_size=6))
def test_comparing_is_idempotent(text):
    assert same_name(same_name(text)) == same_name(text)


def test_a_table_made_by_hand_is_held_to_it(tmp_path):
    path = tmp_path / "hand.csv"
    path.write_text("subject,label,Fz__x\ns01,HC,1\ns01 ,HC ,2\ns02,MDD,3\n")
    assert FeatureTable.read(path).subjects.nunique() == 2
    path.write_text("subject,label,Fz__x\n7,HC,1\n007,HC,2\ns02,MDD,3\n")
    with pytest.raises(InputError, match=r"hand\.csv: .*'7' and '007'"):
        FeatureTable.read(path)


def test_tables_that_spell_a_person_differently_are_not_joined():
    with pytest.raises(InputError, match="'s' and 'S'"):
        FeatureTable.concat([make(("s", "t")), make(("S", "t"))])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("s01.edf,s01,MDD\ns02_raw.fif,s02,mdd", r"labels 'MDD' \(s01.edf\) and 'mdd' \(s02_raw"),
        ("s01.edf,s01,MDD\ns02_raw.fif,S01,MDD", r"subjects 's01' .* and 'S01'"),
        ("s01.edf,s01,MDD\ns02_raw.fif,s1,MDD", r"subjects 's01' .* and 's1'"),
    ],
)
def test_a_manifest_is_held_to_it(study, lines, words):
    study.write_text(f"path,subject,label\n{lines}\n")
    with pytest.raises(InputError, match=rf"study\.csv: the {words}"):
        read_manifest(study)


def test_a_class_of_one_person_is_named(tmp_path):
    X = pd.DataFrame({"Fz__x": range(6)})
    table = FeatureTable(X, ["HC"] * 4 + ["MDD"] * 2, ["s1", "s2", "s3", "s4", "s9", "s9"])
    with pytest.raises(InputError, match="class MDD has one participant only, s9"):
        accuracy(table, tmp_path, protocol={"n_splits": 2})
