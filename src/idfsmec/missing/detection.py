"""Detect channels that carry no EEG, per epoch: absolute limits first, comparisons after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import fft

from idfsmec.errors import InputError
from idfsmec.missing.line_noise import LINE_FREQUENCIES, remove_line_noise
from idfsmec.table.positions import EYES, angles_between, channel_positions

if TYPE_CHECKING:
    import mne

Mask = NDArray[np.bool_]

#: Amplitude of ordinary EEG in volts, to which the limits of the detection are relative.
TYPICAL_AMPLITUDE = 10e-6

#: Reasons in the order in which the rules are applied, with the words of the summary.
REASONS = {
    "nan": "NaN or infinite samples",
    "flat": "no signal",
    "clipped": "clipped or railed",
    "amplitude": "beyond the limits of amplitude",
    "pop": "a pop or a jump",
    "line": "line noise instead of EEG",
    "decorrelated": "unlike its neighbours",
}

# Limits that few would set. "Relative" ones multiply the level of the middle channel (pops: of the
# channel's own seconds) and hold only above a share of the absolute limit.
_FLAT_SHARE = 0.25  # of an epoch's windows
_AMPLITUDE_RELATIVE, _AMPLITUDE_LEAST = 8.0, 1 / 6
_DRIFT_RELATIVE, _DRIFT_LEAST, _DRIFT_LEAST_OWN = 4.0, 0.3, 0.5
_DRIFT_CORRELATION = 0.5  # a sweaty electrode drifts too, but records what its neighbours record
_POP_RELATIVE, _POP_RELATIVE_EYES, _POP_LEAST = 6.0, 15.0, 0.5
_POP_ALONE, _POP_ALONE_LEAST = 3.0, 0.25  # times the jump of any neighbour in the same second
_LINE_SHARE, _LINE_LEAST = 10.0, 0.05  # times the channel's own 2-40 Hz part
_LINE_RELATIVE, _LINE_SHARE_RELATIVE = 5.0, 3.0
_LINE_TILT = 2.0  # power per hertz at 2-13 Hz over that at 20-40 Hz, below which there is no EEG
_NEIGHBOURS_LEAST = 2
_RIDGE = 0.01
# Amplitudes, in typical ones, of EEG in microvolts that was taken for volts.
_MICROVOLTS = (5e4, 2e7)
_EYES_REACH = 50.0  # degrees within which blinks are large

# Bands in Hz: what counts as EEG beside line noise, and where neighbours are compared. The second
# ends below most of the muscle's power, so that a tense jaw does not look like a lost electrode.
_EEG_BAND, _NEIGHBOUR_BAND = (2.0, 40.0), (2.0, 20.0)
_DRIFT_BELOW = 4.0  # drift is what lies between the high-pass and this
# EEG has more power per hertz in the first than in the second; noise has not.
_TILT_BANDS = ((2.0, 13.0), (20.0, 40.0))
_BLOCK_SAMPLES = 500_000
# A channel whose range is this far below its offset holds nothing but rounding.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class DetectionLimits:
    """Thresholds of :func:`detect_missing`.

    "Amplitude" is the median over one-second windows of the standard deviation; "typical" is
    the argument ``typical_amplitude``. ``float("inf")`` switches a rule off; so does 0 for
    ``flat`` and ``correlation``. Rules that compare a channel with the others become stricter
    or looser along with the absolute limit of the same name.

    Parameters
    ----------
    flat : float
        A channel is flat if a quarter of an epoch's windows have a standard deviation below this
        many typical amplitudes, or its amplitude is below this share of the other channels'.
    clipped_share : float
        At least this share of samples at exactly the largest or smallest value.
    amplitude : float
        Amplitude above this many typical ones, or above a sixth of that and 8 times the other
        channels'.
    drift : float
        Standard deviation of what is slower than 4 Hz and passes the high-pass, above this many
        typical amplitudes; or above 0.3 of that and 4 times the other channels', unless the
        channel still follows its neighbours (multiple correlation of 0.5); or above 0.5 of that
        and 4 times the channel's median over the epochs.
    pop : float
        A jump, the range of the signal within a second, above this many typical amplitudes; or
        above half of that and 6 times the channel's median jump (15 times near the eyes, where
        blinks are large jumps, and where the position is unknown); or above a quarter of that
        and 3 times the jump of any neighbour in the same second.
    line : float
        Standard deviation of the line noise above this many typical amplitudes; or above 0.05
        of that and either 10 times the channel's own 2-40 Hz part, or 3 times it and 5 times the
        line noise of the other channels. Line noise that was removed counts only where what is
        left is no EEG.
    correlation : float
        Multiple correlation (2-20 Hz) with the neighbours below this. By chance alone it is
        about 0.2 in epochs of 10 s, and grows as epochs get shorter.
    neighbours : int
        How many of the nearest channels are compared. Two of them must be good.

    Examples
    --------
    >>> DetectionLimits(correlation=0).correlation  # never "unlike its neighbours"
    0
    """

    flat: float = 0.05
    clipped_share: float = 0.05
    amplitude: float = 30.0
    drift: float = 15.0
    pop: float = 60.0
    line: float = 10.0
    correlation: float = 0.35
    neighbours: int = 6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value >= 0:
                raise InputError(f"the limit {name} is {value}: below 0")


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

    reasons: Mapping[str, Mask]
    ch_names: tuple[str, ...]
    hint: str = ""

    @property
    def missing(self) -> Mask:
        """Bool of shape (n_epochs, n_channels): True where any rule hit."""
        missing: Mask = np.any(list(self.reasons.values()), axis=0)
        return missing

    @property
    def observed(self) -> pd.DataFrame:
        """Bool of shape (n_epochs, n_channels), columns are channels: True where none hit."""
        return pd.DataFrame(~self.missing, columns=pd.Index(self.ch_names))

    @property
    def bads(self) -> list[str]:
        """Channels missing in more than half of the epochs, for ``raw.info["bads"]``."""
        often = 2 * self.missing.sum(axis=0) > len(self.missing)
        return [name for name, bad in zip(self.ch_names, often, strict=True) if bad]

    def __str__(self) -> str:
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
            epochs = np.flatnonzero(missing[:, index])
            runs = np.split(epochs, np.flatnonzero(np.diff(epochs) > 1) + 1)
            ranges = [str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs]
            lines.append(
                f"  {self.ch_names[index]}: epochs {', '.join(ranges)} ({'; '.join(words)})"
            )
        return "\n".join([*lines, self.hint] if self.hint else lines)


def detect_missing(
    epochs: np.ndarray | mne.BaseEpochs,
    sfreq: float | None = None,
    *,
    ch_names: Sequence[str] | None = None,
    positions: np.ndarray | None = None,
    typical_amplitude: float = TYPICAL_AMPLITUDE,
    line_freq: float | str | None = "auto",
    high_pass: float = 1.0,
    limits: DetectionLimits | None = None,
) -> Detection:
    """Detect which channels carry no EEG, in each epoch of one recording.

    Give it the signal as it was recorded: filters blur clipping and pops. Line noise is removed
    first, potentials slower than ``high_pass`` do not count, and a channel is judged by the
    remaining signal, which the features use. Blinks and muscle activity are not reasons.

    Absolute limits come first, so that bad channels are found even if all channels of a recording
    are bad. The others are then compared with the rest of the recording, and with their neighbours
    on the scalp.

    Parameters
    ----------
    epochs : ndarray of shape (n_epochs, n_channels, n_times) or mne.BaseEpochs
        All epochs of one recording. Of an Epochs object, the EEG channels (also those in
        ``info["bads"]``) are looked at; ``sfreq``, ``ch_names``, positions and the line
        frequency come with it.
    sfreq : float
        Sampling rate in Hz.
    ch_names : sequence of str, optional
        Names of the channels; default ``"0"``, ``"1"``, ...
    positions : ndarray of shape (n_channels, 3), optional
        Unit vectors, NaN where unknown. Left out, 10-05 names are looked up. A channel whose
        position is not known is compared with those most like it over the recording.
    typical_amplitude : float
        Amplitude of ordinary EEG in the unit of ``epochs``: the absolute limits are multiples
        of it. The default, 10 microvolt, is for data in volts. For data in other units see
        :func:`estimate_typical_amplitude`.
    line_freq : {"auto", "off"}, float or None
        The line noise to remove before the channels are judged: 50 or 60 Hz and harmonics where
        the spectrum shows them, a frequency in Hz, or none.
    high_pass : float
        Lower edge in Hz of the band-pass before the features; 0 if there is none.
    limits : DetectionLimits, optional
        The thresholds.

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

    header_freq = None
    if isinstance(epochs, mne.BaseEpochs):
        header_freq = epochs.info["line_freq"]
        picks = mne.pick_types(epochs.info, eeg=True, exclude=[])
        names = [epochs.ch_names[pick] for pick in picks]
        if positions is None and epochs.get_montage() is not None:
            positions = channel_positions(names, epochs.get_montage())
        ch_names, sfreq = ch_names or names, float(epochs.info["sfreq"])
        epochs = epochs.get_data(picks=picks, copy=False)
    epochs = np.asarray(epochs)
    if epochs.ndim != 3 or 0 in epochs.shape[1:]:
        raise InputError(
            f"epochs have the shape {epochs.shape}; give (n_epochs, n_channels, n_times)"
        )
    if sfreq is None or not sfreq > 0:
        raise InputError(f"sfreq is {sfreq}; give the sampling rate in Hz")
    if not typical_amplitude > 0:
        raise InputError(f"typical_amplitude is {typical_amplitude}; it must be above 0")
    ch_names = tuple(map(str, range(epochs.shape[1]) if ch_names is None else ch_names))
    if len(ch_names) != epochs.shape[1]:
        raise InputError(f"{len(ch_names)} ch_names for {epochs.shape[1]} channels")
    if positions is None:
        positions = channel_positions(ch_names)
    clean, noise = remove_line_noise(epochs, sfreq, line_freq, header_freq=header_freq)
    reasons, hint = find_reasons(
        epochs,
        clean,
        np.sqrt(np.mean(noise.rms**2, axis=-1)),
        float(sfreq),
        positions,
        typical_amplitude=typical_amplitude,
        header_freq=header_freq,
        high_pass=high_pass,
        limits=limits or DetectionLimits(),
    )
    return Detection(reasons, ch_names, hint)


