"""Feature tables as files: Parquet, CSV, or a folder of Parquet files below one another.

A table has the columns subject, label, optionally site and others about rows, then the features.
What a format has no place for stands beside it: ``<file name>.info.json`` (of CSV: how the table
was made, and dtypes) and ``<file name>.reasons.tsv.gz`` (why channels are missing).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from idfsmec._files import (
    check_readable,
    find_separator,
    read_utf8,
    refuse_oversized,
    replacing,
)
from idfsmec.errors import InputError, reason_of
from idfsmec.table.columns import GROUPS, KNOWN, LABEL, LINE, SITE, TEXT, part_header

if TYPE_CHECKING:
    from idfsmec.table.feature_table import FeatureTable

FORMAT_VERSION = 2
METADATA_KEY = b"idfsmec"
_COLUMNS_AT_ONCE = 128
_VALUES_AT_ONCE = 4_000_000
_REMEDY = "use means by participant (--per participant, FeatureTable.read_by_subject)"
#: What the sidecar of a CSV file calls dtypes; any other is text.
_KINDS = {"int64": "integer", "float64": "number", "bool": "boolean"}


def file_format(path: Path) -> str:
    """Return the format of a file by its name: "parquet" or "csv"."""
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    if name.endswith((".parquet", ".pq")) or not path.suffix:
        return "parquet"
    raise InputError(f"{path}: a feature table ends in .parquet, .csv or .csv.gz.")


def sidecar_path(path: Path) -> Path:
    """Name the file beside a CSV table that keeps its ``info`` and dtypes."""
    return path.with_name(path.name + ".info.json")


def reasons_path(path: Path) -> Path:
    """Name the file beside a table that says why channels are missing."""
    return path.with_name(path.name + ".reasons.tsv.gz")


def files_beside(path: Path) -> list[Path]:
    """Name the files that may be written beside a table."""
    return [*([sidecar_path(path)] if file_format(path) == "csv" else []), reasons_path(path)]


def write_table(path: Path, table: FeatureTable) -> None:
    """Write a table and what is known about its rows."""
    frame = table.to_frame()
    row_facts = frame.drop(columns=table.X.columns)
    # A table with nothing that version 1 lacks can be read by those who know version 1 only.
    version = 1 if row_facts.shape[1] == len(GROUPS) else FORMAT_VERSION
    metadata: dict[str, Any] = {"format_version": version, "info": table.info}
    contents: dict[Path, bytes] = {}
    if table.reasons is not None:
        layout: dict[str, Any] = {"sep": "\t", "index": False, "quoting": csv.QUOTE_NONNUMERIC}
        text = table.reasons.to_csv(lineterminator="\n", **layout)
        contents[reasons_path(path)] = packed = gzip.compress(text.encode(), 6, mtime=0)
        metadata["reasons"] = hashlib.sha256(packed).hexdigest()
    schema = pa.Schema.from_pandas(frame, preserve_index=False)
    if file_format(path) == "csv":
        dtypes = {str(name): str(dtype) for name, dtype in row_facts.dtypes.items()}
        metadata["dtypes"] = {name: _KINDS.get(dtype, "text") for name, dtype in dtypes.items()}
        contents[sidecar_path(path)] = json.dumps(metadata, indent=2).encode()
    else:
        embedded = {**schema.metadata, METADATA_KEY: json.dumps(metadata).encode()}
        schema = schema.with_metadata(embedded)
    with replacing(*contents, path) as (*temporaries, beside):
        for temporary, content in zip(temporaries, contents.values(), strict=True):
            temporary.write_bytes(content)
        with _writer(path, beside, schema) as writer:
            # Some rows at a time: Arrow would hold a copy of all of them.
            n_rows = max(1, _VALUES_AT_ONCE // len(schema))
            for first in range(0, len(frame), n_rows):
                rows = frame.iloc[first : first + n_rows]
                writer.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False))
    if table.reasons is None:
        reasons_path(path).unlink(missing_ok=True)  # of a table that is no more


@contextmanager
def _writer(path: Path, beside: Path, schema: pa.Schema) -> Iterator[Any]:
    """Open a file beside the table's for Arrow to write to."""
    with beside.open("wb") as file:
        if file_format(path) == "parquet":
            # With checksums: a flipped bit is found when the table is read.
            with pq.ParquetWriter(file, schema, write_page_checksum=True) as writer:
                yield writer
            return
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if _is_gzipped(path) else file
        with packed as sink, pa_csv.CSVWriter(sink, schema) as writer:
            yield writer  # the shortest digits that read back the same


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame | None]:
    """Read the columns of a table, its ``info`` and the reasons why channels are missing."""
    check_readable(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    frame, metadata = _read_parquet(path) if file_format(path) == "parquet" else _read_csv(path)
    return frame, metadata.get("info", {}), _read_reasons(path, metadata.get("reasons"))


def read_in_pieces(path: Path) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """Read some rows at a time, with the ``info`` of their file; a CSV file whole."""
    check_readable(path)
    if not path.is_dir() and not (path.is_file() and file_format(path) == "parquet"):
        yield read_table(path)[:2]
        return
    for part in parquet_files(path):
        with naming_file(part), open_parquet(part) as file:
            metadata, columns, _ = _header(file.schema_arrow)
            n_rows = max(1, _VALUES_AT_ONCE // len(columns))
            for batch in file.iter_batches(n_rows, columns=columns, use_threads=False):
                frame = batch.to_pandas(use_threads=False)
                yield frame[columns], metadata.get("info", {})


def parquet_files(path: Path) -> list[Path]:
    """Name the files of a table: the file itself, or those in a folder, in order."""
    check_readable(path)
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


def refuse_large_folder(path: Path) -> list[Path]:
    """Refuse a folder with more numbers than this machine can hold; else name its files."""
    files, n_values = parquet_files(path), 0
    for part in files:
        with naming_file(part), open_parquet(part) as file:
            n_values += file.metadata.num_rows * len(file.schema_arrow)
    refuse_oversized(f"{path}: its {len(files)} files", n_values, _REMEDY)
    return files


def open_parquet(file: Path) -> pq.ParquetFile:
    """Open a file that is read in pieces: some pages of a column at a time, with checksums."""
    options = {"pre_buffer": False, "buffer_size": 2**20}
    return pq.ParquetFile(file, page_checksum_verification=True, **options)


@contextmanager
def naming_file(where: Path | str) -> Iterator[None]:
    """Name a file in errors of reading it; empty where there is none."""
    where = f"{where}: " if isinstance(where, Path) else where
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        damaged = where and isinstance(error, OSError | pa.ArrowException)
        what = "Parquet file" if damaged else "table"
        raise InputError(f"{where or 'The table: '}not a readable {what} ({error}).") from error


def info_of(schema: pa.Schema) -> dict[str, Any]:
    """Return the ``info`` of a table from the schema of its Parquet files."""
    info: dict[str, Any] = _parse_metadata((schema.metadata or {}).get(METADATA_KEY)).get(
        "info", {}
    )
    return info


def _parse_metadata(text: bytes | None) -> dict[str, Any]:
    """Parse the metadata of a table file; a table made by hand has none."""
    if text is None:
        return {}
    try:
        metadata: dict[str, Any] = json.loads(text)
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


def _read_parquet(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    try:
        # The file alone: a folder called "session=1" is a name here, not a column.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            refuse_oversized(
                f"its {file.metadata.num_rows:,} rows of {len(schema)} columns",
                file.metadata.num_rows * len(schema),
                _REMEDY,
            )
            metadata, columns, features = _header(schema)
            doubles = [name for name in features if schema.field(name).type == pa.float64()]
            frame = _read_columns(file, [name for name in columns if name not in set(doubles)])
            # Some columns at a time: Arrow, pandas and the table would hold all of them each.
            values = np.empty((len(frame), len(doubles)))
            for first in range(0, len(doubles), _COLUMNS_AT_ONCE):
                names = doubles[first : first + _COLUMNS_AT_ONCE]
                values[:, first : first + len(names)] = _read_columns(file, names)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"needs more memory than there is, or is damaged ({error}).") from error
    except Exception as error:
        # A damaged file makes Arrow raise anything, from OSError to UnicodeDecodeError.
        raise InputError(f"not a readable Parquet file ({reason_of(error)}).") from error
    numbers = pd.DataFrame(values, frame.index, doubles, copy=False)
    return pd.concat([frame, numbers], axis=1), metadata


def _header(schema: pa.Schema) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the metadata, the columns and the features of a file."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    named = (*GROUPS, SITE, *KNOWN)  # what the index of pandas tells about rows stays
    dropped = [name for name in index if isinstance(name, str) and name not in named]
    columns = [name for name in schema.names if name not in dropped]
    metadata = _parse_metadata((schema.metadata or {}).get(METADATA_KEY))
    return metadata, columns, check_schema(schema, columns)


def _read_columns(file: pq.ParquetFile, names: list[str]) -> pd.DataFrame:
    # Without threads: where none can be started, Arrow waits for them for ever.
    arrow = file.read(columns=names, use_threads=False)
    frame: pd.DataFrame = arrow.to_pandas(ignore_metadata=True, use_threads=False)
    return frame[names]


def check_schema(schema: pa.Schema, names: list[str]) -> list[str]:
    """Refuse the columns of a Parquet file that no table can have; return the features."""
    _, features = part_header(names)
    for column in schema:
        if pa.types.is_nested(column.type):
            raise InputError(
                f"Column {column.name!r} holds lists or structures ({column.type}): a cell is one "
                "number or text; give each part a column of its own."
            )
    return features


def column_names(path: Path) -> list[str]:
    """Return the columns of a file; none if it cannot be read."""
    try:
        if file_format(path) == "parquet":
            return list(map(str, pq.read_schema(path).names))
        return _find_signs(read_utf8(path))[-1]
    except (*_UNREADABLE, ValueError):
        return []


def read_frame(path: Path) -> pd.DataFrame:
    """Read a file of any columns, each of the type that its cells have; names of rows are text."""
    if file_format(path) == "parquet":
        return pd.read_parquet(path).rename(columns=str).reset_index(drop=True)
    try:
        content = read_utf8(path)
        separator, decimal, named = _find_signs(content)
        options = pa_csv.ConvertOptions(
            column_types={name: pa.string() for name in (*GROUPS, SITE) if name in named},
            null_values=_NULLS,
            strings_can_be_null=True,
            decimal_point=decimal,
            include_columns=named,
        )
        return _convert(content, separator, options)
    except _UNREADABLE as error:
        raise InputError(f"{path}: not a readable CSV file ({error}).") from error


# --- reasons ------------------------------------------------------------------------------


def _read_reasons(path: Path, digest: Any) -> pd.DataFrame | None:
    """Read the reasons beside a table, if they are those that it was written with."""
    file = reasons_path(path)
    if digest is None or not file.is_file():
        return None
    packed = file.read_bytes()
    if hashlib.sha256(packed).hexdigest() != digest:
        warnings.warn(
            f"{file}: was not written with {path.name} or is damaged, and is ignored.",
            stacklevel=2,
        )
        return None
    text = io.BytesIO(gzip.decompress(packed))
    return pd.read_csv(text, sep="\t", dtype=str, keep_default_na=False)


# --- CSV ----------------------------------------------------------------------------------

_UNREADABLE = (UnicodeDecodeError, EOFError, OSError, zlib.error, csv.Error, pa.ArrowException)
_INTEGERS = r"-?(0|[1-9][0-9]{0,17})"
# What pandas, R, Julia and spreadsheets write where a number is missing.
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "missing"]


