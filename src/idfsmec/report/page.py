"""One self-contained HTML page: Jinja renders summary and figures, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2

from idfsmec import __version__
from idfsmec.report.figures import FIGURES, Picture, slugify
from idfsmec.report.formatting import percent, points, seconds
from idfsmec.report.style import THEME


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
