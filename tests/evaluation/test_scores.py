"""Benchmarks of scores: metrics, missing rates, electrodes, participants, resampling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import (
    Results,
    accuracy,
    electrode_curve,
    electrodes,
    participant_curve,
    participants,
    resampling,
)
from idfsmec.metrics import SCORE_METRICS, score_predictions
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

LEAN = {"rates": [0.0, 0.3], "n_splits": 3, "ks": [2, 4], "svm_costs": [0.1]}


def make_scored(n_subjects=40, strength=1.0, seed=0):
    """A cohort whose ``bdi`` goes with the first feature of two of four channels."""
    table = make_cohort(n_subjects, n_epochs=2, effect=0.0, seed=seed)
    rng = np.random.default_rng(seed)
    bdi = np.repeat(rng.integers(0, 40, n_subjects), 2)
    X = table.X.reset_index(drop=True)
    for column in ("E1__f1", "E2__f1"):
        X[column] += strength * bdi / 10
    rows = pd.DataFrame({"bdi": bdi, "age": np.repeat(rng.integers(20, 60, n_subjects), 2)})
    return replace(table, X=X, rows=rows).with_target("bdi")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    table, out = make_scored(), tmp_path_factory.mktemp("run")
    with pytest.warns(UserWarning, match="FSOR: no form for scores, left out"):
        results = accuracy(table, out, methods=["IDFS-MEC", "ANOVA F", "FSOR"], protocol=LEAN)
    return table, results


def test_scores_are_measured_by_participant_at_every_missing_rate(run):
    _, results = run
    chosen = results.chosen()
    assert set(chosen["method"]) == {"IDFS-MEC", "ANOVA F"}
    assert results.protocol["metric"] == "subject_r2"
    means = chosen.groupby("rate")[list(SCORE_METRICS)].mean()
    assert means.loc[0.0, "subject_r2"] > 0.5
    assert means.loc[0.0, "subject_spearman"] > 0.7
    assert (means["subject_mae"] < means["subject_mae_of_mean"]).all()
    assert chosen["roc_auc"].isna().all()


def test_scores_of_folds_follow_from_the_predictions_that_are_kept(run):
    table, results = run
    kept = results.predicted
    assert set(kept["rate"]) == {0.0}
    names = np.unique(table.subjects.astype(str))
    score = table.scores.groupby(level=0).mean()
    assert (kept["true"].to_numpy() == score.loc[names[kept["subject"]]].to_numpy()).all()
    rows = results.chosen().query("rate == 0").set_index(["method", "fold"])
    for (method, fold), part in kept.groupby(["method", "fold"]):
        assert part["mean"].iloc[0] == pytest.approx(score.drop(names[part["subject"]]).mean())
        trained = score.drop(names[part["subject"]]).to_numpy()
        again = score_predictions(
            part["predicted"].to_numpy(),
            part["true"].to_numpy(),
            np.arange(len(part)),
            trained,
            SCORE_METRICS,
        )
        for metric, value in again.items():
            assert rows.loc[(method, fold), metric] == pytest.approx(value, abs=1e-4)


def test_rankings_of_the_whole_table_have_correlations(run):
    ranking = run[1].ranking
    assert ranking["channel"].head(2).isin(["E1", "E2"]).all()
    assert {"spearman", "spearman_low", "pearson", "direction"} <= set(ranking)
    about = run[1].tables["table"]
    assert about["labels"] == {}
    assert about["target"]["name"] == "bdi"
    assert about["target"]["low"] >= 0


def test_results_read_back_are_the_same_and_the_number_of_workers_does_not_matter(run, tmp_path):
    table, results = run
    read = Results.read(results.folder)
    pd.testing.assert_frame_equal(read.predicted, results.predicted)
    again = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=LEAN, n_jobs=2)
    mine = again.scores.drop(columns="seconds")
    theirs = results.scores.query("method == 'ANOVA F'").drop(columns="seconds")
    pd.testing.assert_frame_equal(mine, theirs.reset_index(drop=True))


def test_without_a_signal_nothing_is_better_than_the_mean(tmp_path):
    table = make_scored(60, strength=0.0, seed=3)
    results = accuracy(table, tmp_path, methods=["ANOVA F"], protocol={**LEAN, "rates": [0.0]})
    means = results.chosen()[list(SCORE_METRICS)].mean()
    assert means["subject_r2"] < 0.1
    assert abs(means["subject_spearman"]) < 0.4


def test_classes_and_scores_are_not_mixed(tmp_path):
    with pytest.raises(InputError, match="evaluate them apart"):
        accuracy({"a": make_scored(), "b": make_cohort()}, tmp_path, methods=["ANOVA F"])
    with pytest.raises(InputError, match="none of the methods has a form"):
        accuracy(make_scored(), tmp_path, methods=["FSOR"], protocol=LEAN)


def test_a_site_can_be_held_out(tmp_path):
    table = make_scored(48)
    sites = np.where(np.arange(96) % 3 == 0, "Lund", "Oslo")
    sites = pd.Series(np.array(["Lund", "Oslo", "Rome"])[table.subjects.str[1:].astype(int) % 3])
    protocol = {**LEAN, "rates": [0.0], "folds": "site"}
    results = accuracy(
        replace(table, sites=sites), tmp_path, methods=["ANOVA F"], protocol=protocol
    )
    assert results.chosen()["subject_spearman"].mean() > 0.6
    assert results.chosen()["fold"].nunique() == 3


def test_few_electrodes_do_where_two_hold_the_score(tmp_path):
    results = electrodes(make_scored(), tmp_path, counts=[1, 2], protocol={"n_splits": 4})
    curve = electrode_curve(results)
    assert "Spearman's correlation" in curve.sentence
    assert (curve.measure.name, curve.measure.chance) == ("Spearman's correlation", 0)
    row = curve.curve.query("choice == 'IDFS-MEC' and n_electrodes == 2").iloc[0]
    assert row["mean"] > 0.6
    assert curve.chosen[1].head(2).sum() == pytest.approx(1)


def test_the_curve_of_participants_has_correlations(tmp_path):
    results = participants(
        make_scored(),
        tmp_path,
        sizes=[12],
        method="ANOVA F",
        protocol={"n_splits": 4, "ks": [2], "svm_costs": [0.1]},
    )
    curve = participant_curve(results)
    assert curve.curve["n_subjects"].tolist() == [12, 30]
    assert "Spearman's correlation" in curve.sentence


def test_halves_find_the_features_again(tmp_path):
    table = make_scored()
    accuracy(table, tmp_path, methods=["IDFS-MEC"], protocol={**LEAN, "rates": [0.0]})
    found = resampling(table, tmp_path, n_resamples=10).resampling["table"]
    assert found["frequency"]["E1__f1"] > 0.8


@pytest.mark.slow
def test_the_command_takes_a_target(tmp_path):
    table = make_scored()
    labels = pd.Series(np.where(table.y > 20, "MDD", "HC"))
    rows = table.rows.assign(bdi=table.y).drop(columns="diagnosis")
    FeatureTable(table.X.reset_index(drop=True), labels, table.subjects, rows=rows).write(
        tmp_path / "t.parquet"
    )
    words = [
        "benchmark",
        str(tmp_path / "t.parquet"),
        "--target",
        "bdi",
        "--out",
        str(tmp_path / "out"),
        "--experiment",
        "accuracy",
        "--methods",
        "ANOVA F,RFS",
        "--rates",
        "0",
        "--folds",
        "3",
        "--k",
        "2",
        "--resamples",
        "0",
        "--jobs",
        "1",
    ]
    done = CliRunner().invoke(app, words, terminal_width=200)
    assert done.exit_code == 0, done.output
    assert "RFS: no form for scores, left out" in " ".join(done.output.split())
    assert Results.read(tmp_path / "out").chosen()["subject_r2"].notna().all()
