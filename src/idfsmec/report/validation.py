"""The validation of a model on other participants: its figures, sentences and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec._files import write_csv, write_json
from idfsmec.errors import listing
from idfsmec.metrics import SCORE_METRICS
from idfsmec.report import clinic, predicted, style
from idfsmec.report.documents import USE, Table, name_sections, plot_calibration
from idfsmec.report.text import (
    capitalise,
    escape_markdown,
    format_range,
    format_score,
    metric_name,
    number_with_ci,
    percent,
    score_with_ci,
    share_with_ci,
)
from idfsmec.table.verdicts import NOT_AUDITED

if TYPE_CHECKING:
    from idfsmec.evaluation import Validation
    from idfsmec.prediction import Model

#: What a validation writes into its folder.
FILES = ("validation.html", "validation.json", "predictions.csv", "reporting.md")
#: Columns of :func:`score_rows`.
HEADER = ("score", "here (95 % CI)", "model's card", "difference")
_PLAIN = ("roc_auc", *SCORE_METRICS[1:])  # all others are shares
_CALIBRATION = (
    "Each point is a group of participants with similar probabilities; bars are 95 % CI. The "
    "dashed curve is the logistic regression with the intercept and slope stated. On the line, "
    "probabilities equal observed frequencies. Probabilities are adjusted to the shares of the "
    "classes in this table."
)
_OF_PREDICTED = (
    "Each point is a group of participants with similar probabilities of the class predicted; "
    "bars are 95 % CI. On the line, probabilities equal observed frequencies."
)


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
    measured, main = validation.measured, main_metric(validation.measured)
    rows = [("validation", measured["metrics"][main], style.EMPHASIS)]
    card = [row["card"] for row in measured["card"] if row["score"] == main]
    rows = [*(("card of the model", value, style.INK) for value in card), *rows]
    for group in groups_of(measured):
        if group.get("auc", {}).get("mean") is not None:
            name = f"{group['by']} {group['group']} ({sum(group['n_subjects'])})"
            rows.append((name, group["auc"], style.MUTED))
    ax = style.make_axes(ax, 5.6, 1.6 + 0.28 * len(rows))
    for place, (name, value, color) in enumerate(rows):
        style.show_values(ax, value["mean"], place, [f"{name}: {score_with_ci(main, value)}"])
        estimate = [value[end] for end in ("mean", "low", "high")]
        style.draw_estimate(ax, place, estimate, color, filled=color != style.MUTED)
    is_auc = main == "roc_auc"
    ax.axvline(0.5 if is_auc else 0, color=style.MUTED, linewidth=1, linestyle=":")
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.invert_yaxis()
    what = "AUC per participant" if is_auc else "R² against the mean of training"
    ax.set(xlabel=f"{what}, with 95 % CI")
    if is_auc:
        ax.set(xlim=(0, 1.02))
    title = "AUC" if is_auc else "R²"
    return style.style_axes(ax, title, "number of participants in brackets", grid="x")


def main_metric(measured: Mapping[str, Any]) -> str:
    """Return the score that a validation is about first."""
    return "subject_r2" if "score" in measured else "roc_auc"


def groups_of(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of participants, by sex, age, site and condition."""
    found: list[dict[str, Any]] = measured.get("clinical", measured)["groups"]
    return found


@style.literal_text
def plot_validation_calibration(validation: Validation, ax: Axes | None = None) -> Axes:
    """Draw probabilities against observed frequencies, and the line of intercept and slope.

    Of a score, draw observed against predicted scores.
    """
    measured = validation.measured
    if "score" in measured:
        return predicted.plot_observed(_held_out(validation), measured["score"], ax=ax)
    calibration = measured["calibration"]
    ax = plot_calibration(calibration | {"participants": "other participants"}, ax)
    if line := calibration.get("line"):
        at = np.linspace(-5, 5, 100)
        curve = 1 / (1 + np.exp(-(line[0] + line[1] * at)))
        ax.plot(1 / (1 + np.exp(-at)), curve, color=style.FILTER, linestyle="--", gid="fitted")
    return ax


