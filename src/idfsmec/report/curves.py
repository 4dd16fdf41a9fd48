"""Draw and describe AUC by the number of electrodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from idfsmec.evaluation import ElectrodeCurve, Results, electrode_curve
from idfsmec.report import style
from idfsmec.report.channels import draw_channels
from idfsmec.report.data import TableResults, experiment_protocol
from idfsmec.report.style import PageFigure
from idfsmec.report.text import describe_protocol, listing, percent, plain_records

#: Electrodes are mapped for this number of them, where no smallest number is known.
_MAPPED = 4
_AUC = "AUC per participant"


@style.literal_text
def plot_electrode_curve(
    results: Results, *, table: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw AUC per participant against the number of electrodes.

    Parameters
    ----------
    results : Results
        With the experiment :func:`idfsmec.evaluation.electrodes`.
    table : str, optional
        By default the first one.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    Axes
        Electrodes by channel weights with their 95 % CI, random sets, headsets as diamonds. The
        dashed line lies the margin below the AUC of all electrodes.
    """
    summary = electrode_curve(results, table)
    curve, ax = summary.curve, style.make_axes(ax)
    choices = list(dict.fromkeys(curve["choice"]))
    sizes = curve.groupby("choice")["n_electrodes"].nunique()
    ours = str(sizes.drop("random", errors="ignore").idxmax())
    own = curve[curve["choice"] == ours]
    at, mean, low, high = own[["n_electrodes", "mean", "low", "high"]].to_numpy(dtype=float).T
    ax.fill_between(at, low, np.minimum(high, 1), color=style.EMPHASIS, alpha=0.14, linewidth=0)
    ax.plot(at, mean, "o-", color=style.EMPHASIS, linewidth=2.4, markersize=5, gid="line-weights",
            label="by channel weights (95 % CI)")  # fmt: skip
    ax.axhline(mean[-1] - summary.margin, color=style.MUTED, linewidth=1, linestyle="--")
    style.annotate(ax, f"all electrodes − {summary.margin:g}", (0, mean[-1] - summary.margin),
                   (4, -10), ("axes fraction", "data"))  # fmt: skip
    ax.axhline(0.5, color=style.MUTED, linewidth=1, linestyle=":")
    for level, choice in enumerate(choices):
        rows = curve[curve["choice"] == choice]
        if choice == "random":
            ax.plot(rows["n_electrodes"], rows["mean"], "s--", color=style.SANITY, linewidth=1.1,
                    markersize=3.5, gid="line-random", label="random electrodes")  # fmt: skip
        elif choice != ours:
            point = float(rows["n_electrodes"].iloc[0]), float(rows["mean"].iloc[0])
            ax.plot(*point, "D", color=style.FILTER, markersize=5, gid=f"cap-{choice}")
            # Headsets may share a number of electrodes: their names stand on different lines.
            style.annotate(ax, choice, point, (0, -13 - 11 * level), ha="center", fontsize=7.5)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(at.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{number:g}" for number in at])
    bars = own[["low", "high"]].to_numpy(dtype=float)
    chance = {"chance": 0.5, "high": 0.5}
    ax.set_ylim(style.score_limits(curve["mean"].to_numpy(dtype=float), bars, chance))
    ax.set_xlabel("electrodes")
    ax.set_ylabel(_AUC)
    style.add_legend(ax)
    note = describe_protocol(experiment_protocol(results, "electrodes"))
    return style.style_axes(ax, "How few electrodes?", note)


def electrode_figures(table: TableResults) -> Iterator[PageFigure]:
    """AUC against the number of electrodes, and how often each electrode is chosen."""
    if table.all_rows("electrodes").empty:
        return
    summary = electrode_curve(table.results, table.name)
    caption = (
        "Electrodes are chosen in each training fold by channel weights; all their features are "
        "used. Diamonds: headsets whose electrodes the table has. Dotted: chance."
    )
    draw = partial(plot_electrode_curve, table.results, table=table.name)
    numbers = plain_records(summary.curve)
    yield PageFigure("electrodes", draw, caption, [summary.sentence], numbers=numbers)
    yield _chosen_figure(table, summary)


def _chosen_figure(table: TableResults, summary: ElectrodeCurve) -> PageFigure:
    counts = [int(count) for count in summary.chosen.columns]
    wanted = summary.smallest or _MAPPED
    number = min(counts, key=lambda count: abs(count - wanted))
    shares = summary.chosen[number].sort_values(ascending=False, kind="stable")
    montage = table.about.get("montage")
    draw = partial(
        draw_channels, {str(name): float(share) for name, share in shares.items()},
        f"Chosen among the first {number}", "share of folds", table.about.get("positions"),
        montage if isinstance(montage, str) else None, table.note("electrodes"), None,
    )  # fmt: skip
    each = [f"{name} ({percent(share)})" for name, share in shares[shares > 0].items()]
    sentence = f"Among the first {number} electrodes: {listing(each, 8)} of folds."
    if np.isclose(shares.iloc[:number], 1.0).all():
        sentence = f"All folds chose {listing(shares.index[:number], 20)}."
    caption = "Share of training folds that chose an electrode."
    return PageFigure("electrodes-chosen", draw, caption, [sentence])
