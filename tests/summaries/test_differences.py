"""No combination of sums that are told together is over few people."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from idfsmec import FeatureTable, summarise
from idfsmec.summaries.between import common_samples


def who_is_in(table, **options):
    """For every class and channel, and every sum that is told: how much of each sample is in it.

    Sums are linear, and what is told does not depend on values: features that are 1 for one sample
    and 0 for all others show the samples behind each sum. There are sums over samples, over people
    and over patterns of channels.
    """
    # What is told of patterns depends on the number of columns, so it is asked without the marks.
    plain = summarise(table, **options)
    patterns = plain.patterns
    there, channels, n = table.observed.to_numpy(), table.channels, len(table)
    X = {
        f"{channel}__{row}": np.where(there[:, at], np.arange(n) == row, np.nan)
        for at, channel in enumerate(channels)
        for row in range(n)
    }
    marked = FeatureTable(pd.DataFrame(X), table.y, table.subjects)
    if any("in no sum" in said for said in plain.withheld):
        marked = marked.take(common_samples(table, options["min_people"]))
    summary = summarise(marked, **options)
    assert_allclose(summary.class_total, plain.class_total)
    found = {}
    for channel, sums in zip(channels, summary.sums, strict=True):
        for k, label in enumerate(summary.labels):
            samples = sums.sum_x[:, :, k] * sums.scale + sums.count[:, :, k, None] * sums.shift
            means = sums.sum_m[:, :, k] * sums.scale + sums.people[:, :, k, None] * sums.shift
            told = [np.zeros((0, n))]
            for one in patterns:
                own = np.isin(table.X.columns, one.columns)
                if one.people[k] and own[channels.index(channel)]:
                    mine = (table.X.notna().to_numpy() == own).all(axis=1) & (table.y == label)
                    assert mine.sum() == one.count[k]
                    told.append(mine.to_numpy(dtype=float)[None])
            found[label, channel] = [
                np.unique(np.round(np.reshape(part, (-1, n)), 9), axis=0)
                for part in (samples, means, np.concatenate(told))
            ]
    return found


def fewest(rows, subjects):
    """Of all combinations with coefficients -1, 0 and 1, the fewest people one is over."""
    rows = rows[np.abs(rows).max(axis=1, initial=0) > 0]
    combined = np.array(list(product((-1, 0, 1), repeat=len(rows)))) @ rows
    whose = np.unique(subjects, return_inverse=True)[1]
    taking_part = (np.abs(combined) > 1e-6).astype(float) @ np.eye(whose.max() + 1)[whose]
    over = (taking_part > 0).sum(axis=1)
    return over[over > 0].min(initial=10**6)


@st.composite
def tables(draw, n_people=(8, 22)):
    """People of two classes with one to three samples each, which lack channels in any manner."""
    n = draw(st.integers(*n_people))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    per_person = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.15, 0.5])), 2, 1)
    per_person += draw(st.integers(0, 1))
    people = np.repeat(np.arange(n), per_person)
    labels = np.where(people % 2, "MDD", "HC")
    gaps = rng.random((people.size, 2)) < draw(st.sampled_from([0.0, 0.1, 0.3]))
    columns = ["F3__a", "Cz__a"]
    X = pd.DataFrame(np.where(gaps, np.nan, 1.0), columns=columns)
    return FeatureTable(X, labels, [f"{seed}p{i}" for i in people])


@settings(max_examples=25, deadline=None)
@given(tables(), st.integers(2, 4), st.sampled_from([1, 2]))
def test_nothing_over_few_people_follows_from_the_sums_of_a_channel(table, min_people, n_folds):
    for samples, means, _ in who_is_in(table, min_people=min_people, n_folds=n_folds).values():
        for times in (1, 2, 3):
            told = np.concatenate([samples, times * means])
            assert fewest(told, table.subjects) >= min_people


@pytest.mark.filterwarnings("ignore:Withheld")
@settings(max_examples=20, deadline=None)
@given(tables(n_people=(18, 28)), st.integers(2, 4), st.sampled_from([1, 2]))
def test_nor_from_products_between_channels(table, min_people, n_folds):
    found = who_is_in(table, min_people=min_people, n_folds=n_folds, between=True)
    for samples, means, patterns in found.values():
        for times in (1, 2):
            told = np.concatenate([samples, times * means, patterns])
            assert fewest(told, table.subjects) >= min_people


@pytest.mark.filterwarnings("ignore:Withheld")
def test_products_are_told_beside_folds_of_two_deals():
    rng = np.random.default_rng(1)
    people = np.arange(60)
    gaps = np.stack([rng.random(60) < 0.3, np.zeros(60, dtype=bool)], axis=1)
    X = pd.DataFrame(np.where(gaps, np.nan, 1.0), columns=["F3__a", "Cz__a"])
    table = FeatureTable(X, np.where(people % 2, "MDD", "HC"), [f"p{i}" for i in people])
    found = who_is_in(table, min_people=4, n_folds=2, between=True)
    assert [len(one) for one in found["HC", "Cz"]] == [
        5,
        5,
        2,
    ]  # folds that are not in use are empty
    for samples, _, patterns in found.values():  # sums over people are those over samples
        assert fewest(np.concatenate([samples, patterns]), table.subjects) >= 4


def epochs(numbers, seed=0):
    """People with so many epochs of one channel, two classes in turn."""
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(len(numbers)), numbers)
    X = rng.normal(size=(people.size, 3)) + rng.normal(size=(len(numbers), 3))[people]
    X[:, 0] += people % 2
    frame = pd.DataFrame(X, columns=["Cz__a", "Cz__b", "Cz__c"])
    return FeatureTable(frame, people % 2, [f"s{i}" for i in people])


def test_one_person_with_fewer_epochs_is_not_told_apart():
    numbers = np.full(40, 5)
    numbers[6] = 4
    table = epochs(numbers)
    told = summarise(table, min_people=5, n_folds=2)
    assert "count by their samples" in told.describe()
    exact = summarise(table, min_people=1, n_folds=2)
    (own,), (plain,) = told.sums, exact.sums
    means = [one.sum_m + one.people[..., None] * one.shift for one in (own, plain)]
    sums = own.sum_x + own.count[..., None] * own.shift
    mine = table.X[(table.subjects == "s6").to_numpy()].mean().to_numpy()
    lone = (5 * means[1] - sums)[0, :, 0]
    assert np.isclose(lone, mine).all(axis=1).any()  # what would have been told
    assert not np.isclose((5 * means[0] - sums)[0, :, 0], mine).all(axis=1).any()
    assert own.people[0].sum() == pytest.approx(40)


@pytest.mark.parametrize("others", [[3, 5, 7, 2], [1, 3, 7, 2]])
def test_people_who_count_by_their_samples_are_weighted_means(others):
    table = epochs(np.r_[np.full(36, 6), others])
    summary = summarise(table, min_people=5, n_folds=2)
    (sums,) = summary.sums
    for k in (0, 1):
        own = table.X[(table.y == k).to_numpy()] - sums.shift
        means, n = own.groupby(level=0).mean(), own.groupby(level=0).size()
        weights = n * len(n) / n.sum()
        assert_allclose(sums.people[0, :, k].sum(), len(n))
        assert_allclose(sums.sum_m[0, :, k].sum(axis=0), means.T @ weights, atol=1e-9)
        # Where somebody has one sample, products of means would tell those who have more.
        products = own.T @ own if (n == 1).any() else (means.T * n) @ means
        wanted = products * len(n) / n.sum()
        assert_allclose(sums.sum_mm[0, :, k].sum(axis=0), wanted, atol=1e-9)


def test_where_all_have_as_many_samples_or_many_have_others_people_count_once():
    for numbers in (np.full(60, 4), np.arange(200) % 7 + 1):
        told, exact = (summarise(epochs(numbers), min_people=m, n_folds=2) for m in (5, 1))
        assert not told.withheld
        assert_allclose(told.sums[0].sum_m, exact.sums[0].sum_m, atol=1e-9)
