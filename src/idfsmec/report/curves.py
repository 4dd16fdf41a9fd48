"""Draw curves: a line with its CI for each method, imputer or setting, named at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator
from numpy.typing import NDArray

from idfsmec.report import style
from idfsmec.report.style import MethodLook
from idfsmec.report.text import percent

#: So many values of x are named at most.
_MOST_TICKS = 12


def draw_curves(
    curves: pd.DataFrame,
    x: str,
    looks: Mapping[str, MethodLook],
    labels: tuple[str, str, str, str],
    *,
    line: str = "method",
    chance: Mapping[str, Any] | None = None,
    log: str = "",
    written: Callable[[float], str] = percent,
    ax: Axes | None = None,
) -> Axes:
    """Draw ``mean`` against a column, with a CI from ``low`` to ``high``.

    ``line`` is the column that names the lines, ``looks`` says how each is drawn, ``labels`` are
    title, note, and what stands at the axes. ``log`` has the names of logarithmic axes.
    ``written`` formats values.
    """
    ax = style.make_axes(ax)
    ticks = np.unique(curves[x].to_numpy(dtype=float))
    barred = curves[[not looks[name].quiet for name in curves[line]]]
    ax.set_ylim(_limits(curves["mean"], barred[["low", "high"]], chance, "y" in log))
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log", subs=[])
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    if chance:
        _draw_chance(ax, chance)
    # Lines with bars are moved a little, so that bars do not hide each other.
    forth, back = (np.log, np.exp) if "x" in log else (np.array, np.array)
    step = np.diff(forth(ticks)).min() if ticks.size > 1 else 1.0
    margin = max(0.5 * step, 0.05 * np.ptp(forth(ticks)))
    ax.set_xlim(*back(forth(ticks[[0, -1]]) + [-margin, margin]))
    moved = [name for name, look in looks.items() if not look.main and not look.quiet]
    width = 0.4 * step / max(len(moved), 6)
    ends = {}
    for name, look in looks.items():
        shift = (moved.index(name) - (len(moved) - 1) / 2) * width if name in moved else 0.0
        curve = curves[curves[line] == name].sort_values(x)
        at = back(forth(curve[x].to_numpy(dtype=float)) + shift)
        mean, low, high = curve[["mean", "low", "high"]].to_numpy(dtype=float).T
        if look.main and at.size > 1:
            ax.fill_between(at, low, high, color=look.color, alpha=0.14, linewidth=0, zorder=1.5)
        elif not look.quiet:
            ax.vlines(at, low, high, color=look.color, alpha=0.35, linewidth=1, zorder=2)
        ax.plot(
            at,
            mean,
            color=look.color,
            linestyle=look.linestyle,
            linewidth=2.4 if look.main else 0.8 if look.quiet else 1.2,
            marker=look.marker,
            markersize=6 if look.main else 2.5 if look.quiet else 4,
            markeredgewidth=0,
            alpha=0.4 if look.quiet else 1.0,
            zorder=5 if look.main else 2.5 if look.quiet else 3,
            gid=f"line-{name}",
        )
        ends[name] = (float(at[-1]), float(np.clip(mean[-1], *ax.get_ylim())))
    shown = ticks[:: -(-ticks.size // _MOST_TICKS)]
    ax.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    ax.xaxis.set_major_formatter(lambda v, _: percent(v) if x == "rate" else f"{v:g}")
    ax.yaxis.set_major_formatter(lambda v, _: written(v))
    ax.xaxis.set_minor_locator(NullLocator())
    _label_ends(ax, ends, looks)
    title, note, xlabel, ylabel = labels
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return style.style_axes(ax, title, note)


def _limits(
    mean: pd.Series, ends: pd.DataFrame, chance: Mapping[str, Any] | None, log: bool
) -> tuple[float, float]:
    """Return limits that show all means and chance; very wide CI run out of the axes."""
    means, bars = mean.to_numpy(dtype=float), ends.to_numpy(dtype=float)
    if log:
        return float(np.nanmin(bars) / 2), float(np.nanmax(bars) * 2)
    middle, reach = (means.min() + means.max()) / 2, np.ptp(means) / 2 + 0.1
    within = bars[np.isfinite(bars) & (np.abs(bars - middle) < reach)]
    marks = [means.min(), means.max(), *within.flat]
    if chance:
        marks += [chance["chance"] - 0.03, chance["high"]]
    return max(min(marks) - 0.03, -0.02), min(max(marks) + 0.03, 1.02)


def _draw_chance(ax: Axes, chance: Mapping[str, Any]) -> None:
    """Shade the 95 % band of chance, where there is one; its level is a dotted line."""
    low, high = chance["low"], chance["high"]
    ax.axhspan(low, high, color=style.BAND, alpha=0.38, linewidth=0, zorder=0.5, gid="chance")
    ax.axhline(chance["chance"], color=style.MUTED, linewidth=1, linestyle=":", zorder=0.6)
    text = "chance (95 %)" if low < high else "chance"
    at = (0, max(low, ax.get_ylim()[0]))
    style.annotate(ax, text, at, (5, 3), ("axes fraction", "data"), va="bottom", fontsize=8)


def _label_ends(
    ax: Axes, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, MethodLook]
) -> None:
    """Name each line beside its last point, instead of in a legend; limits must be final."""
    axes_of_data = ax.transData - ax.transAxes
    starts, heights = axes_of_data.transform(list(ends.values())).T
    n_points = ax.get_position().height * style.figure_of(ax).get_size_inches()[1] * 72
    spread = _spread(heights, gap=11.5 / max(n_points, 1))
    for name, start, height, at in zip(ends, starts, heights, spread, strict=True):
        look = looks[name]
        middle = height if abs(height - at) < 0.01 else (height + at) / 2
        leader = [start + 0.01, 1.015, 1.035], [height, middle, at]
        where: dict[str, Any] = {"transform": ax.transAxes, "color": look.color}
        ax.plot(*leader, linewidth=0.6, alpha=0.7, clip_on=False, gid="leader", **where)
        size, weight = (9, "bold") if look.main else (8 if look.quiet else 8.5, "normal")
        ax.text(1.045, at, look.label, va="center", fontsize=size, fontweight=weight, **where)


def _spread(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move labels apart as little as possible, keeping their order, within [0, 1]."""
    from scipy.optimize import isotonic_regression  # only figures with lines need it

    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(heights.size)
    most = max(1 - gap * (heights.size - 1), 0.0)
    spread = np.empty(heights.size)
    spread[order] = np.clip(isotonic_regression(heights[order] - steps).x, 0, most) + steps
    return spread
