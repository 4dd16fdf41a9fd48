"""Memory and open files of an extraction as the number of recordings grows.

``python -m benchmarks.resources [counts ...]`` (default 10 50 200) prints, for each number of
simulated recordings, the peak of resident memory, how much of it is the table itself, and the
open files before and after. Each number runs in a process of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE_TREE = Path(__file__).parents[1] / "src"


def measure(n_recordings: int) -> None:
    from idfsmec.data import simulate_cohort
    from idfsmec.extraction import extract_to_file

    cohort = simulate_cohort(n_recordings, 19, duration=20, artifacts=False, random_state=0)
    with tempfile.TemporaryDirectory() as place:
        # One recording first: what libraries load on first use is not a leak.
        extract_to_file(cohort.recordings[:1], Path(place) / "first.parquet")
        start, before = _peak(), _open_files()
        found = extract_to_file(cohort.recordings, Path(place) / "table.parquet")
        size = found.table.X.to_numpy().nbytes / 2**20
    print(
        f"{n_recordings:5d} recordings: peak {_peak():7.1f} MiB ({_peak() - start:+6.1f} since "
        f"the first one), table {size:5.1f} MiB, open files {before} -> {_open_files()}",
        flush=True,
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts its own handle alike


def main(counts: list[str]) -> None:
    for count in counts or ["10", "50", "200"]:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.resources", "--one", count],
            env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
            check=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
    else:
        main(sys.argv[1:])
