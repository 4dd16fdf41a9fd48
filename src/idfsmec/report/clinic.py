"""Probabilities of classes: scores of each group and class, decision curve, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.errors import listing
from idfsmec.evaluation import class_scores
from idfsmec.report import style
from idfsmec.report.data import TableResults, View
from idfsmec.report.text import (
    number_with_ci,
    percent,
    say_removed,
    score_with_ci,
    share_with_ci,
)

#: Groups with fewer participants of a class are pointed out.
_FEW = 10
_SCORES = ("sensitivity", "specificity", "PPV", "NPV")


def plot_decision_curve(
    clinical: Mapping[str, Any], note: str = "", ax: Axes | None = None
) -> Axes:
    """Draw the net benefit of acting on predictions, on all participants and on none."""
    ax = style.make_axes(ax, 4.6, 4.2)
    rows = pd.DataFrame(clinical["decision_curve"])
    at = rows["threshold"]
    ax.fill_between(at, rows["low"], rows["high"], color=style.EMPHASIS, alpha=0.14, linewidth=0)
    ax.plot(at, rows["mean"], color=style.EMPHASIS, linewidth=2, label="model (95 % CI)")
    ax.plot(at, rows["all"], color=style.MUTED, linestyle="--", label="act on all")
    ax.axhline(0, color=style.MUTED, linewidth=1, linestyle=":", label="act on none")
    texts = [
        f"threshold {percent(row['threshold'])}: net benefit {number_with_ci(row, 3)}; acting on "
        f"all {row['all']:.3f}".replace("-", "−")
        for row in clinical["decision_curve"]
    ]
    style.show_values(ax, at, rows["mean"], texts)
    top = 1.1 * max(rows["high"].max(), 0.05)
    ax.set(xlim=(0, 1), ylim=(-0.3 * top, top), ylabel="net benefit",
           xlabel=f"threshold: probability of {clinical['class']}")  # fmt: skip
    ax.legend(frameon=False, labelcolor=style.INK)
    note = f"{note}\nprevalence {percent(clinical['prevalence'])}".strip()
    return style.style_axes(ax, "Decision curve", note)


def decision_views(table: TableResults) -> Iterator[View]:
    """Yield the decision curve of two classes: net benefit against the threshold."""
    if table.clinical is not None:
        numbers = pd.DataFrame(table.clinical["decision_curve"])
        yield View({"clinical": table.clinical, "note": table.note()}, numbers)


def decision_part(clinical: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a page about the decision curve."""
    numbers = pd.DataFrame(clinical["decision_curve"])
    ax, slug = plot_decision_curve(clinical), "decision-figure"  # the part has the other name
    picture = style.make_figure(ax, "decision-curve", numbers, slug)
    rows = [
        {
            f"probability of {clinical['class']}": percent(row["threshold"]),
            "net benefit (95 % CI)": number_with_ci(row),
            "acting on all": number_with_ci({"mean": row["all"], "low": None, "high": None}),
        }
        for row in clinical["decision_curve"][1::2]
    ]
    return style.tabulate("Decision curve", picture["caption"], rows, picture)


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
    groups = pd.DataFrame(calibration["bins"])
    predicted, observed = groups["predicted"], groups["observed"]
    ax.plot([0, 1], [0, 1], color=style.BAND, linewidth=1.2, gid="perfect")
    ends = np.maximum([observed - groups["low"], groups["high"] - observed], 0)
    ax.errorbar(
        predicted, observed, ends, marker="o", color=style.EMPHASIS, linewidth=1.6,
        elinewidth=1.0, gid="calibration",
    )  # fmt: skip
    texts = [
        f"{percent(group['predicted'])}: observed {share_with_ci(group, 'observed')}, "
        f"{group['n']} participants"
        for group in calibration["bins"]
    ]
    style.show_values(ax, predicted, observed, texts)
    if line := calibration.get("line"):
        at = np.linspace(-5, 5, 100)
        curve = 1 / (1 + np.exp(-(line[0] + line[1] * at)))
        ax.plot(1 / (1 + np.exp(-at)), curve, color=style.FILTER, linestyle="--", gid="fitted")
    what = f"probability of {calibration['class'] or 'the predicted class'}"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=what, ylabel="share of participants")
    who = calibration.get("participants", "held-out participants")
    note = f"{who}, Brier score {calibration['brier']:.3f}"
    return style.style_axes(ax, "Calibration", note)


