"""IDFSMECRegressor: a continuous score in place of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction import IDFSMECRegressor
from idfsmec.selection import IDFSMEC


@parametrize_with_checks([IDFSMECRegressor(cv=3, tol=1e-3)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def scored(n=150, n_channels=4, d=5, missing=0.3, seed=0):
    """The score goes with feature 2 of the second channel, and a little with the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_channels, 3)) @ rng.normal(size=(3, d))
    X += rng.normal(size=X.shape)
    y = 20 + 5 * X[:, 1, 2] + X[:, 0, 0] + 2 * rng.normal(size=n)
    X[rng.random((n, n_channels)) < missing] = np.nan
    X[np.isnan(X).all(axis=(1, 2))] = 0.0
    return X.reshape(n, -1), y, np.repeat([f"E{v + 1}" for v in range(n_channels)], d)


def test_the_feature_the_score_was_made_of_comes_first():
    X, y, channels = scored()
    model = IDFSMECRegressor(channels, n_features_to_select=1).fit(X, y)
    assert model.get_support(indices=True).tolist() == [7]
    assert model.channel_weights_.argmax() == 1


@pytest.mark.parametrize("lam", [0.001, 0.1, 10.0])
def test_the_objective_is_the_loss_at_the_best_unit_vector_and_cannot_be_lowered(lam):
    """The loss straight from its definition, minimised by a general optimiser."""
    X, y, _ = scored(missing=0.0)
    X = X[:, :5]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = (y - y.mean()) / y.std()
    R, per_sample = np.corrcoef(Z.T) ** 2, lam * len(y) / 1000

    def loss(theta, direction):
        w = direction / np.linalg.norm(direction)
        return np.sum((Z @ (theta * w) - t) ** 2) + per_sample * theta @ R @ theta

    model = IDFSMECRegressor(lam=lam).fit(X, y)
    theta = model.feature_weights_
    assert theta.min() >= 0
    assert_allclose(theta.sum(), 1.0)
    rng = np.random.default_rng(0)
    ends = [minimize(lambda w: loss(theta, w), rng.normal(size=5), tol=1e-12) for _ in range(8)]
    best = min(ends, key=lambda end: end.fun)
    assert model.objective_[0] == pytest.approx(best.fun, rel=1e-7)
    assert model.kkt_residuals_[0] < 1e-6
    for _ in range(40):  # nearby weights, with the directions that suit them
        near = np.maximum(theta + 0.01 * rng.normal(size=5), 0)
        near /= near.sum()
        assert minimize(lambda w, near=near: loss(near, w), best.x).fun > best.fun - 1e-6


def test_the_objective_never_rises():
    X, y, channels = scored()
    history = IDFSMECRegressor(channels).fit(X, y).objective_history_
    assert (np.diff(history) <= 0).all()


def test_a_brute_force_search_finds_nothing_better_with_two_features():
    """theta on a segment, w on a circle: all of it can be tried."""
    X, y, _ = scored(missing=0.0)
    X = X[:, 6:8]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = (y - y.mean()) / y.std()
    R = np.corrcoef(Z.T) ** 2
    share, turn = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 2 * np.pi, 721))
    theta = np.stack([share, 1 - share])
    coef = theta * np.stack([np.cos(turn), np.sin(turn)])
    fit = np.einsum("ipq,ij,jpq->pq", coef, Z.T @ Z, coef)
    fit += t @ t - 2 * np.einsum("i,ipq->pq", t @ Z, coef)
    best = (fit + 0.5 * np.einsum("ipq,ij,jpq->pq", theta, R, theta)).min()
    model = IDFSMECRegressor(lam=0.5 * 1000 / len(y)).fit(X, y)
    assert model.objective_[0] <= best + 1e-9
    assert model.objective_[0] == pytest.approx(best, rel=1e-3)


