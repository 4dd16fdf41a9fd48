"""A feature table in a notebook: counts, and a map of what is missing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idfsmec.table import FeatureTable

# Rows and columns of the map in notebooks; larger tables are shown by their first ones.
_MOST_SUBJECTS, _MOST_CHANNELS = 60, 128
_CELL = 6
_WIDEST_CELL, _WIDTH = 30, 240  # few channels get wide cells


def table_html(table: FeatureTable) -> str:
    """Show a table in a notebook: no scripts, and all names escaped."""
    observed = table.observed
    missing = 1.0 - float(observed.to_numpy().mean()) if observed.size else 0.0
    counts = table.y.value_counts()
    labels = ", ".join(f"{escape(str(label))} {count}" for label, count in counts.items())
    facts = {
        "samples": str(len(table.X)),
        "subjects": str(table.subjects.nunique()),
        "labels": labels,
        **({} if table.sites is None else {"sites": str(table.sites.nunique())}),
        "channels": str(len(table.channels)),
        "features per channel": str(len(table.features)),
        "channel-samples missing": f"{missing:.1%}",
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{value}</td></tr>"
        for name, value in facts.items()
    )
    return f"<div><b>FeatureTable</b><table>{rows}</table>{_missing_map(table)}</div>"


def _missing_map(table: FeatureTable) -> str:
    """Subjects by channels as small squares: the darker, the more of it is missing."""
    shares = (~table.observed).groupby(table.subjects.to_numpy(), sort=False).mean()
    if not shares.size or not shares.to_numpy().any():
        return ""
    shown = shares.iloc[:_MOST_SUBJECTS, :_MOST_CHANNELS]
    across = max(_CELL, min(_WIDEST_CELL, _WIDTH // shown.shape[1]))
    squares = "".join(
        f"<rect x='{across * column}' y='{_CELL * row}' width='{across}' height='{_CELL}' "
        f"fill='#c2410c' fill-opacity='{share:.2f}'><title>{escape(str(shown.index[row]))}, "
        f"{escape(str(shown.columns[column]))}: {share:.0%} missing</title></rect>"
        for row, values in enumerate(shown.to_numpy())
        for column, share in enumerate(values)
        if share > 0
    )
    width, height = across * shown.shape[1], _CELL * shown.shape[0]
    cut = "" if shown.shape == shares.shape else " (the first ones)"
    return (
        f"<div>Missing, subjects by channels{cut}</div>"
        f"<svg width='{width}' height='{height}' role='img' aria-label='missing channels' "
        f"style='background:#8881'>{squares}</svg>"
    )
