"""The sentences of an audit: one table, by part and condition, and what is filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from idfsmec.audit import confounding
from idfsmec.audit.association import AUC_TO_FIND, CONCORDANCE_TO_FIND
from idfsmec.audit.levels import CARRIED, LEVELS
from idfsmec.audit.variables import FAMILIES, kind_of, say_variable
from idfsmec.errors import listing

if TYPE_CHECKING:
    from idfsmec.audit.verdict import Audit

_ASSOCIATED = "Acquisition is associated with {diagnosis}"
#: What the rows of ``LEVELS`` are called.
TITLES = {
    "carried": "The EEG's prediction carries how participants were recorded",
    "coincide": "Acquisition and {target} cannot be told apart",
    "untestable": _ASSOCIATED,
    "not carried": _ASSOCIATED,
    "no effect": _ASSOCIATED,
    "not scored": _ASSOCIATED,
    "participants": "Who was recorded is associated with {diagnosis}",
    "undescribed": "Confounding by acquisition cannot be assessed",
    "few": "Too few participants to assess confounding",
    "none": "No known fact is associated with {diagnosis}",
}
#: The words of an audit of classes and of a score.
_WORDS = {
    "classes": {
        "measure": "AUC",
        "diagnosis": "the diagnosis",
        "target": "diagnosis",
        "differs": "differs between {groups}",
        "differ": "differ between {groups}",
        "within": "within the groups",
        "prediction": "decisions on held-out participants are not shown to differ between them",
    },
    "score": {
        "measure": "concordance",
        "diagnosis": "{score}",
        "target": "{score}",
        "differs": "is associated with {score}",
        "differ": "are associated with {score}",
        "within": "among participants with a similar {score}",
        "prediction": "predictions for held-out participants are not shown to follow {score}",
    },
}
#: Mistakes in a protocol, by the part of the audit that makes them.
MISTAKES = {
    "by_sample": "With sample-wise folds (participants in training and test)",
    "before": "With features selected before splitting",
}
#: With such an AUC a fact coincides with the diagnosis.
NOTHING_FOUND = 0.995
#: So many associated facts are described.
_MOST_FACTS = 3
_EXPLAINING = (
    ", the {measure} of a fact that explains the EEG's and is measured with a reliability of 0.25"
)
_AND_EEG = "The EEG has {eeg}"
_MISSED = "What could have been missed: with {n} participants"
_ENOUGH = "for {to_find}{as_eeg}, about {n_needed} participants would do."
#: The sentences of an audit by part, each with the condition under which it is printed. Parts are
#: the reason of the verdict (by row of ``LEVELS``), what follows, what could have been missed, the
#: facts, the EEG without them, mistakes in a protocol, and what stands beside an AUC.
#: ``_conditions`` says when a condition holds, ``_values`` what is filled in.
SENTENCES = {
    "reason": {
        "carried": "{Acquisition} {differ}, and the EEG's prediction (first 20 features, untuned) "
        "follows {carried} {within}.",
        "coincide": "{Acquisition} {differ} and nearly coincide{s} with {diagnosis} ({measure} "
        "{coincide} on held-out participants).",
        "untestable": "{Acquisition} {differ}. Whether the EEG's prediction follows {untestable} "
        "cannot be tested: {within} there is hardly a difference.",
        "not carried": "{Acquisition} {differ}. The EEG's prediction is not shown to follow {it}.",
        "no effect": "{Acquisition} {differ}. The EEG's {prediction} ({eeg}).",
        "not scored": "{Acquisition} {differ}. The EEG was not scored.",
        "participants": "{Participants} {differ_who}.",
        "undescribed": "The table does not say how recordings were made.",
        "few": "None of {n_facts} is found to be associated with {diagnosis}, and with "
        "{counts} only a strong association could be found.",
        "none": "None of {n_facts} is found to be associated with {diagnosis}, alone or in pairs.",
    },
    "consequence": {
        "carried": f"{_AND_EEG}; this may be an effect of acquisition, not of the illness.",
        "coincide": f"{_AND_EEG}; no computation can say whether by illness or acquisition.",
        "untestable": f"{_AND_EEG}; this may be an effect of acquisition.",
        "not carried": f"{_AND_EEG}. Report the facts beside it.",
        "participants unadjusted": "Report the EEG adjusted for {it_who}.",
        "participants adjusted": f"{_AND_EEG}; adjusted for {{it_who}} (regressed out inside the "
        "folds) it has {regressed}, {regressed_above} 0.5.",
        "body": "{Body} depend on the device and on the participant, and may be a consequence of "
        "the illness.",
        "undescribed": "Make the table with idfsmec features to get acquisition facts; a "
        "manifest adds device, age, sex and site.",
        "none": "Facts that are not in the table were not tested.",
    },
    "missed": {
        "power": f"{_MISSED} a fact is found with a power of 80 % if its {{measure}} is "
        f"{{detectable}} or more; {_ENOUGH}",
        "no power": f"{_MISSED} no fact is found with a power of 80 %; {_ENOUGH}",
        "untested": "What could have been missed: any difference, because no fact was tested.",
    },
    "evidence": {
        "by site": "The EEG was scored with {folds}. Its numbers are those at held-out sites.",
        "acquisition found": "How participants were recorded, {n_acquisition} tested: "
        "{acquisition_rows}.",
        "acquisition none": "How participants were recorded: of {n_acquisition} tested none "
        "is found to be associated with {diagnosis}.",
        "acquisition untested": "How participants were recorded was not tested: no fact of it "
        "varies, or there is none.",
        "participants found": "Who was recorded, {n_participants} tested: {participants_rows}.",
        "participants none": "Who was recorded: of {n_participants} tested none is found to "
        "be associated with {diagnosis}.",
        "participants untested": "Who was recorded was not tested: the table has no age, sex or "
        "site that varies. A manifest adds them.",
        "pair": "{pair} are associated with {diagnosis} jointly, not one by one (corrected p "
        "{p}).",
        "carries": "{Within} the EEG's prediction follows {fact} (p {p}).",
        "carries not": "{Within} the EEG's prediction is not shown to follow {fact} (p {p}).",
        "carries untestable": "Whether the EEG's prediction follows {fact} cannot be tested: "
        "{within} there is hardly a difference.",
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
        "mistakes": "{mistake}, {measure} over samples would be {auc:.2f} instead of "
        "{correct:.2f}.",
        "shuffled": "Permuted labels give {measure} {shuffled}, within the 95 % band of chance "
        "({band}).",
        "shuffled above chance": "Permuted labels give {measure} {shuffled}, above the 95 % band "
        "of chance ({band}): there is a leak.",
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


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame by the names of its columns."""
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def title_of(audit: Audit) -> str:
    """Return the title of a verdict."""
    return TITLES[audit.why].format(**_values(audit))


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
    verdict = " ".join([f"{title_of(audit)}.", *say(audit, "reason", "consequence")])
    return [verdict, *say(audit, "missed", "evidence", "adjusted", "leaks")]


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
        once[f"{family} none"] = tested and not audit.associated(family)
        once[f"{family} untested"] = not tested
    once |= {
        "participants adjusted": bool(audit.regressed) and audit.why == "participants",
        "participants unadjusted": not audit.regressed and audit.why == "participants",
        "body": audit.level == "red" and bool(_bodily(audit)),
        "power": bool(audit.missed) and audit.missed["auc"] < NOTHING_FOUND,
        "no power": bool(audit.missed) and audit.missed["auc"] >= NOTHING_FOUND,
        "untested": not audit.missed,
        "by site": audit.folds == "site",
        "unused": bool(audit.unused),
        "named": bool(audit.named),
        "no match": bool(matched) and not pairs,
        "few matches": pairs and not decided,
        "failed match": pairs and decided and matched["failed"],
        "match": pairs and decided and not matched["failed"],
        "undecided match": bool(audit.suspects) and not decided and not audit.score,
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
            for name, mistake in MISTAKES.items()
            if correct and leaks.get(name)
        ],
        "headers": [
            {"header": say_variable(name), "number": len(who), "who_has_it": listing(who, 10)}
            for name, who in (leaks.get("headers") or {}).items()
            if who
        ],
    }


