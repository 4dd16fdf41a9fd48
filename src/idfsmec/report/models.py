"""A model's card, in Markdown and as a page: on whom, how good, against what, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idfsmec._files import replacing
from idfsmec.errors import ExistingFileError
from idfsmec.prediction import Model, SiteHarmonizer
from idfsmec.prediction.model import file_checksum
from idfsmec.report._vector import draw_svgs, fix_layout
from idfsmec.report.figures import inline_svg
from idfsmec.report.formatting import feature_name, listing, metric_name, percent
from idfsmec.report.page import make_environment
from idfsmec.report.style import BAND, EMPHASIS, make_axes, style_axes

USE = (
    "For research on groups of people. It is no medical device and makes no diagnosis: nobody "
    "should be treated, or not treated, because of it."
)
_CALIBRATION = (
    "Each point is a group of people with similar probabilities, from models that had not seen "
    "them; bars are 95 % intervals. On the line, probabilities are as large as shares."
)


def card_paths(path: str | PathLike[str]) -> tuple[Path, Path]:
    """Where the card of a model file lies: Markdown, and the page.

    Examples
    --------
    >>> [one.name for one in card_paths("depression.skops")]
    ['depression.md', 'depression.html']
    """
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
        Whether to replace a card that is there.

    Returns
    -------
    markdown, page : Path
    """
    markdown, page = card_paths(path)
    for one in (markdown, page):
        if one.exists() and not overwrite:
            raise ExistingFileError(one)
    about = _about(model, Path(path))
    environment = make_environment()
    text = environment.get_template("model.html").render(**about, picture=_picture(model))
    with replacing(markdown, page) as (plain, html):
        plain.write_text(_markdown(about), encoding="utf-8")
        html.write_text(text, encoding="utf-8")
    return markdown, page


def plot_calibration(calibration: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw probabilities of people held out against the shares that came true.

    Parameters
    ----------
    calibration : mapping
        ``model.performance["calibration"]``.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = make_axes(ax, 4.6, 4.2)
    bins = calibration["bins"]
    given = np.array([one["predicted"] for one in bins])
    seen = np.array([one["observed"] for one in bins])
    low = seen - [one["low"] for one in bins]
    high = np.array([one["high"] for one in bins]) - seen
    ax.plot([0, 1], [0, 1], color=BAND, linewidth=1.2, gid="perfect")
    ax.errorbar(
        given, seen, np.maximum([low, high], 0), color=EMPHASIS, marker="o", linewidth=1.6,
        elinewidth=1.0, gid="calibration",
    )  # fmt: skip
    label = calibration["class"]
    what = f"probability of {label}" if label is not None else "probability of the predicted class"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=what, ylabel="share of people")
    return style_axes(
        ax, "Calibration", f"people held out, Brier score {calibration['brier']:.3f}"
    )


def _picture(model: Model) -> str | None:
    calibration = model.performance.get("calibration")
    if not calibration:
        return None
    figure = cast(Figure, plot_calibration(calibration).get_figure(root=True))
    try:
        fix_layout(figure)
        _, plain = draw_svgs(figure, "calibration")
    finally:
        plt.close(figure)
    return inline_svg(plain, f"Calibration. {_CALIBRATION}")


def _about(model: Model, path: Path) -> dict[str, Any]:
    """All that a card says."""
    found, data = model.performance, model.data
    metrics = [
        {"name": metric_name(name), **values} for name, values in found.get("metrics", {}).items()
    ]
    return {
        "brand": "idfsmec model card",
        "title": path.stem,
        "chips": [
            f"{data.get('n_subjects')} people",
            f"{len(model.channels)} channels",
            " / ".join(map(str, model.classes)),
        ],
        "headline": _headline(model),
        "use": USE,
        "metrics": metrics,
        "channels": make_bars(found.get("channels", {})),
        "features": [{"name": feature_name(one)} for one in found.get("features", {})],
        "calibration": _CALIBRATION,
        "bins": found.get("calibration", {}).get("bins", []),
        "brier": found.get("calibration", {}).get("brier"),
        "shares": found.get("by_share", []),
        "sites": found.get("by_site", []),
        "facts": [*model_facts(model), ("file", f"{path.name}, SHA-256 {file_checksum(path)}")],
        "versions": list(model.versions.items()),
    }


def _headline(model: Model) -> str:
    classes = " from ".join(map(str, model.classes[:2]))
    what = f"tells {classes}" if len(model.classes) == 2 else f"names {len(model.classes)} classes"
    measured = model.performance.get("metrics", {}).get("roc_auc")
    if not measured:
        return f"{model.kind} that {what}; how well was not measured."
    above = measured["low"] > measured["chance_high"]
    verdict = "above chance" if above else "not clearly above chance"
    return (
        f"{model.kind} that {what} with an AUC of "
        f"{percent(measured['mean'])} on people it had not seen: {verdict}."
    )