def find_reasons(
    recorded: np.ndarray,
    clean: np.ndarray,
    removed: np.ndarray,  # standard deviation of the line noise that was removed
    sfreq: float,
    positions: np.ndarray,
    *,
    typical_amplitude: float,
    header_freq: float | None,
    high_pass: float,
    limits: DetectionLimits,
) -> tuple[dict[str, Mask], str]:
    """Find where which rule holds, and the advice where the whole recording looks wrong."""
    line_freqs = LINE_FREQUENCIES if header_freq is None else (float(header_freq),)
    # Some epochs at a time: memory stays bounded in long recordings.
    step = max(1, _BLOCK_SAMPLES // clean[0].size) if len(clean) else 1
    blocks = [slice(start, start + step) for start in range(0, max(len(clean), 1), step)]
    parts = [_block_stats(clean[b], recorded[b], sfreq, line_freqs, high_pass) for b in blocks]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    stats = _EpochStats(*columns[:4], *(column / typical_amplitude for column in columns[4:]))
    reasons = _apply_rules(stats, removed / typical_amplitude, positions, limits)
    if not stats.amplitude.size or np.mean(stats.amplitude > limits.amplitude) <= 0.5:
        return reasons, ""
    ratio = float(np.median(stats.amplitude))
    unit_hint = (
        "It looks like microvolts that were read as volts: multiply it by 1e-6 before it is saved"
        " or read. "
        if _MICROVOLTS[0] < ratio < _MICROVOLTS[1]
        else ""
    )
    return reasons, (
        f"Most of the recording is far beyond a typical amplitude of {typical_amplitude:g} (its "
        f"own is {ratio * typical_amplitude:.3g}). {unit_hint}If other recordings of the study "
        "are similar, the data are not in volts: set typical_amplitude (see "
        "estimate_typical_amplitude)."
    )


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
        spread = _windows(np.asarray(recording, dtype=float), sfreq).std(axis=-1)
        if (good := spread[np.isfinite(spread) & (spread > 0)]).size:
            levels.append(float(np.median(good)))
    if not levels:
        raise InputError("no recording has any signal to estimate a typical amplitude from")
    return float(np.median(levels))


def unusable(lowest: NDArray[np.floating], highest: NDArray[np.floating]) -> Mask:
    """Return where a stretch is constant or not finite, in any unit, from its extremes."""
    with np.errstate(invalid="ignore", over="ignore"):
        spread = highest - lowest
        size = np.maximum(np.abs(lowest), np.abs(highest))
        useless: Mask = ~(np.isfinite(spread) & (spread > _CONSTANT * size))
    return useless


def _apply_rules(
    stats: _EpochStats, removed: np.ndarray, positions: np.ndarray, limits: DetectionLimits
) -> dict[str, Mask]:
    """Return where each reason holds: absolute rules first, then comparisons of the rest."""
    nearest = _nearest(positions, stats.correlation, limits.neighbours)
    flat = (stats.window_sd < limits.flat).mean(axis=2) >= _FLAT_SHARE
    flat &= ~stats.broken & (limits.flat > 0)
    sound = ~stats.broken & ~flat
    none = np.zeros_like(sound)
    large = (stats.amplitude > limits.amplitude) | (stats.drift > limits.drift)
    if len(large):
        usual = np.median(stats.drift, axis=0)
        least = np.maximum(_DRIFT_RELATIVE * usual, _DRIFT_LEAST_OWN * limits.drift)
        large |= stats.drift > least
    reasons = {
        "nan": stats.broken,
        "flat": flat,
        "clipped": sound & (stats.at_extremes >= limits.clipped_share),
        "amplitude": sound & large,
        "pop": none,
        "line": sound & _has_line_noise(stats, stats.line, none, limits),
    }
    left = ~np.any(list(reasons.values()), axis=0)
    n_left = left.any(axis=0).sum()
    if n_left >= 2:
        middle = _middle_channel(stats.amplitude, left)
        if n_left >= 3:  # of two that differ, either may be the quiet one
            reasons["flat"] |= left & (stats.amplitude < limits.flat * middle)
        too_large = (stats.amplitude > _AMPLITUDE_RELATIVE * middle) & (
            stats.amplitude > _AMPLITUDE_LEAST * limits.amplitude
        )
        drifts = (stats.drift > _DRIFT_RELATIVE * _middle_channel(stats.drift, left)) & (
            stats.drift > _DRIFT_LEAST * limits.drift
        )
        likeness, compared = _likeness(stats, left & ~too_large, nearest)
        drifts &= ~(compared & (likeness >= _DRIFT_CORRELATION))
        reasons["amplitude"] |= left & (too_large | drifts)
        reasons["line"] |= left & _has_line_noise(stats, stats.line, left, limits)
    pops = _pops(stats.jumps, positions, nearest, limits.pop)
    reasons["pop"] = pops & ~(reasons["nan"] | reasons["flat"])

    left = ~np.any(list(reasons.values()), axis=0)
    likeness, compared = _likeness(stats, left, nearest)
    unlike = compared & (likeness < limits.correlation)
    noisy = _has_line_noise(stats, np.hypot(removed, stats.line), left, limits)
    no_eeg = unlike | (~compared & (stats.tilt < _LINE_TILT))
    reasons["line"] |= left & noisy & no_eeg
    reasons["decorrelated"] = left & unlike & ~noisy
    return reasons


def _has_line_noise(
    stats: _EpochStats, line: np.ndarray, left: Mask, limits: DetectionLimits
) -> Mask:
    """Return where line noise is, or was, larger than at a well attached electrode."""
    much = (line > limits.line) | (line > _LINE_SHARE * stats.eeg)
    if left.any(axis=0).sum() >= 2:
        relative = line > _LINE_RELATIVE * _middle_channel(line, left)
        much |= relative & (line > _LINE_SHARE_RELATIVE * stats.eeg)
    return much & (line > _LINE_LEAST * limits.line)


def _pops(jumps: np.ndarray, positions: np.ndarray, nearest: np.ndarray, limit: float) -> Mask:
    """Return where a jump exceeds that of EEG, of this channel or of any neighbour."""
    largest = jumps.max(axis=2)
    usual = np.median(jumps, axis=(0, 2)) if len(jumps) else 0.0
    # False where the position is unknown
    far_from_eyes = angles_between(positions, EYES)[:, 0] > _EYES_REACH
    times = np.where(far_from_eyes, _POP_RELATIVE, _POP_RELATIVE_EYES)
    pops: Mask = (largest > times * usual) & (largest > _POP_LEAST * limit)
    pops |= largest > limit
    if nearest.shape[1] > _NEIGHBOURS_LEAST:
        # Eyes and muscle move several electrodes.
        alone = jumps > _POP_ALONE * jumps[:, nearest].max(axis=2)
        pops |= (alone & (jumps > _POP_ALONE_LEAST * limit)).any(axis=2)
    return pops


def _middle_channel(values: np.ndarray, left: Mask) -> float:
    """Return the lower median over channels of each channel's median over its cells left."""
    judged = left.any(axis=0)
    levels = np.nanmedian(np.where(left, values, np.nan)[:, judged], axis=0)
    return float(np.quantile(levels, 0.5, method="lower"))


def _likeness(stats: _EpochStats, good: Mask, nearest: np.ndarray) -> tuple[np.ndarray, Mask]:
    """Return the multiple correlation with the good neighbours, and where those are enough.

    Unlike the correlation with one of them, it stays high whatever the reference is.
    """
    usable = good[:, nearest]  # (n_epochs, n_channels, n_neighbours)
    both = usable[..., :, None] & usable[..., None, :]
    among = stats.correlation[:, nearest[:, :, None], nearest[:, None, :]]
    among = np.where(both, among, 0.0)
    # A bad neighbour becomes one without any correlation; the ridge is for bridged electrodes.
    diagonal = np.arange(nearest.shape[1])
    among[..., diagonal, diagonal] = 1.0 + _RIDGE
    rows = np.arange(len(nearest))[:, None]
    with_channel = np.where(usable, stats.correlation[:, rows, nearest], 0.0)[..., None]
    explained = (with_channel * np.linalg.solve(among, with_channel)).sum(axis=(-2, -1))
    enough = usable.sum(axis=2) >= _NEIGHBOURS_LEAST
    return np.sqrt(np.clip(explained, 0.0, 1.0)), enough


def _nearest(positions: np.ndarray, correlation: np.ndarray, n_neighbours: int) -> np.ndarray:
    """Return the indices of each channel's nearest others, shape (n_channels, n_neighbours)."""
    n_channels = len(positions)
    if not len(correlation):
        return np.zeros((n_channels, 0), dtype=int)
    known = np.isfinite(positions).all(axis=1)
    distances = angles_between(np.where(known[:, None], positions, 0.0))
    distances[:, ~known] = 360.0
    # Without a position, those most like the channel over the recording are its neighbours.
    distances[~known] = -np.abs(correlation.mean(axis=0))[~known]
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, : min(n_neighbours, n_channels - 1)]