def _bodily(audit: Audit) -> list[str]:
    """Return associated facts in which the participant's body has a part."""
    return [name for name in audit.associated("acquisition") if kind_of(name) == "signal"]


def _capitalised(names: Sequence[str]) -> str:
    text = listing(names)
    return text[:1].upper() + text[1:]


def _values(audit: Audit) -> dict[str, Any]:
    """Return what is filled into sentences; empty where there is nothing."""
    matched, regressed, leaks = audit.matched, audit.regressed, audit.leaks
    score_text = partial(_score, audit)
    how, who = (audit.associated(family) for family in FAMILIES)
    families = audit.variables["family"].tolist()
    n_of = {f"n_{name}": families.count(name) for name in FAMILIES} | {"n_facts": len(families)}
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
    to_find = CONCORDANCE_TO_FIND if audit.score else AUC_TO_FIND
    below = audit.missed.get("to_find", to_find) < to_find
    kind = "score" if audit.score else "classes"
    words = {
        name: text.format(groups=listing(audit.classes), score=audit.score)
        for name, text in _WORDS[kind].items()
    }
    return {
        **words,
        "Within": words["within"][:1].upper() + words["within"][1:],
        "n": sum(audit.n_subjects),
        "counts": f"{sum(audit.n_subjects)} participants"
        + ("" if audit.score else f" ({count_classes(audit.n_subjects, audit)})"),
        **{name: f"{count} fact{'' if count == 1 else 's'}" for name, count in n_of.items()},
        "Acquisition": _capitalised([say_variable(name) for name in how]),
        "Participants": _capitalised([say_variable(name) for name in who]),
        "Body": _capitalised([say_variable(name) for name in _bodily(audit)]),
        "differ": words["differs" if len(how) == 1 else "differ"],
        "differ_who": words["differs" if len(who) == 1 else "differ"],
        "s": "s" if len(how) == 1 else "",
        "it": "it" if len(how) == 1 else "them",
        "it_who": listing([say_variable(name) for name in who]),
        "carried": _say_units(follows),
        "untestable": _say_units(untestable),
        "coincide": "" if audit.coincide is None else f"{audit.coincide:.2f}",
        "eeg": score_text(audit.eeg),
        "detectable": f"{audit.missed.get('auc', np.nan):.2f}",
        "to_find": f"{audit.missed.get('to_find', np.nan):.2f}",
        "as_eeg": _EXPLAINING.format(**words) if below else "",
        "n_needed": audit.missed.get("n"),
        "acquisition_rows": _say_rows(audit, "acquisition"),
        "participants_rows": _say_rows(audit, "participants"),
        "leading": _capitalised([describe_variable(first, audit)[1]]) if first else "",
        "leading_p": f"{first.get('p_corrected', np.nan):.2g}",
        "folds": say_folds(audit),
        "unused": listing(audit.unused),
        "named": listing(audit.named),
        "who": who_matches,
        "n_pairs": matched.get("n_pairs"),
        "fewest": confounding.FEWEST,
        "matched": score_text(matched),
        "matched_above": _above_chance(matched),
        "facts_of_pairs": f"{matched.get('acquisition_auc', np.nan):.2f}",
        "regressed": score_text(regressed),
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
    name, direction = describe_variable(row, audit)
    return f"{name}, {direction}: {_score(audit, row)}, corrected p {row['p_corrected']:.2g}"


def _say_levels(audit: Audit, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the EEG's AUC within each level of a variable."""
    return [
        f"{row['level']} ({count_classes(row['n_subjects'], audit)}): "
        f"{_score(audit, row) or 'too few'}"
        for row in rows
    ]


def describe_variable(row: Mapping[str, Any], audit: Audit) -> tuple[str, str]:
    """Return the label of a row of an audit's variables, and in which class it is higher.

    With a score, whether it rises with it.
    """
    name, words = say_variable(row["variable"]), ("higher", "lower")
    if row["shape"] == "extremes":
        words = ("farther from the median", "nearer to the median")
    if row["level"]:
        name, words = f"{name} ({row['level']})", ("more often", "less often")
    where = f"with higher {audit.score}" if audit.score else f"in {audit.classes[row['class']]}"
    return name, f"{words[not row['higher']]} {where}"


def count_classes(counts: Sequence[int], audit: Audit) -> str:
    """Return the number of subjects of each class as text; with a score, of participants."""
    names = audit.classes or ["participants"]
    return listing([f"{n} {name}" for n, name in zip(counts, names, strict=True)])


def _score(audit: Audit, score: Mapping[str, Any] | None) -> str:
    """Write an AUC with its CI; nothing where there is none."""
    if not score or score.get("auc") is None:
        return ""
    return f"{measure_of(audit)} {score['auc']:.2f} (95 % CI {_range(score)})"


def measure_of(audit: Audit) -> str:
    """Return what the numbers of an audit are called."""
    return _WORDS["score" if audit.score else "classes"]["measure"]


def _range(score: Mapping[str, Any] | None) -> str:
    return f"{score['low']:.2f} to {score['high']:.2f}".replace("-", "−") if score else ""


def _above_chance(score: Mapping[str, Any]) -> str:
    """Return how an AUC relates to one half; below it there is no evidence of a difference."""
    return "above" if score.get("low", 0.0) > 0.5 else "not shown to be above"
