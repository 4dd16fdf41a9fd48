"""IDFSMECClassifier: a linear model of imputed samples, and votes of the channels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import ChannelImputer, IDFSMECClassifier, IDFSMECRegressor
from tests.conftest import make_channels


# Six of the samples that scikit-learn makes would take all iterations, to no purpose; so would
# more folds.
@parametrize_with_checks([IDFSMECClassifier(cv=2, max_iter=200, tol=1e-3)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def make_cohort():
    X, y, channels = make_channels(n_samples=160, n_channels=6, effect=2.5, missing=0.4)
    X[np.isnan(X).all(axis=1)] = 0.0  # every sample has something
    return X, y, channels


@pytest.fixture
def cohort():
    return make_cohort()


@pytest.fixture(scope="module")
def fitted():
    """A model of the cohort, for tests that only ask it."""
    X, y, channels = make_cohort()
    return IDFSMECClassifier(channels).fit(X, y)


def test_it_tells_the_classes_of_samples_it_never_saw(cohort):
    X, y, channels = cohort
    assert cross_val_score(IDFSMECClassifier(channels), X, y, cv=4).mean() > 0.7


def test_the_votes_of_the_observed_channels_add_up_to_the_decision(cohort, fitted):
    X, _, _ = cohort
    votes = fitted.channel_votes(X)
    assert_array_equal(np.isnan(votes), np.isnan(X.reshape(160, 6, 5)).any(axis=2))
    assert_allclose(np.nansum(votes, axis=1) + fitted.intercept_, fitted.decision_function(X))


def test_what_stands_in_a_partly_missing_channel_does_not_matter(cohort, fitted):
    X, _, _ = cohort
    whole, part = X.copy(), X.copy()
    whole[:, :5] = np.nan
    part[:, 0] = np.nan
    with_others = ~np.isnan(whole).all(axis=1)
    assert_array_equal(
        fitted.decision_function(whole[with_others]), fitted.decision_function(part[with_others])
    )


def expected_decision(model, imputer, row):
    """Decision on a sample with missing values, by brute force on the normal distribution."""
    loadings, unit = imputer.model_.loadings, imputer.scale_
    covariance = (loadings @ loadings.T + np.diag(imputer.model_.noise)) * np.outer(unit, unit)
    gone, there = np.isnan(row), ~np.isnan(row)
    turn = covariance[np.ix_(gone, there)] @ np.linalg.inv(covariance[np.ix_(there, there)])
    away = np.where(there, row - model.centre_, 0.0)
    away[gone] = turn @ away[there]
    left = covariance[np.ix_(gone, gone)] - turn @ covariance[np.ix_(there, gone)]
    variance = model.coef_[0, gone] @ left @ model.coef_[0, gone]
    return away @ model.coef_[0] / np.sqrt(1 + np.pi / 8 * variance) + model.intercept_[0]


def test_a_missing_channel_gets_the_expected_decision_drawn_to_the_prior_by_its_variance(
    cohort, fitted
):
    X, _, channels = cohort
    imputer = ChannelImputer(channels).fit(X)
    wanted = [expected_decision(fitted, imputer, row) for row in X]
    assert_allclose(fitted.decision_function(X), wanted)


@pytest.mark.filterwarnings("ignore:Channels are weighted by the training loss")
def test_the_model_is_the_mean_of_ridge_on_features_by_score_and_on_factors():
    """With one subject per class there are no folds, and all candidates count alike."""
    X, y, channels = make_channels(missing=0.0)
    kept = np.flatnonzero((y == 0) | (np.arange(y.size) % 4 == 1))
    X, y = X[kept], y[kept]
    alphas = [0.1, 3.0]
    model = IDFSMECClassifier(channels, n_factors=2, alphas=alphas).fit(X, y, groups=y)
    imputer = ChannelImputer(channels, n_factors=2).fit(X)
    weight = compute_sample_weight("balanced", y) / y.size  # two subjects in all
    trusted = (X - X.mean(axis=0)) / X.std(axis=0)
    trusted *= (model.scores_ / model.scores_.mean() + 0.02) ** 0.25
    parts = []
    for one in (trusted, imputer.factors(X)):
        off = one - np.average(one, axis=0, weights=weight)
        parts.append(off / np.sqrt(np.sum(weight[:, None] * off**2) / weight.sum()))
    said = []
    for share in (0.0, 0.25, 0.5, 0.75, 0.95):
        both = np.hstack([np.sqrt(1 - share) * parts[0], np.sqrt(share) * parts[1]])
        for alpha in alphas:
            oracle = Ridge(alpha=alpha / 2).fit(both, 2 * y - 1, sample_weight=weight)
            said.append(oracle.predict(both))
    assert_allclose(model.decision_function(X), 2 * np.mean(said, axis=0), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Channels are weighted by the training loss")
def test_more_features_than_samples_changes_the_road_not_the_result():
    """Copies of the samples change nothing but which side is the smaller."""
    X, y, channels = make_channels(n_samples=36, n_channels=8)
    X[np.isnan(X).all(axis=1)] = 0.0
    once = IDFSMECClassifier(channels, alphas=[1.0]).fit(X, y, groups=y)
    twice = IDFSMECClassifier(channels, alphas=[1.0])
    twice.fit(np.vstack([X, X]), np.r_[y, y], groups=np.r_[y, y])
    # Only the factors' penalty sees how many samples there are.
    assert_allclose(twice.decision_function(X), once.decision_function(X), atol=0.1)


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


def test_a_recording_that_lost_its_telling_channel_is_judged_by_what_goes_with_it():
    """All channels see one source; the mean in place of half of them would hide it."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 1)) + 1.5 * y[:, None] + 0.7 * rng.normal(size=(400, 20))
    channels = np.repeat(np.arange(10), 2)
    model = IDFSMECClassifier(channels).fit(X[:200], y[:200])
    few = X[200:].copy()
    few[:, 10:] = np.nan
    agree = model.predict(few) == model.predict(X[200:])
    assert agree.mean() > 0.85


