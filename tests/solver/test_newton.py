"""Shortening a problem to its support loses nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver.newton import Support, centred, orthonormal_basis
from idfsmec.solver.problem import gradients, kkt_residuals, objective

from .problems import make_problems, random_point


def sparse_point(b, d, c, n_positive):
    theta, W = random_point(b, d, c)
    rng = np.random.default_rng(1)
    for row in theta:
        row[rng.permutation(d)[n_positive:]] = 0.0
    return theta / theta.sum(axis=1, keepdims=True), W


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_without_differences_value_and_conditions_are_the_same(c):
    problems, _, _ = make_problems(b=5, d=12, c=max(c, 2), lam=0.3)
    problems = problems if c > 1 else _first_row_only(problems)
    theta, W = sparse_point(5, 12, c, n_positive=4)
    support = Support(theta, W, 6, differences=False)
    short, short_theta, short_W = support.shorten(problems, theta, W)
    assert_allclose(objective(short, short_theta, short_W), objective(problems, theta, W))
    assert_allclose(
        kkt_residuals(short, short_theta, short_W)[1], kkt_residuals(problems, theta, W)[1]
    )
    back_theta, back_W = support.restore(short_theta, short_W)
    assert_array_equal(back_theta, theta)
    assert_allclose(back_W, W, atol=1e-12)


@pytest.mark.parametrize("c", [2, 3, 5])
def test_with_differences_the_sum_of_columns_is_left_to_features_without_weight(c):
    problems, _, _ = make_problems(b=5, d=14, c=c, lam=0.3)
    theta, W = sparse_point(5, 14, c, n_positive=5)
    support = Support(theta, W, 8, differences=True)
    short, short_theta, short_W = support.shorten(problems, theta, W)
    assert short.P.shape == (5, c - 1, 8 + c - 1)
    back_theta, back_W = support.restore(short_theta, short_W)
    assert_array_equal(back_theta, theta)
    identity = np.broadcast_to(np.eye(c), (5, c, c))
    assert_allclose(back_W @ back_W.swapaxes(1, 2), identity, atol=1e-12)
    after = objective(problems, back_theta, back_W)
    assert_allclose(objective(short, short_theta, short_W), after)
    assert (after <= objective(problems, theta, W)).all()
    assert_allclose((back_W.sum(axis=1) * theta), 0, atol=1e-12)
    # Differences of columns stay as they were.
    assert_allclose(np.diff(back_W, axis=1) * theta[:, None], np.diff(W, axis=1) * theta[:, None])


@pytest.mark.parametrize("c", [2, 3, 5])
def test_a_point_that_needs_no_change_comes_back_as_it_is(c):
    """Its sum is where it costs nothing already, and does not turn: momentum goes on with it."""
    problems, _, _ = make_problems(b=6, d=14, c=c)
    theta, W = sparse_point(6, 14, c, n_positive=5)
    first = Support(theta, W, 8, differences=True)
    theta, W = first.restore(*first.shorten(problems, theta, W)[1:])
    for size in (6, 8, 14 - c):
        support = Support(theta, W, size, differences=True)
        assert_allclose(
            support.restore(*support.shorten(problems, theta, W)[1:])[1], W, atol=1e-12
        )


def test_derivatives_by_the_kept_weights_are_those_of_the_whole_problem():
    problems, _, _ = make_problems(b=4, d=10, c=3, lam=1.0)
    theta, W = sparse_point(4, 10, 3, n_positive=3)
    support = Support(theta, W, 5, differences=True)
    short, short_theta, short_W = support.shorten(problems, theta, W)
    whole = gradients(problems, *support.restore(short_theta, short_W))[0]
    kept = np.take_along_axis(whole, support.kept, axis=1)
    assert_allclose(gradients(short, short_theta, short_W)[0][:, :5], kept, atol=1e-9)


def test_one_hot_labels_are_centred_and_a_single_number_is_not():
    problems, _, _ = make_problems(b=3, c=3)
    assert centred(problems).all()
    assert not centred(_first_row_only(problems)).any()


def _first_row_only(problems):
    parts = dict(vars(problems))
    return type(problems)(**{**parts, "P": problems.P[:, :1]})


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_a_basis_is_orthonormal_and_spans_the_rows(n_rows):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, n_rows, 6))
    basis = orthonormal_basis(rows)
    np.testing.assert_allclose(
        basis @ basis.swapaxes(1, 2),
        np.broadcast_to(np.eye(n_rows), (7, n_rows, n_rows)),
        atol=1e-14,
    )
    np.testing.assert_allclose(rows @ basis.swapaxes(1, 2) @ basis, rows, atol=1e-13)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-160, 1e-150, 1e-140, 1e-100])
def test_a_basis_of_dependent_or_vanishing_rows_is_orthonormal_all_the_same(scale):
    rows = np.array(
        [[[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0]], [[1.0, 0, 0, 0], [0, 0, 1.0, 0]]]
    )
    rows[1] *= scale
    basis = orthonormal_basis(rows)
    assert_allclose(basis @ basis.swapaxes(1, 2), [np.eye(2)] * 2, atol=1e-14)
