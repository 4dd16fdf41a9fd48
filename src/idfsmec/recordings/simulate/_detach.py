"""Electrodes that lose contact in a simulated recording, drawn so that the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from idfsmec.errors import InputError
from idfsmec.recordings.simulate._artifacts import mains

#: What a detached electrode records: next to nothing; slow wandering; mains; unrelated noise.
DETACHMENT_KINDS = ("flat", "drift", "line", "noise")


@dataclass(frozen=True)
class Detachment:
    """One electrode that lost contact: its index, how it shows, and from when (seconds)."""

    channel: int
    kind: str
    onset: float


def draw_detachments(
    rng: np.random.Generator,
    n_channels: int,
    duration: float,
    rate: float,
    kinds: Sequence[str],
) -> tuple[Detachment, ...]:
    """Draw which electrodes detach: each with probability ``rate``, but never all of them.

    Half of them are off from the start, half come off in the middle three fifths.
    """
    chosen = np.flatnonzero(rng.uniform(size=n_channels) < rate)
    if len(chosen) == n_channels:
        chosen = np.delete(chosen, rng.integers(n_channels))
    drawn = []
    for channel in chosen:
        from_start = rng.uniform() < 0.5
        onset = 0.0 if from_start else duration * rng.uniform(0.2, 0.8)
        drawn.append(Detachment(int(channel), str(rng.choice(list(kinds))), float(onset)))
    return tuple(drawn)


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Refuse kinds of detachment that do not exist."""
    unknown = [kind for kind in kinds if kind not in DETACHMENT_KINDS]
    if unknown or not kinds:
        raise InputError(
            f"detachment_kinds has {unknown or 'nothing'}; choose from {list(DETACHMENT_KINDS)}"
        )
    return tuple(kinds)


def detach(
    rng: np.random.Generator,
    signal: np.ndarray,
    sfreq: float,
    line_freq: float,
    detachments: Sequence[Detachment],
) -> None:
    """Replace the signal (microvolt) of detached electrodes from their onset on, in place."""
    for one in detachments:
        start = round(one.onset * sfreq)
        n_times = signal.shape[1] - start
        if one.kind == "flat":
            lost = rng.uniform(0.02, 0.2) * rng.standard_normal(n_times)
        elif one.kind == "drift":
            lost = 0.1 * signal[one.channel, start:] + 3 * rng.standard_normal(n_times)
            lost += _log_uniform(rng, 300, 2000) * _power_law(rng, n_times, sfreq, 2.0, 0.02)
        elif one.kind == "line":
            lost = _log_uniform(rng, 80, 800) * mains(rng, n_times, sfreq, line_freq)
            lost += 3 * rng.standard_normal(n_times)
        else:
            lost = _log_uniform(rng, 8, 60) * _power_law(rng, n_times, sfreq, 1.0, 0.5)
        signal[one.channel, start:] = lost


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _power_law(
    rng: np.random.Generator, n_times: int, sfreq: float, exponent: float, lowest: float
) -> np.ndarray:
    """Noise with a ``1/f^exponent`` spectrum above ``lowest`` Hz and a standard deviation of 1."""
    n_padded = fft.next_fast_len(n_times + int(60 * sfreq), real=True)
    frequencies = np.maximum(fft.rfftfreq(n_padded, 1 / sfreq), lowest)
    noise = rng.standard_normal(2 * len(frequencies)).view(complex)
    noise[0] = 0
    spectrum = noise * frequencies ** (-exponent / 2)
    # Scaled by the expected, not the realised, deviation: a short piece may lie still.
    expected = np.sqrt(2 * (2 * frequencies[1:] ** -exponent).sum()) / n_padded
    return fft.irfft(spectrum, n_padded)[:n_times] / expected
