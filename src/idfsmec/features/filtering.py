"""Filters that treat every row alone: bridge gaps, resample, band-pass without phase shift."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from idfsmec.errors import InputError

Array = NDArray[np.float64]

Edges = tuple[float | None, float | None]

BUTTERWORTH_ORDER = 4

# Rows that are filtered at once: bounds the temporaries however many channels there are.
_BLOCK_SAMPLES = 4_000_000


def bridge_gaps(rows: Array) -> Array:
    """Draw straight lines over values that are not finite.

    Before the first and after the last finite value the line is level; a row without any finite
    value becomes zero.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_times)

    Returns
    -------
    ndarray of shape (n_rows, n_times)
        ``rows`` itself when nothing is to be bridged.

    Examples
    --------
    >>> import numpy as np
    >>> bridge_gaps(np.array([[np.nan, 1.0, np.nan, 3.0, np.inf]]))
    array([[1., 1., 2., 3., 3.]])
    """
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if not broken.size:
        return rows
    bridged = rows.copy()
    samples = np.arange(rows.shape[1])
    for row in broken:  # only the broken ones, and np.interp is the straight line
        finite = np.isfinite(rows[row])
        if finite.any():
            bridged[row] = np.interp(samples, samples[finite], rows[row, finite])
        else:
            bridged[row] = 0.0
    return bridged


def resampling_ratio(sfreq: float, rate: float) -> Fraction:
    """Return the ratio of the two rates as a fraction that a polyphase filter can use.

    Rates that files state with rounding (499.9998 Hz) are taken for what they mean: the
    denominator is at most 4096, an error of less than one sample in a quarter of an hour.

    Examples
    --------
    >>> resampling_ratio(512.0, 250.0)
    Fraction(125, 256)
    """
    return Fraction(rate / sfreq).limit_denominator(4096)


def resample(rows: Array, ratio: Fraction) -> Array:
    """Resample by a rational factor with SciPy's polyphase filter."""
    if ratio == 1:
        return rows
    # "line" takes offset and drift out first: padding with zeros would ring at the ends.
    return signal.resample_poly(rows, ratio.numerator, ratio.denominator, axis=1, padtype="line")


def band_pass(rows: Array, rate: float, edges: Edges) -> Array:
    """Filter forwards and backwards with a Butterworth filter of order 4.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_times)
    rate : float
        Sampling rate in Hz.
    edges : (float or None, float or None)
        In Hz; None leaves that side open. With both open, ``rows`` come back as they are.
    """
    lower, upper = edges
    if upper is not None and upper >= rate / 2:
        raise InputError(
            f"The band-pass reaches up to {upper:g} Hz, but at {rate:g} Hz a signal holds only "
            f"frequencies below {rate / 2:g} Hz: lower the edge or resample to a higher rate."
        )
    inner = [edge for edge in edges if edge is not None]
    if not inner:
        return rows
    kind = "bandpass" if len(inner) == 2 else "lowpass" if lower is None else "highpass"
    sections = signal.butter(
        BUTTERWORTH_ORDER,
        inner if len(inner) == 2 else inner[0],
        btype=kind,
        fs=rate,
        output="sos",
    )
    # The slowest part of the filter rings for a few periods of the lower edge.
    padding = min(rows.shape[1] - 1, round(3 * rate / inner[0]))
    return signal.sosfiltfilt(sections, rows, axis=1, padlen=padding)


def run_filters(
    rows: NDArray[np.floating], sfreq: float, rate: float, edges: Edges
) -> NDArray[np.float64]:
    """Bridge, resample to ``rate`` and band-pass, in blocks so that temporaries stay small."""
    step = max(1, _BLOCK_SAMPLES // max(1, rows.shape[1]))
    ratio = resampling_ratio(sfreq, rate)

    def block(start: int) -> Array:
        bridged = bridge_gaps(np.asarray(rows[start : start + step], dtype=np.float64))
        return band_pass(resample(bridged, ratio), rate, edges)

    first = block(0)
    out = np.empty((len(rows), first.shape[1]))
    out[:step] = first
    for start in range(step, len(rows), step):
        out[start : start + step] = block(start)
    return out
