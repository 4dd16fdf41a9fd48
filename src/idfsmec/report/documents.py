"""Write what goes beside the report: model card, pages of subjects, audit page, checklist.

The items of the checklist follow three guidelines, in words of our own: TRIPOD+AI (prediction
models; BMJ 2024, 385:e078378), REFORMS (science that uses machine learning; Science Advances 2024,
10:eadk3452) and COBIDAS-MEEG (EEG and MEG; Nature Neuroscience 2020, 23:1473-1483). Journals ask
for the guidelines' own texts; the checklist collects what a folder of results already holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec._files import replacing
from idfsmec.audit import Audit, audits_of, sentences
from idfsmec.errors import listing
from idfsmec.evaluation import Results
from idfsmec.metrics import SCORE_METRICS
from idfsmec.recordings.recording import hash_file
from idfsmec.report import clinic, predicted, style
from idfsmec.report.data import TableResults, experiment_protocol, lowest_rate, task_scores
from idfsmec.report.text import (
    capitalise,
    describe_protocol,
    escape_markdown,
    format_range,
    format_score,
    metric_name,
    number_with_ci,
    percent,
    plain_records,
    share_with_ci,
    slugify,
    unique_slugs,
)
from idfsmec.report.verdict import relate_to_chance
from idfsmec.table import FeatureTable
from idfsmec.table.columns import column_label, feature_label
from idfsmec.table.verdicts import NOT_AUDITED

if TYPE_CHECKING:
    from idfsmec.prediction import Model
    from idfsmec.prediction.subjects import Predictions, SubjectPrediction

USE = (
    "For research on groups. It is not a medical device and makes no diagnosis. Do not use it to "
    "decide on a patient's treatment."
)
_SHARING = (
    "Hand out one model per table: two models of n and n - 1 participants give the values of the "
    "participant exactly."
)
_CALIBRATION = (
    "Each point is a group of participants with similar probabilities, from models fitted and "
    "calibrated without them; bars are 95 % CI. On the line, probabilities equal observed "
    "frequencies."
)
_MOST_VOTES = 8
#: How predictions follow from participants held out, by whether a score is predicted.
_CALIBRATED = {
    False: "a participant's probability is calibrated on the others",
    True: "prediction intervals follow from errors on held-out participants",
}
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
    text = style.render_page("model.html", **card)
    with replacing(markdown, page) as (plain, html):
        plain.write_text(_markdown(card), encoding="utf-8")
        html.write_text(text, encoding="utf-8")
    return markdown, page


@style.literal_text
def plot_calibration(calibration: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw probabilities of held-out participants against observed frequencies.

    Parameters
    ----------
    calibration : mapping
        ``model.performance["calibration"]``.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = style.make_axes(ax, 4.6, 4.2)
    columns = ("predicted", "observed", "low", "high")
    predicted, observed, low, high = (
        np.array([group[name] for group in calibration["bins"]]) for name in columns
    )
    ax.plot([0, 1], [0, 1], color=style.BAND, linewidth=1.2, gid="perfect")
    ax.errorbar(
        predicted, observed, np.maximum([observed - low, high - observed], 0), marker="o",
        color=style.EMPHASIS, linewidth=1.6, elinewidth=1.0, gid="calibration",
    )  # fmt: skip
    texts = [
        f"{percent(group['predicted'])}: observed {share_with_ci(group, 'observed')}, "
        f"{group['n']} participants"
        for group in calibration["bins"]
    ]
    style.show_values(ax, predicted, observed, texts)
    label = calibration["class"]
    what = f"probability of {label}" if label else "probability of the predicted class"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=what, ylabel="share of participants")
    who = calibration.get("participants", "held-out participants")
    note = f"{who}, Brier score {calibration['brier']:.3f}"
    return style.style_axes(ax, "Calibration", note)


def metric_rows(model: Model) -> list[dict[str, Any]]:
    """Return the scores of a model: ``name``, and ``value``, ``ci``, ``chance_level`` as text."""
    return [
        values
        | {
            "name": metric_name(name),
            "value": format_score(name, values["mean"]),
            "ci": format_range(name, values["low"], values["high"]),
            "chance_level": format_score(name, values["chance"]),
            "scale": name not in (*SCORE_METRICS, "grade_kappa", "grade_auc"),
        }
        for name, values in model.performance.get("metrics", {}).items()
    ]


def _describe_model(model: Model, path: Path) -> dict[str, Any]:
    """Return the content of a card."""
    measured = model.performance
    metrics: Mapping[str, Any] = measured.get("metrics", {})
    what = f"{len(model.classes)} classes"
    if len(model.classes) == 2:
        what = " from ".join(map(str, model.classes))
    headline = f"{model.kind} separates {what}; its performance was not measured."
    if model.score is not None:
        headline = predicted.describe_model(model)
    if auc := metrics.get("roc_auc"):
        relation = relate_to_chance(auc["low"], model.audit.get("level"))
        headline = (
            f"{model.kind} separates {what} with an AUC of {auc['mean']:.2f} on held-out "
            f"participants: {relation}."
        )
    tables = _tables(model) if metrics else []
    return {
        "brand": "idfsmec model card",
        "title": path.stem,
        "chips": [
            f"{model.data.get('n_subjects')} participants",
            f"{len(model.channels)} channels",
            model.score or " / ".join(map(str, model.classes)),
        ],
        "headline": headline,
        "audit": model.audit or NOT_AUDITED,
        "use": USE,
        "metrics": metric_rows(model),
        "score": model.score,
        "channels": _bars(measured.get("channels", {})),
        "features": [{"name": column_label(name)} for name in measured.get("features", {})],
        "tables": tables,
        "named_tables": name_sections(tables),
        "facts": [
            *_model_facts(model),
            ("sharing", _SHARING),
            ("file", f"{path.name}, SHA-256 {hash_file(path)}"),
        ],
        "versions": list(model.versions.items()),
    }


class Table(NamedTuple):
    """A table of a card; the page shows the picture in its place, if there is one."""

    title: str
    text: str
    header: tuple[str, ...]
    rows: list[list[Any]]
    picture: dict[str, Any] | None = None


def name_sections(tables: Sequence[Table]) -> list[tuple[str, str]]:
    """Return the address and the name of each table's section, for the navigation."""
    return [(slugify(table.title), table.title.partition(",")[0]) for table in tables]


