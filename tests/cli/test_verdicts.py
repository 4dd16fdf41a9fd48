"""The verdict of an audit, and the condition, from a table to the page of a participant."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.prediction import load_model
from tests.audit.cohorts import audited

RED = "Acquisition and diagnosis cannot be told apart"


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdicts")
    table = audited(24, device=1.0)
    samples = np.arange(len(table))
    rows = {
        "recording": [f"r{i // 4}" for i in samples],
        "condition": np.where(samples % 2, "eyes-open", "eyes-closed"),
        "epoch": samples % 4,
    }
    replace(table, rows=pd.DataFrame(rows)).write(folder / "table.parquet")
    few = ["--folds", 2, "--repeats", 1, "--condition", "eyes-closed"]
    output = run("train", folder / "table.parquet", "-o", folder / "model.skops", *few)
    (folder / "output.txt").write_text(output)
    return folder


def test_a_model_of_a_red_table_says_so_wherever_its_auc_is_shown(folder):
    model = load_model(folder / "model.skops")
    assert (model.audit["level"], model.data["conditions"]) == ("red", ["eyes-closed"])
    assert model.audit["verdict"].startswith("Line noise differs between")
    output = (folder / "output.txt").read_text()
    assert RED in output
    assert "Performance on held-out participants; acquisition may explain it" in output
    assert "several conditions" not in output
    for card in ("model.md", "model.html"):
        text = (folder / card).read_text()
        assert text.count("the recordings of the groups differ") == 1
        assert text.count(model.audit["verdict"]) == 1
    page = (folder / "model.html").read_text()
    assert page.index('class="verdict red"') < page.index('class="lead"')


def test_predictions_repeat_the_verdict_and_warn_of_another_condition(folder, tmp_path):
    words = [folder / "model.skops", folder / "table.parquet", "-o", tmp_path / "p.csv"]
    assert RED in run("predict", *words, "--pages", tmp_path / "pages")
    warnings = pd.read_csv(tmp_path / "p.csv")["warnings"]
    assert warnings.str.contains("trained on eyes-closed, but this is eyes-open").all()
    page = (tmp_path / "pages" / "s00.html").read_text()
    assert 'class="verdict red"' in page
    assert page.count("the recordings of the groups differ") == 1


def test_a_prediction_does_not_know_the_condition_of_a_table_without_one(folder, tmp_path):
    table = audited(4).write(tmp_path / "new.parquet")
    said = run("predict", folder / "model.skops", table, "-o", tmp_path / "p.csv")
    assert "trained on eyes-closed; the condition of 16 of 16 samples is not known" in said


@pytest.mark.usefixtures("empty_figure_files")
def test_select_and_benchmark_repeat_the_verdict_kept_for_this_content(folder, tmp_path):
    table = folder / "table.parquet"
    out = ["-o", tmp_path / "ranking.csv", "--force"]
    assert "Not audited." in run("select", table, *out)
    said = run("audit", table, "--out", tmp_path / "audit", "--folds", 2, "--jobs", 1)
    assert "pooled (eyes-closed, eyes-open)" in said
    assert [each["level"] for each in json.loads(_kept(table).read_text()).values()] == ["red"]
    said = run("select", table, *out)
    assert RED in said
    assert "pooled (eyes-closed, eyes-open); --condition eyes-closed" in said
    out_of, few = ["--out", tmp_path / "results"], ["--rates", 0, "--k", 2, "--folds", 2]
    few += ["--experiment", "accuracy", "--methods", "random", "--resamples", 0, "--jobs", 1]
    assert RED in run("benchmark", table, *out_of, *few)
    (kept,) = json.loads(_kept(table).read_text()).values()
    assert f"{RED}.</strong> {kept['verdict']}</aside>" in _report(tmp_path / "results")
    _kept(table).unlink()
    assert "Not audited." in run("benchmark", table, *out_of, *few)
    assert "Not audited.</strong> Whether the groups differ" in _report(tmp_path / "results")
    said = run("select", table, *out, "--condition", "eyes-open")  # which was not audited
    assert "Not audited." in said
    assert "pooled" not in said


def test_a_damaged_verdict_and_an_unknown_condition_are_one_line(folder, tmp_path):
    table = audited(8).write(tmp_path / "table.parquet")
    words = ["select", str(table), "-o", str(tmp_path / "r.csv"), "--force"]
    _kept(table).write_text('{"a": []}')
    for more, line in [
        ([], "table.parquet.audit.json: is no list of verdicts; remove it"),
        (["--condition", "asleep"], "'asleep'"),
    ]:
        result = CliRunner().invoke(app, [*words, *more])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert line in result.stderr


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_any_table_of_columns_can_be_audited(tmp_path, ending):
    # Embeddings, and a device that goes with the label: both separate the groups.
    rng, subjects = np.random.default_rng(0), np.repeat(np.arange(24), 4)
    y = subjects % 2
    frame = pd.DataFrame(rng.normal(size=(96, 8)) + 2.0 * y[:, None])
    frame = frame.rename(columns=str).assign(
        subject=[f"s{i}" for i in subjects], label=np.where(y, "MDD", "HC")
    )
    frame["device"] = np.where(y, "new", "old")
    path = tmp_path / f"embeddings.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    said = run("audit", path, "--out", tmp_path / "audit", "--folds", 3, "--jobs", 1)
    assert RED in said
    found = json.loads((tmp_path / "audit" / "audit.json").read_text())["embeddings"]
    assert found["suspects"] == ["device"]
    assert found["eeg"]["auc"] > 0.9


def _report(folder):
    run("report", folder, "--force")
    return (folder / "report.html").read_text("utf-8")


def _kept(path):
    return path.with_name(f"{path.name}.audit.json")
