"""An audit in words: each finding has its sentence, and no sentence says more than was found."""

import pandas as pd
import pytest

from idfsmec.audit import Audit

FIGURE = {"auc": 0.8, "low": 0.7, "high": 0.9}
MATCHED = {
    **FIGURE,
    "estimable": True,
    "n_subjects": [20, 19],
    "n_pairs": 40,
    "acquisition_auc": 0.55,
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


BOTH = {"models": {"eeg": FIGURE, "leader": FIGURE}, "best_model": "leader"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"level": "green"}, "None of 1 acquisition variables separates HC and MDD beyond chance"),
        ({"level": "grey", "why": "few"}, "With 41 subjects (20 HC and 21 MDD) no difference"),
        ({"level": "grey", "why": "undescribed"}, "does not say how recordings were made"),
        ({}, "Sampling rate differs between HC and MDD; there were too few subjects to hold"),
        (
            {"models": {"leader": FIGURE}, "best_model": "leader"},
            "separates HC and MDD: AUC 0.80 (0.70 to 0.90) from the leading acquisition variable",
        ),
        ({"level": "amber", **BOTH}, "though not as well as the EEG"),
        (BOTH, "as far as 41 subjects can tell"),
        (BOTH, "It may be the amplifier, not the illness (sampling rate)."),
        ({"found": ["age", "sex"], **BOTH}, "It may be who was recorded (age and sex)"),
        (
            {"found": ["gaps: detected: flat"], **BOTH},
            "the amplifier or the body and not the brain",
        ),
        ({"found": list("abcdef"), **BOTH}, "(a, b, c and 3 more)"),
    ],
)
def test_the_verdict(found, words):
    assert words in summary(**found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {},
            "Associated with the diagnosis: sampling rate, higher in MDD: AUC 0.80 (0.70 to 0.90)",
        ),
        ({"category": "500"}, "sampling rate (500), more often in MDD"),
        ({"found": list("abcde")}, ", and 2 more."),
        ({"unused": ["bdi"]}, "Not tested, because it may be the illness itself: bdi."),
        ({"folds": "site", "n_splits": 3}, "one of 3 sites left out at a time"),
        ({"matched": MATCHED}, "(20 HC and 19 MDD, 40 pairs) the EEG has AUC 0.80"),
        ({"matched": MATCHED}, "above chance; acquisition itself has AUC 0.55 there."),
        ({"matched": MATCHED | {"low": 0.45}}, "AUC 0.80 (0.45 to 0.90), no more than chance"),
        (
            {"matched": MATCHED | {"estimable": False}},
            "estimated: only 20 HC and 19 MDD have a match",
        ),
        (
            {"matched": MATCHED | {"estimable": False, "n_pairs": 0}},
            "cannot be estimated: none has a match",
        ),
        (
            {"regressed": FIGURE | {"variables": ["sfreq"], "low": 0.5}},
            "With sampling rate regressed out inside the folds the EEG has AUC 0.80 (0.50 to "
            "0.90), no more than chance.",
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
            "with sample-wise folds, which have subjects on both sides; that would add +0.20.",
        ),
        (
            {"subject": {"roc_auc": 0.7}, "before": {"roc_auc": 0.71}},
            "0.71 with features selected before splitting; that would add nothing.",
        ),
        ({"shuffled": SHUFFLED}, "Permuted labels give AUC 0.51, within what chance gives"),
        ({"shuffled": SHUFFLED | {"high": 0.5}}, "(AUC 0.51, chance gives 0.40 to 0.50): a leak."),
        ({"two_names": {"estimable": False}}, "cannot be told: there are too few samples each"),
        ({"two_names": {"estimable": True, "pairs": []}}, "No two subjects look like one subject"),
        (
            {"two_names": {"estimable": True, "pairs": [("s1", "s2", 0.1)]}},
            "Samples of s1 and s2 are as near to each other's as to their own",
        ),
        (
            {"repeated": {"n_across": 2, "n_repeated": 3, "pairs": [("s1", "s2")]}},
            "2 rows come again under another name (s1 and s2).",
        ),
        ({"repeated": {"n_across": 0, "n_repeated": 3}}, "3 rows come twice, of the same subject"),
        ({"repeated": {"n_across": 0, "n_repeated": 0}}, "No row comes twice."),
    ],
)
def test_leaks(leaks, words):
    assert words in summary(leaks=leaks)


def test_without_findings_there_is_the_verdict_alone():
    said = summary("green")
    assert said.splitlines() == [said]
    assert said.startswith("No known acquisition variable is associated with the diagnosis. ")
