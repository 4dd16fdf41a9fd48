"""mRMR, CMIM and MRMSR against brute force, published orders and their own properties."""

from collections import Counter
from inspect import signature
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.preprocessing import KBinsDiscretizer

from idfsmec.selection import CMIM, MRMR, MRMSR
from idfsmec.selection.baselines.filters import discretize


# Brute force: plain counting, no code shared with the package.
def quantile_codes(X, n_bins=5):
    cuts = np.linspace(0, 1, n_bins + 1)[1:-1]
    return np.column_stack([np.digitize(column, np.quantile(column, cuts)) for column in X.T])


def entropy(*variables):
    joint = list(zip(*variables, strict=True))
    return -sum(m / len(joint) * log(m / len(joint)) for m in Counter(joint).values())


def information(a, b):
    return entropy(a) + entropy(b) - entropy(a, b)


def conditional_information(a, b, given):
    return entropy(a, given) + entropy(b, given) - entropy(a, b, given) - entropy(given)


def greedy(n_features, k, first, score):
    """Choose k features: the best by `first`, then the best by `score(feature, chosen)`."""
    # Rounded, so that of equal features the first wins whatever the last digits say.
    chosen = [max(range(n_features), key=lambda f: round(first(f), 10))]
    while len(chosen) < k:
        left = [f for f in range(n_features) if f not in chosen]
        chosen.append(max(left, key=lambda f: round(score(f, chosen), 10)))
    return chosen


def order(selector, k):
    return np.argsort(selector.ranking_)[:k].tolist()


@pytest.fixture(scope="module")
def reference():
    return make_classification(
        200, 60, n_informative=6, n_redundant=10, random_state=0, shuffle=False
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (MRMR(), [1, 4, 20, 44, 15, 59, 26, 6, 13, 17, 43, 10]),
        (MRMR(method="MIQ"), [1, 4, 20, 44, 15, 59, 6, 13, 10, 12, 0, 17]),
        (CMIM(), [1, 6, 15, 14, 0, 13, 12, 44, 3, 59, 10, 20]),
        (CMIM(variant="B"), [1, 4, 15, 6, 0, 9, 59, 3, 20, 44, 14, 26]),
        (MRMSR(), [1, 6, 10, 15, 13, 4, 0, 14, 11, 3, 8, 7]),
    ],
    ids=["MID", "MIQ", "CMIM", "CMIM B", "MRMSR"],
)
def test_chooses_the_reference_order(selector, expected, reference):
    selector.set_params(n_features_to_select=12).fit(*reference)
    assert order(selector, 12) == expected


def test_mid_chooses_the_published_order_on_breast_cancer():
    selector = MRMR(n_features_to_select=10, strategy="uniform")
    selector.fit(*load_breast_cancer(return_X_y=True))
    assert [f + 1 for f in order(selector, 10)] == [28, 24, 22, 8, 27, 21, 29, 4, 7, 25]


def brute_force(name, codes, y, k):
    columns = codes.T.tolist()
    y = y.tolist()
    relevance = [information(column, y) for column in columns]

    def mid(f, chosen):
        return relevance[f] - np.mean([information(columns[f], columns[s]) for s in chosen])

    def cmim(f, chosen):
        given_one = (conditional_information(columns[f], y, columns[s]) for s in chosen)
        return min(relevance[f], *given_one)

    def mrmsr(f, chosen):
        alike = [
            1
            - (
                conditional_information(columns[f], y, columns[s])
                + conditional_information(columns[s], y, columns[f])
            )
            / (2 * entropy(y))
            for s in chosen
        ]
        return relevance[f] / entropy(y) - np.mean(alike)

    score = {"MRMR": mid, "CMIM": cmim, "MRMSR": mrmsr}[name]
    return greedy(len(columns), k, lambda f: relevance[f], score)


@pytest.mark.parametrize("method", [MRMR, CMIM, MRMSR])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_agrees_with_brute_force_on_generated_data(method, n_classes):
    X, y = make_classification(
        120, 12, n_informative=6, n_classes=n_classes, random_state=n_classes
    )
    selector = method(n_features_to_select=8).fit(X, y)
    assert order(selector, 8) == brute_force(method.__name__, quantile_codes(X), y, 8)


@pytest.mark.slow
@pytest.mark.parametrize("method", [CMIM, MRMSR])
def test_brute_force_confirms_the_reference_order(method, reference):
    X, y = reference
    selector = method(n_features_to_select=12).fit(X, y)
    assert order(selector, 12) == brute_force(method.__name__, quantile_codes(X), y, 12)


@pytest.mark.parametrize("method", [MRMR, CMIM, MRMSR])
def test_agrees_with_brute_force_on_wine(method):
    X, y = load_wine(return_X_y=True)
    selector = method(n_features_to_select=13).fit(X, y)
    assert order(selector, 13) == brute_force(method.__name__, quantile_codes(X), y, 13)


