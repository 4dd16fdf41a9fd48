"""The validation of a model on other participants: its figures, sentences and page."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec._files import write_csv, write_json
from idfsmec.errors import listing
from idfsmec.report import clinic, style
from idfsmec.report.documents import USE, Table, name_sections, plot_calibration
from idfsmec.report.text import (
    capitalise,
    escape_markdown,
    format_range,
    format_score,
    metric_name,
    percent,
    share_with_ci,
)
from idfsmec.table.verdicts import NOT_AUDITED

if TYPE_CHECKING:
    from idfsmec.evaluation import Validation
    from idfsmec.prediction import Model

#: What a validation writes into its folder.
FILES = ("validation.html", "validation.json", "predictions.csv", "reporting.md")
#: Columns of :func:`score_rows`.
HEADER = ("score", "here (95 % CI)", "card (95 % CI)", "here - card (95 % CI)")
_CALIBRATION = (
    "Each point is a group of participants with similar probabilities; bars are 95 % CI. The "
    "dashed curve is the logistic regression with the intercept and slope stated. On the line, "
    "probabilities equal observed frequencies. Probabilities are adjusted to the shares of the "
    "classes in this table."
)


@style.literal_text
def plot_validation(validation: Validation, ax: Axes | None = None) -> Axes:
    """Draw the AUC of the model's card, of the validation, and of groups of its participants.

    Parameters
    ----------
    validation : Validation
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    measured = validation.measured
    rows = [("validation", measured["metrics"]["roc_auc"], style.EMPHASIS)]
    card = [row["card"] for row in measured["card"] if row["score"] == "roc_auc"]
    rows = [*(("card of the model", auc, style.INK) for auc in card), *rows]
    for group in measured["clinical"]["groups"]:
        if group["auc"]["mean"] is not None:
            name = f"{group['by']} {group['group']} ({sum(group['n_subjects'])})"
            rows.append((name, group["auc"], style.MUTED))
    ax = style.make_axes(ax, 5.6, 1.6 + 0.28 * len(rows))
    for place, (name, auc, color) in enumerate(rows):
        style.show_values(ax, auc["mean"], place, [f"{name}: {_score('roc_auc', auc)}"])
        estimate = [auc[end] for end in ("mean", "low", "high")]
        style.draw_estimate(ax, place, estimate, color, filled=color != style.MUTED)
    ax.axvline(0.5, color=style.MUTED, linewidth=1, linestyle=":")
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.02), xlabel="AUC per participant, with 95 % CI")
    return style.style_axes(ax, "AUC", "number of participants in brackets", grid="x")


@style.literal_text
def plot_validation_calibration(validation: Validation, ax: Axes | None = None) -> Axes:
    """Draw probabilities against observed frequencies, and the line of intercept and slope."""
    calibration = validation.measured["calibration"]
    ax = plot_calibration(calibration | {"participants": "other participants"}, ax)
    if line := calibration["line"]:
        at = np.linspace(-5, 5, 100)
        curve = 1 / (1 + np.exp(-(line[0] + line[1] * at)))
        ax.plot(1 / (1 + np.exp(-at)), curve, color=style.FILTER, linestyle="--", gid="fitted")
    return ax


