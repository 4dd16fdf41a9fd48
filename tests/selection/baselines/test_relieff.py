"""ReliefF against the definition, computed sample by sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_classification

from idfsmec.selection import ReliefF


def by_definition(X, y, k=10):
    """The formula, one sample at a time; ties for the last places share them."""
    extent = np.ptp(X, axis=0)
    Z = (X - X.min(axis=0)) / np.where(extent == 0, 1, extent)
    n = len(y)
    weights = np.zeros(X.shape[1])
    shares = {c: np.mean(y == c) for c in set(y)}
    for i in range(n):
        for c, share in shares.items():
            members = [j for j in range(n) if y[j] == c and j != i]
            if not members:
                continue
            k_here = min(k, len(members))
            difference = np.abs(Z[i] - Z[members])
            distance = difference.sum(axis=1).round(9)
            limit = np.sort(distance)[k_here - 1]
            sure, tied = distance < limit, distance == limit
            total = difference[sure].sum(axis=0)
            total = total + (k_here - sure.sum()) * difference[tied].mean(axis=0)
            factor = -1 if c == y[i] else share / (1 - shares[y[i]])
            weights += factor * total / k_here
    return weights / n


def test_iris_has_its_known_weights():
    scores = ReliefF().fit(*load_iris(return_X_y=True)).scores_
    assert scores.round(4).tolist() == [0.1399, 0.1226, 0.3590, 0.3754]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equals_the_definition(n_classes):
    X, y = make_classification(
        150, 12, n_informative=6, n_classes=n_classes, random_state=n_classes
    )
    keep = (y != 0) | (np.arange(150) % 3 > 0)  # classes of unequal size
    X, y = X[keep], y[keep]
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, by_definition(X, y), atol=1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_equals_the_definition_for_coarse_values_with_many_ties(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (30, 5)).astype(float)
    y = np.append([0, 1, 2], rng.integers(0, 3, 27))
    X[0] = np.arange(5)  # no column is constant
    scores = ReliefF(n_neighbors=k).fit(X, y).scores_
    expected = by_definition(X, y, k)
    varies = np.ptp(X, axis=0) > 0
    np.testing.assert_allclose(scores[varies], expected[varies], atol=1e-12)


def test_the_order_of_samples_does_not_matter():
    X, y = load_iris(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(150)
    np.testing.assert_allclose(
        ReliefF().fit(X[shuffled], y[shuffled]).scores_, ReliefF().fit(X, y).scores_, atol=1e-13
    )


def test_scale_and_unit_of_a_feature_do_not_matter():
    X, y = make_classification(80, 6, random_state=0)
    stretched = X * [1e-12, 1e9, 1, 1, 1, 1] + [0, 0, 5, 0, 0, 0]
    np.testing.assert_allclose(
        ReliefF().fit(stretched, y).scores_, ReliefF().fit(X, y).scores_, atol=1e-9
    )


def test_samples_that_do_not_fit_into_one_chunk_give_the_same_scores():
    X, y = make_classification(700, 4, n_redundant=0, random_state=0)
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, by_definition(X, y), atol=1e-13)


def test_a_class_of_one_sample_has_no_hits_and_does_no_harm():
    X, y = make_classification(30, 4, n_redundant=0, random_state=0)
    y[0] = 7
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, by_definition(X, y), atol=1e-13)


@given(
    n=st.integers(6, 40),
    n_features=st.sampled_from([1, 3, 70]),
    k=st.integers(1, 4),
    decimals=st.sampled_from([1, 4, 16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_definition_for_any_shape(n, n_features, k, decimals, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features)).round(decimals)
    X[:2] = [[0.0], [1.0]]
    y = np.append([0, 0, 1, 1], rng.integers(0, 2, n - 4))
    np.testing.assert_allclose(
        ReliefF(n_neighbors=k).fit(X, y).scores_, by_definition(X, y, k), atol=1e-12
    )


def test_a_column_of_rounding_noise_changes_nothing():
    X, y = make_classification(60, 6, random_state=0)
    noisy = np.column_stack([X, np.nextafter(1e22, 2e22) + 1e6 * np.arange(60)])
    scores = ReliefF().fit(noisy, y).scores_
    np.testing.assert_allclose(scores[:-1], ReliefF().fit(X, y).scores_, atol=1e-13)
