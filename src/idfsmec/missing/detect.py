"""Find channels that carry no EEG, per epoch, by absolute limits first and by comparison after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.missing._rules import DetectionLimits, apply_rules
from idfsmec.missing._stats import EpochStats, epoch_stats, window_sd
from idfsmec.missing.mains import remove_mains
from idfsmec.montage import channel_positions

if TYPE_CHECKING:
    import mne

#: Amplitude of ordinary EEG in volts, to which the limits of the detection are relative.
TYPICAL_AMPLITUDE = 10e-6

#: Reasons in the order in which the rules are applied, with the words of the summary.
REASONS = {
    "nan": "NaN or infinite samples",
    "flat": "no signal",
    "clipped": "clipped or railed",
    "amplitude": "beyond the limits of amplitude",
    "pop": "a pop or a jump",
    "line": "mains instead of EEG",
    "decorrelated": "unlike its neighbours",
}


@dataclass(frozen=True)
class Detection:
    """Missing channels of one recording, epoch by epoch, with the reasons.

    Parameters
    ----------
    reasons : mapping of str to ndarray of shape (n_epochs, n_channels), bool
        Where each rule hit: ``nan``, ``flat``, ``clipped``, ``amplitude``, ``pop``, ``line``,
        ``decorrelated``. A cell may have several.
    ch_names : tuple of str
        Names of the channels.
    hint : str
        Advice where the whole recording looks wrong, else empty.
    """

    reasons: Mapping[str, np.ndarray]
    ch_names: tuple[str, ...]
    hint: str = ""

    @property
    def missing(self) -> np.ndarray:
        """Bool of shape (n_epochs, n_channels): True where any rule hit."""
        return np.any(list(self.reasons.values()), axis=0)

    @property
    def observed(self) -> pd.DataFrame:
        """Bool of shape (n_epochs, n_channels), columns are channels: True where none hit."""
        return pd.DataFrame(~self.missing, columns=pd.Index(self.ch_names))

    @property
    def bads(self) -> list[str]:
        """Channels missing in more than half of the epochs, for ``raw.info["bads"]``."""
        often = self.missing.mean(axis=0) > 0.5 if len(self.missing) else []
        return [name for name, bad in zip(self.ch_names, often, strict=False) if bad]

    def to_frame(self) -> pd.DataFrame:
        """One row per hit, with columns ``epoch``, ``channel``, ``reason``."""
        rows = [
            (int(epoch), self.ch_names[channel], reason)
            for reason, hits in self.reasons.items()
            for epoch, channel in zip(*np.nonzero(hits), strict=True)
        ]
        frame = pd.DataFrame(rows, columns=["epoch", "channel", "reason"])
        return frame.sort_values(["epoch", "channel"], kind="stable", ignore_index=True)

    def summary(self) -> str:
        """Say in a few lines what is missing and why."""
        missing = self.missing
        n_epochs, n_channels = missing.shape
        lines = [
            f"{missing.sum()} of {missing.size} channel epochs missing "
            f"({missing.mean() if missing.size else 0:.1%}; "
            f"{n_epochs} epochs x {n_channels} channels)"
        ]
        for index in np.flatnonzero(missing.any(axis=0)):
            words = [
                f"{REASONS[reason]} in {hits[:, index].sum()}"
                for reason, hits in self.reasons.items()
                if hits[:, index].any()
            ]
            where = _ranges(np.flatnonzero(missing[:, index]))
            lines.append(f"  {self.ch_names[index]}: epochs {where} ({'; '.join(words)})")
        return "\n".join([*lines, self.hint] if self.hint else lines)

    def __str__(self) -> str:
        return self.summary()


def detect_missing(
    epochs: np.ndarray | mne.BaseEpochs,
    sfreq: float | None = None,
    *,
    ch_names: Sequence[str] | None = None,
    positions: np.ndarray | None = None,
    typical_amplitude: float = TYPICAL_AMPLITUDE,
    line_freq: float | None = None,
    limits: DetectionLimits | None = None,
    mains: float | str | None = "auto",
    removed: tuple[np.ndarray, np.ndarray] | None = None,
) -> Detection:
    """Find out which channel carries no EEG in which epoch of one recording.

    Give it the signal as it was recorded, before filters: a filter takes away the drift by which
    a lost electrode is known. Mains is taken out first, and a channel is judged by what is left.
    Blinks and muscle are not reasons.

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
        Unit vectors, NaN where unknown. Left out, 10-05 names are looked up. A channel whose
        place is not known is compared with those most like it over the recording.
    typical_amplitude : float
        Amplitude of ordinary EEG in the unit of ``epochs``: the absolute limits are multiples
        of it. The default, 10 microvolt, is for data in volts. For data in other units see
        :func:`estimate_typical_amplitude`.
    line_freq : float, optional
        Mains frequency in Hz; left out, 50 and 60 Hz are both looked at.
    limits : DetectionLimits, optional
        The thresholds.
    mains : {"auto", "off"}, float or None
        What to take out before the channels are judged; see :func:`remove_mains`.
    removed : (ndarray of the shape of epochs, ndarray of shape (n_epochs, n_channels)), optional
        The epochs without mains and its standard deviation, where that was done already.

    Returns
    -------
    Detection
        With ``observed`` (DataFrame), ``reasons`` and a printable summary.

    Examples
    --------
    >>> from idfsmec.recordings import simulate_cohort
    >>> raw = simulate_cohort(1, 19, duration=30, detached=0, random_state=0).recordings[0].load()
    >>> epochs = raw.get_data().reshape(19, 3, 2500).swapaxes(0, 1)
    >>> epochs[1:, 4] = 0.0
    >>> print(detect_missing(epochs, 250.0, ch_names=raw.ch_names))
    2 of 57 channel epochs missing (3.5%; 3 epochs x 19 channels)
      Fz: epochs 1-2 (no signal in 2)
    """
    import mne

    if isinstance(epochs, mne.BaseEpochs):
        epochs, sfreq, ch_names, positions = _from_mne(epochs, ch_names, positions)
    epochs, rate, names = _check(epochs, sfreq, ch_names, typical_amplitude)
    if positions is None:
        positions = channel_positions(names)
    limits = limits or DetectionLimits()
    line_freqs = (50.0, 60.0) if line_freq is None else (float(line_freq),)
    if removed is None:
        clean, found = remove_mains(epochs, rate, mains, named=line_freq)
        removed = clean, np.sqrt(np.mean(found.rms**2, axis=-1))
    stats = epoch_stats(removed[0], rate, line_freqs, epochs)
    reasons = apply_rules(stats, removed[1], positions, typical_amplitude, limits)
    return Detection(reasons, names, _hint(stats, typical_amplitude, limits))


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


# A channel whose range is this far below its offset holds nothing but rounding.
_CONSTANT = 1e-12


def unusable(lowest: NDArray[np.floating], highest: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Tell from the extremes of a stretch of signal whether nothing can be computed from it.

    That is so where it is constant or holds a value that is not finite, whatever the unit. The
    detection's reason ``flat`` goes further: quieter than any EEG.

    Parameters
    ----------
    lowest, highest : ndarray of any shape
        Smallest and largest sample of each stretch; NaN where one of its samples is.

    Returns
    -------
    ndarray of bool, of the same shape

    Examples
    --------
    >>> unusable(np.array([-1.0, 3.0, np.nan]), np.array([1.0, 3.0, np.nan]))
    array([False,  True,  True])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        spread = highest - lowest
        size = np.maximum(np.abs(lowest), np.abs(highest))
        return ~(np.isfinite(spread) & (spread > _CONSTANT * size))


def _from_mne(
    epochs: mne.BaseEpochs, ch_names: Sequence[str] | None, positions: np.ndarray | None
) -> tuple[np.ndarray, float, list[str], np.ndarray | None]:
    import mne

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


def _hint(stats: EpochStats, typical: float, limits: DetectionLimits) -> str:
    if not stats.amplitude.size or np.mean(stats.amplitude > limits.amplitude * typical) <= 0.5:
        return ""
    return (
        f"Most of the recording is far beyond a typical amplitude of {typical:g} (its own is "
        f"{float(np.median(stats.amplitude)):.3g}). If other recordings of the study are so too, "
        "the data are not in volts: set typical_amplitude (see estimate_typical_amplitude)."
    )


def _ranges(epochs: np.ndarray) -> str:
    """Write 0,1,2,5 as ``0-2, 5``."""
    runs = np.split(epochs, np.flatnonzero(np.diff(epochs) > 1) + 1)
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
