"""The report of a score: agreement, residuals, ceiling, and what is said of them."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import accuracy
from idfsmec.evaluation.statistics import interval_by_fold
from idfsmec.report import predicted, summarise, write_report
from idfsmec.report.data import TableResults
from idfsmec.report.verdict import score_headline
from tests.evaluation.test_scores import LEAN, make_scored


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return accuracy(
        {"strong": make_scored(), "none": make_scored(strength=0.0, seed=5)},
        tmp_path_factory.mktemp("run"),
        methods=["IDFS-MEC", "all features"],
        protocol={**LEAN, "rates": [0.0]},
    )


def test_the_sentence_has_the_scores_with_their_intervals(results):
    score = predicted.summarise_prediction(TableResults(results, "strong"))
    rows = results.chosen().query("table == 'strong' and method == 'IDFS-MEC'")
    folds = rows.set_index(["seed", "fold"])
    ci = interval_by_fold(folds["subject_r2"])
    assert score["r2"] == pytest.approx({"mean": ci.mean, "low": ci.low, "high": ci.high})
    assert score["better"] == ("yes" if ci.low > 0 else "no")
    assert f"{100 * ci.mean:.0f}" in score["sentence"]
    error, of_mean = folds["subject_mae"].mean(), folds["subject_mae_of_mean"].mean()
    assert f"error {error:.2f}, that of the mean {of_mean:.2f}" in score["sentence"]
    assert [row[0] for row in score["rows"]] == ["IDFS-MEC", "all features"]
    assert len(score["header"]) == len(score["rows"][0]) == 6


def test_without_a_signal_the_headline_says_not_better_than_the_mean(results):
    findings = {t["name"]: t["findings"] for t in summarise(results)["tables"]}
    assert findings["none"]["score"]["better"] == "no"
    assert findings["none"]["headline"].startswith(
        "The prediction of bdi is not shown to be better than the mean of the participants trained"
    )
    assert "groups" not in findings["none"]["headline"]


def test_the_ceiling_is_the_root_of_the_reliabilities(results):
    table = TableResults(results, "strong", reliability=0.85)
    said = predicted.summarise_prediction(table)["ceiling"]
    assert "0.92" in said  # sqrt(0.85)
    assert "0.71 to 0.87" in said  # sqrt(0.85 * 0.6), sqrt(0.85 * 0.9)
    assert predicted.summarise_prediction(TableResults(results, "strong"))["ceiling"] == ""


def test_calibration_is_the_regression_of_scores_on_predictions():
    rng = np.random.default_rng(0)
    means = pd.DataFrame({"predicted": rng.normal(15, 4, 50)})
    means["true"] = 3 + 0.5 * means["predicted"]
    means["age"] = rng.integers(20, 60, 50)
    ax = predicted.plot_observed(means, "bdi")
    identity, line = ax.lines[:2]
    x, y = line.get_data()
    assert np.diff(y) / np.diff(x) == pytest.approx(0.5)
    assert np.array_equal(*identity.get_data())
    residuals = predicted.plot_residuals(means, "age", "bdi").collections[0].get_offsets()
    np.testing.assert_allclose(residuals[:, 1], means["true"] - means["predicted"])
    np.testing.assert_allclose(residuals[:, 0], means["age"])


@pytest.mark.parametrize("stable", ["yes", "no", "unknown"])
@pytest.mark.parametrize("better", ["yes", "no", "unknown"])
def test_there_is_a_headline_for_every_outcome(better, stable):
    said = score_headline("bdi", better, stable, "alpha at Fz")
    assert "alpha at Fz" in said
    assert ("better than" in said) == (better != "unknown")


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figure_files")
def test_the_page_has_figures_and_the_table(results, tmp_path):
    with pytest.raises(InputError, match="above 0, at most 1"):
        write_report(results.folder, reliability=1.5)
    words = ["report", str(results.folder), "--reliability", "0.85", "--force"]
    assert CliRunner().invoke(app, words).exit_code == 0
    page = (results.folder / "report.html").read_text("utf-8")
    assert len(re.findall("Observed against predicted bdi", page)) >= 2
    assert "Residuals against age" in page
    assert "would correlate with the observed one by 0.92" in " ".join(page.split())
    assert (results.folder / "figures" / "observed-strong.svg").is_file()
