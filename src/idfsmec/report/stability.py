"""Draw and describe how stable a selection is: between folds, and between halves of subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from idfsmec.evaluation.statistics import selection_matrix
from idfsmec.report import style
from idfsmec.report.data import TableResults, lowest_rate
from idfsmec.report.text import column_label, listing, percent
from idfsmec.selection.stability import selection_stability
from idfsmec.table.columns import join_columns, split_column

_MOST_SHOWN = 20
#: Frequencies are counts of halves divided by their number: equal ones may differ by rounding.
_ROUNDING = 1e-9


def fold_stability(table: TableResults, method: str) -> dict[str, Any] | None:
    """Measure how a method's selections agree between folds at the lowest missing rate.

    None where there is nothing to compare, as for methods that keep all features.
    """
    picks = table.results.selections
    picks = picks[(picks["experiment"] == "accuracy") & (picks["table"] == table.name)]
    picks = picks[picks["method"] == method]
    if picks.empty:
        return None
    rankings = [list(ranking) for ranking in lowest_rate(picks)["ranking"]]
    k = _typical_k(table, method, min(map(len, rankings)))
    if k < 1:
        return None
    channels, features = table.about["channels"], list(table.about["features"])
    names = join_columns(np.repeat(channels, len(features)), features * len(channels))
    names = list(dict.fromkeys([*names, *(name for ranking in rankings for name in ranking)]))
    agreement = selection_stability(selection_matrix(rankings, names, k))
    if np.isnan(agreement.value):
        return None
    fields = ("value", "low", "high", "n", "verdict")
    return {name: getattr(agreement, name) for name in fields} | {"k": k}


def _typical_k(table: TableResults, method: str, longest: int) -> int:
    """Return the median of the numbers of features that tuning chose, where rankings reach it."""
    rows, n_features = table.all_rows(), len(table.ranking)
    rows = rows[rows["method"] == method]
    if len(rows) and n_features and (rows["k"] >= n_features).all():
        return 0  # it never selects
    chosen = rows.loc[rows["chosen"].astype(bool), "k"]
    ks = chosen if len(chosen) else rows["k"]
    middle = int(ks.quantile(0.5, interpolation="nearest")) if len(ks) else longest
    # Keeping all features does not choose any: then the better half is looked at.
    return min(middle, longest, max(n_features // 2, 1) if n_features else middle)


def summarise_resampling(table: TableResults) -> dict[str, Any] | None:
    """Summarise the selections on halves of the subjects; None where there were none."""
    halves = table.results.resampling.get(table.name)
    if not halves:
        return None
    if "reason" in halves:
        return {"reason": halves["reason"], "stable_features": [], "stability": None}
    least = halves["threshold"] - _ROUNDING
    features, channels = (
        pd.Series(halves[name], dtype=float) for name in ("frequency", "channel_frequency")
    )
    stable = features[features >= least].sort_values(ascending=False, kind="stable").index
    channels = channels.drop(table.dead, errors="ignore")
    fields = ("n_resamples", "n_picked", "threshold", "max_false", "expected_false",
              "assumption", "stability")  # fmt: skip
    return {name: halves[name] for name in fields} | {
        "reason": None,
        "n_features": int(features.size),
        "stable_features": [
            column_label(c) for c in stable if split_column(c)[0] not in table.dead
        ],
        "stable_channels": [str(name) for name in channels.index[channels >= least]],
    }


def add_frequencies(ranking: pd.DataFrame, halves: Mapping[str, Any] | None) -> pd.DataFrame:
    """Add the columns ``frequency`` and ``stable`` to a ranking, where halves were drawn."""
    if not halves or "frequency" not in halves:
        return ranking
    columns = pd.Series(join_columns(ranking["channel"], ranking["feature"]), ranking.index)
    frequency = columns.map(halves["frequency"]).astype(float)
    return ranking.assign(frequency=frequency, stable=frequency >= halves["threshold"] - _ROUNDING)


def describe_stability(folds: Mapping[str, Any] | None, halves: Mapping[str, Any] | None) -> str:
    """Describe the agreement of folds and, where they were drawn, of halves."""
    text = "The stability of the selection between folds was not measured."
    if folds is not None:
        text = (
            f"Between {folds['n']} folds the stability of the first {folds['k']} features is "
            f"{folds['value']:.2f} of 1 ({folds['verdict']})."
        )
    if halves is None:
        return text
    if halves["reason"]:
        return f"{text} The selection on halves of the subjects could not be measured."
    least, n = percent(halves["threshold"]), halves["n_resamples"]
    bound = f"where at most {halves['max_false']:g} false selection is expected"
    stable = halves["stable_features"]
    if not stable:
        return f"{text} No feature was selected on {least} of {n} random halves, {bound}."
    return (
        f"{text} {len(stable)} of {halves['n_features']} features "
        f"{'was' if len(stable) == 1 else 'were'} selected on at least {least} of {n} random "
        f"halves of the subjects, {bound}: {listing(stable, most=4)}."
    )


def stability_warnings(findings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Warn of tables whose folds, or halves, select different features."""
    folds = {name: each["stability"] or {} for name, each in findings.items()}
    if poor := [name for name, each in folds.items() if each.get("verdict") == "poor"]:
        text = (
            f"Different folds select different features ({listing(poor)}). Single features in the "
            "ranking may change with a few more subjects."
        )
        yield "Unstable selection", text
    halves = {name: each["resampling"] for name, each in findings.items()}
    without = [n for n, h in halves.items() if h and not h["reason"] and not h["stable_features"]]
    if without:
        text = (
            f"Random halves of the subjects agree on no single feature ({listing(without)}). Read "
            "channels and groups of features rather than single ones."
        )
        yield "No stable feature", text


