"""Mumtaz, EEG of depressed and healthy subjects with 19 electrodes, as released.

W. Mumtaz, MDD Patients and Healthy Controls EEG Data (New), figshare,
doi:10.6084/m9.figshare.4244171 (2016). CC BY 4.0; this function reads a user's own copy.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

from idfsmec.errors import InputError
from idfsmec.recordings.recording import (
    Recording,
    file_recording,
    find_duplicates,
    leave_out_copies,
)
from idfsmec.recordings.study_files import check_choice, find_files

CONDITIONS = ("EC", "EO", "TASK")
_GROUPS = {"H": "HC", "MDD": "MDD"}
_TASKS = {"eyesclosed": "EC", "eyesopen": "EO", "p300": "TASK"}
# "H S1 EC.edf", "MDD S1  EO.edf", "6921143_H S15 EO.edf", "HS1EC.edf" of mirrors.
_RELEASED = re.compile(r"(?:\d+_)?(H|MDD)\s*S\s*(\d+)\s*(EC|EO|TASK)\.edf", re.IGNORECASE)
_BIDS = re.compile(r"sub-(H|MDD)S(\d+)_task-([a-z0-9]+)_eeg\.edf", re.IGNORECASE)


def read_mumtaz(root: str | PathLike[str], *, condition: str | None = None) -> list[Recording]:
    """Name the recordings of Mumtaz' data set (30 controls, 34 patients).

    Some of its files are copies of another, byte for byte: of subject 27 under the number 30, of
    patient 33 under 34, and an oddball recording under ten numbers of controls. The first of
    them counts, and a warning names the others.

    Parameters
    ----------
    root : path-like
        The folder of the EDF files, as they are released or in BIDS.
    condition : {"EC", "EO", "TASK"}, optional
        Eyes closed, eyes open or the oddball task; by default all of them.

    Returns
    -------
    list of Recording
        With the labels ``"HC"`` and ``"MDD"``, from the names of the files, and the condition.
    """
    root = Path(root)
    check_choice("condition", condition, CONDITIONS)
    recordings = []
    for path, match in find_files(root, _RELEASED, _BIDS):
        group, number, kind = match[1].upper(), int(match[2]), match[3]
        kind = _TASKS.get(kind.lower(), kind.upper())
        if kind not in CONDITIONS:
            raise InputError(f"{path}: its task is none of {', '.join(_TASKS)}.")
        if condition is None or kind == condition:
            subject = f"{group}S{number}"
            recording = file_recording(path, subject, _GROUPS[group], condition=kind)
            recordings.append((group, number, kind, path.name, recording))
    if not recordings:
        raise InputError(
            f"{root}: no recording of mumtaz, such as 'H S1 EC.edf' or "
            "'sub-HS1_task-eyesClosed_eeg.edf'. Give the folder of the release."
        )
    ordered = [recording for *_, recording in sorted(recordings, key=lambda entry: entry[:4])]
    return leave_out_copies(ordered, find_duplicates(ordered))
