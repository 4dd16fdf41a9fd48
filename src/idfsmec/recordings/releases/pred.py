"""PRED+CT d003, resting EEG of students with low and high depression scores, as released.

J. F. Cavanagh et al., Multiple dissociations between comorbid depression and anxiety on reward
and punishment processing, Computational Psychiatry 3, 1-17 (2019). Released twice: as MATLAB
files by PRED+CT, and as a BIDS tree by OpenNeuro (ds003478, CC0).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from idfsmec.errors import ArgumentError, InputError
from idfsmec.recordings._tables import details_of, load_sheet, need_columns, read_tsv
from idfsmec.recordings.reading import files_of
from idfsmec.recordings.recording import Recording
from idfsmec.recordings.releases._pred_signals import CONDITIONS, LoadPred

_MAT_NAME = re.compile(r"([0-9]+)_Depression_REST\.mat", re.IGNORECASE)
_SET_NAME = re.compile(r"(sub-[0-9]+)_task-Rest_run-0*([0-9]+)_eeg\.set", re.IGNORECASE)
_SHEET = "Data_4_Import_REST.xlsx"

DEPRESSED = "depressed"
CONTROL = "control"

CURRENT, PAST, WITHOUT, NO_INTERVIEW = 1, 2, 50, 99
# The two releases write the outcome of the interview in their own ways.
_OUTCOMES = {
    "current mdd": CURRENT,
    "past mdd": PAST,
    "do not meet criterion for current or past mdd": WITHOUT,
    "no interview": NO_INTERVIEW,
}


@dataclass(frozen=True)
class _Participant:
    """What the releases say about one subject that labels depend on."""

    number: str
    bdi: float | None
    interview: int | None
    details: Mapping[str, str] = field(default_factory=dict, compare=False)


def _bdi_from_13(person: _Participant) -> str | None:
    return None if person.bdi is None else DEPRESSED if person.bdi >= 13 else CONTROL


def _bdi_above_13(person: _Participant) -> str | None:
    return None if person.bdi is None else DEPRESSED if person.bdi > 13 else CONTROL


def _bdi_extremes(person: _Participant) -> str | None:
    if person.bdi is None or 8 <= person.bdi <= 13:
        return None
    return DEPRESSED if person.bdi > 13 else CONTROL


def _is_control(person: _Participant) -> bool:
    """Low score and hence never invited: only those with a high BDI were interviewed."""
    return person.interview == NO_INTERVIEW and person.bdi is not None and person.bdi < 8


def _scid_current(person: _Participant) -> str | None:
    if person.interview == CURRENT:
        return DEPRESSED
    return CONTROL if _is_control(person) else None


def _scid_lifetime(person: _Participant) -> str | None:
    if person.interview in (CURRENT, PAST):
        return DEPRESSED
    return CONTROL if _is_control(person) else None


#: Who is depressed and who control, by name; None for who is neither.
LABEL_RULES: dict[str, Callable[[_Participant], str | None]] = {
    "bdi13": _bdi_from_13,
    "bdi-above-13": _bdi_above_13,
    "bdi-extremes": _bdi_extremes,
    "scid": _scid_current,
    "scid-lifetime": _scid_lifetime,
}


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
        raise ArgumentError(
            f"condition={condition!r}: use one of {', '.join(CONDITIONS)}, or None.",
            argument="condition",
        )
    if labels not in LABEL_RULES:
        raise ArgumentError(
            f"labels={labels!r}: use one of {', '.join(LABEL_RULES)}.", argument="labels"
        )
    rule = LABEL_RULES[labels]
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
                LoadPred(path, condition),
                str(path),
                session=f"run-{run}",
                condition=condition,
                files=files_of(path),
                variant=condition or "",
                details=person.details,
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


_Found = list[tuple[Path, _Participant, int]]


def _find_recordings(root: Path) -> tuple[list[_Participant], _Found]:
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


def _find_bids(root: Path) -> tuple[list[_Participant], _Found]:
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


def _look_up(people: dict[str, _Participant], key: str, path: Path, table: Path) -> _Participant:
    if key not in people:
        raise InputError(f"{path}: subject {key} is not in {table}. Add a line for it there.")
    return people[key]


def _read_participants(path: Path) -> dict[str, _Participant]:
    rows = read_tsv(path)
    columns = list(rows[0]) if rows else []
    for name in ("participant_id", "Original_ID", "BDI", "SCID"):
        if name not in columns:
            raise InputError(f"{path}: column {name!r} is missing; found: {', '.join(columns)}.")
    people: dict[str, _Participant] = {}
    for row in rows:
        person = _Participant(
            row["Original_ID"],
            _parse_number(row["BDI"]),
            _parse_interview(row["SCID"]),
            details_of(row, ("participant_id", "Original_ID")),
        )
        _add(people, row["participant_id"].lower(), person, path)
    return people


def _add(people: dict[str, _Participant], key: str, person: _Participant, path: Path) -> None:
    if people.setdefault(key, person) != person:
        raise InputError(f"{path}: subject {key} has two lines that differ. Keep one of them.")


def _find_sheet(root: Path, recording: Path) -> Path:
    for folder in (root, *recording.parents[:3]):
        if (folder / _SHEET).is_file():
            return folder / _SHEET
    for path in sorted(root.rglob(_SHEET)):
        return path
    raise InputError(f"{root}: the table of subjects, {_SHEET}, is missing. Put it there.")


def _read_sheet(path: Path) -> dict[str, _Participant]:
    frame = load_sheet(path, "Depression Rest")
    need_columns(frame, ("id", "mdd", "bdi"), path)
    people: dict[str, _Participant] = {}
    for row in frame.to_dict("records"):
        if number := row["id"].removesuffix(".0"):
            person = _Participant(
                number,
                _parse_number(row["bdi"]),
                _parse_interview(row["mdd"]),
                details_of(row, ("id",)),
            )
            _add(people, number, person, path)
    return people


def _parse_number(text: str) -> float | None:
    """Read a number; None where the cell says that there is none.

    Examples
    --------
    >>> _parse_number("13"), _parse_number("NaN"), _parse_number("n/a")
    (13.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number else None


def _parse_interview(text: str) -> int | None:
    """Read the outcome of the interview as either release writes it.

    Examples
    --------
    >>> _parse_interview("50"), _parse_interview("Past MDD"), _parse_interview("")
    (50, 2, None)
    """
    number = _parse_number(text)
    if number is not None:
        return int(number) if number in _OUTCOMES.values() else None
    return _OUTCOMES.get(text.strip().casefold())
