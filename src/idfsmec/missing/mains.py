"""Mains: found as a narrow line in the spectrum, taken out as a sine that changes slowly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.missing._sines import Spans, hann, sines_around, subtract_sines

Array = NDArray[np.float64]

#: Frequencies of mains in Hz, looked for in this order.
MAINS_FREQUENCIES = (50.0, 60.0)

_ORDER = 3  # of the polynomials by which amplitude and phase change within a window
_WIDTH = 1.0  # Hz that are taken out at most: (order + 1) / window
_REACH = 0.6  # Hz: so far from its nominal frequency a line may lie
_BESIDE = (1.5, 6.0)  # Hz: what lies so far on either side is the floor that it stands out from
_EEG_BAND = (2.0, 40.0)
# A line stands out by more than chance gives so often: without and with a header that names this
# frequency, and where one was taken out before.
_CHANCE, _CHANCE_IF_NAMED, _CHANCE_IF_LEFT = 1e-9, 1e-4, 1e-3
_LEAST_RATIO = 3.0
# Below this share of the power of the EEG mains moves no feature, and is left where it is.
_LEAST_SHARE = 1e-5
_BLOCK_SAMPLES = 1_000_000
_LEAST_SAMPLES = 8
_MOST_WINDOWS = 64  # that are looked at, spread over the recording


@dataclass(frozen=True)
class Mains:
    """What :func:`remove_mains` took out.

    Parameters
    ----------
    lines : tuple of tuple of float
        Frequencies in Hz taken out of each channel, harmonics included; empty where there was
        none.
    rms : ndarray of shape (n_channels, n_windows) or (n_epochs, n_channels, n_windows)
        Root mean square of what was taken out around each of ``centres``.
    centres : ndarray of shape (n_windows,)
        Samples in the middle of the windows.
    """

    lines: tuple[tuple[float, ...], ...]
    rms: Array
    centres: Array

    @property
    def frequency(self) -> float | None:
        """Lowest frequency of the channel that has most of it; None if none was found."""
        if not any(self.lines):
            return None
        others = tuple(axis for axis in range(self.rms.ndim) if axis != self.rms.ndim - 2)
        return self.lines[int(np.mean(self.rms**2, axis=others).argmax())][0]


def remove_mains(
    data: NDArray[np.floating],
    sfreq: float,
    mains: float | str | None = "auto",
    *,
    named: float | None = None,
) -> tuple[NDArray[np.floating], Mains]:
    """Take mains and its harmonics out of signals, and leave everything else.

    Every channel counts for itself. In windows of 4 s that overlap by half, a sine whose amplitude
    changes linearly is fitted by weighted least squares and subtracted; as a polynomial of the
    third degree, where that leaves a line in the spectrum. So the notch is no wider than it has
    to be, 0.5 or 1 Hz, does not ring at the ends, and follows a frequency that drifts and an
    amplitude that changes slowly. Samples that are not finite do not count.

    Parameters
    ----------
    data : ndarray of shape (n_channels, n_times) or (n_epochs, n_channels, n_times)
        Stays as it is.
    sfreq : float
        Sampling rate in Hz.
    mains : {"auto", "off"}, float or None
        ``"auto"`` removes 50 or 60 Hz (or both) from the channels in whose spectrum they stand
        out, a number that frequency from all channels, ``"off"`` and None nothing.
    named : float, optional
        Frequency that a header names; a weaker line is enough there.

    Returns
    -------
    clean : ndarray of the shape of ``data``
        ``data`` itself where there is nothing to remove; channels without mains are the same to
        the bit.
    found : Mains

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eeg = rng.standard_normal((2, 2500))
    >>> hum = 50 * np.sin(2 * np.pi * 49.98 * np.arange(2500) / 250)
    >>> clean, found = remove_mains(eeg + hum, 250.0)
    >>> round(found.frequency, 2)
    49.98
    >>> bool(np.abs(clean - eeg).max() < 1)
    True
    >>> remove_mains(eeg, 250.0)[0] is eeg
    True
    """
    mains, data = checked_mains(mains), np.asarray(data)
    spans = Spans.of(data.shape[-1], sfreq)
    rms = np.zeros((*data.shape[:-1], len(spans.starts)))
    channels = np.moveaxis(data, -2, 0).reshape(data.shape[-2], -1, data.shape[-1])
    lines: list[tuple[float, ...]] = [()] * len(channels)
    if mains is not None and spans.length >= _LEAST_SAMPLES and channels.size:
        lines = _find_lines(channels, sfreq, mains, named, spans)
    clean = data
    for channel, frequencies in enumerate(lines):
        if frequencies:
            if clean is data:
                clean = data.astype(np.result_type(data, np.float32))
            series, sizes = _take_out(channels[channel], frequencies, sfreq, spans)
            clean[..., channel, :] = series.reshape(clean[..., channel, :].shape)
            rms[..., channel, :] = sizes.reshape(rms[..., channel, :].shape)
    return clean, Mains(tuple(lines), rms, spans.centres)


def checked_mains(mains: float | str | None) -> float | str | None:
    """Give ``"auto"``, a frequency in Hz, or None; refuse everything else.

    Examples
    --------
    >>> checked_mains("auto"), checked_mains("50"), checked_mains("off")
    ('auto', 50.0, None)
    """
    if mains is None or mains in ("auto", "off"):
        return "auto" if mains == "auto" else None
    try:
        frequency = float(mains)
    except (TypeError, ValueError):
        frequency = 0.0
    if not 1 < frequency < np.inf:
        raise InputError(f"mains is {mains!r}; give auto, off, or a frequency in Hz such as 50.")
    return frequency


def _find_lines(
    channels: NDArray[np.floating],
    sfreq: float,
    mains: float | str,
    named: float | None,
    spans: Spans,
) -> list[tuple[float, ...]]:
    """Frequencies to take out of each channel, harmonics included."""
    wanted: tuple[float, ...] = MAINS_FREQUENCIES if mains == "auto" else (float(mains),)
    if mains == "auto" and named and named not in wanted:
        wanted = (*wanted, float(named))
    wanted = tuple(frequency for frequency in wanted if _fits(frequency, sfreq))
    lines: list[list[float]] = [[] for _ in channels]
    step = max(1, _BLOCK_SAMPLES // channels[0].size)
    for start in range(0, len(channels) if wanted else 0, step):
        block = channels[start : start + step]
        spectrum = _Spectrum.of(block, sfreq, spans)
        for nominal in wanted:
            chance = _CHANCE_IF_NAMED if nominal == named else _CHANCE
            seen = spectrum.stands_out(nominal, chance)
            for row in range(len(block)):
                if mains == "auto" and not seen[row]:
                    continue
                frequency = nominal
                if seen[row]:
                    frequency = _refined(block[row], spectrum.peak(nominal, row), sfreq, spans)
                lines[start + row] += [
                    frequency,
                    *_harmonics(frequency, sfreq, lines[start + row], spectrum, row),
                ]
    return [tuple(found) for found in lines]


def _harmonics(
    frequency: float, sfreq: float, known: list[float], spectrum: _Spectrum, row: int
) -> list[float]:
    multiples = (float(one) for one in np.arange(2, int(sfreq / 2 / frequency) + 1) * frequency)
    return [
        one
        for one in multiples
        if _fits(one, sfreq)
        and all(abs(one - other) > _WIDTH for other in known)
        and spectrum.stands_out(one, _CHANCE)[row]
    ]


def _fits(frequency: float, sfreq: float) -> bool:
    return 1.0 < frequency < sfreq / 2 - 1.0


@dataclass(frozen=True)
class _Spectrum:
    """Power of each channel in each of its windows, and how lines stand out of it."""

    power: NDArray[np.float32]
    """Shape (n_channels, n_windows, n_frequencies)."""
    frequencies: Array

    @classmethod
    def of(cls, channels: NDArray[np.floating], sfreq: float, spans: Spans) -> _Spectrum:
        from scipy import fft

        apart = spans.starts[::2]  # those that do not overlap
        most = max(1, _MOST_WINDOWS // channels.shape[1])
        windows = Spans(apart[:: -(-len(apart) // most)], spans.length).cut(channels)
        taper = hann(spans.length)
        coefficients = fft.rfft(windows * taper)
        power = np.square(coefficients.real) + np.square(coefficients.imag)
        power = power.reshape(len(channels), -1, power.shape[-1])
        return cls(power, fft.rfftfreq(spans.length, 1 / sfreq))

    def _near(self, frequency: float, low: float, high: float) -> NDArray[np.bool_]:
        away = np.abs(self.frequencies - frequency)
        return (away >= low) & (away <= high)

    def _line(self, frequency: float) -> NDArray[np.bool_]:
        return self._near(frequency, 0.0, max(_REACH, 0.75 * self.frequencies[1]))

    def stands_out(
        self, frequency: float, chance: float, least: float = _LEAST_RATIO
    ) -> NDArray[np.bool_]:
        """Tell in which channels there is a line that is large enough to matter."""
        from scipy.stats import chi2

        beside = self._near(frequency, *_BESIDE)
        if beside.sum() < 4:
            return np.zeros(len(self.power), dtype=bool)
        # Each window by its own floor: a pop is large, but it is no line.
        floor = np.median(self.power[..., beside], axis=-1) / np.log(2)
        line = self.power[..., self._line(frequency)]
        eeg = self.power[..., slice(*np.searchsorted(self.frequencies, _EEG_BAND))].sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(floor[..., None] > 0, line / floor[..., None], 0.0).mean(axis=1)
            share = np.nan_to_num(line.sum(axis=-1) / eeg).mean(axis=1)
        freedom = 2 * self.power.shape[1]
        limit = max(least, chi2.isf(chance, freedom) / freedom)
        return (ratio.max(axis=-1) > limit) & (share > _LEAST_SHARE)

    def peak(self, frequency: float, row: int) -> float:
        """The bin of a channel's largest power near a frequency."""
        near = self._line(frequency)
        return float(self.frequencies[near][self.power[row][:, near].sum(axis=0).argmax()])


