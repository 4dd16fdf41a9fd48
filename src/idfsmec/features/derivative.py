"""A feature table as a BIDS derivative: one file per recording, every column described."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import check_writable, replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features.registry import FEATURES
from idfsmec.table import FeatureTable
from idfsmec.table.checks import CONDITION, KNOWN, ONSET, RECORDING, SESSION
from idfsmec.table.columns import split_column

BIDS_VERSION = "1.10.0"
DESCRIPTION = "dataset_description.json"
_SUFFIX = "desc-idfsmec_features"
_REASONS = "desc-idfsmec_reasons"
_PERSON = "participant_id"
_UNITS = {"mean": "uV", "variance": "uV^2", "ap": "uV^2", "ap_beta_theta_ratio": "1"}
_ABOUT = {
    "recording": "Short name of the recording",
    "session": "Session",
    "condition": "Condition",
    "epoch": "Number of the epoch in the recording, from 0",
    "site": "Hospital",
    "age": "Age of the person",
    "sex": "Sex of the person",
    "label": "Class of the person",
    "channel": "Channel that is missing",
    "reason": "Why it is missing; a channel may have several reasons in one epoch",
}


def write_derivative(
    table: FeatureTable,
    folder: str | PathLike[str],
    *,
    name: str = "Features of EEG channels",
    source: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a table as a BIDS derivative.

    There are ``dataset_description.json``, ``participants.tsv`` with what is the same in all rows
    of a person, a file ``sub-*/[ses-*/]eeg/*_desc-idfsmec_features.tsv`` for each recording
    (with ``onset`` and ``duration`` of each epoch), ``*_desc-idfsmec_reasons.tsv`` beside it
    where channels are missing, and sidecar files that describe every column.

    Parameters
    ----------
    table : FeatureTable
        Whose ``rows`` name the recordings; without them, each person is one.
    folder : path-like
        Such as ``my_bids_tree/derivatives/idfsmec``.
    name : str
        Of the data set.
    source : str, optional
        Where the recordings are: the address or DOI of the data set they come from.
    overwrite : bool
        Whether to write into a folder in which a derivative is already.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> X = pd.DataFrame({"Fp1__ap_alpha": [0.1, 0.2], "Cz__ap_alpha": [0.3, float("nan")]})
    >>> rows = pd.DataFrame({"condition": ["rest"] * 2, "epoch": [0, 1], "onset": [0.0, 10.0]})
    >>> table = FeatureTable(X, ["HC", "HC"], ["01", "01"], {"epoch": 10.0}, rows=rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_derivative(table, folder)
    ...     sorted(path.relative_to(folder).as_posix() for path in written.rglob("sub-*.tsv"))
    ['sub-01/eeg/sub-01_task-rest_desc-idfsmec_features.tsv']
    """
    root = check_derivative(folder, overwrite=overwrite)
    people = _bids_labels(table.subjects.unique().tolist(), "sub")
    rows, recordings = _rows(table)
    constant = _of_people(table, rows)
    write_json(root / DESCRIPTION, _describe(name, source))
    _write_text(root / ".bidsignore", f"*_{_SUFFIX}.*\ndesc-idfsmec_*\n*{_REASONS}.*\n")
    _write_text(root / "README", _README)
    _write_people(root, table, people, constant)
    columns = [str(one) for one in rows if one not in constant]
    write_json(root / f"{_SUFFIX}.json", _sidecar(table, columns))
    write_json(root / f"{_REASONS}.json", _described(("epoch", "channel", "reason")))
    stems = _stems(table, rows, recordings, people)
    for recording, stem in stems.items():
        there = (recordings == recording).to_numpy()
        frame = pd.concat(
            [
                rows.loc[there, columns].reset_index(drop=True),
                table.X[there].reset_index(drop=True),
            ],
            axis=1,
        )
        write_tsv(root / f"{stem}_{_SUFFIX}.tsv", frame)
        if table.reasons is not None:
            own = table.reasons[table.reasons[RECORDING] == recording]
            if len(own):
                write_tsv(root / f"{stem}_{_REASONS}.tsv", own.drop(columns=RECORDING))
    return root


