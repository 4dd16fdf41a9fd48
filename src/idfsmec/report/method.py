"""Draw and describe the method itself: its parts, its two parameters, convergence, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
from numpy.typing import NDArray

from idfsmec.report import data, style
from idfsmec.report.data import TableResults
from idfsmec.report.style import PageFigure
from idfsmec.report.text import SIGNIFICANT, listing, metric_name, plain_records, points, seconds

_PUBLISHED = "published (arXiv:2511.11651)"


def ablation_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy with a part of the method taken out, averaged over missing rates."""
    if table.rows("ablation").empty:
        return
    variants = _ablation_table(table)
    paired = variants[~variants["whole"] & variants["difference_low"].notna()]
    each = [
        f"{table.label(row['method'])} ({points(row['difference'])} points)"
        for row in paired[paired["significant"].astype(bool)].to_dict("records")
    ]
    text = f"No difference from the whole method is {SIGNIFICANT}."
    if each:
        text = f"Differences from the whole method that are {SIGNIFICANT}: {listing(each, 10)}."
    caption = "The whole method, and with one part taken out. Bars are 95 % CI."
    if table.name == table.results.data_set:
        caption += (
            " Diamonds are the paper's plain accuracies on this data set (folds not stated)."
        )
    draw, sentences = partial(_draw_ablation, table, variants), [] if paired.empty else [text]
    numbers = plain_records(variants.assign(method=variants["method"].map(table.label)))
    yield PageFigure("ablation", draw, caption, sentences, numbers=numbers)


def _ablation_table(table: TableResults) -> pd.DataFrame:
    """Average every variant over rates, and subtract the whole method, paired by fold."""
    by_fold = data.fold_scores(data.task_scores(table.rows("ablation"), table.metric), ["method"])
    variants = data.intervals(by_fold, ["method"])
    whole = data.main_method(variants["method"], table.methods)
    gains = pd.DataFrame(columns=["method", "difference", "low", "high", "significant"])
    if whole is not None:
        gains = data.differences(by_fold, "method", whole)[list(gains)]
    # The variant minus the whole method, so both ends change places.
    gains[["difference", "low", "high"]] = -gains[["difference", "high", "low"]].to_numpy()
    ends = {"low": "difference_low", "high": "difference_high"}
    variants = variants.merge(gains.rename(columns=ends), on="method", how="left")
    variants["significant"] = variants["significant"].eq(True)
    published = table.published("ablation")
    variants["published"] = variants["method"].map(published).astype(float)
    variants["whole"] = variants["method"] == whole
    return variants.sort_values("whole", ascending=False, kind="stable")


def _draw_ablation(table: TableResults, variants: pd.DataFrame) -> Axes:
    looks, chance = style.method_looks(list(variants["method"]), table.methods), table.chance()
    ax = style.make_axes(None, 7.2, 1.6 + 0.42 * len(variants))
    for y, row in enumerate(variants.to_dict("records")):
        look, estimate = looks[row["method"]], (row["mean"], row["low"], row["high"])
        gid = f"ablation-{row['method']}"
        style.draw_estimate(ax, y, estimate, look.color, filled=True, size=8, gid=gid)
        style.annotate(
            ax, f"{100 * row['mean']:.1f}", (row["mean"], y), (0, 7), ha="center",
            color=style.INK, fontweight="bold" if look.main else "normal",
        )  # fmt: skip
    printed, rows = variants["published"].to_numpy(dtype=float), np.arange(len(variants))
    if np.isfinite(printed).any():
        ax.plot(printed, rows, "D", markerfacecolor=style.PAPER, markeredgecolor=style.MUTED,
                linestyle="none", markersize=6, label=_PUBLISHED)  # fmt: skip
        style.add_legend(ax)
    own = [looks[name] for name in variants["method"]]
    ax.set_yticks(rows, ["whole method" if look.main else look.label for look in own])
    ax.set_ylim(len(variants) - 0.5, -0.6)
    ax.set_xlabel(f"{metric_name(table.metric)}, mean over missing rates")
    style.show_percent(ax.xaxis)
    shown = np.concatenate([variants["mean"], printed[np.isfinite(printed)]])
    bars = variants[["low", "high"]].to_numpy(dtype=float)
    ax.set_xlim(style.score_limits(shown, bars, chance))
    style.style_axes(ax, "Ablation", table.note("ablation"), grid="x", rows=True)
    if chance:
        style.draw_chance(ax, chance, along="x")
    return ax


