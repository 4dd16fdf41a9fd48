"""Any method of the comparison can be trained for use, kept in a file and asked."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import train_model
from idfsmec.missing import simulate_missing
from idfsmec.prediction import (
    IMPUTERS,
    METHODS,
    fit_model,
    load_model,
    predict_subjects,
    save_model,
)
from idfsmec.prediction.methods import CLASSIFIERS
from tests.evaluation.cohorts import make_cohort


@pytest.fixture(scope="module")
def table():
    return simulate_missing(make_cohort(24, 2, effect=2.0), 0.3, random_state=0)


def ridge(**parts):
    return replace(METHODS["ANOVA F"], classifier="ridge", **parts)


def check(table, tmp_path, method):
    model = fit_model(table, METHODS.find(method).pipeline())
    again = load_model(save_model(model, tmp_path / "model.skops"))
    said = predict_subjects(again, table)
    few = table.take((table.subjects < "s06").to_numpy())
    assert predict_subjects(again, few).frame.equals(predict_subjects(model, few).frame)
    truth = table.y.groupby(table.subjects).first()
    right = [one.predicted == truth[one.subject] for one in said.subjects]
    assert np.mean(right) > 0.8
    assert again.kind == model.kind
    return again, said


@pytest.mark.parametrize(
    "name", [one if one == "ridge" else pytest.param(one, marks=pytest.mark.slow)
             for one in CLASSIFIERS]
)  # fmt: skip
@pytest.mark.slow
def test_every_classifier_can_be_kept(name, table, tmp_path):
    model, said = check(table, tmp_path, replace(METHODS["ANOVA F"], classifier=name))
    assert name in model.kind
    linear = name in ("svm", "logistic", "ridge", "idfsmec")
    assert bool(said.subjects[0].votes) == linear
    if linear:
        assert next(iter(said.subjects[0].votes)) in ("E1", "E2")


@pytest.mark.parametrize("name", list(IMPUTERS))
def test_every_filler_can_be_kept(name, table, tmp_path):
    model, _ = check(table, tmp_path, ridge(imputer=name))
    assert f"imputed by {name}" in model.kind


@pytest.mark.slow
@pytest.mark.parametrize("name", ["IDFS-MEC", "CD-LSR", "random forest", "gradient boosting"])
def test_methods_of_every_kind_can_be_kept(name, table, tmp_path):
    check(table, tmp_path, name)


def test_votes_of_channels_sum_to_the_decision_on_a_complete_sample(table):
    fitted = ridge().pipeline().fit(table.X, table.y, table.subjects)
    whole = table.X.dropna()
    odds = np.diff(np.log(fitted.predict_proba(whole)), axis=1)[:, 0]
    votes = fitted.channel_votes(whole)
    assert_allclose(odds - votes.sum(axis=1), (odds - votes.sum(axis=1))[0])
    assert_array_equal(np.isnan(fitted.channel_votes(table.X)), ~table.observed.to_numpy())


def test_the_same_people_give_the_same_model(table):
    first, again = (ridge().pipeline().fit(table.X, table.y, table.subjects) for _ in range(2))
    one, other = (made.predict_proba(table.X) for made in (first, again))
    assert_array_equal(one, other)
    assert first.best_params_["n_features_to_select"] == first.columns_.size


def test_what_is_not_registered_is_refused_before_the_work(table):
    with pytest.raises(InputError, match="there is no method 'none'"):
        train_model(table, "none")
