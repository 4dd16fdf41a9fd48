"""A manifest: one CSV line per recording that says where it is, whose, and of which class."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from idfsmec.errors import InputError, RecordingError
from idfsmec.recordings._tables import read_text
from idfsmec.recordings.reading import FileLoader, files_of, is_special
from idfsmec.recordings.recording import Recording, check_spelling

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
    _check_sites(manifest, recordings)
    return recordings


def _check_sites(manifest: Path, recordings: list[Recording]) -> None:
    """Refuse sites that are known for some recordings only."""
    without = [recording for recording in recordings if recording.site is None]
    if 0 < len(without) < len(recordings):
        raise InputError(
            f"{manifest}, column 'site': {len(without)} of {len(recordings)} cells are empty, "
            f"first that of {without[0].source}. Fill them in, or leave out the column."
        )


def _rows(manifest: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each line is and what its cells hold, by column."""
    if not manifest.is_file():
        raise InputError(f"{manifest}: there is no such manifest file.")
    text = read_text(manifest)
    # The first line holds only column names, so whatever else is in it parts the cells.
    header_line = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t|", key=header_line.count))
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        _check_header(manifest, header)
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
            yield (
                where,
                {name: cell.strip() for name, cell in zip(header, cells, strict=True) if name},
            )
    except csv.Error as error:
        raise InputError(f"{manifest}, line {reader.line_num}: {error}.") from error


def _check_header(manifest: Path, header: list[str]) -> None:
    where = f"{manifest}, line 1"
    for name in (*REQUIRED, *OPTIONAL):
        if header.count(name) > 1:
            raise InputError(f"{where}: column {name!r} is there {header.count(name)} times.")
        near = get_close_matches(name, [one for one in header if one], n=1, cutoff=_alike(name))
        hint = f" Rename {near[0]!r}?" if near else ""
        if name in REQUIRED and name not in header:
            found = ", ".join(header) or "none"
            raise InputError(
                f"{where}: column {name!r} is missing; found: {found}.{hint} A manifest has the "
                f"columns {', '.join(REQUIRED)} (optional: {', '.join(OPTIONAL)})."
            )
        # A misspelt optional column would be ignored without a word.
        if near and name not in header and near[0] not in (*REQUIRED, *OPTIONAL):
            raise InputError(
                f"{where}: column {near[0]!r} looks like {name!r}. Rename it to {name!r}, or to "
                "something else if it is another thing."
            )


def _alike(name: str) -> float:
    """How alike another name must be to be taken for a misspelling; "side" is none of "site"."""
    return 0.75 if len(name) > 4 else 0.8


def _recording(manifest: Path, where: str, cells: dict[str, str], absent_ok: bool) -> Recording:
    for name in REQUIRED:
        if not cells[name]:
            raise InputError(f"{where}, column {name!r}: the cell is empty; fill it in.")
    file = _find_file(manifest, where, cells["path"], absent_ok)
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
        found = file.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, or ~nobody
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{where}, column 'path': {_short(name)} is no path ({reason})."
        ) from error
    if found and is_special(file) and not absent_ok:
        raise RecordingError(
            f"{where}, column 'path': {file} is a pipe or a device, not a file.", source=str(file)
        )
    if not (found or absent_ok):
        raise RecordingError(
            f"{where}, column 'path': there is no {file}. Paths are relative to the folder of "
            "the manifest.",
            source=str(file),
        )
    return file


def _short(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[:most] + "...")
