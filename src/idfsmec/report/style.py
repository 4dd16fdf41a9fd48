"""Draw all figures and pages in one style: few colours with a meaning, colour-blind safe."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import jinja2
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cycler import cycler
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from idfsmec import __version__
from idfsmec._files import disarm_formulas, replacing
from idfsmec.errors import ExistingFileError, listing
from idfsmec.metrics import Floats
from idfsmec.report.data import PROPOSED, Methods, family_of, label_of, sort_methods
from idfsmec.report.text import (
    SIGNIFICANT,
    capitalise,
    escape_markdown,
    number_with_ci,
    percent,
    points,
    say_counts,
    score_with_ci,
    seconds,
    share_with_ci,
    slugify,
)
from idfsmec.table.columns import column_label, feature_label

#: Name of the page's CSS variable -> (light colour, dark colour), which the page exchanges. Hues
#: after Paul Tol's colour-blind-safe "bright" scheme, which vermilion stays apart from.
THEME = {
    "ink": ("#1c2330", "#e8ebf0"),
    "muted": ("#5d6675", "#a3acba"),
    "faint": ("#dfe3e9", "#333b48"),
    "paper": ("#fefefe", "#161b23"),
    "band": ("#c9ced6", "#4a5362"),
    "emphasis": ("#c8460e", "#ff8d54"),
    "filter": ("#3e6fa3", "#7fb0e6"),
    "wrapper": ("#9c3172", "#e08bc0"),
    "embedded": ("#2b7a4b", "#6fc794"),
    "sanity": ("#868e9b", "#98a1ae"),
    "ablation": ("#2c7f8c", "#63c3d1"),
    "other": ("#8a6d1f", "#d4b45a"),
}
INK, MUTED, FAINT, PAPER, BAND, EMPHASIS = (light for light, _ in list(THEME.values())[:6])
FILTER, WRAPPER, EMBEDDED, SANITY, ABLATION = (light for light, _ in list(THEME.values())[6:11])
_FAMILIES = ("filter", "wrapper", "embedded", "sanity", "ablation")

#: From nothing to much: lightness falls steadily. None of its colours may be one of the theme's,
#: or the page would exchange it for its dark twin.
SEQUENTIAL = LinearSegmentedColormap.from_list(
    "idfsmec", ["#f6f1ea", "#f3cfa9", "#e89a5e", "#c6450f", "#7c2408"]
).with_extremes(bad=(0, 0, 0, 0))

#: For things that are no methods, in this order.
CYCLE = (EMPHASIS, FILTER, EMBEDDED, WRAPPER, ABLATION, THEME["other"][0], SANITY)
MARKERS = "osD^vPX<>phd"
DASHES = (0, (4, 2))

#: Matplotlib's settings for figures that users draw beside the report's.
STYLE: dict[str, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor", "legend.labelcolor"), MUTED),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), BAND),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.axisbelow", "figure.constrained_layout.use"), True),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 9),
    "figure.facecolor": "white",
    "axes.facecolor": "none",
    "axes.labelsize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlepad": 8,
    "axes.prop_cycle": cycler(color=CYCLE),
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "image.cmap": "idfsmec",
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}

_Function = TypeVar("_Function", bound=Callable[..., Any])
# Characters of a note that fit on an inch of a figure, beside the labels of its rows.
_NOTE_CHARACTERS = 13
# The values that a pointer shows on a page's figure: rectangles in data coordinates and texts. A
# small one is pointed at from so many points around its middle.
_Values = tuple[Axes, Sequence[Any], Sequence[str]]
_values: WeakKeyDictionary[Figure, list[_Values]] = WeakKeyDictionary()
_REACH = 6.0
# More would make pages large and say no more than the numbers beside the figure.
_MOST_VALUES = 1500


def literal_text(draw: _Function) -> _Function:
    """Draw names of labels and channels as text, also where they hold a dollar sign."""
    return mpl.rc_context({"text.parse_math": False})(draw)


def use_style() -> None:
    """Draw all that follows in the style of the report: its colours, type and quiet axes.

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


class MethodLook(NamedTuple):
    """Label and style of a method; ``quiet`` ones are thin, without CI."""

    label: str
    color: str
    marker: str
    linestyle: Any = "-"
    main: bool = False
    quiet: bool = False


