import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from idfsmec.evaluation.statistics import compare_folds, compare_pairs, compare_ranks
from idfsmec.metrics import corrected_interval, holm

# Demsar, JMLR 7 (2006), Table 6: ranks of four versions of C4.5 on 14 data sets.
DEMSAR_RANKS = pd.DataFrame(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)
# Demsar 2006, Table 2: area under the curve of C4.5 and C4.5+m on the same data sets.
DEMSAR_PAIR = pd.DataFrame(
    {
        "C4.5": [763, 599, 954, 628, 882, 936, 661, 583, 775, 1000, 940, 619, 972, 957],
        "C4.5+m": [768, 591, 971, 661, 888, 931, 668, 583, 838, 1000, 962, 666, 981, 978],
    }
)

tables = arrays(
    float,
    st.tuples(st.integers(2, 8), st.integers(3, 6)),
    elements=st.integers(0, 5).map(float),
)


class TestCompareRanks:
    def test_demsars_example_agrees(self):
        found = compare_ranks(-DEMSAR_RANKS, alpha=0.05)
        by_name = dict(zip(found.methods, found.mean_ranks, strict=True))
        assert by_name == pytest.approx(
            {"C4.5": 3.143, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}, abs=5e-4
        )
        assert found.critical_difference == pytest.approx(1.25, abs=0.005)
        assert compare_ranks(-DEMSAR_RANKS, alpha=0.1).critical_difference == pytest.approx(
            1.12, abs=0.005
        )
        # He does not correct for ties: three pairs and one group of four in 14 blocks of 4.
        uncorrected = found.statistic * (1 - (3 * 6 + 60) / (14 * 60))
        assert uncorrected == pytest.approx(9.28, abs=0.005)
        assert 13 * uncorrected / (14 * 3 - uncorrected) == pytest.approx(3.69, abs=0.005)

    # Demsar 2006, Table 5a: critical values of the two-tailed Nemenyi test at 0.05.
    @pytest.mark.parametrize(
        ("n_methods", "critical"),
        [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)],
    )
    def test_critical_values_agree_with_the_printed_table(self, n_methods, critical):
        scores = pd.DataFrame(np.random.default_rng(0).random((6, n_methods)))
        expected = critical * np.sqrt(n_methods * (n_methods + 1) / 36)
        assert compare_ranks(scores).critical_difference == pytest.approx(expected, rel=1e-3)

    @given(tables)
    def test_the_statistic_agrees_with_scipy_with_and_without_ties(self, values):
        found = compare_ranks(pd.DataFrame(values))
        if (values == values[:, :1]).all():  # scipy divides by zero
            assert (found.statistic, found.p_value) == (0, 1)
            return
        statistic, p_value = stats.friedmanchisquare(*values.T)
        assert found.statistic == pytest.approx(statistic)
        assert found.p_value == pytest.approx(p_value)

    @given(tables)
    def test_ranks_are_mean_positions_and_groups_are_maximal_runs(self, values):
        found = compare_ranks(pd.DataFrame(values, columns=list("abcdef"[: values.shape[1]])))
        assert found.mean_ranks.mean() == pytest.approx((values.shape[1] + 1) / 2)
        assert (np.diff(found.mean_ranks) >= 0).all()
        rank = dict(zip(found.methods, found.mean_ranks, strict=True))
        together = {
            frozenset(pair)
            for pair in itertools.combinations(rank, 2)
            if abs(rank[pair[0]] - rank[pair[1]]) < found.critical_difference
        }
        shown = {frozenset(p) for g in found.groups for p in itertools.combinations(g, 2)}
        assert shown == together
        for one, other in itertools.permutations(found.groups, 2):
            assert not set(one) <= set(other)

    def test_complete_agreement_is_as_significant_as_can_be(self):
        scores = pd.DataFrame(np.tile([3.0, 2.0, 1.0], (5, 1)), columns=list("abc"))
        found = compare_ranks(scores)
        assert found.statistic == pytest.approx(10)
        assert found.f_statistic == np.inf
        assert found.f_p_value == 0
        assert found.methods == ("a", "b", "c")

    def test_a_gap_is_refused_and_named(self):
        scores = pd.DataFrame({"a": [0.5, 0.6], "b": [0.5, np.nan]})
        with pytest.raises(ValueError, match="incomplete: b"):
            compare_ranks(scores)

    def test_a_single_method_or_block_is_refused(self):
        with pytest.raises(ValueError, match="1 blocks"):
            compare_ranks(pd.DataFrame({"a": [0.5], "b": [0.6]}))


