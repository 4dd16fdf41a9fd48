"""Who wins where, in sentences and in the diagram of ranks."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation.statistics import compare_ranks
from idfsmec.report import plot_critical_difference, summarise
from idfsmec.report.text import SIGNIFICANT
from tests.report.tidy import by_gid, fake_results, make_scores, texts, two_methods


def comparisons(scores):
    return summarise(fake_results(scores))["tables"][0]["comparisons"]


def test_a_significant_loss_is_described():
    found = comparisons(two_methods(0.6, 0.8))[0]
    assert found["sentences"] == [
        "IDFS-MEC does not have the highest mean at the one missing rate tried.",
        f"IDFS-MEC is behind mRMR at 0\xa0% missing (by 20.0 points); {SIGNIFICANT}.",
    ]


def test_a_loss_that_is_not_significant_is_described_as_such():
    scores = two_methods(0.70, 0.71)
    wobble = np.tile([0.1, -0.1, 0.05, -0.05], 2) * np.repeat([1, -1], 4)
    scores["balanced_accuracy"] += wobble
    sentences = comparisons(scores)[0]["sentences"]
    assert sentences[-1].startswith("IDFS-MEC is behind mRMR at 0")
    assert sentences[-1].endswith(f"; not {SIGNIFICANT}.")


def test_a_significant_win_is_described():
    sentences = comparisons(two_methods(0.8, 0.6))[0]["sentences"]
    assert sentences == [
        "IDFS-MEC has the highest mean at every missing rate (difference to the next: "
        f"{SIGNIFICANT} at 0\xa0%)."
    ]


def test_the_interval_of_a_difference_is_paired_by_fold():
    gap = comparisons(two_methods(0.8, 0.6, spread=0.3))[0]["leads"][0]
    assert gap["difference"] == pytest.approx(0.2)
    assert (gap["low"], gap["high"]) == pytest.approx((0.2, 0.2))


def test_one_method_has_nothing_to_be_compared_with():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7})
    summary = summarise(fake_results(scores))
    assert "Only IDFS-MEC was run" in summary["tables"][0]["comparisons"][0]["sentences"][0]
    assert summary["ranks"] is None


def test_results_without_a_proposed_method_say_so():
    scores = make_scores({("mRMR", 0.0, 5): 0.7, ("CMIM", 0.0, 5): 0.6})
    summary = summarise(fake_results(scores))
    sentences = summary["tables"][0]["comparisons"][0]["sentences"]
    assert sentences == ["No proposed method is among the methods compared here."]
    assert summary["tables"][0]["findings"]["accuracy"] is None


def test_a_users_own_proposed_method_is_what_the_sentences_are_about():
    scores = make_scores({("mine", 0.0, 5): 0.8, ("IDFS-MEC", 0.0, 5): 0.6})
    methods = {"mine": {"family": "proposed"}, "IDFS-MEC": {"family": "embedded"}}
    summary = summarise(fake_results(scores, methods=methods))
    (comparison,) = summary["tables"][0]["comparisons"]
    assert comparison["sentences"][0].startswith("mine has the highest mean")
    assert [row["main"] for row in comparison["rows"]] == [True, False]
    assert summary["method"] == "mine"
    assert summary["tables"][0]["findings"]["accuracy"]["mean"] == pytest.approx(0.8)


def test_blocks_that_lack_a_method_are_left_out_of_ranks():
    means = {(method, rate, 5): 0.7 for method in "abc" for rate in (0.0, 0.1, 0.3)}
    del means["c", 0.3, 5]
    assert summarise(fake_results(make_scores(means)))["ranks"]["n_blocks"] == 2


def test_every_pattern_of_missing_channels_is_compared():
    scores = pd.concat([two_methods(0.8, 0.6), two_methods(0.6, 0.8, pattern="recording")])
    found = comparisons(scores)
    assert [one["pattern"] for one in found] == ["random", "recording"]
    assert "every missing rate" in found[0]["sentences"][0]
    assert "is behind mRMR" in found[1]["sentences"][1]


class TestCriticalDifference:
    scores = pd.DataFrame(
        np.random.default_rng(0).random((12, 4)) + [0.9, 0.6, 0.3, 0.0],
        columns=["IDFS-MEC", "mRMR", "CMIM", "random"],
    )

    def test_methods_are_written_with_their_mean_ranks(self):
        comparison = compare_ranks(self.scores)
        written = texts(plot_critical_difference(comparison))
        for method, rank in zip(comparison.methods, comparison.mean_ranks, strict=True):
            assert any(method in text and f"{rank:.2f}" in text for text in written)

    def test_bars_join_exactly_the_groups(self):
        comparison = compare_ranks(self.scores)
        ranks = dict(zip(comparison.methods, comparison.mean_ranks, strict=True))
        bars = by_gid(plot_critical_difference(comparison), "group")
        drawn = [tuple(bar.get_xdata()) for bar in bars]
        expected = [
            (min(ranks[m] for m in group), max(ranks[m] for m in group))
            for group in comparison.groups
        ]
        assert np.array(drawn) == pytest.approx(np.array(expected))

    def test_the_critical_difference_is_drawn_to_scale(self):
        comparison = compare_ranks(self.scores)
        bar = by_gid(plot_critical_difference(comparison), "critical-difference")[0]
        assert np.ptp(bar.get_xdata()) == pytest.approx(comparison.critical_difference)
