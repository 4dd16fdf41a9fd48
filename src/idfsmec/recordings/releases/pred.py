"""PRED+CT d003, resting EEG of students with low and high depression scores, as released.

J. F. Cavanagh et al., Multiple dissociations between comorbid depression and anxiety on reward
and punishment processing, Computational Psychiatry 3, 1-17 (2019). Released twice: as MATLAB
files by PRED+CT, and as a BIDS tree by OpenNeuro (ds003478, CC0).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idfsmec.errors import InputError
from idfsmec.recordings._conditions import CONDITIONS, keep_condition
from idfsmec.recordings._files import files_of, open_raw
from idfsmec.recordings._matlab import load_mat, load_sheet, need_columns
from idfsmec.recordings._text import read_tsv
from idfsmec.recordings._whole import check_signals
from idfsmec.recordings.prepare import prepare_raw
from idfsmec.recordings.recording import Recording
from idfsmec.recordings.releases._pred_labels import (
    Participant,
    find_rule,
    parse_interview,
    parse_number,
)

if TYPE_CHECKING:
    import mne

_MAT_NAME = re.compile(r"([0-9]+)_Depression_REST\.mat", re.IGNORECASE)
_SET_NAME = re.compile(r"(sub-[0-9]+)_task-Rest_run-0*([0-9]+)_eeg\.set", re.IGNORECASE)
_SHEET = "Data_4_Import_REST.xlsx"


def read_pred_d003(
    root: str | PathLike[str],
    *,
    labels: str = "bdi13",
    condition: str | None = None,
    runs: Collection[int] = (1,),
    exclude: Collection[str] = ("544",),
) -> list[Recording]:
    """Name the recordings of PRED+CT d003 (64 channels, 500 Hz, 122 subjects).

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
    runs : collection of int
        The first run came right after the electrodes were put on, the second an hour later.
        The PRED+CT release has only the first.
    exclude : collection of str
        Subjects to leave out. The authors never used 544, whose score was unstable; some
        papers also leave out 571 and 572.

    Returns
    -------
    list of Recording
    """
    root = Path(root)
    if condition is not None and condition not in CONDITIONS:
        raise InputError(f"condition={condition!r}: use one of {', '.join(CONDITIONS)}, or None.")
    rule = find_rule(labels)
    left_out = {str(number) for number in exclude}
    people, found = _find_recordings(root)
    recordings = []
    for path, person, run in found:
        label = rule(person)
        if label is None or person.number in left_out or run not in runs:
            continue
        recordings.append(
            Recording(
                person.number,
                label,
                _LoadPred(path, condition),
                str(path),
                session=f"run-{run}",
                condition=condition,
                files=files_of(path),
                variant=condition or "",
            )
        )
    if not recordings:
        raise InputError(
            f"{root}: no recording of run {', '.join(map(str, runs))} has a label by the rule "
            f"{labels!r}. Look at the table of subjects (participants.tsv or {_SHEET})."
        )
    here = {person.number for _, person, _ in found} | left_out
    absent = [p.number for p in people if rule(p) is not None and p.number not in here]
    if absent:
        rest = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
        warnings.warn(
            f"{root}: there is no recording of these subjects, who have a label by the rule "
            f"{labels!r}: {', '.join(absent[:10])}{rest}.",
            stacklevel=2,
        )
    return recordings


_Found = list[tuple[Path, Participant, int]]


def _find_recordings(root: Path) -> tuple[list[Participant], _Found]:
    """List all subjects, and file, subject and run of all recordings, whichever release it is."""
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder.")
    if (root / "participants.tsv").is_file():
        return _find_bids(root)
    files = sorted(root.rglob("*_Depression_REST.mat"))
    if not files:
        raise InputError(
            f"{root}: neither ds003478 (no participants.tsv) nor the PRED+CT release (no "
            "<number>_Depression_REST.mat). Give the folder of one of them."
        )
    sheet = _find_sheet(root, files[0])
    people = _read_sheet(sheet)
    found = [
        (path, _look_up(people, match.group(1), path, sheet), 1)
        for path, match in _named(files, _MAT_NAME)
    ]
    return list(people.values()), found


def _find_bids(root: Path) -> tuple[list[Participant], _Found]:
    table = root / "participants.tsv"
    people = _read_participants(table)
    # An annexed file that was never fetched is a link to nothing: as absent as if it were not.
    files = [path for path in sorted(root.glob("sub-*/eeg/*_eeg.set")) if path.exists()]
    found = [
        (path, _look_up(people, match.group(1).lower(), path, table), int(match.group(2)))
        for path, match in _named(files, _SET_NAME)
    ]
    if not found:
        raise InputError(
            f"{root}: participants.tsv lists {len(people)} subjects, but the recordings are not "
            "there (sub-*/eeg/sub-*_task-Rest_run-*_eeg.set and .fdt). Download them into this "
            "folder; a DataLad clone needs `datalad get sub-*/eeg`."
        )
    return list(people.values()), found


def _named(
    files: Iterable[Path], pattern: re.Pattern[str]
) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in files:
        match = pattern.fullmatch(path.name)
        if match:
            yield path, match


def _look_up(people: dict[str, Participant], key: str, path: Path, table: Path) -> Participant:
    if key not in people:
        raise InputError(f"{path}: subject {key} is not in {table}. Add a line for it there.")
    return people[key]


def _read_participants(path: Path) -> dict[str, Participant]:
    rows = read_tsv(path)
    columns = list(rows[0]) if rows else []
    for name in ("participant_id", "Original_ID", "BDI", "SCID"):
        if name not in columns:
            raise InputError(f"{path}: column {name!r} is missing; found: {', '.join(columns)}.")
    people: dict[str, Participant] = {}
    for row in rows:
        person = Participant(
            row["Original_ID"], parse_number(row["BDI"]), parse_interview(row["SCID"])
        )
        _add(people, row["participant_id"].lower(), person, path)
    return people


def _add(people: dict[str, Participant], key: str, person: Participant, path: Path) -> None:
    if people.setdefault(key, person) != person:
        raise InputError(f"{path}: subject {key} has two lines that differ. Keep one of them.")


def _find_sheet(root: Path, recording: Path) -> Path:
    for folder in (root, *recording.parents[:3]):
        if (folder / _SHEET).is_file():
            return folder / _SHEET
    for path in sorted(root.rglob(_SHEET)):
        return path
    raise InputError(f"{root}: the table of subjects, {_SHEET}, is missing. Put it there.")


def _read_sheet(path: Path) -> dict[str, Participant]:
    frame = load_sheet(path, "Depression Rest")
    need_columns(frame, ("id", "mdd", "bdi"), path)
    people: dict[str, Participant] = {}
    for number, mdd, bdi in zip(frame["id"], frame["mdd"], frame["bdi"], strict=True):
        if number:
            number = number.removesuffix(".0")
            person = Participant(number, parse_number(bdi), parse_interview(mdd))
            _add(people, number, person, path)
    return people


@dataclass(frozen=True)
class _LoadPred:
    """Loads a recording of either release, whole or one condition of it."""

    path: Path
    condition: str | None

    def __call__(self) -> mne.io.BaseRaw:
        return open_raw(self._read, self.path)

    def _read(self) -> mne.io.BaseRaw:
        import mne

        if self.path.suffix.lower() == ".set":
            raw = mne.io.read_raw_eeglab(self.path, verbose="ERROR")
            check_signals(raw)
        else:
            raw = _read_struct(self.path)
        if self.condition is not None:
            raw = keep_condition(raw, self.condition, str(self.path))
        return prepare_raw(raw, source=str(self.path))


def _read_struct(path: Path) -> mne.io.BaseRaw:
    """Read an EEGLAB structure that was saved as an ordinary MATLAB variable."""
    import mne

    eeg: Any = load_mat(path, simplify_cells=True, variable_names=["EEG"]).get("EEG")
    for name in ("data", "srate", "chanlocs"):
        if not isinstance(eeg, dict) or name not in eeg:
            raise InputError(f"{path}: holds no EEGLAB structure 'EEG' with a field {name!r}.")
    signals = np.atleast_2d(np.asarray(eeg["data"], dtype=np.float64)) * 1e-6  # from microvolts
    names = [str(place["labels"]) for place in _as_list(eeg["chanlocs"])]
    if signals.ndim != 2 or len(names) != len(signals):
        raise InputError(
            f"{path}: {len(names)} channel names for signals of shape {signals.shape}."
        )
    sfreq = float(eeg["srate"])
    raw = mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="ERROR")
    events = _as_list(eeg.get("event", []))
    onsets = [(float(event["latency"]) - 1) / sfreq for event in events]  # MATLAB counts from 1
    descriptions = [_event_name(event["type"]) for event in events]
    raw.set_annotations(mne.Annotations(onsets, 0.0, descriptions), verbose="ERROR")
    return raw


def _as_list(value: Any) -> list[Any]:
    """Undo MATLAB's habit of giving a list of one as the thing itself."""
    return [value] if isinstance(value, dict) else list(value)


def _event_name(kind: Any) -> str:
    """Write the type of an event as text; numbers without decimals.

    Examples
    --------
    >>> _event_name(11.0), _event_name("keyboard0"), _event_name(17)
    ('11', 'keyboard0', '17')
    """
    if isinstance(kind, float | np.floating) and float(kind).is_integer():
        return str(int(kind))
    return str(kind).strip() or "unnamed"
