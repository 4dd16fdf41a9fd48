"""Draw and describe imputers: accuracy against the missing rate, and the points each loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import Results
from idfsmec.report import data, style
from idfsmec.report.accuracy import draw_curves, show_rates
from idfsmec.report.text import EXCLUDES_ZERO, INCLUDES_ZERO, listing, metric_name, percent, points

#: The experiment and its column, as evaluation calls them.
_EXPERIMENT, _IMPUTER = "imputation", "imputer"


def imputation_loss(scores: pd.DataFrame, metric: str = "balanced_accuracy") -> pd.DataFrame:
    """Compute what each imputer loses from the lowest to the highest missing rate, by fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of the comparison of imputers on one table, with the column ``imputer``.
    metric : str, default="balanced_accuracy"

    Returns
    -------
    DataFrame
        Columns ``method``, ``imputer``, ``difference`` (score at the lowest rate minus that at
        the highest), ``low``, ``high`` (95 % CI), ``n``, ``p_value``, ``excludes_zero``.
    """
    tasks = data.task_scores(scores, metric, by=[_IMPUTER], chosen=True)
    lowest, highest = tasks["rate"].min(), tasks["rate"].max()
    losses = [
        data.differences(own[own["rate"].isin([lowest, highest])], "rate", lowest).assign(
            method=str(method), **{_IMPUTER: str(imputer)}
        )
        for (method, imputer), own in tasks.groupby(["method", _IMPUTER], sort=False)
        if {lowest, highest} <= set(own["rate"]) and lowest < highest
    ]
    columns = ["method", _IMPUTER, "difference", "low", "high", "n", "p_value", "excludes_zero"]
    return (pd.concat(losses, ignore_index=True) if losses else pd.DataFrame(columns=columns))[
        columns
    ]


@style.literal_text
def plot_imputation(
    scores: pd.DataFrame,
    *,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    note: str = "",
    title: str = "Accuracy by imputer",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the missing rate, one line per imputer, with 95 % CI.

    Parameters
    ----------
    scores : DataFrame
        Rows of the comparison of imputers on one table with one method.
    metric, chance, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
    """
    ax = style.make_axes(ax)
    tasks = data.task_scores(scores, metric, by=[_IMPUTER], chosen=True)
    curves = data.intervals(tasks, [_IMPUTER, "rate"]).rename(columns={_IMPUTER: "method"})
    looks = style.plain_looks(curves["method"])
    draw_curves(ax, curves, "rate", looks, metric, chance, dodge=0.05)
    show_rates(ax, curves["rate"])
    return style.style_axes(ax, title, note)


@style.literal_text
def plot_imputation_loss(
    scores: pd.DataFrame,
    *,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "Points lost to missing channels, by imputer",
    ax: Axes | None = None,
) -> Axes:
    """Draw what each method with each imputer loses from the lowest to the highest rate.

    Parameters
    ----------
    scores : DataFrame
        Rows of the comparison of imputers on one table.
    methods, metric, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
        Dots with 95 % CI; a filled dot is a loss (or gain) whose CI excludes 0.
    """
    known, losses = data.known_methods(methods), imputation_loss(scores, metric)
    looks = style.plain_looks(scores[_IMPUTER].astype(str))
    order = {name: i for i, name in enumerate(data.sort_methods(losses["method"], known))}
    losses = losses.sort_values("method", key=lambda names: names.map(order), kind="stable")
    ax = style.make_axes(ax, 7.2, 1.9 + 0.24 * len(losses))
    # data.Methods stand a little apart from each other.
    heights = np.arange(len(losses)) + 0.6 * losses["method"].map(order).to_numpy(dtype=float)
    names = []
    for y, row in zip(heights, losses.to_dict("records"), strict=True):
        style.draw_estimate(
            ax, y, row["difference"], row["low"], row["high"], looks[row[_IMPUTER]].color,
            filled=row["excludes_zero"], gid=f"loss-{row['method']}-{row[_IMPUTER]}",
        )  # fmt: skip
        names.append(f"{data.label_of(row['method'], known)}, {row[_IMPUTER]}")
    ax.axvline(0, color=style.INK, linewidth=1)
    ax.set_yticks(heights, names)
    ax.set_ylim(heights.max(initial=0) + 0.6, -0.6)
    style.show_points(ax.xaxis)
    low, high = percent(scores["rate"].min()), percent(scores["rate"].max())
    ax.set_xlabel(f"points of {metric_name(metric)} lost from {low} to {high} missing")
    return style.style_axes(ax, title, f"{note}\nfilled dot: {EXCLUDES_ZERO}", grid="x", rows=True)


