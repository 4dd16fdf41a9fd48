"""Tables larger than memory: Parquet files read a few rows at a time, and summed up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idfsmec._columns import split_column
from idfsmec._table_checks import SITE, clean_groups, warn_of_two_sites
from idfsmec._table_files import info_of, read_info
from idfsmec._table_rows import part_header
from idfsmec.errors import InputError
from idfsmec.summaries.collect import Collector, settings_of

Array = NDArray[np.float64]

# Numbers read at a time: they fit any memory, and are enough to be summed fast.
_ELEMENTS = 8_000_000
# Pieces that are read before they are needed.
_AHEAD = 3
ABOUT = ("subject", "label")
Piece = tuple[list[Array], NDArray, NDArray]
Item = TypeVar("Item")


def collect_files(path: Path, channels: Sequence[Any] | None = None) -> Collector:
    """Sum up a Parquet table, or a folder of them, a few rows at a time.

    Parameters
    ----------
    path : Path
        A file, or a folder whose ``.parquet`` files (in folders below, too) are one table. All
        have the columns of the first.
    channels : sequence, optional
        The channel of each column; by default what their names say.
    """
    files = parquet_files(path)
    collector = collect(files, files[0], channels)
    if not collector.labels:
        raise InputError(f"{path}: there are no samples in it.")
    return collector


def collect_dataset(dataset: ds.Dataset, channels: Sequence[Any] | None = None) -> Collector:
    """Sum up a dataset of Arrow, which knows itself where its rows are, a few of them at a time.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        With the columns of a table; some may be in the names of folders, and rows filtered.
    channels : sequence, optional
        The channel of each column; by default what their names say.
    """
    columns = list(part_header(dataset.schema.names)[1])
    collector = Collector(
        columns, channels_of(columns, channels), settings_of(info_of(dataset.schema))
    )
    seen = _Whereabouts(dataset.schema.names)
    try:
        # Read ahead a little: Arrow would hold dozens of pieces.
        batches = dataset.to_batches(
            columns=[*ABOUT, *seen.column, *columns],
            batch_size=_most_rows(columns),
            batch_readahead=1,
            fragment_readahead=1,
        )
        for batch in batches:
            if len(batch):
                collector.add_columns(*_piece(batch, columns))
                seen.note(batch)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"The dataset cannot be read ({error}).") from error
    if not collector.labels:
        raise InputError("There are no samples in the dataset.")
    seen.warn()
    return collector


def channels_of(columns: Sequence[str], given: Sequence[Any] | None = None) -> list[Any]:
    """Give the channel of each column: those given, or what the names of the columns say."""
    if given is None:
        return [split_column(column)[0] for column in columns]
    if len(given) != len(columns):
        raise InputError(
            f"channels has {len(given)} labels for {len(columns)} features.", argument="channels"
        )
    return list(given)


def collect(files: Iterable[Path], like: Path, channels: Sequence[Any] | None = None) -> Collector:
    """Sum up Parquet files that have the columns of a certain one."""
    columns = _features_of(like)
    collector = Collector(columns, channels_of(columns, channels), settings_of(read_info(like)))
    seen = _Whereabouts(pq.read_schema(like).names)
    for file, piece in _ahead(_pieces_of(files, like.name, columns, seen)):
        try:
            collector.add_columns(*piece)
        except InputError as error:
            raise InputError(f"{file}: {error}") from None
    seen.warn()
    return collector


def _pieces_of(
    files: Iterable[Path], like: str, columns: list[str], seen: _Whereabouts
) -> Iterator[tuple[Path, Piece]]:
    """Pieces of files, one after the other, which all have these columns."""
    for file in files:
        if differing := set(columns) ^ set(_features_of(file)):
            raise InputError(f"{file}: has other columns than {like}, such as {min(differing)}.")
        for piece in _pieces(file, columns, seen):
            yield file, piece


def _ahead(pieces: Iterator[Item]) -> Iterator[Item]:
    """Have a thread read the next pieces while the last one is summed up: both wait for nothing.

    They come in the same order, and a few more are in memory. Some take longer to read than
    others, since Arrow decodes a whole row group when its first rows are asked for.
    """
    with ThreadPoolExecutor(1) as reader:
        coming = deque(reader.submit(next, pieces, None) for _ in range(_AHEAD))
        while (piece := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, pieces, None))
            yield piece


def parquet_files(path: Path) -> list[Path]:
    """Name the files of a dataset: the file itself, or those in a folder, in order."""
    if path.is_file():
        return [path]
    found = sorted(
        one
        for one in path.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in one.relative_to(path).parts)
    )
    if not found:
        raise InputError(f"{path}: there is no .parquet file in it.")
    return found


def _features_of(file: Path) -> list[str]:
    try:
        names = pq.read_schema(file).names
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}).") from error
    try:
        return list(part_header(names)[1])
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _pieces(file: Path, columns: list[str], seen: _Whereabouts) -> Iterator[Piece]:
    """Columns of a file, some rows at a time, with labels and people."""
    most = _most_rows(columns)
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            wanted = [*ABOUT, *seen.column, *columns]
            for batch in source.iter_batches(most, columns=wanted):
                seen.note(batch)
                yield _piece(batch, columns)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{file}: not a readable table ({error}).") from error


class _Whereabouts:
    """Who was at which site, of tables that have a column for it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.column = [SITE] if SITE in names else []
        self._pairs = pd.DataFrame(columns=[ABOUT[0], SITE])

    def note(self, batch: pa.RecordBatch) -> None:
        """Add the people of some rows."""
        if self.column:
            own = {name: clean_column(batch.column(name), name) for name in (ABOUT[0], SITE)}
            new = pd.DataFrame(own, dtype=object).drop_duplicates()
            self._pairs = pd.concat([self._pairs, new]).drop_duplicates()

    def warn(self) -> None:
        """Say who was at two."""
        if self.column:
            warn_of_two_sites(self._pairs[ABOUT[0]], self._pairs[SITE], stacklevel=7)


def _most_rows(columns: Sequence[str]) -> int:
    return max(256, _ELEMENTS // len(columns))


def _piece(batch: pa.RecordBatch, columns: Sequence[str]) -> Piece:
    people, labels = (clean_column(batch.column(name), name) for name in ABOUT)
    places = [batch.schema.get_field_index(name) for name in columns]
    return [_numbers(batch.column(place)) for place in places], labels, people


def _numbers(column: pa.Array) -> Array:
    """Values as they lie in the memory, where they can be; NaN where there is none."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def clean_column(column: pa.Array, name: str) -> NDArray:
    """Labels or subjects; each is checked once, however often it comes."""
    coded = column.dictionary_encode()
    each = coded.dictionary.to_pandas()
    if coded.null_count:
        raise InputError(f"The {name} is missing in some rows: every sample needs one.")
    cleaned = clean_groups(each, name, pd.RangeIndex(len(each))).to_numpy()
    return cleaned[coded.indices.to_numpy()]
