"""Feature tables as CSV: any separator, read strictly, written so that numbers survive."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from idfsmec._table_checks import GROUPS, SITE, clean_features, clean_groups
from idfsmec._table_rows import infer_column, part_header
from idfsmec.errors import InputError


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


def read_csv(
    path: Path, hand_made: bool
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
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
    groups : DataFrame of shape (n_samples, 2 or 3)
        Subjects and labels, and sites where there are, as text.
    rows : DataFrame of shape (n_samples, n_columns) or None
        What else the file says about rows, as text.
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
    groups = {
        name: clean_groups(frame[name], name, frame.index, _name_line) for name in layout.groups
    }
    rows = frame.loc[:, layout.rows] if layout.rows else None
    return features, pd.DataFrame(groups), rows


def _name_line(row: int) -> str:
    return f"line {row + 2}"


@dataclass(frozen=True)
class _Layout:
    """How a CSV file is laid out: separator, decimal sign and columns."""

    separator: str
    decimal: str
    groups: list[str]
    rows: list[str]
    features: list[str]


def _sniff(path: Path) -> _Layout:
    """Find out how a CSV file is laid out, and check its header."""
    with _open_text(path) as file:
        head = file.readline()
        file.seek(0)
        separator = max(",;\t", key=head.count)
        reader = csv.reader(file, delimiter=separator)
        columns = next(reader, [])
        comma = separator != "," and _has_decimal_comma(islice(reader, _LOOKED_AT))
    # R's write.csv and pandas' to_csv put row names into a first column without a name.
    named = columns[1:] if columns and columns[0] == "" else columns
    rows, features = part_header(named)
    groups = [*GROUPS, *(name for name in (SITE,) if name in named)]
    return _Layout(separator, "," if comma else ".", groups, rows, features)


def _has_decimal_comma(lines: Iterable[list[str]]) -> bool:
    """Whether the first number with a decimal sign has a comma; rows may begin empty."""
    for cell in chain.from_iterable(lines):
        if _DECIMAL_COMMA.fullmatch(cell):
            return True
        if _DECIMAL_POINT.fullmatch(cell):
            return False
    return False


_LOOKED_AT = 1000  # lines
_DECIMAL_POINT = re.compile(r"-?\d+\.\d+([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")
# What pandas, R, Julia and spreadsheets write where a number is missing.
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "missing"]


def _parse(path: Path, layout: _Layout, hand_made: bool) -> pd.DataFrame:
    """Parse a CSV file strictly: a line with too few or too many cells is refused."""

    def parse(feature_type: pa.DataType) -> pd.DataFrame:
        about = [*layout.groups, *layout.rows]
        types = dict.fromkeys(layout.features, feature_type) | dict.fromkeys(about, pa.string())
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
                    include_columns=[*about, *layout.features],
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
    """Name the dtype of a column about rows for the sidecar of a CSV file."""
    if series.dtype == np.int64:
        return "integer"
    if series.dtype == np.float64:
        return "number"
    return "boolean" if series.dtype == np.bool_ else "text"


def restore(text: pd.Series, kind: str | None) -> pd.Series:
    """Turn the text of a CSV column back into what the sidecar says it was.

    Without a sidecar, labels that are all plain integers are integers; subjects and sites stay
    text, because the zeros in front of ``02010002`` are part of the name. What else is known
    about rows becomes numbers where all of it is.
    """
    if kind is None and text.name not in (*GROUPS, SITE):
        return infer_column([None if pd.isna(cell) else cell for cell in text], str(text.name))
    if kind is None:
        whole = r"-?(0|[1-9][0-9]{0,17})(\.0)?"  # pandas writes 1.0 where labels were floats
        if text.name == "label" and text.str.fullmatch(whole).all():
            text, kind = text.str.removesuffix(".0"), "integer"
        else:
            kind = "text"
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
