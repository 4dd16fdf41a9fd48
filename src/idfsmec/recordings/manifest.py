"""Read manifests (one CSV line per recording) and other tables of subjects, safely.

Errors name the file, the line and the column.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.errors import InputError, RecordingError
from idfsmec.recordings.reading import FileLoader, files_of, is_special
from idfsmec.recordings.recording import Recording, check_spelling
from idfsmec.table.columns import fold

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = ("path", "subject", "label")
OPTIONAL = ("session", "condition", "bads", "site")


def read_manifest(path: str | PathLike[str], *, absent_ok: bool = False) -> list[Recording]:
    r"""Read a manifest and name its recordings, without loading them.

    Parameters
    ----------
    path : path-like
        A CSV file with the columns ``path``, ``subject`` and ``label``, and optionally
        ``session``, ``condition``, ``bads`` (such as ``Fp1;F7``) and ``site``. Paths are
        relative to the manifest. Commas, semicolons or tabs part the cells. Further columns,
        such as age and sex, go into the recordings' ``details``, and so into the table.
    absent_ok : bool
        Whether to keep a line whose file is not there; it then fails when it is loaded.

    Returns
    -------
    list of Recording
        In the order of the lines.

    Raises
    ------
    InputError
        With file, line, column and what to do.

    Examples
    --------
    >>> import tempfile, mne, numpy as np
    >>> from pathlib import Path
    >>> place = tempfile.TemporaryDirectory()
    >>> folder = Path(place.name)
    >>> info = mne.create_info(["FP1", "T3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((2, 500)), info, verbose=False)
    >>> _ = raw.save(folder / "s01_raw.fif", verbose=False)
    >>> _ = (folder / "study.csv").write_text("path,subject,label\ns01_raw.fif,s01,HC\n")
    >>> [recording] = read_manifest(folder / "study.csv")
    >>> recording.subject, recording.label, recording.load().ch_names
    ('s01', 'HC', ['Fp1', 'T7'])
    >>> place.cleanup()
    """
    manifest = Path(path)
    recordings: list[Recording] = []
    labels: dict[tuple[str, str | None, str | None], tuple[str, str]] = {}
    for where, cells in _rows(manifest):
        recording = _recording(manifest, where, cells, absent_ok)
        key = (recording.subject, recording.session, recording.condition)
        first_where, first_label = labels.setdefault(key, (where, recording.label))
        if first_label != recording.label:
            raise InputError(
                f"{where}, column 'label': subject {recording.subject!r} is "
                f"{recording.label!r} here but {first_label!r} in {first_where}. Correct one, or "
                "tell the recordings apart by a column 'session' or 'condition'."
            )
        recordings.append(recording)
    if not recordings:
        raise InputError(f"{manifest}: there are no recordings below the header.")
    check_spelling(recordings, str(manifest))
    without = [recording for recording in recordings if recording.site is None]
    if 0 < len(without) < len(recordings):
        raise InputError(
            f"{manifest}, column 'site': {len(without)} of {len(recordings)} cells are empty, "
            f"first that of {without[0].source}. Fill them in, or leave out the column."
        )
    return recordings


def _rows(manifest: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each line is and what its cells hold, by column."""
    if not manifest.is_file():
        raise InputError(f"{manifest}: there is no such manifest file.")
    text = _read_text(manifest)
    # The first line holds only column names, so whatever else is in it parts the cells.
    header_line = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t|", key=header_line.count))
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        _check_header(f"{manifest}, line 1", header)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{manifest}, line {reader.line_num}"
            if len(cells) != len(header):
                raise InputError(
                    f"{where}: {len(cells)} cells, but the header has {len(header)} columns. "
                    "Put quotes around a cell that holds a separator; bad channels are parted by "
                    "semicolons."
                )
            row = zip(header, cells, strict=True)
            yield where, {name: cell.strip() for name, cell in row if name}
    except csv.Error as error:
        raise InputError(f"{manifest}, line {reader.line_num}: {error}.") from error


def _check_header(where: str, header: list[str]) -> None:
    for name in (*REQUIRED, *OPTIONAL):
        if header.count(name) > 1:
            raise InputError(f"{where}: column {name!r} is there {header.count(name)} times.")
        # "side" is no misspelling of "site"
        cutoff = 0.75 if len(name) > 4 else 0.8
        near = get_close_matches(name, [other for other in header if other], n=1, cutoff=cutoff)
        if name in REQUIRED and name not in header:
            hint = f" Rename {near[0]!r}?" if near else ""
            raise InputError(
                f"{where}: column {name!r} is missing; found: {', '.join(header) or 'none'}."
                f"{hint} A manifest has the columns {', '.join(REQUIRED)} (optional: "
                f"{', '.join(OPTIONAL)})."
            )
        # A misspelt optional column would be ignored without a word.
        if near and name not in header and near[0] not in (*REQUIRED, *OPTIONAL):
            raise InputError(
                f"{where}: column {near[0]!r} looks like {name!r}. Rename it to {name!r}, or to "
                "something else if it is another thing."
            )


def _recording(manifest: Path, where: str, cells: dict[str, str], absent_ok: bool) -> Recording:
    for name in REQUIRED:
        if not cells[name]:
            raise InputError(f"{where}, column {name!r}: the cell is empty; fill it in.")
    file = _find_file(manifest, f"{where}, column 'path'", cells["path"], absent_ok)
    bads = tuple(bad.strip() for bad in cells.get("bads", "").split(";") if bad.strip())
    for bad in bads:
        if "," in bad:
            parted = ";".join(part.strip() for part in bad.split(","))
            raise InputError(
                f"{where}, column 'bads': {bad!r} is no channel. Part channels by semicolons: "
                f"{parted}."
            )
    return Recording(
        subject=cells["subject"],
        label=cells["label"],
        load=FileLoader(file, bads),
        source=str(file),
        session=cells.get("session") or None,
        condition=cells.get("condition") or None,
        bads=bads,
        files=files_of(file) if file.exists() else (),
        site=cells.get("site") or None,
        details={name: cell for name, cell in cells.items() if name not in (*REQUIRED, *OPTIONAL)},
    )


def _find_file(manifest: Path, where: str, name: str, absent_ok: bool) -> Path:
    try:
        file = manifest.parent / Path(name).expanduser()
        if not file.exists() and "\\" in name:  # a manifest written on Windows
            file = manifest.parent / name.replace("\\", "/")
        exists = file.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, or ~nobody
        reason = getattr(error, "strerror", None) or str(error)
        short = name if len(name) <= 60 else name[:60] + "..."
        raise InputError(f"{where}: {short!r} is no path ({reason}).") from error
    if absent_ok or (exists and not is_special(file)):
        return file
    if exists:
        reason = f"{file} is a pipe or a device, not a file."
    else:
        reason = f"there is no {file}. Paths are relative to the folder of the manifest."
    raise RecordingError(f"{where}: {reason}", source=str(file))


def _read_text(path: Path) -> str:
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


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Read a table parted by tabs, as BIDS has it: one mapping from column to cell per line.

    Cells that a line lacks are empty, those it has too many are left out.
    """
    reader = csv.DictReader(io.StringIO(_read_text(path)), delimiter="\t", restval="")
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from error
    return [
        {name.strip(): cell.strip() for name, cell in row.items() if isinstance(name, str)}
        for row in rows
    ]


def read_sheet(path: Path, columns: Collection[str], sheet: str | int = 0) -> pd.DataFrame:
    """Read a sheet of an Excel file as text, with folded column names and without NaN.

    Full-width signs, as in ``education（years）``, become plain ones. A sheet without the
    ``columns`` that are needed is refused.
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
    need_columns(frame.columns, columns, path)
    return frame.apply(lambda column: column.map(lambda cell: str(cell).strip()))


def need_columns(present: Collection[str], needed: Collection[str], path: Path) -> None:
    """Refuse a subject table without the columns that are needed."""
    for name in needed:
        if name not in present:
            raise InputError(
                f"{path}: column {name!r} is missing; found: {', '.join(map(str, present))}."
            )


def details_of(row: Mapping[Any, str], left_out: Collection[str]) -> dict[str, str]:
    """Return what a table says about a subject besides the columns that are used otherwise.

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
