"""FeatureTable: features of EEG channels by sample, with labels, subjects and sites."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from idfsmec.errors import InputError, find_name
from idfsmec.table.columns import (
    CONDITION,
    EPOCH,
    KNOWN,
    LABEL,
    LINE,
    ONSET,
    RECORDING,
    SEPARATOR,
    SESSION,
    SITE,
    SUBJECT,
    TEXT,
    channel_columns,
    clean_columns,
    feature_columns,
    observed_channels,
    refuse_alike,
    split_column,
)
from idfsmec.table.files import read_in_pieces, read_table, refuse_large_folder, write_table
from idfsmec.table.target import Target, ordered_labels, score_column, target_of

CHANNEL, REASON = "channel", "reason"
REASON_COLUMNS = [RECORDING, EPOCH, CHANNEL, REASON]
# Columns of a file that are not in ``rows``.
_GIVEN_AS = {SUBJECT: "subjects=", LABEL: "y=", SITE: "sites="}
_LIST = "recordings"  # in ``info``: one mapping for each
_NUMBERS = ("integer", "floating", "mixed-integer-float")
#: What is said where a table is given as X.
NOT_X = (
    "a FeatureTable is not X: give its samples and labels, fit(table.X, table.y); the index of "
    "table.X holds the subjects."
)
_TEXT_DTYPE = pd.Series(["text"]).dtype


def refuse_table(X: object) -> None:
    """Refuse a table as X: scikit-learn knows X, y and groups, and nothing that holds all."""
    if isinstance(X, FeatureTable):
        raise InputError(NOT_X)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Features of EEG channels, one row per sample, with labels and subjects.

    Samples keep their order, whatever index came in. The rows of ``X`` are indexed by their
    subjects (the index is named ``subject``), which thus reach our estimators inside
    ``cross_val_score`` and ``GridSearchCV`` too; ``y`` and ``subjects`` are numbered
    0 ... n_samples - 1. Everything is checked when a table is made.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Columns are named ``<channel>__<feature>``; the last ``__`` separates the two. NaN means
        that the channel is missing in that sample. Kept as float64.
    y : Series of shape (n_samples,)
        Labels: text, integers, booleans or numbers, none missing; or a score, see
        :meth:`with_target`.
    subjects : Series of shape (n_samples,)
        The subject of each sample: folds keep samples of a subject together.
    info : mapping, optional
        How the table was made: sampling rate, bands, montage and the like. Holds what JSON
        can hold, so every file format gives it back unchanged (tuples come back as lists).
        Of ``info["recordings"]``, one mapping for each recording, those stay that have samples.
    sites : Series of shape (n_samples,), optional
        The hospital of each sample.
    rows : DataFrame of shape (n_samples, n_columns), optional
        What else is known about each sample: ``recording`` (a name), ``session``, ``condition``,
        ``epoch`` (its number in the recording), ``onset`` (in seconds), and others such as age and
        sex.
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
            "info": _clean_recordings(clean_info(dict(self.info))),
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
        """Whether each channel is observed in each sample: bool, shape (n_samples, n_channels).

        A channel with some of its features missing in a sample counts as missing there.
        """
        _, columns = channel_columns(self.column_channels, self.X.shape[1], None)
        return pd.DataFrame(observed_channels(self.X.to_numpy(), columns), columns=self.channels)

    @property
    def target(self) -> Target:
        """What is predicted: classes, a score or grades, as ``info["target"]`` says.

        More than ten different numbers as labels are refused until :meth:`with_target` or
        :meth:`with_order` says what they are.
        """
        return target_of(self.info, self.y)

    @property
    def scores(self) -> pd.Series:
        """A score, or the place of each grade from 0, indexed by subject as ``X`` is."""
        target = self.target
        if not target.is_numeric:
            raise InputError("the labels of the table are classes, which are no numbers")
        return pd.Series(target.numbers(self.y), self.X.index, name=target.name)

    @property
    def targets(self) -> np.ndarray:
        """What estimators take as ``y``: class labels, or :attr:`scores`."""
        return (self.scores if self.target.is_numeric else self.y).to_numpy()

    def with_target(self, column: str) -> FeatureTable:
        """Return the table with a column of numbers, such as ``"bdi"``, as its score ``y``.

        Samples without a score are left out, with a warning that counts participants. The labels
        that the table had stay in ``rows["diagnosis"]``. ``"label"`` takes numeric labels as a
        score.

        Examples
        --------
        >>> import pandas as pd
        >>> X, bdi = pd.DataFrame({"O2__alpha": [0.1, 0.3]}), pd.DataFrame({"bdi": [4, 21]})
        >>> table = FeatureTable(X, ["HC", "MDD"], ["a", "b"], rows=bdi).with_target("bdi")
        >>> table.y.tolist(), table.target.kind
        ([4, 21], 'score')
        """
        score, rows, known, target = score_column(self.y, self.subjects, self.rows, str(column))
        info = {**self.info, **target.info()}
        table = replace(self, y=score.where(known, 0.0), rows=rows, info=info)
        return table if known.all() else table.take(known)

    def with_order(self, grades: Sequence[str]) -> FeatureTable:
        """Return the table with its labels as grades, from the lowest to the highest.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"O2__alpha": [0.1, 0.3]})
        >>> table = FeatureTable(X, ["mild", "HC"], ["a", "b"]).with_order(["HC", "mild"])
        >>> table.scores.tolist()
        [1.0, 0.0]
        """
        labels, target = ordered_labels(self.y, grades)
        return replace(self, y=labels, info={**self.info, **target.info()})

    @property
    def conditions(self) -> list[str]:
        """Conditions that rows are known to have, sorted."""
        known = None if self.rows is None else self.rows.get(CONDITION)
        return [] if known is None else sorted(map(str, known.dropna().unique()))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        counts = self.y.value_counts().sort_index()
        labels = "labels " + ", ".join(f"{label}: {count}" for label, count in counts.items())
        if known := self.info.get("target"):
            labels = f"{known['kind']} {known['name']} from {self.y.min()} to {self.y.max()}"
            if known["order"]:
                labels = f"grades {' < '.join(known['order'])}"
        elif len(counts) > 6:
            labels = f"labels of {len(counts)} kinds"
        missing = 1 - self.observed.to_numpy().mean()
        sites = "" if self.sites is None else f" at {self.sites.nunique()} sites"
        return (
            f"FeatureTable({len(self)} samples of {self.subjects.nunique()} subjects{sites}; "
            f"{len(self.channels)} channels x {len(self.features)} features; {labels}; "
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
        optional: dict[str, Any] = {"sites": frame.get(SITE), "rows": rows, "reasons": reasons}
        return cls(frame[features], frame[LABEL], frame[SUBJECT], info, **optional)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> FeatureTable:
        """Read a table from Parquet (``.parquet``), CSV (``.csv``, ``.csv.gz``) or a folder.

        The Parquet files of a folder are put below one another, as by :meth:`concat`. A file has
        the columns ``subject``, ``label``, optionally ``site`` and others that describe rows, then
        the features; it may come from :meth:`write`, or from R, pandas or a spreadsheet. In CSV
        files made by hand, subjects are read as text, labels as integers where all of them are,
        and commas, semicolons or tabs separate the cells. Warns of a subject at two sites, who is
        one subject here.
        """
        path = Path(path)
        if path.is_dir():
            return cls.concat([cls.read(file) for file in refuse_large_folder(path)])
        try:
            table = cls._from_frame(*read_table(path))
        except InputError as error:
            named = str(error).startswith(str(path))
            raise InputError(str(error) if named else f"{path}: {error}") from error.__cause__
        warn_of_two_sites(table.subjects, table.sites)
        return table

    @classmethod
    def read_by_subject(
        cls, path: str | PathLike[str], conditions: Iterable[str] = ()
    ) -> FeatureTable:
        """Read the means of each subject, some rows at a time: the table may exceed the memory.

        Parameters
        ----------
        path : path-like
            As in :meth:`read`.
        conditions : iterable of str
            Conditions whose samples are used, by default all.

        Returns
        -------
        FeatureTable
            What :meth:`by_subject` gives for the whole table, without reasons.
        """
        path, wanted, alike = Path(path), [*conditions], list[str]()
        sums: list[pd.DataFrame] = []
        counts: list[pd.DataFrame] = []
        facts: list[pd.DataFrame] = []
        infos: list[dict[str, Any]] = []
        for piece, info in read_in_pieces(path):
            infos += [] if infos and infos[-1] is info else [info]
            table = cls._from_frame(piece, {})
            if wanted:
                known = pd.DataFrame() if table.rows is None else table.rows
                here = known.get(CONDITION, pd.Series("", table.y.index)).isin(wanted).to_numpy()
                if not here.any():
                    continue
                table = table.take(here)
            frame = table.to_frame()
            keys = [name for name in (SUBJECT, LABEL, SITE) if name in frame]
            groups = frame.groupby(keys, sort=False)
            sums.append(groups[list(table.X)].sum())
            counts.append(groups[list(table.X)].count())
            known = frame.drop(columns=table.X.columns)
            alike = _alike(known[[name for name in known if name in alike or not facts]], keys)
            facts.append(known[alike].drop_duplicates())
        if not facts:
            raise InputError(f"{path}: has no samples of {' and '.join(map(repr, wanted))}.")
        known = pd.concat([part[alike] for part in facts], ignore_index=True).drop_duplicates()
        known = known[_alike(known, keys)].drop_duplicates().reset_index(drop=True)
        total, number = (
            pd.concat(parts).groupby(level=keys, sort=False).sum() for parts in (sums, counts)
        )
        means = (total / number).reset_index(drop=True)
        frame = pd.concat([known, means], axis=1)
        return cls._from_frame(frame, _merge_info(infos, frame))

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the table to Parquet (``.parquet``) or CSV (``.csv``, ``.csv.gz``).

        Reading it back gives the same table. A CSV file gets a companion ``<file name>.info.json``
        with ``info`` and dtypes, which CSV cannot hold. Reasons why channels are missing go into
        ``<file name>.reasons.tsv.gz``. Files are renamed when they are complete, so no half table
        is ever read.

        Returns
        -------
        Path
            Where the table is now.
        """
        path = Path(path)
        write_table(path, self)
        return path

    def to_frame(self) -> pd.DataFrame:
        """Return one DataFrame: subject, label, site, columns about rows, then features.

        Examples
        --------
        >>> import pandas as pd
        >>> FeatureTable(pd.DataFrame({"O2__alpha": [0.1, 0.3]}), [0, 1], ["a", "b"]).to_frame()
          subject  label  O2__alpha
        0       a      0        0.1
        1       b      1        0.3
        """
        labelled = pd.DataFrame({SUBJECT: self.subjects, LABEL: self.y})
        if self.sites is not None:
            labelled[SITE] = self.sites
        known = [] if self.rows is None else [self.rows]
        return pd.concat([labelled, *known, self.X.reset_index(drop=True)], axis=1)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be taken for samples, also by scikit-learn's own estimators."""
        raise InputError(NOT_X)

    def __getitem__(self, column: str) -> pd.Series:
        """Return one feature, indexed by subject, such as ``table["O2__alpha"]``."""
        if not isinstance(column, str):  # scikit-learn's splitters ask a sequence for its rows
            raise InputError(NOT_X)
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
        alike = _alike(frame.drop(columns=self.X.columns), keys)
        first = frame.loc[groups.head(1).index, alike].reset_index(drop=True)
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
        tables = _with_distinct_recordings(tables)
        if not tables:
            raise InputError("There are no tables to put together.")
        frames = [table.to_frame() for table in tables]
        with_sites = sum(SITE in frame for frame in frames)
        if 0 < with_sites < len(frames):
            raise InputError(
                "Some tables have sites and others do not: give sites to all of them, or to none."
            )
        for what in (SUBJECT, LABEL, SITE)[: 3 if with_sites else 2]:
            kinds = sorted({str(frame[what].dtype) for frame in frames})
            if len(kinds) > 1:
                raise InputError(
                    f"The tables have {what}s of different types ({', '.join(kinds)}): convert "
                    "them to one first."
                )
        frame = pd.concat(frames, ignore_index=True, sort=False)
        # Columns a later table adds to a channel go beside the others of that channel.
        features = feature_columns(frame)
        channels = list(dict.fromkeys(split_column(column)[0] for column in features))
        features.sort(key=lambda column: channels.index(split_column(column)[0]))
        frame = frame[[*frame.columns.drop(features), *features]]
        info = _merge_info([table.info for table in tables], frame)
        joined = cls._from_frame(frame, info, _stack_reasons(tables, channels))
        warn_of_two_sites(joined.subjects, joined.sites)
        return joined