def _tables(model: Model) -> list[Table]:
    """Return the tables of a card of a model that was measured."""
    measured, calibration = model.performance, model.performance["calibration"]
    header: tuple[str, ...]
    tables = []
    if model.score is not None:
        numbers = predicted.held_out_frame(measured["held_out"])
        picture = style.make_figure(
            predicted.plot_observed(numbers, model.score), predicted.OBSERVED, numbers, "observed"
        )
        text, header, rows = predicted.interval_rows(model)
        agreement = predicted.OBSERVED + " " + predicted.say_slope(calibration["slope"])
        return [
            Table("Observed and predicted", agreement, (), [], picture),
            Table("Prediction intervals", text, header, rows),
        ]
    if clinical := measured.get("clinical"):
        counts = list(model.data["subjects"].values())
        tables = [Table(**clinic.score_table(clinical, model.classes, counts))]
        rows = [
            [percent(row["threshold"]), number_with_ci(row), f"{row['all']:.2f}"]
            for row in clinical["decision_curve"][1::2]
        ]
        header = (f"probability of {clinical['class']}", "net benefit (95 % CI)", "acting on all")
        picture = clinic.draw_decision_curve(clinical)
        tables.append(Table("Decision curve", clinic.CAPTION, header, rows, picture))
    if by_class := measured.get("by_class"):
        tables = [Table(**part) for part in clinic.class_tables(by_class)]
    rows = [
        [percent(group["predicted"]), share_with_ci(group, "observed"), group["n"]]
        for group in calibration["bins"]
    ]
    text = f"{_CALIBRATION} Brier score {calibration['brier']:.3f}."
    header = ("probability", "observed (95 % CI)", "participants")
    numbers = pd.DataFrame(calibration["bins"])
    picture = style.make_figure(plot_calibration(calibration), text, numbers, "calibration-figure")
    tables.append(Table("Calibration", text, header, rows, picture))
    rows = [
        [
            site["site"],
            site["n_subjects"],
            share_with_ci(site, "accuracy"),
            percent(site["chance"]),
        ]
        for site in measured.get("by_site", [])
    ]
    text = "One site was left out at a time: training included none of its participants."
    header = ("site", "participants", "accuracy (95 % CI)", "larger class")
    if rows:
        tables.append(Table("Sites left out", text, header, rows))
    rows = [[percent(share["share"]), number_with_ci(share)] for share in measured["by_share"]]
    text = "Held-out participants kept a random share of their channels."
    header = ("channels left", "AUC per participant (95 % CI)")
    return [*tables, Table("Missing channels", text, header, rows)]


