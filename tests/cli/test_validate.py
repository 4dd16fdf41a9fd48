"""``idfsmec validate``: files, lines, and what is refused before any work."""

import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app
from idfsmec.features import extract_table
from idfsmec.prediction import load_model
from idfsmec.recordings import simulate_cohort
from idfsmec.report import plot_validation, write_validation
from idfsmec.report.validation import describe_validation, score_rows
from idfsmec.table import FeatureTable
from idfsmec.table.verdicts import store_verdict
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

VERDICT = {"level": "red", "title": "Acquisition separates", "verdict": "As well as the EEG."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a table of other participants and its verdict."""
    folder = tmp_path_factory.mktemp("validated")
    table = make_cohort(n_subjects=20, effect=3.0).write(folder / "clinic.parquet")
    cli.train(table, folder / "model.skops", folds=2, repeats=1)
    other = make_cohort(n_subjects=24, effect=1.0, seed=1)
    sex = pd.DataFrame({"sex": np.where(np.arange(96) < 48, "f", "m")})
    other = FeatureTable(other.X, other.y, other.subjects, rows=sex)
    path = other.write(folder / "other.parquet")
    store_verdict(path, other, VERDICT)
    return folder


@pytest.fixture(scope="module")
def validation(folder):
    return cli.validate(folder / "model.skops", folder / "other.parquet", folder / "out")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_files_have_what_python_returns(folder, validation):
    assert json.loads((folder / "out" / "validation.json").read_text()) == validation.measured
    frame = pd.read_csv(folder / "out" / "predictions.csv")
    assert frame["true"].tolist() == validation.predictions["true"].tolist()
    page = (folder / "out" / "validation.html").read_text()
    for part in ("Acquisition separates", "sex f", "Decision curve", "no diagnosis", "</svg>"):
        assert part in page
    assert validation.measured["audit"] == VERDICT
    items = (folder / "out" / "reporting.md").read_text()
    counts = ", ".join(f"{k}: {n}" for k, n in validation.measured["n_subjects"].items())
    for item in (f"- **21, participants and events**: {counts}", "AUC 0.", "sex f (12 partic"):
        assert item in items


def test_the_command_prints_scores_beside_the_card(folder, tmp_path):
    words = ["validate", folder / "model.skops", folder / "other.parquet", "--out", tmp_path]
    result = run(*words, "--prevalence", 0.1)
    assert result.exit_code == 0, result.output
    for text in ("on 24 participants; the", "AUC", "sensitivity", "Calibration: intercept"):
        assert text in result.stdout
    assert "The smallest class has 12 participants" in result.stdout
    result = run(*words)
    assert result.exit_code == 2
    assert "validation.html: exists already" in result.stderr


def test_wrong_labels_are_one_line(folder, tmp_path):
    table = FeatureTable.read(folder / "other.parquet")
    path = FeatureTable(table.X, table.y.replace("HC", "well"), table.subjects)
    path = path.write(tmp_path / "named.csv")
    result = run("validate", folder / "model.skops", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "named.csv: the labels are MDD and well" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_training_table_is_refused_in_one_line_unless_it_is_asked_for(folder, tmp_path):
    words = ["validate", folder / "model.skops", folder / "clinic.parquet", "--out", tmp_path]
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "clinic.parquet: the model was trained on all 20 participants" in result.stderr
    result = run(*words, "--include-training")
    assert result.exit_code == 0, result.output
    assert "were trained on: the scores say nothing about others" in result.output


def test_what_differs_from_the_card_is_said_and_numbers_without_ci_stand_alone(validation):
    def said(**changes):
        (first, *rest), measured = validation.measured["card"], validation.measured
        changed = {**measured, "card": [first | changes, *rest]}
        return describe_validation(replace(validation, measured=changed))[0]

    lower = {"mean": -0.3, "low": -0.5, "high": -0.1}
    assert said(difference=lower).endswith("it is lower here.")
    higher = {"mean": 0.3, "low": 0.1, "high": 0.5}
    assert said(difference=higher).endswith("it is higher here.")
    unknown = dict.fromkeys(("low", "high"))
    alone = said(difference=lower | unknown, card={"mean": 0.9, **unknown})
    assert alone.endswith("the model's card says 0.90: without a CI to compare.")
    rows = {row[0]: row for row in score_rows(validation)}
    card = {row["score"]: row["difference"] for row in validation.measured["card"]}
    points = round(100 * card["sensitivity"]["mean"])
    assert rows["sensitivity"][3].startswith(f"{points} (".replace("-", "−"))


def test_plots_are_drawn_on_axes_that_are_given(validation):
    ax = plt.figure().add_subplot()
    assert plot_validation(validation, ax) is ax
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["card of the model", "validation", "sex f (12)", "sex m (12)"]
    plt.close("all")


def test_names_on_the_page_are_only_text(folder, validation, tmp_path):
    model = load_model(folder / "model.skops")
    page = write_validation(model, validation, tmp_path, name="<script>alert(1)</script>")
    assert "<script>alert" not in page.read_text()


def test_recordings_of_a_manifest_are_validated(tmp_path):
    cohort = simulate_cohort(8, 3, duration=20, detached=0, random_state=0)
    extract_table(cohort.recordings).table.write(tmp_path / "table.parquet")
    cli.train(tmp_path / "table.parquet", tmp_path / "model.skops", folds=2, repeats=1)
    lines = []
    for recording in simulate_cohort(4, 3, duration=20, detached=0, random_state=1).recordings:
        recording.load().save(tmp_path / f"{recording.subject}_raw.fif", verbose="error")
        lines.append(f"{recording.subject}_raw.fif,{recording.subject},{recording.label}")
    manifest = tmp_path / "study.csv"
    manifest.write_text("\n".join(["path,subject,label", *lines]))
    validation = cli.validate(tmp_path / "model.skops", manifest, tmp_path / "out")
    assert validation.measured["n_subjects"] == {"control": 2, "depressed": 2}
