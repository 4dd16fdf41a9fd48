"""Find recordings by what a user names: a manifest, a BIDS tree, or a data set."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from idfsmec._files import check_readable, replacing
from idfsmec.errors import ArgumentError, ExistingFileError, InputError, RecordingError
from idfsmec.recordings.datasets.ds005356 import read_ds005356
from idfsmec.recordings.datasets.modma import read_modma3, read_modma128
from idfsmec.recordings.datasets.mumtaz import read_mumtaz
from idfsmec.recordings.datasets.pred import read_pred_d003
from idfsmec.recordings.datasets.tdbrain import read_tdbrain
from idfsmec.recordings.recording import (
    OTHER_CONDITION,
    Recording,
    check_signals,
    check_spelling,
    epoch_conditions,
    file_recording,
    files_of,
    holds_epochs,
    read_with_mne,
)
from idfsmec.recordings.study_files import details_of, is_missing, read_cells, read_text, read_tsv
from idfsmec.table.columns import same_name

if TYPE_CHECKING:
    import mne

DATA_SETS: dict[str, Callable[..., list[Recording]]] = {
    "modma3": read_modma3,
    "modma128": read_modma128,
    "mumtaz": read_mumtaz,
    "pred-d003": read_pred_d003,
    "tdbrain": read_tdbrain,
    "ds005356": read_ds005356,
}
"""Data sets known by name, and what reads a user's copy of them.

A reader takes the folder, and by keyword those options of :func:`find_recordings` that it
understands; one that is added here can be named like the others.
"""

REQUIRED = ("path", "subject", "label")
OPTIONAL = ("session", "condition", "bads", "site", "reject_log")
# Names of BIDS, understood where a manifest has no column of the name in use here.
_ALIASES = {"participant_id": "subject", "group": "label", "diagnosis": "label", "file": "path"}
LABEL_COLUMNS = ("label", "group", "diagnosis", "dx")
ENDINGS = (".edf", ".bdf", ".vhdr", ".set", ".fif")

LabelRule = Callable[[Mapping[str, str]], str | None]


def find_recordings(
    source: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    labels: str | None = None,
    task: str | None = None,
    condition: str | Sequence[str] | None = None,
    processing: str | None = None,
    unit: str | None = None,
    absent_ok: bool = False,
) -> list[Recording]:
    """Name the recordings of a study, without loading them.

    Parameters
    ----------
    source : path-like or str
        A manifest (a CSV file), the root folder of a BIDS tree or derivative, or the name of a
        data set (:data:`DATA_SETS`): ``modma3``, ``modma128``, ``mumtaz``, ``pred-d003``,
        ``tdbrain``, ``ds005356``.
    data : path-like, optional
        The folder with your copy of a data set that is given by name.
    labels : str, optional
        For ``pred-d003`` the rule that makes labels, such as ``bdi13``; for ``tdbrain`` the
        column ``indication`` or ``formal_status``; for a BIDS tree the column of
        ``participants.tsv``.
    task : str, optional
        Keep one task of a BIDS tree.
    condition : str or sequence of str, optional
        Keep the recordings of some conditions: names of the manifest's column; of a BIDS tree
        such as ``acq-EC``, ``run-1`` or all together, ``task-rest_acq-EC_run-1``; of
        ``pred-d003`` ``eyes-open`` and ``eyes-closed``, of which each becomes a recording; of
        ``mumtaz`` ``EC``, ``EO`` and ``TASK``; of ``tdbrain`` ``restEC``, ``restEO``, ``oddball``.
        A name that no recording has keeps the epochs of that name, in files of epochs.
    processing : str, optional
        Which files of a BIDS derivative to read, such as ``filt``; see :func:`read_bids`.
    unit : str, optional
        Of ``modma3`` and ``modma128``: ``uV``, ``nV``, ``V``, or how many volts one step is.
    absent_ok : bool
        Whether a manifest may name files that are not there; they fail when they are loaded.

    Returns
    -------
    list of Recording

    Raises
    ------
    InputError
        If the source cannot be used, or an option does not apply to it.
    """
    name = fspath(source)
    path = Path(name)
    wanted = [condition] if isinstance(condition, str) else list(condition or ())
    named = {"labels": labels, "task": task, "processing": processing, "unit": unit}
    options = {option: value for option, value in named.items() if value is not None}
    used = options | ({"condition": ", ".join(wanted)} if wanted else {})
    if name in DATA_SETS:
        if data is None:
            raise ArgumentError(
                f"{name}: say where your copy of this data set is, with data=FOLDER.",
                argument="data",
            )
        reader = DATA_SETS[name]
        _refuse_others(used, set(signature(reader).parameters), name)
        if not wanted:
            return reader(data, **options)
        return [rec for name in wanted for rec in reader(data, condition=name, **options)]
    if data is not None:
        raise ArgumentError(
            f"data={fspath(data)!r}: applies to {', '.join(DATA_SETS)}, not to {name!r}.",
            argument="data",
        )
    if path.is_dir():
        _refuse_others(used, {"labels", "task", "condition", "processing"}, "a BIDS tree")
        recordings = read_bids(path, label=labels, task=task, processing=processing)
        return _of_conditions(recordings, wanted, name)
    if path.is_file():
        _refuse_others(used, {"condition"}, "a manifest")
        return _of_conditions(read_manifest(path, absent_ok=absent_ok), wanted, name)
    check_source(name)
    raise InputError(f"{name}: is neither a file nor a folder.")


def check_source(source: str) -> None:
    """Refuse a source of recordings that is not there."""
    if source not in DATA_SETS and not Path(source).exists():
        raise InputError(
            f"{source}: there is no such manifest or BIDS folder, and no data set of that name "
            f"({', '.join(DATA_SETS)})."
        )


def recording_files(folder: str | PathLike[str]) -> list[Path]:
    """Return the recordings in a folder and those within it, by their endings, sorted."""
    return [
        path
        for path in sorted(Path(folder).rglob("*"))
        if path.name.lower().endswith((*ENDINGS, ".fif.gz")) and not path.name.startswith(".")
    ]


def is_plain_folder(folder: str | PathLike[str]) -> bool:
    """Return whether a folder has recordings, but neither BIDS' names nor its files."""
    root = Path(folder)
    of_bids = any(
        (root / name).exists() for name in ("participants.tsv", "dataset_description.json")
    )
    return (
        root.is_dir()
        and not of_bids
        and not any(root.glob("sub-*"))
        and bool(recording_files(root))
    )


