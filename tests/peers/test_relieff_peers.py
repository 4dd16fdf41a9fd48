"""ReliefF against skrebate and fast-select."""

import numpy as np
import pytest
from fast_select import ReliefF as FastReliefF
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from skrebate import ReliefF as RebateReliefF

from idfsmec.selection import ReliefF

pytestmark = pytest.mark.long


def generated(n_classes):
    return make_classification(
        150, 15, n_informative=6, n_classes=n_classes, random_state=n_classes
    )


def continuous_digits():
    """Three digits, the pixels that vary, with noise: no ties, no pixel taken for a category."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:200, X.std(axis=0) > 1]
    return X + np.random.default_rng(0).normal(scale=0.1, size=X.shape), y[:200]


@pytest.mark.parametrize(
    "data",
    [
        load_breast_cancer(return_X_y=True),
        generated(2),
        generated(3),
        generated(5),
        load_wine(return_X_y=True),
        continuous_digits(),
    ],
    ids=["breast cancer", "2 classes", "3 classes", "5 classes", "wine", "digits"],
)
def test_equals_fast_select(data):
    X, y = data
    peer = FastReliefF(n_features_to_select=2, n_neighbors=10, discrete_limit=1, backend="cpu")
    # fast-select computes in single precision.
    np.testing.assert_allclose(
        ReliefF().fit(X, y).scores_, peer.fit(X, y).feature_importances_, atol=2e-5
    )


@pytest.mark.parametrize(
    "data",
    [load_breast_cancer(return_X_y=True), generated(2)],
    ids=["breast cancer", "generated"],
)
def test_equals_skrebate_for_two_classes_to_the_last_digit(data):
    X, y = data[0][:250], data[1][:250]
    peer = RebateReliefF(n_neighbors=10).fit(X, y)
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, peer.feature_importances_, atol=1e-14)


def test_iris_differs_from_both_only_by_how_ties_are_broken():
    X, y = load_iris(return_X_y=True)
    ours = ReliefF().fit(X, y).scores_
    rebate = RebateReliefF(n_neighbors=10).fit(X, y).feature_importances_
    fast = FastReliefF(n_features_to_select=2, n_neighbors=10, backend="cpu").fit(X, y)
    np.testing.assert_allclose(ours, rebate, atol=2e-4)
    np.testing.assert_allclose(ours, fast.feature_importances_, atol=2e-4)
