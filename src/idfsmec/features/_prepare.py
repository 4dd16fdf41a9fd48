"""The signal path: resample, band-pass without phase shift, cut into epochs; gaps stay local."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._compute import unusable
from idfsmec.features._filtering import band_pass, bridge_gaps, resample, resampling_ratio
from idfsmec.features._grid import EpochGrid, epoch_grid

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

    def grid(self, n_times: int, sfreq: float) -> EpochGrid:
        """Lay epochs over a recording of ``n_times`` samples."""
        return epoch_grid(n_times, sfreq, self.rate(sfreq), self.epoch, self.overlap)


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
    grid = path.grid(data.shape[1], sfreq)
    missing = _missing_windows(data, grid)
    return PreparedEpochs(grid.cut(_in_blocks(data, sfreq, path)), missing, grid.rate, grid.starts)


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


def _missing_windows(data: NDArray[np.float64], grid: EpochGrid) -> NDArray[np.bool_]:
    """Whether each epoch of the unfiltered signal is unusable, (n_epochs, n_channels)."""
    edges = np.column_stack([grid.begins, np.minimum(grid.ends, data.shape[1])]).ravel()
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