def draft_manifest(folder: str | PathLike[str], path: str | PathLike[str]) -> pd.DataFrame:
    """Write a manifest of the recordings in a folder, for a person to complete.

    ``subject`` is the name of the file. ``label`` is that of the folder within ``folder``, if
    there are two or more, each with several recordings; otherwise it is left empty.

    Parameters
    ----------
    folder : path-like
    path : path-like
        The manifest, a CSV file.

    Returns
    -------
    DataFrame
        What was written: ``path``, ``subject``, ``label``.
    """
    root, manifest = Path(folder), Path(path)
    if manifest.exists():
        raise ExistingFileError(manifest)
    files = recording_files(root)
    if not files:
        raise InputError(f"{root}: has no recording ({', '.join(ENDINGS)}).")
    parts = [file.relative_to(root).parts for file in files]
    counts = Counter(names[0] if len(names) > 1 else "" for names in parts)
    labelled = len(counts) > 1 and min(counts.values()) > 1 and "" not in counts
    frame = pd.DataFrame(
        {
            "path": [os.path.relpath(file, manifest.parent) for file in files],
            "subject": [
                re.sub(r"(_raw|_eeg|_epo)?(\.[a-z]+)+$", "", file.name, flags=re.I)
                for file in files
            ],
            "label": [names[0] if labelled else "" for names in parts],
        }
    )
    with replacing(manifest) as (beside,):
        frame.to_csv(beside, index=False)
    return frame


def _of_conditions(
    recordings: list[Recording], wanted: Sequence[str], name: str
) -> list[Recording]:
    """Keep the recordings of some conditions, and the epochs of those that no recording has."""
    # A condition is found as a whole, and by the parts that BIDS has.
    spellings = []
    for condition in (recording.condition or "" for recording in recordings):
        parts = [part for part in condition.split("_") if "-" in part]
        spellings.append({same_name(part) for part in (*parts, condition) if part})
    of_files = {same_name(condition) for condition in wanted} & set().union(*spellings)
    of_epochs = tuple(name for name in wanted if same_name(name) not in of_files)
    chosen = [
        recording
        for recording, names in zip(recordings, spellings, strict=True)
        if not of_files or of_files & names
    ]
    if not of_epochs:
        return chosen
    if not any(holds_epochs(Path(recording.source)) for recording in chosen):
        there = dict.fromkeys(rec.condition for rec in recordings if rec.condition)
        raise ArgumentError(
            f"condition={of_epochs[0]!r}: {name} has {', '.join(there) or 'no conditions'}.",
            argument="condition",
        )
    return [
        replace(
            recording,
            load=partial(_load_epochs, recording, of_epochs),
            variant=f"{recording.variant} epochs of {', '.join(of_epochs)}".strip(),
        )
        for recording in chosen
    ]


