"""RFS against objectives of a general convex solver and its own optimality conditions."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning

from idfsmec.selection import RFS


def objective(X, Y, W, gamma):
    return np.linalg.norm(X @ W - Y, axis=1).sum() + gamma * np.linalg.norm(W, axis=1).sum()


@pytest.mark.parametrize(("gamma", "optimum"), [(0.1, 107.55394), (1, 110.30790), (10, 129.99241)])
def test_reaches_the_optimum_that_cvxpy_found(gamma, optimum):
    X, y = make_classification(
        200, 60, n_informative=6, n_redundant=10, random_state=0, shuffle=False
    )
    selector = RFS(gamma=gamma, center=False, tol=1e-8, max_iter=2000).fit(X, y)
    reached = objective(X, np.eye(2)[y], selector.coef_, gamma)
    assert reached == pytest.approx(optimum, rel=2e-6)


def test_the_objective_never_rises():
    selector = RFS().fit(*load_wine(return_X_y=True))
    assert (np.diff(selector.objective_history_) < 0).all()
    assert selector.n_iter_ == selector.objective_history_.size


@pytest.mark.parametrize("gamma", [0.3, 3.0])
def test_solving_by_samples_and_by_features_gives_the_same_coefficients(gamma):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), np.arange(60) % 3
    X[:, 0] += y
    by_features = RFS(gamma=gamma, tol=1e-9, max_iter=5000).fit(X, y)
    padded = np.hstack([X, np.zeros((60, 40))])  # more columns than samples, nothing new
    by_samples = RFS(gamma=gamma, tol=1e-9, max_iter=5000).fit(padded, y)
    np.testing.assert_allclose(by_samples.coef_[:30], by_features.coef_, atol=1e-4)
    assert by_samples.objective_history_[-1] == pytest.approx(by_features.objective_history_[-1])


def test_a_larger_penalty_leaves_fewer_features():
    X, y = make_classification(100, 30, n_informative=5, random_state=0)
    left = [(RFS(gamma=gamma).fit(X, y).scores_ > 0).sum() for gamma in (1, 10, 30)]
    assert left[0] > left[1] > left[2]


def test_standardising_frees_the_ranking_from_units():
    X, y = make_classification(100, 8, n_redundant=0, random_state=0)
    units = np.array([1e-6, 1, 1e6, 1, 1, 1, 1, 10])
    plain, scaled = (RFS(standardize=True).fit(data, y) for data in (X, X * units))
    assert plain.ranking_.tolist() == scaled.ranking_.tolist()


def test_features_that_fit_the_classes_exactly_are_no_trouble():
    rng = np.random.default_rng(0)
    selector = RFS(gamma=1e-3).fit(rng.normal(size=(20, 100)), np.arange(20) % 2)
    assert np.isfinite(selector.scores_).all()


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        RFS(max_iter=2).fit(*load_wine(return_X_y=True))


def test_where_features_fit_the_classes_exactly_a_smaller_penalty_has_the_same_minimiser():
    X, y = make_classification(40, 150, n_informative=8, random_state=3)
    how = {"standardize": True, "tol": 1e-9, "max_iter": 5000}
    large, small = (RFS(gamma=gamma, **how).fit(X, y) for gamma in (0.1, 1e-3))
    np.testing.assert_allclose(small.coef_, large.coef_, atol=1e-3 * np.abs(large.coef_).max())


def test_where_no_feature_has_a_score_they_are_ranked_by_how_near_they_are_to_one():
    X, y = make_classification(60, 20, n_informative=4, random_state=0)
    selector = RFS(gamma=1e3, standardize=True).fit(X, y)
    assert not selector.scores_.any()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    pull = np.abs(Z.T @ np.sign(y - y.mean()))
    np.testing.assert_array_equal(np.argsort(selector.ranking_), np.argsort(-pull))