def _model_facts(model: Model) -> list[tuple[str, str]]:
    """Return on whom and how the model was fitted, as names and values."""
    data, settings = model.data, model.settings
    subjects = data.get("subjects", {}).items()
    facts = [
        (
            "participants",
            ", ".join(f"{label}: {count}" for label, count in subjects)
            or f"{data.get('n_subjects')} with {model.score}",
        ),
        ("samples", f"{data.get('n_samples')}"),
        ("missing", f"{percent(data.get('share_missing'), 1)} of channel samples"),
        ("channels", ", ".join(model.channels)),
        ("features", f"{len(model.columns)} columns"),
        ("fitted", datetime.now(UTC).strftime("%Y-%m-%d")),
    ]
    if "epoch" in settings:
        facts.append(("epochs", f"{settings['epoch']:g} s"))
    if settings.get("bands"):
        bands = settings["bands"].items()
        facts.append(("bands", ", ".join(f"{n} {lo:g}-{hi:g} Hz" for n, (lo, hi) in bands)))
    if model.remembered:
        text = "whoever has a participant's values can test whether the model was trained on them"
        facts.append(("recognises its participants", f"by keyed hashes of rounded values; {text}"))
    if model.harmonizer is not None:
        names = listing(model.harmonizer.sites_.tolist(), most=10)
        controls = model.harmonizer.reference
        learned = "" if controls is None else f", learned from {controls} only"
        facts.append(("sites", f"{names}, harmonized in location and scale{learned}"))
    if model.adjuster is not None:
        known = model.adjuster.covariates_.items()
        is_spline = {name: not isinstance(of, list) and len(of) > 0 for name, of in known}
        names = listing(f"{name} (spline)" if is_spline[name] else name for name, _ in known)
        learned = model.adjuster.reference
        learned = "all participants" if learned is None else f"{learned} only"
        facts.append(("adjusted for", f"{names}, learned from {learned}; predictions need them"))
    if protocol := model.protocol:
        folds = f"on {protocol['n_splits']} subject-wise folds, repeated {protocol['n_repeats']} x"
        if protocol.get("folds") == "site":
            folds = f"with one of {protocol['n_splits']} sites left out at a time"
        if protocol.get("harmonize"):
            folds += ", sites harmonized from the training participants"
        if protocol.get("electrodes"):
            folds += f", {protocol['electrodes']} electrodes chosen from the training participants"
        folds += f" (seed {protocol['seed']})"
        facts.append(
            ("protocol", f"the whole fit {folds}; {_CALIBRATED[model.score is not None]}")
        )
    return facts


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


