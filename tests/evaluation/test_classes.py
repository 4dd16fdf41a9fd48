"""Three diagnoses: each against the rest, and which is predicted for which."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_score, recall_score, roc_auc_score

from idfsmec.evaluation import Results, class_scores, train_model, validate
from idfsmec.evaluation.clinical import summarise_classes
from idfsmec.metrics import fixed_auc, fold_interval, wilson_interval
from idfsmec.prediction import predict_subjects, save_model
from idfsmec.report import write_model_card, write_report, write_subject_pages
from idfsmec.report.validation import write_validation
from tests.report.make_results import simulate, write_results

LABELS = ("BD", "HC", "MDD")


@pytest.fixture(scope="module")
def model():
    return train_model(simulate(labels=LABELS, n_subjects=36, effect=1.0), n_splits=3, n_repeats=1)


def test_each_class_has_the_numbers_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    decisions = rng.normal(size=(2, 60, 3)) + np.eye(3)[y]
    found = summarise_classes(LABELS, y, decisions[0], decisions, None)
    predicted = decisions[0].argmax(axis=1)
    assert found["confusion"] == confusion_matrix(y, predicted).tolist()
    for k, row in enumerate(found["classes"]):
        n_k = int((y == k).sum())
        assert (row["class"], row["n_subjects"]) == (LABELS[k], n_k)
        area = roc_auc_score(y == k, decisions[0][:, k])
        assert row["auc"]["mean"] == pytest.approx(area)
        ends = row["auc"]["low"], row["auc"]["high"]
        assert ends == pytest.approx(fixed_auc(decisions[0][:, k], y == k)[1:])
        hits = recall_score(y == k, predicted == k)
        assert row["scores"]["sensitivity"]["mean"] == pytest.approx(hits)
        ends = [row["scores"]["sensitivity"][end] for end in ("low", "high")]
        assert ends == pytest.approx(wilson_interval(hits * n_k, n_k))
        # At the share of the class here PPV is the precision.
        precision = precision_score(y == k, predicted == k)
        assert row["scores"]["PPV"]["mean"] == pytest.approx(precision)
    fold_of = np.stack([np.arange(60) % 4, np.arange(60) // 15])
    row = summarise_classes(LABELS, y, decisions[0], decisions, fold_of)["classes"][1]
    by_fold = [
        [roc_auc_score(y[of == fold] == 1, each[of == fold, 1]) for fold in range(4)]
        for each, of in zip(decisions, fold_of, strict=True)
    ]
    interval = fold_interval(by_fold, 60)
    assert [row["auc"][end] for end in ("mean", "low", "high")] == pytest.approx(
        [interval.mean, interval.low, interval.high]
    )


def test_a_class_of_which_nobody_is_there_has_no_number():
    y = np.array([0, 0, 1, 1])
    row = summarise_classes(LABELS, y, np.eye(3)[y], np.eye(3)[y][None], None)["classes"][2]
    assert np.isnan(row["auc"]["mean"])
    assert (row["n_subjects"], row["scores"]) == (0, {})


def test_card_and_pages_name_all_classes_in_the_order_of_the_model(model, tmp_path):
    by_class = model.performance["by_class"]
    assert [row["class"] for row in by_class["classes"]] == list(LABELS)
    assert np.sum(by_class["confusion"], axis=1).tolist() == [12, 12, 12]
    path = save_model(model, tmp_path / "m.skops")
    card = write_model_card(model, path)[0].read_text("utf-8")
    assert "| true class | predicted BD | predicted HC | predicted MDD |" in card
    made = predict_subjects(model, simulate(labels=LABELS, n_subjects=9, seed=4))
    columns = [name for name in made.frame if name.startswith("probability of")]
    assert columns == [f"probability of {label}" for label in LABELS]
    page = write_subject_pages(model, made, tmp_path)[0].read_text("utf-8")
    places = [page.index(f'<span class="name">{label}</span>') for label in LABELS]
    assert places == sorted(places)


def test_three_classes_are_validated_each_against_the_rest(model, tmp_path):
    other = simulate(labels=LABELS, n_subjects=30, effect=0.8, seed=5)
    validation = validate(model, other)
    measured, frame = validation.measured, validation.predictions
    y, given = frame["true"], frame[[f"probability of {label}" for label in LABELS]].to_numpy()
    assert measured["n_subjects"] == {"BD": 10, "HC": 10, "MDD": 10}
    area = roc_auc_score(y, given / given.sum(axis=1, keepdims=True), multi_class="ovr")
    assert measured["metrics"]["roc_auc"]["mean"] == pytest.approx(area)
    assert measured["by_class"]["confusion"] == confusion_matrix(y, frame["predicted"]).tolist()
    recall = recall_score(y, frame["predicted"], average="macro")
    assert measured["metrics"]["balanced_accuracy"]["mean"] == pytest.approx(recall)
    assert [row["score"] for row in measured["card"]] == ["roc_auc", "balanced_accuracy"]
    text = write_validation(model, validation, tmp_path).read_text("utf-8")
    assert "Classes, each against the rest" in text
    assert "predicted MDD" in text
    assert "Decision curve" not in text


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figure_files")
def test_the_benchmark_of_three_classes_has_them_each_on_its_page(tmp_path):
    table = simulate(labels=LABELS, n_subjects=36, effect=1.0)
    options = {"rates": (0.3,), "seeds": (0, 1), "n_splits": 3}
    results = Results.read(write_results(tmp_path, {"t": table}, ("accuracy",), (), **options))
    scored = class_scores(results)
    assert [row["class"] for row in scored["classes"]] == list(LABELS)
    assert np.sum(scored["confusion"]) == 36
    rows = results.of_classes
    assert len(rows) == 2 * 36
    by_fold = [
        roc_auc_score(fold["true"] == 2, [values[2] for values in fold["probabilities"]])
        for _, fold in rows.groupby(["seed", "fold"])
    ]
    assert scored["classes"][2]["auc"]["mean"] == pytest.approx(np.mean(by_fold))
    clinical = (tmp_path / "clinical.csv").read_text("utf-8")
    assert "predicted MDD" in clinical
    text = write_report(tmp_path).read_text("utf-8")
    assert "Classes, each against the rest" in text
    assert "Predicted classes" in text
