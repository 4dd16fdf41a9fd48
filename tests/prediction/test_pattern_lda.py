"""A discriminant for every pattern of gaps: a classifier like any other of scikit-learn."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction.pattern_lda import PatternLDA


@parametrize_with_checks([PatternLDA()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_a_gap_is_no_worse_than_a_table_without_the_column():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 5)) + y[:, None]
    gone = np.where(np.arange(5) < 3, X, np.nan)
    whole, smaller = PatternLDA().fit(X, y), PatternLDA().fit(X[:, :3], y)
    assert_allclose(whole.predict_proba(gone), smaller.predict_proba(X[:, :3]))
