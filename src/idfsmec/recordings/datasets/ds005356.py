"""OpenNeuro ds005356, EEG of depressed and healthy subjects recorded in a MEG, as released.

J. F. Cavanagh et al., MEG: Major Depression & Probabilistic Learning Task,
doi:10.18112/openneuro.ds005356 (CC0).
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import InputError
from idfsmec.recordings.recording import Recording, file_recording, read_with_mne
from idfsmec.recordings.study_files import details_of, find_files, read_sheet, warn_of_left_out

if TYPE_CHECKING:
    import mne

_WORKBOOK = "Code/MEG MDD IDs and Quex.xlsx"
_GROUPS = {"CTL": "HC", "MDD": "MDD"}
# A long recording goes on in files split-02 and so on, which MNE reads with the first.
_NAME = re.compile(r"sub-(M87\d+)_(ses-\d+)_task-pst_run-1(?:_split-01)?_meg\.fif")


def read_ds005356(root: str | PathLike[str]) -> list[Recording]:
    """Name the EEG recordings of ds005356 (85 subjects, 71 electrodes, 1000 Hz).

    They were recorded with the MEG during a learning task, and lie in its files. Electrodes have
    numbers (``EEG001`` ... ``EEG074``) and the positions that were digitised.

    Parameters
    ----------
    root : path-like
        The folder of ``sub-*`` and ``Code``, where the workbook states the groups.

    Returns
    -------
    list of Recording
        With the labels ``"MDD"`` and ``"HC"`` (``CTL`` in the workbook).
    """
    root = Path(root)
    files = find_files(root, _NAME)
    if not files:
        raise InputError(
            f"{root}: no recording of ds005356 (sub-M87*/ses-01/meg/sub-*_meg.fif). Give the "
            "folder of the release; a DataLad clone needs `datalad get sub-*/ses-01/meg`."
        )
    workbook = root / _WORKBOOK
    if not workbook.is_file():
        raise InputError(f"{workbook}: the workbook with the groups is missing. Put it there.")
    subjects = {}
    for row in read_sheet(workbook, ("ursi", "group")):
        number = row["ursi"].removesuffix(".0")
        if number.isdecimal():  # not a remark below the table
            subjects[f"M87{100_000 + int(number)}"] = row
    recordings, unlabelled = [], set()
    for path, match in files:
        subject, session = match.groups()
        line = subjects.get(subject, {})
        label = _GROUPS.get(line.get("group", "").upper())
        if label is None:
            unlabelled.add(subject)
            continue
        described = {"session": session, "details": details_of(line, ("ursi", "group"))}
        recordings.append(file_recording(path, subject, label, _read, **described))
    warn_of_left_out(workbook, {"without a group": unlabelled})
    if not recordings:
        raise InputError(f"{workbook}: has no group (MDD or CTL) of any participant in {root}.")
    return recordings


def _read(path: Path) -> mne.io.BaseRaw:
    return read_with_mne(path).pick("eeg", exclude=[], verbose="ERROR")
