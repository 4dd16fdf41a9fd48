"""An audit in words: each finding has its sentence, and no sentence says more than was found."""

from string import Formatter

import pandas as pd
import pytest

from idfsmec.audit import Audit
from idfsmec.audit.verdict import SENTENCES, _conditions, _values, find_suspects

FIGURE = {"auc": 0.8, "low": 0.7, "high": 0.9}
MATCHED = {
    **FIGURE,
    "estimable": True,
    "n_subjects": [20, 19],
    "n_effective": [14.2, 11.0],
    "n_pairs": 40,
    "acquisition_auc": 0.55,
    "failed": False,
}
SHUFFLED = {"auc": [0.5, 0.52], "low": 0.4, "high": 0.6}


def variables(*names, level=""):
    rows = [
        {"variable": name, "level": level, "class": 1, "higher": True, "p_holm": 0.001, **FIGURE}
        for name in names
    ]
    return pd.DataFrame(rows)


def summary(level="red", found=("sfreq",), **known):
    """What an audit with these findings says."""
    rows = variables(*found, level=known.pop("category", ""))
    suspects = [] if level in ("green", "grey") else list(found)
    asked = {"suspects": suspects} | known
    return Audit(level, ["HC", "MDD"], [20, 21], rows, asked.pop("models", {}), **asked).summary()


BOTH = {
    "models": {"eeg": FIGURE, "leader": FIGURE},
    "best_model": "leader",
    "difference": {"value": 0.0, "low": -0.1, "high": 0.1},
}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {"level": "green"},
            "None of 1 acquisition facts is significantly associated with the diagnosis",
        ),
        ({"level": "grey", "why": "few"}, "There are 41 participants (20 HC and 21 MDD)."),
        ({"level": "grey", "why": "undescribed"}, "The table has no acquisition facts."),
        ({}, "Sampling rate differs between HC and MDD. There are too few participants to hold"),
        (
            {"models": {"leader": FIGURE}, "best_model": "leader"},
            "Acquisition (the leading fact alone) separates HC and MDD with AUC 0.80 (95 % CI "
            "0.70 to 0.90).",
        ),
        ({"level": "amber", **BOTH}, "The EEG separates them better."),
        (BOTH, "EEG minus acquisition: −0.10 to 0.10. The EEG is not shown to be better."),
        (BOTH, "may come from the amplifier, not the illness (sampling rate)."),
        (
            {**BOTH, "models": BOTH["models"] | {"logistic": FIGURE}},
            "AUC 0.80 (95 % CI 0.70 to 0.90, corrected for choosing the best model)",
        ),
        ({"found": ["age", "sex"], **BOTH}, "may come from who was recorded (age and sex)"),
        (
            {"found": ["gaps: detected: flat"], **BOTH},
            "the amplifier or the body, not the brain",
        ),
        ({"found": list("abcdef"), **BOTH}, "(a, b, c, d, e and 1 more)"),
    ],
)
def test_the_verdict(found, words):
    assert words in summary(**found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {},
            "Associated with the diagnosis: sampling rate, higher in MDD: AUC 0.80 (95 % CI 0.70 "
            "to 0.90)",
        ),
        ({"category": "500"}, "sampling rate (500), more often in MDD"),
        ({"found": list("abcde")}, ", and 2 more."),
        ({"unused": ["bdi"]}, "Not tested, because they may be part of the illness: bdi."),
        ({"folds": "site", "n_splits": 3}, "one of 3 sites left out at a time"),
        (
            {"matched": MATCHED},
            "(20 HC and 19 MDD, effective numbers 14.2 and 11.0; 40 pairs) the EEG has AUC 0.80",
        ),
        ({"matched": MATCHED}, "excludes 0.5. Acquisition has AUC 0.55 in these pairs."),
        ({"matched": MATCHED | {"low": 0.45}}, "(95 % CI 0.45 to 0.90); the CI includes 0.5."),
        (
            {"matched": MATCHED | {"estimable": False}},
            "too few participants have a match (20 HC and 19 MDD, effective numbers 14.2",
        ),
        (
            {"matched": MATCHED | {"failed": True, "acquisition_auc": 0.74}},
            "The match has failed: acquisition still separates the matched pairs (AUC 0.74;",
        ),
        (
            {
                "strata": {
                    "n_recorded": [
                        {"level": "19", "n_subjects": [10, 9], **FIGURE},
                        {"level": "64", "n_subjects": [1, 9], "auc": None},
                    ]
                }
            },
            "EEG within each number of channels in the file: 19 (10 HC and 9 MDD): AUC 0.80 (95 % "
            "CI 0.70 to 0.90); 64 (1 HC and 9 MDD): too few.",
        ),
        (
            {"matched": MATCHED | {"estimable": False, "n_pairs": 0}},
            "cannot be decided: no participant has a match",
        ),
        (
            {"regressed": FIGURE | {"variables": ["sfreq"], "low": 0.5}},
            "With sampling rate regressed out inside the folds the EEG has AUC 0.80 (95 % CI 0.50 "
            "to 0.90); the CI includes 0.5.",
        ),
    ],
)
def test_what_it_rests_on_and_what_is_left(found, words):
    assert words in summary(**found)


