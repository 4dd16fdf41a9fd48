"""Means of methods by missing rate, and what is said where nothing is compared."""

import pandas as pd
import pytest

from idfsmec.report import summarise
from tests.report.tidy import fake_results, make_scores, two_methods


def comparisons(scores):
    return summarise(fake_results(scores))["tables"][0]["comparisons"]


def test_one_method_has_nothing_to_be_compared_with():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7})
    summary = summarise(fake_results(scores))
    assert "Only IDFS-MEC was run" in summary["tables"][0]["comparisons"][0]["sentence"]


def test_results_without_a_proposed_method_say_so():
    scores = make_scores({("mRMR", 0.0, 5): 0.7, ("CMIM", 0.0, 5): 0.6})
    summary = summarise(fake_results(scores))
    sentence = summary["tables"][0]["comparisons"][0]["sentence"]
    assert sentence == "No proposed method is among the methods compared here."
    assert summary["tables"][0]["findings"]["accuracy"] is None


def test_a_users_own_proposed_method_is_what_the_page_is_about():
    scores = make_scores({("mine", 0.0, 5): 0.8, ("IDFS-MEC", 0.0, 5): 0.6})
    methods = {"mine": {"family": "proposed"}, "IDFS-MEC": {"family": "embedded"}}
    summary = summarise(fake_results(scores, methods=methods))
    (comparison,) = summary["tables"][0]["comparisons"]
    assert comparison["sentence"] == ""
    assert [row["main"] for row in comparison["rows"]] == [True, False]
    assert summary["method"] == "mine"
    assert summary["tables"][0]["findings"]["accuracy"]["mean"] == pytest.approx(0.8)


def test_every_pattern_of_missing_channels_is_compared():
    scores = pd.concat([two_methods(0.8, 0.6), two_methods(0.6, 0.8, pattern="recording")])
    compared = comparisons(scores)
    assert [comparison["pattern"] for comparison in compared] == ["random", "recording"]
    best = [[row["cells"][0]["best"] for row in comparison["rows"]] for comparison in compared]
    assert best == [[True, False], [False, True]]
