"""Compare methods: means per missing rate, paired differences, mean ranks, held-out sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import RankComparison, Results, compare_pairs, compare_ranks, site_scores
from idfsmec.metrics import CONFOUNDED, holm, site_confounding
from idfsmec.report import data, style
from idfsmec.report.stability import fold_stability
from idfsmec.report.text import (
    EXCLUDES_ZERO,
    INCLUDES_ZERO,
    listing,
    metric_name,
    percent,
    plain_number,
    plain_records,
    points,
)


def compare_methods(results: Results, table: str) -> list[dict[str, Any]]:
    """Summarise for each pattern of missing channels the means per method and rate."""
    rows = data.scored_rows(results, "accuracy", table)
    return [
        _compare(results, table, str(pattern), data.task_scores(own, data.shown_metric(results)))
        for pattern, own in rows.groupby("pattern", sort=False)
    ]


def _compare(results: Results, table: str, pattern: str, tasks: pd.DataFrame) -> dict[str, Any]:
    means = data.intervals(tasks, ["method", "rate"])
    means["best"] = np.isclose(means["mean"], means.groupby("rate")["mean"].transform("max"))
    rates = sorted(float(rate) for rate in means["rate"].unique())
    main, names = (
        data.proposed_method(results),
        data.sort_methods(means["method"], results.methods),
    )
    cells = {(cell["method"], cell["rate"]): cell for cell in plain_records(means)}
    rows = [
        {
            "method": data.label_of(name, results.methods),
            "main": name == main,
            "cells": [cells.get((name, rate)) for rate in rates],
            "mean": float(means.loc[means["method"] == name, "mean"].mean()),
            "stability": fold_stability(results, table, name),
        }
        for name in names
    ]
    leads = [lead for rate in rates if (lead := _lead(tasks, rate, main)) is not None]
    return {
        "rates": rates,
        "pattern": pattern,
        "rows": rows,
        "leads": leads,
        "sentences": _describe_leads(leads, main, names),
    }


def _lead(tasks: pd.DataFrame, rate: float, main: str | None) -> dict[str, Any] | None:
    """Subtract the best other method from the main one at a rate, paired by fold."""
    here = tasks[np.isclose(tasks["rate"], rate)]
    means = here.groupby("method")["value"].mean()
    if main is None or main not in means or len(means) < 2:
        return None
    best = str(means.drop(main).idxmax())
    paired = data.differences(here[here["method"].isin([main, best])], "method", main)
    ci = paired[["low", "high", "excludes_zero"]].to_dict("records") or [{}]
    return {
        "rate": rate,
        "best_other": best,
        "difference": float(means[main] - means[best]),
        "low": plain_number(ci[0].get("low", np.nan)),
        "high": plain_number(ci[0].get("high", np.nan)),
        "excludes_zero": bool(ci[0].get("excludes_zero", False)),
    }


def _describe_leads(
    leads: Sequence[dict[str, Any]], main: str | None, names: Sequence[str]
) -> list[str]:
    if main is None:
        return ["No proposed method is among the methods compared here."]
    if main not in names:
        return [f"{main} is not among the methods compared here."]
    if not leads:
        return [f"Only {main} was run; there is nothing to compare it with."]
    equal = [lead for lead in leads if abs(lead["difference"]) < 5e-4]
    ahead = [lead for lead in leads if lead not in equal and lead["difference"] > 0]
    behind = [lead for lead in leads if lead not in equal and lead["difference"] < 0]
    sentences = [_describe_highest(main, ahead, len(leads))]
    if equal:
        sentences.append(f"It equals the best other method at {_rates(equal)} missing.")
    for excludes, ci in ((True, EXCLUDES_ZERO), (False, INCLUDES_ZERO)):
        each = [
            f"{lead['best_other']} at {percent(lead['rate'])} missing "
            f"(by {points(-lead['difference']).lstrip('+')} points)"
            for lead in behind
            if lead["excludes_zero"] == excludes
        ]
        if each:
            sentences.append(f"{main} is behind {listing(each, len(each))}; {ci}.")
    return sentences


def _describe_highest(main: str, ahead: Sequence[dict[str, Any]], n_rates: int) -> str:
    if not ahead:
        one = "the one missing rate tried"
        where = one if n_rates == 1 else f"any of the {n_rates} missing rates"
        return f"{main} does not have the highest mean at {where}."
    clear = [lead for lead in ahead if lead["excludes_zero"]]
    where = "every missing rate" if len(ahead) == n_rates else f"{_rates(ahead)} missing"
    how = f"{EXCLUDES_ZERO} at {_rates(clear)}" if clear else f"{INCLUDES_ZERO} at all of them"
    return f"{main} has the highest mean at {where} (difference to the next: {how})."


def _rates(leads: Sequence[dict[str, Any]]) -> str:
    return listing([percent(lead["rate"]) for lead in leads], most=10)


def paired_differences(
    scores: pd.DataFrame, reference: str, metric: str = "balanced_accuracy"
) -> pd.DataFrame:
    """Compute differences of a method to all others at every missing rate, paired by fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str
        The method that the others are compared with.
    metric : str, default="balanced_accuracy"

    Returns
    -------
    DataFrame
        Columns ``rate``, ``method``, ``difference`` (reference minus method), ``low``, ``high``
        (95 % CI, corrected for overlapping training sets), ``n``, ``p_value``, ``excludes_zero``
        (whether the CI excludes 0) and ``p_holm``, corrected for all comparisons in the table.
    """
    paired = [
        data.differences(here, "method", reference).assign(rate=float(str(rate)))
        for rate, here in data.task_scores(scores, metric).groupby("rate", sort=True)
        if reference in set(here["method"])
    ]
    columns = ["rate", "method", "difference", "low", "high", "n", "p_value", "excludes_zero"]
    table = pd.concat(paired, ignore_index=True) if paired else pd.DataFrame(columns=columns)
    p = table["p_value"].astype(float)
    table["p_holm"] = np.nan
    table.loc[p.notna(), "p_holm"] = holm(p.dropna())
    return table[[*columns, "p_holm"]]


@style.literal_text
def plot_paired_differences(
    scores: pd.DataFrame,
    *,
    reference: str | None = None,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    note: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a method's differences to all others by missing rate, with 95 % CI.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str, optional
        The method that the others are compared with; by default the proposed one.
    methods, metric, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
        One row per method; within it one CI per rate, from few to many missing channels. A
        filled dot is a difference whose CI excludes 0, an arrow at the frame a CI that continues
        beyond it.
    """
    known = data.known_methods(methods)
    names = data.sort_methods(scores["method"], known)
    main = reference or data.main_method(names, known)
    if main is None:
        raise ValueError("There is no proposed method among scores: name one with reference.")
    table = paired_differences(scores, main, metric)
    looks, others = style.method_looks(names, known), [name for name in names if name != main]
    rates = sorted(table["rate"].unique())
    ax = style.make_axes(ax, 7.2, 2.3 + len(others) * (0.16 + 0.08 * len(rates)))
    limits, last, cut = _difference_limits(table), len(rates) - 1, False
    for row in table.to_dict("records"):
        look, name = looks[row["method"]], f"{row['method']}-{row['rate']:g}"
        i = rates.index(row["rate"])
        y = others.index(row["method"]) + (0.72 * (i / last - 0.5) if last else 0)
        style.draw_estimate(
            ax, y, row["difference"], row["low"], row["high"], look.color, size=4.2,
            filled=row["excludes_zero"], alpha=1 - 0.6 * (last - i) / max(last, 1),
            gid=f"difference-{name}",
        )  # fmt: skip
        cut |= _draw_arrows(ax, row, y, look.color, limits, f"beyond-{name}")
    ax.axvline(0, color=style.INK, linewidth=1)
    for line in range(1, len(others)):
        ax.axhline(line - 0.5, color=style.MUTED, linewidth=0.4, alpha=0.4)
    ax.set_yticks(range(len(others)), [looks[name].label for name in others])
    ax.set_ylim(len(others) - 0.5, -0.5)
    ax.set_xlim(limits)
    style.show_points(ax.xaxis)
    ax.set_xlabel(f"difference in {metric_name(metric)}, points")
    order = ", ".join(percent(rate) for rate in rates)
    note += f"\nwithin a row from top (pale) to bottom: {order} missing\n"
    note += f"filled dot: {EXCLUDES_ZERO}" + ("; arrow: continues beyond the frame" if cut else "")
    style.style_axes(
        ax, title or f"{looks[main].label} minus each method", note, grid="x", rows=True
    )
    style.name_sides(ax, "the other is better", f"{looks[main].label} is better")
    return ax


