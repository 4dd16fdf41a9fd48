"""A feature table as a BIDS derivative: one file per recording, every column described."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import check_writable, replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features.families import FEATURES
from idfsmec.table import FeatureTable
from idfsmec.table.checks import CONDITION, KNOWN, ONSET, RECORDING, SESSION
from idfsmec.table.columns import split_column

BIDS_VERSION = "1.10.0"
DESCRIPTION = "dataset_description.json"
_FEATURES, _REASONS = "desc-idfsmec_features", "desc-idfsmec_reasons"
_UNITS = {"mean": "uV", "variance": "uV^2", "ap": "uV^2", "ap_beta_theta_ratio": "1"}
_COLUMNS = {
    "subject": "Name of the subject in the table",
    "recording": "Short name of the recording",
    "session": "Session",
    "condition": "Condition",
    "epoch": "Number of the epoch in the recording, from 0",
    "onset": "Where the epoch begins in the recording",
    "duration": "Length of the epoch",
    "site": "Hospital",
    "age": "Age of the subject",
    "sex": "Sex of the subject",
    "label": "Class of the subject",
    "channel": "Channel that is missing",
    "reason": "Why it is missing; a channel may have several reasons in one epoch",
}
_INFO = {"sfreq": "SamplingFrequency", "epoch": "EpochLength", "overlap": "EpochOverlap"}
_README = """Features of EEG channels, computed by idfsmec.

