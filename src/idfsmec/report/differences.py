"""The proposed method minus each of the others, fold by fold: which differences are sure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from idfsmec.evaluation import Results, holm
from idfsmec.report.formatting import metric_name, percent
from idfsmec.report.scores import (
    differences,
    experiment_rows,
    proposed_method,
    protocol_note,
    shown_metric,
    unit_scores,
)
from idfsmec.report.style import (
    INK,
    MUTED,
    PAPER,
    MethodLook,
    Methods,
    main_method,
    make_axes,
    method_looks,
    registered_methods,
    sort_methods,
    style_axes,
)


def paired_differences(
    scores: pd.DataFrame, reference: str, metric: str = "balanced_accuracy"
) -> pd.DataFrame:
    """Differences of a method to all others at every missing rate, paired by fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str
        The method that the others are compared with.
    metric : str, default="balanced_accuracy"

    Returns
    -------
    DataFrame
        Columns ``rate``, ``method``, ``difference`` (reference minus method), ``low``, ``high``
        (95 %, corrected for overlapping training sets), ``n``, ``p_value``, ``sure`` (zero lies
        outside of the interval) and ``p_holm``, corrected for all comparisons in the table.
    """
    units = unit_scores(scores, metric)
    found = [
        differences(here, "method", reference).assign(rate=float(str(rate)))
        for rate, here in units.groupby("rate", sort=True)
        if reference in set(here["method"])
    ]
    columns = ["rate", "method", "difference", "low", "high", "n", "p_value", "sure"]
    table = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)
    p = table["p_value"].astype(float)
    table["p_holm"] = np.nan
    table.loc[p.notna(), "p_holm"] = holm(p.dropna())
    return table[[*columns, "p_holm"]]


def plot_paired_differences(
    scores: pd.DataFrame,
    *,
    reference: str | None = None,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a method's differences to all others by missing rate, with 95 % intervals.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str, optional
        The method that the others are compared with; by default the proposed one.
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default what the registry says.
    metric : str, default="balanced_accuracy"
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
        One row per method; within it one interval per rate, from few to many missing channels.
        A filled dot is a difference whose interval leaves zero out, an arrow at the frame one that
        goes on beyond it.
    """
    known = registered_methods() if methods is None else methods
    names = sort_methods(list(dict.fromkeys(scores["method"])), known)
    main = reference or main_method(names, known)
    if main is None:
        raise ValueError("There is no proposed method among scores: name one with reference.")
    table = paired_differences(scores, main, metric)
    looks, others = method_looks(names, known), [name for name in names if name != main]
    rates = sorted(table["rate"].unique())
    ax = make_axes(ax, 7.2, 2.3 + len(others) * (0.16 + 0.08 * len(rates)))
    offsets = np.linspace(-0.36, 0.36, len(rates)) if len(rates) > 1 else np.zeros(1)
    limits = _limits(table)
    strengths = np.linspace(0.4, 1, len(rates)) if len(rates) > 1 else np.ones(1)
    cut = False
    for row, name in enumerate(others):
        for offset, strength, rate in zip(offsets, strengths, rates, strict=True):
            here = table[(table["method"] == name) & (table["rate"] == rate)]
            for one in here.to_dict("records"):
                _draw_difference(ax, one, row + offset, looks[name], float(strength))
                cut |= _draw_ends(ax, one, row + offset, looks[name], limits)
    ax.axvline(0, color=INK, linewidth=1)
    for row in range(1, len(others)):
        ax.axhline(row - 0.5, color=MUTED, linewidth=0.4, alpha=0.4)
    ax.set_yticks(range(len(others)), [looks[name].label for name in others])
    ax.set_ylim(len(others) - 0.5, -0.5)
    ax.set_xlim(limits)
    ax.xaxis.set_major_locator(MaxNLocator(7))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{100 * v:+.0f}".replace("-", "−") if v else "0")
    )
    ax.set_xlabel(f"difference in {metric_name(metric)}, points")
    order = ", ".join(percent(rate) for rate in rates)
    note = (
        f"{note}\nwithin a row from top (pale) to bottom: {order} missing\n"
        "filled dot: the 95 % interval leaves zero out"
        f"{'; arrow: it goes on beyond the frame' if cut else ''}"
    ).strip()
    style_axes(ax, title or f"{looks[main].label} minus each method", note, grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    _name_sides(ax, looks[main].label)
    return ax


def _draw_difference(
    ax: Axes, one: Mapping[Any, Any], y: float, look: MethodLook, strength: float
) -> None:
    ax.hlines(y, one["low"], one["high"], color=look.color, linewidth=1.3, alpha=0.75 * strength)
    ax.plot(
        one["difference"], y, "o", markersize=4.2, markeredgewidth=1.1, markeredgecolor=look.color,
        markerfacecolor=look.color if one["sure"] else PAPER, alpha=strength,
        gid=f"difference-{one['method']}-{one['rate']:g}",
    )  # fmt: skip


def _draw_ends(
    ax: Axes, one: Mapping[Any, Any], y: float, look: MethodLook, limits: tuple[float, float]
) -> bool:
    """Put an arrow at the frame where an interval runs out of it; say whether there is one."""
    ends = [(limits[0], "<", one["low"] < limits[0]), (limits[1], ">", one["high"] > limits[1])]
    for edge, arrow, out in ends:
        if out:
            ax.plot(
                edge, y, arrow, markersize=3.6, markeredgewidth=0, color=look.color, zorder=4,
                clip_on=False, gid=f"beyond-{one['method']}-{one['rate']:g}",
            )  # fmt: skip
    return any(out for *_, out in ends)


def _limits(table: pd.DataFrame) -> tuple[float, float]:
    """Limits that show all differences; very wide intervals run out of the axes."""
    if table.empty:
        return -0.1, 0.1
    values = table["difference"].to_numpy(dtype=float)
    reach = max(float(np.abs(values).max()) * 1.6, 0.05)
    bars = table[["low", "high"]].to_numpy(dtype=float)
    bars = np.clip(bars[np.isfinite(bars)], -reach, reach)
    marks = np.concatenate([values, bars, [-0.02, 0.02]])
    return float(marks.min()) - 0.01, float(marks.max()) + 0.01


def _name_sides(ax: Axes, main: str) -> None:
    """Say which side of zero is whose."""
    for x, text, side in ((0.0, "← the other is better", "left"), (1.0, f"{main} is better →",
                                                                 "right")):  # fmt: skip
        ax.annotate(text, (x, 0), (0, -22), xycoords="axes fraction", ha=side, va="top",
                    textcoords="offset points", color=MUTED, fontsize=8.5)  # fmt: skip


def draw_differences(results: Results, table: str) -> dict[str, Axes] | Axes | str | None:
    """Differences of the proposed method on a table of the results, per pattern of gaps."""
    rows = experiment_rows(results, "accuracy", table)
    metric, main = shown_metric(results), proposed_method(results)
    rows = rows.dropna(subset=[metric])
    if rows.empty or main not in set(rows["method"]):
        return None
    if rows["method"].nunique() < 2:
        return f"Only {main} was run; there are no differences to other methods."
    note = protocol_note(results, "accuracy")
    options: dict[str, Any] = {"reference": main, "methods": results.methods, "metric": metric}
    patterns = [str(pattern) for pattern in rows["pattern"].unique()]
    if len(patterns) == 1:
        return plot_paired_differences(rows, note=note, **options)
    return {
        pattern: plot_paired_differences(
            rows[rows["pattern"] == pattern], note=f"{note} · {pattern} gaps", **options
        )
        for pattern in patterns
    }
