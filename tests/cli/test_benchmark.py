"""The commands benchmark and reproduce: files in, files out, exit codes."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.audit import audits_of
from idfsmec.cli import app
from idfsmec.evaluation import Results
from idfsmec.evaluation.store import Store
from idfsmec.prediction.sanity import AnovaF
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

runner = CliRunner()
SMALL = ["--n-splits", "3", "--k", "2,4", "--rates", "0.3", "--jobs", "1", "--quiet"]
SMALL += ["--no-audit"]


@pytest.fixture
def table(tmp_path):
    return str(make_cohort().write(tmp_path / "clinic.parquet"))


def test_folds_by_site_hold_out_each_hospital_once_and_know_chance(tmp_path):
    cohort = make_cohort()
    number = cohort.subjects.str[1:].astype(int)
    sites = pd.Series(["Bern", "Lund", "Oslo", "Riga"])[number // 6].reset_index(drop=True)
    whole = FeatureTable(cohort.X, cohort.y, cohort.subjects, sites=sites)
    path, out = str(whole.write(tmp_path / "clinic.parquet")), tmp_path / "out"
    asked = ["benchmark", path, "--out", str(out), "--methods", "ANOVA F", "--resamples", "0"]
    result = runner.invoke(app, [*asked, *SMALL, "--folds", "site", "--harmonize"])
    assert result.exit_code == 0, result.output + result.stderr
    assert Results.read(out).protocol["harmonize"] is True
    assert "site folds" in " ".join(result.output.split())
    assert "guessing gives 50.0 %" in result.output
    assert sorted(Results.read(out).scores["fold"].unique()) == [0, 1, 2, 3]
    said = runner.invoke(app, ["report", str(out)])
    assert said.exit_code == 0, said.output + said.stderr


def test_benchmark_audits_its_tables_unless_told_not_to(table, tmp_path):
    out = tmp_path / "out"
    asked = ["benchmark", table, "--out", str(out), "--methods", "ANOVA F", "--resamples", "0"]
    result = runner.invoke(app, [*asked, *SMALL, "--audit"])
    assert result.exit_code == 0, result.output + result.stderr
    assert "cannot be assessed" in result.output  # this table does not say how it was recorded
    assert audits_of(Results.read(out))["clinic"].why == "undescribed"
    assert (out / "reporting.md").exists()


def test_benchmark_writes_results_and_prints_means_with_the_folds_and_chance(table, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(
        app, ["benchmark", table, "--out", str(out), "--methods", "ANOVA F,random", *SMALL]
    )
    assert result.exit_code == 0, result.output + result.stderr
    assert "subject folds" in " ".join(result.output.split())
    assert "guessing gives 50.0 %" in result.output
    scores = pd.read_parquet(out / "results.parquet")
    assert set(scores["method"]) == {"ANOVA F", "random"}
    assert set(scores["table"]) == {"clinic"}
    assert set(scores["rate"]) == {0.3}
    assert Results.read(out).resampling["clinic"]["n_resamples"] == 100


def test_options_reach_the_protocol(table, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(
        app,
        [
            "benchmark",
            table,
            "--out",
            str(out),
            "--methods",
            "random",
            *SMALL,
            "--seeds",
            "2",
            "--seed",
            "7",
            "--resamples",
            "0",
            "--folds",
            "sample",
            "--missing-in",
            "selection",
            "--tuning",
            "oracle",
            "--patterns",
            "random,uneven",
            "--imputer",
            "neighbours",
        ],
    )
    assert result.exit_code == 0, result.output + result.stderr
    assert set(Results.read(out).scores["imputer"]) == {"neighbours"}
    assert "best on test: optimistic" in " ".join(result.output.split())
    protocol = Results.read(out).protocol
    assert (protocol["folds"], protocol["missing_in"], protocol["tuning"]) == (
        "sample",
        "selection",
        "oracle",
    )
    assert (protocol["seeds"], protocol["patterns"]) == ([7, 8], ["random", "uneven"])
    assert Results.read(out).resampling == {}


def test_gaps_that_go_with_the_label_are_said(tmp_path):
    table = make_cohort()
    X = table.X.copy()
    X.loc[(table.y == "MDD").to_numpy(), ["E3__f1", "E3__f2", "E3__f3"]] = float("nan")
    path = FeatureTable(X, table.y, table.subjects).write(tmp_path / "clinic.csv")
    out = tmp_path / "out"
    options = ["--methods", "random", *SMALL, "--resamples", "0"]
    result = runner.invoke(app, ["benchmark", str(path), "--out", str(out), *options])
    assert result.exit_code == 0, result.output + result.stderr
    assert "table clinic: Missing channels are associated with the label" in result.stderr
    assert "E3: 12 of 12 HC, 0 of 12 MDD" in result.stderr


def test_all_experiments_can_be_asked_for(table, tmp_path):
    experiments = [
        word
        for name in ("accuracy", "imputation", "ablation", "sensitivity", "cost")
        for word in ("--experiment", name)
    ]
    out = tmp_path / "out"
    result = runner.invoke(
        app, ["benchmark", table, "--out", str(out), "--methods", "IDFS-MEC", *SMALL, *experiments]
    )
    assert result.exit_code == 0, result.output + result.stderr
    assert Results.read(out).scores["experiment"].nunique() == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rates", "0.1;0.2"], "--rates 0.1;0.2: give numbers"),
        (["--seed", "-1"], "--seed -1: give a whole number"),
        (["--rates", "1.5"], "rates has 1.5"),
        (["--methods", "mRMR2"], "no method 'mRMR2'"),
        (["--imputer", "magic"], "no imputer 'magic'; choose from mean"),
        (["--n-splits", "50"], "table clinic: 50 folds by subject are not possible"),
        (["--folds", "site"], "table clinic: folds by site need sites"),
        (["--harmonize"], "table clinic: to harmonize sites there must be at least two"),
        (["--seeds", "0"], "--seeds 0: give at least 1"),
        (["--jobs", "0"], "--jobs 0: give 1 or more"),
    ],
)
def test_bad_usage_ends_in_one_line_and_exit_code_2(table, tmp_path, options, said):
    result = runner.invoke(
        app, ["benchmark", table, "--out", str(tmp_path / "out"), *SMALL, *options]
    )
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_table_that_is_not_there_is_named(tmp_path):
    result = runner.invoke(app, ["benchmark", "nowhere.parquet", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "nowhere.parquet" in result.stderr


def test_two_tables_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = []
    for folder, seed in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        paths.append(str(make_cohort(seed=seed).write(tmp_path / folder / "t.csv")))
    out = tmp_path / "out"
    result = runner.invoke(
        app, ["benchmark", *paths, "--out", str(out), "--methods", "random", *SMALL]
    )
    assert result.exit_code == 0, result.output + result.stderr
    assert set(Results.read(out).tables) == {"t", "b/t"}


def test_failed_units_end_with_exit_code_1_and_the_reason(table, tmp_path, monkeypatch):
    def fail(self, *args, **kwargs):
        raise FloatingPointError("no digits left")

    monkeypatch.setattr(AnovaF, "fit", fail)
    result = runner.invoke(
        app, ["benchmark", table, "--out", str(tmp_path / "out"), "--methods", "ANOVA F", *SMALL]
    )
    assert result.exit_code == 1
    assert "3 units failed" in result.stderr
    assert "FloatingPointError: no digits left" in result.stderr


def wait_for_a_finished_unit(out, process):
    """Look into the store until there is one; the run has thousands to do and cannot be over."""
    n_done = 0
    while not n_done and process.poll() is None:
        time.sleep(0.1)
        with Store(out, read_only=True) as store:
            n_done = len(store.done_keys())


def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(table, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        sys.executable,
        "-m",
        "idfsmec",
        "benchmark",
        table,
        "--out",
        str(tmp_path / "out"),
        "--methods",
        "ANOVA F",
        "--n-splits",
        "12",
        "--seeds",
        "40",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        start_new_session=True,
        # Tests that a shell started in the background ignore Ctrl-C, and their children with them.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert "accuracy: 2880 of 2880 to do" in process.stderr.readline()
    wait_for_a_finished_unit(tmp_path / "out", process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    rest = process.communicate()[1]
    assert process.returncode == 130, rest
    assert "stopped; what is finished is kept" in rest
    assert "Traceback" not in rest
    result = runner.invoke(
        app, ["benchmark", table, "--out", str(tmp_path / "out"), "--methods", "ANOVA F", *SMALL]
    )
    assert result.exit_code == 0, result.stderr


def test_another_table_of_the_same_name_is_refused_with_the_options_that_help(table, tmp_path):
    command = ["benchmark", table, "--out", str(tmp_path / "out"), "--methods", "random", *SMALL]
    command += ["--resamples", "0"]
    assert runner.invoke(app, command).exit_code == 0
    make_cohort(n_channels=3).write(table)
    refused = runner.invoke(app, command)
    assert refused.exit_code == 2
    assert "another table named 'clinic'" in refused.stderr
    assert "replace those results with --force" in refused.stderr
    assert runner.invoke(app, [*command, "--force"]).exit_code == 0
    assert len(Results.read(tmp_path / "out").tables["clinic"]["channels"]) == 3


def test_an_option_that_is_not_given_leaves_each_experiment_its_own(table, tmp_path):
    out = tmp_path / "out"
    words = ["--experiment", "sensitivity", "--experiment", "cost", "--n-splits", "2", "--k", "2"]
    command = ["benchmark", table, "--out", str(out), "--methods", "mRMR", *words]
    result = runner.invoke(app, [*command, "--resamples", "0", "--jobs", "1", "--quiet"])
    assert result.exit_code == 0, result.output + result.stderr
    protocols = Results.read(out).protocol["experiments"]
    assert protocols["sensitivity"]["rates"] == protocols["cost"]["rates"] == [0.3]
    assert protocols["sensitivity"]["tuning"] == "grid"


def test_reproduce_without_the_data_says_what_is_missing(tmp_path):
    result = runner.invoke(
        app, ["reproduce", "modma3", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr


def test_what_is_missing_as_recorded_is_not_called_nothing(tmp_path):
    cohort = make_cohort()
    X = cohort.X.copy()
    X.iloc[::10, : len(cohort.features)] = float("nan")
    path = FeatureTable(X, cohort.y, cohort.subjects).write(tmp_path / "gappy.parquet")
    arguments = ["benchmark", str(path), "--out", str(tmp_path / "out"), "--methods", "ANOVA F"]
    small = ["--n-splits", "3", "--k", "2", "--rates", "0", "--jobs", "1", "--resamples", "0"]
    said = " ".join(runner.invoke(app, [*arguments, *small, "--quiet"]).output.split())
    assert "0 % missing" not in said
    assert "0 % taken out" in said
    assert "of its channel samples are missing as recorded" in said


@pytest.mark.parametrize(
    "command",
    [
        ["demo", "--quick", "--out"],
        ["benchmark", "table.csv", "--out"],
        ["select", "table.csv", "-o"],
        ["train", "table.csv", "-o"],
        ["predict", "model.skops", "table.csv", "-o"],
        ["reproduce", "modma3", "--data", ".", "--out"],
    ],
)
def test_what_could_not_be_written_is_refused_before_anything_is_done(command, tmp_path):
    endings = {"select": ".csv", "train": ".skops", "predict": ".csv"}
    name = "x" * 300 + endings.get(command[0], "")
    result = runner.invoke(app, [*command, str(tmp_path / name)])
    assert result.exit_code == 2
    assert "cannot be written there (File name too long)" in " ".join(result.stderr.split())


def test_one_run_compares_methods_within_each_condition(tmp_path):
    cohort = make_cohort()
    there = pd.DataFrame({"condition": ["open", "closed"] * (len(cohort) // 2)})
    path = FeatureTable(cohort.X, cohort.y, cohort.subjects, rows=there).write(
        tmp_path / "clinic.parquet"
    )
    arguments = ["benchmark", str(path), "--methods", "random", *SMALL, "--resamples", "0"]
    ran = runner.invoke(app, [*arguments, "--by-condition", "--out", str(tmp_path / "all")])
    assert ran.exit_code == 0, ran.stderr
    results = Results.read(tmp_path / "all")
    assert set(results.scores["table"]) == {"clinic open", "clinic closed"}
    assert results.tables["clinic open"]["n_samples"] == len(cohort) // 2
    ran = runner.invoke(app, [*arguments, "--condition", "open", "--out", str(tmp_path / "one")])
    assert ran.exit_code == 0, ran.stderr
    assert set(Results.read(tmp_path / "one").scores["table"]) == {"clinic open"}
    for wrong in (["--condition", "shut"], ["--condition", "open", "--by-condition"]):
        ran = runner.invoke(app, [*arguments, *wrong, "--out", str(tmp_path / "none")])
        assert ran.exit_code == 2
