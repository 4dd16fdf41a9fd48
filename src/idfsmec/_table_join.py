"""Tables below one another: groups, what is known about rows, and how tables were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._columns import split_column
from idfsmec._table_checks import same_info
from idfsmec._table_files import Parts
from idfsmec._table_reasons import CHANNEL, REASON
from idfsmec._table_rows import EPOCH, RECORDING
from idfsmec.errors import InputError

_LIST = "recordings"


def join_parts(tables: Sequence[Parts]) -> Parts:
    """Put tables below one another, under the union of their channels."""
    tables = _with_own_names(tables)
    X = pd.concat([table.X for table in tables], ignore_index=True, sort=False)
    # Columns a later table adds to a channel go beside the others of that channel.
    channels = [split_column(column)[0] for column in X.columns]
    place = {channel: rank for rank, channel in enumerate(dict.fromkeys(channels))}
    order = np.argsort([place[channel] for channel in channels], kind="stable")
    rows = _stack_rows(tables)
    subjects = _stack([table.subjects for table in tables], "subject")
    return Parts(
        X.iloc[:, order] if (np.diff(order) < 0).any() else X,
        _stack([table.y for table in tables], "label"),
        subjects,
        _merge_info([table.info for table in tables], rows, subjects),
        _stack_sites(tables),
        rows,
        _stack_reasons(tables, list(place)),
    )


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
            {**one, "rows": int(counts[one[RECORDING]])}
            for one in listed
            if one.get(RECORDING) in counts.index
        ]
    else:  # an old table: whose recordings are there is known, how much of them is not
        people = {str(subject) for subject in subjects.unique()}
        kept = [
            {key: value for key, value in one.items() if key != "rows"}
            for one in listed
            if str(one.get("subject")) in people
        ]
    return {**info, _LIST: kept}


def _listed(info: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    listed = info.get(_LIST)
    known = isinstance(listed, list) and all(isinstance(one, Mapping) for one in listed)
    return listed if known else None


def _stack(groups: list[pd.Series], what: str) -> pd.Series:
    if len({group.dtype for group in groups}) > 1:
        kinds = ", ".join(sorted({str(group.dtype) for group in groups}))
        raise InputError(
            f"The tables have {what}s of different types ({kinds}): convert them to one first."
        )
    return pd.concat(groups, ignore_index=True)


def _stack_sites(tables: Sequence[Parts]) -> pd.Series | None:
    sites = [table.sites for table in tables if table.sites is not None]
    if not sites:
        return None
    if len(sites) < len(tables):
        raise InputError(
            "Some of the tables say at which site samples were recorded, others do not: give "
            "sites to all of them, or to none."
        )
    return _stack(sites, "site")


def _stack_rows(tables: Sequence[Parts]) -> pd.DataFrame | None:
    if all(table.rows is None for table in tables):
        return None
    frames = [
        pd.DataFrame(index=range(len(table.X))) if table.rows is None else table.rows
        for table in tables
    ]
    names = dict.fromkeys(name for frame in frames for name in frame)
    stacked = {}
    for name in names:
        columns = [frame.get(name, pd.Series([None] * len(frame))) for frame in frames]
        # As objects, because what one table lacks has no dtype; cleaning finds a common one.
        alike = len({column.dtype for column in columns}) == 1
        values = columns if alike else [column.astype(object) for column in columns]
        stacked[name] = pd.concat(values, ignore_index=True)
    return pd.DataFrame(stacked)


def _stack_reasons(tables: Sequence[Parts], channels: list[str]) -> pd.DataFrame | None:
    """Put reasons below one another, and say of the channels that a table lacks that it does."""
    if all(table.reasons is None for table in tables):
        return None
    stacked = []
    for table in tables:
        if table.reasons is not None:
            stacked.append(table.reasons)
        own = {split_column(column)[0] for column in table.X.columns}
        absent = [channel for channel in channels if channel not in own]
        if absent and table.rows is not None and {RECORDING, EPOCH} <= set(table.rows):
            known = table.rows[[RECORDING, EPOCH]].dropna()
            lacks = [known.assign(**{CHANNEL: one, REASON: "not in the table"}) for one in absent]
            stacked += lacks
    return pd.concat(stacked, ignore_index=True)


def _with_own_names(tables: Sequence[Parts]) -> list[Parts]:
    """Give recordings of different tables that have one name different names."""
    known: dict[str, dict[str, Any]] = {}
    named = []
    for table in tables:
        names = _names_of(table)
        new = {}
        for name, identity in names.items():
            if same_info(known.setdefault(name, identity), identity):
                continue
            tries = (f"{name}-{number}" for number in count(2))
            new[name] = next(
                other
                for other in tries
                if other not in names and same_info(known.setdefault(other, identity), identity)
            )
        named.append(_rename(table, new) if new else table)
    return named


def _names_of(table: Parts) -> dict[str, dict[str, Any]]:
    """Names of a table's recordings, with what tells equal names of two tables apart."""
    if table.rows is None or RECORDING not in table.rows:
        return {}
    known = {one.get(RECORDING): one for one in _listed(table.info) or ()}
    names = table.rows[RECORDING]
    first = np.flatnonzero(names.notna() & ~names.duplicated())
    return {
        names.iloc[row]: {
            **{k: v for k, v in known.get(names.iloc[row], {}).items() if k != "rows"},
            "whose": str(table.subjects.iloc[row]),
            "where": None if table.sites is None else str(table.sites.iloc[row]),
        }
        for row in first.tolist()
    }


def _rename(table: Parts, new: Mapping[str, str]) -> Parts:
    rows, info = table.rows, dict(table.info)
    if rows is not None:
        rows = rows.assign(**{RECORDING: rows[RECORDING].replace(new)})
    if (listed := _listed(info)) is not None:
        info[_LIST] = [
            {**one, RECORDING: new.get(one.get(RECORDING, ""), one.get(RECORDING))}
            for one in listed
        ]
    reasons = table.reasons
    if reasons is not None:
        reasons = reasons.assign(**{RECORDING: reasons[RECORDING].replace(new)})
    return table._replace(rows=rows, info=info, reasons=reasons)


def _merge_info(
    infos: Sequence[Mapping[str, Any]], rows: pd.DataFrame | None, subjects: pd.Series
) -> dict[str, Any]:
    listed = [_listed(info) for info in infos]
    if rows is None or RECORDING not in rows or any(one is None for one in listed):
        return _merge(infos)
    lists = {one.get(RECORDING): one for some in listed for one in some or ()}
    rest = _merge([{key: info[key] for key in info if key != _LIST} for info in infos])
    return recordings_left({**rest, _LIST: list(lists.values())}, rows, subjects)


def _merge(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for info in infos for key in info)
    shared = {
        key: infos[0][key]
        for key in keys
        if all(
            key in info and same_info({"": info[key]}, {"": infos[0].get(key)}) for info in infos
        )
    }
    own = [{key: value for key, value in info.items() if key not in shared} for info in infos]
    return {**shared, "parts": own} if any(own) else shared
