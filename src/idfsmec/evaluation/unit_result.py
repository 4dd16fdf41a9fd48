"""What a unit of work gives, as the store keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class UnitResult:
    """What one unit gives: a row per k (and setting), its order of features, timings apart.

    ``rankings`` holds column indices, best first, cut at the largest k; a row's ``order`` says
    which of them it is scored with. ``found`` is what units without scores give.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rankings: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
