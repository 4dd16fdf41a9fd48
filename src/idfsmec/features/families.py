"""Features: the registry, the signal that feature functions see, and the package's own features.

SciPy and optional libraries are imported where they are used: naming features must not wait.
"""

from __future__ import annotations

import importlib
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.table.columns import SEPARATOR

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

Array = NDArray[np.float64]
FeatureFunction: TypeAlias = "Callable[[EpochSignal], Array]"
OutputNames: TypeAlias = "Sequence[str] | Callable[[FeatureSettings], Sequence[str]]"

DEFAULT_FEATURES = (
    *("mean", "variance", "nsi", "hoc", "c0", "spectral_entropy", "shannon_entropy"),
    *("de", "ap", "ap_beta_theta_ratio"),
)
"""The ten features that the paper names: 18 columns with five bands."""

_LOG_FEATURES = tuple(
    f"log_{name}" if name in ("variance", "ap", "ap_beta_theta_ratio") else name
    for name in DEFAULT_FEATURES
)

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "paper": DEFAULT_FEATURES,
    "log": _LOG_FEATURES,
    "extended": (*_LOG_FEATURES, *("hjorth", "lempel_ziv", "permutation_entropy", "aperiodic")),
}
"""Sets of features by name: the paper's, the same with logarithms of powers and variance, and with
those of the libraries of the extra ``spectra`` as well."""

# Functions of mne-features are asked for as <family>:<name>, as their columns are called.
_MNE_FAMILY = "mne_features:"
_PROBE_RATE = 250.0  # Hz, to count outputs where settings keep each recording's rate
_ALPHA_PEAK = (7.0, 14.0)  # Hz: where the individual alpha peak is looked for
# mne-connectivity turns MNE's messages, which all threads share, off and on again.
_MNE_MESSAGES = Lock()


# --- the registry ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """A named function of an :class:`EpochSignal`, and the names of what it returns.

    Parameters
    ----------
    name : str
        How the feature is asked for.
    function : callable
        Takes an :class:`EpochSignal` of shape (n_epochs, n_channels, n_times), some epochs of the
        recording with all of its channels (``signal.missing`` says which are missing), and
        returns an array of shape (n_epochs, n_channels) for one output or (n_epochs, n_channels,
        n_outputs) for several. Every epoch counts for itself.
    outputs : sequence of str, or callable, optional
        Column names, or a function from :class:`FeatureSettings` to column names for features
        whose outputs depend on the bands. Default: one output, called as the feature.
    of_pairs : bool
        Whether tables get right minus left of frontal pairs of electrodes, as blocks of their own
        (``F4-F3__<output>``), and not the channels' values.
    """

    name: str
    function: FeatureFunction = field(repr=False)
    outputs: OutputNames | None = field(default=None, repr=False)
    of_pairs: bool = False

    def columns(self, settings: FeatureSettings) -> list[str]:
        """Names of the outputs under these settings."""
        if self.outputs is None:
            return [self.name]
        names = self.outputs(settings) if callable(self.outputs) else self.outputs
        return list(names)

    def compute(self, signal: EpochSignal) -> NDArray[np.float64]:
        """Evaluate the function; always (..., n_outputs)."""
        n_outputs = len(self.columns(signal.settings))
        values = np.asarray(self.function(signal), dtype=np.float64)
        shape = (*signal.data.shape[:-1], n_outputs)
        if n_outputs == 1 and values.shape == shape[:-1]:
            values = values[..., np.newaxis]
        if values.shape != shape:
            raise InputError(
                f"Feature {self.name!r} returned shape {values.shape} instead of {shape}: one "
                "value per epoch, channel and named output."
            )
        return values


FEATURES: dict[str, Feature] = {}
"""The package's features, and those that ``register_feature`` adds, by name."""