def imputation_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """Curves of the imputers on a table, a figure for each method."""
    section, caption = "imputation", (
        "Mean over folds with 95 % CI, one line for each imputer applied before the classifier."
    )  # fmt: skip
    rows = data.scored_rows(results, _EXPERIMENT, table)
    if rows.empty:
        reason = f"Imputers were not compared (idfsmec benchmark --experiment {_EXPERIMENT})."
        yield style.PageFigure(section, caption, absent=reason)
        return
    metric, methods = data.shown_metric(results), results.methods
    for name in data.sort_methods(rows["method"], methods):
        own = rows[rows["method"] == name]
        draw = partial(
            plot_imputation, own, metric=metric, chance=data.chance_of(results, table),
            note=data.protocol_note(results, _EXPERIMENT),
            title=f"{data.label_of(name, methods)}: accuracy by imputer",
        )  # fmt: skip
        yield style.PageFigure(
            section, caption, draw, [_describe_highest(own, metric)], variant=name
        )


def _describe_highest(own: pd.DataFrame, metric: str) -> str:
    """Name the imputer with the highest score where most is missing, and those below it."""
    tasks = data.task_scores(own, metric, by=[_IMPUTER], chosen=True)
    here = tasks[tasks["rate"] == tasks["rate"].max()]
    means = here.groupby(_IMPUTER)["value"].mean()
    best = str(means.idxmax())
    paired = data.differences(here, _IMPUTER, best)
    lower = paired[paired["excludes_zero"] & (paired["difference"] > 0)]
    each = [
        f"{name} ({points(-difference)} points)"
        for name, difference in zip(lower[_IMPUTER], lower["difference"], strict=True)
    ]
    others = f"no other is lower ({INCLUDES_ZERO})"
    if each:
        others = f"lower ({EXCLUDES_ZERO}): {listing(each, 8)}"
    rate, score = percent(here["rate"].iloc[0]), percent(means[best], 1)
    return f"At {rate} missing {best} is highest ({score}); {others}."


def imputation_loss_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """Points lost per imputer on a table."""
    rows = data.scored_rows(results, _EXPERIMENT, table)
    if rows.empty or rows["rate"].nunique() < 2:
        return
    metric, methods = data.shown_metric(results), results.methods
    losses, sentences = imputation_loss(rows, metric), []
    for name in data.sort_methods(losses["method"], methods):
        own = losses[losses["method"] == name].sort_values("difference", kind="stable")
        each = [
            f"{imputer} {100 * lost:.1f}".replace("-", "−")
            for imputer, lost in zip(own[_IMPUTER], own["difference"], strict=True)
        ]
        sentences.append(
            f"{data.label_of(name, methods)} loses, by imputer: {listing(each, 12)} points."
        )
    draw = partial(
        plot_imputation_loss, rows, methods=methods, metric=metric,
        note=data.protocol_note(results, _EXPERIMENT),
    )  # fmt: skip
    caption = (
        "Score at the lowest missing rate minus that at the highest, paired by fold. An imputer "
        "that replaces missing channels well loses little."
    )
    yield style.PageFigure("imputation-loss", caption, draw, sentences)
