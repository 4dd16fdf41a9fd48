"""The SVM for two classes against liblinear and against its own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from idfsmec.selection import linear_svm
from idfsmec.selection.linear_svm import many_svm_decisions, svm_decisions
from idfsmec.selection.newton_svm import NewtonSVM


def problem(n, k, seed, effect=1.0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
    X = rng.normal(size=(n, k))
    X[:, 0] += effect * y
    return X, y


@given(
    n=st.integers(4, 80),
    k=st.integers(1, 60),
    C=st.sampled_from([1e-4, 1e-2, 0.1, 1.0, 100.0]),
    effect=st.sampled_from([0.0, 1.0, 20.0]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=150)
def test_the_gradient_vanishes(n, k, C, effect, seed):
    X, y = problem(n, k, seed, effect)
    X = np.hstack([X, np.ones((n, 1))])
    signs, costs = 2.0 * y - 1.0, C * np.where(y == 1, 1.5, 0.7)
    w = NewtonSVM(X.T, signs, costs / C).fit(C)
    slack = np.maximum(1 - signs * (X @ w), 0)
    gradient = w - 2 * X.T @ (costs * signs * slack)
    start = 2 * np.abs(X.T @ (costs * signs)).max()
    assert np.abs(gradient).max() <= 1e-9 * max(start, 1.0)


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
@pytest.mark.parametrize(("n", "k"), [(60, 8), (40, 100), (300, 30), (260, 250), (60, 300)])
def test_decisions_are_those_of_liblinear(n, k, C, class_weight):
    X, y = problem(n, k, seed=n + k)
    test = problem(50, k, seed=1)[0]
    svm = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    theirs = svm.fit(X, y).decision_function(test)
    ours = svm_decisions(X, y, test, n_classes=2, C=C, class_weight=class_weight)
    np.testing.assert_allclose(ours[:, 1] - ours[:, 0], theirs, rtol=1e-5, atol=1e-6)


def test_columns_that_repeat_and_columns_of_zeros_are_no_trouble():
    X, y = problem(40, 5, seed=3)
    X = np.hstack([X, X, np.zeros((40, 3))])
    w = NewtonSVM(X.T, 2.0 * y - 1, np.ones(40)).fit(10.0)
    np.testing.assert_allclose(w[:5], w[5:10], atol=1e-8)
    assert (w[10:] == 0).all()


def test_where_newton_does_not_end_liblinear_takes_over(monkeypatch):
    X, y = problem(60, 8, seed=0)
    how = {"n_classes": 2, "C": 0.1, "class_weight": "balanced"}
    ours = svm_decisions(X, y, X, **how)
    monkeypatch.setattr(NewtonSVM, "path", lambda self, costs, start=None: dict.fromkeys(costs))
    np.testing.assert_allclose(svm_decisions(X, y, X, **how), ours, atol=1e-3)


def test_class_codes_with_a_gap_and_three_classes_go_to_liblinear(monkeypatch):
    monkeypatch.setattr(linear_svm, "NewtonSVM", lambda *args: pytest.fail("two classes only"))
    X, y = problem(60, 8, seed=0)
    how = {"C": 0.1, "class_weight": "balanced"}
    assert svm_decisions(X, 2 * y, X, n_classes=3, **how).shape == (60, 3)
    assert svm_decisions(X, np.arange(60) % 3, X, n_classes=3, **how).shape == (60, 3)


def plain_newton(X, signs, costs):
    """The algorithm as it is published: a system of all samples inside the margin per step."""
    signed, w = X * signs[:, None], np.zeros(X.shape[1])
    inside, value = np.ones(signs.size, dtype=bool), costs.sum()
    while True:
        rows = signed[inside]
        system = np.eye(w.size) + 2 * rows.T @ (costs[inside, None] * rows)
        step, share = np.linalg.solve(system, 2 * rows.T @ costs[inside]) - w, 1.0
        while True:
            there = w + share * step
            slack = 1 - signed @ there
            lower = there @ there / 2 + costs @ np.maximum(slack, 0) ** 2
            if lower <= value * (1 + 1e-14):
                break
            share /= 2
        if share == 1 and ((slack > 0) == inside).all():
            return there
        w, inside, value = there, slack > 0, lower


@pytest.mark.parametrize(("n", "k"), [(300, 5), (300, 80), (120, 119), (80, 200)])
def test_sums_that_are_updated_give_what_sums_made_anew_give(n, k):
    X, y = problem(n, k, seed=k, effect=1.5)
    signs, weights = 2.0 * y - 1, np.where(y == 1, 1.5, 0.7)
    newton = NewtonSVM(X.T, signs, weights)
    for C in (1e-3, 0.1, 10.0):
        np.testing.assert_allclose(
            newton.fit(C), plain_newton(X, signs, C * weights), rtol=1e-7, atol=1e-10
        )


@given(
    n=st.integers(4, 80),
    k=st.integers(2, 60),
    effect=st.sampled_from([0.0, 1.0, 20.0]),
    class_weight=st.sampled_from(["balanced", None]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_sets_and_costs_asked_together_get_what_each_gets_alone(n, k, effect, class_weight, seed):
    X, y = problem(n, k, seed, effect)
    rng = np.random.default_rng(seed)
    how = {"n_classes": 2, "class_weight": class_weight}
    costs = [1.0, 1e-4, 0.1, 100.0, 1e-2]
    orders = rng.permuted(np.tile(np.arange(k), (2, 1)), axis=1)
    sizes = {1, k, int(rng.integers(1, k + 1))}
    sets = [(order[:m], C) for order in orders for m in sizes for C in costs]
    sets = [sets[one] for one in rng.permutation(len(sets))]
    together = many_svm_decisions(X, y, X, sets, **how)
    for (columns, C), found in zip(sets, together, strict=True):
        alone = svm_decisions(X[:, columns], y, X[:, columns], C, **how)
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-8)


def test_leading_features_among_more_features_than_samples():
    X, y = problem(30, 80, seed=5)
    svm = NewtonSVM(X.T, 2.0 * y - 1, np.ones(30))
    for k in (3, 30, 31, 80):
        alone = NewtonSVM(X[:, :k].T, 2.0 * y - 1, np.ones(30)).fit(0.1)
        np.testing.assert_allclose(svm.leading(k).fit(0.1), alone, rtol=1e-8, atol=1e-10)


def test_many_classes_are_asked_together_too():
    X, y = problem(60, 8, seed=0)[0], np.arange(60) % 3
    how = {"n_classes": 3, "class_weight": "balanced"}
    sets = [(np.arange(8), 0.1), (np.array([5, 0, 3]), 1.0), (np.arange(8), 1.0)]
    for (columns, C), found in zip(sets, many_svm_decisions(X, y, X, sets, **how), strict=True):
        assert (found == svm_decisions(X[:, columns], y, X[:, columns], C, **how)).all()


@given(
    k=st.integers(2, 30),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 1e6]),
    C=st.sampled_from([1e-3, 0.1, 10.0]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40)
def test_the_minimum_is_the_same_from_anywhere(k, scale, C, seed):
    X, y = problem(60, k, seed)
    svm = NewtonSVM(X.T, 2.0 * y - 1, np.ones(60))
    start = scale * np.random.default_rng(seed).normal(size=k)
    found = svm.path([C, 10 * C], start)
    for cost, w in found.items():
        np.testing.assert_allclose(w, svm.fit(cost), rtol=1e-6, atol=1e-8)
