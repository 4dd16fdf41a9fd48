"""The solver against independent solvers, and its promises."""

import numpy as np
import pymanopt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver.problem import ChannelProblems, kkt_residuals, objective, start_projection
from idfsmec.solver.solve import State, default_start, iterate, solve

from .problems import make_problems
from .reference import alternate, simplex_qp

LAMBDAS = [0.0, 1e-3, 1.0, 10.0, 1e3]


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize(("d", "c"), [(7, 2), (12, 3), (2, 4), (1, 2), (5, 5), (18, 10)])
def test_the_end_is_feasible_and_meets_the_first_order_conditions(d, c, lam):
    problems, _, _ = make_problems(b=8, d=d, c=c, lam=lam)
    end = solve(problems, tol=1e-7)
    assert (end.theta >= 0).all()
    assert_allclose(end.theta.sum(axis=1), 1)
    W = end.W
    short = W @ W.swapaxes(1, 2) if c <= d else W.swapaxes(1, 2) @ W
    assert_allclose(short, np.broadcast_to(np.eye(min(c, d)), short.shape), atol=1e-10)
    assert (np.maximum(*kkt_residuals(problems, end.theta, end.W)) <= 1e-7).all()
    assert_allclose(end.objective, objective(problems, end.theta, end.W), rtol=1e-9)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_objective_never_rises(lam):
    problems, _, _ = make_problems(b=8, d=10, c=3, lam=lam)
    end = solve(problems, wanted=np.arange(8))
    assert (np.diff(end.history, axis=0) <= 0).all()
    assert_array_equal(end.history[-1], end.objective)
    assert len(end.history) == end.n_iter.max() + 1
    some = solve(problems, wanted=np.array([5, 2]))
    assert_array_equal(some.history, end.history[: len(some.history), [5, 2]])


def test_iterations_can_be_taken_up_where_they_were_left():
    """As NumPy does with what a GPU has left."""
    problems, _, _ = make_problems(b=8, d=10, c=2, lam=0.3)
    normalised = problems.normalised()
    end = solve(problems, tol=1e-12, max_iter=60)
    state = State(normalised, *default_start(normalised))
    iterate(state, problems.y2, 1e-12, 20)  # changes the state of all that is unsolved
    again = iterate(state, problems.y2, 1e-12, 60, done=20)
    assert_allclose(again.theta, end.theta, rtol=1e-12, atol=1e-12)
    assert_array_equal(again.n_iter, end.n_iter)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_theta_is_the_optimum_of_an_independent_qp_solver(lam):
    problems, _, _ = make_problems(b=4, d=8, c=3, lam=lam)
    end = solve(problems, tol=1e-9)
    for v in range(4):
        A, P, R, W = problems.A[v], problems.P[v], problems.R[v], end.W[v]
        Q, g = R + A * (W.T @ W), 2 * np.sum(P * W, axis=0)
        theta = simplex_qp(Q, g)
        ours = end.theta[v] @ Q @ end.theta[v] - g @ end.theta[v]
        theirs = theta @ Q @ theta - g @ theta
        assert ours <= theirs + 1e-7 * problems.y2[v]
        assert_allclose(end.theta[v], theta, atol=1e-4)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_w_is_no_worse_than_a_riemannian_optimiser_from_several_starts(c, lam):
    problems, _, _ = make_problems(b=3, d=6, c=c, lam=lam)
    end = solve(problems)
    manifold = pymanopt.manifolds.Stiefel(6, c)
    np.random.seed(0)  # noqa: NPY002  (pymanopt draws its starts from the global generator)
    for v in range(3):
        theta, W = end.theta[v], end.W[v].T
        C, D = theta[:, None] * problems.A[v] * theta, theta[:, None] * problems.P[v].T

        @pymanopt.function.numpy(manifold)
        def cost(W, C=C, D=D):
            return np.sum(W * (C @ W)) - 2 * np.sum(W * D)

        @pymanopt.function.numpy(manifold)
        def gradient(W, C=C, D=D):
            return 2 * (C @ W - D)

        problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
        optimiser = pymanopt.optimizers.ConjugateGradient(verbosity=0, max_iterations=300)
        best = min(optimiser.run(problem).cost for _ in range(5))
        assert cost(W) <= best + 1e-6 * problems.y2[v]


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_it_ends_no_higher_than_the_alternation_of_gpi_and_exact_qp(lam):
    """Correct solvers end in local minima that differ by a few per mille, either way."""
    problems, _, _ = make_problems(b=3, d=7, c=2, lam=lam, seed=3)
    ours = solve(problems).objective
    start = start_projection(problems.A, problems.P)
    theirs = np.empty(3)
    for v in range(3):
        theta, W = alternate(
            problems.A[v],
            problems.P[v].T,
            problems.y2[v],
            problems.R[v] / lam,
            lam,
            np.full(7, 1 / 7),
            start[v].T,
            n_rounds=25,
        )
        theirs[v] = objective(problems.take([v]), theta[None], W.T[None])[0]
    assert np.mean(ours / theirs) <= 1.001
    assert np.max(ours / theirs) <= 1.01


def test_a_problem_does_not_see_what_shares_its_batch():
    problems, _, _ = make_problems(b=12, d=9, lam=0.1)
    together = solve(problems)
    for v in (0, 5, 11):
        alone = solve(problems.take([v]))
        assert_array_equal(alone.theta[0], together.theta[v])
        assert_array_equal(alone.W[0], together.W[v])
        assert alone.n_iter[0] == together.n_iter[v]


def test_the_unit_of_the_loss_does_not_matter():
    problems, _, _ = make_problems(lam=1.0)
    scaled = ChannelProblems(*(1e6 * part for part in vars(problems).values()))
    here, there = solve(problems, tol=1e-9), solve(scaled, tol=1e-9)
    assert_allclose(here.theta, there.theta, atol=1e-6)
    assert_allclose(1e6 * here.objective, there.objective)


def test_an_iteration_cap_is_kept_and_reported():
    problems, _, _ = make_problems(lam=0.1)
    end = solve(problems, tol=1e-12, max_iter=3)
    assert (end.n_iter == 3).all()
    assert (end.kkt_residual > 1e-12).any()


def test_a_warm_start_at_the_solution_stays_there():
    problems, _, _ = make_problems(lam=0.1)
    cold = solve(problems, tol=1e-9)
    warm = solve(problems, tol=1e-9, start=(cold.theta, cold.W))
    assert_allclose(warm.theta, cold.theta, atol=1e-6)
    assert warm.n_iter.sum() <= cold.n_iter.sum()


def test_one_large_problem_is_solved_without_newton():
    problems, _, _ = make_problems(b=1, d=120, c=2, lam=1.0, n=300)
    end = solve(problems)
    assert end.kkt_residual[0] <= 1e-6


def test_features_of_very_different_scale_are_solved_too():
    problems, _, _ = make_problems(b=6, d=8, c=2, n=200, seed=5)
    scale = 10.0 ** np.linspace(-2, 2, 8)
    scaled = ChannelProblems.from_moments(
        problems.A * scale[:, None] * scale, problems.P * scale, problems.y2, 1.0
    )
    assert (solve(scaled).kkt_residual <= 1e-6).all()
