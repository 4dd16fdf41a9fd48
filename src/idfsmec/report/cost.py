"""What a selection costs: seconds per method and number of channels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from idfsmec.evaluation import Results
from idfsmec.report.formatting import listing
from idfsmec.report.formatting import seconds as as_seconds
from idfsmec.report.scores import (
    UNIT,
    experiment_rows,
    protocol_note,
    published_values,
)
from idfsmec.report.style import (
    INK,
    MUTED,
    PAPER,
    Methods,
    make_axes,
    method_looks,
    sort_methods,
    style_axes,
)


def cost_table(scores: pd.DataFrame, published: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Seconds per method and number of channels.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``seconds`` and ``n_channels``.
    published : mapping, optional
        Method to published seconds, for the largest number of channels.

    Returns
    -------
    DataFrame
        Columns ``method``, ``n_channels``, ``median``, ``least``, ``most``, ``published``;
        methods fastest first (at the largest number), channels rising.
    """
    once = scores.dropna(subset=["seconds"]).drop_duplicates([*UNIT, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    table = grouped.agg(["median", "min", "max"]).reset_index()
    table.columns = pd.Index(["method", "n_channels", "median", "least", "most"])
    whole = table["n_channels"] == table["n_channels"].max()
    table["published"] = table["method"].map(dict(published or {})).astype(float).where(whole)
    largest = table.sort_values("n_channels").groupby("method")["median"].last()
    table["order"] = table["method"].map(largest)
    table = table.sort_values(["order", "method", "n_channels"], kind="stable")
    return table.drop(columns="order").reset_index(drop=True)


def plot_cost(
    scores: pd.DataFrame,
    *,
    methods: Methods | None = None,
    published: Mapping[str, float] | None = None,
    note: str = "",
    title: str = "Seconds per selection",
    ax: Axes | None = None,
) -> Axes:
    """Draw the time of one selection for all methods, on a logarithmic scale.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``seconds`` and ``n_channels`` of one table, perhaps with several numbers of
        channels: larger dots for more channels.
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default what the registry says.
    published : mapping, optional
        Method to published seconds for the largest number of channels, drawn as hollow diamonds.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    table = cost_table(scores, published)
    names = list(dict.fromkeys(table["method"]))
    counts = sorted(table["n_channels"].unique())
    size = {count: 4 + 5 * (i + 1) / len(counts) for i, count in enumerate(counts)}
    ax = make_axes(ax, 7.2, 1.8 + 0.27 * len(names))
    looks = method_looks(sort_methods(names, methods), methods)
    for row, name in enumerate(names):
        own = table[table["method"] == name]
        # Clocks tick: a selection that took no measurable time still has a place on the axis.
        least, median, most = (
            np.maximum(own[c].to_numpy(dtype=float), 1e-6) for c in ("least", "median", "most")
        )
        color = looks[name].color
        ax.hlines(row, least.min(), most.max(), color=color, linewidth=1.6, alpha=0.35)
        ax.scatter(
            median, np.full(median.size, row), s=[size[c] ** 2 for c in own["n_channels"]],
            color=color, zorder=3, linewidth=0, gid=f"cost-{name}",
        )  # fmt: skip
    _draw_published(ax, table, names, size)
    ax.set_xscale("log")
    ax.set_yticks(np.arange(len(names)), [looks[name].label for name in names])
    for text, name in zip(ax.get_yticklabels(), names, strict=True):
        text.set_fontweight("bold" if looks[name].main else "normal")
    ax.set_ylim(len(names) - 0.5, -0.5)
    low, high = ax.get_xlim()
    # Within two powers of ten a label at each of them would leave the axis almost bare.
    steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(10, subs=steps, numticks=12))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: as_seconds(v)))
    ax.set_xlabel("one selection (dot: median; bar: least to most)")
    sizes = listing([f"{count:g}" for count in counts]) + " channels"
    sizes += " (small to large dots)" if len(counts) > 1 else ""
    style_axes(ax, title, f"{note}\n{sizes}".strip(), grid="x")
    ax.tick_params(axis="x", which="minor", length=0)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax


def _draw_published(
    ax: Axes, table: pd.DataFrame, names: list[str], size: dict[float, float]
) -> None:
    there = table.dropna(subset=["published"])
    if there.empty:
        return
    from idfsmec.paper import SOURCE  # all methods: few figures need it

    ax.scatter(
        there["published"], [names.index(m) for m in there["method"]], marker="D",
        s=[(0.8 * size[c]) ** 2 for c in there["n_channels"]], facecolor=PAPER, edgecolor=MUTED,
        zorder=4, label=f"published ({SOURCE})", gid="published",
    )  # fmt: skip
    ax.legend(
        frameon=False, fontsize=8.5, labelcolor=MUTED, loc="lower right", bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
    )  # fmt: skip


def draw_cost(results: Results, table: str) -> Axes | str:
    """The cost on a table of the results and on parts of its channels, or why there is none."""
    rows = experiment_rows(results, "cost", table)
    if rows.empty or rows["seconds"].isna().all():
        return "Cost was not measured (idfsmec benchmark --experiment cost)."
    return plot_cost(
        rows,
        methods=results.methods,
        published=published_seconds(results, table, rows),
        note=protocol_note(results, "cost"),
    )


def published_seconds(results: Results, table: str, rows: pd.DataFrame) -> dict[str, float]:
    """The paper's seconds, where all channels of its data set were timed."""
    if rows["n_channels"].max() < len(results.tables[table]["channels"]):
        return {}
    return published_values(results, "cost", table)
