"""CD-LSR against all supports of small problems and against the plain formula of a step."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine, make_classification

from idfsmec.selection import CDLSR, rank_grid
from idfsmec.selection.grid import rank_each
from idfsmec.selection.rivals import _exchange
from idfsmec.selection.rivals._exchange import Moments, descend


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


def test_a_grid_of_counts_over_folds_ranks_as_separate_fits():
    X, y = make_classification(120, 40, n_informative=8, n_classes=3, random_state=1)
    X[:, [4, 17]] = 3.0  # constant features come last
    counts = [1, 7, 20, 40]
    settings = [{"n_features_to_select": k} for k in counts] + [{"n_restarts": 1, "tol": 0.1}]
    held_out = [np.arange(0, 120, 3), np.arange(1, 120, 3)]
    selector = CDLSR(random_state=2)
    found = rank_grid(selector, X, y, settings, held_out=held_out)
    np.testing.assert_array_equal(found, rank_each(selector, X, y, settings, held_out=held_out))
    assert found.shape == (2, 5, 40)
    assert set(found[:, :, [4, 17]].ravel()) == {39, 40}
    assert not hasattr(selector, "n_features_in_")


def test_a_grid_refuses_what_a_fit_refuses():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="'n_features_to_select' parameter of CDLSR"):
        CDLSR().rank_grid(X, y, [{"n_features_to_select": 0}])
    with pytest.raises(ValueError, match="Invalid parameter 'k'"):
        CDLSR().rank_grid(X, y, [{"k": 2}])
    with pytest.raises(ValueError, match="NaN in 1 columns"):
        CDLSR().rank_grid([[np.nan, 1.0], [1.0, 2.0]], [0, 1], [{}])


def moments_of(seed, n_features, n_classes):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(60, n_features)) @ rng.normal(size=(n_features, n_features))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    Y = np.eye(n_classes)[np.arange(60) % n_classes]
    Y -= Y.mean(axis=0)
    return Z, Y, Moments.of(Z.T @ Z, Z.T @ Y, float(np.sum(Y**2)))


def by_formula(Z, Y, support, V):
    """One sweep, every error from the samples."""
    support = support.copy()
    for j in range(support.size):
        others = np.delete(support, j)
        rest = Y - Z[:, others] @ np.delete(V, j, axis=0)
        free = np.setdiff1d(np.arange(Z.shape[1]), others)
        errors = ((rest[:, None] - Z[:, free, None] * V[j]) ** 2).sum(axis=(0, 2))
        support[j] = free[errors.argmin()]
    return support


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_features=st.integers(4, 25),
    n_classes=st.integers(2, 4),
    share=st.floats(0.1, 0.9),
)
def test_starts_of_any_length_move_together_as_errors_of_samples_say(
    seed, n_features, n_classes, share
):
    Z, Y, moments = moments_of(seed, n_features, n_classes)
    rng = np.random.default_rng(seed)
    sizes = [max(1, int(part * n_features)) for part in (0.1, share, share, 0.9)]
    starts = [rng.permutation(n_features)[:k] for k in sizes]
    ends = descend(moments, starts, 0.0, 1)
    for start, end in zip(starts, ends, strict=True):
        rows = moments.refit(start).rows
        expected = by_formula(Z, Y, start, rows @ moments.basis)
        np.testing.assert_array_equal(end.fit.support, expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 4), together=st.integers(1, 5))
def test_a_start_ends_where_it_ends_alone(seed, n_classes, together):
    Z, Y, moments = moments_of(seed, 30, n_classes)
    rng = np.random.default_rng(seed)
    starts = [rng.permutation(30)[:k] for k in (9, 3, 20, 9)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_exchange, "_NUMBERS", 30 * together)
        ends = descend(moments, starts, 1e-4, 100)
    for start, end in zip(starts, ends, strict=True):
        (alone,) = descend(moments, [start], 1e-4, 100)
        np.testing.assert_array_equal(alone.fit.support, end.fit.support)
        assert (alone.fit.error, alone.changes) == (end.fit.error, end.changes)
        residuals = Y - Z[:, end.fit.support] @ end.fit.rows @ moments.basis
        assert end.fit.error == pytest.approx(np.sum(residuals**2), rel=1e-9)
        np.testing.assert_allclose(end.fit.left.T @ moments.basis, -Z.T @ residuals, atol=1e-6)


def test_threads_do_not_change_the_result():
    X, y = make_classification(120, 40, n_informative=6, n_classes=3, random_state=1)
    one, three = (
        CDLSR(n_features_to_select=8, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.objectives_, three.objectives_)
    np.testing.assert_array_equal(one.coef_, three.coef_)


def test_features_that_explain_nothing_stay_where_they_are_or_go_first():
    A = 4 * np.eye(6)
    moments = Moments.of(A, np.zeros((6, 2)), 1.0)
    (end,) = descend(moments, [np.array([4, 2])], 1e-4, 10)
    assert end.fit.error == 1.0
    np.testing.assert_array_equal(end.fit.rows, np.zeros((2, 1)))


def test_of_starts_that_fit_exactly_the_first_counts():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 60)), np.arange(12) % 2
    many, one = (
        CDLSR(n_features_to_select=25, n_restarts=n, random_state=4).fit(X, y) for n in (6, 1)
    )
    assert many.objectives_.max() < 1e-9
    np.testing.assert_array_equal(many.ranking_, one.ranking_)
