import numpy as np
import pytest
from numpy.testing import assert_allclose

from idfsmec.solver.problem import ChannelProblems, gradients, kkt_residuals, objective

from .problems import make_problems, moments_of, random_point
from .reference import literal_objective


@pytest.mark.parametrize(("d", "c"), [(5, 2), (6, 4), (2, 3)])
def test_the_objective_is_the_literal_one_with_the_bias_minimised(d, c):
    rng = np.random.default_rng(d)
    n = 40
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3
    y = np.arange(n) % c
    observed = rng.random(n) > 0.5
    theta, W = random_point(1, d, c)
    X_seen = np.where(observed[:, None], X, np.nan)
    A, P, y2 = moments_of(X_seen, y, c, [np.arange(d)])[0].centred()
    ours = objective(ChannelProblems.from_moments(A, P, y2, 2.5), theta, W)
    garbage = np.where(observed[:, None], X, 1e6 * rng.normal(size=X.shape))
    literal = literal_objective(garbage.T, np.eye(c)[y].T, observed, W[0].T, theta[0], 2.5)
    assert_allclose(ours, literal, rtol=1e-10)


@pytest.mark.parametrize("c", [2, 3])
def test_gradients_are_the_slopes_of_the_objective(c):
    problems, _, _ = make_problems(b=1, c=c)
    theta, W = random_point(1, 7, c)
    by_theta, by_W = gradients(problems, theta, W)
    step = 1e-6
    for j in range(7):
        moved = theta.copy()
        moved[0, j] += step
        slope = (objective(problems, moved, W) - objective(problems, theta, W)) / step
        assert_allclose(by_theta[0, j], slope, rtol=1e-3, atol=1e-2)
        for k in range(c):
            moved = W.copy()
            moved[0, k, j] += step
            slope = (objective(problems, theta, moved) - objective(problems, theta, W)) / step
            assert_allclose(by_W[0, k, j], slope, rtol=1e-3, atol=1e-2)


def test_residuals_do_not_depend_on_the_unit_of_the_loss():
    problems, _, _ = make_problems()
    theta, W = random_point(6, 7, 2)
    for here, there in zip(
        kkt_residuals(problems, theta, W),
        kkt_residuals(problems.normalised(), theta, W),
        strict=True,
    ):
        assert_allclose(here, there)
