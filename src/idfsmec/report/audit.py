"""An audit as plain data and sentences, before it is said in HTML."""

from __future__ import annotations

from typing import Any

from idfsmec.evaluation import Audit, Results
from idfsmec.evaluation.auditing.suspects import ALPHA
from idfsmec.evaluation.auditing.variables import say_variable
from idfsmec.evaluation.auditing.words import (
    TITLES,
    say_folds,
    say_leaks,
    say_left,
    say_variables,
    say_verdict,
)
from idfsmec.report.formatting import listing, plain_row
from idfsmec.report.scores import experiment_rows, lowest_rate, proposed_method

_KINDS = {
    "device": "device",
    "signal": "device or body",
    "study": "study",
    "person": "person",
}
_FIGURES = {
    "logistic": "recording, all variables (logistic regression)",
    "boosting": "recording, all variables (gradient boosting)",
    "leader": "recording, leading variable alone",
    "eeg": "EEG (first 20 features, untuned)",
}
_DONE = {
    "subject": "as it should be: people held out, features chosen inside the folds",
    "by_sample": "folds by sample: people on both sides",
    "before": "features chosen before splitting",
}


def summarise_audit(results: Results, table: str) -> dict[str, Any] | None:
    """What the page says of a table's audit; None where there was none."""
    audit = results.audits.get(table)
    if audit is None:
        return None
    return describe_audit(audit) | {"run": _of_run(results, table)}


def describe_audit(audit: Audit) -> dict[str, Any]:
    """An audit as plain data and sentences."""
    eeg, recording = audit.figures.get("eeg"), audit.figures.get(audit.recording)
    return {
        "level": audit.level,
        "open": audit.level in {"red", "amber"},
        "title": TITLES[audit.level],
        "verdict": say_verdict(audit),
        "people": listing(
            [f"{n} {name}" for n, name in zip(audit.n_people, audit.classes, strict=True)]
        ),
        "folds": say_folds(audit),
        "tiles": [
            ("Recording alone", recording, _about_recording(audit)),
            ("EEG", eeg, "Same people, same folds."),
            ("EEG, recorded alike", _alike(audit), _about_alike(audit)),
            ("EEG, regressed out", audit.regressed or None, _about_regressed(audit)),
        ],
        "sentences": [*say_variables(audit), *say_left(audit)],
        "figures": [{"name": _FIGURES[name], **one} for name, one in audit.figures.items()],
        "p_together": audit.p_together,
        "variables": [_row(dict(row), audit) for _, row in audit.variables.iterrows()],
        "leaks": say_leaks(audit),
        "claims": [
            {"name": words, **audit.leaks[name]}
            for name, words in _DONE.items()
            if audit.leaks.get(name)
        ],
        "run": None,
    }


def _row(row: dict[str, Any], audit: Audit) -> dict[str, Any]:
    where = audit.classes[row["class"]]
    more = (
        ("more often in" if row["higher"] else "less often in")
        if row["level"]
        else ("higher in" if row["higher"] else "lower in")
    )
    name = say_variable(row["variable"])
    return plain_row(row) | {
        "name": f"{name} ({row['level']})" if row["level"] else name,
        "kind": _KINDS[row["kind"]],
        "where": f"{more} {where}",
        "suspect": row["variable"] in audit.suspects,
    }


def _about_recording(audit: Audit) -> str:
    """Which figure it is, and whether luck gives it: the better of several is easily high."""
    what = _FIGURES.get(audit.recording, "")
    if len(audit.figures.keys() - {"eeg"}) > 1:
        what += ", the best of the recording's figures (the interval allows for that)"
    if audit.p_together is None or audit.recording not in {"logistic", "boosting"}:
        return what
    luck = "beyond luck" if audit.p_together < ALPHA else "no more than luck"
    return f"{what}; {luck}, as shuffled labels tell (p = {audit.p_together:.2g}, corrected)"


def _alike(audit: Audit) -> dict[str, Any] | None:
    return audit.alike if audit.alike.get("told") else None


def _about_alike(audit: Audit) -> str:
    if not audit.suspects:
        return "Not asked: nothing of the recording goes with the label."
    if not audit.alike.get("told"):
        return "Cannot be told: too few people have somebody alike in another group."
    return f"{audit.alike['n_pairs']} pairs of people whose recordings are alike."


def _about_regressed(audit: Audit) -> str:
    if not audit.suspects:
        return "Not asked: nothing of the recording goes with the label."
    if not audit.regressed:
        return "Was not computed."
    words = listing([say_variable(name) for name in audit.regressed["variables"]], 3)
    return f"{words}: taken out, as learned in training folds."


def _of_run(results: Results, table: str) -> dict[str, float] | None:
    """The benchmark's own figure of the EEG, tuned, at the lowest missing rate."""
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
