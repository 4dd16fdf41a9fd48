"""Accuracy drawn against the missing rate and against the number of features kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray

from idfsmec.report._curves import intervals, setting_curves, unit_scores
from idfsmec.report._style import (
    BAND,
    MUTED,
    OURS,
    MethodLook,
    dress,
    label_ends,
    method_looks,
    own_axes,
    sort_methods,
)
from idfsmec.report._words import metric_name

_CHANCE_BAND: dict[str, Any] = {
    "color": BAND,
    "alpha": 0.38,
    "linewidth": 0,
    "zorder": 0.5,
    "gid": "chance",
}
_CHANCE_LINE: dict[str, Any] = {"color": MUTED, "linewidth": 1, "linestyle": ":", "zorder": 0.6}
_CHANCE_WORDS: dict[str, Any] = {"color": MUTED, "fontsize": 8, "va": "bottom"}


def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy as channels go missing",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate for all methods, with 95 % intervals.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    metric : str, default="balanced_accuracy"
        Column of ``scores``.
    chance : mapping, optional
        ``chance``, ``low`` and ``high`` of guessing, drawn as a band.
    note : str
        How the numbers came about: folds and tuning; see
        :func:`idfsmec.report.describe_protocol`.
    title : str
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
    """
    ax = own_axes(ax)
    curves = intervals(unit_scores(scores, metric), ["method", "rate"])
    _draw_lines(ax, curves, "rate", dodge=0.07)
    ax.set_xlabel("share of channels missing")
    ax.xaxis.set_major_locator(FixedLocator(sorted(curves["rate"].unique())))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    return _finish(ax, curves, metric, chance, title, note)


def plot_accuracy_by_k(
    scores: pd.DataFrame,
    *,
    rate: float | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy against the number of features kept",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of selected features, with 95 % intervals.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern.
    rate : float, optional
        Missing rate to show; by default all rates, averaged.
    metric, chance, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
    """
    ax = own_axes(ax)
    rows = setting_curves(scores if rate is None else scores[np.isclose(scores["rate"], rate)])
    units = unit_scores(rows, metric, by=["k"])
    # A fold counts once: its rates are averaged first.
    units = units.groupby(["method", "k", "seed", "fold"], as_index=False, sort=False)[
        ["value", "n_train", "n_test"]
    ].mean()
    curves = _flatten(intervals(units, ["method", "k"]))
    _draw_lines(ax, curves, "k", dodge=0.1)
    ax.set_xlabel("features kept")
    ticks = np.array(sorted(curves["k"].unique()))
    ax.xaxis.set_major_locator(FixedLocator(list(ticks[:: max(1, len(ticks) // 10)])))
    return _finish(ax, curves, metric, chance, title, note)


def _flatten(curves: pd.DataFrame) -> pd.DataFrame:
    """Let methods that have no k (all features, boosting) run level across the others' range."""
    counts = curves.groupby("method")["k"].nunique()
    flat = counts.index[(counts == 1) & (counts.max() > 1)]
    ks = sorted(curves.loc[~curves["method"].isin(flat), "k"].unique())
    level = curves[curves["method"].isin(flat)].drop(columns="k").merge(pd.DataFrame({"k": ks}),
        how="cross")  # fmt: skip
    return pd.concat([curves[~curves["method"].isin(flat)], level], ignore_index=True)


def _draw_lines(ax: Axes, curves: pd.DataFrame, x: str, *, dodge: float) -> None:
    """Lines with thin bars, moved a little so that bars do not hide each other."""
    methods = sort_methods(list(dict.fromkeys(curves["method"])))
    looks = method_looks(methods)
    places = np.unique(curves[x])
    step = np.diff(places).min() if places.size > 1 else 1.0
    rivals = [method for method in methods if method != OURS]
    shift = {m: (i - (len(rivals) - 1) / 2) for i, m in enumerate(rivals)}
    width = dodge * step * min(1.0, 6 / max(len(rivals), 1))
    for method in methods:
        own = curves[curves["method"] == method].sort_values(x)
        _draw_method(ax, own, x, method, looks[method], shift.get(method, 0) * width)


def _draw_method(
    ax: Axes, own: pd.DataFrame, x: str, method: str, look: MethodLook, shift: float
) -> None:
    at = own[x].to_numpy(dtype=float) + shift
    mean, low, high = (own[c].to_numpy(dtype=float) for c in ("mean", "low", "high"))
    emphasised = method == OURS
    if emphasised:
        ax.fill_between(at, low, high, color=look.color, alpha=0.14, linewidth=0, zorder=1.5)
    else:
        ax.vlines(at, low, high, color=look.color, alpha=0.28, linewidth=0.9, zorder=2)
    ax.plot(
        at,
        mean,
        color=look.color,
        linestyle=look.linestyle,
        linewidth=look.linewidth,
        marker=look.marker,
        markersize=6 if emphasised else 4,
        markeredgewidth=0,
        alpha=1 if emphasised else 0.85,
        zorder=look.zorder,
        label=method,
        gid=f"line-{method}",
    )


def _finish(
    ax: Axes,
    curves: pd.DataFrame,
    metric: str,
    chance: Mapping[str, Any] | None,
    title: str,
    note: str,
) -> Axes:
    ax.set_ylabel(metric_name(metric))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    seen = curves["mean"].to_numpy(dtype=float)
    bars = curves[["low", "high"]].to_numpy(dtype=float)
    low, high = score_limits(seen, bars, chance)
    ax.set_ylim(low, high)
    dress(ax, title, note)
    if chance:
        draw_chance(ax, chance)
    methods = sort_methods(list(dict.fromkeys(curves["method"])))
    ends = {}
    for line in ax.lines:
        if line.get_label() in methods:
            at, value = np.asarray(line.get_xydata())[-1]
            ends[str(line.get_label())] = (float(at), float(np.clip(value, low, high)))
    label_ends(ax, ends, method_looks(methods))
    return ax


def score_limits(
    means: NDArray[np.float64], bars: NDArray[np.float64], chance: Mapping[str, Any] | None
) -> tuple[float, float]:
    """Limits that show all means and chance; intervals that are very wide run out of the axes."""
    marks = [means.min(), means.max()]
    middle, reach = (means.min() + means.max()) / 2, np.ptp(means) / 2 + 0.1
    within = bars[np.isfinite(bars) & (np.abs(bars - middle) < reach)]
    marks += [within.min(), within.max()] if within.size else []
    if chance:
        marks += [chance["chance"] - 0.03, chance["high"]]
    return max(min(marks) - 0.03, -0.02), min(max(marks) + 0.03, 1.02)


def draw_chance(ax: Axes, chance: Mapping[str, Any]) -> None:
    """Shade where guessing ends up 95 times in 100, with its mean as a dotted line."""
    ax.axhspan(chance["low"], chance["high"], **_CHANCE_BAND)
    ax.axhline(chance["chance"], **_CHANCE_LINE)
    ax.annotate(
        "guessing (95 %)",
        (0, max(chance["low"], ax.get_ylim()[0])),
        (5, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        annotation_clip=False,
        **_CHANCE_WORDS,
    )


def draw_chance_upright(ax: Axes, chance: Mapping[str, Any]) -> None:
    """The same where accuracy runs to the right."""
    ax.axvspan(chance["low"], chance["high"], **_CHANCE_BAND)
    ax.axvline(chance["chance"], **_CHANCE_LINE)
    ax.annotate(
        "guessing (95 %)",
        (chance["high"], 0),
        (-4, 4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right",
        **_CHANCE_WORDS,
    )
