"""Describe an audit for the report and as a page of its own, the verdict first."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from idfsmec._files import replacing
from idfsmec.audit import Audit, audits_of
from idfsmec.audit.variables import say_variable
from idfsmec.audit.verdict import (
    ALPHA,
    TITLES,
    say_folds,
    say_leaks,
    say_left,
    say_variables,
    say_verdict,
)
from idfsmec.errors import ExistingFileError
from idfsmec.evaluation import Results
from idfsmec.report.data import experiment_rows, lowest_rate, proposed_method
from idfsmec.report.style import render_page
from idfsmec.report.text import listing, plain_records

_KINDS = {
    "device": "device",
    "signal": "device or body",
    "study": "study",
    "subject": "subject",
}
_MODELS = {
    "logistic": "acquisition facts, all variables (logistic regression)",
    "boosting": "acquisition facts, all variables (gradient boosting)",
    "leader": "acquisition facts, leading variable alone",
    "eeg": "EEG (first 20 features, untuned)",
}
_CLAIMS = {
    "subject": "correct: subjects held out, features selected inside the folds",
    "by_sample": "sample-wise folds: subjects on both sides",
    "before": "features selected before splitting",
}
_NOT_NEEDED = "Not needed: no acquisition fact is associated with the label."


def summarise_audit(results: Results, table: str) -> dict[str, Any] | None:
    """Describe a table's audit, with the benchmark's own score; None where there was none."""
    audit = audits_of(results).get(table)
    return None if audit is None else describe_audit(audit) | {"run": _run(results, table)}


def describe_audit(audit: Audit) -> dict[str, Any]:
    """Describe an audit as plain data and sentences."""
    matched = audit.matched if audit.matched.get("estimable") else None
    return {
        "level": audit.level,
        "open": audit.level in {"red", "amber"},
        "title": TITLES[audit.level],
        "verdict": say_verdict(audit),
        "subjects": listing(
            [f"{n} {name}" for n, name in zip(audit.n_subjects, audit.classes, strict=True)]
        ),
        "folds": say_folds(audit),
        "tiles": [
            ("Acquisition alone", audit.models.get(audit.best_model), _about_acquisition(audit)),
            ("EEG", audit.models.get("eeg"), "Same subjects, same folds."),
            ("EEG, matched acquisition", matched, _about_matched(audit)),
            ("EEG, acquisition regressed out", audit.regressed or None, _about_regressed(audit)),
        ],
        "sentences": [*say_variables(audit), *say_left(audit)],
        "figures": [{"name": _MODELS[name], **score} for name, score in audit.models.items()],
        "p_together": audit.p_together,
        "variables": [_variable(row, audit) for row in plain_records(audit.variables)],
        "leaks": say_leaks(audit),
        "claims": [
            {"name": words, **audit.leaks[name]}
            for name, words in _CLAIMS.items()
            if audit.leaks.get(name)
        ],
        "run": None,
    }


def _variable(row: dict[str, Any], audit: Audit) -> dict[str, Any]:
    words = ("more often in", "less often in") if row["level"] else ("higher in", "lower in")
    name = say_variable(row["variable"])
    return row | {
        "name": f"{name} ({row['level']})" if row["level"] else name,
        "kind": _KINDS[row["kind"]],
        "where": f"{words[not row['higher']]} {audit.classes[row['class']]}",
        "suspect": row["variable"] in audit.suspects,
    }


def _about_acquisition(audit: Audit) -> str:
    """Name the model, and state whether chance explains it: the best of several is easily high."""
    what = _MODELS.get(audit.best_model, "")
    if len(audit.models.keys() - {"eeg"}) > 1:
        what += ", the best of these models (the CI accounts for that)"
    if audit.p_together is None or audit.best_model not in {"logistic", "boosting"}:
        return what
    chance = "above chance" if audit.p_together < ALPHA else "not above chance"
    return f"{what}; {chance} by permutation (p = {audit.p_together:.2g}, Holm)"


def _about_matched(audit: Audit) -> str:
    if not audit.suspects:
        return _NOT_NEEDED
    if not audit.matched.get("estimable"):
        return "Not estimable: too few subjects have a match in another group."
    return f"{audit.matched['n_pairs']} pairs of subjects with matching acquisition facts."


def _about_regressed(audit: Audit) -> str:
    if not audit.suspects:
        return _NOT_NEEDED
    if not audit.regressed:
        return "Was not computed."
    names = listing([say_variable(name) for name in audit.regressed["variables"]], 3)
    return f"{names}: regressed out, as learned in training folds."


def _run(results: Results, table: str) -> dict[str, float] | None:
    """Return the benchmark's own score of the EEG, tuned, at the lowest missing rate."""
    rows = experiment_rows(results, "accuracy", table)
    rows = rows[rows["method"] == proposed_method(results)]
    if rows.empty or rows["subject_roc_auc"].isna().all():
        return None
    rows = lowest_rate(rows)
    return {
        "auc": float(rows["subject_roc_auc"].mean()),
        "balanced_accuracy": float(rows["subject_balanced_accuracy"].mean()),
        "rate": float(rows["rate"].iloc[0]),
    }


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
    if page.exists() and not overwrite:
        raise ExistingFileError(page)
    about = describe_audit(audit)
    text = render_page(
        "audit_page.html",
        audit=about,
        title=f"Diagnosis or acquisition: {name}",
        brand="idfsmec audit",
        chips=[chip for chip in (about["subjects"], about["folds"]) if chip],
    )
    with replacing(page) as (beside,):
        beside.write_text(text, encoding="utf-8")
    return page
