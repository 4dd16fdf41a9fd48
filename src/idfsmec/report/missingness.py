"""Gaps that go with the label: channels that one group hardly has, and those that are dead."""

from __future__ import annotations

from typing import Any

import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.missing.association import ALPHA
from idfsmec.report.formatting import listing


def dead_channels(results: Results, table: str) -> list[str]:
    """Channels that were observed for one group or nobody: they can tell nothing about people."""
    return [str(row["channel"]) for row in _gaps_by_class(results, table) if row["dead"]]


def _gaps_by_class(results: Results, table: str) -> list[dict[str, Any]]:
    """Who has each channel, as recorded with the table; nothing where it was not."""
    return list(results.tables[table].get("gaps_by_class") or [])


def missing_share(results: Results, table: str) -> float:
    """Share of what is missing as recorded, without channels that are dead."""
    about, dead = results.tables[table], dead_channels(results, table)
    by_recording = about.get("missing_by_recording")
    if not dead or not by_recording:
        return float(about["share_missing"])
    shares = pd.DataFrame(by_recording["share"], columns=by_recording["channels"])
    return float(shares.drop(columns=dead, errors="ignore").to_numpy().mean())


def gaps_with_label(results: Results, table: str) -> list[dict[str, Any]]:
    """Channels whose gaps go with the label (Holm-corrected), the surest first, and the dead."""
    labels = [str(label) for label in results.tables[table].get("labels", {})]
    found: list[dict[str, Any]] = [
        {
            "channel": str(row["channel"]),
            "has": listing([f"{row[f'have_{name}']} of {row[f'n_{name}']} {name}"
                            for name in labels], 6),
            "p_value": float(row["p"]),
            "p_holm": float(row["p_holm"]),
            "dead": bool(row["dead"]),
        }
        for row in _gaps_by_class(results, table)
    ]  # fmt: skip
    shown = [row for row in found if row["p_holm"] < ALPHA or row["dead"]]
    return sorted(shown, key=lambda row: (row["p_holm"], row["channel"]))


def warn_of_gaps(results: Results) -> list[tuple[str, str]]:
    """Banners for tables in which whether a channel is there tells the group."""
    found = []
    for table in map(str, results.tables):
        rows = [row for row in gaps_with_label(results, table) if row["p_holm"] < ALPHA]
        if not rows:
            continue
        each = [f"{row['channel']} ({row['has']} have it)" for row in rows]
        text = (
            f"{listing(each, 3)}: whether {'this channel is' if len(rows) == 1 else 'they are'} "
            "there already tells the group. A gap that goes with the label, such as another cap "
            "for patients, is no finding about brains: check why, or leave the channels out."
        )
        found.append((f"Gaps go with the label: {table}", text))
    return found
