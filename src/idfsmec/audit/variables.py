"""Acquisition variables: how each subject was recorded.

They come from the acquisition facts of the recordings, the manifest, and the table itself. Age,
sex and the like are among them: groups may differ in these, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from idfsmec.errors import InputError
from idfsmec.metrics import Codes, Floats
from idfsmec.table import FeatureTable
from idfsmec.table.files import file_format

#: Facts that come from the device, with their words, and those that a body may have a part in.
_DEVICE = {
    "n_channels": "number of EEG channels",
    "n_recorded": "number of channels in the file",
    "sfreq": "sampling rate",
    "duration": "length of the recording",
    "line_freq": "line frequency",
    "line_amplitude": "line noise",
    "upper_edge": "upper edge of the spectrum",
    "quantisation": "step of the converter",
    "format": "file format",
    "processing": "processing before features",
    "channels_in_table": "channels with data in the table",
    "n_samples": "number of samples",
}
_HEADER = {
    "months": "months since the study's first recording",
    "other_condition": "header that names another condition",
    "shared_name": "header with another participant's name",
}
_CONTRADICTIONS = ("other_condition", "shared_name")
_SIGNAL = {
    "amplitude": "amplitude of the EEG",
    "drift": "drift",
    "muscle": "level of the muscle band",
    "muscle_share": "share of windows with muscle activity",
    "blinks": "blinks per minute",
    "dropped": "share of epochs dropped before",
    "interpolated": "share of interpolated channels",
    "missing": "share of missing channels",
}
#: Columns of a manifest that are taken without asking, in small letters. All others may be the
#: illness itself, such as the score of a questionnaire.
_STUDY = {
    *("site", "session", "condition", "device", "amplifier", "cap", "montage", "laboratory"),
    *("lab", "centre", "center", "run", "technician", "operator", "year", "batch"),
}
_SUBJECT = {"age", "sex", "gender", "handedness", "hand", "education"}
_OF_ROWS = {"recording", "epoch", "onset"}
#: Spread over orders of magnitude, so that logarithms are compared.
_BY_RATIO = {"line_amplitude", "quantisation", "amplitude", "drift", "muscle", "duration"}
#: A text with more levels than this names subjects or files, not a circumstance.
_MOST_LEVELS = 12
_REASON = "gaps: "
#: What parts subjects into strata, within which the EEG's AUC is computed.
_STRATA, _MOST_STRATA = ("device", "amplifier", "cap", "n_recorded"), 6


@dataclass(frozen=True)
class Variables:
    """Acquisition variables as numbers, ``values`` of shape (n_subjects, n_columns).

    A variable has one column, or one per level of a text (``variable_of``, ``levels``); a value
    that is not known is the median, and has a column that says so. ``described`` says whether the
    table has acquisition facts, ``unused`` which columns beside the features were not tested;
    ``strata`` has the level of each subject in the variables that part them, by name, ``headers``
    how many subjects have a header that contradicts the study, by kind.
    """

    names: tuple[str, ...]
    values: Floats = field(repr=False)
    variable_of: Codes = field(repr=False)
    levels: tuple[str, ...] = field(repr=False)
    described: bool = True
    unused: tuple[str, ...] = ()
    strata: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    headers: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """Hash of all that can influence a result."""
        named = "\x1f".join([*self.names, *self.levels, str(self.described)])
        raw = np.ascontiguousarray(self.values).tobytes() + self.variable_of.tobytes()
        return hashlib.sha256(named.encode() + raw).hexdigest()

    def columns_of(self, names: Iterable[str]) -> Floats:
        """Return the columns of some variables."""
        codes = [self.names.index(name) for name in names]
        return self.values[:, np.isin(self.variable_of, codes)]


def recording_variables(table: FeatureTable, also: Sequence[str] = ()) -> pd.DataFrame:
    """Collect the acquisition variables of each subject.

    Parameters
    ----------
    table : FeatureTable
        Made by ``idfsmec features``, it has the acquisition facts of every recording; with a
        manifest, also age, sex, site and session. Of a table made by hand, what it shows itself:
        channels with data, samples, share missing.
    also : sequence of str
        Further columns of ``table.rows`` to take. Only those named like a circumstance (age,
        sex, site, device, ...) are taken without asking: others may be the illness itself.

    Returns
    -------
    DataFrame
        One row per subject and label, sorted by both; a column per variable.

    Examples
    --------
    >>> from idfsmec.features import extract_table
    >>> from idfsmec.recordings import simulate_cohort
    >>> cohort = simulate_cohort(4, 3, duration=20, detached=0, random_state=0)
    >>> variables = recording_variables(extract_table(cohort.recordings).table)
    >>> variables[["sfreq", "n_channels"]].iloc[0].tolist()
    [250.0, 3.0]
    """
    samples, rows = _sample_facts(table), pd.DataFrame() if table.rows is None else table.rows
    if unknown := [name for name in also if name not in rows]:
        raise InputError(f"the table has no column {unknown[0]!r} beside its features")
    for name in map(str, rows):
        if _is_taken(name, also):
            samples[name] = rows[name].to_numpy()
    if table.sites is not None:
        samples["site"] = table.sites.to_numpy()
    keys = [table.subjects.astype(str).to_numpy(), table.y.to_numpy()]
    groups, observed = samples.groupby(keys), table.observed.groupby(keys)
    columns: dict[str, pd.Series] = {
        name: groups[name].mean()
        if pd.api.types.is_numeric_dtype(samples[name])
        else groups[name].agg(_most_frequent)
        for name in map(str, samples)
    }
    columns["channels_in_table"] = observed.any().sum(axis=1).astype(float)
    columns["n_samples"] = observed.size().astype(float)
    columns["missing"] = 1.0 - observed.mean().mean(axis=1)
    return pd.DataFrame(columns).rename_axis(["subject", "label"])


def read_columns(path: str | PathLike[str]) -> FeatureTable:
    """Read any table of columns for an audit, such as embeddings of a pretrained model.

    Parameters
    ----------
    path : path-like
        Parquet or CSV with the columns ``subject`` and ``label``. Where no column is of the form
        ``<channel>__<feature>``, all columns of numbers are taken as features of one channel
        ``columns``; texts, ``site`` and circumstances such as age are columns about rows.

    Returns
    -------
    FeatureTable
    """
    file = Path(path)
    if not file.is_file():
        return FeatureTable.read(file)  # which names what is wrong
    csv = file_format(file) == "csv"
    try:
        header = (
            pd.read_csv(file, sep=None, engine="python", nrows=0) if csv else pq.read_schema(file)
        )
        names = list(map(str, header.columns if csv else header.names))
    except (ValueError, OSError):
        names = []
    if not {"subject", "label"} <= set(names) or any("__" in name for name in names):
        return FeatureTable.read(file)
    frame = pd.read_csv(file, sep=None, engine="python") if csv else pd.read_parquet(file)
    frame = frame.rename(columns=str).reset_index(drop=True)
    beside = [
        name
        for name in frame.columns.drop(["subject", "label", "site"], errors="ignore")
        if name in _OF_ROWS
        or _is_taken(name, ())
        or not pd.api.types.is_numeric_dtype(frame[name])
    ]
    features = frame.drop(columns=[*beside, "subject", "label", "site"], errors="ignore")
    if features.empty:
        raise InputError(f"{file}: has no column of numbers to audit.")
    return FeatureTable(
        features.add_prefix("columns__").astype(np.float64),
        frame["label"],
        frame["subject"],
        sites=frame.get("site"),
        rows=frame[beside] if beside else None,
    )


def encode_variables(table: FeatureTable, also: Sequence[str] = ()) -> Variables:
    """Return the variables of a table as numbers, without those that are equal for all."""
    frame = recording_variables(table, also)
    encoded = {str(name): _encode(str(name), frame[name]) for name in frame}
    encoded = {name: columns for name, columns in encoded.items() if columns}
    values = [column for columns in encoded.values() for column in columns.values()]
    beside = [] if table.rows is None else [str(name) for name in table.rows.columns]
    return Variables(
        tuple(encoded),
        np.column_stack(values) if values else np.zeros((len(frame), 0)),
        np.repeat(np.arange(len(encoded)), [len(columns) for columns in encoded.values()]),
        tuple(level for columns in encoded.values() for level in columns),
        described=bool(_described_recordings(table)),
        unused=tuple(n for n in beside if n not in _OF_ROWS and not _is_taken(n, also)),
        strata=_strata(frame),
        headers={name: int((frame[name] > 0).sum()) for name in _CONTRADICTIONS if name in frame},
    )


def _strata(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the level of each subject in variables that form a few strata."""
    strata = {}
    for name in [name for name in map(str, frame) if name.lower() in _STRATA]:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        texts = frame[name].map("{:g}".format if numeric else str)
        levels = texts.mask(frame[name].isna(), "not known").tolist()
        if 2 <= len(set(levels)) <= _MOST_STRATA:
            strata[name] = levels
    return strata


