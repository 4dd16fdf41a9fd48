"""The SVM for two classes against liblinear and against its own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction import svm
from idfsmec.prediction.svm import LinearSVM


def decisions(X, y, test, C, n_classes=2, class_weight=None):
    sets = [(np.arange(X.shape[1]), C)]
    return LinearSVM(class_weight=class_weight).decide_sets(X, y, test, sets, n_classes)[0]


def weights_of(X, y, C, class_weight=None):
    """Intercept and weights, from decisions on unit vectors."""
    k = X.shape[1]
    asked = decisions(X, y, np.vstack([np.zeros(k), np.eye(k)]), C, 2, class_weight)
    values = asked[:, 1] - asked[:, 0]
    return np.append(values[1:] - values[0], values[0])


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
def test_the_gradient_vanishes(n, k, C, effect, seed):
    X, y = problem(n, k, seed, effect)
    w = weights_of(X, y, C, "balanced")
    X = np.hstack([X, np.ones((n, 1))])
    signs, costs = 2.0 * y - 1.0, C * (n / (2 * np.bincount(y)))[y]
    slack = np.maximum(1 - signs * (X @ w), 0)
    gradient = w - 2 * X.T @ (costs * signs * slack)
    start = 2 * np.abs(X.T @ (costs * signs)).max()
    assert np.abs(gradient).max() <= 1e-8 * max(start, 1.0)


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
@pytest.mark.parametrize(("n", "k"), [(60, 8), (40, 100), (300, 30), (260, 250), (60, 300)])
def test_decisions_are_those_of_liblinear(n, k, C, class_weight):
    X, y = problem(n, k, seed=n + k)
    test = problem(50, k, seed=1)[0]
    liblinear = LinearSVC(C=C, dual=False, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    theirs = liblinear.fit(X, y).decision_function(test)
    ours = decisions(X, y, test, C, 2, class_weight)
    np.testing.assert_allclose(ours[:, 1] - ours[:, 0], theirs, rtol=1e-5, atol=1e-6)


def test_columns_that_repeat_and_columns_of_zeros_are_no_trouble():
    X, y = problem(40, 5, seed=3)
    w = weights_of(np.hstack([X, X, np.zeros((40, 3))]), y, 10.0)
    np.testing.assert_allclose(w[:5], w[5:10], atol=1e-8)
    np.testing.assert_allclose(w[10:13], 0, atol=1e-12)


def test_where_newton_does_not_end_liblinear_takes_over(monkeypatch):
    X, y = problem(60, 8, seed=0)
    ours = decisions(X, y, X, 0.1, 2, "balanced")
    monkeypatch.setattr(svm, "_minimise", lambda *given: None)
    np.testing.assert_allclose(decisions(X, y, X, 0.1, 2, "balanced"), ours, atol=1e-3)


@pytest.mark.parametrize("codes", [(0, 2), (0, 1, 2)], ids=["one missing", "three classes"])
def test_class_codes_with_one_missing_and_three_classes_go_to_liblinear(codes):
    X = problem(60, 8, seed=0)[0]
    y = np.array(codes)[np.arange(60) % len(codes)]
    theirs = LinearSVC(C=0.1, dual=False, class_weight="balanced").fit(X, y)
    ours = decisions(X, y, X, 0.1, 3, "balanced")
    assert ours.shape == (60, 3)
    assert (ours.argmax(axis=1) == theirs.predict(X)).all()
    if len(codes) == 3:
        np.testing.assert_allclose(ours, theirs.decision_function(X))


@given(
    n=st.integers(4, 80),
    k=st.integers(2, 60),
    effect=st.sampled_from([0.0, 1.0, 20.0]),
    class_weight=st.sampled_from(["balanced", None]),
    seed=st.integers(0, 10**6),
)
def test_sets_and_costs_asked_together_get_what_each_gets_alone(n, k, effect, class_weight, seed):
    X, y = problem(n, k, seed, effect)
    rng = np.random.default_rng(seed)
    costs = [1.0, 1e-4, 0.1, 100.0, 1e-2]
    orders = rng.permuted(np.tile(np.arange(k), (2, 1)), axis=1)
    sizes = {1, k, int(rng.integers(1, k + 1))}
    sets = [(order[:m], C) for order in orders for m in sizes for C in costs]
    sets = [sets[one] for one in rng.permutation(len(sets))]
    together = LinearSVM(class_weight=class_weight).decide_sets(X, y, X, sets, 2)
    for (columns, C), found in zip(sets, together, strict=True):
        alone = decisions(X[:, columns], y, X[:, columns], C, 2, class_weight)
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-8)


def test_many_classes_are_asked_together_too():
    X, y = problem(60, 8, seed=0)[0], np.arange(60) % 3
    sets = [(np.arange(8), 0.1), (np.array([5, 0, 3]), 1.0), (np.arange(8), 1.0)]
    together = LinearSVM(class_weight="balanced").decide_sets(X, y, X, sets, 3)
    for (columns, C), found in zip(sets, together, strict=True):
        assert (found == decisions(X[:, columns], y, X[:, columns], C, 3, "balanced")).all()


@parametrize_with_checks([LinearSVM()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_an_estimator_decides_as_many_sets_do():
    X, y = problem(60, 8, seed=5)
    for codes in (y, np.arange(60) % 3):
        fitted = LinearSVM(0.1, "balanced").fit(X, codes)
        values = fitted.decision_function(X)
        n_classes = int(codes.max()) + 1
        sets = [(np.arange(8), 0.1)]
        (together,) = LinearSVM(class_weight="balanced").decide_sets(X, codes, X, sets, n_classes)
        if n_classes == 2:
            together = together[:, 1] - together[:, 0]
        np.testing.assert_allclose(values, together, rtol=1e-9, atol=1e-12)
