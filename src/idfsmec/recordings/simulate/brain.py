"""One person's simulated EEG: 1/f background and rhythms, drawn as a spectrum, band by band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from idfsmec.recordings.simulate.scalp import Scalp

BANDS = {
    "delta": (1.0, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 13.0),
    "beta": (13.0, 30.0),
    "gamma": (30.0, 45.0),
}
# Between-subject standard deviations of the logarithm of band power. They add up to 0.6, so
# people of one group differ by a factor of about 1.8: skull and skin alike for all bands and
# channels, each band alike for all channels, and each band differently over the scalp.
_SD_PERSON, _SD_BAND, _SD_PLACE = 0.30, 0.27, 0.44
# Bands next to each other go together: correlation of their deviations.
_BANDS_ALIKE = 0.5
BETWEEN_SUBJECT_SD = float(np.sqrt(_SD_PERSON**2 + _SD_BAND**2 + _SD_PLACE**2))

# Root mean squares in microvolt of an average person.
_BACKGROUND_RMS = 8.0  # 1-45 Hz, at every electrode
_ALPHA_RMS = 11.0  # at the back of the head
_THETA_RMS = 2.5  # frontal midline
_BETA_RMS = 2.0  # central
_KNEE = 0.7  # Hz: the 1/f background levels off below


@dataclass(frozen=True)
class Traits:
    """What makes one person's EEG their own.

    ``deviation`` is the person's shift of log band power from the average, of shape
    (n_bands, n_channels), in the order of :data:`BANDS`; it holds the group's effect too.
    """

    exponent: float
    alpha_frequency: float
    alpha_width: float
    deviation: np.ndarray


def draw_traits(rng: np.random.Generator, scalp: Scalp, effect: np.ndarray) -> Traits:
    """Draw a person; ``effect`` (n_bands, n_channels) is in between-subject deviations."""
    order = np.arange(len(BANDS))
    over_bands = np.linalg.cholesky(_BANDS_ALIKE ** np.abs(order[:, None] - order))
    over_scalp = scalp.mixing(shared=0.0, reach=0.7)
    places = rng.standard_normal((len(BANDS), len(scalp.ch_names)))
    deviation = (
        _SD_PERSON * rng.standard_normal()
        + _SD_BAND * over_bands @ rng.standard_normal((len(BANDS), 1))
        + _SD_PLACE * over_bands @ places @ over_scalp.T
        + BETWEEN_SUBJECT_SD * effect
    )
    return Traits(
        exponent=float(np.clip(rng.normal(1.4, 0.12), 1.0, 1.8)),
        alpha_frequency=float(np.clip(rng.normal(10.1, 0.6), 9.2, 11.6)),
        alpha_width=float(rng.uniform(0.4, 0.6)),
        deviation=deviation,
    )


def draw_brain(
    rng: np.random.Generator, scalp: Scalp, traits: Traits, sfreq: float, n_times: int
) -> np.ndarray:
    """Draw the signals of all electrodes in microvolt, of shape (n_channels, n_times)."""
    n_padded = fft.next_fast_len(n_times + int(2 * sfreq), real=True)  # the two ends must differ
    frequencies = fft.rfftfreq(n_padded, 1 / sfreq)
    background, alpha = _power_spectra(scalp, traits, frequencies)
    # |X_k|^2 = S(f_k) * sfreq * n / 2 turns a one-sided density into Fourier coefficients.
    unit = np.sqrt(sfreq * n_padded / 2)

    mixed = _mixed_noise(rng, scalp.mixing(shared=0.2, reach=0.8), len(frequencies))
    signal = fft.irfft(mixed * np.sqrt(background) * unit, n_padded)[:, :n_times]

    band = slice(*np.searchsorted(frequencies, (5.0, 15.0)))
    spectrum = np.zeros((len(scalp.ch_names), len(frequencies)), dtype=complex)
    spectrum[:, band] = _mixed_noise(
        rng, scalp.mixing(shared=0.3, reach=1.2), band.stop - band.start
    )
    spectrum[:, band] *= np.sqrt(alpha[:, band]) * unit
    waxing = _slow_envelope(rng, sfreq, n_times)
    signal += fft.irfft(spectrum, n_padded)[:, :n_times] * waxing
    return signal


def _power_spectra(
    scalp: Scalp, traits: Traits, frequencies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One-sided densities (uV^2/Hz) of background and alpha, of shape (n_channels, n_freqs).

    The power of each band is brought to exactly the average person's times
    ``exp(deviation)``, so what groups differ by is known and not left to the draw.
    """
    average = np.add(*_template(scalp, frequencies, 1.4, 10.1, 0.5))
    background, alpha = _template(
        scalp, frequencies, traits.exponent, traits.alpha_frequency, traits.alpha_width
    )
    # Most of a person's deviations is a smooth curve over frequency, so no band has an edge ...
    centres = [np.log(np.sqrt(low * high)) for low, high in BANDS.values()]
    position = np.log(np.maximum(frequencies, 0.1))
    log_gain = np.array([np.interp(position, centres, row) for row in traits.deviation.T])
    # ... and what is then lacking in a band is small, and added in the middle of the band.
    power = (background + alpha) * np.exp(log_gain)
    for (low, high), deviation in zip(BANDS.values(), traits.deviation, strict=True):
        inside = slice(*np.searchsorted(frequencies, (low, high)))
        target = np.log(average[:, inside].sum(axis=1)) + deviation
        shape = _flat_top(frequencies[inside], low, high)
        log_gain[:, inside] += _reach(power[:, inside], shape, target)[:, None] * shape
    gain = np.exp(log_gain)
    return background * gain, alpha * gain


