"""Draw and describe accuracy against the missing rate and the number of selected features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from idfsmec.evaluation import Results
from idfsmec.report.scores import (
    PROPOSED,
    Methods,
    by_pattern,
    chance_of,
    curve_rows,
    differences,
    family_of,
    fold_scores,
    intervals,
    known_methods,
    label_of,
    proposed_method,
    protocol_note,
    scored_rows,
    shown_metric,
    sort_methods,
    task_scores,
)
from idfsmec.report.style import (
    MUTED,
    MethodLook,
    PageFigure,
    draw_chance,
    label_ends,
    literal_text,
    make_axes,
    method_looks,
    score_limits,
    show_percent,
    style_axes,
)
from idfsmec.report.text import EXCLUDES_ZERO, INCLUDES_ZERO, listing, metric_name, percent, points

#: So many comparison methods are drawn with CI: more would hide each other.
_BEST = 2


@literal_text
def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy by missing rate",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate for all methods.

    The proposed method, the two best of the others (by their mean) and the sanity checks have
    95 % confidence intervals. All further methods are thin, pale lines without.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    methods : mapping, optional
        Name of a method to its ``family`` and ``label``, as in ``Results.methods``; by default
        those of the registry.
    metric : str, default="balanced_accuracy"
        Column of ``scores``.
    chance : mapping, optional
        ``chance``, ``low`` and ``high``: chance level and its 95 % band, drawn as a band.
    note : str
        How the numbers were obtained: folds and tuning; see
        :func:`idfsmec.report.describe_protocol`.
    title : str
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
    """
    ax = make_axes(ax)
    curves = intervals(task_scores(scores, metric), ["method", "rate"])
    _draw_curves(ax, curves, "rate", known_methods(methods), metric, chance, dodge=0.07)
    ax.set_xlabel("share of channels removed, in addition to those the table lacks")
    ax.xaxis.set_major_locator(FixedLocator(sorted(curves["rate"].unique())))
    show_percent(ax.xaxis)
    return style_axes(ax, title, note)


