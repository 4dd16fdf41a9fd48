"""Tables of subjects that come with recordings: text, tabs or Excel; errors name the file."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path

from idfsmec.errors import InputError
from idfsmec.table.columns import fold


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


def _refuse_special(path: Path) -> None:
    """Refuse a pipe or a device, which may never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a file.")


def read_tsv(path: Path, needed: Collection[str] = ()) -> list[dict[str, str]]:
    """Read a table parted by tabs, as BIDS has it: one mapping from column to cell per line.

    Cells that a line lacks are empty, those it has too many are left out.
    """
    reader = csv.DictReader(io.StringIO(read_text(path)), delimiter="\t", restval="")
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from error
    clean = [
        {name.strip(): cell.strip() for name, cell in row.items() if isinstance(name, str)}
        for row in rows
    ]
    _need_columns(clean[0] if clean else (), needed, path)
    return clean


def read_sheet(path: Path, needed: Collection[str], sheet: str | int = 0) -> list[dict[str, str]]:
    """Read a sheet of an Excel file: one mapping from folded column to cell per line.

    Full-width signs of names, as in ``education（years）``, become plain ones.
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
    names = [fold(str(name)) for name in frame.columns]
    _need_columns(names, needed, path)
    rows = frame.itertuples(index=False, name=None)
    return [
        {name: str(cell).strip() for name, cell in zip(names, row, strict=True)} for row in rows
    ]


def _need_columns(present: Collection[str], needed: Collection[str], path: Path) -> None:
    for name in needed:
        if name not in present:
            raise InputError(f"{path}: column {name!r} is missing; found: {', '.join(present)}.")


def is_missing(cell: str) -> bool:
    """Return whether a cell says that something is not known."""
    return cell.casefold() in ("", "n/a", "na", "nan")


def details_of(row: Mapping[str, str], used: Collection[str]) -> dict[str, str]:
    """Return what a table says about a subject besides the columns that are used otherwise.

    Examples
    --------
    >>> details_of({"id": "507", "age": "19", "unnamed: 4": ""}, ["id"])
    {'age': '19'}
    """
    return {
        name: cell
        for name, cell in row.items()
        if name and name not in used and not name.startswith("unnamed:")
    }
