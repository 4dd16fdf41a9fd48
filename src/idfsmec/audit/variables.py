"""What is known of each subject and recording, as numbers by variable and level.

Variables come from the acquisition facts of the recordings, the manifest and the table itself. Who
was recorded (age, sex, site, ...) and how it was recorded are two families. The unit is a subject
within a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.errors import InputError, find_name
from idfsmec.metrics import Codes
from idfsmec.table import FeatureTable
from idfsmec.table.files import column_names, read_frame
from idfsmec.table.target import DIAGNOSIS

#: The families of facts: how subjects were recorded, and who.
FAMILIES = ("acquisition", "participants")
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
    "reference": "reference",
    "clipped": "share of channel epochs at the amplifier's limits",
    "format": "file format",
    "processing": "processing before features",
    "channels_in_table": "channels with data in the table",
    "n_samples": "number of samples",
}
_HEADER = {
    "months": "months since the study's first recording",
    "other_condition": "header that names another condition",
    "shared_name": "header with another participant's name",
    "generated": "recording that looks generated",
}
_CONTRADICTIONS = ("other_condition", "shared_name", "generated")
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
    *("session", "condition", "device", "amplifier", "cap", "montage", "laboratory", "lab"),
    *("run", "technician", "operator", "year", "batch"),
}
_SUBJECT = {"age", "sex", "gender", "handedness", "hand", "education", "site", "centre", "center"}
_OF_ROWS = {"recording", "epoch", "onset"}
#: Columns that are no circumstance: of the rows, and the labels beside a score.
_NOT_ASKED = _OF_ROWS | {DIAGNOSIS}
#: What every table shows of itself.
_OF_TABLE = ("channels_in_table", "n_samples", "missing")
#: Spread over orders of magnitude, so that logarithms are compared.
_BY_RATIO = {"line_amplitude", "quantisation", "amplitude", "drift", "muscle", "duration"}
#: A text with more levels than this names subjects or files, not a circumstance.
_MOST_LEVELS = 12
_REASON = "gaps: "
#: What parts subjects into strata, within which the EEG's AUC is computed.
_STRATA, _MOST_STRATA = ("device", "amplifier", "cap", "n_recorded"), 6


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
        One row per subject and label, sorted by both; a column per variable. With a score as the
        target one row per subject.

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
    also = [
        find_name(name, map(str, rows), f"the table has no column {name!r} beside its features")
        for name in also
    ]
    for name in map(str, rows):
        if _is_taken(name, also):
            samples[name] = rows[name].to_numpy()
    if table.sites is not None:
        samples["site"] = table.sites.to_numpy()
    labels = np.full(len(table), table.target.name) if table.target.is_numeric else table.y
    keys = [table.subjects.astype(str).to_numpy(), np.asarray(labels)]
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
    """Read any table with ``subject`` and ``label``, such as embeddings of a pretrained model.

    Where no column is of the form ``<channel>__<feature>``, all columns of numbers are features of
    one channel ``columns``; texts, ``site`` and circumstances such as age are about rows.
    """
    file = Path(path)
    if not file.is_file():
        return FeatureTable.read(file)  # which names what is wrong
    names = column_names(file)
    if not {"subject", "label"} <= set(names) or any("__" in name for name in names):
        return FeatureTable.read(file)
    frame = read_frame(file)
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


def encode_variables(
    table: FeatureTable, also: Sequence[str] = ()
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the variables of a table as numbers, a row per subject, and what else is known.

    Columns are (variable, level), one for each level of a text; those that are equal for all are
    left out. A value that is not known is the median, and has a column that says so. ``described``
    says whether the table has acquisition facts, ``unused`` which columns are not tested,
    ``named`` which texts have too many levels to be; ``strata`` has the level of each subject by
    variable, ``headers`` which subjects have a header that contradicts the study.
    """
    frame = recording_variables(table, also)
    encoded = {str(name): _encode(str(name), frame[name]) for name in frame}
    beside = [] if table.rows is None else [str(name) for name in table.rows.columns]
    about = {
        "described": bool(_described_recordings(table))
        or any(family_of(n) == "acquisition" and n not in _OF_TABLE for n in map(str, frame)),
        "unused": [n for n in beside if n not in _NOT_ASKED and not _is_taken(n, also)],
        "named": [
            name
            for name, columns in encoded.items()
            if columns.empty and frame[name].nunique() > _MOST_LEVELS
        ],
        "strata": {} if table.target.is_numeric else _strata(frame),
        "target": table.target.name,
        "headers": {
            name: sorted(set(frame.index[frame[name] > 0].get_level_values("subject")))
            for name in _CONTRADICTIONS
            if name in frame
        },
    }
    return pd.concat(encoded, axis=1, names=["variable", "level"]), about


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
    """Return the kind of a variable; the participant's body also affects the kind signal.

    A column that a user has named and nobody knows, such as medication, describes subjects.
    """
    if name in _SIGNAL or name.startswith(_REASON):
        return "signal"
    if name in _DEVICE:
        return "device"
    return "study" if name in _HEADER or name.lower() in _STUDY else "subject"


def family_of(name: str) -> str:
    """Return the family of a variable."""
    return FAMILIES[kind_of(name) == "subject"]


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
    # Shares of missing channels by reason, the one entry that is a mapping, get a column each.
    frame = pd.json_normalize([dict(recording["facts"]) for recording in recordings], sep=": ")
    frame = frame.drop(columns="gaps", errors="ignore")
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
    counts = Counter(str(value) for value in values.dropna())
    del counts[""]  # a blank cell is not known
    return min(counts, key=lambda text: (-counts[text], text), default=None)


def _encode(name: str, values: pd.Series) -> pd.DataFrame:
    """Columns of a variable by level; none where it is the same for all or names subjects."""
    unknown = values.isna().to_numpy()
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=float)
        median = 0.0 if unknown.all() else np.median(numbers[~unknown])
        numbers = np.where(unknown, median, numbers)
        if name in _BY_RATIO and (numbers > 0).any():
            numbers = np.log10(np.maximum(numbers, 1e-3 * np.median(numbers[numbers > 0])))
        columns = pd.DataFrame({"": numbers}, index=values.index)
    else:
        columns = pd.get_dummies(values, dtype=float)
        if columns.shape[1] > _MOST_LEVELS:
            return columns.iloc[:, :0]
        if columns.shape[1] == 2:  # one column says all
            columns = columns.iloc[:, 1:]
    if unknown.any():
        columns = columns.assign(**{"not known": unknown.astype(float)})
    of_levels = columns.to_numpy()
    varies = np.ptp(of_levels, axis=0) > 1e-9 * np.abs(of_levels).max(axis=0)
    kept: pd.DataFrame = columns.loc[:, varies]
    return kept
