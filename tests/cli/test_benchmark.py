"""The commands benchmark, audit and report: files in, files out, exit codes."""

import os
import signal
import subprocess
import sys
from functools import partial

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.audit import audits_of
from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Results
from idfsmec.table import FeatureTable
from tests.audit.cohorts import audited
from tests.evaluation.cohorts import make_cohort, make_hospitals

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]

SMALL = ["--methods", "ANOVA F", "--folds", 2, "--k", "2,4", "--rates", 0.3, "--jobs", 1,
         "--repeats", 1]  # fmt: skip
ALONE = ["--resamples", 0, "--experiment", "accuracy", "--quiet"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], terminal_width=200)


def benchmark(table, out, *words):
    done = run("benchmark", table, "--out", out, *SMALL, *words)
    assert done.exit_code == 0, done.output + done.stderr
    return done, Results.read(out)


@pytest.fixture
def table(tmp_path):
    return make_cohort().write(tmp_path / "clinic.parquet")


def test_results_are_written_and_means_printed_with_folds_chance_and_verdict(table, tmp_path):
    done, results = benchmark(table, tmp_path / "out", "--methods", "ANOVA F,random")
    text = " ".join(done.output.split())
    assert "subject-wise folds" in text
    assert "balanced accuracy per participant by share" in text
    assert "clinic: Confounding by acquisition cannot be assessed" in text
    assert "accuracy: 4 of 4 to do" in done.stderr
    scores = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(scores["method"]) == {"ANOVA F", "random"}
    assert set(scores["table"]) == {"clinic"}
    assert set(scores["rate"]) == {0.3}
    assert results.resampling["clinic"]["n_resamples"] == 100
    assert audits_of(results)["clinic"].why == "undescribed"
    assert (tmp_path / "out" / "reporting.md").exists()
    assert f"next: idfsmec report {tmp_path / 'out'}" in text
    written, page = run("report", tmp_path / "out"), tmp_path / "out" / "report.html"
    assert written.output.splitlines()[-1] == f"next: open in a browser: {page}"
    assert (tmp_path / "out" / "figures" / "accuracy-by-rate.png").exists()
    refused = run("report", tmp_path / "out")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr


def test_sites_are_held_out_and_harmonized(tmp_path):
    table = make_hospitals(4).write(tmp_path / "clinic.parquet")
    done, results = benchmark(
        table, tmp_path / "out", *ALONE, "--folds", "site", "--harmonize", "all"
    )
    assert "site-wise folds" in " ".join(done.output.split())
    assert results.protocol["harmonize"] is True
    assert sorted(results.scores["fold"].unique()) == [0, 1, 2, 3]


