"""RFS against objectives of a general convex solver and its own optimality conditions."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning

from idfsmec.selection import RFS, rank_grid
from idfsmec.selection.grid import rank_each
from idfsmec.selection.rivals.rfs import _Momentum


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


@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
def test_momentum_ends_no_higher_than_plain_reweighting(gamma, monkeypatch):
    X, y = make_classification(
        80, 200, n_informative=8, n_redundant=20, n_classes=3, random_state=3
    )
    pushed = RFS(gamma=gamma, standardize=True).fit(X, y)
    monkeypatch.setattr(_Momentum, "advance", _advance_plainly)
    plain = RFS(gamma=gamma, standardize=True).fit(X, y)
    assert pushed.objective_history_[-1] <= plain.objective_history_[-1] * (1 + 1e-5)
    assert pushed.n_iter_ < plain.n_iter_
    assert (np.diff(pushed.objective_history_) < 0).all()


def _advance_plainly(weights, features, samples):
    weights.features, weights.samples = weights._plain = features, samples


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


def test_a_grid_over_folds_ranks_as_separate_fits():
    X, y = make_classification(120, 30, n_informative=6, n_classes=3, random_state=1)
    X[:, [4, 17]] = 3.0
    settings = [{"gamma": gamma} for gamma in (0.01, 1.0, 30.0)]
    settings += [{"gamma": 2.0, "standardize": True}, {"center": False}, {"tol": 0.1}]
    held_out = [np.arange(0, 120, 3), np.arange(1, 120, 3)]
    found = rank_grid(RFS(), X, y, settings, held_out=held_out)
    np.testing.assert_array_equal(found, rank_each(RFS(), X, y, settings, held_out=held_out))
    assert set(found[:, :, [4, 17]].ravel()) == {29, 30}


def test_where_features_fit_the_classes_exactly_a_smaller_penalty_has_the_same_minimiser():
    X, y = make_classification(40, 150, n_informative=8, random_state=3)
    how = {"standardize": True, "tol": 1e-9, "max_iter": 5000}
    large, small = (RFS(gamma=gamma, **how).fit(X, y) for gamma in (0.1, 1e-3))
    np.testing.assert_allclose(small.coef_, large.coef_, atol=1e-3 * np.abs(large.coef_).max())
    found = RFS(**how).rank_grid(X, y, [{"gamma": 1e-3}, {"gamma": 1e3}, {"gamma": 0.1}])[0]
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[2], large.ranking_)
    assert (found[0] != found[1]).any()


def test_a_grid_refuses_what_a_fit_refuses():
    with pytest.raises(ValueError, match="'gamma' parameter of RFS"):
        RFS().rank_grid(np.eye(4), [0, 1, 0, 1], [{"gamma": 0.0}])


def test_where_no_feature_has_a_score_they_are_ranked_by_how_near_they_are_to_one():
    X, y = make_classification(60, 20, n_informative=4, random_state=0)
    selector = RFS(gamma=1e3, standardize=True).fit(X, y)
    assert not selector.scores_.any()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    pull = np.abs(Z.T @ np.sign(y - y.mean()))
    np.testing.assert_array_equal(np.argsort(selector.ranking_), np.argsort(-pull))
