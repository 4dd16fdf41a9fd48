"""Cards of models and pages about people: all is said, names are text, nothing is replaced."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from idfsmec.errors import ExistingFileError
from idfsmec.evaluation import train_model
from idfsmec.prediction import fit_model, predict_subjects, save_model
from idfsmec.report import plot_calibration, write_model_card, write_subject_pages
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

QUICK = make_pipeline(SimpleImputer(), LogisticRegression())
NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def model():
    return train_model(make_cohort(), QUICK, n_splits=3, n_repeats=1)


def card_of(model, folder):
    markdown, page = write_model_card(model, save_model(model, folder / "m.skops"))
    return markdown.read_text(), page.read_text()


def test_a_card_says_how_good_it_is_and_against_what(model, tmp_path):
    markdown, page = card_of(model, tmp_path)
    auc = model.performance["metrics"]["roc_auc"]
    assert f"| AUC | {auc['mean']:.2f} |" in markdown
    assert "| 0.50 |" in markdown
    assert f'<p class="big">{auc["mean"]:.2f} <small>per participant' in page
    assert "- sharing: Hand out one model per table: two models of n and n" in markdown
    assert "two models of n and n - 1 participants give the values of the participant" in page
    for heading in ("Intended use", "Decision curve", "Calibration", "Missing channels"):
        assert heading in markdown
    assert re.search(r"SHA-256 [0-9a-f]{64}", markdown)
    assert '<h2><a class="self" href="#decision-curve">Decision curve</a></h2>' in page
    assert page.count("<script") == 1


def test_groups_of_few_participants_are_pointed_out_and_a_red_audit_stands_twice(
    tmp_path,
):
    table = make_cohort()
    rows = pd.DataFrame({"sex": np.where(table.subjects < "s06", "female", "male")})
    known = FeatureTable(table.X, table.y, table.subjects, rows=rows)
    red = {"level": "red", "title": "Confounded", "verdict": "By the amplifier."}
    model = train_model(known, QUICK, n_splits=2, n_repeats=1, audit=red)
    markdown, page = card_of(model, tmp_path)
    for text in (markdown, page):
        few = "Too few to rely on (below 10 of a class): sex female and sex male"
        assert few in text
        assert text.count("By the amplifier.") == 1
        assert text.count("the recordings of the groups differ") == 1
    assert "| sex female | 3 / 3 |" in markdown


def test_a_card_is_replaced_on_demand_only(model, tmp_path):
    path = save_model(model, tmp_path / "m.skops")
    write_model_card(model, path)
    with pytest.raises(ExistingFileError, match=r"m\.md"):
        write_model_card(model, path)
    write_model_card(model, path, overwrite=True)


def test_what_was_not_measured_is_said(tmp_path):
    markdown, page = card_of(fit_model(make_cohort(), QUICK), tmp_path)
    assert "Not measured." in markdown
    assert "Not measured" in page


def test_names_are_only_text(tmp_path):
    table = make_cohort(n_subjects=12)
    nasty = FeatureTable(
        table.X.rename(columns=lambda one: one.replace("E1", NASTY)),
        table.y.replace("HC", NASTY),
        table.subjects.replace("s00", NASTY),
    )
    model = train_model(nasty, QUICK, n_splits=2, n_repeats=1)
    markdown, page = card_of(model, tmp_path)
    assert "<img" not in page
    assert not re.search(r"(?<!\\)<img", markdown)
    pages = write_subject_pages(model, predict_subjects(model, nasty), tmp_path / "pages")
    assert not any("<img" in one.read_text() for one in pages)


def test_subjects_of_one_name_get_pages_of_their_own(model, tmp_path):
    said = predict_subjects(model, make_cohort(n_subjects=3))
    alike = [
        replace(one, subject=name)
        for one, name in zip(said.subjects, ["A b", "a-b", "a_b"], strict=True)
    ]
    pages = write_subject_pages(model, replace(said, subjects=tuple(alike)), tmp_path)
    assert [one.name for one in pages] == ["a-b.html", "a-b-2.html", "a-b-3.html"]
    with pytest.raises(ExistingFileError):
        write_subject_pages(model, replace(said, subjects=tuple(alike)), tmp_path)


def test_a_page_warns_of_what_makes_its_prediction_unreliable(model, tmp_path):
    said = predict_subjects(model, make_cohort(n_subjects=1))
    doubted = replace(said.subjects[0], warnings=("far outside",))
    (page,) = write_subject_pages(model, replace(said, subjects=(doubted,)), tmp_path)
    assert "<strong>Do not rely on this.</strong> Far outside.</aside>" in page.read_text()


def test_a_name_with_lines_of_its_own_is_no_further_fact(tmp_path):
    table = make_cohort(n_subjects=12)
    labels = table.y.replace("HC", "HC\nfeatures: none")
    model = fit_model(FeatureTable(table.X, labels, table.subjects), QUICK)
    markdown, _ = card_of(model, tmp_path)
    assert "- participants: HC features: none: 6, MDD: 6\n" in markdown
    assert "- features: 12 columns\n" in markdown


def test_three_classes_have_a_curve_too():
    model = train_model(make_cohort(n_subjects=18, n_classes=3), QUICK, n_splits=2, n_repeats=1)
    ax = plot_calibration(model.performance["calibration"])
    assert ax.get_xlabel() == "probability of the predicted class"
    plt.close(ax.get_figure())
