"""Tables of a run: named, identified by a digest, described for readers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Protocol, make_folds
from idfsmec.evaluation.statistics import chance_bands
from idfsmec.evaluation.store import StoredTable
from idfsmec.missing import missingness_association, simulate_missing
from idfsmec.prediction.harmonizer import learn_sites
from idfsmec.prediction.methods import Imputer
from idfsmec.prediction.pipeline import TableArrays
from idfsmec.table import FeatureTable

#: What a user gives: one table, or several by name.
Tables = FeatureTable | Mapping[str, FeatureTable]
# Rows of a table that are hashed at a time.
_HASHED_ROWS = 2048


def name_tables(tables: Tables) -> dict[str, FeatureTable]:
    """Return tables by name; a single one is called ``table``."""
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    if not named:
        raise InputError("there are no tables to evaluate")
    return named


def table_arrays(
    tables: Mapping[str, FeatureTable], imputers: Sequence[Imputer], positions: bool = False
) -> dict[str, TableArrays]:
    """Take tables apart; refuse those whose channels an imputer cannot find on the head."""
    placed = [imputer for imputer in imputers if imputer.needs_positions]
    arrays = {
        name: TableArrays.of(name, table, positions or bool(placed), table_digest(table))
        for name, table in tables.items()
    }
    for name, table in arrays.items():
        if placed and not table.has_positions:
            raise InputError(
                f"table {name}: the imputer {placed[0].name!r} needs to know where channels are "
                f"on the head, and none of {', '.join(table.channels[:3])} ... is known; name a "
                "montage in the table, or choose another imputer",
                argument="imputer",
            )
    return arrays


def by_condition(
    tables: Tables, conditions: Sequence[str] | None = None
) -> dict[str, FeatureTable]:
    """Make a table of each condition, so that one run compares methods in each of them.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        With a column ``condition`` in ``rows``. Samples without a condition are left out.
    conditions : sequence of str, optional
        By default all that a table has.

    Returns
    -------
    dict of str to FeatureTable
        Named by table and condition; a single table that has no name, by condition.

    Examples
    --------
    >>> import pandas as pd
    >>> X, rows = pd.DataFrame({"Fz__a": [1.0, 2.0]}), pd.DataFrame({"condition": ["EO", "EC"]})
    >>> list(by_condition(FeatureTable(X, ["HC", "MDD"], ["s", "t"], rows=rows)))
    ['EC', 'EO']
    """
    parts: dict[str, FeatureTable] = {}
    for name, table in name_tables(tables).items():
        known = None if table.rows is None else table.rows.get("condition")
        if known is None or known.isna().all():
            raise InputError(f"table {name}: its rows have no column 'condition'")
        wanted = sorted(known.dropna().unique()) if conditions is None else conditions
        for condition in wanted:
            key = condition if isinstance(tables, FeatureTable) else f"{name} {condition}"
            try:
                parts[key] = table.select_conditions([condition])
            except InputError as error:
                raise InputError(f"table {name}: {error}") from error
    return parts


def table_digest(table: FeatureTable) -> str:
    """Hash what a table holds: values, columns, labels, subjects, montage, sites, rows, facts."""
    digest = hashlib.sha256()
    values = table.X.to_numpy(dtype=np.float64)
    for start in range(0, len(values), _HASHED_ROWS):  # without a copy of all
        digest.update(values[start : start + _HASHED_ROWS].tobytes())
    for part in (table.X.columns, table.y, table.subjects):
        digest.update("\x1f".join(map(str, part)).encode() + b"\x1e")
    digest.update(str(table.info.get("montage", "")).encode())
    extra = {} if table.rows is None else {str(name): table.rows[name] for name in table.rows}
    if table.sites is not None:
        extra["site"] = table.sites
    for name, column in extra.items():
        digest.update("\x1f".join([name, *map(str, column)]).encode() + b"\x1e")
    recordings = table.info.get("recordings") or ()
    facts = [
        each["facts"] for each in recordings if isinstance(each, Mapping) and each.get("facts")
    ]
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return digest.hexdigest()


def check_tables(tables: Mapping[str, FeatureTable], protocol: Protocol) -> None:
    """Refuse before the first task what would make all tasks fail."""
    for name, table in tables.items():
        try:
            if table.y.nunique() < 2:
                raise InputError(f"all samples have the label {table.y.iloc[0]!r}")
            kind = protocol.folds, protocol.n_splits
            make_folds(table.y, table.subjects, *kind, sites=table.sites)
            if protocol.harmonize:
                learn_sites(table, protocol.harmonize)  # for what it refuses and warns of
            if "region" in protocol.patterns:
                simulate_missing(table, 0.1, "region", 0)
        except InputError as error:
            raise InputError(f"table {name}: {error}", argument=error.argument) from None


def stored_table(name: str, table: FeatureTable, known: StoredTable | None) -> StoredTable:
    """Describe a table for the store, unless the store has it; with what guessing reaches."""
    digest = table_digest(table)
    if known is not None and known.digest == digest:
        return known
    given = table.y.to_numpy(), table.subjects.to_numpy()
    chance: dict[str, Any] = {key: band.as_dict() for key, band in chance_bands(*given).items()}
    if table.sites is not None and len(table.sites.unique()) > 1:
        bands = chance_bands(*given, folds=np.asarray(table.sites).astype(str))
        chance["by_site"] = {key: band.as_dict() for key, band in bands.items()}
    columns = tuple(map(str, table.X.columns))
    return StoredTable(name, digest, columns, describe_table(table), chance)


def describe_table(table: FeatureTable) -> dict[str, Any]:
    """Describe a table by what JSON can hold; sites are in the order of folds by site."""
    missing = 1.0 - table.observed.groupby(table.subjects.to_numpy()).mean()
    labels = table.y.value_counts().sort_index()
    described = {
        "channels": table.channels,
        "features": table.features,
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "n_classes": int(labels.size),
        "labels": {str(label): int(count) for label, count in labels.items()},
        "share_missing": float(1.0 - table.observed.to_numpy().mean()),
        "montage": table.info.get("montage"),
        "missing_by_class": missingness_association(table).to_dict("records"),
        "missing_by_recording": {
            "subjects": [str(subject) for subject in missing.index],
            "channels": [str(channel) for channel in missing.columns],
            "share": missing.to_numpy().round(6).tolist(),
        },
    }
    if table.sites is not None:
        described["sites"] = sites = []
        for name, subjects in table.subjects.groupby(table.sites.astype(str), sort=True):
            counts = subjects.groupby(table.y[subjects.index]).nunique()
            present = {str(label): int(count) for label, count in counts.items()}
            n_subjects = int(subjects.nunique())
            sites.append({"site": str(name), "n_subjects": n_subjects, "labels": present})
    return described
