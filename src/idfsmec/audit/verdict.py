"""The verdict of an audit: its parts put together, and its sentences in one table."""

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
#: So many associated facts are described.
_MOST_FACTS = 3
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
        return {
            "level": self.level,
            "title": TITLES[self.level],
            "verdict": say(self, "reason")[0],
        }


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
    decided = {
        "logistic": together.get("logistic"),
        "boosting": together.get("boosting"),
        "leader": recording.get("leader") if leads else None,
        "eeg": (parts.get("eeg") or {}).get("decisions"),
    }
    decisions = {name: np.array(rows, dtype=float) for name, rows in decided.items() if rows}
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


#: The sentences of an audit by part, each with the condition under which it is printed. Parts are
#: the reason of the verdict and what follows from it, the associated facts, the EEG without them,
#: mistakes in a protocol and repeated data, and what stands beside an AUC. ``_conditions``
#: says when a condition holds, ``_values`` what is filled in.
SENTENCES = {
    "reason": {
        "few participants": "There are {n} participants ({counts}). After {n_facts} tests no "
        "difference can be significant with so few.",
        "no facts": "The table has no acquisition facts.",
        "none associated": "None of {n_facts} acquisition facts is significantly associated with "
        "the diagnosis, alone or together.",
        "none held out": "{Names} {differ} between {groups}. There are too few participants to "
        "hold any out.",
        "no EEG": "Acquisition ({model}) separates {groups} with {acquisition}.",
        "compared": "Acquisition ({model}) separates {groups} with {acquisition}, the EEG with "
        "{eeg}.",
    },
    "consequence": {
        "few participants": "The numbers below only describe them.",
        "no facts": "Only the table itself was tested: channels with data, number of samples, "
        "missing channels. Make the table with idfsmec features to get acquisition facts; a "
        "manifest adds age, sex and site.",
        "none associated": "Facts that are not in the table were not tested.",
        "difference": "95 % CI of the difference, EEG minus acquisition: {difference}.",
        "better": "The EEG separates them better. Associated facts: {names}.",
        "not better": "The EEG is not shown to be better.",
        "not better, device": "The difference may come from the amplifier, not the illness "
        "({names}).",
        "not better, subject": "The difference may come from who was recorded ({names}), not from "
        "the illness.",
        "not better, signal": "The difference may come from the amplifier or the body, not the "
        "brain ({names}). Check how recordings were made.",
    },
    "evidence": {
        "by site": "Acquisition and EEG were scored with {folds}. AUCs are those at held-out "
        "sites.",
        "associated": "Associated with the diagnosis: {associated}.",
        "unused": "Not tested, because they may be part of the illness: {unused}.",
    },
    "adjusted": {
        "no match": "Whether the EEG separates participants with matching acquisition cannot be "
        "decided: no participant has a match in another group.",
        "few matches": "Whether the EEG separates participants with matching acquisition cannot "
        "be decided: too few participants have a match ({who}). Each group needs an effective "
        "number of {fewest}.",
        "failed match": "The match has failed: acquisition still separates the matched pairs (AUC "
        "{acquisition_of_pairs}; {who}). The EEG's {matched} among them is not evidence about the "
        "illness.",
        "match": "Among participants with matching acquisition ({who}) the EEG has {matched}; the "
        "CI {matched_includes} 0.5. Acquisition has AUC {acquisition_of_pairs} in these pairs.",
        "strata": "EEG within each {variable}: {levels}.",
        "regressed": "With {regressed_facts} regressed out inside the folds the EEG has "
        "{regressed}; the CI {regressed_includes} 0.5.",
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
        "headers": "Participants with a {header}: {number}. Check these files.",
    },
    "acquisition": {
        "one model": "{Model}.",
        "best model": "{Model}, the best of {n_models} models.",
        "not significant": "Not significant after Holm's correction (p = {p}).",
        "significant, not above chance": "Not above chance after Holm's correction (p = {p}, but "
        "the 95 % CI of the logistic regression includes 0.5).",
        "significant": "Significant after Holm's correction (p = {p}).",
        "significant, best model": "The CI is corrected for the choice of the model.",
    },
    "eeg": {"scored": "Same participants, same folds."},
    "matched": {
        "match": "{n_pairs} pairs of participants with matching acquisition.",
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
    """Return the verdict, its evidence, the EEG without confounding, and leaks: a line each."""
    verdict = " ".join([f"{TITLES[audit.level]}.", *say(audit, "reason", "consequence")])
    return [verdict, *say(audit, "evidence", "adjusted", "leaks")]


def _conditions(audit: Audit) -> dict[str, list[dict[str, Any]]]:
    """Return for each condition the values of what it holds for; empty where it does not hold."""
    matched, leaks = audit.matched, audit.leaks
    suspects, scored = bool(audit.suspects), audit.best_model in audit.models
    compared = suspects and scored and "eeg" in audit.models
    worse = compared and audit.level == "red"
    kinds = {kind_of(name) for name in audit.suspects}
    several, tested = _n_models(audit) > 1, significant(audit)
    below = (audit.p_together or 0.0) < ALPHA
    pairs, decided = bool(matched.get("n_pairs")), bool(matched.get("estimable"))
    names, rows = leaks.get("two_names") or {}, leaks.get("repeated") or {}
    shuffled = leaks.get("shuffled") or {}
    leak = bool(shuffled) and float(np.mean(shuffled["auc"])) > shuffled["high"]
    once: dict[str, bool] = {
        "few participants": audit.why == "few",
        "no facts": audit.level == "grey" and audit.why != "few",
        "none associated": audit.level == "green",
        "none held out": suspects and not scored,
        "no EEG": suspects and scored and "eeg" not in audit.models,
        "compared": compared,
        "difference": compared and audit.difference is not None,
        "better": compared and audit.level == "amber",
        "not better": worse,
        "not better, device": worse and kinds not in ({"subject"}, {"signal"}),
        "not better, subject": worse and kinds == {"subject"},
        "not better, signal": worse and kinds == {"signal"},
        "by site": audit.folds == "site",
        "associated": suspects,
        "unused": bool(audit.unused),
        "no match": bool(matched) and not pairs,
        "few matches": pairs and not decided,
        "failed match": pairs and decided and matched["failed"],
        "match": pairs and decided and not matched["failed"],
        "undecided match": suspects and not decided,
        "regressed": bool(audit.regressed),
        "shuffled": bool(shuffled) and not leak,
        "shuffled above chance": leak,
        "names untested": bool(names) and not names["estimable"],
        "two names": bool(names.get("pairs")),
        "one name each": bool(names) and names["estimable"] and not names["pairs"],
        "rows across names": bool(rows.get("n_across")),
        "rows repeated": bool(rows) and not rows["n_across"] and bool(rows["n_repeated"]),
        "no row repeated": bool(rows) and not rows["n_across"] and not rows["n_repeated"],
        "scored": "eeg" in audit.models,
        "one model": scored and not several,
        "best model": scored and several,
        "not significant": tested is False and not below,
        "significant, not above chance": tested is False and below,
        "significant": tested is True,
        "significant, best model": tested is True and several,
    }
    single: dict[str, list[dict[str, Any]]] = {
        name: [{}] if holds else [] for name, holds in once.items()
    }
    return single | _lists(audit)


def _lists(audit: Audit) -> dict[str, list[dict[str, Any]]]:
    """Return for each condition that may hold for several things the values of each."""
    leaks, correct = audit.leaks, audit.leaks.get("subject")
    headers = (leaks.get("headers") or {}).items()
    return {
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
            {"header": say_variable(name), "number": number} for name, number in headers if number
        ],
    }


def significant(audit: Audit) -> bool | None:
    """Return whether the best model of acquisition is significant; None if it was not tested.

    Where the CI of the logistic regression includes 0.5 it is not.
    """
    if audit.p_together is None or audit.best_model in ("", "leader"):
        return None
    return audit.p_together < ALPHA and bool(audit.suspects)


def _values(audit: Audit) -> dict[str, Any]:
    """Return what is filled into sentences; empty where there is nothing."""
    matched, regressed, leaks = audit.matched, audit.regressed, audit.leaks
    rows = audit.variables[audit.variables["variable"].isin(audit.suspects)].to_dict("records")
    names = listing([say_variable(row["variable"]) for row in rows])
    model = MODELS.get(audit.best_model, "")
    corrected = ", corrected for choosing the best model" if _n_models(audit) > 1 else ""
    more = f", and {len(rows) - _MOST_FACTS} more" if len(rows) > _MOST_FACTS else ""
    shuffled, repeated = leaks.get("shuffled") or {}, leaks.get("repeated") or {}
    alike = (leaks.get("two_names") or {}).get("pairs", [])
    who = ""
    if matched.get("n_pairs"):
        effective = listing([f"{n:.1f}" for n in matched["n_effective"]])
        who = f"{count_classes(matched['n_subjects'], audit)}, effective numbers {effective}; "
        who += f"{matched['n_pairs']} pairs"
    return {
        "n": sum(audit.n_subjects),
        "counts": count_classes(audit.n_subjects, audit),
        "n_facts": len(audit.variables),
        "groups": listing(audit.classes),
        "names": names,
        "Names": names[:1].upper() + names[1:],
        "differ": "differs" if len(audit.suspects) == 1 else "differ",
        "model": model,
        "Model": model[:1].upper() + model[1:],
        "n_models": _n_models(audit),
        "acquisition": _auc(audit.models.get(audit.best_model), corrected),
        "eeg": _auc(audit.models.get("eeg")),
        "difference": _range(audit.difference),
        "p": "" if audit.p_together is None else f"{audit.p_together:.2g}",
        "folds": say_folds(audit),
        "associated": "; ".join(_say_row(row, audit) for row in rows[:_MOST_FACTS]) + more,
        "unused": listing(audit.unused),
        "who": who,
        "n_pairs": matched.get("n_pairs"),
        "fewest": confounding.FEWEST,
        "matched": _auc(matched),
        "matched_includes": _includes_chance(matched),
        "acquisition_of_pairs": f"{matched.get('acquisition_auc', np.nan):.2f}",
        "regressed": _auc(regressed),
        "regressed_includes": _includes_chance(regressed),
        "regressed_facts": listing([say_variable(n) for n in regressed.get("variables", [])]),
        "shuffled": f"{np.mean(shuffled.get('auc', np.nan)):.2f}",
        "band": _range(shuffled),
        "alike": listing([f"{a} and {b}" for a, b, *_ in alike]),
        "n_across": repeated.get("n_across"),
        "n_repeated": repeated.get("n_repeated"),
        "same_rows": listing([f"{a} and {b}" for a, b in repeated.get("pairs", [])]),
    }


def _n_models(audit: Audit) -> int:
    """Return how many models of acquisition were compared."""
    return len(audit.models.keys() - {"eeg"})


def say_folds(audit: Audit) -> str:
    """Return what was held out; empty if nothing could be."""
    if not audit.n_splits:
        return ""
    if audit.folds == "site":
        return f"one of {audit.n_splits} sites left out at a time"
    return f"{audit.n_splits} subject-wise folds"


def _say_row(row: Mapping[Any, Any], audit: Audit) -> str:
    name, direction = describe_variable(row, audit.classes)
    return f"{name}, {direction}: {_auc(row)}, corrected p {row['p_holm']:.2g}"


def _say_levels(audit: Audit, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the EEG's AUC within each level of a variable."""
    return [
        f"{row['level']} ({count_classes(row['n_subjects'], audit)}): {_auc(row) or 'too few'}"
        for row in rows
    ]


def describe_variable(row: Mapping[Any, Any], classes: Sequence[str]) -> tuple[str, str]:
    """Return the label of a row of an audit's variables, and in which class it is higher."""
    name, words = say_variable(row["variable"]), ("higher", "lower")
    if row["level"]:
        name, words = f"{name} ({row['level']})", ("more often", "less often")
    return name, f"{words[not row['higher']]} in {classes[row['class']]}"


def count_classes(counts: Sequence[int], audit: Audit) -> str:
    """Return the number of subjects of each class as text."""
    return listing([f"{n} {name}" for n, name in zip(counts, audit.classes, strict=True)])


def _auc(score: Mapping[str, Any] | None, correction: str = "") -> str:
    """Write an AUC with its CI; nothing where there is none."""
    if not score or score.get("auc") is None:
        return ""
    return f"AUC {score['auc']:.2f} (95 % CI {_range(score)}{correction})"


def _range(score: Mapping[str, Any] | None) -> str:
    return f"{score['low']:.2f} to {score['high']:.2f}".replace("-", "−") if score else ""


def _includes_chance(score: Mapping[str, Any]) -> str:
    includes = score.get("low", 0.0) <= 0.5 <= score.get("high", 1.0)
    return "includes" if includes else "excludes"
