"""Which method has the highest mean at which missing rate, in sentences."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.report import summarise
from idfsmec.report.text import SIGNIFICANT
from tests.report.tidy import fake_results, make_scores, two_methods


def comparisons(scores):
    return summarise(fake_results(scores))["tables"][0]["comparisons"]


def test_a_significant_loss_is_described():
    found = comparisons(two_methods(0.6, 0.8))[0]
    assert found["sentences"] == [
        "IDFS-MEC has the highest mean at no missing rate.",
        f"At 0\xa0% missing mRMR is higher by 20.0 points; {SIGNIFICANT}.",
    ]


def test_a_loss_that_is_not_significant_is_described_as_such():
    scores = two_methods(0.70, 0.71)
    wobble = np.tile([0.1, -0.1, 0.05, -0.05], 2) * np.repeat([1, -1], 4)
    scores["balanced_accuracy"] += wobble
    sentences = comparisons(scores)[0]["sentences"]
    assert sentences[-1].startswith("At 0\xa0% missing mRMR is higher by 1.0 points")
    assert sentences[-1].endswith(f"; not {SIGNIFICANT}.")


def test_the_highest_mean_is_described():
    sentences = comparisons(two_methods(0.8, 0.6))[0]["sentences"]
    assert sentences == ["IDFS-MEC has the highest mean at every missing rate."]


def test_the_interval_of_a_difference_is_paired_by_fold():
    gap = comparisons(two_methods(0.8, 0.6, spread=0.3))[0]["leads"][0]
    assert gap["difference"] == pytest.approx(0.2)
    assert (gap["low"], gap["high"]) == pytest.approx((0.2, 0.2))


def test_one_method_has_nothing_to_be_compared_with():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7})
    summary = summarise(fake_results(scores))
    assert "Only IDFS-MEC was run" in summary["tables"][0]["comparisons"][0]["sentences"][0]


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


def test_every_pattern_of_missing_channels_is_compared():
    scores = pd.concat([two_methods(0.8, 0.6), two_methods(0.6, 0.8, pattern="recording")])
    found = comparisons(scores)
    assert [one["pattern"] for one in found] == ["random", "recording"]
    assert "every missing rate" in found[0]["sentences"][0]
    assert "mRMR is higher" in found[1]["sentences"][1]