def _draw_arrows(
    ax: Axes, row: Mapping[Any, Any], y: float, color: str, limits: tuple[float, float], gid: str
) -> bool:
    """Put an arrow at the frame where a CI continues beyond it; return whether there is one."""
    beyond = [(limits[0], "<", row["low"] < limits[0]), (limits[1], ">", row["high"] > limits[1])]
    for edge, arrow, there in beyond:
        if there:
            ax.plot(edge, y, arrow, markersize=3.6, markeredgewidth=0, color=color, zorder=4,
                    clip_on=False, gid=gid)  # fmt: skip
    return any(there for *_, there in beyond)


def _difference_limits(table: pd.DataFrame) -> tuple[float, float]:
    """Return limits that show all differences; very wide CI run out of the axes."""
    values = table["difference"].to_numpy(dtype=float)
    reach = max(float(np.abs(values).max(initial=0)) * 1.6, 0.05)
    bars = table[["low", "high"]].to_numpy(dtype=float)
    bars = np.clip(bars[np.isfinite(bars)], -reach, reach)
    marks = np.concatenate([values, bars, [-0.02, 0.02]])
    return float(marks.min()) - 0.01, float(marks.max()) + 0.01


def difference_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """Differences of the proposed method on a table, per pattern of missing channels."""
    section, caption = "differences", (
        "Differences paired by fold, with 95 % CI corrected for overlapping training sets."
    )  # fmt: skip
    rows, main = data.scored_rows(results, "accuracy", table), data.proposed_method(results)
    if main is None or main not in set(rows["method"]):
        return
    if rows["method"].nunique() < 2:
        reason = f"Only {main} was run; there are no differences to other methods."
        yield style.PageFigure(section, caption, absent=reason)
        return
    for pattern, own, note in data.by_pattern(rows, data.protocol_note(results, "accuracy")):
        draw = partial(
            plot_paired_differences, own, reference=main, methods=results.methods,
            metric=data.shown_metric(results), note=note,
        )  # fmt: skip
        sentences = _describe_differences(results, own, main)
        yield style.PageFigure(section, caption, draw, sentences, variant=pattern)


