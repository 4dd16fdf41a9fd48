"""Draw and describe accuracy against the missing rate and the number of selected features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from idfsmec.evaluation import Results
from idfsmec.report import data, style
from idfsmec.report.text import EXCLUDES_ZERO, INCLUDES_ZERO, listing, metric_name, percent, points

#: So many comparison methods are drawn with CI: more would hide each other.
_BEST = 2


@style.literal_text
def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
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
    ax = style.make_axes(ax)
    curves = data.intervals(data.task_scores(scores, metric), ["method", "rate"])
    looks = _curve_looks(curves, data.known_methods(methods))
    draw_curves(ax, curves, "rate", looks, metric, chance, dodge=0.07)
    show_rates(ax, curves["rate"])
    return style.style_axes(ax, title, note + _explain(looks))


@style.literal_text
def plot_accuracy_by_k(
    scores: pd.DataFrame,
    *,
    rate: float | None = None,
    methods: data.Methods | None = None,
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
    ax = style.make_axes(ax)
    rows = data.curve_rows(scores if rate is None else scores[np.isclose(scores["rate"], rate)])
    folds = data.fold_scores(data.task_scores(rows, metric, by=["k"]), ["method", "k"])
    curves = _level_methods_without_k(data.intervals(folds, ["method", "k"]))
    looks = _curve_looks(curves, data.known_methods(methods))
    draw_curves(ax, curves, "k", looks, metric, chance, dodge=0.1)
    ax.set_xlabel("selected features")
    ticks = sorted(curves["k"].unique())
    ax.xaxis.set_major_locator(FixedLocator(ticks[:: max(1, len(ticks) // 10)]))
    return style.style_axes(ax, title, note + _explain(looks))


def _level_methods_without_k(curves: pd.DataFrame) -> pd.DataFrame:
    """Draw methods that have no k (all features, boosting) level across the others' range."""
    counts = curves.groupby("method")["k"].nunique()
    level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
    ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
    spread = curves[level].drop(columns="k").merge(ks, how="cross")
    return pd.concat([curves[~level], spread], ignore_index=True)


def _curve_looks(curves: pd.DataFrame, methods: data.Methods) -> dict[str, style.MethodLook]:
    """Give methods their looks; all but the best of many others are quiet."""
    looks = style.method_looks(data.sort_methods(curves["method"], methods), methods)
    means = curves.groupby("method", sort=False)["mean"].mean()
    kept = (data.PROPOSED, "sanity")
    others = means[[name for name in means.index if data.family_of(name, methods) not in kept]]
    behind = others.sort_values(ascending=False, kind="stable").index[_BEST:]
    for name in behind if len(behind) > 1 else ():
        looks[name] = looks[name]._replace(linewidth=0.8, zorder=2.5, quiet=True)
    return looks


def _explain(looks: Mapping[str, style.MethodLook]) -> str:
    """Explain which methods have CI, where not all have."""
    n_quiet = sum(look.quiet for look in looks.values())
    text = (
        f"\n95 % CI: proposed method, best {_BEST} of the others, sanity checks; thin: means of "
    )
    return f"{text}the other {n_quiet} methods" if n_quiet else ""


def draw_curves(
    ax: Axes, curves: pd.DataFrame, x: str, looks: Mapping[str, style.MethodLook], metric: str,
    chance: Mapping[str, Any] | None, *, dodge: float,
) -> None:  # fmt: skip
    """Draw a line per method with its CI, the chance band, and names at the lines' ends."""
    positions = np.unique(curves[x])
    step = np.diff(positions).min() if positions.size > 1 else 1.0
    barred = curves[[not looks[name].quiet for name in curves["method"]]]
    bars = barred[["low", "high"]].to_numpy(dtype=float)
    limits = style.score_limits(curves["mean"].to_numpy(dtype=float), bars, chance)
    ax.set_ylim(limits)
    ax.set_ylabel(metric_name(metric))
    style.show_percent(ax.yaxis)
    if chance:
        style.draw_chance(ax, chance)
    # Lines with bars are moved a little, so that bars do not hide each other.
    moved = [name for name, look in looks.items() if not look.main and not look.quiet]
    width = dodge * step * min(1.0, 6 / max(len(moved), 1))
    ends = {}
    for name, look in looks.items():
        shift = (moved.index(name) - (len(moved) - 1) / 2) * width if name in moved else 0.0
        curve = curves[curves["method"] == name].sort_values(x)
        at = curve[x].to_numpy(dtype=float) + shift
        mean, low, high = (curve[end].to_numpy(dtype=float) for end in ("mean", "low", "high"))
        if look.main:
            ax.fill_between(at, low, high, color=look.color, alpha=0.14, linewidth=0, zorder=1.5)
        elif not look.quiet:
            ax.vlines(at, low, high, color=look.color, alpha=0.35, linewidth=1, zorder=2)
        size, alpha = (6, 1.0) if look.main else (2.5, 0.4) if look.quiet else (4, 0.9)
        ax.plot(
            at, mean, color=look.color, linestyle=look.linestyle, linewidth=look.linewidth,
            marker=look.marker, markersize=size, markeredgewidth=0, alpha=alpha,
            zorder=look.zorder, gid=f"line-{name}",
        )  # fmt: skip
        ends[name] = (float(at[-1]), float(np.clip(mean[-1], *limits)))
    style.label_ends(ax, ends, looks)


def show_rates(ax: Axes, rates: pd.Series) -> None:
    """Label the axis of missing rates."""
    ax.set_xlabel("share of channels removed, in addition to those the table lacks")
    ax.xaxis.set_major_locator(FixedLocator(sorted(rates.unique())))
    style.show_percent(ax.xaxis)


def accuracy_by_rate_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """Accuracy of a table against the missing rate, per pattern of missing channels."""
    caption = (
        "Mean over folds with 95 % CI corrected for overlapping training sets. Grey: 95 % band of "
        "chance."
    )
    yield from _figures(results, table, "accuracy-by-rate", caption, plot_accuracy_by_rate)


def accuracy_by_k_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """Accuracy of a table against the number of selected features."""
    caption = "Mean over folds and missing rates for each number of selected features."
    rows = data.scored_rows(results, "accuracy", table)
    if not rows.empty and rows["k"].nunique() < 2:
        reason = "Only one number of features was tried, so there is no curve over it."
        yield style.PageFigure("accuracy-by-k", caption, absent=reason)
    else:
        yield from _figures(results, table, "accuracy-by-k", caption, plot_accuracy_by_k)


def _figures(
    results: Results, table: str, section: str, caption: str, plot: Any
) -> Iterator[style.PageFigure]:
    rows, chance = data.scored_rows(results, "accuracy", table), data.chance_of(results, table)
    if rows.empty:
        reason = "Accuracy was not measured (run idfsmec benchmark)."
        yield style.PageFigure(section, caption, absent=reason)
    describe = _describe_by_rate if plot is plot_accuracy_by_rate else _describe_by_k
    for pattern, own, note in data.by_pattern(rows, data.protocol_note(results, "accuracy")):
        options = {"methods": results.methods, "metric": data.shown_metric(results), "note": note}
        draw = partial(plot, own, chance=chance, **options)
        yield style.PageFigure(
            section, caption, draw, describe(results, table, own), variant=pattern
        )


def _describe_by_rate(results: Results, table: str, rows: pd.DataFrame) -> list[str]:
    """Compare with chance and the sanity checks, and state what missing channels cost."""
    main, tasks = data.proposed_method(results), data.task_scores(rows, data.shown_metric(results))
    own = tasks[tasks["method"] == main]
    if main is None or own.empty:
        return []
    sentences = []
    if (chance := data.chance_of(results, table)) is not None:
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
    checks = [m for m in tasks["method"].unique() if data.family_of(m, methods) == "sanity"]
    if checks:
        paired = data.differences(tasks[tasks["method"].isin([main, *checks])], "method", main)
        labels = [
            f"{data.label_of(method, methods)} ({points(difference)})"
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
    paired = data.differences(own[own["rate"].isin([rates[0], rates[-1]])], "rate", rates[0])
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
    main = data.proposed_method(results)
    curves = data.task_scores(data.curve_rows(rows), data.shown_metric(results), by=["k"])
    own = curves[curves["method"] == main]
    if main is None or own["k"].nunique() < 2:
        return []
    means = own.groupby("k")["value"].mean()
    best = int(str(means.idxmax()))
    paired = data.differences(own, "k", best)
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
    checks = [m for m in counts.index[counts > 1] if data.family_of(m, methods) == "sanity"]
    if not checks:
        return []
    # Random selection finds the good features too, if enough are kept.
    lowest = str(curves[curves["method"].isin(checks)].groupby("method")["value"].mean().idxmin())
    paired = pd.concat(
        [
            data.differences(here, "method", main).assign(k=k)
            for k, here in curves[curves["method"].isin([main, lowest])].groupby("k")
            if main in set(here["method"])
        ]
    )
    labels = [str(k) for k in paired["k"]]
    words = ("higher with", "not significantly different with", "lower with")
    groups = _group_by_ci(paired, labels, *words, unit=" features")
    name = data.label_of(lowest, methods)
    return [f"Compared with {name}, the lowest sanity check, it is {groups}."] if groups else []
