"""Draw and describe the method itself: its parts, its two parameters, convergence, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from idfsmec.report import data, style
from idfsmec.report.curves import draw_curves
from idfsmec.report.data import TableResults
from idfsmec.report.style import PageFigure
from idfsmec.report.text import SIGNIFICANT, listing, metric_name, plain_records, points, seconds


def ablation_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy by missing rate with a part of the method taken out."""
    tasks = data.task_scores(table.rows("ablation"), table.metric)
    if tasks.empty:
        return
    variants = _ablation_table(table, tasks)
    paired = variants[~variants["whole"] & variants["difference_low"].notna()]
    each = [
        f"{table.label(row['method'])} ({points(row['difference'])} points)"
        for row in paired[paired["significant"]].to_dict("records")
    ]
    text = f"No difference from the whole method is {SIGNIFICANT}."
    if each:
        text = f"Differences from the whole method that are {SIGNIFICANT}: {listing(each, 10)}."
    caption = "The whole method, and with one part taken out. Mean over folds with 95 % CI."
    curves = data.intervals(tasks, ["method", "rate"])
    names = data.sort_methods(curves["method"], table.methods)
    looks, sentences = style.method_looks(names, table.methods), [] if paired.empty else [text]
    axes = "share of channels removed", metric_name(table.metric)
    labels = "Ablation", table.note("ablation"), *axes
    draw = partial(draw_curves, curves, "rate", looks, labels, chance=table.chance())
    numbers = plain_records(variants.assign(method=variants["method"].map(table.label)))
    yield PageFigure("ablation", draw, caption, sentences, numbers=numbers)


def _ablation_table(table: TableResults, tasks: pd.DataFrame) -> pd.DataFrame:
    """Average every variant over rates, and subtract the whole method, paired by fold."""
    by_fold = data.fold_scores(tasks, ["method"])
    variants = data.intervals(by_fold, ["method"])
    whole = data.main_method(variants["method"], table.methods)
    gains = pd.DataFrame(columns=["method", "difference", "low", "high", "significant"])
    if whole is not None:
        gains = data.differences(by_fold, whole)[list(gains)]
    # The variant minus the whole method, so both ends change places.
    gains[["difference", "low", "high"]] = -gains[["difference", "high", "low"]].to_numpy()
    ends = {"low": "difference_low", "high": "difference_high"}
    variants = variants.merge(gains.rename(columns=ends), on="method", how="left")
    variants["significant"] = variants["significant"].eq(True)
    variants["published"] = variants["method"].map(table.published("ablation")).astype(float)
    variants["whole"] = variants["method"] == whole
    return variants.sort_values("whole", ascending=False, kind="stable")


def sensitivity_figures(table: TableResults) -> Iterator[PageFigure]:
    """Accuracy over the grid of the two parameters, averaged over folds, rates and k."""
    tasks = data.task_scores(table.rows("sensitivity"), table.metric, by=["lam", "gamma"])
    if tasks.empty:
        return
    surface = tasks.pivot_table(index="gamma", columns="lam", values="value")
    along_lam, along_gamma = np.ptp(surface.mean(axis=0)), np.ptp(surface.mean(axis=1))
    sentences = [
        f"All settings lie within {100 * np.ptp(surface.to_numpy()):.1f} points.",
        f"On average λ changes the score by {100 * along_lam:.1f} points and γ by "
        f"{100 * along_gamma:.1f}.",
    ]
    caption = (
        "Mean over folds, missing rates and numbers of features, with 95 % CI. Scores are those "
        "of test folds: the best setting among them is optimistic."
    )
    by_fold = data.fold_scores(tasks, ["lam", "gamma"])
    curves = data.intervals(by_fold.sort_values("gamma"), ["lam", "gamma"])
    curves["setting"] = curves["gamma"].map("γ = {:g}".format)
    axes = "λ: redundancy weight", metric_name(table.metric)
    labels = "Accuracy over λ and γ", table.note("sensitivity"), *axes
    looks, log = style.plain_looks(curves["setting"]), "x" if curves["lam"].min() > 0 else ""
    how: Any = {"line": "setting", "chance": table.chance(), "log": log}
    draw = partial(draw_curves, curves, "lam", looks, labels, **how)
    yield PageFigure("sensitivity", draw, caption, sentences)


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
    shown = values / values[0]  # weights to the power of gamma make the objective tiny
    ax.plot(shown, ".-", color=style.EMPHASIS, linewidth=2)
    ax.axhline(shown[-1], color=style.MUTED, linewidth=0.8, linestyle=":")
    ax.set(xlabel="iteration", ylabel="objective, share of the first value")
    drop = f"from {values[0]:.4g} to {values[-1]:.4g} in {values.size - 1} iterations"
    return style.style_axes(ax, "Convergence", f"{table.whole_table_note()}\n{drop}")


def cost_figures(table: TableResults) -> Iterator[PageFigure]:
    """The time of one selection on the table and on parts of its channels."""
    costs = _cost_table(table)
    if costs.empty:
        return
    n_channels, sentences = costs["n_channels"].max(), []
    medians = costs[costs["n_channels"] == n_channels].set_index("method")["mean"]
    if table.main in medians and len(medians) > 1:
        fastest, slowest = (
            f"{table.label(name)} ({seconds(medians[name])})"
            for name in (medians.idxmin(), medians.idxmax())
        )
        median = medians[table.main]
        sentences = [
            f"With {int(n_channels)} channels {table.main} takes {seconds(median)}, rank "
            f"{int((medians < median).sum()) + 1} of {len(medians)}.",
            f"The fastest is {fastest}, the slowest {slowest}.",
        ]
    caption = "Selection alone, one thread, logarithmic scale. Median, minimum and maximum."
    main, labels = costs["method"] == table.main, costs["method"].map(table.label)
    numbers = plain_records(costs.assign(main=main, method=labels))
    names = data.sort_methods(costs["method"], table.methods)
    about = "Seconds per selection", table.note("cost"), "channels", "one selection"
    # A selection below the resolution of the clock still has a position on the axis.
    curves = costs.assign(**costs[["mean", "low", "high"]].clip(lower=1e-6))
    looks = style.method_looks(names, table.methods)
    draw = partial(draw_curves, curves, "n_channels", looks, about, log="y", written=seconds)
    yield PageFigure("cost", draw, caption, sentences, numbers=numbers)


def _cost_table(table: TableResults) -> pd.DataFrame:
    """Compute seconds per method and number of channels, the fastest method first."""
    rows = table.all_rows("cost").dropna(subset=["seconds"])
    once = rows.drop_duplicates([*data.TASK, "n_channels", "params"])
    grouped = once.groupby(["method", "n_channels"])["seconds"]
    costs = grouped.agg(mean="median", low="min", high="max").reset_index()
    # The paper timed all channels of its data set.
    published = costs["method"].map(table.published("cost")).astype(float)
    costs["published"] = published.where(costs["n_channels"] == len(table.about["channels"]))
    order = costs.groupby("method")["mean"].transform("last")  # with the most channels
    return costs.assign(order=order).sort_values(["order", "n_channels"]).drop(columns="order")
