"""Feature tables as files: Parquet or CSV, written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from idfsmec._table_checks import check_columns, clean_features, clean_groups
from idfsmec.errors import InputError

FORMAT_VERSION = 1
METADATA_KEY = b"idfsmec"
GROUPS = ("subject", "label")

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


@contextmanager
def replacing(*paths: Path) -> Iterator[list[Path]]:
    """Give names to write to; they replace ``paths`` only when everything went well."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    beside = [path.with_name(f".{uuid.uuid4().hex}.{path.name}") for path in paths]
    try:
        yield beside
        for temporary, path in zip(beside, paths, strict=True):
            os.replace(temporary, path)  # noqa: PTH105 - the atomic one, by its name
    finally:
        for temporary in beside:
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
            pq.write_table(table.replace_schema_metadata(schema_metadata), temporary)
        return
    metadata["dtypes"] = {name: _kind(groups[name]) for name in GROUPS}
    with replacing(sidecar_path(path), path) as (sidecar, temporary):
        sidecar.write_text(json.dumps(metadata, indent=2), encoding="utf-8")
        with _open_text(temporary, "w") as file:
            frame.to_csv(file, index=False, lineterminator="\n")


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
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"not a readable Parquet file ({error}).") from error
    _check_header([name for name in table.column_names if not name.startswith("__index_level")])
    metadata = _check_metadata((table.schema.metadata or {}).get(METADATA_KEY))
    frame = table.to_pandas()
    features = frame.drop(columns=list(GROUPS))
    return features, frame["label"], frame["subject"], metadata.get("info", {})


def _check_metadata(text: bytes | str | None) -> dict[str, Any]:
    """Parse the metadata of a table file; a table made by hand has none."""
    if text is None:
        return {}
    try:
        metadata = json.loads(text)
        version = int(metadata["format_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("the metadata written by idfsmec is damaged.") from error
    if version > FORMAT_VERSION:
        raise InputError(
            f"written in format version {version} by a newer idfsmec, and this one reads up to "
            f"{FORMAT_VERSION}: upgrade idfsmec."
        )
    return metadata


def _check_header(columns: list[str]) -> None:
    for name in GROUPS:
        if columns.count(name) != 1:
            found = ", ".join(repr(column) for column in columns[:5])
            raise InputError(
                f"needs exactly one column {name!r}, has {columns.count(name)}. A table has the "
                f"columns subject, label, then the features; this one begins with {found}."
            )
    check_columns([column for column in columns if column not in GROUPS])


def _gzipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


@contextmanager
def _open_text(path: Path, mode: str) -> Iterator[IO[str]]:
    """Open a text file, gzipped or not; a byte order mark is skipped when reading."""
    encoding = "utf-8" if mode == "w" else "utf-8-sig"
    if not _gzipped(path):
        with path.open(mode, encoding=encoding, newline="") as file:
            yield file
        return
    # Neither name nor time goes into the file: the same table gives the same bytes.
    with (
        path.open(f"{mode}b") as raw,
        gzip.GzipFile("", f"{mode}b", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding=encoding, newline="") as file,
    ):
        yield file


def _read_csv(path: Path) -> Parts:
    sidecar = sidecar_path(path)
    metadata = _check_metadata(sidecar.read_bytes() if sidecar.is_file() else None)
    try:
        layout = _sniff(path)
        frame = _parse_csv(path, layout, hand_made=not metadata)
    except (UnicodeDecodeError, EOFError, OSError, csv.Error, pa.ArrowException) as error:
        raise InputError(f"not a readable CSV file ({error}).") from error
    kinds = metadata.get("dtypes", {})
    groups = {
        name: _restore(clean_groups(frame[name], name, frame.index, _name_line), kinds.get(name))
        for name in GROUPS
    }
    features = clean_features(frame.loc[:, layout.features], _name_line)
    return features, groups["label"], groups["subject"], metadata.get("info", {})


def _name_line(row: int) -> str:
    return f"line {row + 2}"


@dataclass(frozen=True)
class _Layout:
    """How a CSV file is laid out: separator, decimal sign and feature columns."""

    separator: str
    decimal: str
    features: list[str]


def _sniff(path: Path) -> _Layout:
    """Find out how a CSV file is laid out, and check its header."""
    with _open_text(path, "r") as file:
        head = file.readline()
        file.seek(0)
        separator = max(",;\t", key=head.count)
        reader = csv.reader(file, delimiter=separator)
        columns = next(reader, [])
        first = next(reader, [])
    # R's write.csv and pandas' to_csv put row names into a first column without a name.
    named = columns[1:] if columns and columns[0] == "" else columns
    _check_header(named)
    comma = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in first)
    features = [column for column in named if column not in GROUPS]
    return _Layout(separator, "," if comma else ".", features)


_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")
# What pandas, R, Julia and spreadsheets write where a number is missing.
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "missing"]


def _parse_csv(path: Path, layout: _Layout, hand_made: bool) -> pd.DataFrame:
    """Parse a CSV file strictly: a line with too few or too many cells is refused.

    The groups come as text. In a table made by hand, a bare ``NA`` among them is a missing
    value; in one of ours it is somebody's name for a group.
    """

    def parse(feature_type: pa.DataType) -> pd.DataFrame:
        types = dict.fromkeys(layout.features, feature_type) | dict.fromkeys(GROUPS, pa.string())
        with pa.input_stream(str(path), compression="gzip" if _gzipped(path) else None) as stream:
            table = pa_csv.read_csv(
                stream,
                parse_options=pa_csv.ParseOptions(
                    delimiter=layout.separator, newlines_in_values=True
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=types,
                    null_values=_NULLS,
                    strings_can_be_null=hand_made,
                    quoted_strings_can_be_null=False,
                    decimal_point=layout.decimal,
                    include_columns=[*GROUPS, *layout.features],
                ),
            )
        return table.to_pandas()

    try:
        return parse(pa.float64())
    except pa.ArrowInvalid:
        _find_text(parse(pa.string()), layout)
        raise


def _find_text(frame: pd.DataFrame, layout: _Layout) -> None:
    """Raise for the first cell of the features that is no number."""
    for column in layout.features:
        for row, cell in enumerate(frame[column]):
            if pd.isna(cell) or cell in _NULLS:
                continue
            try:
                float(cell.replace(layout.decimal, "."))
            except ValueError:
                raise InputError(
                    f"Column {column!r} holds {cell!r} in {_name_line(row)}, which is no "
                    "number: features are numbers, and a missing channel is an empty cell."
                ) from None


def _kind(series: pd.Series) -> str:
    """Name the dtype of labels or subjects for the sidecar of a CSV file."""
    if series.dtype == np.int64:
        return "integer"
    if series.dtype == np.float64:
        return "number"
    return "boolean" if series.dtype == np.bool_ else "text"


def _restore(text: pd.Series, kind: str | None) -> pd.Series:
    """Turn the text of a CSV column back into what the sidecar says it was.

    Without a sidecar, labels that are all plain integers are integers; subjects stay text,
    because the zeros in front of ``02010002`` are part of the name.
    """
    if kind is None:
        plain = text.name == "label" and text.str.fullmatch(r"-?(0|[1-9][0-9]{0,17})").all()
        kind = "integer" if plain else "text"
    try:
        if kind == "boolean":
            return text.map({"True": True, "False": False}.__getitem__).astype(bool)
        return text.astype({"integer": np.int64, "number": np.float64}.get(kind, text.dtype))
    except (ValueError, KeyError) as error:
        raise InputError(
            f"the {text.name}s are not the {kind} values that the .info.json file beside the "
            "table says they are: delete that file if the table was changed by hand."
        ) from error
