"""Memory of ``idfsmec benchmark`` over all its processes, as a multiple of its table.

``python -m benchmarks.endurance.benchmark_memory [--rows N] [--jobs N] [--methods A,B] [--trace]``
writes a table of 64 channels x 18 features (10 % of the channels missing, by person), runs two
methods on it and looks five times a second; before, it does the same with a table of 1,000 rows.
Pages that processes share count once: the proportional share (PSS) of every process of the tree,
and the folder of arrays that workers map. With ``--trace`` a line a second says which process had
how much; ``--limit SECONDS`` ends the run then, with what was seen until then.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from benchmarks.endurance._watch import source_environment
from idfsmec.table import FeatureTable

CHANNELS, FEATURES, PER_PERSON = 64, 18, 50
INTERVAL = 0.2
SMALL = 1000
METHODS = "IDFS-MEC,ANOVA F"
SHARED = Path("/dev/shm")  # noqa: S108 - only looked at


def write_table(path: Path, n_rows: int) -> float:
    """Write noise with a little signal in the first feature of every channel; give its MiB."""
    rng = np.random.default_rng(0)
    person = np.arange(n_rows) // PER_PERSON
    X = rng.standard_normal((n_rows, CHANNELS * FEATURES))
    X[:, ::FEATURES] += 0.3 * (person % 2)[:, None]
    gone = rng.random((person.max() + 1, CHANNELS)) < 0.1
    X[np.repeat(gone[person], FEATURES, axis=1)] = np.nan
    columns = [f"E{channel}__f{at}" for channel in range(CHANNELS) for at in range(FEATURES)]
    labels = np.where(person % 2, "MDD", "HC")
    FeatureTable(pd.DataFrame(X, columns=columns), labels, [f"p{one}" for one in person]).write(
        path
    )
    return float(X.nbytes) / 2**20


def look(process: psutil.Process, shared: Path) -> dict[int, float]:
    """MiB of every process of a tree, and under 0 those of the folder that they share."""
    found = {}
    for member in [process, *process.children(recursive=True)]:
        try:
            lines = Path(f"/proc/{member.pid}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue  # it has ended meanwhile
        parts = {line.split()[0]: int(line.split()[1]) for line in lines}
        found[member.pid] = (parts["Pss:"] - parts["Pss_Shmem:"]) / 2**10
    files = [file for file in shared.rglob("*") if file.is_file()]
    found[0] = sum(file.stat().st_size for file in files) / 2**20
    return found


def watch(
    command: Sequence[str], trace: bool = False, limit: float = math.inf
) -> tuple[float, dict[int, float], float]:
    """Run a command; its seconds, most memory of each process, and of all at one moment."""
    began = said = time.perf_counter()
    most: dict[int, float] = {}
    peak = 0.0
    with (
        tempfile.TemporaryDirectory(dir=SHARED) as shared,
        subprocess.Popen(
            command,
            env=source_environment() | {"JOBLIB_TEMP_FOLDER": shared},
            stdout=subprocess.DEVNULL,
        ) as process,
    ):
        tree = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                found = look(tree, Path(shared))
            except (psutil.NoSuchProcess, OSError):
                continue
            most |= {pid: max(here, most.get(pid, 0.0)) for pid, here in found.items()}
            peak = max(peak, sum(found.values()))
            if trace and time.perf_counter() - said > 1:
                said = time.perf_counter()
                print(f"{said - began:6.1f} s", *(f"{one:7.0f}" for one in found.values()))
            if time.perf_counter() - began > limit:
                process.terminate()
                process.wait()
                return time.perf_counter() - began, most, peak
            time.sleep(INTERVAL)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - began, most, peak


def main(arguments: Sequence[str] = ()) -> None:
    """Print the peaks with a small and a large table in MiB, and their difference in tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance.benchmark_memory")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--limit", type=float, default=math.inf)
    asked = parser.parse_args(list(arguments))
    sizes, peaks, about = [], [], ""
    for n_rows in (SMALL, asked.rows):  # the small table shows what the processes need themselves
        with tempfile.TemporaryDirectory() as place:
            table = Path(place) / "table.parquet"
            sizes.append(write_table(table, n_rows))
            command = [sys.executable, "-m", "idfsmec", "benchmark", str(table), "--out", place]
            options = {"methods": asked.methods, "rates": "0.3", "k": "20", "resamples": 0}
            options |= {"folds": asked.splits, "jobs": asked.jobs, "experiment": "accuracy"}
            for name, value in options.items():
                command += [f"--{name}", str(value)]
            seconds, most, peak = watch([*command, "--quiet", "--force"], asked.trace, asked.limit)
        peaks.append(peak)
        about = ", ".join(f"{here:.0f}" for pid, here in sorted(most.items()) if pid)
        print(
            f"{n_rows} rows, table {sizes[-1]:.0f} MiB, {asked.jobs} jobs, {asked.methods}: "
            f"{seconds:.0f} s, peak {peak:.0f} MiB, shared folder {most[0]:.0f} MiB, "
            f"processes {about}",
            flush=True,
        )
    growth = (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
    print(f"memory grows by {growth:.1f} tables")


if __name__ == "__main__":
    main(sys.argv[1:])
