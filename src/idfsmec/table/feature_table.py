"""FeatureTable: features of EEG channels by sample, with labels, subjects and sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
from idfsmec.table.checks import (
    CHANNEL,
    CONDITION,
    EPOCH,
    LABEL,
    REASON,
    RECORDING,
    SITE,
    SUBJECT,
    clean_features,
    clean_groups,
    clean_info,
    clean_reasons,
    clean_rows,
    same_info,
    warn_of_two_sites,
)
from idfsmec.table.columns import channel_columns, feature_columns, observed_channels, split_column
from idfsmec.table.files import read_table, write_table

_LIST = "recordings"  # in ``info``: one mapping for each


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
        Labels: text, integers, booleans or numbers, none missing.
    subjects : Series of shape (n_samples,)
        Who each sample comes from: the groups that folds must not tear apart.
    info : mapping, optional
        How the table was made: sampling rate, bands, montage and the like. Holds what JSON
        can hold, so every file format gives it back unchanged (tuples come back as lists).
        Of ``info["recordings"]``, one mapping for each recording, those stay that have samples.
    sites : Series of shape (n_samples,), optional
        The hospital of each sample.
    rows : DataFrame of shape (n_samples, n_columns), optional
        What else is known about each sample: ``recording`` (a name), ``session``,
        ``condition``, ``epoch`` (its number in the recording), ``onset`` (in seconds), and age,
        sex or whatever the study knows.
    reasons : DataFrame, optional
        Why channels are missing, with the columns ``recording``, ``epoch``, ``channel`` and
        ``reason``; a cell may have several. Those of rows and channels that are not in the
        table are left out. Files keep them beside the table.

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
    sites: pd.Series | None = field(default=None, kw_only=True)
    rows: pd.DataFrame | None = field(default=None, kw_only=True)
    reasons: pd.DataFrame | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        X = clean_features(self.X)
        index = self.X.index
        subjects = clean_groups(self.subjects, SUBJECT, index)
        X.index = pd.Index(subjects, name=SUBJECT)
        for name, value in {
            "X": X,
            "y": clean_groups(self.y, LABEL, index),
            "subjects": subjects,
            "info": clean_info(self.info),
            "sites": None if self.sites is None else clean_groups(self.sites, SITE, index),
            "rows": clean_rows(self.rows, index),
        }.items():
            object.__setattr__(self, name, value)
        reasons = clean_reasons(self.reasons, self.rows, self.channels)
        object.__setattr__(self, "reasons", reasons)

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
        _, columns = channel_columns(self.column_channels, self.X.shape[1], None)
        return pd.DataFrame(observed_channels(self.X.to_numpy(), columns), columns=self.channels)

    @property
    def conditions(self) -> list[str]:
        """Conditions that rows are known to have, sorted."""
        known = None if self.rows is None else self.rows.get(CONDITION)
        return [] if known is None else sorted(map(str, known.dropna().unique()))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        counts = self.y.value_counts().sort_index()
        labels = ", ".join(f"{label}: {count}" for label, count in counts.items())
        if len(counts) > 6:
            labels = f"of {len(counts)} kinds"
        missing = 1 - self.observed.to_numpy().mean()
        sites = "" if self.sites is None else f" at {self.sites.nunique()} sites"
        return (
            f"FeatureTable({len(self)} samples of {self.subjects.nunique()} subjects{sites}; "
            f"{len(self.channels)} channels x {len(self.features)} features; labels {labels}; "
            f"{missing:.1%} missing)"
        )

    def equals(self, other: object) -> bool:
        """Whether another table is the same in everything; NaN equals NaN."""
        return (
            isinstance(other, FeatureTable)
            and self.to_frame().equals(other.to_frame())
            and same_info(self.info, other.info)
            and pd.DataFrame(self.reasons).equals(pd.DataFrame(other.reasons))
        )

    @classmethod
    def _from_frame(
        cls, frame: pd.DataFrame, info: Mapping[str, Any], reasons: pd.DataFrame | None = None
    ) -> FeatureTable:
        """Make a table of the columns that :meth:`to_frame` gives."""
        features = feature_columns(frame)
        rows = frame.drop(columns=[SUBJECT, LABEL, SITE, *features], errors="ignore")
        about: dict[str, Any] = {"sites": frame.get(SITE), "rows": rows, "reasons": reasons}
        return cls(frame[features], frame[LABEL], frame[SUBJECT], info, **about)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> FeatureTable:
        """Read a table from Parquet (``.parquet``) or CSV (``.csv``, ``.csv.gz``).

        The file has the columns ``subject``, ``label``, optionally ``site`` and others that say
        something about rows, then the features; it may come from :meth:`write`, or from R,
        pandas or a spreadsheet. In CSV files made by hand, subjects are read as text, labels as
        integers where all of them are, and commas, semicolons and tabs all part the cells.
        Warns of a subject at two sites, who is one subject here.
        """
        try:
            table = cls._from_frame(*read_table(Path(path)))
        except InputError as error:
            named = str(error).startswith(str(path))
            raise InputError(str(error) if named else f"{path}: {error}") from error.__cause__
        warn_of_two_sites(table.subjects, table.sites)
        return table

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the table to Parquet (``.parquet``) or CSV (``.csv``, ``.csv.gz``).

        Reading it back gives the very same table. A CSV file gets a companion
        ``<file name>.info.json`` with what CSV has no place for: ``info`` and dtypes. Reasons
        why channels are missing go into ``<file name>.reasons.tsv.gz``. The files are written
        beside and renamed, so no half table is ever read.

        Returns
        -------
        Path
            Where the table is now.
        """
        path = Path(path)
        write_table(path, self)
        return path

    def to_frame(self) -> pd.DataFrame:
        """Return one DataFrame: subject, label, site, what is known about rows, then features.

        Examples
        --------
        >>> import pandas as pd
        >>> FeatureTable(pd.DataFrame({"O2__alpha": [0.1, 0.3]}), [0, 1], ["a", "b"]).to_frame()
          subject  label  O2__alpha
        0       a      0        0.1
        1       b      1        0.3
        """
        about = pd.DataFrame({SUBJECT: self.subjects, LABEL: self.y})
        if self.sites is not None:
            about[SITE] = self.sites
        known = [] if self.rows is None else [self.rows]
        return pd.concat([about, *known, self.X.reset_index(drop=True)], axis=1)

    def __getitem__(self, column: str) -> pd.Series:
        """Return one feature, indexed by subject, such as ``table["O2__alpha"]``."""
        _known_names([column], self.X.columns, "column")
        return self.X[column]

    def by_subject(self) -> FeatureTable:
        """Return a table with one row per subject: the means of the samples that have a channel.

        A subject with samples of several labels or sites has a row for each. Of what is known
        about rows, what is the same in all samples of a row stays, such as age and sex.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"O2__alpha": [0.1, 0.3, 0.5]})
        >>> FeatureTable(X, [0, 0, 1], ["a", "a", "b"]).by_subject().X
                 O2__alpha
        subject
        a              0.2
        b              0.5
        """
        frame = self.to_frame()
        keys = [name for name in (SUBJECT, LABEL, SITE) if name in frame]
        groups = frame.groupby(keys, sort=False)
        about = [] if self.rows is None else self.rows.columns.tolist()
        alike = [name for name in about if groups[name].nunique(dropna=False).le(1).all()]
        first = frame.loc[groups.head(1).index, [*keys, *alike]].reset_index(drop=True)
        means = groups[list(self.X)].mean().reset_index(drop=True)
        return self._from_frame(pd.concat([first, means], axis=1), self.info)

    def take(self, rows: Sequence[int] | Sequence[bool] | np.ndarray | pd.Series) -> FeatureTable:
        """Keep some samples, by position or mask, such as ``table.subjects.isin(["s01"])``."""
        chosen = np.asarray(rows)
        if chosen.size == 0:
            raise InputError("No samples are left.")
        frame = self.to_frame().iloc[chosen].reset_index(drop=True)
        return self._from_frame(frame, _recordings_left(self.info, frame), self.reasons)

    def select_channels(self, channels: Iterable[str]) -> FeatureTable:
        """Keep some channels, in the order given.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"Fp1__mean": [0.1], "Fp2__mean": [0.3]})
        >>> FeatureTable(X, pd.Series(["HC"]), pd.Series(["a"])).select_channels(["Fp2"]).channels
        ['Fp2']
        """
        wanted = _known_names(channels, self.channels, "channel")
        of = np.array(self.column_channels, dtype=object)
        order = np.concatenate([np.flatnonzero(of == channel) for channel in wanted])
        return replace(self, X=self.X.iloc[:, order])

    def select_conditions(self, conditions: Iterable[str]) -> FeatureTable:
        """Keep the samples of some conditions, by ``rows["condition"]``; rows stay in order."""
        rows = pd.DataFrame() if self.rows is None else self.rows
        known = rows.get(CONDITION, pd.Series([None] * len(self)))
        wanted = _known_names(conditions, known.dropna(), "condition")
        return self.take(known.isin(wanted).to_numpy())

    @classmethod
    def concat(cls, tables: Iterable[FeatureTable]) -> FeatureTable:
        """Put tables below one another.

        The channels are the union of all; a channel that a table lacks is missing in its
        rows. Of ``info``, what all tables agree on is kept; where they differ, each table's
        own values stand in the list ``info["parts"]``; ``info["recordings"]`` has those of all.
        Recordings of different tables that have one name get different ones.

        Examples
        --------
        >>> import pandas as pd
        >>> first = FeatureTable(pd.DataFrame({"Fp1__mean": [0.1]}), ["HC"], ["a"])
        >>> second = FeatureTable(pd.DataFrame({"Fp2__mean": [0.3]}), ["MDD"], ["b"])
        >>> FeatureTable.concat([first, second]).X
                 Fp1__mean  Fp2__mean
        subject
        a              0.1        NaN
        b              NaN        0.3
        """
        tables = list(tables)
        if not tables:
            raise InputError("There are no tables to put together.")
        table = cls._from_frame(*_join_tables(tables))
        warn_of_two_sites(table.subjects, table.sites)
        return table