def _load_epochs(recording: Recording, wanted: Sequence[str]) -> mne.BaseEpochs:
    """Load the epochs of some conditions; names of events may have parts, separated by ``/``."""
    epochs = recording.load()
    conditions = epoch_conditions(epochs)
    asked = {same_name(name) for name in wanted}
    of_others = [
        asked.isdisjoint(map(same_name, (condition, *condition.split("/"))))
        for condition in conditions
    ]
    if all(of_others):
        raise RecordingError(
            f"{recording.source}: has no epochs of the condition {', '.join(wanted)}; it has "
            f"{', '.join(dict.fromkeys(conditions)) or 'none with a condition'}."
        )
    return epochs.drop(of_others, reason=OTHER_CONDITION, verbose="ERROR")


def _refuse_others(options: dict[str, str], allowed: set[str], what: str) -> None:
    """Refuse options that would be ignored: a mistake that goes unnoticed."""
    for option, value in options.items():
        if option not in allowed:
            raise ArgumentError(
                f"{option}={value!r}: has no meaning for {what}; leave it out.", argument=option
            )


# --- manifests ----------------------------------------------------------------------------


def read_manifest(path: str | PathLike[str], *, absent_ok: bool = False) -> list[Recording]:
    r"""Read a manifest and name its recordings, without loading them.

    Parameters
    ----------
    path : path-like
        A CSV file with the columns ``path``, ``subject`` and ``label``, and optionally
        ``session``, ``condition``, ``bads`` (such as ``Fp1;F7``), ``site`` and ``reject_log``
        (autoreject's, of epochs). Paths are relative to the manifest. Commas, semicolons or tabs
        separate the cells. Further columns, such as age and sex, go into the recordings'
        ``details``, and so into the table.
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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     manifest = Path(folder) / "study.csv"
    ...     _ = manifest.write_text("path,subject,label\ns01.edf,s01,HC\n")
    ...     [recording] = read_manifest(manifest, absent_ok=True)
    >>> recording.subject, recording.label
    ('s01', 'HC')
    """
    manifest = Path(path)
    recordings: list[Recording] = []
    labels: dict[tuple[str, str | None, str | None], tuple[str, str]] = {}
    if not manifest.is_file():
        raise InputError(f"{manifest}: there is no such manifest file.")
    lines = read_cells(manifest, ",;\t|", "; bad channels are separated by semicolons")
    where, header = next(lines, (f"{manifest}, line 1", []))
    header = [name.casefold() for name in header]
    header = [name if _ALIASES.get(name, name) in header else _ALIASES[name] for name in header]
    _check_header(where, header)
    for where, line in lines:
        cells = {name: cell for name, cell in zip(header, line, strict=True) if name}
        recording = _recording(manifest, where, cells, absent_ok)
        key = (recording.subject, recording.session, recording.condition)
        first_where, first_label = labels.setdefault(key, (where, recording.label))
        if first_label != recording.label:
            raise InputError(
                f"{where}, column 'label': participant {recording.subject!r} is "
                f"{recording.label!r} here but {first_label!r} in {first_where}. Correct one, or "
                "distinguish the recordings by a column 'session' or 'condition'."
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
                "another name if it is something else."
            )


def _recording(manifest: Path, where: str, cells: dict[str, str], absent_ok: bool) -> Recording:
    for name in REQUIRED:
        if not cells[name]:
            raise InputError(f"{where}, column {name!r}: the cell is empty; fill it in.")
    file = _find_file(manifest, f"{where}, column 'path'", cells["path"], absent_ok)
    log = cells.get("reject_log") or None
    bads = tuple(bad.strip() for bad in cells.get("bads", "").split(";") if bad.strip())
    for bad in bads:
        if "," in bad:
            parted = ";".join(part.strip() for part in bad.split(","))
            raise InputError(
                f"{where}, column 'bads': {bad!r} is no channel. Separate channels by "
                f"semicolons: {parted}."
            )
    return file_recording(
        file,
        cells["subject"],
        cells["label"],
        session=cells.get("session") or None,
        condition=cells.get("condition") or None,
        bads=bads,
        site=cells.get("site") or None,
        reject_log=log and _find_file(manifest, f"{where}, column 'reject_log'", log, absent_ok),
        details=details_of(cells, (*REQUIRED, *OPTIONAL)),
    )


