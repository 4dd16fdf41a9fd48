"""What is known of how each person was recorded: facts, manifest, and the table itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Kind = Literal["device", "signal", "study", "person"]

#: Facts of a recording that come from the device, and those that a body may have a part in.
_DEVICE = ("n_channels", "n_recorded", "sfreq", "duration", "line_freq", "line_amplitude",
           "upper_edge", "quantisation", "format")  # fmt: skip
_SIGNAL = ("amplitude", "drift", "muscle")
#: Columns of a manifest that are taken without asking, in small letters. All others may be the
#: illness itself, such as the score of a questionnaire.
_STUDY = {"site", "session", "condition", "device", "amplifier", "cap", "montage", "laboratory",
          "lab", "centre", "center", "run", "technician", "operator", "year"}  # fmt: skip
_PERSON = {"age", "sex", "gender", "handedness", "hand", "education"}
_OF_ROWS = {"recording", "epoch", "onset"}
#: Spread over orders of magnitude, so that logarithms are compared.
_BY_RATIO = ("line_amplitude", "quantisation", "amplitude", "drift", "muscle", "duration")
#: A text with more levels than this names people or files, not a circumstance.
_MOST_LEVELS = 12

WORDS = {
    "n_channels": "number of EEG channels",
    "n_recorded": "number of channels in the file",
    "sfreq": "sampling rate",
    "duration": "length of the recording",
    "line_freq": "mains frequency",
    "line_amplitude": "mains amplitude",
    "upper_edge": "upper edge of the spectrum",
    "quantisation": "step of the converter",
    "format": "file format",
    "amplitude": "amplitude of the EEG",
    "drift": "drift",
    "muscle": "level of the muscle band",
    "n_recordings": "number of recordings",
    "channels_in_table": "channels with data in the table",
    "n_samples": "number of samples",
    "missing": "share of missing channels",
}


@dataclass(frozen=True)
class Variables:
    """Variables of people as numbers: one column each, or one per level of a text.

    Parameters
    ----------
    names, kinds : tuple of str
        Of the variables: ``device``, ``signal`` (a body may have a part in it), ``study`` or
        ``person``.
    values : ndarray of shape (n_people, n_columns)
        Without gaps: a value that is not known is the median, and has a column that says so.
    variable_of : ndarray of shape (n_columns,)
    levels : tuple of str
        What a column stands for: empty for the number itself.
    described : bool
        Whether anybody has written down how recordings were made; else only the table speaks.
    unused : tuple of str
        Columns beside the features that were not looked at.
    subjects : tuple of str
        Names of the subjects, in the order of their codes.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Floats = field(repr=False)
    variable_of: Codes = field(repr=False)
    levels: tuple[str, ...] = field(repr=False)
    described: bool = True
    unused: tuple[str, ...] = ()
    subjects: tuple[str, ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """Hash of all that can influence a result."""
        named = "\x1f".join([*self.names, *self.levels, str(self.described)])
        raw = np.ascontiguousarray(self.values).tobytes() + self.variable_of.tobytes()
        return hashlib.sha256(named.encode() + raw).hexdigest()

    def columns_of(self, names: Iterable[str]) -> Floats:
        """Columns of some variables."""
        places = [self.names.index(name) for name in names]
        return self.values[:, np.isin(self.variable_of, places)]


def recording_variables(table: FeatureTable, also: Sequence[str] = ()) -> pd.DataFrame:
    """Put together what is known of how each person was recorded.

    Parameters
    ----------
    table : FeatureTable
        Made by ``idfsmec features``, it has the facts of every recording; with a manifest, also
        age, sex, site and session. Of a table made by hand, what it shows itself: channels with
        data, samples, share missing.
    also : sequence of str
        Further columns of ``table.rows`` to take. Only those named like a circumstance (age,
        sex, site, device, ...) are taken without asking: others may be the illness itself.

    Returns
    -------
    DataFrame
        One row per person and label, sorted by both; a column per variable.

    Examples
    --------
    >>> from idfsmec.features import extract_table
    >>> from idfsmec.recordings import simulate_cohort
    >>> cohort = simulate_cohort(4, 3, duration=20, detached=0, random_state=0)
    >>> found = recording_variables(extract_table(cohort.recordings).table)
    >>> found[["sfreq", "n_channels"]].iloc[0].tolist()
    [250.0, 3.0]
    """
    samples = _of_samples(table, also)
    subjects, who = np.unique(table.subjects.astype(str).to_numpy(), return_inverse=True)
    classes, y = np.unique(table.y.to_numpy(), return_inverse=True)
    cells, member = np.unique(who * classes.size + y, return_inverse=True)
    groups = samples.groupby(member, sort=True)
    found: dict[str, pd.Series] = {
        name: groups[name].mean()
        if pd.api.types.is_numeric_dtype(samples[name])
        else groups[name].agg(_commonest)
        for name in map(str, samples)
    }
    named = pd.MultiIndex.from_arrays(
        [subjects[cells // classes.size], classes[cells % classes.size]],
        names=["subject", "label"],
    )
    frame = pd.DataFrame({**found, **_of_table(table, member)})
    return frame.set_axis(named)


def encode_variables(table: FeatureTable, also: Sequence[str] = ()) -> Variables:
    """Give the variables of a table as numbers, leaving out those that are the same for all."""
    frame = recording_variables(table, also)
    names: list[str] = []
    owner: list[int] = []
    levels: list[str] = []
    columns: list[Floats] = []
    for name in map(str, frame.columns):
        own = _columns_of(name, frame[name])
        if own:
            owner += [len(names)] * len(own)
            names.append(name)
            levels += list(own)
            columns += list(own.values())
    values = np.column_stack(columns) if columns else np.zeros((len(frame), 0))
    rows = getattr(table, "rows", None)
    beside = [] if rows is None else [str(name) for name in rows.columns]
    return Variables(
        tuple(names),
        tuple(kind_of(name) for name in names),
        values,
        np.array(owner, dtype=np.intp),
        tuple(levels),
        described=bool(_facts_of(table)),
        unused=tuple(n for n in beside if n not in _OF_ROWS and not _is_wanted(n, also)),
        subjects=tuple(np.unique(table.subjects.astype(str).to_numpy()).tolist()),
    )


def kind_of(name: str) -> Kind:
    """Say whose a variable is."""
    if name in _SIGNAL or name.startswith("gaps: ") or name == "missing":
        return "signal"
    if name.lower() in _PERSON:
        return "person"
    if name in _DEVICE or name in {"channels_in_table", "n_samples", "n_recordings"}:
        return "device"
    return "study"


def say_variable(name: str) -> str:
    """A variable as one says it.

    Examples
    --------
    >>> say_variable("line_amplitude"), say_variable("gaps: detected: flat")
    ('mains amplitude', 'gaps (flat)')
    """
    if name.startswith("gaps: "):
        return f"gaps ({name.removeprefix('gaps: ').removeprefix('detected: ')})"
    return WORDS.get(name, name)


def _of_samples(table: FeatureTable, also: Sequence[str]) -> pd.DataFrame:
    """What is known of each sample: facts of its recording, columns of the manifest, site."""
    found = _facts_of_samples(table)
    rows, sites = getattr(table, "rows", None), getattr(table, "sites", None)
    if rows is not None:
        unknown = [name for name in also if name not in rows.columns]
        if unknown:
            raise InputError(f"the table has no column {unknown[0]!r} beside its features")
        for name in map(str, rows.columns):
            if _is_wanted(name, also):
                found[name] = rows[name].to_numpy()
    elif also:
        raise InputError(f"the table has no column {also[0]!r} beside its features")
    if sites is not None:
        found["site"] = sites.to_numpy()
    return found


def _is_wanted(name: str, also: Sequence[str]) -> bool:
    return name in also or name.lower() in _STUDY | _PERSON


def _facts_of(table: FeatureTable) -> list[Mapping[str, Any]]:
    kept = table.info.get("recordings") or []
    return [one for one in kept if isinstance(one, Mapping) and one.get("facts")]


def _facts_of_samples(table: FeatureTable) -> pd.DataFrame:
    """Facts of the recording of each sample; no column where nobody knows."""
    kept = _facts_of(table)
    if not kept:
        return pd.DataFrame(index=range(len(table)))
    facts = pd.DataFrame([_flat(one["facts"]) for one in kept])
    gaps = [name for name in map(str, facts) if name.startswith("gaps: ")]
    facts[gaps] = facts[gaps].fillna(0.0)
    place = _recording_of(table, kept)
    found = facts.reindex(place).reset_index(drop=True)
    return found.dropna(axis="columns", how="all")


def _recording_of(table: FeatureTable, kept: list[Mapping[str, Any]]) -> Codes:
    """Position of each sample's recording among those with facts; -1 where it is not there."""
    rows = getattr(table, "rows", None)
    if rows is not None and "recording" in rows.columns:
        places = {str(one.get("recording")): i for i, one in enumerate(kept)}
        return np.array([places.get(str(name), -1) for name in rows["recording"]], dtype=np.intp)
    sizes = [int(one.get("rows") or 0) for one in kept]
    if sum(sizes) == len(table):
        return np.repeat(np.arange(len(kept)), sizes)
    # Some samples were taken out: a person's first recording stands for all of theirs.
    first: dict[str, int] = {}
    for i, one in enumerate(kept):
        first.setdefault(str(one.get("subject")), i)
    return np.array([first.get(name, -1) for name in table.subjects.astype(str)], dtype=np.intp)


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in facts.items() if name != "gaps"}
    return flat | {f"gaps: {reason}": share for reason, share in (facts.get("gaps") or {}).items()}


def _of_table(table: FeatureTable, member: Codes) -> dict[str, pd.Series]:
    """What any table shows of a person."""
    groups = table.observed.groupby(member, sort=True)
    return {
        "channels_in_table": groups.any().sum(axis=1).astype(float),
        "n_samples": groups.size().astype(float),
        "missing": 1.0 - groups.mean().mean(axis=1),
    }


def _commonest(values: pd.Series) -> Any:
    texts = values.dropna().astype(str)
    found = texts[texts != ""].mode()  # a blank cell is not known
    return found.iloc[0] if len(found) else None


def _columns_of(name: str, values: pd.Series) -> dict[str, Floats]:
    """Columns of a variable by level; none where it is the same for all or names people."""
    unknown = values.isna().to_numpy()
    found: dict[str, Floats] = {}
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=np.float64)
        if not unknown.all():
            numbers = np.where(unknown, np.nanmedian(numbers), numbers)
            if name in _BY_RATIO:
                numbers = _logarithm(numbers)
            found[""] = numbers
    else:
        texts = values.astype(str).to_numpy()
        known = sorted(set(texts[~unknown]))
        if len(known) > _MOST_LEVELS:
            return {}
        # Of two levels one column says all.
        kept = known[1:] if len(known) == 2 else known
        found |= {level: (texts == level).astype(float) for level in kept}
    if unknown.any():
        found["not known"] = unknown.astype(float)
    return {level: own for level, own in found.items() if np.ptp(own) > 1e-9 * np.abs(own).max()}


def _logarithm(numbers: Floats) -> Floats:
    """Logarithms, with a floor for what is zero."""
    positive = numbers[numbers > 0]
    if positive.size == 0:
        return numbers
    return np.log10(np.maximum(numbers, 1e-3 * np.median(positive)))
