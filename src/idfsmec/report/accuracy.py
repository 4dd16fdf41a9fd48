"""Accuracy drawn against the missing rate and against the number of features kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray

from idfsmec.evaluation import Results
from idfsmec.report.formatting import metric_name
from idfsmec.report.scores import (
    chance_of,
    experiment_rows,
    fold_scores,
    intervals,
    protocol_note,
    setting_curves,
    shown_metric,
    unit_scores,
)
from idfsmec.report.style import (
    BAND,
    MUTED,
    PROPOSED,
    MethodLook,
    Methods,
    family_of,
    label_ends,
    make_axes,
    method_looks,
    registered_methods,
    sort_methods,
    style_axes,
)

#: So many rivals are drawn with intervals: more would hide each other.
_BEST = 2


def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy as channels go missing",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate for all methods.

    The proposed method, the two best of the others (by their mean) and the sanity lines have
    95 % intervals. All further methods are thin, pale lines without.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    methods : mapping, optional
        Name of a method to its ``family`` and ``label``, as in ``Results.methods``; by default
        what the registry says.
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
    ax = make_axes(ax)
    curves = intervals(unit_scores(scores, metric), ["method", "rate"])
    looks = _draw_lines(ax, curves, "rate", methods, dodge=0.07)
    ax.set_xlabel("share of channels taken out, beside those the table lacks")
    ax.xaxis.set_major_locator(FixedLocator(sorted(curves["rate"].unique())))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    _finish(ax, curves, metric, chance, looks)
    return style_axes(ax, title, note)


def plot_accuracy_by_k(
    scores: pd.DataFrame,
    *,
    rate: float | None = None,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy against the number of features kept",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of selected features.

    Who has 95 % intervals is decided as in :func:`plot_accuracy_by_rate`.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern.
    rate : float, optional
        Missing rate to show; by default all rates, averaged.
    methods, metric, chance, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
    """
    ax = make_axes(ax)
    rows = setting_curves(scores if rate is None else scores[np.isclose(scores["rate"], rate)])
    units = fold_scores(unit_scores(rows, metric, by=["k"]), ["method", "k"])
    curves = _level_methods_without_k(intervals(units, ["method", "k"]))
    looks = _draw_lines(ax, curves, "k", methods, dodge=0.1)
    ax.set_xlabel("features kept")
    ticks = np.array(sorted(curves["k"].unique()))
    ax.xaxis.set_major_locator(FixedLocator(list(ticks[:: max(1, len(ticks) // 10)])))
    _finish(ax, curves, metric, chance, looks)
    return style_axes(ax, title, note)


def draw_by_rate(results: Results, table: str) -> dict[str, Axes] | Axes | str:
    """Accuracy against the missing rate for a table of the results, per pattern of gaps."""
    return _draw(results, table, plot_accuracy_by_rate)


def draw_by_k(results: Results, table: str) -> dict[str, Axes] | Axes | str:
    """Accuracy against the number of features for a table of the results."""
    rows = experiment_rows(results, "accuracy", table)
    if not rows.empty and rows["k"].nunique() < 2:
        return "Only one number of features was tried, so there is no curve over it."
    return _draw(results, table, plot_accuracy_by_k)


def _draw(results: Results, table: str, plot: Callable[..., Axes]) -> dict[str, Axes] | Axes | str:
    rows = experiment_rows(results, "accuracy", table)
    metric = shown_metric(results)
    if rows.empty or rows[metric].isna().all():
        return "Accuracy was not measured (run idfsmec benchmark)."
    options: dict[str, Any] = {
        "methods": results.methods,
        "metric": metric,
        "chance": chance_of(results, table),
    }
    note = protocol_note(results, "accuracy")
    patterns = [str(pattern) for pattern in rows["pattern"].unique()]
    if len(patterns) == 1:
        return plot(rows, note=note, **options)
    return {
        pattern: plot(rows[rows["pattern"] == pattern], note=f"{note} · {pattern} gaps", **options)
        for pattern in patterns
    }


def _level_methods_without_k(curves: pd.DataFrame) -> pd.DataFrame:
    """Let methods that have no k (all features, boosting) run level across the others' range."""
    counts = curves.groupby("method")["k"].nunique()
    level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
    ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
    spread = curves[level].drop(columns="k").merge(ks, how="cross")
    return pd.concat([curves[~level], spread], ignore_index=True)


def _draw_lines(
    ax: Axes, curves: pd.DataFrame, x: str, methods: Methods | None, *, dodge: float
) -> dict[str, MethodLook]:
    """Lines with thin bars, moved a little so that bars do not hide each other."""
    names = sort_methods(list(dict.fromkeys(curves["method"])), methods)
    looks = method_looks(names, methods)
    for name in _quiet_methods(curves, methods):
        looks[name] = looks[name].quieter()
    places = np.unique(curves[x])
    step = np.diff(places).min() if places.size > 1 else 1.0
    barred = [name for name in names if not looks[name].main and not looks[name].quiet]
    shift = {name: (i - (len(barred) - 1) / 2) for i, name in enumerate(barred)}
    width = dodge * step * min(1.0, 6 / max(len(barred), 1))
    for name in names:
        own = curves[curves["method"] == name].sort_values(x)
        _draw_method(ax, own, x, name, looks[name], shift.get(name, 0) * width)
    _explain_lines(ax, looks)
    return looks


def _quiet_methods(curves: pd.DataFrame, methods: Methods | None) -> list[str]:
    """Methods drawn without intervals; of a single one, nothing would be gained."""
    known = registered_methods() if methods is None else methods
    means = curves.groupby("method", sort=False)["mean"].mean()
    rivals = [n for n in means.index if family_of(n, known) not in (PROPOSED, "sanity")]
    behind = list(means[rivals].sort_values(ascending=False, kind="stable").index[_BEST:])
    return behind if len(behind) > 1 else []


def _explain_lines(ax: Axes, looks: dict[str, MethodLook]) -> None:
    """Say below the axes who has intervals, where not all have."""
    quiet = sum(look.quiet for look in looks.values())
    if not quiet:
        return
    strong = Line2D([], [], linewidth=1.4, marker="o", markersize=4, color=MUTED)
    bar = Line2D([], [], linestyle="none", marker="|", markersize=11, color=MUTED, alpha=0.6)
    pale = Line2D([], [], linewidth=0.8, marker="o", markersize=2.5, alpha=0.45, color=MUTED)
    ax.legend(
        [(strong, bar), pale],
        [
            f"with 95 % interval: proposed, best {_BEST} of the others, sanity lines",
            f"thin: the {quiet} further methods, means alone",
        ],
        loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=1, frameon=False, fontsize=8,
        labelcolor=MUTED, labelspacing=0.3, borderaxespad=0,
    )  # fmt: skip


def _draw_method(
    ax: Axes, own: pd.DataFrame, x: str, method: str, look: MethodLook, shift: float
) -> None:
    at = own[x].to_numpy(dtype=float) + shift
    mean, low, high = (own[c].to_numpy(dtype=float) for c in ("mean", "low", "high"))
    if look.main:
        ax.fill_between(at, low, high, color=look.color, alpha=0.14, linewidth=0, zorder=1.5)
    elif not look.quiet:
        ax.vlines(at, low, high, color=look.color, alpha=0.35, linewidth=1, zorder=2)
    size, alpha = (6, 1.0) if look.main else (2.5, 0.4) if look.quiet else (4, 0.9)
    ax.plot(
        at, mean, color=look.color, linestyle=look.linestyle, linewidth=look.linewidth,
        marker=look.marker, markersize=size, markeredgewidth=0, alpha=alpha,
        zorder=look.zorder, gid=f"line-{method}",
    )  # fmt: skip


def _finish(
    ax: Axes,
    curves: pd.DataFrame,
    metric: str,
    chance: Mapping[str, Any] | None,
    looks: dict[str, MethodLook],
) -> None:
    """Limits, the band of chance, and names at the lines' ends."""
    ax.set_ylabel(metric_name(metric))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    means = curves["mean"].to_numpy(dtype=float)
    barred = curves[[not looks[name].quiet for name in curves["method"]]]
    low, high = score_limits(means, barred[["low", "high"]].to_numpy(dtype=float), chance)
    ax.set_ylim(low, high)
    if chance:
        draw_chance(ax, chance)
    ends = {}
    for line in ax.lines:
        prefix, _, name = str(line.get_gid()).partition("-")
        if prefix == "line":
            at, value = np.asarray(line.get_xydata())[-1]
            ends[name] = (float(at), float(np.clip(value, low, high)))
    label_ends(ax, ends, looks)


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


def draw_chance(ax: Axes, chance: Mapping[str, Any], along: Literal["x", "y"] = "y") -> None:
    """Shade where guessing ends up 95 times in 100, with its mean as a dotted line.

    ``along`` is the axis of the score.
    """
    upright = along == "x"
    (ax.axvspan if upright else ax.axhspan)(
        chance["low"], chance["high"], color=BAND, alpha=0.38, linewidth=0, zorder=0.5,
        gid="chance",
    )  # fmt: skip
    (ax.axvline if upright else ax.axhline)(
        chance["chance"], color=MUTED, linewidth=1, linestyle=":", zorder=0.6
    )
    if upright:
        place, offset, units = (chance["high"], 0.0), (-4, 4), ("data", "axes fraction")
    else:
        place = (0.0, max(chance["low"], ax.get_ylim()[0]))
        offset, units = (5, 3), ("axes fraction", "data")
    ax.annotate(
        "guessing (95 %)", place, offset, xycoords=units, textcoords="offset points",
        ha="right" if upright else "left", va="bottom", color=MUTED, fontsize=8,
        annotation_clip=False,
    )  # fmt: skip
