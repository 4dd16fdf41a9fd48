"""Audit: the parts put together, with a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from idfsmec.evaluation.auditing.alike import among_alike
from idfsmec.evaluation.auditing.areas import area_interval, difference, figure
from idfsmec.evaluation.auditing.suspects import ALPHA, suspects

Figure = dict[str, float]
#: red: the recording does as well as the EEG; amber: it goes with the label, the EEG does better;
#: green: nothing that is known of the recordings goes with the label; grey: cannot be told.
Level = Literal["red", "amber", "green", "grey"]


@dataclass(frozen=True)
class Audit:
    """What an audit of one table has found.

    Parameters
    ----------
    level : {"red", "amber", "green", "grey"}
        The verdict: the recording does as well as the EEG; it goes with the label but the EEG
        does better; nothing known of the recordings goes with the label; cannot be told.
    classes : list of str
    n_people : list of int
        Of each class.
    variables : DataFrame
        One row for each variable of the recording, the surest first: ``variable``, ``kind``,
        ``level``, ``class``, ``higher``, ``auc`` (one half is nothing), ``low``, ``high``,
        ``p`` (by permutation), ``p_holm``.
    figures : dict
        ``logistic`` and ``boosting`` (all variables together, people held out), ``leader`` (the
        leading variable alone) and ``eeg``, each with ``auc``, ``low``, ``high`` and, but for
        the leader, ``balanced_accuracy``. Intervals of the recording's figures are wide enough
        for the best of them to be picked.
    recording : str
        Which of the figures the recording reaches at best; empty where there is none.
    difference : dict or None
        AUC of the EEG minus that of the recording: ``value``, ``low``, ``high``.
    p_together : float or None
        Of all variables together, corrected with the others.
    suspects : list of str
        Variables that go with the label.
    alike : dict
        The EEG's AUC among people recorded alike; see
        :func:`idfsmec.evaluation.auditing.alike.among_alike`. Empty without suspects.
    regressed : dict
        The EEG's figure once the suspects are regressed out; empty without suspects.
    leaks : dict
        ``subject``, ``by_sample``, ``before`` (scores), ``shuffled`` (``auc`` with the band that
        luck gives), ``two_names``, ``repeated``.
    why : str
        For grey: ``"few"`` people, ``"undescribed"`` recordings, or a ``"reason"`` of the data.
    described : bool
        Whether the table says how recordings were made.
    unused : list of str
        Columns beside the features that were not looked at.
    n_splits : int
        How many folds there are; 0 where there are none.
    folds : {"subject", "site"}
        Whether people were held out, or one hospital at a time.
    """

    level: Level
    classes: list[str]
    n_people: list[int]
    variables: pd.DataFrame = field(repr=False)
    figures: dict[str, Figure] = field(repr=False)
    recording: str = ""
    difference: dict[str, float] | None = None
    p_together: float | None = None
    suspects: list[str] = field(default_factory=list)
    alike: dict[str, Any] = field(default_factory=dict, repr=False)
    regressed: dict[str, Any] = field(default_factory=dict, repr=False)
    leaks: dict[str, Any] = field(default_factory=dict, repr=False)
    why: str = ""
    described: bool = True
    unused: list[str] = field(default_factory=list, repr=False)
    n_splits: int = 0
    folds: str = "subject"

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        rows = self.variables.astype(object).where(self.variables.notna(), None)
        found["variables"] = rows.to_dict("records")
        return found

    def summary(self) -> str:
        """Say in a few sentences what was found."""
        from idfsmec.evaluation.auditing.words import say_audit

        return "\n".join(say_audit(self))


def put_together(parts: Mapping[str, dict[str, Any]]) -> Audit:
    """Make an audit of its parts, by name, as they are in a store; those missing are left out."""
    own = parts.get("recording") or {"alone": [], "together": {}, "y": [], "classes": []}
    if "reason" in own:
        own = {"alone": [], "together": {}, "y": [], "classes": [], "described": False}
    y = np.array(own["y"], dtype=np.intp)
    counts = np.bincount(y, minlength=len(own["classes"])).tolist() if y.size else []
    decisions = _decisions(own, parts)
    looks = _looks(decisions, len(own["alone"]))
    figures = {name: figure(one, y, looks[name]) for name, one in decisions.items()}
    figures.get("leader", {}).pop("balanced_accuracy", None)  # a value has no threshold
    found = suspects(own)
    best = max(
        (name for name in figures if name != "eeg"),
        key=lambda name: figures[name]["auc"],
        default="",
    )
    both = bool(best) and "eeg" in decisions
    gap = difference(decisions["eeg"], decisions[best], y) if both else None
    level, why = _judge(own, counts, found, gap)
    return Audit(
        level=level,
        classes=list(own["classes"]),
        n_people=counts,
        variables=_frame(own["alone"]),
        figures=figures,
        recording=best,
        difference=gap,
        p_together=own["together"].get("p_holm"),
        suspects=found,
        alike=among_alike(decisions["eeg"], np.array(own["propensity"]), y)
        if found and both
        else {},
        regressed=_regressed(parts.get("regressed") or {}, y),
        leaks=_leaks(parts, counts),
        why=why,
        described=bool(own.get("described")),
        unused=list(own.get("unused", [])),
        n_splits=int(own.get("n_splits", 0)),
        folds=str(own.get("folds", "subject")),
    )


def _decisions(own: dict[str, Any], parts: Mapping[str, dict[str, Any]]) -> dict[str, np.ndarray]:
    given = {
        "logistic": own["together"].get("logistic"),
        "boosting": own["together"].get("boosting"),
        # A variable that luck would give is no figure of the recording.
        "leader": own.get("leader") if any(one["p_holm"] < ALPHA for one in own["alone"]) else [],
        "eeg": (parts.get("eeg") or {}).get("decisions"),
    }
    return {name: np.array(one, dtype=float) for name, one in given.items() if one}


def _looks(decisions: Mapping[str, np.ndarray], n_variables: int) -> dict[str, int]:
    """Of how many figures each may be the best: the EEG's is one, the leader leads variables."""
    models = len(decisions.keys() - {"eeg"})
    return {
        name: 1 if name == "eeg" else models * (n_variables if name == "leader" else 1)
        for name in decisions
    }