@pytest.mark.parametrize(
    ("leaks", "words"),
    [
        (
            {"subject": {"roc_auc": 0.7}, "by_sample": {"roc_auc": 0.9}},
            "in training and test), AUC over samples would be 0.90 instead of 0.70.",
        ),
        (
            {"subject": {"roc_auc": 0.7}, "before": {"roc_auc": 0.71}},
            "selected before splitting, AUC over samples would be 0.71 instead of 0.70.",
        ),
        ({"shuffled": SHUFFLED}, "Permuted labels give AUC 0.51, within the 95 % band of chance"),
        (
            {"shuffled": SHUFFLED | {"high": 0.5}},
            "above the 95 % band of chance (0.40 to 0.50): there is a leak.",
        ),
        ({"two_names": {"estimable": False}}, "was not tested: there are too few samples"),
        (
            {"headers": {"shared_name": 2, "other_condition": 0}},
            "Participants with a header with another participant's name: 2.",
        ),
        (
            {"two_names": {"estimable": True, "pairs": []}},
            "No participant seems to occur under two names.",
        ),
        (
            {"two_names": {"estimable": True, "pairs": [("s1", "s2", 0.1)]}},
            "Samples of s1 and s2 are as similar as those of one participant",
        ),
        (
            {"repeated": {"n_across": 2, "n_repeated": 3, "pairs": [("s1", "s2")]}},
            "2 rows occur again under another name (s1 and s2).",
        ),
        (
            {"repeated": {"n_across": 0, "n_repeated": 3}},
            "3 rows of the same participant occur twice.",
        ),
        ({"repeated": {"n_across": 0, "n_repeated": 0}}, "No row occurs twice."),
    ],
)
def test_leaks(leaks, words):
    assert words in summary(leaks=leaks)


def test_a_suspect_needs_a_small_p_and_an_interval_that_excludes_one_half():
    rows = [
        {"variable": name, "p_holm": p, "auc": 0.6, "low": low, "high": 0.75}
        for name, p, low in [("both", 0.01, 0.52), ("interval", 0.2, 0.52), ("p", 0.01, 0.46)]
    ]
    assert find_suspects({"alone": rows, "together": {}}) == ["both"]
    together = {"p_holm": 0.01, "low": 0.46}
    assert find_suspects({"alone": rows[1:], "together": together}) == []
    assert find_suspects({"alone": rows[1:], "together": together | {"low": 0.55}}) == [
        "interval",
        "p",
    ]


def test_without_findings_there_is_the_verdict_alone():
    said = summary("green")
    assert said.splitlines() == [said]
    assert said.startswith("No known acquisition fact is associated with the diagnosis. ")


def test_every_sentence_has_its_condition_and_its_values():
    audit = Audit("green", ["HC", "MDD"], [20, 21], variables("sfreq"), {})
    conditions, values = _conditions(audit), _values(audit)
    several = {"variable", "levels", "mistake", "auc", "correct", "header", "number"}
    for sentences in SENTENCES.values():
        for condition, text in sentences.items():
            names = {name for _, name, _, _ in Formatter().parse(text) if name}
            assert condition in conditions
            assert names <= values.keys() | several
