"""Draw and describe how stable a selection is: between folds, and between halves of subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from idfsmec.evaluation import Results
from idfsmec.evaluation.statistics import selection_matrix
from idfsmec.report import style
from idfsmec.report.channels import dead_channels
from idfsmec.report.data import experiment_rows, lowest_rate, table_ranking, whole_table_note
from idfsmec.report.text import column_label, listing, percent
from idfsmec.selection.stability import selection_stability
from idfsmec.table.columns import join_columns, split_column

_MOST_SHOWN = 20
#: Frequencies are counts of halves divided by their number: equal ones may differ by rounding.
_ROUNDING = 1e-9


def fold_stability(results: Results, table: str, method: str) -> dict[str, Any] | None:
    """Measure how a method's selections agree between folds at the lowest missing rate.

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
    agreement = selection_stability(selection_matrix(rankings, names, k))
    if np.isnan(agreement.value):
        return None
    fields = ("value", "low", "high", "n", "verdict")
    return {name: getattr(agreement, name) for name in fields} | {"k": k}


def _typical_k(results: Results, table: str, method: str, longest: int) -> int:
    """Return the median of the numbers of features that tuning chose, where rankings reach it."""
    rows = experiment_rows(results, "accuracy", table)
    rows = rows[rows["method"] == method]
    n_features = len(table_ranking(results, table))
    if len(rows) and n_features and (rows["k"] >= n_features).all():
        return 0  # it never selects
    chosen = rows.loc[rows["chosen"].astype(bool), "k"]
    ks = chosen if len(chosen) else rows["k"]
    middle = int(ks.quantile(0.5, interpolation="nearest")) if len(ks) else longest
    # Keeping all features does not choose any: then the better half is looked at.
    return min(middle, longest, max(n_features // 2, 1) if n_features else middle)


def summarise_resampling(results: Results, table: str) -> dict[str, Any] | None:
    """Summarise the selections on halves of the subjects; None where there were none."""
    halves = results.resampling.get(table)
    if not halves:
        return None
    if "reason" in halves:
        return {"reason": halves["reason"], "stable_features": [], "stability": None}
    dead, least = dead_channels(results, table), halves["threshold"] - _ROUNDING
    frequency = pd.Series(halves["frequency"], dtype=float).sort_values(
        ascending=False, kind="stable"
    )
    by_channel = pd.Series(halves["channel_frequency"], dtype=float).drop(dead, errors="ignore")
    stable = [str(column) for column in frequency.index[frequency >= least]]
    fields = ("n_resamples", "n_picked", "threshold", "max_false", "expected_false",
              "assumption", "stability")  # fmt: skip
    return {name: halves[name] for name in fields} | {
        "reason": None,
        "n_features": int(frequency.size),
        "stable_features": [column_label(c) for c in stable if split_column(c)[0] not in dead],
        "stable_channels": [str(name) for name in by_channel.index[by_channel >= least]],
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


def feature_frequency_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """How often each feature was selected on halves of the subjects."""
    caption = (
        "How often the feature was among those selected when only half of the subjects were used. "
        "Chance: the frequency of random selection."
    )
    shown = partial(style.PageFigure, "selection-frequency-features", caption)
    halves = results.resampling.get(table)
    if not halves:
        yield shown(absent="Halves of the subjects were not compared (run idfsmec benchmark).")
    elif "reason" in halves:
        reason = f"Halves of the subjects could not be compared: {halves['reason']}"
        yield shown(absent=reason)
    else:
        draw = partial(
            plot_selection_frequency, halves["frequency"], threshold=halves["threshold"],
            chance=halves["chance"], note=_halves_note(results, table),
            title="Selection frequency of features",
        )  # fmt: skip
        yield shown(draw, _describe_frequencies(halves["frequency"], halves["threshold"]))


def channel_frequency_figures(results: Results, table: str) -> Iterator[style.PageFigure]:
    """How often each channel was selected; none where the features' figure explains why not."""
    halves = results.resampling.get(table) or {}
    if "channel_frequency" not in halves:
        return
    by_chance = list(halves["channel_chance"].values())
    draw = partial(
        plot_selection_frequency, halves["channel_frequency"],
        chance=sum(by_chance) / len(by_chance), note=_halves_note(results, table),
        title="Selection frequency of channels",
    )  # fmt: skip
    caption = "How often at least one feature of the channel was among them."
    sentences = _describe_frequencies(halves["channel_frequency"])
    yield style.PageFigure("selection-frequency-channels", caption, draw, sentences)


def _halves_note(results: Results, table: str) -> str:
    halves = results.resampling[table]
    what = f"first {halves['n_picked']} on {halves['n_resamples']} halves of the subjects"
    return whole_table_note(results, table, what)


def _describe_frequencies(
    frequencies: Mapping[str, float], threshold: float | None = None
) -> list[str]:
    shares = pd.Series(frequencies, dtype=float)
    if shares.empty:
        return []
    first = column_label(str(shares.idxmax()))
    text = f"Selected most often: {first}, on {percent(shares.max())} of the halves"
    if threshold is not None:
        n = int((shares >= threshold - _ROUNDING).sum())
        text += f"; {n or 'none'} of {shares.size} reach{'es' if n == 1 else ''} the threshold"
    return [f"{text}."]


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
    rows = np.arange(shown.size)
    names = [column_label(str(name)) for name in shown.index]
    width = 4.6 + 0.065 * max(len(max(names, key=len, default="")) - 12, 0)
    ax = style.make_axes(ax, width, 1.7 + 0.21 * max(shown.size, 4))
    least = -np.inf if threshold is None else threshold - _ROUNDING
    colors = [style.EMPHASIS if share >= least else style.SANITY for share in shown]
    ax.barh(rows, shown.to_numpy(), color=colors, height=0.62)
    ax.set_yticks(rows, names)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    ax.set_xlabel("share of halves")
    lines = ((threshold, "-", style.INK, "stable"), (chance, ":", style.MUTED, "chance"))
    for value, linestyle, color, name in lines:
        if value is not None:
            ax.axvline(value, color=color, linewidth=1.1, linestyle=linestyle, gid=name)
            ax.annotate(
                name, (value, 0), (3, 3), xycoords=("data", "axes fraction"), color=color,
                textcoords="offset points", fontsize=8.5,
            )  # fmt: skip
    if shares.size > shown.size:
        note += f"\nthe {shown.size} highest of {shares.size}"
    return style.style_axes(ax, title, note, grid="x", rows=True)
