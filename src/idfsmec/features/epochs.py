"""Filters and epochs: a signal is resampled, band-passed and cut; missing stretches stay local."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import signal

from idfsmec.errors import InputError
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import unusable

Array = NDArray[np.float64]
Edges = tuple[float | None, float | None]

BUTTERWORTH_ORDER = 4
# Rows that are filtered at once: bounds the temporaries however many channels there are.
_BLOCK_SAMPLES = 4_000_000


@dataclass(frozen=True)
class EpochGrid:
    """Epochs of equal length at equal distances, in samples behind the resampling."""

    n_epochs: int
    step: int
    length: int
    rate: float
    """Sampling rate behind the resampling, in Hz."""
    ratio: float
    """Samples behind the resampling per sample of the recording."""

    @property
    def starts(self) -> Array:
        """Seconds from the beginning of the recording, shape (n_epochs,)."""
        return np.arange(self.n_epochs, dtype=np.float64) * (self.step / self.rate)

    @property
    def duration(self) -> float:
        """Length of an epoch in seconds."""
        return self.length / self.rate

    @property
    def begins(self) -> NDArray[np.intp]:
        """First sample of each epoch in the recording as it came, shape (n_epochs,)."""
        first = np.arange(self.n_epochs) * self.step
        return np.floor(first / self.ratio + 1e-6).astype(np.intp)

    @property
    def ends(self) -> NDArray[np.intp]:
        """Sample behind the last of each epoch in the recording as it came."""
        behind = np.arange(self.n_epochs) * self.step + self.length
        return np.ceil(behind / self.ratio - 1e-6).astype(np.intp)

    def cut(self, resampled: Array) -> Array:
        """View the resampled signal as epochs, (n_epochs, n_channels, length), not copied."""
        windows = sliding_window_view(resampled, self.length, axis=1)
        return windows[:, :: self.step][:, : self.n_epochs].transpose(1, 0, 2)

    def cut_source(self, data: NDArray[np.floating]) -> NDArray[np.floating]:
        """View the recording as it came as epochs, copied only where rates do not divide."""
        begins = self.begins
        windows = sliding_window_view(data, int((self.ends - begins).min()), axis=1)
        steps = np.unique(np.diff(begins))
        if len(steps) > 1:
            return windows[:, begins].transpose(1, 0, 2)
        step = int(steps[0]) if len(steps) else 1
        return windows[:, ::step][:, : self.n_epochs].transpose(1, 0, 2)


def epoch_grid(n_times: int, sfreq: float, settings: FeatureSettings | None = None) -> EpochGrid:
    """Lay epochs over a recording; the last stretch that does not fill one is left out.

    Examples
    --------
    >>> grid = epoch_grid(512 * 35, sfreq=512)
    >>> grid.starts.tolist(), grid.begins.tolist()
    ([0.0, 10.0, 20.0], [0, 5120, 10240])
    """
    settings = settings or FeatureSettings()
    epoch, overlap, rate = settings.epoch, settings.overlap, settings.rate(sfreq)
    length = round(epoch * rate)
    step = length - round(overlap * rate)
    if length < 2 or step < 1:
        raise InputError(
            f"Epochs of {epoch:g} s that overlap by {overlap:g} s make no sense at {rate:g} Hz."
        )
    ratio = _resampling_ratio(sfreq, rate)
    available = int(n_times * ratio)
    if available < length:
        raise InputError(
            f"The recording lasts {n_times / sfreq:.3g} s, less than one epoch of {epoch:g} s: "
            "choose shorter epochs or leave it out."
        )
    return EpochGrid((available - length) // step + 1, step, length, rate, float(ratio))


@dataclass(frozen=True)
class PreparedEpochs:
    """Epochs ready for :func:`compute_features`, and where a channel is missing in them."""

    data: NDArray[np.floating]
    """Shape (n_epochs, n_channels, n_times); a read-only view where epochs overlap."""
    missing: NDArray[np.bool_]
    """Shape (n_epochs, n_channels)."""
    sfreq: float
    starts: Array
    """Seconds from the beginning of the recording, shape (n_epochs,)."""


def prepare_recording(
    data: NDArray[np.floating], sfreq: float, settings: FeatureSettings | None = None
) -> PreparedEpochs:
    """Resample, filter and cut a continuous recording of shape (n_channels, n_times).

    Values that are not finite are bridged by a straight line before the filters run, channel by
    channel, and the epochs they lie in are marked missing for that channel. So a missing stretch
    costs the epochs that it touches and nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features.epochs import prepare_recording
    >>> recording = np.random.default_rng(0).standard_normal((2, 500 * 35))
    >>> recording[1, 500 * 12] = np.nan
    >>> epochs = prepare_recording(recording, sfreq=500)
    >>> epochs.data.shape, epochs.missing.tolist()
    ((3, 2, 2500), [[False, False], [False, True], [False, False]])
    """
    settings = settings or FeatureSettings()
    grid = epoch_grid(data.shape[1], sfreq, settings)
    edges = np.column_stack([grid.begins, np.minimum(grid.ends, data.shape[1])]).ravel()
    if edges[-1] >= data.shape[1]:  # reduceat runs to the end by itself
        edges = edges[:-1]
    lowest = np.minimum.reduceat(data, edges, axis=1)[:, ::2]
    highest = np.maximum.reduceat(data, edges, axis=1)[:, ::2]
    clean = _run_filters(data, sfreq, grid.rate, settings.band_pass or (None, None))
    return PreparedEpochs(grid.cut(clean), unusable(lowest, highest).T, grid.rate, grid.starts)


def prepare_epochs(
    data: NDArray[np.floating],
    sfreq: float,
    settings: FeatureSettings | None = None,
    *,
    passed: tuple[float, float] = (0.0, np.inf),
) -> PreparedEpochs:
    """Resample and filter each of epochs that are cut already, (n_epochs, n_channels, n_times).

    ``passed`` is the band in Hz that earlier filters have let pass. An edge of the band-pass that
    does not cut into it has nothing to do, and is left out: a filter distorts the ends of epochs.

    Examples
    --------
    >>> import numpy as np
    >>> epochs = np.random.default_rng(0).standard_normal((4, 2, 2500))
    >>> prepare_epochs(epochs, 250, passed=(1.0, 40.0)).data is epochs
    True
    """
    settings = settings or FeatureSettings()
    data = np.asarray(data)
    n_epochs, n_channels, n_times = data.shape
    missing = unusable(data.min(axis=-1), data.max(axis=-1))
    rate = settings.rate(sfreq)
    lower, upper = settings.band_pass or (0.0, np.inf)
    edges = lower if lower > passed[0] else None, upper if upper < passed[1] else None
    clean = data
    if edges != (None, None) or rate != sfreq:
        rows = _run_filters(data.reshape(n_epochs * n_channels, n_times), sfreq, rate, edges)
        clean = rows.reshape(n_epochs, n_channels, rows.shape[1])
    return PreparedEpochs(clean, missing, rate, np.arange(n_epochs) * (n_times / sfreq))


def _resampling_ratio(sfreq: float, rate: float) -> Fraction:
    """Give the ratio of the rates as a fraction that a polyphase filter can use.

    Rates that files state with rounding (499.9998 Hz) are taken for what they mean: the
    denominator is at most 4096, an error of less than one sample in a quarter of an hour.
    """
    return Fraction(rate / sfreq).limit_denominator(4096)


def _run_filters(rows: NDArray[np.floating], sfreq: float, rate: float, edges: Edges) -> Array:
    """Bridge, resample to ``rate`` and band-pass, in blocks so that temporaries stay small."""
    step = max(1, _BLOCK_SAMPLES // max(1, rows.shape[1]))
    ratio = _resampling_ratio(sfreq, rate)
    out = np.empty((len(rows), 0))
    for start in range(0, max(len(rows), 1), step):
        block = _bridge(np.asarray(rows[start : start + step], dtype=np.float64))
        if ratio != 1:
            # "line" takes offset and drift out first: padding with zeros would ring at the ends.
            block = signal.resample_poly(
                block, ratio.numerator, ratio.denominator, axis=1, padtype="line"
            )
        block = _band_pass(block, rate, edges)
        if start == 0:
            out = np.empty((len(rows), block.shape[1]))
        out[start : start + step] = block
    return out


def _bridge(rows: Array) -> Array:
    """Draw straight lines over values that are not finite; a row without any becomes zero."""
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    bridged = rows.copy() if broken.size else rows
    samples = np.arange(rows.shape[1])
    for row in broken:
        finite = np.isfinite(rows[row])
        bridged[row] = (
            np.interp(samples, samples[finite], rows[row, finite]) if finite.any() else 0.0
        )
    return bridged


def _band_pass(rows: Array, rate: float, edges: Edges) -> Array:
    """Filter forwards and backwards with a Butterworth filter; None leaves a side open."""
    lower, upper = edges
    if upper is not None and upper >= rate / 2:
        raise InputError(
            f"The band-pass reaches up to {upper:g} Hz, but at {rate:g} Hz a signal holds only "
            f"frequencies below {rate / 2:g} Hz: lower the edge or resample to a higher rate."
        )
    inner = [edge for edge in edges if edge is not None]
    if not inner:
        return rows
    kind = "bandpass" if len(inner) == 2 else "lowpass" if lower is None else "highpass"
    sections = signal.butter(
        BUTTERWORTH_ORDER,
        inner if len(inner) == 2 else inner[0],
        btype=kind,
        fs=rate,
        output="sos",
    )
    # The slowest part of the filter rings for a few periods of the lower edge.
    padding = min(rows.shape[1] - 1, round(3 * rate / inner[0]))
    return signal.sosfiltfilt(sections, rows, axis=1, padlen=padding)
