"""What stands first on a page follows from audit, accuracy and stability together."""

import itertools

import pandas as pd
import pytest

from idfsmec.report import summarise
from idfsmec.report.verdict import HEADLINES, headline, is_stable
from tests.report.tidy import fake_results, make_scores, two_methods

OPEN = "Whether they separate the groups was not measured"
BEST = "The channels that separate the groups best are F4 and O1. Leading features: f."


@pytest.mark.parametrize(
    ("level", "above", "stable", "start", "end"),
    [
        ("red", "no", "no", "Recordings differ between groups: see the audit.", "is shown."),
        ("green", "no", "yes", "No difference between the groups is shown.", "evidence: f."),
        ("amber", "no", "unknown", "No difference between the groups is shown.", "evidence: f."),
        ("grey", "no", "no", "No difference between the groups is shown.", "evidence: f."),
        ("red", "yes", "yes", "Recordings differ between groups: see the audit.", "reason: f."),
        ("red", "unknown", "yes", "Recordings differ between groups: see", "reason: f."),
        ("green", "unknown", "yes", "First in the ranking: f.", f"{OPEN}."),
        ("green", "yes", "no", "The groups are separated, by which", "Leading, not stable: f."),
        ("amber", "yes", "no", "The groups are separated, by which", "Leading, not stable: f."),
        ("grey", "yes", "unknown", "The groups are separated.", "stability not measured: f."),
        ("amber", "yes", "yes", BEST, "differ between groups, too: see the audit."),
        ("green", "yes", "yes", BEST, BEST),
        ("grey", "yes", "yes", BEST, BEST),
    ],
)
def test_the_headline_of_each_case(level, above, stable, start, end):
    text = headline(level, above, stable, "f", ["F4", "O1"], False)
    assert text.startswith(start)
    assert text.endswith(end)


def test_every_case_has_one_headline_and_every_headline_a_case():
    levels, answers = ("green", "amber", "red", "grey"), ("yes", "no", "unknown")
    cases = itertools.product(levels, answers, answers)
    texts = {headline(*case, "f", ["F4"], False) for case in cases}
    assert len(texts) == len(HEADLINES)


def test_only_what_is_above_chance_and_stable_is_said_to_separate_the_groups():
    for level, above, stable in itertools.product(
        ("green", "amber", "red", "grey"), ("yes", "no", "unknown"), ("yes", "no", "unknown")
    ):
        text = headline(level, above, stable, "f", ["F4"], False)
        separate = "separates the groups best" in text
        assert separate == (above == "yes" and stable == "yes" and level != "red")


def test_one_channel_nearly_even_weights_and_no_weights_have_words_of_their_own():
    case = ("green", "yes", "yes", "f")
    assert headline(*case, ["F4"], False).startswith("The channel that separates the groups best")
    assert headline(*case, [], False) == "The features that separate the groups best: f."
    assert headline(*case, ["F4"], True).endswith("Channel weights are nearly even.")
    assert headline("green", "yes", "yes", "", [], False) == ""


@pytest.mark.parametrize(
    ("stability", "features", "reason", "expected"),
    [
        ({"value": 0.08, "verdict": "poor"}, ["a"], None, "no"),
        ({"value": 0.8, "verdict": "excellent"}, ["a"], None, "yes"),
        ({"value": 0.8, "verdict": "excellent"}, [], None, "no"),
        (None, ["a"], None, "yes"),
        (None, [], "one subject", "unknown"),
    ],
)
def test_poor_agreement_or_no_stable_feature_is_not_stable(stability, features, reason, expected):
    halves = {"stability": stability, "stable_features": features, "reason": reason}
    assert is_stable(halves) == expected
    assert is_stable(None) == "unknown"


def test_audit_accuracy_and_stability_of_a_table_decide_together():
    ranking = pd.DataFrame(
        {"table": "t", "rank": [1, 2], "channel": ["F3", "O1"], "feature": "a",
         "score": [0.7, 0.3], "channel_weight": [0.7, 0.3], "method": "IDFS-MEC"}
    )  # fmt: skip
    halves = {
        "frequency": {"F3__a": 1.0, "O1__a": 0.5}, "channel_frequency": {"F3": 1.0, "O1": 0.5},
        "threshold": 0.7, "n_resamples": 20, "n_picked": 1, "max_false": 1, "chance": 0.5,
        "channel_chance": {"F3": 0.5, "O1": 0.5}, "stability": {"value": 0.9, "verdict": "good"},
    }  # fmt: skip

    def said(scores, **changes):
        results = fake_results(scores, ranking=ranking, **changes)
        return summarise(results)["tables"][0]["findings"]["headline"]

    clear = two_methods(0.9, 0.5, n_train_subjects=150)
    stable = {"resampling": {"t": halves}}
    red = {"verdicts": {"t": {"level": "red", "title": "T", "verdict": "V"}}}
    assert "best is F3" in said(clear, **stable)
    assert "stability not measured" in said(clear)
    assert "Recordings differ" in said(clear, **stable, **red)
    assert "No difference" in said(two_methods(0.6, 0.5, spread=0.3), **stable)
    assert OPEN in said(make_scores({("mRMR", 0.0, 5): 0.9}), **stable)
