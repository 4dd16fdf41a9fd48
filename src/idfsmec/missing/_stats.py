"""What the rules of detection look at: a few numbers per epoch and channel, from one FFT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

#: Bands in Hz: what counts as EEG beside mains, and where neighbours are compared. The second
#: ends below most of the muscle's power, so that a tense jaw does not look like a lost electrode.
_EEG_BAND = (2.0, 40.0)
_NEIGHBOUR_BAND = (2.0, 20.0)
#: EEG has more power per hertz in the first than in the second; noise has not.
_TILT_BANDS = ((2.0, 13.0), (20.0, 40.0))
_BLOCK_BYTES = 4 * 2**20  # of epochs at a time: what caches hold


@dataclass(frozen=True)
class EpochStats:
    """Numbers per epoch and channel, each of shape (n_epochs, n_channels) unless said otherwise.

    ``broken``: some sample is NaN or infinite. ``window_sd``: standard deviation in windows of
    one second, shape (n_epochs, n_channels, n_windows). ``wander``: range of the windows' means,
    without the highest and lowest tenth. ``jumps``: largest minus smallest value in windows of
    one second that overlap by half, above 45 Hz damped, shape (n_epochs, n_channels, n_windows).
    ``at_extremes``: share of samples that equal the largest or the smallest. ``line`` and
    ``eeg``: standard deviation of the mains part and of the 2-40 Hz part. ``tilt``: power per
    hertz at 2-13 Hz over that at 20-40 Hz. ``correlation``: between channels at 2-20 Hz, shape
    (n_epochs, n_channels, n_channels).
    """

    broken: np.ndarray
    window_sd: np.ndarray
    wander: np.ndarray
    jumps: np.ndarray
    at_extremes: np.ndarray
    line: np.ndarray
    eeg: np.ndarray
    tilt: np.ndarray
    correlation: np.ndarray

    @property
    def amplitude(self) -> np.ndarray:
        """Median of the windows' standard deviations: a blink or a twitch does not move it."""
        return np.median(self.window_sd, axis=2)


