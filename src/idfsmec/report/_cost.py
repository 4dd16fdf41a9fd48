"""What a selection costs: seconds per method, with the paper's seconds beside ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from idfsmec.paper import published_value
from idfsmec.paper.published import DATASETS
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
from idfsmec.report._words import listing
from idfsmec.report._words import seconds as as_seconds


def cost_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Seconds per method and number of channels, with the paper's where it has that number.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``seconds`` and ``n_channels``.

    Returns
    -------
    DataFrame
        Columns ``method``, ``n_channels``, ``median``, ``least``, ``most``, ``published``;
        methods fastest first (at the largest number), channels rising.
    """
    once = scores[scores["method"] != "all features"].dropna(subset=["seconds"])
    unit = ["table", "pattern", "rate", "seed", "fold", "method"]
    once = once.drop_duplicates([*unit, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    table = grouped.agg(["median", "min", "max"]).reset_index()
    table.columns = pd.Index(["method", "n_channels", "median", "least", "most"])
    table["published"] = [
        published_value("cost", method, int(count))
        for method, count in zip(table["method"], table["n_channels"], strict=True)
    ]
    largest = table.sort_values("n_channels").groupby("method")["median"].last()
    table["order"] = table["method"].map(largest)
    table = table.sort_values(["order", "method", "n_channels"], kind="stable")
    return table.drop(columns="order").reset_index(drop=True)


def plot_cost(
    scores: pd.DataFrame,
    *,
    note: str = "",
    title: str = "Seconds per selection",
    ax: Axes | None = None,
) -> Axes:
    """Draw the time of one selection for all methods, on a logarithmic scale.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``seconds`` and ``n_channels`` of one table, perhaps with several numbers of
        channels: larger dots for more channels. At 3, 64 and 128 channels the paper's seconds
        are drawn as hollow diamonds.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    table = cost_table(scores)
    methods = list(dict.fromkeys(table["method"]))
    counts = sorted(table["n_channels"].unique())
    size = {count: 4 + 5 * (i + 1) / len(counts) for i, count in enumerate(counts)}
    ax = own_axes(ax, 7.2, 1.8 + 0.27 * len(methods))
    looks = method_looks(sort_methods(methods))
    for row, method in enumerate(methods):
        own = table[table["method"] == method]
        # Clocks tick: a selection that took no measurable time still has a place on the axis.
        least, median, most = (
            np.maximum(own[c].to_numpy(dtype=float), 1e-6) for c in ("least", "median", "most")
        )
        color = looks[method].color
        ax.hlines(row, least.min(), most.max(), color=color, linewidth=1.6, alpha=0.35)
        ax.scatter(
            median, np.full(median.size, row), s=[size[c] ** 2 for c in own["n_channels"]],
            color=color, zorder=3, linewidth=0, gid=f"cost-{method}",
        )  # fmt: skip
    _draw_published(ax, table, methods, size)
    ax.set_xscale("log")
    ax.set_yticks(np.arange(len(methods)), methods)
    for text, method in zip(ax.get_yticklabels(), methods, strict=True):
        text.set_fontweight("bold" if method == OURS else "normal")
    ax.set_ylim(len(methods) - 0.5, -0.5)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=12))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: as_seconds(v)))
    ax.set_xlabel("one selection (dot: median; bar: least to most)")
    said = listing([f"{count:g}" for count in counts]) + " channels"
    said += " (small to large dots)" if len(counts) > 1 else ""
    dress(ax, title, f"{note}\n{said}".strip(), grid="x")
    ax.tick_params(axis="x", which="minor", length=0)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax


def _draw_published(
    ax: Axes, table: pd.DataFrame, methods: list[str], size: dict[float, float]
) -> None:
    there = table.dropna(subset=["published"])
    if there.empty:
        return
    ax.scatter(
        there["published"], [methods.index(m) for m in there["method"]], marker="D",
        s=[(0.8 * size[c]) ** 2 for c in there["n_channels"]], facecolor=PAPER, edgecolor=MUTED,
        zorder=4, label="published (arXiv:2511.11651)", gid="published",
    )  # fmt: skip
    ax.legend(
        frameon=False, fontsize=8.5, labelcolor=MUTED, loc="lower right", bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
    )  # fmt: skip


def paper_counts() -> str:
    """The channel counts the paper has seconds for, in words."""
    return listing([str(count) for count in DATASETS])