def _known_names(names: Iterable[Any], known: Iterable[Any], what: str) -> list[Any]:
    """Return each name once; refuse those that a table does not have."""
    if isinstance(names, str):
        raise InputError(f"Give the {what}s as a list, such as [{names!r}].")
    wanted, known = list(dict.fromkeys(names)), list(dict.fromkeys(known))
    for name in wanted:
        if name not in known:
            near = get_close_matches(str(name), map(str, known), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"The table has no {what} {name!r}.{hint}")
    return wanted


# --- tables below one another ---------------------------------------------------------------


def _join_tables(
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


def _recordings_left(info: Mapping[str, Any], about: pd.DataFrame) -> dict[str, Any]:
    """Keep, of the recordings that ``info`` lists, those that have samples, and count these.

    ``about`` has the columns about rows of a table.
    """
    listed = _listed(info)
    if listed is None:
        return dict(info)
    if RECORDING not in about:  # an old table does not say which recordings are left
        return {key: value for key, value in info.items() if key != _LIST}
    counts = about[RECORDING].value_counts()
    kept = [
        {**recording, "rows": int(counts[recording[RECORDING]])}
        for recording in listed
        if recording.get(RECORDING) in counts.index
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
    return _recordings_left({**merged, _LIST: list(recordings.values())}, frame)