def describe_validation(validation: Validation) -> list[str]:
    """Return what was found as sentences, the first as a headline."""
    measured = validation.measured
    auc, counts = measured["metrics"]["roc_auc"], measured["n_subjects"]
    n_subjects, smaller = sum(counts.values()), measured["events"]["smaller_class"]
    headline = f"AUC {_score('roc_auc', auc)} on {n_subjects} other participants"
    for row in measured["card"][:1]:
        low, high = row["difference"]["low"], row["difference"]["high"]
        relation = "no difference is shown"
        if low > 0 or high < 0:
            relation = "higher than on the card" if low > 0 else "lower than on the card"
        headline += f"; the model's card says {_score('roc_auc', row['card'])}: {relation}"
    calibration, gain = measured["calibration"], measured["recalibration"]["gain"]
    slope = "not estimable, as no participant is on the wrong side"
    if calibration["slope"] is not None:
        slope = _number(calibration["slope"])
    helps = "which is a gain" if gain["low"] > 0 else "no gain is shown"
    mix, enough = measured["case_mix"], measured["events"]["enough"]
    of_usual = ""
    if mix["auc_of_usual"]["mean"] is not None and mix["unusual"]["mean"] > 0:
        of_usual = f"; AUC without them {_score('roc_auc', mix['auc_of_usual'])}"
    few = (
        f"a validation should have {enough}, and with fewer CIs are wide"
        if smaller < enough
        else f"at least {enough}, as a validation should have"
    )
    return [
        f"{headline}.",
        f"Calibration: intercept {_number(calibration['intercept'])}, right is 0; slope {slope}, "
        "right is 1, and below 1 probabilities are too extreme.",
        "Intercept and slope fitted to these participants would change the Brier score from "
        f"{measured['recalibration']['brier']:.3f} to "
        f"{measured['recalibration']['recalibrated']:.3f} (cross-validated; gain "
        f"{_number(gain, 3)}): {helps}.",
        f"Unlike the training data are {share_with_ci(mix['unusual'])} of the participants, where "
        f"{percent(mix['expected'])} is usual{of_usual}. {mix['n_far_outside']} are so far "
        "outside that predict gives no probability; they are scored here.",
        f"Participants of the smaller class: {smaller}; {few}.",
    ]


def score_rows(validation: Validation) -> list[list[str]]:
    """Return score, value here, on the card and difference, each with its 95 % CI, as text."""
    measured = validation.measured
    card = {row["score"]: row for row in measured["card"]}
    scores = measured["metrics"] | measured["clinical"]["scores"]
    rows = []
    for name in ("roc_auc", "balanced_accuracy", "sensitivity", "specificity", "PPV", "NPV"):
        if name in scores:
            row = [metric_name(name), _score(name, scores[name]), "", ""]
            if name in card:
                row[2:] = _score(name, card[name]["card"]), _number(card[name]["difference"])
            rows.append(row)
    for name, words in (("brier", "Brier score"), ("scaled_brier", "scaled Brier score")):
        rows.append([words, _number(scores[name], 3), "", ""])
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
    text = style.render_page("validation.html", **_describe(model, validation, name))
    style.write_text(page, text)
    write_json(data, validation.measured)
    write_csv(predictions, validation.predictions)
    style.write_text(reporting, _checklist(model, validation, name))
    return page


def _checklist(model: Model, validation: Validation, name: str) -> str:
    """Return the items of TRIPOD+AI that a validation answers, as Markdown."""
    measured = validation.measured
    counts = ", ".join(f"{label}: {n}" for label, n in measured["n_subjects"].items())
    left = measured["left_out"]
    _, calibration, recalibration, mix, events = describe_validation(validation)
    scores = "; ".join(f"{row[0]} {row[1]}" for row in score_rows(validation))
    groups = "; ".join(
        f"{group['by']} {group['group']} ({sum(group['n_subjects'])} participants): AUC "
        f"{_score('roc_auc', group['auc'])}"
        for group in measured["clinical"]["groups"]
    )
    items = [
        ("10, sample size", events),
        ("12e, performance measures", "AUC, sensitivity and specificity at a probability of 0.5, "
         "predictive values, Brier score, calibration intercept, slope and curve, decision curve, "
         "each with 95 % CI over participants; the model is fixed"),
        ("12g, predictions", "by the file of the model; for Brier score, calibration and decision "
         "curve adjusted to the shares of the classes, or to the prevalence stated"),
        ("15, output", f"probability of {measured['class']}; classified at 0.5"),
        ("16, training and evaluation", f"model: {model.kind}, "
         f"{model.data.get('n_subjects')} participants; evaluation: {name}"),
        ("20a, participants", f"{counts}; left out: {len(left['without_channel'])} without a "
         f"channel of the model, {len(left['trained_on'])} that were trained on"),
        ("20c, case mix", mix),
        ("21, participants and events", counts),
        ("23a, performance", f"{scores}. {calibration}"),
        ("14 and 23a, groups", groups or "the table has no sex, age, site or condition"),
        ("24, updating", recalibration),
    ]  # fmt: skip
    text = "".join(f"- **{item}**: {escape_markdown(answer)}\n" for item, answer in items)
    return (
        "# Reporting of a validation\n\nItems of TRIPOD+AI (BMJ 2024, 385:e078378) that the "
        "numbers answer. All others are yours: who the participants were, how they were diagnosed "
        f"and recorded, and whom the result is about.\n\n{text}"
    )


