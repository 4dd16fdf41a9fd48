"""How strongly a channel goes with the others, by mne-connectivity: the mean over its pairs."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._libraries import library
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.registry import register_feature

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]

# The library turns MNE's messages, which are common to all threads, off and on again.
_QUIET = Lock()


def _outputs(name: str, settings: FeatureSettings) -> list[str]:
    return [f"{name}_{band}" for band in settings.bands]


@register_feature("wpli", outputs=partial(_outputs, "wpli"), together=True)
def wpli(signal: EpochSignal) -> Array:
    """Weighted phase lag index of each band, mean over the other channels that are there."""
    return _strength(signal, "wpli")


@register_feature("coherence", outputs=partial(_outputs, "coherence"), together=True)
def coherence(signal: EpochSignal) -> Array:
    """Coherence (its size, not squared) of each band, mean over the other channels there."""
    return _strength(signal, "coh")


def _strength(signal: EpochSignal, method: str) -> Array:
    """Mean over pairs whose both ends are there; NaN where there is none."""
    connectivity = library("mne_connectivity", "connectivity").spectral_connectivity_epochs
    bands = list(signal.settings.bands)
    for band in bands:
        signal.band_power(band)  # says which band has no place in the spectrum
    lower, upper = np.array([signal.settings.bands[band] for band in bands]).reshape(-1, 2).T
    slack = 1e-6  # Hz: the lower edge belongs to a band, the upper one does not
    how = {
        "method": method,
        "mode": "fourier",
        "sfreq": signal.sfreq,
        "fmin": tuple(np.maximum(lower - slack, 0.0)),
        "fmax": tuple(upper - slack),
        "faverage": True,
        "verbose": "ERROR",
    }
    values = np.full((*signal.data.shape[:2], len(bands)), np.nan)
    for epoch, windows in enumerate(_windows(signal)):
        there = np.flatnonzero(~signal.missing[epoch])
        if len(there) < 2:
            continue
        with _QUIET:
            pairs = connectivity(windows[:, there], **how).get_data("dense")
        # The library fills the lower triangle.
        values[epoch, there] = (pairs.sum(axis=0) + pairs.sum(axis=1)) / (len(there) - 1)
    return values


def _windows(signal: EpochSignal) -> Array:
    """Cut each epoch as Welch does: (n_epochs, n_windows, n_channels, n_samples)."""
    samples = round(signal.sfreq / signal.welch_frequencies[1])
    hop = samples - samples // 2
    windows = sliding_window_view(signal.data, samples, axis=-1)[:, :, ::hop]
    if windows.shape[2] < 2:
        raise InputError(
            f"Connectivity needs several of Welch's windows ({samples / signal.sfreq:g} s) in an "
            f"epoch of {signal.n_times / signal.sfreq:g} s: use longer epochs or shorter windows."
        )
    return windows.swapaxes(1, 2)
