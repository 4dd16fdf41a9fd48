"""Clinical scores: a table of sensitivity and predictive values, and the decision curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from idfsmec.errors import listing
from idfsmec.evaluation import class_scores
from idfsmec.report import style
from idfsmec.report.data import TableResults, View
from idfsmec.report.text import number_with_ci, percent, share_with_ci

#: Groups with fewer participants of a class are pointed out.
_FEW = 10
_TITLE = "Sensitivity, specificity, predictive values"
#: How a decision curve is read.
CAPTION = (
    "Net benefit of acting on participants whose probability reaches a threshold, in true "
    "positives per participant, with 95 % CI. Probabilities are adjusted to the prevalence."
)
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
        f"threshold {percent(row['threshold'])}: net benefit {row['mean']:.3f} "
        f"({row['low']:.3f} to {row['high']:.3f}); acting on all {row['all']:.3f}"
        for row in clinical["decision_curve"]
    ]
    style.show_values(ax, at, rows["mean"], texts)
    top = 1.1 * max(rows["high"].max(), 0.05)
    ax.set(xlim=(0, 1), ylim=(-0.3 * top, top), ylabel="net benefit",
           xlabel=f"threshold: probability of {clinical['class']}")  # fmt: skip
    ax.legend(frameon=False, labelcolor=style.INK)
    note = f"{note}\nprevalence {percent(clinical['prevalence'])}".strip()
    return style.style_axes(ax, "Decision curve", note)


def draw_decision_curve(clinical: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the decision curve for a page."""
    numbers = pd.DataFrame(clinical["decision_curve"])
    return style.make_figure(plot_decision_curve(clinical), CAPTION, numbers, "decision-figure")


def score_table(
    clinical: Mapping[str, Any], classes: Sequence[Any], counts: Sequence[int]
) -> dict[str, Any]:
    """Return title, text, header and rows: all participants with their counts, and groups."""
    everyone = {"by": "all", "group": "", "n_subjects": counts, "scores": clinical["scores"]}
    rows, few = [], []
    stated = [
        [f"all, prevalence {percent(at['prevalence'])}", "", "", ""]
        + [share_with_ci(at["scores"].get(score, {})) for score in _SCORES[2:]]
        for at in clinical.get("at_prevalence", [])
    ]
    for group in (everyone, *clinical["groups"]):
        name = f"{group['by']} {group['group']}".strip()
        if min(group["n_subjects"]) < _FEW:
            few.append(name)
        scores = [share_with_ci(group["scores"].get(score, {})) for score in _SCORES]
        rows.append([name, " / ".join(map(str, group["n_subjects"])), *scores])
    text = (
        f"Predictions of {clinical['class']} for held-out participants, with 95 % CI. Predictive "
        f"values are for a prevalence of {percent(clinical['prevalence'])}, unless a row has "
        "another."
    )
    if few:
        text += f" Too few to rely on (below {_FEW} of a class): {listing(few, 20)}."
    header = ("participants", " / ".join(map(str, classes)), *_SCORES)
    return {
        "title": _TITLE,
        "text": text,
        "header": header,
        "rows": [rows[0], *stated, *rows[1:]],
    }


def class_tables(
    measured: Mapping[str, Any], of: str = "", who: str = "held-out participants"
) -> list[dict[str, Any]]:
    """Return title, text, header and rows of two tables: each class, and which is predicted."""
    classes, confusion = measured["classes"], measured["confusion"]
    few = [row["class"] for row in classes if row["n_subjects"] < _FEW]
    text = (
        f"{of}Each class against the rest, {who}, with 95 % CI. The most probable class is "
        "predicted. Predictive values are for the shares of the classes here."
    )
    if few:
        text += f" Too few to rely on (below {_FEW} participants): {listing(few, 20)}."
    rows = [
        [row["class"], row["n_subjects"], number_with_ci(row["auc"])]
        + [share_with_ci(row["scores"].get(score, {})) for score in _SCORES]
        for row in classes
    ]
    by_true = [
        [row["class"], *counts, percent(counts[k] / max(sum(counts), 1))]
        for k, (row, counts) in enumerate(zip(classes, confusion, strict=True))
    ]
    return [
        {
            "title": "Classes, each against the rest",
            "text": text,
            "header": ("class", "participants", "AUC", *_SCORES),
            "rows": rows,
        },
        {
            "title": "Predicted classes",
            "text": f"Number of {who} by true class (rows) and predicted class (columns).",
            "header": (
                *("true class", *(f"predicted {row['class']}" for row in classes)),
                "predicted rightly",
            ),
            "rows": by_true,
        },
    ]


def describe_clinical(table: TableResults) -> list[dict[str, Any]]:
    """Return title, text, header, rows, and of two classes the curve, of a benchmark's tables."""
    clinical = table.clinical
    if (of_classes := class_scores(table.results, table.name)) is not None:
        rate = of_classes["rate"]
        removed = f", {percent(rate)} of channels removed" if rate else ""
        return class_tables(of_classes, f"{table.label(of_classes['method'])}{removed}. ")
    if clinical is None:
        return []
    scored = score_table(clinical, clinical["classes"], clinical["n_subjects"])
    removed = f", {percent(clinical['rate'])} of channels removed" if clinical["rate"] else ""
    curve = pd.DataFrame(clinical["decision_curve"])
    above = curve.loc[curve["low"] > curve["all"].clip(lower=0), "threshold"]
    between = f", between {percent(above.min())} and {percent(above.max())}" if len(above) else ""
    described = scored | {
        "text": f"{table.label(clinical['method'])}{removed}: calibrated probabilities, pooled "
        "over folds. Balanced accuracy elsewhere on this page is that of uncalibrated "
        f"predictions, mean over folds, and may differ. {scored['text']}",
        "curve": "Decision curve, net benefit: The 95 % CI lies above acting on all and acting on "
        f"none at {len(above)} of {len(curve)} thresholds{between}.",
    }
    return [described]


def decision_views(table: TableResults) -> Iterator[View]:
    """Yield the decision curve of two classes: net benefit against the threshold."""
    if table.clinical is not None:
        numbers = pd.DataFrame(table.clinical["decision_curve"])
        yield View({"clinical": table.clinical, "note": table.note()}, numbers)
