"""Remove line noise: found as a narrow line in the spectrum, subtracted as a slowly changing sine.

Sines times polynomials of time are fitted in windows of 4 s that overlap by half. So the notch is
no wider than it has to be, 0.5 or 1 Hz, does not ring at the ends, and follows a line that drifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft
from scipy.special import chdtri

from idfsmec.errors import InputError

Array = NDArray[np.floating]

#: Line frequencies in Hz, looked for in this order.
LINE_FREQUENCIES = (50.0, 60.0)

_WINDOW = 4.0  # seconds
_ORDER = 3  # of the polynomials by which amplitude and phase change within a window
_WIDTH = 1.0  # Hz that are removed at most: (order + 1) / window
_REACH = 0.6  # Hz: so far from its nominal frequency a line may lie
_BESIDE = (1.5, 6.0)  # Hz: what lies so far on either side is the floor that it stands out from
_EEG_BAND = (2.0, 40.0)
# A line stands out by more than chance gives so often: without and with a header that names this
# frequency, and where one was removed before.
_CHANCE, _CHANCE_IF_NAMED, _CHANCE_IF_LEFT = 1e-9, 1e-4, 1e-3
_LEAST_RATIO = 3.0
# Below this share of the power of the EEG line noise moves no feature, and is left where it is.
_LEAST_SHARE = 1e-5
_LEAST_SAMPLES = 8
_MOST_WINDOWS = 64  # that are looked at, spread over the recording


@dataclass(frozen=True)
class LineNoise:
    """Removed line noise: frequencies of each channel, and the root mean square by window."""

    lines: tuple[tuple[float, ...], ...]  # in Hz, harmonics included
    rms: Array  # of the shape of the data, with windows in place of samples
    centres: Array  # samples in the middle of the windows


def remove_line_noise(
    data: Array,
    sfreq: float,
    line_freq: float | str | None = "auto",
    *,
    header_freq: float | None = None,
) -> tuple[Array, LineNoise]:
    """Remove line noise and its harmonics from (n_channels, n_times) or (n_epochs, ...).

    ``"auto"`` removes 50 or 60 Hz (or both) from the channels in whose spectrum they stand out (a
    weaker line is enough at the frequency that a header names), a number that frequency from all.
    The data come back themselves where there is nothing to remove, and channels without line noise
    are the same to the bit. Samples that are not finite do not count.
    """
    line_freq, data = check_line_freq(line_freq), np.asarray(data)
    n_times = data.shape[-1]
    length = min(round(_WINDOW * sfreq), n_times)
    n_steps = -(-(n_times - length) // max(1, length // 2))
    starts = np.round(np.linspace(0, n_times - length, n_steps + 1)).astype(np.intp)
    rms = np.zeros((*data.shape[:-1], len(starts)))
    lines: list[tuple[float, ...]] = [()] * data.shape[-2]
    clean = data
    if line_freq is not None and length >= _LEAST_SAMPLES and data.size:
        windows = _Windows(starts, length, sfreq)
        for channel in range(data.shape[-2]):
            series = data[..., channel, :].reshape(-1, n_times)
            lines[channel] = _find_lines(series, line_freq, header_freq, windows)
            if lines[channel]:
                if clean is data:
                    clean = data.astype(np.result_type(data, np.float32))
                rest, removed = _subtract_lines(series, lines[channel], windows)
                clean[..., channel, :] = rest.reshape(data[..., channel, :].shape)
                rms[..., channel, :] = removed.reshape(rms[..., channel, :].shape)
    return clean, LineNoise(tuple(lines), rms, starts + length / 2)


def check_line_freq(line_freq: float | str | None) -> float | str | None:
    """Return ``"auto"``, a frequency in Hz, or None for ``"off"``; refuse everything else."""
    if line_freq is None or line_freq in ("auto", "off"):
        return "auto" if line_freq == "auto" else None
    try:
        frequency = float(line_freq)
    except (TypeError, ValueError):
        frequency = 0.0
    if not 1 < frequency < np.inf:
        raise InputError(
            f"line_freq is {line_freq!r}; give auto, off, or a frequency in Hz such as 50."
        )
    return frequency


@dataclass(frozen=True)
class _Windows:
    """Windows of a signal that overlap by half and reach to both ends."""

    starts: NDArray[np.intp]
    length: int
    sfreq: float

    @cached_property
    def taper(self) -> Array:
        return np.hanning(self.length + 2)[1:-1]  # nowhere zero

    @cached_property
    def weights(self) -> Array:
        """Weights of the samples of each window, (n_windows, length)."""
        weights = np.tile(self.taper, (len(self.starts), 1))
        # At the ends there is no other window to lean on, so that the taper stays up there.
        weights[0, : -(-self.length // 2)] = 1.0
        weights[-1, self.length // 2 + 1 :] = 1.0
        return weights

    @cached_property
    def total(self) -> Array:
        total: Array = self.add_up(self.weights[np.newaxis])[0]
        return total

    def add_up(self, parts: Array) -> Array:
        """Add up windows (n, n_windows, length) where they lie, (n, n_times)."""
        sums = np.zeros((len(parts), self.starts[-1] + self.length))
        for window, start in enumerate(self.starts):
            sums[:, start : start + self.length] += parts[:, window]
        return sums

    def cut(self, series: Array, starts: NDArray[np.intp]) -> Array:
        """Copy windows without their means; zero where a sample is not finite."""
        windows = sliding_window_view(series, self.length, axis=-1)[..., starts, :]
        with np.errstate(invalid="ignore"):
            means = windows.mean(axis=-1, keepdims=True)
            sound = np.isfinite(means)
            windows = windows - np.where(sound, means, 0.0)
        windows[~sound[..., 0]] = 0.0
        return windows


def _find_lines(
    series: Array, line_freq: float | str, header_freq: float | None, windows: _Windows
) -> tuple[float, ...]:
    """Find the frequencies to remove from a channel's (n_epochs, n_times), harmonics included."""
    nominal: tuple[float, ...] = LINE_FREQUENCIES if line_freq == "auto" else (float(line_freq),)
    if line_freq == "auto" and header_freq and header_freq not in nominal:
        nominal = (*nominal, float(header_freq))
    highest = windows.sfreq / 2 - 1.0
    spectrum = _Spectrum(series, windows)
    lines: list[float] = []
    for frequency in nominal:
        if not 1.0 < frequency < highest:
            continue
        chance = _CHANCE_IF_NAMED if frequency == header_freq else _CHANCE
        if spectrum.stands_out(frequency, chance):
            frequency = _refine(series, spectrum.peak(frequency), windows)
        elif line_freq == "auto":
            continue
        lines += [
            frequency,
            *(
                harmonic
                for harmonic in (np.arange(2, np.ceil(highest / frequency)) * frequency).tolist()
                if all(abs(harmonic - other) > _WIDTH for other in lines)
                and spectrum.stands_out(harmonic, _CHANCE)
            ),
        ]
    return tuple(lines)


