"""What a selection costs: seconds per method, with the paper's seconds beside ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from idfsmec.evaluation import published_value
from idfsmec.evaluation.published import DATASETS
from idfsmec.report._style import (
    INK,
    MUTED,
    OURS,
    PAPER,
    dress,
    method_looks,
    own_axes,
    sort_methods,
)
from idfsmec.report._words import seconds as as_seconds


def nearest_published(n_channels: int) -> int:
    """The paper's channel count closest in ratio, to compare the cost with.

    Examples
    --------
    >>> nearest_published(60), nearest_published(4)
    (64, 3)
    """
    return min(DATASETS, key=lambda count: abs(np.log(count / max(n_channels, 1))))


def cost_table(scores: pd.DataFrame, n_channels: int) -> pd.DataFrame:
    """Median, least and most seconds per method, with the nearest published value.

    Returns
    -------
    DataFrame
        Columns ``method``, ``median``, ``least``, ``most``, ``published``; fastest first.
    """
    once = scores.drop_duplicates(["pattern", "rate", "seed", "fold", "method", "params"])
    once = once[once["method"] != "all features"].dropna(subset=["seconds"])
    table = once.groupby("method")["seconds"].agg(["median", "min", "max"]).reset_index()
    table.columns = pd.Index(["method", "median", "least", "most"])
    count = nearest_published(n_channels)
    table["published"] = [published_value("cost", m, count) for m in table["method"]]
    return table.sort_values("median", kind="stable").reset_index(drop=True)


def plot_cost(
    scores: pd.DataFrame,
    n_channels: int,
    *,
    note: str = "",
    title: str = "Seconds per selection",
    ax: Axes | None = None,
) -> Axes:
    """Draw the time of one selection for all methods, on a logarithmic scale.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``seconds`` of one table.
    n_channels : int
        Channels of the table; the paper's seconds for the nearest of its counts (3, 64, 128)
        are drawn as hollow diamonds.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    table = cost_table(scores, n_channels)
    ax = own_axes(ax, 7.2, 1.7 + 0.27 * len(table))
    looks = method_looks(sort_methods(list(table["method"])))
    rows = np.arange(len(table))
    # Clocks tick: a selection that took no measurable time still has a place on the axis.
    least, median, most = (
        np.maximum(table[c].to_numpy(dtype=float), 1e-6) for c in ("least", "median", "most")
    )
    for row, method in zip(rows, table["method"], strict=True):
        color = looks[method].color
        ax.hlines(row, least[row], most[row], color=color, linewidth=2, alpha=0.35)
        ax.plot(median[row], row, "o", color=color, markersize=7, gid=f"cost-{method}")
    ax.set_xscale("log")
    printed = table["published"].to_numpy(dtype=float)
    if np.isfinite(printed).any():
        ax.plot(
            printed, rows, "D", markerfacecolor=PAPER, markeredgecolor=MUTED, linestyle="none",
            markersize=5.5, label=f"published, {nearest_published(n_channels)} channels",
        )  # fmt: skip
        ax.legend(frameon=False, fontsize=8.5, labelcolor=MUTED, loc="lower right",
                  bbox_to_anchor=(1, 1), borderaxespad=0.2)  # fmt: skip
    ax.set_yticks(rows, list(table["method"]))
    for text, method in zip(ax.get_yticklabels(), table["method"], strict=True):
        text.set_fontweight("bold" if method == OURS else "normal")
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=12))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: as_seconds(v)))
    ax.set_xlabel("one selection (dot: median; bar: least to most)")
    dress(ax, title, f"{note}\n{n_channels} channels".strip(), grid="x")
    ax.tick_params(axis="x", which="minor", length=0)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax
