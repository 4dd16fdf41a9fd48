"""Draw and describe accuracy by missing rate, number of selected features, and imputer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from idfsmec.report import data, style
from idfsmec.report.data import TableResults
from idfsmec.report.style import PageFigure
from idfsmec.report.text import SIGNIFICANT, listing, metric_name, percent, points

_TEST = "(5 %, Holm's correction)"
#: So many comparison methods are drawn with CI: more would hide each other.
_BEST = 2
Looks = Mapping[str, style.MethodLook]


@style.literal_text
def plot_accuracy_by_rate(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
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
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
    """
    curves = data.intervals(data.task_scores(scores, metric), ["method", "rate"])
    looks = _curve_looks(curves, data.known_methods(methods))
    ax = _draw_curves(curves, "rate", looks, metric, chance, ax)
    return style.style_axes(ax, "Accuracy by missing rate", note + _explain(looks))


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


def _explain(looks: Looks) -> str:
    """Explain which methods have CI, where not all have."""
    n_quiet = sum(look.quiet for look in looks.values())
    text = f"\n95 % CI: proposed method, best {_BEST} of the others, sanity checks; thin: means of"
    return f"{text} the other {n_quiet} methods" if n_quiet else ""


def _draw_curves(
    curves: pd.DataFrame, x: str, looks: Looks, metric: str, chance: Mapping[str, Any] | None,
    ax: Axes | None = None, dodge: float = 0.07,
) -> Axes:  # fmt: skip
    """Draw a line per method with its CI, the chance band, and names at the lines' ends."""
    ax = style.make_axes(ax)
    ticks = np.unique(curves[x])
    step = np.diff(ticks).min() if ticks.size > 1 else 1.0
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
        mean, low, high = curve[["mean", "low", "high"]].to_numpy(dtype=float).T
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
    if x == "rate":
        ax.set_xlabel("share of channels removed, in addition to those the table lacks")
        style.show_percent(ax.xaxis)
    else:
        ax.set_xlabel("selected features")
        ticks = ticks[:: max(1, len(ticks) // 10)]
    ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    return ax


def accuracy_by_rate_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the missing rate, per pattern of missing channels."""
    caption = (
        "Mean over folds with 95 % CI corrected for overlapping training sets. Grey: 95 % band of "
        "chance."
    )
    for pattern, rows, note in table.by_pattern():
        draw = partial(
            plot_accuracy_by_rate, rows, methods=table.methods, metric=table.metric,
            chance=table.chance(), note=note,
        )  # fmt: skip
        sentences = _describe_by_rate(table, rows)
        yield PageFigure("accuracy-by-rate", draw, caption, sentences, pattern)


def _describe_by_rate(table: TableResults, rows: pd.DataFrame) -> list[str]:
    """Compare with chance and the sanity checks, and state what missing channels cost."""
    main, tasks = table.main, data.task_scores(rows, table.metric)
    own = tasks[tasks["method"] == main]
    if own.empty:
        return []
    sentences = []
    if (chance := table.chance()) is not None:
        means = own.groupby("rate")["value"].mean()
        above, within = (
            listing([percent(rate) for rate in means.index[where]], 10)
            for where in (means > chance["high"], means <= chance["high"])
        )
        where = f"{above} missing, and within it at {within}"
        if not above or not within:
            where = f"{'every' if above else 'no'} missing rate"
        sentences.append(f"{main} is above the chance band at {where}.")
    if checks := _sanity_checks(table, tasks["method"]):
        paired = data.differences(tasks[tasks["method"].isin([main, *checks])], "method", main)
        labels = [
            f"{table.label(row['method'])} ({points(row['difference'])})"
            for row in paired.to_dict("records")
        ]
        words = ("higher than", "not significantly different from", "lower than")
        if groups := _group_by_test(paired, labels, words):
            sentences.append(f"Over all rates, in points, it is {groups} {_TEST}.")
    return [*sentences, *_describe_loss(own)]


def _sanity_checks(table: TableResults, names: pd.Series) -> list[str]:
    return [name for name in names.unique() if data.family_of(name, table.methods) == "sanity"]


def _group_by_test(
    paired: pd.DataFrame, labels: Sequence[str], words: Sequence[str], unit: str = ""
) -> str:
    """List labels by whether the difference is significantly above 0, neither, or below."""
    sign = np.sign(paired["difference"]) * paired["significant"]
    return "; ".join(
        f"{word} {listing(np.array(labels)[sign == side], 20)}{unit}"
        for word, side in zip(words, (1, 0, -1), strict=True)
        if (sign == side).any()
    )


def _describe_loss(own: pd.DataFrame) -> list[str]:
    """State the points lost from the lowest to the highest missing rate."""
    low_rate, high_rate = own["rate"].min(), own["rate"].max()
    paired = data.differences(own[own["rate"].isin([low_rate, high_rate])], "rate", low_rate)
    if paired.empty:
        return []
    lost, low, high = 100 * paired[["difference", "low", "high"]].iloc[0].astype(float)
    text = f"{'loses' if lost >= 0 else 'gains'} {abs(lost):.1f} points"
    if np.isfinite(low):
        low, high = (low, high) if lost >= 0 else (-high, -low)
        text += f" (95 % CI {low:.1f} to {high:.1f})".replace("-", "−")
    return [f"From {percent(low_rate)} to {percent(high_rate)} missing it {text}."]


def accuracy_by_k_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the number of selected features, per pattern of missing channels."""
    if table.rows()["k"].nunique() < 2:
        return
    caption = "Mean over folds and missing rates for each number of selected features."
    for pattern, rows, note in table.by_pattern():
        tasks = data.task_scores(_curve_rows(rows), table.metric, by=["k"])
        draw, sentences = partial(_draw_by_k, table, tasks, note), _describe_by_k(table, tasks)
        yield PageFigure("accuracy-by-k", draw, caption, sentences, pattern)


def _curve_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the setting that tuning chose, for every k; all where there is one."""
    chosen = scores[scores["chosen"].astype(bool)]
    setting = chosen.drop_duplicates(data.TASK).set_index(data.TASK)["params"].rename("setting")
    joined = scores.join(setting, on=data.TASK)
    several = joined.groupby([*data.TASK, "k"])["params"].transform("nunique") > 1
    return scores[~several | joined["setting"].isna() | (joined["params"] == joined["setting"])]


def _draw_by_k(table: TableResults, tasks: pd.DataFrame, note: str) -> Axes:
    curves = data.intervals(data.fold_scores(tasks, ["method", "k"]), ["method", "k"])
    # Methods that have no k (all features, boosting) run level across the others' range.
    counts = curves.groupby("method")["k"].nunique()
    level = curves["method"].isin(counts.index[(counts == 1) & (counts.max() > 1)])
    ks = pd.DataFrame({"k": sorted(curves.loc[~level, "k"].unique())})
    spread = curves[level].drop(columns="k").merge(ks, how="cross")
    curves = pd.concat([curves[~level], spread], ignore_index=True)
    looks = _curve_looks(curves, table.methods)
    ax = _draw_curves(curves, "k", looks, table.metric, table.chance(), dodge=0.1)
    return style.style_axes(ax, "Accuracy by number of selected features", note + _explain(looks))


def _describe_by_k(table: TableResults, tasks: pd.DataFrame) -> list[str]:
    """State how many features are needed, and where selecting them matters."""
    own = tasks[tasks["method"] == table.main]
    if own["k"].nunique() < 2:
        return []
    means = own.groupby("k")["value"].mean()
    best = int(str(means.idxmax()))
    paired = data.differences(own, "k", best)
    worse = paired.loc[paired["significant"] & (paired["difference"] > 0), "k"]
    text = f"lower with {listing(sorted(map(int, worse)), 12)} ({SIGNIFICANT})"
    if worse.empty:
        span = 100 * (means.max() - means.min())
        text = f"no difference to other numbers is {SIGNIFICANT}; all lie within {span:.1f} points"
    first = f"The mean of {table.main} is highest with {best} features"
    sentences = [f"{first} ({percent(means[best], 1)}); {text}."]
    counts = tasks.groupby("method")["k"].transform("nunique")
    if checks := _sanity_checks(table, tasks.loc[counts > 1, "method"]):
        # Random selection finds the good features too, if enough are kept.
        values = tasks[tasks["method"].isin(checks)].groupby("method")["value"].mean()
        lowest = values.idxmin()
        compared = tasks[tasks["method"].isin([table.main, lowest])].groupby("k")
        paired = pd.concat(
            data.differences(here, "method", table.main).assign(k=k)
            for k, here in compared
            if table.main in set(here["method"])
        )
        paired = data.add_significance(paired)
        words = ("higher with", "not significantly different with", "lower with")
        if groups := _group_by_test(paired, [str(k) for k in paired["k"]], words, " features"):
            name = table.label(lowest)
            sentences.append(f"Compared with {name}, the lowest baseline, it is {groups} {_TEST}.")
    return sentences


def imputation_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy against the missing rate by imputer, per method, and the points each loses."""
    rows = table.rows("imputation")
    if rows.empty:
        return
    tasks = data.task_scores(rows, table.metric, by=["imputer"], chosen=True)
    names = data.sort_methods(rows["method"], table.methods)
    caption = (
        "Mean over folds with 95 % CI, one line for each imputer applied before the classifier."
    )
    for name in names:
        own = tasks[tasks["method"] == name]
        draw, sentences = partial(_draw_imputers, table, name, own), [_describe_imputers(own)]
        yield PageFigure("imputation", draw, caption, sentences, name)
    losses = _imputation_losses(tasks, names)
    if losses.empty:
        return
    caption = (
        "Score at the lowest missing rate minus that at the highest, paired by fold. An imputer "
        "that replaces missing channels well loses little."
    )
    sentences = []
    for method, own in losses.groupby("method", sort=False):
        each = [
            f"{row['imputer']} {100 * row['difference']:.1f}".replace("-", "−")
            for row in own.sort_values("difference", kind="stable").to_dict("records")
        ]
        sentences.append(f"{table.label(method)} loses, by imputer: {listing(each, 12)} points.")
    draw = partial(_draw_losses, table, losses, rows)
    yield PageFigure("imputation-loss", draw, caption, sentences)


def _draw_imputers(table: TableResults, method: str, tasks: pd.DataFrame) -> Axes:
    curves = data.intervals(tasks, ["imputer", "rate"]).rename(columns={"imputer": "method"})
    looks = style.plain_looks(curves["method"])
    ax = _draw_curves(curves, "rate", looks, table.metric, table.chance(), dodge=0.05)
    title = f"{table.label(method)}: accuracy by imputer"
    return style.style_axes(ax, title, table.note("imputation"))


def _describe_imputers(tasks: pd.DataFrame) -> str:
    """Name the imputer with the highest score where most is missing, and those below it."""
    here = tasks[tasks["rate"] == tasks["rate"].max()]
    means = here.groupby("imputer")["value"].mean()
    best = str(means.idxmax())
    paired = data.differences(here, "imputer", best)
    each = [
        f"{row['imputer']} ({points(-row['difference'])} points)"
        for row in paired[paired["significant"] & (paired["difference"] > 0)].to_dict("records")
    ]
    others = f"no difference to the others is {SIGNIFICANT}"
    if each:
        others = f"lower ({SIGNIFICANT}): {listing(each, 8)}"
    rate, score = percent(here["rate"].iloc[0]), percent(means[best], 1)
    return f"At {rate} missing {best} is highest ({score}); {others}."


def _imputation_losses(tasks: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Subtract the score at the highest missing rate from that at the lowest, by fold."""
    low, high = tasks["rate"].min(), tasks["rate"].max()
    tasks = tasks[tasks["rate"].isin([low, high])]
    losses = [
        data.differences(own, "rate", low).assign(method=method, imputer=str(imputer))
        for method in methods
        for imputer, own in tasks[tasks["method"] == method].groupby("imputer", sort=False)
        if low in set(own["rate"])
    ]
    return pd.concat(losses, ignore_index=True) if losses else pd.DataFrame()


def _draw_losses(table: TableResults, losses: pd.DataFrame, rows: pd.DataFrame) -> Axes:
    looks = style.plain_looks(rows["imputer"].astype(str))
    ax = style.make_axes(None, 7.2, 1.9 + 0.24 * len(losses))
    # Methods stand a little apart from each other.
    heights = np.arange(len(losses)) + 0.6 * pd.factorize(losses["method"])[0]
    for y, row in zip(heights, losses.to_dict("records"), strict=True):
        estimate, color = (row["difference"], row["low"], row["high"]), looks[row["imputer"]].color
        gid = f"loss-{row['method']}-{row['imputer']}"
        style.draw_estimate(ax, y, estimate, color, filled=row["significant"], gid=gid)
    ax.axvline(0, color=style.INK, linewidth=1)
    names = zip(losses["method"], losses["imputer"], strict=True)
    ax.set_yticks(heights, [f"{table.label(method)}, {imputer}" for method, imputer in names])
    ax.set_ylim(heights.max(initial=0) + 0.6, -0.6)
    style.show_points(ax.xaxis)
    low, high = percent(rows["rate"].min()), percent(rows["rate"].max())
    ax.set_xlabel(f"points of {metric_name(table.metric)} lost from {low} to {high} missing")
    title = "Points lost to missing channels, by imputer"
    note = f"{table.note('imputation')}\nfilled dot: {SIGNIFICANT}"
    return style.style_axes(ax, title, note, grid="x", rows=True)