def _describe_differences(results: Results, rows: pd.DataFrame, main: str) -> list[str]:
    """State which differences are significant, and how many CI would exclude 0 by chance."""
    paired = paired_differences(rows, main, data.shown_metric(results))
    paired = paired[paired["p_value"].notna()]
    if paired.empty:
        return ["One fold gives no CI: no difference is significant."]
    n, n_out = len(paired), int(paired["excludes_zero"].sum())
    if not n_out:
        return [f"None of the {n} 95 % CI excludes 0: no difference is significant."]
    sentences = [
        f"{n_out} of {n} 95 % CI exclude{'s' if n_out == 1 else ''} 0; by chance about "
        f"{max(round(0.05 * n), 1)} would."
    ]
    significant = paired[paired["p_holm"] < 0.05]
    if significant.empty:
        sentences.append("No difference is significant at 5 % after Holm's correction.")
    for better, word in ((True, "higher than"), (False, "lower than")):
        these = significant[(significant["difference"] > 0) == better]
        each = [
            f"{data.label_of(name, results.methods)} at {listing(map(percent, sorted(rates)), 10)}"
            for name, rates in these.groupby("method", sort=False)["rate"]
        ]
        if each:
            sentences.append(
                f"Significant at 5 % after Holm's correction: {main} is {word} {'; '.join(each)} "
                "missing."
            )
    return sentences


def rank_methods(results: Results) -> tuple[RankComparison, list[dict[str, Any]]] | str:
    """Rank methods over tables x rates with paired tests; return the reason where impossible."""
    rows = results.scores[results.scores["experiment"] == "accuracy"]
    wide = pd.DataFrame()
    if not rows.empty:
        wide = data.task_scores(rows, data.shown_metric(results)).pivot_table(
            index=["table", "pattern", "rate"], columns="method", values="value", aggfunc="mean"
        )
        wide = wide.dropna(axis=0)  # complete blocks only
    if wide.shape[0] < 2 or wide.shape[1] < 3:
        return (
            "A comparison of ranks needs at least three methods and two blocks "
            f"(table x missing rate); there are {wide.shape[1]} and {wide.shape[0]}."
        )
    main = data.proposed_method(results)
    tests: list[dict[str, Any]] = []
    if main is not None and main in wide:
        paired = compare_pairs(wide, main)
        paired["method"] = [data.label_of(name, results.methods) for name in paired["method"]]
        tests = plain_records(paired)
    return compare_ranks(wide), tests


