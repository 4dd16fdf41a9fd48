"""One look for all figures: few colours, each with a meaning, safe for colour-blind eyes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

OURS = "IDFS-MEC"

# Every colour has a name, so that the page can exchange it for its dark twin. Hues after Paul
# Tol's colour-blind-safe "bright" scheme, which vermilion stays apart from.
INK = "#1c2330"
MUTED = "#5d6675"
FAINT = "#dfe3e9"
PAPER = "#fefefe"
BAND = "#c9ced6"
EMPHASIS = "#c8460e"
FILTER = "#3e6fa3"
WRAPPER = "#9c3172"
EMBEDDED = "#2b7a4b"
SANITY = "#868e9b"
OTHER = "#8a6d1f"

#: Light colour -> (name of the page's CSS variable, dark colour).
THEME = {
    INK: ("ink", "#e8ebf0"),
    MUTED: ("muted", "#a3acba"),
    FAINT: ("faint", "#333b48"),
    PAPER: ("paper", "#161b23"),
    BAND: ("band", "#4a5362"),
    EMPHASIS: ("emphasis", "#ff8d54"),
    FILTER: ("filter", "#7fb0e6"),
    WRAPPER: ("wrapper", "#e08bc0"),
    EMBEDDED: ("embedded", "#6fc794"),
    SANITY: ("sanity", "#98a1ae"),
    OTHER: ("other", "#d4b45a"),
}

#: From nothing to much, dark at both looks' strong end: lightness falls steadily. None of its
#: colours may be one of the theme's, or the page would exchange it for its dark twin.
SEQUENTIAL = LinearSegmentedColormap.from_list(
    "idfsmec", ["#f6f1ea", "#f3cfa9", "#e89a5e", "#c6450f", "#7c2408"]
).with_extremes(bad=(0, 0, 0, 0))

_FAMILIES = {
    FILTER: ("ReliefF", "mRMR", "CMIM", "MRMSR", "RRCT", "ANOVA F"),
    WRAPPER: ("PS-NSGA",),
    EMBEDDED: (
        "RFS",
        "FSOR",
        "GRMOR",
        "CD-LSR",
    ),
    SANITY: ("all features", "random", "random forest", "gradient boosting"),
}
_MARKERS = "osD^vPX<>phd"


class MethodLook(NamedTuple):
    """How a method is drawn everywhere."""

    color: str
    marker: str
    linestyle: str
    linewidth: float
    zorder: float


def method_looks(methods: Sequence[str]) -> dict[str, MethodLook]:
    """A look for each method: hue by family, marker within it; IDFS-MEC stands out.

    Examples
    --------
    >>> looks = method_looks(["IDFS-MEC", "mRMR", "CMIM"])
    >>> looks["mRMR"].color == looks["CMIM"].color, looks["mRMR"].marker == looks["CMIM"].marker
    (True, False)
    """
    family = {_plain(name): color for color, names in _FAMILIES.items() for name in names}
    used: dict[str, int] = {}
    looks = {}
    for method in methods:
        if method == OURS:
            looks[method] = MethodLook(EMPHASIS, "o", "-", 2.4, 5)
            continue
        color = family.get(_plain(method), OTHER)
        place = used[color] = used.get(color, -1) + 1
        style = (0, (4, 2)) if color == SANITY else "-"
        looks[method] = MethodLook(color, _MARKERS[place % len(_MARKERS)], style, 1.1, 3)  # type: ignore[arg-type]
    return looks


def sort_methods(methods: Sequence[str]) -> list[str]:
    """IDFS-MEC first, sanity lines last, the rest as they come."""
    last = {_plain(name) for name in _FAMILIES[SANITY]}
    return sorted(methods, key=lambda m: (m != OURS, _plain(m) in last))


def own_axes(ax: Axes | None, width: float = 7.2, height: float = 4.2) -> Axes:
    """The axes given, or new ones on a figure of that size (inches)."""
    if ax is not None:
        return ax
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    return plt.figure(figsize=(width, height), layout=layout).add_subplot()


def dress(ax: Axes, title: str, note: str = "", *, grid: Literal["x", "y"] | None = "y") -> Axes:
    """Title, a line below it that says how the numbers came about, quiet spines and grid."""
    ax.set_facecolor("none")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(BAND)
    ax.tick_params(colors=MUTED, labelsize=9, length=3, color=BAND)
    ax.xaxis.label.set(color=INK, size=9.5)
    ax.yaxis.label.set(color=INK, size=9.5)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)
    entitle(ax, title, note)
    return ax


def entitle(ax: Axes, title: str, note: str, *, lift: float = 0.0) -> None:
    """Put the bold title over the quiet note, both at the left edge."""
    lines = note.count("\n") + 1 if note else 0
    ax.set_title(
        title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=8 + 12 * lines + lift
    )
    if note:
        ax.annotate(
            note,
            (0, 1),
            (0, 7 + lift),
            xycoords="axes fraction",
            textcoords="offset points",
            color=MUTED,
            fontsize=8.5,
            va="bottom",
            gid="note",
        )


def spread_labels(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move labels apart as little as possible, keeping their order, within [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> spread_labels(np.array([0.5, 0.5, 0.9]), gap=0.1)
    array([0.45, 0.55, 0.9 ])
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(heights.size)
    room = max(1 - gap * (heights.size - 1), 0.0)
    placed = np.clip(isotonic_regression(heights[order] - steps), 0, room) + steps
    spread = np.empty_like(placed)
    spread[order] = placed
    return spread


def label_ends(
    ax: Axes, ends: dict[str, tuple[float, float]], looks: dict[str, MethodLook]
) -> None:
    """Name each line beside its last point, instead of in a legend; limits must be final."""
    if not ends:
        return
    names = list(ends)
    low, high = ax.get_ylim()
    heights = (np.array([ends[name][1] for name in names]) - low) / (high - low)
    figure = ax.get_figure(root=True)
    points = ax.get_position().height * (figure.get_size_inches()[1] if figure else 4) * 72
    placed = spread_labels(heights, gap=11.5 / max(points, 1))
    edge = ax.transAxes.inverted()
    for name, at, own in zip(names, placed, heights, strict=True):
        look = looks[name]
        start = edge.transform(ax.transData.transform(ends[name]))[0]
        ax.plot(
            [start + 0.01, 1.015, 1.035],
            [own, own if abs(own - at) < 0.01 else (own + at) / 2, at],
            transform=ax.transAxes,
            color=look.color,
            linewidth=0.6,
            alpha=0.7,
            clip_on=False,
            gid="leader",
        )
        ax.text(
            1.045,
            at,
            name,
            transform=ax.transAxes,
            color=look.color,
            fontsize=9 if name == OURS else 8.5,
            fontweight="bold" if name == OURS else "normal",
            va="center",
        )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
