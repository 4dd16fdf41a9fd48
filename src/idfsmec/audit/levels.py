"""The answers of an audit, and the level for every combination of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from idfsmec.audit.association import (
    AUC_TO_FIND,
    CONCORDANCE_TO_FIND,
    concordance_of,
    detectable_concordance,
    participants_to_find,
)
from idfsmec.audit.variables import FAMILIES
from idfsmec.metrics import FACT_ALPHA, detectable_auc, expected_critical_p

#: Level at which the EEG's prediction carries a fact, after Holm's correction.
CARRIED = 0.05
#: Level of the rank test of held-out decisions. They share training data: nominally 1 % is 3 %.
SEPARATES = 0.01
#: From this AUC, or concordance with a score, of the facts on, they and the diagnosis cannot be
#: told apart. Facts with this concordance have this AUC between the halves of the scores.
COINCIDE, COINCIDE_SCORE = 0.9, 0.82
#: A fact that explains the EEG may be measured as badly as this.
RELIABILITY = 0.25
#: The answers of an audit, and which there may be.
ANSWERS = {
    "acquisition": ("found", "none"),
    "participants": ("found", "none"),
    "eeg": ("separates", "not shown", "not scored"),
    "carried": ("yes", "not shown", "untestable"),
    "coincide": ("yes", "no"),
    "power": ("enough", "few"),
    "described": ("yes", "no"),
}
#: The level for every combination of answers: the first row holds whose answers are all given.
#: The last part names the row: its title and its reason.
LEVELS: tuple[tuple[Mapping[str, str], str, str], ...] = (
    ({"acquisition": "found", "eeg": "separates", "carried": "yes"}, "red", "carried"),
    ({"acquisition": "found", "eeg": "separates", "coincide": "yes"}, "red", "coincide"),
    ({"acquisition": "found", "eeg": "separates", "carried": "untestable"}, "amber", "untestable"),
    ({"acquisition": "found", "eeg": "separates"}, "amber", "not carried"),
    ({"acquisition": "found", "eeg": "not shown"}, "amber", "no effect"),
    ({"acquisition": "found"}, "amber", "not scored"),
    ({"participants": "found"}, "amber", "participants"),
    ({"described": "no"}, "grey", "undescribed"),
    ({"power": "few"}, "grey", "few"),
    ({}, "green", "none"),
)


def found_units(tests: Mapping[str, Any], family: str | None = None) -> list[list[str]]:
    """Return facts of a family, or of both, that are associated alone, and pairs of them."""
    families = FAMILIES if family is None else (family,)
    facts = [row for row in tests["facts"] if row["p_corrected"] <= FACT_ALPHA]
    alone = [[row["variable"]] for row in facts if row["family"] in families]
    return alone + [pair["variables"] for pair in tests["pairs"] if pair["family"] in families]


def judge(answers: Mapping[str, str]) -> tuple[str, str]:
    """Return the level for the answers of an audit, and the row of ``LEVELS`` that holds."""
    for given, level, why in LEVELS:
        if all(answers[question] == answer for question, answer in given.items()):
            return level, why
    raise ValueError(f"no level for {dict(answers)}")  # the last row holds for all answers


def _separates(eeg: Mapping[str, float]) -> str:
    return "separates" if eeg["p"] <= SEPARATES else "not shown"


def _is_carried(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return whether the EEG's prediction carries a fact of acquisition."""
    if any(row["p_holm"] is not None and row["p_holm"] <= CARRIED for row in rows):
        return "yes"
    return "untestable" if any(row["p_holm"] is None for row in rows) else "not shown"


def answers_of(
    recording: Mapping[str, Any],
    eeg: Mapping[str, float],
    carried: Sequence[Mapping[str, Any]],
    missed: Mapping[str, float],
) -> dict[str, str]:
    """Return the answers that decide the level; see ``ANSWERS``."""
    coincide = recording.get("coincide")
    limit = COINCIDE_SCORE if recording.get("score") else COINCIDE
    return {
        "acquisition": "found" if found_units(recording, "acquisition") else "none",
        "participants": "found" if found_units(recording, "participants") else "none",
        "eeg": _separates(eeg) if eeg else "not scored",
        "carried": _is_carried([row for row in carried if row["family"] == "acquisition"]),
        "coincide": "yes" if coincide is not None and coincide >= limit else "no",
        "power": "enough" if missed and missed["auc"] <= missed["to_find"] else "few",
        "described": "yes" if recording.get("described") else "no",
    }


def what_was_missed(
    tests: Mapping[str, Any], counts: Sequence[int], eeg: Mapping[str, float]
) -> dict[str, float]:
    """Return what this study would have found, what it should have, and who would be needed.

    It should find a fact with an AUC of 0.75. Where the EEG separates the groups, it should also
    find a fact that alone explains the EEG's AUC, though measured with a reliability of 0.25. With
    a score the numbers are concordances.
    """
    critical_p, families = tests["critical_p"], [row["family"] for row in tests["facts"]]
    if not critical_p or not counts or min(counts) < 1:
        return {}
    p, n, is_scored = min(critical_p.values()), sum(counts), bool(tests.get("score"))
    share = min(counts) / n
    # With very few participants the p-values of permutations are too coarse for other numbers.
    p_of_more = min(p, expected_critical_p(max(map(families.count, families))))
    to_find = CONCORDANCE_TO_FIND if is_scored else AUC_TO_FIND
    if eeg and _separates(eeg) == "separates":
        to_find = min(to_find, _explaining(eeg["auc"], is_scored))

    def detectable(n: float, critical_p: float) -> float:
        if is_scored:
            return detectable_concordance(n, critical_p)
        return detectable_auc(n * share, n * (1 - share), critical_p)

    return {
        "auc": detectable(n, p),
        "to_find": to_find,
        "n": participants_to_find(lambda n: detectable(n, p_of_more) <= to_find),
    }


def _explaining(auc: float, is_scored: bool) -> float:
    """Return the AUC of a fact that explains the EEG's, as normal distributions."""
    if is_scored:
        return concordance_of(float(np.sqrt(RELIABILITY) * np.sin(np.pi * (auc - 0.5))))
    return float(special.ndtr(np.sqrt(RELIABILITY) * special.ndtri(auc)))
