"""Channels: their weights on the scalp, scores of their features, and where they are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mne
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.evaluation import Results
from idfsmec.montage import channel_positions
from idfsmec.report.formatting import percent
from idfsmec.report.scores import table_ranking, whole_table_note
from idfsmec.report.style import (
    BAND,
    EMPHASIS,
    INK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    add_colorbar,
    make_axes,
    set_titles,
    style_axes,
)

#: Fewer electrodes than this make no map.
_FEWEST_FOR_A_MAP = 8


def plot_channel_weights(
    weights: Mapping[str, float],
    *,
    positions: Mapping[str, Sequence[float]] | None = None,
    montage: str | None = None,
    note: str = "",
    title: str = "Channel weights",
    ax: Axes | None = None,
) -> Axes:
    """Draw channel weights on the scalp, or as bars where there are too few places.

    Parameters
    ----------
    weights : mapping of str to float
        Channel name -> weight.
    positions : mapping of str to (x, y, z), optional
        Places of the electrodes in the head frame; by default by ``montage``.
    montage : str, optional
        Name of one of MNE's montages; by default channel names of the 10-05 system are looked
        up.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes

    Notes
    -----
    A map is drawn by :func:`mne.viz.plot_topomap` for eight channels or more whose places are
    known (channels without a place are named below it); otherwise horizontal bars.
    """
    names = list(weights)
    values = np.array([weights[name] for name in names], dtype=float)
    places = _places(names, positions, montage)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(places).all(axis=1))
    if not _can_be_mapped(places[known]) or known.mean() < 0.6:
        ax = make_axes(ax, 6.0, 1.3 + 0.3 * min(len(names), 24))
        return _draw_bars(names, values, ax, title, note)
    ax = make_axes(ax, 5.4, 4.9)
    on_map = [name for name, there in zip(names, known, strict=True) if there]
    _draw_map(on_map, values[known], places[known], ax)
    if not known.all():
        left_out = ", ".join(n for n, k in zip(names, known, strict=True) if not k)
        note += f"\nno place known for: {left_out}"
    set_titles(ax, title, note.strip())
    return ax


def _can_be_mapped(places: NDArray[np.float64]) -> bool:
    """Whether there are enough places, none twice, and not all on one ring."""
    if len(places) < _FEWEST_FOR_A_MAP or len(np.unique(places.round(6), axis=0)) < len(places):
        return False
    from scipy.spatial import Delaunay, QhullError  # for maps alone

    try:
        Delaunay(_flatten(places), incremental=True).close()  # as MNE does it
    except QhullError:
        return False
    return True


def _places(
    names: Sequence[str],
    positions: Mapping[str, Sequence[float]] | None,
    montage: str | None,
) -> NDArray[np.float64]:
    """Unit vectors per channel; NaN where unknown."""
    if positions:
        nowhere = (np.nan, np.nan, np.nan)
        found = np.array([positions.get(name) or nowhere for name in names], dtype=float)
        with np.errstate(invalid="ignore"):
            return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))
    try:
        return channel_positions(names, montage)
    except InputError:  # a montage MNE does not have: perhaps the names are standard ones
        return channel_positions(names)


def _draw_map(
    names: Sequence[str], values: NDArray[np.float64], places: NDArray[np.float64], ax: Axes
) -> None:
    flat = _flatten(places)
    crowded = len(names) > 40
    darkest = float(values.max()) or 1.0
    # From the least weight, so that differences show; but nearly even weights stay pale ones.
    lightest = min(float(values.min()), 0.7 * darkest)
    top = set(np.array(names)[np.argsort(-values, kind="stable")[: 10 if crowded else 5]])
    image, _ = mne.viz.plot_topomap(
        values, flat, axes=ax, show=False, cmap=SEQUENTIAL, vlim=(lightest, darkest), contours=0,
        sensors=False, sphere=(0, 0, 0, 0.095), extrapolate="head",
    )  # fmt: skip
    for line in ax.lines:
        line.set(color=MUTED, linewidth=1.2)
    ax.scatter(flat[:, 0], flat[:, 1], s=9 if crowded else 16, color=INK, linewidth=0.6,
               edgecolor=PAPER, zorder=6)  # fmt: skip
    for name, weight, (x, y) in zip(names, values, flat, strict=True):
        if crowded and name not in top:
            continue
        # Outer electrodes are named towards the middle, where the map is below the letters.
        radius = float(np.hypot(x, y))
        ax.annotate(
            name,
            (x, y),
            (-11 * x / radius, -9 * y / radius) if radius > 0.07 else (0, 6.5),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7.5,
            fontweight="bold" if name in top and len(names) > 10 else "normal",
            color="#ffffff" if weight > lightest + 0.55 * (darkest - lightest) else "#1b1b1b",
            zorder=7,
        )
    add_colorbar(ax, image, "weight (sums to 1)")


def _flatten(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Azimuthal equidistant: the angle from the vertex becomes the distance from the middle.

    The ear-to-ear line (90 degrees) lies on the circle of MNE's head.
    """
    angle = np.arccos(np.clip(places[:, 2], -1, 1))
    around = np.arctan2(places[:, 1], places[:, 0])
    radius = 0.095 * angle / (np.pi / 2)
    return np.column_stack([radius * np.cos(around), radius * np.sin(around)])


