"""Figures of channels and features: weights, scores, effects, stability, missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import mne
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from scipy.spatial import Delaunay, QhullError

from idfsmec.errors import InputError, listing
from idfsmec.metrics import Floats
from idfsmec.missing.association import ALPHA, describe_presence
from idfsmec.report import style
from idfsmec.report.data import EFFECT_SIZES, ROUNDING, TableResults, View, effect_size
from idfsmec.report.text import percent
from idfsmec.table.columns import (
    column_label,
    feature_label,
    join_column,
    join_columns,
    split_column,
)
from idfsmec.table.positions import channel_positions

if TYPE_CHECKING:
    from idfsmec.selection import IDFSMEC

#: Fewer electrodes than this make no map; so many weights, and so many features are drawn.
_FEWEST_FOR_A_MAP, _MOST_BARS, _MOST_FEATURES = 8, 24, 20
#: A heat map of more channels is drawn as pixels.
_MOST_COLUMNS = 40
#: Below so many equal shares the largest weight is not worth a headline.
_NEARLY_EVEN = 1.25


def nearly_even(weights: pd.Series) -> bool:
    """Return whether no channel has much more weight than an equal share."""
    return bool(weights.size > 1 and 0 < weights.iloc[0] * weights.size < _NEARLY_EVEN)


@style.literal_text
def plot_channel_weights(
    weights: Mapping[str, float] | pd.Series | IDFSMEC,
    *,
    positions: Mapping[str, Sequence[float]] | None = None,
    montage: str | None = None,
    title: str = "Channel weights",
    label: str = "weight (sums to 1)",
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw channel weights on the scalp, or as bars where too few positions are known.

    Parameters
    ----------
    weights : mapping of str to float, Series, or fitted IDFSMEC
        Weight of each channel.
    positions : mapping of str to (x, y, z), optional
        Positions of the electrodes in the head frame; by default by ``montage``.
    montage : str, optional
        Name of one of MNE's montages; by default channel names of the 10-05 system are looked
        up.
    title, label : str
        Title of the figure, and what the numbers are.
    note, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes

    Notes
    -----
    A map is drawn by :func:`mne.viz.plot_topomap` for eight channels or more whose positions are
    known (channels without a position are named below it); otherwise horizontal bars.
    """
    if not isinstance(weights, Mapping | pd.Series):
        weights = pd.Series(weights.channel_weights_, weights.channel_names_)
    shares = pd.Series(weights, dtype=float)
    names, values = shares.index.to_numpy(dtype=str), shares.to_numpy(dtype=float)
    directions = _directions(names.tolist(), positions, montage)
    located: NDArray[np.bool_] = np.asarray(np.isfinite(directions).all(axis=1))
    # The angle from the vertex becomes the distance from the middle; the ear-to-ear line (90
    # degrees) lies on the circle of MNE's head.
    x, y, z = directions[located].T
    radius, around = 0.095 * np.arccos(np.clip(z, -1, 1)) / (np.pi / 2), np.arctan2(y, x)
    flat = np.column_stack([radius * np.cos(around), radius * np.sin(around)])
    if _can_be_mapped(flat) and located.mean() >= 0.6:
        ax = style.make_axes(ax, 5.4, 4.9)
        _draw_map(ax, names[located], values[located], flat, label)
        if not located.all():
            note += f"\nno position known for: {', '.join(names[~located])}"
        style.set_titles(ax, title, note)
        return ax
    order = np.argsort(-values, kind="stable")[:_MOST_BARS]
    ax = style.make_axes(ax, 6.0, 1.3 + 0.3 * order.size)
    drawn = names[order].tolist(), values[order]
    style.draw_bars(ax, *drawn, style.EMPHASIS, "{:.3g}".format)
    ax.set_xlim(0, (values.max() or 1) * 1.15)
    for row, value in enumerate(values[order]):
        style.annotate(ax, f"{value:.3f}", (value, row), (4, 0), va="center", color=style.INK)
    ax.set_xlabel(label)
    if len(names) > order.size:
        note += f"\nthe {order.size} largest of {len(names)}"
    return style.style_axes(ax, title, note, grid="x")


def _directions(
    names: Sequence[str], positions: Mapping[str, Sequence[float]] | None, montage: str | None
) -> Floats:
    """Return a unit vector per channel; NaN where the position is unknown."""
    if positions:
        points = np.array([positions.get(name) or [np.nan] * 3 for name in names], dtype=float)
        with np.errstate(invalid="ignore"):
            return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
    try:
        return channel_positions(names, montage)
    except InputError:  # a montage MNE does not have: perhaps the names are standard ones
        return channel_positions(names)


