"""Find channels that carry no EEG, per epoch, by absolute limits first and by comparison after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import mne
import numpy as np

from idfsmec.data.positions import angles_between, channel_positions
from idfsmec.errors import InputError
from idfsmec.missing._detection import Detection
from idfsmec.missing._epoch_stats import EpochStats, epoch_stats, window_sd

__all__ = ["DetectionLimits", "detect_missing", "estimate_typical_amplitude"]

TYPICAL_AMPLITUDE = 10e-6


@dataclass(frozen=True)
class DetectionLimits:
    """Thresholds of :func:`detect_missing`.

    "Amplitude" is the median over one-second windows of the standard deviation; "typical" is
    the argument ``typical_amplitude``; "the others" are the cells that no rule before has hit.
    ``float("inf")`` (or 0 for the lower limits) switches a rule off.

    Parameters
    ----------
    flat : float
        A window whose standard deviation is below this many typical amplitudes is flat.
    flat_share : float
        An epoch with at least this share of flat windows is flat.
    flat_relative : float
        An epoch is flat too if its amplitude is below this share of the others' median.
    clipped_share : float
        At least this share of samples at exactly the largest or smallest value.
    amplitude, amplitude_relative : float
        Amplitude above this many typical ones, or above this many times the others' median.
    wander, wander_relative, wander_least : float
        Range (10th to 90th percentile) of the windows' means above ``wander`` typical
        amplitudes; or above
        ``wander_relative`` times the others' median and ``wander_least`` typical amplitudes.
    line, line_share : float
        Standard deviation of the mains part above this many typical amplitudes, or above this
        many times the channel's own 2-40 Hz part.
    line_relative, line_share_relative : float
        The mains part is above ``line_relative`` times the others' median as well as above
        ``line_share_relative`` times the channel's own 2-40 Hz part.
    line_least : float
        Mains below this many typical amplitudes never counts.
    correlation : float
        Largest absolute correlation (2-20 Hz) with a neighbour below this.
    neighbours, neighbours_least : int
        How many of the nearest channels are compared, and how many of those must be good for
        the comparison to be made.

    Examples
    --------
    >>> DetectionLimits(correlation=0).correlation  # never "unlike its neighbours"
    0
    """

    flat: float = 0.05
    flat_share: float = 0.25
    flat_relative: float = 0.05
    clipped_share: float = 0.05
    amplitude: float = 50.0
    amplitude_relative: float = 10.0
    wander: float = 100.0
    wander_relative: float = 4.0
    wander_least: float = 20.0
    line: float = 10.0
    line_share: float = 10.0
    line_relative: float = 5.0
    line_share_relative: float = 3.0
    line_least: float = 0.5
    correlation: float = 0.25
    neighbours: int = 6
    neighbours_least: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise InputError(f"the limit {field.name} is {getattr(self, field.name)}: below 0")


def detect_missing(
    epochs: np.ndarray | mne.BaseEpochs,
    sfreq: float | None = None,
    *,
    ch_names: Sequence[str] | None = None,
    positions: np.ndarray | None = None,
    typical_amplitude: float = TYPICAL_AMPLITUDE,
    line_freq: float | None = None,
    limits: DetectionLimits | None = None,
) -> Detection:
    """Find out which channel carries no EEG in which epoch of one recording.

    Give it the signal as it was recorded, before filters: a filter takes away the drift and the
    mains by which a lost electrode is known. Blinks and muscle are not reasons.

    Absolute limits come first, so that a recording is found out even if all of its channels are
    bad. What passes is then compared with the rest of the recording, and with its neighbours on
    the scalp.

    Parameters
    ----------
    epochs : ndarray of shape (n_epochs, n_channels, n_times) or mne.BaseEpochs
        All epochs of one recording. Of an Epochs object, the EEG channels (also those in
        ``info["bads"]``) are looked at, and ``sfreq``, ``ch_names`` and positions come with it.
    sfreq : float
        Sampling rate in Hz.
    ch_names : sequence of str, optional
        Names of the channels; default ``"0"``, ``"1"``, ...
    positions : ndarray of shape (n_channels, 3), optional
        Unit vectors, NaN where unknown. Left out, 10-05 names are looked up; if none is known,
        each channel is compared with all others.
    typical_amplitude : float
        Amplitude of ordinary EEG in the unit of ``epochs``: the absolute limits are multiples
        of it. The default, 10 microvolt, is for data in volts. For data in other units see
        :func:`estimate_typical_amplitude`.
    line_freq : float, optional
        Mains frequency in Hz; left out, 50 and 60 Hz are both looked at.
    limits : DetectionLimits, optional
        The thresholds.

    Returns
    -------
    Detection
        With ``observed`` (DataFrame), ``reasons`` and a printable summary.

    Examples
    --------
    >>> from idfsmec.data import simulate_cohort
    >>> raw = simulate_cohort(1, 19, duration=30, detached=0, random_state=0).recordings[0].load()
    >>> epochs = raw.get_data().reshape(19, 3, 2500).swapaxes(0, 1)
    >>> epochs[1:, 4] = 0.0
    >>> print(detect_missing(epochs, 250.0, ch_names=raw.ch_names))
    2 of 57 channel epochs missing (3.5%; 3 epochs x 19 channels)
      Fz: epochs 1-2 (no signal in 2)
    """
    if isinstance(epochs, mne.BaseEpochs):
        epochs, sfreq, ch_names, positions = _from_mne(epochs, ch_names, positions)
    epochs, rate, names = _check(epochs, sfreq, ch_names, typical_amplitude)
    if positions is None:
        positions = channel_positions(names)
    limits = limits or DetectionLimits()
    line_freqs = (50.0, 60.0) if line_freq is None else (float(line_freq),)
    stats = epoch_stats(epochs, rate, line_freqs, correlate=limits.correlation > 0)
    reasons = _absolute(stats, typical_amplitude, limits)
    lost_anyway = reasons["amplitude"].mean() if reasons["amplitude"].size else 0.0
    _add_relative(reasons, stats, typical_amplitude, limits)
    reasons["decorrelated"] = _decorrelated(stats, reasons, positions, limits)
    return Detection(reasons, names, _hint(lost_anyway, stats, typical_amplitude))


def estimate_typical_amplitude(recordings: Iterable[np.ndarray], sfreq: float) -> float:
    """Estimate the amplitude of ordinary EEG from a study whose unit is not known.

    Parameters
    ----------
    recordings : iterable of ndarray of shape (n_channels, n_times) or (n_epochs, ...)
        The signals of several recordings; fewer than half of them may be bad.
    sfreq : float
        Sampling rate in Hz.

    Returns
    -------
    float
        Median over recordings of the median standard deviation in one-second windows: pass it
        to :func:`detect_missing` as ``typical_amplitude``.

    Examples
    --------
    >>> counts = np.random.default_rng(0).normal(1.5e6, 800, size=(5, 3, 2500))
    >>> round(estimate_typical_amplitude(counts, 250.0), -2)
    800.0
    """
    levels = []
    for recording in recordings:
        spread = window_sd(np.asarray(recording, dtype=float), sfreq)
        good = spread[np.isfinite(spread) & (spread > 0)]
        if good.size:
            levels.append(float(np.median(good)))
    if not levels:
        raise InputError("no recording has any signal to estimate a typical amplitude from")
    return float(np.median(levels))


def _from_mne(
    epochs: mne.BaseEpochs, ch_names: Sequence[str] | None, positions: np.ndarray | None
) -> tuple[np.ndarray, float, list[str], np.ndarray | None]:
    picks = mne.pick_types(epochs.info, eeg=True, exclude=[])
    names = [epochs.ch_names[pick] for pick in picks]
    montage = epochs.get_montage()
    if positions is None and montage is not None:
        positions = channel_positions(names, montage)
    data = epochs.get_data(picks=picks, copy=False)
    return data, float(epochs.info["sfreq"]), list(ch_names or names), positions


def _check(
    epochs: np.ndarray,
    sfreq: float | None,
    ch_names: Sequence[str] | None,
    typical_amplitude: float,
) -> tuple[np.ndarray, float, tuple[str, ...]]:
    epochs = np.asarray(epochs)
    if epochs.ndim != 3 or 0 in epochs.shape[1:]:
        raise InputError(
            f"epochs have the shape {epochs.shape}; give (n_epochs, n_channels, n_times)"
        )
    if sfreq is None or not sfreq > 0:
        raise InputError(f"sfreq is {sfreq}; give the sampling rate in Hz")
    if not typical_amplitude > 0:
        raise InputError(f"typical_amplitude is {typical_amplitude}; it must be above 0")
    names = tuple(map(str, range(epochs.shape[1]) if ch_names is None else ch_names))
    if len(names) != epochs.shape[1]:
        raise InputError(f"{len(names)} ch_names for {epochs.shape[1]} channels")
    return epochs, float(sfreq), names


def _absolute(stats: EpochStats, typical: float, limits: DetectionLimits) -> dict[str, np.ndarray]:
    """Rules that need nothing but the channel itself."""
    flat = (stats.window_sd < limits.flat * typical).mean(axis=2) >= limits.flat_share
    flat &= ~stats.broken & (limits.flat > 0)
    sound = ~stats.broken & ~flat
    return {
        "nan": stats.broken,
        "flat": flat,
        "clipped": sound & (stats.at_extremes >= limits.clipped_share),
        "amplitude": sound
        & (
            (stats.amplitude > limits.amplitude * typical)
            | (stats.wander > limits.wander * typical)
        ),
        "line": sound
        & (stats.line > limits.line_least * typical)
        & ((stats.line > limits.line * typical) | (stats.line > limits.line_share * stats.eeg)),
    }


def _add_relative(
    reasons: dict[str, np.ndarray], stats: EpochStats, typical: float, limits: DetectionLimits
) -> None:
    """Compare what is left with the median of what is left, over the whole recording."""
    left = ~np.any(list(reasons.values()), axis=0)
    if left.any(axis=0).sum() < 3:  # one of two differs: nobody can say which
        return
    amplitude, wander, line = (
        (values, float(np.median(values[left])))
        for values in (stats.amplitude, stats.wander, stats.line)
    )
    reasons["flat"] |= left & (amplitude[0] < limits.flat_relative * amplitude[1])
    reasons["amplitude"] |= left & (
        (amplitude[0] > limits.amplitude_relative * amplitude[1])
        | (
            (wander[0] > limits.wander_relative * wander[1])
            & (wander[0] > limits.wander_least * typical)
        )
    )
    reasons["line"] |= (
        left
        & (line[0] > limits.line_relative * line[1])
        & (line[0] > limits.line_share_relative * stats.eeg)
        & (line[0] > limits.line_least * typical)
    )


def _decorrelated(
    stats: EpochStats,
    reasons: dict[str, np.ndarray],
    positions: np.ndarray,
    limits: DetectionLimits,
) -> np.ndarray:
    """Channels that resemble none of their nearest neighbours that are good themselves."""
    left = ~np.any(list(reasons.values()), axis=0)
    n_channels = left.shape[1]
    nearest = _nearest(positions, limits.neighbours)
    rows = np.arange(n_channels)[:, None]
    similarity = np.abs(stats.correlation[:, rows, nearest])  # (n_epochs, n_channels, k)
    good = left[:, nearest]
    best = np.where(good, similarity, 0.0).max(axis=2, initial=0.0)
    compared = left & (good.sum(axis=2) >= max(limits.neighbours_least, 1))
    return compared & (best < limits.correlation)


def _nearest(positions: np.ndarray, n_neighbours: int) -> np.ndarray:
    """Indices of each channel's nearest others, shape (n_channels, k).

    Channels whose place is unknown come last; if no place is known, all others are neighbours.
    """
    n_channels = len(positions)
    if np.isnan(positions).any(axis=1).all():
        n_neighbours = n_channels
    angles = angles_between(np.asarray(positions, dtype=float))
    angles = np.where(np.isnan(angles), 1e3, angles)
    np.fill_diagonal(angles, np.inf)
    return np.argsort(angles, axis=1, kind="stable")[:, : min(n_neighbours, n_channels - 1)]


def _hint(lost_anyway: float, stats: EpochStats, typical: float) -> str:
    if lost_anyway <= 0.5:
        return ""
    return (
        f"Most of the recording is far beyond a typical amplitude of {typical:g} (its own is "
        f"{float(np.median(stats.amplitude)):.3g}). If other recordings of the study are so too, "
        "the data are not in volts: set typical_amplitude (see estimate_typical_amplitude)."
    )