def _draw_bars(
    names: Sequence[str], values: NDArray[np.float64], ax: Axes, title: str, note: str
) -> Axes:
    order = np.argsort(-values, kind="stable")[:24]
    rows = np.arange(order.size)
    ax.barh(rows, values[order], color=EMPHASIS, height=0.62)
    ax.set_yticks(rows, [names[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlim(0, (values.max() or 1) * 1.15)
    for row, value in zip(rows, values[order], strict=True):
        ax.annotate(f"{value:.3f}", (value, row), (4, 0), textcoords="offset points", va="center",
                    color=INK, fontsize=8.5)  # fmt: skip
    ax.set_xlabel("weight (sums to 1)")
    if len(names) > order.size:
        note += f"\nthe {order.size} largest of {len(names)}"
    style_axes(ax, title, note.strip(), grid="x")
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax


def plot_score_heatmap(
    ranking: pd.DataFrame,
    *,
    note: str = "",
    title: str = "Feature scores by channel",
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of every feature of every channel.

    Parameters
    ----------
    ranking : DataFrame
        Columns ``channel``, ``feature``, ``score``; as from ``Results.ranking``.
    note, title : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    wide = ranking.pivot_table(
        index="feature", columns="channel", values="score", aggfunc="sum", sort=False
    )
    by_channel = wide.sum(axis=0).sort_values(ascending=False, kind="stable")
    by_feature = wide.sum(axis=1).sort_values(ascending=False, kind="stable")
    wide = wide.loc[by_feature.index, by_channel.index]
    n_rows, n_columns = wide.shape
    ax = make_axes(ax, float(np.clip(3.2 + 0.28 * n_columns, 6.2, 10)), 1.9 + 0.24 * n_rows)
    values = np.ma.masked_invalid(wide.to_numpy(dtype=float))
    image = ax.pcolormesh(
        values, cmap=SEQUENTIAL, vmin=0, vmax=float(values.max()) or 1.0, edgecolors=PAPER,
        linewidth=0.8 if n_columns <= 40 else 0,
    )  # fmt: skip
    ax.invert_yaxis()
    ax.set_yticks(np.arange(n_rows) + 0.5, list(wide.index))
    every = -(-n_columns // 40)
    ax.set_xticks(np.arange(0, n_columns, every) + 0.5, list(wide.columns[::every]))
    ax.tick_params(axis="x", rotation=90 if n_columns > 10 else 0)
    style_axes(ax, title, (note + "\nstrongest channels left, strongest features on top").strip(),
          grid=None)  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    add_colorbar(ax, image, "score")
    return ax


def plot_missing_map(
    shares: pd.DataFrame,
    *,
    note: str = "",
    title: str = "Where channels are missing",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of samples in which a recording lacks a channel.

    Parameters
    ----------
    shares : DataFrame of shape (n_recordings, n_channels)
        0 where the channel is always there, 1 where it is never there. For a table, one row per
        subject: ``(~table.observed).groupby(table.subjects).mean()``.
    note, title : str
    ax : Axes, optional
        The rates per channel are drawn in a child of it.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> shares = pd.DataFrame({"F3": [0.0, 0.5], "O2": [0.0, 1.0]}, index=["sub-01", "sub-02"])
    >>> plot_missing_map(shares).get_ylabel()
    'recording'
    """
    n_rows, n_columns = shares.shape
    height = float(np.clip(1.9 + 0.11 * n_rows, 3.0, 6.5))
    ax = make_axes(ax, float(np.clip(3 + 0.2 * n_columns, 6.2, 9)), height)
    values = shares.to_numpy(dtype=float)
    image = ax.imshow(
        values, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    every = -(-n_columns // 40)
    ax.set_xticks(np.arange(0, n_columns, every), [str(c) for c in shares.columns[::every]])
    ax.tick_params(axis="x", rotation=90 if n_columns > 10 else 0)
    step = -(-n_rows // 20)
    ax.set_yticks(np.arange(0, n_rows, step), [str(r) for r in shares.index[::step]])
    ax.set_ylabel("recording")
    style_axes(ax, "", "", grid=None)
    for spine in ax.spines.values():
        spine.set_visible(False)
    rates = ax.inset_axes((0, 1.02, 1, 0.16), sharex=ax)
    rates.bar(np.arange(n_columns), values.mean(axis=0), color=EMPHASIS, width=0.7)
    style_axes(rates, "", "", grid="y")
    rates.tick_params(labelbottom=False, bottom=False, labelsize=8)
    rates.spines["left"].set_visible(False)
    rates.spines["bottom"].set_color(BAND)
    rates.yaxis.set_major_locator(MaxNLocator(2))
    rates.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    rates.set_ylim(0, max(float(values.mean(axis=0).max()) * 1.15, 0.01))
    rates.set_ylabel("rate", color=MUTED, size=8.5)
    overall = f"{percent(float(values.mean()), 1)} of all missing"
    set_titles(rates, title, f"{note}\n{overall}".strip())
    add_colorbar(ax, image, "share of samples missing")
    return ax


def draw_weights(results: Results, table: str) -> Axes | str:
    """Channel weights of a table of the results."""
    ranking = table_ranking(results, table)
    if ranking.empty:
        return "There is no ranking, so no map of channel weights."
    about = results.tables[table]
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first().dropna()
    if weights.empty:
        return "The method that ranked the table gives channels no weights, so there is no map."
    return plot_channel_weights(
        {str(channel): float(weight) for channel, weight in weights.items()},
        positions=about.get("positions"),
        montage=about.get("montage") if isinstance(about.get("montage"), str) else None,
        note=whole_table_note(results, table),
    )


def draw_scores(results: Results, table: str) -> Axes | str:
    """Scores of all features of a table of the results."""
    ranking = table_ranking(results, table)
    if ranking.empty:
        return "There is no ranking, so no heat map of scores."
    return plot_score_heatmap(ranking, note=whole_table_note(results, table))


def draw_missing(results: Results, table: str) -> Axes | str:
    """Where channels of a table of the results are missing, as recorded."""
    about = results.tables[table].get("missing_by_recording")
    if not about:
        return "Which recordings lack which channels was not recorded."
    shares = pd.DataFrame(about["share"], index=about["subjects"], columns=about["channels"])
    if not shares.to_numpy().any():
        return "No channel is missing in any recording."
    return plot_missing_map(shares, note="as recorded, before gaps are made; no folds, no tuning")
