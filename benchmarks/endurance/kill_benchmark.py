"""Kill ``idfsmec benchmark`` again and again on one store, and compare with an undisturbed run.

``python -m benchmarks.endurance.kill_benchmark [kills] [seed]`` kills with SIGKILL while the
program starts, soon after one, two or three more units are finished, or while the files are
exported; lets the last run end, and compares the exported files. When a run ends before it is
killed, the next kill begins with an empty folder.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.endurance.kill import run, start
from idfsmec.table import FeatureTable

COMPARED = ("results.csv", "ranking.csv", "selections.parquet")
MEASURED = "seconds"  # the one column of results.csv that no two runs have in common


def write_table(path: Path) -> Path:
    rng = np.random.default_rng(0)
    columns = [f"{channel}__{feature}" for channel in ("Cz", "Fp1", "O1") for feature in "abcd"]
    X = pd.DataFrame(rng.normal(size=(120, 12)), columns=columns)
    labels = ["HC", "MDD"] * 60
    X["Cz__a"] += np.tile([0.0, 1.0], 60)
    return FeatureTable(X, labels, [f"s{i % 30}" for i in range(120)]).write(path)


def benchmark_command(table: Path, out: Path) -> list[str]:
    options = ["--rates", "0.1,0.3", "--k", "3,6", "--folds", "3", "--jobs", "1", "--quiet"]
    methods = ["--methods", "IDFS-MEC,ANOVA F,mRMR", "--repeats", "1"]
    command = [sys.executable, "-m", "idfsmec", "benchmark", str(table), "--out", str(out)]
    return [*command, *methods, *options]


def n_done(out: Path) -> int:
    """Count finished units, as any reader may while another process writes."""
    store = out / "store.sqlite"
    if store.exists():
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as db,
        ):
            return int(db.execute("SELECT count(*) FROM done").fetchone()[0])
    return 0


def kill_once(
    table: Path, out: Path, more: int, units: int, delay: float
) -> tuple[bool, int, int]:
    """Kill after some more of all units; whether it was killed, and units before and after."""
    before = n_done(out)
    with start(benchmark_command(table, out)) as process:
        while process.poll() is None and n_done(out) < min(before + more, units):
            time.sleep(0.005)
        time.sleep(delay)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process.returncode == -signal.SIGKILL, before, n_done(out)


def same(one: Path, other: Path) -> bool:
    """Whether all exported files are the same to the last digit, but for the time taken.

    Files of one folder that the other does not have count, too: a killed writer's leftovers.
    """
    if {path.name for path in one.iterdir()} != {path.name for path in other.iterdir()}:
        return False
    results, *exact = COMPARED
    first, second = (
        pd.read_csv(place / results, dtype=str).drop(columns=MEASURED) for place in (one, other)
    )
    return first.equals(second) and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in exact
    )


def main(n_kills: int = 30, seed: int = 0) -> int:
    chance = random.Random(seed)
    killed, compared, identical = 0, 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = write_table(folder / "table.parquet")
        seconds = run(benchmark_command(table, folder / "undisturbed"))
        units = n_done(folder / "undisturbed")
        while killed < n_kills:
            out = folder / f"out-{compared}"
            going_on = True
            while going_on and killed < n_kills:
                more = chance.randint(0, 3) if n_done(out) < units else 0
                # Without more units to wait for: any moment, from the start to the export.
                delay = chance.uniform(0, 0.1 if more else seconds)
                going_on, before, after = kill_once(table, out, more, units, delay)
                killed += going_on
                print(f"killed: {going_on}, {before} -> {after} of {units} units", flush=True)
                if after < before:
                    raise RuntimeError("finished units were lost")
            run(benchmark_command(table, out))
            compared += 1
            identical += same(out, folder / "undisturbed")
    print(f"{killed} kills ({seconds:.1f} s undisturbed, {units} units);")
    print(f"{identical} of {compared} resumed benchmarks are identical in {', '.join(COMPARED)}.")
    return int(identical < compared)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