def _template(
    scalp: Scalp, frequencies: np.ndarray, exponent: float, alpha_frequency: float, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Background (with theta and beta bumps) and alpha densities before a person's deviations."""
    falling = 1.0 / (_KNEE**exponent + frequencies**exponent)
    falling[0] = 0.0
    in_band = (frequencies >= 1) & (frequencies < 45)
    step = frequencies[1]
    background = falling * _BACKGROUND_RMS**2 / (falling[in_band].sum() * step)
    to_fz, to_cz, to_poz = scalp.angles_to("Fz", "Cz", "POz").T
    theta = (_THETA_RMS * np.exp(-((to_fz / 35) ** 2))) ** 2
    beta = (_BETA_RMS * (0.4 + 0.6 * np.exp(-((to_cz / 60) ** 2)))) ** 2
    alpha = (_ALPHA_RMS * (0.3 + 0.7 * np.exp(-((to_poz / 60) ** 2)))) ** 2
    bumps = np.outer(theta, _bump(frequencies, 6.0, 0.8)) + np.outer(
        beta, _bump(frequencies, 19.0, 3.0)
    )
    return background + bumps, np.outer(alpha, _bump(frequencies, alpha_frequency, width))


def _bump(frequencies: np.ndarray, centre: float, width: float) -> np.ndarray:
    """Gaussian peak of area 1 over the frequency axis in Hz."""
    shape = np.exp(-0.5 * ((frequencies - centre) / width) ** 2)
    return shape / (shape.sum() * frequencies[1])


def _flat_top(frequencies: np.ndarray, low: float, high: float) -> np.ndarray:
    """1 in the middle of a band, 0 at its edges, so that a band's gain stays in the band."""
    edge = 0.4 * (high - low)
    distance = np.minimum(frequencies - low, high - frequencies)
    return np.sin(0.5 * np.pi * np.clip(distance / edge, 0, 1)) ** 2


def _reach(power: np.ndarray, shape: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve ``log sum(power * exp(u * shape)) = target`` for u in each row, by Newton's method."""
    u = np.zeros(len(power))
    for _ in range(12):
        weighted = power * np.exp(np.outer(u, shape))
        total = weighted.sum(axis=1)
        slope = (weighted * shape).sum(axis=1) / total
        u = np.clip(u - (np.log(total) - target) / slope, -3.0, 3.0)
    return u


def _mixed_noise(rng: np.random.Generator, mixing: np.ndarray, n_frequencies: int) -> np.ndarray:
    """Complex white noise of unit power, alike in electrodes that are near each other."""
    parts = rng.standard_normal((len(mixing), 2 * n_frequencies))
    return (mixing @ parts).view(complex) / np.sqrt(2)


def _slow_envelope(rng: np.random.Generator, sfreq: float, n_times: int) -> np.ndarray:
    """Waxing and waning over seconds, positive, with a mean square of 1."""
    n_padded = fft.next_fast_len(n_times + int(20 * sfreq), real=True)
    frequencies = fft.rfftfreq(n_padded, 1 / sfreq)
    keep = int(np.searchsorted(frequencies, 1.5))
    spectrum = np.zeros(len(frequencies), dtype=complex)
    noise = rng.standard_normal(2 * keep).view(complex)
    spectrum[:keep] = noise * np.exp(-0.5 * (frequencies[:keep] / 0.3) ** 2)
    wave = fft.irfft(spectrum, n_padded)[:n_times]
    envelope = np.exp(0.4 * wave / max(wave.std(), 1e-300))
    return envelope / np.sqrt((envelope**2).mean())
