"""Write what goes beside the report: model card, pages of subjects, audit page, checklist.

The items of the checklist follow three guidelines, in words of our own: TRIPOD+AI (prediction
models; BMJ 2024, 385:e078378), REFORMS (science that uses machine learning; Science Advances 2024,
10:eadk3452) and COBIDAS-MEEG (EEG and MEG; Nature Neuroscience 2020, 23:1473-1483). Journals ask
for the guidelines' own texts; the checklist collects what a folder of results already holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idfsmec.audit import Audit, audits_of, sentences
from idfsmec.errors import listing
from idfsmec.evaluation import Results
from idfsmec.recordings.recording import hash_file
from idfsmec.report import clinic, predicted, style
from idfsmec.report.data import TableResults, experiment_protocol, lowest_rate, task_scores
from idfsmec.report.text import (
    describe_metric,
    describe_protocol,
    metric_name,
    number_with_ci,
    percent,
    plain_records,
    share_with_ci,
    unique_slugs,
)
from idfsmec.report.verdict import relate_to_chance
from idfsmec.table import FeatureTable
from idfsmec.table.columns import column_label
from idfsmec.table.verdicts import NOT_AUDITED

if TYPE_CHECKING:
    from idfsmec.prediction import Model
    from idfsmec.prediction.subjects import Predictions, SubjectPrediction

_MOST_VOTES = 8
_CLAIMS = {
    "subject": "correct: participants held out, features selected inside the folds",
    "by_sample": "sample-wise folds: participants in training and test",
    "before": "features selected before splitting",
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


def card_paths(path: str | PathLike[str]) -> tuple[Path, Path]:
    """Return where the card of a model file lies: Markdown, and the page."""
    return Path(path).with_suffix(".md"), Path(path).with_suffix(".html")


def write_model_card(
    model: Model, path: str | PathLike[str], *, overwrite: bool = False
) -> tuple[Path, Path]:
    """Write the card of a model beside its file.

    Parameters
    ----------
    model : Model
    path : path-like
        The file that the model was written to; its checksum is part of the card.
    overwrite : bool
        Whether to replace an existing card.

    Returns
    -------
    markdown, page : Path
    """
    markdown, page = card_paths(path)
    style.refuse_existing(overwrite, markdown, page)
    card = _describe_model(model, Path(path))
    plain = style.render("model.md", **card).replace("\N{NO-BREAK SPACE}", " ")
    style.write_texts({markdown: plain, page: style.render("model.html", **card)})
    return markdown, page


def metric_rows(model: Model) -> list[dict[str, Any]]:
    """Return the scores of a model: ``name``, and ``value``, ``ci``, ``chance_level`` as text."""
    metrics = model.performance.get("metrics", {})
    return [describe_metric(name, values) for name, values in metrics.items()]


def _describe_model(model: Model, path: Path) -> dict[str, Any]:
    """Return the content of a card."""
    measured = model.performance
    _, *facts = said = _say_model(model, path)
    return {
        "brand": "idfsmec model card",
        "title": path.stem,
        "chips": [
            f"{model.data.get('n_subjects')} participants",
            f"{len(model.channels)} channels",
            model.score or " / ".join(map(str, model.classes)),
        ],
        "headline": said[0][1],
        "verdicts": [(model.audit or NOT_AUDITED, "")],
        "metrics": metric_rows(model),
        "score": model.score,
        "channels": _bars(measured.get("channels", {})),
        "features": [{"name": column_label(name)} for name in measured.get("features", {})],
        "parts": _parts(model) if measured.get("metrics") else [],
        "facts": facts,
        "versions": list(model.versions.items()),
    }


def _say_model(model: Model, path: Path | None = None) -> list[tuple[str, str]]:
    """Return the headline of a card, and on whom and how the model was fitted."""
    main = "roc_auc" if model.score is None else "subject_r2"
    measured = model.performance.get("metrics", {}).get(main)
    relation = ""
    if measured:
        level = model.audit.get("level")
        relation = predicted.relate_to_mean(measured["low"])
        if model.score is None:
            relation = relate_to_chance(measured["low"], level)
    covariates = {} if model.adjuster is None else model.adjuster.covariates_
    said = style.sentences_of(
        "model.txt",
        model=model,
        measured=measured,
        relation=relation,
        # Splines have knots; other covariates have the list of their values, or nothing.
        covariates=[
            f"{name} (spline)" if not isinstance(of, list) and len(of) > 0 else name
            for name, of in covariates.items()
        ],
        today=datetime.now(UTC).strftime("%Y-%m-%d"),
        path=path,
        digest=hash_file(path) if path else "",
    )
    return list(said.items())


def _parts(model: Model) -> list[dict[str, Any]]:
    """Return figures and tables of a card of a model that was measured."""
    measured, calibration = model.performance, model.performance["calibration"]
    if model.score is not None:
        return predicted.agreement_parts(model)
    parts = []
    if clinical := measured.get("clinical"):
        counts = list(model.data["subjects"].values())
        parts = [
            clinic.score_table(clinical, model.classes, counts),
            clinic.decision_part(clinical),
        ]
    if by_class := measured.get("by_class"):
        parts = clinic.class_tables(by_class)
    parts.append(clinic.calibration_part(calibration, "calibration"))
    sites = [
        {
            "site": site["site"],
            "participants": site["n_subjects"],
            "accuracy (95 % CI)": share_with_ci(site, "accuracy"),
            "larger class": percent(site["chance"]),
        }
        for site in measured.get("by_site", [])
    ]
    if sites:
        parts.append(style.tabulate("Sites left out", style.captions()["sites-left-out"], sites))
    shares = [
        {
            "channels left": percent(share["share"]),
            "AUC per participant (95 % CI)": number_with_ci(share),
        }
        for share in measured["by_share"]
    ]
    text = style.captions()["missing-channels"]
    return [*parts, style.tabulate("Missing channels", text, shares)]


def _bars(values: Mapping[str, float], *, signed: bool = False) -> list[dict[str, Any]]:
    """Return values by name for the template's bars, the longest of length 1."""
    largest = max(map(abs, values.values()), default=0.0) or 1.0
    digits = int(np.clip(1 - np.floor(np.log10(largest)), 2, 4))  # two of the largest are shown
    sign = "+" if signed else ""
    return [
        {
            "name": name,
            "relative": abs(value) / largest,
            "value": f"{value:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}"),
        }
        for name, value in values.items()
    ]


