"""Models of a score: trained, measured, kept, and used for new participants."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import linregress
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import train_model
from idfsmec.evaluation.agreement import calibrate, measure_scores
from idfsmec.metrics import SCORE_METRICS, score_predictions
from idfsmec.prediction import fit_model, load_model, predict_subjects, save_model
from idfsmec.prediction.calibration import interval_reach
from idfsmec.report import write_model_card, write_subject_pages
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
