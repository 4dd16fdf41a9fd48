"""Least absolute deviations against a general solver of linear programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from idfsmec.selection import RFS
from idfsmec.selection.rivals._least_deviations import _among_all, least_deviations


def objective(X, y, w, gamma):
    return np.abs(y - X @ w).sum() + gamma * np.abs(w).sum()


def by_linprog(X, y, gamma):
    """The least objective, with residuals and w as differences of positive variables."""
    A = np.hstack([np.eye(y.size), X])
    cost = np.concatenate([np.ones(y.size), np.full(X.shape[1], gamma)])
    return linprog(np.tile(cost, 2), A_eq=np.hstack([A, -A]), b_eq=y).fun


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_samples=st.integers(2, 30),
    n_features=st.integers(1, 30),
    gamma=st.sampled_from([1e-2, 0.3, 1.0, 5.0, 100.0]),
    whole=st.booleans(),
)
def test_no_lower_objective_is_found_by_a_linear_program(
    seed, n_samples, n_features, gamma, whole
):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_samples, n_features)), rng.normal(size=n_samples)
    if whole:  # ties, equal columns and many minima
        X, y = np.round(X), np.sign(y)
    found = least_deviations(X, y, gamma)
    least = by_linprog(X, y, gamma)
    assert found.gap <= 1e-6
    assert objective(X, y, found.w, gamma) == pytest.approx(least, rel=2e-6, abs=1e-9)
    assert found.history[-1] == pytest.approx(objective(X, y, found.w, gamma))
    assert np.abs(found.pull).max() <= 1 + 1e-12


def test_a_feature_pulls_with_all_its_weight_if_and_only_if_it_is_used():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 200))
    y = np.sign(X[:, 3] - X[:, 5] + rng.normal(size=80))
    found = least_deviations(X, y, 8.0, tol=1e-9)
    used = np.abs(found.w) > 1e-6 * np.abs(found.w).max()
    assert 2 <= used.sum() < 80
    np.testing.assert_allclose(found.pull[used], np.sign(found.w[used]), atol=1e-5)
    assert np.abs(found.pull[~used]).max() < 1 - 1e-4


@pytest.mark.parametrize("gamma", [1.0, 6.0, 12.0, 200.0])
def test_leaving_features_out_ends_at_the_minimum_of_all(gamma):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 150))
    y = np.sign(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=60))
    found, whole = (solve(X, y, gamma, tol=1e-9) for solve in (least_deviations, solve_for_all))
    assert found.gap <= 1e-9
    assert (np.diff(found.history) <= 0).all()
    np.testing.assert_allclose(found.w, whole.w, atol=1e-6)
    np.testing.assert_allclose(found.pull, X.T @ found.v / gamma, atol=1e-12)


def solve_for_all(X, y, gamma, tol):
    return _among_all(X, y, gamma, tol, 100)


def test_few_steps_leave_a_gap_and_say_so():
    rng = np.random.default_rng(0)
    found = least_deviations(rng.normal(size=(40, 9)), rng.normal(size=40), 1.0, max_iter=2)
    assert len(found.history) == 2
    assert found.gap > 1e-3


def test_two_classes_are_solved_to_the_minimum_of_the_linear_program():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 90)), np.arange(60) % 2
    X[:, 0] += y
    selector = RFS(gamma=3.0, standardize=True).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    least = by_linprog(Z, y - 0.5, 3.0)
    assert objective(Z, y - 0.5, selector.coef_[:, 1], 3.0) == pytest.approx(least, rel=1e-7)
    np.testing.assert_array_equal(selector.coef_[:, 0], -selector.coef_[:, 1])
    assert selector.objective_history_[-1] == pytest.approx(np.sqrt(2) * least, rel=1e-7)