@dataclass(frozen=True)
class _EpochStats:
    """Numbers per epoch and channel on which the rules decide; voltages in typical amplitudes."""

    broken: Mask  # some sample is NaN or infinite
    at_extremes: np.ndarray  # share of samples that equal the largest or the smallest
    tilt: np.ndarray  # power per hertz at 2-13 Hz over that at 20-40 Hz
    correlation: np.ndarray  # between channels at 2-20 Hz, (n_epochs, n_channels, n_channels)
    window_sd: np.ndarray  # in windows of one second, (n_epochs, n_channels, n_windows)
    jumps: np.ndarray  # range in overlapping seconds, (n_epochs, n_channels, n_seconds)
    line: np.ndarray  # standard deviation of the line noise
    eeg: np.ndarray  # standard deviation at 2-40 Hz
    drift: np.ndarray  # standard deviation between the high-pass and 4 Hz

    @cached_property
    def amplitude(self) -> np.ndarray:
        """Median of the windows' standard deviations: a blink or a twitch does not move it."""
        amplitude: np.ndarray = np.median(self.window_sd, axis=2)
        return amplitude


def _block_stats(
    clean: np.ndarray,
    recorded: np.ndarray,
    sfreq: float,
    line_freqs: tuple[float, ...],
    high_pass: float,
) -> tuple[np.ndarray, ...]:
    """Compute the fields of :class:`_EpochStats`, in volts; what was clipped shows as recorded."""
    with np.errstate(invalid="ignore"):  # one bad sample makes the mean NaN or infinite
        means = np.asarray(clean, dtype=float).mean(axis=-1, keepdims=True)
        broken = ~np.isfinite(means[..., 0])
        means[broken] = 0.0
        centred = clean - means  # a large offset would eat the precision
    centred[broken] = 0.0
    windows = _windows(centred, sfreq)
    window_means = windows.mean(axis=-1)
    # Without the temporary copies of ``std``; the offset is gone already.
    mean_squares = np.einsum("...i,...i->...", windows, windows) / windows.shape[-1]
    window_sd = np.sqrt(np.clip(mean_squares - window_means**2, 0.0, None))
    extremes = (recorded.max(axis=-1, keepdims=True), recorded.min(axis=-1, keepdims=True))
    at_extremes = np.sum([(recorded == extreme).mean(axis=-1) for extreme in extremes], axis=0)
    line, eeg, drift, tilt, correlation = _spectral_stats(centred, sfreq, line_freqs, high_pass)
    jumps = _jumps(centred, sfreq)
    return broken, at_extremes, tilt, correlation, window_sd, jumps, line, eeg, drift