def _alike(rows: pd.DataFrame, keys: list[str]) -> list[str]:
    """Columns about rows, keys first, that are the same in all rows of each key."""
    groups = rows.groupby(keys, sort=False)
    others = [str(name) for name in rows if name not in keys]
    return [*keys, *(name for name in others if groups[name].nunique(dropna=False).le(1).all())]


def _known_names(names: Iterable[Any], known: Iterable[Any], what: str) -> list[Any]:
    """Return each name once; refuse those that a table does not have."""
    if isinstance(names, str):
        raise InputError(f"Give the {what}s as a list, such as [{names!r}].")
    wanted, there = dict.fromkeys(names), {str(name): name for name in known}
    return [
        there[find_name(str(name), there, f"the table has no {what} {name!r}")] for name in wanted
    ]


# --- tables below one another ---------------------------------------------------------------


def _recordings_left(info: Mapping[str, Any], frame: pd.DataFrame) -> dict[str, Any]:
    """Keep, of the recordings that ``info`` lists, those that have samples, and count these."""
    listed = _listed(info)
    if listed is None:
        return dict(info)
    if RECORDING not in frame:  # an old table does not say which recordings are left
        return {key: value for key, value in info.items() if key != _LIST}
    counts = frame[RECORDING].value_counts()
    remaining = [
        {**recording, "rows": int(counts[recording[RECORDING]])}
        for recording in listed
        if recording.get(RECORDING) in counts.index
    ]
    return {**info, _LIST: remaining}