def test_units_and_offset_of_score_and_features_do_not_matter():
    X, y, channels = scored()
    rng = np.random.default_rng(2)
    here = IDFSMECRegressor(channels).fit(X, y)
    other = X * 10.0 ** rng.integers(-5, 5, X.shape[1]) + 3.0
    there = IDFSMECRegressor(channels).fit(other, 1000 * y - 7)
    assert_allclose(there.scores_, here.scores_, atol=1e-5)
    assert_allclose(there.predict(other), 1000 * here.predict(X) - 7, rtol=1e-4)


def test_the_sign_of_the_score_does_not_matter_to_the_ranking():
    X, y, channels = scored()
    up, down = (IDFSMECRegressor(channels).fit(X, sign * y) for sign in (1, -1))
    assert_allclose(up.scores_, down.scores_, atol=1e-6)
    assert_allclose(up.predict(X), -down.predict(X), rtol=1e-5)


def test_the_order_of_samples_does_not_matter_to_the_ranking():
    X, y, channels = scored()
    shuffled = np.random.default_rng(0).permutation(len(y))
    here = IDFSMECRegressor(channels).fit(X, y)
    there = IDFSMECRegressor(channels).fit(X[shuffled], y[shuffled])
    assert_array_equal(here.ranking_, there.ranking_)


def test_two_values_rank_features_as_two_classes_do_when_one_matters():
    X, y, channels = scored()
    label = (y > np.median(y)).astype(int)
    by_score = IDFSMECRegressor(channels, lam=0.01, gamma=1.1).fit(X, label)
    by_class = IDFSMEC(channels, lam=0.01, gamma=1.1).fit(X, label)
    assert by_score.ranking_.argmin() == by_class.ranking_.argmin()


def test_without_factors_the_prediction_is_ridge_on_values_scaled_by_score():
    X, y, channels = scored(missing=0.0)
    model = IDFSMECRegressor(channels, n_factors=0, alphas=[0.3]).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z *= (model.scores_ / model.scores_.mean() + 0.02) ** 0.25
    oracle = Ridge(alpha=0.3).fit(Z / np.sqrt(np.sum(Z.var(axis=0))), y)
    assert_allclose(model.predict(X), oracle.predict(Z / np.sqrt(np.sum(Z.var(axis=0)))))


def test_the_votes_of_the_observed_channels_add_up_to_the_prediction():
    X, y, channels = scored()
    model = IDFSMECRegressor(channels).fit(X, y)
    votes = model.channel_votes(X)
    assert_array_equal(np.isnan(votes), np.isnan(X[:, ::5]))
    assert_allclose(np.nansum(votes, axis=1) + model.intercept_, model.predict(X))


def test_coefficients_are_those_of_complete_samples():
    X, y, channels = scored()
    model = IDFSMECRegressor(channels).fit(X, y)
    complete = np.random.default_rng(1).normal(size=(7, X.shape[1]))
    said = (complete - model.centre_) @ model.coef_ + model.intercept_
    assert_allclose(said, model.predict(complete))


def test_it_predicts_samples_it_never_saw_with_missing_channels():
    X, y, channels = scored(n=300)
    assert IDFSMECRegressor(channels).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.4


def test_a_sample_without_any_channel_gets_the_mean_and_a_warning():
    X, y, channels = scored()
    model = IDFSMECRegressor(channels).fit(X, y)
    with pytest.warns(UserWarning, match="1 of 1 samples have no channel"):
        assert_allclose(model.predict(np.full((1, X.shape[1]), np.nan)), y.mean())


def test_a_channel_seen_for_one_value_of_the_score_carries_nothing():
    X, y, channels = scored()
    y[:20] = 3.0
    X[20:, :5] = np.nan
    with pytest.warns(UserWarning, match="E1 .observed for one value"):
        model = IDFSMECRegressor(channels).fit(X, y)
    assert model.channel_weights_[0] == 0
    assert_array_equal(model.coef_[:5], 0.0)


@pytest.mark.parametrize(
    ("score", "said"), [(np.full(150, 3.0), "equal"), (np.r_[np.nan, np.ones(149)], "NaN")]
)
def test_says_what_is_wrong_with_the_score(score, said):
    X, _, channels = scored()
    with pytest.raises(ValueError, match=said):
        IDFSMECRegressor(channels).fit(X, score)
