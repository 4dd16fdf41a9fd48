"""Describe audits, and write the audit page and the reporting checklist.

The items of the checklist follow three guidelines, in words of our own: TRIPOD+AI (prediction
models; BMJ 2024, 385:e078378), REFORMS (science that uses machine learning; Science Advances 2024,
10:eadk3452) and COBIDAS-MEEG (EEG and MEG; Nature Neuroscience 2020, 23:1473-1483). Journals ask
for the guidelines' own texts; the checklist collects what a folder of results already holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec.audit import Audit, audits_of, verdict
from idfsmec.audit.confounding import say_variable
from idfsmec.evaluation import Results
from idfsmec.report.clinic import summarise_clinical
from idfsmec.report.data import TableResults, experiment_protocol, lowest_rate, task_scores
from idfsmec.report.style import refuse_existing, render_page, write_text
from idfsmec.report.text import (
    capitalise,
    describe_protocol,
    escape_markdown,
    feature_label,
    listing,
    metric_name,
    percent,
    plain_records,
)
from idfsmec.table import FeatureTable

_CLAIMS = {
    "subject": "correct: participants held out, features selected inside the folds",
    "by_sample": "sample-wise folds: participants in training and test",
    "before": "features selected before splitting",
}

T, R, C = "TRIPOD+AI", "REFORMS", "COBIDAS-MEEG"

#: What only the authors know, by section, and which guideline asks.
_QUESTIONS: dict[str, list[str]] = {
    "Aim": [
        "What is predicted, for whom, when, and for which use? Is it a new model, or a "
        f"test of an old one? *({T}, {R})*",
        "Which population is the claim about, and why do these participants represent it? "
        f"*({R})*",
    ],
    "Participants": [
        "Where, when and how were participants recruited? Who was asked and did not take part? "
        f"Who was excluded, and why? *({T}, {C})*",
        f"How was the diagnosis made, by whom, and did they know the EEG? *({T}, {R})*",
        f"Were patients treated, and were controls matched? On what? *({T})*",
        f"Was the number of participants planned? How? *({T})*",
        f"Which ethics committee approved it, and what did participants consent to? *({C})*",
    ],
    "Recording": [
        "Which amplifier, cap and electrodes? Was it the same device, room and staff for all "
        f"groups? *({C})*",
        f"Which reference and ground, which filters in the hardware, which impedances? *({C})*",
        "What did participants do: eyes open or closed, how long, at what time of the day? "
        f"*({C})*",
    ],
    "Analysis": [
        "What was decided before the data were seen, and what after? Is there a registered "
        f"protocol? *({T}, {R})*",
        "Was anything (bad channels, epochs, features) chosen by looking at labels or at "
        f"participants who were later held out? *({R})*",
        "Is the model equally good for women and men, for young and old? What are its predictive "
        "values where it will be used? The model card of `idfsmec train` states both. "
        f"*({T})*",
    ],
    "Sharing": [
        f"Where are the data, the code and the model, and who may use them? *({T}, {R}, {C})*",
        f"Who paid, and who has an interest in the outcome? *({T})*",
        f"Were patients or the public involved? *({T})*",
    ],
    "Interpretation": [
        "To whom does the result not apply? What would have to be true for it to hold in another "
        f"clinic? *({T}, {R})*"
    ],
}
#: Acquisition facts of recordings, with their units.
_FACTS = {
    "sfreq": ("sampling rate", " Hz"),
    "duration": ("length", " s"),
    "n_recorded": ("channels in the file", ""),
    "line_amplitude": ("line noise", " µV"),
    "upper_edge": ("upper edge", " Hz"),
    "quantisation": ("quantisation step", " µV"),
}


def summarise_audit(table: TableResults) -> dict[str, Any] | None:
    """Describe a table's audit, with the benchmark's own score; None where there was none."""
    audit = audits_of(table.results).get(table.name)
    if audit is None:
        return None
    rows, run = table.all_rows(), None
    rows = rows[rows["method"] == table.main]
    if rows["subject_roc_auc"].notna().any():
        rows = lowest_rate(rows)
        names = {"auc": "subject_roc_auc", "balanced_accuracy": "subject_balanced_accuracy"}
        # As on the rest of the page: of each fold the setting that was tuned, not all of them.
        run = {key: task_scores(rows, name)["value"].mean() for key, name in names.items()}
        run["rate"] = rows["rate"].mean()
    return describe_audit(audit) | {"run": run}


def describe_audit(audit: Audit) -> dict[str, Any]:
    """Describe an audit as plain data and sentences."""
    matched, regressed = audit.matched, audit.regressed
    remaining: list[tuple[str, Any, str]] = []
    if matched.get("estimable") and not matched["failed"]:
        about = f"{matched['n_pairs']} pairs of participants with matching acquisition."
        remaining.append(("EEG, matched acquisition", matched, about))
    elif audit.suspects:
        failed = "The match has failed" if matched.get("estimable") else "Cannot be decided"
        remaining.append(("EEG, matched acquisition", None, f"{failed}: see below."))
    if audit.suspects and regressed:
        names = listing([say_variable(name) for name in regressed["variables"]], 3)
        about = f"Regressed out inside the folds: {names}."
        remaining.append(("EEG, acquisition regressed out", regressed, about))
    return {
        "level": audit.level,
        "open": audit.level in {"red", "amber"},
        "title": verdict.TITLES[audit.level],
        "verdict": " ".join(verdict.say_verdict(audit)),
        "subjects": verdict.count_classes(audit.n_subjects, audit),
        "folds": verdict.say_folds(audit),
        "tiles": [
            ("Acquisition alone", *_score_acquisition(audit)),
            ("EEG", audit.models.get("eeg"), "Same participants, same folds."),
            *remaining,
        ],
        "sentences": [*verdict.say_variables(audit), *verdict.say_left(audit)],
        "figures": [
            {"name": verdict.MODELS[name], **score} for name, score in audit.models.items()
        ],
        "p_together": audit.p_together,
        "variables": [_variable(row, audit) for row in plain_records(audit.variables)],
        "leaks": verdict.say_leaks(audit),
        "claims": [
            {"name": words, **audit.leaks[name]}
            for name, words in _CLAIMS.items()
            if audit.leaks.get(name)
        ],
        "run": None,
    }


def _variable(row: dict[str, Any], audit: Audit) -> dict[str, Any]:
    name, direction = verdict.describe_variable(row, audit.classes)
    kind = "device or body" if row["kind"] == "signal" else row["kind"]
    suspect = row["variable"] in audit.suspects
    return row | {"name": name, "kind": kind, "where": direction, "suspect": suspect}


def _score_acquisition(audit: Audit) -> tuple[dict[str, Any] | None, str]:
    """Return the AUC of acquisition and its model, with a CI only if the corrected test agrees.

    The corrected test decides, as for the verdict: a CI that excludes 0.5 beside a verdict that
    chance explains the AUC would say the opposite.
    """
    score, about = audit.models.get(audit.best_model), verdict.MODELS.get(audit.best_model, "")
    n_models = len(audit.models.keys() - {"eeg"})
    about = capitalise(f"{about}, the best of {n_models} models" if n_models > 1 else about)
    p = audit.p_together
    if score is None or p is None or audit.best_model == "leader":
        return score, f"{about}." if about else ""
    if p >= verdict.ALPHA or not audit.suspects:
        words, also = "Not significant", ""
        if p < verdict.ALPHA:
            words = "Not above chance"
            also = ", but the 95 % CI of the logistic regression includes 0.5"
        without_ci = {**score, "low": None, "high": None}
        return without_ci, f"{about}. {words} after Holm's correction (p = {p:.2g}{also})."
    choice = " The CI is corrected for the choice of the model." if n_models > 1 else ""
    return score, f"{about}. Significant after Holm's correction (p = {p:.2g}).{choice}"


def write_audit_page(
    audit: Audit, path: str | PathLike[str], *, name: str = "table", overwrite: bool = False
) -> Path:
    """Write an audit as one self-contained page.

    Parameters
    ----------
    audit : Audit
    path : path-like
        An HTML file.
    name : str
        What the page calls the table.
    overwrite : bool
        Whether to replace an existing page.
    """
    page = Path(path)
    refuse_existing(overwrite, page)
    about = describe_audit(audit)
    text = render_page(
        "audit_page.html",
        audit=about,
        title=f"Diagnosis or acquisition: {name}",
        brand="idfsmec audit",
        chips=[chip for chip in (about["subjects"], about["folds"]) if chip],
    )
    return write_text(page, text)


def write_reporting_checklist(
    path: str | PathLike[str],
    results: Results,
    tables: Mapping[str, FeatureTable] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write a reporting checklist with the answers that results and tables contain.

    Parameters
    ----------
    path : path-like
        A Markdown file.
    results : Results
    tables : mapping of name to FeatureTable, optional
        Add how features were computed and recordings were made.
    overwrite : bool
        Whether to replace an existing file.
    """
    checklist = Path(path)
    refuse_existing(overwrite, checklist)
    answers = _answers(results, tables or {})
    lines = [
        "# Reporting checklist",
        "",
        f"Items of {T}, {R} and {C}, in words of our own. Answers come from the results; boxes "
        "are questions that only the authors can answer.",
    ]
    for section, questions in _QUESTIONS.items():
        lines += ["", f"## {section}", ""]
        lines += [f"- {line}" for line in answers[section]]
        lines += [f"- [ ] {question}" for question in questions]
    return write_text(checklist, "\n".join(lines) + "\n")


