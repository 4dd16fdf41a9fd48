"""Epochs: where they lie in a recording, and the filtered signal in them; gaps stay local."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features.filtering import Edges, resampling_ratio, run_filters
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import unusable


@dataclass(frozen=True)
class EpochGrid:
    """Epochs of equal length at equal distances.

    Parameters
    ----------
    n_epochs : int
    step, length : int
        Distance of two epochs and length of one, in samples behind the resampling.
    rate : float
        Sampling rate behind the resampling, in Hz.
    ratio : float
        Samples behind the resampling per sample of the recording.
    """

    n_epochs: int
    step: int
    length: int
    rate: float
    ratio: float

    @property
    def starts(self) -> NDArray[np.float64]:
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

    def cut(self, resampled: NDArray[np.float64]) -> NDArray[np.float64]:
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

    Parameters
    ----------
    n_times : int
        Samples of the recording.
    sfreq : float
        Its sampling rate in Hz.
    settings : FeatureSettings, optional
        ``epoch``, ``overlap`` and ``resample`` count.

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
    ratio = resampling_ratio(sfreq, rate)
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
    starts: NDArray[np.float64]
    """Seconds from the beginning of the recording, shape (n_epochs,)."""


def prepare_recording(
    data: NDArray[np.floating], sfreq: float, settings: FeatureSettings | None = None
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
    settings : FeatureSettings, optional

    Returns
    -------
    PreparedEpochs
        The last stretch that does not fill an epoch is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features.epochs import prepare_recording
    >>> recording = np.random.default_rng(0).standard_normal((2, 500 * 35))
    >>> recording[1, 500 * 12] = np.nan
    >>> epochs = prepare_recording(recording, sfreq=500)
    >>> epochs.data.shape, epochs.sfreq
    ((3, 2, 2500), 250.0)
    >>> epochs.missing.tolist()
    [[False, False], [False, True], [False, False]]
    """
    settings = settings or FeatureSettings()
    grid = epoch_grid(data.shape[1], sfreq, settings)
    missing = _missing_windows(data, grid)
    clean = run_filters(data, sfreq, grid.rate, settings.band_pass or (None, None))
    return PreparedEpochs(grid.cut(clean), missing, grid.rate, grid.starts)


def prepare_epochs(
    data: NDArray[np.floating],
    sfreq: float,
    settings: FeatureSettings | None = None,
    *,
    passed: tuple[float, float] = (0.0, np.inf),
) -> PreparedEpochs:
    """Resample and filter epochs that are cut already, each for itself.

    Parameters
    ----------
    data : ndarray of shape (n_epochs, n_channels, n_times)
    sfreq : float
        Sampling rate in Hz.
    settings : FeatureSettings, optional
    passed : (float, float)
        Band in Hz that earlier filters have let pass. An edge of the band-pass that does not
        cut into it has nothing to do, and is left out: a filter distorts the ends of epochs.

    Examples
    --------
    >>> import numpy as np
    >>> epochs = np.random.default_rng(0).standard_normal((4, 2, 2500))
    >>> prepare_epochs(epochs, 250, passed=(1.0, 40.0)).data is epochs
    True
    """
    settings = settings or FeatureSettings()
    data = np.asarray(data)
    missing = unusable(data.min(axis=-1), data.max(axis=-1))
    n_epochs, n_channels, n_times = data.shape
    rate, edges = settings.rate(sfreq), _edges_left(settings, passed)
    if edges == (None, None) and rate == sfreq:
        clean = data
    else:
        rows = run_filters(data.reshape(n_epochs * n_channels, n_times), sfreq, rate, edges)
        clean = rows.reshape(n_epochs, n_channels, rows.shape[1])
    return PreparedEpochs(clean, missing, rate, np.arange(n_epochs) * (n_times / sfreq))


def _edges_left(settings: FeatureSettings, passed: tuple[float, float]) -> Edges:
    lower, upper = settings.band_pass or (0.0, np.inf)
    return lower if lower > passed[0] else None, upper if upper < passed[1] else None


def _missing_windows(data: NDArray[np.floating], grid: EpochGrid) -> NDArray[np.bool_]:
    """Whether each epoch of the unfiltered signal is unusable, (n_epochs, n_channels)."""
    edges = np.column_stack([grid.begins, np.minimum(grid.ends, data.shape[1])]).ravel()
    if edges[-1] >= data.shape[1]:  # reduceat runs to the end by itself
        edges = edges[:-1]
    lowest = np.minimum.reduceat(data, edges, axis=1)[:, ::2]
    highest = np.maximum.reduceat(data, edges, axis=1)[:, ::2]
    return unusable(lowest, highest).T