def model_facts(model: Model) -> list[tuple[str, str]]:
    """On whom and how it was fitted, as names and values."""
    data, settings = model.data, model.settings
    people = data.get("subjects", {})
    facts = [
        ("people", ", ".join(f"{label}: {count}" for label, count in people.items())),
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
        facts.append(("hospitals", _say_sites(model.harmonizer)))
    if model.protocol:
        facts.append(("protocol", _protocol(model.protocol)))
    return facts


def _say_sites(harmonizer: SiteHarmonizer) -> str:
    names = listing(harmonizer.sites_.tolist(), most=10)
    learned = "" if harmonizer.reference is None else f", learned from {harmonizer.reference} only"
    if harmonizer.unseen == "keep":
        return f"{names}, brought to one location and scale{learned}; others stay as they are"
    return (
        f"{names}, brought to one location and scale{learned}; a hospital never seen goes by its "
        f"own samples, if {harmonizer.min_samples} or more come at once, and stays as it is "
        "otherwise"
    )


def _protocol(protocol: Mapping[str, Any]) -> str:
    times = "once" if protocol["n_repeats"] == 1 else f"{protocol['n_repeats']} times"
    how = (
        f"with one of {protocol['n_splits']} hospitals left out at a time"
        if protocol.get("folds") == "site"
        else f"on {protocol['n_splits']} folds that keep people together, {times}"
    )
    alike = ", hospitals harmonized by the people trained on" if protocol.get("harmonize") else ""
    return (
        f"the whole fit repeated {how}{alike} (seed {protocol['seed']}); a person's probability "
        "is the mean over the epochs"
    )


def make_bars(values: Mapping[str, float], *, signed: bool = False) -> list[dict[str, Any]]:
    """Values by name for the template's bars, the longest of length 1."""
    largest = max(map(abs, values.values()), default=0.0) or 1.0
    digits = int(np.clip(1 - np.floor(np.log10(largest)), 2, 4))  # two of the largest are seen
    sign = "+" if signed else ""
    return [
        {
            "name": name,
            "relative": abs(value) / largest,
            "value": f"{value:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}"),
        }
        for name, value in values.items()
    ]


def _markdown(about: Mapping[str, Any]) -> str:
    lines = [
        f"# {_md(about['title'])}",
        "",
        _md(about["headline"]),
        "",
        "## Intended use",
        "",
        USE,
    ]
    lines += ["", "## Performance on people held out", ""]
    if about["metrics"]:
        lines += ["| by person | value | 95 % interval | guessing |", "|---|---|---|---|"]
    for one in about["metrics"]:
        low, high, worst, best = (
            percent(one[key]) for key in ("low", "high", "chance_low", "chance_high")
        )
        value = percent(one["mean"], 1)
        lines.append(f"| {one['name']} | {value} | {low} to {high} | {worst} to {best} |")
    if not about["metrics"]:
        lines.append("It was not measured.")
    lines += _markdown_tables(about)
    for title in ("channels", "features"):
        if about[title]:
            names = listing([one["name"] for one in about[title]], most=10)
            lines += ["", f"## {title.capitalize()} used most", "", f"{_md(names)}."]
    lines += ["", "## Data, protocol, versions", ""]
    lines += [f"- {name}: {_md(value)}" for name, value in about["facts"]]
    lines.append("- versions: " + ", ".join(f"{name} {one}" for name, one in about["versions"]))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _markdown_tables(about: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    if about["bins"]:
        lines += ["", "## Calibration", "", about["calibration"], ""]
        lines += ["| probability | share | 95 % interval | people |", "|---|---|---|---|"]
        lines += [
            f"| {percent(one['predicted'])} | {percent(one['observed'])} | {percent(one['low'])} "
            f"to {percent(one['high'])} | {one['n']} |"
            for one in about["bins"]
        ]
        lines += ["", f"Brier score {about['brier']:.3f}."]
    if about["sites"]:
        lines += ["", "## Hospitals left out", ""]
        lines += ["| hospital | people | accuracy by person | 95 % interval | guessing |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {_md(one['site'])} | {one['n_subjects']} | {percent(one['accuracy'])} | "
            f"{percent(one['low'])} to {percent(one['high'])} | {percent(one['chance_low'])} to "
            f"{percent(one['chance_high'])} |"
            for one in about["sites"]
        ]
    if about["shares"]:
        lines += ["", "## Missing channels", ""]
        lines += ["| channels left | ROC AUC by person | 95 % interval |", "|---|---|---|"]
        lines += [
            f"| {percent(one['share'])} | {percent(one['mean'], 1)} | {percent(one['low'])} to "
            f"{percent(one['high'])} |"
            for one in about["shares"]
        ]
    return lines


def _md(text: str) -> str:
    """Names come from files of others: what would be markup stays text."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|!" else c for c in str(text))
