"""All channels of a table: closed forms, weights and large channels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from idfsmec.solver import problem
from idfsmec.solver.problem import ChannelProblems
from idfsmec.solver.solve import Options, solve, solve_channels

from .problems import moments_of


def fit_one(X, y, lam):
    """The only channel of a table."""
    moments = moments_of(X, y, 2, [np.arange(X.shape[1])])
    return solve_channels([moments], [lam], Options())


def standardised(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.5 * y[:, None]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_gains_are_what_least_squares_on_the_residual_takes_off_the_loss():
    X, y = standardised()
    Y = np.eye(2)[y] - 0.5
    problems = ChannelProblems.from_moments(
        (X.T @ X)[None], (Y.T @ X)[None], np.array([np.sum(Y**2)]), 0.1
    )
    end = solve(problems)
    residual = Y - X @ (end.theta[0] * end.W[0]).T
    fits = fit_one(X, y, 0.1)
    for j in range(6):
        coefficient = np.linalg.lstsq(X[:, [j]], residual, rcond=None)[0]
        left = np.sum((residual - X[:, [j]] @ coefficient) ** 2)
        assert fits.gains[0, 0, j] == pytest.approx(np.sum(residual**2) - left, abs=1e-6)


def test_one_feature_two_classes_has_a_closed_form():
    """theta = 1 and w = p / |p|, so U = y2 + A - 2 |p| + lam."""
    X, y = standardised(d=1)
    fits = fit_one(X, y, 0.7)
    Y = np.eye(2)[y] - 0.5
    expected = np.sum(Y**2) + np.sum(X**2) - 2 * np.linalg.norm(Y.T @ X) + 0.7
    assert_allclose(fits.objectives[0, 0], [expected])


def test_an_orthogonal_design_has_a_closed_form_at_infinite_redundancy_price():
    """With uncorrelated features R = I, so a huge lam spreads theta evenly."""
    X, y = standardised(n=400, d=3)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    fits = fit_one(left @ right * 20, y, 1e8)
    assert_allclose(fits.feature_weights, 1 / 3, atol=1e-3)


def test_inverse_probability_weighting_multiplies_the_loss_only():
    X, y = standardised()
    X[::3] = np.nan
    seen = ~np.isnan(X[:, 0])
    weighted = fit_one(X, y, 0.0)
    plain = fit_one(X[seen], y[seen], 0.0)
    assert_allclose(weighted.objectives, plain.objectives * len(y) / seen.sum())
    assert_allclose(weighted.feature_weights, plain.feature_weights, atol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
def test_coefficients_predict_the_classes_with_the_loss_that_was_minimised(standardize):
    """In the units the features were given in, at the samples that have the channel."""
    rng = np.random.default_rng(5)
    scaled, y = standardised(n=80, d=9)
    X = scaled * rng.uniform(0.5, 2.0, 9) + rng.normal(size=9) * 10
    columns = [np.array([0, 5, 3]), np.arange(9)[[1, 2, 4, 6, 7, 8]]]
    for own in columns:
        X[np.ix_(rng.random(80) < 0.3, own)] = np.nan
    lams = [0.2, 3.0]
    moments = moments_of(X, y, 2, columns)
    fits = solve_channels([moments], lams, Options(standardize=standardize))
    for v, own in enumerate(columns):
        seen = ~np.isnan(X[:, own]).any(axis=1)
        Y = np.eye(2)[y[seen]]
        assert_allclose(fits.class_shares[0, v], Y.mean(axis=0))
        assert_allclose(fits.centres[0, own], X[seen][:, own].mean(axis=0))
        R = np.corrcoef(X[seen][:, own].T) ** 2
        for place, lam in enumerate(lams):
            centred = X[seen][:, own] - fits.centres[0, own]
            said = fits.class_shares[0, v] + centred @ fits.coefficients[0, place][:, own].T
            loss = np.sum((said - Y) ** 2) * 80 / seen.sum()
            theta = fits.feature_weights[0, place, own]
            expected = loss + lam * theta @ R @ theta
            assert fits.objectives[0, place, v] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_large_channel_is_solved_as_a_small_one_at_all_redundancy_weights(
    n_classes, monkeypatch
):
    rng = np.random.default_rng(n_classes)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 30))
    X[:, :4] += 0.8 * y[:, None]
    moments = moments_of(X, y, n_classes, [np.arange(30)])
    lams, options = [0.0, 1.0, 50.0], Options(tol=1e-6)
    small = solve_channels([moments, moments], lams, options)
    monkeypatch.setattr(problem, "_LARGE", 20)
    large = solve_channels([moments, moments], lams, options)
    assert_allclose(large.feature_weights, small.feature_weights, atol=1e-5)
    assert_allclose(large.gains, small.gains, rtol=1e-4, atol=1e-6)
    assert_allclose(large.objectives, small.objectives, rtol=1e-8)
    assert_allclose(large.history[[0, -1]], small.history[[0, -1]], rtol=1e-6)
    assert large.history.shape == (large.n_iter[0, 0].max() + 1, 1)


def test_large_channels_without_redundancy_are_those_of_a_weight_of_zero(monkeypatch):
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 30))
    X[:, :4] += 0.8 * y[:, None]
    moments = moments_of(X, y, 2, [np.arange(30)])
    small = solve_channels([moments], [0.0], Options(tol=1e-6))
    monkeypatch.setattr(problem, "_LARGE", 20)
    alone = solve_channels([moments], [0.0], Options(tol=1e-6))
    beside = solve_channels([moments], [0.0, 1.0], Options(tol=1e-6))
    assert_allclose(alone.feature_weights, small.feature_weights, atol=1e-5)
    assert_allclose(alone.objectives, small.objectives, rtol=1e-8)
    assert_allclose(alone.feature_weights[0, 0], beside.feature_weights[0, 0], atol=1e-12)
    assert_allclose(alone.gains[0, 0], beside.gains[0, 0], rtol=1e-9)
    assert_allclose(alone.kkt_residuals[0, 0], beside.kkt_residuals[0, 0], atol=1e-12)


def test_products_with_few_rows_of_large_matrices_are_whole_products(monkeypatch):
    monkeypatch.setattr(problem, "_LARGE", 10)
    rng = np.random.default_rng(0)
    matrices, weights = rng.normal(size=(3, 12, 12)), rng.random(size=(3, 12))
    weights[0, 2:] = 0.0
    weights[1] = 0.0
    rows = weights[:, None] * rng.normal(size=(3, 2, 12))
    assert_allclose(problem.product(rows, matrices, weights), rows @ matrices, atol=1e-14)
