"""All figures of a report: drawn once, kept as SVG and PNG for a paper, inlined for the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import matplotlib.pyplot as plt
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from idfsmec._files import replacing
from idfsmec.evaluation import Results
from idfsmec.progress import Listener, Progress
from idfsmec.report import (
    accuracy,
    channels,
    comparison,
    cost,
    differences,
    effects,
    filling,
    settings,
    stability,
)
from idfsmec.report._helpers import Sharing
from idfsmec.report._vector import draw_svgs, fix_layout
from idfsmec.report.style import THEME

#: The folder of figures in one of results.
FIGURES = "figures"
#: Of images for a paper.
_DPI = 300

#: A figure, the reason why there is none, one for each pattern of gaps or method, or nothing.
Drawing = Axes | str | dict[str, Axes] | None


@dataclass(frozen=True)
class Picture:
    """A figure on the page, or the sentence that stands in its place.

    ``slug`` names it within the page and, with an ending, its files; ``pattern`` is that of the
    gaps (or the method), where there is a figure for each.
    """

    section: str
    table: str
    slug: str
    caption: str
    pattern: str = ""
    svg: str | None = None
    absent: str | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of figure: where it stands, how it is drawn from results, what is said below it.

    ``published`` is said too where values of the paper stand beside measured ones.
    """

    section: str
    draw: Callable[[Results, str], Drawing]
    caption: str
    published: str = ""


@contextmanager
def drawing(
    results: Results, folder: Path, n_jobs: int = 1, progress: Listener | None = None
) -> Iterator[Callable[[], list[Picture]]]:
    """Draw what the results allow into a folder of theirs: pictures, or reasons in their place.

    Gives a function that draws the rest and returns all; other processes begin at once.

    Parameters
    ----------
    results : Results
    folder : Path
        Where they are from; figures go into its :data:`FIGURES`.
    n_jobs : int
        Processes that draw.
    progress : callable, optional
        Called before each figure that is drawn here.
    """
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    places = [(section, str(name)) for name in results.tables for section in KINDS]
    places.append((RANKS.section, ""))

    def draw(place: tuple[str, str]) -> list[Picture]:
        return list(draw_place(results, folder, *place))

    def say(place: tuple[str, str], done: int) -> None:
        if progress:
            said = ", ".join(filter(None, place)) or None
            progress(Progress("figures", done, len(places), said))

    with Sharing(places, draw, n_jobs - 1) as sharing:

        def finish() -> list[Picture]:
            drawn = sharing.finish(say)
            say(("", ""), len(places))
            return [one for pictures in drawn for one in pictures]

        yield finish


def draw_place(results: Results, folder: Path, section: str, name: str) -> Iterator[Picture]:
    """Draw what stands in a section for a table: nothing, one, or one for each pattern of gaps."""
    kind = KINDS.get(section, RANKS)
    caption = kind.caption
    if kind.published and name == results.data_set:
        caption = f"{caption} {kind.published}"
    table = table_slugs([str(one) for one in results.tables]).get(name, "")
    drawn = kind.draw(results, name)
    for pattern, one in (drawn if isinstance(drawn, dict) else {"": drawn}).items():
        slug = "-".join(filter(None, (section, table, pattern and slugify(pattern))))
        if one is not None:
            picture = Picture(section, name, slug, caption, pattern)
            yield _picture(picture, one, folder / FIGURES)


def table_slugs(names: Sequence[str]) -> dict[str, str]:
    """What the files of each table end in: nothing for a single one, else never the same twice.

    Examples
    --------
    >>> table_slugs(["Clinic A", "clinic-a"])
    {'Clinic A': 'clinic-a', 'clinic-a': 'clinic-a-2'}
    >>> table_slugs(["Clinic A"])
    {'Clinic A': ''}
    """
    slugs: dict[str, str] = {}
    for name in names:
        slug, number = slugify(name), 2
        while slug in slugs.values():
            slug, number = f"{slugify(name)}-{number}", number + 1
        slugs[name] = slug
    return slugs if len(slugs) > 1 else dict.fromkeys(slugs, "")


def _picture(empty: Picture, drawn: Axes | str, folder: Path) -> Picture:
    if isinstance(drawn, str):
        return replace(empty, absent=drawn)
    figure = cast(Figure, drawn.get_figure(root=True))
    slug = empty.slug
    try:
        fix_layout(figure)
        with (
            replacing(folder / f"{slug}.svg", folder / f"{slug}.png") as (drawing, image),
            ThreadPoolExecutor(1) as beside,
        ):
            # Packing pixels needs no interpreter: another core does it while lines are drawn.
            packed = beside.submit(_save_pixels, *_pixels(figure), image)
            label = f"{drawn.get_title(loc='left')}. {empty.caption}"
            outlined, plain = draw_svgs(figure, slug)
            drawing.write_text(outlined, encoding="utf-8")
            packed.result()
    finally:
        plt.close(figure)
    return replace(empty, svg=inline_svg(plain, label))


