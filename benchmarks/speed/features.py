"""Cost of the features: against their building blocks, and against other packages.

Run ``python -m benchmarks.speed.features`` from the repository's root. All candidates take turns
in one run and medians are compared, so that a busy machine slows all of them alike. Every program
runs as it does by default: idfsmec in as many threads as there are cores, the others in one. With
``OMP_NUM_THREADS=1`` idfsmec takes one thread too.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import signal

from idfsmec.features import DEFAULT_BANDS, FeatureSettings
from idfsmec.features.extract import compute_features

SFREQ = 250.0
SECTIONS = signal.butter(4, (1.0, 45.0), btype="bandpass", fs=SFREQ, output="sos")


def simulated_epochs(n_channels: int = 128, minutes: float = 5.0) -> np.ndarray:
    """Band-passed noise, (n_epochs, n_channels, 2500)."""
    n_epochs = int(minutes * 6)
    noise = np.random.default_rng(0).standard_normal((n_epochs, n_channels, 2500))
    return signal.sosfiltfilt(SECTIONS, noise)


def interleaved_medians(
    candidates: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, float]:
    """Median seconds of each candidate; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def building_blocks(epochs: np.ndarray) -> dict[str, Callable[[], object]]:
    return {
        "18 columns (idfsmec)": lambda: compute_features(epochs, SFREQ),
        "one scipy.signal.welch": lambda: signal.welch(epochs, SFREQ, nperseg=500),
        "one sosfiltfilt band-pass": lambda: signal.sosfiltfilt(SECTIONS, epochs),
    }


def peers(epochs: np.ndarray) -> dict[str, Callable[[], object]]:
    """Compute the 15 columns that others have, each by the quickest of their functions.

    mean, variance, zero crossings, Welch power per band and its ratios: mne-features. Spectral
    entropy: antropy. The variance in ``de``: mne-features' FFT power per band, which the tests
    find equal (its ``energy_freq_bands`` takes FIR filters, longer, and gives other numbers). All
    take all channels at once. No package known to us has ``nsi``, ``c0`` and ``shannon_entropy``.
    """
    import antropy
    import mne_features.feature_extraction as mne_features

    bands = np.array(list(DEFAULT_BANDS.values()))
    welch = {
        "pow_freq_bands__freq_bands": bands,
        "pow_freq_bands__normalize": False,
        "pow_freq_bands__psd_params": {
            "welch_n_fft": 500,
            "welch_n_per_seg": 500,
            "welch_n_overlap": 250,
        },
    }
    fourier = {
        "pow_freq_bands__freq_bands": bands - 0.05,  # they include the upper edge
        "pow_freq_bands__normalize": False,
        "pow_freq_bands__psd_method": "fft",
    }
    names = ["mean", "variance", "zero_crossings", "pow_freq_bands"]

    def nine() -> None:
        mne_features.extract_features(epochs, SFREQ, names, welch)
        antropy.spectral_entropy(epochs, sf=SFREQ, method="fft")

    def fifteen() -> None:
        with_ratios = welch | {"pow_freq_bands__ratios": "all"}
        mne_features.extract_features(epochs, SFREQ, names, with_ratios)
        antropy.spectral_entropy(epochs, sf=SFREQ, method="fft")
        mne_features.extract_features(epochs, SFREQ, ["pow_freq_bands"], fourier)

    same = ["mean", "variance", "hoc", "ap", "spectral_entropy"]
    few = FeatureSettings(features=same)
    many = FeatureSettings(features=[*same, "de", "ap_beta_theta_ratio"])
    return {
        "9 columns (idfsmec)": lambda: compute_features(epochs, SFREQ, few),
        "15 columns (idfsmec)": lambda: compute_features(epochs, SFREQ, many),
        "9 columns (mne-features, antropy)": nine,
        "15 columns (mne-features, antropy)": fifteen,
    }


def main(rounds: int = 5) -> None:
    """Print both comparisons."""
    epochs = simulated_epochs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        candidates = building_blocks(epochs) | peers(epochs)
        for run in candidates.values():
            run()  # compilation and imports are not counted
        seconds = interleaved_medians(candidates, rounds)

    table = Table(title="128 channels x 5 min at 250 Hz, filtered array in (medians)")
    table.add_column("what")
    table.add_column("seconds", justify="right")
    for name, value in seconds.items():
        table.add_row(name, f"{value:.3f}")
    console = Console()
    console.print(table)
    blocks = seconds["one scipy.signal.welch"] + seconds["one sosfiltfilt band-pass"]
    budget = seconds["18 columns (idfsmec)"] / blocks
    console.print(f"18 columns / (welch + sosfiltfilt): {budget:.2f}   (aim: at most 2)")
    for count in (15, 9):
        ratio = (
            seconds[f"{count} columns (mne-features, antropy)"]
            / seconds[f"{count} columns (idfsmec)"]
        )
        aim = (
            "   (all that they have; aim: at least 5)" if count == 15 else "   (without de, ratio)"
        )
        console.print(f"{count} columns, others / idfsmec: {ratio:.1f}{aim}")


if __name__ == "__main__":
    main()
