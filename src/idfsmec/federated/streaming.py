"""Tables read a few rows at a time: pieces, statistics of each subject, and sums.

A table is read twice. The first pass counts the samples of each subject that have each channel,
and sums up each subject's values and squares: memory grows with subjects x features. The second
pass sums up samples with the weights that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from idfsmec._parallel import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.federated.study import Study
from idfsmec.solver import Scaling, Sums, n_repeats, name_folds, table_sums, value_folds
from idfsmec.solver.scaling import safe_scale
from idfsmec.solver.sums import add_sums, count_samples
from idfsmec.table import FeatureTable
from idfsmec.table.checks import SITE, clean_groups, part_header, warn_of_two_sites
from idfsmec.table.columns import channel_codes, channel_columns, split_column
from idfsmec.table.files import file_format, info_of, read_info

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Numbers read at a time: they fit any memory, and are enough to be summed fast.
_ELEMENTS = 8_000_000
_ABOUT = ("subject", "label")
#: Columns about rows that name the device, the first that there is.
_DEVICES = ("device", "amplifier")


@dataclass(frozen=True)
class Piece:
    """Some rows of a table: values (n, D), labels, subjects and devices (n,)."""

    X: Array
    labels: NDArray
    subjects: NDArray
    devices: NDArray | None = None


@dataclass(frozen=True)
class Source:
    """A table that can be read in pieces, more than once.

    Attributes
    ----------
    columns, channels : tuple of str
        The features and the channel of each.
    settings : mapping
        How they were computed.
    pieces : callable
        Gives an iterator over the pieces.
    info : mapping
        What else is known of the table, such as the acquisition facts of its recordings.
    name : str
        What messages call it.
    """

    columns: tuple[str, ...]
    channels: tuple[Any, ...]
    settings: Mapping[str, Any]
    pieces: Callable[[], Iterator[Piece]]
    info: Mapping[str, Any] = field(default_factory=dict)
    name: str = "The table"

    @property
    def channel_columns(self) -> list[Indices]:
        """The columns of each channel."""
        return channel_columns(list(self.channels), len(self.columns), None)[1]


def open_source(table: Any, channels: Sequence[Any] | None = None) -> Source:
    """Open a table for reading in pieces."""
    name, info = "The table", {}
    if isinstance(table, ds.Dataset):
        columns, info = part_header(table.schema.names)[1], info_of(table.schema)
        pieces = partial(_dataset_pieces, table)
    elif hasattr(table, "to_delayed"):
        columns, pieces = part_header(list(table.columns))[1], partial(_dask_pieces, table)
    elif isinstance(table, FeatureTable):
        warn_of_two_sites(table.subjects, table.sites, stacklevel=4)
        return _memory_source(table, channels)
    else:
        path = Path(table)
        if path.suffix.lower() == ".summary":
            raise InputError(f"{path}: is a summary, not a table: give it to fit_summaries.")
        if not (path.is_dir() or (path.is_file() and file_format(path) == "parquet")):
            return _memory_source(FeatureTable.read(path), channels)
        files = parquet_files(path)
        columns, info, name = _features_of(files[0]), read_info(files[0]), str(path)
        pieces = partial(_file_pieces, files)
    settings = _settings_of(info)
    own = _channels_of(columns, channels)
    return Source(tuple(columns), own, settings, pieces, info, name)


def _memory_source(table: FeatureTable, channels: Sequence[Any] | None) -> Source:
    about = pd.DataFrame() if table.rows is None else table.rows
    device = next((name for name in _DEVICES if name in about.columns), None)
    devices = None if device is None else about[device].astype(str).to_numpy()
    piece = Piece(table.X.to_numpy(), table.y.to_numpy(), table.subjects.to_numpy(), devices)
    columns = tuple(table.X.columns)
    own, settings = _channels_of(columns, channels), _settings_of(table.info)
    return Source(columns, own, settings, lambda: iter([piece]), table.info)


def _channels_of(columns: Sequence[str], given: Sequence[Any] | None) -> tuple[Any, ...]:
    if given is None:
        return tuple(split_column(column)[0] for column in columns)
    if len(given) != len(columns):
        raise InputError(
            f"channels has {len(given)} labels for {len(columns)} features.", argument="channels"
        )
    return tuple(given)


def _settings_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Give, of what is known about a table, how its features were computed."""
    # Only tables have settings to compare: who fits arrays need not wait for MNE.
    from idfsmec.features.settings import FeatureSettings

    known = FeatureSettings().as_dict()
    parts = info.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if differing := sorted(set(part) & set(known)):
            raise InputError(
                f"The table is made of parts with different settings ({', '.join(differing)}): "
                "its features do not mean the same."
            )
    return {key: info[key] for key in known if key in info}


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
    return files


