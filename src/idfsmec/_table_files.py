"""Feature tables as files: Parquet or CSV, written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from idfsmec._files import replacing
from idfsmec._table_checks import GROUPS, check_header, clean_features, clean_groups
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


def write_parts(path: Path, parts: Parts) -> None:
    """Write features, labels, subjects and info to one table file."""
    X, y, subjects, info = parts
    groups = pd.DataFrame(dict(zip(GROUPS, (subjects, y), strict=True)))
    frame = pd.concat([groups, X.reset_index(drop=True)], axis=1)
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


def _gzipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _open_text(path: Path) -> IO[str]:
    """Open a text file, gzipped or not; a byte order mark is skipped."""
    if _gzipped(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame as CSV, gzipped if the name says so; numbers survive exactly."""
    # Arrow writes the shortest digits that read back the same, ten times as fast as pandas.
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with path.open("wb") as file:
        if not _gzipped(path):
            pa_csv.write_csv(table, file)
            return
        # Neither name nor time goes into the file: the same table gives the same bytes.
        with gzip.GzipFile("", "wb", 6, fileobj=file, mtime=0) as packed:
            pa_csv.write_csv(table, packed)


def read_csv(path: Path, hand_made: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a CSV table.

    Parameters
    ----------
    path : Path
    hand_made : bool
        Whether a bare ``NA`` among subjects and labels is a missing value. In a table of ours
        it is somebody's name for a group.

    Returns
    -------
    features : DataFrame of shape (n_samples, n_features)
    groups : DataFrame of shape (n_samples, 2)
        Subjects and labels, as text.
    """
    try:
        layout = _sniff(path)
        frame = _parse(path, layout, hand_made)
    except (
        UnicodeDecodeError,
        EOFError,
        OSError,
        zlib.error,
        csv.Error,
        pa.ArrowException,
    ) as error:
        raise InputError(f"not a readable CSV file ({error}).") from error
    features = clean_features(frame.loc[:, layout.features], _name_line)
    groups = {name: clean_groups(frame[name], name, frame.index, _name_line) for name in GROUPS}
    return features, pd.DataFrame(groups)


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
    with _open_text(path) as file:
        head = file.readline()
        file.seek(0)
        separator = max(",;\t", key=head.count)
        reader = csv.reader(file, delimiter=separator)
        columns = next(reader, [])
        first = next(reader, [])
    # R's write.csv and pandas' to_csv put row names into a first column without a name.
    named = columns[1:] if columns and columns[0] == "" else columns
    check_header(named)
    comma = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in first)
    features = [column for column in named if column not in GROUPS]
    return _Layout(separator, "," if comma else ".", features)


_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")
# What pandas, R, Julia and spreadsheets write where a number is missing.
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "missing"]


def _parse(path: Path, layout: _Layout, hand_made: bool) -> pd.DataFrame:
    """Parse a CSV file strictly: a line with too few or too many cells is refused."""

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


def kind_of(series: pd.Series) -> str:
    """Name the dtype of labels or subjects for the sidecar of a CSV file."""
    if series.dtype == np.int64:
        return "integer"
    if series.dtype == np.float64:
        return "number"
    return "boolean" if series.dtype == np.bool_ else "text"


def restore(text: pd.Series, kind: str | None) -> pd.Series:
    """Turn the text of a CSV column back into what the sidecar says it was.

    Without a sidecar, labels that are all plain integers are integers; subjects stay text,
    because the zeros in front of ``02010002`` are part of the name.
    """
    if kind is None:
        whole = r"-?(0|[1-9][0-9]{0,17})(\.0)?"  # pandas writes 1.0 where labels were floats
        if text.name == "label" and text.str.fullmatch(whole).all():
            text, kind = text.str.removesuffix(".0"), "integer"
        else:
            kind = "text"
    try:
        if kind == "boolean":
            return text.map({"true": True, "false": False}.__getitem__).astype(bool)
        return text.astype({"integer": np.int64, "number": np.float64}.get(kind, text.dtype))
    except (ValueError, KeyError) as error:
        raise InputError(
            f"the {text.name}s are not the {kind} values that the .info.json file beside the "
            "table says they are: delete that file if the table was changed by hand."
        ) from error
