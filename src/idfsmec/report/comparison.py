"""Which method wins where: means per missing rate, sentences, and Demsar's diagram of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import RankComparison, Results, compare_pairs, compare_ranks
from idfsmec.report.formatting import listing, percent, plain_number, plain_row, points
from idfsmec.report.scores import (
    blocks,
    differences,
    experiment_rows,
    intervals,
    proposed_method,
    protocol_note,
    shown_metric,
    unit_scores,
)
from idfsmec.report.stability import fold_stability
from idfsmec.report.style import (
    INK,
    MUTED,
    Methods,
    label_of,
    make_axes,
    method_looks,
    set_titles,
    sort_methods,
)


def compare_methods(results: Results, table: str) -> list[dict[str, Any]]:
    """For each pattern of gaps, means per method and rate, and what they say in sentences."""
    rows = experiment_rows(results, "accuracy", table)
    if rows.empty:
        return []
    units = unit_scores(rows, shown_metric(results))
    return [
        _compare(results, table, str(pattern), units[units["pattern"] == pattern])
        for pattern in units["pattern"].unique()
    ]


def _compare(results: Results, table: str, pattern: str, units: pd.DataFrame) -> dict[str, Any]:
    means = intervals(units, ["method", "rate"])
    rates = sorted(float(rate) for rate in means["rate"].unique())
    known, main = results.methods, proposed_method(results)
    names = sort_methods(list(dict.fromkeys(means["method"])), known)
    cells: dict[tuple[str, float], dict[str, Any]] = {
        (row["method"], float(row["rate"])): dict(row) for _, row in means.iterrows()
    }
    best = {
        rate: max(cells[n, rate]["mean"] for n in names if (n, rate) in cells) for rate in rates
    }
    rows = [
        {
            "method": label_of(name, known),
            "main": name == main,
            "cells": [_cell(cells.get((name, rate)), best[rate]) for rate in rates],
            "mean": plain_number(
                np.mean([cells[name, r]["mean"] for r in rates if (name, r) in cells])
            ),
            "stability": fold_stability(results, table, name),
        }
        for name in names
    ]
    gaps = [gap for rate in rates if (gap := _gap_to_best(units, rate, main)) is not None]
    return {
        "rates": rates,
        "pattern": pattern,
        "rows": rows,
        "gaps": gaps,
        "sentences": _sentences(gaps, main, names),
    }


def _cell(row: dict[str, Any] | None, best: float) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "mean": float(row["mean"]),
        "low": plain_number(row["low"]),
        "high": plain_number(row["high"]),
        "best": bool(np.isclose(row["mean"], best)),
    }


def _gap_to_best(units: pd.DataFrame, rate: float, main: str | None) -> dict[str, Any] | None:
    """The main method minus the best other one at a rate, paired by fold."""
    here = units[np.isclose(units["rate"], rate)]
    means = here.groupby("method")["value"].mean()
    if main is None or main not in means or len(means) < 2:
        return None
    best = str(means.drop(main).idxmax())
    found = differences(here[here["method"].isin([main, best])], "method", main)
    gap: dict[str, Any] = {
        "rate": rate,
        "best_other": best,
        "difference": float(means[main] - means[best]),
    }
    paired = found.iloc[0] if len(found) else {"low": np.nan, "high": np.nan, "sure": False}
    gap |= {"low": plain_number(paired["low"]), "high": plain_number(paired["high"])}
    return gap | {"clear": bool(paired["sure"])}


def _sentences(gaps: list[dict[str, Any]], main: str | None, names: list[str]) -> list[str]:
    if main is None:
        return ["No proposed method is among the methods compared here."]
    if main not in names:
        return [f"{main} is not among the methods compared here."]
    if not gaps:
        return [f"Only {main} was run; there is nothing to compare it with."]
    level = [gap for gap in gaps if abs(gap["difference"]) < 5e-4]
    won = [gap for gap in gaps if gap not in level and gap["difference"] > 0]
    lost = [gap for gap in gaps if gap not in level and gap["difference"] < 0]
    sentences = [_won(main, won, len(gaps))]
    if level:
        sentences.append(f"It is level with the best other method at {_rates(level)} missing.")
    if clear := [gap for gap in lost if gap["clear"]]:
        sentences.append(f"{main} clearly loses {_losses(clear)}.")
    if close := [gap for gap in lost if not gap["clear"]]:
        sentences.append(f"{main} loses, within what folds vary, {_losses(close)}.")
    return sentences


def _losses(lost: list[dict[str, Any]]) -> str:
    """To which method and by how much, rate by rate."""
    each = [
        f"to {gap['best_other']} at {percent(gap['rate'])} missing "
        f"(by {points(-gap['difference']).lstrip('+')} points)"
        for gap in lost
    ]
    return listing(each, most=len(each))


def _won(main: str, won: list[dict[str, Any]], n_rates: int) -> str:
    if not won:
        where = (
            "the one missing rate tried" if n_rates == 1 else f"any of the {n_rates} missing rates"
        )
        return f"{main} does not have the highest mean at {where}."
    clear = [gap for gap in won if gap["clear"]]
    how = f"clearly at {_rates(clear)}" if clear else "though nowhere by more than folds vary"
    where = "every missing rate" if len(won) == n_rates else f"{_rates(won)} missing"
    return f"{main} has the highest mean at {where}, {how}."


def _rates(gaps: list[dict[str, Any]]) -> str:
    return listing([percent(gap["rate"]) for gap in gaps], most=10)


def rank_methods(results: Results) -> tuple[RankComparison, list[dict[str, Any]]] | str:
    """Ranks over tables x rates with paired tests, or a sentence that says why not."""
    rows = results.scores[results.scores["experiment"] == "accuracy"]
    wide = blocks(unit_scores(rows, shown_metric(results))) if not rows.empty else pd.DataFrame()
    if wide.shape[0] < 2 or wide.shape[1] < 3:
        return (
            "A comparison of ranks needs at least three methods and two blocks "
            f"(table x missing rate); there are {wide.shape[1]} and {wide.shape[0]}."
        )
    main, known = proposed_method(results), results.methods
    tests: list[dict[str, Any]] = []
    if main is not None and main in wide:
        found = compare_pairs(wide, main)
        found["method"] = [label_of(str(name), known) for name in found["method"]]
        tests = [plain_row(row) for row in found.to_dict("records")]
    return compare_ranks(wide), tests


def draw_ranks(results: Results) -> Axes | str:
    """Mean ranks over all tables and missing rates, or why there are none."""
    ranked = rank_methods(results)
    if isinstance(ranked, str):
        return ranked
    note = protocol_note(results, "accuracy")
    return plot_critical_difference(ranked[0], methods=results.methods, note=note)


def plot_critical_difference(
    comparison: RankComparison,
    *,
    methods: Methods | None = None,
    note: str = "",
    title: str = "Mean ranks",
    ax: Axes | None = None,
) -> Axes:
    """Draw mean ranks on a line; bars join methods that cannot be told apart.

    Parameters
    ----------
    comparison : RankComparison
        From :func:`idfsmec.evaluation.compare_ranks`.
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default what the registry says.
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
    n_methods, bars = len(comparison.methods), len(comparison.groups)
    depth = 0.35 + 0.28 * bars + 0.42 * ((n_methods + 1) // 2)
    ax = make_axes(ax, 7.2, 1.7 + 0.52 * depth)
    margin = 0.02 * (n_methods - 1)
    ax.set_xlim(1 - margin, n_methods + margin)
    ax.set_ylim(depth + 0.2, -1.15)
    ax.axis("off")
    _draw_rank_scale(ax, comparison)
    ranks = dict(zip(comparison.methods, comparison.mean_ranks, strict=True))
    for level, group in enumerate(comparison.groups):
        ends = [min(ranks[name] for name in group), max(ranks[name] for name in group)]
        ax.plot(ends, [0.3 + 0.28 * level] * 2, color=INK, linewidth=3.5, alpha=0.8, gid="group",
                solid_capstyle="round")  # fmt: skip
    _draw_ranked_methods(ax, comparison, methods)
    friedman = (
        f"Friedman p = {comparison.p_value:.2g} over {comparison.n_blocks} blocks (table x rate); "
        "bars join methods not told apart"
    )
    set_titles(ax, title, f"{note}\n{friedman}".strip())
    return ax


def _draw_ranked_methods(ax: Axes, comparison: RankComparison, methods: Methods | None) -> None:
    """Names left and right of the scale, each led to its mean rank."""
    n_methods = len(comparison.methods)
    n_left, top = (n_methods + 1) // 2, 0.5 + 0.28 * len(comparison.groups)
    looks = method_looks(sort_methods(comparison.methods, methods), methods)
    margin = 0.04 * (n_methods - 1)
    for place, (name, rank) in enumerate(
        zip(comparison.methods, comparison.mean_ranks, strict=True)
    ):
        left, look = place < n_left, looks[name]
        y = top + 0.42 * (place if left else n_methods - 1 - place)
        edge = 1 - margin if left else n_methods + margin
        ax.plot([rank, rank, edge], [0, y, y], color=look.color, clip_on=False,
                linewidth=1.8 if look.main else 1)  # fmt: skip
        ax.annotate(
            f"{look.label}  {rank:.2f}" if left else f"{rank:.2f}  {look.label}",
            (edge, y), (-4 if left else 4, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", color=look.color, fontsize=9,
            fontweight="bold" if look.main else "normal", annotation_clip=False,
        )  # fmt: skip


def _draw_rank_scale(ax: Axes, comparison: RankComparison) -> None:
    n_methods = len(comparison.methods)
    ax.plot([1, n_methods], [0, 0], color=INK, linewidth=1)
    for rank in range(1, n_methods + 1):
        ax.plot([rank, rank], [0, -0.12], color=INK, linewidth=1)
        best = "1 (best)" if n_methods < 10 else "best"
        ax.text(rank, -0.2, f"{rank}" if rank > 1 else best, ha="center", va="bottom",
                fontsize=8.5, color=MUTED)  # fmt: skip
    reach = min(comparison.critical_difference, n_methods - 1)
    ax.plot([1, 1 + reach], [-0.75, -0.75], color=MUTED, linewidth=1.6, marker="|",
            gid="critical-difference")  # fmt: skip
    ax.annotate(
        f"critical difference {comparison.critical_difference:.2f}", (1 + reach, -0.75), (6, 0),
        textcoords="offset points", va="center", fontsize=8.5, color=MUTED,
    )  # fmt: skip