def _answers(results: Results, tables: Mapping[str, FeatureTable]) -> dict[str, list[str]]:
    """Return the answers that results and tables contain, by section."""
    answers: dict[str, list[str]] = {section: [] for section in _QUESTIONS}
    audits = audits_of(results)
    for name, about in results.tables.items():
        labels = ", ".join(f"{label} {n}" for label, n in about["labels"].items())
        audit = audits.get(name)
        participants = f"{about['n_subjects']} participants, "
        if audit is not None and audit.n_subjects:
            participants += f"{verdict.count_classes(audit.n_subjects, audit)}; "
        participants += f"{about['n_samples']} samples ({labels})"
        answers["Participants"].append(_answer(name, participants, f"{T}, {R}, {C}"))
        recorded = (
            f"{len(about['channels'])} channels ({listing(about['channels'], 6)}), montage "
            f"{about['montage'] or 'not recorded'}; {percent(about['share_missing'], 1)} of "
            "channel samples missing"
        )
        answers["Recording"].append(_answer(name, recorded, f"{C}, {T}: missing data"))
        if name in tables and (facts := _acquisition_facts(tables[name])):
            answers["Recording"].append(_answer(name, f"as recorded: {'; '.join(facts)}", C))
        if audit is not None:
            evidence = [
                _answer(name, line.rstrip("."), C) for line in verdict.say_audit(audit)[1:]
            ]
            title = _answer(name, f"audit: {verdict.TITLES[audit.level]}", f"{R}: leakage, {C}")
            answers["Interpretation"] += [title, *evidence]
    answers["Analysis"] = _analysis(results, tables)
    packages = (results.environment.get("versions") or {}).items()
    versions = ", ".join(f"{name} {version}" for name, version in packages) or "not recorded"
    answers["Sharing"] = [_answer("Software", versions, f"{R}: reproducibility, {T}")]
    if command := results.environment.get("command"):
        answers["Sharing"].append(_answer("Command", command, R))
    return answers


