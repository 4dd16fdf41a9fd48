"""The result of an audit: its parts put together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.audit import confounding
from idfsmec.audit.levels import answers_of, found_units, judge, what_was_missed
from idfsmec.audit.sentences import MISTAKES, records, say, say_audit, title_of
from idfsmec.audit.variables import FAMILIES
from idfsmec.errors import InputError
from idfsmec.metrics import (
    FACT_ALPHA,
    Codes,
    Floats,
    auc_interval,
    balanced_accuracy,
    concordance_interval,
)

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

_COLUMNS = [
    *("variable", "family", "kind", "shape", "level", "class", "higher", "auc", "low", "high"),
    *("p", "p_corrected"),
]


@dataclass(frozen=True)
class Audit:
    """Result of the audit of a table.

    Parameters
    ----------
    level : {"red", "amber", "green", "grey"}
        Red: facts of acquisition are associated with the diagnosis, the EEG separates the groups,
        and its prediction carries these facts or they nearly coincide with the diagnosis. Amber:
        every other association. Green: none, and a fact would have been found. Grey: none, and
        it would not, or there are no facts.
    why : str
        The row of ``LEVELS`` that holds.
    classes : list of str
        Empty for a score.
    n_subjects : list of int
        Subjects of each class; one number for a score.
    variables : DataFrame
        One row for each fact, the smallest p first: ``variable``, ``family`` ("acquisition" or
        "participants"), ``kind``, ``shape`` ("value", or "extremes" where the distance from the
        median is described), ``level``, ``class``, ``higher``, ``auc`` (oriented to at least 0.5),
        its 95 % CI ``low`` and ``high``, ``p`` by permutation and ``p_corrected`` for all tests of
        the family, which counts up to 0.025.
    pairs : list of dict
        Facts that are associated only jointly: ``variables``, ``p_corrected``, ``family``.
    eeg : dict
        ``auc``, ``low``, ``high``, ``balanced_accuracy`` on held-out subjects, and ``p`` of the
        rank test of their decisions between the classes; empty without.
    carried : list of dict
        For each associated fact or pair whether the EEG's prediction follows it within the
        diagnoses: ``variables``, ``p``, ``p_holm`` (None if untestable), ``family``.
    coincide : float or None
        AUC of the associated facts of acquisition together, on held-out subjects.
    missed : dict
        ``auc``: the smallest of a fact that this study would have found with a power of 80 %;
        ``to_find``: the AUC that it should have found; ``n``: how many participants would do.
    matched : dict
        The EEG's AUC among subjects with matching facts; see
        :func:`idfsmec.audit.confounding.among_matched`. Empty without associated facts.
    strata : dict
        The EEG's AUC within each device and number of recorded channels, by variable: rows of
        ``level``, ``n_subjects``, ``auc`` (None for too few), ``low``, ``high``.
    regressed : dict
        The EEG's AUC with the associated facts regressed out.
    leaks : dict
        ``subject``, ``by_sample``, ``before`` (scores), ``shuffled`` (``auc`` with the 95 % range
        under chance), ``two_names``, ``repeated``, ``headers`` (subjects whose header contradicts
        the study, by kind).
    unused, named : list of str
        Columns that were not tested: unknown ones, and texts with too many levels.
    n_splits : int
        Number of folds; 0 if no subject could be held out.
    folds : {"subject", "site"}
        Whether subjects were held out, or one site at a time.
    score : str
        The name of the score, if that is the target: every ``auc`` is then a concordance, the
        share of pairs of subjects with different scores whose order a fact or prediction has.
    """

    level: str
    why: str
    classes: list[str]
    n_subjects: list[int]
    variables: pd.DataFrame = field(repr=False)
    pairs: list[dict[str, Any]] = field(default_factory=list, repr=False)
    eeg: dict[str, float] = field(default_factory=dict, repr=False)
    carried: list[dict[str, Any]] = field(default_factory=list, repr=False)
    coincide: float | None = None
    missed: dict[str, float] = field(default_factory=dict, repr=False)
    matched: dict[str, Any] = field(default_factory=dict, repr=False)
    strata: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    regressed: dict[str, Any] = field(default_factory=dict, repr=False)
    leaks: dict[str, Any] = field(default_factory=dict, repr=False)
    unused: list[str] = field(default_factory=list, repr=False)
    named: list[str] = field(default_factory=list, repr=False)
    n_splits: int = 0
    folds: str = "subject"
    score: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return all results as JSON types."""
        rows = self.variables.astype(object).where(self.variables.notna(), None)
        return {**vars(self), "suspects": self.suspects, "variables": rows.to_dict("records")}

    def summary(self) -> str:
        """Return the verdict and its evidence as sentences, one line each."""
        return "\n".join(say_audit(self))

    def found(self, *families: str) -> list[dict[str, Any]]:
        """Return the facts of families, by default of both, that are associated on their own."""
        is_found = self.variables["p_corrected"] <= FACT_ALPHA
        rows = self.variables[is_found & self.variables["family"].isin(families or FAMILIES)]
        return records(rows)

    def associated(self, *families: str) -> list[str]:
        """Return the facts of families, by default of both, that are associated, also in pairs."""
        wanted = families or FAMILIES
        pairs = [pair["variables"] for pair in self.pairs if pair["family"] in wanted]
        alone = [[row["variable"]] for row in self.found(*wanted)]
        return list(dict.fromkeys(itertools.chain(*alone, *pairs)))

    @property
    def suspects(self) -> list[str]:
        """Facts that are associated with the diagnosis, alone or in a pair."""
        return self.associated()

    @property
    def verdict(self) -> dict[str, str]:
        """The verdict as models and tables keep it: ``level``, ``title`` and its ``verdict``.

        The last is the reason in one sentence.
        """
        return {
            "level": self.level,
            "title": title_of(self),
            "verdict": " ".join(say(self, "reason")),
        }


