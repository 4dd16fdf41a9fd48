"""Peak memory of ``idfsmec features``: that of a few recordings, however many there are.

``python -m benchmarks.endurance.features_memory [--jobs N] [--folder DIR] [counts ...]`` (default
3 and 12 recordings, one job, a temporary folder) writes real FIF files of 128 channels x 5 min,
each with noise of its own (38 MB each), and runs the command on the first so many of them. Memory
is that of the command and all its workers together. Files that DIR holds already are used as they
are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import mne
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.endurance._watch import watch_command
from idfsmec.table import FeatureTable

N_CHANNELS = 128
MINUTES = 5
SFREQ = 250.0


def write_recording(path: Path, seed: int) -> None:
    """Noise that neighbours share, in volts."""
    rng = np.random.default_rng(seed)
    n_times = int(MINUTES * 60 * SFREQ)
    shared = rng.standard_normal(n_times)
    data = 10e-6 * (shared + rng.standard_normal((N_CHANNELS, n_times)))
    info = mne.create_info([f"E{i}" for i in range(1, N_CHANNELS + 1)], SFREQ, "eeg")
    beside = path.with_name(f"part-of-{path.name}")
    mne.io.RawArray(data, info, verbose="error").save(beside, overwrite=True, verbose="error")
    beside.rename(path)


def write_study(folder: Path, count: int) -> Path:
    """Write the recordings that are not there yet, and the manifest of the first ``count``."""
    lines = ["path,subject,label"]
    for number in range(count):
        path = folder / f"s{number:03d}_raw.fif"
        if not path.exists():
            write_recording(path, number)
        lines.append(f"{path.name},s{number:03d},{'HC' if number % 2 else 'MDD'}")
    manifest = folder / f"first{count}.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def measure(folder: Path, count: int, jobs: int) -> list[str]:
    """One line of the table."""
    table = folder / f"table{count}.parquet"
    manifest = write_study(folder, count)
    seen = watch_command(
        "features", str(manifest), "-o", str(table), "--jobs", str(jobs), "--force"
    )
    size = FeatureTable.read(table).X.to_numpy().nbytes / 2**20
    one = N_CHANNELS * MINUTES * 60 * SFREQ * 8 / 2**20
    return [
        str(count),
        f"{seen.peak:.0f}",
        f"{seen.peak / one:.1f}",
        f"{size:.0f}",
        str(max(seen.handles)),
        f"{seen.duration / count:.2f}",
    ]


def main(arguments: Sequence[str] = ()) -> None:
    """Print peak memory for several numbers of recordings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance.features_memory")
    parser.add_argument("counts", nargs="*", type=int, default=[3, 12])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args(list(arguments))
    table = Table(
        title=f"idfsmec features: {N_CHANNELS} channels x {MINUTES} min, {asked.jobs} job(s)"
    )
    headings = ("recordings", "peak MiB", "in recordings", "table MiB", "open files at most")
    for heading in (*headings, "s per recording"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as place:
        for count in asked.counts:
            line = measure(asked.folder or Path(place), count, asked.jobs)
            print(*line, flush=True)  # these runs are long: what is known is said
            table.add_row(*line)
    Console().print(table)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
