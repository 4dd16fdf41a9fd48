"""PRED+CT d003, resting EEG of students with low and high depression scores, as released.

J. F. Cavanagh et al., Multiple dissociations between comorbid depression and anxiety on reward
and punishment processing, Computational Psychiatry 3, 1-17 (2019). Released twice: as MATLAB
files by PRED+CT, and as a BIDS tree by OpenNeuro (ds003478, CC0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idfsmec.errors import InputError
from idfsmec.recordings.file_checks import load_mat
from idfsmec.recordings.recording import Recording, file_recording, read_with_mne
from idfsmec.recordings.study_files import (
    check_choice,
    details_of,
    find_files,
    read_sheet,
    read_tsv,
    warn_of_left_out,
)

if TYPE_CHECKING:
    import mne

_SHEET = "Data_4_Import_REST.xlsx"
DEPRESSED, CONTROL = "depressed", "control"
_LEFT = "544"  # left out: the authors never used this subject, whose score was unstable

# A block is a minute of triggers, one every half second (1-6) and every two seconds (11-16).
CONDITIONS: dict[str, frozenset[float]] = {
    "eyes-open": frozenset({2, 4, 6, 12, 14, 16}),
    "eyes-closed": frozenset({1, 3, 5, 11, 13, 15}),
}
_LONGEST_PAUSE = 3.0  # seconds between triggers of a block
_TRIGGER_STEP = 0.5

# Outcomes of the interview, of which the two releases write the number or the words.
_CURRENT, _PAST, _NO_INTERVIEW = 1, 2, 99
_OUTCOMES = {"current mdd": _CURRENT, "past mdd": _PAST, "no interview": _NO_INTERVIEW}
_ABOVE_13 = np.nextafter(13.0, 14.0)
#: By rule: depressed from this BDI on, or by these outcomes of the interview; control below this
#: BDI, where interviews count only without one: low scores were never interviewed.
LABEL_RULES: dict[str, tuple[float, tuple[int, ...], float]] = {
    "bdi13": (13.0, (), 13.0),
    "bdi-above-13": (_ABOVE_13, (), _ABOVE_13),
    "bdi-extremes": (_ABOVE_13, (), 8.0),
    "scid": (np.inf, (_CURRENT,), 8.0),
    "scid-lifetime": (np.inf, (_CURRENT, _PAST), 8.0),
}


@dataclass(frozen=True)
class _Participant:
    """A subject of the releases; ``bdi`` is NaN where there is no score."""

    number: str
    bdi: float
    interview: float  # an outcome; anything else is none of them
    details: Mapping[str, str] = field(repr=False)

    def label(self, rule: str) -> str | None:
        """Return the label by a rule; None for who is neither depressed nor control."""
        depressed_from, outcomes, control_below = LABEL_RULES[rule]
        if self.bdi >= depressed_from or self.interview in outcomes:
            return DEPRESSED
        counts = not outcomes or self.interview == _NO_INTERVIEW
        return CONTROL if self.bdi < control_below and counts else None


def read_pred_d003(
    root: str | PathLike[str], *, labels: str = "bdi13", condition: str | None = None
) -> list[Recording]:
    """Name the recordings of PRED+CT d003 (64 channels, 500 Hz, 121 subjects).

    Parameters
    ----------
    root : path-like
        A copy of ds003478 (with ``participants.tsv``), or the PRED+CT release (the folder of
        ``<number>_Depression_REST.mat`` or one above it, with ``Data_4_Import_REST.xlsx``).
        Subjects have the numbers of the original, 507 ... 628, in both.
    labels : str
        Who is ``"depressed"`` and who ``"control"``; subjects that are neither are left out.

        - ``"bdi13"``: BDI of 13 or more, against the rest (46 and 75 subjects)
        - ``"bdi-above-13"``: BDI above 13, against the rest (45 and 76)
        - ``"bdi-extremes"``: BDI above 13, against below 8 (45 and 75)
        - ``"scid"``: current depression by interview, against BDI below 8 without interview
        - ``"scid-lifetime"``: current or past depression, against the same
    condition : {"eyes-open", "eyes-closed"}, optional
        Keep only the minutes with eyes open or closed, joined. By default all is kept.

    Returns
    -------
    list of Recording
        Of the first run, right after the electrodes were put on; only ds003478 has a second, an
        hour later (:func:`read_bids`). Without subject 544, whose score was unstable and whom the
        authors never used.
    """
    root = Path(root)
    check_choice("condition", condition, CONDITIONS)
    check_choice("labels", labels, LABEL_RULES)
    is_bids = (root / "participants.tsv").is_file()
    table, subjects, files = _find_bids(root) if is_bids else _find_matlab(root)
    absent = {subject.number for subject in subjects.values() if subject.label(labels)} - {_LEFT}
    recordings = []
    for path, key in files:
        if key not in subjects:
            raise InputError(
                f"{path}: participant {key} is not in {table}. Add a line for it there."
            )
        subject = subjects[key]
        label = subject.label(labels)
        if label is None or subject.number == _LEFT:
            continue
        absent.discard(subject.number)
        described = {
            "condition": condition,
            "variant": condition or "",
            "details": subject.details,
        }
        read = partial(_read, condition=condition)
        recordings.append(
            file_recording(path, subject.number, label, read, session="run-1", **described)
        )
    if not recordings:
        raise InputError(
            f"{root}: no recording has a label by the rule {labels!r}. Look at the table of "
            f"participants ({table.name})."
        )
    warn_of_left_out(root, {"without a recording": absent})
    return recordings


# The table of subjects, those by key; file and key of all recordings.
_Release = tuple[Path, dict[str, _Participant], list[tuple[Path, str]]]


def _find_bids(root: Path) -> _Release:
    table = root / "participants.tsv"
    columns = ("participant_id", "Original_ID", "BDI", "SCID")
    subjects = _participants(read_tsv(table, columns), columns, table)
    named = re.compile(r"(sub-[0-9]+)_task-Rest_run-0*1_eeg\.set", re.IGNORECASE)
    recordings = [(path, match[1].lower()) for path, match in find_files(root, named)]
    if not recordings:
        raise InputError(
            f"{root}: participants.tsv lists {len(subjects)} participants, but the recordings are "
            "not there (sub-*/eeg/sub-*_task-Rest_run-*_eeg.set and .fdt). Download them into "
            "this folder; a DataLad clone needs `datalad get sub-*/eeg`."
        )
    return table, subjects, recordings


def _find_matlab(root: Path) -> _Release:
    files = find_files(root, re.compile(r"([0-9]+)_Depression_REST\.mat"))
    if not files:
        raise InputError(
            f"{root}: neither ds003478 (no participants.tsv) nor the PRED+CT release (no "
            "<number>_Depression_REST.mat). Give the folder of one of them."
        )
    places = [folder / _SHEET for folder in (root, *files[0][0].parents[:3])]
    sheets = [path for path in places if path.is_file()] or sorted(root.rglob(_SHEET))
    if not sheets:
        raise InputError(f"{root}: the table of participants, {_SHEET}, is missing. Put it there.")
    rows = read_sheet(sheets[0], ("id", "mdd", "bdi"), "Depression Rest")
    subjects = _participants(rows, ("id", "id", "bdi", "mdd"), sheets[0])
    return sheets[0], subjects, [(path, match[1]) for path, match in files]


def _participants(
    rows: list[dict[str, str]], columns: tuple[str, ...], table: Path
) -> dict[str, _Participant]:
    """Read subjects by key from the lines of a table, whose columns differ by release."""
    subjects: dict[str, _Participant] = {}
    for row in rows:
        key, number, bdi, interview = (row[column].removesuffix(".0") for column in columns)
        if not key:
            continue  # remarks below the table
        outcome = _OUTCOMES.get(interview.casefold(), _parse_number(interview))
        subject = _Participant(number, _parse_number(bdi), outcome, details_of(row, columns[:2]))
        first = subjects.setdefault(key.lower(), subject)
        if repr(first) != repr(subject):  # NaN equals NaN
            raise InputError(
                f"{table}: participant {key} has two lines that differ. Keep one of them."
            )
    return subjects


def _parse_number(text: str) -> float:
    """Read a number; NaN where the cell says that there is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _read(path: Path, condition: str | None) -> mne.io.BaseRaw:
    """Read a recording of either release, whole or the spans of one condition, joined."""
    import mne

    raw = read_with_mne(path) if path.suffix.lower() == ".set" else _read_struct(path)
    if condition is None:
        return raw
    end = raw.times[-1]
    marks = [(mark["onset"] - raw.first_time, mark["description"]) for mark in raw.annotations]
    spans = [
        (max(start, 0.0), min(stop, end))
        for start, stop in _condition_spans(marks, condition)
        if start < end and stop - start > _TRIGGER_STEP
    ]
    if not spans:
        raise InputError(
            f"{path}: no trigger of condition {condition!r} found. Leave the "
            "condition out to use the whole recording."
        )
    parts = [raw.copy().crop(start, stop, include_tmax=False) for start, stop in spans]
    return mne.concatenate_raws(parts, verbose="ERROR")


