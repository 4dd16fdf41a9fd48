"""Transfer: who is trained on, who is tested, and how sure the matrix is."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Results, transfer, transfer_matrix
from idfsmec.evaluation.run import table_arrays
from idfsmec.evaluation.transfer import OTHERS, join_tables, split_pair, split_tables
from idfsmec.metrics import fixed_auc
from idfsmec.report import plot_transfer
from idfsmec.report.transfer import pivot_matrix
from idfsmec.table import FeatureTable

from .cohorts import make_cohort
from .test_scores import make_scored

FEW = {"n_splits": 3, "n_inner_splits": 2, "ks": [2], "svm_costs": [0.1]}


def make_clinic(seed, prefix="", n_subjects=16, shift=0.0, **options):
    table = make_cohort(n_subjects, 2, effect=2.5, seed=seed, **options)
    return FeatureTable(table.X * (1 + shift) + 5 * shift, table.y, prefix + table.subjects)


@pytest.fixture(scope="module")
def clinics():
    return {name: make_clinic(seed, name) for seed, name in enumerate(["Bern", "Lund", "Oslo"])}


def arrays_of(tables):
    return table_arrays({"joined": join_tables(tables)})["joined"]


def test_a_model_is_trained_on_whole_tables_and_tested_on_all_of_another(clinics):
    arrays = arrays_of(clinics)
    ((train, test),) = split_pair(arrays, ("Bern", "Oslo"), "Lund", 3, 0)
    assert set(arrays.sites[train]) == {"Bern", "Oslo"}
    assert (np.flatnonzero(arrays.sites == "Lund") == test).all()
    assert train.size == 64


def test_a_participant_of_two_tables_is_never_in_training_and_test(clinics):
    both = {"closed": make_clinic(0), "open": make_clinic(1)}
    arrays = arrays_of(both)
    folds = split_pair(arrays, ("closed",), "open", 3, 0)
    assert len(folds) == 3
    for train, test in folds:
        assert set(arrays.sites[train]) == {"closed"}
        assert set(arrays.sites[test]) == {"open"}
        assert not set(arrays.subject_names[train]) & set(arrays.subject_names[test])
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(32, 64))


def test_one_name_with_two_labels_is_two_participants():
    first, second = make_clinic(0), make_clinic(1)
    swapped = second.y.map({"HC": "MDD", "MDD": "HC"})
    second = FeatureTable(second.X, swapped, second.subjects)
    joined = join_tables({"a": first, "b": second})
    assert joined.subjects.nunique() == 32
    assert joined.subjects.iloc[0] == "a: s00"


def test_tables_are_joined_by_the_columns_they_share_whatever_the_spelling():
    rng, y = np.random.default_rng(0), np.repeat(["HC", "MDD"], 8)

    def table(*columns):
        X = pd.DataFrame(rng.normal(size=(16, len(columns))), columns=list(columns))
        return FeatureTable(X, y, [str(rng.integers(10**9)) for _ in range(16)])

    first, second = table("Fp1__a", "F3__a", "F3__b"), table("EEG F3-LE__a", "O1__a")
    joined = join_tables({"first": first, "second": second})
    assert list(joined.X.columns) == ["F3__a"]
    assert joined.sites.value_counts().to_dict() == {"first": 16, "second": 16}
    with pytest.raises(InputError, match=r"tables first and third share no column; first has ch"):
        join_tables({"first": first, "third": table("O1__a", "O2__a")})


def test_tables_that_cannot_be_compared_are_refused(clinics):
    with pytest.raises(InputError, match="at least two tables"):
        join_tables({"Bern": clinics["Bern"]})
    three = make_clinic(0, n_subjects=18, n_classes=3)
    with pytest.raises(InputError, match="two classes, and three has BD, HC and MDD"):
        join_tables({"Bern": clinics["Bern"], "three": three})
    bern = clinics["Bern"]
    named = FeatureTable(bern.X, bern.y.replace("HC", "well"), bern.subjects)
    with pytest.raises(InputError, match="the labels of named are MDD and well, those of Bern HC"):
        join_tables({"Bern": bern, "named": named})
    number = pd.DataFrame({"bdi": bern.subjects.str[-2:].astype(int)})
    scored = FeatureTable(bern.X, bern.y, bern.subjects, rows=number).with_target("bdi")
    with pytest.raises(InputError, match=r"scored has the score bdi, Bern the .*: transfer needs"):
        join_tables({"scored": scored, "Bern": bern})
    with pytest.raises(InputError, match="table few has 3 participants of a class"):
        join_tables({"Bern": clinics["Bern"], "few": make_clinic(3, n_subjects=6)})
    with pytest.raises(InputError, match="cannot be cut by condition"):
        split_tables(clinics, "condition")


@pytest.mark.slow
def test_the_matrix_has_every_pair_with_the_interval_of_a_fixed_model(clinics, tmp_path):
    results = transfer(clinics, tmp_path, methods=["ANOVA F", "IDFS-MEC"], protocol=FEW, n_jobs=1)
    matrix = transfer_matrix(results)
    assert len(matrix) == 2 * (9 + 3)
    diagonal = matrix["trained_on"] == matrix["tested_on"]
    assert (matrix["fixed"] == ~diagonal).all()
    assert set(matrix["n_subjects"]) == {16}
    assert matrix["auc"].min() > 0.7
    row = matrix.query("method == 'ANOVA F' and trained_on == 'Bern' and tested_on == 'Oslo'")
    keys = {"method": "ANOVA F", "trained_on": "Bern", "tested_on": "Oslo"}
    pair = results.transfer[(results.transfer[list(keys)] == pd.Series(keys)).all(axis=1)]
    value, low, high = fixed_auc(pair["probability"].to_numpy(), pair["true"].to_numpy() == 1)
    assert value == pytest.approx(roc_auc_score(pair["true"], pair["probability"]))
    assert_allclose(row[["auc", "low", "high"]].to_numpy(float)[0], [value, low, high])
    assert OTHERS in set(matrix["trained_on"])
    wide = pivot_matrix(matrix, "ANOVA F")
    assert wide.shape == (4, 3)
    assert pd.read_csv(tmp_path / "transfer.csv").shape == matrix.shape
    ax = plot_transfer(results, "ANOVA F")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Bern", "Lund", "Oslo"]
    again = transfer_matrix(Results.read(tmp_path))
    pd.testing.assert_frame_equal(again, matrix)


@pytest.mark.slow
def test_harmonizing_brings_a_table_of_another_amplifier_to_the_others(tmp_path):
    tables = {"Bern": make_clinic(0, "b", 24), "Lund": make_clinic(1, "l", 24, shift=9.0)}
    protocol = {**FEW, "harmonize": True}
    results = transfer(tables, tmp_path, methods=["all features"], protocol=protocol, n_jobs=1)
    matrix = transfer_matrix(results)
    across = matrix[matrix["trained_on"] != matrix["tested_on"]]
    means = across.groupby("harmonized")["auc"].mean()
    assert means[True] > 0.8
    assert set(matrix.loc[matrix["harmonized"], "tested_on"]) == {"Bern", "Lund"}
    assert len(matrix) == 2 + 2 + 2


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.slow
def test_conditions_count_as_tables_and_strangers_are_one_line(tmp_path):
    table = make_clinic(0, n_subjects=20)
    rows = pd.DataFrame({"condition": np.where(np.arange(len(table)) % 2, "open", "closed")})
    both = FeatureTable(table.X, table.y, table.subjects, rows=rows).write(tmp_path / "a.parquet")
    words = ["--experiment", "transfer", "--methods", "ANOVA F", "--k", "2", "--repeats", "1"]
    out = ["--out", tmp_path / "out", "--jobs", "1", "--folds", "3"]
    result = run("benchmark", both, "--by", "condition", *words, *out)
    assert result.exit_code == 0, result.output
    assert "AUC per participant (95 % CI) of ANOVA F" in result.stdout
    matrix = pd.read_csv(tmp_path / "out" / "transfer.csv")
    assert set(matrix["trained_on"]) == {"closed", "open"}
    assert not matrix["fixed"].any()
    result = run("report", tmp_path / "out")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Trained here, tested there" in page
    within, between = (
        matrix.loc[(matrix["trained_on"] == matrix["tested_on"]) == same, "auc"].mean()
        for same in (True, False)
    )
    assert f"not tested: ANOVA F {within:.2f} and {between:.2f}." in page
    assert "Score shown" not in page
    other = make_cohort(8)
    X = other.X.set_axis([f"A{name}" for name in other.X.columns], axis=1)
    stranger = FeatureTable(X, other.y, other.subjects).write(tmp_path / "b.csv")
    result = run("benchmark", both, stranger, *words, "--out", tmp_path / "no")
    assert result.exit_code == 2
    assert "tables a and b share no column" in result.stderr
    assert (
        len(result.stderr.strip().splitlines()) <= 2
    )  # the first says that conditions are pooled


def test_a_score_is_transferred_by_spearmans_correlation(tmp_path):
    tables = {name: make_scored(24, seed=seed) for seed, name in enumerate(["Bern", "Lund"])}
    named = {
        name: FeatureTable(
            table.X.reset_index(drop=True), table.y, name + table.subjects, table.info
        )
        for name, table in tables.items()
    }
    results = transfer(named, tmp_path, methods=["ANOVA F"], protocol=FEW, n_jobs=1)
    matrix = transfer_matrix(results)
    assert list(matrix["fixed"]) == [False, True, True, False]
    held_out = results.transfer
    one = held_out[(held_out["trained_on"] == "Bern") & (held_out["tested_on"] == "Lund")]
    rho = spearmanr(one["predicted"], one["true"]).statistic
    row = matrix.iloc[1]
    assert (row["spearman"], row["n_subjects"]) == (pytest.approx(rho), 24)
    reach = 1.959964 * np.sqrt((1 + rho**2 / 2) / 21)
    assert row["low"] == pytest.approx(np.tanh(np.arctanh(rho) - reach))
    assert pivot_matrix(matrix, "ANOVA F").loc["Bern", "Lund"].startswith(f"{rho:.2f} (")
    with pytest.raises(InputError, match="transfer needs the same in all tables"):
        transfer({"Bern": named["Bern"], "Oslo": make_clinic(1)}, tmp_path / "other")