def _windows(epochs: np.ndarray, sfreq: float) -> np.ndarray:
    """Cut epochs into windows of one second (or of the epoch, if it is shorter)."""
    n_times = epochs.shape[-1]
    length = min(max(round(sfreq), 1), n_times)
    n_windows = n_times // length
    return epochs[..., : n_windows * length].reshape(*epochs.shape[:-1], n_windows, length)


def _jumps(centred: np.ndarray, sfreq: float) -> np.ndarray:
    """Return ranges in sliding seconds, of means over 11 ms: muscle counts less than a pop."""
    n_times = centred.shape[-1]
    short = min(max(1, round(sfreq / 90)), n_times)
    half = min(max(1, round(sfreq / short / 2)), n_times // short)
    n_halves = n_times // (short * half)
    # Added up sample by sample: NumPy is slow at means of so few.
    sums = sum(centred[..., i : n_halves * half * short : short] for i in range(short))
    means = (sums / short).reshape(*centred.shape[:-1], n_halves, half)
    low, high = means.min(axis=-1), means.max(axis=-1)
    if n_halves > 1:
        low = np.minimum(low[..., 1:], low[..., :-1])
        high = np.maximum(high[..., 1:], high[..., :-1])
    jumps: np.ndarray = high - low
    return jumps


def _spectral_stats(
    centred: np.ndarray, sfreq: float, line_freqs: tuple[float, ...], high_pass: float
) -> tuple[np.ndarray, ...]:
    """Return line noise, EEG, drift, tilt and the correlations between channels."""
    n_times = centred.shape[-1]
    taper = np.hanning(n_times + 2)[1:-1]  # keeps slow drifts out of the bands
    # Scaled so that the squares of a band's bins add up to the band's mean square.
    spectrum = fft.rfft(centred * (taper * np.sqrt(2 / (n_times * (taper**2).sum()))))
    frequencies = fft.rfftfreq(n_times, 1 / sfreq)

    def band(limits: tuple[float, float]) -> slice:
        return slice(*np.searchsorted(frequencies, limits))

    def rms(bins: slice | Mask) -> np.ndarray:
        inside = spectrum[..., bins]
        root: np.ndarray = np.sqrt((inside.real**2 + inside.imag**2).sum(axis=-1))
        return root

    # Bins within 1 Hz (or two bins) of the line frequency and its next two harmonics.
    reach = max(1.0, 2 * frequencies[1]) if len(frequencies) > 1 else 1.0
    near = [
        np.any([np.abs(frequencies - k * freq) <= reach for k in (1, 2, 3)], axis=0)
        for freq in line_freqs
    ]
    line = np.max([rms(bins) for bins in near], axis=0)
    slow, fast = map(band, _TILT_BANDS)
    n_slow, n_fast = (len(frequencies[bins]) for bins in (slow, fast))
    with np.errstate(invalid="ignore", divide="ignore"):
        tilt = rms(slow) ** 2 * n_fast / (rms(fast) ** 2 * max(n_slow, 1))
    inside = band(_NEIGHBOUR_BAND)
    # The root of f evens out the 1/f spectrum: more frequencies count, so chance is smaller.
    whitened = spectrum[..., inside] * np.sqrt(frequencies[inside])
    parts = np.concatenate([whitened.real, whitened.imag], axis=-1)
    lengths = np.linalg.norm(parts, axis=-1, keepdims=True)
    parts /= np.where(lengths > 0, lengths, 1.0)
    drift = rms(band((max(high_pass, frequencies[-1] / n_times), _DRIFT_BELOW)))
    return line, rms(band(_EEG_BAND)), drift, tilt, parts @ parts.swapaxes(-1, -2)
