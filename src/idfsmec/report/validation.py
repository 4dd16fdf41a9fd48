"""The validation of a model on other participants: its figures, sentences and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.axes import Axes

from idfsmec._files import write_csv, write_json
from idfsmec.errors import listing
from idfsmec.metrics import SCORE_METRICS
from idfsmec.report import clinic, predicted, style
from idfsmec.report.text import (
    describe_metric,
    metric_name,
    number_with_ci,
    percent,
    plain_records,
    say_counts,
    score_with_ci,
)
from idfsmec.table.verdicts import NOT_AUDITED

if TYPE_CHECKING:
    from idfsmec.evaluation import Validation
    from idfsmec.prediction import Model

#: What a validation writes into its folder.
FILES = ("validation.html", "validation.json", "predictions.csv", "reporting.md")
#: Columns of :func:`score_rows`.
HEADER = ("score", "here (95 % CI)", "model's card", "difference")
_CLASSES = ("roc_auc", "balanced_accuracy", "sensitivity", "specificity", "PPV", "NPV")
_TILES = ("roc_auc", "balanced_accuracy", *SCORE_METRICS[:2], "subject_mae")
_PLAIN = ("roc_auc", *SCORE_METRICS[1:])  # all others are shares


@style.literal_text
def plot_validation(validation: Validation, ax: Axes | None = None) -> Axes:
    """Draw the AUC of the model's card, of the validation, and of groups of its participants.

    Of a score it is R2, and of groups the mean error is on the page.

    Parameters
    ----------
    validation : Validation
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    measured = validation.measured
    rows, main = main_scores(measured), main_metric(measured)
    ax = style.make_axes(ax, 5.6, 1.6 + 0.28 * len(rows))
    colors = {"card of the model": style.INK, "validation": style.EMPHASIS}
    for place, row in enumerate(plain_records(rows)):
        color, estimate = colors.get(row["name"]), (row["mean"], row["low"], row["high"])
        text = f"{row['name']}: {score_with_ci(main, row)}"
        style.draw_estimate(ax, place, estimate, color or style.MUTED, bool(color), text)
    ax.axvline(0.5 if main == "roc_auc" else 0, color=style.MUTED, linewidth=1, linestyle=":")
    ax.set_yticks(range(len(rows)), rows["name"])
    ax.invert_yaxis()
    what = "R² against the mean of training"
    if main == "roc_auc":
        ax.set(xlim=(0, 1.02))
        what = "AUC per participant"
    ax.set(xlabel=f"{what}, with 95 % CI")
    note = "number of participants in brackets"
    return style.style_axes(ax, _short(measured), note, grid="x")


def main_metric(measured: Mapping[str, Any]) -> str:
    """Return the score that a validation is about first."""
    return "subject_r2" if "score" in measured else "roc_auc"


def _short(measured: Mapping[str, Any]) -> str:
    return "R²" if "score" in measured else "AUC"


def main_scores(measured: Mapping[str, Any]) -> pd.DataFrame:
    """Return mean and CI of the main score: on the card, here, and of groups."""
    main = main_metric(measured)
    rows = [row["card"] | {"name": "card of the model"} for row in measured["card"]
            if row["score"] == main]  # fmt: skip
    rows.append(measured["metrics"][main] | {"name": "validation"})
    rows += [
        group["auc"] | {"name": f"{group['by']} {group['group']} ({sum(group['n_subjects'])})"}
        for group in groups_of(measured)
        if group.get("auc", {}).get("mean") is not None
    ]
    ends = dict.fromkeys(("mean", "low", "high"), float)
    return pd.DataFrame(rows)[["name", *ends]].astype(ends)


