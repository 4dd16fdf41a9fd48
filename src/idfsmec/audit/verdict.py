"""The verdict of an audit: its parts put together, and as sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from idfsmec.audit import confounding
from idfsmec.audit.confounding import kind_of, say_variable
from idfsmec.errors import listing
from idfsmec.metrics import Codes, Floats, auc_difference, auc_interval, balanced_accuracy

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

#: Level of the tests, after Holm's correction for their number.
ALPHA = 0.05
#: What the levels are called.
TITLES = {
    "red": "Acquisition separates the groups as well as the EEG does",
    "amber": "Acquisition is associated with the diagnosis",
    "green": "No known acquisition fact is associated with the diagnosis",
    "grey": "Confounding by acquisition cannot be assessed",
}
#: What the models are called.
MODELS = {
    "logistic": "logistic regression on all facts",
    "boosting": "gradient boosting on all facts",
    "leader": "the leading fact alone",
    "eeg": "EEG (first 20 features, untuned)",
}
_MISTAKES = {
    "by_sample": "With sample-wise folds (participants in training and test)",
    "before": "With features selected before splitting",
}
_COLUMNS = ["variable", "kind", "level", "class", "higher", "auc", "low", "high", "p", "p_holm"]


@dataclass(frozen=True)
class Audit:
    """Result of the audit of a table.

    Parameters
    ----------
    level : {"red", "amber", "green", "grey"}
        The verdict: acquisition separates the groups as well as the EEG; it is associated with
        the diagnosis but the EEG does better; no known acquisition fact is associated with
        the diagnosis; cannot be assessed.
    classes : list of str
    n_subjects : list of int
        Subjects of each class.
    variables : DataFrame
        One row for each acquisition fact, the smallest p first: ``variable``, ``kind``,
        ``level``, ``class``, ``higher``, ``auc`` (oriented to at least 0.5), its 95 % CI
        ``low`` and ``high``, ``p`` (by permutation), ``p_holm``.
    models : dict
        ``logistic`` and ``boosting`` (all variables together, subjects held out), ``leader`` (the
        leading variable alone) and ``eeg``, each with ``auc``, ``low``, ``high`` and, except for
        the leader, ``balanced_accuracy``. CIs of the acquisition models are corrected for the
        choice of the best one (Bonferroni).
    best_model : str
        The acquisition model with the highest AUC; empty if there is none.
    difference : dict or None
        AUC of the EEG minus that of the best acquisition model: ``value``, ``low``, ``high``.
    p_together : float or None
        p-value of all variables together, corrected with the others by Holm's method.
    suspects : list of str
        Variables that are associated with the diagnosis.
    matched : dict
        The EEG's AUC among subjects with matching acquisition; see
        :func:`idfsmec.audit.confounding.among_matched`. Empty without suspects.
    strata : dict
        The EEG's AUC within each device and number of recorded channels, by variable: rows of
        ``level``, ``n_subjects``, ``auc`` (None for too few), ``low``, ``high``. Empty without
        suspects.
    regressed : dict
        The EEG's AUC with the suspects regressed out; empty without suspects.
    leaks : dict
        ``subject``, ``by_sample``, ``before`` (scores), ``shuffled`` (``auc`` with the 95 % range
        under chance), ``two_names``, ``repeated``, ``headers`` (number of subjects whose header
        contradicts the study, by kind).
    why : str
        For grey: ``"few"`` subjects, or ``"undescribed"`` recordings.
    unused : list of str
        Columns beside the features that were not tested.
    n_splits : int
        Number of folds; 0 if no subject could be held out.
    folds : {"subject", "site"}
        Whether subjects were held out, or one site at a time.
    """

    level: str
    classes: list[str]
    n_subjects: list[int]
    variables: pd.DataFrame = field(repr=False)
    models: dict[str, dict[str, float]] = field(repr=False)
    best_model: str = ""
    difference: dict[str, float] | None = None
    p_together: float | None = None
    suspects: list[str] = field(default_factory=list)
    matched: dict[str, Any] = field(default_factory=dict, repr=False)
    strata: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    regressed: dict[str, Any] = field(default_factory=dict, repr=False)
    leaks: dict[str, Any] = field(default_factory=dict, repr=False)
    why: str = ""
    unused: list[str] = field(default_factory=list, repr=False)
    n_splits: int = 0
    folds: str = "subject"

    def as_dict(self) -> dict[str, Any]:
        """Return all results as JSON types."""
        rows = self.variables.astype(object).where(self.variables.notna(), None)
        return {**vars(self), "variables": rows.to_dict("records")}

    def summary(self) -> str:
        """Return the verdict and its evidence as sentences, one line each."""
        return "\n".join(say_audit(self))

    @property
    def verdict(self) -> dict[str, str]:
        """The verdict as models and tables keep it: ``level``, ``title`` and its ``verdict``.

        The last is the reason in one sentence.
        """
        return {"level": self.level, "title": TITLES[self.level], "verdict": say_verdict(self)[0]}


def find_suspects(recording: Mapping[str, Any]) -> list[str]:
    """Return the variables associated with the diagnosis; all, where only all together are."""
    alone, together = recording["alone"], recording["together"]
    suspects = [row["variable"] for row in alone if _separates(row)]
    if not suspects and together and _separates(together):
        suspects = [row["variable"] for row in alone]
    return suspects


def _separates(test: Mapping[str, Any]) -> bool:
    """Return whether the corrected p is below the level and the CI of the AUC excludes 0.5."""
    return bool(test["p_holm"] < ALPHA and test.get("low", 1.0) > 0.5)


def audits_of(results: Results) -> dict[str, Audit]:
    """Return the audits of a folder of results, by the names of their tables."""
    return {name: put_together(parts) for name, parts in results.audit_parts.items()}


def put_together(parts: Mapping[str, dict[str, Any]]) -> Audit:
    """Make an audit from its parts, by name, as they are in a store; parts may be missing."""
    recording = parts.get("recording") or {}
    if "y" not in recording:  # or a reason why there is nothing
        recording = {"alone": [], "together": {}, "y": [], "classes": []}
    alone, together, classes = (recording[key] for key in ("alone", "together", "classes"))
    y = np.array(recording["y"], dtype=np.intp)
    counts = np.bincount(y, minlength=len(classes)).tolist()
    # A variable that chance would give is no model of the acquisition.
    leads = any(_separates(row) for row in alone)
    given = {
        "logistic": together.get("logistic"),
        "boosting": together.get("boosting"),
        "leader": recording.get("leader") if leads else None,
        "eeg": (parts.get("eeg") or {}).get("decisions"),
    }
    decisions = {name: np.array(rows, dtype=float) for name, rows in given.items() if rows}
    acquisition = [name for name in decisions if name != "eeg"]
    # Of how many AUCs each may be the best: the EEG's is one, the leader leads variables.
    n_looks = dict.fromkeys(acquisition, len(acquisition)) | {"eeg": 1}
    n_looks["leader"] = len(acquisition) * len(alone)
    models = {name: _score(rows, y, n_looks[name]) for name, rows in decisions.items()}
    models.get("leader", {}).pop("balanced_accuracy", None)  # a value has no threshold
    best = max(acquisition, key=lambda name: models[name]["auc"], default="")
    suspects, better = find_suspects(recording), False
    difference, matched, strata, regressed = None, {}, {}, {}
    if best and "eeg" in decisions:
        value, low, high = auc_difference(decisions["eeg"], decisions[best], y)
        difference, better = {"value": value, "low": low, "high": high}, low > 0
        if suspects:
            propensity = np.array(recording["propensity"])
            matched = confounding.among_matched(decisions["eeg"], propensity, y)
            strata = {
                name: confounding.auc_in_strata(decisions["eeg"], levels, y)
                for name, levels in recording.get("strata", {}).items()
            }
    if "decisions" in (part := parts.get("regressed") or {}):
        regressed = {**_score(np.array(part["decisions"]), y), "variables": part["variables"]}
    level, why = _judge(recording, counts, suspects, better)
    by, ascending = ["p_holm", "p", "auc"], [True, True, False]
    rows = pd.DataFrame(alone, columns=_COLUMNS)
    return Audit(
        level=level,
        classes=list(classes),
        n_subjects=counts,
        variables=rows.sort_values(by, ascending=ascending, ignore_index=True),
        models=models,
        best_model=best,
        difference=difference,
        p_together=together.get("p_holm"),
        suspects=suspects,
        matched=matched,
        strata=strata,
        regressed=regressed,
        leaks=_leaks(parts, counts),
        why=why,
        unused=list(recording.get("unused", [])),
        n_splits=int(recording.get("n_splits", 0)),
        folds=str(recording.get("folds", "subject")),
    )


def _score(decisions: Floats, y: Codes, n_looks: int = 1) -> dict[str, float]:
    """AUC with its interval and balanced accuracy of decisions, one row per subject."""
    balanced = balanced_accuracy(y, decisions.argmax(axis=1))
    scored = confounding.auc_of_subjects(decisions, y, n_looks)
    return {**scored, "balanced_accuracy": balanced}


def _judge(
    recording: Mapping[str, Any], counts: list[int], suspects: list[str], better: bool
) -> tuple[str, str]:
    """Return the level, and for grey the reason; ``better``: the EEG is shown to be."""
    if suspects:
        return ("amber", "") if better else ("red", "")
    n_tests = len(recording["alone"]) + 1
    if counts and n_tests > 1:
        # The smallest p-value that so few subjects can give: of all labellings, two.
        log_ways = math.lgamma(sum(counts) + 1) - sum(math.lgamma(n + 1) for n in counts)
        if 2.0 * math.exp(-log_ways) * n_tests >= ALPHA:
            return "grey", "few"
    return ("green", "") if recording.get("described") else ("grey", "undescribed")


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


def say_audit(audit: Audit) -> list[str]:
    """Return the verdict, its evidence, the EEG without confounding, and leaks: a line each."""
    return [
        " ".join([f"{TITLES[audit.level]}.", *say_verdict(audit)]),
        *say_variables(audit),
        *say_left(audit),
        *say_leaks(audit),
    ]


def say_verdict(audit: Audit) -> list[str]:
    """Return sentences: the reason of the verdict, and what follows from it."""
    suspects = [name for name in audit.variables["variable"] if name in audit.suspects]
    groups, names = listing(audit.classes), listing([say_variable(name) for name in suspects])
    if audit.why == "few":
        return [
            f"There are {sum(audit.n_subjects)} participants "
            f"({count_classes(audit.n_subjects, audit)}). After {len(audit.variables)} tests no "
            "difference can be significant with so few.",
            "The numbers below only describe them.",
        ]
    if audit.level == "grey":
        return [
            "The table has no acquisition facts.",
            "Only the table itself was tested: channels with data, number of samples, missing "
            "channels. Make the table with idfsmec features to get acquisition facts; a manifest "
            "adds age, sex and site.",
        ]
    if audit.level == "green":
        return [
            f"None of {len(audit.variables)} acquisition facts is significantly associated "
            "with the diagnosis, alone or together.",
            "Facts that are not in the table were not tested.",
        ]
    eeg, acquisition = audit.models.get("eeg"), audit.models.get(audit.best_model)
    if acquisition is None:
        verb = "differs" if len(audit.suspects) == 1 else "differ"
        sentence = (
            f"{names} {verb} between {groups}. There are too few participants to hold any out."
        )
        return [sentence[0].upper() + sentence[1:]]
    n_models = len(audit.models.keys() - {"eeg"})
    corrected = ", corrected for choosing the best model" if n_models > 1 else ""
    reached = f"Acquisition ({MODELS[audit.best_model]}) separates {groups} with "
    reached += _auc(acquisition, corrected)
    if eeg is None:
        return [f"{reached}."]
    sentences = [f"{reached}, the EEG with {_auc(eeg)}."]
    if audit.difference is not None:
        low, high = audit.difference["low"], audit.difference["high"]
        ends = f"{low:.2f} to {high:.2f}".replace("-", "−")
        sentences.append(f"95 % CI of the difference, EEG minus acquisition: {ends}.")
    if audit.level == "amber":
        return [*sentences, f"The EEG separates them better. Associated facts: {names}."]
    kinds = {kind_of(name) for name in audit.suspects}
    blame = f"The difference may come from the amplifier, not the illness ({names})."
    if kinds == {"subject"}:
        blame = f"The difference may come from who was recorded ({names}), not from the illness."
    elif kinds == {"signal"}:
        blame = (
            f"The difference may come from the amplifier or the body, not the brain ({names}). "
            "Check how recordings were made."
        )
    return [*sentences, f"The EEG is not shown to be better. {blame}"]


def say_folds(audit: Audit) -> str:
    """Return what was held out; empty if nothing could be."""
    if not audit.n_splits:
        return ""
    if audit.folds == "site":
        return f"one of {audit.n_splits} sites left out at a time"
    return f"{audit.n_splits} subject-wise folds"


def say_variables(audit: Audit, most: int = 3) -> list[str]:
    """Return sentences on folds, associated variables and columns that were not tested."""
    lines = []
    if audit.folds == "site":
        lines.append(
            f"Acquisition and EEG were scored with {say_folds(audit)}. AUCs are those at held-out "
            "sites."
        )
    rows = audit.variables[audit.variables["variable"].isin(audit.suspects)].to_dict("records")
    if rows:
        more = f", and {len(rows) - most} more" if len(rows) > most else ""
        each = "; ".join(_say_row(row, audit.classes) for row in rows[:most])
        lines.append(f"Associated with the diagnosis: {each}{more}.")
    if audit.unused:
        names = listing(audit.unused)
        lines.append(f"Not tested, because they may be part of the illness: {names}.")
    return lines


def _say_row(row: Mapping[Any, Any], classes: Sequence[str]) -> str:
    name, direction = describe_variable(row, classes)
    return f"{name}, {direction}: {_auc(row)}, corrected p {row['p_holm']:.2g}"


def describe_variable(row: Mapping[Any, Any], classes: Sequence[str]) -> tuple[str, str]:
    """Return the label of a row of an audit's variables, and in which class it is higher."""
    name, words = say_variable(row["variable"]), ("higher", "lower")
    if row["level"]:
        name, words = f"{name} ({row['level']})", ("more often", "less often")
    return name, f"{words[not row['higher']]} in {classes[row['class']]}"


