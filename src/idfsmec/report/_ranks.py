"""Who cannot be told from whom: Demsar's critical-difference diagram."""

from __future__ import annotations

from matplotlib.axes import Axes

from idfsmec.evaluation import RankComparison
from idfsmec.report._style import (
    INK,
    MUTED,
    OURS,
    entitle,
    method_looks,
    own_axes,
    sort_methods,
)


def plot_critical_difference(
    comparison: RankComparison,
    *,
    note: str = "",
    title: str = "Mean ranks",
    ax: Axes | None = None,
) -> Axes:
    """Draw mean ranks on a line; bars join methods that cannot be told apart.

    Parameters
    ----------
    comparison : RankComparison
        From :func:`idfsmec.evaluation.compare_ranks`.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from idfsmec.evaluation import compare_ranks
    >>> scores = pd.DataFrame({"A": [0.9, 0.8, 0.7], "B": [0.6, 0.7, 0.5], "C": [0.5, 0.6, 0.6]})
    >>> ax = plot_critical_difference(compare_ranks(scores))
    """
    n_methods = len(comparison.methods)
    n_left = (n_methods + 1) // 2
    bars = len(comparison.groups)
    depth = 0.35 + 0.28 * bars + 0.42 * n_left
    ax = own_axes(ax, 7.2, 1.7 + 0.52 * depth)
    low, high = 1.0, float(n_methods)
    ax.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    ax.set_ylim(depth + 0.2, -1.15)
    ax.axis("off")
    _draw_scale(ax, comparison, n_methods)
    for level, group in enumerate(comparison.groups):
        ranks = [r for m, r in zip(comparison.methods, comparison.mean_ranks, strict=True)
                 if m in group]  # fmt: skip
        ax.plot([min(ranks), max(ranks)], [0.3 + 0.28 * level] * 2, color=INK, linewidth=3.5,
                solid_capstyle="round", alpha=0.8, gid="group")  # fmt: skip
    looks = method_looks(sort_methods(comparison.methods))
    margin = 0.04 * (high - low)
    for place, (method, rank) in enumerate(
        zip(comparison.methods, comparison.mean_ranks, strict=True)
    ):
        left = place < n_left
        level = place if left else n_methods - 1 - place
        y = 0.5 + 0.28 * bars + 0.42 * level
        edge = low - margin if left else high + margin
        color = looks[method].color
        ax.plot([rank, rank, edge], [0, y, y], color=color, clip_on=False,
                linewidth=1.8 if method == OURS else 1)  # fmt: skip
        ax.annotate(
            f"{method}  {rank:.2f}" if left else f"{rank:.2f}  {method}",
            (edge, y), (-4 if left else 4, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", color=color, fontsize=9,
            fontweight="bold" if method == OURS else "normal", annotation_clip=False,
        )  # fmt: skip
    verdict = (
        f"Friedman p = {comparison.p_value:.2g} over {comparison.n_blocks} blocks (table x rate); "
        "bars join methods not told apart"
    )
    entitle(ax, title, f"{note}\n{verdict}".strip())
    return ax


def _draw_scale(ax: Axes, comparison: RankComparison, n_methods: int) -> None:
    ax.plot([1, n_methods], [0, 0], color=INK, linewidth=1)
    for rank in range(1, n_methods + 1):
        ax.plot([rank, rank], [0, -0.12], color=INK, linewidth=1)
        ax.text(
            rank,
            -0.2,
            f"{rank}" if rank > 1 else "1 (best)",
            ha="center",
            va="bottom",
            fontsize=8.5,
            color=MUTED,
        )
    reach = min(comparison.critical_difference, n_methods - 1)
    ax.plot([1, 1 + reach], [-0.75, -0.75], color=MUTED, linewidth=1.6, marker="|",
            gid="critical-difference")  # fmt: skip
    ax.annotate(
        f"critical difference {comparison.critical_difference:.2f}", (1 + reach, -0.75), (6, 0),
        textcoords="offset points", va="center", fontsize=8.5, color=MUTED,
    )  # fmt: skip
