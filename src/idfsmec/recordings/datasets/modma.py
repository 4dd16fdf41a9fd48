"""MODMA, resting EEG of depressed and healthy subjects with 3 or 128 channels, as released.

H. Cai et al., A multi-modal open dataset for mental-disorder analysis, Scientific Data 9, 178
(2022). The data need a signed agreement; these functions read a user's own copy.
"""

from __future__ import annotations

import re
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from idfsmec.errors import ArgumentError, InputError
from idfsmec.recordings.file_checks import load_mat
from idfsmec.recordings.recording import Recording, file_recording
from idfsmec.recordings.study_files import details_of, find_files, read_sheet

if TYPE_CHECKING:
    import mne

SFREQ = 250.0
# The release says nothing about the size of a count. This is the step of a 24-bit converter
# with a reference of 4.5 V behind a gain of 24, which makes the offsets of 1.3 to 1.7 million
# counts some 30 mV: what an electrode has. Rankings do not depend on it.
VOLTS_PER_COUNT = 4.5 / 24 / (2**23 - 1)
UNITS = {"uV": 1e-6, "nV": 1e-9, "V": 1.0}

# 0201: patients of the hospital; 0202 and 0203: two groups of healthy controls.
_GROUPS = {"0201": "MDD", "0202": "HC", "0203": "HC"}


def read_modma3(
    root: str | PathLike[str], *, unit: str | float = VOLTS_PER_COUNT
) -> list[Recording]:
    """Name the recordings of MODMA with three channels (55 subjects).

    Parameters
    ----------
    root : path-like
        ``EEG_3channels_resting_lanzhou_2015`` or the folder that holds it. Labels come from
        the subject table (``subjects_information_*.xlsx``) where it is there, and from the
        first four digits of the subject's number otherwise.
    unit : float or {"uV", "nV", "V"}
        Volts per count. The release does not state it. The default is the step of a 24-bit
        converter with a reference of 4.5 V behind a gain of 24.

    Returns
    -------
    list of Recording
        With channels Fp1, Fpz and Fp2 at 250 Hz, and the labels ``"MDD"`` and ``"HC"``.
    """
    return _find_recordings(Path(root), "EEG_3channels_resting_lanzhou_2015", "_still.txt", unit)


def read_modma128(root: str | PathLike[str], *, unit: str | float = "uV") -> list[Recording]:
    """Name the recordings of MODMA with 128 channels (53 subjects).

    Parameters
    ----------
    root : path-like
        ``EEG_128channels_resting_lanzhou_2015`` or the folder that holds it. Labels as in
        :func:`read_modma3`.
    unit : {"uV", "nV", "V"} or float
        What the numbers are, or how many volts one is. The release does not say; most
        papers take microvolts, some 1e-9 volts.

    Returns
    -------
    list of Recording
        With channels E1 ... E128 at 250 Hz, placed by GSN-HydroCel-128. The reference Cz,
        all zero, is left out.
    """
    return _find_recordings(Path(root), "EEG_128channels_resting_lanzhou_2015", ".mat", unit)


def _find_recordings(root: Path, name: str, ending: str, unit: str | float) -> list[Recording]:
    """Name the recordings in ``root`` or in its folder of the released name."""
    folder = root / name if (root / name).is_dir() else root
    # Archives made on a Mac carry "._" copies that hold no data.
    files = [path for path, _ in find_files(folder, re.compile(rf"[^.].*{re.escape(ending)}"))]
    if not files:
        raise InputError(
            f"{root}: no recording *{ending} here or in {name}. Give the folder of the release."
        )
    try:
        volts = float(UNITS.get(unit, unit) if isinstance(unit, str) else unit)
    except ValueError:
        volts = 0.0
    if not (np.isfinite(volts) and volts > 0):
        raise ArgumentError(
            f"unit={unit!r}: give one of {', '.join(UNITS)}, or the volts that one step is.",
            argument="unit",
        )
    table, subjects = _read_subject_table(folder)
    recordings = []
    for path in files:
        subject = path.name[:8]  # the only part of a name that is regular
        if not re.fullmatch(r"[0-9]{8}", subject):
            raise InputError(
                f"{path}: the name does not begin with a participant number of eight digits, such "
                "as 02010002. Rename the file, or move it away if it is no recording."
            )
        in_table, details = subjects.get(subject, ("", {}))
        label = _GROUPS.get(subject[:4]) or in_table
        if not label:
            raise InputError(
                f"{path}: participant {subject} is not in the participant table, and its number "
                "does not begin with 0201, 0202 or 0203."
            )
        if in_table and in_table != label:
            raise InputError(
                f"{path}: participant {subject} is {in_table} in {table}, but {label} by its "
                "number. Correct the table or the name of the file."
            )
        described = {"variant": f"{volts!r} V", "details": details}
        read = partial(_read, volts=volts)
        recordings.append(file_recording(path, subject, label, read, **described))
    return recordings


