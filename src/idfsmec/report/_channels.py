"""Which channels and features matter: a scalp map, bars, and a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import mne
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.spatial import Delaunay, QhullError

from idfsmec.errors import InputError
from idfsmec.montage import channel_positions
from idfsmec.report._style import (
    BAND,
    EMPHASIS,
    FAINT,
    INK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    dress,
    entitle,
    own_axes,
)

#: Fewer electrodes than this make no map.
_LEAST_FOR_A_MAP = 8


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
        ax = own_axes(ax, 6.0, 1.3 + 0.3 * min(len(names), 24))
        return _bars(names, values, ax, title, note)
    ax = own_axes(ax, 5.4, 4.9)
    _map([n for n, k in zip(names, known, strict=True) if k], values[known], places[known], ax)
    if not known.all():
        left_out = ", ".join(n for n, k in zip(names, known, strict=True) if not k)
        note += f"\nno place known for: {left_out}"
    entitle(ax, title, note.strip())
    return ax


def _can_be_mapped(places: NDArray[np.float64]) -> bool:
    """Whether there are enough places, none twice, and not all on one ring."""
    if len(places) < _LEAST_FOR_A_MAP or len(np.unique(places.round(6), axis=0)) < len(places):
        return False
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


def _map(
    names: Sequence[str], values: NDArray[np.float64], places: NDArray[np.float64], ax: Axes
) -> None:
    flat = _flatten(places)
    crowded = len(names) > 40
    darkest = float(values.max()) or 1.0
    # From the least weight, so that differences show; but nearly even weights stay pale ones.
    lightest = min(float(values.min()), 0.7 * darkest)
    top = set(np.array(names)[np.argsort(-values, kind="stable")[: 10 if crowded else 5]])
    image, _ = mne.viz.plot_topomap(
        values,
        flat,
        axes=ax,
        show=False,
        cmap=SEQUENTIAL,
        vlim=(lightest, darkest),
        contours=0,
        sensors=False,
        sphere=(0, 0, 0, 0.095),
        extrapolate="head",
    )
    for line in ax.lines:
        line.set(color=MUTED, linewidth=1.2)
    ax.scatter(
        flat[:, 0],
        flat[:, 1],
        s=9 if crowded else 16,
        color=INK,
        linewidth=0.6,
        edgecolor=PAPER,
        zorder=6,
    )
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
    _scale(ax, image, "weight (sums to 1)")


def _flatten(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Azimuthal equidistant: the angle from the vertex becomes the distance from the middle.

    The ear-to-ear line (90 degrees) lies on the circle of MNE's head.
    """
    angle = np.arccos(np.clip(places[:, 2], -1, 1))
    around = np.arctan2(places[:, 1], places[:, 0])
    radius = 0.095 * angle / (np.pi / 2)
    return np.column_stack([radius * np.cos(around), radius * np.sin(around)])


def _bars(
    names: Sequence[str], values: NDArray[np.float64], ax: Axes, title: str, note: str
) -> Axes:
    order = np.argsort(-values, kind="stable")[:24]
    rows = np.arange(order.size)
    ax.barh(rows, values[order], color=EMPHASIS, height=0.62)
    ax.set_yticks(rows, [names[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlim(0, (values.max() or 1) * 1.15)
    for row, value in zip(rows, values[order], strict=True):
        ax.annotate(
            f"{value:.3f}",
            (value, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize=8.5,
        )
    ax.set_xlabel("weight (sums to 1)")
    if len(names) > order.size:
        note += f"\nthe {order.size} largest of {len(names)}"
    dress(ax, title, note.strip(), grid="x")
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
    ax = own_axes(ax, float(np.clip(3.2 + 0.28 * n_columns, 6.2, 10)), 1.9 + 0.24 * n_rows)
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
    dress(ax, title, (note + "\nstrongest channels left, strongest features on top").strip(),
          grid=None)  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    _scale(ax, image, "score")
    return ax


def _scale(ax: Axes, image: Any, label: str) -> None:
    """A slim colour bar that belongs to the axes."""
    figure = cast(Figure, ax.get_figure(root=True))
    bar = figure.colorbar(image, ax=ax, shrink=0.6, aspect=24, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=8, length=2, color=BAND)
    bar.locator = MaxNLocator(4)
    bar.update_ticks()
    bar.set_label(label, color=MUTED, size=8.5)
    bar.ax.set_facecolor(FAINT)