def test_parts_of_a_folder_of_files_are_put_together(table, tmp_path):
    folder = tmp_path / "clinic"
    folder.mkdir()
    whole = FeatureTable.read(table)
    for number in (0, 1):
        rows = [len(whole) // 2 * number, len(whole) // 2 * (number + 1)]
        whole.take(range(*rows)).write(folder / f"{number}.parquet")
    for number in (1, 2):
        done = run("benchmark", folder, "--out", tmp_path / "out", *SMALL, "--part", f"{number}/2")
        assert f"part-{number}-of-2" in done.output, done.output + done.stderr
    done, results = benchmark(folder, tmp_path / "out", *ALONE)
    _, wanted = benchmark(table, tmp_path / "other", *ALONE)
    pd.testing.assert_frame_equal(results.mean_scores(), wanted.mean_scores())
    for words in ("3/2", "0/2", "one", "1/2/3"):
        assert "such as 3/16" in run("benchmark", folder, "--part", words).stderr
    nothing = run("benchmark", folder, "--part", "1/2", "--experiment", "audit")
    assert "name one besides audit" in nothing.stderr


def test_options_reach_the_protocol(table, tmp_path):
    _, results = benchmark(
        table,
        tmp_path / "out",
        *ALONE,
        *("--methods", "random", "--repeats", 2),
        *("--patterns", "random,uneven", "--imputer", "neighbours", "--classifier", "ridge"),
    )
    assert set(results.scores["imputer"]) == {"neighbours"}
    protocol = results.protocol
    assert (protocol["seeds"], protocol["patterns"]) == ([0, 1], ["random", "uneven"])
    assert results.resampling == {}


def test_an_experiment_keeps_what_no_option_changes(tmp_path):
    table = make_cohort(16, 2, 3, 2).write(tmp_path / "clinic.parquet")
    words = ["--methods", "mRMR", "--folds", 2, "--k", 2, "--jobs", 1, "--imputer", "mean", *ALONE]
    for more in (["imputation,ablation", "--rates", 0.2], ["sensitivity,cost"]):
        done = run("benchmark", table, "--out", tmp_path, *words, "--experiment", *more)
        assert done.exit_code == 0, done.output + done.stderr
    protocols = Results.read(tmp_path).protocol["experiments"]
    assert set(protocols) == {"imputation", "ablation", "sensitivity", "cost"}
    assert protocols["ablation"]["rates"] == [0.2]
    assert protocols["sensitivity"]["rates"] == protocols["cost"]["rates"] == [0.3]
    assert protocols["sensitivity"]["tuning"] == "grid"


def test_missing_channels_of_the_table_are_said(tmp_path):
    cohort = make_cohort()
    X = cohort.X.copy()
    X.loc[(cohort.y == "MDD").to_numpy(), ["E3__f1", "E3__f2", "E3__f3"]] = float("nan")
    table = FeatureTable(X, cohort.y, cohort.subjects).write(tmp_path / "clinic.csv")
    done, _ = benchmark(table, tmp_path / "out", *ALONE)
    assert "table clinic: Missing channels are associated with the label" in done.stderr
    assert "E3: 12 of 12 HC, 0 of 12 MDD" in done.stderr
    text = " ".join(done.output.split())
    assert "by share of channels removed subject-wise folds table pattern method 30 %" in text
    assert "of channel samples are missing as recorded" in text


def test_two_tables_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = []
    for folder, seed in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        paths.append(make_cohort(seed=seed).write(tmp_path / folder / "t.csv"))
    results = benchmark(paths[0], tmp_path / "out", paths[1], *ALONE)[1]
    assert set(results.tables) == {"t", "b/t"}
    third = run("benchmark", *paths, paths[1].rename(tmp_path / "b" / "t.csv.gz"))
    assert third.exit_code == 2


def test_methods_are_compared_on_the_samples_of_a_condition(tmp_path):
    cohort = make_cohort()
    rows = pd.DataFrame({"condition": ["open", "closed"] * (len(cohort) // 2)})
    table = FeatureTable(cohort.X, cohort.y, cohort.subjects, rows=rows).write(tmp_path / "t.csv")
    done, results = benchmark(table, tmp_path / "all", *ALONE)
    assert "samples of several conditions are pooled (closed, open)" in done.stderr
    assert results.tables["t"]["n_samples"] == len(cohort)
    results = benchmark(table, tmp_path / "one", *ALONE, "--condition", "open")[1]
    assert results.tables["t"]["n_samples"] == len(cohort) // 2
    assert run("benchmark", table, *SMALL, "--condition", "shut").exit_code == 2


def test_failed_tasks_end_with_exit_code_1_and_the_reason(table, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise FloatingPointError("no digits left")

    monkeypatch.setattr("idfsmec.selection.MRMR.fit", fail)
    words = [*SMALL, "--methods", "mRMR", *ALONE]
    done = run("benchmark", table, "--out", tmp_path / "out", *words)
    assert done.exit_code == 1
    assert "2 tasks failed, first mRMR on clinic" in done.stderr
    assert "FloatingPointError: no digits left" in done.stderr


def test_another_table_of_the_same_name_is_refused_with_the_options_that_help(table, tmp_path):
    words = ["benchmark", table, "--out", tmp_path / "out", *SMALL, *ALONE]
    assert run(*words).exit_code == 0
    make_cohort(n_channels=3).write(table)
    refused = run(*words)
    assert refused.exit_code == 2
    assert "another table named 'clinic'" in refused.stderr
    assert "replace those results with --force" in refused.stderr
    assert run(*words, "--force").exit_code == 0
    assert len(Results.read(tmp_path / "out").tables["clinic"]["channels"]) == 3


def test_from_python_lists_do_and_errors_are_raised(table, tmp_path):
    small = {"k": [2], "rates": [0.3], "folds": 2, "jobs": 1, "resamples": 0}
    small["experiment"] = "accuracy"
    results = cli.benchmark(str(table), str(tmp_path / "out"), methods=["ANOVA F"], **small)
    assert isinstance(results, Results)
    text = {**small, "k": "2", "rates": "0.3", "folds": "2"}
    again = cli.benchmark([table], tmp_path / "out", methods="ANOVA F", **text)
    pd.testing.assert_frame_equal(again.scores, results.scores)
    with pytest.raises(InputError, match="no method 'nope'"):
        cli.benchmark(table, tmp_path / "out", methods="nope", **small)
    with pytest.raises(InputError, match="choose from honest, paper"):
        cli.reproduce("modma3", tmp_path, protocol="mine")


@pytest.mark.long
def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(table, tmp_path):
    out, words = tmp_path / "out", ["--methods", "ANOVA F", "--folds", "12", "--resamples", "0"]
    command = [
        "benchmark",
        str(table),
        "--out",
        str(out),
        *words,
        "--jobs",
        "2",
        "--experiment",
        "accuracy",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "idfsmec", *command, "--repeats", "40"],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        start_new_session=True,
        # Tests that a shell started in the background ignore Ctrl-C, and their children with them.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert "accuracy: 2880 of 2880 to do" in process.stderr.readline()
    line = ""
    while process.poll() is None and "mean so far" not in line and "failed:" not in line:
        line = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    rest = process.communicate()[1]
    assert process.returncode == 130, rest
    assert "stopped; finished tasks are kept" in rest
    assert "Traceback" not in rest
    n_done = len(Results.read(out).scores[["rate", "seed", "fold"]].drop_duplicates())
    done = run(*command, "--rates", "0")
    assert done.exit_code == 0, done.stderr
    assert 0 < n_done < 2880


# --- audit --------------------------------------------------------------------------------


def test_an_audit_says_its_verdict_and_writes_page_and_checklist(tmp_path):
    table = audited(20, device=1.0).write(tmp_path / "study.parquet")
    words = ["audit", table, "--out", tmp_path, "--folds", 4, "--jobs", 1]
    done = run(*words)
    assert done.exit_code == 0, done.output + done.stderr
    text = " ".join(done.output.split())
    assert "Acquisition and diagnosis cannot be told apart" in text
    assert 'class="verdict red"' in (tmp_path / "audit.html").read_text("utf-8")
    checklist = (tmp_path / "reporting.md").read_text("utf-8")
    for part in ("TRIPOD+AI", "REFORMS", "COBIDAS-MEEG", "- [ ] "):
        assert part in checklist
    assert cli.audit(table, tmp_path, folds=4, jobs=1).level == "red"
    audited(20, seed=5).write(table)
    refused = run(*words)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    by_site = run("audit", table, "--out", tmp_path / "sites", "--folds", "site")
    assert by_site.exit_code == 2
    assert "use folds by participant" in by_site.stderr


def test_an_audit_writes_what_is_documented_and_replaces_nothing_foreign(tmp_path):
    table = audited(12).write(tmp_path / "study.parquet")
    out = tmp_path / "audit"
    words = ["audit", table, "--out", out, "--folds", 2, "--jobs", 1]
    out.mkdir()
    (out / "audit.json").write_text("{}")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "audit.json exists" in refused.stderr
    assert (out / "audit.json").read_text() == "{}"
    assert run(*words, "--force").exit_code == 0
    written = {path.name for path in out.iterdir()}
    assert written == {"audit.html", "audit.json", "reporting.md", "store.sqlite", "store.lock"}


def test_an_audit_of_one_class_writes_nothing(tmp_path):
    table = audited(12)
    one_class = table.take((table.y == "HC").to_numpy()).write(tmp_path / "study.parquet")
    refused = run("audit", one_class, "--out", tmp_path / "audit", "--jobs", 1)
    assert refused.exit_code == 2
    assert "all samples have the label" in refused.stderr
    assert not (tmp_path / "audit").exists()


def test_names_that_are_formulas_or_markup_stay_text_in_report_and_checklist(tmp_path):
    clean = make_cohort()
    X = clean.X.copy()
    X.columns = X.columns.str.replace("E1__", r"$\frac{$__").str.replace("E2__", "<img src=x>__")
    labels = clean.y.replace({"HC": r"$\frac{$", "MDD": "<b>MDD</b>"})
    path = FeatureTable(X, labels, clean.subjects).write(tmp_path / "t.parquet")
    benchmark(path, tmp_path / "out", "--resamples", 4)
    done = run("report", tmp_path / "out")
    assert done.exit_code == 0, done.output + done.stderr
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "<img" not in page
    assert r"$\frac{$" in page
    checklist = (tmp_path / "out" / "reporting.md").read_text("utf-8")
    assert r"\<img src=x\>" in checklist
    assert "<" not in checklist.replace(r"\<", "")


def test_few_electrodes_are_answered_in_a_sentence(tmp_path):
    table = make_cohort(18, 2, 3, 2).write(tmp_path / "clinic.parquet")
    words = ["--folds", 3, "--resamples", 0, "--jobs", 1, "--experiment", "electrodes", "--k", 2]
    done = run("benchmark", table, "--out", tmp_path / "out", *words)
    assert done.exit_code == 0, done.output + done.stderr
    text = " ".join(done.output.split())
    assert "clinic: " in text
    assert "electrodes" in text
    assert Results.read(tmp_path / "out").protocol["experiments"]["electrodes"]["margin"] == 0.03


def test_a_prevalence_reaches_the_predictive_values(table, tmp_path):
    _, results = benchmark(table, tmp_path / "out", *ALONE, "--prevalence", 0.1)
    assert results.protocol["prevalence"] == 0.1
    written = pd.read_csv(tmp_path / "out" / "clinical.csv")
    assert set(written["prevalence"]) == {0.1}
    refused = run("benchmark", table, "--out", tmp_path / "no", "--prevalence", 10)
    assert refused.exit_code == 2
    assert "prevalence is 10.0: give a share above 0 and below 1" in refused.stderr
    assert not (tmp_path / "no").exists()