def frequency_figures(table: TableResults) -> Iterator[style.PageFigure]:
    """How often each feature, and each channel, was selected on halves of the subjects."""
    halves = table.results.resampling.get(table.name)
    if not halves or "reason" in halves:
        reason = "Halves of the subjects were not compared (run idfsmec benchmark)."
        if halves:
            reason = f"Halves of the subjects could not be compared: {halves['reason']}"
        yield style.PageFigure("selection-frequency-features", absent=reason)
        return
    what = f"first {halves['n_picked']} on {halves['n_resamples']} halves of the subjects"
    note, channel_chance = table.whole_table_note(what), list(halves["channel_chance"].values())
    captions = {
        "features": "How often the feature was among those selected when only half of the "
        "subjects were used. Chance: the frequency of random selection.",
        "channels": "How often at least one feature of the channel was among them.",
    }
    for name, shares, threshold, chance in (
        ("features", halves["frequency"], halves["threshold"], halves["chance"]),
        ("channels", halves["channel_frequency"], None, float(np.mean(channel_chance))),
    ):
        draw = partial(
            plot_selection_frequency, shares, threshold=threshold, chance=chance, note=note,
            title=f"Selection frequency of {name}",
        )  # fmt: skip
        sentences, largest = [], max(shares, key=shares.get, default=None)
        if largest is not None:
            text = f"{column_label(largest)}, on {percent(shares[largest])} of the halves"
            if threshold is not None:
                n = sum(share >= threshold - _ROUNDING for share in shares.values())
                verb = "reaches" if n == 1 else "reach"
                text += f"; {n or 'none'} of {len(shares)} {verb} the threshold"
            sentences = [f"Selected most often: {text}."]
        yield style.PageFigure(f"selection-frequency-{name}", draw, captions[name], sentences)


@style.literal_text
def plot_selection_frequency(
    frequencies: Mapping[str, float],
    *,
    threshold: float | None = None,
    chance: float | None = None,
    note: str = "",
    title: str = "Selection frequency",
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each of the leading features (or channels) was selected.

    Parameters
    ----------
    frequencies : mapping of name to share
        For example ``dict(zip(table.X.columns, selector.frequencies_))`` of a
        :class:`idfsmec.StabilitySelector`; the 20 highest are drawn.
    threshold : float, optional
        Drawn as a line; features that reach it are called stable and emphasised.
    chance : float, optional
        The frequency of random selection, drawn as a dotted line.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_selection_frequency({"F3__alpha": 0.9, "O1__alpha": 0.2}, threshold=0.7)
    >>> [float(bar.get_width()) for bar in ax.patches]
    [0.9, 0.2]
    """
    shares = pd.Series(frequencies, dtype=float).sort_values(ascending=False, kind="stable")
    shown = shares.head(_MOST_SHOWN)
    names = [column_label(str(name)) for name in shown.index]
    width = 4.6 + 0.065 * max(len(max(names, key=len, default="")) - 12, 0)
    ax = style.make_axes(ax, width, 1.7 + 0.21 * max(shown.size, 4))
    least = -np.inf if threshold is None else threshold - _ROUNDING
    colors = [style.EMPHASIS if share >= least else style.SANITY for share in shown]
    style.draw_bars(ax, names, shown.to_numpy(), colors)
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    ax.set_xlabel("share of halves")
    lines = ((threshold, "-", style.INK, "stable"), (chance, ":", style.MUTED, "chance"))
    for value, linestyle, color, name in lines:
        if value is not None:
            ax.axvline(value, color=color, linewidth=1.1, linestyle=linestyle, gid=name)
            style.annotate(ax, name, (value, 0), (3, 3), ("data", "axes fraction"), color=color)
    if shares.size > shown.size:
        note += f"\nthe {shown.size} highest of {shares.size}"
    return style.style_axes(ax, title, note, grid="x", rows=True)
