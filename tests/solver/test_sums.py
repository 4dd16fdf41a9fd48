"""Sums by fold and class say what the samples say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import (
    Options,
    add_sums,
    cell_sums,
    fold_moments,
    held_out_losses,
    losses_of_sums,
    solve_channels,
    table_moments,
    table_of_sums,
)

COLUMNS = [np.array([0, 1, 2]), np.array([5, 3]), np.array([4, 6])]
SHAPE = (3, 2)


def samples(seed=0, n=80, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7)) + offset
    X[:, 1] += X[:, 0]
    for own in COLUMNS:
        X[np.ix_(rng.random(n) < 0.3, own[:1])] = np.nan
    codes, fold = rng.integers(2, size=n), rng.integers(3, size=n)
    X[:, 0] += codes
    return X, fold, codes


def assert_same_moments(found, wanted):
    for one, other in zip(found.groups, wanted.groups, strict=True):
        assert_array_equal(one.columns, other.columns)
        assert_allclose(one.moments.mean, other.moments.mean, rtol=1e-12)
        for part, whole in zip(one.moments.centred(), other.moments.centred(), strict=True):
            assert_allclose(part, whole, rtol=1e-8, atol=1e-8)
        assert_array_equal(one.moments.class_count, other.moments.class_count)
        assert one.moments.total == other.moments.total


@given(st.integers(0, 2**16), st.sampled_from([0.0, 1e3, -1e5]))
def test_the_moments_of_any_folds_are_those_of_their_samples(seed, offset):
    X, fold, codes = samples(seed, offset=offset)
    sums, observed = cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
    total = np.zeros(SHAPE)
    np.add.at(total, (fold, codes), 1)
    for folds in ([0, 1, 2], [0, 2], [1]):
        own = np.isin(fold, folds)
        found = table_of_sums(sums, total, COLUMNS, folds)
        assert_same_moments(found, table_moments(X[own], codes[own], 2, COLUMNS))
    for at, own in enumerate(COLUMNS):
        assert_array_equal(observed[:, at], ~np.isnan(X[:, own]).any(axis=1))


@given(st.integers(0, 2**16))
def test_parts_add_up_to_the_whole_and_can_be_taken_away(seed):
    X, fold, codes = samples(seed, offset=100.0)
    part = np.random.default_rng(seed).random(len(X)) < 0.3
    whole, _ = cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
    one, _ = cell_sums(X[part].T, fold[part], codes[part], SHAPE, COLUMNS)
    other, _ = cell_sums(X[~part].T, fold[~part], codes[~part], SHAPE, COLUMNS)
    for all_of_it, a, b in zip(whole, one, other, strict=True):
        units = all_of_it.shift, all_of_it.scale
        added = add_sums([a, b]).in_units(*units)
        left = (all_of_it - a).in_units(*units)
        assert_allclose(added.sum_xx, all_of_it.sum_xx, atol=1e-9)
        assert_allclose(left.sum_xx, b.in_units(*units).sum_xx, atol=1e-9)
        assert_allclose(left.sum_x, b.in_units(*units).sum_x, atol=1e-9)


@pytest.mark.parametrize("missing_indicator", [True, False])
def test_the_loss_is_the_squared_error_on_the_samples_left_out(missing_indicator):
    X, fold, codes = samples()
    sums, _ = cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
    total = np.zeros(SHAPE)
    np.add.at(total, (fold, codes), 1)
    held_out = [np.flatnonzero(fold == one) for one in range(3)]
    training = fold_moments(X, codes, 2, COLUMNS, held_out)
    fits = solve_channels(training, [0.1, 1.0], Options(missing_indicator=missing_indicator))
    wanted = held_out_losses(
        X, codes, held_out, training, fits, missing_indicator=missing_indicator, clip=False
    )
    found = losses_of_sums(
        sums, total, COLUMNS, [0, 1, 2], fits, missing_indicator=missing_indicator
    )
    assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_squares_neither_overflow_nor_vanish(size):
    X, fold, codes = samples()
    found, _ = cell_sums(X.T * size, fold, codes, SHAPE, COLUMNS)
    plain, _ = cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
    for one, other in zip(found, plain, strict=True):
        assert_allclose(one.scale * one.sum_x / size, other.sum_x, atol=1e-9)
        assert_allclose(one.sum_xx * (one.scale / size) ** 2, other.sum_xx, rtol=1e-6, atol=1e-6)


def test_a_channel_that_nobody_has_and_a_constant_one_do_no_harm():
    X, fold, codes = samples()
    X[:, COLUMNS[0]], X[:, COLUMNS[1]] = np.nan, 3.3
    sums, _ = cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
    assert not sums[0].count.any()
    total = np.ones(SHAPE)
    table = table_of_sums([add_sums([one, one]) for one in sums], total, COLUMNS)
    pair = next(group for group in table.groups if 1 in group.channels).moments.constant()
    assert pair[0].all()
    assert not pair[1].any()


def test_infinity_is_refused_by_the_number_of_its_column():
    X, fold, codes = samples()
    X[3, 4], X[5, 4] = np.inf, -np.inf
    with pytest.raises(FloatingPointError, match="4"):
        cell_sums(X.T, fold, codes, SHAPE, COLUMNS)
