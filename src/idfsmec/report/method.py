"""Draw and describe the method itself: its parts, its two parameters, convergence, and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
)
from numpy.typing import ArrayLike

from idfsmec.evaluation import Results
from idfsmec.report import data, style
from idfsmec.report.text import (
    EXCLUDES_ZERO,
    listing,
    metric_name,
    plain_records,
    points,
    seconds,
)

_PUBLISHED = "published (arXiv:2511.11651)"


def ablation_table(
    scores: pd.DataFrame,
    metric: str,
    methods: data.Methods | None = None,
    published: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Average every variant over rates, and subtract the whole method, paired by fold."""
    by_fold = data.fold_scores(data.task_scores(scores, metric), ["method"])
    table = data.intervals(by_fold, ["method"])
    whole = data.main_method(table["method"], data.known_methods(methods))
    reference = by_fold[by_fold["method"] == whole].set_index(["seed", "fold"])["value"]
    paired = by_fold.join(reference.rename("whole"), on=["seed", "fold"])
    paired["value"] -= paired["whole"]
    gains = data.intervals(paired.dropna(subset=["value"]), ["method"]).drop(columns="n")
    gains.columns = pd.Index(["method", "difference", "difference_low", "difference_high"])
    table = table.merge(gains, on="method", how="left")
    table["published"] = table["method"].map(dict(published or {})).astype(float)
    table["whole"] = table["method"] == whole
    return table.sort_values("whole", ascending=False, kind="stable")


