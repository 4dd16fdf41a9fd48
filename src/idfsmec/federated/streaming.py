"""Tables read a few columns and rows at a time: statistics of each subject, and sums.

Columns about rows come first: they say whose each row is. Then blocks of channels are read twice,
each block by one process. The first time the samples of each subject that have each channel are
counted, and values are summed up by subject; the second time samples are summed up with the
weights that follow. A process holds a few times :data:`ELEMENTS` numbers, whatever the size of the
table; beside that there are two numbers per row, and counts per subject and channel.
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
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idfsmec._parallel import one_blas_thread, run_tasks
from idfsmec.errors import InputError
from idfsmec.federated.summary import Columns, Study, join_condition, pooled
from idfsmec.solver.scaling import Scaling, safe_scale
from idfsmec.solver.sums import (
    N_FOLDS,
    N_REPEATS,
    Sums,
    is_observed,
    join_blocks,
    join_sums,
    mixed,
    n_repeats,
    subject_folds,
    sum_bits,
    table_sums,
)
from idfsmec.table import FeatureTable
from idfsmec.table.columns import (
    CONDITION,
    LABEL,
    SITE,
    SUBJECT,
    channel_codes,
    join_columns,
    part_header,
    split_column,
)
from idfsmec.table.feature_table import clean_groups, warn_of_two_sites
from idfsmec.table.files import (
    check_schema,
    file_format,
    info_of,
    naming_file,
    open_parquet,
    parquet_files,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Numbers that a process holds at a time, a few times over.
ELEMENTS = 8_000_000
# Rows read at a time, unless these are too many numbers.
_ROWS = 32_768
# Blocks of channels of a table with more numbers than that, for processes to share out.
_FEWEST_BLOCKS = 8
_SECONDS_PER_VALUE = 4e-8  # of all passes, measured on one core
#: Columns about rows that name the device, the first that there is.
_DEVICES = ("device", "amplifier")


@dataclass(frozen=True)
class Source(Columns):
    """A table that can be read in parts, more than once.

    A part is the path of a Parquet file, a data set, a Dask dataframe, or a pair of a frame about
    rows and an array of values; with each comes what errors begin with. With conditions, each of
    them has columns of its own, of the ``stored`` ones.
    """

    columns: tuple[str, ...]
    column_channels: tuple[Any, ...]
    parts: tuple[tuple[str, Any], ...]
    stored: tuple[str, ...]
    conditions: tuple[str, ...] = ()
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
    """Open a table for reading; channels are by default those of the column names.

    Each of the conditions gets channels of its own, such as ``F3 (eyes-open)``.
    """
    name, parts = "The table", [("", table)]
    info: Mapping[str, Any]
    if isinstance(table, FeatureTable):
        warn_of_two_sites(table.subjects, table.sites, stacklevel=4)
    elif not (isinstance(table, ds.Dataset) or hasattr(table, "to_delayed")):
        path = Path(table)
        if path.suffix.lower() == ".summary":
            raise InputError(f"{path}: is a summary, not a table: give it to fit_summaries.")
        if path.is_dir() or (path.is_file() and file_format(path) == "parquet"):
            name, parts = str(path), [(f"{file}: ", file) for file in parquet_files(path)]
        else:
            table = FeatureTable.read(path)
    if isinstance(table, FeatureTable):
        columns, info = list(map(str, table.X.columns)), table.info
        about = pd.DataFrame() if table.rows is None else table.rows
        rows = {name: about[name].astype(str) for name in (CONDITION, *_DEVICES) if name in about}
        labelled = {SUBJECT: table.subjects.array, LABEL: table.y.array, **rows}
        parts = [("", (pd.DataFrame(labelled), table.X.to_numpy()))]
    else:
        with naming_file(parts[0][0]):
            columns, info = part_header(_header(parts[0][1]))[1], _check_files(parts)
    if channels is None:
        channels = [split_column(column)[0] for column in columns]
    if len(channels) != len(columns):
        raise InputError(
            f"channels has {len(channels)} labels for {len(columns)} features.",
            argument="channels",
        )
    names = tuple(columns)
    if conditions:
        features = [split_column(column)[1] for column in columns] * len(conditions)
        channels = [join_condition(channel, at) for at in conditions for channel in channels]
        names = tuple(join_columns(channels, features))
    stored = tuple(columns)
    return Source(names, tuple(channels), tuple(parts), stored, tuple(conditions), info, name)


def _check_files(parts: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse files that do not belong together; warn of what takes minutes; return ``info``."""
    (_, first), n_rows, columns = parts[0], 0, set[str]()
    if not isinstance(first, Path):
        return info_of(first.schema) if isinstance(first, ds.Dataset) else {}
    info: dict[str, Any] = {}
    for where, part in parts:
        with naming_file(where), open_parquet(part) as file:
            features = set(check_schema(file.schema_arrow, file.schema_arrow.names))
            of_part = info_of(file.schema_arrow)
            info, columns = (info, columns) if columns else (of_part, features)
            if differing := columns ^ features:
                raise InputError(f"has other columns than {first.name}, such as {min(differing)}.")
            n_rows += file.metadata.num_rows
    if (minutes := n_rows * len(columns) * _SECONDS_PER_VALUE / 60) >= 1:
        warnings.warn(
            f"{first.parent}: declares {n_rows:,} rows of {len(columns):,} columns; reading them "
            f"takes about {minutes:,.0f} minutes on one core.",
            stacklevel=4,
        )
    return info


