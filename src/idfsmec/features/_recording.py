"""One recording: which channels are missing when, and the features of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._compute import compute_features
from idfsmec.features._extract import MICROVOLTS_PER_VOLT, feature_columns
from idfsmec.features._grid import EpochGrid
from idfsmec.features._options import ExtractionOptions
from idfsmec.features._prepare import prepare_recording
from idfsmec.missing import detect_missing, observed_from_annotations, observed_from_bads
from idfsmec.montage import channel_positions
from idfsmec.recordings import Recording, channel_plan, montage_name

if TYPE_CHECKING:
    import mne


@dataclass(frozen=True)
class RecordingFeatures:
    """What one recording gives.

    Parameters
    ----------
    X : DataFrame of shape (n_epochs, n_channels * n_outputs)
        Columns ``<channel>__<feature>``, the index holds the start of each epoch in seconds;
        NaN where the channel is missing.
    channels : list of str
    reasons : dict
        Why channels are missing: reason to channel to number of epochs. An epoch may have
        several reasons.
    n_epochs, n_rows : int
        Epochs of the recording, and how many of them are in ``X``: those with a channel left.
    montage, hint : str
        The montage's name, and the advice of the detection; empty if there is none.
    renamed : dict
        Channels that have another name in the file, from that name to the one used here.
    """

    X: pd.DataFrame
    channels: list[str]
    reasons: dict[str, dict[str, int]]
    n_epochs: int
    n_rows: int
    montage: str = ""
    hint: str = ""
    renamed: dict[str, str] = field(default_factory=dict)


def extract_recording(
    recording: Recording | mne.io.BaseRaw, options: ExtractionOptions | None = None
) -> RecordingFeatures:
    """Compute the features of one recording.

    Channels are missing in an epoch if ``info["bads"]`` names them, if an annotation that
    begins with ``BAD`` touches the epoch, if the detection finds no EEG in them, or if the
    signal is flat or not finite. Stretches that belong to missing epochs only are bridged
    before the filters run, so that what a loose electrode records does not ring into the
    epochs in which it sat well.

    Parameters
    ----------
    recording : Recording or mne.io.BaseRaw
        Signals in volts.
    options : ExtractionOptions, optional

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
    options = options or ExtractionOptions()
    raw = recording.load() if isinstance(recording, Recording) else recording
    names, data = _signals(raw, options)
    sfreq = float(raw.info["sfreq"])
    montage, renamed = montage_name(raw) or "", channel_plan(raw).changed
    grid = options.path.grid(data.shape[1], sfreq)
    causes, hint = _causes(raw, names, data, grid, options)
    del raw  # the file's signals are not needed twice
    missing = np.any(list(causes.values()), axis=0)
    _blank(data, grid, missing)
    data *= MICROVOLTS_PER_VOLT
    prepared = prepare_recording(data, sfreq, options.path)
    causes["no finite, changing signal"] = prepared.missing & ~missing
    missing = missing | prepared.missing
    values, outputs = compute_features(
        prepared.data,
        prepared.sfreq,
        features=options.resolved_features,
        settings=options.settings,
        missing=missing,
    )
    keep = options.keep_empty | ~missing.all(axis=1)
    X = pd.DataFrame(
        values.reshape(len(values), -1)[keep],
        columns=feature_columns(names, outputs),
        index=pd.Index(prepared.starts[keep], name="start"),
    )
    counts = _counts(causes, names)
    return RecordingFeatures(X, names, counts, len(values), len(X), montage, hint, renamed)


def _signals(
    raw: mne.io.BaseRaw, options: ExtractionOptions
) -> tuple[list[str], NDArray[np.float64]]:
    """EEG channels in volts; a copy that may be changed."""
    import mne

    options.settings.check_rate(float(raw.info["sfreq"]))
    picks = mne.pick_types(raw.info, eeg=True, exclude=())
    if not len(picks):
        raise InputError("has no EEG channel.")
    try:
        return [raw.ch_names[pick] for pick in picks], raw.get_data(picks=picks)
    except MemoryError:
        raise
    except Exception as error:
        # MNE opens files by their header; what is wrong with the rest shows only here.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"its signals cannot be read ({reason}). Check that the file and those that belong "
            "to it are whole."
        ) from error


def _causes(
    raw: mne.io.BaseRaw,
    names: Sequence[str],
    data: NDArray[np.float64],
    grid: EpochGrid,
    options: ExtractionOptions,
) -> tuple[dict[str, NDArray[np.bool_]], str]:
    """Where channels are missing, by reason, each of shape (n_epochs, n_channels)."""
    bads = observed_from_bads(raw, names, grid.n_epochs)
    annotated = observed_from_annotations(raw, names, grid.starts, grid.duration)
    causes = {"marked bad": ~bads.to_numpy(bool), "annotated BAD": ~annotated.to_numpy(bool)}
    if not options.detect:
        return causes, ""
    montage = raw.get_montage()
    found = detect_missing(
        grid.cut_source(data),
        float(raw.info["sfreq"]),
        ch_names=names,
        positions=None if montage is None else channel_positions(names, montage),
        typical_amplitude=options.typical_amplitude,
        line_freq=raw.info["line_freq"],
    )
    causes |= {f"detected: {reason}": hits for reason, hits in found.reasons.items()}
    return causes, found.hint


def _blank(data: NDArray[np.float64], grid: EpochGrid, missing: NDArray[np.bool_]) -> None:
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


def _counts(
    causes: dict[str, NDArray[np.bool_]], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    counts = {}
    for reason, hits in causes.items():
        per_channel = hits.sum(axis=0)
        if per_channel.any():
            counts[reason] = {
                name: int(n) for name, n in zip(names, per_channel, strict=True) if n
            }
    return counts
