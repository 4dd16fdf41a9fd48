"""Features read off the shared spectra: complexity, spectral entropy, power per band."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idfsmec.features.epoch_signal import EpochSignal, dot, log_or_zero, sides
from idfsmec.features.registry import register_feature

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]


@register_feature("c0")
def c0_complexity(signal: EpochSignal) -> Array:
    """Share of the power that lies in bins of at most r times the mean power.

    Equal, by Parseval, to removing the strong bins from the two-sided FFT, transforming back
    and dividing the energy of the remainder by the energy of the epoch.
    """
    power = signal.power
    total = power.sum(axis=-1)
    limit = (signal.settings.c0_ratio * total / signal.n_times)[..., np.newaxis]
    # The mean is over the two-sided bins, and most one-sided ones hold two of them.
    weak = power <= 2 * limit
    alone = sides(signal.n_times) == 1
    weak[..., alone] = power[..., alone] <= limit
    return power.sum(axis=-1, where=weak) / total


@register_feature("spectral_entropy")
def spectral_entropy(signal: EpochSignal) -> Array:
    """-sum p ln p (nats), p the one-sided power spectrum without bin 0, normalised to 1."""
    power = signal.power[..., 1:]
    shares = power / power.sum(axis=-1, keepdims=True)
    return -dot(shares, log_or_zero(shares))


def _band_names(prefix: str, settings: FeatureSettings) -> list[str]:
    return [f"{prefix}_{band}" for band in settings.bands]


@register_feature("de", outputs=partial(_band_names, "de"))
def differential_entropy(signal: EpochSignal) -> Array:
    """0.5 ln(2 pi e variance) per band: the entropy of a Gaussian of the band's variance."""
    variances = [signal.band_variance(band) for band in signal.settings.bands]
    return 0.5 * np.log(2 * math.pi * math.e * _stacked(variances, signal))


@register_feature("ap", outputs=partial(_band_names, "ap"))
def absolute_power(signal: EpochSignal) -> Array:
    """Integral of Welch's density per band."""
    return _stacked([signal.band_power(band) for band in signal.settings.bands], signal)


@register_feature("log_ap", outputs=partial(_band_names, "log_ap"))
def log_absolute_power(signal: EpochSignal) -> Array:
    """Natural logarithm of the absolute power per band: powers have heavy tails."""
    return np.log(absolute_power(signal))


def _ratio_name(settings: FeatureSettings) -> list[str]:
    return ["ap_beta_theta_ratio"] if {"beta", "theta"} <= set(settings.bands) else []


@register_feature("ap_beta_theta_ratio", outputs=_ratio_name)
def beta_theta_ratio(signal: EpochSignal) -> Array:
    """Absolute power of beta over that of theta."""
    return signal.band_power("beta") / signal.band_power("theta")


def _log_ratio_name(settings: FeatureSettings) -> list[str]:
    return [f"log_{name}" for name in _ratio_name(settings)]


@register_feature("log_ap_beta_theta_ratio", outputs=_log_ratio_name)
def log_beta_theta_ratio(signal: EpochSignal) -> Array:
    """Natural logarithm of the ratio of beta to theta."""
    return np.log(beta_theta_ratio(signal))


def _stacked(per_band: list[Array], signal: EpochSignal) -> Array:
    if not per_band:
        return np.empty((*signal.data.shape[:-1], 0))
    return np.stack(per_band, axis=-1)
