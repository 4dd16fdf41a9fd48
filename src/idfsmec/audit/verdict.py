"""The verdict of an audit: its parts put together, and its sentences in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from idfsmec.audit import confounding
from idfsmec.audit.association import AUC_TO_FIND, participants_to_find
from idfsmec.audit.confounding import FAMILIES, kind_of, say_variable
from idfsmec.errors import InputError, listing
from idfsmec.metrics import (
    FACT_ALPHA,
    Codes,
    Floats,
    auc_interval,
    balanced_accuracy,
    detectable_auc,
    expected_critical_p,
)

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

#: Level at which the EEG's prediction carries a fact, after Holm's correction.
CARRIED = 0.05
#: Level of the rank test of held-out decisions. They share training data: nominally 1 % is 3 %.
SEPARATES = 0.01
#: From this AUC of the facts on, they and the diagnosis cannot be told apart.
COINCIDE = 0.9
#: A fact that explains the EEG may be measured as badly as this.
RELIABILITY = 0.25
#: With such an AUC a fact coincides with the diagnosis.
NOTHING_FOUND = 0.995
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
_ASSOCIATED = "Acquisition is associated with the diagnosis"
#: What the rows of ``LEVELS`` are called.
TITLES = {
    "carried": "The EEG's prediction carries how participants were recorded",
    "coincide": "Acquisition and diagnosis cannot be told apart",
    "untestable": _ASSOCIATED,
    "not carried": _ASSOCIATED,
    "no effect": _ASSOCIATED,
    "not scored": _ASSOCIATED,
    "participants": "Participants differ between the groups",
    "undescribed": "Confounding by acquisition cannot be assessed",
    "few": "Too few participants to assess confounding",
    "none": "No known fact is associated with the diagnosis",
}
_MISTAKES = {
    "by_sample": "With sample-wise folds (participants in training and test)",
    "before": "With features selected before splitting",
}
#: So many associated facts are described.
_MOST_FACTS = 3
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
    n_subjects : list of int
        Subjects of each class.
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

    @property
    def suspects(self) -> list[str]:
        """Facts that are associated with the diagnosis, alone or in a pair."""
        alone = [row["variable"] for row in self.found()]
        return list(
            dict.fromkeys([*alone, *(n for pair in self.pairs for n in pair["variables"])])
        )

    @property
    def verdict(self) -> dict[str, str]:
        """The verdict as models and tables keep it: ``level``, ``title`` and its ``verdict``.

        The last is the reason in one sentence.
        """
        return {
            "level": self.level,
            "title": TITLES[self.why],
            "verdict": " ".join(say(self, "reason")),
        }


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame by the names of its columns."""
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


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
    y = np.array(recording["y"], dtype=np.intp)
    counts = np.bincount(y, minlength=len(classes)).tolist()
    part = parts.get("eeg") or {}
    decisions = np.array(part.get("decisions") or [], dtype=float)
    fold_of = np.array(recording.get("fold_of", []), dtype=np.intp)
    eeg = _score(decisions, y, fold_of) if decisions.size else {}
    carried = part.get("carried") or []
    matched, strata, regressed = {}, {}, {}
    if decisions.size and found_units(recording):
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
        leaks=_leaks(parts, counts),
        unused=list(recording.get("unused", [])),
        named=list(recording.get("named", [])),
        n_splits=int(recording.get("n_splits", 0)),
        folds=str(recording.get("folds", "subject")),
    )


def _score(decisions: Floats, y: Codes, fold_of: Codes) -> dict[str, float]:
    """AUC with its interval and balanced accuracy of decisions, one row per subject."""
    balanced = balanced_accuracy(y, decisions.argmax(axis=1))
    scored = confounding.auc_of_folds(decisions, y, fold_of)
    p = confounding.separation_p(decisions, y)
    return {**scored, "p": p, "balanced_accuracy": balanced}


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
    return {
        "acquisition": "found" if found_units(recording, "acquisition") else "none",
        "participants": "found" if found_units(recording, "participants") else "none",
        "eeg": _separates(eeg) if eeg else "not scored",
        "carried": _is_carried([row for row in carried if row["family"] == "acquisition"]),
        "coincide": "yes" if coincide is not None and coincide >= COINCIDE else "no",
        "power": "enough" if missed and missed["auc"] <= missed["to_find"] else "few",
        "described": "yes" if recording.get("described") else "no",
    }


