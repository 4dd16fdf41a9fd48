"""What a careful reader must know before believing the numbers."""

from __future__ import annotations

from typing import Any

from idfsmec.evaluation.results import Results
from idfsmec.report._words import listing, percent, protocol_of


def cautions(results: Results, answers: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """Warnings, the gravest first: ``title`` and ``text``."""
    protocol = protocol_of(results.protocol, "accuracy")
    found = [
        *_folds(protocol),
        *_tuning(protocol),
        *_near_chance(answers),
        *_barely_above(answers),
        *_unstable(answers),
        *_nothing_sure(answers),
        *_failures(results),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _folds(protocol: dict[str, Any]) -> list[tuple[str, str]]:
    if protocol.get("folds") != "sample":
        return []
    return [
        (
            "Sample-wise folds",
            "Samples of one person are in training and test. A classifier can recognise the "
            "person instead of the condition, so these accuracies do not hold for new people. "
            "Run again with subject-wise folds.",
        )
    ]


def _tuning(protocol: dict[str, Any]) -> list[tuple[str, str]]:
    if protocol.get("tuning") != "oracle":
        return []
    return [
        (
            "Optimistic choice of settings",
            "Settings and the number of features were picked by their score on the test folds, "
            "as many papers do. New data will score lower. Run again with nested tuning.",
        )
    ]


def _near_chance(answers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    found = []
    for name, answer in answers.items():
        accuracy = answer["accuracy"]
        if accuracy and accuracy["above_chance"] is False:
            chance = accuracy["chance"]
            found.append(
                (
                    f"Near chance: {name}",
                    f"{percent(accuracy['mean'])} lies within what guessing reaches with "
                    f"{chance['n']} people ({percent(chance['low'])} to "
                    f"{percent(chance['high'])}). Do not read the ranking as a finding.",
                )
            )
    return found


def _barely_above(answers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    found = []
    for name, answer in answers.items():
        accuracy = answer["accuracy"]
        if accuracy and accuracy["above_chance"] and accuracy["barely"]:
            found.append(
                (
                    f"Barely above chance: {name}",
                    f"The mean of {percent(accuracy['mean'])} is more than luck gives, but its "
                    f"95 % interval begins at {percent(accuracy['low'])}. More people or "
                    "repetitions would tell.",
                )
            )
    return found


def _unstable(answers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    shaky = [
        name
        for name, answer in answers.items()
        if answer["stability"] and answer["stability"]["verdict"] == "poor"
    ]
    if not shaky:
        return []
    return [
        (
            "Unstable selection",
            f"Different folds pick different features ({listing(shaky)}). Single features in the "
            "ranking may well be others with a few more people.",
        )
    ]


def _nothing_sure(answers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    unsure = [
        name
        for name, answer in answers.items()
        if answer["sureness"]
        and not answer["sureness"]["reason"]
        and not answer["sureness"]["sure"]
    ]
    if not unsure:
        return []
    return [
        (
            "No feature is sure",
            f"Random halves of the people do not agree on any single feature ({listing(unsure)}). "
            "Read channels and groups of features rather than single ones.",
        )
    ]


def _failures(results: Results) -> list[tuple[str, str]]:
    failures = results.failures
    if failures.empty:
        return []
    methods = listing(sorted(failures["method"].astype(str).unique()))
    last = str(failures["traceback"].iloc[0]).strip().splitlines()[-1:]
    return [
        (
            f"{len(failures)} units failed",
            f"Their results are missing from all means ({methods}). First error: "
            f"{''.join(last) or 'not recorded'}.",
        )
    ]
