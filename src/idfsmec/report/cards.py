"""Write the card of a model (Markdown and page), and a page about every predicted subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from idfsmec._files import replacing
from idfsmec.audit.verdict import NOT_AUDITED
from idfsmec.prediction import Model
from idfsmec.prediction.subjects import USUAL_SHARE, Predictions, SubjectPrediction
from idfsmec.recordings.recording import hash_file
from idfsmec.report import clinic, style
from idfsmec.report.text import (
    capitalise,
    column_label,
    escape_markdown,
    format_range,
    format_score,
    listing,
    metric_name,
    percent,
    share_with_ci,
    unique_slugs,
)

USE = (
    "For research on groups. It is not a medical device and makes no diagnosis. Do not use it to "
    "decide on a patient's treatment."
)
_CALIBRATION = (
    "Each point is a group of participants with similar probabilities, from models fitted and "
    "calibrated without them; bars are 95 % CI. On the line, probabilities equal observed "
    "frequencies."
)
_MOST_VOTES = 8


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
    label = calibration["class"]
    what = f"probability of {label}" if label else "probability of the predicted class"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=what, ylabel="share of participants")
    note = f"held-out participants, Brier score {calibration['brier']:.3f}"
    return style.style_axes(ax, "Calibration", note)


def metric_rows(model: Model) -> list[dict[str, Any]]:
    """Return the scores of a model: ``name``, and ``value``, ``ci``, ``chance`` as text."""
    return [
        values
        | {
            "name": metric_name(name),
            "value": format_score(name, values["mean"]),
            "ci": format_range(name, values["low"], values["high"]),
            "chance": format_range(name, values["chance_low"], values["chance_high"]),
        }
        for name, values in model.performance.get("metrics", {}).items()
    ]


def _describe_model(model: Model, path: Path) -> dict[str, Any]:
    """Return the content of a card."""
    measured, red = model.performance, clinic.red_note(model.audit.get("level"))
    metrics: Mapping[str, Any] = measured.get("metrics", {})
    what = f"{len(model.classes)} classes"
    if len(model.classes) == 2:
        what = " from ".join(map(str, model.classes))
    headline = f"{model.kind} separates {what}; its performance was not measured."
    if auc := metrics.get("roc_auc"):
        above = auc["low"] > 0.5
        verdict = "above chance" if above else "not above chance, the 95 % CI includes 0.5"
        headline = (
            f"{model.kind} separates {what} with an AUC of {auc['mean']:.2f} on held-out "
            f"participants: {verdict}{red}."
        )
    return {
        "brand": "idfsmec model card",
        "title": path.stem,
        "chips": [
            f"{model.data.get('n_subjects')} participants",
            f"{len(model.channels)} channels",
            " / ".join(map(str, model.classes)),
        ],
        "headline": headline,
        "audit": model.audit or NOT_AUDITED,
        "use": USE,
        "metrics": metric_rows(model),
        "red": red,
        "channels": _bars(measured.get("channels", {})),
        "features": [{"name": column_label(name)} for name in measured.get("features", {})],
        "tables": _tables(model, red) if metrics else [],
        "facts": [*_model_facts(model), ("file", f"{path.name}, SHA-256 {hash_file(path)}")],
        "versions": list(model.versions.items()),
    }


class _Table(NamedTuple):
    """A table of a card; the page shows the picture in its place, if there is one."""

    title: str
    text: str
    header: tuple[str, ...]
    rows: list[list[Any]]
    picture: str = ""


def _tables(model: Model, red: str) -> list[_Table]:
    """Return the tables of a card of a model that was measured."""
    measured, calibration = model.performance, model.performance["calibration"]
    tables = _clinical_tables(model, red) if "clinical" in measured else []
    rows = [
        [percent(group["predicted"]), share_with_ci(group, "observed"), group["n"]]
        for group in calibration["bins"]
    ]
    text = f"{_CALIBRATION} Brier score {calibration['brier']:.3f}."
    header: tuple[str, ...] = ("probability", "observed (95 % CI)", "participants")
    picture = style.save_figure(plot_calibration(calibration), text, None, "calibration")
    tables.append(_Table("Calibration", text, header, rows, picture))
    rows = [
        [
            site["site"],
            site["n_subjects"],
            share_with_ci(site, "accuracy"),
            f"{percent(site['chance_low'])} to {percent(site['chance_high'])}",
        ]
        for site in measured.get("by_site", [])
    ]
    text = "One site was left out at a time: training included none of its participants."
    header = ("site", "participants", "accuracy (95 % CI)", "chance (95 %)")
    if rows:
        tables.append(_Table("Sites left out", text, header, rows))
    rows = [[percent(share["share"]), _number(share)] for share in measured["by_share"]]
    text = f"Held-out participants kept a random share of their channels{red}."
    header = ("channels left", "AUC per participant (95 % CI)")
    return [*tables, _Table("Missing channels", text, header, rows)]


def _clinical_tables(model: Model, red: str) -> list[_Table]:
    """Return clinical scores and decision curve, for all participants and for groups."""
    clinical = model.performance["clinical"]
    counts = list(model.data["subjects"].values())
    scored = _Table(**clinic.score_table(clinical, model.classes, counts, red))
    rows = [
        [percent(row["threshold"]), _number(row), f"{row['all']:.2f}"]
        for row in clinical["decision_curve"][1::2]
    ]
    text = clinic.caption(clinical)
    header = ("threshold", "net benefit (95 % CI)", "acting on all")
    picture = style.save_figure(clinic.plot_decision_curve(clinical), text, None, "decision")
    return [scored, _Table("Decision curve", text, header, rows, picture)]


def _number(values: Mapping[str, float]) -> str:
    return f"{values['mean']:.2f} ({values['low']:.2f} to {values['high']:.2f})"


def _model_facts(model: Model) -> list[tuple[str, str]]:
    """Return on whom and how the model was fitted, as names and values."""
    data, settings = model.data, model.settings
    subjects = data.get("subjects", {}).items()
    facts = [
        ("participants", ", ".join(f"{label}: {count}" for label, count in subjects)),
        ("samples", f"{data.get('n_samples')}"),
        ("missing", f"{percent(data.get('share_missing'), 1)} of channel samples"),
        ("channels", ", ".join(model.channels)),
        ("features", f"{len(model.columns)} columns"),
        ("fitted", model.created),
    ]
    if "epoch" in settings:
        facts.append(("epochs", f"{settings['epoch']:g} s"))
    if settings.get("bands"):
        bands = settings["bands"].items()
        facts.append(("bands", ", ".join(f"{n} {lo:g}-{hi:g} Hz" for n, (lo, hi) in bands)))
    if model.harmonizer is not None:
        names = listing(model.harmonizer.sites_.tolist(), most=10)
        controls = model.harmonizer.reference
        learned = "" if controls is None else f", learned from {controls} only"
        facts.append(("sites", f"{names}, harmonized in location and scale{learned}"))
    if protocol := model.protocol:
        how = f"on {protocol['n_splits']} subject-wise folds, repeated {protocol['n_repeats']} x"
        if protocol.get("folds") == "site":
            how = f"with one of {protocol['n_splits']} sites left out at a time"
        if protocol.get("harmonize"):
            how += ", sites harmonized from the training participants"
        if protocol.get("electrodes"):
            how += f", {protocol['electrodes']} electrodes chosen from the training participants"
        how += f" (seed {protocol['seed']})"
        calibrated = "a participant's probability is calibrated on the others"
        facts.append(("protocol", f"the whole fit {how}; {calibrated}"))
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
    header = (f"per participant{card['red']}", "value", "95 % CI", "chance (95 %)")
    rows = [[m["name"], m["value"], m["ci"], m["chance"]] for m in card["metrics"]]
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
    headline, red = "No prediction.", clinic.red_note(model.audit.get("level"))
    if prediction.predicted is not None:
        headline = f"Probability of {prediction.predicted}: {percent(prediction.probability)}."
        if prediction.low < 1 / len(model.classes) < prediction.high:
            headline = f"Undecided. {headline}"
    measured = [
        (m["name"], f"{m['value']} (95 % CI {m['ci']}; chance {m['chance']}){red}")
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
        "prior": listing(
            f"{percent(s)} {c}" for s, c in zip(model.prior, model.classes, strict=True)
        ),
        "usual": USUAL_SHARE,
        "low": prediction.low if np.isfinite(prediction.low) else None,
        "votes": _bars(dict(list(prediction.votes.items())[:_MOST_VOTES]), signed=True),
        "n_channels": len(model.channels),
        "facts": [*measured, *_model_facts(model)],
    }