def _find_file(manifest: Path, where: str, name: str, absent_ok: bool) -> Path:
    try:
        file = manifest.parent / Path(name).expanduser()
        if not file.exists() and "\\" in name:  # a manifest written on Windows
            file = manifest.parent / name.replace("\\", "/")
        exists = file.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, or no such user
        reason = getattr(error, "strerror", None) or str(error)
        short = name if len(name) <= 60 else name[:60] + "..."
        raise InputError(f"{where}: {short!r} is no path ({reason}).") from error
    if not (exists or absent_ok):
        raise RecordingError(
            f"{where}: there is no {file}. Paths are relative to the folder of the manifest."
        )
    return file


# --- BIDS ---------------------------------------------------------------------------------


def read_bids(
    root: str | PathLike[str],
    *,
    label: str | None = None,
    rule: LabelRule | None = None,
    task: str | None = None,
    processing: str | None = None,
) -> list[Recording]:
    """Name the EEG recordings of a BIDS tree or derivative, without loading them.

    Needs mne-bids (``pip install 'idfsmec[bids]'``), which reads types and bad channels from
    ``channels.tsv`` along with the signal.

    Parameters
    ----------
    root : path-like
        The folder of ``participants.tsv``; or a derivative, such as
        ``derivatives/mne-bids-pipeline``, whose participants may be listed in the tree around it.
    label : str, optional
        The column of ``participants.tsv`` with the labels. By default the first of ``label``,
        ``group``, ``diagnosis`` and ``dx`` that is there.
    rule : callable, optional
        Gets a participant's whole line (a mapping from column to text) and returns the label, or
        None for who is left out.
    task : str, optional
        Keep only the recordings of one task, such as ``"rest"``.
    processing : str, optional
        Which files of a derivative to read, by their ``proc-`` or ``desc-``. By default
        ``"clean"``, or the only one there is. Of each recording epochs (``_epo``) come first, the
        continuous signal (``_raw``, ``_eeg``) where there are none.

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
    if find_spec("mne_bids") is None:
        raise InputError(
            "Reading BIDS needs mne-bids, which is not installed: pip install 'idfsmec[bids]'."
        )
    root = Path(root)
    derivative = _is_derivative(root)
    if processing is not None and not derivative:
        raise ArgumentError(
            f"processing={processing!r}: {root} is no BIDS derivative; leave it out.",
            argument="processing",
        )
    read = read_with_mne if derivative else partial(_read_with_sidecars, root=root)
    # Most derivatives list no participants: the tree around them does.
    folders = [root, *root.absolute().parents] if derivative else []
    tables = [folder / "participants.tsv" for folder in folders]
    table = next((path for path in tables if path.is_file()), root / "participants.tsv")
    participants = _read_participants(table)
    columns = list(next(iter(participants.values())))
    column = _label_column(table, columns, label)
    site_column = next((name for name in columns if name.casefold() == "site"), "")
    used = ("participant_id", column if rule is None else "", site_column)
    recordings: list[Recording] = []
    unlabelled: set[str] = set()
    for path in _derivative_files(root, processing) if derivative else _find_files(root):
        entities = _entities(path)
        if task is not None and entities.get("task", "").casefold() != task.casefold():
            continue
        subject = f"sub-{entities['sub']}"
        if subject not in participants:
            raise InputError(f"{table}: there is no line for {subject}, of {path}. Add one.")
        value = _apply_rule(rule, participants[subject], column, table)
        if value is None:
            unlabelled.add(subject)
            continue
        line = participants[subject].items()
        known = {name: "" if is_missing(cell) else cell for name, cell in line}
        described = {"site": known.get(site_column) or None, "details": details_of(known, used)}
        recordings.append(_bids_recording(path, read, value, **described))
    if not recordings:
        of_task = "" if task is None else f" of task {task!r}"
        raise InputError(f"{root}: no EEG recording{of_task} with a label in column {column!r}.")
    if unlabelled:
        warnings.warn(
            f"{table}: left out, without a label in column {column!r}: "
            f"{', '.join(sorted(unlabelled))}.",
            stacklevel=2,
        )
    sites = {recording.site for recording in recordings}
    if None in sites and len(sites) > 1:
        warnings.warn(
            f"{table}: the column of sites is left out, because some participants have none.",
            stacklevel=2,
        )
        recordings = [replace(recording, site=None) for recording in recordings]
    check_spelling(recordings, str(table))
    return recordings


def _entities(path: Path) -> dict[str, str]:
    """Read sub-01_ses-a_task-rest_eeg.edf as ``{'sub': '01', 'ses': 'a', 'task': 'rest'}``."""
    return dict(re.findall(r"([a-z]+)-([a-zA-Z0-9]+)_", path.name))


def _bids_recording(
    path: Path, read: Callable[[Path], Any], label: str, **fields: Any
) -> Recording:
    entities = _entities(path)
    # The list of channels beside a recording says which are bad.
    channels = path.with_name(re.sub(r"_eeg\.[a-z]+$", "_channels.tsv", path.name, flags=re.I))
    condition = "_".join(f"{k}-{entities[k]}" for k in ("task", "acq", "run") if k in entities)
    return file_recording(
        path,
        entities["sub"],
        label,
        read,
        session=entities.get("ses"),
        condition=condition or None,
        files=(*files_of(path), *([channels] if channels.is_file() else [])),
        **fields,
    )


def _read_participants(path: Path) -> dict[str, dict[str, str]]:
    """Read participants.tsv as lines by participant."""
    check_readable(path)
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such file. Give the root folder of a BIDS tree, in which "
            "participants.tsv names all participants."
        )
    rows = read_tsv(path)
    if not rows or "participant_id" not in rows[0]:
        raise InputError(f"{path}: needs rows and a column 'participant_id', separated by tabs.")
    participants: dict[str, dict[str, str]] = {}
    for row in rows:
        subject = f"sub-{row['participant_id'].removeprefix('sub-')}"
        if participants.setdefault(subject, row) != row:
            raise InputError(f"{path}: {subject} has two lines that differ. Keep one of them.")
    return participants


def _label_column(table: Path, columns: list[str], label: str | None) -> str:
    if label is None:
        folded = {name.casefold(): name for name in reversed(columns)}
        label = next((folded[name] for name in LABEL_COLUMNS if name in folded), None)
    if label is None:
        raise InputError(
            f"{table}: which column holds the labels? There are {', '.join(columns)}: name one "
            "with label=..., and with rule=... how to make labels of it."
        )
    if label not in columns:
        raise InputError(f"{table}: no column {label!r}; there are {', '.join(columns)}.")
    return label


def _apply_rule(
    rule: LabelRule | None, line: dict[str, str], column: str, table: Path
) -> str | None:
    value = line[column]
    if is_missing(value):
        return None
    if rule is None:
        return value
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


def _is_derivative(root: Path) -> bool:
    """Return whether a tree is a derivative: by its place, its description, or epochs in it."""
    if root.absolute().parent.name == "derivatives":
        return True
    description = root / "dataset_description.json"
    try:
        content = json.loads(read_text(description)) if description.is_file() else {}
    except ValueError:
        content = {}
    kind = content.get("DatasetType") if isinstance(content, dict) else None
    return kind == "derivative" or any(root.glob("sub-*/**/eeg/*_epo.fif"))


def _derivative_files(root: Path, processing: str | None) -> list[Path]:
    """Choose the files of one step of processing: epochs, else the continuous signal."""
    files: dict[str, list[Path]] = {}
    for path in sorted(root.glob("sub-*/**/eeg/sub-*")):
        entities = _entities(path)
        is_signal = re.search(r"_(epo|raw|eeg)$", path.stem) and path.suffix.lower() in ENDINGS
        # What follows the first part of a file that was split is read along with it.
        if is_signal and int(entities.get("split", 1)) == 1:
            step = entities.get("proc") or entities.get("desc") or ""
            files.setdefault(step, []).append(path)
    if not files:
        raise InputError(f"{root}: no recording (sub-*/[ses-*/]eeg/*_epo, *_raw or *_eeg).")
    if processing is None:
        processing = "clean" if len(files) > 1 else next(iter(files))
    if processing not in files:
        raise ArgumentError(
            f"{root}: has no files of the processing {processing!r}; choose from "
            f"{', '.join(filter(None, files))} with processing=...",
            argument="processing",
        )
    # Epochs of all runs of a recording are in one file.
    recordings: dict[tuple[str | None, ...], list[Path]] = {}
    for path in files[processing]:
        key = tuple(_entities(path).get(name) for name in ("sub", "ses", "task", "acq"))
        recordings.setdefault(key, []).append(path)
    return [
        path
        for paths in recordings.values()
        for path in [path for path in paths if path.stem.endswith("_epo")] or paths
    ]


def _read_with_sidecars(path: Path, root: Path) -> mne.io.BaseRaw:
    """Read a recording of a BIDS tree with what its sidecar files say."""
    import mne_bids

    # In these folders mne-bids looks for sidecar files.
    for folder in path.parents:
        if folder.is_relative_to(root):
            check_readable(*folder.iterdir())
    where = mne_bids.get_bids_path_from_fname(path, verbose="ERROR")
    where.update(root=root)
    with warnings.catch_warnings():
        # Most trees lack something that BIDS wants and features do not need.
        warnings.simplefilter("ignore")
        raw = mne_bids.read_raw_bids(where, verbose="ERROR")
    check_signals(raw)
    return raw