def test_units_and_offsets_of_the_features_do_not_matter(cohort, fitted):
    X, y, channels = cohort
    rng = np.random.default_rng(0)
    other = X * 10.0 ** rng.integers(-6, 6, X.shape[1]) + rng.normal(size=X.shape[1])
    there = IDFSMECClassifier(channels).fit(other, y)
    assert_allclose(fitted.decision_function(X), there.decision_function(other), atol=1e-3)


def test_a_sample_without_any_channel_gets_the_prior_and_a_warning(cohort):
    X, y, channels = cohort
    kept = np.flatnonzero((y == 0) | (np.arange(y.size) % 4 == 1))
    shares = np.bincount(y[kept]) / kept.size
    for class_weight, wanted in ((None, shares), ("balanced", [0.5, 0.5])):
        model = IDFSMECClassifier(channels, class_weight=class_weight).fit(X[kept], y[kept])
        with pytest.warns(UserWarning, match="2 of 2 samples have no channel"):
            said = model.predict_proba(np.full((2, X.shape[1]), np.nan))
        assert_allclose(said, np.tile(wanted, (2, 1)))


def test_the_rare_class_is_found_by_default():
    X, y, channels = make_channels(n_samples=400, effect=2.5, missing=0.3)
    X[np.isnan(X).all(axis=1)] = 0.0
    kept = np.flatnonzero((y == 0) | (np.arange(y.size) % 16 == 1))
    model = IDFSMECClassifier(channels).fit(X[kept], y[kept])
    rest = np.setdiff1d(np.arange(400), kept)
    assert np.mean(model.predict(X[rest]) == 1) > 0.6


def test_probabilities_are_as_often_right_as_they_say():
    X, y, channels = make_channels(n_samples=3000, n_channels=6, effect=2.0, missing=0.5)
    X[np.isnan(X).all(axis=1)] = 0.0
    said = IDFSMECClassifier(channels).fit(X[:300], y[:300]).predict_proba(X[300:])[:, 1]
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0)):
        inside = (said >= low) & (said < high)
        assert inside.sum() > 50
        assert y[300:][inside].mean() == pytest.approx(said[inside].mean(), abs=0.1)


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
    apart, mixed = (
        IDFSMECClassifier(channels).fit(X, y, groups=groups).predict_proba(X).max(axis=1).mean()
        for groups in (subjects, None)
    )
    assert apart < 0.75 < 0.9 < mixed


@pytest.mark.parametrize("estimator", [IDFSMECClassifier, IDFSMECRegressor])
def test_names_of_participants_do_not_matter(estimator):
    rng = np.random.default_rng(1)
    subjects = np.repeat(np.arange(30), 3)
    y = (subjects % 2).astype(float) + (estimator is IDFSMECRegressor) * rng.normal(size=90)
    X = pd.DataFrame(rng.normal(size=(90, 12)), columns=[f"C{i % 3}__{i}" for i in range(12)])
    names = np.array([f"p{number}" for number in rng.permutation(30)])
    by_number, by_name = (
        estimator().fit(X, y, groups=groups) for groups in (subjects, names[subjects])
    )
    assert_array_equal(by_number.ranking_, by_name.ranking_)
    assert_array_equal(by_number.coef_, by_name.coef_)


def test_names_of_columns_give_channels_and_are_checked(cohort):
    X, y, channels = cohort
    frame = pd.DataFrame(X, columns=[f"{c}__f{j % 5}" for j, c in enumerate(channels)])
    model = IDFSMECClassifier().fit(frame, y)
    assert model.channel_names_.tolist() == [f"E{v + 1}" for v in range(6)]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


@pytest.mark.slow
def test_is_searched_over_by_grid_search(cohort):
    X, y, channels = cohort
    model = IDFSMECClassifier(channels, alphas=[1.0], cv=2)
    search = GridSearchCV(model, {"lam": [0.1, 1.0]}, cv=2)
    assert np.isfinite(search.fit(X, y).best_score_)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"alphas": []}, "'alphas' parameter"),
        ({"alphas": [0.0]}, "'alphas' parameter"),
        ({"n_factors": -1}, "n_factors"),
        ({"n_factors": 1.5}, "n_factors"),
        ({"cv": 1}, "cv"),
    ],
)
def test_says_what_is_wrong_with_a_parameter(cohort, wrong, said):
    X, y, channels = cohort
    with pytest.raises(ValueError, match=said):
        IDFSMECClassifier(channels, **wrong).fit(X, y)


def test_infinity_is_refused(cohort, fitted):
    X, y, channels = cohort
    X[3, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        IDFSMECClassifier(channels).fit(X, y)


def test_neither_order_nor_names_of_participants_change_the_coefficients(cohort):
    X, y, channels = cohort
    subjects = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        subjects[members] = 1000 * label + np.arange(members.size) // 4
    order = np.random.default_rng(3).permutation(len(X))
    model = IDFSMECClassifier(channels).fit(X, y, subjects)
    for rows, names in ((order, subjects), (slice(None), 5000 - subjects)):
        other = IDFSMECClassifier(channels).fit(X[rows], y[rows], names[rows])
        assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-9)
        assert_allclose(other.intercept_, model.intercept_, rtol=1e-6, atol=1e-9)
