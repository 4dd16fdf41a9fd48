"""Signals of PRED+CT d003: either release's files, whole or the minutes of one condition."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idfsmec.errors import InputError
from idfsmec.recordings._matlab import load_mat
from idfsmec.recordings.reading import load_raw

if TYPE_CHECKING:
    import mne

# A block is a minute of triggers, one every half second (1-6) and every two seconds (11-16).
CONDITIONS: dict[str, frozenset[int]] = {
    "eyes-open": frozenset({2, 4, 6, 12, 14, 16}),
    "eyes-closed": frozenset({1, 3, 5, 11, 13, 15}),
}
LONGEST_GAP = 3.0
TRIGGER_STEP = 0.5


@dataclass(frozen=True)
class LoadPred:
    """Loads a recording of either release, whole or one condition of it."""

    path: Path
    condition: str | None

    def __call__(self) -> mne.io.BaseRaw:
        return load_raw(self.path, self._read, cut=self._cut)

    def _read(self) -> mne.io.BaseRaw:
        import mne

        if self.path.suffix.lower() == ".set":
            return mne.io.read_raw_eeglab(self.path, verbose="ERROR")
        return _read_struct(self.path)

    def _cut(self, raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
        return raw if self.condition is None else _keep_condition(raw, self.condition, self.path)


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


def _condition_spans(
    onsets: list[float], descriptions: list[str], condition: str
) -> list[tuple[float, float]]:
    """Find when a condition begins and ends.

    A span goes on as long as triggers of its condition follow one another within three
    seconds; a trigger of the other condition or a boundary ends it.

    Returns
    -------
    list of (float, float)
        In seconds.

    Examples
    --------
    >>> _condition_spans([1.0, 1.5, 2.0, 9.0, 9.5], ["2", "12", "2", "1", "1"], "eyes-open")
    [(1.0, 2.5)]
    """
    wanted = CONDITIONS[condition]
    other = frozenset().union(*CONDITIONS.values()) - wanted
    spans: list[tuple[float, float]] = []
    going_on = False
    for onset, description in sorted(zip(onsets, descriptions, strict=True)):
        number = _trigger(description)
        if number in other or description.casefold().endswith("boundary"):
            if going_on:
                spans[-1] = (spans[-1][0], min(spans[-1][1], onset))
            going_on = False
        elif number in wanted:
            if going_on and onset - spans[-1][1] <= LONGEST_GAP - TRIGGER_STEP:
                spans[-1] = (spans[-1][0], onset + TRIGGER_STEP)
            else:
                spans.append((onset, onset + TRIGGER_STEP))
            going_on = True
    return spans


def _keep_condition(raw: mne.io.BaseRaw, condition: str, path: Path) -> mne.io.BaseRaw:
    """Keep the spans of one condition and join them.

    MNE marks the joints as ``BAD boundary`` and ``EDGE boundary``, so that filters do not run
    over them and epochs across them can be dropped.
    """
    import mne

    notes = raw.annotations
    end = raw.times[-1]
    first = raw.first_time
    onsets = [float(onset) - first for onset in notes.onset]
    spans = [
        (max(start, 0.0), min(stop, end))
        for start, stop in _condition_spans(onsets, list(notes.description), condition)
        if start < end and stop - start > TRIGGER_STEP
    ]
    if not spans:
        raise InputError(
            f"{path}: no trigger of condition {condition!r} found. Leave the condition out to "
            "use the whole recording."
        )
    parts = [raw.copy().crop(start, stop, include_tmax=False) for start, stop in spans]
    return mne.concatenate_raws(parts, verbose="ERROR")


def _trigger(description: str) -> float | None:
    try:
        return float(description)
    except ValueError:
        return None