def _header(file: Path) -> list[str]:
    try:
        return list(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}).") from error


def _features_of(file: Path) -> list[str]:
    try:
        return list(part_header(_header(file))[1])
    except InputError as error:
        raise error if str(file) in str(error) else InputError(f"{file}: {error}") from None


def _file_pieces(files: Sequence[Path]) -> Iterator[Piece]:
    """Read Parquet files one after the other; all have the columns of the first."""
    columns, sites = _features_of(files[0]), set[tuple[Any, Any]]()
    for file in files:
        if differing := set(columns) ^ set(_features_of(file)):
            raise InputError(
                f"{file}: has other columns than {files[0].name}, such as {min(differing)}."
            )
        names = [*_ABOUT, *_more(_header(file)), *columns]
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as source:
                for batch in source.iter_batches(_most_rows(columns), columns=names):
                    yield _piece(batch, columns, sites)
        except InputError as error:
            raise InputError(f"{file}: {error}") from None
        except (OSError, pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(f"{file}: not a readable table ({error}).") from error
    _warn_of_two_sites(sites)


def _dataset_pieces(dataset: ds.Dataset) -> Iterator[Piece]:
    columns, sites = list(part_header(dataset.schema.names)[1]), set[tuple[Any, Any]]()
    names = [*_ABOUT, *_more(dataset.schema.names), *columns]
    try:
        # Read ahead a little: Arrow would hold dozens of pieces.
        for batch in dataset.to_batches(
            columns=names,
            batch_size=_most_rows(columns),
            batch_readahead=1,
            fragment_readahead=1,
        ):
            if len(batch):
                yield _piece(batch, columns, sites)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"The dataset cannot be read ({error}).") from error
    _warn_of_two_sites(sites)


def _dask_pieces(frame: Any) -> Iterator[Piece]:
    """Compute the partitions of a Dask dataframe, one at a time."""
    columns, sites = list(part_header(list(frame.columns))[1]), set[tuple[Any, Any]]()
    for part in frame.partitions:
        rows = part.compute()
        if len(rows):
            batch = pa.RecordBatch.from_pandas(rows, preserve_index=False)
            yield _piece(batch, columns, sites)
    _warn_of_two_sites(sites)


def _warn_of_two_sites(pairs: set[tuple[Any, Any]]) -> None:
    """Name subjects at two sites, of pairs of a subject and a site."""
    frame = pd.DataFrame(sorted(pairs), columns=[_ABOUT[0], SITE], dtype=object)
    warn_of_two_sites(frame[_ABOUT[0]], frame[SITE], stacklevel=7)


