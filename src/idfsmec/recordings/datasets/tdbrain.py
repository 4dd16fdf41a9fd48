"""TDBRAIN, EEG of psychiatric patients and healthy subjects with 26 electrodes, as released.

H. van Dijk et al., The two decades brainclinics research archive for insights in neurophysiology
(TDBRAIN) database, Scientific Data 9, 333 (2022). The data need a signed agreement; this function
reads a user's own copy of version 2 (BrainVision, or derivatives as CSV) or 3.1 (BDF).
"""

from __future__ import annotations

import re
from collections import defaultdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from idfsmec.errors import InputError
from idfsmec.recordings.recording import Recording, file_recording, files_of, read_with_mne
from idfsmec.recordings.study_files import (
    check_choice,
    details_of,
    find_files,
    is_missing,
    read_sheet,
    read_tsv,
    warn_of_left_out,
)
from idfsmec.table.columns import fold

if TYPE_CHECKING:
    import mne

_Lines = dict[str, dict[str, dict[str, str]]]  # by participant and session

RESTING = ("restEC", "restEO")
CONDITIONS = (*RESTING, "oddball")
LABEL_COLUMNS = ("indication", "formal_status")
SFREQ = 500.0  # Hz, of the CSV files, which do not say it
_NAME = re.compile(r"sub-(\d+)_ses-(\d+)_task-(restEC|restEO|oddball)_eeg\.(bdf|vhdr|csv)")
_ENDINGS = ("bdf", "vhdr", "csv")  # derivatives hold the recordings again
_TABLES = ("TDBRAIN_participants_V2.tsv", "TDBRAIN_participants_V2.xlsx", "participants.tsv")
_TABLES_OF = {"bdf": ("TDBRAIN_participants_V3.xlsx",), "vhdr": _TABLES, "csv": _TABLES}
_IDS = ("participants_id", "tdbrain_id")
_OTHER_SENSORS = {
    **dict.fromkeys(("VPVA", "VNVB", "HPHL", "HNHR"), "eog"),
    **dict.fromkeys(("OrbOcc", "Mass"), "emg"),
    "Erbs": "ecg",
}
_FIRST_OF_LATER_BATCH = 88_000_000


def read_tdbrain(
    root: str | PathLike[str], *, labels: str = "indication", condition: str | None = None
) -> list[Recording]:
    """Name the recordings of depressed and healthy subjects of TDBRAIN.

    Subjects whose diagnosis is blinded (``REPLICATION``), unknown or another one are left out, and
    so are recordings whose header names a file that is not there; a warning counts them.

    Parameters
    ----------
    root : path-like
        The folder of ``sub-*``, with the table of participants in it or beside it.
    labels : {"indication", "formal_status"}
        The column with the diagnosis. The formal status of most participants is unknown.
    condition : {"restEC", "restEO", "oddball"}, optional
        Eyes closed, eyes open or the oddball task; by default both of rest. Only healthy
        participants of version 3.1 have the task.

    Returns
    -------
    list of Recording
        With the labels ``"MDD"`` (also with other diagnoses, such as ``MDD/OCD``; the column
        ``indication`` lists them) and ``"HC"``. Of version 3.1, ``batch`` is ``early`` for numbers
        below 88000000, which is associated with the group.
    """
    root = Path(root)
    check_choice("labels", labels, LABEL_COLUMNS)
    check_choice("condition", condition, CONDITIONS)
    files = find_files(root, _NAME)
    if not files:
        pickled = next(root.rglob("*.npy"), None)
        if pickled is not None:
            raise InputError(
                f"{pickled}: the .npy files of TDBRAIN are pickles, which can run programs when "
                "they are read. Give the folder of its .bdf, .vhdr or .csv files."
            )
        raise InputError(
            f"{root}: no recording of tdbrain, such as 'sub-19681349_ses-1_task-restEC_eeg.vhdr'. "
            "Give the folder of the release."
        )
    ending = min((match[4] for _, match in files), key=_ENDINGS.index)
    table, participants = _read_participants(root, ending, labels)
    left_out: dict[str, set[str]] = defaultdict(set)
    recordings = []
    for path, match in files:
        subject, session, task, kind = match.groups()
        if kind != ending or task not in (RESTING if condition is None else (condition,)):
            continue
        lines = participants.get(subject, {})
        line = lines.get(session) or next(iter(lines.values()), {})
        label, reason = _label(line.get(labels, ""), labels)
        if kind == "vhdr" and len(files_of(path)) < 3:
            label, reason = None, "with a header that names a file that is not there"
        if label is None:
            left_out[reason].add(subject)
            continue
        details = details_of(line, _IDS)
        if kind == "bdf":
            details["batch"] = "late" if int(subject) >= _FIRST_OF_LATER_BATCH else "early"
        described = {"session": f"ses-{session}", "condition": task, "details": details}
        recordings.append(file_recording(path, subject, label, _read, **described))
    warn_of_left_out(table, left_out)
    if not recordings:
        raise InputError(
            f"{root}: no recording of a depressed or healthy participant by {labels!r}."
        )
    return recordings


def _label(cell: str, column: str) -> tuple[str | None, str]:
    """Return the label of a diagnosis, or None and why there is none."""
    codes = {code.strip() for code in cell.upper().split("/")}
    if "REPLICATION" in codes:
        return None, "blinded (REPLICATION)"
    if is_missing(cell) or "UNKNOWN" in codes:
        return None, f"without {column}"
    if "MDD" in codes:
        return "MDD", ""
    return ("HC", "") if codes == {"HEALTHY"} else (None, f"with another {column}")


def _read_participants(root: Path, ending: str, labels: str) -> tuple[Path, _Lines]:
    """Read lines of the table of participants by number and session, in the table's order."""
    names = _TABLES_OF[ending]
    tables = [folder / name for folder in (root, root.parent) for name in names]
    table = next((path for path in tables if path.exists()), None)
    if table is None:
        raise InputError(
            f"{root}: the table of participants, {' or '.join(names)}, is missing. Put it there."
        )
    participants: _Lines = defaultdict(dict)
    for row in read_tsv(table) if table.suffix == ".tsv" else read_sheet(table, ()):
        # Decimal commas, as in ages, become points.
        line = {fold(name): re.sub(r"^(-?\d+),(\d+)$", r"\1.\2", row[name]) for name in row}
        column = next((name for name in _IDS if name in line), "")
        if not column or labels not in line:
            raise InputError(f"{table}: needs a column {labels!r} and one of {', '.join(_IDS)}.")
        subject = line[column].removeprefix("sub-").removesuffix(".0")
        if subject:
            gender, session = (
                line.get(name, "").removesuffix(".0") for name in ("gender", "sessid")
            )
            line["gender"] = {"0": "F", "1": "M"}.get(gender, "")
            participants[subject].setdefault(session, line)
    return table, participants


def _read(path: Path) -> mne.io.BaseRaw:
    import mne
    import pandas as pd

    if path.suffix != ".csv":
        raw = read_with_mne(path)
    else:
        samples = pd.read_csv(path, dtype=np.float64)
        info = mne.create_info(list(samples.columns), SFREQ, "eeg")
        raw = mne.io.RawArray(samples.to_numpy().T * 1e-6, info, verbose="ERROR")
    types = {name: _OTHER_SENSORS[name] for name in raw.ch_names if name in _OTHER_SENSORS}
    return raw.set_channel_types(types, on_unit_change="ignore", verbose="ERROR")