def _answer(about: str, text: str, source: str) -> str:
    """Write an answer as Markdown, with the guideline that asks."""
    return f"**{escape_markdown(about)}**: {escape_markdown(text)}. *({source})*"


def _acquisition_facts(table: FeatureTable) -> list[str]:
    """Return the ranges of the acquisition facts of a table's recordings."""
    facts = [recording.get("facts") or {} for recording in table.info.get("recordings") or []]
    texts = [f"{len(facts)} recordings"] if facts else []
    for key, (words, unit) in _FACTS.items():
        values = [fact[key] for fact in facts if fact.get(key) is not None]
        if values:
            low, high = float(np.min(values)), float(np.max(values))
            span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
            texts.append(f"{words} {span}{unit}")
    formats = sorted({str(fact["format"]) for fact in facts if fact.get("format")})
    return [*texts, f"files: {', '.join(formats)}"] if formats else texts


def _analysis(results: Results, tables: Mapping[str, FeatureTable]) -> list[str]:
    lines = []
    for name, table in tables.items():
        steps = [
            f"{key} {table.info[key]}"
            for key in ("sfreq", "band_pass", "epoch", "overlap", "reference", "line_freq")
            if table.info.get(key) is not None
        ]
        names = listing(map(feature_label, table.features), 4)
        features = f"{len(table.features)} features per channel ({names})"
        text = "; ".join([features, *steps])
        lines.append(_answer(name, text, f"{C}, {R}: preprocessing"))
    protocol = experiment_protocol(results)
    if protocol.get("folds"):
        folds = (
            f"{describe_protocol(protocol)}; standardising, imputation and selection are learned "
            "inside training folds"
        )
        scores = (
            f"{metric_name(protocol.get('metric', 'balanced_accuracy'))} and others, by sample "
            "and by participant, with 95 % CI over folds and the 95 % band of chance"
        )
        lines += [_answer("Evaluation", folds, f"{T}, {R}: leakage")]
        lines += [_answer("Scores", scores, f"{T}, {R}")]
    for name in results.tables:
        if clinical := summarise_clinical(TableResults(results, name)):
            lines.append(_answer(name, clinical["text"].rstrip("."), T))
            for group, counts, *scores in clinical["rows"]:
                named = zip(clinical["header"][2:], scores, strict=True)
                each = ", ".join(f"{score} {value}" for score, value in named)
                about = f"{group} ({clinical['header'][1]}: {counts})"
                lines.append(_answer(name, f"{about}: {each}", T))
            lines.append(_answer(name, clinical["curve"].rstrip("."), T))
    return lines