def kind_of(name: str) -> str:
    """Return the kind of a variable; the participant's body also affects the kind signal."""
    if name in _SIGNAL or name.startswith(_REASON):
        return "signal"
    if name.lower() in _SUBJECT:
        return "subject"
    return "device" if name in _DEVICE else "study"


def say_variable(name: str) -> str:
    """Return the label of a variable."""
    if name.startswith(_REASON):
        return f"missing channels ({name.removeprefix(_REASON).removeprefix('detected: ')})"
    return (_DEVICE | _SIGNAL | _HEADER).get(name, name)


def _is_taken(name: str, also: Sequence[str]) -> bool:
    return name in also or name.lower() in _STUDY | _SUBJECT


def _described_recordings(table: FeatureTable) -> list[Mapping[str, Any]]:
    recordings = table.info.get("recordings") or []
    return [each for each in recordings if isinstance(each, Mapping) and each.get("facts")]


def _sample_facts(table: FeatureTable) -> pd.DataFrame:
    """Facts of the recording of each sample; no column where there are none."""
    recordings = _described_recordings(table)
    if not recordings:
        return pd.DataFrame(index=range(len(table)))
    rows = []
    for recording in recordings:
        facts = dict(recording["facts"])
        shares = facts.pop("gaps", None) or {}
        rows.append(facts | {f"{_REASON}{reason}": share for reason, share in shares.items()})
    frame = pd.DataFrame(rows)
    shares = [name for name in map(str, frame) if name.startswith(_REASON)]
    frame[shares] = frame[shares].fillna(0.0)
    of_samples = frame.reindex(_recording_of(table, recordings)).reset_index(drop=True)
    return of_samples.dropna(axis="columns", how="all")


