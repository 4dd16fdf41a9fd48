"""Features read off the signal itself: moments, crossings, stationarity, amplitude entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features.epoch_signal import EpochSignal, dot, log_or_zero
from idfsmec.features.registry import register_feature

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]


@register_feature("mean")
def mean(signal: EpochSignal) -> Array:
    """Mean of the epoch; near zero behind a band-pass, kept because the paper has it."""
    return signal.mean


@register_feature("variance")
def variance(signal: EpochSignal) -> Array:
    """Compute the population variance."""
    return signal.variance


@register_feature("log_variance")
def log_variance(signal: EpochSignal) -> Array:
    """Natural logarithm of the population variance."""
    return np.log(signal.variance)


@register_feature("nsi")
def nonstationary_index(signal: EpochSignal) -> Array:
    """Compute the standard deviation of the segment means of the z-scored epoch.

    Segments of 1 s; samples behind the last whole segment are left out. Both standard
    deviations are population ones.
    """
    length = round(signal.settings.nsi_window * signal.sfreq)
    n_segments = signal.n_times // max(length, 1)
    if length < 1 or n_segments < 2:
        raise InputError(
            f"Feature 'nsi' compares segments of {signal.settings.nsi_window:g} s, but the epochs "
            f"last {signal.n_times / signal.sfreq:g} s: use longer epochs or leave 'nsi' out."
        )
    segments = signal.centred[..., : n_segments * length]
    means = segments.reshape(*segments.shape[:-1], n_segments, length).mean(axis=-1)
    return means.std(axis=-1) / np.sqrt(signal.variance)


def _crossing_names(settings: FeatureSettings) -> list[str]:
    if settings.hoc_orders == 1:
        return ["hoc"]
    return [f"hoc_{order}" for order in range(1, settings.hoc_orders + 1)]


@register_feature("hoc", outputs=_crossing_names)
def higher_order_crossings(signal: EpochSignal) -> Array:
    """D_k: sign changes of the (k-1)-th difference of the zero-mean epoch, sign(z) = (z >= 0)."""
    counts = []
    difference = signal.centred
    for order in range(signal.settings.hoc_orders):
        if order:
            difference = np.diff(difference, axis=-1)
        positive = difference >= 0
        counts.append(np.count_nonzero(positive[..., 1:] != positive[..., :-1], axis=-1))
    return np.stack(counts, axis=-1).astype(np.float64)


@register_feature("shannon_entropy")
def shannon_entropy(signal: EpochSignal) -> Array:
    """-sum p ln p (nats) with p = abs(x) / sum abs(x) over the samples of the epoch."""
    magnitude = np.abs(signal.data)
    total = magnitude.sum(axis=-1)
    # -sum (m/S) ln (m/S) = ln S - sum(m ln m) / S: one pass, no division per sample.
    return np.log(total) - dot(magnitude, log_or_zero(magnitude)) / total