def epoch_stats(
    epochs: np.ndarray, sfreq: float, line_freqs: tuple[float, ...], recorded: np.ndarray
) -> EpochStats:
    """Compute :class:`EpochStats` of epochs of shape (n_epochs, n_channels, n_times).

    ``recorded`` are the same epochs as they were recorded: what was clipped shows only there.
    Works through the epochs in blocks, so that memory stays bounded for long recordings.
    """
    n_epochs = len(epochs)
    per_block = max(1, int(_BLOCK_BYTES // max(8 * epochs[0].size, 1))) if n_epochs else 1
    blocks = [
        _block(epochs[part], sfreq, line_freqs, recorded[part])
        for start in range(0, max(n_epochs, 1), per_block)
        for part in [slice(start, start + per_block)]
    ]
    return EpochStats(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def window_sd(epochs: np.ndarray, sfreq: float) -> np.ndarray:
    """Give standard deviations in windows of one second (or the epoch, if shorter)."""
    return _windows(epochs, sfreq).std(axis=-1)


def _windows(epochs: np.ndarray, sfreq: float) -> np.ndarray:
    n_times = epochs.shape[-1]
    length = min(max(round(sfreq), 1), n_times)
    n_windows = n_times // length
    return epochs[..., : n_windows * length].reshape(*epochs.shape[:-1], n_windows, length)


def _block(
    epochs: np.ndarray, sfreq: float, line_freqs: tuple[float, ...], recorded: np.ndarray
) -> tuple[np.ndarray, ...]:
    with np.errstate(invalid="ignore"):  # one bad sample makes the mean NaN or infinite
        means = np.asarray(epochs, dtype=float).mean(axis=-1, keepdims=True)
    broken = ~np.isfinite(means[..., 0])
    means[broken] = 0.0
    with np.errstate(invalid="ignore"):
        centred = epochs - means  # a large offset would eat the precision
    centred[broken] = 0.0

    windows = _windows(centred, sfreq)
    window_means = windows.mean(axis=-1)
    # Without the temporary copies of ``std``; the offset is gone already.
    mean_squares = np.einsum("...i,...i->...", windows, windows) / windows.shape[-1]
    window_sd = np.sqrt(np.clip(mean_squares - window_means**2, 0.0, None))
    largest, smallest = recorded.max(axis=-1, keepdims=True), recorded.min(axis=-1, keepdims=True)
    at_extremes = (recorded == largest).mean(axis=-1) + (recorded == smallest).mean(axis=-1)
    line, eeg, tilt, correlation = _spectral(centred, sfreq, line_freqs)
    return (
        broken,
        window_sd,
        _inner_range(window_means),
        _jumps(centred, sfreq),
        at_extremes,
        line,
        eeg,
        tilt,
        correlation,
    )


def _jumps(centred: np.ndarray, sfreq: float) -> np.ndarray:
    """Range in sliding seconds, of means over about 11 ms: muscle counts less than a pop."""
    n_times = centred.shape[-1]
    short = min(max(1, round(sfreq / 90)), n_times)
    half = min(max(1, round(sfreq / short / 2)), n_times // short)
    n_halves = n_times // (short * half)
    parts = centred[..., : n_halves * half * short]
    means = parts.reshape(*centred.shape[:-1], n_halves, half, short).mean(axis=-1)
    low, high = means.min(axis=-1), means.max(axis=-1)
    if n_halves == 1:
        return high - low
    highest = np.maximum(high[..., 1:], high[..., :-1])
    return highest - np.minimum(low[..., 1:], low[..., :-1])


def _inner_range(means: np.ndarray) -> np.ndarray:
    """Range between the 10th and 90th percentile: one jerk of the head does not widen it."""
    low, high = np.quantile(means, [0.1, 0.9], axis=-1)
    return high - low


def _spectral(
    centred: np.ndarray, sfreq: float, line_freqs: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    n_times = centred.shape[-1]
    taper = np.hanning(n_times + 2)[1:-1]  # keeps slow drifts out of the bands
    # Scaled so that the squares of a band's bins add up to the band's mean square.
    spectrum = fft.rfft(centred * (taper * np.sqrt(2 / (n_times * (taper**2).sum()))))
    frequencies = fft.rfftfreq(n_times, 1 / sfreq)
    line = np.max([_rms(spectrum[..., _near(frequencies, f)]) for f in line_freqs], axis=0)
    eeg = _rms(spectrum[..., _between(frequencies, *_EEG_BAND)])
    slow, fast = (spectrum[..., _between(frequencies, *band)] for band in _TILT_BANDS)
    with np.errstate(invalid="ignore", divide="ignore"):
        tilt = _rms(slow) ** 2 * fast.shape[-1] / (_rms(fast) ** 2 * max(slow.shape[-1], 1))
    inside = _between(frequencies, *_NEIGHBOUR_BAND)
    # The root of f evens out the 1/f spectrum: more frequencies count, so chance is smaller.
    whitened = spectrum[..., inside] * np.sqrt(frequencies[inside])
    parts = np.concatenate([whitened.real, whitened.imag], axis=-1)
    lengths = np.linalg.norm(parts, axis=-1, keepdims=True)
    parts /= np.where(lengths > 0, lengths, 1.0)
    return line, eeg, tilt, parts @ parts.swapaxes(-1, -2)


def _rms(coefficients: np.ndarray) -> np.ndarray:
    return np.sqrt((coefficients.real**2 + coefficients.imag**2).sum(axis=-1))


def _between(frequencies: np.ndarray, low: float, high: float) -> slice:
    return slice(*np.searchsorted(frequencies, (low, high)))


def _near(frequencies: np.ndarray, line_freq: float) -> np.ndarray:
    """Bins within 1 Hz (or two bins) of the mains frequency and its next two harmonics."""
    reach = max(1.0, 2 * frequencies[1]) if len(frequencies) > 1 else 1.0
    return np.any([np.abs(frequencies - k * line_freq) <= reach for k in (1, 2, 3)], axis=0)