def _read_subject_table(folder: Path) -> tuple[Path | None, dict[str, tuple[str, dict[str, str]]]]:
    """Read label and details by subject from the table of a folder, where there is one."""
    beside = f"subjects_information_{folder.name}*.xlsx"
    tables = [*folder.glob("subjects_information_*.xlsx"), *folder.parent.glob(beside)]
    subjects: dict[str, tuple[str, dict[str, str]]] = {}
    if not tables:
        return None, subjects
    path, columns = min(tables), ("subject id", "type")
    for row, cells in enumerate(read_sheet(path, columns)):
        number, kind = cells["subject id"], cells["type"].upper()
        if not number:
            continue  # remarks below the table
        # Numbers lose their first zero, and some programs write them with ".0".
        subject = number.removesuffix(".0").zfill(8)
        if kind not in _GROUPS.values():
            raise InputError(
                f"{path}, row {row + 2}, column 'type': {cells['type']!r} is neither MDD nor HC."
            )
        if subject in subjects:
            raise InputError(
                f"{path}, row {row + 2}, column 'subject id': {subject} is there twice. Keep one."
            )
        subjects[subject] = kind, details_of(cells, columns)
    return path, subjects


def _read(path: Path, volts: float) -> mne.io.BaseRaw:
    import mne

    signals, names, sfreq = (_read_text if path.suffix == ".txt" else _read_matrix)(path)
    info = mne.create_info(names, sfreq, "eeg")
    return mne.io.RawArray(signals * volts, info, verbose="ERROR")


def _read_text(path: Path) -> tuple[np.ndarray, list[str], float]:
    """Read a text file with columns Fp1, Fpz and Fp2."""
    import pandas as pd

    try:
        counts = pd.read_csv(path, sep=r"\s+", header=None, dtype=np.float64)
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a table of numbers ({error}).") from error
    if counts.shape[1] != 3:
        raise InputError(f"{path}: has {counts.shape[1]} columns instead of 3 (Fp1, Fpz, Fp2).")
    values = counts.to_numpy()
    for bad, reason in (
        (np.isnan(values), "fewer than 3 numbers"),
        (np.isinf(values), "a number is not finite"),
    ):
        if bad.any():
            line = bad.any(axis=1).argmax() + 1
            raise InputError(f"{path}, line {line}: {reason}.")
    return values.T, ["Fp1", "Fpz", "Fp2"], SFREQ


def _read_matrix(path: Path) -> tuple[np.ndarray, list[str], float]:
    """Read a MATLAB file with one matrix of 129 rows: E1 ... E128 and the reference."""
    variables = {n: v for n, v in load_mat(path).items() if isinstance(v, np.ndarray)}
    # The name of the matrix differs from file to file; impedances have a single column.
    matrices = [
        array
        for array in variables.values()
        if array.dtype.kind in "iuf" and array.ndim == 2 and len(array) == 129 < array.size
    ]
    if len(matrices) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in variables.items())
        raise InputError(
            f"{path}: needs exactly one matrix with 129 rows, has {len(matrices)}. "
            f"Variables: {shapes}."
        )
    stated = np.ravel(variables.get("samplingRate", SFREQ))
    rate = float(stated[0]) if stated.size == 1 and stated.dtype.kind in "iuf" else 0.0
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"{path}: samplingRate is {stated.tolist()}, not one number above 0.")
    signals = matrices[0].astype(np.float64)
    names = [f"E{number}" for number in range(1, 129)]
    if np.ptp(signals[128]) > 0:
        names.append("Cz")  # the reference was changed: now Cz holds a signal
    return signals[: len(names)], names, rate
