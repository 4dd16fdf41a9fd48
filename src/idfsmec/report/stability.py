"""How stable a selection is: between folds, and between random halves of the subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from idfsmec._columns import join_columns, split_column
from idfsmec.evaluation import Results, selection_matrix, selection_stability
from idfsmec.report.formatting import feature_name, listing, percent
from idfsmec.report.missingness import dead_channels
from idfsmec.report.scores import (
    experiment_rows,
    lowest_rate,
    table_ranking,
    whole_table_note,
)
from idfsmec.report.style import EMPHASIS, INK, MUTED, SANITY, make_axes, style_axes

_MOST_SHOWN = 20
#: Frequencies are counts of halves divided by their number: equal ones may differ by rounding.
_ROUNDING = 1e-9


def fold_stability(results: Results, table: str, method: str) -> dict[str, Any] | None:
    """Agreement of a method's selections between folds at the lowest missing rate.

    None where there is nothing to compare, as for methods that keep all features.
    """
    picks = results.selections
    picks = picks[
        (picks["experiment"] == "accuracy")
        & (picks["table"] == table)
        & (picks["method"] == method)
    ]
    if picks.empty:
        return None
    rankings = [list(ranking) for ranking in lowest_rate(picks)["ranking"]]
    k = _typical_k(results, table, method, min(map(len, rankings)))
    if k < 1:
        return None
    about = results.tables[table]
    channels = [channel for channel in about["channels"] for _ in about["features"]]
    names = join_columns(channels, list(about["features"]) * len(about["channels"]))
    names = list(dict.fromkeys([*names, *(name for ranking in rankings for name in ranking)]))
    found = selection_stability(selection_matrix(rankings, names, k))
    if np.isnan(found.value):
        return None
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "k": k,
        "verdict": found.verdict,
    }


def _typical_k(results: Results, table: str, method: str, longest: int) -> int:
    """The middle of the numbers of features that tuning chose, as far as rankings are kept."""
    rows = experiment_rows(results, "accuracy", table)
    rows = rows[rows["method"] == method]
    n_features = len(table_ranking(results, table))
    if len(rows) and n_features and (rows["k"] >= n_features).all():
        return 0  # it never selects
    chosen = rows.loc[rows["chosen"].astype(bool), "k"]
    ks = chosen if len(chosen) else rows["k"]
    middle = int(ks.quantile(0.5, interpolation="nearest")) if len(ks) else longest
    # Keeping all features says nothing about which: then the better half is looked at.
    return min(middle, longest, max(n_features // 2, 1) if n_features else middle)


def resampling_summary(results: Results, table: str) -> dict[str, Any] | None:
    """What halves of the subjects say about a table, as plain data; None where none were made."""
    found = results.resampling.get(table)
    if not found:
        return None
    if "reason" in found:
        return {"reason": found["reason"], "stable_features": [], "stability": None}
    dead = dead_channels(results, table)
    frequency = pd.Series(found["frequency"], dtype=float)
    channels = pd.Series(found["channel_frequency"], dtype=float).drop(dead, errors="ignore")
    alive = np.array([split_column(str(column))[0] not in dead for column in frequency.index])
    stable = frequency[alive & (frequency >= found["threshold"] - _ROUNDING)]
    return {
        "reason": None,
        "n_resamples": found["n_resamples"],
        "n_picked": found["n_picked"],
        "n_features": int(frequency.size),
        "threshold": found["threshold"],
        "max_false": found["max_false"],
        "expected_false": found["expected_false"],
        "assumption": found["assumption"],
        "stability": found["stability"],
        "stable_features": [
            feature_name(str(column))
            for column in stable.sort_values(ascending=False, kind="stable").index
        ],
        "stable_channels": [
            str(name) for name in channels[channels >= found["threshold"] - _ROUNDING].index
        ],
    }


def add_frequencies(ranking: pd.DataFrame, found: Mapping[str, Any] | None) -> pd.DataFrame:
    """The ranking with the columns ``frequency`` and ``stable``, where halves were made.

    Examples
    --------
    >>> ranking = pd.DataFrame({"channel": ["F3", "O1"], "feature": ["a", "a"]})
    >>> add_frequencies(ranking, {"frequency": {"F3__a": 0.9, "O1__a": 0.2}, "threshold": 0.7})
      channel feature  frequency  stable
    0      F3       a        0.9    True
    1      O1       a        0.2   False
    """
    if not found or "frequency" not in found:
        return ranking
    columns = pd.Series(join_columns(ranking["channel"], ranking["feature"]), ranking.index)
    frequency = columns.map(found["frequency"]).astype(float)
    return ranking.assign(frequency=frequency, stable=frequency >= found["threshold"] - _ROUNDING)


def describe_stability(stability: dict[str, Any] | None, resampling: dict[str, Any] | None) -> str:
    """Sentences about the agreement of folds and, where they were made, of halves."""
    if stability is None:
        folds = "How stable the selection is between folds was not measured."
    else:
        folds = (
            f"Between {stability['n']} folds the first {stability['k']} features agree to "
            f"{stability['value']:.2f} of 1 ({stability['verdict']} stability)."
        )
    return f"{folds} {_describe_resampling(resampling)}".strip()


def _describe_resampling(resampling: dict[str, Any] | None) -> str:
    if resampling is None:
        return ""
    if resampling["reason"]:
        return "How often halves of the subjects select the same features could not be measured."
    least, n = percent(resampling["threshold"]), resampling["n_resamples"]
    bound = f"where at most {resampling['max_false']:g} false selection is expected"
    stable = resampling["stable_features"]
    if not stable:
        return f"No feature was selected on {least} of {n} random halves of the people, {bound}."
    return (
        f"{len(stable)} of {resampling['n_features']} features "
        f"{'was' if len(stable) == 1 else 'were'} selected on at least {least} of {n} random "
        f"halves of the people, {bound}: {listing(stable, most=4)}."
    )


def draw_feature_frequencies(results: Results, table: str) -> Axes | str:
    """How often halves of the subjects selected each feature of a table."""
    found = results.resampling.get(table)
    if not found:
        return "Halves of the subjects were not compared (run idfsmec benchmark)."
    if "reason" in found:
        return f"Halves of the subjects could not be compared: {found['reason']}"
    return plot_selection_frequency(
        found["frequency"],
        threshold=found["threshold"],
        chance=found["chance"],
        note=_halves_note(results, table),
        title="Selection frequency of features",
    )


def draw_channel_frequencies(results: Results, table: str) -> Axes | str | None:
    """How often they selected each channel; nothing where the features say why not."""
    found = results.resampling.get(table) or {}
    if "channel_frequency" not in found:
        return None
    by_chance = list(found["channel_chance"].values())
    return plot_selection_frequency(
        found["channel_frequency"],
        chance=sum(by_chance) / len(by_chance),
        note=_halves_note(results, table),
        title="Selection frequency of channels",
    )


def _halves_note(results: Results, table: str) -> str:
    found = results.resampling[table]
    what = f"first {found['n_picked']} on {found['n_resamples']} halves of the subjects"
    return whole_table_note(results, table, what)


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
        Drawn as a line; what reaches it is called stable and stands out.
    chance : float, optional
        What selecting at random would give, drawn as a dotted line.
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
    rows = np.arange(shown.size)
    ax = make_axes(ax, 4.6, 1.7 + 0.21 * max(shown.size, 4))
    least = -np.inf if threshold is None else threshold - _ROUNDING
    colors = [EMPHASIS if share >= least else SANITY for share in shown]
    ax.barh(rows, shown.to_numpy(), color=colors, height=0.62)
    ax.set_yticks(rows, [feature_name(str(name)) for name in shown.index])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    ax.set_xlabel("share of halves")
    for value, style, color, name in (
        (threshold, "-", INK, "stable"),
        (chance, ":", MUTED, "chance"),
    ):
        if value is not None:
            ax.axvline(value, color=color, linewidth=1.1, linestyle=style, gid=name)
            ax.annotate(
                name, (value, 0), (3, 3), xycoords=("data", "axes fraction"), color=color,
                textcoords="offset points", fontsize=8.5,
            )  # fmt: skip
    if shares.size > shown.size:
        note += f"\nthe {shown.size} highest of {shares.size}"
    style_axes(ax, title, note.strip(), grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax
