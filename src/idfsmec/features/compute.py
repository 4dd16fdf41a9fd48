"""From clean epochs to numbers, block by block; NaN where there is no usable signal."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from idfsmec._jobs import available_threads
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import unusable

# Large enough that threads do not wait for the interpreter, small enough to share the work evenly.
_BLOCK_SAMPLES = 400_000


def compute_features(
    epochs: NDArray[np.floating],
    sfreq: float,
    settings: FeatureSettings | None = None,
    *,
    missing: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], list[str]]:
    """Compute features of epochs that are already filtered.

    Parameters
    ----------
    epochs : ndarray of shape (n_epochs, n_channels, n_times)
        The signal, taken as it is: no resampling, no filter.
    sfreq : float
        Sampling rate in Hz.
    settings : FeatureSettings, optional
        Features, bands and constants count; the signal path and the detection do not.
    missing : ndarray of shape (n_epochs, n_channels), optional
        Where the channel is known to be missing. Epochs of a channel that are flat or hold a
        value that is not finite are missing in any case.

    Returns
    -------
    values : ndarray of shape (n_epochs, n_channels, n_outputs)
        NaN throughout where a channel is missing, and where a value is not finite. Of features of
        pairs each side's value: their difference is taken where channels have names.
    names : list of str
        The outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import compute_features
    >>> noise = np.random.default_rng(0).standard_normal((6, 3, 2500))
    >>> noise[2, 1, 100] = np.nan
    >>> values, names = compute_features(noise, sfreq=250)
    >>> values.shape
    (6, 3, 18)
    >>> np.argwhere(np.isnan(values).all(axis=2))
    array([[2, 1]])
    """
    settings = settings or FeatureSettings()
    names = settings.columns
    n_epochs, n_channels, n_times = epochs.shape
    values = np.empty((n_epochs, n_channels, len(names)))

    def fill(part: tuple[slice, slice]) -> None:
        known = None if missing is None else missing[part]
        values[part] = _compute_block(epochs[part], sfreq, settings, known)

    # NumPy and the FFT let other threads work meanwhile. Blocks do not see each other, so the
    # numbers do not depend on how many threads there are.
    with ThreadPoolExecutor(available_threads()) as pool:
        together = any(feature.together for feature in settings.chosen)
        for _ in pool.map(fill, _blocks(n_epochs, n_channels, n_times, together)):
            pass
    return values, names


def _blocks(
    n_epochs: int, n_channels: int, n_times: int, together: bool
) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of epochs and channels that fit the cache; the same for the same shape.

    Channels that belong together stay in one block, whether it fits or not.
    """
    rows = max(1, _BLOCK_SAMPLES // max(1, n_times))
    channels = max(1, n_channels) if together else min(rows, max(1, n_channels))
    epochs = max(1, rows // channels)
    for epoch in range(0, n_epochs, epochs):
        for channel in range(0, n_channels, channels):
            yield slice(epoch, epoch + epochs), slice(channel, channel + channels)


def _compute_block(
    epochs: NDArray[np.floating],
    sfreq: float,
    settings: FeatureSettings,
    missing: NDArray[np.bool_] | None,
) -> NDArray[np.float64]:
    data = np.ascontiguousarray(epochs, dtype=np.float64)
    gone = unusable(data.min(axis=-1), data.max(axis=-1))
    if missing is not None:
        gone = gone | missing
    if gone.any():
        # Functions, a user's too, never see a flat or broken signal: a stand-in takes its place
        # and the result is thrown away. So none can raise or warn because a channel is missing.
        data = np.where(gone[..., np.newaxis], _stand_in(epochs.shape[-1]), data)
    signal = EpochSignal(data, sfreq, settings, missing=gone)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = [f.compute(signal) for f in settings.chosen if f.columns(settings)]
    if not parts:
        return np.empty((*epochs.shape[:2], 0))
    values = np.concatenate(parts, axis=-1)
    values[gone] = np.nan
    values[~np.isfinite(values)] = np.nan
    return values


def _stand_in(n_times: int) -> NDArray[np.float64]:
    """Noise with content at all frequencies, the same every time."""
    return np.random.default_rng(0).standard_normal(n_times)