def what_was_missed(
    tests: Mapping[str, Any], counts: Sequence[int], eeg: Mapping[str, float]
) -> dict[str, float]:
    """Return what this study would have found, what it should have, and who would be needed.

    It should find a fact with an AUC of 0.75. Where the EEG separates the groups, it should also
    find a fact that alone explains the EEG's AUC, though measured with a reliability of 0.25.
    """
    critical_p, families = tests["critical_p"], [row["family"] for row in tests["facts"]]
    if not critical_p or not counts or min(counts) < 1:
        return {}
    p, few, n = min(critical_p.values()), min(counts), sum(counts)
    # With very few participants the p-values of permutations are too coarse for other numbers.
    p_of_more = min(p, expected_critical_p(max(map(families.count, families))))
    to_find = AUC_TO_FIND
    if eeg and _separates(eeg) == "separates":
        explaining = np.sqrt(RELIABILITY) * special.ndtri(eeg["auc"])  # as normal distributions
        to_find = min(to_find, float(special.ndtr(explaining)))
    return {
        "auc": detectable_auc(few, n - few, p),
        "to_find": to_find,
        "n": participants_to_find(to_find, p_of_more, few / n),
    }


def _leaks(parts: Mapping[str, dict[str, Any]], counts: list[int]) -> dict[str, Any]:
    names = parts.get("names") or {}
    leaks: dict[str, Any] = {
        "subject": (parts.get("eeg") or {}).get("scores"),
        "two_names": names.get("two_names"),
        "repeated": names.get("repeated"),
        "headers": (parts.get("recording") or {}).get("headers"),
    }
    for name in _MISTAKES:
        part = parts.get(name) or {}
        leaks[name] = part if "roc_auc" in part else None
    if shuffled := (parts.get("shuffled") or {}).get("auc"):
        low, high = auc_interval(0.5, min(counts), sum(counts) - min(counts))
        leaks["shuffled"] = {"auc": shuffled, "low": low, "high": high}
    return leaks