def _pixels(figure: Figure) -> tuple[bytes, tuple[int, int]]:
    """The figure's pixels on white as a paper prints them, and how many across and down."""
    canvas = FigureCanvasAgg(figure)
    before = {"dpi": figure.dpi, "facecolor": figure.get_facecolor()}
    figure.set(dpi=_DPI, facecolor="white")
    pixels, size = canvas.print_to_buffer()
    figure.set(**before)
    return pixels, size


def _save_pixels(pixels: bytes, size: tuple[int, int], path: Path) -> None:
    image = Image.frombuffer("RGBA", size, pixels, "raw", "RGBA", 0, 1).convert("RGB")
    image.save(path, format="png", dpi=(_DPI, _DPI), compress_level=1)


def inline_svg(svg: str, label: str) -> str:
    """A drawing as SVG inside HTML: its colours follow the page's look.

    Everything in it was escaped by matplotlib's XML writer, or here: the template takes it as it
    is.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))  # type: ignore[union-attr]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # 1 pt is 4/3 px: at this width letters have their size in print.
    start = f'<svg role="img" aria-label="{escape(label)}" style="width: {width * 4 / 3:.0f}px"'
    svg = svg.replace("<svg", start, 1)
    for light, (name, _) in THEME.items():
        svg = re.sub(rf"(fill|stroke): {light}\b", rf"\1: var(--fig-{name})", svg)
    return svg


def slugify(name: str) -> str:
    """A file name from a table's name, no longer than disks take it with what is put around it.

    Examples
    --------
    >>> slugify("Clinic A / 2024")
    'clinic-a-2024'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:100].strip("-") or "table"


_KINDS = (
    Kind(
        "channels",
        channels.draw_weights,
        "How well each channel alone tells the groups apart: the more, the darker or longer.",
    ),
    Kind(
        "heatmap",
        channels.draw_scores,
        "Channel weight times feature weight. Blank cells were not computed.",
    ),
    Kind(
        "effects",
        effects.draw_effects,
        "The first features of the ranking, each by itself: how much the groups differ, one value "
        "per person, with 95 % intervals over people.",
    ),
    Kind(
        "selection-frequency-features",
        stability.draw_feature_frequencies,
        "How often the feature was among the first selected when only half of the people were "
        "seen. Chance: what selecting at random would reach.",
    ),
    Kind(
        "selection-frequency-channels",
        stability.draw_channel_frequencies,
        "How often at least one feature of the channel was among them.",
    ),
    Kind(
        "missing",
        channels.draw_missing,
        "Each row is a recording, each column a channel; bars on top give the rate per channel.",
    ),
    Kind(
        "accuracy-by-rate",
        accuracy.draw_by_rate,
        "Mean over folds with 95 % intervals corrected for overlapping training sets. In the grey "
        "band a score is no better than guessing.",
    ),
    Kind(
        "differences",
        differences.draw_differences,
        "Differences paired by fold, with 95 % intervals corrected for overlapping training sets.",
    ),
    Kind(
        "accuracy-by-k",
        accuracy.draw_by_k,
        "Mean over folds and missing rates for each number of features kept.",
    ),
    Kind(
        "filling",
        filling.draw_filling,
        "Mean over folds with 95 % intervals, one line for each way of filling gaps before the "
        "classifier sees them.",
    ),
    Kind(
        "filling-lost",
        filling.draw_lost,
        "Score at the lowest missing rate minus that at the highest, paired by fold: the less, "
        "the better the filler makes up for what is missing.",
    ),
    Kind(
        "ablation",
        settings.draw_ablation,
        "The whole method, and with one part taken out. Bars are 95 % intervals.",
        "Diamonds are the paper's plain accuracies on this data set (folds not stated).",
    ),
    Kind(
        "sensitivity",
        settings.draw_sensitivity,
        "Mean over folds, missing rates and numbers of features for every setting. The best cell "
        "was picked on test folds, so its value is optimistic.",
    ),
    Kind(
        "cost",
        cost.draw_cost,
        "Selection alone, one thread, logarithmic scale.",
        "Published seconds come from MATLAB on another machine: compare orders of magnitude.",
    ),
    Kind(
        "convergence",
        settings.draw_convergence,
        "The objective never rises; the dotted line is where it ends.",
    ),
)

#: By section, in the order in which they are drawn.
KINDS = {kind.section: kind for kind in _KINDS}

#: Of all tables together.
RANKS = Kind(
    "ranks",
    lambda results, name: comparison.draw_ranks(results),
    "Methods ranked in every block (a table at a missing rate). Methods joined by a bar have "
    "mean ranks closer than the critical difference (Nemenyi, 5 %).",
)