def method_looks(names: Iterable[object], methods: Methods) -> dict[str, MethodLook]:
    """Sort methods and give them looks: hue by family, marker within; the proposed emphasised."""
    looks: dict[str, MethodLook] = {}
    for name in sort_methods(names, methods):
        family = family_of(name, methods)
        color = THEME[family if family in _FAMILIES else "other"][0]
        if family == PROPOSED:
            color = EMPHASIS
        main = family == PROPOSED and not any(look.main for look in looks.values())
        n_alike = sum(look.color == color for look in looks.values())
        again, marker = divmod(n_alike, len(MARKERS))
        dashes: Any = DASHES if family == "sanity" else (0, (1, 1.2)) if again % 2 else "-"
        looks[name] = MethodLook(label_of(name, methods), color, MARKERS[marker], dashes, main)
    return looks


def plain_looks(names: Iterable[str]) -> dict[str, MethodLook]:
    """Give each of several things that are no methods a colour and a marker."""
    return {
        name: MethodLook(name, CYCLE[i % len(CYCLE)], MARKERS[i % len(CYCLE)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def make_axes(ax: Axes | None, width: float = 7.2, height: float = 4.2) -> Axes:
    """Return the axes given, or new ones on a figure of that size (inches)."""
    if ax is not None:
        return ax
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    return plt.figure(figsize=(width, height), layout=layout).add_subplot()


def figure_of(ax: Axes) -> Figure:
    """Return the figure of axes, also of axes within others."""
    return cast(Figure, ax.get_figure(root=True))


def style_axes(
    ax: Axes, title: str, note: str = "", *, grid: Literal["x", "y"] | None = "y"
) -> Axes:
    """Set title, note, quiet spines and grid: "x" where the y axis names rows, None for a map."""
    ax.set_facecolor("none")
    for side, spine in ax.spines.items():
        spine.set_visible(grid is not None and side in ("left", "bottom"))
        spine.set_color(BAND)
    ax.tick_params(colors=MUTED, labelsize=9, length=3 if grid else 0, color=BAND)
    if grid == "x":
        ax.tick_params(axis="y", length=0, labelcolor=INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(color=INK, size=9.5)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)
    set_titles(ax, title, note)
    return ax


def set_titles(ax: Axes, title: str, note: str) -> None:
    """Put the bold title over the quiet note; long lines are broken, or they narrow the axes."""
    most = int(_NOTE_CHARACTERS * figure_of(ax).get_figwidth())
    note = "\n".join("\n".join(wrap(line, most)) for line in note.strip().splitlines())
    lines = note.count("\n") + 1 if note else 0
    ax.set_title(
        title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=8 + 12 * lines, y=1.0
    )
    if note:
        annotate(ax, note, (0, 1), (0, 7), "axes fraction", va="bottom", gid="note")


def annotate(
    ax: Axes,
    text: str,
    xy: tuple[float, float],
    offset: tuple[float, float] = (0, 0),
    units: Any = "data",
    **options: Any,
) -> None:
    """Write small quiet text at a point, moved by an offset in points."""
    quiet: dict[str, Any] = {"color": MUTED, "fontsize": 8.5, "annotation_clip": False}
    ax.annotate(text, xy, offset, xycoords=units, textcoords="offset points", **(quiet | options))


def name_sides(ax: Axes, left: str, right: str) -> None:
    """Write below the label of an axis with a zero what its two sides mean."""
    annotate(ax, f"← {left}", (0, 0), (0, -34), "axes fraction", ha="left", va="top")
    annotate(ax, f"{right} →", (1, 0), (0, -34), "axes fraction", ha="right", va="top")


def draw_estimate(
    ax: Axes,
    y: float,
    estimate: tuple[float, float, float],
    color: str,
    filled: bool,
    text: str,
    **options: Any,
) -> None:
    """Draw a value as a filled or open dot, its CI as a bar, and what a pointer shows of both."""
    value, low, high = estimate
    ax.hlines(y, low, high, color=color, linewidth=1.5, alpha=0.65 * options.get("alpha", 1.0))
    inside = color if filled else PAPER
    ax.plot(value, y, "o", markeredgecolor=color, markerfacecolor=inside, **options)
    has_ci = np.isfinite([low, high]).all()
    show_values(ax, low if has_ci else value, y, [text], high if has_ci else value)


def draw_bars(
    ax: Axes, names: Sequence[str], values: Floats, colors: Any, write: Callable[[float], str]
) -> None:
    """Draw horizontal bars, the first on top; a pointer shows their values."""
    at = np.arange(len(names))
    ax.barh(at, values, color=colors, height=0.62)
    ax.set_yticks(at, names)
    ax.invert_yaxis()
    texts = [f"{name}: {write(value)}" for name, value in zip(names, values, strict=True)]
    show_values(ax, 0, at - 0.3, texts, values, at + 0.3)


def add_colorbar(ax: Axes, image: Any, label: str) -> None:
    """Add a slim colour bar that belongs to the axes."""
    ticks = MaxNLocator(4)
    bar = figure_of(ax).colorbar(image, ax=ax, shrink=0.6, aspect=24, pad=0.02, ticks=ticks)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=8, length=2, color=BAND)
    bar.set_label(label, color=MUTED, size=8.5)
    bar.ax.set_facecolor(FAINT)


def show_values(
    ax: Axes, x: Any, y: Any, texts: Sequence[str], x2: Any = None, y2: Any = None
) -> None:
    """Name points, or rectangles up to ``x2`` and ``y2``, for a pointer on the page's figure."""
    corners = [x, y, x if x2 is None else x2, y if y2 is None else y2]
    _values.setdefault(figure_of(ax), []).append((ax, corners, texts))


def _draw_values(figure: Figure) -> str:
    """Return transparent rectangles with titles as SVG, in points from the upper left corner."""
    height, scale = 72 * figure.get_figheight(), 72 / figure.dpi
    drawn = []
    for ax, corners, texts in _values.pop(figure, []):
        x, y, x2, y2 = np.broadcast_arrays(*corners, np.zeros(len(texts)))[:4]
        ends = [ax.transData.transform(np.column_stack(pair)) for pair in ((x, y), (x2, y2))]
        low, high = scale * np.minimum(*ends), scale * np.maximum(*ends)
        small = (high - low) < 2 * _REACH
        middle = (low + high) / 2
        low, high = np.where(small, middle - _REACH, low), np.where(small, middle + _REACH, high)
        for (left, bottom), (right, top), text in zip(low, high, texts, strict=True):
            if np.isfinite([left, bottom, right, top]).all():
                drawn.append(
                    f'<rect x="{left:.1f}" y="{height - top:.1f}" width="{right - left:.1f}" '
                    f'height="{top - bottom:.1f}"><title>{escape(text)}</title></rect>'
                )
    if not drawn or len(drawn) > _MOST_VALUES:
        return ""
    return f'<g class="values" fill="none" pointer-events="all">{"".join(drawn)}</g>'


def make_figure(
    ax: Axes,
    name: str,
    numbers: pd.DataFrame,
    slug: str = "",
    *,
    path: Path | None = None,
    tested: str = "",
) -> dict[str, Any]:
    """Save a figure, close it, and return what the macro ``figure`` shows of it.

    ``name`` is that of its caption, ``slug`` its own on the page (by default the same),
    ``numbers`` are what it shows, ``tested`` is the result of a test in words.
    """
    title, caption, slug = ax.get_title(loc="left"), captions()[name], slug or name
    svg = save_figure(ax, f"{title}. {caption}", path, slug)
    csv = disarm_formulas(numbers).to_csv(index=False, float_format="%.6g").encode("utf-8")
    shown = {"slug": slug, "title": title, "svg": svg, "caption": caption, "tested": tested}
    return shown | {"csv": f"data:text/csv;charset=utf-8;base64,{base64.b64encode(csv).decode()}"}


def tabulate(
    title: str,
    text: str = "",
    rows: Sequence[Mapping[str, Any]] = (),
    picture: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a part of a page: a figure, or text and a table; Markdown has its text and table."""
    header = list(rows[0]) if rows else []
    cells = [list(row.values()) for row in rows]
    return {"title": title, "text": text, "header": header, "rows": cells, "picture": picture}


def save_figure(ax: Axes, label: str, path: Path | None, salt: str) -> str:
    """Save a figure as SVG and PNG for a paper, close it, and return it as SVG for the page.

    In the files letters are outlines, which any program shows alike; on the page they are text
    and colours follow the page's theme. ``salt`` makes identifiers differ from other figures'.
    """
    figure = figure_of(ax)
    figure.draw_without_rendering()  # finds the layout, which is the same for all formats
    options: Any = {"format": "svg", "metadata": {"Date": None}}
    settings: Any = {"figure.autolayout": False, "figure.constrained_layout.use": False}
    text = io.StringIO()
    with mpl.rc_context(settings | {"svg.hashsalt": salt}):
        figure.set_layout_engine(None)
        values = _draw_values(figure)
        if path is not None:
            quick = {"compress_level": 1}
            with replacing(path.with_suffix(".svg"), path.with_suffix(".png")) as (drawing, image):
                figure.savefig(drawing, facecolor="white", **options)
                figure.savefig(image, format="png", dpi=300, facecolor="white", pil_kwargs=quick)
        mpl.rcParams["svg.fonttype"] = "none"
        figure.savefig(text, transparent=True, **options)
    plt.close(figure)
    return _inline_svg(text.getvalue(), label).replace("</svg>", f"{values}</svg>")


def _inline_svg(svg: str, label: str) -> str:
    """Return matplotlib's SVG, in which all text is escaped, for use inside HTML."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))  # type: ignore[union-attr]
    for name in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {name}="[^"]*"', r"\1", svg, count=1)
    # 1 pt is 4/3 px: at this width letters have their size in print.
    start = f'<svg role="img" aria-label="{escape(label)}" style="width: {width * 4 / 3:.0f}px"'
    svg = svg.replace("<svg", start, 1)
    for name, (light, _) in THEME.items():
        svg = re.sub(rf"(fill|stroke): {light}\b", rf"\1: var(--fig-{name})", svg)
    return svg


def render(template: str, **content: Any) -> str:
    """Render a template: a self-contained page, Markdown or sentences; all values are escaped."""
    return _environment(Path(template).suffix).get_template(template).render(**content)


def sentences_of(template: str, **content: Any) -> dict[str, str]:
    """Return the sentences of a template by name; those without text are left out.

    Each begins a line with its name and a colon, and indented lines continue it.
    """
    lines = re.sub(r"\n +", " ", render(template, **content)).splitlines()
    named = (line.partition(": ") for line in lines)
    return {name: text.strip() for name, _, text in named if text.strip()}


@cache
def captions() -> dict[str, str]:
    """Return how each figure is read, by its name."""
    return sentences_of("captions.txt")


@cache
def _environment(ending: str) -> jinja2.Environment:
    """Return where templates of a kind are found, with what they know."""
    is_text = ending == ".txt"  # where a line is a sentence
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("idfsmec.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(["html"]),
        finalize={".html": _keep_together, ".md": escape_markdown, ".txt": _keep_line}[ending],
        trim_blocks=not is_text,
        lstrip_blocks=not is_text,
        keep_trailing_newline=ending != ".html",
    )
    plain = (percent, points, seconds, capitalise, column_label, feature_label, listing)
    environment.filters |= {function.__name__: function for function in plain} | {
        # A t interval may leave the range of shares.
        "share": lambda value: percent(float(np.clip(value, 0, 1))),
        "weight": lambda value: "–" if value is None else f"{value:.4f}",
        "exact": lambda value: "" if value is None else f"{value:.7g}",
        "slug": slugify,
        "counts": say_counts,
        "score_ci": lambda values, metric: score_with_ci(metric, values),
        "share_ci": share_with_ci,
        "number_ci": number_with_ci,
    }
    script = read_asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    environment.globals |= {
        "script": script,
        "script_hash": f"sha256-{digest}",
        "theme": [(name, *colors) for name, colors in THEME.items()],
        "style": read_asset("page.css"),
        "version": __version__,
        "significant": SIGNIFICANT,
    }
    return environment


def _keep_line(value: Any) -> Any:
    """Let no value begin a line, where sentences are told apart by lines."""
    return " ".join(value.splitlines()) if isinstance(value, str) else value


def _keep_together(value: Any) -> Any:
    """Let no line end between a number and its per cent sign; what is HTML stays as it is."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", value) if is_text else value


def read_asset(name: str) -> str:
    """Read a file of the package's templates."""
    return files("idfsmec.report").joinpath("templates", name).read_text(encoding="utf-8")


def refuse_existing(overwrite: bool, *paths: Path) -> None:
    """Refuse to replace files, unless that was asked for."""
    for path in paths:
        if path.exists() and not overwrite:
            raise ExistingFileError(path)


def write_texts(texts: Mapping[Path, str], overwrite: bool = True) -> Path:
    """Write text files, all whole or none at all; return the first."""
    refuse_existing(overwrite, *texts)
    with replacing(*texts) as besides:
        for beside, text in zip(besides, texts.values(), strict=True):
            beside.write_text(text, encoding="utf-8")
    return next(iter(texts))
