"""Sums by fold and class say what the samples say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import Cells, ChannelSums, Seats, add_sums, table_cells, table_moments

COLUMNS = [np.array([0, 1, 2]), np.array([5, 3]), np.array([4, 6])]
SHAPE = (3, 2)
# Two orders of adding 80 numbers of size 1 differ by 80 roundings each, which do not become fewer
# where the numbers cancel to a mean of 1e-5.
ROUNDING = 2 * 80 * np.finfo(float).eps


def samples(seed=0, n=80, offset=0.0):
    """Samples of 20 people, each in one fold of both deals, some with both classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7)) + offset
    X[:, 1] += X[:, 0]
    for own in COLUMNS:
        X[np.ix_(rng.random(n) < 0.3, own[:1])] = np.nan
    people = rng.integers(20, size=n)
    codes = np.where(rng.random(n) < 0.1, 1, people % 2)
    X[:, 0] += codes
    return X, rng.integers(3, size=(2, 20))[:, people], codes, people


def seated(X, fold, codes, people):
    return table_cells(X, Seats.of(fold, codes, SHAPE, people), COLUMNS)


def single(cells):
    """The sums of each channel by itself."""
    found = {}
    for group in cells.groups:
        for row, channel in enumerate(group.channels.tolist()):
            parts = (part[row] for part in vars(group.sums).values())
            found[channel] = ChannelSums(*parts)
    return [found[channel] for channel in sorted(found)]


def assert_same_moments(found, wanted):
    for one, other in zip(found.groups, wanted.groups, strict=True):
        assert_array_equal(one.columns, other.columns)
        assert_allclose(one.moments.mean, other.moments.mean, rtol=1e-12, atol=ROUNDING)
        for part, whole in zip(one.moments.centred(), other.moments.centred(), strict=True):
            assert_allclose(part, whole, rtol=1e-8, atol=1e-8)
        assert_allclose(one.moments.class_count, other.moments.class_count, rtol=1e-12)
        assert one.moments.total == pytest.approx(other.moments.total, rel=1e-12)


@given(st.integers(0, 2**16), st.sampled_from([0.0, 1e3, -1e5]))
@example(5258, 0.0)
def test_the_moments_of_any_folds_are_those_of_their_samples(seed, offset):
    X, fold, codes, people = samples(seed, offset=offset)
    cells = seated(X, fold, codes, people)
    assert_same_moments(cells.whole(), table_moments(X, codes, 2, COLUMNS))
    for deal, one in cells.folds():
        kept = fold[deal] != one
        wanted = table_moments(X[kept], codes[kept], 2, COLUMNS)
        assert_same_moments(cells.training(deal, one), wanted)


@given(st.integers(0, 2**16))
def test_weights_and_scores_are_summed_up_as_they_are(seed):
    X, fold, codes, people = samples(seed)
    rng = np.random.default_rng(seed)
    weights, score = rng.random(80) + 0.1, rng.normal(size=80)
    plain = table_cells(X, Seats.of(fold, codes, SHAPE, people), COLUMNS, weights)
    assert_same_moments(plain.whole(), table_moments(X, codes, 2, COLUMNS, weights))
    seats = Seats.of(fold, np.zeros(80, dtype=int), (3, 1), people, score)
    cells = table_cells(X, seats, COLUMNS, weights, score)
    found, wanted = cells.whole(), table_moments(X, score, 1, COLUMNS, weights)
    assert_same_moments(found, wanted)
    for one, other in zip(found.groups, wanted.groups, strict=True):
        assert_allclose(one.moments.sum_yy, other.moments.sum_yy)


@given(st.integers(0, 2**16))
def test_sums_over_people_are_of_their_means(seed):
    X, fold, codes, people = samples(seed)
    sums = single(seated(X, fold, codes, people))
    for own, found in zip(COLUMNS, sums, strict=True):
        count = np.zeros((2, *SHAPE))
        products = np.zeros((2, *SHAPE, own.size, own.size))
        there = ~np.isnan(X[:, own]).any(axis=1)
        for who in range(20):
            for k in range(2):
                rows = there & (people == who) & (codes == k)
                if not rows.any():
                    continue
                mean = (X[np.ix_(rows, own)].mean(axis=0) - found.shift) / found.scale
                for deal in range(2):
                    place = deal, fold[deal, rows][0], k
                    count[place] += 1
                    products[place] += np.outer(mean, mean)
        assert_array_equal(found.people, count)
        assert_allclose(found.sum_mm, products, atol=1e-9)