_EXPLAINING = (
    ", the AUC of a fact that explains the EEG's and is measured with a reliability of 0.25"
)
_AND_EEG = "The EEG has {eeg}"
#: The sentences of an audit by part, each with the condition under which it is printed. Parts are
#: the reason of the verdict (by row of ``LEVELS``), what follows, what could have been missed, the
#: facts, the EEG without them, mistakes in a protocol, and what stands beside an AUC.
#: ``_conditions`` says when a condition holds, ``_values`` what is filled in.
SENTENCES = {
    "reason": {
        "carried": "{Acquisition} {differ} between {groups}, and the EEG's prediction (first 20 "
        "features, untuned) follows {carried} within the groups.",
        "coincide": "{Acquisition} {differ} between {groups} and nearly coincide{s} with the "
        "diagnosis (AUC {coincide} on held-out participants).",
        "untestable": "{Acquisition} {differ} between {groups}. Whether the EEG's prediction "
        "follows {untestable} cannot be tested: within the groups there is hardly a difference.",
        "not carried": "{Acquisition} {differ} between {groups}. The EEG's prediction is not "
        "shown to follow {it}.",
        "no effect": "{Acquisition} {differ} between {groups}. The EEG's decisions on held-out "
        "participants are not shown to differ between them ({eeg}).",
        "not scored": "{Acquisition} {differ} between {groups}. The EEG was not scored.",
        "participants": "{Participants} {differ_who} between {groups}.",
        "undescribed": "The table does not say how recordings were made.",
        "few": "None of {n_facts} facts is found to be associated with the diagnosis, and with "
        "{n} participants ({counts}) only a strong association could be found.",
        "none": "None of {n_facts} facts is found to be associated with the diagnosis, alone or "
        "in pairs.",
    },
    "consequence": {
        "carried": f"{_AND_EEG}; this may be an effect of acquisition, not of the illness.",
        "coincide": f"{_AND_EEG}; no computation can say whether by illness or acquisition.",
        "untestable": f"{_AND_EEG}; this may be an effect of acquisition.",
        "not carried": f"{_AND_EEG}. Report the facts beside it.",
        "participants": "Report the EEG adjusted for {it_who}; this is not about the amplifier.",
        "body": "{Body} depend on the device and on the participant, and may be a consequence of "
        "the illness.",
        "undescribed": "Make the table with idfsmec features to get acquisition facts; a "
        "manifest adds device, age, sex and site.",
        "none": "Facts that are not in the table were not tested.",
    },
    "missed": {
        "power": "What could have been missed: with {n} participants a fact is found with a power "
        "of 80 % if its AUC is {detectable} or more.",
        "no power": "What could have been missed: with {n} participants no fact is found with a "
        "power of 80 %.",
        "power few": "For {to_find}{as_eeg}, about {n_needed} participants would do.",
    },
    "evidence": {
        "by site": "The EEG was scored with {folds}. AUCs are those at held-out sites.",
        "acquisition found": "How participants were recorded, {n_acquisition} facts tested: "
        "{acquisition_rows}.",
        "acquisition none": "How participants were recorded: of {n_acquisition} facts tested none "
        "is found to be associated with the diagnosis.",
        "acquisition untested": "How participants were recorded was not tested: no fact of it "
        "varies, or there is none.",
        "participants found": "Who was recorded, {n_participants} facts tested: "
        "{participants_rows}.",
        "participants none": "Who was recorded: of {n_participants} facts tested none is found to "
        "be associated with the diagnosis.",
        "participants untested": "Who was recorded was not tested: the table has no age, sex or "
        "site that varies. A manifest adds them.",
        "pair": "{pair} are associated with the diagnosis jointly, not one by one (corrected p "
        "{p}).",
        "carries": "Within the groups the EEG's prediction follows {fact} (p {p}).",
        "carries not": "Within the groups the EEG's prediction is not shown to follow {fact} (p "
        "{p}).",
        "carries untestable": "Whether the EEG's prediction follows {fact} cannot be tested: "
        "within the groups there is hardly a difference.",
        "unused": "Not tested: {unused}. Name columns that describe circumstances with --also.",
        "named": "Not tested, because there are too many different values: {named}.",
    },
    "adjusted": {
        "no match": "Whether the EEG separates participants with matching facts cannot be "
        "decided: no participant has a match in another group.",
        "few matches": "Whether the EEG separates participants with matching facts cannot "
        "be decided: too few participants have a match ({who}). Each group needs an effective "
        "number of {fewest}.",
        "failed match": "The match has failed: the facts still separate the matched pairs (AUC "
        "{facts_of_pairs}; {who}). The EEG's {matched} among them is not evidence about the "
        "illness.",
        "match": "Among participants with matching facts ({who}) the EEG has {matched}, "
        "{matched_above} 0.5. The facts have AUC {facts_of_pairs} in these pairs.",
        "strata": "EEG within each {variable}: {levels}.",
        "regressed": "With {regressed_facts} regressed out inside the folds the EEG has "
        "{regressed}, {regressed_above} 0.5.",
        "assumption": "Matching and regressing out assume that facts are measured without error.",
    },
    "leaks": {
        "mistakes": "{mistake}, AUC over samples would be {auc:.2f} instead of {correct:.2f}.",
        "shuffled": "Permuted labels give AUC {shuffled}, within the 95 % band of chance "
        "({band}).",
        "shuffled above chance": "Permuted labels give AUC {shuffled}, above the 95 % band of "
        "chance ({band}): there is a leak.",
        "names untested": "Whether a participant has two names was not tested: there are too few "
        "samples.",
        "two names": "Samples of {alike} are as similar as those of one participant. If they are "
        "the same participant, give them one name.",
        "one name each": "No participant seems to occur under two names.",
        "rows across names": "{n_across} rows occur again under another name ({same_rows}).",
        "rows repeated": "{n_repeated} rows of the same participant occur twice.",
        "no row repeated": "No row occurs twice.",
        "headers": "Participants with a {header}: {number} ({who_has_it}). Check these files.",
    },
    "leading": {
        "leading": "{leading}; corrected p {leading_p}.",
    },
    "eeg": {"scored": "First 20 features, untuned, participants held out."},
    "matched": {
        "match": "{n_pairs} pairs of participants with matching facts.",
        "failed match": "The match has failed: see below.",
        "undecided match": "Cannot be decided: see below.",
    },
    "regressed": {"regressed": "Regressed out inside the folds: {regressed_facts}."},
}


