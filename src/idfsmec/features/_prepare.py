"""The signal path: resample, band-pass without phase shift, cut into epochs; gaps stay local."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._compute import unusable
from idfsmec.features._filtering import band_pass, bridge_gaps, resample, resampling_ratio

# Rows that are filtered at once: bounds the temporaries however many channels there are.
_BLOCK_SAMPLES = 4_000_000


@dataclass(frozen=True)
class SignalPath:
    """How a signal is brought into the form that features are computed from.

    Parameters
    ----------
    resample : float or None
        Sampling rate in Hz to convert to, by a polyphase filter; None keeps the rate.
    band_pass : (float, float) or None
        Edges in Hz of a Butterworth band-pass of order 4, run forwards and backwards so that
        nothing is shifted in time; None for signals that are filtered already.
    epoch : float
        Length of an epoch in seconds.
    overlap : float
        Seconds that consecutive epochs have in common.
    """

    resample: float | None = 250.0
    band_pass: tuple[float, float] | None = (1.0, 45.0)
    epoch: float = 10.0
    overlap: float = 0.0

    def __post_init__(self) -> None:
        if not self.epoch > 0:
            raise InputError(f"The length of an epoch must be positive, got {self.epoch!r} s.")
        if not 0 <= self.overlap < self.epoch:
            raise InputError(
                f"The overlap must be at least 0 and less than the epoch of {self.epoch:g} s, "
                f"got {self.overlap!r} s."
            )
        if self.resample is not None and not self.resample > 0:
            raise InputError(f"The sampling rate must be positive, got {self.resample!r} Hz.")
        if self.band_pass is not None:
            lower, upper = self.band_pass
            nyquist = np.inf if self.resample is None else self.resample / 2
            if not 0 < lower < upper < nyquist:
                raise InputError(
                    f"The band-pass needs 0 < lower < upper < {nyquist:g} Hz (half the sampling "
                    f"rate), got {lower!r} and {upper!r}."
                )

    def rate(self, sfreq: float) -> float:
        """Return the sampling rate behind the path of a signal that comes with ``sfreq``."""
        return sfreq if self.resample is None else float(self.resample)


@dataclass(frozen=True)
class PreparedEpochs:
    """Epochs ready for :func:`compute_features`, and where a channel is missing in them."""

    data: NDArray[np.floating]
    """Shape (n_epochs, n_channels, n_times); a read-only view where epochs overlap."""
    missing: NDArray[np.bool_]
    """Shape (n_epochs, n_channels)."""
    sfreq: float
    starts: NDArray[np.float64]
    """Seconds from the beginning of the recording, shape (n_epochs,)."""


def prepare_recording(
    data: NDArray[np.float64], sfreq: float, path: SignalPath | None = None
) -> PreparedEpochs:
    """Resample, filter and cut a continuous recording.

    Values that are not finite are bridged by a straight line before the filters run, channel by
    channel, and the epochs they lie in are marked missing for that channel. So a gap costs the
    epochs that it touches and nothing else.

    Parameters
    ----------
    data : ndarray of shape (n_channels, n_times)
    sfreq : float
        Sampling rate in Hz.
    path : SignalPath, optional

    Returns
    -------
    PreparedEpochs
        The last stretch that does not fill an epoch is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import prepare_recording
    >>> recording = np.random.default_rng(0).standard_normal((2, 500 * 35))
    >>> recording[1, 500 * 12] = np.nan
    >>> epochs = prepare_recording(recording, sfreq=500)
    >>> epochs.data.shape, epochs.sfreq
    ((3, 2, 2500), 250.0)
    >>> epochs.missing.tolist()
    [[False, False], [False, True], [False, False]]
    """
    path = path or SignalPath()
    rate = path.rate(sfreq)
    starts, step, length = _epoch_grid(data.shape[1], sfreq, path)
    ratio = float(resampling_ratio(sfreq, rate))
    missing = _missing_windows(data, *_source_windows(starts, length, ratio))
    clean = _in_blocks(data, sfreq, path)
    windows = sliding_window_view(clean, length, axis=1)[:, ::step][:, : len(starts)]
    return PreparedEpochs(windows.transpose(1, 0, 2), missing, rate, starts / rate)


def prepare_epochs(
    data: NDArray[np.floating], sfreq: float, path: SignalPath | None = None
) -> PreparedEpochs:
    """Resample and filter epochs that are cut already, each for itself.

    Parameters
    ----------
    data : ndarray of shape (n_epochs, n_channels, n_times)
    sfreq : float
        Sampling rate in Hz.
    path : SignalPath, optional
        ``epoch`` and ``overlap`` have no meaning here.
    """
    path = path or SignalPath()
    data = np.asarray(data)
    missing = unusable(data.min(axis=-1), data.max(axis=-1))
    n_epochs, n_channels, n_times = data.shape
    if path.band_pass is None and path.rate(sfreq) == sfreq:
        clean = data
    else:
        rows = data.reshape(n_epochs * n_channels, n_times)
        rows = _in_blocks(rows, sfreq, path)
        clean = rows.reshape(n_epochs, n_channels, rows.shape[1])
    starts = np.arange(n_epochs) * (n_times / sfreq)
    return PreparedEpochs(clean, missing, path.rate(sfreq), starts)


def _epoch_grid(n_times: int, sfreq: float, path: SignalPath) -> tuple[NDArray[np.intp], int, int]:
    """First samples of the epochs, their distance and length, at the rate behind the path."""
    rate = path.rate(sfreq)
    length = round(path.epoch * rate)
    step = length - round(path.overlap * rate)
    available = int(n_times * resampling_ratio(sfreq, rate))
    if length < 2 or step < 1:
        raise InputError(
            f"Epochs of {path.epoch:g} s that overlap by {path.overlap:g} s make no sense at "
            f"{rate:g} Hz."
        )
    if available < length:
        raise InputError(
            f"The recording lasts {n_times / sfreq:.3g} s, less than one epoch of "
            f"{path.epoch:g} s: choose shorter epochs or leave it out."
        )
    return np.arange(0, available - length + 1, step), step, length


def _source_windows(
    starts: NDArray[np.intp], length: int, ratio: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and behind-last samples of the epochs in the signal before resampling."""
    begins = np.floor(starts / ratio + 1e-6).astype(np.intp)
    ends = np.ceil((starts + length) / ratio - 1e-6).astype(np.intp)
    return begins, ends


