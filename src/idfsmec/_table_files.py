"""Feature tables as files: Parquet or CSV, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idfsmec._columns import SEPARATOR
from idfsmec._files import replacing
from idfsmec._table_checks import GROUPS, SITE
from idfsmec._table_csv import kind_of, read_csv, restore, write_csv
from idfsmec._table_reasons import digest, pack, read_reasons, reasons_path
from idfsmec._table_rows import KNOWN, part_header
from idfsmec.errors import InputError

FORMAT_VERSION = 2
METADATA_KEY = b"idfsmec"
# Columns of a file that are put beside each other at a time.
_COLUMNS = 64


class Parts(NamedTuple):
    """What a feature table is made of."""

    X: pd.DataFrame
    y: pd.Series
    subjects: pd.Series
    info: dict[str, Any]
    sites: pd.Series | None = None
    rows: pd.DataFrame | None = None
    reasons: pd.DataFrame | None = None


def file_format(path: Path) -> str:
    """Tell from a file's name how it is, or will be, written.

    Examples
    --------
    >>> file_format(Path("table.parquet")), file_format(Path("table.csv.gz"))
    ('parquet', 'csv')
    """
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    if name.endswith((".parquet", ".pq")) or not path.suffix:
        return "parquet"
    raise InputError(f"{path}: a feature table ends in .parquet, .csv or .csv.gz.")


def sidecar_path(path: Path) -> Path:
    """Name the file beside a CSV table that keeps its ``info`` and dtypes.

    Examples
    --------
    >>> sidecar_path(Path("table.csv.gz")).name
    'table.csv.gz.info.json'
    """
    return path.with_name(path.name + ".info.json")


def files_beside(path: Path) -> list[Path]:
    """Name the files that may be written beside a table."""
    return [*([sidecar_path(path)] if file_format(path) == "csv" else []), reasons_path(path)]


def write_parts(path: Path, parts: Parts) -> None:
    """Write a table and what is known about its rows to one file."""
    about = pd.DataFrame(dict(zip(GROUPS, (parts.subjects, parts.y), strict=True)))
    if parts.sites is not None:
        about[SITE] = parts.sites
    if parts.rows is not None:
        about = pd.concat([about, parts.rows], axis=1)
    frame = pd.concat([about, parts.X.reset_index(drop=True)], axis=1)
    # A table with nothing that version 1 lacks can be read by those who know version 1 only.
    version = 1 if about.shape[1] == len(GROUPS) else FORMAT_VERSION
    metadata: dict[str, Any] = {"format_version": version, "info": parts.info}
    beside: dict[Path, bytes] = {}
    if parts.reasons is not None:
        beside[reasons_path(path)] = pack(parts.reasons)
        metadata["reasons"] = digest(beside[reasons_path(path)])
    if file_format(path) == "parquet":
        table = pa.Table.from_pandas(frame, preserve_index=False)
        schema_metadata = {**table.schema.metadata, METADATA_KEY: json.dumps(metadata).encode()}
        _replace(path, beside, lambda temporary: _write_parquet(temporary, table, schema_metadata))
    else:
        metadata["dtypes"] = {str(name): kind_of(about[name]) for name in about}
        beside[sidecar_path(path)] = json.dumps(metadata, indent=2).encode()
        _replace(path, beside, lambda temporary: write_csv(temporary, frame))
    if parts.reasons is None:
        reasons_path(path).unlink(missing_ok=True)  # of a table that is no more


def _replace(path: Path, beside: Mapping[Path, bytes], write: Callable[[Path], None]) -> None:
    with replacing(*beside, path) as temporaries:
        for temporary, content in zip(temporaries, beside.values(), strict=False):
            temporary.write_bytes(content)
        write(temporaries[-1])


def _write_parquet(path: Path, table: pa.Table, metadata: dict[bytes, bytes]) -> None:
    # With checksums: a flipped bit is found when the table is read.
    pq.write_table(table.replace_schema_metadata(metadata), path, write_page_checksum=True)


def read_parts(path: Path) -> Parts:
    """Read what :func:`write_parts` wrote, or a table of that shape made by hand."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        return _read_parquet(path) if file_format(path) == "parquet" else _read_csv(path)
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(str(path)) else f"{path}: {message}") from (
            error.__cause__
        )