def _describe(model: Model, validation: Validation, name: str) -> dict[str, Any]:
    """Return the content of the page."""
    measured = validation.measured
    headline, *sentences = describe_validation(validation)
    card = {row["score"]: _score(row["score"], row["card"]) for row in measured["card"]}
    tiles = [
        measured["metrics"][score]
        | {
            "name": metric_name(score),
            "value": format_score(score, measured["metrics"][score]["mean"]),
            "ci": format_range(score, *(measured["metrics"][score][e] for e in ("low", "high"))),
            "card": card.get(score),
        }
        for score in ("roc_auc", "balanced_accuracy")
    ]
    counts = ", ".join(f"{label}: {n}" for label, n in measured["n_subjects"].items())
    facts = [
        ("model", model.kind),
        ("trained on", f"{model.data.get('n_subjects')} participants"),
        ("validated on", f"{name}; {counts}"),
        ("prevalence", percent(measured["prevalence"], 1)),
    ]
    reasons = {"without_channel": "without a channel of the model", "trained_on": "trained on"}
    for reason, words in reasons.items():
        if left := measured["left_out"][reason]:
            facts.append((f"left out, {words}", listing(left, 10)))
    tables = _tables(validation)
    return {
        "brand": "idfsmec validation",
        "title": name,
        "chips": [f"{sum(measured['n_subjects'].values())} participants", counts],
        "headline": headline,
        "audit": measured["audit"] or NOT_AUDITED,
        "card_audit": model.audit or NOT_AUDITED,
        "use": USE,
        "warnings": [],
        "tiles": tiles,
        "sentences": sentences,
        "tables": tables,
        "named_tables": name_sections(tables),
        "facts": facts,
        "notes": [f"{capitalise(note)}." for note in measured["notes"]],
    }


def _tables(validation: Validation) -> list[Table]:
    """Return tables and figures of the page."""
    measured = validation.measured
    clinical = measured["clinical"]
    text = (
        f"Of {clinical['class']}, with 95 % CI over participants; the model is fixed. Differences "
        "from the card have CIs of both. Predictive values and Brier scores are for a prevalence "
        f"of {percent(clinical['prevalence'])}."
    )
    scores = Table("Scores", text, HEADER, score_rows(validation))
    counts = list(measured["n_subjects"].values())
    scored = clinic.score_table(clinical, measured["classes"], counts)
    aucs = [
        _score("roc_auc", measured["metrics"]["roc_auc"]),
        *[""] * len(clinical["at_prevalence"]),
        *(_score("roc_auc", group["auc"]) for group in clinical["groups"]),
    ]
    groups = Table(
        "Groups",
        scored["text"].replace("held-out participants", "other participants"),
        (*scored["header"][:2], "AUC", *scored["header"][2:]),
        [[*row[:2], auc, *row[2:]] for row, auc in zip(scored["rows"], aucs, strict=True)],
    )
    of_auc = "AUC of the card, of these participants and of groups."
    named = [
        {"group": f"{group['by']} {group['group']}", **group["auc"]}
        for group in clinical["groups"]
    ]
    everyone = {"group": "all", **measured["metrics"]["roc_auc"]}
    auc_numbers = pd.DataFrame([everyone, *named])
    bins = pd.DataFrame(measured["calibration"]["bins"])
    calibration = plot_validation_calibration(validation)
    pictures = [
        Table(title, "", (), [], picture)
        for title, picture in (
            (
                "AUC",
                style.make_figure(plot_validation(validation), of_auc, auc_numbers, "auc-figure"),
            ),
            (
                "Calibration",
                style.make_figure(calibration, _CALIBRATION, bins, "calibration-figure"),
            ),
            ("Decision curve", clinic.draw_decision_curve(clinical)),
        )
    ]
    return [scores, pictures[0], groups, *pictures[1:]]


def _score(name: str, values: Mapping[str, Any]) -> str:
    if values["mean"] is None:
        return "–"
    ends = format_range(name, values["low"], values["high"])
    return f"{format_score(name, values['mean'])} ({ends})"


def _number(values: Mapping[str, Any], digits: int = 2) -> str:
    if values["low"] is None:
        return f"{values['mean']:.{digits}f}"
    mean, low, high = (f"{values[end]:.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})".replace("-", "−")
