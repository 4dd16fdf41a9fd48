"""Tables as text: decoded and cut into cells, with errors that name file and line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from idfsmec.errors import InputError


def read_text(path: Path) -> str:
    """Read a text file in UTF-8 or UTF-16, with or without a byte order mark."""
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