def write_subject_pages(
    model: Model, predictions: Predictions, folder: str | PathLike[str], *, overwrite: bool = False
) -> list[Path]:
    """Write a page about every subject.

    Parameters
    ----------
    model : Model
    predictions : Predictions
        What the model predicted.
    folder : path-like
        Where the pages go, made if need be; each is named after the subject.
    overwrite : bool
        Whether to replace existing pages.

    Returns
    -------
    list of Path
        In the order of the participants.
    """
    slugs = unique_slugs([prediction.subject for prediction in predictions.subjects])
    pages = [Path(folder) / f"{slug}.html" for slug in slugs]
    style.refuse_existing(overwrite, *pages)
    facts = [*_performance(model), *_say_model(model)[1:]]
    for page, prediction in zip(pages, predictions.subjects, strict=True):
        content = _describe_subject(model, prediction) | {"facts": facts}
        text = style.render("subject.html", **content, notes=predictions.notes)
        style.write_texts({page: text})
    return pages


def _performance(model: Model) -> list[tuple[str, str]]:
    """Return the scores of a model by name."""
    red = "; the recordings of the groups differ" if model.audit.get("level") == "red" else ""
    return [
        (
            row["name"],
            f"{row['value']} (95 % CI {row['ci']}; chance {row['chance_level']})"
            f"{red if row['name'] == 'AUC' else ''}",
        )
        for row in metric_rows(model)
    ]