def _markdown(card: Mapping[str, Any]) -> str:
    lines = [f"# {escape_markdown(card['title'])}", "", escape_markdown(card["headline"]), ""]
    audit = card["audit"]
    lines += [f"**{escape_markdown(audit['title'])}.** {escape_markdown(audit['verdict'])}", ""]
    lines += ["## Intended use", "", USE, "", "## Performance on held-out participants", ""]
    header = ("per participant", "value", "95 % CI", "chance")
    rows = [[m["name"], m["value"], m["ci"], m["chance_level"]] for m in card["metrics"]]
    lines += _table(header, rows) or ["Not measured."]
    for table in card["tables"]:
        lines += ["", f"## {table.title}", "", escape_markdown(table.text), ""]
        lines += _table([escape_markdown(name) for name in table.header], table.rows)
    for title in ("channels", "features"):
        if card[title]:
            text = listing([item["name"] for item in card[title]], most=10)
            lines += ["", f"## {title.capitalize()} used most", "", f"{escape_markdown(text)}."]
    lines += ["", "## Data, protocol, versions", ""]
    lines += [f"- {name}: {escape_markdown(value)}" for name, value in card["facts"]]
    lines.append("- versions: " + ", ".join(f"{name} {v}" for name, v in card["versions"]))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a table of Markdown, a string per line; nothing without rows."""
    cells = [
        header,
        ["---"] * len(header),
        *([escape_markdown(cell) for cell in row] for row in rows),
    ]
    return [f"| {' | '.join(map(str, row))} |" for row in cells] if rows else []


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
    notes = [f"{capitalise(note)}." for note in predictions.notes]
    for page, prediction in zip(pages, predictions.subjects, strict=True):
        text = style.render_page(
            "subject.html", **_describe_subject(model, prediction), notes=notes
        )
        style.write_text(page, text)
    return pages


def _describe_subject(model: Model, prediction: SubjectPrediction) -> dict[str, Any]:
    from idfsmec.prediction.subjects import USUAL_SHARE  # imports what extracts features

    headline = "No prediction."
    if prediction.predicted is not None and model.score is not None:
        headline = f"Predicted {model.score}: {prediction.predicted:.1f}."
        if order := model.grades:
            headline = (
                f"Nearest grade: {prediction.grade} ({prediction.predicted:.1f}, where "
                f"{order[0]} is 0 and {order[-1]} {len(order) - 1})."
            )
    elif prediction.predicted is not None:
        headline = f"Probability of {prediction.label}: {percent(prediction.probability)}."
        if prediction.low < 1 / len(model.classes) < prediction.high:
            headline = f"Undecided. {headline}"
    red = model.audit.get("level") == "red"
    measured = [
        (
            m["name"],
            f"{m['value']} (95 % CI {m['ci']}; chance {m['chance_level']})"
            + ("; the recordings of the groups differ" if red and m["name"] == "AUC" else ""),
        )
        for m in metric_rows(model)
    ]
    share = percent(prediction.share_present)
    return {
        "brand": "idfsmec prediction",
        "title": prediction.subject,
        "chips": [f"{prediction.n_epochs} epochs", f"{share} of channels"],
        "headline": headline,
        "audit": model.audit or NOT_AUDITED,
        "use": USE,
        "warnings": [f"{capitalise(warning)}." for warning in prediction.warnings],
        "prediction": prediction,
        "score": model.score,
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
        "n_channels": len(model.channels),
        "facts": [*measured, *_model_facts(model)],
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
    leading = (f"Leading fact: {rows[0]['name']}", rows[0], "leading") if rows else None
    tiles: list[tuple[str, Mapping[str, Any] | None, str]] = [leading] if leading else []
    tiles.append(("EEG", audit.eeg or None, "eeg"))
    if audit.suspects:
        decided = audit.matched.get("estimable") and not audit.matched["failed"]
        if not audit.score:
            tiles.append(("EEG, matching facts", audit.matched if decided else None, "matched"))
        if audit.regressed:
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
        "tiles": [
            (name, score, " ".join(sentences.say(audit, part))) for name, score, part in tiles
        ],
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
    text = style.render_page(
        "audit_page.html",
        audit=described,
        title=f"{audit.score or 'Diagnosis'} or acquisition: {name}",
        brand="idfsmec audit",
        chips=[chip for chip in (described["subjects"], described["folds"]) if chip],
    )
    return style.write_text(Path(path), text, overwrite)


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
    return style.write_text(Path(path), "\n".join(lines) + "\n", overwrite)


def _answers(results: Results, tables: Mapping[str, FeatureTable]) -> dict[str, list[str]]:
    """Return the answers that results and tables contain, by section."""
    answers: dict[str, list[str]] = {section: [] for section in _QUESTIONS}
    audits = audits_of(results)
    for name, facts in results.tables.items():
        labels = ", ".join(f"{label} {n}" for label, n in facts["labels"].items())
        audit = audits.get(name)
        participants = f"{facts['n_subjects']} participants, "
        if audit is not None and audit.n_subjects:
            participants += f"{sentences.count_classes(audit.n_subjects, audit)}; "
        participants += f"{facts['n_samples']} samples ({labels})"
        answers["Participants"].append(_answer(name, participants, f"{T}, {R}, {C}"))
        recorded = (
            f"{len(facts['channels'])} channels ({listing(facts['channels'], 6)}), montage "
            f"{facts['montage'] or 'not recorded'}; {percent(facts['share_missing'], 1)} of "
            "channel samples missing"
        )
        answers["Recording"].append(_answer(name, recorded, f"{C}, {T}: missing data"))
        if name in tables and (recorded_as := _acquisition_facts(tables[name])):
            answers["Recording"].append(_answer(name, f"as recorded: {'; '.join(recorded_as)}", C))
        if audit is not None:
            evidence = [
                _answer(name, line.rstrip("."), C) for line in sentences.say_audit(audit)[1:]
            ]
            title = _answer(name, f"audit: {sentences.title_of(audit)}", f"{R}: leakage, {C}")
            answers["Interpretation"] += [title, *evidence]
    answers["Analysis"] = _analysis(results, tables)
    packages = (results.environment.get("versions") or {}).items()
    versions = ", ".join(f"{name} {version}" for name, version in packages) or "not recorded"
    answers["Sharing"] = [_answer("Software", versions, f"{R}: reproducibility, {T}")]
    if command := results.environment.get("command"):
        answers["Sharing"].append(_answer("Command", command, R))
    return answers


def _answer(subject: str, text: str, source: str) -> str:
    """Write an answer as Markdown, with the guideline that asks."""
    return f"**{escape_markdown(subject)}**: {escape_markdown(text)}. *({source})*"


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
            f"{metric_name(protocol.get('metric', 'subject_balanced_accuracy'))} and others, by "
            "sample and by participant, with 95 % CI for new participants"
        )
        lines += [_answer("Evaluation", folds, f"{T}, {R}: leakage")]
        lines += [_answer("Scores", scores, f"{T}, {R}")]
    for name in results.tables:
        for clinical in clinic.describe_clinical(TableResults(results, name)):
            lines.append(_answer(name, clinical["text"].rstrip("."), T))
            for group, counts, *scores in clinical["rows"]:
                named = zip(clinical["header"][2:], scores, strict=True)
                each = ", ".join(f"{score} {value}" for score, value in named if value != "")
                known = counts != ""
                participants = f"{group} ({clinical['header'][1]}: {counts})" if known else group
                lines.append(_answer(name, f"{participants}: {each}", T))
            if "curve" in clinical:
                lines.append(_answer(name, clinical["curve"].rstrip("."), T))
    return lines
