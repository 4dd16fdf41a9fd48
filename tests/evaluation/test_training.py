"""Models are measured on people they have not seen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from idfsmec._validation import derive_seed
from idfsmec.errors import InputError
from idfsmec.evaluation import train_model
from idfsmec.metrics import fold_interval
from idfsmec.prediction import load_model, save_model
from idfsmec.prediction.folds import make_folds
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

QUICK = make_pipeline(SimpleImputer(), LogisticRegression())


@pytest.fixture(scope="module")
def model():
    return train_model(make_cohort(n_subjects=40), QUICK, n_repeats=2)


def test_a_true_difference_is_found_above_chance(model):
    for measured in model.performance["metrics"].values():
        assert 0.7 < measured["mean"] <= 1.0
        assert measured["low"] <= measured["mean"] <= measured["high"]
        assert measured["low"] > measured["chance"] == 0.5


def test_none_is_not():
    found = train_model(make_cohort(n_subjects=40, effect=0.0), QUICK, n_repeats=2).performance
    assert found["metrics"]["roc_auc"]["low"] < 0.5 < found["metrics"]["roc_auc"]["high"]


def test_every_person_is_held_out_once_a_repetition(model):
    held_out = model.performance["held_out"]
    assert len(held_out["true"]) == len(held_out["left"][0]) == 40
    assert sum(one["n"] for one in model.performance["calibration"]["bins"]) == 40
    assert model.protocol == {"folds": "subject", "n_splits": 10, "n_repeats": 2, "seed": 0}


def test_fewer_channels_are_worse(model):
    shares = model.performance["by_share"]
    assert [one["share"] for one in shares] == [1.0, 0.75, 0.5, 0.25]
    assert shares[0]["mean"] == model.performance["metrics"]["roc_auc"]["mean"]
    assert shares[-1]["mean"] < shares[0]["mean"]


def test_auc_and_balanced_accuracy_are_means_over_folds_with_their_interval():
    table = make_cohort(n_subjects=40, effect=0.5)
    single = train_model(table, QUICK, n_splits=4, n_repeats=1).performance
    held_out = single["held_out"]
    y, left = np.array(held_out["true"]), np.array(held_out["left"])[0, :, 1]
    predicted = np.argmax(held_out["calibrated"], axis=1)
    names = np.unique(table.subjects)
    seed = derive_seed("model", 0, 0)
    tests = [
        np.unique(np.searchsorted(names, table.subjects.to_numpy()[test]))
        for _, test in make_folds(table.y, table.subjects, n_splits=4, random_state=seed)
    ]
    expected = {
        "roc_auc": [roc_auc_score(y[of], left[of]) for of in tests],
        "balanced_accuracy": [balanced_accuracy_score(y[of], predicted[of]) for of in tests],
    }
    for name, scores in expected.items():
        ci = fold_interval(scores, 40)
        found = [single["metrics"][name][end] for end in ("mean", "low", "high")]
        assert found == pytest.approx([ci.mean, ci.low, ci.high])


@pytest.mark.slow
def test_it_does_not_depend_on_processes_and_survives_its_file(model, tmp_path):
    again = train_model(make_cohort(n_subjects=40), QUICK, n_repeats=2, n_jobs=2)
    assert again.performance == model.performance
    assert load_model(save_model(model, tmp_path / "m.skops")).performance == model.performance


def test_three_classes_and_few_people():
    table = make_cohort(n_subjects=9, n_classes=3)
    model = train_model(table, QUICK, n_repeats=1)
    assert model.protocol["n_splits"] == 3
    assert model.performance["calibration"]["class"] == ""
    assert len(model.performance["held_out"]["left"][0][0]) == 3


@pytest.mark.slow
def test_the_default_says_which_channels_it_uses():
    model = train_model(make_cohort(n_subjects=16, effect=3.0), n_splits=2, n_repeats=1)
    assert set(list(model.performance["channels"])[:2]) == {"E1", "E2"}


@pytest.mark.parametrize("n_missing", [0, 1])
def test_a_classifier_that_takes_no_missing_values_says_what_to_do(n_missing):
    table = make_cohort(n_subjects=8)
    table.X.iloc[:n_missing, 0] = np.nan
    with pytest.raises(InputError, match=r"GaussianNB does not take NaN, .* before it, sklearn"):
        train_model(table, GaussianNB(), n_splits=2, n_repeats=1)


def test_one_person_in_a_class_is_refused():
    table = make_cohort(n_subjects=8)
    few = table.take(table.subjects.isin(["s00", "s01", "s02", "s04"]).to_numpy())
    with pytest.raises(InputError, match="one participant only"):
        train_model(few, DummyClassifier())


def test_a_clinic_reads_sensitivity_predictive_values_and_groups():
    table = make_cohort(n_subjects=40)
    number = table.subjects.str[1:].astype(int).to_numpy()
    rows = pd.DataFrame({"sex": np.where(number < 8, "f", "m"), "age": 20 + number})
    known = FeatureTable(table.X, table.y, table.subjects, rows=rows)
    performance = train_model(known, QUICK, n_repeats=1, prevalence=0.1).performance
    clinical, held_out = performance["clinical"], performance["held_out"]
    scores, true = clinical["scores"], np.array(held_out["true"])
    predicted = np.array(held_out["calibrated"]).argmax(axis=1)
    assert scores["sensitivity"]["mean"] == np.mean(predicted[true == 1] == 1)
    assert scores["specificity"]["mean"] == np.mean(predicted[true == 0] == 0)
    both = (scores["sensitivity"]["mean"] + scores["specificity"]["mean"]) / 2
    assert performance["metrics"]["balanced_accuracy"]["mean"] == pytest.approx(both)
    assert scores["PPV"]["mean"] < both < scores["NPV"]["mean"]
    groups = [f"{group['by']} {group['group']}" for group in clinical["groups"]]
    ages = ["age under 30", "age 30 to 44", "age 45 to 59"]
    assert groups == ["sex f", "sex m", *ages]
    assert clinical["groups"][0]["n_subjects"] == [4, 4]
    best = max(clinical["decision_curve"], key=lambda row: row["mean"])
    assert best["low"] <= best["mean"] <= best["high"]
    assert best["mean"] > max(best["all"], 0)


def test_a_prevalence_is_a_share():
    with pytest.raises(InputError, match=r"prevalence is 1\.5: give a share"):
        train_model(make_cohort(), QUICK, prevalence=1.5)
