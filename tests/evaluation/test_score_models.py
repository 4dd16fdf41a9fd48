"""Models of a score: trained, measured, kept, and used for new participants."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.stats import linregress, norm, pearsonr, spearmanr, t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import train_model, validate
from idfsmec.evaluation.agreement import (
    calibrate,
    calibration_line,
    measure_errors,
    measure_fixed,
    measure_scores,
)
from idfsmec.metrics import SCORE_METRICS, score_grades, score_predictions
from idfsmec.prediction import fit_model, load_model, predict_subjects, save_model
from idfsmec.prediction.calibration import interval_reach
from idfsmec.report import write_model_card, write_subject_pages
from idfsmec.report.validation import describe_validation, write_validation
from idfsmec.table import FeatureTable
from tests.evaluation.test_scores import make_scored


@pytest.fixture(scope="module")
def model():
    return train_model(make_scored(), n_splits=4, n_repeats=2)


def test_the_reach_holds_the_next_error_as_often_as_it_says():
    errors = np.random.default_rng(0).normal(size=(2000, 40))
    reaches = np.array([interval_reach(of[None, :39]) for of in errors])
    # Of 40 exchangeable errors the last is among the smallest 38: 38 / 40.
    assert np.mean(np.abs(errors[:, 39]) <= reaches) == pytest.approx(0.95, abs=0.015)
    repeated = np.vstack([errors[0, :39], errors[0, :39]])
    assert interval_reach(repeated) == reaches[0]
    assert np.isnan(interval_reach(errors[:1, :18]))
    assert interval_reach(np.arange(-19.0, 0.0)[None]) == 19


def test_calibration_is_the_regression_of_scores_on_predictions():
    rng = np.random.default_rng(0)
    predicted, true = rng.normal(15, 3, 30), rng.normal(15, 6, 30)
    line = calibrate(predicted, true)
    fit = linregress(predicted, true)
    assert_allclose([line["slope"], line["intercept"]], [fit.slope, fit.intercept])
    assert np.isnan(calibrate(np.full(30, 15.1), true)["slope"])


def test_what_is_measured_are_means_over_folds():
    rng = np.random.default_rng(1)
    true = rng.normal(15, 6, 20)
    predicted = true + rng.normal(0, 4, (1, 2, 20))
    fold_of = np.arange(20)[None] % 4
    measured = measure_scores(predicted, true, fold_of, (1.0, 0.5))
    by_hand = [
        score_predictions(predicted[0, 0, out], true[out], np.arange(5), true[~out], SCORE_METRICS)
        for out in (fold_of[0] == fold for fold in range(4))
    ]
    for name, values in measured["metrics"].items():
        assert values["mean"] == pytest.approx(np.mean([found[name] for found in by_hand]))
    of_mean = np.mean([found["subject_mae_of_mean"] for found in by_hand])
    assert measured["metrics"]["subject_mae"]["chance"] == pytest.approx(of_mean)
    errors = np.sort(np.abs(predicted[0, 1] - true))
    assert measured["held_out"]["reach"][1] == errors[19]
    assert [share["share"] for share in measured["by_share"]] == [1.0, 0.5]


def test_a_model_predicts_scores_with_intervals_that_grow_with_what_is_missing(model):
    new = make_scored(30, seed=9)
    predicted = predict_subjects(model, new)
    frame = predicted.frame.set_index("subject")
    score = new.scores.groupby(level=0).first()
    assert model.score == "bdi"
    assert model.classes == []
    assert np.corrcoef(frame["predicted"], score.loc[frame.index])[0, 1] > 0.6
    reach = model.performance["held_out"]["reach"]
    assert_allclose(frame["high"] - frame["predicted"], reach[0])
    assert_allclose(frame["predicted"] - frame["low"], reach[0])
    inside = score.loc[frame.index].between(frame["low"], frame["high"])
    assert inside.mean() > 0.8
    assert not any(column.startswith("probability") for column in frame)
    few = FeatureTable(
        new.X[["E1__f1", "E1__f2", "E1__f3"]].reset_index(drop=True), new.y, new.subjects, new.info
    )
    fewer = predict_subjects(model, few).frame
    assert_allclose(fewer["high"] - fewer["predicted"], reach[3])


def test_a_kept_model_predicts_the_same(model, tmp_path):
    path = save_model(model, tmp_path / "m.skops")
    again = load_model(path)
    new = make_scored(12, seed=4)
    pd.testing.assert_frame_equal(
        predict_subjects(again, new).frame, predict_subjects(model, new).frame
    )
    assert again.score == "bdi"
    assert "score bdi" in repr(again)


def test_an_estimator_of_the_wrong_kind_is_refused():
    with pytest.raises(InputError, match="is no regressor"):
        fit_model(make_scored(), LogisticRegression())


def test_card_and_pages_speak_of_the_score(model, tmp_path):
    path = save_model(model, tmp_path / "m.skops")
    markdown, page = write_model_card(model, path)
    text = markdown.read_text("utf-8")
    assert "IDFSMECRegressor predicts bdi with an R² of" in text
    assert "| R² against the mean |" in text
    assert "Calibration slope" in text
    assert f"± {model.performance['held_out']['reach'][0]:.1f}" in text
    assert "AUC" not in text
    assert "Observed against predicted bdi" in page.read_text("utf-8")
    made = predict_subjects(model, make_scored(12, seed=4))
    pages = write_subject_pages(model, made, tmp_path / "pages")
    first = " ".join(pages[0].read_text("utf-8").split())
    assert f"Predicted bdi: {made.subjects[0].predicted:.1f}." in first
    assert "95 in 100 participants" in first
    assert "Probability of" not in first


def test_grades_have_scikit_learns_kappa_and_the_mean_auc_of_cuts():
    rng = np.random.default_rng(4)
    true = rng.integers(0, 4, 50)
    predicted = true + rng.normal(0, 0.8, 50)
    found = score_grades(predicted, true, 4)
    nearest = np.clip(np.round(predicted), 0, 3)
    kappa = cohen_kappa_score(true, nearest, weights="quadratic")
    assert found["grade_kappa"] == pytest.approx(kappa)
    cuts = [roc_auc_score(true >= cut, predicted) for cut in (1, 2, 3)]
    assert found["grade_auc"] == pytest.approx(np.mean(cuts))
    assert np.isnan(score_grades(np.zeros(3), np.zeros(3, dtype=int), 4)["grade_auc"])


def test_grades_are_measured_and_named(tmp_path):
    scored = make_scored(32)
    order = ["HC", "mild", "severe"]
    table = scored_as(scored, order).with_order(order)
    model = train_model(table, "ANOVA F", n_splits=3, n_repeats=1)
    metrics = model.performance["metrics"]
    assert metrics["grade_auc"]["low"] < metrics["grade_auc"]["mean"] <= 1
    assert (metrics["grade_auc"]["chance"], metrics["grade_kappa"]["chance"]) == (0.5, 0)
    frame = predict_subjects(model, table).frame
    nearest = [order[round(min(max(value, 0), 2))] for value in frame["predicted"]]
    assert frame["nearest grade"].tolist() == nearest
    path = save_model(model, tmp_path / "m.skops")
    assert "weighted kappa of grades" in write_model_card(model, path)[0].read_text("utf-8")
    made = predict_subjects(model, table)
    page = write_subject_pages(model, made, tmp_path / "pages")[0].read_text("utf-8")
    assert f"Nearest grade: {made.subjects[0].grade}" in page
    assert validate(model, scored_as(make_scored(20, seed=5), order)).measured["score"] == "grade"


def scored_as(scored, order):
    words = np.array(order)[np.digitize(scored.y, [13, 26])]
    return FeatureTable(scored.X, words, scored.subjects)


def test_a_fixed_model_has_the_intervals_of_scipy_and_statsmodels():
    rng = np.random.default_rng(2)
    predicted = rng.normal(15, 3, 40)
    true = predicted + rng.normal(0, 4, 40)
    found = measure_fixed(predicted, true, 12.0)
    ratio = np.sum((true - predicted) ** 2) / np.sum((true - 12) ** 2)
    assert found["subject_r2"]["mean"] == pytest.approx(1 - ratio)
    # The delta method by hand: the variance of the logarithm of a ratio of means.
    a, b = (true - predicted) ** 2, (true - 12) ** 2
    cov = np.cov(a, b) / 40
    part = np.array([1 / a.mean(), -1 / b.mean()])
    half = t(39).ppf(0.975) * np.sqrt(part @ cov @ part)
    assert found["subject_r2"]["low"] == pytest.approx(1 - ratio * np.exp(half))
    assert found["subject_r2"]["high"] == pytest.approx(1 - ratio * np.exp(-half))
    r, rho = pearsonr(predicted, true), spearmanr(predicted, true).statistic
    ends = [found["subject_pearson"][end] for end in ("mean", "low", "high")]
    assert_allclose(ends, [r.statistic, *r.confidence_interval()])
    reach = norm.ppf(0.975) * np.sqrt((1 + rho**2 / 2) / 37)  # Bonett and Wright 2000
    assert found["subject_spearman"]["low"] == pytest.approx(np.tanh(np.arctanh(rho) - reach))
    errors = true - predicted
    ends = t.interval(0.95, 39, errors.mean(), errors.std(ddof=1) / np.sqrt(40))
    assert_allclose([measure_errors(predicted, true)["error"][e] for e in ("low", "high")], ends)
    assert found["subject_mae"]["mean"] == pytest.approx(np.abs(errors).mean())
    assert found["subject_mae"]["chance"] == pytest.approx(np.abs(true - 12).mean())


def test_the_calibration_of_scores_elsewhere_is_that_of_statsmodels_with_hc3():
    rng = np.random.default_rng(3)
    predicted = rng.normal(15, 3, 30)
    true = 2 + 0.8 * predicted + rng.normal(0, predicted / 4)
    line = calibration_line(predicted, true)
    fit = sm.OLS(true, sm.add_constant(predicted)).fit(cov_type="HC3", use_t=True)
    for name, value, ends in zip(
        ("intercept", "slope"), fit.params, fit.conf_int(0.05), strict=True
    ):
        assert_allclose([line[name][end] for end in ("mean", "low", "high")], [value, *ends])
    assert calibration_line(np.full(30, 15.1), true)["slope"] is None


def test_a_score_is_validated_on_other_participants_beside_its_card(model, tmp_path):
    scored = make_scored(40, seed=9)
    rows = scored.rows.assign(bdi=scored.y).drop(columns="diagnosis")
    rows.loc[rows.index[:6], "bdi"] = np.nan
    table = FeatureTable(scored.X.reset_index(drop=True), ["?"] * 80, scored.subjects, rows=rows)
    with pytest.warns(UserWarning, match="3 of 40 participants have no bdi"):
        validation = validate(model, table)
    measured, frame = validation.measured, validation.predictions
    assert measured["n_subjects"] == {"bdi": 37}
    trained_mean = make_scored().scores.groupby(level=0).first().mean()
    errors, of_mean = frame["true"] - frame["predicted"], frame["true"] - trained_mean
    r2 = 1 - np.sum(errors**2) / np.sum(of_mean**2)
    assert measured["metrics"]["subject_r2"]["mean"] == pytest.approx(r2)
    assert [row["score"] for row in measured["card"]] == list(SCORE_METRICS[:-1])
    inside = frame["true"].between(frame["low"], frame["high"])
    assert measured["interval"]["mean"] == pytest.approx(inside.mean())
    is_young = (table.rows["age"] < 30).groupby(table.subjects.to_numpy()).first()
    group = measured["groups"][0]
    young = errors[frame["subject"].map(is_young).to_numpy(dtype=bool)]
    assert (group["group"], group["n_subjects"]) == ("under 30", [len(young)])
    assert group["scores"]["error"]["mean"] == pytest.approx(young.mean())
    page = write_validation(model, validation, tmp_path)
    said = " ".join(describe_validation(validation))
    assert "R² of bdi" in said
    assert "of the scores lie in their prediction interval" in said
    text = " ".join(page.read_text("utf-8").split())
    assert "mean absolute error" in text
    assert "Observed against predicted bdi" in text
    assert "probability" not in (tmp_path / "reporting.md").read_text("utf-8")
    with pytest.raises(InputError, match="no column 'bdi'"):
        validate(model, FeatureTable(table.X, table.y, table.subjects))
    with pytest.raises(InputError, match="a prevalence is for models of two classes"):
        validate(model, scored, prevalence=0.1)


@pytest.mark.slow
def test_the_commands_train_and_predict_a_score(tmp_path):
    table = make_scored(20)
    rows = table.rows.assign(bdi=table.y).drop(columns="diagnosis")
    labels = pd.Series(np.where(table.y > 20, "MDD", "HC"))
    path = tmp_path / "t.parquet"
    FeatureTable(table.X.reset_index(drop=True), labels, table.subjects, rows=rows).write(path)
    model = str(tmp_path / "m.skops")
    words = [
        "train",
        str(path),
        "--target",
        "bdi",
        "-o",
        model,
        "--repeats",
        "1",
        "--folds",
        "3",
        "--method",
        "ANOVA F",
    ]
    done = CliRunner().invoke(app, words, terminal_width=200)
    assert done.exit_code == 0, done.output
    assert "R² against the mean" in done.output
    words = ["predict", model, str(path), "-o", str(tmp_path / "p.csv")]
    done = CliRunner().invoke(app, words, terminal_width=200)
    assert done.exit_code == 0, done.output
    assert "interval of 95 in 100" in done.output
    frame = pd.read_csv(tmp_path / "p.csv")
    assert (frame["low"] < frame["predicted"]).all()
