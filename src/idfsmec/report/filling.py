"""What fills the gaps: accuracy against the missing rate by filler, and the points each loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from idfsmec.evaluation import Results
from idfsmec.report.accuracy import draw_chance, score_limits
from idfsmec.report.formatting import listing, metric_name, percent, points
from idfsmec.report.scores import (
    chance_of,
    differences,
    experiment_rows,
    intervals,
    protocol_note,
    shown_metric,
    unit_scores,
)
from idfsmec.report.style import (
    CYCLE,
    INK,
    MUTED,
    PAPER,
    MethodLook,
    Methods,
    label_ends,
    label_of,
    make_axes,
    registered_methods,
    sort_methods,
    style_axes,
)

_MARKERS = "osD^vPX"


def points_lost(scores: pd.DataFrame, metric: str = "balanced_accuracy") -> pd.DataFrame:
    """What each filler loses from the lowest to the highest missing rate, paired by fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of the experiment "filling" of one table, with the column ``filler``.
    metric : str, default="balanced_accuracy"

    Returns
    -------
    DataFrame
        Columns ``method``, ``filler``, ``difference`` (score at the lowest rate minus that at the
        highest), ``low``, ``high``, ``n``, ``p_value``, ``sure``.
    """
    units = unit_scores(scores, metric, by=["filler"], chosen=True)
    lowest, highest = units["rate"].min(), units["rate"].max()
    found = [
        differences(own[own["rate"].isin([lowest, highest])], "rate", lowest)
        .drop(columns="rate")
        .assign(method=str(method), filler=str(filler))
        for (method, filler), own in units.groupby(["method", "filler"], sort=False)
        if {lowest, highest} <= set(own["rate"]) and lowest < highest
    ]
    columns = ["method", "filler", "difference", "low", "high", "n", "p_value", "sure"]
    return (pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns))[
        columns
    ]


def plot_filling(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy by what fills the gaps",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate, one line per filler, with 95 % intervals.

    Parameters
    ----------
    scores : DataFrame
        Rows of the experiment "filling" of one table and one method.
    metric : str, default="balanced_accuracy"
    chance : mapping, optional
        ``chance``, ``low`` and ``high`` of guessing, drawn as a band.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = make_axes(ax)
    curves = intervals(unit_scores(scores, metric, by=["filler"], chosen=True), ["filler", "rate"])
    looks = _looks(list(dict.fromkeys(curves["filler"])))
    rates = np.unique(curves["rate"])
    step = 0.05 * (np.diff(rates).min() if rates.size > 1 else 1.0)
    ends = {}
    for place, (filler, look) in enumerate(looks.items()):
        own = curves[curves["filler"] == filler].sort_values("rate")
        at = own["rate"].to_numpy(dtype=float) + step * (place - (len(looks) - 1) / 2)
        ax.vlines(at, own["low"], own["high"], color=look.color, alpha=0.35, linewidth=1)
        ax.plot(at, own["mean"], color=look.color, linewidth=look.linewidth, marker=look.marker,
                markersize=4.5, markeredgewidth=0, gid=f"filler-{filler}")  # fmt: skip
        ends[filler] = (float(at[-1]), float(own["mean"].iloc[-1]))
    ax.set_xlabel("share of channels taken out, beside those the table lacks")
    ax.set_ylabel(metric_name(metric))
    ax.xaxis.set_major_locator(FixedLocator(list(rates)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    bars = curves[["low", "high"]].to_numpy(dtype=float)
    ax.set_ylim(*score_limits(curves["mean"].to_numpy(dtype=float), bars, chance))
    if chance:
        draw_chance(ax, chance)
    label_ends(ax, ends, looks)
    return style_axes(ax, title, note)


def _looks(fillers: list[str]) -> dict[str, MethodLook]:
    return {
        name: MethodLook(
            name, CYCLE[i % len(CYCLE)], _MARKERS[i % len(_MARKERS)], "-", 1.6, 3.0, False
        )
        for i, name in enumerate(fillers)
    }


def plot_points_lost(
    scores: pd.DataFrame,
    *,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "Points lost to missing channels, by filler",
    ax: Axes | None = None,
) -> Axes:
    """Draw what each method with each filler loses from the lowest to the highest rate.

    Parameters
    ----------
    scores : DataFrame
        Rows of the experiment "filling" of one table.
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default what the registry says.
    metric : str, default="balanced_accuracy"
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
        Dots with 95 % intervals; a filled dot is a loss (or gain) whose interval leaves zero
        out.
    """
    known = registered_methods() if methods is None else methods
    found = points_lost(scores, metric)
    looks = _looks(list(dict.fromkeys(scores["filler"].astype(str))))
    names = sort_methods(list(dict.fromkeys(found["method"])), known)
    rows = [row for name in names for row in found[found["method"] == name].to_dict("records")]
    ax = make_axes(ax, 7.2, 1.9 + 0.24 * len(rows))
    y, ticks, last = 0.0, [], None
    for row in rows:
        y += 0.6 if last not in (None, row["method"]) else 0.0
        last, color = row["method"], looks[row["filler"]].color
        ax.hlines(y, row["low"], row["high"], color=color, linewidth=1.6, alpha=0.6)
        ax.plot(row["difference"], y, "o", markersize=5.5, markeredgecolor=color,
                markerfacecolor=color if row["sure"] else PAPER,
                gid=f"lost-{row['method']}-{row['filler']}")  # fmt: skip
        ticks.append((y, f"{label_of(row['method'], known)}, {row['filler']}"))
        y += 1.0
    ax.axvline(0, color=INK, linewidth=1)
    ax.set_yticks([place for place, _ in ticks], [text for _, text in ticks])
    ax.set_ylim(y - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(7))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f}".replace("-", "−")))
    low, high = scores["rate"].min(), scores["rate"].max()
    ax.set_xlabel(
        f"points of {metric_name(metric)} lost from {percent(low)} to {percent(high)} missing"
    )
    note = f"{note}\nfilled dot: the 95 % interval leaves zero out".strip()
    style_axes(ax, title, note, grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=MUTED)
    return ax


def filling_rows(results: Results, table: str) -> pd.DataFrame:
    """Scores of the experiment on a table; none where it was not run."""
    rows = experiment_rows(results, "filling", table)
    return rows.dropna(subset=[shown_metric(results), *({"filler"} & set(rows.columns))])


def draw_filling(results: Results, table: str) -> dict[str, Axes] | str:
    """Curves of the fillers on a table of the results, a figure for each method."""
    rows = filling_rows(results, table)
    if rows.empty:
        return "Fillers were not compared (idfsmec benchmark --experiment filling)."
    known, note = results.methods, protocol_note(results, "filling")
    names = sort_methods([str(name) for name in rows["method"].unique()], known)
    return {
        name: plot_filling(
            rows[rows["method"] == name],
            metric=shown_metric(results),
            chance=chance_of(results, table),
            note=note,
            title=f"{label_of(name, known)}: accuracy by what fills the gaps",
        )
        for name in names
    }


def draw_lost(results: Results, table: str) -> Axes | None:
    """Points lost per filler on a table of the results."""
    rows = filling_rows(results, table)
    if rows.empty or rows["rate"].nunique() < 2:
        return None
    return plot_points_lost(
        rows,
        methods=results.methods,
        metric=shown_metric(results),
        note=protocol_note(results, "filling"),
    )


def say_lost(results: Results, table: str) -> list[str]:
    """Which filler loses least, for each method."""
    rows = filling_rows(results, table)
    if rows.empty or rows["rate"].nunique() < 2:
        return []
    found, known, sentences = points_lost(rows, shown_metric(results)), results.methods, []
    for name in sort_methods(list(dict.fromkeys(found["method"])), known):
        own = found[found["method"] == name].sort_values("difference", kind="stable")
        each = [
            f"{filler} {100 * lost:.1f}".replace("-", "−")
            for filler, lost in zip(own["filler"], own["difference"], strict=True)
        ]
        sentences.append(f"{label_of(name, known)} loses, by filler: {listing(each, 12)} points.")
    return sentences


def say_filling(results: Results, table: str) -> dict[str, list[str]]:
    """For each method, which filler is highest where most is missing, and which are behind."""
    rows, metric = filling_rows(results, table), shown_metric(results)
    said = {}
    for method, own in rows.groupby("method", sort=False):
        units = unit_scores(own, metric, by=["filler"], chosen=True)
        here = units[units["rate"] == units["rate"].max()]
        means = here.groupby("filler")["value"].mean()
        best = str(means.idxmax())
        found = differences(here, "filler", best)
        sure = found[found["sure"] & (found["difference"] > 0)]
        each = [
            f"{name} ({points(-lost)} points)"
            for name, lost in zip(sure["filler"], sure["difference"], strict=True)
        ]
        behind = f"surely behind: {listing(each, 8)}" if each else "no other is surely behind"
        rate, score = percent(here["rate"].iloc[0]), percent(means[best], 1)
        said[str(method)] = [f"At {rate} missing {best} is highest ({score}); {behind}."]
    return said