def signed_ranks_by_hand(differences):
    """Rank sum and two-sided p-value over all sign patterns, zeros split between the signs."""
    size = np.abs(differences)
    ranks = np.array([(size < s).sum() + ((size == s).sum() + 1) / 2 for s in size])
    zeros = ranks[differences == 0].sum() / 2
    moving = ranks[differences != 0]
    observed = moving[differences[differences != 0] > 0].sum()
    smaller = min(observed, moving.sum() - observed)
    sums = [np.dot(signs, moving) for signs in itertools.product([0, 1], repeat=moving.size)]
    return smaller + zeros, min(1, 2 * np.mean(np.array(sums) <= smaller))


class TestComparePairs:
    def test_demsars_example_agrees(self):
        found = compare_pairs(DEMSAR_PAIR, "C4.5+m").iloc[0]
        assert found["statistic"] == 12
        assert (found["wins"], found["ties"], found["losses"]) == (10, 2, 2)
        assert found["p_value"] < 0.05  # his critical value at 0.05 for 14 data sets is 21

    @given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
    def test_it_agrees_with_counting_all_sign_patterns(self, differences):
        values = np.array(differences, dtype=float)
        found = compare_pairs(pd.DataFrame({"a": values, "b": 0.0}), "a").iloc[0]
        statistic, p_value = signed_ranks_by_hand(values)
        assert found["statistic"] == pytest.approx(statistic)
        assert found["p_value"] == pytest.approx(p_value)

    @pytest.mark.parametrize("n_blocks", [12, 200])
    def test_without_ties_it_agrees_with_scipys_exact_test(self, n_blocks):
        difference = np.random.default_rng(n_blocks).normal(0.2, 1, n_blocks)
        found = compare_pairs(pd.DataFrame({"a": difference, "b": 0.0}), "a").iloc[0]
        expected = stats.wilcoxon(difference, method="exact")
        assert found["statistic"] == pytest.approx(expected.statistic)
        assert found["p_value"] == pytest.approx(expected.pvalue)

    def test_rounding_of_differences_makes_no_order(self):
        scores = pd.DataFrame({"a": [0.3, 0.4, 0.9], "b": [0.1, 0.6, 0.2]})
        assert compare_pairs(scores, "a").iloc[0]["statistic"] == 1.5

    def test_equal_methods_differ_not_at_all(self):
        found = compare_pairs(pd.DataFrame({"a": [0.5, 0.6], "b": [0.5, 0.6]}), "a").iloc[0]
        assert (found["p_value"], found["statistic"], found["ties"]) == (1, 1.5, 2)

    def test_p_values_are_corrected_over_all_comparisons(self):
        scores = pd.DataFrame(np.random.default_rng(0).random((8, 4)), columns=list("abcd"))
        found = compare_pairs(scores, "b")
        assert list(found["method"]) == ["a", "c", "d"]
        assert found["p_holm"].to_numpy() == pytest.approx(holm(found["p_value"]))

    def test_an_unknown_reference_is_refused(self):
        with pytest.raises(ValueError, match="no method 'z'"):
            compare_pairs(pd.DataFrame({"a": [1, 2], "b": [2, 1]}), "z")


class TestFoldComparisons:
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.7, 0.8], "b": [0.6, 0.6, 0.4, np.nan], "c": 0.5})

    def test_intervals_are_those_of_the_paired_differences(self):
        found = compare_folds(self.scores, "a", 75, 25).set_index("method")
        expected = corrected_interval([0.3, 0.2, 0.3], 75, 25)
        assert found.loc["b", ["difference", "low", "high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
        assert found["n"].tolist() == [3, 4]

    def test_p_is_below_a_twentieth_exactly_where_the_interval_leaves_zero_out(self):
        rng = np.random.default_rng(0)
        scores = pd.DataFrame(rng.normal(size=(6, 40)) + np.linspace(0, 2, 40))
        found = compare_folds(scores.rename(columns=str), "0", 80, 20)
        outside = (found["low"] > 0) | (found["high"] < 0)
        assert 0 < outside.sum() < len(found)
        assert ((found["p_value"] < 0.05) == outside).all()

    def test_one_fold_has_a_difference_and_no_interval(self):
        found = compare_folds(self.scores[:1], "a", 75, 25)
        assert found["difference"].tolist() == pytest.approx([0.3, 0.4])
        assert found[["low", "high", "p_value"]].isna().all(axis=None)

    def test_equal_methods_differ_not_at_all(self):
        same = pd.DataFrame({"a": [0.5, 0.6], "b": [0.5, 0.6]})
        assert compare_folds(same, "a", 75, 25)["p_value"].tolist() == [1.0]