def say(audit: Audit, *parts: str) -> list[str]:
    """Return the sentences of parts of an audit: those of ``SENTENCES`` that hold for it."""
    conditions, values = _conditions(audit), _values(audit)
    return [
        text.format(**values, **each)
        for part in parts
        for condition, text in SENTENCES[part].items()
        for each in conditions[condition]
    ]


def say_audit(audit: Audit) -> list[str]:
    """Return the verdict, what was missed, evidence, the EEG adjusted, and leaks: a line each."""
    verdict = " ".join([f"{TITLES[audit.why]}.", *say(audit, "reason", "consequence")])
    missed = [" ".join(said)] if (said := say(audit, "missed")) else []
    return [verdict, *missed, *say(audit, "evidence", "adjusted", "leaks")]


def _conditions(audit: Audit) -> dict[str, list[dict[str, Any]]]:
    """Return for each condition the values of what it holds for; empty where it does not hold."""
    matched, leaks = audit.matched, audit.leaks
    pairs, decided = bool(matched.get("n_pairs")), bool(matched.get("estimable"))
    names, rows = leaks.get("two_names") or {}, leaks.get("repeated") or {}
    shuffled = leaks.get("shuffled") or {}
    leak = bool(shuffled) and float(np.mean(shuffled["auc"])) > shuffled["high"]
    once: dict[str, bool] = {why: audit.why == why for *_, why in LEVELS}
    for family in FAMILIES:
        tested = bool((audit.variables["family"] == family).any())
        once[f"{family} found"] = bool(audit.found(family))
        once[f"{family} none"] = tested and not audit.found(family)
        once[f"{family} untested"] = not tested
    once |= {
        "body": audit.level == "red" and bool(_bodily(audit)),
        "power": bool(audit.missed) and audit.missed["auc"] < NOTHING_FOUND,
        "no power": bool(audit.missed) and audit.missed["auc"] >= NOTHING_FOUND,
        "power few": bool(audit.missed) and audit.missed["auc"] > audit.missed["to_find"],
        "by site": audit.folds == "site",
        "unused": bool(audit.unused),
        "named": bool(audit.named),
        "no match": bool(matched) and not pairs,
        "few matches": pairs and not decided,
        "failed match": pairs and decided and matched["failed"],
        "match": pairs and decided and not matched["failed"],
        "undecided match": bool(audit.suspects) and not decided,
        "regressed": bool(audit.regressed),
        "assumption": bool(audit.regressed) or (decided and not matched["failed"]),
        "shuffled": bool(shuffled) and not leak,
        "shuffled above chance": leak,
        "names untested": bool(names) and not names["estimable"],
        "two names": bool(names.get("pairs")),
        "one name each": bool(names) and names["estimable"] and not names["pairs"],
        "rows across names": bool(rows.get("n_across")),
        "rows repeated": bool(rows) and not rows["n_across"] and bool(rows["n_repeated"]),
        "no row repeated": bool(rows) and not rows["n_across"] and not rows["n_repeated"],
        "scored": bool(audit.eeg),
        "leading": not audit.variables.empty,
    }
    single: dict[str, list[dict[str, Any]]] = {
        name: [{}] if holds else [] for name, holds in once.items()
    }
    return single | _lists(audit)


