"""CD-LSR against all supports of small problems and against the plain formula of a step."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification

from idfsmec.selection import CDLSR


def squared_error(X, y, support):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(y.max() + 1)[y]
    Y = Y - Y.mean(axis=0)
    fitted = Z[:, support] @ np.linalg.lstsq(Z[:, support], Y, rcond=None)[0]
    return np.sum((Y - fitted) ** 2)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("k", [1, 3])
def test_finds_the_best_of_all_supports_of_a_small_problem(n_classes, k):
    X, y = make_classification(
        150, 9, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=n_classes
    )
    selector = CDLSR(n_features_to_select=k, n_restarts=30, random_state=0).fit(X, y)
    best = min(squared_error(X, y, list(support)) for support in combinations(range(9), k))
    assert selector.objective_ == pytest.approx(best, rel=1e-6)
    chosen = np.flatnonzero(selector.support_)
    assert squared_error(X, y, chosen) == pytest.approx(best, rel=1e-6)


def test_finds_the_best_four_of_wine():
    X, y = load_wine(return_X_y=True)
    selector = CDLSR(n_features_to_select=4, n_restarts=30, random_state=0).fit(X, y)
    best = min(squared_error(X, y, list(support)) for support in combinations(range(13), 4))
    assert selector.objective_ == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_moves_every_row_to_the_feature_of_least_cost(seed):
    X, y = make_classification(80, 30, n_informative=6, n_classes=3, random_state=seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(3)[y] - np.eye(3)[y].mean(axis=0)
    start = np.random.RandomState(seed).permutation(30)[:5]
    V = np.linalg.lstsq(Z[:, start], Y, rcond=None)[0]
    expected = start.copy()
    for j in range(5):
        others = np.delete(expected, j)
        rest = Y - Z[:, others] @ np.delete(V, j, axis=0)
        free = [i for i in range(30) if i not in others]
        expected[j] = min(free, key=lambda i: np.sum((rest - np.outer(Z[:, i], V[j])) ** 2))
    selector = CDLSR(n_features_to_select=5, n_restarts=1, max_iter=1, random_state=seed).fit(X, y)
    assert selector.get_support(indices=True).tolist() == sorted(expected)
    assert set(expected) != set(start)


def test_the_best_start_counts():
    X, y = make_classification(200, 60, n_informative=6, n_redundant=10, random_state=0)
    selector = CDLSR(n_features_to_select=12, random_state=0).fit(X, y)
    assert selector.objectives_.size == 10
    assert selector.objective_ == selector.objectives_.min() < selector.objectives_.max()


def test_chosen_features_come_first_by_the_norm_of_their_coefficients():
    X, y = load_wine(return_X_y=True)
    selector = CDLSR(n_features_to_select=5, random_state=0).fit(X, y)
    norms = np.linalg.norm(selector.coef_, axis=1)[np.argsort(selector.ranking_)]
    assert (norms[:5] > 0).all()
    assert (norms[5:] == 0).all()
    assert (np.diff(norms) <= 0).all()


def test_the_next_feature_is_the_one_that_reduces_the_error_most_on_its_own():
    X, y = make_classification(120, 10, n_informative=6, n_redundant=0, random_state=2)
    selector = CDLSR(n_features_to_select=3, random_state=0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(2)[y] - np.eye(2)[y].mean(axis=0)
    residual = Y - Z @ selector.coef_
    gain = np.sum((Z.T @ residual) ** 2, axis=1)
    gain[selector.support_] = -1
    assert selector.ranking_[np.argmax(gain)] == 4


def test_more_features_than_samples_fit_exactly():
    rng = np.random.default_rng(0)
    selector = CDLSR(n_features_to_select=25, random_state=0)
    selector.fit(rng.normal(size=(12, 40)), np.arange(12) % 3)
    assert selector.objective_ == pytest.approx(0, abs=1e-6)
    assert selector.support_.sum() == 25


def test_the_objective_is_the_squared_error_of_the_coefficients():
    X, y = load_wine(return_X_y=True)
    selector = CDLSR(n_features_to_select=5, random_state=0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    residuals = np.eye(3)[y] - np.eye(3)[y].mean(axis=0) - Z @ selector.coef_
    assert selector.objective_ == pytest.approx(np.sum(residuals**2), rel=1e-9)
    np.testing.assert_allclose((Z.T @ residuals)[selector.support_], 0, atol=1e-6)


def test_features_that_explain_nothing_are_ranked_all_the_same():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] * 2)
    selector = CDLSR(n_features_to_select=1, random_state=0).fit(X, [0] * 4 + [1] * 4)
    assert selector.objective_ == pytest.approx(4.0)
    assert not selector.coef_.any()


def test_of_starts_that_fit_exactly_the_first_counts():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 60)), np.arange(12) % 2
    many, one = (
        CDLSR(n_features_to_select=25, n_restarts=n, random_state=4).fit(X, y) for n in (6, 1)
    )
    assert many.objectives_.max() < 1e-9
    np.testing.assert_array_equal(many.ranking_, one.ranking_)