def register_feature(
    name: str,
    *,
    outputs: OutputNames | None = None,
    of_pairs: bool = False,
    overwrite: bool = False,
) -> Callable[[FeatureFunction], FeatureFunction]:
    """Register the decorated function as a feature of this name.

    Parameters
    ----------
    name : str
        The feature's name.
    outputs : sequence of str or callable, optional
    of_pairs : bool
        See :class:`Feature`.
    overwrite : bool
        Replace a feature of that name (running a notebook cell twice).

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import FEATURES, register_feature
    >>> @register_feature("line_length")
    ... def line_length(signal):
    ...     return np.abs(np.diff(signal.data)).mean(axis=-1)
    >>> FEATURES.pop("line_length").name
    'line_length'
    """
    check_name(name, "feature")
    if name in FEATURES and not overwrite:
        raise InputError(f"Feature {name!r} exists already; pass overwrite=True to replace it.")

    def add(function: FeatureFunction) -> FeatureFunction:
        FEATURES[name] = Feature(name, function, outputs, of_pairs)
        return function

    return add


def find_features(features: str | Iterable[str | Feature]) -> tuple[Feature, ...]:
    """Turn names, or the name of one of :data:`FEATURE_SETS`, into features."""
    if isinstance(features, str):
        features = FEATURE_SETS.get(features, [features])
    return tuple(f if isinstance(f, Feature) else _find_feature(f) for f in features)


def _find_feature(name: str) -> Feature:
    if name in FEATURES:
        return FEATURES[name]
    if name.startswith(_MNE_FAMILY):
        return _mne_feature(name.removeprefix(_MNE_FAMILY))
    raise InputError(f"There is no feature {name!r}; there are: {', '.join(FEATURES)}.")


def features_giving(columns: Iterable[str], settings: FeatureSettings) -> list[str]:
    """Name the features that give these columns; columns that none gives are left out."""
    given_by = {
        column: name for name, feature in FEATURES.items() for column in feature.columns(settings)
    }
    names: dict[str, None] = {}
    for column in columns:
        if column in given_by:
            names[given_by[column]] = None
        elif column.startswith(_MNE_FAMILY):
            function = column.removeprefix(_MNE_FAMILY)
            several = function not in _mne_functions(_PROBE_RATE)
            names[re.sub(r"_\d+$", "", column) if several else column] = None
    return list(names)


def check_name(name: str, kind: str) -> None:
    """Refuse names that would make ``<channel>__<feature>`` ambiguous or unreadable."""
    if not isinstance(name, str) or not name or SEPARATOR in name or name != name.strip():
        raise InputError(
            f"{name!r} cannot name a {kind}: use a non-empty text without a double underscore, "
            "which separates channel and feature in a table's columns."
        )
    if name.startswith("_") or name.endswith("_"):
        raise InputError(f"{name!r} cannot name a {kind}: it must not start or end with '_'.")


