"""How fast, and in how much memory, a folder of Parquet files is ranked, against reading it alone.

``python -m benchmarks.endurance.streaming FOLDER N_FILES...`` generates files of 30,000 rows x
1152 columns (64 channels; 10 % missing for each person) in FOLDER, then reads and ranks the
first of them, so many at a time as given, each in a process of its own. ``--turns FOLDER N_FILES``
reads and sums up a few files at a time, in turns, in one process, for machines on which other
programs run. Delete the folder afterwards.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, CHANNELS, FEATURES, PER_PERSON = 30_000, 64, 18, 60
#: Files that are read, or summed up, before it is the other's turn.
PER_TURN = 4


def generate(folder: Path, n_files: int, n_jobs: int = 1) -> None:
    """Write what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [one for one in range(n_files) if not (folder / f"{one:03}.parquet").exists()]
    with ProcessPoolExecutor(n_jobs) as pool:
        list(pool.map(partial(_write, folder), left))


def _write(folder: Path, number: int) -> None:
    columns = [f"E{v}__f{j}" for v in range(CHANNELS) for j in range(FEATURES)]
    rng = np.random.default_rng(number)
    person = np.arange(ROWS) // PER_PERSON
    y = person % 2
    X = rng.standard_normal((ROWS, len(columns)), dtype=np.float32).astype(np.float64)
    X[:, ::FEATURES] += 0.3 * y[:, None]
    gone = rng.random((person.max() + 1, CHANNELS)) < 0.1
    X[np.repeat(gone[person], FEATURES, axis=1)] = np.nan
    subjects = [f"p{i + 1000 * number}" for i in person]
    labels = np.where(y == 1, "MDD", "HC")
    values = {column: X[:, at] for at, column in enumerate(columns)}
    table = pa.table({"subject": subjects, "label": labels, **values})
    pq.write_table(table, folder / f"{number:03}.parquet", row_group_size=10_000)


def read(files: list[Path]) -> None:
    """Read every row, and do nothing with it."""
    for file in files:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            for _ in source.iter_batches(6944):
                pass


def rank(files: list[Path]) -> None:
    """Sum up the files and rank from the sums."""
    from idfsmec import IDFSMEC
    from idfsmec.summaries.stream import collect

    IDFSMEC().fit_summaries([collect(files, files[0]).summary()])


def compare(files: list[Path]) -> None:
    """Read a few files and sum them up, in turns: both suffer alike from whatever else runs."""
    from idfsmec import IDFSMEC
    from idfsmec.summaries.stream import collect

    spent = {"reading": np.zeros(2), "summing up": np.zeros(2), "ranking": np.zeros(2)}
    found = []

    def timed(what: str, work: Callable[[], Any]) -> None:
        before = np.array([time.perf_counter(), time.process_time()])
        work()
        spent[what] += np.array([time.perf_counter(), time.process_time()]) - before

    for first in range(0, len(files), PER_TURN):
        own = files[first : first + PER_TURN]
        turns = {
            "reading": partial(read, own),
            "summing up": lambda own=own: found.append(collect(own, own[0]).summary()),
        }
        # Who comes second finds the files in memory: that is the one, then the other.
        for what in sorted(turns, reverse=first // PER_TURN % 2 == 1):
            timed(what, turns[what])
        _say(files[: first + PER_TURN], spent)
    timed("ranking", lambda: IDFSMEC().fit_summaries(found))
    _say(files, spent)


def _say(files: list[Path], spent: dict[str, np.ndarray]) -> None:
    status = Path("/proc/self/status").read_text().split("\n")
    now, peak = (
        next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))
        for name in ("VmRSS:", "VmHWM:")
    )
    times = ", ".join(
        f"{what} {wall:.1f} s ({cpu:.1f} cpu)" for what, (wall, cpu) in spent.items()
    )
    gigabytes = sum(file.stat().st_size for file in files) / 1e9
    print(
        f"{len(files)} files, {gigabytes:.1f} GB: {times}; {now:.0f} MiB, peak {peak:.0f}",
        flush=True,
    )


def main(folder: Path, counts: list[int]) -> None:
    """Print one line for every number of files."""
    generate(folder, max(counts))
    for count in counts:
        for what in ("read", "rank"):
            command = [sys.executable, "-m", __spec__.name, "--one", what, str(folder), str(count)]
            subprocess.run(command, check=True)


def one(what: str, folder: Path, count: int) -> None:
    """Do one thing, and say how long it took and how much memory."""
    files = sorted(folder.glob("*.parquet"))[:count]
    if what == "rank":
        import idfsmec.summaries.summarise  # noqa: F401 - importing is no reading
    wall, cpu = time.perf_counter(), time.process_time()
    (read if what == "read" else rank)(files)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gigabytes = sum(file.stat().st_size for file in files) / 1e9
    print(
        f"{what} {count} files, {gigabytes:.1f} GB, {count * ROWS} rows: {wall:.1f} s, "
        f"{cpu:.1f} s of processor, {count * ROWS / wall:.0f} rows/s, peak {peak:.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1] == "--turns":
        found = sorted(Path(sys.argv[2]).glob("*.parquet"))
        compare(found[: int(sys.argv[3])])
    elif sys.argv[1] == "--one":
        one(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main(Path(sys.argv[1]), [int(count) for count in sys.argv[2:]])
