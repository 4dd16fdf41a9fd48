"""Kill ``idfsmec benchmark`` every half minute for an hour, and compare with an undisturbed run.

``python -m benchmarks.endurance.hour [minutes] [seconds between kills] [folder]`` runs one
benchmark after the other with two workers. The kills take turns: the whole process group, the
parent alone (its workers must notice and end), and SIGTERM. No finished unit may be lost, nobody
may live on, and what the folders hold in the end must be the same. The last benchmark is left to
end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.endurance.kill import run, start
from benchmarks.endurance.kill_benchmark import n_done, same, write_table

PATIENCE = 15.0
"""Seconds that workers of a killed parent, or a process that was asked to end, may take."""


def command(table: Path, out: Path) -> list[str]:
    options = ["--rates", "0.1,0.3,0.5", "--k", "3,6", "--folds", "5", "--jobs", "2"]
    methods = ["--methods", "IDFS-MEC,ANOVA F,mRMR,ReliefF", "--repeats", "12", "--quiet"]
    program = [sys.executable, "-m", "idfsmec", "benchmark", str(table), "--out", str(out)]
    return [*program, *methods, *options]


def alive(session: int) -> list[psutil.Process]:
    """Processes of a session that have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def end(process: subprocess.Popen[bytes], way: str) -> float:
    """End a run in one of three ways; the seconds until nobody of it was left."""
    began = time.monotonic()
    if way == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.send_signal(signal.SIGKILL if way == "parent" else signal.SIGTERM)
    while time.monotonic() - began < PATIENCE:
        process.poll()
        if not alive(process.pid):
            break
        time.sleep(0.1)
    else:
        said = [" ".join(one.cmdline()) for one in alive(process.pid)]
        os.killpg(process.pid, signal.SIGKILL)
        raise RuntimeError(f"{way}: alive after {PATIENCE:.0f} s: {said}")
    return time.monotonic() - began


def disturb(table: Path, out: Path, period: float, way: str) -> tuple[bool, float]:
    """Run until the next kill is due; whether it was killed, and how long its end took."""
    with start(command(table, out)) as process:
        try:
            process.wait(timeout=period)
        except subprocess.TimeoutExpired:
            took = end(process, way)
            process.communicate()
            return True, took
        _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(said.decode())
    return False, 0.0


def hour(folder: Path, minutes: float, period: float) -> int:
    table = write_table(folder / "table.parquet")
    undisturbed = folder / "undisturbed"
    seconds = run(command(table, undisturbed))
    units = n_done(undisturbed)
    print(f"undisturbed: {seconds:.0f} s, {units} units", flush=True)
    kills: Counter[str] = Counter()
    longest = {"group": 0.0, "parent": 0.0, "term": 0.0}
    compared = identical = 0
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        out = folder / f"out-{compared}"
        going_on = True
        while going_on:
            way = list(longest)[kills.total() % 3]
            before = n_done(out)
            last = time.monotonic() > until
            going_on, took = disturb(table, out, 3600.0 if last else period, way)
            if n_done(out) < before:
                raise RuntimeError(f"{way}: {before} units were {n_done(out)} afterwards")
            kills[way] += going_on
            longest[way] = max(longest[way], took)
            print(f"{way if going_on else 'ended'}: {before} -> {n_done(out)}", flush=True)
        compared += 1
        identical += same(out, undisturbed)
        print(f"{identical} of {compared} identical", flush=True)
    ways = ", ".join(f"{way} {kills[way]} (gone within {longest[way]:.1f} s)" for way in longest)
    print(f"{kills.total()} kills: {ways}; {identical} of {compared} benchmarks identical")
    return int(identical < compared)


def main(minutes: str = "60", period: str = "30", place: str = "") -> int:
    if place:
        Path(place).mkdir(parents=True)
        return hour(Path(place), float(minutes), float(period))
    with tempfile.TemporaryDirectory() as temporary:
        return hour(Path(temporary), float(minutes), float(period))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