def _lists(audit: Audit) -> dict[str, list[dict[str, Any]]]:
    """Return for each condition that may hold for several things the values of each."""
    leaks, correct = audit.leaks, audit.leaks.get("subject")
    carried: dict[str, list[dict[str, Any]]] = {
        "carries": [],
        "carries not": [],
        "carries untestable": [],
    }
    for row in audit.carried:
        p, fact = row["p_holm"], listing([say_variable(name) for name in row["variables"]])
        outcome = " untestable" if p is None else "" if p <= CARRIED else " not"
        carried[f"carries{outcome}"].append({"fact": fact, "p": "" if p is None else f"{p:.2g}"})
    return carried | {
        "pair": [
            {
                "pair": _capitalised([say_variable(name) for name in pair["variables"]]),
                "p": f"{pair['p_corrected']:.2g}",
            }
            for pair in audit.pairs
        ],
        "strata": [
            {"variable": say_variable(name), "levels": "; ".join(_say_levels(audit, levels))}
            for name, levels in audit.strata.items()
        ],
        "mistakes": [
            {"mistake": mistake, "auc": leaks[name]["roc_auc"], "correct": correct["roc_auc"]}
            for name, mistake in _MISTAKES.items()
            if correct and leaks.get(name)
        ],
        "headers": [
            {"header": say_variable(name), "number": len(who), "who_has_it": listing(who, 10)}
            for name, who in (leaks.get("headers") or {}).items()
            if who
        ],
    }


def _of_family(audit: Audit, family: str) -> list[str]:
    """Return the facts of a family that are associated, alone or in pairs."""
    alone = [row["variable"] for row in audit.found(family)]
    joint = [
        name for pair in audit.pairs if pair["family"] == family for name in pair["variables"]
    ]
    return list(dict.fromkeys([*alone, *joint]))


def _bodily(audit: Audit) -> list[str]:
    """Return associated facts in which the participant's body has a part."""
    return [name for name in _of_family(audit, "acquisition") if kind_of(name) == "signal"]


def _capitalised(names: Sequence[str]) -> str:
    text = listing(names)
    return text[:1].upper() + text[1:]


def _values(audit: Audit) -> dict[str, Any]:
    """Return what is filled into sentences; empty where there is nothing."""
    matched, regressed, leaks = audit.matched, audit.regressed, audit.leaks
    how, who = (_of_family(audit, family) for family in FAMILIES)
    n_of = {name: int((audit.variables["family"] == name).sum()) for name in FAMILIES}
    of_acquisition = [row for row in audit.carried if row["family"] == "acquisition"]
    follows = [r for r in of_acquisition if r["p_holm"] is not None and r["p_holm"] <= CARRIED]
    untestable = [row for row in of_acquisition if row["p_holm"] is None]
    shuffled, repeated = leaks.get("shuffled") or {}, leaks.get("repeated") or {}
    alike = (leaks.get("two_names") or {}).get("pairs", [])
    who_matches = ""
    if matched.get("n_pairs"):
        effective = listing([f"{n:.1f}" for n in matched["n_effective"]])
        who_matches = f"{count_classes(matched['n_subjects'], audit)}, effective numbers "
        who_matches += f"{effective}; {matched['n_pairs']} pairs"
    first = records(audit.variables)[0] if len(audit.variables) else {}
    below = audit.missed.get("to_find", AUC_TO_FIND) < AUC_TO_FIND
    return {
        "n": sum(audit.n_subjects),
        "counts": count_classes(audit.n_subjects, audit),
        "n_facts": len(audit.variables),
        "n_acquisition": n_of["acquisition"],
        "n_participants": n_of["participants"],
        "groups": listing(audit.classes),
        "Acquisition": _capitalised([say_variable(name) for name in how]),
        "Participants": _capitalised([say_variable(name) for name in who]),
        "Body": _capitalised([say_variable(name) for name in _bodily(audit)]),
        "differ": "differs" if len(how) == 1 else "differ",
        "differ_who": "differs" if len(who) == 1 else "differ",
        "s": "s" if len(how) == 1 else "",
        "it": "it" if len(how) == 1 else "them",
        "it_who": listing([say_variable(name) for name in who]),
        "carried": _say_units(follows),
        "untestable": _say_units(untestable),
        "coincide": "" if audit.coincide is None else f"{audit.coincide:.2f}",
        "eeg": _auc(audit.eeg),
        "detectable": f"{audit.missed.get('auc', np.nan):.2f}",
        "to_find": f"{audit.missed.get('to_find', np.nan):.2f}",
        "as_eeg": _EXPLAINING if below else "",
        "n_needed": audit.missed.get("n"),
        "acquisition_rows": _say_rows(audit, "acquisition"),
        "participants_rows": _say_rows(audit, "participants"),
        "leading": _capitalised([describe_variable(first, audit.classes)[1]]) if first else "",
        "leading_p": f"{first.get('p_corrected', np.nan):.2g}",
        "folds": say_folds(audit),
        "unused": listing(audit.unused),
        "named": listing(audit.named),
        "who": who_matches,
        "n_pairs": matched.get("n_pairs"),
        "fewest": confounding.FEWEST,
        "matched": _auc(matched),
        "matched_above": _above_chance(matched),
        "facts_of_pairs": f"{matched.get('acquisition_auc', np.nan):.2f}",
        "regressed": _auc(regressed),
        "regressed_above": _above_chance(regressed),
        "regressed_facts": listing([say_variable(n) for n in regressed.get("variables", [])]),
        "shuffled": f"{np.mean(shuffled.get('auc', np.nan)):.2f}",
        "band": _range(shuffled),
        "alike": listing([f"{a} and {b}" for a, b, *_ in alike]),
        "n_across": repeated.get("n_across"),
        "n_repeated": repeated.get("n_repeated"),
        "same_rows": listing([f"{a} and {b}" for a, b in repeated.get("pairs", [])]),
    }


