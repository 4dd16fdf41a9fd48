"""Tables larger than memory: Parquet files read a few rows at a time, and summed up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from idfsmec.selection._base import refuse_infinite
from idfsmec.selection.idfsmec.collect import Collector, settings_of

Array = NDArray[np.float64]

# Numbers read at a time: they fit any memory, and are enough to be summed fast.
_ELEMENTS = 8_000_000


def collect_files(path: Path) -> Collector:
    """Sum up a Parquet table, or a folder of them, a few rows at a time.

    Parameters
    ----------
    path : Path
        A file, or a folder whose ``.parquet`` files (in folders below, too) are one table. All
        have the columns of the first.
    """
    collector = collect(parquet_files(path))
    if not collector.labels:
        raise InputError(f"{path}: there are no samples in it.")
    return collector


def collect(files: Sequence[Path]) -> Collector:
    """Sum up Parquet files with the same columns."""
    columns = _features_of(files[0])
    channels = [split_column(column)[0] for column in columns]
    collector = Collector(columns, channels, settings_of(read_info(files[0])))
    for file in files:
        if differing := set(columns) ^ set(_features_of(file)):
            raise InputError(
                f"{file}: has other columns than {files[0].name}, such as {min(differing)}."
            )
        for X, labels, people in _pieces(file, columns):
            try:
                refuse_infinite(str(file), X, columns)
            except ValueError as error:
                raise InputError(str(error)) from None
            collector.add(X, labels, people)
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


def _pieces(file: Path, columns: list[str]) -> Iterator[tuple[Array, NDArray, NDArray]]:
    """Rows of a file, some at a time; each piece is overwritten by the next."""
    most = max(256, _ELEMENTS // len(columns))
    # Column by column, as the file has them.
    buffer = np.empty((len(columns), most))
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            for batch in source.iter_batches(most, columns=["subject", "label", *columns]):
                people, labels = (_groups(batch, name) for name in ("subject", "label"))
                X = buffer[:, : batch.num_rows]
                for values, name in zip(X, columns, strict=True):
                    values[:] = batch.column(name).to_numpy(zero_copy_only=False)
                yield X.T, labels, people
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{file}: not a readable table ({error}).") from error


def _groups(batch: pa.RecordBatch, name: str) -> NDArray:
    index = pd.RangeIndex(batch.num_rows)
    return clean_groups(batch.column(name).to_pandas(), name, index).to_numpy()
