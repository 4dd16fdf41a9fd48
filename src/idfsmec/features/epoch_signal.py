"""The signal that feature functions see: spectra are computed on first use and then shared."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]


class EpochSignal:
    """Epochs of several channels with everything that more than one feature needs.

    A feature function receives one of these and reduces its last axis. Every derived quantity
    is computed when it is first asked for, for all epochs and channels at once, and kept, so
    that however many features use the spectrum there is one FFT and one Welch per epoch.

    Parameters
    ----------
    data : ndarray of shape (..., n_times)
        Finite and not flat; usually (n_epochs, n_channels, n_times).
    sfreq : float
        Sampling rate in Hz.
    settings : FeatureSettings, optional
        Bands and constants.
    missing : ndarray of bool, shape (...), optional
        Where ``data`` is a stand-in for a channel that is missing; default: nowhere. Only for
        features of several channels: what they return there is thrown away in any case.

    Examples
    --------
    A sine of amplitude 2 and 10 Hz has variance 2, all of it in the alpha band.

    >>> import numpy as np
    >>> from idfsmec.features import EpochSignal
    >>> t = np.arange(2500) / 250
    >>> epoch = EpochSignal(2 * np.sin(2 * np.pi * 10 * t), sfreq=250)
    >>> round(float(epoch.variance), 9), round(float(epoch.band_variance("alpha")), 9)
    (2.0, 2.0)
    """

    def __init__(
        self,
        data: Array,
        sfreq: float,
        settings: FeatureSettings | None = None,
        *,
        missing: NDArray[np.bool_] | None = None,
    ) -> None:
        self.data = np.asarray(data, dtype=np.float64)
        self.missing = np.zeros(self.data.shape[:-1], dtype=bool) if missing is None else missing
        self.sfreq = float(sfreq)
        if settings is None:
            from idfsmec.features.settings import FeatureSettings

            settings = FeatureSettings()
        self.settings = settings

    @property
    def n_times(self) -> int:
        """Samples per epoch."""
        return self.data.shape[-1]

    @cached_property
    def mean(self) -> Array:
        """Mean of each epoch, shape (...)."""
        return self.data.mean(axis=-1)

    @cached_property
    def centred(self) -> Array:
        """The epochs minus their means, shape (..., n_times)."""
        return self.data - self.mean[..., np.newaxis]

    @cached_property
    def variance(self) -> Array:
        """Population variance of each epoch, shape (...)."""
        return dot(self.centred, self.centred) / self.n_times

    @cached_property
    def frequencies(self) -> Array:
        """Frequencies of :attr:`power` in Hz, shape (n_times // 2 + 1,)."""
        return _frequencies(self.n_times, self.sfreq)

    @cached_property
    def power(self) -> Array:
        """One-sided power spectrum of the whole epoch, shape (..., n_times // 2 + 1).

        No window, no detrending; scaled so that by Parseval the sum over all bins is the mean
        square of the epoch, and the sum without bin 0 its population variance.
        """
        spectrum = _rfft(self.data)
        power = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        power *= sides(self.n_times) / self.n_times**2
        return power

    @property
    def _welch_samples(self) -> int:
        return min(round(self.settings.welch_window * self.sfreq), self.n_times)

    @cached_property
    def welch_frequencies(self) -> Array:
        """Frequencies of :attr:`psd` in Hz, shape (n_frequencies,)."""
        return _frequencies(self._welch_samples, self.sfreq)

    @cached_property
    def psd(self) -> Array:
        """Welch's power spectral density, in units squared per Hz, shape (..., n_frequencies).

        Equal to ``scipy.signal.welch(data, sfreq, nperseg=...)`` with its defaults (periodic Hann
        window, half overlap, each window's mean removed), at less than half the time.
        """
        samples = self._welch_samples
        hop = samples - samples // 2
        taper = _taper(samples)
        windows = sliding_window_view(self.data, samples, axis=-1)[..., ::hop, :]
        spectra = _rfft(windows * taper, overwrite_x=True)
        # A constant under this taper has a spectrum in bins 0 and 1 only, of n/2 and -n/4. So the
        # means are taken out there, and not from every sample.
        means = windows.mean(axis=-1) * samples
        spectra[..., 0] -= means / 2
        spectra[..., 1] += means / 4
        parts = spectra.view(np.float64)
        squares = np.einsum("...wk,...wk->...k", parts, parts)
        density = squares[..., ::2] + squares[..., 1::2]
        density *= sides(samples) / (self.sfreq * dot(taper, taper) * windows.shape[-2])
        return density

    def band_variance(self, band: str) -> Array:
        """Compute the population variance behind an ideal band-pass, shape (...).

        The ideal band-pass sets all FFT bins outside the band to zero; by Parseval the variance
        of what is left is the sum of :attr:`power` over the band, so no filter is run. Bin 0 is
        the mean and never counts.
        """
        bins = self._bins(self.n_times, band)
        return self.power[..., max(bins.start, 1) : bins.stop].sum(axis=-1)

    def band_power(self, band: str) -> Array:
        """Integrate Welch's density over the band: sum of bins times their width, shape (...)."""
        bins = self._bins(self._welch_samples, band)
        width = self.welch_frequencies[1] - self.welch_frequencies[0]
        return self.psd[..., bins].sum(axis=-1) * width

    def _bins(self, n_times: int, band: str) -> slice:
        """Bins of a band in the spectrum of so many samples: lower edge in, upper edge out."""
        lower, upper = self.settings.bands[band]
        bins = _bins_between(n_times, self.sfreq, lower, upper)
        if bins is None:
            frequencies = _frequencies(n_times, self.sfreq)
            raise InputError(
                f"Band {band!r} ({lower:g}-{upper:g} Hz) has no place in the spectrum of epochs "
                f"of {self.n_times / self.sfreq:g} s at {self.sfreq:g} Hz (bins every "
                f"{frequencies[1]:g} Hz up to {frequencies[-1]:g} Hz): use longer epochs, "
                "a higher sampling rate or other bands."
            )
        return bins


def dot(a: Array, b: Array) -> Array:
    """Sum of products over the last axis, without an array of the products."""
    return np.einsum("...t,...t->...", a, b)


def log_or_zero(x: Array) -> Array:
    """Natural logarithm of what is not negative; of zero a finite number, so that 0 ln 0 = 0."""
    result = np.maximum(x, np.finfo(np.float64).tiny)
    return np.log(result, out=result)


# Blocks of epochs are small and many, and these are the same for all of them.


@cache
def sides(n_times: int) -> Array:
    """How many bins of the two-sided spectrum each one-sided bin stands for: 1 or 2."""
    counts = np.full(n_times // 2 + 1, 2.0)
    counts[0] = 1.0
    if n_times % 2 == 0:
        counts[-1] = 1.0
    return counts


@cache
def _frequencies(n_times: int, sfreq: float) -> Array:
    return np.fft.rfftfreq(n_times, 1 / sfreq).astype(np.float64)


# SciPy is slow to import, and not needed to name features.


def _rfft(data: Array, overwrite_x: bool = False) -> NDArray[np.complex128]:
    from scipy import fft

    return fft.rfft(data, axis=-1, overwrite_x=overwrite_x)


@cache
def _taper(n_times: int) -> Array:
    from scipy.signal import get_window

    return get_window("hann", n_times)


@cache
def _bins_between(n_times: int, sfreq: float, lower: float, upper: float) -> slice | None:
    frequencies = _frequencies(n_times, sfreq)
    # Bin frequencies are k * sfreq / n with rounding: an edge that is meant to coincide with
    # a bin must not fall on either side of it by chance.
    slack = 1e-9 * max(upper, 1.0)
    start, stop = np.searchsorted(frequencies, [lower - slack, upper - slack])
    if start == stop or upper > frequencies[-1] + slack:
        return None
    return slice(int(start), int(stop))