def _say_units(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [say_variable(name) for row in rows for name in row["variables"]]
    return listing(list(dict.fromkeys(names)))


def _say_rows(audit: Audit, family: str) -> str:
    rows = audit.found(family)
    more = f", and {len(rows) - _MOST_FACTS} more" if len(rows) > _MOST_FACTS else ""
    return "; ".join(_say_row(row, audit) for row in rows[:_MOST_FACTS]) + more


def say_folds(audit: Audit) -> str:
    """Return what was held out; empty if nothing could be."""
    if not audit.n_splits:
        return ""
    if audit.folds == "site":
        return f"one of {audit.n_splits} sites left out at a time"
    return f"{audit.n_splits} subject-wise folds"


def _say_row(row: Mapping[str, Any], audit: Audit) -> str:
    name, direction = describe_variable(row, audit.classes)
    return f"{name}, {direction}: {_auc(row)}, corrected p {row['p_corrected']:.2g}"


def _say_levels(audit: Audit, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the EEG's AUC within each level of a variable."""
    return [
        f"{row['level']} ({count_classes(row['n_subjects'], audit)}): {_auc(row) or 'too few'}"
        for row in rows
    ]


def describe_variable(row: Mapping[str, Any], classes: Sequence[str]) -> tuple[str, str]:
    """Return the label of a row of an audit's variables, and in which class it is higher."""
    name, words = say_variable(row["variable"]), ("higher", "lower")
    if row["shape"] == "extremes":
        words = ("farther from the median", "nearer to the median")
    if row["level"]:
        name, words = f"{name} ({row['level']})", ("more often", "less often")
    return name, f"{words[not row['higher']]} in {classes[row['class']]}"


def count_classes(counts: Sequence[int], audit: Audit) -> str:
    """Return the number of subjects of each class as text."""
    return listing([f"{n} {name}" for n, name in zip(counts, audit.classes, strict=True)])


def _auc(score: Mapping[str, Any] | None) -> str:
    """Write an AUC with its CI; nothing where there is none."""
    if not score or score.get("auc") is None:
        return ""
    return f"AUC {score['auc']:.2f} (95 % CI {_range(score)})"


def _range(score: Mapping[str, Any] | None) -> str:
    return f"{score['low']:.2f} to {score['high']:.2f}".replace("-", "−") if score else ""


def _above_chance(score: Mapping[str, Any]) -> str:
    """Return how an AUC relates to one half; below it there is no evidence of a difference."""
    return "above" if score.get("low", 0.0) > 0.5 else "not shown to be above"