Each row of a *_features.tsv file is an epoch, each column a feature of a channel, named
<channel>__<feature>; n/a means that the channel is missing there. *_reasons.tsv says why.
"""


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
    of a subject, a file ``sub-*/[ses-*/]eeg/*_desc-idfsmec_features.tsv`` for each recording
    (with ``onset`` and ``duration`` of each epoch), ``*_desc-idfsmec_reasons.tsv`` beside it
    where channels are missing, and sidecar files that describe every column.

    Parameters
    ----------
    table : FeatureTable
        Whose ``rows`` name the recordings; without them, each subject is one.
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
    subjects = _bids_labels(table.subjects.unique().tolist())
    rows, recordings = _split_rows(table)
    # What is the same in all rows of a subject goes to participants.tsv.
    others = [name for name in rows if name not in (*KNOWN, "duration", "participant_id")]
    most = rows[others].groupby(table.subjects.to_numpy()).nunique(dropna=False).max().to_dict()
    constant = [str(name) for name in others if most[name] == 1]
    description: dict[str, Any] = {
        "Name": name,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "idfsmec", "Version": __version__}],
    }
    if source:
        key = "DOI" if source.startswith("doi:") else "URL"
        description["SourceDatasets"] = [{key: source}]
    write_json(root / DESCRIPTION, description)
    _write_text(root / ".bidsignore", f"*_{_FEATURES}.*\ndesc-idfsmec_*\n*{_REASONS}.*\n")
    _write_text(root / "README", _README)
    _write_participants(root, table, subjects, constant)
    columns = [str(column) for column in rows if column not in constant]
    write_json(root / f"{_FEATURES}.json", _feature_sidecar(table, columns))
    write_json(root / f"{_REASONS}.json", _sidecar(("epoch", "channel", "reason")))
    whole = pd.concat([rows[columns], table.X.set_axis(rows.index)], axis=1)
    stems: Counter[str] = Counter()
    for recording in dict.fromkeys(recordings):
        inside = (recordings == recording).to_numpy()
        subject = subjects[table.subjects[inside].iloc[0]]
        stem = _file_stem(subject, rows[inside].iloc[0], stems)
        write_tsv(root / f"{stem}_{_FEATURES}.tsv", whole[inside])
        if table.reasons is not None:
            reasons = table.reasons[table.reasons[RECORDING] == recording]
            if len(reasons):
                write_tsv(root / f"{stem}_{_REASONS}.tsv", reasons.drop(columns=RECORDING))
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


def _split_rows(table: FeatureTable) -> tuple[pd.DataFrame, pd.Series]:
    """Give what is known about rows, onset and duration in front, and their recordings."""
    rows = pd.DataFrame(index=range(len(table))) if table.rows is None else table.rows
    times = pd.DataFrame(index=rows.index)
    length = table.info.get("epoch")
    if ONSET in rows and rows[ONSET].notna().all():
        times[ONSET] = rows[ONSET]
        times["duration"] = length if isinstance(length, int | float) else np.nan
    recordings = rows.get(RECORDING)
    if recordings is None or recordings.isna().any():
        keys = [table.subjects.astype(str)]
        keys += [rows[key].fillna("").astype(str) for key in (SESSION, CONDITION) if key in rows]
        recordings = pd.Series(["\x1f".join(key) for key in zip(*keys, strict=True)])
    return times.join(rows.drop(columns=[ONSET, RECORDING], errors="ignore")), recordings


def _write_participants(
    root: Path, table: FeatureTable, subjects: Mapping[Any, str], constant: Sequence[str]
) -> None:
    known = pd.DataFrame({"subject": table.subjects, "label": table.y})
    if table.sites is not None:
        known["site"] = table.sites
    if table.rows is not None:
        known = pd.concat([known, table.rows[list(constant)]], axis=1)
    first = known.groupby("subject", sort=True).first().reset_index()
    # A subject who has rows of several classes has no class.
    several = known.groupby("subject", sort=True)["label"].nunique().to_numpy() > 1
    first.loc[several, "label"] = None
    first.insert(0, "participant_id", [subjects[subject] for subject in first["subject"]])
    if (first["participant_id"] == "sub-" + first["subject"].astype(str)).all():
        first = first.drop(columns="subject")
    write_tsv(root / "participants.tsv", first)
    described = _sidecar(first.columns[1:])
    described["label"]["Levels"] = {str(y): f"Class {y}" for y in sorted(table.y.unique())}
    write_json(root / "participants.json", described)


def _sidecar(columns: Iterable[Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        str(name): {"Description": _COLUMNS.get(str(name), f"{name}, as the study gives it")}
        for name in columns
    }
    for name in {ONSET, "duration"} & set(described):
        described[name]["Units"] = "s"
    return described


def _feature_sidecar(table: FeatureTable, columns: Sequence[str]) -> dict[str, Any]:
    """Describe the columns of the files of features, and how they were computed."""
    described = _sidecar(columns)
    described |= {key: table.info[name] for name, key in _INFO.items() if name in table.info}
    if "band_pass" in table.info:
        described["SoftwareFilters"] = {"band-pass": {"edges in Hz": table.info["band_pass"]}}
    bands = table.info.get("bands") or {}
    for column in map(str, table.X.columns):
        channel, output = split_column(column)
        names = [name for name in FEATURES if output == name or output.startswith(f"{name}_")]
        feature, text = max(names, key=len, default=""), output
        if feature:
            text = FEATURES[feature].function.__doc__ or output
            text = " ".join(text.strip().partition("\n\n")[0].split()).rstrip(".")
            detail = output.removeprefix(feature).strip("_")
            if detail in bands:
                low, high = bands[detail]
                detail = f"band {detail}, {low:g} to {high:g} Hz"
            text += f"; {detail}" if detail else ""
        units = _UNITS.get(feature, "n/a")
        described[column] = {"Description": f"{text}. Channel {channel}", "Units": units}
    return described


def _plain(value: Any) -> str:
    """Keep the characters that BIDS allows in a label."""
    return "" if value is None or pd.isna(value) else re.sub(r"[^A-Za-z0-9]", "", str(value))


def _bids_labels(names: Sequence[Any]) -> dict[Any, str]:
    """Give subjects labels that BIDS allows, each once."""
    counts = Counter(_plain(name).casefold() for name in names)
    taken: set[str] = set()
    labels = {}
    for number, name in enumerate(names, start=1):
        label = _plain(name)
        if not label or counts[label.casefold()] > 1:
            label = f"{label}x{number}"
        while label.casefold() in taken:
            label += "x"
        taken.add(label.casefold())
        labels[name] = f"sub-{label}"
    return labels


def _file_stem(subject: str, row: pd.Series, seen: Counter[str]) -> str:
    """Name a recording's files by subject and first row: their folder and beginning, each once."""
    session = f"ses-{label}" if (label := _plain(row.get(SESSION))) else ""
    condition, task = row.get(CONDITION), ""
    if condition is not None and not pd.isna(condition):
        # A condition may be written in BIDS entities already.
        entities = r"(?:task|acq|run)-[A-Za-z0-9]+"
        is_bids = re.fullmatch(rf"{entities}(?:_{entities})*", str(condition))
        task = str(condition) if is_bids else f"task-{_plain(condition) or 'unknown'}"
    stem = "_".join(filter(None, [subject, session, task]))
    seen[stem] += 1
    if seen[stem] > 1:
        stem += f"_recording-{seen[stem]}"
    return "/".join(filter(None, [subject, session, "eeg", stem]))


def write_tsv(path: Path, frame: pd.DataFrame) -> None:
    """Write a table the way BIDS wants it."""
    with replacing(path) as (beside,):
        frame.to_csv(beside, sep="\t", index=False, na_rep="n/a", lineterminator="\n")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole or not at all."""
    _write_text(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as (beside,):
        beside.write_text(text, encoding="utf-8")
