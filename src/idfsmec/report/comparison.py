"""Compare methods: means per missing rate, paired differences, held-out sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from idfsmec.evaluation import Results
from idfsmec.evaluation.results import site_scores
from idfsmec.metrics import CONFOUNDED, site_confounding
from idfsmec.report import data, style
from idfsmec.report.data import TableResults
from idfsmec.report.style import PageFigure
from idfsmec.report.text import (
    SIGNIFICANT,
    capitalise,
    listing,
    metric_name,
    percent,
    plain_records,
    points,
)

#: Smaller differences than this are no difference.
_EQUAL = 5e-4


def compare_methods(table: TableResults) -> Iterator[dict[str, Any]]:
    """Summarise for each pattern of missing channels the means per method and rate."""
    for pattern, rows in table.rows().groupby("pattern", sort=False):
        means = data.intervals(data.task_scores(rows, table.metric), ["method", "rate"])
        means["best"] = np.isclose(means["mean"], means.groupby("rate")["mean"].transform("max"))
        rates = sorted(float(rate) for rate in means["rate"].unique())
        names = data.sort_methods(means["method"], table.methods)
        cells = {(cell["method"], cell["rate"]): cell for cell in plain_records(means)}
        # The best other method at a rate is the one that the main one leads by least.
        paired = _paired_differences(rows, table.main, table.metric)
        least = paired["difference"].round(9).groupby(paired["rate"]).idxmin()
        leads = plain_records(paired.loc[least])
        yield {
            "rates": rates,
            "pattern": str(pattern),
            "rows": [
                {
                    "method": table.label(name),
                    "main": name == table.main,
                    "cells": [cells.get((name, rate)) for rate in rates],
                    "mean": float(means.loc[means["method"] == name, "mean"].mean()),
                }
                for name in names
            ],
            "leads": leads,
            "sentences": _describe_leads(leads, table.main, names),
        }


def _describe_leads(
    leads: Sequence[dict[str, Any]], main: str | None, names: Sequence[str]
) -> list[str]:
    if main is None:
        return ["No proposed method is among the methods compared here."]
    if main not in names:
        return [f"{main} is not among the methods compared here."]
    if not leads:
        return [f"Only {main} was run, so nothing is compared."]
    first = [percent(lead["rate"]) for lead in leads if lead["difference"] > -_EQUAL]
    where = f"{listing(first, 10)} missing" if first else "no missing rate"
    if len(first) == len(leads):
        where = "every missing rate"
    higher = [
        f"At {percent(lead['rate'])} missing {lead['method']} is higher by "
        f"{points(-lead['difference']).lstrip('+')} points; "
        f"{'' if lead['significant'] else 'not '}{SIGNIFICANT}."
        for lead in leads
        if lead["difference"] <= -_EQUAL
    ]
    return [f"{main} has the highest mean at {where}.", *higher]


def _paired_differences(scores: pd.DataFrame, reference: str | None, metric: str) -> pd.DataFrame:
    """Subtract each method from the reference at every rate, with Holm's correction for all."""
    paired = [
        data.differences(here, reference).assign(rate=float(str(rate)))
        for rate, here in data.task_scores(scores, metric).groupby("rate", sort=True)
        if reference in set(here["method"])
    ]
    columns = ["method", "difference", "low", "high", "n", "p_value", "rate"]
    table = pd.concat(paired, ignore_index=True) if paired else pd.DataFrame(columns=columns)
    return data.add_significance(table)


