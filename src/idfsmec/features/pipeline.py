"""The one way from a recording to rows of numbers; every entry into the package ends here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.features.asymmetry import columns_of, pair_gaps, pairs_of
from idfsmec.features.compute import compute_features
from idfsmec.features.epochs import EpochGrid, PreparedEpochs, prepare_epochs, prepare_recording
from idfsmec.features.facts import recording_facts
from idfsmec.features.settings import FeatureSettings
from idfsmec.features.signals import Signals, read_signals
from idfsmec.missing import DetectionLimits, LineNoise, detect_missing, remove_line_noise
from idfsmec.recordings import Recording

# MNE keeps volts; everybody else in this field speaks of microvolts.
_MICROVOLTS_PER_VOLT = 1e6


@dataclass(frozen=True)
class RecordingFeatures:
    """What one recording gives.

    Parameters
    ----------
    X : DataFrame of shape (n_epochs, n_channels * n_outputs)
        Columns ``<channel>__<feature>``, the index holds the start of each epoch in seconds;
        NaN where the channel is missing.
    channels : list of str
        And pairs of channels, if a feature of pairs is among the features.
    reasons : dict
        Why channels are missing: reason to channel to number of epochs. An epoch may have
        several reasons.
    n_epochs, n_rows : int
        Epochs of the recording, and how many of them are in ``X``: those with a channel left.
    montage, hint : str
        The montage's name, and the advice of the detection; empty if there is none.
    renamed : dict
        Channels that have another name in the file, from that name to the one used here.
    dropped : dict
        Channels of the file that are not used, with the reason.
    epochs : list of int
        The number of each row's epoch in the recording, from 0.
    cells : dict
        Where channels are missing: reason to channel to the numbers of the epochs.
    facts : dict
        How it was recorded, from the signal before any filter; see
        :func:`idfsmec.features.facts.recording_facts`.
    line_freq : float or None
        Frequency in Hz of the mains that was found and taken out; None if there was none.
    line_amplitude : float
        Its root mean square in the middle channel, in microvolts (in the unit of an array that
        came without one).
    """

    X: pd.DataFrame
    channels: list[str]
    reasons: dict[str, dict[str, int]]
    n_epochs: int
    n_rows: int
    montage: str = ""
    hint: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=list)
    cells: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    line_freq: float | None = None
    line_amplitude: float = 0.0


def extract_recording(
    data: Any,
    settings: FeatureSettings | None = None,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> RecordingFeatures:
    """Compute the features of one recording, with the reasons why channels are missing.

    1. EEG channels are picked and get their standard names.
    2. Line noise is removed, where the spectrum shows it.
    3. Channels are marked missing in an epoch if ``info["bads"]`` names them, if an annotation
       that begins with ``BAD`` touches the epoch, if the detection finds no EEG in them, or if
       the signal is constant or not finite.
    4. The signal is resampled and filtered. Stretches that belong to missing epochs only are
       bridged before, so that what a loose electrode records does not ring into the epochs in
       which it sat well.
    5. It is cut into epochs, set against another reference if asked, and the features are
       computed.

    Parameters
    ----------
    data, settings, sfreq, ch_names, unit
        As in :func:`extract_features`, which gives ``X`` alone.

    Returns
    -------
    RecordingFeatures

    Examples
    --------
    >>> from idfsmec.recordings import simulate_cohort
    >>> from idfsmec.features import extract_recording
    >>> cohort = simulate_cohort(1, 3, duration=30, detached=0, random_state=0)
    >>> extract_recording(cohort.recordings[0]).X.shape
    (3, 54)
    """
    settings = settings or FeatureSettings()
    recorded = read_signals(data, settings, sfreq=sfreq, ch_names=ch_names, unit=unit)
    clean, mains = remove_line_noise(
        recorded.data, recorded.sfreq, settings.mains, header_freq=recorded.line_freq
    )
    signals = replace(recorded, data=clean)
    causes, hint = _causes(recorded, signals, mains, settings)
    known = np.any([np.zeros(signals.shape, dtype=bool), *causes.values()], axis=0)
    facts = recording_facts(recorded, causes, file_format=_file_format(data))
    prepared = _filter(signals, known, settings)
    causes["no finite, changing signal"] = prepared.missing & ~known
    missing = known | prepared.missing
    epochs = _referenced(prepared.data, missing, settings)
    by_channel, _ = compute_features(epochs, prepared.sfreq, settings, missing=missing)
    values, columns = columns_of(by_channel, signals.names, settings)
    # Epochs that somebody else has cut may have labels beside them: they keep their rows.
    keep = ~missing.all(axis=1) | settings.keep_empty | (signals.grid is None)
    X = pd.DataFrame(
        values[keep],
        columns=columns,
        index=pd.Index(prepared.starts[keep], name="start"),
    )
    cells = _cells(causes, signals.names)
    pairs = pairs_of(signals.names, settings)
    if lost := pair_gaps(missing, pairs):
        cells["a side of the pair is missing"] = lost
    return RecordingFeatures(
        X,
        [*signals.names, *pairs],
        {
            reason: {name: len(epochs) for name, epochs in hits.items()}
            for reason, hits in cells.items()
        },
        n_epochs=len(values),
        n_rows=len(X),
        montage=signals.montage,
        hint=hint,
        renamed=signals.renamed,
        dropped=signals.dropped,
        epochs=np.flatnonzero(keep).tolist(),
        cells=cells,
        facts=facts,
        line_freq=mains.frequency,
        line_amplitude=_line_amplitude(mains, signals),
    )


def _line_amplitude(mains: LineNoise, signals: Signals) -> float:
    """Root mean square of mains in the middle channel, in the unit of the features."""
    others = (-1,) if signals.grid is not None else (0, -1)
    return float(np.median(np.sqrt(np.mean(mains.rms**2, axis=others)))) * _scale(signals)


def _line_in_epochs(mains: LineNoise, signals: Signals) -> NDArray[np.float64]:
    """Root mean square of mains by epoch and channel."""
    squares = mains.rms**2
    if signals.grid is None:
        return np.sqrt(squares.mean(axis=-1))
    grid, centres = signals.grid, mains.centres
    first = np.searchsorted(centres, grid.begins).clip(max=len(centres) - 1)
    last = np.maximum(np.searchsorted(centres, grid.ends), first + 1)
    parts = [squares[:, a:b].mean(axis=1) for a, b in zip(first, last, strict=True)]
    return np.sqrt(np.array(parts))


def _file_format(data: Any) -> str:
    """Ending of the file a recording comes from; empty where there is none."""
    files = data.files if isinstance(data, Recording) else ()
    return files[0].suffix.lower().lstrip(".") if files else ""


def _causes(
    recorded: Signals,
    signals: Signals,
    mains: LineNoise,
    settings: FeatureSettings,
) -> tuple[dict[str, NDArray[np.bool_]], str]:
    """Where channels are missing, by reason, each of shape (n_epochs, n_channels)."""
    causes = dict(signals.marked)
    if not settings.detect or signals.unit is None:  # the limits are in volts
        return causes, ""
    found = detect_missing(
        recorded.as_epochs(),
        signals.sfreq,
        ch_names=signals.names,
        positions=signals.positions,
        typical_amplitude=settings.typical_amplitude / signals.unit,
        header_freq=signals.line_freq,
        limits=DetectionLimits.of(settings.limits),
        removed=(signals.as_epochs(), _line_in_epochs(mains, signals)),
    )
    causes |= {f"detected: {reason}": hits for reason, hits in found.reasons.items()}
    return causes, found.hint


def _filter(
    signals: Signals, missing: NDArray[np.bool_], settings: FeatureSettings
) -> PreparedEpochs:
    """Give epochs in microvolts, or in the unit they came in where nobody knows it."""
    scale = _scale(signals)
    data, grid = signals.data, signals.grid
    if grid is None:
        data = data if scale == 1.0 else data * scale
        return prepare_epochs(data, signals.sfreq, settings, passed=signals.passed)
    _blank(data, grid, missing)
    data *= scale
    return prepare_recording(data, signals.sfreq, settings)


def _referenced(
    epochs: NDArray[np.floating], missing: NDArray[np.bool_], settings: FeatureSettings
) -> NDArray[np.floating]:
    """Subtract, in each epoch, the mean of the channels that are not missing in it."""
    if settings.reference == "keep":
        return epochs
    there = ~missing[..., np.newaxis]
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    return epochs - np.where(there, epochs, 0.0).sum(axis=1, keepdims=True) / count


def _scale(signals: Signals) -> float:
    return 1.0 if signals.unit is None else signals.unit * _MICROVOLTS_PER_VOLT


def _blank(data: NDArray[np.floating], grid: EpochGrid, missing: NDArray[np.bool_]) -> None:
    """Set to NaN, in place, the samples that no epoch with the channel needs."""
    begins, ends = grid.begins, grid.ends
    for channel in np.flatnonzero(missing.any(axis=0)):
        needed = np.zeros(data.shape[1] + 1, dtype=np.intp)
        kept = ~missing[:, channel]
        np.add.at(needed, begins[kept], 1)
        np.add.at(needed, ends[kept], -1)
        free = np.cumsum(needed)[:-1] == 0
        # What does not fill an epoch is as good or bad as the last one.
        free[ends[-1] :] = missing[-1, channel]
        data[channel, free] = np.nan


def _cells(
    causes: dict[str, NDArray[np.bool_]], names: Sequence[str]
) -> dict[str, dict[str, list[int]]]:
    """Reason to channel to epochs, of what is missing."""
    found = {
        reason: {
            name: np.flatnonzero(hit).tolist()
            for name, hit in zip(names, hits.T, strict=True)
            if hit.any()
        }
        for reason, hits in causes.items()
    }
    return {reason: hits for reason, hits in found.items() if hits}
