"""How sure the ranking is: how often random halves of the subjects pick the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from idfsmec.evaluation.results import Results
from idfsmec.report._style import EMPHASIS, INK, MUTED, SANITY, dress, own_axes
from idfsmec.report._words import listing, percent

_SHOWN = 20


def table_sureness(results: Results, name: str) -> dict[str, Any] | None:
    """What halves of the subjects say about a table, as plain data; None where none were made."""
    found = results.resampling.get(name)
    if not found:
        return None
    if "reason" in found:
        return {"reason": found["reason"], "sure": [], "stability": None}
    frequency = pd.Series(found["frequency"], dtype=float)
    sure = frequency[frequency >= found["threshold"] - 1e-9].sort_values(
        ascending=False, kind="stable"
    )
    channels = pd.Series(found["channel_frequency"], dtype=float)
    return {
        "reason": None,
        "n": found["n_resamples"],
        "picked": found["n_picked"],
        "n_features": int(frequency.size),
        "threshold": found["threshold"],
        "max_false": found["max_false"],
        "expected_false": found["expected_false"],
        "assumption": found["assumption"],
        "stability": found["stability"],
        "sure": [_spoken(column) for column in sure.index],
        "always": [str(c) for c in channels[channels >= found["threshold"] - 1e-9].index],
    }


def add_frequencies(ranking: pd.DataFrame, found: Mapping[str, Any] | None) -> pd.DataFrame:
    """The ranking with the columns ``frequency`` and ``sure``, where halves were made.

    Examples
    --------
    >>> ranking = pd.DataFrame({"channel": ["F3", "O1"], "feature": ["a", "a"]})
    >>> add_frequencies(ranking, {"frequency": {"F3__a": 0.9, "O1__a": 0.2}, "threshold": 0.7})
      channel feature  frequency   sure
    0      F3       a        0.9   True
    1      O1       a        0.2  False
    """
    if not found or "frequency" not in found:
        return ranking
    columns = ranking["channel"].astype(str) + "__" + ranking["feature"].astype(str)
    frequency = columns.map(found["frequency"]).astype(float)
    return ranking.assign(frequency=frequency, sure=frequency >= found["threshold"] - 1e-9)


def describe_sureness(sureness: dict[str, Any] | None) -> str:
    """One or two sentences for the answer; nothing where halves were not made."""
    if sureness is None:
        return ""
    if sureness["reason"]:
        return "How often halves of the subjects pick the same features could not be seen."
    least, n = percent(sureness["threshold"]), sureness["n"]
    bound = f"where at most {sureness['max_false']:g} false pick is expected"
    if not sureness["sure"]:
        return f"No feature was picked on {least} of {n} random halves of the people, {bound}."
    some = sureness["sure"]
    return (
        f"{len(some)} of {sureness['n_features']} features {'was' if len(some) == 1 else 'were'} "
        f"picked on at least {least} of {n} random halves of the people, {bound}: "
        f"{listing(some, most=4)}."
    )


def plot_selection_frequency(
    frequencies: Mapping[str, float],
    *,
    threshold: float | None = None,
    chance: float | None = None,
    note: str = "",
    title: str = "Picked on random halves of the subjects",
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each of the leading features (or channels) was picked.

    Parameters
    ----------
    frequencies : mapping of name to share
        For example ``dict(zip(table.X.columns, selector.frequencies_))`` of a
        :class:`idfsmec.StabilitySelector`; the 20 highest are drawn.
    threshold : float, optional
        Drawn as a line; what reaches it stands out.
    chance : float, optional
        What picking blindly would give, drawn as a dotted line.
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
    shown = shares.head(_SHOWN)
    rows = np.arange(shown.size)
    ax = own_axes(ax, 4.6, 1.7 + 0.21 * max(shown.size, 4))
    sure = np.ones(rows.size, dtype=bool) if threshold is None else shown >= threshold - 1e-9
    colors = [EMPHASIS if one else SANITY for one in sure]
    ax.barh(rows, shown.to_numpy(), color=colors, height=0.62)
    ax.set_yticks(rows, [_spoken(str(name)) for name in shown.index])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    ax.set_xlabel("share of halves")
    for value, style, color, said in (
        (threshold, "-", INK, "sure"),
        (chance, ":", MUTED, "blind"),
    ):
        if value is not None:
            ax.axvline(value, color=color, linewidth=1.1, linestyle=style, gid=said)
            ax.annotate(
                said, (value, 0), (3, 3), xycoords=("data", "axes fraction"), color=color,
                textcoords="offset points", fontsize=8.5,
            )  # fmt: skip
    if shares.size > shown.size:
        note += f"\nthe {shown.size} highest of {shares.size}"
    dress(ax, title, note.strip(), grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax


def _spoken(column: str) -> str:
    """A column as a reader says it.

    Examples
    --------
    >>> _spoken("F3__de_alpha"), _spoken("F3")
    ('de_alpha at F3', 'F3')
    """
    channel, separator, feature = column.rpartition("__")
    return f"{feature} at {channel}" if separator else column
