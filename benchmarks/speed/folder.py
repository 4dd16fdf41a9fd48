"""Memory of ``idfsmec features`` as the number of recordings grows.

``python -m benchmarks.speed.folder``: EDF files of 64 channels, 100 s at 125 Hz, in epochs of 2 s,
which are 0.44 MiB of the table each, with two jobs. Peaks of resident memory of the main process
and of the largest worker; the interpreter with all libraries takes 200 MiB.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mne
import pandas as pd

from benchmarks._timing import markdown
from idfsmec.features import FeatureSettings
from idfsmec.recordings import simulate_cohort

SIZES = (40, 160, 640)
SETTINGS = FeatureSettings(resample=None, epoch=2.0, nsi_window=0.5)


def write_study(folder: Path) -> None:
    """Write recordings and a manifest for each size."""
    cohort = simulate_cohort(SIZES[-1], 64, duration=100, sfreq=125.0, random_state=0)
    lines = []
    for number, recording in enumerate(cohort.recordings):
        name = f"r{number:04d}.edf"
        mne.export.export_raw(folder / name, recording.load(), verbose="error")
        lines.append({"path": name, "subject": recording.subject, "label": recording.label})
    for size in SIZES:
        pd.DataFrame(lines[:size]).to_csv(folder / f"{size}.csv", index=False)


def peaks(command: list[str]) -> tuple[float, float]:
    """Run a command; return the peaks of itself and of its largest descendant in MiB."""
    process, highest = subprocess.Popen(command), {}
    while process.poll() is None:
        for number in (process.pid, *_descendants(process.pid)):
            highest[number] = max(highest.get(number, 0.0), _peak(number))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(process.returncode)
    return highest.pop(process.pid), max(highest.values())


def _descendants(process: int) -> list[int]:
    try:
        tasks = [task.read_text() for task in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:  # it has ended
        return []
    children = [int(number) for text in tasks for number in text.split()]
    return [*children, *(number for child in children for number in _descendants(child))]


def _peak(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max(
        (int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0
    )


def main() -> None:
    """Print a table."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_study(folder)
        SETTINGS.to_toml(folder / "settings.toml")
        for size in SIZES:
            row = [str(size)]
            for output in (folder / "table", folder / "table.parquet"):
                words = f"-m idfsmec features {folder / f'{size}.csv'} -o {output} --jobs 2 -q"
                config = ["--config", str(folder / "settings.toml"), "--force"]
                row += [f"{peak:.0f}" for peak in peaks([sys.executable, *words.split(), *config])]
            shutil.rmtree(folder / "table")
            rows.append(row)
    outputs = [f"{what}: {which}" for what in ("folder", "file") for which in ("main", "worker")]
    print(markdown(["recordings", *outputs], rows))


if __name__ == "__main__":
    main()
