"""Sensitivity, predictive values and decision curve of a benchmark, on page and checklist."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation import Results, clinical_scores
from idfsmec.report import summarise, write_report, write_reporting_checklist
from idfsmec.table import FeatureTable
from tests.report.make_results import simulate, write_results

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    table = simulate()
    rows = pd.DataFrame({"sex": np.where(table.subjects < "sub-07", "<i>f", "m")})
    known = FeatureTable(table.X, table.y, table.subjects, rows=rows)
    out = tmp_path_factory.mktemp("described")
    return write_results(out, {"cohort": known}, ("accuracy",), methods=(), rates=(0.0,))


def test_the_page_has_the_scores_by_group_and_warns_of_few(described):
    (clinical,) = summarise(Results.read(described))["tables"][0]["clinical"]
    assert [row[:2] for row in clinical["rows"]] == [
        ["all", "12 / 12"],
        ["all, prevalence 5\N{NO-BREAK SPACE}%", ""],
        ["all, prevalence 10\N{NO-BREAK SPACE}%", ""],
        ["all, prevalence 20\N{NO-BREAK SPACE}%", ""],
        ["sex <i>f", "3 / 3"],
        ["sex m", "9 / 9"],
    ]
    few = "Too few to rely on (below 10 of a class): sex <i>f and sex m."
    assert clinical["text"].startswith("IDFS-MEC: calibrated probabilities, pooled over folds")
    assert clinical["text"].endswith(few)
    html = write_report(described, overwrite=True).read_text("utf-8")
    section = html.partition('<section id="clinical">')[2].partition("</section>")[0]
    assert ">Sensitivity, specificity, predictive values</a></h2>" in section
    assert "<i>" not in section


def test_the_checklist_has_the_numbers(described, tmp_path):
    results = Results.read(described)
    text = write_reporting_checklist(tmp_path / "c.md", results).read_text("utf-8")
    scores = clinical_scores(results)["scores"]
    assert f"sensitivity {100 * scores['sensitivity']['mean']:.0f}\N{NO-BREAK SPACE}%" in text
    assert r"sex \<i\>f (HC / MDD: 3 / 3): sensitivity" in text
    assert "Too few to rely on (below 10 of a class)" in text
    assert "net benefit: The 95 % CI lies above acting on all and acting on none at" in text


def test_three_classes_have_each_against_the_rest(tmp_path):
    table = simulate(labels=("BD", "HC", "MDD"))
    out = write_results(tmp_path, {"cohort": table}, ("accuracy",), methods=(), rates=(0.0,))
    results = Results.read(out)
    each, confusion = summarise(results)["tables"][0]["clinical"]
    assert [row[0] for row in each["rows"]] == ["BD", "HC", "MDD"]
    assert [sum(row[1:-1]) for row in confusion["rows"]] == [8, 8, 8]
    html = write_report(out).read_text("utf-8")
    assert ">Classes, each against the rest</a></h2>" in html
    assert "Net benefit" not in html
    text = write_reporting_checklist(tmp_path / "c.md", results).read_text("utf-8")
    assert "BD (participants: 8): AUC " in text