@style.literal_text
def plot_ablation(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    published: Mapping[str, float] | None = None,
    note: str = "",
    title: str = "Ablation",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy with a part of the method taken out, averaged over missing rates.

    Parameters
    ----------
    scores : DataFrame
        Rows of the ablation of one table.
    published : mapping, optional
        Variant to a published value, drawn beside as a hollow diamond.
    methods, metric, chance, note, title, ax
        As for :func:`plot_accuracy_by_rate`. The whole method is of the family "proposed".

    Returns
    -------
    Axes
    """
    table = ablation_table(scores, metric, methods, published)
    looks = style.method_looks(list(table["method"]), methods)
    ax = style.make_axes(ax, 7.2, 1.6 + 0.42 * len(table))
    rows = np.arange(len(table))
    for y, row in enumerate(table.to_dict("records")):
        look = looks[row["method"]]
        style.draw_estimate(
            ax, y, row["mean"], row["low"], row["high"], look.color, filled=True, size=8,
            gid=f"ablation-{row['method']}",
        )  # fmt: skip
        ax.annotate(
            f"{100 * row['mean']:.1f}", (row["mean"], y), (0, 7), textcoords="offset points",
            ha="center", fontsize=8.5, color=style.INK,
            fontweight="bold" if look.main else "normal",
        )  # fmt: skip
    printed = table["published"].to_numpy(dtype=float)
    if np.isfinite(printed).any():
        ax.plot(printed, rows, "D", markerfacecolor=style.PAPER, markeredgecolor=style.MUTED,
                linestyle="none", markersize=6, label=_PUBLISHED)  # fmt: skip
        style.add_legend(ax)
    ax.set_yticks(
        rows, ["whole method" if looks[m].main else looks[m].label for m in table["method"]]
    )
    ax.set_ylim(len(table) - 0.5, -0.6)
    ax.set_xlabel(f"{metric_name(metric)}, mean over missing rates")
    style.show_percent(ax.xaxis)
    shown = np.concatenate([table["mean"], printed[np.isfinite(printed)]])
    ax.set_xlim(style.score_limits(shown, table[["low", "high"]].to_numpy(dtype=float), chance))
    style.style_axes(ax, title, note, grid="x", rows=True)
    if chance:
        style.draw_chance(ax, chance, along="x")
    return ax


def ablation_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """The ablation of a table."""
    caption = "The whole method, and with one part taken out. Bars are 95 % CI."
    if table == results.data_set:
        caption += (
            " Diamonds are the paper's plain accuracies on this data set (folds not stated)."
        )
    shown = partial(style.PageFigure, "ablation", caption)
    rows, metric, methods = (
        data.scored_rows(results, "ablation", table),
        data.shown_metric(results),
        results.methods,
    )
    if rows.empty:
        reason = "The ablation was not run (idfsmec benchmark --experiment ablation)."
        yield shown(absent=reason)
        return
    draw = partial(
        plot_ablation, rows, methods=methods, metric=metric, chance=data.chance_of(results, table),
        published=data.published_values(results, "ablation", table),
        note=data.protocol_note(results, "ablation"),
    )  # fmt: skip
    variants = ablation_table(rows, metric, methods)
    variants = variants[~variants["whole"] & variants["difference_low"].notna()]
    clear = variants[(variants["difference_high"] < 0) | (variants["difference_low"] > 0)]
    each = [
        f"{data.label_of(method, methods)} ({points(difference)} points)"
        for method, difference in zip(clear["method"], clear["difference"], strict=True)
    ]
    text = "No variant differs from the whole method: all 95 % CI include 0."
    if each:
        text = f"Different from the whole method ({EXCLUDES_ZERO}): {listing(each, 10)}."
    yield shown(draw, [] if variants.empty else [text])


def summarise_ablation(results: Results, table: str) -> list[dict[str, Any]] | None:
    """Return the ablation as plain data; None where it was not run."""
    rows = data.scored_rows(results, "ablation", table)
    if rows.empty:
        return None
    published = data.published_values(results, "ablation", table)
    variants = ablation_table(rows, data.shown_metric(results), results.methods, published)
    variants["method"] = [data.label_of(name, results.methods) for name in variants["method"]]
    return plain_records(variants)


def sensitivity_surface(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Average scores over folds, rates and k: gammas (rows) x lambdas (columns)."""
    tasks = data.task_scores(scores, metric, by=["lam", "gamma"])
    return tasks.pivot_table(index="gamma", columns="lam", values="value", aggfunc="mean")


@style.literal_text
def plot_sensitivity(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "Accuracy over λ and γ",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy over the grid of the two parameters.

    Parameters
    ----------
    scores : DataFrame
        Rows with ``lam`` and ``gamma``; averaged over folds, rates and numbers of features.
    metric, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
    """
    surface = sensitivity_surface(scores, metric)
    values = surface.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = style.make_axes(ax, float(np.clip(3 + 0.7 * n_columns, 6.2, 8.5)), 1.9 + 0.38 * n_rows)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # At least three points of range: noise must not look like a landscape.
    middle, half = (low + high) / 2, max((high - low) / 2, 0.015)
    image = ax.pcolormesh(
        np.ma.masked_invalid(values), cmap=style.SEQUENTIAL, vmin=middle - half,
        vmax=middle + half, edgecolors=style.PAPER, linewidth=0.8,
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = value > middle + 0.3 * half
            ax.text(column + 0.5, row + 0.5, f"{100 * value:.1f}", ha="center", va="center",
                    fontsize=8, color="#ffffff" if dark else "#1b1b1b")  # fmt: skip
    row, column = divmod(int(np.nanargmax(values)), n_columns)
    ax.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor=style.INK, linewidth=2, gid="best")
    )
    ax.set_xticks(np.arange(n_columns) + 0.5, [f"{lam:g}" for lam in surface.columns])
    ax.set_yticks(np.arange(n_rows) + 0.5, [f"{gamma:g}" for gamma in surface.index])
    ax.set_xlabel("λ: redundancy weight")
    ax.set_ylabel("γ: channel evenness")
    note += f"\nall settings within {100 * (high - low):.1f} points; best one framed"
    style.style_axes(ax, title, note, grid=None, frame=False)
    style.add_colorbar(ax, image, metric_name(metric), PercentFormatter(1, decimals=1))
    return ax


def sensitivity_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """The grid of settings of a table."""
    shown = partial(
        style.PageFigure,
        "sensitivity",
        "Mean over folds, missing rates and numbers of features for every setting. The best cell "
        "was chosen on test folds, so its value is optimistic.",
    )
    rows = data.scored_rows(results, "sensitivity", table).dropna(subset=["lam", "gamma"])
    if rows.empty:
        reason = "The grid of λ and γ was not run (idfsmec benchmark --experiment sensitivity)."
        yield shown(absent=reason)
        return
    metric = data.shown_metric(results)
    surface = sensitivity_surface(rows, metric)
    along_lam, along_gamma = np.ptp(surface.mean(axis=0)), np.ptp(surface.mean(axis=1))
    sentence = (
        f"On average λ changes the score by {100 * along_lam:.1f} points and γ by "
        f"{100 * along_gamma:.1f}."
    )
    note = data.protocol_note(results, "sensitivity")
    yield shown(partial(plot_sensitivity, rows, metric=metric, note=note), [sentence])


@style.literal_text
def plot_convergence(
    history: ArrayLike, *, note: str = "", title: str = "Convergence", ax: Axes | None = None
) -> Axes:
    """Draw the objective after each iteration.

    Parameters
    ----------
    history : array-like of shape (n_iter + 1,)
        ``objective_history_`` of a fitted :class:`idfsmec.IDFSMEC`.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> plot_convergence([10.0, 4.0, 3.5, 3.4]).get_xlabel()
    'iteration'
    """
    values = np.asarray(history, dtype=float)
    ax = style.make_axes(ax, 6.0, 3.2)
    # Weights to the power of gamma make it tiny: the power of ten goes into the label, not into
    # the corner where the note is.
    power = 3 * int(np.floor(np.log10(max(abs(values[0]), 1e-300)) / 3))
    power = 0 if -3 <= power <= 3 else power
    shown = values / 10.0**power
    ax.plot(np.arange(values.size), shown, color=style.EMPHASIS, linewidth=2, marker="o",
            markersize=4 if values.size < 60 else 0)  # fmt: skip
    ax.axhline(shown[-1], color=style.MUTED, linewidth=0.8, linestyle=":")
    ax.set_xlabel("iteration")
    ax.set_ylabel(f"objective, 1e{power}" if power else "objective")
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    if values.size > 60:
        ax.set_xscale("symlog", linthresh=1, linscale=0.4)
        ax.set_xlim(0, values.size)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    drop = f"from {values[0]:.4g} to {values[-1]:.4g} in {values.size - 1} iterations"
    return style.style_axes(ax, title, f"{note}\n{drop}")


def convergence_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """The course of the objective on a whole table."""
    caption = "The objective never increases; the dotted line is its last value."
    shown = partial(style.PageFigure, "convergence", caption)
    values = np.asarray(results.convergence.get(table) or [], dtype=float)
    if not values.size:
        yield shown(absent="The course of the objective was not recorded.")
        return
    drop, sentences = values[0] - values[-1], []
    if drop > 0:
        near = int(np.argmax(values[0] - values >= 0.99 * drop))
        sentences = [
            f"99 % of the decrease is reached after {near} of {values.size - 1} iterations."
        ]
    yield shown(
        partial(plot_convergence, values, note=data.whole_table_note(results, table)), sentences
    )


def cost_table(scores: pd.DataFrame, published: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Compute seconds per method and number of channels, the fastest method first."""
    once = scores.dropna(subset=["seconds"]).drop_duplicates([*data.TASK, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    table = grouped.agg(median="median", least="min", most="max").reset_index()
    whole = table["n_channels"] == table["n_channels"].max()
    table["published"] = table["method"].map(dict(published or {})).astype(float).where(whole)
    largest = table.sort_values("n_channels").groupby("method")["median"].last()
    table["order"] = table["method"].map(largest)
    table = table.sort_values(["order", "method", "n_channels"], kind="stable")
    return table.drop(columns="order").reset_index(drop=True)


@style.literal_text
def plot_cost(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
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
    published : mapping, optional
        Method to published seconds for the largest number of channels, drawn as hollow diamonds.
    methods, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
    """
    table, known = cost_table(scores, published), data.known_methods(methods)
    names = list(dict.fromkeys(table["method"]))
    counts = sorted(table["n_channels"].unique())
    size = {count: 4 + 5 * (i + 1) / len(counts) for i, count in enumerate(counts)}
    ax = style.make_axes(ax, 7.2, 1.8 + 0.27 * len(names))
    looks = style.method_looks(data.sort_methods(names, known), known)
    for row, name in enumerate(names):
        own = table[table["method"] == name]
        # A selection below the resolution of the clock still has a position on the axis.
        least, median, most = (
            np.maximum(own[c].to_numpy(dtype=float), 1e-6) for c in ("least", "median", "most")
        )
        color = looks[name].color
        ax.hlines(row, least.min(), most.max(), color=color, linewidth=1.6, alpha=0.35)
        ax.scatter(
            median, np.full(median.size, row), s=[size[c] ** 2 for c in own["n_channels"]],
            color=color, zorder=3, linewidth=0, gid=f"cost-{name}",
        )  # fmt: skip
    printed = table.dropna(subset=["published"])
    if not printed.empty:
        ax.scatter(
            printed["published"], [names.index(name) for name in printed["method"]], marker="D",
            s=[(0.8 * size[c]) ** 2 for c in printed["n_channels"]], facecolor=style.PAPER,
            edgecolor=style.MUTED, zorder=4, label=_PUBLISHED, gid="published",
        )  # fmt: skip
        style.add_legend(ax)
    ax.set_xscale("log")
    ax.set_yticks(range(len(names)), [looks[name].label for name in names])
    for text, name in zip(ax.get_yticklabels(), names, strict=True):
        text.set_fontweight("bold" if looks[name].main else "normal")
    ax.set_ylim(len(names) - 0.5, -0.5)
    low, high = ax.get_xlim()
    # Within two powers of ten a label at each of them would leave the axis almost bare.
    steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(10, subs=steps, numticks=12))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: seconds(v)))
    ax.set_xlabel("one selection (dot: median; bar: minimum to maximum)")
    note += f"\n{listing([f'{count:g}' for count in counts])} channels"
    note += " (small to large dots)" if len(counts) > 1 else ""
    style.style_axes(ax, title, note, grid="x", rows=True)
    ax.tick_params(axis="x", which="minor", length=0)
    return ax


def cost_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """The cost of selections on a table and on parts of its channels."""
    caption = "Selection alone, one thread, logarithmic scale."
    if table == results.data_set:
        caption += (
            " Published seconds come from MATLAB on another machine: compare orders of magnitude."
        )
    shown = partial(style.PageFigure, "cost", caption)
    rows = data.experiment_rows(results, "cost", table).dropna(subset=["seconds"])
    if rows.empty:
        yield shown(absent="Cost was not measured (idfsmec benchmark --experiment cost).")
        return
    draw = partial(
        plot_cost, rows, methods=results.methods, note=data.protocol_note(results, "cost"),
        published=_published_seconds(results, table, rows),
    )  # fmt: skip
    costs, main, sentences = cost_table(rows), data.proposed_method(results), []
    n_channels = costs["n_channels"].max()
    medians = costs[costs["n_channels"] == n_channels].set_index("method")["median"]
    if main in medians and len(medians) > 1:
        rank = int((medians < medians[main]).sum()) + 1
        fastest, slowest = (
            f"{data.label_of(name, results.methods)} ({seconds(medians[name])})"
            for name in (medians.idxmin(), medians.idxmax())
        )
        sentences = [
            f"With {int(n_channels)} channels {main} takes {seconds(medians[main])}, rank {rank} "
            f"of {len(medians)}; the fastest is {fastest}, the slowest {slowest}."
        ]
    yield shown(draw, sentences)


def summarise_cost(results: Results, table: str) -> list[dict[str, Any]] | None:
    """Return the cost as plain data; None where it was not measured."""
    rows = data.experiment_rows(results, "cost", table).dropna(subset=["seconds"])
    if rows.empty:
        return None
    costs = cost_table(rows, _published_seconds(results, table, rows))
    costs["main"] = costs["method"] == data.proposed_method(results)
    costs["method"] = [data.label_of(name, results.methods) for name in costs["method"]]
    return plain_records(costs)


def _published_seconds(results: Results, table: str, rows: pd.DataFrame) -> dict[str, float]:
    """Return the paper's seconds, where all channels of its data set were timed."""
    if rows["n_channels"].max() < len(results.tables[table]["channels"]):
        return {}
    return data.published_values(results, "cost", table)
