"""What each part of the method is worth: accuracy with it taken out (the paper's Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from idfsmec.paper import published_value
from idfsmec.report._accuracy import draw_chance_upright, score_limits
from idfsmec.report._curves import intervals, unit_scores
from idfsmec.report._style import EMPHASIS, FILTER, INK, MUTED, OURS, PAPER, dress, own_axes
from idfsmec.report._words import metric_name


def ablation_table(
    scores: pd.DataFrame, metric: str, n_channels: int | None = None
) -> pd.DataFrame:
    """Mean over rates of every variant, what taking its part out costs, and the paper's values.

    Returns
    -------
    DataFrame
        Columns ``method``, ``mean``, ``low``, ``high``, ``difference`` (to IDFS-MEC, with
        ``difference_low`` and ``difference_high``), ``published``.
    """
    units = unit_scores(scores, metric)
    by_fold = units.groupby(["method", "seed", "fold"], as_index=False, sort=False)[
        ["value", "n_train", "n_test"]
    ].mean()
    table = intervals(by_fold, ["method"])
    whole = by_fold[by_fold["method"] == OURS].set_index(["seed", "fold"])["value"]
    paired = by_fold.join(whole.rename("whole"), on=["seed", "fold"])
    paired["value"] = paired["value"] - paired["whole"]
    paired = paired.dropna(subset=["value"])
    if not paired.empty:
        gain = intervals(paired, ["method"]).drop(columns="n")
        gain.columns = pd.Index(["method", "difference", "difference_low", "difference_high"])
        table = table.merge(gain, on="method", how="left")
    else:
        table[["difference", "difference_low", "difference_high"]] = np.nan
    table["published"] = [
        published_value("ablation", method, n_channels or 0) for method in table["method"]
    ]
    return table.sort_values("method", key=lambda m: m != OURS, kind="stable")


def plot_ablation(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    n_channels: int | None = None,
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "What each part is worth",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy with a part of IDFS-MEC taken out, averaged over missing rates.

    Parameters
    ----------
    scores : DataFrame
        Rows of the ablation of one table.
    metric : str, default="balanced_accuracy"
    n_channels : int, optional
        With 3, 64 or 128 the paper's values are drawn beside ours, as hollow diamonds.
    chance : mapping, optional
        ``chance``, ``low``, ``high`` of guessing.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    table = ablation_table(scores, metric, n_channels)
    ax = own_axes(ax, 7.2, 1.6 + 0.42 * len(table))
    rows = np.arange(len(table))
    mean, low, high = (table[c].to_numpy(dtype=float) for c in ("mean", "low", "high"))
    for row, method in zip(rows, table["method"], strict=True):
        color = EMPHASIS if method == OURS else FILTER
        ax.hlines(row, low[row], high[row], color=color, linewidth=2, alpha=0.4)
        ax.plot(mean[row], row, "o", color=color, markersize=8, gid=f"ablation-{method}")
        ax.annotate(
            f"{100 * mean[row]:.1f}", (mean[row], row), (0, 7), textcoords="offset points",
            ha="center", fontsize=8.5, color=INK,
            fontweight="bold" if method == OURS else "normal",
        )  # fmt: skip
    printed = table["published"].to_numpy(dtype=float)
    if np.isfinite(printed).any():
        ax.plot(
            printed, rows, "D", markerfacecolor=PAPER, markeredgecolor=MUTED, linestyle="none",
            markersize=6, label="published (arXiv:2511.11651)",
        )  # fmt: skip
        ax.legend(frameon=False, fontsize=8.5, labelcolor=MUTED, loc="lower right",
                  bbox_to_anchor=(1, 1))  # fmt: skip
    ax.set_yticks(rows, ["whole method" if m == OURS else m for m in table["method"]])
    ax.set_ylim(len(table) - 0.5, -0.6)
    ax.set_xlabel(f"{metric_name(metric)}, mean over missing rates")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    shown = np.concatenate([mean, printed[np.isfinite(printed)]])
    ax.set_xlim(score_limits(shown, np.array([low, high]), chance))
    dress(ax, title, note, grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    if chance:
        draw_chance_upright(ax, chance)
    return ax