class _Spectrum:
    """Power of a channel in windows that do not overlap, and how lines stand out of it."""

    def __init__(self, series: Array, windows: _Windows) -> None:
        apart = windows.starts[::2]
        most = max(1, _MOST_WINDOWS // len(series))
        looked_at = windows.cut(series, apart[:: -(-len(apart) // most)])
        coefficients = fft.rfft(looked_at * windows.taper)
        power = np.square(coefficients.real) + np.square(coefficients.imag)
        self.power = power.reshape(-1, power.shape[-1])  # (n_windows, n_frequencies)
        self.frequencies = fft.rfftfreq(windows.length, 1 / windows.sfreq)
        eeg = slice(*np.searchsorted(self.frequencies, _EEG_BAND))
        self.eeg = self.power[:, eeg].sum(axis=-1)

    def _line(self, frequency: float) -> NDArray[np.bool_]:
        away = np.abs(self.frequencies - frequency)
        near: NDArray[np.bool_] = away <= max(_REACH, 0.75 * self.frequencies[1])
        return near

    def stands_out(self, frequency: float, chance: float, least: float = _LEAST_RATIO) -> bool:
        """Return whether there is a line that is large enough to matter."""
        away = np.abs(self.frequencies - frequency)
        beside = (away >= _BESIDE[0]) & (away <= _BESIDE[1])
        if beside.sum() < 4:
            return False
        # Each window by its own floor: a pop is large, but it is no line.
        floor = np.median(self.power[:, beside], axis=-1) / np.log(2)
        line = self.power[:, self._line(frequency)]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(floor[:, None] > 0, line / floor[:, None], 0.0).mean(axis=0)
            share = np.nan_to_num(line.sum(axis=-1) / self.eeg).mean()
        freedom = 2 * len(self.power)
        limit = max(least, chdtri(freedom, chance) / freedom)  # of chi squared
        return bool(ratio.max() > limit and share > _LEAST_SHARE)

    def peak(self, frequency: float) -> float:
        """Return the bin of the largest power near a frequency."""
        near = self._line(frequency)
        return float(self.frequencies[near][self.power[:, near].sum(axis=0).argmax()])


def _refine(series: Array, frequency: float, windows: _Windows) -> float:
    """Follow the phase from window to window: exact to some thousandths of a hertz."""
    hops = np.diff(windows.starts)
    if not len(hops):
        return frequency
    angles = 2 * np.pi * frequency * np.arange(windows.length) / windows.sfreq
    cut = windows.cut(series, windows.starts)
    turned = cut @ (windows.taper * np.cos(angles)) - 1j * (cut @ (windows.taper * np.sin(angles)))
    steps = turned[:, 1:] * turned[:, :-1].conj()
    steps *= np.exp(-2j * np.pi * frequency * hops / windows.sfreq)
    turn = float(np.angle(steps.sum()))
    return frequency + turn / (2 * np.pi * float(hops.mean()) / windows.sfreq)


def _subtract_lines(
    series: Array, lines: tuple[float, ...], windows: _Windows
) -> tuple[Array, Array]:
    """Fit and subtract sines; let them change more only where steady ones are not enough."""
    most = max(0, min(_ORDER, round(_WIDTH * windows.length / windows.sfreq) - 1))
    for order in sorted({min(1, most), most}):
        clean, rms = _subtract_sines(series, lines, order, windows)
        left = _Spectrum(clean, windows)
        if not any(left.stands_out(line, _CHANCE_IF_LEFT, least=1.0) for line in lines):
            break
    return clean, rms


def _subtract_sines(
    series: Array, lines: tuple[float, ...], order: int, windows: _Windows
) -> tuple[Array, Array]:
    """Subtract fitted sines; return the rest and the root mean square of them by window."""
    length = windows.length
    # Sines times powers of time, seen from the middle of a window: (length, n_sines).
    time = (np.arange(length) - (length - 1) / 2) / windows.sfreq
    powers = [(2 * time * windows.sfreq / length) ** k for k in range(order + 1)]
    waves = [wave(2 * np.pi * freq * time) for freq in lines for wave in (np.cos, np.sin)]
    sines = np.column_stack([power * wave for wave in waves for power in powers])

    weights = windows.weights
    cut = sliding_window_view(series, length, axis=-1)[:, windows.starts]
    with np.errstate(invalid="ignore"):
        coefficients = _fit(cut, sines, windows.taper)
        for window in {0, len(weights) - 1}:
            coefficients[:, window] = _fit(cut[:, window], sines, weights[window])
    for row, window in np.argwhere(~np.isfinite(coefficients).all(axis=-1)):
        coefficients[row, window] = _fit_finite(cut[row, window], sines, weights[window])
    fitted = coefficients @ sines.T
    fitted *= weights
    root = np.linalg.cholesky(sines.T @ sines / length)
    rest = series - windows.add_up(fitted) / windows.total
    return rest, np.linalg.norm(coefficients @ root, axis=-1)


def _fit(cut: Array, sines: Array, weights: Array) -> Array:
    """Return the coefficients of the sines by weighted least squares."""
    # An offset or a drift may be a thousand times larger than what is looked for.
    basis = np.column_stack([sines, np.vander(np.linspace(-1.0, 1.0, len(sines)), 4)])
    weighted = weights[:, None] * basis
    products = (cut @ weighted).reshape(-1, basis.shape[1])
    coefficients = np.linalg.solve(basis.T @ weighted, products.T)[: sines.shape[1]].T
    return coefficients.reshape(*cut.shape[:-1], -1)


def _fit_finite(window: Array, sines: Array, weights: Array) -> Array:
    """Fit the samples that are finite; return zeros where they are too few."""
    good = np.isfinite(window)
    if good.mean() < 0.25:
        return np.zeros(sines.shape[1])
    root = np.sqrt(weights[good])[:, None]
    basis = np.column_stack([sines[good], np.ones(good.sum())])
    target = window[good] - window[good].mean()
    solution, *_ = np.linalg.lstsq(root * basis, root[:, 0] * target, rcond=1e-6)
    amplitudes: Array = solution[: sines.shape[1]]
    return amplitudes
