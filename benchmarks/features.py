"""Cost of the features: against their building blocks, and against other packages.

Run ``python -m benchmarks.features`` from the repository's root. All candidates take turns in one
run and medians are compared, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import signal

from idfsmec.features import DEFAULT_BANDS, compute_features

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
    """Compute the columns that others have: mean, variance, hoc, ap, spectral entropy, then de.

    For ``de`` that is mne-features' FFT power per band, which the tests find equal to the variance
    in ``de``. Its ``energy_freq_bands`` (FIR filters) is timed too, but gives other numbers.
    """
    import antropy
    import mne_features.feature_extraction as mne_features

    bands = np.array(list(DEFAULT_BANDS.values()))
    welch = {"welch_n_fft": 500, "welch_n_per_seg": 500, "welch_n_overlap": 250}
    parameters = {
        "pow_freq_bands__freq_bands": bands,
        "pow_freq_bands__normalize": False,
        "pow_freq_bands__psd_params": welch,
    }
    names = ["mean", "variance", "zero_crossings", "pow_freq_bands"]

    def others() -> None:
        mne_features.extract_features(epochs, SFREQ, names, funcs_params=parameters)
        antropy.spectral_entropy(epochs, sf=SFREQ, method="fft")

    def others_with_de() -> None:
        others()
        fft_power = {
            "pow_freq_bands__freq_bands": bands - 0.05,  # they include the upper edge
            "pow_freq_bands__normalize": False,
            "pow_freq_bands__psd_method": "fft",
        }
        mne_features.extract_features(epochs, SFREQ, ["pow_freq_bands"], fft_power)

    def others_with_filters() -> None:
        others()
        mne_features.extract_features(
            epochs, SFREQ, ["energy_freq_bands"], {"energy_freq_bands__freq_bands": bands}
        )

    same = ["mean", "variance", "hoc", "ap", "spectral_entropy"]
    return {
        "same 9 columns (idfsmec)": lambda: compute_features(epochs, SFREQ, features=same),
        "same 14 columns (idfsmec)": lambda: compute_features(
            epochs, SFREQ, features=[*same, "de"]
        ),
        "9 columns (mne-features, antropy)": others,
        "14 columns, with de (mne-features, antropy)": others_with_de,
        "14 columns, de by filters (not equal)": others_with_filters,
    }


def main(rounds: int = 5) -> None:
    """Print both comparisons."""
    epochs = simulated_epochs()
    blocks = interleaved_medians(building_blocks(epochs), rounds)
    ours = blocks["18 columns (idfsmec)"]
    budget = ours / (blocks["one scipy.signal.welch"] + blocks["one sosfiltfilt band-pass"])

    fewer = epochs[:6]  # one minute: the others take long
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        candidates = peers(fewer)
        for run in candidates.values():
            run()  # compilation and imports are not counted
        others = interleaved_medians(candidates, rounds)

    table = Table(title="features: 128 channels at 250 Hz, filtered array in (medians)")
    table.add_column("what")
    table.add_column("data")
    table.add_column("seconds", justify="right")
    for name, seconds in blocks.items():
        table.add_row(name, "5 min", f"{seconds:.3f}")
    for name, seconds in others.items():
        table.add_row(name, "1 min", f"{seconds:.3f}")
    console = Console()
    console.print(table)
    nine = others["9 columns (mne-features, antropy)"] / others["same 9 columns (idfsmec)"]
    with_de = (
        others["14 columns, with de (mne-features, antropy)"] / others["same 14 columns (idfsmec)"]
    )
    console.print(f"18 columns / (welch + sosfiltfilt): {budget:.2f}   (aim: at most 2)")
    filters = others["14 columns, de by filters (not equal)"] / others["same 14 columns (idfsmec)"]
    console.print(f"9 columns, others / idfsmec:                  {nine:.1f}   (aim: at least 5)")
    console.print(
        f"14 columns, others / idfsmec:                 {with_de:.1f}   (aim: at least 5)"
    )
    console.print(f"14 columns, others by filters (other values): {filters:.1f}")


if __name__ == "__main__":
    main()