def test_the_features_after_the_chosen_ones_follow_by_the_last_criterion(reference):
    selector = MRMSR(n_features_to_select=5).fit(*reference)
    rest = np.argsort(selector.ranking_)[5:]
    assert (np.diff(selector.criterion_[rest]) <= 1e-12).all()


@pytest.mark.parametrize("method", [MRMR, CMIM, MRMSR])
def test_a_longer_search_begins_with_the_shorter_one(method, reference):
    short = method(n_features_to_select=5).fit(*reference)
    long = method(n_features_to_select=20).fit(*reference)
    assert order(long, 5) == order(short, 5)


@pytest.mark.parametrize("method", [MRMR, CMIM, MRMSR])
def test_of_identical_columns_the_first_wins(method, reference):
    X, y = reference
    selector = method(n_features_to_select=1).fit(np.hstack([X, X]), y)
    assert order(selector, 1) == [1]


def test_a_copy_of_a_chosen_feature_is_worth_nothing_to_cmim(reference):
    X, y = reference
    selector = CMIM(n_features_to_select=2).fit(np.column_stack([X, X[:, 1]]), y)
    assert selector.criterion_[60] == pytest.approx(0, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 6))
def test_supervised_similarity_lies_within_0_and_1_and_is_1_with_a_copy(seed, n_classes, n_values):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 30))
    codes = rng.integers(0, n_values, (y.size, 5))
    selector = MRMSR(n_features_to_select=1, n_bins=None).fit(np.hstack([codes, codes]), y)
    (first,) = order(selector, 1)
    relevance = selector.relevance_ / entropy(y)
    similarity = np.delete(relevance - selector.criterion_, first)
    assert similarity.min() > -1e-12
    assert similarity.max() < 1 + 1e-12
    copy = (first + 5) % 10
    assert relevance[copy] - selector.criterion_[copy] == pytest.approx(1)


@given(st.integers(0, 2**32 - 1))
def test_criteria_after_one_choice_equal_plain_counting(seed):
    rng = np.random.default_rng(seed)
    codes, y = rng.integers(0, 4, (25, 4)), rng.integers(0, 3, 25)
    y[:3] = [0, 1, 2]
    columns = codes.T.tolist()
    shared = MRMR(n_features_to_select=1, n_bins=None).fit(codes, y)
    given_chosen = CMIM(n_features_to_select=1, n_bins=None, variant="B").fit(codes, y)
    (chosen,) = order(shared, 1)
    for f in range(4):
        relevance = information(columns[f], y)
        assert shared.relevance_[f] == pytest.approx(relevance, abs=1e-12)
        if f != chosen:
            expected = relevance - information(columns[f], columns[chosen])
            assert shared.criterion_[f] == pytest.approx(expected, abs=1e-12)
            expected = conditional_information(columns[f], y, columns[chosen])
            assert given_chosen.criterion_[f] == pytest.approx(expected, abs=1e-12)


def test_many_values_are_counted_a_few_features_at_a_time():
    X, y = make_classification(300, 30, random_state=0)
    selector = MRMSR(n_features_to_select=5, n_bins=None).fit(X, y)
    np.testing.assert_allclose(selector.relevance_, entropy(y))  # every value occurs once


def test_quantile_bins_are_those_of_numpy():
    X, _ = load_breast_cancer(return_X_y=True)
    # Columns with repeated quantiles but many values are cut as numpy says, too.
    np.testing.assert_array_equal(discretize(X), quantile_codes(X))


def test_uniform_bins_have_equal_width():
    X = np.array([[0.0], [0.19], [0.21], [0.5], [0.99], [1.0]])
    assert discretize(X, strategy="uniform").ravel().tolist() == [0, 0, 1, 2, 4, 4]


def test_a_rare_value_of_a_two_valued_column_keeps_its_own_code():
    X = np.zeros((100, 1))
    X[:3] = 1.0
    assert np.bincount(discretize(X).ravel()).tolist() == [97, 3]


def test_without_bins_every_value_is_a_code():
    X = np.array([[3.0, -1.0], [7.0, -1.0], [3.0, 2.5]])
    assert discretize(X, n_bins=None).tolist() == [[0, 0], [1, 0], [0, 1]]


def test_a_constant_column_has_one_code():
    assert np.ptp(discretize(np.full((10, 1), 0.1))) == 0


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_are_those_of_scikit_learn(strategy):
    X = np.random.default_rng(0).normal(size=(103, 4))  # quantiles between values
    settings = {"encode": "ordinal", "strategy": strategy, "subsample": None}
    if "quantile_method" in signature(KBinsDiscretizer).parameters:  # from 1.7 on
        settings["quantile_method"] = "linear"
    bins = KBinsDiscretizer(7, **settings)
    assert_array_equal(discretize(X, 7, strategy), bins.fit_transform(X))


def test_bins_do_not_depend_on_units():
    X = np.random.default_rng(0).normal(size=(50, 3))
    for strategy in ("quantile", "uniform"):
        assert_array_equal(discretize(1e-12 * X, 5, strategy), discretize(X, 5, strategy))
