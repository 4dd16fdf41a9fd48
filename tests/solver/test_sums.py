"""Sums of a table are what loops over its samples and subjects find."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import sums as sums_module
from idfsmec.solver.sums import (
    hash_samples,
    join_sums,
    mixed,
    n_repeats,
    name_folds,
    subject_folds,
    sum_bits,
    table_sums,
    value_folds,
)

from .problems import moments_of

COLUMNS = [np.array([0, 1, 2]), np.array([3, 4]), np.array([7, 5, 6])]


def make(seed=0, n=60, n_subjects=15, n_classes=2, offset=0.0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_subjects, size=n)
    codes = groups % n_classes
    X = rng.normal(size=(n, 8)) + codes[:, None] + offset
    for own in COLUMNS:
        X[np.ix_(rng.random(n) < 0.3, own)] = np.nan
    folds = rng.integers(3, size=(2, n_subjects))[:, groups]
    return X, codes, groups, folds


def has(X, own):
    return ~np.isnan(X[:, own]).any(axis=1)


def literal(X, own, weights, codes, n_classes):
    """Centred moments of the samples that have a channel."""
    seen = has(X, own)
    x, w, Y = X[seen][:, own], weights[seen], np.eye(n_classes)[codes[seen]]
    x, Y = x - w @ x / w.sum(), Y - w @ Y / w.sum()
    return (w[:, None] * x).T @ x, (w[:, None] * Y).T @ x, w @ (Y**2).sum(axis=1)


def subject_weights(X, own, groups, codes):
    seen = has(X, own)
    n = [np.sum(seen & (groups == g) & (codes == k)) for g, k in zip(groups, codes, strict=True)]
    return seen / np.maximum(n, 1)


@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "both"])
@pytest.mark.parametrize("seed", range(2))
def test_moments_of_any_cells_are_those_of_their_samples(kind, seed):
    X, codes, groups, folds = make(seed, n_classes=3, offset=1e4)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(X))
    how = {"groups": groups} if kind in ("groups", "both") else {}
    how |= {"sample_weight": weights} if kind in ("weights", "both") else {}
    sums = table_sums(X, COLUMNS, codes, folds, 3, n_folds=3, **how)
    splits = sums.splits()
    assert len(splits) == 6
    for place, split in enumerate([None, *splits]):
        rows = np.ones(len(X), bool)
        if split is not None:
            rows = folds[(place - 1) // 3] != (place - 1) % 3
        for moments in sums.moments(None if split is None else split.train):
            for v, found in zip(
                moments.channels, zip(*moments.centred(), strict=True), strict=True
            ):
                w = np.ones(len(X))
                if "groups" in how:
                    w = subject_weights(X, COLUMNS[v], groups, codes)
                w = w * how.get("sample_weight", 1.0) * rows
                expected = literal(X[rows], COLUMNS[v], w[rows], codes[rows], 3)
                for one, other in zip(found, expected, strict=True):
                    assert_allclose(one, other, atol=1e-6)


def test_with_groups_counts_are_numbers_of_subjects():
    X, codes, groups, folds = make(n=200)
    sums = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, groups=groups)
    for block in sums.blocks:
        for v, count in zip(block.channels, block.count, strict=True):
            for f, k in np.ndindex(3, 2):
                cells = (sums.folds[0] == f) & (sums.classes == k)
                rows = (folds[0] == f) & (codes == k)
                there = np.unique(groups[rows & has(X, COLUMNS[v])]).size
                assert count[cells].sum() == pytest.approx(there)
                assert sums.total[cells].sum() == pytest.approx(np.unique(groups[rows]).size)


def test_a_subject_with_many_samples_counts_as_one_with_few():
    X, codes, groups, folds = make()
    more = np.flatnonzero(groups == 3)
    again = np.concatenate([np.arange(len(X)), *(more,) * 40])
    once = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, groups=groups)
    often = table_sums(
        X[again], COLUMNS, codes[again], folds[:, again], 2, n_folds=3, groups=groups[again]
    )
    for one, other in zip(once.moments(), often.moments(), strict=True):
        for a, b in zip(one.centred(), other.centred(), strict=True):
            assert_allclose(a, b, atol=1e-9)


def test_a_numeric_target_is_the_last_feature():
    X, _, _, folds = make(offset=5.0)
    X *= np.logspace(0, 150, 8)
    y = np.random.default_rng(3).normal(size=len(X))
    codes = np.zeros(len(X), dtype=int)
    sums = table_sums(X, COLUMNS, codes, folds, 1, n_folds=3, target=y)
    (train, _), *_ = sums.splits()
    for cells, rows in ((None, np.ones(len(X), bool)), (train, folds[0] != 0)):
        for moments in sums.moments(cells):
            A, P, y2 = moments.centred()
            for row, v in enumerate(moments.channels):
                seen = has(X, COLUMNS[v]) & rows
                x, t, scale = X[seen][:, COLUMNS[v]], y[seen], moments.scale[row]
                assert_allclose(moments.mean[row], x.mean(axis=0))
                assert_allclose(moments.std[row], x.std(axis=0))
                x, t = (x - x.mean(axis=0)) / scale, t - t.mean()
                assert_allclose(A[row], x.T @ x, atol=1e-9)
                assert_allclose(P[row, 0], t @ x, atol=1e-9)
                assert y2[row] == pytest.approx(t @ t)


def test_imputing_equals_the_moments_of_the_imputed_table():
    X, codes, _, _ = make()
    whole = X.copy()
    for own in COLUMNS:
        whole[np.ix_(~has(X, own), own)] = X[has(X, own)][:, own].mean(axis=0)
    imputed, plain = moments_of(X, codes, 2, COLUMNS), moments_of(whole, codes, 2, COLUMNS)
    for one, other in zip(imputed, plain, strict=True):
        for a, b in zip(one.imputed().centred(), other.centred(), strict=True):
            assert_allclose(a, b, atol=1e-9)


def test_integer_weights_are_repetitions_and_columns_may_be_given_in_any_order():
    X, codes, _, _ = make()
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    again = np.repeat(np.arange(len(X)), weights)
    weighted = moments_of(X, codes, 2, COLUMNS, weights.astype(float))
    repeated = moments_of(X[again], codes[again], 2, COLUMNS)
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one.mean, other.mean)
        assert_allclose(one.std, other.std)
        assert_allclose(one.centred()[0], other.centred()[0], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_a_feature_varies_whatever_its_unit(scale):
    X, codes, _, _ = make()
    (moments, *_) = moments_of(X * scale, codes, 2, COLUMNS)
    assert not moments.constant().any()
    assert_allclose(moments.std / scale, moments_of(X, codes, 2, COLUMNS)[0].std, rtol=1e-9)


def test_a_feature_that_differs_by_rounding_only_is_constant():
    X = np.full((20, 1), 0.1) * np.where(np.arange(20) % 2, 1, 1 + 1e-16)[:, None]
    (moments,) = moments_of(X, np.arange(20) % 2, 2, [np.array([0])])
    assert moments.constant().all()


@given(seed=st.integers(0, 50))
@settings(max_examples=15)
def test_parts_of_a_table_add_up_to_the_whole(seed):
    X, codes, groups, folds = make(seed)
    key = groups * 2 + codes
    pairs, member = np.unique(key, return_inverse=True)
    has = np.stack([~np.isnan(X[:, own]).any(axis=1) for own in COLUMNS], axis=1)
    has = np.column_stack([has, np.ones(len(X), dtype=bool), has.any(axis=1)])
    counts = np.array([has[member == number].sum(axis=0) for number in range(pairs.size)])
    cut = 25
    units = (np.full(8, 0.3), np.full(8, 2.0))
    how = {"n_folds": 3, "units": units, "counts": counts}
    first, second = (
        table_sums(X[part], COLUMNS, codes[part], folds[:, part], 2, groups=member[part], **how)
        for part in (slice(0, cut), slice(cut, None))
    )
    together = join_sums([first, second])
    whole = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, groups=groups)
    for one, other in zip(together.moments(), whole.moments(), strict=True):
        assert_allclose(one.mean, other.mean, atol=1e-9)
        assert_allclose(one.std, other.std, atol=1e-9)
        assert_allclose(one.count, other.count)
    for name in ("total", "seen"):
        assert_allclose(getattr(together, name), getattr(join_sums([whole]), name))


def test_tables_side_by_side_are_one_table():
    X, codes, _, folds = make()
    parts = [np.arange(0, 30), np.arange(30, 60)]
    sums = [table_sums(X[p], COLUMNS, codes[p], folds[:, p], 2, n_folds=3) for p in parts]
    joined, whole = join_sums(sums), table_sums(X, COLUMNS, codes, folds, 2, n_folds=3)
    assert joined.classes.size == whole.classes.size
    for one, other in zip(joined.moments(), whole.moments(), strict=True):
        assert_allclose(one.mean, other.mean)
        assert_allclose(one.std, other.std)
        assert_allclose(one.class_count, other.class_count)


def test_units_learned_from_sums_are_those_of_the_samples():
    X, codes, _, folds = make()
    for block in table_sums(X, COLUMNS, codes, folds, 2, n_folds=3).moments():
        assert_allclose(block.mean, np.nanmean(X, axis=0)[block.columns])
        assert_allclose(block.std, np.nanstd(X, axis=0)[block.columns])


def test_folds_by_values_do_not_depend_on_order_and_units():
    X, _, _, _ = make()
    folds = value_folds(X, COLUMNS, n_repeats=2)
    assert {*folds.ravel()} == {0, 1, 2, 3}
    assert not np.array_equal(folds[0], folds[1])
    order = np.random.default_rng(1).permutation(len(X))
    assert_array_equal(value_folds(X[order], COLUMNS[::-1], n_repeats=2), folds[:, order])
    assert_array_equal(value_folds(1e3 * X - 7, COLUMNS, n_repeats=2), folds)
    weighed = value_folds(X, COLUMNS, sample_weight=np.ones(len(X)))
    assert_array_equal(weighed, folds[:1])


def test_a_constant_feature_does_not_change_the_fold_of_any_sample():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    folds = value_folds(X, [np.arange(3)])
    constant = np.column_stack([X, np.full(len(X), 0.1)])
    assert_array_equal(value_folds(constant, [np.arange(4)]), folds)


def test_folds_by_subject_follow_from_the_values_of_the_subject_alone():
    X, _, groups, _ = make(n=600, n_subjects=150)
    folds = subject_folds(hash_samples(X, COLUMNS), groups, 2)
    assert np.apply_along_axis(np.bincount, 1, folds, minlength=4).min() > 20
    assert not np.array_equal(folds[0], folds[1])
    order = np.random.default_rng(1).permutation(len(X))
    noise = X[order] * (1 + 1e-15)  # rounding in another order
    hashes = hash_samples(noise, [own[::-1] for own in COLUMNS[::-1]])
    assert_array_equal(subject_folds(hashes, groups[order], 2), folds)
    left = groups != 3
    without = subject_folds(hash_samples(X[left], COLUMNS), groups[left], 2)
    assert_array_equal(np.delete(without, 3, axis=1), np.delete(folds, 3, axis=1))


def test_folds_by_names_need_the_key_that_made_them():
    names = [f"s{i}" for i in range(200)]
    plain, keyed, other = (name_folds(names, key=key) for key in (b"", b"a" * 32, b"b" * 32))
    for folds in (plain, keyed, other):
        assert np.bincount(folds, minlength=4).min() > 30
    assert not np.array_equal(plain, keyed)
    assert not np.array_equal(other, keyed)
    assert_array_equal(name_folds(names[::-1], key=b"a" * 32), keyed[::-1])


def test_numbers_are_mixed_as_by_splitmix64():
    """The published sequence of the generator from seed 1234567 (Steele et al., OOPSLA 2014)."""
    seed = np.array([1234567], dtype=np.uint64)
    sequence = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(mixed(seed, repeat)[0]) for repeat in range(3)] == sequence


def test_folds_by_names_are_hashes_modulo_four():
    expected = int(hashlib.sha256(b"s1").hexdigest()[:16], 16) % 4
    assert name_folds(["s1"]).tolist() == [expected]
    keyed = hashlib.blake2b(b"s1", key=b"k" * 16, digest_size=32).hexdigest()
    assert name_folds(["s1"], key=b"k" * 16).tolist() == [int(keyed[:16], 16) % 4]


def test_folds_by_values_are_those_of_standardised_sums():
    X, _, _, _ = make()
    weights = np.random.default_rng(2).uniform(0.5, 2, len(X))
    for w, option in ((np.ones(len(X)), None), (weights, weights)):
        numbers = np.zeros(len(X))
        for own in COLUMNS:
            seen = has(X, own)
            x, share = X[seen][:, own], w[seen] / w[seen].sum()
            mean = share @ x
            z = (x - mean) / np.sqrt(share @ (x - mean) ** 2)
            numbers[seen] += z.sum(axis=1) + 0.37 * (z**2).sum(axis=1)
        grains = np.round(numbers * 10_000).astype(np.int64).view(np.uint64)
        expected = [mixed(grains, repeat) % 4 for repeat in range(2)]
        assert_array_equal(value_folds(X, COLUMNS, 2, sample_weight=option), expected)


def test_bits_of_values_are_rounded_to_their_upper_half():
    X = np.array([[1.5, -2.25, 1e-9, 7.0], [1 + 2**-21, 0.0, np.pi, np.nan]])
    expected = [
        sum((int.from_bytes(struct.pack("<d", v), "little") + 2**31) >> 32 for v in values)
        for values in ([1.5, -2.25, 1e-9, 7.0], [1 + 2**-21, 0.0, np.pi])
    ]
    assert sum_bits(X, [np.array([0, 1, 2]), np.array([3])]).tolist() == expected


def test_folds_by_subject_are_those_of_sums_of_hashes():
    X, _, groups, _ = make()
    hashes = hash_samples(X, COLUMNS)
    totals = [sum(map(int, hashes[groups == g])) % 2**64 for g in range(groups.max() + 1)]
    expected = [mixed(np.array(totals, dtype=np.uint64), repeat) % 4 for repeat in range(2)]
    assert_array_equal(subject_folds(hashes, groups, 2), expected)
    # Values that differ from the seventh digit on are one value, others are not.
    x = np.array([[1.0], [1.0 + 2.0**-22], [1.0 + 2.0**-20]])
    first, close, other = hash_samples(x, [np.array([0])])
    assert first == close != other


def test_large_tables_have_one_repeat_of_the_folds():
    assert [n_repeats(n) for n in (1, 1_000_000, 1_000_001)] == [2, 2, 1]


def test_a_numeric_target_counts_by_class_as_its_sum_and_squares():
    X, _, _, folds = make()
    y = np.random.default_rng(3).normal(size=len(X)) + 2
    codes = np.zeros(len(X), dtype=int)
    for moments in table_sums(X, COLUMNS, codes, folds, 1, n_folds=3, target=y).moments():
        for row, v in enumerate(moments.channels):
            t = y[has(X, COLUMNS[v])]
            assert moments.count[row] == t.size
            assert moments.class_count[row, 0] == pytest.approx(t.sum())
            assert moments.sum_yy[row] == pytest.approx((t**2).sum())
            assert moments.class_share[row, 0] == pytest.approx(t.mean())


def test_totals_are_weights_of_all_samples_and_of_those_with_any_channel():
    X, codes, _, folds = make()
    X[:7] = np.nan
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    whole = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, sample_weight=weights)
    any_channel = np.any([has(X, own) for own in COLUMNS], axis=0)
    for f, k in np.ndindex(3, 2):
        cells = (whole.folds[0] == f) & (whole.classes == k)
        rows = (folds[0] == f) & (codes == k)
        assert whole.total[cells].sum() == pytest.approx(weights[rows].sum())
        assert whole.seen[cells].sum() == pytest.approx(weights[rows & any_channel].sum())
    (moments, *_) = whole.moments()
    assert moments.total == pytest.approx(weights.sum())
    assert_allclose(moments.class_total, [weights[codes == k].sum() for k in (0, 1)])


def test_a_fold_without_samples_is_not_held_out_and_one_fold_is_none():
    X, codes, _, folds = make()
    twice = np.where(folds[:1] == 2, 0, folds[:1])
    assert len(table_sums(X, COLUMNS, codes, twice, 2, n_folds=3).splits()) == 2
    assert table_sums(X, COLUMNS, codes, 0 * twice, 2, n_folds=3).splits() == []


def test_sums_in_other_units_are_those_of_the_changed_table():
    X, codes, _, folds = make()
    shift, scale = np.linspace(-1, 2, 8), np.linspace(0.5, 3, 8)
    plain = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3)
    changed = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, units=(shift, scale))
    for one, other in zip(plain.blocks, changed.blocks, strict=True):
        again = one.in_units(shift[one.columns], scale[one.columns])
        for name in ("count", "sum_x", "sum_xx", "shift", "scale"):
            assert_allclose(getattr(again, name), getattr(other, name), atol=1e-9)


@pytest.mark.parametrize("n_elements", [1, 60 * 3, 60 * 3 + 1, 10**6])
def test_channels_summed_some_at_a_time_are_summed_alike(monkeypatch, n_elements):
    X, codes, _, folds = make()
    whole = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3)
    monkeypatch.setattr(sums_module, "_BLOCK_ELEMENTS", n_elements)
    parts = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3)
    for one, other in zip(parts.blocks, whole.blocks, strict=True):
        assert_array_equal(one.channels, other.channels)
        assert_allclose(one.sum_xx, other.sum_xx)


def test_the_unit_of_weights_does_not_matter():
    X, codes, _, folds = make()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    large, small = (
        table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, sample_weight=scale * weights)
        for scale in (1.0, 1e-4)
    )
    for one, other in zip(large.moments(), small.moments(), strict=True):
        for name in ("mean", "std", "class_share"):
            assert_allclose(getattr(one, name), getattr(other, name))