def test_where_nobody_has_a_name_each_sample_is_a_person():
    X, fold, codes, _ = samples()
    nameless, named = seated(X, fold, codes, None), seated(X, fold, codes, np.arange(80))
    for one, other in zip(single(nameless), single(named), strict=True):
        assert_array_equal(one.people, other.people)
        assert_allclose(one.sum_mm, other.sum_mm, atol=1e-9)
        assert_allclose(one.sum_mm, one.sum_xx, atol=1e-9)
    assert_array_equal(nameless.people, named.people)


@given(st.integers(0, 2**16))
def test_parts_add_up_to_the_whole_and_can_be_taken_away(seed):
    X, fold, codes, people = samples(seed, offset=100.0)
    part = np.isin(people, np.random.default_rng(seed).choice(20, 6, replace=False))
    whole = single(seated(X, fold, codes, people))
    one, other = (
        single(seated(X[rows], fold[:, rows], codes[rows], people[rows])) for rows in (part, ~part)
    )
    for all_of_it, a, b in zip(whole, one, other, strict=True):
        units = all_of_it.shift, all_of_it.scale
        added = add_sums([a, b]).in_units(*units)
        left = (all_of_it - a).in_units(*units)
        for name in ("sum_x", "sum_xx", "sum_m", "sum_mm"):
            assert_allclose(getattr(added, name), getattr(all_of_it, name), atol=1e-8)
            wanted = getattr(b.in_units(*units), name)
            assert_allclose(getattr(left, name), wanted, atol=1e-8)


def test_columns_one_by_one_are_the_same_table():
    X, fold, codes, people = samples()
    seats = Seats.of(fold, codes, SHAPE, people)
    here = table_cells(X, seats, COLUMNS)
    there = table_cells(list(X.T), seats, COLUMNS)
    for one, other in zip(single(here), single(there), strict=True):
        assert_allclose(one.sum_xx, other.sum_xx, atol=1e-12)
        assert_allclose(one.sum_mm, other.sum_mm, atol=1e-12)


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_squares_neither_overflow_nor_vanish(size):
    X, fold, codes, people = samples()
    found = single(seated(X * size, fold, codes, people))
    plain = single(seated(X, fold, codes, people))
    for one, other in zip(found, plain, strict=True):
        assert_allclose(one.scale * one.sum_x / size, other.sum_x, atol=1e-9)
        assert_allclose(one.sum_xx * (one.scale / size) ** 2, other.sum_xx, rtol=1e-6, atol=1e-6)
        assert_allclose(one.sum_mm * (one.scale / size) ** 2, other.sum_mm, rtol=1e-6, atol=1e-6)


def test_a_channel_that_nobody_has_and_a_constant_one_do_no_harm():
    X, fold, codes, people = samples()
    X[:, COLUMNS[0]], X[:, COLUMNS[1]] = np.nan, 3.3
    cells = seated(X, fold, codes, people)
    sums = [add_sums([one, one]) for one in single(cells)]
    assert not sums[0].count.any()
    table = Cells.stack(sums, COLUMNS, cells.total, cells.people, cells.seen).whole()
    pair = next(group for group in table.groups if 1 in group.channels).moments.constant()
    assert pair[0].all()
    assert not pair[1].any()


def test_infinity_is_refused_by_the_number_of_its_column():
    X, fold, codes, people = samples()
    X[3, 4], X[5, 4] = np.inf, -np.inf
    with pytest.raises(FloatingPointError, match="4"):
        seated(X, fold, codes, people)


def test_a_class_can_go_into_one_fold_or_out():
    one = single(seated(*samples()))[0]
    whole = one.in_one_fold(1, [2, 0])
    assert_array_equal((whole.count[0, :, 1] > 0), [False, False, True])
    assert_array_equal(whole.count[:, :, 0], one.count[:, :, 0])
    assert_array_equal(whole.people.sum(axis=1), one.people.sum(axis=1))
    assert not one.without(1).sum_mm[:, :, 1].any()
    once = one.dealt_once(0)
    assert_array_equal(once.sum_mm[1, :, 0], one.sum_mm[0, :, 0])
    assert_array_equal(once.sum_mm[1, :, 1], one.sum_mm[1, :, 1])
    assert_array_equal(replace(once, count=one.count).count, one.count)