def summarise_ranks(results: Results) -> dict[str, Any] | None:
    """Return mean ranks and paired tests over all tables as plain data."""
    ranked = rank_methods(results)
    if isinstance(ranked, str):
        return None
    comparison, tests = ranked
    return {
        "methods": list(comparison.methods),
        "mean_ranks": [float(rank) for rank in comparison.mean_ranks],
        "critical_difference": comparison.critical_difference,
        "p_value": comparison.p_value,
        "n_blocks": comparison.n_blocks,
        "sentences": _describe_ranks(comparison, results),
        "tests": tests,
    }


def rank_figures(results: Results, table: str = "") -> Iterator[style.PageFigure]:
    """Mean ranks over all tables and missing rates."""
    section, caption = "ranks", (
        "Methods ranked in every block (a table at a missing rate). Methods joined by a bar have "
        "mean ranks closer than the critical difference (Nemenyi, 5 %)."
    )  # fmt: skip
    ranked = rank_methods(results)
    if isinstance(ranked, str):
        yield style.PageFigure(section, caption, absent=ranked)
        return
    note = data.protocol_note(results, "accuracy")
    draw = partial(plot_critical_difference, ranked[0], methods=results.methods, note=note)
    yield style.PageFigure(section, caption, draw, _describe_ranks(ranked[0], results))


def _describe_ranks(ranked: RankComparison, results: Results) -> list[str]:
    main = data.proposed_method(results)
    if main not in ranked.methods:
        return []
    place = ranked.methods.index(main)
    behind = ranked.mean_ranks - ranked.mean_ranks[place]
    labels = np.array([data.label_of(name, results.methods) for name in ranked.methods])
    better = labels[behind <= -ranked.critical_difference]
    worse = labels[behind >= ranked.critical_difference]
    sentences = [
        f"{main} has rank {place + 1} of {len(labels)} (mean rank "
        f"{ranked.mean_ranks[place]:.2f} over {ranked.n_blocks} blocks)."
    ]
    for names, word in ((better, "better"), (worse, "worse")):
        if names.size:
            sentences.append(f"Significantly {word} ranks (Nemenyi, 5 %): {listing(names)}.")
    level = len(labels) - 1 - better.size - worse.size
    if level:
        which = f"The ranks of the other {level} do" if better.size or worse.size else "No ranks"
        verb = "not differ" if better.size or worse.size else "differ"
        sentences.append(f"{which} {verb} significantly from its own.")
    return sentences


