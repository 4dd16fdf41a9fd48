"""Put feature tables below one another, and keep ``info`` in step with the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
from idfsmec.table.checks import CHANNEL, EPOCH, LABEL, REASON, RECORDING, SITE, SUBJECT, same_info
from idfsmec.table.columns import split_column

if TYPE_CHECKING:
    from idfsmec.table.feature_table import FeatureTable

_LIST = "recordings"


def join_tables(tables: Sequence[FeatureTable]) -> dict[str, Any]:
    """Return the parts of tables put below one another, under the union of their channels."""
    parts = _with_distinct_recordings([dict(vars(table)) for table in tables])
    X = pd.concat([part["X"] for part in parts], ignore_index=True, sort=False)
    # Columns a later table adds to a channel go beside the others of that channel.
    column_channels = [split_column(column)[0] for column in X.columns]
    channels = list(dict.fromkeys(column_channels))
    order = np.argsort([channels.index(channel) for channel in column_channels], kind="stable")
    subjects = _stack([part["subjects"] for part in parts], SUBJECT)
    sites = [part["sites"] for part in parts if part["sites"] is not None]
    if 0 < len(sites) < len(parts):
        raise InputError(
            "Some of the tables say at which site samples were recorded, others do not: give "
            "sites to all of them, or to none."
        )
    rows = _stack_rows(parts)
    return {
        "X": X.iloc[:, order],
        "y": _stack([part["y"] for part in parts], LABEL),
        "subjects": subjects,
        "info": _merge_info([part["info"] for part in parts], rows, subjects),
        "sites": _stack(sites, SITE) if sites else None,
        "rows": rows,
        "reasons": _stack_reasons(parts, channels),
    }


def recordings_left(
    info: Mapping[str, Any], rows: pd.DataFrame | None, subjects: pd.Series
) -> dict[str, Any]:
    """Keep, of the recordings that ``info`` lists, those that have samples, and count these."""
    listed = _listed(info)
    if listed is None:
        return dict(info)
    if rows is not None and RECORDING in rows:
        counts = rows[RECORDING].value_counts()
        kept = [
            {**recording, "rows": int(counts[recording[RECORDING]])}
            for recording in listed
            if recording.get(RECORDING) in counts.index
        ]
    else:  # an old table: whose recordings are there is known, how much of them is not
        left = {str(subject) for subject in subjects.unique()}
        kept = [
            {key: value for key, value in recording.items() if key != "rows"}
            for recording in listed
            if str(recording.get(SUBJECT)) in left
        ]
    return {**info, _LIST: kept}


def _listed(info: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    listed = info.get(_LIST)
    known = isinstance(listed, list) and all(isinstance(item, Mapping) for item in listed)
    return listed if known else None


def _stack(groups: list[pd.Series], what: str) -> pd.Series:
    kinds = sorted({str(group.dtype) for group in groups})
    if len(kinds) > 1:
        raise InputError(
            f"The tables have {what}s of different types ({', '.join(kinds)}): convert them to "
            "one first."
        )
    return pd.concat(groups, ignore_index=True)


def _stack_rows(parts: list[dict[str, Any]]) -> pd.DataFrame | None:
    if all(part["rows"] is None for part in parts):
        return None
    frames = [
        pd.DataFrame(index=range(len(part["X"]))) if part["rows"] is None else part["rows"]
        for part in parts
    ]
    stacked = {}
    for name in dict.fromkeys(name for frame in frames for name in frame):
        columns = [frame.get(name, pd.Series([None] * len(frame))) for frame in frames]
        # As objects, because what one table lacks has no dtype; cleaning finds a common one.
        if len({column.dtype for column in columns}) > 1:
            columns = [column.astype(object) for column in columns]
        stacked[name] = pd.concat(columns, ignore_index=True)
    return pd.DataFrame(stacked)


def _stack_reasons(parts: list[dict[str, Any]], channels: list[str]) -> pd.DataFrame | None:
    """Put reasons below one another, and say of the channels that a table lacks that it does."""
    if all(part["reasons"] is None for part in parts):
        return None
    stacked = []
    for part in parts:
        if part["reasons"] is not None:
            stacked.append(part["reasons"])
        if part["rows"] is not None and {RECORDING, EPOCH} <= set(part["rows"]):
            present = {split_column(column)[0] for column in part["X"].columns}
            known = part["rows"][[RECORDING, EPOCH]].dropna()
            stacked += [
                known.assign(**{CHANNEL: channel, REASON: "not in the table"})
                for channel in channels
                if channel not in present
            ]
    return pd.concat(stacked, ignore_index=True)


def _with_distinct_recordings(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give recordings of different tables that have one name different names."""
    known: dict[str, dict[str, Any]] = {}
    for part in parts:
        identities = _recording_identities(part)
        renamed = {}
        for name, identity in identities.items():
            candidates = (f"{name}-{number}" for number in count(2))
            new = name
            while not same_info(known.setdefault(new, identity), identity):
                new = next(other for other in candidates if other not in identities)
            if new != name:
                renamed[name] = new
        for key in ("rows", "reasons") if renamed else ():
            if part[key] is not None:
                part[key] = part[key].assign(**{RECORDING: part[key][RECORDING].replace(renamed)})
        if renamed and (listed := _listed(part["info"])) is not None:
            recordings = [
                {**item, RECORDING: renamed.get(item.get(RECORDING, ""), item.get(RECORDING))}
                for item in listed
            ]
            part["info"] = {**part["info"], _LIST: recordings}
    return parts


def _recording_identities(part: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return names of a table's recordings, with what tells equal names of two tables apart."""
    rows = part["rows"]
    if rows is None or RECORDING not in rows:
        return {}
    listed = {item.get(RECORDING): item for item in _listed(part["info"]) or ()}
    names = rows[RECORDING].drop_duplicates().dropna()
    return {
        name: {
            **{key: value for key, value in listed.get(name, {}).items() if key != "rows"},
            "of": str(part["subjects"][row]),
            "at": None if part["sites"] is None else str(part["sites"][row]),
        }
        for row, name in names.items()
    }


def _merge_info(
    infos: Sequence[Mapping[str, Any]], rows: pd.DataFrame | None, subjects: pd.Series
) -> dict[str, Any]:
    """Keep what all agree on; where they differ, each table's values stand in "parts"."""
    listed = [_listed(info) for info in infos]
    recordings = None
    if rows is not None and RECORDING in rows and all(items is not None for items in listed):
        recordings = {item.get(RECORDING): item for items in listed for item in items or ()}
        infos = [{key: info[key] for key in info if key != _LIST} for info in infos]
    shared = {
        key: value
        for key, value in infos[0].items()
        if all(key in info and same_info({"": info[key]}, {"": value}) for info in infos)
    }
    rest = [{key: info[key] for key in info if key not in shared} for info in infos]
    merged = {**shared, "parts": rest} if any(rest) else shared
    if recordings is None:
        return merged
    return recordings_left({**merged, _LIST: list(recordings.values())}, rows, subjects)
