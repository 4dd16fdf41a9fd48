"""The plan of a study: its figure, sentences and files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from idfsmec._files import write_csv
from idfsmec.evaluation.plan import TARGETS
from idfsmec.report import style
from idfsmec.report.text import percent

if TYPE_CHECKING:
    from idfsmec.evaluation import StudyPlan

#: What a plan writes into its folder.
FILES = ("plan.csv", "plan_by_participants.csv", "plan.svg", "plan.png")
#: Columns of :func:`plan_rows`.
HEADER = ("aim", "target", "participants")
#: What each aim is called in the table, before its target.
AIMS = {
    "interval": "cross-validated AUC: 95 % CI not wider than",
    "difference": "difference between two methods' AUC, found with 80 % power",
    "fact": "audit: AUC of a fact, found with 80 % power",
    "validation": "validation of a model: 95 % CI of the AUC not wider than",
    "events": "validation of a model: participants of the rarer class",
    "feature": "stable features: AUC of a feature selected on 3 of 4 halves",
}


def plan_rows(plan: StudyPlan) -> list[tuple[str, str, str]]:
    """Return aim, target and participants as texts."""
    return [
        (AIMS[aim], f"{target:g}", _count(n))
        for aim, target, n in plan.needed.itertuples(index=False)
    ]


def _count(n: float) -> str:
    return "more than 100,000" if np.isnan(n) else f"{n:,.0f}"


def describe_plan(plan: StudyPlan) -> list[str]:
    """Return what studies show, one sentence for each aim."""
    needed = plan.needed.set_index(["aim", "target"])["participants"]

    def count(aim: str, target: float) -> str:
        return _count(needed[aim, target])

    comparisons = (
        f" after Holm's correction for {plan.n_comparisons} comparisons"
        if plan.n_comparisons > 1
        else ""
    )
    shares = [f"{percent(plan.power(n, 0.15))} at {n}" for n in (40, 80, 200)]
    return [
        f"Interval: for a model with an AUC of {plan.auc:g}, the 95 % CI of the cross-validated "
        f"AUC is 0.2 wide with {count('interval', 0.2)} participants and 0.1 wide with "
        f"{count('interval', 0.1)}.",
        f"Difference: a difference of 0.15 between the AUC of two methods is found with 80 % "
        f"power with at least {count('difference', 0.15)} participants, one of 0.1 with "
        f"{count('difference', 0.1)}{comparisons}; 0.15 is found in at most {', '.join(shares)}.",
        f"Audit: of {plan.n_facts} facts one with an AUC of 0.75 is found with 80 % power with "
        f"{count('fact', 0.75)} participants.",
        f"Validation: {count('events', 100)} participants have 100 of the rarer class; the "
        f"95 % CI of the AUC is then {plan.validation_width(int(needed['events', 100])):.2f} "
        "wide.",
        f"Features: a feature with an AUC of 0.7 is among {plan.n_selected} of "
        f"{plan.n_features} on three quarters of the halves with {count('feature', 0.7)} "
        "participants.",
    ]


@style.literal_text
def plot_plan(plan: StudyPlan) -> Figure:
    """Draw against the number of participants what a study shows.

    Parameters
    ----------
    plan : StudyPlan

    Returns
    -------
    Figure
        Three panels: widths of intervals, chances to find a difference between two methods, and
        the smallest AUC of a fact and of a feature that are found.
    """
    curves = plan.by_participants
    differences = {f"difference_{size:g}": f"{size:g}" for size in TARGETS["difference"]}
    panels: list[tuple[str, str, dict[str, str]]] = [
        (
            "95 % CI of an AUC",
            "width",
            {"interval": "cross-validated", "validation": "validation of a model"},
        ),
        ("Two methods", "chance to find the difference", differences),
        (
            "Smallest AUC that is found",
            "AUC",
            {"fact": "fact, by the audit", "feature": "feature, on 3 of 4 halves"},
        ),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    for ax, (title, label, lines) in zip(axes, panels, strict=True):
        for look in style.plain_looks(lines).values():
            values = curves[look.label]
            ax.plot(curves["participants"], values, color=look.color, label=lines[look.label])
        low, high = (0.5, 1.0) if label == "AUC" else (0.0, 1.0)
        ax.set(xscale="log", ylim=(low, high), xlabel="participants", ylabel=label)
        ax.set_xticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1000"])
        ax.minorticks_off()
        ax.legend(frameon=False, labelcolor=style.INK, fontsize=8.5)
        style.style_axes(ax, title)
    return figure


def write_plan(
    plan: StudyPlan, out: str | PathLike[str] = "plan", *, overwrite: bool = False
) -> Path:
    """Write the tables (CSV) and the figure (SVG, PNG) of a plan into a folder.

    Parameters
    ----------
    plan : StudyPlan
    out : path, default="plan"
    overwrite : bool, default=False
        Replace existing files.

    Returns
    -------
    Path
        The table of participants that are needed.
    """
    folder = Path(out)
    style.refuse_existing(overwrite, *(folder / name for name in FILES))
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "plan.csv", plan.needed)
    write_csv(folder / "plan_by_participants.csv", plan.by_participants)
    style.save_figure(plot_plan(plan).axes[0], "plan", folder / "plan", "plan")
    return folder / "plan.csv"