@literal_text
def plot_accuracy_by_k(
    scores: pd.DataFrame,
    *,
    rate: float | None = None,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy by number of selected features",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of selected features.

    Which methods have 95 % CI is decided as in :func:`plot_accuracy_by_rate`.

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
    rows = curve_rows(scores if rate is None else scores[np.isclose(scores["rate"], rate)])
    folds = fold_scores(task_scores(rows, metric, by=["k"]), ["method", "k"])
    curves = _level_methods_without_k(intervals(folds, ["method", "k"]))
    _draw_curves(ax, curves, "k", known_methods(methods), metric, chance, dodge=0.1)
    ax.set_xlabel("selected features")
    ticks = sorted(curves["k"].unique())
    ax.xaxis.set_major_locator(FixedLocator(ticks[:: max(1, len(ticks) // 10)]))
    return style_axes(ax, title, note)


def _level_methods_without_k(curves: pd.DataFrame) -> pd.DataFrame:
    """Draw methods that have no k (all features, boosting) level across the others' range."""
    counts = curves.groupby("method")["k"].nunique()
    level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
    ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
    spread = curves[level].drop(columns="k").merge(ks, how="cross")
    return pd.concat([curves[~level], spread], ignore_index=True)


def _draw_curves(
    ax: Axes, curves: pd.DataFrame, x: str, methods: Methods, metric: str,
    chance: Mapping[str, Any] | None, *, dodge: float,
) -> None:  # fmt: skip
    """Draw a line per method with its CI, the chance band, and names at the lines' ends."""
    names = sort_methods(curves["method"], methods)
    looks = method_looks(names, methods)
    for name in _quiet_methods(curves, methods):
        looks[name] = looks[name]._replace(linewidth=0.8, zorder=2.5, quiet=True)
    positions = np.unique(curves[x])
    step = np.diff(positions).min() if positions.size > 1 else 1.0
    # Lines with bars are moved a little, so that bars do not hide each other.
    barred = [name for name in names if not looks[name].main and not looks[name].quiet]
    width = dodge * step * min(1.0, 6 / max(len(barred), 1))
    ends = {}
    for name in names:
        shift = (barred.index(name) - (len(barred) - 1) / 2) * width if name in barred else 0.0
        curve = curves[curves["method"] == name].sort_values(x)
        ends[name] = _draw_curve(ax, curve, x, name, looks[name], shift)
    with_bars = curves[[not looks[name].quiet for name in curves["method"]]]
    bars = with_bars[["low", "high"]].to_numpy(dtype=float)
    low, high = score_limits(curves["mean"].to_numpy(dtype=float), bars, chance)
    ax.set_ylim(low, high)
    ax.set_ylabel(metric_name(metric))
    show_percent(ax.yaxis)
    if chance:
        draw_chance(ax, chance)
    _explain_lines(ax, sum(look.quiet for look in looks.values()))
    label_ends(ax, {n: (at, float(np.clip(y, low, high))) for n, (at, y) in ends.items()}, looks)


def _quiet_methods(curves: pd.DataFrame, methods: Methods) -> list[str]:
    """Return the methods drawn without CI; a single one is drawn with."""
    means = curves.groupby("method", sort=False)["mean"].mean()
    others = [name for name in means.index if family_of(name, methods) not in (PROPOSED, "sanity")]
    behind = list(means[others].sort_values(ascending=False, kind="stable").index[_BEST:])
    return behind if len(behind) > 1 else []


def _draw_curve(
    ax: Axes, curve: pd.DataFrame, x: str, method: str, look: MethodLook, shift: float
) -> tuple[float, float]:
    at = curve[x].to_numpy(dtype=float) + shift
    mean, low, high = (curve[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
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
    return float(at[-1]), float(mean[-1])


def _explain_lines(ax: Axes, n_quiet: int) -> None:
    """Explain below the axes which methods have CI, where not all have."""
    if not n_quiet:
        return
    strong = Line2D([], [], linewidth=1.4, marker="o", markersize=4, color=MUTED)
    bar = Line2D([], [], linestyle="none", marker="|", markersize=11, color=MUTED, alpha=0.6)
    pale = Line2D([], [], linewidth=0.8, marker="o", markersize=2.5, alpha=0.45, color=MUTED)
    ax.legend(
        [(strong, bar), pale],
        [
            f"with 95 % CI: proposed method, best {_BEST} of the others, sanity checks",
            f"thin: the other {n_quiet} methods, means alone",
        ],
        loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=1, frameon=False, fontsize=8,
        labelcolor=MUTED, labelspacing=0.3, borderaxespad=0,
    )  # fmt: skip


def accuracy_by_rate_figures(results: Results, table: str) -> Iterator[PageFigure]:
    """Accuracy of a table against the missing rate, per pattern of missing channels."""
    caption = (
        "Mean over folds with 95 % CI corrected for overlapping training sets. Grey: 95 % band of "
        "chance."
    )
    yield from _figures(results, table, "accuracy-by-rate", caption, plot_accuracy_by_rate)


def accuracy_by_k_figures(results: Results, table: str) -> Iterator[PageFigure]:
    """Accuracy of a table against the number of selected features."""
    caption = "Mean over folds and missing rates for each number of selected features."
    rows = scored_rows(results, "accuracy", table)
    if not rows.empty and rows["k"].nunique() < 2:
        reason = "Only one number of features was tried, so there is no curve over it."
        yield PageFigure("accuracy-by-k", caption, absent=reason)
    else:
        yield from _figures(results, table, "accuracy-by-k", caption, plot_accuracy_by_k)


def _figures(
    results: Results, table: str, section: str, caption: str, plot: Any
) -> Iterator[PageFigure]:
    rows, chance = scored_rows(results, "accuracy", table), chance_of(results, table)
    if rows.empty:
        reason = "Accuracy was not measured (run idfsmec benchmark)."
        yield PageFigure(section, caption, absent=reason)
    describe = _describe_by_rate if plot is plot_accuracy_by_rate else _describe_by_k
    for pattern, own, note in by_pattern(rows, protocol_note(results, "accuracy")):
        options = {"methods": results.methods, "metric": shown_metric(results), "note": note}
        draw = partial(plot, own, chance=chance, **options)
        yield PageFigure(section, caption, draw, describe(results, table, own), variant=pattern)


def _describe_by_rate(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """Compare with chance and the sanity checks, and state what missing channels cost."""
    main, tasks = proposed_method(results), task_scores(rows, shown_metric(results))
    own = tasks[tasks["method"] == main]
    if main is None or own.empty:
        return []
    sentences = []
    if (chance := chance_of(results, table)) is not None:
        means = own.groupby("rate")["value"].mean()
        above = [percent(rate) for rate in means.index[means > chance["high"]]]
        within = [percent(rate) for rate in means.index[means <= chance["high"]]]
        if not within:
            sentences.append(f"{main} is above the chance band at every missing rate.")
        elif not above:
            sentences.append(f"{main} is above the chance band at no missing rate.")
        else:
            sentences.append(
                f"{main} is above the chance band at {listing(above, 10)} missing, and within it "
                f"at {listing(within, 10)}."
            )
    methods = results.methods
    checks = [m for m in tasks["method"].unique() if family_of(m, methods) == "sanity"]
    if checks:
        paired = differences(tasks[tasks["method"].isin([main, *checks])], "method", main)
        labels = [
            f"{label_of(method, methods)} ({points(difference)})"
            for method, difference in zip(paired["method"], paired["difference"], strict=True)
        ]
        words = ("higher than", "not significantly different from", "lower than")
        groups = _group_by_ci(paired, labels, *words)
        if groups:
            sentences.append(f"Over all rates, paired by fold, in points, it is {groups}.")
    return [*sentences, *_describe_loss(own)]


def _group_by_ci(paired: pd.DataFrame, labels: Sequence[str], *words: str, unit: str = "") -> str:
    """List labels by whether the difference's 95 % CI lies above, around or below 0."""
    above = paired["excludes_zero"] & (paired["difference"] > 0)
    below = paired["excludes_zero"] & (paired["difference"] < 0)
    groups = ((above, EXCLUDES_ZERO), (~above & ~below, INCLUDES_ZERO), (below, EXCLUDES_ZERO))
    return "; ".join(
        f"{word} {listing(np.array(labels)[where], 20)}{unit} ({ci})"
        for word, (where, ci) in zip(words, groups, strict=True)
        if where.any()
    )


def _describe_loss(own: pd.DataFrame) -> list[str]:
    """State the points lost from the lowest to the highest missing rate."""
    rates = sorted(own["rate"].unique())
    if len(rates) < 2:
        return []
    paired = differences(own[own["rate"].isin([rates[0], rates[-1]])], "rate", rates[0])
    if paired.empty:
        return []
    lost, low, high = (float(paired[name].iloc[0]) for name in ("difference", "low", "high"))
    text = f"{'loses' if lost >= 0 else 'gains'} {100 * abs(lost):.1f} points"
    if np.isfinite(low):
        ends = (low, high) if lost >= 0 else (-high, -low)
        text += " (95 % CI {} to {})".format(*(f"{100 * e:.1f}".replace("-", "−") for e in ends))
    return [f"From {percent(rates[0])} to {percent(rates[-1])} missing it {text}."]


def _describe_by_k(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """State how many features are needed, and where selecting them matters."""
    main = proposed_method(results)
    curves = task_scores(curve_rows(rows), shown_metric(results), by=["k"])
    own = curves[curves["method"] == main]
    if main is None or own["k"].nunique() < 2:
        return []
    means = own.groupby("k")["value"].mean()
    best = int(str(means.idxmax()))
    paired = differences(own, "k", best)
    worse = paired.loc[paired["excludes_zero"] & (paired["difference"] > 0), "k"]
    first = f"The mean of {main} is highest with {best} features ({percent(means[best], 1)})"
    if worse.empty:
        span = 100 * (means.max() - means.min())
        first += f"; no other number differs from it ({INCLUDES_ZERO}), all lie within {span:.1f}"
        first += " points."
    else:
        numbers = listing([str(k) for k in sorted(map(int, worse))], 12)
        first += f"; lower with {numbers} ({EXCLUDES_ZERO})."
    return [first, *_compare_with_lowest_check(results, main, curves)]


def _compare_with_lowest_check(results: Results, main: str, curves: pd.DataFrame) -> list[str]:
    """State with how many features selecting is better than the lowest sanity check."""
    methods = results.methods
    counts = curves.groupby("method")["k"].nunique()
    checks = [m for m in counts.index[counts > 1] if family_of(m, methods) == "sanity"]
    if not checks:
        return []
    # Random selection finds the good features too, if enough are kept.
    lowest = str(curves[curves["method"].isin(checks)].groupby("method")["value"].mean().idxmin())
    paired = pd.concat(
        [
            differences(here, "method", main).assign(k=k)
            for k, here in curves[curves["method"].isin([main, lowest])].groupby("k")
            if main in set(here["method"])
        ]
    )
    labels = [str(k) for k in paired["k"]]
    words = ("higher with", "not significantly different with", "lower with")
    groups = _group_by_ci(paired, labels, *words, unit=" features")
    name = label_of(lowest, methods)
    return [f"Compared with {name}, the lowest sanity check, it is {groups}."] if groups else []