def _can_be_mapped(flat: Floats) -> bool:
    """Return whether there are enough positions, none twice, and not all on one ring."""
    if len(flat) < _FEWEST_FOR_A_MAP or len(np.unique(flat.round(7), axis=0)) < len(flat):
        return False
    try:
        Delaunay(flat, incremental=True).close()  # as MNE does it
    except QhullError:
        return False
    return True


def _draw_map(ax: Axes, names: NDArray[np.str_], values: Floats, flat: Floats, label: str) -> None:
    crowded = len(names) > 40
    darkest = float(values.max()) or 1.0
    top = set(names[np.argsort(-values, kind="stable")[: 10 if crowded else 5]])
    scale: Any = {"cmap": style.SEQUENTIAL, "vlim": (0.0, darkest), "sphere": (0, 0, 0, 0.095)}
    image, _ = mne.viz.plot_topomap(
        values, flat, axes=ax, show=False, contours=0, sensors=False, extrapolate="head", **scale
    )
    for line in ax.lines:
        line.set(color=style.MUTED, linewidth=1.2)
    size = 3 if crowded else 4
    ax.plot(*flat.T, "o", color=style.INK, markersize=size, zorder=6)
    texts = [f"{name}: {value:.3g}" for name, value in zip(names, values, strict=True)]
    style.show_values(ax, flat[:, 0], flat[:, 1], texts)
    for name, value, (x, y) in zip(names, values, flat, strict=True):
        if crowded and name not in top:
            continue
        # Outer electrodes are named towards the middle, where the map is below the letters.
        radius = float(np.hypot(x, y))
        offset = (-11 * x / radius, -9 * y / radius) if radius > 0.07 else (0, 6.5)
        weight = "bold" if name in top and len(names) > 10 else "normal"
        color = "#ffffff" if value > 0.55 * darkest else "#1b1b1b"
        style.annotate(
            ax, name, (x, y), offset, color=color, zorder=7, ha="center", va="center",
            fontsize=7.5, fontweight=weight,
        )  # fmt: skip
    style.add_colorbar(ax, image, label)


def weight_views(table: TableResults) -> Iterator[View]:
    """Yield the channel weights of the whole table."""
    weights = table.channel_weights
    if not weights.empty:
        note = f"{table.whole_table_note()}\nan equal share is {1 / weights.size:.3f}"
        numbers = weights.rename("weight").rename_axis("channel").reset_index()
        yield View({"weights": weights, "note": note, "montage": table.montage}, numbers)