# --- the signal ------------------------------------------------------------------------------


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
        n_times: int = self.data.shape[-1]
        return n_times

    @cached_property
    def mean(self) -> Array:
        """Mean of each epoch, shape (...)."""
        mean: Array = self.data.mean(axis=-1)
        return mean

    @cached_property
    def centred(self) -> Array:
        """The epochs minus their means, shape (..., n_times)."""
        return self.data - self.mean[..., np.newaxis]

    @cached_property
    def variance(self) -> Array:
        """Population variance of each epoch, shape (...)."""
        return _dot(self.centred, self.centred) / self.n_times

    @cached_property
    def frequencies(self) -> NDArray[np.floating]:
        """Frequencies of :attr:`power` in Hz, shape (n_times // 2 + 1,)."""
        return np.fft.rfftfreq(self.n_times, 1 / self.sfreq)

    @cached_property
    def power(self) -> Array:
        """One-sided power spectrum of the whole epoch, shape (..., n_times // 2 + 1).

        No window, no detrending; scaled so that by Parseval the sum over all bins is the mean
        square of the epoch, and the sum without bin 0 its population variance.
        """
        from scipy import fft

        spectrum = fft.rfft(self.data)
        power: Array = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        power *= _sides(self.n_times) / self.n_times**2
        return power

    @property
    def _welch_samples(self) -> int:
        return min(round(self.settings.welch_window * self.sfreq), self.n_times)

    @cached_property
    def welch_frequencies(self) -> NDArray[np.floating]:
        """Frequencies of :attr:`psd` in Hz, shape (n_frequencies,)."""
        return np.fft.rfftfreq(self._welch_samples, 1 / self.sfreq)

    @cached_property
    def psd(self) -> Array:
        """Welch's power spectral density, in units squared per Hz, shape (..., n_frequencies).

        As by ``scipy.signal.welch`` with its defaults: periodic Hann window, half overlap, each
        window's mean removed.
        """
        size = self._welch_samples
        windows = sliding_window_view(self.data, size, axis=-1)[..., :: size - size // 2, :]
        centred = windows - windows.mean(axis=-1, keepdims=True)
        density: Array = window_powers(centred, self.sfreq).mean(axis=-2)
        return density

    def band_variance(self, band: str) -> Array:
        """Compute the population variance behind an ideal band-pass, shape (...).

        The ideal band-pass sets all FFT bins outside the band to zero; by Parseval the variance
        of what is left is the sum of :attr:`power` over the band, so no filter is run. Bin 0 is
        the mean and never counts.
        """
        bins = self._bins(self.frequencies, band)
        variance: Array = self.power[..., max(bins.start, 1) : bins.stop].sum(axis=-1)
        return variance

    def band_power(self, band: str) -> Array:
        """Integrate Welch's density over the band: sum of bins times their width, shape (...)."""
        bins = self._bins(self.welch_frequencies, band)
        width = self.welch_frequencies[1] - self.welch_frequencies[0]
        power: Array = self.psd[..., bins].sum(axis=-1) * width
        return power

    def _bins(self, frequencies: NDArray[np.floating], band: str) -> slice:
        """Bins of a band in a spectrum: lower edge in, upper edge out."""
        lower, upper = self.settings.bands[band]
        # Bin frequencies are k * sfreq / n with rounding: an edge that is meant to coincide with
        # a bin must not fall on either side of it by chance.
        slack = 1e-9 * max(upper, 1.0)
        start, stop = np.searchsorted(frequencies, [lower - slack, upper - slack])
        if start == stop or upper > frequencies[-1] + slack:
            raise InputError(
                f"Band {band!r} ({lower:g}-{upper:g} Hz) has no bin in the spectrum of epochs of "
                f"{self.n_times / self.sfreq:g} s at {self.sfreq:g} Hz (bins every "
                f"{frequencies[1]:g} Hz up to {frequencies[-1]:g} Hz): use longer epochs, a "
                "higher sampling rate or other bands."
            )
        return slice(int(start), int(stop))


def _dot(a: Array, b: Array) -> Array:
    """Sum of products over the last axis, without an array of the products."""
    products: Array = np.einsum("...t,...t->...", a, b)
    return products


def _log_or_zero(x: Array) -> Array:
    """Natural logarithm of what is not negative; of zero a finite number, so that 0 ln 0 = 0."""
    result = np.maximum(x, np.finfo(np.float64).tiny)
    return np.log(result, out=result)


def _sides(n_times: int) -> Array:
    """Count the bins of the two-sided spectrum that each one-sided bin stands for: 1 or 2."""
    counts = np.full(n_times // 2 + 1, 2.0)
    counts[0] = 1.0
    if n_times % 2 == 0:
        counts[-1] = 1.0
    return counts


def window_powers(windows: Array, sfreq: float) -> Array:
    """Power per hertz, one-sided, of windows (..., n_times) with a periodic Hann taper."""
    from scipy import fft

    size = windows.shape[-1]
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    spectrum = fft.rfft(windows * taper)
    power: Array = np.square(spectrum.real)
    power += np.square(spectrum.imag)
    power *= _sides(size) / (sfreq * (taper @ taper))
    return power


def _band_outputs(prefix: str, settings: FeatureSettings) -> list[str]:
    return [f"{prefix}_{band}" for band in settings.bands]


def _stack_bands(compute: Callable[[str], Array], signal: EpochSignal) -> Array:
    """Compute an array of each band, (..., n_bands)."""
    return np.stack([compute(band) for band in signal.settings.bands], axis=-1)


# --- of the signal ---------------------------------------------------------------------------


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
    index: Array = means.std(axis=-1) / np.sqrt(signal.variance)
    return index


def _crossing_outputs(settings: FeatureSettings) -> list[str]:
    if settings.hoc_orders == 1:
        return ["hoc"]
    return [f"hoc_{order}" for order in range(1, settings.hoc_orders + 1)]


@register_feature("hoc", outputs=_crossing_outputs)
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
    entropy: Array = np.log(total) - _dot(magnitude, _log_or_zero(magnitude)) / total
    return entropy


# --- of the spectra --------------------------------------------------------------------------


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
    single = _sides(signal.n_times) == 1
    weak[..., single] = power[..., single] <= limit
    share: Array = power.sum(axis=-1, where=weak) / total
    return share


@register_feature("spectral_entropy")
def spectral_entropy(signal: EpochSignal) -> Array:
    """-sum p ln p (nats), p the one-sided power spectrum without bin 0, normalised to 1."""
    power = signal.power[..., 1:]
    shares = power / power.sum(axis=-1, keepdims=True)
    return -_dot(shares, _log_or_zero(shares))


@register_feature("de", outputs=partial(_band_outputs, "de"))
def differential_entropy(signal: EpochSignal) -> Array:
    """0.5 ln(2 pi e variance) per band: the entropy of a Gaussian of the band's variance."""
    return 0.5 * np.log(2 * math.pi * math.e * _stack_bands(signal.band_variance, signal))


@register_feature("ap", outputs=partial(_band_outputs, "ap"))
def absolute_power(signal: EpochSignal) -> Array:
    """Integral of Welch's density per band."""
    return _stack_bands(signal.band_power, signal)


@register_feature("log_ap", outputs=partial(_band_outputs, "log_ap"))
def log_absolute_power(signal: EpochSignal) -> Array:
    """Natural logarithm of the absolute power per band: powers have heavy tails."""
    return np.log(absolute_power(signal))


def _output_if(bands: set[str], name: str, settings: FeatureSettings) -> list[str]:
    """Name the output of a feature that needs these bands."""
    return [name] if bands <= set(settings.bands) else []


_of_ratio = partial(_output_if, {"beta", "theta"})


@register_feature("ap_beta_theta_ratio", outputs=partial(_of_ratio, "ap_beta_theta_ratio"))
def beta_theta_ratio(signal: EpochSignal) -> Array:
    """Absolute power of beta over that of theta."""
    return signal.band_power("beta") / signal.band_power("theta")


@register_feature("log_ap_beta_theta_ratio", outputs=partial(_of_ratio, "log_ap_beta_theta_ratio"))
def log_beta_theta_ratio(signal: EpochSignal) -> Array:
    """Natural logarithm of the ratio of beta to theta."""
    return np.log(beta_theta_ratio(signal))


# --- of libraries that only some features need, imported when one is computed ----------------


def _library(name: str, extra: str) -> Any:
    """Import a module, or say which extra of this package brings it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"This feature needs the package {name.partition('.')[0]}, which is not installed: "
            f"pip install 'idfsmec[{extra}]'."
        ) from None


def _apply_to_rows(function: Callable[[Array], Any], signal: EpochSignal) -> Array:
    """Apply a function of one epoch of one channel to all of them."""
    rows = signal.data.reshape(-1, signal.n_times)
    return np.array([function(row) for row in rows], dtype=float).reshape(signal.data.shape[:-1])


@register_feature("hjorth", outputs=["hjorth_mobility", "hjorth_complexity"])
def hjorth(signal: EpochSignal) -> Array:
    """Mobility (of a sample, not of a second) and complexity of Hjorth, by antropy."""
    return np.stack(_library("antropy", "spectra").hjorth_params(signal.data, axis=-1), axis=-1)


@register_feature("lempel_ziv")
def lempel_ziv(signal: EpochSignal) -> Array:
    """Lempel-Ziv complexity of the signs around the mean, normalised, by antropy."""
    complexity = partial(_library("antropy", "spectra").lziv_complexity, normalize=True)
    return _apply_to_rows(lambda row: complexity(row > row.mean()), signal)


@register_feature("permutation_entropy")
def permutation_entropy(signal: EpochSignal) -> Array:
    """Permutation entropy of order 3 and delay 1, in bits, normalised, by antropy."""
    entropy = _library("antropy", "spectra").perm_entropy
    return _apply_to_rows(partial(entropy, order=3, delay=1, normalize=True), signal)


@register_feature("aperiodic", outputs=["aperiodic_exponent", "aperiodic_offset", "alpha_peak"])
def aperiodic(signal: EpochSignal) -> Array:
    """Exponent and offset of the aperiodic spectrum, and the alpha peak's frequency, by specparam.

    Of Welch's density between the outer edges of the bands; the peak is the highest one at 7 to
    14 Hz or, without any, the centre of gravity of what the aperiodic spectrum leaves there. NaN
    where the model does not fit.
    """
    model = _library("specparam", "spectra").SpectralGroupModel(
        peak_width_limits=(2 * signal.welch_frequencies[1], 12.0), max_n_peaks=6, verbose=False
    )
    edges = list(signal.settings.bands.values())
    span = [min(low for low, _ in edges), max(high for _, high in edges)]
    psd = signal.psd.reshape(-1, signal.psd.shape[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(signal.welch_frequencies, psd, freq_range=span)
    offset, exponent = np.asarray(model.get_params("aperiodic"), dtype=float).T[:2]
    # Frequencies of the alpha range, weighted by power over the aperiodic spectrum.
    frequencies = signal.welch_frequencies
    inside = (frequencies >= _ALPHA_PEAK[0]) & (frequencies <= _ALPHA_PEAK[1])
    weights = psd[:, inside] * frequencies[inside] ** exponent[:, np.newaxis]
    alpha = weights @ frequencies[inside] / weights.sum(axis=1)
    heights = np.zeros(len(psd))
    peaks = np.asarray(model.get_params("peak"), dtype=float).reshape(-1, 4)
    for centre, height, _, index in peaks[np.isfinite(peaks[:, 3])]:
        if _ALPHA_PEAK[0] <= centre <= _ALPHA_PEAK[1] and height > heights[int(index)]:
            alpha[int(index)], heights[int(index)] = centre, height
    return np.column_stack([exponent, offset, alpha]).reshape(*signal.data.shape[:-1], 3)


def _mne_feature(name: str) -> Feature:
    """Make a feature of a univariate function of mne-features, with the defaults it has there."""
    known = _mne_functions(_PROBE_RATE)
    if name not in known:
        pairs = _library("mne_features.bivariate", "spectra").get_bivariate_funcs(_PROBE_RATE)
        what = "is a function of pairs of channels" if name in pairs else "does not exist"
        raise InputError(
            f"{_MNE_FAMILY}{name} {what}; of single channels there are: {', '.join(known)}."
        )
    return Feature(
        f"{_MNE_FAMILY}{name}", partial(_compute_mne, name), partial(_mne_outputs, name)
    )


def _mne_functions(sfreq: float) -> dict[str, Any]:
    functions: dict[str, Any] = _library(
        "mne_features.univariate", "spectra"
    ).get_univariate_funcs(sfreq)
    return functions


def _compute_mne(name: str, signal: EpochSignal) -> Array:
    function = _mne_functions(signal.sfreq)[name]
    rows = signal.data.reshape(-1, 1, signal.n_times)
    values = np.array([np.ravel(function(row)) for row in rows], dtype=float)
    return values.reshape(*signal.data.shape[:-1], -1)


def _mne_outputs(name: str, settings: FeatureSettings) -> list[str]:
    """Name the values, which are counted on an epoch of noise."""
    rate, column = settings.rate(_PROBE_RATE), f"{_MNE_FAMILY}{name}"
    noise = np.random.default_rng(0).standard_normal((1, round(settings.epoch * rate)))
    try:
        count = np.size(_mne_functions(rate)[name](noise))
    except Exception as error:
        raise InputError(
            f"{column} fails on {settings.epoch:g} s of noise at {rate:g} Hz: {error}"
        ) from error
    return [column] if count == 1 else [f"{column}_{i}" for i in range(1, count + 1)]


# --- of several channels ---------------------------------------------------------------------


@register_feature("wpli", outputs=partial(_band_outputs, "wpli"))
def wpli(signal: EpochSignal) -> Array:
    """Weighted phase lag index of each band, mean over the other channels that are there."""
    return _connectivity_strength(signal, "wpli")


@register_feature("coherence", outputs=partial(_band_outputs, "coherence"))
def coherence(signal: EpochSignal) -> Array:
    """Coherence (its size, not squared) of each band, mean over the other channels there."""
    return _connectivity_strength(signal, "coh")


def _connectivity_strength(signal: EpochSignal, method: str) -> Array:
    """Average over pairs of which both channels are there; NaN where there is none."""
    connectivity = _library("mne_connectivity", "connectivity").spectral_connectivity_epochs
    bands = list(signal.settings.bands)
    for band in bands:
        signal.band_power(band)  # raises where a band has no place in the spectrum
    samples = round(signal.sfreq / signal.welch_frequencies[1])
    # Cut as Welch does: (n_epochs, n_channels, n_windows, n_samples).
    cut = sliding_window_view(signal.data, samples, axis=-1)[:, :, :: samples - samples // 2]
    if cut.shape[2] < 2:
        raise InputError(
            f"Connectivity needs several of Welch's windows ({samples / signal.sfreq:g} s) in an "
            f"epoch of {signal.n_times / signal.sfreq:g} s: use longer epochs or shorter windows."
        )
    lower, upper = np.array([signal.settings.bands[band] for band in bands]).reshape(-1, 2).T
    slack = 1e-6  # Hz: the lower edge belongs to a band, the upper one does not
    options = {
        "method": method,
        "mode": "fourier",
        "sfreq": signal.sfreq,
        "fmin": tuple(np.maximum(lower - slack, 0.0)),
        "fmax": tuple(upper - slack),
        "faverage": True,
        "verbose": "ERROR",
    }
    values = np.full((*signal.data.shape[:2], len(bands)), np.nan)
    for epoch, windows in enumerate(cut.swapaxes(1, 2)):
        present = np.flatnonzero(~signal.missing[epoch])
        if len(present) < 2:
            continue
        with _MNE_MESSAGES:
            pairs = connectivity(windows[:, present], **options).get_data("dense")
        # The library fills the lower triangle.
        values[epoch, present] = (pairs.sum(axis=0) + pairs.sum(axis=1)) / (len(present) - 1)
    return values


@register_feature(
    "alpha_asymmetry", outputs=partial(_output_if, {"alpha"}, "alpha_asymmetry"), of_pairs=True
)
def alpha_asymmetry(signal: EpochSignal) -> Array:
    """Natural logarithm of the power in alpha, of which right minus left is taken."""
    return np.log(signal.band_power("alpha"))