def sensitivity_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy over the grid of the two parameters, averaged over folds, rates and k."""
    tasks = data.task_scores(table.rows("sensitivity"), table.metric, by=["lam", "gamma"])
    if tasks.empty:
        return
    surface = tasks.pivot_table(index="gamma", columns="lam", values="value", aggfunc="mean")
    along_lam, along_gamma = np.ptp(surface.mean(axis=0)), np.ptp(surface.mean(axis=1))
    sentence = (
        f"On average λ changes the score by {100 * along_lam:.1f} points and γ by "
        f"{100 * along_gamma:.1f}."
    )
    caption = (
        "Mean over folds, missing rates and numbers of features for every setting. The best cell "
        "was chosen on test folds, so its value is optimistic."
    )
    draw = partial(_draw_sensitivity, table, surface)
    yield PageFigure("sensitivity", draw, caption, [sentence])


def _draw_sensitivity(table: TableResults, surface: pd.DataFrame) -> Axes:
    values = surface.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = style.make_axes(None, float(np.clip(3 + 0.7 * n_columns, 6.2, 8.5)), 1.9 + 0.38 * n_rows)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # At least three points of range: noise must not look like a landscape.
    middle, half = (low + high) / 2, max((high - low) / 2, 0.015)
    image = style.draw_cells(ax, values, middle - half, middle + half)
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
    note = table.note("sensitivity")
    note += f"\nall settings within {100 * (high - low):.1f} points; best one framed"
    style.style_axes(ax, "Accuracy over λ and γ", note, grid=None, frame=False)
    style.add_colorbar(ax, image, metric_name(table.metric), PercentFormatter(1, decimals=1))
    return ax


def convergence_figures(table: TableResults) -> Iterator[PageFigure]:
    """The objective after each iteration on the whole table."""
    values = np.asarray(table.results.convergence.get(table.name) or [], dtype=float)
    if not values.size:
        return
    drop, sentences = values[0] - values[-1], []
    if drop > 0:
        near = int(np.argmax(values[0] - values >= 0.99 * drop))
        sentences = [
            f"99 % of the decrease is reached after {near} of {values.size - 1} iterations."
        ]
    caption = "The objective never increases; the dotted line is its last value."
    draw = partial(_draw_convergence, table, values)
    yield PageFigure("convergence", draw, caption, sentences)


def _draw_convergence(table: TableResults, values: NDArray[np.float64]) -> Axes:
    ax = style.make_axes(None, 6.0, 3.2)
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
    return style.style_axes(ax, "Convergence", f"{table.whole_table_note()}\n{drop}")


def cost_figures(table: TableResults) -> Iterator[PageFigure]:
    """The time of one selection on the table and on parts of its channels."""
    costs = _cost_table(table)
    if costs.empty:
        return
    n_channels, sentences = costs["n_channels"].max(), []
    medians = costs[costs["n_channels"] == n_channels].set_index("method")["median"]
    if table.main in medians and len(medians) > 1:
        own = medians[table.main]
        fastest, slowest = (
            f"{table.label(name)} ({seconds(medians[name])})"
            for name in (medians.idxmin(), medians.idxmax())
        )
        sentences = [
            f"With {int(n_channels)} channels {table.main} takes {seconds(own)}, rank "
            f"{int((medians < own).sum()) + 1} of {len(medians)}; the fastest is {fastest}, the "
            f"slowest {slowest}."
        ]
    caption = "Selection alone, one thread, logarithmic scale."
    if table.name == table.results.data_set:
        caption += (
            " Published seconds come from MATLAB on another machine: compare orders of magnitude."
        )
    main, labels = costs["method"] == table.main, costs["method"].map(table.label)
    numbers = plain_records(costs.assign(main=main, method=labels))
    draw = partial(_draw_cost, table, costs)
    yield PageFigure("cost", draw, caption, sentences, numbers=numbers)


def _cost_table(table: TableResults) -> pd.DataFrame:
    """Compute seconds per method and number of channels, the fastest method first."""
    rows = table.all_rows("cost").dropna(subset=["seconds"])
    once = rows.drop_duplicates([*data.TASK, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    costs = grouped.agg(median="median", least="min", most="max").reset_index()
    # The paper timed all channels of its data set.
    published = costs["method"].map(table.published("cost")).astype(float)
    costs["published"] = published.where(costs["n_channels"] == len(table.about["channels"]))
    largest = costs.sort_values("n_channels").groupby("method")["median"].last()
    costs["order"] = costs["method"].map(largest)
    costs = costs.sort_values(["order", "method", "n_channels"], kind="stable")
    return costs.drop(columns="order").reset_index(drop=True)


def _draw_cost(table: TableResults, costs: pd.DataFrame) -> Axes:
    names = list(dict.fromkeys(costs["method"]))
    counts = sorted(costs["n_channels"].unique())
    size = {count: 4 + 5 * (i + 1) / len(counts) for i, count in enumerate(counts)}
    ax = style.make_axes(None, 7.2, 1.8 + 0.27 * len(names))
    looks = style.method_looks(data.sort_methods(names, table.methods), table.methods)
    for row, name in enumerate(names):
        own, color = costs[costs["method"] == name], looks[name].color
        # A selection below the resolution of the clock still has a position on the axis.
        least, median, most = np.maximum(own[["least", "median", "most"]].to_numpy().T, 1e-6)
        ax.hlines(row, least.min(), most.max(), color=color, linewidth=1.6, alpha=0.35)
        ax.scatter(
            median, np.full(median.size, row), s=[size[c] ** 2 for c in own["n_channels"]],
            color=color, zorder=3, linewidth=0, gid=f"cost-{name}",
        )  # fmt: skip
    printed = costs.dropna(subset=["published"])
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
    note = f"{table.note('cost')}\n{listing([f'{count:g}' for count in counts])} channels"
    note += " (small to large dots)" if len(counts) > 1 else ""
    style.style_axes(ax, "Seconds per selection", note, grid="x", rows=True)
    ax.tick_params(axis="x", which="minor", length=0)
    return ax
