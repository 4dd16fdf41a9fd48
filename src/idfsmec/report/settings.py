"""Inside the method: parts taken out, its two parameters, and the course of its objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from idfsmec.evaluation import Results
from idfsmec.report.accuracy import draw_chance, score_limits
from idfsmec.report.formatting import metric_name
from idfsmec.report.scores import (
    chance_of,
    experiment_rows,
    fold_scores,
    intervals,
    protocol_note,
    published_values,
    shown_metric,
    unit_scores,
    whole_table_note,
)
from idfsmec.report.style import (
    EMPHASIS,
    INK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    Methods,
    add_colorbar,
    main_method,
    make_axes,
    method_looks,
    registered_methods,
    style_axes,
)


def ablation_table(
    scores: pd.DataFrame,
    metric: str,
    methods: Methods | None = None,
    published: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Mean over rates of every variant, and what taking its part out costs.

    Returns
    -------
    DataFrame
        The whole method first. Columns ``method``, ``mean``, ``low``, ``high``, ``difference``
        (to the whole method, with ``difference_low`` and ``difference_high``), ``published``,
        ``whole``.
    """
    by_fold = fold_scores(unit_scores(scores, metric), ["method"])
    table = intervals(by_fold, ["method"])
    whole = main_method(table["method"], registered_methods() if methods is None else methods)
    reference = by_fold[by_fold["method"] == whole].set_index(["seed", "fold"])["value"]
    paired = by_fold.join(reference.rename("whole"), on=["seed", "fold"])
    paired["value"] = paired["value"] - paired["whole"]
    paired = paired.dropna(subset=["value"])
    if not paired.empty:
        gain = intervals(paired, ["method"]).drop(columns="n")
        gain.columns = pd.Index(["method", "difference", "difference_low", "difference_high"])
        table = table.merge(gain, on="method", how="left")
    else:
        table[["difference", "difference_low", "difference_high"]] = np.nan
    table["published"] = table["method"].map(dict(published or {})).astype(float)
    table["whole"] = table["method"] == whole
    return table.sort_values("whole", ascending=False, kind="stable")