def _recording_of(table: FeatureTable, recordings: list[Mapping[str, Any]]) -> Codes:
    """Position of each sample's recording among those with facts; -1 where it is not there."""
    if table.rows is not None and "recording" in table.rows.columns:
        key, names = "recording", table.rows["recording"].astype(str)
    else:
        sizes = [int(recording.get("rows") or 0) for recording in recordings]
        if sum(sizes) == len(table):
            return np.repeat(np.arange(len(recordings)), sizes)
        # Some samples were taken out: a subject's first recording stands for all of theirs.
        key, names = "subject", table.subjects.astype(str)
    first = {str(each.get(key)): i for i, each in reversed(list(enumerate(recordings)))}
    return np.array([first.get(name, -1) for name in names], dtype=np.intp)


def _most_frequent(values: pd.Series) -> Any:
    texts = values.dropna().astype(str)
    modes = texts[texts != ""].mode()  # a blank cell is not known
    return modes.iloc[0] if len(modes) else None


def _encode(name: str, values: pd.Series) -> dict[str, Floats]:
    """Columns of a variable by level; none where it is the same for all or names subjects."""
    unknown = values.isna().to_numpy()
    columns: dict[str, Floats] = {}
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=np.float64)
        if not unknown.all():
            numbers = np.where(unknown, np.nanmedian(numbers), numbers)
            positive = numbers[numbers > 0]
            if name in _BY_RATIO and positive.size:
                numbers = np.log10(np.maximum(numbers, 1e-3 * np.median(positive)))
            columns[""] = numbers
    else:
        texts = values.astype(str).to_numpy()
        known = sorted(set(texts[~unknown]))
        if len(known) > _MOST_LEVELS:
            return {}
        # Of two levels one column says all.
        kept = known[1:] if len(known) == 2 else known
        columns |= {level: (texts == level).astype(float) for level in kept}
    if unknown.any():
        columns["not known"] = unknown.astype(float)
    return {
        level: column
        for level, column in columns.items()
        if np.ptp(column) > 1e-9 * np.abs(column).max()
    }