def _condition_spans(
    marks: Iterable[tuple[float, str]], condition: str
) -> list[tuple[float, float]]:
    """Find when a condition begins and ends, in seconds, from (onset, description)."""
    wanted = CONDITIONS[condition]
    other = frozenset().union(*CONDITIONS.values()) - wanted
    spans: list[tuple[float, float]] = []
    going_on = False
    for onset, description in sorted(marks):
        number = _parse_number(description)
        if number in other or description.casefold().endswith("boundary"):
            if going_on:
                spans[-1] = (spans[-1][0], min(spans[-1][1], onset))
            going_on = False
        elif number in wanted:
            if going_on and onset - spans[-1][1] <= _LONGEST_PAUSE - _TRIGGER_STEP:
                spans[-1] = (spans[-1][0], onset + _TRIGGER_STEP)
            else:
                spans.append((onset, onset + _TRIGGER_STEP))
            going_on = True
    return spans


def _read_struct(path: Path) -> mne.io.BaseRaw:
    """Read an EEGLAB structure that was saved as an ordinary MATLAB variable."""
    import mne

    def as_list(value: Any) -> list[Any]:
        """Undo MATLAB's habit of giving a list of one as the thing itself."""
        return [value] if isinstance(value, dict) else list(value)

    eeg: Any = load_mat(path, simplify_cells=True, variable_names=["EEG"]).get("EEG")
    for name in ("data", "srate", "chanlocs"):
        if not isinstance(eeg, dict) or name not in eeg:
            raise InputError(f"{path}: holds no EEGLAB structure 'EEG' with a field {name!r}.")
    signals = np.atleast_2d(np.asarray(eeg["data"], dtype=np.float64)) * 1e-6  # from microvolts
    names = [str(channel["labels"]) for channel in as_list(eeg["chanlocs"])]
    if signals.ndim != 2 or len(names) != len(signals):
        raise InputError(
            f"{path}: {len(names)} channel names for signals of shape {signals.shape}."
        )
    sfreq = float(eeg["srate"])
    raw = mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="ERROR")
    events = as_list(eeg.get("event", []))
    onsets = [(float(event["latency"]) - 1) / sfreq for event in events]  # MATLAB counts from 1
    descriptions = [_event_name(event["type"]) for event in events]
    raw.set_annotations(mne.Annotations(onsets, 0.0, descriptions), verbose="ERROR")
    return raw


def _event_name(kind: Any) -> str:
    """Write the type of an event as text; numbers without decimals."""
    if isinstance(kind, float | np.floating) and float(kind).is_integer():
        return str(int(kind))
    return str(kind).strip() or "unnamed"