def _header(part: Any) -> list[str]:
    if isinstance(part, Path):
        return list(pq.read_schema(part).names)
    return part.schema.names if isinstance(part, ds.Dataset) else list(part.columns)


def _batches(part: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns, some rows at a time; of a Dask dataframe a partition."""
    n_rows = max(256, min(_ROWS, ELEMENTS // max(1, len(columns))))
    if isinstance(part, Path):
        with open_parquet(part) as file:
            yield from file.iter_batches(n_rows, columns=list(columns), use_threads=False)
    elif isinstance(part, ds.Dataset):
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # Arrow would hold dozens
        yield from part.to_batches(columns=list(columns), batch_size=n_rows, **ahead)
    else:
        for partition in part[list(columns)].partitions:
            yield pa.RecordBatch.from_pandas(partition.compute(), preserve_index=False)


def _rows_of(part: Any) -> Iterator[pd.DataFrame]:
    """Read what is known of rows, some at a time: subject and label, and others as text."""
    if isinstance(part, tuple):
        yield part[0]
        return
    groups = [name for name in (SUBJECT, LABEL, SITE) if name != SITE or name in _header(part)]
    others = [name for name in (CONDITION, *_DEVICES) if name in _header(part)]
    for batch in _batches(part, [*groups, *others]):
        rows = {name: _clean(batch.column(name), name) for name in groups}
        texts = {name: [*map(str, batch.column(name).to_pylist())] for name in others}
        yield pd.DataFrame(rows | texts)


def _clean(column: pa.Array, name: str) -> NDArray[Any]:
    """Labels, subjects or sites; each is checked once, however often it comes."""
    coded = column.dictionary_encode()
    each = coded.dictionary.to_pandas()
    if coded.null_count:
        raise InputError(f"The {name} is missing in some rows: every sample needs one.")
    cleaned = clean_groups(each, name, pd.RangeIndex(len(each))).to_numpy()
    column_of: NDArray[Any] = cleaned[coded.indices.to_numpy()]
    return column_of


class Rows:
    """Whose the rows of a table are, and how their values are read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        frames: list[pd.DataFrame] = []
        for where, part in source.parts:
            with naming_file(where):
                frames += _rows_of(part)
        rows = pd.concat(frames) if frames else pd.DataFrame(columns=[SUBJECT, LABEL])
        rows = rows.reset_index(drop=True).assign(**{SUBJECT: rows[SUBJECT].astype(str).array})
        self.condition = np.zeros(len(rows), dtype=np.intp)  # number of each row's condition
        if source.conditions:
            named = rows.get(CONDITION, pd.Series("", rows.index))
            if missing := set(source.conditions) - set(named):
                raise InputError(f"{source.name}: has no samples of condition {min(missing)!r}.")
            self.condition = pd.Index(source.conditions).get_indexer(pd.Index(named))
        used = self.condition >= 0
        rows = rows[used]
        if rows.empty:
            raise InputError(f"{source.name}: there are no samples in it.")
        groups = rows.groupby([SUBJECT, LABEL], sort=False)
        names, labels = zip(*groups.groups, strict=True)
        #: Of each subject of each class, p of them, in the order of their first rows.
        self.names, self.labels = np.array(names), sorted(set(labels))
        self.codes = np.array([self.labels.index(label) for label in labels], dtype=np.intp)
        self.member = np.full(used.size, -1)  # of each row, its subject
        self.member[used] = groups.ngroup()
        if SITE in rows:
            pairs = rows[[SUBJECT, SITE]].drop_duplicates().sort_values([SUBJECT, SITE])
            warn_of_two_sites(pairs[SUBJECT], pairs[SITE], stacklevel=6)
        device = next((name for name in _DEVICES if name in rows), None)
        known = rows.drop_duplicates(SUBJECT, keep="last")
        #: Of each subject, where the table names it.
        self.devices = (
            {} if device is None else dict(zip(known[SUBJECT], known[device], strict=True))
        )

    def read(self, columns: Indices) -> Iterator[tuple[Indices, Array]]:
        """Read some columns: numbers of rows, subject after subject, and values (d, n)."""
        source, first = self.source, 0
        condition, stored = np.divmod(columns, len(source.stored))
        names = [source.stored[j] for j in stored]
        for where, part in source.parts:
            with naming_file(where):
                for X in _columns_of(part, names, stored):
                    rows = np.arange(first, first + X.shape[1])
                    first += rows.size
                    for name in np.array(names)[np.isinf(X).any(axis=1)]:
                        raise InputError(
                            f"Column {str(name)!r} contains infinity: repair or drop these values "
                            "first."
                        )
                    X[condition[:, None] != self.condition[rows]] = np.nan
                    member = self.member[rows]
                    if (np.diff(member) < 0).any() or member[0] < 0:
                        order = np.argsort(member, kind="stable")
                        order = order[np.searchsorted(member[order], 0) :]
                        rows, X = rows[order], X[:, order]
                    if rows.size:
                        yield rows, X

    def count(
        self, channels: Indices, units: Array | None, keep_means: bool
    ) -> tuple[NDArray[Any], ...]:
        """Read channels (v) with d columns for the first time.

        Returns how many samples of each subject have each channel (p, v); of each row its bits
        and whether it has a channel; of each column shift and scale (2, d); of each class
        subjects, sums of means and of their squares (c, 3, d); and of each subject means of values
        and of squares (2, p, d), if they are kept.
        """
        columns, own = self._own_columns(channels)
        counts, d = np.zeros((self.codes.size, channels.size)), columns.size
        bits, seen = (np.zeros(self.member.size, dtype=kind) for kind in (np.uint64, bool))
        sums = np.zeros((1 + keep_means, d, self.codes.size))
        without = np.full(d, units is None)
        shift, scale = (np.zeros(d), np.ones(d)) if units is None else units[:, columns]
        for at, X in self.read(columns):
            member = self.member[at]
            starts = np.flatnonzero(np.diff(member, prepend=-1))
            who = member[starts]
            observed = np.concatenate([is_observed(X[None, part].swapaxes(1, 2)) for part in own])
            counts[who] += np.add.reduceat(observed, starts, axis=1, dtype=float).T
            bits[at], seen[at] = sum_bits(X.T, own), observed.any(axis=0)
            # Near the mean of the first values of a column, so that squares lose no digits.
            first = np.flatnonzero(without)
            first = first[~np.isnan(X[first]).all(axis=1)]
            if first.size:
                without[first], some = False, X[first]
                shift[first] = Scaling.learn(some.T).mean
                most = np.nanmax(np.abs(some - shift[first, None]), axis=1, initial=0.0)
                scale[first] = safe_scale(most)
            X -= shift[:, None]
            if (scale != 1).any():
                X /= scale[:, None]
            for part, has in zip(own, observed, strict=True):
                if not has.all():
                    X[np.ix_(part, ~has)] = 0.0
            for total in sums:
                total[:, who] += np.add.reduceat(X, starts, axis=1)
                np.square(X, out=X)
        of_column = channel_codes(own)
        means = sums / np.maximum(counts, 1.0).T[of_column]
        by_class = (self.codes == np.arange(len(self.labels))[:, None]).astype(float)
        n = (by_class @ (counts > 0))[:, of_column]
        moments = np.stack([n, by_class @ means[0].T, by_class @ (means[0] ** 2).T], axis=1)
        kept = means.swapaxes(1, 2) if keep_means else np.zeros((2, 0, d))
        return counts, bits, seen, np.stack([shift, scale]), moments, kept

    def add_up(
        self, channels: Indices, units: Array, counts: Array, folds: Indices, n_folds: int
    ) -> Sums:
        """Read channels for the second time, and sum them up."""
        columns, own = self._own_columns(channels)
        of_channels = counts[:, [*channels, -2, -1]]
        sums: list[Sums] = []
        for at, X in self.read(columns):
            member = self.member[at]
            part = table_sums(
                X.T,
                own,
                self.codes[member],
                folds[:, member],
                len(self.labels),
                n_folds=n_folds,
                groups=member,
                counts=of_channels,
                units=(units[0, columns], units[1, columns]),
            )
            sums = [join_sums([*sums, part])]
        blocks = [
            replace(block, channels=channels[block.channels], columns=columns[block.columns])
            for block in sums[0].blocks
        ]
        return replace(sums[0], blocks=tuple(blocks))

    def _own_columns(self, channels: Indices) -> tuple[Indices, list[Indices]]:
        """Columns of channels, and where those of each of them are among these."""
        parts = [self.source.channel_columns[v] for v in channels]
        ends = np.cumsum([part.size for part in parts])
        return np.concatenate(parts), np.split(np.arange(ends[-1]), ends[:-1])


def _columns_of(part: Any, names: Sequence[str], stored: Indices) -> Iterator[Array]:
    """Read columns, some rows at a time, as (d, n)."""
    if isinstance(part, tuple):
        yield np.ascontiguousarray(part[1][:, stored].T)
        return
    for batch in _batches(part, list(dict.fromkeys(names))):
        X = np.empty((len(names), len(batch)))
        for values, name in zip(X, names, strict=True):
            values[:] = batch.column(name).to_numpy(zero_copy_only=False)
        if len(batch):
            yield X


class Subjects:
    """What is known of each subject of each class of a table, p rows, once it has been read."""

    def __init__(
        self, source: Source, units: Array | None = None, *, keep_means: bool = False
    ) -> None:
        self.source, self.columns, self.rows = source, source.channel_columns, Rows(source)
        rows, d = self.rows, len(source.columns)
        self.names, self.labels, self.codes = rows.names, rows.labels, rows.codes
        # Samples that have each channel, all samples, and samples that have any channel
        self.counts = np.zeros((rows.codes.size, len(self.columns) + 2))
        self.units = np.zeros((2, d))  # shift and scale
        #: Of each class: subjects with the channel, sums of their means and of squares of these.
        self.moments = np.zeros((len(self.labels), 3, d))
        #: Of each subject: means of values and of squares, over the samples with the channel.
        self.means = np.zeros((2, rows.codes.size if keep_means else 0, d))
        bits, seen = (np.zeros(rows.member.size, dtype=kind) for kind in (np.uint64, bool))
        read = partial(rows.count, units=units, keep_means=keep_means)
        for channels, (counts, own_bits, own_seen, *of_columns) in self._by_block(read):
            columns = np.concatenate([self.columns[v] for v in channels])
            self.counts[:, channels] = counts
            self.units[:, columns], self.moments[..., columns], self.means[..., columns] = (
                of_columns
            )
            bits, seen = bits + own_bits, seen | own_seen
        used = rows.member >= 0
        self.hashes = mixed(bits)[used]  # of the samples
        self.counts[:, -2] = np.bincount(rows.member[used], minlength=rows.codes.size)
        self.counts[:, -1] = np.bincount(rows.member[used], seen[used], rows.codes.size)

    def _by_block(self, task: Callable[[Indices], Any]) -> Iterator[tuple[Indices, Any]]:
        """Call a function with the channels of every block, in processes where these can read."""
        sizes = np.array([part.size for part in self.columns])
        most = ELEMENTS // self.rows.codes.size
        if self.rows.member.size * sizes.sum() > ELEMENTS:
            most = min(most, -(-int(sizes.sum()) // _FEWEST_BLOCKS))
        number = (np.cumsum(sizes) - 1) // max(most, int(sizes.max()))
        blocks = [np.flatnonzero(number == i) for i in np.unique(number)]
        if all(isinstance(part, Path | tuple) for _, part in self.source.parts):
            for position, result in run_tasks(task, blocks):
                yield blocks[position], result
            return
        for channels in blocks:
            with one_blas_thread():
                yield channels, task(channels)

    def sums(self, folds: Indices, n_folds: int = N_FOLDS) -> Sums:
        """Read the table again and sum it up, each subject, in folds (n_repeats, p), once."""
        task = partial(
            self.rows.add_up, units=self.units, counts=self.counts, folds=folds, n_folds=n_folds
        )
        parts = sorted(self._by_block(task), key=lambda part: part[0][0])
        first: Sums = parts[0][1]
        blocks = join_blocks([block for _, part in parts for block in part.blocks])
        member = (folds[:, None] == first.folds[:, :, None]).all(axis=0)
        member &= self.codes == first.classes[:, None]
        seen = member[:, self.counts[:, -1] > 0].sum(axis=1, dtype=float)
        return replace(first, blocks=blocks, total=member.sum(axis=1, dtype=float), seen=seen)

    def study(self, repeats: int) -> Study:
        """Sum up the table, with the folds that rows in memory would get."""
        member = np.unique(self.names, return_inverse=True)[1]
        of_rows = member[self.rows.member[self.rows.member >= 0]]
        folds = subject_folds(self.hashes, of_rows, repeats)[:, member]
        mostly = 2 * self.counts[:, :-2] >= self.counts[:, -2:-1]
        by_class = (self.codes == np.arange(len(self.labels))[:, None]).astype(np.int64)
        return Study(
            self.source.columns,
            self.source.column_channels,
            tuple(self.labels),
            self.sums(folds),
            (by_class @ mostly).T,
            by_class.sum(axis=1),
            self.moments,
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
    _units: Array | None = None
    _n_samples: int = 0
    _study: Study | None = None

    def add(self, X: Array, labels: NDArray[Any], subjects: NDArray[Any] | None) -> Study:
        """Add samples and return the sums over all; a subject that came before is refused."""
        names = np.arange(len(X)) if subjects is None else subjects
        rows = pd.DataFrame({SUBJECT: names.astype(str), LABEL: labels})
        source = Source(self.columns, self.channels, (("", (rows, X)),), self.columns)
        known = Subjects(source, self._units)
        self._units = known.units
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