@style.literal_text
def plot_paired_differences(
    scores: pd.DataFrame,
    *,
    reference: str | None = None,
    methods: data.Methods | None = None,
    metric: str = "balanced_accuracy",
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a method's differences to all others by missing rate, with 95 % CI.

    Parameters
    ----------
    scores : DataFrame
        Rows of one table and pattern, as in :class:`idfsmec.evaluation.Results`.
    reference : str, optional
        The method that the others are compared with; by default the proposed one.
    methods, metric, note, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
        One row per method; within it one CI per rate, from few to many missing channels, paired
        by fold and corrected for overlapping training sets. A filled dot is a difference that is
        significant at 5 % after Holm's correction; very wide CI are cut at the frame.
    """
    known = data.known_methods(methods)
    looks = style.method_looks(scores["method"], known)
    main = reference or data.main_method(looks, known)
    if main is None:
        raise ValueError("There is no proposed method among scores: name one with reference.")
    table = _paired_differences(scores, main, metric)
    others = [name for name in looks if name != main]
    rates = sorted(table["rate"].unique())
    last = len(rates) - 1
    ax = style.make_axes(ax, 7.2, 2.3 + len(others) * (0.16 + 0.08 * len(rates)))
    for row in table.to_dict("records"):
        i = rates.index(row["rate"])
        y = others.index(row["method"]) + (0.72 * (i / last - 0.5) if last else 0)
        style.draw_estimate(
            ax,
            y,
            (row["difference"], row["low"], row["high"]),
            looks[row["method"]].color,
            row["significant"],
            markersize=4.2,
            alpha=1 - 0.6 * (last - i) / max(last, 1),
            gid=f"difference-{row['method']}-{row['rate']:g}",
        )
    ax.axvline(0, color=style.INK, linewidth=1)
    for line in range(1, len(others)):
        ax.axhline(line - 0.5, color=style.MUTED, linewidth=0.4, alpha=0.4)
    ax.set_yticks(range(len(others)), [looks[name].label for name in others])
    ax.set_ylim(len(others) - 0.5, -0.5)
    # All differences are within the limits; very wide CI would squeeze them, and are cut.
    values, bars = (table[c].to_numpy(dtype=float) for c in ("difference", ["low", "high"]))
    reach = max(float(np.abs(values).max(initial=0)) * 1.6, 0.05)
    inner = np.clip(bars[np.isfinite(bars)], -reach, reach)
    marks = np.concatenate([values, inner, [-0.02, 0.02]])
    ax.set_xlim(marks.min() - 0.01, marks.max() + 0.01)
    ax.xaxis.set_major_formatter(lambda v, _: points(v, 0) if v else "0")
    ax.set_xlabel(f"difference in {metric_name(metric)}, points")
    order = ", ".join(percent(rate) for rate in rates)
    note += f"\nwithin a row from top (pale) to bottom: {order} missing\nfilled dot: "
    note += SIGNIFICANT
    if (np.abs(bars) > reach).any():
        note += "; wide CI are cut at the frame"
    style.style_axes(ax, f"{looks[main].label} minus each method", note, grid="x")
    style.name_sides(ax, "the other is better", f"{looks[main].label} is better")
    return ax


def difference_figures(table: TableResults) -> Iterator[PageFigure]:
    """Differences of the proposed method to all others, per pattern of missing channels."""
    names, main = set(table.rows()["method"]), table.main
    if main is None or main not in names or len(names) < 2:
        return
    caption = "Differences paired by fold, with 95 % CI corrected for overlapping training sets."
    for pattern, rows, how in table.by_pattern():
        draw = partial(plot_paired_differences, rows, reference=main, **how)
        sentences = _describe_differences(table, rows, main)
        yield PageFigure("differences", draw, caption, sentences, pattern)


def _describe_differences(table: TableResults, rows: pd.DataFrame, main: str) -> list[str]:
    """State which differences are significant after Holm's correction."""
    paired = _paired_differences(rows, main, table.metric).dropna(subset=["p_value"])
    if paired.empty:
        return ["One fold gives no CI: no difference is significant."]
    significant, sentences = paired[paired["significant"]], []
    if significant.empty:
        sentences.append(f"Of {len(paired)} differences at single rates none is {SIGNIFICANT}.")
    for better, word in ((True, "higher than"), (False, "lower than")):
        these = significant[(significant["difference"] > 0) == better]
        each = [
            f"{table.label(name)} at {listing(map(percent, sorted(rates)), 10)}"
            for name, rates in these.groupby("method", sort=False)["rate"]
        ]
        if each:
            sentences.append(
                f"{capitalise(SIGNIFICANT)}: {main} is {word} {'; '.join(each)} missing."
            )
    return sentences


def summarise_sites(table: TableResults) -> dict[str, Any] | None:
    """Summarise each site left out, at the lowest missing rate; None for other folds."""
    rows = site_scores(table.results)
    rows = rows[(rows["table"] == table.name) & rows["subject_accuracy"].notna()]
    if rows.empty:
        return None
    measured = rows["method"].unique()
    method = str(table.main if table.main in measured else measured[0])
    rows = data.lowest_rate(rows[rows["method"] == method])
    rows = rows[rows["imputer"] == rows["imputer"].iloc[0]]
    values, n_sites = rows["subject_accuracy"], len(rows)
    above = rows.loc[rows["low"] > rows["chance_high"], "site"].tolist()
    where = f"at {listing(above)} only" if above else f"at none of the {n_sites}"
    if len(above) == n_sites:
        where = f"at each of the {n_sites}"
    sentences = [
        "One site was left out at a time: training included none of its participants.",
        f"{table.label(method)} classifies {percent(values.min())} to {percent(values.max())} of "
        "a site's participants correctly.",
        f"The 95 % CI is above the chance band {where}.",
    ]
    if data.experiment_protocol(table.results).get("tuning") == "nested":
        sentences.append(
            "Settings were chosen by leaving out each of the other sites in turn."
            if n_sites > 2
            else "Settings were chosen by subject-wise folds, because only one site is left for "
            "training."
        )
    return {
        "method": table.label(method),
        "rate": float(rows["rate"].iloc[0]),
        "rows": plain_records(rows),
        "sentences": sentences,
    }


def site_warnings(results: Results) -> list[tuple[str, str]]:
    """Warn of tables that were harmonized though site and label are confounded."""
    if data.experiment_protocol(results).get("harmonize") is not True:
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
                "without harmonizing, and read the audit."
            )
            warnings.append((f"Site and diagnosis are confounded: {name}", text))
    return warnings
