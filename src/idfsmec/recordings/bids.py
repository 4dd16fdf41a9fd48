"""Read BIDS trees: recordings where BIDS puts them, labels from participants.tsv."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import InputError
from idfsmec.recordings.manifest import read_tsv
from idfsmec.recordings.reading import files_of, is_special, load_raw
from idfsmec.recordings.recording import Recording, check_spelling

if TYPE_CHECKING:
    import mne

LABEL_COLUMNS = ("label", "group", "diagnosis", "dx")
ENDINGS = (".edf", ".bdf", ".vhdr", ".set", ".fif")

LabelRule = Mapping[str, str] | Callable[[Mapping[str, str]], str | None]


def read_bids(
    root: str | PathLike[str],
    *,
    label: str | None = None,
    rule: LabelRule | None = None,
    task: str | None = None,
) -> list[Recording]:
    """Name the EEG recordings of a BIDS tree, without loading them.

    Needs mne-bids (``pip install 'idfsmec[bids]'``), which reads types and bad channels from
    ``channels.tsv`` along with the signal.

    Parameters
    ----------
    root : path-like
        The folder of ``participants.tsv``.
    label : str, optional
        The column of ``participants.tsv`` with the labels. By default the first of ``label``,
        ``group``, ``diagnosis`` and ``dx`` that is there.
    rule : mapping or callable, optional
        Turns values of that column into labels: a mapping from value to label, or a function
        that gets the participant's whole line (a mapping from column to text) and returns the
        label. Who is not in the mapping, or gets None, is left out.
    task : str, optional
        Keep only the recordings of one task, such as ``"rest"``.

    Returns
    -------
    list of Recording
        With BIDS' session in ``session``, task, acquisition and run in ``condition``, the column
        ``site`` in ``site``, and the other columns of ``participants.tsv`` in ``details``.

    Examples
    --------
    A label from a score, where ``participants.tsv`` has a column ``BDI``::

        read_bids("ds003478", label="BDI", task="Rest",
                  rule=lambda line: "high" if float(line["BDI"]) >= 13 else "low")
    """
    try:
        import mne_bids  # noqa: F401 - only to see whether it is there
    except ImportError as error:
        raise InputError(
            "Reading BIDS needs mne-bids, which is not installed: pip install 'idfsmec[bids]'."
        ) from error
    root = Path(root)
    table = root / "participants.tsv"
    participants = _read_participants(table)
    column = _label_column(table, list(next(iter(participants.values()))), label)
    recordings: list[Recording] = []
    unlabelled: set[str] = set()
    for path in _find_files(root):
        # sub-01_ses-a_task-rest_eeg.edf -> {'sub': '01', 'ses': 'a', 'task': 'rest'}
        entities = dict(re.findall(r"([a-z]+)-([a-zA-Z0-9]+)_", path.name))
        if task is not None and entities.get("task", "").casefold() != task.casefold():
            continue
        subject = entities["sub"]
        line = participants.get(f"sub-{subject}")
        if line is None:
            raise InputError(f"{table}: there is no line for sub-{subject}, of {path}. Add one.")
        value = _apply_rule(rule, line, column, table)
        if value is None:
            unlabelled.add(subject)
            continue
        known = {name: "" if _is_missing(cell) else cell for name, cell in line.items()}
        left_out = ("participant_id", column if rule is None else "", *_site_columns(line))
        # The list of channels beside a recording says which are bad.
        channels = path.with_name(re.sub(r"_eeg\.[a-z]+$", "_channels.tsv", path.name, flags=re.I))
        condition = "_".join(f"{k}-{entities[k]}" for k in ("task", "acq", "run") if k in entities)
        recordings.append(
            Recording(
                subject,
                value,
                _LoadBids(root, path),
                str(path),
                session=entities.get("ses"),
                condition=condition or None,
                files=(*files_of(path), *([channels] if channels.is_file() else [])),
                site=next((known[name] for name in _site_columns(line)), "") or None,
                details={n: cell for n, cell in known.items() if n and n not in left_out},
            )
        )
    sites = {recording.site for recording in recordings}
    if None in sites and len(sites) > 1:
        warnings.warn(
            f"{table}: the column of sites is left out, because it has no value for everybody.",
            stacklevel=2,
        )
        recordings = [replace(recording, site=None) for recording in recordings]
    check_spelling(recordings, str(table))
    if not recordings:
        of_task = "" if task is None else f" of task {task!r}"
        raise InputError(f"{root}: no EEG recording{of_task} with a label in column {column!r}.")
    if unlabelled:
        names = ", ".join(f"sub-{subject}" for subject in sorted(unlabelled))
        warnings.warn(
            f"{table}: left out for want of a label in column {column!r}: {names}.", stacklevel=2
        )
    return recordings


def _is_missing(cell: str) -> bool:
    return cell.casefold() in ("", "n/a", "na", "nan")


def _site_columns(line: Mapping[str, str]) -> list[str]:
    return [name for name in line if name.casefold() == "site"]


def _read_participants(path: Path) -> dict[str, dict[str, str]]:
    """Read participants.tsv as lines by participant."""
    if is_special(path):
        raise InputError(f"{path}: is a pipe or a device, not a file. Put the file in its place.")
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such file. Give the root folder of a BIDS tree, in which "
            "participants.tsv names everybody."
        )
    rows = read_tsv(path)
    if not rows or "participant_id" not in rows[0]:
        raise InputError(f"{path}: needs lines and a column 'participant_id', parted by tabs.")
    participants: dict[str, dict[str, str]] = {}
    for row in rows:
        subject = f"sub-{row['participant_id'].removeprefix('sub-')}"
        if participants.setdefault(subject, row) != row:
            raise InputError(f"{path}: {subject} has two lines that differ. Keep one of them.")
    return participants


def _label_column(table: Path, columns: list[str], label: str | None) -> str:
    if label is not None:
        if label not in columns:
            raise InputError(f"{table}: no column {label!r}; there are {', '.join(columns)}.")
        return label
    for column in LABEL_COLUMNS:
        for name in columns:
            if name.casefold() == column:
                return name
    raise InputError(
        f"{table}: which column holds the labels? There are {', '.join(columns)}: name one "
        "with label=..., and with rule=... how to make labels of it."
    )


def _apply_rule(
    rule: LabelRule | None, line: dict[str, str], column: str, table: Path
) -> str | None:
    value = line[column]
    if _is_missing(value):
        return None
    if rule is None:
        return value
    if isinstance(rule, Mapping):
        return rule.get(value)
    try:
        label = rule(line)
    except Exception as error:
        subject = line["participant_id"]
        raise InputError(f"{table}: the rule fails for {subject} ({error!r}).") from error
    return None if label is None else str(label)


def _find_files(root: Path) -> list[Path]:
    """Find the recordings of the tree itself; derivatives lie in folders of their own."""
    files = [
        path
        for pattern in ("sub-*/eeg/*_eeg.*", "sub-*/ses-*/eeg/*_eeg.*")
        for path in root.glob(pattern)
        if path.suffix.lower() in ENDINGS and not path.name.startswith(".")
    ]
    if not files:
        raise InputError(
            f"{root}: no EEG recording (sub-*/[ses-*/]eeg/*_eeg with {', '.join(ENDINGS)})."
        )
    return sorted(files)


@dataclass(frozen=True)
class _LoadBids:
    """Loads a recording of a BIDS tree with what its sidecar files say; can be pickled."""

    root: Path
    path: Path

    def __call__(self) -> mne.io.BaseRaw:
        return load_raw(self.path, self._read)

    def _read(self) -> mne.io.BaseRaw:
        import mne_bids

        # In these folders mne-bids looks for sidecar files.
        for folder in self.path.parents:
            for path in folder.iterdir() if folder.is_relative_to(self.root) else ():
                if is_special(path):
                    raise InputError(f"{path}: is a pipe or a device, not a file. Take it away.")
        where = mne_bids.get_bids_path_from_fname(self.path, verbose="ERROR")
        where.update(root=self.root)
        with warnings.catch_warnings():
            # Most trees lack something that BIDS wants and features do not need.
            warnings.simplefilter("ignore")
            return mne_bids.read_raw_bids(where, verbose="ERROR")