def check_derivative(folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse, before any work is done, a folder that cannot or should not be written into."""
    root = Path(folder)
    check_writable(root)
    if root.exists() and not root.is_dir():
        raise InputError(f"{root}: is a file; give a folder.")
    if (root / DESCRIPTION).exists() and not overwrite:
        raise ExistingFileError(root / DESCRIPTION)
    check_writable(root / DESCRIPTION)
    return root


_README = """Features of EEG channels, computed by idfsmec.

Each row of a *_features.tsv file is an epoch, each column a feature of a channel, named
<channel>__<feature>; n/a means that the channel is missing there. *_reasons.tsv says why.
"""


def _describe(name: str, source: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "Name": name,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "idfsmec", "Version": __version__}],
    }
    if source:
        key = "DOI" if source.startswith("doi:") else "URL"
        described["SourceDatasets"] = [{key: source}]
    return described


def _rows(table: FeatureTable) -> tuple[pd.DataFrame, pd.Series]:
    """What is known about rows, with onset and duration in front, and their recordings."""
    rows = pd.DataFrame(index=range(len(table))) if table.rows is None else table.rows
    front: dict[str, Any] = {}
    length = table.info.get("epoch")
    if ONSET in rows and rows[ONSET].notna().all():
        front[ONSET] = rows[ONSET]
        front["duration"] = [length if isinstance(length, int | float) else np.nan] * len(rows)
    recordings = rows.get(RECORDING)
    if recordings is None or recordings.isna().any():
        keys = [table.subjects.astype(str)]
        keys += [rows[one].fillna("").astype(str) for one in (SESSION, CONDITION) if one in rows]
        recordings = pd.Series(["\x1f".join(key) for key in zip(*keys, strict=True)])
    left = rows.drop(columns=[ONSET, RECORDING], errors="ignore")
    return pd.concat([pd.DataFrame(front, index=rows.index), left], axis=1), recordings


def _of_people(table: FeatureTable, rows: pd.DataFrame) -> list[str]:
    """Columns that say the same in all rows of a person: they belong to participants.tsv."""
    others = [one for one in rows if one not in (*KNOWN, "duration")]
    by_person = rows[others].groupby(table.subjects.to_numpy())
    most = by_person.nunique(dropna=False).max().to_dict()
    return [str(one) for one in others if most[one] == 1 and one != _PERSON]


def _write_people(
    root: Path, table: FeatureTable, people: Mapping[Any, str], constant: Sequence[str]
) -> None:
    known = pd.DataFrame({"subject": table.subjects, "label": table.y})
    if table.sites is not None:
        known["site"] = table.sites
    if table.rows is not None:
        known = pd.concat([known, table.rows[list(constant)]], axis=1)
    first = known.groupby("subject", sort=True).first().reset_index()
    # Whoever has rows of several classes has no class of their own.
    several = known.drop_duplicates(["subject", "label"])["subject"].value_counts() > 1
    first.loc[several.reindex(first["subject"]).to_numpy(), "label"] = None
    first.insert(0, _PERSON, [people[one] for one in first["subject"]])
    if all(people[one] == f"sub-{one}" for one in first["subject"]):
        first = first.drop(columns="subject")
    write_tsv(root / "participants.tsv", first)
    said = {"subject": "Name of the person in the table", "label": _ABOUT["label"]}
    described = _described(list(first.columns[1:]), said)
    described["label"]["Levels"] = {str(one): f"Class {one}" for one in sorted(table.y.unique())}
    write_json(root / "participants.json", described)


def _described(columns: Sequence[Any], said: Mapping[str, str] = _ABOUT) -> dict[str, Any]:
    known = {**_ABOUT, **said}
    return {
        str(name): {"Description": known.get(str(name), f"{name}, as the study gives it")}
        for name in columns
    }


def _sidecar(table: FeatureTable, columns: Sequence[str]) -> dict[str, Any]:
    """Describe the columns of the files of features, and how they were computed."""
    about = _described([one for one in columns if one not in (ONSET, "duration")])
    times = {ONSET: "Where the epoch begins in the recording", "duration": "Length of the epoch"}
    about |= {
        one: {"Description": said, "Units": "s"} for one, said in times.items() if one in columns
    }
    settings = {"sfreq": "SamplingFrequency", "epoch": "EpochLength", "overlap": "EpochOverlap"}
    about |= {key: table.info[one] for one, key in settings.items() if one in table.info}
    if "band_pass" in table.info:
        about["SoftwareFilters"] = {"band-pass": {"edges in Hz": table.info["band_pass"]}}
    for column in map(str, table.X.columns):
        channel, feature = split_column(column)
        about[column] = _feature(channel, feature, table.info.get("bands") or {})
    return about


def _feature(channel: str, feature: str, bands: Mapping[str, Sequence[float]]) -> dict[str, str]:
    names = [one for one in FEATURES if feature == one or feature.startswith(f"{one}_")]
    base = max(names, key=len, default="")
    said = feature
    if base:
        text = FEATURES[base].function.__doc__ or feature
        said = " ".join(text.strip().partition("\n\n")[0].split()).rstrip(".")
    detail = feature.removeprefix(base).strip("_") if base else ""
    if detail in bands:
        low, high = bands[detail]
        said += f"; band {detail}, {low:g} to {high:g} Hz"
    elif detail:
        said += f"; {detail}"
    return {"Description": f"{said}. Channel {channel}", "Units": _UNITS.get(base, "n/a")}


def _bids_labels(names: Sequence[Any], entity: str) -> dict[Any, str]:
    """Give names that BIDS allows: letters and digits, each once."""
    plain = {name: re.sub(r"[^A-Za-z0-9]", "", str(name)) for name in names}
    counts = Counter(label.casefold() for label in plain.values())
    taken: set[str] = set()
    labels = {}
    for number, (name, label) in enumerate(plain.items(), start=1):
        good = label and counts[label.casefold()] == 1
        free = label if good else f"{label}x{number}"
        while free.casefold() in taken:
            free += "x"
        taken.add(free.casefold())
        labels[name] = f"{entity}-{free}"
    return labels


def _stems(
    table: FeatureTable, rows: pd.DataFrame, recordings: pd.Series, people: Mapping[Any, str]
) -> dict[str, str]:
    """Folder and beginning of the names of each recording's files."""
    first = {recording: row for row, recording in reversed(list(enumerate(recordings)))}
    made: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for recording in dict.fromkeys(recordings):
        row = first[recording]
        person = people[table.subjects.iloc[row]]
        session = _entity("ses", rows.get(SESSION), row)
        condition = rows[CONDITION].iloc[row] if CONDITION in rows else np.nan
        entities = [person, session, *_of_condition(condition)]
        stem = "_".join(one for one in entities if one)
        seen[stem] += 1
        if seen[stem] > 1:
            stem += f"_recording-{seen[stem]}"
        made[recording] = "/".join(one for one in (person, session, "eeg", stem) if one)
    return made


def _entity(name: str, values: pd.Series | None, row: int) -> str:
    value = None if values is None else values.iloc[row]
    label = "" if value is None or pd.isna(value) else re.sub(r"[^A-Za-z0-9]", "", str(value))
    return f"{name}-{label}" if label else ""


def _of_condition(condition: Any) -> list[str]:
    """Entities of a condition: as BIDS names them already, or the condition as the task."""
    if condition is None or pd.isna(condition):
        return []
    known = re.findall(r"(?:^|_)((?:task|acq|run)-[A-Za-z0-9]+)(?=_|$)", str(condition))
    if known and "_".join(known) == condition:
        return known
    return [f"task-{re.sub(r'[^A-Za-z0-9]', '', str(condition)) or 'unknown'}"]


def write_tsv(path: Path, frame: pd.DataFrame) -> None:
    """Write a table the way BIDS wants it."""
    with replacing(path) as (beside,):
        frame.to_csv(beside, sep="\t", index=False, na_rep="n/a", lineterminator="\n")


def write_json(path: Path, content: Any) -> None:
    """Write a description beside it."""
    _write_text(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as (beside,):
        beside.write_text(text, encoding="utf-8")
