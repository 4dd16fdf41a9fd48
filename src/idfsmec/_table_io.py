"""Feature tables as files: Parquet or CSV, written whole or not at all."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from idfsmec._table_checks import GROUPS, check_header
from idfsmec._table_csv import kind_of, read_csv, restore, write_csv
from idfsmec.errors import InputError

FORMAT_VERSION = 1
METADATA_KEY = b"idfsmec"

Parts = tuple[pd.DataFrame, pd.Series, pd.Series, dict[str, Any]]


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


def _beside(path: Path, process: int | str, unique: str | None = None) -> Path:
    """Name a file beside another by the machine and the process that writes it."""
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    return path.with_name(f".{machine}-{process}-{unique or uuid.uuid4().hex}.{path.name}")


def _sweep(path: Path) -> None:
    """Remove what a killed process of this machine left beside a file."""
    if os.name != "posix":  # elsewhere one cannot ask for a process without harming it
        return
    pattern = _beside(Path(glob.escape(path.name)), "*", "*").name
    for left in path.parent.glob(pattern):
        try:
            os.kill(int(left.name.split("-")[1]), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (OSError, ValueError):
            continue  # somebody else's, or not ours at all


def naming(error: OSError, path: Path) -> OSError:
    """Say which file it was: a full disk alone does not help anybody.

    Examples
    --------
    >>> str(naming(OSError(28, "No space left on device"), Path("table.csv")))
    "[Errno 28] No space left on device: 'table.csv'"
    """
    if error.errno is None:
        return OSError(f"{path}: {error}")
    return OSError(error.errno, error.strerror or str(error), str(path))


@contextmanager
def replacing(*paths: Path) -> Iterator[list[Path]]:
    """Give names to write to; they replace ``paths`` only when everything went well."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    beside = [_beside(path, os.getpid()) for path in paths]
    try:
        yield beside
        for temporary in beside:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # or a power cut could leave the name without the bytes
        for temporary, path in zip(beside, paths, strict=True):
            os.replace(temporary, path)  # noqa: PTH105 - the atomic one, by its name
            _sweep(path)
    except OSError as error:
        raise naming(error, paths[-1]) from error
    finally:
        for temporary in beside:
            with suppress(OSError):  # a disk closed for writing must not hide what went wrong
                temporary.unlink(missing_ok=True)


def write_parts(path: Path, parts: Parts) -> None:
    """Write features, labels, subjects and info to one table file."""
    X, y, subjects, info = parts
    groups = pd.DataFrame(dict(zip(GROUPS, (subjects, y), strict=True)))
    frame = pd.concat([groups, X], axis=1)
    metadata: dict[str, Any] = {"format_version": FORMAT_VERSION, "info": info}
    if file_format(path) == "parquet":
        table = pa.Table.from_pandas(frame, preserve_index=False)
        schema_metadata = {**table.schema.metadata, METADATA_KEY: json.dumps(metadata).encode()}
        with replacing(path) as (temporary,):
            pq.write_table(
                table.replace_schema_metadata(schema_metadata),
                temporary,
                write_page_checksum=True,  # a flipped bit is found when the table is read
            )
        return
    metadata["dtypes"] = {name: kind_of(groups[name]) for name in GROUPS}
    with replacing(sidecar_path(path), path) as (sidecar, temporary):
        sidecar.write_text(json.dumps(metadata, indent=2), encoding="utf-8")
        write_csv(temporary, frame)


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


def _read_parquet(path: Path) -> Parts:
    try:
        # A folder called "session=1" is a name here, not a column.
        table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
        frame = _without_row_names(table)
    except Exception as error:
        # A damaged file makes Arrow raise anything, from OSError to UnicodeDecodeError.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"not a readable Parquet file ({reason}).") from error
    metadata = _check_metadata((table.schema.metadata or {}).get(METADATA_KEY))
    check_header(frame.columns.tolist())
    features = frame.drop(columns=list(GROUPS))
    return features, frame["label"], frame["subject"], metadata.get("info", {})


def _without_row_names(table: pa.Table) -> pd.DataFrame:
    """Drop the index that pandas stores as columns; a subject in the index is a subject."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    row_names = [name for name in index if isinstance(name, str) and name not in GROUPS]
    return table.to_pandas(ignore_metadata=True).drop(columns=row_names)


def _read_csv(path: Path) -> Parts:
    sidecar = sidecar_path(path)
    metadata = _check_metadata(sidecar.read_bytes() if sidecar.is_file() else None)
    kinds = metadata.get("dtypes", {})
    features, groups = read_csv(path, hand_made=not metadata)
    subjects, labels = (restore(groups[name], kinds.get(name)) for name in GROUPS)
    return features, labels, subjects, metadata.get("info", {})


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