def plot_ablation(
    scores: pd.DataFrame,
    *,
    methods: Methods | None = None,
    metric: str = "balanced_accuracy",
    chance: Mapping[str, Any] | None = None,
    published: Mapping[str, float] | None = None,
    note: str = "",
    title: str = "What each part is worth",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy with a part of the method taken out, averaged over missing rates.

    Parameters
    ----------
    scores : DataFrame
        Rows of the ablation of one table.
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default what the registry says. The
        whole method is the one of the family "proposed".
    metric : str, default="balanced_accuracy"
    chance : mapping, optional
        ``chance``, ``low``, ``high`` of guessing.
    published : mapping, optional
        Variant to a published value, drawn beside as a hollow diamond.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    table = ablation_table(scores, metric, methods, published)
    looks = method_looks(list(table["method"]), methods)
    ax = make_axes(ax, 7.2, 1.6 + 0.42 * len(table))
    rows = np.arange(len(table))
    mean, low, high = (table[c].to_numpy(dtype=float) for c in ("mean", "low", "high"))
    for row, method in zip(rows, table["method"], strict=True):
        look = looks[method]
        ax.hlines(row, low[row], high[row], color=look.color, linewidth=2, alpha=0.4)
        ax.plot(mean[row], row, "o", color=look.color, markersize=8, gid=f"ablation-{method}")
        ax.annotate(
            f"{100 * mean[row]:.1f}", (mean[row], row), (0, 7), textcoords="offset points",
            ha="center", fontsize=8.5, color=INK, fontweight="bold" if look.main else "normal",
        )  # fmt: skip
    printed = table["published"].to_numpy(dtype=float)
    if np.isfinite(printed).any():
        from idfsmec.paper import SOURCE  # all methods: few figures need it

        ax.plot(
            printed, rows, "D", markerfacecolor=PAPER, markeredgecolor=MUTED, linestyle="none",
            markersize=6, label=f"published ({SOURCE})",
        )  # fmt: skip
        ax.legend(frameon=False, fontsize=8.5, labelcolor=MUTED, loc="lower right",
                  bbox_to_anchor=(1, 1))  # fmt: skip
    names = ["whole method" if looks[m].main else looks[m].label for m in table["method"]]
    ax.set_yticks(rows, names)
    ax.set_ylim(len(table) - 0.5, -0.6)
    ax.set_xlabel(f"{metric_name(metric)}, mean over missing rates")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    shown = np.concatenate([mean, printed[np.isfinite(printed)]])
    ax.set_xlim(score_limits(shown, np.array([low, high]), chance))
    style_axes(ax, title, note, grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    if chance:
        draw_chance(ax, chance, along="x")
    return ax


def draw_ablation(results: Results, table: str) -> Axes | str:
    """The ablation of a table of the results, or why there is none."""
    rows = experiment_rows(results, "ablation", table)
    metric = shown_metric(results)
    if rows.empty or rows[metric].isna().all():
        return "The ablation was not run (idfsmec benchmark --experiment ablation)."
    return plot_ablation(
        rows,
        methods=results.methods,
        metric=metric,
        chance=chance_of(results, table),
        published=published_values(results, "ablation", table),
        note=protocol_note(results, "ablation"),
    )


def sensitivity_surface(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean score over folds, rates and k: gammas (rows) x lambdas (columns)."""
    units = unit_scores(scores, metric, by=["lam", "gamma"])
    return units.pivot_table(index="gamma", columns="lam", values="value", aggfunc="mean")


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
    metric : str, default="balanced_accuracy"
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    surface = sensitivity_surface(scores, metric)
    values = surface.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = make_axes(ax, float(np.clip(3 + 0.7 * n_columns, 6.2, 8.5)), 1.9 + 0.38 * n_rows)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # At least three points of range: noise must not look like a landscape.
    middle, half = (low + high) / 2, max((high - low) / 2, 0.015)
    image = ax.pcolormesh(
        np.ma.masked_invalid(values), cmap=SEQUENTIAL, vmin=middle - half, vmax=middle + half,
        edgecolors=PAPER, linewidth=0.8,
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = value > middle + 0.3 * half
            ax.text(
                column + 0.5, row + 0.5, f"{100 * value:.1f}", ha="center", va="center",
                fontsize=8, color="#ffffff" if dark else "#1b1b1b",
            )  # fmt: skip
    row, column = divmod(int(np.nanargmax(values)), n_columns)
    ax.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor=INK, linewidth=2, gid="best")
    )
    ax.set_xticks(np.arange(n_columns) + 0.5, [f"{lam:g}" for lam in surface.columns])
    ax.set_yticks(np.arange(n_rows) + 0.5, [f"{gamma:g}" for gamma in surface.index])
    ax.set_xlabel("λ: redundancy weight")
    ax.set_ylabel("γ: channel evenness")
    spread = f"all settings within {100 * (high - low):.1f} points; best one framed"
    style_axes(ax, title, f"{note}\n{spread}".strip(), grid=None)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    add_colorbar(ax, image, metric_name(metric), PercentFormatter(1, decimals=1))
    return ax


def draw_sensitivity(results: Results, table: str) -> Axes | str:
    """The grid of settings of a table of the results, or why there is none."""
    rows = experiment_rows(results, "sensitivity", table)
    metric = shown_metric(results)
    if rows.empty or rows[[metric, "lam", "gamma"]].dropna().empty:
        return "The grid of λ and γ was not run (idfsmec benchmark --experiment sensitivity)."
    return plot_sensitivity(rows, metric=metric, note=protocol_note(results, "sensitivity"))


def plot_convergence(
    history: ArrayLike,
    *,
    note: str = "",
    title: str = "Convergence",
    ax: Axes | None = None,
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
    ax = make_axes(ax, 6.0, 3.2)
    # Weights to the power of gamma make it tiny: the power of ten goes into the label, not into
    # the corner where the note is.
    power = 3 * int(np.floor(np.log10(max(abs(values[0]), 1e-300)) / 3))
    power = 0 if -3 <= power <= 3 else power
    shown = values / 10.0**power
    ax.plot(np.arange(values.size), shown, color=EMPHASIS, linewidth=2, marker="o",
            markersize=4 if values.size < 60 else 0)  # fmt: skip
    ax.axhline(shown[-1], color=MUTED, linewidth=0.8, linestyle=":")
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
    return style_axes(ax, title, f"{note}\n{drop}".strip())


def draw_convergence(results: Results, table: str) -> Axes | str:
    """The course of the objective on a whole table of the results."""
    history = results.convergence.get(table)
    if not history:
        return "The course of the objective was not recorded."
    return plot_convergence(history, note=whole_table_note(results, table))