def audits_of(results: Results) -> dict[str, Audit]:
    """Return the audits of a folder of results, by the names of their tables."""
    try:
        return {name: put_together(parts) for name, parts in results.audit_parts.items()}
    except KeyError as error:
        raise InputError(
            f"{results.folder}: its audit is of another version; run idfsmec audit again."
        ) from error


def put_together(parts: Mapping[str, dict[str, Any]]) -> Audit:
    """Make an audit from its parts, by name, as they are in a store; parts may be missing."""
    recording = parts.get("recording") or {}
    if "y" not in recording:  # or a reason why there is nothing
        recording = {"facts": [], "pairs": [], "critical_p": {}, "y": [], "classes": []}
    facts, pairs, classes = (recording[key] for key in ("facts", "pairs", "classes"))
    score = str(recording.get("score", ""))
    y: NDArray[Any] = np.array(recording["y"], dtype=float if score else np.intp)
    counts = [y.size] if score else np.bincount(y, minlength=len(classes)).tolist()
    part = parts.get("eeg") or {}
    decisions = np.array(part.get("decisions") or [], dtype=float)
    fold_of = np.array(recording.get("fold_of", []), dtype=np.intp)
    eeg = _score(decisions, y, fold_of) if decisions.size else {}
    carried = part.get("carried") or []
    matched, strata, regressed = {}, {}, {}
    if decisions.size and found_units(recording) and not score:
        matched = confounding.among_matched(decisions, np.array(recording["propensity"]), y)
        strata = {
            name: confounding.auc_in_strata(decisions, levels, y)
            for name, levels in recording.get("strata", {}).items()
        }
    if "decisions" in (part := parts.get("regressed") or {}):
        regressed = {
            **_score(np.array(part["decisions"]), y, fold_of),
            "variables": part["variables"],
        }
    missed = what_was_missed(recording, counts, eeg)
    level, why = judge(answers_of(recording, eeg, carried, missed))
    by, ascending = ["p_corrected", "p", "auc"], [True, True, False]
    rows = pd.DataFrame(facts, columns=_COLUMNS)
    return Audit(
        level=level,
        why=why,
        classes=list(classes),
        score=score,
        n_subjects=counts,
        variables=rows.sort_values(by, ascending=ascending, ignore_index=True),
        pairs=pairs,
        eeg=eeg,
        carried=carried,
        coincide=recording.get("coincide"),
        missed=missed,
        matched=matched,
        strata=strata,
        regressed=regressed,
        leaks=_leaks(parts, counts, score),
        unused=list(recording.get("unused", [])),
        named=list(recording.get("named", [])),
        n_splits=int(recording.get("n_splits", 0)),
        folds=str(recording.get("folds", "subject")),
    )


def _score(decisions: Floats, y: NDArray[Any], fold_of: Codes) -> dict[str, float]:
    """AUC with its interval and balanced accuracy of decisions, one row per subject."""
    scored = confounding.auc_of_folds(decisions, y, fold_of)
    scored["p"] = confounding.separation_p(decisions, y)
    if decisions.shape[1] > 1:
        scored["balanced_accuracy"] = balanced_accuracy(y, decisions.argmax(axis=1))
    return scored


def _leaks(parts: Mapping[str, dict[str, Any]], counts: list[int], score: str) -> dict[str, Any]:
    names = parts.get("names") or {}
    leaks: dict[str, Any] = {
        "subject": (parts.get("eeg") or {}).get("scores"),
        "two_names": names.get("two_names"),
        "repeated": names.get("repeated"),
        "headers": (parts.get("recording") or {}).get("headers"),
    }
    for name in MISTAKES:
        part = parts.get(name) or {}
        leaks[name] = part if "roc_auc" in part else None
    if shuffled := (parts.get("shuffled") or {}).get("auc"):
        n, few = sum(counts), min(counts)
        low, high = concordance_interval(0.5, n) if score else auc_interval(0.5, few, n - few)
        leaks["shuffled"] = {"auc": shuffled, "low": low, "high": high}
    return leaks
