"""Tables read a few rows at a time: pieces, statistics of each subject, and sums.

A table is read twice. The first pass counts the samples of each subject that have each channel,
and sums up each subject's values and squares: memory grows with subjects x features. The second
pass sums up samples with the weights that follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from idfsmec._files import check_readable
from idfsmec._parallel import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.federated.summary import Columns, Study, join_condition, pooled
from idfsmec.solver.scaling import Scaling, safe_scale
from idfsmec.solver.sums import (
    N_FOLDS,
    N_REPEATS,
    Sums,
    count_samples,
    hash_samples,
    join_sums,
    n_repeats,
    subject_folds,
    table_sums,
)
from idfsmec.table import FeatureTable
from idfsmec.table.columns import (
    CONDITION,
    SITE,
    channel_codes,
    join_column,
    part_header,
    split_column,
)
from idfsmec.table.feature_table import clean_groups, warn_of_two_sites
from idfsmec.table.files import check_schema, file_format, info_of

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Numbers read at a time: they fit any memory, and are enough to be summed fast.
_ELEMENTS = 8_000_000
_SECONDS_PER_VALUE = 1.5e-7  # of two passes, measured on one core
_ABOUT = ("subject", "label")
#: Columns about rows that name the device, the first that there is.
_DEVICES = ("device", "amplifier")


@dataclass(frozen=True)
class Piece:
    """Some rows of a table: values (n, D), labels, subjects, conditions and devices (n,)."""

    X: Array
    labels: NDArray[Any]
    subjects: NDArray[Any]
    conditions: NDArray[Any] | None = None
    devices: NDArray[Any] | None = None


@dataclass(frozen=True)
class Source(Columns):
    """A table that can be read in pieces, more than once."""

    columns: tuple[str, ...]
    column_channels: tuple[Any, ...]
    pieces: Callable[[], Iterator[Piece]]
    info: Mapping[str, Any] = field(default_factory=dict)  # how it was made
    name: str = "The table"  # what messages call it

    def settings(self) -> dict[str, Any]:
        """Return how the features were computed."""
        # Only tables have settings to compare: who fits arrays need not wait for MNE.
        from idfsmec.features.settings import FeatureSettings

        names = FeatureSettings().as_dict()
        parts = self.info.get("parts")
        for part in parts if isinstance(parts, list) else ():
            if differing := sorted(set(part) & set(names)):
                raise InputError(
                    "The table is made of parts with different settings "
                    f"({', '.join(differing)}): its features are not comparable."
                )
        return {key: self.info[key] for key in names if key in self.info}


def open_source(
    table: Any, channels: Sequence[Any] | None = None, conditions: Sequence[str] = ()
) -> Source:
    """Open a table for reading in pieces; channels are by default those of the column names.

    Each of the conditions gets channels of its own, such as ``F3 (eyes-open)``.
    """
    name, parts = "The table", [("", table)]
    if isinstance(table, FeatureTable):
        warn_of_two_sites(table.subjects, table.sites, stacklevel=4)
    elif not (isinstance(table, ds.Dataset) or hasattr(table, "to_delayed")):
        path = Path(table)
        if path.suffix.lower() == ".summary":
            raise InputError(f"{path}: is a summary, not a table: give it to fit_summaries.")
        if path.is_dir() or (path.is_file() and file_format(path) == "parquet"):
            name = str(path)
            parts = [(f"{file}: ", _open_file(file)) for file in parquet_files(path)]
            _announce(path, [dataset for _, dataset in parts])
        else:
            table = FeatureTable.read(path)
    if isinstance(table, FeatureTable):
        columns, info = list(table.X.columns), table.info
        about = pd.DataFrame() if table.rows is None else table.rows
        device = next((name for name in _DEVICES if name in about.columns), None)
        extra = (
            about[name].astype(str).to_numpy() if name in about else None
            for name in (CONDITION, device)
        )
        piece = Piece(table.X.to_numpy(), table.y.to_numpy(), table.subjects.to_numpy(), *extra)
        pieces: Callable[[], Iterator[Piece]] = partial(iter, [piece] if len(table.X) else [])
    else:
        first = parts[0][1]
        columns = part_header(_header(first))[1]
        info = info_of(first.schema) if isinstance(first, ds.Dataset) else {}
        pieces = partial(_pieces, parts, columns)
    if channels is None:
        channels = [split_column(column)[0] for column in columns]
    if len(channels) != len(columns):
        raise InputError(
            f"channels has {len(channels)} labels for {len(columns)} features.",
            argument="channels",
        )
    source = Source(tuple(columns), tuple(channels), pieces, info, name)
    return _side_by_side(source, conditions) if conditions else source


def _side_by_side(source: Source, conditions: Sequence[str]) -> Source:
    """Give each condition columns of its own, in which samples of others are missing."""
    pairs = list(zip(source.columns, source.column_channels, strict=True))
    columns = [
        join_column(join_condition(channel, name), split_column(column)[1])
        for name in conditions
        for column, channel in pairs
    ]
    channels = [join_condition(channel, name) for name in conditions for _, channel in pairs]

    def pieces() -> Iterator[Piece]:
        missing = set(conditions)
        for piece in source.pieces():
            known = np.full(len(piece.X), "") if piece.conditions is None else piece.conditions
            of_condition = known[:, None] == np.array(conditions)
            rows = of_condition.any(axis=1)
            missing -= set(known[rows].tolist())
            X = np.where(of_condition[rows, :, None], piece.X[rows, None, :], np.nan)
            some = (None if part is None else part[rows] for part in (known, piece.devices))
            if rows.any():
                wide = X.reshape(len(X), len(columns))
                yield Piece(wide, piece.labels[rows], piece.subjects[rows], *some)
        if missing:
            raise InputError(f"{source.name}: has no samples of condition {min(missing)!r}.")

    return replace(source, columns=tuple(columns), column_channels=tuple(channels), pieces=pieces)


def _announce(path: Path, datasets: Sequence[ds.Dataset]) -> None:
    """Warn, before it is read, of a table that takes minutes to read."""
    n_rows = sum(dataset.count_rows() for dataset in datasets)
    minutes = n_rows * len(datasets[0].schema) * _SECONDS_PER_VALUE / 60
    if minutes >= 1:
        warnings.warn(
            f"{path}: declares {n_rows:,} rows of {len(datasets[0].schema):,} columns; reading "
            f"them takes about {minutes:,.0f} minutes.",
            stacklevel=4,
        )


def parquet_files(path: Path) -> list[Path]:
    """Name the files of a table: the file itself, or those in a folder, in order."""
    if path.is_file():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    )
    if not files:
        raise InputError(f"{path}: there is no .parquet file in it.")
    check_readable(*files)
    return files


def _open_file(file: Path) -> ds.Dataset:
    """Open a Parquet file that holds a table."""
    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    try:
        dataset = ds.dataset(str(file), format=parquet)
        check_schema(dataset.schema, dataset.schema.names)
        info_of(dataset.schema)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}).") from error
    return dataset


def _header(table: Any) -> list[str]:
    return table.schema.names if isinstance(table, ds.Dataset) else list(table.columns)


def _pieces(parts: Sequence[tuple[str, Any]], columns: Sequence[str]) -> Iterator[Piece]:
    """Read parts of a table, each with what errors begin with; warn of subjects at two sites."""
    sites: set[tuple[Any, Any]] = set()
    for where, table in parts:
        if differing := set(columns) ^ set(part_header(_header(table))[1]):
            first = Path(parts[0][0].removesuffix(": ")).name
            raise InputError(f"{where}has other columns than {first}, such as {min(differing)}.")
        try:
            for batch in _batches(table, columns):
                if len(batch):
                    yield _piece(batch, columns, sites)
        except InputError as error:
            raise InputError(f"{where}{error}") from None
        except (OSError, pa.ArrowException, ValueError, TypeError) as error:
            where = where or "The table: "
            raise InputError(f"{where}not a readable table ({error}).") from error
    frame = pd.DataFrame(sorted(sites), columns=[_ABOUT[0], SITE], dtype=object)
    warn_of_two_sites(frame[_ABOUT[0]], frame[SITE], stacklevel=6)


def _batches(table: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some rows at a time; of a Dask dataframe, a partition."""
    if isinstance(table, ds.Dataset):
        others = [name for name in (SITE, CONDITION, *_DEVICES) if name in table.schema.names]
        yield from table.to_batches(
            columns=[*_ABOUT, *others, *columns],
            batch_size=max(256, _ELEMENTS // max(1, len(columns))),
            # Arrow would hold dozens of batches.
            batch_readahead=1,
            fragment_readahead=1,
        )
    else:
        for part in table.partitions:
            yield pa.RecordBatch.from_pandas(part.compute(), preserve_index=False)


def _piece(batch: pa.RecordBatch, columns: Sequence[str], sites: set[tuple[Any, Any]]) -> Piece:
    subjects, labels = (_clean_column(batch.column(name), name) for name in _ABOUT)
    if SITE in batch.schema.names:
        there = _clean_column(batch.column(SITE), SITE)
        sites |= set(zip(subjects.tolist(), there.tolist(), strict=True))
    X = np.empty((len(batch), len(columns)), order="F")
    for j, name in enumerate(columns):
        X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
    if np.isinf(X).any():
        column = columns[int(np.flatnonzero(np.isinf(X).any(axis=0))[0])]
        raise InputError(
            f"Column {column!r} contains infinity: repair or drop these values first."
        )
    device = next((name for name in _DEVICES if name in batch.schema.names), None)
    extra = (
        np.array(batch.column(name).to_pylist(), dtype=str) if name in batch.schema.names else None
        for name in (CONDITION, device)
    )
    return Piece(X, labels, subjects, *extra)


def _clean_column(column: pa.Array, name: str) -> NDArray[Any]:
    """Labels or subjects; each is checked once, however often it comes."""
    coded = column.dictionary_encode()
    each = coded.dictionary.to_pandas()
    if coded.null_count:
        raise InputError(f"The {name} is missing in some rows: every sample needs one.")
    cleaned = clean_groups(each, name, pd.RangeIndex(len(each))).to_numpy()
    column_of: NDArray[Any] = cleaned[coded.indices.to_numpy()]
    return column_of


class Subjects:
    """What is known of each subject of each class of a table, p rows, once it has been read."""

    def __init__(self, source: Source, units: tuple[Array, Array] | None = None) -> None:
        self.source, self.columns = source, source.channel_columns
        rows: dict[tuple[str, Any], int] = {}
        # Samples that have each channel, all samples, and samples that have any channel
        self.counts = np.zeros((0, len(self.columns) + 2))
        # Of all values, whatever the order of samples
        self.hashes = np.zeros(0, dtype=np.uint64)
        self.devices: dict[str, str] = {}  # of each subject, where the table names it
        sums = np.zeros((2, 0, len(source.columns)))
        without_units = np.full(len(source.columns), units is None)
        for piece in source.pieces():
            if units is None:
                units = np.zeros(len(source.columns)), np.ones(len(source.columns))
            # Near the mean of the first values of a column, so that squares lose no digits
            first = np.flatnonzero(without_units)
            first = first[~np.isnan(piece.X[:, first]).all(axis=0)]
            if first.size:
                without_units[first], X = False, piece.X[:, first]
                units[0][first] = shift = Scaling.learn(X).mean
                units[1][first] = safe_scale(np.nanmax(np.abs(X - shift), axis=0, initial=0.0))
            names = piece.subjects.astype(str)
            keys = zip(names.tolist(), piece.labels.tolist(), strict=True)
            member = np.array([rows.setdefault(key, len(rows)) for key in keys], dtype=np.intp)
            new = (0, len(rows) - len(self.counts))
            self.counts = np.pad(self.counts, (new, (0, 0)))
            self.hashes, sums = np.pad(self.hashes, new), np.pad(sums, ((0, 0), new, (0, 0)))
            if piece.devices is not None:
                self.devices |= dict(zip(names, piece.devices, strict=True))
            count_samples(piece.X, self.columns, member, self.counts)
            np.add.at(self.hashes, member, hash_samples(piece.X, self.columns))
            values = (piece.X - units[0]) / units[1]
            for own in self.columns:
                values[np.ix_(np.isnan(values[:, own]).any(axis=1), own)] = 0.0
            for part, power in zip(sums, (values, values**2), strict=True):
                np.add.at(part, member, power)
        if units is None:
            raise InputError(f"{source.name}: there are no samples in it.")
        self.labels = sorted({label for _, label in rows})
        self.codes = np.array([self.labels.index(label) for _, label in rows], dtype=np.intp)
        self.names = np.array([name for name, _ in rows], dtype=object).astype(str)
        self.shift, self.scale = units
        # Of the values, after shift and scale, over the samples that have the channel; 0 without
        per_feature = np.maximum(self.counts[:, channel_codes(self.columns)], 1.0)
        self.mean, self.mean_square = sums / per_feature

    def sums(self, folds: Indices, n_folds: int = N_FOLDS) -> Sums:
        """Read the table again and sum it up, each subject, in folds (n_repeats, p), once."""
        parts: list[Sums] = []
        rows = pd.MultiIndex.from_arrays([self.names, self.codes])
        with one_blas_thread():
            for piece in self.source.pieces():
                codes = np.searchsorted(np.array(self.labels), piece.labels).astype(np.intp)
                wanted = pd.MultiIndex.from_arrays([piece.subjects.astype(str), codes])
                member = rows.get_indexer(wanted).astype(np.intp)
                part = table_sums(
                    piece.X,
                    self.columns,
                    codes,
                    folds[:, member],
                    len(self.labels),
                    n_folds=n_folds,
                    groups=member,
                    counts=self.counts,
                    units=(self.shift, self.scale),
                )
                parts = [join_sums([*parts, part])]
        return parts[0]

    def study(self, repeats: int) -> Study:
        """Sum up the table, with the folds that rows in memory would get."""
        member = np.unique(self.names, return_inverse=True)[1]
        folds = subject_folds(self.hashes, member, repeats)[:, member]
        have = self.counts[:, channel_codes(self.columns)] > 0
        moments = (have.astype(float), self.mean, self.mean**2)
        mostly = 2 * self.counts[:, :-2] >= self.counts[:, -2:-1]
        by_class = (self.codes == np.arange(len(self.labels))[:, None]).astype(np.int64)
        return Study(
            self.source.columns,
            self.source.column_channels,
            tuple(self.labels),
            self.sums(folds),
            (by_class @ mostly).T,
            by_class.sum(axis=1),
            np.stack([by_class @ part for part in moments], axis=1),
        )


def stream_sums(table: Any, channels: Sequence[Any] | None = None) -> Study:
    """Sum up a table that is read in pieces."""
    source = open_source(table, channels)
    source.settings()  # refuses parts that do not mean the same
    subjects = Subjects(source)
    if len(subjects.labels) < 2:
        raise InputError(
            "Selecting features needs at least 2 classes, but the table holds only one class: "
            f"{subjects.labels[0]!r}."
        )
    return subjects.study(n_repeats(float(subjects.counts[:, -2].sum()) * len(source.columns)))


@dataclass
class SumsInPieces:
    """Sums over samples that are given piece by piece, with all samples of a subject in one."""

    columns: tuple[str, ...]
    channels: tuple[Any, ...]  # of each column
    _subjects: set[str] = field(default_factory=set)
    _units: tuple[Array, Array] | None = None
    _n_samples: int = 0
    _study: Study | None = None

    def add(self, X: Array, labels: NDArray[Any], subjects: NDArray[Any] | None) -> Study:
        """Add samples and return the sums over all; a subject that came before is refused."""
        names = np.arange(len(X)) if subjects is None else subjects
        piece = Piece(X, labels, names.astype(str))
        source = Source(self.columns, self.channels, partial(iter, [piece]))
        known = Subjects(source, self._units)
        self._units = (known.shift, known.scale)
        if subjects is not None:
            if again := self._subjects & set(known.names.tolist()):
                raise ValueError(
                    f"Samples of participant {min(again)!r} came in an earlier call: partial_fit "
                    "takes all samples of a participant at once."
                )
            self._subjects |= set(known.names.tolist())
        part = known.study(N_REPEATS)
        parts = [part] if self._study is None else [self._study, part]
        self._study = pooled(parts, tuple(sorted({label for p in parts for label in p.labels})))
        self._n_samples += len(X)
        sums, repeats = self._study.sums, n_repeats(float(self._n_samples) * len(self.columns))
        return replace(self._study, sums=replace(sums, folds=sums.folds[:repeats]))
