"""Products between channels in summaries: by which channels samples have, as far as it is safe."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec import FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.selection import CrossChannelReranker
from idfsmec.summaries.alike import harmonize_summaries
from tests.summaries.test_summaries import by_person, cohort

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")


def sites_of(table, n_sites=3, seed=0, **options):
    """Summaries of the table's people at several sites."""
    rng = np.random.default_rng(seed)
    site = {name: rng.integers(n_sites) for name in table.subjects.unique()}
    parts = by_person(table, site)
    return [summarise(part, min_people=1, between=True, **options) for part in parts]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_channels_are_ordered_anew_from_summaries_as_from_all_rows(missing):
    table = cohort(60, missing=missing)
    found = CrossChannelReranker(n_candidates=8).fit_summaries(sites_of(table))
    wanted = CrossChannelReranker(n_candidates=8).fit(table.X, table.y, groups=table.subjects)
    assert_array_equal(found.ranking_, wanted.ranking_)
    assert_allclose(found.missing_rates_, wanted.missing_rates_, atol=1e-12)
    assert found.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()


def rows_told(table, summary):
    """Which samples have a pattern of channels that is told for their class."""
    told = {
        (label, tuple(np.isin(table.X.columns, one.columns)))
        for one in summary.patterns
        for label, n in zip(summary.labels, one.people, strict=True)
        if n
    }
    there = table.X.notna().to_numpy()
    pairs = zip(table.y, map(tuple, there), strict=True)
    return np.array([pair in told for pair in pairs])


def test_rare_patterns_are_withheld():
    table = cohort(120, missing=0.15)
    with pytest.warns(UserWarning, match="Withheld: products between channels of class HC for"):
        summary = summarise(table, min_people=8, n_folds=1, between=True)
    told = rows_told(table, summary)
    assert 0.3 < told.mean() < 1
    assert all(n == 0 or n >= 8 for one in summary.patterns for n in one.people)
    kept = table.take(told)
    assert sum(one.count.sum() for one in summary.patterns) == len(kept)
    said = summary.describe()
    assert "products between channels of class MDD for" in said
    assert "Exactly F3, Cz, O2, T7: " in said


def test_products_between_channels_change_nothing_else_of_a_summary():
    table = cohort(90, missing=0.0)
    plain, more = (summarise(table, between=between) for between in (False, True))
    assert len(more.patterns) == 1
    assert plain.patterns == ()
    assert "Not in it: products between channels." in plain.describe()
    for one, other in zip(plain.sums, more.sums, strict=True):
        assert_array_equal(one.sum_mm, other.sum_mm)


def test_a_hospital_is_taken_away_with_its_products():
    first, second, third = sites_of(cohort(60))
    left = first + second + third - second
    wanted = first + third
    assert len(left.patterns) == len(wanted.patterns)
    by_columns = {one.columns: one for one in left.patterns}
    for one in wanted.patterns:
        other = by_columns[one.columns].in_units(one.shift, one.scale)
        assert_array_equal(other.people, one.people)
        assert_allclose(other.sum_x, one.sum_x, atol=1e-6)
        assert_allclose(other.sum_xx, one.sum_xx, rtol=1e-9, atol=1e-6)
    plain = summarise(cohort(20, seed=3), min_people=1)
    with pytest.raises(InputError, match="other patterns of channels"):
        (first + plain) - second


def test_hospitals_made_alike_have_products_made_alike():
    table = cohort(40, missing=0.0)
    for one in harmonize_summaries(sites_of(table, 2)):
        (pattern,) = one.patterns
        for sums, own in zip(one.sums, one.places, strict=True):
            raw = sums.in_units(np.zeros(own.size), np.ones(own.size)).sum_xx[0].sum(axis=(0, 1))
            zero = pattern.in_units(np.zeros(len(one.columns)), np.ones(len(one.columns)))
            assert_allclose(zero.sum_xx.sum(axis=0)[np.ix_(own, own)], raw, rtol=1e-9)


def test_what_cannot_be_done_is_said(tmp_path):
    table = cohort(30)
    summary = summarise(table, min_people=1)
    with pytest.raises(InputError, match="between=True"):
        CrossChannelReranker().fit_summaries([summary])
    with pytest.raises(InputError, match="whole table in memory"):
        summarise(tmp_path, between=True)
    path = table.write(tmp_path / "table.parquet")
    assert summarise(path, min_people=1, between=True).patterns


def test_values_of_all_sizes_are_summed_up():
    table = cohort(30, missing=0.1)
    X = pd.DataFrame(table.X.to_numpy() * 1e150, columns=table.X.columns)
    (summary,) = sites_of(FeatureTable(X, table.y, table.subjects), 1)
    assert all(np.isfinite(one.sum_xx).all() for one in summary.patterns)


@pytest.mark.filterwarnings("ignore:Withheld")
def test_a_pattern_of_fewer_samples_than_columns_is_withheld():
    for per_person, told in ((1, 0), (2, 1)):
        table = cohort(22, missing=0.0, per_person=per_person)  # 11 people of a class, 12 columns
        summary = summarise(table, n_folds=1, between=True)
        assert len(summary.patterns) == told
    assert "fewer samples of a class" not in summary.describe()
    (few,) = sites_of(cohort(22, missing=0.0, per_person=1), 1)
    assert "fewer samples of a class than columns" in few.describe()


def test_a_few_samples_of_rare_patterns_are_left_out_of_all_sums_if_that_tells_more():
    table = cohort(60, missing=0.0)
    X = table.X.reset_index(drop=True)
    X.loc[[4, 17], [column for column in X if column.startswith("T7")]] = np.nan
    few = FeatureTable(X, table.y, table.subjects)
    with pytest.warns(UserWarning, match="2 of 180 samples that have rare patterns of channels"):
        summary = summarise(few, between=True, n_folds=2)
    kept = few.take(np.setdiff1d(np.arange(180), [4, 17]))
    wanted = summarise(kept, between=True, n_folds=2)
    assert len(summary.patterns) == len(wanted.patterns) == 1
    for one, other in zip(summary.sums, wanted.sums, strict=True):
        assert_array_equal(one.sum_xx, other.sum_xx)
    assert_array_equal(summary.class_total, wanted.class_total)
    assert "samples that have rare patterns" in summary.describe()
    assert "rare" not in wanted.describe()