def _most_rows(columns: Sequence[str]) -> int:
    return max(256, _ELEMENTS // max(1, len(columns)))


def _more(names: Sequence[str]) -> list[str]:
    """Columns about rows that are read where they are there."""
    return [name for name in (SITE, *_DEVICES) if name in names]


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
    devices = None if device is None else np.array(batch.column(device).to_pylist(), dtype=str)
    return Piece(X, labels, subjects, devices)


def _clean_column(column: pa.Array, name: str) -> NDArray:
    """Labels or subjects; each is checked once, however often it comes."""
    coded = column.dictionary_encode()
    each = coded.dictionary.to_pandas()
    if coded.null_count:
        raise InputError(f"The {name} is missing in some rows: every sample needs one.")
    cleaned = clean_groups(each, name, pd.RangeIndex(len(each))).to_numpy()
    return cleaned[coded.indices.to_numpy()]


@dataclass(frozen=True)
class SubjectStatistics:
    """Counts and sums of each subject of each class: p rows.

    Attributes
    ----------
    labels : list
        Of the classes, sorted.
    names : ndarray of shape (p,)
        Subjects, as text.
    codes : ndarray of shape (p,)
        Classes.
    counts : ndarray of shape (p, V + 2)
        Samples that have each channel, all samples, and samples that have any channel.
    sum_x, sum_xx : ndarray of shape (p, D)
        Of the values and their squares, after ``shift`` and ``scale``, over the samples that have
        the channel.
    shift, scale : ndarray of shape (D,)
    digests : ndarray of uint64, shape (p, V)
        Of the values of each channel, whatever the order of samples.
    devices : dict of str to str
        The device of each subject, where the table names it.
    """

    labels: list[Any]
    names: NDArray
    codes: Indices
    counts: Array
    sum_x: Array
    sum_xx: Array
    shift: Array
    scale: Array
    digests: NDArray[np.uint64]
    devices: dict[str, str]

    def rows_of(self, piece: Piece) -> tuple[Indices, Indices]:
        """Give the row, and the class, of each sample of a piece."""
        codes = np.searchsorted(np.array(self.labels), piece.labels)
        key = pd.MultiIndex.from_arrays([self.names, self.codes])
        wanted = pd.MultiIndex.from_arrays([piece.subjects.astype(str), codes])
        return key.get_indexer(wanted).astype(np.intp), codes.astype(np.intp)


def subject_statistics(
    source: Source, units: tuple[Array, Array] | None = None
) -> SubjectStatistics:
    """Read a table once and give what is known of each subject."""
    columns = source.channel_columns
    rows: dict[tuple[str, Any], int] = {}
    counts = np.zeros((0, len(columns) + 2))
    sums = np.zeros((2, 0, len(source.columns)))
    digests = np.zeros((0, len(columns)), dtype=np.uint64)
    devices: dict[str, str] = {}
    shift, scale = units or (np.empty(0), np.empty(0))
    for piece in source.pieces():
        if not len(piece.X):
            continue
        if not shift.size:  # near the mean, so that squares lose no digits
            learned = Scaling.learn(piece.X)
            shift = learned.mean
            scale = safe_scale(np.nanmax(np.abs(piece.X - shift), axis=0, initial=0.0))
        keys = list(zip(piece.subjects.astype(str).tolist(), piece.labels.tolist(), strict=True))
        member = np.array([rows.setdefault(key, len(rows)) for key in keys], dtype=np.intp)
        if more := len(rows) - len(counts):
            counts = np.pad(counts, ((0, more), (0, 0)))
            sums = np.pad(sums, ((0, 0), (0, more), (0, 0)))
            digests = np.pad(digests, ((0, more), (0, 0)))
        if piece.devices is not None:
            devices |= dict(zip(piece.subjects.astype(str), piece.devices, strict=True))
        count_samples(piece.X, columns, member, counts)
        values = (piece.X - shift) / scale
        for v, own in enumerate(columns):
            missing = np.isnan(values[:, own]).any(axis=1)
            values[np.ix_(missing, own)] = 0.0
            np.add.at(digests[:, v], member[~missing], _digests(piece.X[:, own])[~missing])
        for part, power in zip(sums, (values, values**2), strict=True):
            np.add.at(part, member, power)
    if not rows:
        raise InputError(f"{source.name}: there are no samples in it.")
    labels = sorted({label for _, label in rows})
    codes = np.array([labels.index(label) for _, label in rows], dtype=np.intp)
    names = np.array([name for name, _ in rows], dtype=object).astype(str)
    found = (labels, names, codes, counts, sums[0], sums[1])
    return SubjectStatistics(*found, shift, scale, digests, devices)


def _digests(values: Array) -> NDArray[np.uint64]:
    """One number for each row, another for nearly any other row."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    digests = np.full(len(bits), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:
        digests = (digests ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        digests ^= digests >> np.uint64(29)
    return digests


def sum_pieces(
    source: Source,
    statistics: SubjectStatistics,
    folds: Indices,
    *,
    n_folds: int,
    counts: Array | None = None,
) -> Sums:
    """Read a table again and sum it up, each subject once."""
    columns, sums = source.channel_columns, None
    with one_blas_thread():
        for piece in source.pieces():
            if not len(piece.X):
                continue
            member, codes = statistics.rows_of(piece)
            part = table_sums(
                piece.X,
                columns,
                codes,
                folds[:, member],
                len(statistics.labels),
                n_folds=n_folds,
                groups=member,
                counts=statistics.counts if counts is None else counts,
                units=(statistics.shift, statistics.scale),
            )
            sums = part if sums is None else add_sums(sums, part)
    if sums is None:
        raise InputError(f"{source.name}: there are no samples in it.")
    return sums


def stream_sums(table: Any, channels: Sequence[Any] | None = None) -> Study:
    """Sum up a table that is read in pieces, with the folds that rows in memory would get."""
    source = open_source(table, channels)
    statistics = subject_statistics(source)
    if len(statistics.labels) < 2:
        raise InputError(
            "Selecting features needs at least 2 classes, but the table holds only one class: "
            f"{statistics.labels[0]!r}."
        )
    repeats = n_repeats(float(statistics.counts[:, -2].sum()) * len(source.columns))
    folds = name_folds(statistics.names, n_repeats=repeats)
    sums = sum_pieces(source, statistics, folds, n_folds=4)
    return _study_of_rows(source, statistics, sums)


def _study_of_rows(source: Source, statistics: SubjectStatistics, sums: Sums) -> Study:
    """Put together sums over rows and what is known of their subjects."""
    by_feature = statistics.counts[:, channel_codes(source.channel_columns)]
    means = statistics.sum_x / np.maximum(by_feature, 1.0)
    mostly = 2 * statistics.counts[:, :-2] >= statistics.counts[:, -2:-1]
    classes = [statistics.codes == k for k in range(len(statistics.labels))]
    effects = [
        (
            (by_feature[members] > 0).sum(axis=0).astype(float),
            means[members].sum(axis=0),
            (means[members] ** 2).sum(axis=0),
        )
        for members in classes
    ]
    return Study(
        source.columns,
        source.channels,
        tuple(statistics.labels),
        sums,
        np.stack([mostly[members].sum(axis=0) for members in classes], axis=1),
        np.bincount(statistics.codes, minlength=len(statistics.labels)),
        effects,
    )


class SumsInPieces:
    """Sums over samples that are given piece by piece, with all samples of a subject in one.

    Parameters
    ----------
    channel_names : ndarray of shape (n_channels,)
    channel_columns : list of integer arrays
    columns : sequence of str
    """

    def __init__(
        self, channel_names: NDArray, channel_columns: list[Indices], columns: Sequence[str]
    ) -> None:
        names = channel_names.tolist()
        self._columns = tuple(columns)
        self._channels = tuple(names[v] for v in channel_codes(channel_columns))
        self._subjects: set[str] = set()
        self._scaling: Scaling | None = None
        self._units: tuple[Array, Array] | None = None
        self._n_samples = 0
        self._study: Study | None = None

    @property
    def labels(self) -> NDArray:
        """Classes seen so far."""
        return np.array(() if self._study is None else self._study.labels)

    def add(self, X: Array, labels: ArrayLike, subjects: NDArray | None) -> None:
        """Add samples; a subject that came before is refused."""
        names = np.arange(len(X)) if subjects is None else np.asarray(subjects)
        piece = Piece(X, np.asarray(labels), names.astype(str))
        source = Source(self._columns, self._channels, {}, lambda: iter([piece]))
        statistics = subject_statistics(source, self._units)
        self._units = (statistics.shift, statistics.scale)
        if subjects is None:
            self._scaling = self._scaling or Scaling.learn(X)
            folds = value_folds(X, source.channel_columns, n_repeats=2, scaling=self._scaling)
        else:
            if again := self._subjects & set(statistics.names.tolist()):
                raise ValueError(
                    f"Samples of subject {min(again)!r} came in an earlier call: partial_fit "
                    "takes all samples of a subject at once."
                )
            self._subjects |= set(statistics.names.tolist())
            folds = name_folds(statistics.names, n_repeats=2)
        part = _study_of_rows(source, statistics, sum_pieces(source, statistics, folds, n_folds=4))
        self._study = part if self._study is None else _added(self._study, part)
        self._n_samples += len(X)

    def study(self) -> Study:
        """Give the sums over all pieces."""
        if self._study is None:
            raise InputError("There are no samples.")
        repeats = n_repeats(float(self._n_samples) * len(self._columns))
        sums = self._study.sums
        return replace(self._study, sums=replace(sums, folds=sums.folds[:repeats]))


def _added(study: Study, part: Study) -> Study:
    """Add the subjects of a further piece."""
    labels = tuple(sorted({*study.labels, *part.labels}))
    have = np.zeros((len(study.have), len(labels)), dtype=np.int64)
    subjects = np.zeros(len(labels), dtype=np.int64)
    effects = np.zeros((len(labels), 3, len(study.columns)))
    sums = []
    for piece in (study, part):
        own = np.array([labels.index(label) for label in piece.labels], dtype=np.intp)
        sums.append(piece.sums.among(own, len(labels)))
        have[:, own] += piece.have
        subjects[own] += piece.subjects
        effects[own] += np.array(piece.effects)
    return replace(
        study,
        labels=labels,
        sums=add_sums(*sums),
        have=have,
        subjects=subjects,
        effects=[tuple(row) for row in effects],
    )
