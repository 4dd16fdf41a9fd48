"""Where the epochs of a recording lie: in seconds, in its own samples and in resampled ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._filtering import resampling_ratio


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

    def cut_source(self, data: NDArray[np.float64]) -> NDArray[np.float64]:
        """View the recording as it came as epochs, copied only where rates do not divide."""
        begins = self.begins
        windows = sliding_window_view(data, int((self.ends - begins).min()), axis=1)
        steps = np.unique(np.diff(begins))
        if len(steps) > 1:
            return windows[:, begins].transpose(1, 0, 2)
        step = int(steps[0]) if len(steps) else 1
        return windows[:, ::step][:, : self.n_epochs].transpose(1, 0, 2)


def epoch_grid(
    n_times: int, sfreq: float, rate: float, epoch: float, overlap: float = 0.0
) -> EpochGrid:
    """Lay epochs over a recording; the last stretch that does not fill one is left out.

    Parameters
    ----------
    n_times : int
        Samples of the recording.
    sfreq, rate : float
        Sampling rates before and behind the resampling, in Hz.
    epoch, overlap : float
        In seconds.

    Examples
    --------
    >>> grid = epoch_grid(512 * 35, sfreq=512, rate=250, epoch=10)
    >>> grid.starts.tolist(), grid.begins.tolist()
    ([0.0, 10.0, 20.0], [0, 5120, 10240])
    """
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