@style.literal_text
def plot_critical_difference(
    comparison: RankComparison,
    *,
    methods: data.Methods | None = None,
    note: str = "",
    title: str = "Mean ranks",
    ax: Axes | None = None,
) -> Axes:
    """Draw mean ranks on a line; bars join methods that do not differ significantly.

    Parameters
    ----------
    comparison : RankComparison
        From :func:`idfsmec.evaluation.compare_ranks`.
    methods, note, title, ax
        As for :func:`plot_accuracy_by_rate`.

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
    n_methods, n_bars = len(comparison.methods), len(comparison.groups)
    depth = 0.35 + 0.28 * n_bars + 0.42 * ((n_methods + 1) // 2)
    ax = style.make_axes(ax, 7.2, 1.7 + 0.52 * depth)
    margin = 0.02 * (n_methods - 1)
    ax.set_xlim(1 - margin, n_methods + margin)
    ax.set_ylim(depth + 0.2, -1.15)
    ax.axis("off")
    _draw_rank_scale(ax, comparison)
    ranks = dict(zip(comparison.methods, comparison.mean_ranks, strict=True))
    for level, group in enumerate(comparison.groups):
        ends = [min(ranks[name] for name in group), max(ranks[name] for name in group)]
        ax.plot(ends, [0.3 + 0.28 * level] * 2, color=style.INK, linewidth=3.5, alpha=0.8,
                gid="group", solid_capstyle="round")  # fmt: skip
    known, n_left, top = data.known_methods(methods), (n_methods + 1) // 2, 0.5 + 0.28 * n_bars
    looks = style.method_looks(data.sort_methods(comparison.methods, known), known)
    for place, (name, rank) in enumerate(ranks.items()):
        left, look = place < n_left, looks[name]
        y = top + 0.42 * (place if left else n_methods - 1 - place)
        edge = 1 - 2 * margin if left else n_methods + 2 * margin
        ax.plot([rank, rank, edge], [0, y, y], color=look.color, clip_on=False,
                linewidth=1.8 if look.main else 1)  # fmt: skip
        ax.annotate(
            f"{look.label}  {rank:.2f}" if left else f"{rank:.2f}  {look.label}",
            (edge, y), (-4 if left else 4, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", color=look.color, fontsize=9,
            fontweight="bold" if look.main else "normal", annotation_clip=False,
        )  # fmt: skip
    friedman = (
        f"Friedman p = {comparison.p_value:.2g} over {comparison.n_blocks} blocks (table x rate); "
        "bars join methods that do not differ significantly"
    )
    style.set_titles(ax, title, f"{note}\n{friedman}")
    return ax


def _draw_rank_scale(ax: Axes, comparison: RankComparison) -> None:
    n_methods = len(comparison.methods)
    ax.plot([1, n_methods], [0, 0], color=style.INK, linewidth=1)
    for rank in range(1, n_methods + 1):
        ax.plot([rank, rank], [0, -0.12], color=style.INK, linewidth=1)
        best = "1 (best)" if n_methods < 10 else "best"
        ax.text(rank, -0.2, f"{rank}" if rank > 1 else best, ha="center", va="bottom",
                fontsize=8.5, color=style.MUTED)  # fmt: skip
    reach = min(comparison.critical_difference, n_methods - 1)
    ax.plot([1, 1 + reach], [-0.75, -0.75], color=style.MUTED, linewidth=1.6, marker="|",
            gid="critical-difference")  # fmt: skip
    ax.annotate(
        f"critical difference {comparison.critical_difference:.2f}", (1 + reach, -0.75), (6, 0),
        textcoords="offset points", va="center", fontsize=8.5, color=style.MUTED,
    )  # fmt: skip


def summarise_sites(results: Results, table: str) -> dict[str, Any] | None:
    """Summarise each site left out, at the lowest missing rate; None for other folds."""
    rows = site_scores(results)
    rows = rows[(rows["table"] == table) & rows["subject_accuracy"].notna()]
    if rows.empty:
        return None
    main, measured = data.proposed_method(results), rows["method"].unique()
    method = str(main if main in measured else measured[0])
    own = data.lowest_rate(rows[rows["method"] == method])
    own = own[own["imputer"] == own["imputer"].iloc[0]]
    label = data.label_of(method, results.methods)
    return {
        "method": label,
        "rate": float(own["rate"].iloc[0]),
        "rows": plain_records(own),
        "sentences": [_describe_sites(own, label), *_describe_inner_folds(results, len(own))],
    }


def _describe_sites(own: pd.DataFrame, method: str) -> str:
    values = own["subject_accuracy"]
    above = own.loc[own["low"] > own["chance_high"], "site"].tolist()
    where = f"at each of the {len(own)}" if len(above) == len(own) else f"at {listing(above)} only"
    return (
        "One site was left out at a time, so that training included none of its subjects: "
        f"{method} classifies {percent(values.min())} to {percent(values.max())} of a site's "
        "subjects correctly; the 95 % CI is above the chance band "
        f"{where if above else f'at none of the {len(own)}'}."
    )


def _describe_inner_folds(results: Results, n_sites: int) -> list[str]:
    """State how settings were chosen: by sites too, where enough are left."""
    if data.experiment_protocol(results, "accuracy").get("tuning") != "nested":
        return []
    if n_sites > 2:
        return ["Settings were chosen by leaving out each of the other sites in turn."]
    return [
        "Settings were chosen by subject-wise folds: of two sites one is left for training, and "
        "none can be left out of it."
    ]


def site_warnings(results: Results) -> list[tuple[str, str]]:
    """Warn of tables that were harmonized though site and label are confounded."""
    if data.experiment_protocol(results, "accuracy").get("harmonize") is not True:
        return []
    warnings = []
    for name, about in results.tables.items():
        sites = about.get("sites", [])
        labels = sorted({label for site in sites for label in site["labels"]})
        counts = [[site["labels"].get(label, 0) for label in labels] for site in sites]
        if sites and (share := site_confounding(counts)) >= CONFOUNDED:
            text = (
                f"{percent(share)} of the difference between the groups lies between sites, and "
                "harmonizing removes it together with the effects of sites. Compare with a run "
                "without it, and see the audit."
            )
            warnings.append((f"Site and label are confounded: {name}", text))
    return warnings