def _held_out(validation: Validation) -> pd.DataFrame:
    return validation.predictions.dropna(subset="predicted")[["true", "predicted"]].astype(float)


def describe_validation(validation: Validation) -> list[str]:
    """Return what was found as sentences, the first as a headline."""
    return list(_sentences(validation.measured).values())


def _sentences(measured: Mapping[str, Any]) -> dict[str, str]:
    """Return sentences by what they are about, as far as it was measured."""
    said = {"headline": _headline(measured)} | _say_calibration(measured)
    mix = measured["case_mix"]
    unusual = (
        f"{share_with_ci(mix['unusual'])} of the participants are unlike the training data, where "
        f"{percent(mix['expected'])} is usual"
    )
    if mix["of_usual"]["mean"] is not None and mix["unusual"]["mean"] > 0:
        main = main_metric(measured)
        short = "AUC" if main == "roc_auc" else "R²"
        unusual += f"; {short} without them {score_with_ci(main, mix['of_usual'])}"
    if mix["n_far_outside"]:
        what = "prediction" if "score" in measured else "probability"
        unusual += (
            f"; {mix['n_far_outside']} are so far outside that predict gives no {what}, and are "
            "scored here"
        )
    said["case mix"] = f"{unusual}."
    if "events" in measured:
        smaller, enough = (measured["events"][key] for key in ("smaller_class", "enough"))
        few = ", so that CIs are wide" if smaller < enough else ""
        said["events"] = (
            f"The smallest class has {smaller} participants; a validation should have {enough}"
            f"{few}."
        )
    return said


def _headline(measured: Mapping[str, Any]) -> str:
    main, n_subjects = main_metric(measured), sum(measured["n_subjects"].values())
    found = measured["metrics"][main]
    name = "AUC" if main == "roc_auc" else f"R² of {measured['score']}"
    headline = f"{name} {score_with_ci(main, found)} on {n_subjects} participants"
    if "score" in measured:
        better = "better" if (found["low"] or -1) > 0 else "not shown to be better"
        headline += f", {better} than the mean of the participants trained on"
    for row in measured["card"][:1]:
        low, high = row["difference"]["low"], row["difference"]["high"]
        relation = "no difference is shown"
        if low is None:
            relation = "without a CI to compare"
        elif low > 0 or high < 0:
            relation = "it is higher here" if low > 0 else "it is lower here"
        headline += f"; the model's card says {score_with_ci(main, row['card'])}: {relation}"
    return f"{headline}."


def _say_calibration(measured: Mapping[str, Any]) -> dict[str, str]:
    said, calibration = {}, measured["calibration"]
    if "score" in measured:
        said["calibration"] = _say_line(calibration)
        if interval := measured.get("interval"):
            said["interval"] = (
                f"{share_with_ci(interval)} of the scores lie in their prediction interval, where "
                f"{percent(interval['expected'])} are expected."
            )
    elif "slope" in calibration:
        slope = "there is no slope, as the probabilities of the classes do not overlap"
        if calibration["slope"] is not None:
            slope = f"slope {number_with_ci(calibration['slope'])}, right is 1; below 1, "
            slope += "probabilities are too extreme"
        said["calibration"] = (
            f"Calibration: intercept {number_with_ci(calibration['intercept'])}, right is 0; "
            f"{slope}."
        )
    if "recalibration" in measured:
        refit = measured["recalibration"]
        said["recalibration"] = (
            "Intercept and slope fitted to these participants would change the Brier score from "
            f"{refit['brier']:.3f} to {refit['recalibrated']:.3f} (cross-validated; gain "
            f"{number_with_ci(refit['gain'], 3)}): "
            f"{'a' if refit['gain']['low'] > 0 else 'no'} gain is shown."
        )
    return said


def _say_line(calibration: Mapping[str, Any]) -> str:
    """Say the mean error and the slope of a predicted score."""
    slope = "not estimable, as all predictions are equal"
    if calibration["slope"] is not None:
        slope = number_with_ci(calibration["slope"])
    return (
        f"Scores are {number_with_ci(calibration['error'])} above their predictions on average, "
        f"right is 0; calibration slope {slope}, right is 1, and below 1 predictions are too far "
        "apart."
    )


