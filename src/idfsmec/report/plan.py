"""The plan of a study: its figure, sentences and files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from idfsmec._files import write_csv
from idfsmec.evaluation.plan import TARGETS
from idfsmec.report import style

if TYPE_CHECKING:
    from idfsmec.evaluation import StudyPlan

#: What a plan writes into its folder.
FILES = ("plan.csv", "plan_by_participants.csv", "plan.svg", "plan.png")
#: What each aim is called in the table, before its target.
AIMS = {
    "interval": "cross-validated AUC: 95 % CI not wider than",
    "difference": "difference between two methods' AUC, found with 80 % power",
    "fact": "audit: AUC of a fact, found with 80 % power",
    "validation": "validation of a model: 95 % CI of the AUC not wider than",
    "events": "validation of a model: participants of the rarer class",
    "feature": "stable features: AUC of a feature selected on 3 of 4 halves",
}


def plan_table(plan: StudyPlan) -> pd.DataFrame:
    """Return aim, target and participants as texts."""
    needed = plan.needed.assign(aim=plan.needed["aim"].map(AIMS))
    return needed.assign(
        target=needed["target"].map("{:g}".format), participants=needed["participants"].map(_count)
    )


def _count(n: float) -> str:
    return "more than 100,000" if np.isnan(n) else f"{n:,.0f}"


def describe_plan(plan: StudyPlan) -> list[str]:
    """Return what studies show, one sentence for each aim."""
    needed = plan.needed.set_index(["aim", "target"])["participants"]
    width = plan.validation_width(int(needed["events", 100]))
    texts = needed.map(_count).to_dict()
    return list(style.sentences_of("plan.txt", plan=plan, needed=texts, width=width).values())


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
    widths = {"interval": "cross-validated", "validation": "validation of a model"}
    smallest = {"fact": "fact, by the audit", "feature": "feature, on 3 of 4 halves"}
    panels: list[tuple[str, str, dict[str, str]]] = [
        ("95 % CI of an AUC", "width", widths),
        ("Two methods", "chance to find the difference", differences),
        ("Smallest AUC that is found", "AUC", smallest),
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