def _is_gzipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _read_csv(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    sidecar = sidecar_path(path)
    metadata = _parse_metadata(sidecar.read_bytes() if sidecar.is_file() else None)
    kinds = metadata.get("dtypes", {})
    try:
        content = read_utf8(path)
        separator, decimal, named = _find_signs(content)
        rows, features = part_header(named)
        row_columns = [*GROUPS, *(name for name in (SITE,) if name in named), *rows]
        frame = _parse(content, separator, decimal, row_columns, features, not metadata)
    except _UNREADABLE as error:
        raise InputError(f"not a readable CSV file ({error}).") from error
    frame.index = pd.RangeIndex(2, len(frame) + 2, name=LINE)
    restored = {name: restore_column(frame[name], kinds.get(name)) for name in row_columns}
    columns = [pd.DataFrame(restored, index=frame.index), frame[features]]
    return pd.concat(columns, axis=1), metadata


def _find_signs(content: bytes) -> tuple[str, str, list[str]]:
    """Return a CSV file's separator, decimal sign and columns."""
    file = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    separator = find_separator(content)
    reader = csv.reader(file, delimiter=separator)
    columns = next(reader, [])
    decimal = "."
    if separator != ",":  # the sign of the first number that has one; rows may begin empty
        for cell in chain.from_iterable(islice(reader, 1000)):
            if match := re.fullmatch(r"-?\d+([.,])\d+([eE][+-]?\d+)?", cell):
                decimal = match[1]
                break
    # R's write.csv and pandas' to_csv put row names into a first column without a name.
    return separator, decimal, columns[1:] if columns and columns[0] == "" else columns


def _convert(content: bytes, separator: str, options: pa_csv.ConvertOptions) -> pd.DataFrame:
    # A line must fit a block: numbers take more room than names, but not so much more.
    blocks = pa_csv.ReadOptions(block_size=max(1 << 20, 64 * content.find(b"\n")))
    signs = pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    table: pd.DataFrame = pa_csv.read_csv(
        pa.BufferReader(content), blocks, signs, options
    ).to_pandas()
    return table


def _parse(
    content: bytes,
    separator: str,
    decimal: str,
    row_columns: list[str],
    features: list[str],
    by_hand: bool,
) -> pd.DataFrame:
    """Parse a CSV file strictly: a line with too few or too many cells is refused.

    A bare ``NA`` among subjects and labels is missing in a table made by hand, a name in ours.
    """

    def parse(feature_type: pa.DataType) -> pd.DataFrame:
        types = dict.fromkeys(features, feature_type) | dict.fromkeys(row_columns, pa.string())
        options = pa_csv.ConvertOptions(
            column_types=types,
            null_values=_NULLS,
            strings_can_be_null=by_hand,
            quoted_strings_can_be_null=False,
            decimal_point=decimal,
            include_columns=[*row_columns, *features],
        )
        return _convert(content, separator, options)

    try:
        return parse(pa.float64())
    except pa.ArrowInvalid:
        text = parse(pa.string())  # say which cell it is, if it is a cell
        for column in features:
            cells = text[column].where(~text[column].isin(_NULLS)).dropna()
            numbers = pd.to_numeric(cells.str.replace(decimal, "."), errors="coerce")
            for row in cells.index[numbers.isna()].tolist():
                raise InputError(
                    f"Column {column!r} holds {cells[row]!r} in line {row + 2}, which is no "
                    "number: features are numbers, and a missing channel is an empty cell."
                ) from None
        raise


def restore_column(text: pd.Series, kind: str | None) -> pd.Series:
    """Turn the text of a CSV column back into what the file beside it says it was.

    Without one, labels that are all plain integers are integers; subjects and sites stay text,
    because the zeros in front of ``02010002`` are part of the name.
    """
    is_group = text.name in (*GROUPS, SITE)
    if is_group:
        text = text.str.strip()
        if text.fillna("").eq("").any():
            return text  # cleaning names the row
    elif kind is None:
        return pd.Series(infer_column(text, str(text.name)).to_numpy(), text.index)
    if kind is None and text.name == LABEL and text.str.fullmatch(rf"{_INTEGERS}(\.0)?").all():
        text, kind = text.str.removesuffix(".0"), "integer"  # pandas writes floats as 1.0
    try:
        if kind == "boolean":
            return text.map({"true": True, "false": False}.__getitem__).astype(bool)
        if kind == "number":
            return text.replace("", None).astype(np.float64)
        return text.astype(np.int64) if kind == "integer" else text
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"the column {text.name!r} does not hold the {kind} values that the .info.json file "
            "beside the table says it holds: delete that file if the table was changed by hand."
        ) from error


def infer_column(cells: Iterable[Any], name: str = "") -> pd.Series:
    """Turn the text of a column about rows into numbers, if all of it is; ``02`` is a name."""
    absent = ("", "n/a", "na", "nan", "null", "none")
    text = pd.Series(
        [None if pd.isna(cell) or cell.strip().casefold() in absent else cell for cell in cells],
        dtype=object,
    )
    known = text.dropna().str.strip()
    if name in TEXT or not len(known):
        return text
    if known.str.fullmatch(_INTEGERS).all():
        return pd.to_numeric(text) if len(known) < len(text) else text.astype(np.int64)
    padded = known.str.fullmatch(r"[-+]?0\d.*").any()
    if known.str.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?").all() and not padded:
        return text.astype(np.float64)
    return text


def described(details: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Put what a study says about each recording side by side, with dtypes as they fit."""
    columns = {}
    for name in dict.fromkeys(name for detail in details for name in detail):
        plain = re.sub(r"_{2,}", "_", name)
        if plain in (*GROUPS, SITE, *KNOWN):  # so that a table takes it for nothing else
            plain = f"{plain}_in_study"
        columns[plain] = infer_column([detail.get(name) for detail in details])
    return pd.DataFrame(columns, index=range(len(details)))
