"""Features that people expect beside the paper's, by adapters to the libraries that have them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.features._libraries import library
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.registry import register_feature

Array = NDArray[np.float64]

#: Hz: where the individual alpha peak is looked for.
ALPHA_PEAK = (7.0, 14.0)
_PERMUTATION_ORDER = 3


def _each(signal: EpochSignal, function: Any) -> Array:
    """Apply a function of one epoch of one channel to all of them."""
    rows = signal.data.reshape(-1, signal.n_times)
    return np.array([function(row) for row in rows], dtype=float).reshape(signal.data.shape[:-1])


@register_feature("hjorth", outputs=["hjorth_mobility", "hjorth_complexity"])
def hjorth(signal: EpochSignal) -> Array:
    """Mobility (of a sample, not of a second) and complexity of Hjorth, by antropy."""
    return np.stack(library("antropy", "spectra").hjorth_params(signal.data, axis=-1), axis=-1)


@register_feature("lempel_ziv")
def lempel_ziv(signal: EpochSignal) -> Array:
    """Lempel-Ziv complexity of the signs around the mean, normalised, by antropy."""
    complexity = partial(library("antropy", "spectra").lziv_complexity, normalize=True)
    return _each(signal, lambda row: complexity(row > row.mean()))


@register_feature("permutation_entropy")
def permutation_entropy(signal: EpochSignal) -> Array:
    """Permutation entropy of order 3 and delay 1, in bits, normalised, by antropy."""
    entropy = library("antropy", "spectra").perm_entropy
    return _each(signal, partial(entropy, order=_PERMUTATION_ORDER, delay=1, normalize=True))


@register_feature("aperiodic", outputs=["aperiodic_exponent", "aperiodic_offset", "alpha_peak"])
def aperiodic(signal: EpochSignal) -> Array:
    """Exponent and offset of the aperiodic spectrum, and the alpha peak's frequency, by specparam.

    Of Welch's density between the outer edges of the bands; the peak is the highest one at 7 to
    14 Hz. Where the model finds none, it is the centre of gravity of what the aperiodic spectrum
    leaves there: no peak is no reason to take the channel for missing. NaN where the model does
    not fit.
    """
    model = library("specparam", "spectra").SpectralGroupModel(
        peak_width_limits=(2 * signal.welch_frequencies[1], 12.0), max_n_peaks=6, verbose=False
    )
    edges = list(signal.settings.bands.values())
    span = [min(low for low, _ in edges), max(high for _, high in edges)]
    psd = signal.psd.reshape(-1, signal.psd.shape[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(signal.welch_frequencies, psd, freq_range=span)
    offset, exponent = np.asarray(model.get_params("aperiodic"), dtype=float).T[:2]
    peaks = _alpha_peaks(model, len(psd))
    centres = _alpha_centres(signal.welch_frequencies, psd, exponent)
    values = np.column_stack([exponent, offset, np.where(np.isnan(peaks), centres, peaks)])
    return values.reshape(*signal.data.shape[:-1], 3)


def _alpha_peaks(model: Any, n_spectra: int) -> Array:
    """Centre of the highest peak in the alpha range of each spectrum."""
    found = np.full(n_spectra, np.nan)
    heights = np.zeros(n_spectra)
    peaks = np.asarray(model.get_params("peak"), dtype=float).reshape(-1, 4)
    for centre, height, _, index in peaks:
        inside = ALPHA_PEAK[0] <= centre <= ALPHA_PEAK[1]
        if np.isfinite(index) and inside and height > heights[int(index)]:
            found[int(index)], heights[int(index)] = centre, height
    return found


def _alpha_centres(frequencies: Array, psd: Array, exponent: Array) -> Array:
    """Mean frequency in the alpha range, weighted by power over the aperiodic spectrum.

    A spectrum that is all aperiodic has the middle of the range.
    """
    inside = (frequencies >= ALPHA_PEAK[0]) & (frequencies <= ALPHA_PEAK[1])
    where = frequencies[inside]
    weights = psd[:, inside] * where ** exponent[:, np.newaxis]
    return weights @ where / weights.sum(axis=1)