def say_left(audit: Audit) -> list[str]:
    """Return sentences on the EEG's AUC without confounding; none without suspects."""
    lines, matched, regressed = [], audit.matched, audit.regressed
    if matched:
        lines.append(_say_matched(audit))
    for name, rows in audit.strata.items():
        each = [
            f"{row['level']} ({count_classes(row['n_subjects'], audit)}): "
            + (_auc(row) if row["auc"] is not None else "too few")
            for row in rows
        ]
        lines.append(f"EEG within each {say_variable(name)}: {'; '.join(each)}.")
    if regressed:
        names = listing([say_variable(name) for name in regressed["variables"]])
        lines.append(
            f"With {names} regressed out inside the folds the EEG has "
            f"{_against_chance(regressed)}."
        )
    return lines


def _say_matched(audit: Audit) -> str:
    """Return the EEG's AUC among matched subjects, or why it cannot be decided."""
    matched = audit.matched
    undecided = (
        "Whether the EEG separates participants with matching acquisition cannot be decided"
    )
    if not matched["n_pairs"]:
        return f"{undecided}: no participant has a match in another group."
    counts = count_classes(matched["n_subjects"], audit)
    effective = listing([f"{n:.1f}" for n in matched["n_effective"]])
    who = f"{counts}, effective numbers {effective}; {matched['n_pairs']} pairs"
    if not matched["estimable"]:
        return (
            f"{undecided}: too few participants have a match ({who}). Each group needs an "
            f"effective number of {confounding.FEWEST}."
        )
    if matched["failed"]:
        return (
            f"The match has failed: acquisition still separates the matched pairs (AUC "
            f"{matched['acquisition_auc']:.2f}; {who}). The EEG's {_auc(matched)} among them is "
            "not evidence about the illness."
        )
    return (
        f"Among participants with matching acquisition ({who}) the EEG has "
        f"{_against_chance(matched)}. Acquisition has AUC {matched['acquisition_auc']:.2f} in "
        "these pairs."
    )


