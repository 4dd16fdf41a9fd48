"""Put feature tables below one another, and keep ``info`` in step with the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pandas as pd

from idfsmec.errors import InputError
from idfsmec.table.checks import CHANNEL, EPOCH, LABEL, REASON, RECORDING, SITE, SUBJECT, same_info
from idfsmec.table.columns import feature_columns, split_column

if TYPE_CHECKING:
    from idfsmec.table.feature_table import FeatureTable

_LIST = "recordings"


def join_tables(
    tables: Sequence[FeatureTable],
) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame | None]:
    """Return columns, info and reasons of tables put below one another."""
    parts = _with_distinct_recordings(tables)
    frames = [frame for frame, _, _ in parts]
    with_sites = sum(SITE in frame for frame in frames)
    if 0 < with_sites < len(frames):
        raise InputError(
            "Some of the tables say at which site samples were recorded, others do not: give "
            "sites to all of them, or to none."
        )
    for what in (SUBJECT, LABEL, SITE)[: 3 if with_sites else 2]:
        kinds = sorted({str(frame[what].dtype) for frame in frames})
        if len(kinds) > 1:
            raise InputError(
                f"The tables have {what}s of different types ({', '.join(kinds)}): convert them "
                "to one first."
            )
    frame = pd.concat(frames, ignore_index=True, sort=False)
    # Columns a later table adds to a channel go beside the others of that channel.
    features = feature_columns(frame)
    channels = list(dict.fromkeys(split_column(column)[0] for column in features))
    features.sort(key=lambda column: channels.index(split_column(column)[0]))
    frame = frame[[*frame.columns.drop(features), *features]]
    reasons = None
    if any(given is not None for _, _, given in parts):
        reasons = _stack_reasons(parts, channels)
    return frame, _merge_info([info for _, info, _ in parts], frame), reasons


def recordings_left(info: Mapping[str, Any], about: pd.DataFrame) -> dict[str, Any]:
    """Keep, of the recordings that ``info`` lists, those that have samples, and count these.

    ``about`` has the columns about rows of a table.
    """
    listed = _listed(info)
    if listed is None:
        return dict(info)
    if RECORDING in about:
        counts = about[RECORDING].value_counts()
        kept = [
            {**recording, "rows": int(counts[recording[RECORDING]])}
            for recording in listed
            if recording.get(RECORDING) in counts.index
        ]
    else:  # an old table: whose recordings are there is known, how much of them is not
        left = {str(subject) for subject in about[SUBJECT].unique()}
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


_Part = tuple[pd.DataFrame, Mapping[str, Any], pd.DataFrame | None]


def _with_distinct_recordings(tables: Sequence[FeatureTable]) -> list[_Part]:
    """Give recordings of different tables that have one name different names."""
    known: dict[str, dict[str, Any]] = {}
    parts = []
    for table in tables:
        frame, info, reasons = table.to_frame(), table.info, table.reasons
        identities = _recording_identities(frame, info)
        renamed = {}
        for name, identity in identities.items():
            candidates = (f"{name}-{number}" for number in count(2))
            new = name
            while not same_info(known.setdefault(new, identity), identity):
                new = next(other for other in candidates if other not in identities)
            if new != name:
                renamed[name] = new
        if renamed:
            frame[RECORDING] = frame[RECORDING].replace(renamed)
            if reasons is not None:
                reasons = reasons.assign(**{RECORDING: reasons[RECORDING].replace(renamed)})
            if (listed := _listed(info)) is not None:
                recordings = [
                    {**item, RECORDING: renamed.get(item.get(RECORDING, ""), item.get(RECORDING))}
                    for item in listed
                ]
                info = {**info, _LIST: recordings}
        parts.append((frame, info, reasons))
    return parts


def _recording_identities(
    frame: pd.DataFrame, info: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return names of a table's recordings, with what tells equal names of two tables apart."""
    if RECORDING not in frame:
        return {}
    listed = {item.get(RECORDING): item for item in _listed(info) or ()}
    first = frame.dropna(subset=[RECORDING]).drop_duplicates(RECORDING)
    return {
        line[RECORDING]: {
            **{k: v for k, v in listed.get(line[RECORDING], {}).items() if k != "rows"},
            "of": str(line[SUBJECT]),
            "at": str(line[SITE]) if SITE in frame else None,
        }
        for line in first.to_dict("records")
    }


def _stack_reasons(parts: list[_Part], channels: list[str]) -> pd.DataFrame:
    """Put reasons below one another, and say of the channels that a table lacks that it does."""
    stacked = []
    for frame, _, reasons in parts:
        if reasons is not None:
            stacked.append(reasons)
        if {RECORDING, EPOCH} <= set(frame):
            present = {split_column(column)[0] for column in feature_columns(frame)}
            known = frame[[RECORDING, EPOCH]].dropna()
            stacked += [
                known.assign(**{CHANNEL: channel, REASON: "not in the table"})
                for channel in channels
                if channel not in present
            ]
    return pd.concat(stacked, ignore_index=True)


def _merge_info(infos: Sequence[Mapping[str, Any]], frame: pd.DataFrame) -> dict[str, Any]:
    """Keep what all agree on; where they differ, each table's values stand in "parts"."""
    listed = [_listed(info) for info in infos]
    recordings = None
    if RECORDING in frame and all(items is not None for items in listed):
        recordings = {item.get(RECORDING): item for items in listed for item in items or ()}
        infos = [{key: info[key] for key in info if key != _LIST} for info in infos]
    shared = {
        key: value
        for key, value in infos[0].items()
        if all(key in info and same_info(info[key], value) for info in infos)
    }
    rest = [{key: info[key] for key in info if key not in shared} for info in infos]
    merged = {**shared, "parts": rest} if any(rest) else shared
    if recordings is None:
        return merged
    return recordings_left({**merged, _LIST: list(recordings.values())}, frame)
