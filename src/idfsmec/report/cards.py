"""Write the card of a model (Markdown and page), and a page about every predicted subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from idfsmec._files import replacing
from idfsmec.audit.verdict import NOT_AUDITED
from idfsmec.prediction import Model, SiteHarmonizer
from idfsmec.prediction.model import Predictions, SubjectPrediction, file_checksum
from idfsmec.report import style
from idfsmec.report.text import (
    capitalise,
    column_label,
    format_range,
    format_score,
    listing,
    metric_name,
    percent,
    unique_slugs,
)

USE = (
    "For research on groups. It is no medical device and makes no diagnosis: it must not decide "
    "on a patient's treatment."
)
_CALIBRATION = (
    "Each point is a group of participants with similar probabilities, from models fitted "
    "without them; bars are 95 % CI. On the line, probabilities equal observed frequencies."
)
#: How close probabilities count as similar.
_SIMILAR = 0.1
_MOST_VOTES = 8
_AUC = "roc_auc"


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
    picture = None
    if card["bins"]:
        ax = plot_calibration(model.performance["calibration"])
        picture = style.save_figure(ax, f"Calibration. {_CALIBRATION}", None, "calibration")
    text = style.render_page("model.html", **card, picture=picture)
    with replacing(markdown, page) as (plain, html):
        plain.write_text(_markdown(card), encoding="utf-8")
        html.write_text(text, encoding="utf-8")
    return markdown, page


@style.literal_text
def plot_calibration(calibration: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw probabilities of participants held out against observed frequencies.

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
    what = f"probability of {label}" if label is not None else "probability of the predicted class"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=what, ylabel="share of participants")
    note = f"participants held out, Brier score {calibration['brier']:.3f}"
    return style.style_axes(ax, "Calibration", note)


def _describe_model(model: Model, path: Path) -> dict[str, Any]:
    """Return the content of a card."""
    measured = model.performance
    calibration = measured.get("calibration", {})
    metrics: Mapping[str, Any] = measured.get("metrics", {})
    what = f"{len(model.classes)} classes"
    if len(model.classes) == 2:
        what = " from ".join(map(str, model.classes))
    headline = f"{model.kind} that separates {what}; its performance was not measured."
    if auc := metrics.get("roc_auc"):
        verdict = "above chance" if auc["low"] > auc["chance_high"] else "not clearly above chance"
        headline = (
            f"{model.kind} that separates {what} with an AUC of {auc['mean']:.2f} on participants "
            f"held out: {verdict}{_red(model)}."
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
        "metrics": [
            values
            | {
                "name": metric_name(name),
                "value": format_score(name, values["mean"]),
                "ci": format_range(name, values["low"], values["high"]),
                "chance": format_range(name, values["chance_low"], values["chance_high"]),
            }
            for name, values in metrics.items()
        ],
        "channels": _bars(measured.get("channels", {})),
        "features": [{"name": column_label(name)} for name in measured.get("features", {})],
        "calibration": _CALIBRATION,
        "bins": calibration.get("bins", []),
        "brier": calibration.get("brier"),
        "shares": measured.get("by_share", []),
        "sites": measured.get("by_site", []),
        "facts": [*_model_facts(model), ("file", f"{path.name}, SHA-256 {file_checksum(path)}")],
        "versions": list(model.versions.items()),
    }


def _red(model: Model) -> str:
    """Return what stands beside each AUC of a model whose table has a red audit."""
    if model.audit.get("level") != "red":
        return ""
    return "; acquisition separates the groups as well as the EEG does"


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
        facts.append(("sites", _describe_sites(model.harmonizer)))
    if protocol := model.protocol:
        how = f"on {protocol['n_splits']} subject-wise folds, repeated {protocol['n_repeats']} x"
        if protocol.get("folds") == "site":
            how = f"with one of {protocol['n_splits']} sites left out at a time"
        if protocol.get("harmonize"):
            how += ", sites harmonized by the training participants"
        if protocol.get("electrodes"):
            how += f", {protocol['electrodes']} electrodes chosen by the training participants"
        seed = f"(seed {protocol['seed']}); a subject's probability is the mean over its epochs"
        facts.append(("protocol", f"the whole fit {how} {seed}"))
    return facts


def _describe_sites(harmonizer: SiteHarmonizer) -> str:
    text = f"{listing(harmonizer.sites_.tolist(), most=10)}, harmonized in location and scale"
    if harmonizer.reference is not None:
        text += f", learned from {harmonizer.reference} only"
    if harmonizer.unseen == "keep":
        return f"{text}; other sites stay as they are"
    return (
        f"{text}; a new site is harmonized by its own samples if it has {harmonizer.min_samples} "
        "or more at once, and stays as it is otherwise"
    )


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
    lines = [f"# {_escape(card['title'])}", "", _escape(card["headline"]), ""]
    audit = card["audit"]
    lines += [f"**{_escape(audit['title'])}.** {_escape(audit['verdict'])}", ""]
    lines += ["## Intended use", "", USE, "", "## Performance on participants held out", ""]
    header = ("by participant", "value", "95 % CI", "chance (95 %)")
    rows = [[m["name"], m["value"], m["ci"], m["chance"]] for m in card["metrics"]]
    lines += _table(header, rows) or ["It was not measured."]
    header = ("probability", "observed", "95 % CI", "participants")
    rows = [
        [percent(b["predicted"]), percent(b["observed"]), _ci(b), b["n"]] for b in card["bins"]
    ]
    if rows:
        lines += ["", "## Calibration", "", card["calibration"], "", *_table(header, rows)]
        lines += ["", f"Brier score {card['brier']:.3f}."]
    sites = [
        [s["site"], s["n_subjects"], percent(s["accuracy"]), _ci(s), _chance(s)]
        for s in card["sites"]
    ]
    shares = [
        [
            percent(s["share"]),
            format_score(_AUC, s["mean"]),
            format_range(_AUC, s["low"], s["high"]),
        ]
        for s in card["shares"]
    ]
    for title, names, rows in (
        (
            "Sites left out",
            "site, participants, accuracy by participant, 95 % CI, chance (95 %)",
            sites,
        ),
        ("Missing channels", "channels left, AUC by participant, 95 % CI", shares),
    ):
        if rows:
            lines += ["", f"## {title}", "", *_table(names.split(", "), rows)]
    for title in ("channels", "features"):
        if card[title]:
            text = listing([item["name"] for item in card[title]], most=10)
            lines += ["", f"## {title.capitalize()} used most", "", f"{_escape(text)}."]
    lines += ["", "## Data, protocol, versions", ""]
    lines += [f"- {name}: {_escape(value)}" for name, value in card["facts"]]
    lines.append("- versions: " + ", ".join(f"{name} {v}" for name, v in card["versions"]))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a table of Markdown, a string per line; nothing without rows."""
    cells = [header, ["---"] * len(header), *([_escape(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(map(str, row))} |" for row in cells] if rows else []


def _ci(values: Mapping[str, Any]) -> str:
    return f"{percent(values['low'])} to {percent(values['high'])}"


def _chance(values: Mapping[str, Any]) -> str:
    return f"{percent(values['chance_low'])} to {percent(values['chance_high'])}"


def _escape(text: object) -> str:
    """Escape what Markdown would read as markup: names come from files of others."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|!" else c for c in str(text))


def write_subject_pages(
    model: Model,
    predictions: Predictions,
    folder: str | PathLike[str],
    *,
    overwrite: bool = False,
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
    predicted = prediction.predicted is not None
    headline = "No prediction was possible."
    if predicted:
        headline = f"{percent(prediction.probability)} {prediction.predicted}."
        if prediction.low < 1 / len(model.classes) < prediction.high:
            headline = f"Undecided: {headline}"
    metrics: Mapping[str, Any] = model.performance.get("metrics", {})
    measured = [
        (
            metric_name(name),
            f"{format_score(name, m['mean'])} (95 % CI {format_range(name, m['low'], m['high'])}; "
            f"chance up to {format_score(name, m['chance_high'])}){_red(model)}",
        )
        for name, m in metrics.items()
    ]
    share = percent(prediction.share_present)
    return {
        "brand": "idfsmec prediction",
        "title": prediction.subject,
        "chips": [f"{len(prediction.epochs)} epochs", f"{share} of channels"],
        "headline": headline,
        "audit": model.audit or NOT_AUDITED,
        "use": USE,
        "warnings": [f"{capitalise(warning)}." for warning in prediction.warnings],
        "prediction": prediction,
        "measured": bool(metrics),
        "low": prediction.low if np.isfinite(prediction.low) else None,
        "votes": _bars(dict(list(prediction.votes.items())[:_MOST_VOTES]), signed=True),
        "n_channels": len(model.channels),
        "similar": _describe_similar(model, prediction) if predicted else "",
        "facts": [*measured, *_model_facts(model)],
    }


def _describe_similar(model: Model, prediction: SubjectPrediction) -> str:
    """Describe the outcome of training participants of similar probability when held out."""
    held_out = model.performance.get("held_out")
    if not held_out:
        return ""
    code = model.classes.index(prediction.predicted)
    close = np.abs(np.array(held_out["left"])[0][:, code] - prediction.probability) <= _SIMILAR
    correct = int((np.array(held_out["true"])[close] == code).sum())
    if not close.any():
        return "Held out, none of the training participants had a probability close to this one."
    return (
        f"When held out, {int(close.sum())} of the {close.size} training participants had a "
        f"probability of {prediction.predicted} within {round(100 * _SIMILAR)} points of this "
        f"one; {correct} of them were {prediction.predicted}."
    )
