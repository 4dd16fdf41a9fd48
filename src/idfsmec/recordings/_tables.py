"""Tables of subjects and recordings: text and Excel sheets, with errors that name the place."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec._names import fold
from idfsmec.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def read_text(path: Path) -> str:
    """Read a text file in UTF-8 or UTF-16, with or without a byte order mark."""
    _refuse_special(path)
    content = path.read_bytes()
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not a text file in UTF-8 ({error}). Save it as 'CSV UTF-8'."
        ) from error
    if "\0" in text:
        raise InputError(f"{path}: not a text file. Save the table as CSV.")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as Macintosh programs ended lines, and some still do
    return text


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Read a table parted by tabs, as BIDS has it: one mapping from column to cell per line.

    Cells that a line lacks are empty, those it has too many are left out.
    """
    reader = csv.DictReader(io.StringIO(read_text(path)), delimiter="\t", restval="")
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from error
    return [
        {name.strip(): cell.strip() for name, cell in row.items() if isinstance(name, str)}
        for row in rows
    ]


def _refuse_special(path: Path) -> None:
    """Refuse a pipe or a device, which may never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a file.")


def load_sheet(path: Path, sheet: str | int = 0) -> pd.DataFrame:
    """Read a sheet of an Excel file as text, with folded column names and without NaN.

    Full-width signs, as in ``education（years）``, become plain ones.
    """
    import pandas as pd

    _refuse_special(path)
    try:
        with warnings.catch_warnings():
            # openpyxl warns about formatting it does not keep, which nobody needs here.
            warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
            frame = pd.read_excel(path, sheet_name=sheet, dtype=str, keep_default_na=False)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: not a readable subject table ({reason}).") from error
    frame.columns = pd.Index([fold(str(name)) for name in frame.columns])
    return frame.apply(lambda column: column.map(lambda cell: str(cell).strip()))


def details_of(row: Mapping[Any, str], left_out: Collection[str]) -> dict[str, str]:
    """What a table says about one person besides the columns that are used otherwise.

    Examples
    --------
    >>> details_of({"id": "507", "age": "19", "unnamed: 4": ""}, ["id"])
    {'age': '19'}
    """
    return {
        str(name): cell
        for name, cell in row.items()
        if str(name) and name not in left_out and not str(name).startswith("unnamed:")
    }


def need_columns(frame: pd.DataFrame, names: tuple[str, ...], path: Path) -> None:
    """Refuse a subject table without the columns that are needed."""
    for name in names:
        if name not in frame.columns:
            raise InputError(
                f"{path}: column {name!r} is missing; found: {', '.join(map(str, frame.columns))}."
            )
