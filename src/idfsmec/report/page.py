"""One self-contained HTML page: Jinja renders summary and figures, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from idfsmec import __version__
from idfsmec.errors import InputError
from idfsmec.evaluation.results import Results
from idfsmec.report._style import THEME
from idfsmec.report._words import percent, points, seconds
from idfsmec.report.figures import Picture, draw_figures, slugify
from idfsmec.report.summary import summarise

PAGE = "report.html"
FIGURES = "figures"


def write_report(folder: str | Path, *, force: bool = False) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder of results.

    Parameters
    ----------
    folder : path
        What :mod:`idfsmec.evaluation` wrote its results into.
    force : bool, default=False
        Overwrite a report that is there.

    Returns
    -------
    Path
        The page: one file that needs nothing else, neither network nor ``figures/``.

    Raises
    ------
    InputError
        The folder holds no results, or a report that may not be overwritten.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; give the --out folder of a benchmark")
    page = folder / PAGE
    if page.exists() and not force:
        raise InputError(f"{page} exists; use --force (force=True) to write it anew")
    results = Results.read(folder)
    pictures = list(draw_figures(results, folder / FIGURES))
    part = page.with_name(f".{PAGE}.part")
    part.write_text(render_page(summarise(results), pictures), encoding="utf-8")
    part.replace(page)
    return page


def render_page(summary: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """The page as HTML text.

    Parameters
    ----------
    summary : dict
        From :func:`idfsmec.report.summary.summarise`.
    pictures : sequence of Picture
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("idfsmec.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "points": points,
        "seconds": lambda value: "–" if value is None else seconds(value),
        "slug": slugify,
    }
    script = _asset("report.js")
    return environment.get_template("report.html").render(
        **summary,
        pictures={(picture.section, picture.table): picture for picture in pictures},
        theme=[(name, light, dark) for light, (name, dark) in THEME.items()],
        # Both are files of this package, not data.
        style=Markup(_asset("report.css")),
        script=Markup(script),
        script_hash=_hash(script),
        version=__version__,
    )


def _asset(name: str) -> str:
    return files("idfsmec.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
