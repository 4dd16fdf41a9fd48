"""Helpers of the readers of studies: files by their names, tables of subjects, choices."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from idfsmec._files import check_readable, find_separator, read_utf8
from idfsmec.errors import ArgumentError, InputError, listing, reason_of
from idfsmec.table.columns import fold


def find_files(root: Path, *names: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """Find the files in and below a folder whose names match, in order of their paths."""
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder.")
    return [
        (path, match)
        for path in sorted(root.rglob("*"))
        if (match := next(filter(None, (name.fullmatch(path.name) for name in names)), None))
        and path.is_file()  # a link to a file that was never fetched, as of DataLad, is none
    ]


def check_choice(option: str, value: str | None, choices: Collection[str]) -> None:
    """Refuse a value that an option of a data set does not have; None is no choice."""
    if value is not None and value not in choices:
        raise ArgumentError(
            f"{option}={value!r}: use one of {', '.join(choices)}.", argument=option
        )


def warn_of_left_out(where: Path, reasons: Mapping[str, Collection[str]]) -> None:
    """Count and name the subjects that are left out, by reason."""
    known = {reason: sorted(subjects) for reason, subjects in reasons.items() if subjects}
    counts = [f"{len(names)} {reason} ({listing(names)})" for reason, names in known.items()]
    if counts:
        warnings.warn(f"{where}: participants left out: {'; '.join(counts)}.", stacklevel=3)


def read_text(path: Path) -> str:
    """Read a text file in UTF-8 or UTF-16, with or without a byte order mark."""
    try:
        text = read_utf8(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not a text file in UTF-8 ({error}). Save it as 'CSV UTF-8'."
        ) from error
    if "\0" in text:
        raise InputError(f"{path}: not a text file. Save the table as CSV.")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as Macintosh programs ended lines, and some still do
    return text


def read_cells(path: Path, separators: str, hint: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield where each line of a text table is, and its cells, as many in each; header first."""
    text = read_text(path)
    separator = find_separator(text.encode(), separators)
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    n_columns = 0
    try:
        for line in reader:
            cells = [cell.strip() for cell in line]
            where = f"{path}, line {reader.line_num}"
            n_columns = n_columns or len(cells)
            if any(cells) and len(cells) != n_columns:
                raise InputError(
                    f"{where}: has {len(cells)} cells, and the header has {n_columns} columns. "
                    f"Put quotes around a cell that holds a separator{hint}."
                )
            if any(cells):
                yield where, cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from error


def read_tsv(path: Path, needed: Collection[str] = ()) -> list[dict[str, str]]:
    """Read a table separated by tabs, as in BIDS: one mapping from column to cell per line."""
    lines = [cells for _, cells in read_cells(path, "\t")] or [[]]
    _need_columns(lines[0], needed, path)
    return [dict(zip(lines[0], cells, strict=True)) for cells in lines[1:]]


def read_sheet(path: Path, needed: Collection[str], sheet: str | int = 0) -> list[dict[str, str]]:
    """Read a sheet of an Excel file: one mapping from folded column to cell per line."""
    import pandas as pd

    check_readable(path)
    try:
        with warnings.catch_warnings():
            # openpyxl warns about formatting it does not keep.
            warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
            frame = pd.read_excel(path, sheet_name=sheet, dtype=str, keep_default_na=False)
    except Exception as error:
        reason = reason_of(error)
        raise InputError(f"{path}: not a readable table of participants ({reason}).") from error
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
    """Return what a table says about a subject besides the columns that are used otherwise."""
    return {
        name: cell
        for name, cell in row.items()
        if name and name not in used and not name.startswith("unnamed:")
    }