def read_info(path: Path) -> dict[str, Any]:
    """Read how a Parquet table was made, without its rows."""
    try:
        return info_of(pq.read_schema(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error.__cause__


def info_of(schema: pa.Schema) -> dict[str, Any]:
    """Tell from the schema of Parquet files how their table was made."""
    return _check_metadata((schema.metadata or {}).get(METADATA_KEY)).get("info", {})


def _read_parquet(path: Path) -> Parts:
    try:
        # The file alone: a folder called "session=1" is a name here, not a column.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            metadata = (file.schema_arrow.metadata or {}).get(METADATA_KEY)
            about = _check_metadata(metadata)
            names, plain = _header(file.schema_arrow)
            rows, features = part_header(names)
            others = [name for name in names if name not in set(plain)]
            frame = _read_columns(file, others if plain else None).to_pandas(
                ignore_metadata=True, use_threads=False
            )
            values = _read_plain(file, plain)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"needs more memory than there is, or is damaged ({error}).") from error
    except Exception as error:
        # A damaged file makes Arrow raise anything, from OSError to UnicodeDecodeError.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"not a readable Parquet file ({reason}).") from error
    return Parts(
        pd.DataFrame(values, columns=pd.Index(plain), copy=False) if plain else frame[features],
        frame["label"],
        frame["subject"],
        about.get("info", {}),
        frame.get(SITE),
        frame[rows] if rows else None,
        read_reasons(path, about.get("reasons")),
    )


def _header(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Names of columns, without the index of pandas; and the features, if all are plain numbers.

    What the index tells about rows stays.
    """
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    known = (*GROUPS, SITE, *KNOWN)
    row_names = [name for name in index if isinstance(name, str) and name not in known]
    names = [name for name in schema.names if name not in row_names]
    features = [name for name in names if SEPARATOR in name and name not in known]
    plain = len(set(names)) == len(names) and all(
        "." not in name and schema.field(name).type == pa.float64() for name in features
    )
    return names, features if plain else []


def _read_plain(file: pq.ParquetFile, names: list[str]) -> NDArray[np.float64]:
    """Read columns of numbers into one array, row by row, as everybody wants them.

    A few at a time: all of them in Arrow's memory would be the table two more times.
    """
    values = np.empty((file.metadata.num_rows, len(names)))
    for first in range(0, len(names), _COLUMNS):
        some = names[first : first + _COLUMNS]
        table = _read_columns(file, some)
        values[:, first : first + len(some)] = np.column_stack(
            [table.column(name).to_numpy() for name in some]
        )
    return values


def _read_columns(file: pq.ParquetFile, names: list[str] | None) -> pa.Table:
    # Without threads: where none can be started, Arrow waits for them for ever.
    return file.read(columns=names, use_threads=False)


def _read_csv(path: Path) -> Parts:
    sidecar = sidecar_path(path)
    metadata = _check_metadata(sidecar.read_bytes() if sidecar.is_file() else None)
    kinds = metadata.get("dtypes", {})
    features, groups, rows = read_csv(path, hand_made=not metadata)
    about = {str(name): restore(groups[name], kinds.get(str(name))) for name in groups}
    if rows is not None:
        restored = {str(name): restore(rows[name], kinds.get(str(name))) for name in rows}
        rows = pd.DataFrame(restored)
    return Parts(
        features,
        about["label"],
        about["subject"],
        metadata.get("info", {}),
        about.get(SITE),
        rows,
        read_reasons(path, metadata.get("reasons")),
    )


def _check_metadata(text: bytes | str | None) -> dict[str, Any]:
    """Parse the metadata of a table file; a table made by hand has none."""
    if text is None:
        return {}
    try:
        metadata = json.loads(text)
        version = int(metadata["format_version"])
        if not all(isinstance(metadata.get(key, {}), dict) for key in ("info", "dtypes")):
            raise TypeError("info and dtypes are mappings")
        if not all(isinstance(kind, str) for kind in metadata.get("dtypes", {}).values()):
            raise TypeError("dtypes are words")
    except Exception as error:
        # json.loads gives anything, down to RecursionError and infinite numbers.
        raise InputError("the metadata written by idfsmec is damaged.") from error
    if version > FORMAT_VERSION:
        raise InputError(
            f"written in format version {version} by a newer idfsmec, and this one reads up to "
            f"{FORMAT_VERSION}: upgrade idfsmec."
        )
    return metadata
