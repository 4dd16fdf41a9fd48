"""One look for all figures: few colours, each with a meaning, safe for colour-blind eyes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, NamedTuple, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import Formatter, MaxNLocator
from numpy.typing import NDArray

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
ABLATION = "#2c7f8c"
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
    ABLATION: ("ablation", "#63c3d1"),
    OTHER: ("other", "#d4b45a"),
}

#: From nothing to much, dark at both looks' strong end: lightness falls steadily. None of its
#: colours may be one of the theme's, or the page would exchange it for its dark twin.
SEQUENTIAL = LinearSegmentedColormap.from_list(
    "idfsmec", ["#f6f1ea", "#f3cfa9", "#e89a5e", "#c6450f", "#7c2408"]
).with_extremes(bad=(0, 0, 0, 0))

#: For things that are no methods, in this order.
CYCLE = (EMPHASIS, FILTER, EMBEDDED, WRAPPER, ABLATION, OTHER, SANITY)

#: Matplotlib's settings for figures that are drawn by hand, beside the report's own.
STYLE: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.facecolor": "none",
    "axes.edgecolor": BAND,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=CYCLE),
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "image.cmap": "idfsmec",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.labelcolor": MUTED,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "text.color": INK,
    "xtick.color": BAND,
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": 9,
    "ytick.color": BAND,
    "ytick.labelcolor": MUTED,
    "ytick.labelsize": 9,
}


def use_style() -> None:
    """Draw all that follows in the look of the report: its colours, type and quiet axes.

    Sets matplotlib's ``rcParams`` and registers the colour map ``"idfsmec"`` (and
    ``"idfsmec_r"``), from nothing to much. :func:`matplotlib.pyplot.rcdefaults` undoes it; put
    the call into :func:`matplotlib.rc_context` to have it for a while.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> with mpl.rc_context():
    ...     use_style()
    ...     mpl.rcParams["image.cmap"]
    'idfsmec'
    """
    for scale in (SEQUENTIAL, SEQUENTIAL.reversed()):
        if scale.name not in mpl.colormaps:
            mpl.colormaps.register(scale)
    plt.style.use(STYLE)


#: Name of a method -> ``{"family": ..., "label": ...}``, as in ``Results.methods``.
Methods = Mapping[str, Mapping[str, str]]

#: The family whose first method stands out and is what the sentences are about.
PROPOSED = "proposed"
_COLORS = {
    PROPOSED: EMPHASIS,
    "filter": FILTER,
    "wrapper": WRAPPER,
    "embedded": EMBEDDED,
    "sanity": SANITY,
    "ablation": ABLATION,
}
_MARKERS = "osD^vPX<>phd"
_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1.2))

# Characters of a note that fit on an inch of a figure, beside the labels of its rows.
_NOTE_CHARACTERS = 13


class MethodLook(NamedTuple):
    """How a method is written and drawn everywhere."""

    label: str
    color: str
    marker: str
    linestyle: Any
    linewidth: float
    zorder: float
    main: bool
    quiet: bool = False

    def quieter(self) -> MethodLook:
        """The same look for one of many: thin, and behind those that matter more."""
        return self._replace(linewidth=0.8, zorder=2.5, quiet=True)


def registered_methods() -> dict[str, dict[str, str]]:
    """Family and label of every registered method, for figures drawn without results."""
    from idfsmec.evaluation import METHODS  # all methods and scikit-learn: a report needs neither

    return {name: {"family": one.family, "label": one.label} for name, one in METHODS.items()}


def family_of(method: str, methods: Methods) -> str:
    """The family of a method; "other" where none is known."""
    return str((methods.get(method) or {}).get("family") or "other")


def label_of(method: str, methods: Methods) -> str:
    """What figures and tables call a method; its name by default."""
    return str((methods.get(method) or {}).get("label") or method)


def main_method(names: Iterable[str], methods: Methods) -> str | None:
    """The method of main interest: the first one of the family "proposed".

    Examples
    --------
    >>> main_method(["mRMR", "mine"], {"mine": {"family": "proposed"}})
    'mine'
    """
    return next((name for name in names if family_of(name, methods) == PROPOSED), None)


def method_looks(names: Sequence[str], methods: Methods | None = None) -> dict[str, MethodLook]:
    """A look for each method: hue by family, marker within it; the proposed one stands out.

    Parameters
    ----------
    names : sequence of str
    methods : mapping, optional
        Families and labels, as in ``Results.methods``; by default those of the registry.

    Returns
    -------
    dict of str to MethodLook

    Examples
    --------
    >>> looks = method_looks(["a", "b"], {"a": {"family": "filter"}, "b": {"family": "filter"}})
    >>> looks["a"].color == looks["b"].color, looks["a"].marker == looks["b"].marker
    (True, False)
    """
    methods = registered_methods() if methods is None else methods
    main = main_method(names, methods)
    used: dict[str, int] = {}
    looks = {}
    for name in names:
        family = family_of(name, methods)
        color, label = _COLORS.get(family, OTHER), label_of(name, methods)
        place = used[color] = used.get(color, -1) + 1
        again, marker = divmod(place, len(_MARKERS))
        style: Any = _DASHED if family == "sanity" else _DOTTED if again % 2 else "-"
        width, level = (2.4, 5.0) if name == main else (1.1, 3.0)
        looks[name] = MethodLook(label, color, _MARKERS[marker], style, width, level, name == main)
    return looks


def sort_methods(names: Sequence[str], methods: Methods | None = None) -> list[str]:
    """Proposed methods first, sanity lines last, the rest as they come."""
    methods = registered_methods() if methods is None else methods
    places = {PROPOSED: 0, "sanity": 2}
    return sorted(names, key=lambda name: places.get(family_of(name, methods), 1))


def make_axes(ax: Axes | None, width: float = 7.2, height: float = 4.2) -> Axes:
    """The axes given, or new ones on a figure of that size (inches)."""
    if ax is not None:
        return ax
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    return plt.figure(figsize=(width, height), layout=layout).add_subplot()


def style_axes(
    ax: Axes, title: str, note: str = "", *, grid: Literal["x", "y"] | None = "y"
) -> Axes:
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
    set_titles(ax, title, note)
    return ax


def set_titles(ax: Axes, title: str, note: str) -> None:
    """Put the bold title over the quiet note, both at the left edge.

    Lines that are too long for the figure are broken: the layout would take their width from the
    axes.
    """
    figure = cast(Figure, ax.get_figure(root=True))
    most = int(_NOTE_CHARACTERS * figure.get_figwidth())
    note = "\n".join("\n".join(wrap(line, most)) for line in note.splitlines())
    lines = note.count("\n") + 1 if note else 0
    ax.set_title(
        title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=8 + 12 * lines,
        y=1.0,  # a place that is given is not looked for again in every drawing
    )  # fmt: skip
    if note:
        ax.annotate(
            note, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points",
            color=MUTED, fontsize=8.5, va="bottom", gid="note",
        )  # fmt: skip


def add_colorbar(ax: Axes, image: Any, label: str, formatter: Formatter | None = None) -> None:
    """A slim colour bar that belongs to the axes."""
    figure = cast(Figure, ax.get_figure(root=True))
    bar = figure.colorbar(image, ax=ax, shrink=0.6, aspect=24, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=8, length=2, color=BAND)
    bar.locator = MaxNLocator(4)
    if formatter is not None:
        bar.formatter = formatter
    bar.update_ticks()
    bar.set_label(label, color=MUTED, size=8.5)
    bar.ax.set_facecolor(FAINT)


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
    placed = np.clip(_rising(heights[order] - steps), 0, room) + steps
    spread = np.empty_like(placed)
    spread[order] = placed
    return spread


def _rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rising sequence nearest to the values: neighbours out of order share their mean."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        means.append(float(value))
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes.pop() + sizes[-1]
            last = means.pop()
            means[-1] += (last - means[-1]) * (size - sizes[-1]) / size
            sizes[-1] = size
    return np.repeat(means, sizes)


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
            transform=ax.transAxes, color=look.color, linewidth=0.6, alpha=0.7, clip_on=False,
            gid="leader",
        )  # fmt: skip
        ax.text(
            1.045, at, look.label, transform=ax.transAxes, color=look.color, va="center",
            fontsize=9 if look.main else 8 if look.quiet else 8.5,
            fontweight="bold" if look.main else "normal", alpha=0.75 if look.quiet else 1,
        )  # fmt: skip
