"""Sines that change slowly: fitted in overlapping windows by least squares, and subtracted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WINDOW = 4.0  # seconds


def hann(length: int) -> Array:
    """A taper that is nowhere zero."""
    return np.hanning(length + 2)[1:-1]


@dataclass(frozen=True)
class Spans:
    """Windows that overlap by half and reach to both ends."""

    starts: NDArray[np.intp]
    length: int

    @classmethod
    def of(cls, n_times: int, sfreq: float) -> Spans:
        length = min(round(_WINDOW * sfreq), n_times)
        last = n_times - length
        n_steps = -(-last // max(1, length // 2))
        return cls(np.round(np.linspace(0, last, n_steps + 1)).astype(np.intp), length)

    @property
    def centres(self) -> Array:
        return np.asarray(self.starts + self.length / 2, dtype=np.float64)

    def cut(self, series: NDArray[np.floating]) -> Array:
        """Copy the windows without their means; zero where a sample is not finite."""
        windows = sliding_window_view(series, self.length, axis=-1)[..., self.starts, :]
        with np.errstate(invalid="ignore"):
            means = windows.mean(axis=-1, keepdims=True)
            sound = np.isfinite(means)
            windows = windows - np.where(sound, means, 0.0)
        windows[~sound[..., 0]] = 0.0
        return windows


def sines_around(length: int, sfreq: float, lines: tuple[float, ...], order: int) -> Array:
    """Sines times powers of time, seen from the middle of a window, (length, p)."""
    time = (np.arange(length) - (length - 1) / 2) / sfreq
    powers = [(2 * time * sfreq / length) ** k for k in range(order + 1)]
    waves = [wave(2 * np.pi * f * time) for f in lines for wave in (np.cos, np.sin)]
    return np.column_stack([power * wave for wave in waves for power in powers])


def _solver(sines: Array, weights: Array) -> Array:
    """What gives the coefficients of the sines by weighted least squares, (length, p)."""
    unit = np.linspace(-1.0, 1.0, len(sines))
    # An offset or a drift may be a thousand times larger than what is looked for.
    basis = np.column_stack([sines, *(unit**k for k in range(4))])
    weighted = weights[:, None] * basis
    solution: Array = np.linalg.solve(basis.T @ weighted, weighted.T).astype(np.float64)
    return solution[: sines.shape[1]].T


def subtract_sines(
    series: NDArray[np.floating], sines: Array, spans: Spans
) -> tuple[Array, Array]:
    """Fit sines in every window and subtract them.

    Parameters
    ----------
    series : ndarray of shape (n_series, n_times)
    sines : ndarray of shape (length, p)
        From :func:`sines_around`.
    spans : Spans

    Returns
    -------
    rest : ndarray of shape (n_series, n_times)
    rms : ndarray of shape (n_series, n_windows)
        Root mean square of what was subtracted.
    """
    taper = hann(spans.length)
    level = np.arange(spans.length)
    weights = {0: np.where(level < spans.length / 2, 1.0, taper)}
    last = len(spans.starts) - 1
    # At the ends there is no other window to lean on, so that the taper stays up there.
    weights[last] = np.where(level > spans.length / 2, 1.0, weights.get(last, taper))
    windows = sliding_window_view(series, spans.length, axis=-1)[:, spans.starts]
    with np.errstate(invalid="ignore"):
        coefficients = windows @ _solver(sines, taper)
        for window, own in weights.items():
            coefficients[:, window] = windows[:, window] @ _solver(sines, own)
    for row, window in np.argwhere(~np.isfinite(coefficients).all(axis=-1)):
        own = weights.get(window, taper)
        coefficients[row, window] = _fit_finite(windows[row, window], sines, own)
    total = np.zeros(series.shape[-1])
    model = np.zeros(series.shape)
    for window, start in enumerate(spans.starts):
        part = slice(start, start + spans.length)
        own = weights.get(window, taper)
        total[part] += own
        model[:, part] += own * (coefficients[:, window] @ sines.T)
    root = np.linalg.cholesky(sines.T @ sines / spans.length)
    return series - model / total, np.linalg.norm(coefficients @ root, axis=-1)


def _fit_finite(window: NDArray[np.floating], sines: Array, weights: Array) -> Array:
    """Least squares on the samples that are finite; nothing where they are too few."""
    good = np.isfinite(window)
    if good.mean() < 0.25:
        return np.zeros(sines.shape[1])
    root = np.sqrt(weights[good])[:, None]
    basis = np.column_stack([sines[good], np.ones(good.sum())])
    target = window[good] - window[good].mean()
    solution, *_ = np.linalg.lstsq(root * basis, root[:, 0] * target, rcond=1e-6)
    return solution[: sines.shape[1]]