def say_leaks(audit: Audit) -> list[str]:
    """Return sentences on leaks: what mistakes would add, permuted labels, repeated data."""
    lines, leaks = [], audit.leaks
    correct, shuffled = leaks.get("subject"), leaks.get("shuffled")
    for name, mistake in _MISTAKES.items():
        if correct and leaks.get(name):
            before, after = correct["roc_auc"], leaks[name]["roc_auc"]
            lines.append(
                f"{mistake}, AUC over samples would be {after:.2f} instead of {before:.2f}."
            )
    if shuffled:
        mean = sum(shuffled["auc"]) / len(shuffled["auc"])
        leak = mean > shuffled["high"]
        lines.append(
            f"Permuted labels give AUC {mean:.2f}, {'above' if leak else 'within'} the 95 % band "
            f"of chance ({shuffled['low']:.2f} to {shuffled['high']:.2f})"
            f"{': there is a leak' if leak else ''}."
        )
    return [*lines, *_say_repeats(leaks)]


def _say_repeats(leaks: Mapping[str, Any]) -> list[str]:
    """Return sentences on participants under two names, rows that occur twice, and headers."""
    lines, names, rows = [], leaks.get("two_names"), leaks.get("repeated")
    if names and not names["estimable"]:
        lines = ["Whether a participant has two names was not tested: there are too few samples."]
    elif names and names["pairs"]:
        pairs = listing([f"{a} and {b}" for a, b, *_ in names["pairs"]])
        lines = [
            f"Samples of {pairs} are as similar as those of one participant. If they are the "
            "same participant, give them one name."
        ]
    elif names:
        lines = ["No participant seems to occur under two names."]
    if rows and rows["n_across"]:
        pairs = listing([f"{a} and {b}" for a, b in rows["pairs"]])
        lines.append(f"{rows['n_across']} rows occur again under another name ({pairs}).")
    elif rows:
        number = rows["n_repeated"]
        same = f"{number} rows of the same participant occur twice."
        lines.append(same if number else "No row occurs twice.")
    return lines + [
        f"Participants with a {say_variable(name)}: {number}. Check these files."
        for name, number in (leaks.get("headers") or {}).items()
        if number
    ]


def count_classes(counts: Sequence[int], audit: Audit) -> str:
    """Return the number of subjects of each class as text."""
    return listing([f"{n} {name}" for n, name in zip(counts, audit.classes, strict=True)])


def _auc(score: Mapping[str, Any], about: str = "") -> str:
    return f"AUC {score['auc']:.2f} (95 % CI {score['low']:.2f} to {score['high']:.2f}{about})"


def _against_chance(score: Mapping[str, Any]) -> str:
    includes = score["low"] <= 0.5 <= score["high"]
    return f"{_auc(score)}; the CI {'includes' if includes else 'excludes'} 0.5"
