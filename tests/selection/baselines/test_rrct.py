"""RRCT against its formula with partial correlations from plain regression on ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr
from sklearn.datasets import load_diabetes, make_classification

from idfsmec.selection import RRCT


def order(selector, k):
    return np.argsort(selector.ranking_)[:k].tolist()


def test_diabetes_has_its_known_order():
    selector = RRCT(n_features_to_select=10).fit(*load_diabetes(return_X_y=True))
    assert order(selector, 10) == [8, 1, 2, 3, 6, 9, 5, 0, 7, 4]


def test_chooses_the_reference_order():
    X, y = make_classification(
        200, 60, n_informative=6, n_redundant=10, random_state=0, shuffle=False
    )
    expected = [1, 4, 17, 0, 45, 16, 6, 13, 20, 3, 12, 44, 10, 40, 59]
    assert order(RRCT(n_features_to_select=15).fit(X, y), 15) == expected


def by_definition(X, y, k):
    def info(r):
        return -0.5 * np.log(1 - r**2)

    def rest(v, given):
        design = np.column_stack([np.ones(len(v)), given])
        return v - design @ np.linalg.lstsq(design, v, rcond=None)[0]

    ranks, target = rankdata(X, axis=0), rankdata(y)
    rho = np.array([spearmanr(column, y)[0] for column in X.T])
    chosen = [int(np.argmax(info(rho)))]
    while len(chosen) < k:
        value = np.full(X.shape[1], -np.inf)
        for f in set(range(X.shape[1])) - set(chosen):
            given = ranks[:, chosen]
            p = pearsonr(rest(ranks[:, f], given), rest(target, given))[0]
            redundancy = np.mean([info(spearmanr(X[:, f], X[:, s])[0]) for s in chosen])
            value[f] = info(rho[f]) - redundancy + np.sign(p) * np.sign(p - rho[f]) * info(p)
        chosen.append(int(np.argmax(value)))
    return chosen


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equals_the_definition(n_classes):
    X, y = make_classification(
        100, 10, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=n_classes
    )
    assert order(RRCT(n_features_to_select=10).fit(X, y), 10) == by_definition(X, y, 10)


def test_only_ranks_count():
    X, y = make_classification(100, 8, random_state=3)
    np.testing.assert_array_equal(RRCT().fit(np.exp(X), y).ranking_, RRCT().fit(X, y).ranking_)


def test_a_feature_that_is_the_target_and_its_copies_stay_finite():
    X, y = make_classification(40, 5, n_redundant=0, random_state=0)
    X = np.column_stack([X, y, y, X[:, 0]])
    selector = RRCT(n_features_to_select=8).fit(X, y)
    assert order(selector, 1) == [5]
    assert selector.relevance_[5] == 1000
    assert np.isfinite(selector.criterion_).all()


def test_more_features_than_degrees_of_freedom_still_rank():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 30)), np.arange(8) % 2
    selector = RRCT(n_features_to_select=30).fit(X, y)
    assert sorted(selector.ranking_) == list(range(1, 31))
    assert np.isfinite(selector.criterion_).all()


def test_refuses_a_target_without_variation():
    with pytest.raises(ValueError, match="All values of y are equal"):
        RRCT().fit(np.eye(4), [0.5, 0.5, 0.5, 0.5])


@given(decimals=st.sampled_from([0, 1, 8]), seed=st.integers(0, 2**32 - 1))
def test_relevance_is_that_of_spearmans_correlation_with_and_without_ties(decimals, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 4)).round(decimals), rng.permutation(30) % 3
    X[0] = [7.0, -7.0, 7.0, -7.0]  # no column is constant
    rho = np.array([spearmanr(column, y)[0] for column in X.T])
    np.testing.assert_allclose(RRCT().fit(X, y).relevance_, -0.5 * np.log(1 - rho**2), atol=1e-12)


def test_samples_stay_as_they_are_in_any_order_of_memory():
    X, y = make_classification(40, 5, random_state=0)
    X = np.asfortranarray(X)
    before = X.copy()
    RRCT().fit(X, y)
    np.testing.assert_array_equal(X, before)
