"""What is not brain in a simulated recording: eyes, muscle, mains, electrodes that come off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from idfsmec.errors import InputError
from idfsmec.recordings.simulate.scalp import Scalp

_SENSOR_RMS = 0.6  # microvolt, white
#: What a detached electrode records: next to nothing; slow wandering; mains; unrelated noise.
DETACHMENT_KINDS = ("flat", "drift", "line", "noise")


def add_artifacts(
    rng: np.random.Generator, scalp: Scalp, signal: np.ndarray, sfreq: float
) -> None:
    """Add blinks, eye movements and bursts of muscle to ``signal`` (microvolt), in place."""
    n_times = signal.shape[1]
    towards_eyes = _towards_eyes(scalp)
    blinks = _train(
        rng, n_times, sfreq, per_minute=rng.lognormal(np.log(11), 0.4), shape=_blink(sfreq)
    )
    signal += np.outer(towards_eyes * rng.normal(130, 25), np.abs(blinks))
    glances = _train(
        rng, n_times, sfreq, per_minute=rng.lognormal(np.log(8), 0.4), shape=_glance(sfreq)
    )
    sideways = towards_eyes * scalp.positions[:, 0]
    signal += np.outer(sideways * rng.normal(60, 12), glances)
    _add_muscle(rng, scalp, signal, sfreq)


def add_amplifier(
    rng: np.random.Generator,
    signal: np.ndarray,
    sfreq: float,
    line_freq: float,
    noise: float = 1.0,
    hum: float = 1.0,
) -> None:
    """Add sensor noise and a little mains hum, which every real recording has, in place.

    ``noise`` and ``hum`` are factors by which an amplifier has more of them than usual.
    """
    n_channels, n_times = signal.shape
    signal += noise * _SENSOR_RMS * rng.standard_normal(signal.shape)
    sizes = hum * rng.lognormal(np.log(0.8), 0.5, n_channels)
    signal += np.outer(sizes, mains(rng, n_times, sfreq, line_freq))


def mains(rng: np.random.Generator, n_times: int, sfreq: float, line_freq: float) -> np.ndarray:
    """Sine of amplitude 1 at the mains frequency, with its third harmonic where it fits."""
    time = np.arange(n_times) / sfreq
    phases = rng.uniform(0, 2 * np.pi, 2)
    wave = np.sin(2 * np.pi * line_freq * time + phases[0])
    if 3 * line_freq < sfreq / 2:
        wave += 0.15 * np.sin(6 * np.pi * line_freq * time + phases[1])
    return wave


def _towards_eyes(scalp: Scalp) -> np.ndarray:
    """Share of an eye's potential that an electrode sees: about 0.9 at Fp1, 0.1 at Cz."""
    eyes = np.array([0.0, 0.95, -0.31])
    angles = np.degrees(np.arccos(np.clip(scalp.positions @ eyes, -1, 1)))
    return np.exp(-np.clip(angles - 28, 0, None) / 32)


def _train(
    rng: np.random.Generator, n_times: int, sfreq: float, per_minute: float, shape: np.ndarray
) -> np.ndarray:
    """Repeat a waveform at random times with random size and sign."""
    impulses = np.zeros(n_times)
    n_events = rng.poisson(per_minute * n_times / sfreq / 60)
    sizes = rng.choice([-1.0, 1.0], n_events) * rng.lognormal(0, 0.25, n_events)
    np.add.at(impulses, rng.integers(0, n_times, n_events), sizes)
    n_padded = fft.next_fast_len(n_times + len(shape), real=True)
    spectrum = fft.rfft(impulses, n_padded) * fft.rfft(shape, n_padded)
    return fft.irfft(spectrum, n_padded)[:n_times]


def _blink(sfreq: float) -> np.ndarray:
    """Quick closing, slower opening: 0.12 s up, 0.24 s down."""
    up = np.sin(0.5 * np.pi * np.linspace(0, 1, int(0.12 * sfreq), endpoint=False)) ** 2
    down = np.cos(0.5 * np.pi * np.linspace(0, 1, int(0.24 * sfreq))) ** 2
    return np.concatenate([up, down])


def _glance(sfreq: float) -> np.ndarray:
    """Step that an AC-coupled amplifier lets decay: 0.04 s up, then 0.35 s time constant."""
    up = np.linspace(0, 1, max(int(0.04 * sfreq), 2), endpoint=False)
    return np.concatenate([up, np.exp(-np.arange(0, 2, 1 / sfreq) / 0.35)])


def _add_muscle(rng: np.random.Generator, scalp: Scalp, signal: np.ndarray, sfreq: float) -> None:
    """Add bursts of 20 Hz and more, 0.3 to 2 s long, around electrodes at the rim of the cap."""
    n_times = signal.shape[1]
    rim = np.flatnonzero(scalp.positions[:, 2] <= np.quantile(scalp.positions[:, 2], 0.4))
    for _ in range(rng.poisson(3.0 * n_times / sfreq / 60)):
        centre = scalp.positions[rng.choice(rim)]
        angles = np.degrees(np.arccos(np.clip(scalp.positions @ centre, -1, 1)))
        near = np.flatnonzero(angles < 45)
        length = min(int(rng.uniform(0.3, 2.0) * sfreq), n_times)
        start = rng.integers(0, n_times - length + 1)
        frequencies = fft.rfftfreq(length, 1 / sfreq)
        shape = np.clip((frequencies - 15) / 20, 0, 1) * np.exp(-frequencies / 120)
        noise = fft.irfft(fft.rfft(rng.standard_normal((len(near), length))) * shape, length)
        noise *= np.hanning(length) / max(noise.std(), 1e-300)
        sizes = rng.lognormal(np.log(18), 0.4) * np.exp(-((angles[near] / 22) ** 2))
        signal[near, start : start + length] += sizes[:, None] * noise


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
