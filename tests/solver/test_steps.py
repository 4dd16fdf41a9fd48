import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from idfsmec.solver import objective
from idfsmec.solver._array import diagonal
from idfsmec.solver.problem import fit_product, gradients
from idfsmec.solver.theta_step import project_to_simplex, theta_curvature, theta_step
from idfsmec.solver.w_step import polar, start_projection, w_curvature, w_step

from .problems import make_problems, random_point
from .reference import simplex_qp


@settings(max_examples=50, deadline=None)
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
    A_diagonal = diagonal(problems.A)
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
