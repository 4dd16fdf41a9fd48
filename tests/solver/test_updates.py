import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from idfsmec.solver.problem import (
    channel_weights,
    fit_product,
    gradients,
    objective,
    polar,
    project_to_simplex,
    start_projection,
    theta_curvature,
    theta_step,
    total_objective,
    w_curvature,
    w_step,
)

from .problems import make_problems, random_point
from .reference import simplex_qp


@given(arrays(float, (3, 6), elements=st.floats(-10, 10)))
def test_projection_lands_on_the_simplex_and_is_the_nearest_point(points):
    projected = project_to_simplex(points)
    assert_allclose(projected.sum(axis=1), 1)
    assert (projected >= 0).all()
    # Nearest: the direction to the point makes no acute angle with any direction inside.
    for corner in np.eye(6):
        assert (np.sum((points - projected) * (corner - projected), axis=1) < 1e-9).all()


def test_projection_equals_an_independent_solver():
    point = np.random.default_rng(0).normal(size=8)
    assert_allclose(
        project_to_simplex(point[None])[0], simplex_qp(np.eye(8), 2 * point), atol=1e-7
    )


@pytest.mark.parametrize(("c", "d"), [(2, 5), (2, 2), (3, 5), (4, 2), (3, 1)])
def test_polar_has_orthonormal_short_side_and_is_the_nearest(c, d):
    rng = np.random.default_rng(0)
    M = rng.normal(size=(10, c, d))
    W = polar(M)
    short = W @ W.swapaxes(1, 2) if c <= d else W.swapaxes(1, 2) @ W
    assert_allclose(short, np.broadcast_to(np.eye(min(c, d)), short.shape), atol=1e-12)
    # Nearest: no other orthonormal matrix correlates more with M.
    for seed in range(20):
        _, other = random_point(10, d, c, seed)
        assert (np.sum(M * other, axis=(1, 2)) <= np.sum(M * W, axis=(1, 2)) + 1e-12).all()


def test_polar_of_nearly_dependent_rows_is_still_orthonormal():
    first = np.random.default_rng(0).normal(size=6)
    M = np.stack([first, first + 1e-7 * np.arange(6)])[None]
    W = polar(M)
    assert_allclose(W[0] @ W[0].T, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("lam", [0.0, 1.0, 1e3])
def test_neither_step_makes_the_objective_rise(c, lam):
    problems, _, _ = make_problems(b=20, c=c, lam=lam)
    A_diagonal = np.diagonal(problems.A, axis1=-2, axis2=-1)
    for seed in range(10):
        theta, W = random_point(20, 7, c, seed)
        before = objective(problems, theta, W)
        by_theta, _ = gradients(problems, theta, W)
        theta = theta_step(theta, by_theta, theta_curvature(problems))
        between = objective(problems, theta, W)
        residual = fit_product(problems, theta, W) - problems.P
        W = w_step(W, theta, residual, w_curvature(problems.A_top, A_diagonal, theta))
        after = objective(problems, theta, W)
        assert (between <= before * (1 + 1e-12)).all()
        assert (after <= between * (1 + 1e-12)).all()


@pytest.mark.parametrize(("c", "d"), [(2, 6), (4, 6), (3, 3), (4, 2)])
def test_the_start_is_a_polar_factor_of_the_label_moments(c, d):
    problems, _, _ = make_problems(b=5, c=c, d=d)
    W = start_projection(problems.A, problems.P)
    nuclear = np.linalg.svd(problems.P, compute_uv=False).sum(axis=1)
    assert_allclose(np.sum(W * problems.P, axis=(1, 2)), nuclear)
    short = W @ W.swapaxes(1, 2) if c <= d else W.swapaxes(1, 2) @ W
    assert_allclose(short, np.broadcast_to(np.eye(min(c, d)), short.shape), atol=1e-10)


def test_the_start_of_a_channel_without_information_is_orthonormal():
    problems, _, _ = make_problems(b=2, c=3)
    W = start_projection(problems.A, np.zeros_like(problems.P))
    assert_allclose(W @ W.swapaxes(1, 2), np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)


@pytest.mark.parametrize("n_features", [12, 230])
def test_the_start_completes_the_labels_by_the_directions_the_formula_names(n_features):
    """Inverse iteration on the complement of P, written out with whole projection matrices."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, n_features))
    p = rng.normal(size=n_features)
    A, P = (X.T @ X)[None], np.stack([p, -p])[None]
    W = start_projection(A, P)[0]
    v = p / np.linalg.norm(p)
    outside = np.eye(n_features) - np.outer(v, v)
    size = np.diag(A[0]).max()
    costs = outside @ A[0] @ outside + size * (np.outer(v, v) + 1e-6 * np.eye(n_features))
    seed = outside @ (v * np.abs(v))
    wanted = outside @ np.linalg.solve(costs, np.linalg.solve(costs, seed))
    wanted /= np.linalg.norm(wanted)
    np.testing.assert_allclose(W @ W.T, np.eye(2), atol=1e-10)
    plane = W.T @ W  # the two rows span the labels' direction and the cheap one
    np.testing.assert_allclose(plane @ v, v, atol=1e-8)
    np.testing.assert_allclose(plane @ wanted, wanted, atol=1e-6)


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.floats(1.01, 20), st.integers(0, 99)
)
def test_no_other_weights_on_the_simplex_cost_less(objectives, gamma, seed):
    U = np.array(objectives)
    alpha = channel_weights(U, gamma)
    assert alpha.sum() == pytest.approx(1)
    best = np.sum(alpha**gamma * U)
    for other in np.random.default_rng(seed).dirichlet(np.ones(U.size), size=20):
        assert best <= np.sum(other**gamma * U) * (1 + 1e-9)


def test_a_lower_loss_gives_a_larger_weight():
    alpha = channel_weights(np.array([3.0, 1.0, 2.0]), 2.0)
    assert alpha.argsort().tolist() == [0, 2, 1]


@pytest.mark.parametrize("gamma", [1.001, 2.0, 50.0])
def test_extreme_losses_and_gammas_stay_finite(gamma):
    alpha = channel_weights(np.array([0.0, 1e-300, 1.0, 1e300]), gamma)
    assert np.isfinite(alpha).all()
    assert alpha.sum() == pytest.approx(1)


def test_without_weighting_all_channels_count_alike():
    U = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_allclose(channel_weights(U, 2.0, weighting=False), 0.5)
    assert_allclose(total_objective(U, 2.0, weighting=False), [0.75, 1.75])
