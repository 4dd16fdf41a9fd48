"""FeatureTable: samples by channel features, the one thing handed from room to room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._columns import split_column
from idfsmec._table_checks import (
    SUBJECT,
    clean_features,
    clean_groups,
    clean_info,
    same_info,
)
from idfsmec._table_files import read_parts, write_parts
from idfsmec.errors import InputError

__all__ = ["FeatureTable"]

# Rows and columns of the map in notebooks; larger tables are shown by their first ones.
_MOST_SUBJECTS, _MOST_CHANNELS = 60, 128
_CELL = 6
_WIDEST_CELL, _WIDTH = 30, 240  # few channels get wide cells


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Features of EEG channels, one row per sample, with labels and subjects.

    Samples keep their order, whatever index came in. The rows of ``X`` are indexed by their
    subjects (the index is named ``subject``), which thus reach our estimators inside
    ``cross_val_score`` and ``GridSearchCV`` too; ``y`` and ``subjects`` are numbered
    0 ... n_samples - 1. Everything is checked when a table is made, so whoever gets one need not.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Columns are named ``<channel>__<feature>``; the last ``__`` parts the two. NaN means
        that the channel is missing in that sample. Kept as float64.
    y : Series of shape (n_samples,)
        Labels: text, integers, booleans or numbers, without gaps.
    subjects : Series of shape (n_samples,)
        Who each sample comes from: the groups that folds must not tear apart.
    info : mapping, optional
        How the table was made: sampling rate, bands, montage and the like. Holds what JSON
        can hold, so every file format gives it back unchanged (tuples come back as lists).

    Raises
    ------
    InputError
        Where something is wrong; the message names the column or the row.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"Fp1__mean": [0.1, 0.2], "Fp2__mean": [0.3, float("nan")]})
    >>> table = FeatureTable(X, pd.Series(["MDD", "HC"]), pd.Series(["02010002", "02020008"]))
    >>> table
    FeatureTable(2 samples of 2 subjects; 2 channels x 1 features; labels HC: 1, MDD: 1;
    25.0% missing)
    >>> table.channels
    ['Fp1', 'Fp2']
    >>> table.observed
        Fp1    Fp2
    0  True   True
    1  True  False
    """

    X: pd.DataFrame
    y: pd.Series
    subjects: pd.Series
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        X = clean_features(self.X)
        y, subjects = (
            clean_groups(values, what, self.X.index)
            for values, what in ((self.y, "label"), (self.subjects, "subject"))
        )
        X.index = pd.Index(subjects, name=SUBJECT)
        for name, value in {
            "X": X,
            "y": y,
            "subjects": subjects,
            "info": clean_info(self.info),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def column_channels(self) -> list[str]:
        """The channel of each column of ``X``: what selectors take as ``channels``."""
        return [split_column(column)[0] for column in self.X.columns]

    @property
    def channels(self) -> list[str]:
        """Channel names, each once, in the order of the columns."""
        return list(dict.fromkeys(self.column_channels))

    @property
    def features(self) -> list[str]:
        """Feature names without channels, each once, in the order of the columns."""
        return list(dict.fromkeys(split_column(column)[1] for column in self.X.columns))

    @property
    def observed(self) -> pd.DataFrame:
        """Which channel is there in which sample: bool, of shape (n_samples, n_channels).

        A channel with some of its features missing in a sample counts as missing there.
        """
        codes, channels = pd.factorize(np.array(self.column_channels, dtype=object))
        present = self.X.notna().to_numpy()
        seen = [present[:, codes == code].all(axis=1) for code in range(len(channels))]
        return pd.DataFrame(np.column_stack(seen), columns=pd.Index(list(channels)))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        counts = self.y.value_counts().sort_index()
        labels = ", ".join(f"{label}: {count}" for label, count in counts.items())
        if len(counts) > 6:
            labels = f"of {len(counts)} kinds"
        missing = 1 - self.observed.to_numpy().mean()
        return (
            f"FeatureTable({len(self)} samples of {self.subjects.nunique()} subjects; "
            f"{len(self.channels)} channels x {len(self.features)} features; labels {labels}; "
            f"{missing:.1%} missing)"
        )

    def _repr_html_(self) -> str:
        return _table_html(self)

    def equals(self, other: object) -> bool:
        """Whether another table is the same in everything; NaN equals NaN."""
        return (
            isinstance(other, FeatureTable)
            and self.X.equals(other.X)
            and self.y.equals(other.y)
            and self.subjects.equals(other.subjects)
            and same_info(self.info, other.info)
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> FeatureTable:
        """Read a table from Parquet (``.parquet``) or CSV (``.csv``, ``.csv.gz``).

        The file has the columns ``subject``, ``label``, then the features; it may come from
        :meth:`write`, or from R, pandas or a spreadsheet. In CSV files made by hand, subjects
        are read as text, labels as integers where all of them are, and commas, semicolons and
        tabs all part the cells.
        """
        X, y, subjects, info = read_parts(Path(path))
        try:
            return cls(X, y, subjects, info)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the table to Parquet (``.parquet``) or CSV (``.csv``, ``.csv.gz``).

        Reading it back gives the very same table. A CSV file gets a companion
        ``<file name>.info.json`` with what CSV has no place for: ``info`` and dtypes. The
        files are written beside and renamed, so nobody ever sees half a table.

        Returns
        -------
        Path
            Where the table is now.
        """
        path = Path(path)
        write_parts(path, (self.X, self.y, self.subjects, dict(self.info)))
        return path

    def take(self, rows: Sequence[int] | Sequence[bool] | np.ndarray) -> FeatureTable:
        """Keep some samples, given by their positions or by a mask."""
        chosen = np.asarray(rows)
        if chosen.size == 0:
            raise InputError("No samples are left.")
        y, subjects = (
            part.iloc[chosen].reset_index(drop=True) for part in (self.y, self.subjects)
        )
        return replace(self, X=self.X.iloc[chosen], y=y, subjects=subjects)

    def select_channels(self, channels: Iterable[str]) -> FeatureTable:
        """Keep some channels, in the order given.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"Fp1__mean": [0.1], "Fp2__mean": [0.3]})
        >>> FeatureTable(X, pd.Series(["HC"]), pd.Series(["a"])).select_channels(["Fp2"]).channels
        ['Fp2']
        """
        wanted = _each_once(channels, "channel")
        _refuse_unknown(wanted, self.channels, "channel")
        of_channel: dict[str, list[str]] = {channel: [] for channel in wanted}
        for column, channel in zip(self.X.columns, self.column_channels, strict=True):
            if channel in of_channel:
                of_channel[channel].append(column)
        return replace(self, X=self.X[[c for columns in of_channel.values() for c in columns]])

    def select_features(self, features: Iterable[str]) -> FeatureTable:
        """Keep some kinds of features of every channel; columns stay in their order."""
        wanted = _each_once(features, "feature")
        _refuse_unknown(wanted, self.features, "feature")
        return replace(self, X=self.X[[c for c in self.X if split_column(str(c))[1] in wanted]])

    def select_subjects(self, subjects: Iterable[Any]) -> FeatureTable:
        """Keep the samples of some subjects; rows stay in their order."""
        wanted = _each_once(subjects, "subject")
        _refuse_unknown(wanted, self.subjects.unique().tolist(), "subject")
        return self.take(self.subjects.isin(wanted).to_numpy())

    @classmethod
    def concat(cls, tables: Iterable[FeatureTable]) -> FeatureTable:
        """Put tables below one another.

        The channels are the union of all; a channel that a table lacks is missing in its
        rows. Of ``info``, what all tables agree on is kept; where they differ, each table's
        own values stand in the list ``info["parts"]``.

        Examples
        --------
        >>> import pandas as pd
        >>> one = FeatureTable(pd.DataFrame({"Fp1__mean": [0.1]}), ["HC"], ["a"])
        >>> two = FeatureTable(pd.DataFrame({"Fp2__mean": [0.3]}), ["MDD"], ["b"])
        >>> FeatureTable.concat([one, two]).X
                 Fp1__mean  Fp2__mean
        subject
        a              0.1        NaN
        b              NaN        0.3
        """
        parts = list(tables)
        if not parts:
            raise InputError("There are no tables to put together.")
        X = pd.concat([part.X for part in parts], ignore_index=True, sort=False)
        # Columns a later table adds to a channel go beside the others of that channel.
        channels = [split_column(column)[0] for column in X.columns]
        place = {channel: rank for rank, channel in enumerate(dict.fromkeys(channels))}
        order = np.argsort([place[channel] for channel in channels], kind="stable")
        return cls(
            X.iloc[:, order] if (np.diff(order) < 0).any() else X,
            _stack([part.y for part in parts], "label"),
            _stack([part.subjects for part in parts], "subject"),
            _merge_info([part.info for part in parts]),
        )


def _each_once(names: Iterable[Any], what: str) -> list[Any]:
    if isinstance(names, str):
        raise InputError(f"Give the {what}s as a list, such as [{names!r}].")
    return list(dict.fromkeys(names))


def _refuse_unknown(wanted: list[Any], known: list[Any], what: str) -> None:
    for name in wanted:
        if name not in known:
            near = get_close_matches(str(name), [str(one) for one in known], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"The table has no {what} {name!r}.{hint}")


def _stack(groups: list[pd.Series], what: str) -> pd.Series:
    if len({group.dtype for group in groups}) > 1:
        kinds = ", ".join(sorted({str(group.dtype) for group in groups}))
        raise InputError(
            f"The tables have {what}s of different types ({kinds}): convert them to one first."
        )
    return pd.concat(groups, ignore_index=True)


def _merge_info(infos: list[Mapping[str, Any]]) -> dict[str, Any]:
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


def _table_html(table: FeatureTable) -> str:
    """Show a table in a notebook: no scripts, and all names escaped."""
    observed = table.observed
    missing = 1.0 - float(observed.to_numpy().mean()) if observed.size else 0.0
    counts = table.y.value_counts()
    labels = ", ".join(f"{escape(str(label))} {count}" for label, count in counts.items())
    facts = {
        "samples": str(len(table.X)),
        "subjects": str(table.subjects.nunique()),
        "labels": labels,
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
