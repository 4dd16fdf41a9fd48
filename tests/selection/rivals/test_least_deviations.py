"""Least absolute deviations against a general solver of linear programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from idfsmec.selection import RFS
from idfsmec.selection.rivals import _corner, _least_deviations
from idfsmec.selection.rivals._exact_fit import exact_fits
from idfsmec.selection.rivals._interior import approach
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


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_samples=st.integers(5, 40),
    n_features=st.integers(2, 60),
    gamma=st.sampled_from([1e-3, 0.1, 1.0, 4.0]),
)
def test_the_corner_is_where_the_walk_inside_leads(seed, n_samples, n_features, gamma):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_samples, n_features)), rng.normal(size=n_samples)
    found = least_deviations(X, y, gamma, tol=1e-9)
    inside = approach(X, y, gamma, 1e-9, 100).best
    assert found.gap <= 1e-9
    np.testing.assert_allclose(found.w, inside.w, atol=1e-4 * np.abs(inside.w).max() + 1e-9)
    np.testing.assert_allclose(np.abs(found.pull), np.abs(inside.pull), atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), start=st.floats(0.0, 3.0))
def test_the_corner_is_reached_from_a_poor_guess(seed, start):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    corner = _corner.find_corner(X, y, 1.0, np.exp(start * rng.normal(size=38)))
    if corner is not None:  # a guess may be no corner at all
        assert objective(X, y, corner.w, 1.0) == pytest.approx(by_linprog(X, y, 1.0), rel=1e-9)
        met = np.abs(y - X @ corner.w) < 1e-12
        assert met.sum() == np.count_nonzero(corner.w)
        assert np.abs(X.T @ corner.v).max() <= 1 + 1e-9
        assert np.abs(corner.v).max() <= 1


def test_most_guesses_lead_to_the_corner():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 10)), rng.normal(size=40)
    found = [_corner.find_corner(X, y, 1.0, np.exp(rng.normal(size=50))) for _ in range(20)]
    ends = [one.w for one in found if one is not None]
    assert len(ends) >= 15
    np.testing.assert_allclose(ends, np.tile(ends[0], (len(ends), 1)), atol=1e-12)


def test_the_corner_brings_in_features_that_were_not_looked_at():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 12))
    y = X[:, 9] + 0.1 * rng.normal(size=60)
    used = np.arange(9)
    near = approach(X[:, used], y, 2.0, 1e-5, 100).at
    corner = _corner.find_corner(X, y, 2.0, near.weights, used)
    whole = _among_all(X, y, 2.0, 1e-9, 100)
    assert corner.w[9] != 0
    np.testing.assert_allclose(corner.w, whole.w, atol=1e-9)


def test_equal_features_share_their_weight():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 6))
    y = X[:, 0] + 0.3 * rng.normal(size=50)
    found = least_deviations(np.hstack([X, X]), y, 3.0, tol=1e-8)
    np.testing.assert_allclose(found.w[:6], found.w[6:], atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_samples=st.integers(4, 25),
    more=st.floats(0.0, 3.0),
    gamma=st.sampled_from([1e-3, 0.05, 0.5, 2.0]),
    centred=st.booleans(),
)
def test_more_features_than_samples_end_at_the_minimum_with_residuals_or_without(
    seed, n_samples, more, gamma, centred
):
    rng = np.random.default_rng(seed)
    n_features = n_samples + max(1, int(more * n_samples))
    X, y = rng.normal(size=(n_samples, n_features)), rng.normal(size=n_samples)
    if centred:
        X, y = X - X.mean(axis=0), y - y.mean()
    found = least_deviations(X, y, gamma, tol=1e-8)
    assert found.gap <= 1e-7
    assert objective(X, y, found.w, gamma) == pytest.approx(by_linprog(X, y, gamma), rel=1e-7)
    assert max(np.abs(found.v).max(), np.abs(found.pull).max()) <= 1 + 1e-12
    assert objective(X, y, found.w, gamma) * (1 - 1e-7) <= y @ found.v + 1e-12


@pytest.mark.parametrize("centred", [True, False])
def test_all_that_follows_from_the_other_weights_fits_exactly(centred):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(9, 14)), rng.normal(size=9)
    if centred:
        X, y = X - X.mean(axis=0), y - y.mean()
    fits = exact_fits(X, y)
    assert fits.T.shape == ((8, 6) if centred else (9, 5))
    w = fits.whole(rng.normal(size=fits.T.shape[1]))
    np.testing.assert_allclose(X @ w, y, atol=1e-12)
    pull = rng.normal(size=fits.b.size)
    np.testing.assert_allclose(X.T[fits.order[: pull.size]] @ fits.dual(pull), pull, atol=1e-12)


def test_samples_that_repeat_are_no_exact_fit():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(6, 9))
    X[[1, 2]] = X[[0, 0]]
    assert exact_fits(X, rng.normal(size=6)) is None
    assert exact_fits(X[:, :6], rng.normal(size=6)) is None


def test_a_fit_without_residuals_is_solved_in_the_features_beyond_samples(monkeypatch):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 60)), np.arange(40) % 2 - 0.5
    X -= X.mean(axis=0)
    seen = []

    def look(X, *args):
        seen.append(X.shape)
        return approach(X, *args)

    monkeypatch.setattr(_least_deviations, "approach", look)
    found = least_deviations(X, y, 1e-2, tol=1e-8)
    assert set(seen) == {(39, 21)}
    np.testing.assert_allclose(X @ found.w, y, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e9, 1e30])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    plain, scaled = (least_deviations(X * s, y, 2.0 * s, tol=1e-8) for s in (1.0, scale))
    np.testing.assert_allclose(scaled.w * scale, plain.w, atol=1e-6)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_a_penalty_that_no_feature_outweighs_leaves_none(share):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(30, 12)), np.sign(rng.normal(size=30))
    most = np.abs(X.T @ y).max()
    found = least_deviations(X, y, share * most)
    assert found.w.any() == (share < 1)
    assert found.gap <= 1e-6
    if share > 1:
        np.testing.assert_allclose(found.pull, X.T @ y / (share * most))
        assert found.history == [30.0]