@style.literal_text
def plot_score_heatmap(ranking: pd.DataFrame, *, note: str = "", ax: Axes | None = None) -> Axes:
    """Draw the score of every feature of every channel.

    Parameters
    ----------
    ranking : DataFrame
        Columns ``channel``, ``feature``, ``score``; as from ``Results.ranking``.
    note, ax
        As for :func:`plot_accuracy_by_rate`.

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
    ax = style.make_axes(ax, float(np.clip(3.2 + 0.28 * n_columns, 6.2, 10)), 1.9 + 0.24 * n_rows)
    values = wide.to_numpy(dtype=float)
    scale: Any = {"cmap": style.SEQUENTIAL, "vmin": 0, "vmax": np.nanmax(values) or 1.0}
    edges: Any = {"edgecolors": style.PAPER, "linewidth": 0.8}
    shown = np.ma.masked_invalid(values)
    if n_columns <= _MOST_COLUMNS:
        image: Any = ax.pcolormesh(shown, **scale, **edges)
        ax.invert_yaxis()
    else:  # as pixels: thousands of rectangles would make the page large
        box: Any = {"extent": (0, n_columns, n_rows, 0), "aspect": "auto"}
        image = ax.imshow(shown, interpolation="nearest", **box, **scale)
    labels = [feature_label(str(name)) for name in wide.index]
    ax.set_yticks(np.arange(n_rows) + 0.5, labels)
    names = [str(name) for name in wide.columns]
    row, column = np.nonzero(np.isfinite(values))
    texts = [
        f"{labels[i]} at {names[j]}: {values[i, j]:.3g}" for i, j in zip(row, column, strict=True)
    ]
    style.show_values(ax, column, row, texts, column + 1, row + 1)
    _name_columns(ax, wide.columns, 0.5)
    note += "\nstrongest channels left, strongest features on top"
    style.style_axes(ax, "Feature scores by channel", note, grid=None)
    style.add_colorbar(ax, image, "score")
    return ax


def _name_columns(ax: Axes, names: pd.Index, offset: float = 0.0) -> None:
    every = -(-len(names) // 40)
    ax.set_xticks(np.arange(0, len(names), every) + offset, [str(n) for n in names[::every]])
    ax.tick_params(axis="x", rotation=90 if len(names) > 10 else 0)


def score_views(table: TableResults) -> Iterator[View]:
    """Yield the scores of all features of all channels."""
    if not table.ranking.empty:
        numbers = table.ranking[["channel", "feature", "score"]]
        yield View({"ranking": table.ranking, "note": table.whole_table_note()}, numbers)


@style.literal_text
def plot_effects(
    ranking: pd.DataFrame,
    *,
    labels: Sequence[str] | None = None,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot of the first 20 features: how much groups differ, with 95 % CI.

    Parameters
    ----------
    ranking : DataFrame
        Best first, with ``channel``, ``feature``, an effect (``hedges_g``, ``eta_squared`` or
        ``spearman``) with its ``..._low`` and ``..._high``, and perhaps ``auc`` with its; as from
        ``Results.ranking`` of one table.
    labels : sequence of two str, optional
        Names of the groups: a positive effect is higher in the second.
    note, ax
        As for :func:`plot_accuracy_by_rate`.

    Returns
    -------
    Axes
        A filled dot is an effect whose CI excludes 0.
    """
    size = effect_size(ranking)
    if size is None:
        raise ValueError(
            f"The ranking has no effects: none of the columns {', '.join(EFFECT_SIZES)}."
        )
    shown = ranking.head(_MOST_FEATURES)
    ax = style.make_axes(ax, 7.2, 1.9 + 0.24 * len(shown))
    for y, row in enumerate(shown.to_dict("records")):
        value, low, high = estimate = row[size], row[f"{size}_low"], row[f"{size}_high"]
        if not np.isfinite(value):
            continue
        color, filled = style.EMPHASIS if value >= 0 else style.FILTER, low > 0 or high < 0
        name = column_label(join_column(row["channel"], row["feature"]))
        text = f"{name}: {EFFECT_SIZES[size]} {value:.2f} ({low:.2f} to {high:.2f})"
        style.draw_estimate(
            ax, y, estimate, color, filled, text, markersize=5.5, gid=f"effect-{y}"
        )
        if np.isfinite(row.get("auc", np.nan)):
            text = f"{row['auc']:.2f}  ({row['auc_low']:.2f} to {row['auc_high']:.2f})"
            style.annotate(ax, text, (1.02, y), units=("axes fraction", "data"), va="center")
    ax.axvline(0, color=style.INK, linewidth=1)
    columns = join_columns(shown["channel"], shown["feature"])
    ax.set_yticks(range(len(shown)), [column_label(name) for name in columns])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel(EFFECT_SIZES[size])
    title = "Direction and size of the leading features"
    style.style_axes(ax, title, f"{note}\nfilled dot: 95 % CI excludes 0", grid="x")
    if "auc" in shown and shown["auc"].notna().any():
        style.annotate(ax, "AUC per participant", (1.02, 1), (0, 3), "axes fraction")
    if size != "eta_squared" and labels is not None and len(labels) == 2:
        style.name_sides(ax, f"higher in {labels[0]}", f"higher in {labels[1]}")
    return ax


def effect_views(table: TableResults) -> Iterator[View]:
    """Yield direction and size of the leading features."""
    if size := effect_size(table.ranking):
        labels = [str(label) for label in table.facts["labels"]]
        note = "whole table, one value per participant; no folds, no tuning"
        drawn = [f"{name}{end}" for name in (size, "auc") for end in ("", "_low", "_high")]
        numbers = table.ranking.head(_MOST_FEATURES).filter(["channel", "feature", *drawn])
        yield View({"ranking": table.ranking, "labels": labels, "note": note}, numbers)


def summarise_resampling(table: TableResults) -> dict[str, Any] | None:
    """Summarise the selections on halves of the participants; None where there were none."""
    halves = table.halves
    if not halves:
        return None
    if "reason" in halves:
        return {"reason": halves["reason"], "stable_features": [], "stability": None}
    least = halves["threshold"] - ROUNDING
    features, channels = (
        pd.Series(halves[name], dtype=float) for name in ("frequency", "channel_frequency")
    )
    stable = features[features >= least].sort_values(ascending=False, kind="stable").index
    channels = channels.drop(table.dead, errors="ignore")
    fields = ("n_resamples", "n_picked", "threshold", "max_false", "stability")
    return {name: halves[name] for name in fields} | {
        "reason": None,
        "n_features": int(features.size),
        "stable_features": [
            column_label(c) for c in stable if split_column(c)[0] not in table.dead
        ],
        "stable_channels": [str(name) for name in channels.index[channels >= least]],
    }