def score_rows(validation: Validation) -> list[list[str]]:
    """Return score, value here, on the card and difference, each with its 95 % CI, as text."""
    measured = validation.measured
    card = {row["score"]: row for row in measured["card"]}
    scores = measured["metrics"] | measured.get("clinical", {}).get("scores", {})
    rows = []
    of_classes = ("roc_auc", "balanced_accuracy", "sensitivity", "specificity", "PPV", "NPV")
    for name in (*of_classes, *SCORE_METRICS[:-1]):
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
    left, said = measured["left_out"], _sentences(measured)
    scores = "; ".join(f"{row[0]} {row[1]}" for row in score_rows(validation))
    groups = "; ".join(
        f"{group['by']} {group['group']} ({sum(group['n_subjects'])} participants): "
        + (
            f"AUC {score_with_ci('roc_auc', group['auc'])}"
            if "auc" in group
            else f"mean error {number_with_ci(group['scores']['error'])}"
        )
        for group in groups_of(measured)
    )
    if "score" in measured:
        measures = "R² against the mean of training, correlations, mean absolute error, "
        measures += "calibration intercept and slope, coverage of prediction intervals"
        how, output = (
            "by the file of the model",
            f"{measured['score']}, with a prediction interval",
        )
    elif "clinical" in measured:
        measures = "AUC, sensitivity and specificity at a probability of 0.5, "
        measures += "predictive values, Brier score, calibration intercept, slope and curve, "
        measures += "decision curve"
        how = "by the file of the model; for Brier score, calibration and decision curve "
        how += "adjusted to the shares of the classes, or to the prevalence stated"
        output = f"probability of {measured['class']}; classified at 0.5"
    else:
        measures = "AUC, sensitivity, specificity and predictive values of each class against "
        measures += "the rest, confusion matrix"
        how = "by the file of the model"
        output = f"probabilities of {listing(measured['classes'])}; the largest is predicted"
    items = [
        ("10, sample size", said.get("events")),
        ("12e, performance measures",
         f"{measures}, each with 95 % CI over participants; the model is fixed"),
        ("12g, predictions", how),
        ("15, output", output),
        ("16, training and evaluation", f"model: {model.kind}, "
         f"{model.data.get('n_subjects')} participants; evaluation: {name}"),
        ("20a, participants", f"{counts}; left out: {len(left['without_channel'])} without a "
         f"channel of the model, {len(left['trained_on'])} that were trained on"),
        ("20c, case mix", said["case mix"]),
        ("21, participants and events", counts),
        ("23a, performance", f"{scores}. {said.get('calibration', '')}".strip()),
        ("14 and 23a, groups", groups or "the table has no sex, age, site or condition"),
        ("24, updating", said.get("recalibration")),
    ]  # fmt: skip
    text = "".join(
        f"- **{item}**: {escape_markdown(answer)}\n" for item, answer in items if answer
    )
    return (
        "# Reporting of a validation\n\nItems of TRIPOD+AI (BMJ 2024, 385:e078378) that the "
        "numbers answer. All others are yours: who the participants were, how they were diagnosed "
        f"and recorded, and whom the result is about.\n\n{text}"
    )


