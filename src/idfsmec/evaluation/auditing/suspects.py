"""Suspects: variables of the recording that go with the label."""

from __future__ import annotations

from typing import Any

#: Level below which a variable is said to go with the label, corrected for the number of tests.
ALPHA = 0.05


def suspects(recording: dict[str, Any]) -> list[str]:
    """Variables that go with the label; all, where only all together do."""
    alone, together = recording["alone"], recording["together"]
    found = [one["variable"] for one in alone if one["p_holm"] < ALPHA]
    if not found and together and together["p_holm"] < ALPHA:
        found = [one["variable"] for one in alone]
    return found
