"""IDFSMECClassifier: votes of the channels that are there."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction import IDFSMECClassifier
from tests.conftest import make_channels


@parametrize_with_checks([IDFSMECClassifier()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def cohort():
    X, y, channels = make_channels(n_samples=160, n_channels=6, effect=2.5, missing=0.4)
    X[np.isnan(X).all(axis=1)] = 0.0  # every sample has something
    return X, y, channels


def test_it_tells_the_classes_of_samples_it_never_saw(cohort):
    X, y, channels = cohort
    assert cross_val_score(IDFSMECClassifier(channels), X, y, cv=4).mean() > 0.7


def test_the_votes_of_the_observed_channels_add_up_to_the_decision(cohort):
    X, y, channels = cohort
    model = IDFSMECClassifier(channels).fit(X, y)
    votes = model.channel_votes(X)
    assert_array_equal(np.isnan(votes), np.isnan(X.reshape(160, 6, 5)).any(axis=2))
    assert_allclose(np.nansum(votes, axis=1) + model.intercept_, model.decision_function(X))


def test_what_stands_in_a_partly_missing_channel_does_not_matter(cohort):
    X, y, channels = cohort
    model = IDFSMECClassifier(channels).fit(X, y)
    whole, part = X.copy(), X.copy()
    whole[:, :5] = np.nan
    part[:, 0] = np.nan
    with_others = ~np.isnan(whole).all(axis=1)
    assert_array_equal(
        model.decision_function(whole[with_others]), model.decision_function(part[with_others])
    )


def test_without_scores_it_is_logistic_regression_on_standardised_observed_values(cohort):
    """power = 0 and complete data: scikit-learn's estimator is the oracle."""
    X, y, channels = make_channels(missing=0.0)
    model = IDFSMECClassifier(channels, power=0.0, n_factors=0, C=3.0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(X.shape[1])
    oracle = LogisticRegression(C=3.0, tol=1e-8, max_iter=5000).fit(Z, y)
    assert_allclose(model.decision_function(X), oracle.decision_function(Z), atol=1e-3)
    assert_allclose(model.predict_proba(X), oracle.predict_proba(Z), atol=1e-3)


def test_more_features_than_samples_changes_the_road_not_the_result():
    X, y, channels = make_channels(n_samples=40, n_channels=12, missing=0.0)
    model = IDFSMECClassifier(channels, power=0.0, n_factors=0, C=10.0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(X.shape[1])
    oracle = LogisticRegression(C=10.0, tol=1e-8, max_iter=5000).fit(Z, y)
    assert_allclose(model.decision_function(X), oracle.decision_function(Z), atol=1e-2)


@pytest.mark.parametrize("n_factors", [0, 3])
def test_coefficients_are_those_of_complete_samples_in_the_units_of_the_features(n_factors):
    X, y, channels = make_channels(missing=0.3)
    model = IDFSMECClassifier(channels, n_factors=n_factors).fit(X, y)
    complete = make_channels(missing=0.0)[0]
    said = (complete - model.centre_) @ model.coef_[0] + model.intercept_
    assert_allclose(said, model.decision_function(complete))


def test_the_centre_is_the_mean_of_the_classes_means():
    X, y, channels = make_channels(missing=0.0)
    kept = np.flatnonzero((y == 0) | (np.arange(y.size) % 4 == 1))
    model = IDFSMECClassifier(channels).fit(X[kept], y[kept])
    means = [X[kept][y[kept] == k].mean(axis=0) for k in (0, 1)]
    assert_allclose(model.centre_, np.mean(means, axis=0))


def test_what_all_channels_share_is_taken_out_by_those_a_sample_has():
    """A nuisance hides the groups in every channel; other channels tell how large it is."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 20)) * 0.5 + 5 * rng.normal(size=(300, 1))
    X[:, 0] += 2.0 * y
    for v in range(10):
        X[rng.random(300) < 0.3, 2 * v : 2 * v + 2] = np.nan
    X[np.isnan(X).all(axis=1), 2:4] = 0.0
    channels = np.repeat(np.arange(10), 2)
    with_factors, without = (
        IDFSMECClassifier(channels, n_factors=q).fit(X[:150], y[:150]) for q in (1, 0)
    )
    having = 150 + np.flatnonzero(~np.isnan(X[150:, 0]))
    assert with_factors.score(X[having], y[having]) > 0.9
    assert without.score(X[having], y[having]) < 0.9


def test_units_and_offsets_of_the_features_do_not_matter(cohort):
    X, y, channels = cohort
    rng = np.random.default_rng(0)
    other = X * 10.0 ** rng.integers(-6, 6, X.shape[1]) + rng.normal(size=X.shape[1])
    here = IDFSMECClassifier(channels).fit(X, y)
    there = IDFSMECClassifier(channels).fit(other, y)
    assert_allclose(here.decision_function(X), there.decision_function(other), atol=1e-3)


def test_a_sample_without_any_channel_gets_the_prior_and_a_warning(cohort):
    X, y, channels = cohort
    kept = np.flatnonzero((y == 0) | (np.arange(y.size) % 4 == 1))
    model = IDFSMECClassifier(channels).fit(X[kept], y[kept])
    empty = np.full((2, X.shape[1]), np.nan)
    with pytest.warns(UserWarning, match="2 of 2 samples have no channel"):
        said = model.predict_proba(empty)
    assert_allclose(said, np.tile(np.bincount(y[kept]) / kept.size, (2, 1)))


@pytest.mark.parametrize("n_classes", [3, 4])
def test_several_classes(n_classes):
    X, y, channels = make_channels(n_samples=240, n_classes=n_classes, effect=4.0, missing=0.2)
    X[np.isnan(X).all(axis=1)] = 0.0
    labels = np.array(["none", "mild", "moderate", "severe"])[y]
    model = IDFSMECClassifier(channels).fit(X[:120], labels[:120])
    said = model.predict_proba(X[120:])
    assert said.shape == (120, n_classes)
    assert_allclose(said.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[said.argmax(axis=1)], model.predict(X[120:]))
    assert model.score(X[120:], labels[120:]) > 1.3 / n_classes
    assert model.channel_votes(X).shape == (240, 4, n_classes)
    with pytest.warns(UserWarning, match="no channel"):
        prior = model.predict_proba(np.full((1, X.shape[1]), np.nan))
    assert_allclose(prior[0], model.class_prior_)


def test_a_channel_seen_for_one_class_only_has_no_vote(cohort):
    X, y, channels = cohort
    X[y == 0, :5] = np.nan
    X[np.isnan(X).all(axis=1), 5:10] = 0.0
    with pytest.warns(UserWarning, match="E1"):
        model = IDFSMECClassifier(channels).fit(X, y)
    assert_array_equal(model.coef_[:, :5], 0.0)


def test_a_flat_feature_has_no_coefficient(cohort):
    X, y, channels = cohort
    X[~np.isnan(X[:, 7]), 7] = 5.0
    model = IDFSMECClassifier(channels).fit(X, y)
    assert model.coef_[0, 7] == 0.0
    assert np.isfinite(model.decision_function(X)).all()


def test_fewer_channels_leave_the_answer_closer_to_the_intercept(cohort):
    X, y, channels = make_channels(n_samples=200, n_channels=6, effect=2.5, missing=0.0)
    model = IDFSMECClassifier(channels).fit(X, y)
    few = X.copy()
    few[:, 10:] = np.nan
    all_said, few_said = (np.abs(model.decision_function(A) - model.intercept_) for A in (X, few))
    assert few_said.mean() < all_said.mean()


def test_subjects_stay_together_in_the_inner_folds():
    """Epochs of a subject are copies: folds that split them would trust noise."""
    rng = np.random.default_rng(1)
    subjects = np.repeat(np.arange(30), 6)
    y = rng.integers(0, 2, 30)[subjects]
    X = rng.normal(size=(30, 40))[subjects] + 0.01 * rng.normal(size=(180, 40))
    channels = np.repeat(np.arange(8), 5)
    apart = IDFSMECClassifier(channels).fit(X, y, groups=subjects)
    mixed = IDFSMECClassifier(channels).fit(X, y)
    assert apart.C_ < mixed.C_


def test_names_of_columns_give_channels_and_are_checked(cohort):
    X, y, channels = cohort
    frame = pd.DataFrame(X, columns=[f"{c}__f{j % 5}" for j, c in enumerate(channels)])
    model = IDFSMECClassifier().fit(frame, y)
    assert model.channel_names_.tolist() == [f"E{v + 1}" for v in range(6)]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_is_searched_over_by_grid_search(cohort):
    X, y, channels = cohort
    search = GridSearchCV(IDFSMECClassifier(channels, C=1.0), {"power": [0.0, 1.0]}, cv=3)
    assert np.isfinite(search.fit(X, y).best_score_)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"C": []}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"power": -1}, "power"),
        ({"n_factors": -1}, "n_factors"),
        ({"n_factors": 1.5}, "n_factors"),
        ({"cv": 1}, "cv"),
    ],
)
def test_says_what_is_wrong_with_a_parameter(cohort, wrong, said):
    X, y, channels = cohort
    with pytest.raises(ValueError, match=said):
        IDFSMECClassifier(channels, **wrong).fit(X, y)


def test_infinity_is_refused(cohort):
    X, y, channels = cohort
    model = IDFSMECClassifier(channels, C=1.0).fit(X, y)
    X[3, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        IDFSMECClassifier(channels).fit(X, y)