def _missing_windows(
    data: NDArray[np.float64], begins: NDArray[np.intp], ends: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether each window of the unfiltered signal is unusable, (n_windows, n_channels)."""
    edges = np.column_stack([begins, ends]).ravel()
    if edges[-1] >= data.shape[1]:  # reduceat runs to the end by itself
        edges = edges[:-1]
    lowest = np.minimum.reduceat(data, edges, axis=1)[:, ::2]
    highest = np.maximum.reduceat(data, edges, axis=1)[:, ::2]
    return unusable(lowest, highest).T


def _in_blocks(rows: NDArray[np.floating], sfreq: float, path: SignalPath) -> NDArray[np.float64]:
    """Run the path over blocks of rows, so that its temporaries stay small."""
    step = max(1, _BLOCK_SAMPLES // max(1, rows.shape[1]))
    blocks = range(0, max(1, len(rows)), step)
    first = _run_path(rows[:step], sfreq, path)
    out = np.empty((len(rows), first.shape[1]))
    out[:step] = first
    for start in blocks[1:]:
        out[start : start + step] = _run_path(rows[start : start + step], sfreq, path)
    return out


def _run_path(rows: NDArray[np.floating], sfreq: float, path: SignalPath) -> NDArray[np.float64]:
    clean = bridge_gaps(np.asarray(rows, dtype=np.float64))
    clean = resample(clean, resampling_ratio(sfreq, path.rate(sfreq)))
    if path.band_pass is None:
        return clean
    return band_pass(clean, path.rate(sfreq), path.band_pass)
