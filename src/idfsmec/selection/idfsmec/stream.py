"""Tables larger than memory: Parquet files read a few rows at a time, and summed up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idfsmec._columns import split_column
from idfsmec._table_checks import clean_groups
from idfsmec._table_files import read_info
from idfsmec._table_rows import part_header
from idfsmec.errors import InputError
from idfsmec.selection.idfsmec.collect import Collector, settings_of

Array = NDArray[np.float64]

# Numbers read at a time: they fit any memory, and are enough to be summed fast.
_ELEMENTS = 8_000_000
ABOUT = ("subject", "label")


def collect_files(path: Path) -> Collector:
    """Sum up a Parquet table, or a folder of them, a few rows at a time.

    Parameters
    ----------
    path : Path
        A file, or a folder whose ``.parquet`` files (in folders below, too) are one table. All
        have the columns of the first.
    """
    files = parquet_files(path)
    collector = collect(files, files[0])
    if not collector.labels:
        raise InputError(f"{path}: there are no samples in it.")
    return collector


def collect(files: Iterable[Path], like: Path) -> Collector:
    """Sum up Parquet files that have the columns of a certain one."""
    columns = _features_of(like)
    channels = [split_column(column)[0] for column in columns]
    collector = Collector(columns, channels, settings_of(read_info(like)))
    for file in files:
        if differing := set(columns) ^ set(_features_of(file)):
            raise InputError(
                f"{file}: has other columns than {like.name}, such as {min(differing)}."
            )
        for values, labels, people in _pieces(file, columns):
            try:
                collector.add_columns(values, labels, people)
            except InputError as error:
                raise InputError(f"{file}: {error}") from None
    return collector


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


def _pieces(file: Path, columns: list[str]) -> Iterator[tuple[list[Array], NDArray, NDArray]]:
    """Columns of a file, some rows at a time, with labels and people."""
    most = max(256, _ELEMENTS // len(columns))
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            for batch in source.iter_batches(most, columns=[*ABOUT, *columns]):
                people, labels = (clean_column(batch.column(name), name) for name in ABOUT)
                places = [batch.schema.get_field_index(name) for name in columns]
                yield [_numbers(batch.column(place)) for place in places], labels, people
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{file}: not a readable table ({error}).") from error


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