def _describe_subject(model: Model, prediction: SubjectPrediction) -> dict[str, Any]:
    """Return the content of a subject's page, without facts of the model."""
    from idfsmec.prediction.subjects import USUAL_SHARE  # imports what extracts features

    share = percent(prediction.share_present)
    return {
        "brand": "idfsmec prediction",
        "title": prediction.subject,
        "chips": [f"{prediction.n_epochs} epochs", f"{share} of channels"],
        "headline": style.sentences_of("subject.txt", model=model, prediction=prediction)[
            "headline"
        ],
        "verdicts": [(model.audit or NOT_AUDITED, "training data")],
        "warnings": prediction.warnings,
        "prediction": prediction,
        "model": model,
        "prior": listing(
            f"{percent(s)} {c}" for s, c in zip(model.prior, model.classes, strict=True)
        ),
        "usual": USUAL_SHARE,
        "low": prediction.low if np.isfinite(prediction.low) else None,
        "votes": _bars(dict(list(prediction.votes.items())[:_MOST_VOTES]), signed=True),
        "probabilities": [
            {"name": str(label), "relative": value, "value": percent(value)}
            for label, value in prediction.probabilities.items()
            if len(model.classes) > 2
        ],
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
    rows = [_variable(row, audit) for row in plain_records(audit.variables)]
    tiles: list[tuple[str, Mapping[str, Any] | None, str]] = [
        (f"Leading fact: {row['name']}", row, "leading") for row in rows[:1]
    ]
    tiles.append(("EEG", audit.eeg or None, "eeg"))
    if audit.suspects and not audit.score:
        decided = audit.matched.get("estimable") and not audit.matched["failed"]
        tiles.append(("EEG, matching facts", audit.matched if decided else None, "matched"))
    if audit.suspects and audit.regressed:
        tiles.append(("EEG, facts regressed out", audit.regressed, "regressed"))
    return {
        "level": audit.level,
        "measure": sentences.measure_of(audit),
        "open": audit.level in {"red", "amber"},
        "title": sentences.title_of(audit),
        "verdict": " ".join(sentences.say(audit, "reason", "consequence")),
        "missed": " ".join(sentences.say(audit, "missed")),
        "subjects": sentences.count_classes(audit.n_subjects, audit),
        "folds": sentences.say_folds(audit),
        "tiles": [(name, score, " ".join(sentences.say(audit, of))) for name, score, of in tiles],
        "sentences": sentences.say(audit, "evidence", "adjusted"),
        "variables": rows,
        "leaks": sentences.say(audit, "leaks"),
        "claims": [
            {"name": words, **audit.leaks[name]}
            for name, words in _CLAIMS.items()
            if audit.leaks.get(name) and not audit.score
        ],
        "run": None,
    }


def _variable(row: dict[str, Any], audit: Audit) -> dict[str, Any]:
    name, direction = sentences.describe_variable(row, audit)
    kind = "device or body" if row["kind"] == "signal" else row["kind"]
    suspect = row["variable"] in audit.suspects
    return row | {"name": name, "kind": kind, "where": direction, "suspect": suspect}


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
    described = describe_audit(audit)
    text = style.render(
        "audit_page.html",
        audit=described,
        title=f"{audit.score or 'Diagnosis'} or acquisition: {name}",
        brand="idfsmec audit",
        chips=[chip for chip in (described["subjects"], described["folds"]) if chip],
    )
    return style.write_texts({Path(path): text}, overwrite)


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
    audits, known, protocol = audits_of(results), tables or {}, experiment_protocol(results)
    answers = [
        {
            "name": name,
            "facts": facts,
            "audit": audits.get(name),
            "features": known.get(name),
            "acquisition": _acquisition_facts(known[name]) if name in known else [],
            "clinical": clinic.describe_clinical(TableResults(results, name)),
        }
        for name, facts in results.tables.items()
    ]
    text = style.render(
        "checklist.md",
        tables=answers,
        sentences=sentences,
        protocol=describe_protocol(protocol) if protocol.get("folds") else "",
        metric=metric_name(protocol.get("metric", "subject_balanced_accuracy")),
        versions=results.environment.get("versions") or {},
        command=results.environment.get("command"),
    )
    return style.write_texts({Path(path): text}, overwrite)


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
