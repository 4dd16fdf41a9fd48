"""One self-contained HTML page: Jinja renders summary and figures, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from idfsmec import __version__
from idfsmec._files import check_writable, replacing
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import Results
from idfsmec.progress import Listener
from idfsmec.report.figures import Picture, draw_figures, slugify
from idfsmec.report.formatting import percent, points, seconds
from idfsmec.report.style import THEME
from idfsmec.report.summary import summarise

PAGE = "report.html"
FIGURES = "figures"


def write_report(
    folder: str | Path,
    *,
    overwrite: bool = False,
    progress: Listener | None = None,
) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder of results.

    Parameters
    ----------
    folder : path
        What :mod:`idfsmec.evaluation` wrote its results into.
    overwrite : bool, default=False
        Whether a report that is there is written anew.
    progress : callable, optional
        Called with a :class:`idfsmec.progress.Progress` before each figure is drawn; its
        ``item`` names the figure.

    Returns
    -------
    Path
        The page: one file that needs nothing else, neither network nor ``figures/``.

    Raises
    ------
    InputError
        The folder holds no results, or nothing can be written there.
    ExistingFileError
        It holds a report already.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; give the one a benchmark wrote its results into"
        )
    page = folder / PAGE
    if page.exists() and not overwrite:
        raise ExistingFileError(page)
    check_writable(page, folder / FIGURES / "ranks.svg")
    results = Results.read(folder)
    pictures = list(draw_figures(results, folder / FIGURES, progress))
    with replacing(page) as (beside,):
        beside.write_text(render_page(summarise(results), pictures), encoding="utf-8")
    return page


def render_page(summary: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """The page as HTML text.

    Parameters
    ----------
    summary : dict
        From :func:`idfsmec.report.summary.summarise`.
    pictures : sequence of Picture
    """
    script = _asset("report.js")
    return (
        make_environment()
        .get_template("report.html")
        .render(
            **summary,
            pictures=_by_place(pictures),
            sentences=_sentences(summary),
            folder=FIGURES,
            script=script,
            script_hash=_hash(script),
        )
    )


def make_environment() -> jinja2.Environment:
    """How all pages are rendered: everything escaped, numbers worded alike, one look."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("idfsmec.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        # A t interval may leave the range of shares; nobody can be right more than always.
        "share": lambda value: percent(min(max(value, 0.0), 1.0)),
        "points": points,
        "seconds": lambda value: "–" if value is None else seconds(value),
        "weight": lambda value: "–" if value is None else f"{value:.4f}",
        "slug": slugify,
    }
    environment.globals |= {
        "theme": [(name, light, dark) for light, (name, dark) in THEME.items()],
        "style": _asset("report.css"),
        "version": __version__,
    }
    return environment


def _by_place(pictures: Sequence[Picture]) -> dict[tuple[str, str], list[Picture]]:
    """Pictures by section and table; several where there are several patterns of gaps."""
    placed: dict[tuple[str, str], list[Picture]] = {}
    for picture in pictures:
        placed.setdefault((picture.section, picture.table), []).append(picture)
    return placed


def _sentences(summary: dict[str, Any]) -> dict[str, Any]:
    """What figures show, by table, section and pattern of gaps; that of all tables under ""."""
    ranks = summary["ranks"] or {"sentences": []}
    said = {table["name"]: table["sentences"] for table in summary["tables"]}
    return {**said, "": {"ranks": {"": ranks["sentences"]}}}


def _asset(name: str) -> str:
    return files("idfsmec.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