def calibration_part(calibration: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the part of a page about calibration, with the caption of that name."""
    numbers = pd.DataFrame(calibration["bins"])
    picture = style.make_figure(plot_calibration(calibration), name, numbers, "calibration-figure")
    rows = [
        {
            "probability": percent(group["predicted"]),
            "observed (95 % CI)": share_with_ci(group, "observed"),
            "participants": group["n"],
        }
        for group in calibration["bins"]
    ]
    text = f"{picture['caption']} Brier score {calibration['brier']:.3f}."
    return style.tabulate("Calibration", text, rows, picture)


def score_table(
    clinical: Mapping[str, Any],
    classes: Sequence[Any],
    counts: Sequence[int],
    auc: Mapping[str, Any] | None = None,
    who: str = "held-out participants",
) -> dict[str, Any]:
    """Return the part of a page about predictive values: of all participants, and of groups.

    ``auc`` is that of all participants, where groups have theirs.
    """
    number_of = " / ".join(map(str, classes))

    def row(
        name: str, counts: Sequence[int], auc: Any, scores: Mapping[str, Any]
    ) -> dict[str, str]:
        cells = {"participants": name, number_of: " / ".join(map(str, counts))}
        cells |= {} if auc is None else {"AUC": score_with_ci("roc_auc", auc) if auc else ""}
        return cells | {score: share_with_ci(scores.get(score, {})) for score in _SCORES}

    rows = [row("all", counts, auc, clinical["scores"])]
    for at in clinical.get("at_prevalence", []):
        stated = row(f"all, prevalence {percent(at['prevalence'])}", [], auc and {}, at["scores"])
        rows.append(stated | dict.fromkeys(_SCORES[:2], ""))
    few = [] if min(counts) >= _FEW else ["all"]
    for group in clinical["groups"]:
        name = f"{group['by']} {group['group']}"
        rows.append(row(name, group["n_subjects"], auc and group["auc"], group["scores"]))
        few += [name] if min(group["n_subjects"]) < _FEW else []
    text = (
        f"Predictions of {clinical['class']} for {who}, with 95 % CI. Predictive values are for a "
        f"prevalence of {percent(clinical['prevalence'])}, unless a row has another."
    )
    text += _warn_of_few(few, "of a class")
    return style.tabulate("Sensitivity, specificity, predictive values", text, rows)


def _warn_of_few(names: Sequence[str], of: str) -> str:
    return f" Too few to rely on (below {_FEW} {of}): {listing(names, 20)}." if names else ""


def class_tables(
    measured: Mapping[str, Any], of: str = "", who: str = "held-out participants"
) -> list[dict[str, Any]]:
    """Return two parts of a page: scores of each class, and which class is predicted."""
    classes, confusion = measured["classes"], measured["confusion"]
    few = [row["class"] for row in classes if row["n_subjects"] < _FEW]
    text = (
        f"{of}Each class against the rest, {who}, with 95 % CI. The most probable class is "
        "predicted. Predictive values are for the shares of the classes here."
    )
    rows = [
        {
            "class": row["class"],
            "participants": row["n_subjects"],
            "AUC": number_with_ci(row["auc"]),
            **{score: share_with_ci(row["scores"].get(score, {})) for score in _SCORES},
        }
        for row in classes
    ]
    names = [f"predicted {row['class']}" for row in classes]
    by_true = [
        {
            "true class": row["class"],
            **dict(zip(names, counts, strict=True)),
            "predicted rightly": percent(counts[k] / max(sum(counts), 1)),
        }
        for k, (row, counts) in enumerate(zip(classes, confusion, strict=True))
    ]
    text += _warn_of_few(few, "participants")
    shown = f"Number of {who} by true class (rows) and predicted class (columns)."
    return [
        style.tabulate("Classes, each against the rest", text, rows),
        style.tabulate("Predicted classes", shown, by_true),
    ]


def describe_clinical(table: TableResults) -> list[dict[str, Any]]:
    """Return parts of the report about clinical scores, of two classes with their ``curve``."""
    clinical = table.clinical
    if (of_classes := class_scores(table.results, table.name)) is not None:
        of = f"{table.label(of_classes['method'])}{say_removed(of_classes['rate'])}. "
        return class_tables(of_classes, of)
    if clinical is None:
        return []
    scored = score_table(clinical, clinical["classes"], clinical["n_subjects"])
    curve = pd.DataFrame(clinical["decision_curve"])
    above = curve.loc[curve["low"] > curve["all"].clip(lower=0), "threshold"]
    between = f", between {percent(above.min())} and {percent(above.max())}" if len(above) else ""
    of = f"{table.label(clinical['method'])}{say_removed(clinical['rate'])}"
    described = scored | {
        "text": f"{of}: calibrated probabilities, pooled over folds. The balanced accuracy of the "
        "comparison is that of uncalibrated predictions, mean over folds, and may differ. "
        f"{scored['text']}",
        "curve": "Decision curve, net benefit: The 95 % CI lies above acting on all and acting on "
        f"none at {len(above)} of {len(curve)} thresholds{between}.",
    }
    return [described]