def _refined(series: NDArray[np.floating], frequency: float, sfreq: float, spans: Spans) -> float:
    """Follow the phase from window to window: exact to some thousandths of a hertz."""
    hops = np.diff(spans.starts)
    if not len(hops):
        return frequency
    angles = 2 * np.pi * frequency * np.arange(spans.length) / sfreq
    taper = hann(spans.length)
    windows = spans.cut(series)
    turned = windows @ (taper * np.cos(angles)) - 1j * (windows @ (taper * np.sin(angles)))
    steps = turned[:, 1:] * turned[:, :-1].conj()
    steps *= np.exp(-2j * np.pi * frequency * hops / sfreq)
    return frequency + float(np.angle(steps.sum())) / (2 * np.pi * float(hops.mean()) / sfreq)


def _take_out(
    series: NDArray[np.floating], lines: tuple[float, ...], sfreq: float, spans: Spans
) -> tuple[Array, Array]:
    """Fit and subtract sines; give them room to change only where steady ones are not enough."""
    most = max(0, min(_ORDER, round(_WIDTH * spans.length / sfreq) - 1))
    for order in sorted({min(1, most), most}):
        sines = sines_around(spans.length, sfreq, lines, order)
        clean, rms = subtract_sines(series, sines, spans)
        left = _Spectrum.of(clean[np.newaxis], sfreq, spans)
        if not any(left.stands_out(line, _CHANCE_IF_LEFT, least=1.0)[0] for line in lines):
            break
    return clean, rms
