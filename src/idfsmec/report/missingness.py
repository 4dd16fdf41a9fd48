"""Gaps that go with the label: channels that one group hardly has, and those that are dead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.report.formatting import listing

_LEVEL = 0.05


def channel_gaps(results: Results, table: str) -> list[dict[str, Any]]:
    """Who has each channel, by group, as recorded with the table; none where it was not."""
    return list(results.tables[table].get("missingness") or [])


def dead_channels(results: Results, table: str) -> list[str]:
    """Channels that nobody of at least one group has: they can tell nothing about people."""
    return [
        str(row["channel"]) for row in channel_gaps(results, table) if not all(row["has"].values())
    ]


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
    rows = channel_gaps(results, table)
    dead = set(dead_channels(results, table))
    found: list[dict[str, Any]] = [
        {
            "channel": str(row["channel"]),
            "has": who_has(row),
            "p_value": float(row["p_value"]),
            "p_holm": float(row["p_holm"]),
            "dead": str(row["channel"]) in dead,
        }
        for row in rows
    ]
    shown = [row for row in found if row["p_holm"] < _LEVEL or row["dead"]]
    return sorted(shown, key=lambda row: (row["p_holm"], row["channel"]))


def who_has(row: Mapping[str, Any]) -> str:
    """How many people of each group have a channel.

    Examples
    --------
    >>> who_has({"has": {"HC": 20, "MDD": 1}, "people": {"HC": 25, "MDD": 29}})
    '20 of 25 HC and 1 of 29 MDD'
    """
    each = [f"{n} of {row['people'][label]} {label}" for label, n in row["has"].items()]
    return listing(each, 6)


def warn_of_gaps(results: Results) -> list[tuple[str, str]]:
    """Banners for tables in which whether a channel is there tells the group."""
    found = []
    for table in map(str, results.tables):
        rows = [row for row in gaps_with_label(results, table) if row["p_holm"] < _LEVEL]
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
