"""Bins are what numpy's quantiles say, and rare values survive."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from idfsmec.selection.rivals.mutual_information import discretize


def test_quantile_bins_are_those_of_numpy():
    X, _ = load_breast_cancer(return_X_y=True)
    cuts = [0.2, 0.4, 0.6, 0.8]
    # Columns with repeated quantiles but many values are cut as numpy says, too.
    expected = np.column_stack([np.digitize(c, np.quantile(c, cuts)) for c in X.T])
    np.testing.assert_array_equal(discretize(X), expected)


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
    assert np.ptp(discretize(np.full((10, 1), 0.1), strategy="uniform")) == 0