def groups_of(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of participants, by sex, age, site and condition."""
    found: list[dict[str, Any]] = measured.get("clinical", measured)["groups"]
    return found


def describe_validation(validation: Validation) -> list[str]:
    """Return what was found as sentences, the first as a headline."""
    return list(_say(validation.measured).values())


def _say(measured: Mapping[str, Any]) -> dict[str, str]:
    """Return sentences by what they are about, as far as it was measured."""
    return style.sentences_of("validation.txt", measured=measured, main=main_metric(measured))


def score_rows(validation: Validation) -> list[list[str]]:
    """Return score, value here, on the card and difference, each with its 95 % CI, as text."""
    measured = validation.measured
    card = {row["score"]: row for row in measured["card"]}
    scores = measured["metrics"] | measured.get("clinical", {}).get("scores", {})
    rows = []
    for name in (*_CLASSES, *SCORE_METRICS[:-1]):
        if name in scores:
            row = [metric_name(name), score_with_ci(name, scores[name]), "", ""]
            if name in card:
                difference = card[name]["difference"]
                text = number_with_ci(difference)
                if name not in _PLAIN and difference["low"] is not None:
                    text = number_with_ci({end: 100 * of for end, of in difference.items()}, 0)
                row[2:] = score_with_ci(name, card[name]["card"]), text
            rows.append(row)
    for name, words in (("brier", "Brier score"), ("scaled_brier", "scaled Brier")):
        if name in scores:
            rows.append([words, number_with_ci(scores[name]), "", ""])
    return rows


def write_validation(
    model: Model,
    validation: Validation,
    folder: str | PathLike[str],
    *,
    name: str = "table",
    overwrite: bool = False,
) -> Path:
    """Write ``validation.html``, ``validation.json``, ``predictions.csv`` and ``reporting.md``.

    Parameters
    ----------
    model : Model
    validation : Validation
        Of :func:`idfsmec.evaluation.validate`.
    folder : path-like
        Made if need be.
    name : str
        What the page calls the table.
    overwrite : bool
        Whether to replace existing files.

    Returns
    -------
    Path
        The page.
    """
    page, data, predictions, reporting = (Path(folder) / file for file in FILES)
    style.refuse_existing(overwrite, page, data, predictions, reporting)
    content = _describe(model, validation, name)
    texts = {page: style.render("validation.html", **content)}
    texts[reporting] = style.render("reporting.md", **content)
    style.write_texts(texts)
    write_json(data, validation.measured)
    write_csv(predictions, validation.predictions)
    return page


def _describe(model: Model, validation: Validation, name: str) -> dict[str, Any]:
    """Return the content of the page, and of what is to be reported."""
    measured, said = validation.measured, _say(validation.measured)
    counts, left_out = say_counts(measured["n_subjects"]), measured["left_out"]
    metrics, card = measured["metrics"], {row["score"]: row["card"] for row in measured["card"]}
    facts = {
        "model": model.kind,
        "trained on": f"{model.data.get('n_subjects')} participants",
        "validated on": f"{name}; {counts}",
        "prevalence": percent(measured["prevalence"], 1) if "prevalence" in measured else "",
        "left out, without a channel of the model": listing(left_out["without_channel"], 10),
        "left out, trained on": listing(left_out["trained_on"], 10),
    }
    return {
        "brand": "idfsmec validation",
        "title": name,
        "chips": [f"{sum(measured['n_subjects'].values())} participants", counts],
        "headline": said["headline"],
        "verdicts": [
            (measured["audit"] or NOT_AUDITED, "validation data"),
            (model.audit or NOT_AUDITED, "training data"),
        ],
        "tiles": [
            describe_metric(score, metrics[score])
            | {"card": score_with_ci(score, card[score]) if score in card else ""}
            for score in _TILES
            if score in metrics and metrics[score]["mean"] is not None
        ],
        "said": said,
        "sentences": list(said.values())[1:],
        "parts": list(_parts(validation)),
        "facts": [(fact, text) for fact, text in facts.items() if text],
        "notes": measured["notes"],
        "measured": measured,
        "groups": groups_of(measured),
        "scores": score_rows(validation),
        "model": model,
    }


def _parts(validation: Validation) -> Iterator[dict[str, Any]]:
    """Yield tables and figures of the page."""
    measured, title = validation.measured, _short(validation.measured)
    clinical, groups, who = measured.get("clinical"), groups_of(measured), "other participants"
    text = (
        "With 95 % CI over participants; the model is fixed. Differences from the card have CIs "
        "of both; those of shares are in percentage points."
    )
    if clinical:
        text = (
            f"Of {clinical['class']}. {text} Predictive values and Brier scores are for a "
            f"prevalence of {percent(clinical['prevalence'])}."
        )
    scores = [dict(zip(HEADER, row, strict=True)) for row in score_rows(validation)]
    yield style.tabulate("Scores", text, scores)
    ax, numbers = plot_validation(validation), main_scores(measured)
    name = "r2" if "score" in measured else "auc"
    yield style.tabulate(title, picture=style.make_figure(ax, name, numbers, "main-figure"))
    if clinical:
        counts, auc = list(measured["n_subjects"].values()), measured["metrics"]["roc_auc"]
        scored = clinic.score_table(clinical, measured["classes"], counts, auc, who)
        yield scored | {"title": "Groups"}
    elif by_class := measured.get("by_class"):
        yield from clinic.class_tables(by_class, who=who)
    if groups and not clinical:
        yield _group_table(measured, groups)
    calibration = measured["calibration"] | {"participants": who}
    if "score" in measured:
        held_out = validation.predictions.dropna(subset="predicted")[["true", "predicted"]]
        frame, score = held_out.astype(float), measured["score"]
        yield predicted.agreement("Calibration", frame, score, "observed-here")
    else:
        name = "calibration-here" if "line" in calibration else "calibration-of-classes"
        yield clinic.calibration_part(calibration, name)
    if clinical:
        yield clinic.decision_part(clinical)


def _group_table(
    measured: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the table of groups of a score or of several classes."""
    name, number = "groups-of-classes", " / ".join(measured.get("classes", ()))
    columns = {"AUC": "auc"}
    if "score" in measured:
        name, number = "groups-of-score", "number"
        columns = {"mean error": "error", "mean absolute error": "mae"}
    rows = [
        {
            "participants": f"{group['by']} {group['group']}",
            number: " / ".join(map(str, group["n_subjects"])),
            **{
                name: number_with_ci({**group["scores"], "auc": group.get("auc")}[key])
                for name, key in columns.items()
            },
        }
        for group in groups
    ]
    return style.tabulate("Groups", style.captions()[name], rows)
