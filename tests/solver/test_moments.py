import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import accumulate

COLUMNS = np.arange(6).reshape(2, 3)


def table(n=50, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1, 10, 0.1, 1, 5, 2] + [0, 100, -3, 1e4, 0, 1]
    X[rng.random((n, 2)).repeat(3, axis=1) < missing] = np.nan
    return X, rng.integers(0, 3, n)


def direct(X, y, n_classes, weights=None):
    """Centred moments of one channel from the samples that have it."""
    weights = np.ones(len(y)) if weights is None else weights
    seen = ~np.isnan(X).any(axis=1)
    X, Y, w = X[seen], np.eye(n_classes)[y[seen]], weights[seen]
    X = X - np.average(X, axis=0, weights=w)
    Y = Y - np.average(Y, axis=0, weights=w)
    return X.T @ (w[:, None] * X), Y.T @ (w[:, None] * X), np.sum(w[:, None] * Y**2)


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_moments_equal_those_computed_from_the_observed_samples(weighted):
    X, y = table()
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    A, P, y2 = accumulate(X, y, 3, COLUMNS, weights).centred()
    for v, own in enumerate(COLUMNS):
        expected = direct(X[:, own], y, 3, weights)
        assert_allclose(A[v], expected[0], rtol=1e-9, atol=1e-9 * np.abs(expected[0]).max())
        assert_allclose(P[v], expected[1], rtol=1e-9, atol=1e-9)
        assert_allclose(y2[v], expected[2])


def test_mean_and_std_are_those_of_the_observed_samples():
    X, y = table()
    moments = accumulate(X, y, 3, COLUMNS)
    assert_allclose(moments.mean.ravel(), np.nanmean(X, axis=0))
    assert_allclose(moments.std.ravel(), np.nanstd(X, axis=0))


def test_columns_of_a_channel_need_not_be_neighbours():
    X, y = table(missing=0)
    order = np.array([3, 0, 5, 1, 4, 2])
    here = accumulate(X[:, order], y, 3, np.argsort(order).reshape(2, 3))
    there = accumulate(X, y, 3, COLUMNS)
    assert_array_equal(here.sum_xx, there.sum_xx)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), cut=st.integers(1, 49))
def test_moments_of_parts_add_up_and_subtract(seed, cut):
    X, y = table(seed=seed)
    whole = accumulate(X, y, 3, COLUMNS)
    held_out = accumulate(X[:cut], y[:cut], 3, COLUMNS, about=whole)
    rest = accumulate(X[cut:], y[cut:], 3, COLUMNS, about=whole)
    for left, right in ((whole - held_out, rest), (held_out + rest, whole)):
        assert left.total == pytest.approx(right.total)
        assert_allclose(left.count, right.count)
        for a, b in zip(left.centred(), right.centred(), strict=True):
            assert_allclose(a, b, rtol=1e-8, atol=1e-10 * np.abs(whole.sum_xx).max())


def test_moments_about_different_points_are_not_added():
    X, y = table()
    with pytest.raises(ValueError, match="same shift"):
        accumulate(X[:20], y[:20], 3, COLUMNS) + accumulate(X[20:], y[20:], 3, COLUMNS)


def test_filling_equals_the_moments_of_the_filled_table():
    X, y = table()
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    here = accumulate(X, y, 3, COLUMNS).filled(np.bincount(y).astype(float))
    there = accumulate(filled, y, 3, COLUMNS)
    for a, b in zip(here.centred(), there.centred(), strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_integer_weights_are_repetitions_and_weight_zero_is_absence():
    X, y = table()
    repeats = np.random.default_rng(2).integers(0, 4, len(y))
    X[repeats == 0] = 1e9
    weighted = accumulate(X, y, 3, COLUMNS, repeats.astype(float))
    repeated = accumulate(np.repeat(X, repeats, axis=0), np.repeat(y, repeats), 3, COLUMNS)
    for a, b in zip(weighted.centred(), repeated.centred(), strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e150])
def test_a_feature_varies_whatever_its_unit(scale):
    X, y = table(missing=0)
    expected = X.std(axis=0) * [scale, 1, 1, 1, 1, 1]
    X[:, 0] *= scale
    moments = accumulate(X, y, 3, COLUMNS)
    assert not moments.constant().any()
    assert_allclose(moments.std.ravel(), expected)


def test_a_feature_that_differs_by_rounding_only_is_constant():
    X, y = table(missing=0)
    X[:, 1] = 0.1 + 0.2
    X[::2, 1] = 0.3
    X[:, 4] = 0.0
    assert_array_equal(accumulate(X, y, 3, COLUMNS).constant().ravel(), [0, 1, 0, 0, 1, 0])
