import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from idfsmec.solver.scaling import Scaling, is_constant, observed_moments

from .problems import moments_of


def gappy(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 6)) * [1, 5, 0.1, 1, 1, 1] + [0, 10, -3, 0, 0, 0]
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


def test_scaling_and_filling_equal_those_of_scikit_learn():
    X = gappy()
    X[:, 3] = 5.0
    scaling = Scaling.learn(X[:80])
    steps = make_pipeline(StandardScaler(), SimpleImputer()).fit(X[:80])
    assert_allclose(scaling.imputed(X[:80]), steps.transform(X[:80]), atol=1e-12)
    assert_allclose(scaling.imputed(X[80:]), steps.transform(X[80:]), atol=1e-12)


def test_what_is_missing_stays_missing_unless_filled():
    X = gappy()
    scaled = Scaling.learn(X).apply(X)
    assert_array_equal(np.isnan(scaled), np.isnan(X))
    assert_allclose(np.nanmean(scaled, axis=0), 0, atol=1e-12)
    assert_allclose(np.nanstd(scaled, axis=0), 1)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e300])
@pytest.mark.parametrize("n", [3, 20_000])
def test_a_constant_column_carries_nothing_in_new_samples_either(value, n):
    X = np.full((n, 1), value)
    scaling = Scaling.learn(X)
    assert scaling.constant.all()
    assert_array_equal(scaling.apply(np.array([[7.0], [np.nan]])), [[0.0], [np.nan]])


def test_a_column_never_observed_counts_as_constant():
    assert_array_equal(observed_moments(np.full((4, 1), np.nan)), [[0.0], [0.0]])
    assert Scaling.learn(np.full((4, 1), np.nan)).constant.all()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e150])
def test_units_do_not_matter(scale):
    X = gappy()
    assert_allclose(observed_moments(X * scale)[1] / scale, np.nanstd(X, axis=0))
    assert_allclose(Scaling.learn(X * scale).imputed(X * scale), Scaling.learn(X).imputed(X))


def test_the_solver_follows_the_same_rule():
    X = gappy()[:, :4]
    X = X[~np.isnan(X).any(axis=1)]
    X[:, 1] = 0.1 + 0.2
    X[::2, 1] = 0.3  # differs by rounding only
    (moments,) = moments_of(X, np.arange(len(X)) % 2, 2, [np.arange(4)])
    mean, std = observed_moments(X)
    assert_allclose(moments.mean[0], mean, atol=1e-12)
    assert_allclose(moments.std[0], std, atol=1e-12)
    assert_array_equal(moments.constant()[0], is_constant(mean, std))
    assert_array_equal(is_constant(mean, std), [False, True, False, False])