def _describe(model: Model, validation: Validation, name: str) -> dict[str, Any]:
    """Return the content of the page."""
    measured = validation.measured
    headline, *sentences = describe_validation(validation)
    card = {row["score"]: score_with_ci(row["score"], row["card"]) for row in measured["card"]}
    shown: tuple[str, ...] = ("roc_auc", "balanced_accuracy")
    if "score" in measured:
        shown = ("subject_r2", "subject_spearman", "subject_mae")
    tiles = [
        measured["metrics"][score]
        | {
            "name": metric_name(score),
            "value": format_score(score, measured["metrics"][score]["mean"]),
            "ci": format_range(score, *(measured["metrics"][score][e] for e in ("low", "high"))),
            "card": card.get(score),
            "scale": score not in SCORE_METRICS,
        }
        for score in shown
        if measured["metrics"][score]["mean"] is not None
    ]
    counts = ", ".join(f"{label}: {n}" for label, n in measured["n_subjects"].items())
    facts = [
        ("model", model.kind),
        ("trained on", f"{model.data.get('n_subjects')} participants"),
        ("validated on", f"{name}; {counts}"),
    ]
    if "prevalence" in measured:
        facts.append(("prevalence", percent(measured["prevalence"], 1)))
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
    measured, main = validation.measured, main_metric(validation.measured)
    clinical, groups = measured.get("clinical"), groups_of(measured)
    text = (
        "With 95 % CI over participants; the model is fixed. Differences from the card have CIs "
        "of both; those of shares are in percentage points."
    )
    if clinical:
        text = (
            f"Of {clinical['class']}. {text} Predictive values and Brier scores are for a "
            f"prevalence of {percent(clinical['prevalence'])}."
        )
    tables = [Table("Scores", text, HEADER, score_rows(validation))]
    everyone = {"group": "all", **measured["metrics"][main]}
    named = [
        {"group": f"{group['by']} {group['group']}", **group["auc"]}
        for group in groups
        if "auc" in group
    ]
    title = "AUC" if main == "roc_auc" else "R²"
    of_main = f"{title} of the card and of these participants"
    of_main += ", and AUC of groups." if named else "."
    numbers = pd.DataFrame([everyone, *named])
    picture = style.make_figure(plot_validation(validation), of_main, numbers, "main-figure")
    tables.append(Table(title, "", (), [], picture))
    counts = list(measured["n_subjects"].values())
    if clinical:
        scored = clinic.score_table(clinical, measured["classes"], counts)
        aucs = [
            score_with_ci("roc_auc", measured["metrics"]["roc_auc"]),
            *[""] * len(clinical["at_prevalence"]),
            *(score_with_ci("roc_auc", group["auc"]) for group in groups),
        ]
        tables.append(
            Table(
                "Groups",
                scored["text"].replace("held-out participants", "other participants"),
                (*scored["header"][:2], "AUC", *scored["header"][2:]),
                [[*row[:2], auc, *row[2:]] for row, auc in zip(scored["rows"], aucs, strict=True)],
            )
        )
    else:
        if by_class := measured.get("by_class"):
            parts = clinic.class_tables(by_class, who="other participants")
            tables += [Table(**part) for part in parts]
        tables += _group_table(measured, groups)
    calibration = plot_validation_calibration(validation)
    of_calibration = _CALIBRATION if "line" in measured["calibration"] else _OF_PREDICTED
    numbers = pd.DataFrame(measured["calibration"].get("bins", []))
    if "score" in measured:
        of_calibration, numbers = predicted.OBSERVED_HERE, _held_out(validation)
    picture = style.make_figure(calibration, of_calibration, numbers, "calibration-figure")
    tables.append(Table("Calibration", "", (), [], picture))
    if clinical:
        curve = clinic.draw_decision_curve(clinical)
        tables.append(Table("Decision curve", "", (), [], curve))
    return tables


def _group_table(measured: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the table of groups of a score or of several classes; none without groups."""
    if not groups:
        return []
    names = [f"{group['by']} {group['group']}" for group in groups]
    counts = [" / ".join(map(str, group["n_subjects"])) for group in groups]
    if "score" in measured:
        text = "Errors are scores minus predictions, with 95 % CI over participants."
        header: tuple[str, ...] = ("participants", "number", "mean error", "mean absolute error")
        cells = [
            [number_with_ci(group["scores"][key]) for key in ("error", "mae")] for group in groups
        ]
    else:
        text = "AUC is the mean of each class against the rest, with 95 % CI over participants."
        header = ("participants", " / ".join(measured["classes"]), "AUC")
        cells = [[score_with_ci("roc_auc", group["auc"])] for group in groups]
    rows = [[*row[:2], *row[2]] for row in zip(names, counts, cells, strict=True)]
    return [Table("Groups", text, header, rows)]