def _judge(
    own: dict[str, Any], counts: list[int], found: list[str], gap: dict[str, float] | None
) -> tuple[Level, str]:
    if found:
        # Without a figure of the EEG nobody can say that it does better.
        return ("amber", "") if gap is not None and gap["low"] > 0 else ("red", "")
    if not counts or not own["alone"]:
        return ("green", "") if own.get("described") else ("grey", "undescribed")
    if _smallest_p(counts) * (len(own["alone"]) + 1) >= ALPHA:
        return "grey", "few"
    return ("green", "") if own.get("described") else ("grey", "undescribed")


def _smallest_p(counts: list[int]) -> float:
    """The smallest p-value that so few people can give: of all ways to deal the labels, two."""
    log_ways = math.lgamma(sum(counts) + 1) - sum(math.lgamma(n + 1) for n in counts)
    return 2.0 * math.exp(-log_ways)


def _frame(alone: list[dict[str, Any]]) -> pd.DataFrame:
    columns = ["variable", "kind", "level", "class", "higher", "auc", "low", "high", "p", "p_holm"]
    frame = pd.DataFrame(alone, columns=columns)
    return frame.sort_values(["p_holm", "p", "auc"], ascending=[True, True, False]).reset_index(
        drop=True
    )


def _regressed(part: dict[str, Any], y: np.ndarray) -> dict[str, Any]:
    if "decisions" not in part:
        return {}
    return {**figure(np.array(part["decisions"]), y), "variables": part["variables"]}


def _leaks(parts: Mapping[str, dict[str, Any]], counts: list[int]) -> dict[str, Any]:
    names = parts.get("names") or {}
    found: dict[str, Any] = {
        "subject": (parts.get("eeg") or {}).get("scores"),
        "two_names": names.get("two_names"),
        "repeated": names.get("repeated"),
    }
    for name in ("by_sample", "before"):
        part = parts.get(name) or {}
        found[name] = part if "roc_auc" in part else None
    shuffled = (parts.get("shuffled") or {}).get("auc")
    if shuffled:
        few = min(counts)
        low, high = area_interval(0.5, few, sum(counts) - few)
        found["shuffled"] = {"auc": shuffled, "low": low, "high": high}
    return found
