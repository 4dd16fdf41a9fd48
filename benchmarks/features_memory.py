"""Peak memory of ``idfsmec features``: that of a few recordings, however many there are.

Run ``python -m benchmarks.features_memory`` from the repository's root. Writes real FIF files to a
temporary folder (about 40 MB each), runs the command on 3 and on 12 of them and reads the peak
resident set from the operating system.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mne
import numpy as np
from rich.console import Console
from rich.table import Table

N_CHANNELS = 128
MINUTES = 5
SFREQ = 250.0
SOURCE_TREE = Path(__file__).parents[1] / "src"


def write_recording(path: Path, seed: int) -> None:
    """Noise that neighbours share, in volts."""
    rng = np.random.default_rng(seed)
    n_times = int(MINUTES * 60 * SFREQ)
    shared = rng.standard_normal(n_times)
    data = 10e-6 * (shared + rng.standard_normal((N_CHANNELS, n_times)))
    info = mne.create_info([f"E{i}" for i in range(1, N_CHANNELS + 1)], SFREQ, "eeg")
    mne.io.RawArray(data, info, verbose="error").save(path, verbose="error")


def peak_memory(manifest: Path, output: Path) -> tuple[float, float]:
    """Run the command; peak resident set in MB, and seconds."""
    command = [sys.executable, "-m", "idfsmec", "features", str(manifest), "-o", str(output)]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)}, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return kilobytes / 1024, time.perf_counter() - start


def main(counts: tuple[int, ...] = (3, 12)) -> None:
    """Print peak memory for several numbers of recordings."""
    one = N_CHANNELS * MINUTES * 60 * SFREQ * 8 / 2**20
    table = Table(title=f"idfsmec features: {N_CHANNELS} channels x {MINUTES} min, 1 job")
    for column in ("recordings", "peak MB", "in recordings", "s per recording"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(max(counts)):
            write_recording(folder / f"s{number:03d}_raw.fif", number)
        for count in counts:
            manifest = folder / f"first{count}.csv"
            lines = [f"s{i:03d}_raw.fif,s{i:03d},{'HC' if i % 2 else 'MDD'}" for i in range(count)]
            manifest.write_text("\n".join(["path,subject,label", *lines]) + "\n")
            peak, seconds = peak_memory(manifest, folder / f"table{count}.parquet")
            table.add_row(str(count), f"{peak:.0f}", f"{peak / one:.1f}", f"{seconds / count:.2f}")
    console = Console()
    console.print(table)
    console.print(f"one recording as float64: {one:.0f} MB")


if __name__ == "__main__":
    main()