def _listed(info: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    listed = info.get(_LIST)
    known = isinstance(listed, list) and all(isinstance(item, Mapping) for item in listed)
    return listed if known else None


def _with_distinct_recordings(tables: Iterable[FeatureTable]) -> list[FeatureTable]:
    """Give recordings of different tables that have one name different names."""
    known: dict[str, dict[str, Any]] = {}
    distinct = []
    for table in tables:
        identities = _recording_identities(table)
        renamed = {}
        for name, identity in identities.items():
            candidates = (f"{name}-{number}" for number in count(2))
            new = name
            while not same_info(known.setdefault(new, identity), identity):
                new = next(other for other in candidates if other not in identities)
            if new != name:
                renamed[name] = new
        distinct.append(_rename_recordings(table, renamed) if renamed else table)
    return distinct


def _recording_identities(table: FeatureTable) -> dict[str, dict[str, Any]]:
    """Return names of a table's recordings, with what distinguishes equal names of two tables."""
    if table.rows is None or RECORDING not in table.rows:
        return {}
    at = None if table.sites is None else table.sites.astype(str)
    recordings = pd.DataFrame({RECORDING: table.rows[RECORDING], "of": table.subjects.astype(str)})
    first = recordings.assign(at=at).dropna(subset=[RECORDING]).drop_duplicates(RECORDING)
    listed = {item.get(RECORDING): {**item, "rows": 0} for item in _listed(table.info) or ()}
    return {
        line[RECORDING]: {**listed.get(line[RECORDING], {}), "of": line["of"], "at": line["at"]}
        for line in first.to_dict("records")
    }


def _rename_recordings(table: FeatureTable, names: dict[str, str]) -> FeatureTable:
    """Give recordings new names wherever a table has them."""
    info = dict(table.info)
    if (listed := _listed(info)) is not None:
        info[_LIST] = [
            {**item, RECORDING: names.get(item.get(RECORDING, ""), item.get(RECORDING))}
            for item in listed
        ]
    rows = pd.DataFrame(table.rows).replace({RECORDING: names})
    reasons = None if table.reasons is None else table.reasons.replace({RECORDING: names})
    return replace(table, info=info, rows=rows, reasons=reasons)


def _stack_reasons(tables: list[FeatureTable], channels: list[str]) -> pd.DataFrame | None:
    """Put reasons below one another, and say of the channels that a table lacks that it does."""
    if all(table.reasons is None for table in tables):
        return None
    stacked = []
    for table in tables:
        if table.reasons is not None:
            stacked.append(table.reasons)
        if table.rows is not None and {RECORDING, EPOCH} <= set(table.rows):
            known = table.rows[[RECORDING, EPOCH]].dropna()
            present = table.channels
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


# --- what a table is made of ----------------------------------------------------------------


def clean_features(X: pd.DataFrame) -> pd.DataFrame:
    """Check features and return them as float64, rows 0 ... n - 1."""
    if not isinstance(X, pd.DataFrame):
        raise InputError(f"X must be a pandas DataFrame, got {type(X).__name__}.")
    columns = clean_columns(X.columns.tolist())
    if len(X) == 0:
        raise InputError("The table has no rows.")
    if all(dtype == np.float64 for dtype in X.dtypes):
        values = np.array(X, order="C")
    else:
        values = np.column_stack([_as_numbers(X[name]) for name in X])
    if max(np.fmax.reduce(values, None), -np.fmin.reduce(values, None)) > 1e300:
        # Sums would not be finite.
        row, position = np.argwhere(np.abs(values) > 1e300)[0]
        value = values[row, position]
        what = "infinity" if np.isinf(value) else f"{value:g}"
        raise InputError(
            f"Column {columns[position]!r} holds {what} in {_name_row(X.index, int(row))}: "
            "repair the value, or leave it empty if the channel is missing there."
        )
    return pd.DataFrame(values, columns=pd.Index(columns), copy=False)


def _as_numbers(column: pd.Series) -> np.ndarray:
    """Return one column as float64, or say which of its cells is no number."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.full(len(column), np.nan)
    for row, value in enumerate(column):
        if isinstance(value, float | int | np.number) and not isinstance(value, complex):
            numbers[row] = value
        elif not pd.isna(value):
            raise InputError(
                f"Column {column.name!r} holds {value!r} in {_name_row(column.index, row)}, which "
                "is no number: features are numbers, and a missing channel is an empty cell (NaN)."
            )
    return numbers


def _name_row(index: pd.Index, position: int) -> str:
    if index.name == LINE:
        return f"line {index[position]}"
    return f"row {position} (the first row is 0)"


def clean_groups(values: Any, what: str, index: pd.Index) -> pd.Series:
    """Check labels, subjects or sites and return them as text, int64, bool or float64."""
    series = values if isinstance(values, pd.Series) else pd.Series(list(values))
    if len(series) != len(index):
        raise InputError(f"There are {len(series)} {what}s for {len(index)} rows of features.")
    if isinstance(values, pd.Series):
        _check_index(series.index, index, f"{what}s")
    series = _plain_dtype(series)
    missing = series.isna().to_numpy()
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "string":
        missing = missing | (series.str.strip() == "").to_numpy(dtype=bool, na_value=True)
    if missing.any():
        raise InputError(
            f"The {what} is missing in {_name_row(index, int(missing.argmax()))}: "
            "every sample needs one; fill it in or drop the row."
        )
    if kind == "string":
        names = [str(value).strip() for value in series]
        refuse_alike(names, what)
        return pd.Series(names, name=what)
    if kind == "integer" and (series.max() >= 2**63 or series.min() < -(2**63)):
        raise InputError(f"A {what} is beyond 64 bits: store the {what}s as text.")
    if kind in ("boolean", "integer"):
        return series.astype(bool if kind == "boolean" else np.int64).rename(what)
    if kind not in _NUMBERS:
        raise InputError(
            f"The {what}s are of kind {kind!r}: they must be all text, all numbers or all "
            "true/false. Convert them, for example with .astype(str)."
        )
    numbers = series.astype(np.float64).rename(what)
    if not np.isfinite(numbers).all():
        raise InputError(f"A {what} is infinite.")
    # R writes 1 as 1.0: whole numbers are integers, as long as float64 holds them exactly.
    whole = bool((numbers == np.round(numbers)).all()) and numbers.abs().max() < 2**53
    return numbers.astype(np.int64) if whole else numbers


def _check_index(index: pd.Index, of_features: pd.Index, what: str) -> None:
    """Refuse what stands in another order than X, or might."""
    # Beside an X that is indexed by subjects it may also be numbered 0 ... n_samples - 1.
    numbered = of_features.name == SUBJECT and index.equals(pd.RangeIndex(len(of_features)))
    if not (numbered or index.equals(of_features)):
        raise InputError(
            f"The {what} have another index than X: bring them into the same order, then use "
            "reset_index(drop=True) on both."
        )


def _plain_dtype(series: pd.Series) -> pd.Series:
    """Number the rows, and replace categories and objects by what they hold."""
    series = series.reset_index(drop=True)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object if series.isna().any() else series.cat.categories.dtype)
    return series.infer_objects()


def warn_of_two_sites(subjects: pd.Series, sites: pd.Series | None, stacklevel: int = 3) -> None:
    """Warn of subjects at several sites: one who was at both, or two of one name."""
    if sites is None:
        return
    pairs = pd.DataFrame({SUBJECT: subjects, SITE: sites}).drop_duplicates()
    twice = pairs[SUBJECT][pairs[SUBJECT].duplicated()].unique()
    if not len(twice):
        return
    at_sites = ", ".join(map(repr, pairs[SITE][pairs[SUBJECT] == twice[0]]))
    more = f" and {len(twice) - 1} more are" if len(twice) > 1 else " is"
    warnings.warn(
        f"Participant {twice[0]!r}{more} at several sites ({at_sites}): a name is one "
        "participant, whose samples stay together in folds. If these are different participants, "
        "put the site into their names.",
        UserWarning,
        stacklevel=stacklevel,
    )


def clean_info(value: Any, where: str = "info") -> Any:
    """Copy ``info`` or a part of it as JSON holds it, so that every file gives it back."""
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{where}: key {key!r} is not text.")
        return {key: clean_info(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Index | pd.Series):
        return [clean_info(item, where) for item in value]
    raise InputError(
        f"{where} holds a {type(value).__name__}, which cannot be written to a file: "
        "use text, numbers, true/false, lists and mappings of these."
    )


def _clean_recordings(info: dict[str, Any]) -> dict[str, Any]:
    """Refuse recordings that are no list of mappings, such as their number."""
    recordings = info.get(_LIST) or []
    if not (isinstance(recordings, list) and all(isinstance(each, dict) for each in recordings)):
        raise InputError(
            f"info[{_LIST!r}] must be a list with one mapping for each recording, such as "
            "{'recording': 'a.edf', 'facts': {...}}."
        )
    return info


def same_info(info: Any, other: Any) -> bool:
    """Return whether two parts of cleaned infos are equal; NaN equals NaN."""
    return json.dumps(info, sort_keys=True) == json.dumps(other, sort_keys=True)


def clean_rows(rows: Any, index: pd.Index) -> pd.DataFrame | None:
    """Check what is known about rows, known columns first, in dtypes that survive any file.

    Text (blank where it is not known), int64, float64 (also where nothing is known) or bool.
    """
    if rows is None:
        return None
    if not isinstance(rows, pd.DataFrame):
        raise InputError(f"rows must be a pandas DataFrame, got {type(rows).__name__}.")
    if len(rows) != len(index):
        raise InputError(f"rows has {len(rows)} lines for {len(index)} rows of features.")
    _check_index(rows.index, index, "rows")
    names = list(rows.columns)
    for name in names:
        if not isinstance(name, str) or not name or names.count(name) > 1:
            raise InputError(f"rows: column {name!r} must be text and occur once.")
        if name in _GIVEN_AS:
            raise InputError(f"rows: give column {name!r} as {_GIVEN_AS[name]} of the table.")
        if SEPARATOR in name:
            raise InputError(
                f"rows: column {name!r} would be taken for a feature in a file: rename it."
            )
    if not names:
        return None
    order = [*(name for name in KNOWN if name in names), *(n for n in names if n not in KNOWN)]
    return pd.DataFrame({name: _clean_row_column(rows[name], name) for name in order})


def _clean_row_column(column: pd.Series, name: str) -> pd.Series:
    values = _plain_dtype(column)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if name in (EPOCH, ONSET) and kind not in (*_NUMBERS, "empty"):
        raise InputError(f"rows: column {name!r} must hold numbers, not values of kind {kind!r}.")
    complete = not values.isna().any()
    if kind == "boolean" and complete and name not in TEXT:
        return values.astype(bool)
    if name in TEXT or kind not in (*_NUMBERS, "empty"):
        text = _as_text(values)
        if name not in TEXT and text.isna().all():
            return text.astype(np.float64)
        if name in (SESSION, CONDITION):
            refuse_alike(text.dropna(), name)
        return text
    if kind == "integer" and complete and values.between(-(2**63), 2**63 - 1).all():
        return values.astype(np.float64 if name == ONSET else np.int64)
    numbers = values.astype(np.float64)
    whole = name == EPOCH and complete and bool((numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _as_text(values: pd.Series) -> pd.Series:
    """Turn values into text, with NaN for what is missing or blank."""
    whole = pd.api.types.is_float_dtype(values.dtype)
    cells = [
        None if pd.isna(value) else str(int(value) if whole and value % 1 == 0 else value).strip()
        for value in values
    ]
    return pd.Series([cell or np.nan for cell in cells], dtype=_TEXT_DTYPE)


def clean_reasons(
    reasons: Any, rows: pd.DataFrame | None, channels: Iterable[str]
) -> pd.DataFrame | None:
    """Keep the reasons that concern the rows and channels of a table; None if there are none."""
    if reasons is None:
        return None
    if not isinstance(reasons, pd.DataFrame) or set(reasons.columns) != set(REASON_COLUMNS):
        raise InputError(
            f"reasons must be a DataFrame with the columns {', '.join(REASON_COLUMNS)}."
        )
    if rows is None or not {RECORDING, EPOCH} <= set(rows.columns):
        return None  # which row is meant could not be told
    dtypes = {name: np.int64 if name == EPOCH else _TEXT_DTYPE for name in REASON_COLUMNS}
    clean = reasons[REASON_COLUMNS].reset_index(drop=True).astype(dtypes)
    keys = [RECORDING, EPOCH]
    concerned = pd.MultiIndex.from_frame(clean[keys]).isin(pd.MultiIndex.from_frame(rows[keys]))
    concerned &= clean[CHANNEL].isin(list(channels)).to_numpy()
    clean = clean[concerned].drop_duplicates(ignore_index=True)
    return clean if len(clean) else None


def table_digest(table: FeatureTable) -> str:
    """Hash what a table holds: values, columns, labels, subjects, montage, sites, rows, facts."""
    digest = hashlib.sha256()
    columns = {"y": table.y, "subject": table.subjects}
    if table.sites is not None:
        columns["site"] = table.sites
    if table.rows is not None:
        columns |= {f"rows {name}": table.rows[name] for name in table.rows}
    # As text: what is read from a file may be of another type.
    parts: list[Any] = [table.X, *(column.astype(str) for column in columns.values())]
    for part in parts:
        digest.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
    recordings = [each for each in table.info.get("recordings") or () if isinstance(each, Mapping)]
    description = {
        "columns": [*map(str, table.X.columns), *columns],
        "montage": str(table.info.get("montage", "")),
        "facts": [each["facts"] for each in recordings if each.get("facts")],
    }
    if table.info.get("target"):  # numbers as classes or as a score are not the same
        description["target"] = [table.info["target"][key] for key in ("kind", "order")]
    digest.update(json.dumps(description, sort_keys=True).encode())
    return digest.hexdigest()