def frequency_views(table: TableResults, of: Literal["features", "channels"]) -> Iterator[View]:
    """Yield the selection frequencies of features or channels on random halves."""
    halves = table.halves
    if not halves or "reason" in halves:
        return
    selected = f"first {halves['n_picked']} on {halves['n_resamples']} halves of the participants"
    shares: dict[str, Any] = {
        "frequencies": halves["frequency"],
        "threshold": halves["threshold"],
        "chance": halves["chance"],
    }
    if of == "channels":
        chance = float(np.mean(list(halves["channel_chance"].values())))
        shares = {"frequencies": halves["channel_frequency"], "chance": chance}
    labels = {"note": table.whole_table_note(selected), "title": f"Selection frequency of {of}"}
    numbers = pd.DataFrame(shares["frequencies"].items(), columns=["name", "frequency"])
    yield View(shares | labels, numbers)


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
    title : str
    note, ax
        As for :func:`plot_accuracy_by_rate`.

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
    shown = shares.head(_MOST_FEATURES)
    names = [column_label(str(name)) for name in shown.index]
    width = 4.6 + 0.065 * max(len(max(names, key=len, default="")) - 12, 0)
    ax = style.make_axes(ax, width, 1.7 + 0.21 * max(shown.size, 4))
    least = -np.inf if threshold is None else threshold - ROUNDING
    colors = [style.EMPHASIS if share >= least else style.SANITY for share in shown]
    style.draw_bars(ax, names, np.asarray(shown, dtype=np.float64), colors, percent)
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
    return style.style_axes(ax, title, note, grid="x")


@style.literal_text
def plot_missing_map(shares: pd.DataFrame, *, note: str = "", ax: Axes | None = None) -> Axes:
    """Draw the share of samples in which a recording lacks a channel.

    Parameters
    ----------
    shares : DataFrame of shape (n_recordings, n_channels)
        0 where the channel is never missing, 1 where it always is. For a table, one row per
        subject: ``(~table.observed).groupby(table.subjects).mean()``.
    note : str
        Written below the title.
    ax : Axes, optional
        By default a new figure.

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
    ax = style.make_axes(ax, float(np.clip(3 + 0.2 * n_columns, 6.2, 9)), height)
    values = shares.to_numpy(dtype=float)
    image = ax.imshow(
        values, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    row, column = np.nonzero(values)
    recordings, names = shares.index.astype(str).tolist(), shares.columns.astype(str).tolist()
    texts = [
        f"{names[j]} of {recordings[i]}: {percent(values[i, j])} missing"
        for i, j in zip(row, column, strict=True)
    ]
    style.show_values(ax, column - 0.5, row - 0.5, texts, column + 0.5, row + 0.5)
    _name_columns(ax, shares.columns)
    step = -(-n_rows // 20)
    ax.set_yticks(np.arange(0, n_rows, step), [str(name) for name in shares.index[::step]])
    ax.set_ylabel("recording")
    note += f"\n{percent(float(values.mean()), 1)} of all missing"
    style.style_axes(ax, "Missing channels", note, grid=None)
    style.add_colorbar(ax, image, "share of samples missing")
    return ax


def missing_views(table: TableResults) -> Iterator[View]:
    """Yield where channels are missing, as recorded."""
    if table.missing.to_numpy().any():
        note = "as recorded, before channels are removed; no folds, no tuning"
        numbers = table.missing.rename_axis("recording").reset_index()
        yield View({"shares": table.missing, "note": note}, numbers)


def associated_missingness(table: TableResults, *, with_dead: bool = True) -> list[dict[str, Any]]:
    """Return channels whose missingness is associated with the label (Holm), and dead ones."""
    labels = [str(label) for label in table.facts["labels"]] or ["participants"]
    rows: list[dict[str, Any]] = [
        {
            "channel": str(row["channel"]),
            "has": listing(describe_presence(row, labels), 6),
            "p_value": float(row["p"]),
            "p_holm": float(row["p_holm"]),
            "dead": bool(row["dead"]),
        }
        for row in table.facts["missing_by_class"]
        if row["p_holm"] < ALPHA or (with_dead and row["dead"])
    ]
    return sorted(rows, key=lambda row: (row["p_holm"], row["channel"]))
