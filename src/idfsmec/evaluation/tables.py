"""Tables of a run: as plain arrays for workers, by digest for keys, described for readers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._columns import split_column
from idfsmec.errors import InputError
from idfsmec.evaluation.chance import ChanceBand, chance_bands
from idfsmec.missing import missingness_association
from idfsmec.montage import channel_positions
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# Rows of a table that are hashed at a time.
_HASHED_ROWS = 2048


@dataclass(frozen=True)
class TableArrays:
    """A FeatureTable as plain arrays: what is sent to workers, once for each."""

    name: str
    digest: str
    X: Floats = field(repr=False)
    y: Codes = field(repr=False)
    subjects: Codes = field(repr=False)
    people: NDArray[np.str_] = field(repr=False)  # their names, which decide folds of channels
    channel_of: Codes = field(repr=False)
    feature_of: Codes = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    channels: tuple[str, ...] = field(repr=False)
    classes: tuple[Any, ...] = field(default=(0, 1), repr=False)
    n_classes: int = 2
    positions: Floats | None = field(default=None, repr=False)
    sites: Codes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, table: FeatureTable, with_positions: bool = False) -> TableArrays:
        """Take a table apart; the digest covers everything that can influence a result."""
        positions = None
        if with_positions:
            montage = table.info.get("montage")
            positions = channel_positions(
                table.channels, montage if isinstance(montage, str) else None
            )
        classes, y = np.unique(table.y.to_numpy(), return_inverse=True)
        people = table.subjects.to_numpy().astype(str)
        _, subjects = np.unique(people, return_inverse=True)
        sites = None
        if table.sites is not None:
            sites = np.unique(table.sites.astype(str).to_numpy(), return_inverse=True)[1]
        order = {channel: i for i, channel in enumerate(table.channels)}
        names = [split_column(str(column))[1] for column in table.X.columns]
        return cls(
            name=name,
            digest=table_digest(table),
            X=np.ascontiguousarray(table.X.to_numpy(dtype=np.float64)),
            y=y.astype(np.intp),
            subjects=subjects.astype(np.intp),
            people=people,
            channel_of=np.array([order[one] for one in table.column_channels], dtype=np.intp),
            feature_of=np.unique(names, return_inverse=True)[1].astype(np.intp),
            columns=tuple(map(str, table.X.columns)),
            channels=tuple(map(str, table.channels)),
            classes=tuple(classes.tolist()),
            n_classes=int(y.max()) + 1,
            positions=positions,
            sites=sites,
        )

    @property
    def has_positions(self) -> bool:
        """Whether it is known of some channels where on the head they are."""
        return self.positions is not None and bool(np.isfinite(self.positions).any())

    def spread_channels(self, count: int) -> tuple[TableArrays, Codes]:
        """Keep so many channels, evenly over the table; also say which columns those are."""
        last = len(self.channels) - 1
        kept = [round(i * last / max(count - 1, 1)) for i in range(count)]
        columns = np.flatnonzero(np.isin(self.channel_of, kept))
        smaller = replace(
            self,
            digest=f"{self.digest}/{count}",
            X=np.ascontiguousarray(self.X[:, columns]),
            channel_of=np.searchsorted(kept, self.channel_of[columns]),
            feature_of=self.feature_of[columns],
            columns=tuple(self.columns[column] for column in columns),
            channels=tuple(self.channels[channel] for channel in kept),
            positions=None if self.positions is None else self.positions[kept],
        )
        return smaller, columns


#: What a run works on, by name.
Arrays = Mapping[str, TableArrays]
#: What a user gives: one table, or several by name.
Tables = FeatureTable | Mapping[str, FeatureTable]


def name_tables(tables: Tables) -> dict[str, FeatureTable]:
    """Give tables by name; a single one is called ``table``."""
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    if not named:
        raise InputError("there are no tables to evaluate")
    return named


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
    found: dict[str, FeatureTable] = {}
    for name, table in name_tables(tables).items():
        known = None if table.rows is None else table.rows.get("condition")
        if known is None or known.isna().all():
            raise InputError(f"table {name}: its rows have no column 'condition'")
        wanted = sorted(known.dropna().unique()) if conditions is None else conditions
        for condition in wanted:
            key = condition if isinstance(tables, FeatureTable) else f"{name} {condition}"
            try:
                found[key] = table.select_conditions([condition])
            except InputError as error:
                raise InputError(f"table {name}: {error}") from error
    return found


def table_digest(table: FeatureTable) -> str:
    """Hash what a table holds: values, columns, labels, subjects, montage, sites, rows and facts.

    Examples
    --------
    >>> import pandas as pd
    >>> X, who = pd.DataFrame({"Fz__power": [1.0, 2.0]}), pd.Series(["a", "b"])
    >>> one, other = (FeatureTable(X * scale, who, who) for scale in (1, 2))
    >>> table_digest(one) == table_digest(other)
    False
    """
    digest = hashlib.sha256()
    values = table.X.to_numpy(dtype=np.float64)
    for first in range(0, len(values), _HASHED_ROWS):  # without a copy of all
        digest.update(values[first : first + _HASHED_ROWS].tobytes())
    for part in (table.X.columns, table.y, table.subjects):
        digest.update("\x1f".join(str(one) for one in part).encode() + b"\x1e")
    digest.update(str(table.info.get("montage", "")).encode())
    # Only where there are any, so that tables without them are still known.
    about = {} if table.rows is None else {str(name): table.rows[name] for name in table.rows}
    if table.sites is not None:
        about["site"] = table.sites
    for name, column in about.items():
        digest.update("\x1f".join([name, *map(str, column)]).encode() + b"\x1e")
    recordings = table.info.get("recordings") or ()
    facts = [one["facts"] for one in recordings if isinstance(one, Mapping) and one.get("facts")]
    digest.update(json.dumps(facts, sort_keys=True).encode() if facts else b"")
    return digest.hexdigest()


def describe_table(table: FeatureTable) -> dict[str, Any]:
    """Describe a table by what JSON can hold.

    Returns
    -------
    dict
        ``channels``, ``features``, ``n_samples``, ``n_subjects``, ``n_classes``, ``labels``
        (samples of each), ``share_missing``, ``montage``, ``gaps_by_class`` (see
        `idfsmec.missing.missingness_by_class`), ``missing_by_recording`` (subjects, channels, and
        the share of samples in which each channel is missing), and where there are sites
        ``sites``: of each, in the order of folds by site, ``site``, ``n_subjects``, ``labels``.
    """
    missing = 1.0 - table.observed.groupby(table.subjects.to_numpy()).mean()
    labels = table.y.value_counts().sort_index()
    return {
        "channels": table.channels,
        "features": table.features,
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "n_classes": int(labels.size),
        "labels": {str(label): int(count) for label, count in labels.items()},
        "share_missing": float(1.0 - table.observed.to_numpy().mean()),
        "montage": table.info.get("montage"),
        "gaps_by_class": missingness_association(table).to_dict("records"),
        "missing_by_recording": {
            "subjects": [str(subject) for subject in missing.index],
            "channels": [str(channel) for channel in missing.columns],
            "share": missing.to_numpy().round(6).tolist(),
        },
        **({} if table.sites is None else {"sites": _describe_sites(table, table.sites)}),
    }


def _describe_sites(table: FeatureTable, sites: pd.Series) -> list[dict[str, Any]]:
    names = sites.astype(str)
    found = []
    for name, own in table.subjects.groupby(names, sort=True):
        people = own.groupby(table.y[own.index]).nunique()
        labels = {str(label): int(n) for label, n in people.items()}
        found.append({"site": str(name), "n_subjects": int(own.nunique()), "labels": labels})
    return found


def table_chance(table: FeatureTable) -> dict[str, Any]:
    """What guessing reaches, by score; with sites also for folds by site.

    Returns
    -------
    dict
        See :func:`~idfsmec.evaluation.chance_bands`; where there are two sites or more,
        ``by_site`` is the same for the mean over sites.
    """
    y, who = table.y.to_numpy(), table.subjects.to_numpy()
    found: dict[str, Any] = _plain_bands(chance_bands(y, who))
    if _n_sites(table) > 1:
        where = np.asarray(table.sites).astype(str)
        found["by_site"] = _plain_bands(chance_bands(y, who, folds=where))
    return found


def has_site_chance(table: FeatureTable, chance: Mapping[str, Any]) -> bool:
    """Whether what is known of chance covers the table's sites, if it has any."""
    return _n_sites(table) < 2 or "by_site" in chance


def _n_sites(table: FeatureTable) -> int:
    return 0 if table.sites is None else int(table.sites.nunique())


def _plain_bands(bands: Mapping[str, ChanceBand]) -> dict[str, Any]:
    return {metric: band.as_dict() for metric, band in bands.items()}


def channel_counts_of(
    tables: Mapping[str, FeatureTable], wanted: Sequence[int] | None, usual: Sequence[int]
) -> dict[str, list[int]]:
    """Say with how many channels each table is used: those wanted, or the usual ones and all."""
    found = {}
    for name, table in tables.items():
        there = len(table.channels)
        counts = list(wanted) if wanted else [*(c for c in usual if c < there), there]
        for count in counts:
            if not 1 <= count <= there:
                raise InputError(f"table {name} has {there} channels, not {count}")
        found[name] = counts
    return found
