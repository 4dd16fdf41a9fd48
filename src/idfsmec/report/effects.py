"""Direction and size: in which group a feature is higher, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import Results
from idfsmec.report.formatting import listing
from idfsmec.report.scores import table_ranking
from idfsmec.report.style import (
    EMPHASIS,
    FILTER,
    INK,
    MUTED,
    PAPER,
    make_axes,
    style_axes,
)

_MOST_SHOWN = 20
#: Columns of an effect with its interval, and what readers call it.
SIZES = {"hedges_g": "Hedges' g", "eta_squared": "η²", "spearman": "Spearman's ρ"}


def size_of(ranking: pd.DataFrame) -> str | None:
    """The measure of size that a ranking carries, or None where effects were not recorded."""
    there = (name for name in SIZES if name in ranking and ranking[name].notna().any())
    return next(there, None)


def plot_effects(
    ranking: pd.DataFrame,
    *,
    labels: Sequence[str] | None = None,
    note: str = "",
    title: str = "Direction and size of the leading features",
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot of the first 20 features: how much groups differ, with 95 % intervals.

    Parameters
    ----------
    ranking : DataFrame
        Best first, with ``channel``, ``feature``, an effect (``hedges_g``, ``eta_squared`` or
        ``spearman``) with its ``..._low`` and ``..._high``, and perhaps ``auc`` with its; as from
        ``Results.ranking`` of one table.
    labels : sequence of two str, optional
        Names of the groups: a positive effect is higher in the second.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
        A filled dot is an effect whose interval leaves zero out.
    """
    size = size_of(ranking)
    if size is None:
        raise ValueError(f"The ranking has no effects: none of the columns {', '.join(SIZES)}.")
    shown = ranking.head(_MOST_SHOWN)
    ax = make_axes(ax, 7.2, 1.9 + 0.24 * len(shown))
    signed = size != "eta_squared"
    for row, one in enumerate(shown.to_dict("records")):
        value, low, high = (one[f"{size}{end}"] for end in ("", "_low", "_high"))
        if not np.isfinite(value):
            continue
        color = EMPHASIS if value >= 0 else FILTER
        ax.hlines(row, low, high, color=color, linewidth=1.6, alpha=0.6)
        ax.plot(value, row, "o", markersize=5.5, markeredgecolor=color, gid=f"effect-{row}",
                markerfacecolor=color if low > 0 or high < 0 else PAPER)  # fmt: skip
        if np.isfinite(one.get("auc", np.nan)):
            ax.annotate(f"{one['auc']:.2f}  ({one['auc_low']:.2f} to {one['auc_high']:.2f})",
                        (1.02, row), xycoords=("axes fraction", "data"), va="center",
                        fontsize=8.5, color=MUTED, annotation_clip=False)  # fmt: skip
    ax.axvline(0, color=INK, linewidth=1)
    names = [f"{one['feature']} at {one['channel']}" for one in shown.to_dict("records")]
    ax.set_yticks(range(len(shown)), names)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel(SIZES[size])
    style_axes(ax, title, f"{note}\nfilled dot: the 95 % interval leaves zero out".strip(),
               grid="x")  # fmt: skip
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    if "auc" in shown and shown["auc"].notna().any():
        ax.annotate("AUC by person", (1.02, 1), (0, 3), xycoords="axes fraction", fontsize=8.5,
                    textcoords="offset points", color=MUTED, annotation_clip=False)  # fmt: skip
    if signed and labels is not None and len(labels) == 2:
        _name_sides(ax, labels)
    return ax


def _name_sides(ax: Axes, labels: Sequence[str]) -> None:
    for x, text, side in ((0.0, f"← higher in {labels[0]}", "left"),
                          (1.0, f"higher in {labels[1]} →", "right")):  # fmt: skip
        ax.annotate(text, (x, 0), (0, -22), xycoords="axes fraction", ha=side, va="top",
                    textcoords="offset points", color=MUTED, fontsize=8.5)  # fmt: skip


def add_arrows(ranking: pd.DataFrame) -> pd.DataFrame:
    """The ranking with ``arrow`` and ``sure``, where directions and sizes are there.

    Examples
    --------
    >>> found = {"direction": ["higher in MDD", "higher in HC"], "hedges_g": [0.8, -0.1],
    ...          "hedges_g_low": [0.3, -0.6], "hedges_g_high": [1.3, 0.4]}
    >>> add_arrows(pd.DataFrame(found))[["arrow", "direction", "sure"]]
      arrow      direction   sure
    0     →  higher in MDD   True
    1     ←   higher in HC  False
    """
    size = size_of(ranking)
    if size is None:
        return ranking
    value, low, high = (ranking[f"{size}{end}"] for end in ("", "_low", "_high"))
    arrows = np.where(value >= 0, "→", "←") if size != "eta_squared" else "↑"
    return ranking.assign(arrow=arrows, sure=(low > 0) | (high < 0))


def draw_effects(results: Results, table: str) -> Axes | str:
    """Direction and size of the leading features of a table of the results."""
    ranking = table_ranking(results, table)
    if size_of(ranking) is None:
        return "Direction and size of the features were not recorded (run idfsmec benchmark)."
    return plot_effects(
        ranking,
        labels=[str(label) for label in results.tables[table].get("labels", {})],
        note="whole table, one value per person; no folds, no tuning",
    )


def say_effects(results: Results, table: str) -> list[str]:
    """Which of the leading features differ by themselves, and in which direction."""
    ranking = add_arrows(table_ranking(results, table))
    if "arrow" not in ranking:
        return []
    shown = ranking.head(_MOST_SHOWN)
    sure = shown[shown["sure"]]
    sentences = []
    for direction, own in sure.groupby("direction", sort=False):
        names = [f"{f} at {c}" for f, c in zip(own["feature"], own["channel"], strict=True)]
        first = str(direction).replace("high", "High", 1)
        sentences.append(f"{first}: {listing(names, 6)}.")
    rest = len(shown) - len(sure)
    if rest:
        sentences.append(
            f"Of {rest} of the first {len(shown)} the interval holds zero: alone they tell the "
            "groups apart by little, or not at all."
        )
    # The first of many were picked for being large: the winner's curse.
    sentences.append("Leading features were picked for their size: expect less in new people.")
    return sentences
