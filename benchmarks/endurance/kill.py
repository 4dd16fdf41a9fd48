"""Kill commands at random moments, run them again, and compare with an undisturbed run.

``python -m benchmarks.endurance.kill [--rounds 3] [--seed 0] [--minutes 0] [--commands NAME ...]``
kills ``features``, ``benchmark``, ``train``, ``audit``, ``validate``, ``reproduce`` and
``multiverse`` with 1, 2 and 4 jobs: the process group, the parent alone (its workers must end), or
one worker (the command must end well by itself). Commands on a Dask cluster lose a worker, or the
scheduler. After each kill no process of the command may be alive and nothing may lie in shared
memory; run again, the command must write what the undisturbed run wrote. ``--minutes 60`` repeats
rounds until an hour is over. It prints one line per kill and ends with 1 if anything was lost or
differs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from tests.paper.releases import write_modma3

from idfsmec.recordings import simulate_cohort
from idfsmec.table import FeatureTable

SOURCE_TREE = Path(__file__).parents[2] / "src"
IDFSMEC = (sys.executable, "-m", "idfsmec")
# Seconds that the workers of a killed parent may take to end.
PATIENCE = 15.0


@dataclass(frozen=True)
class Inputs:
    """What the commands read."""

    manifest: Path  # of simulated recordings
    table: Path  # of features
    other: Path  # the same of other participants
    release: Path  # recordings in the layout of MODMA with three channels
    model: Path


def write_inputs(folder: Path) -> Inputs:
    """Simulate recordings and tables of features."""
    lines = ["path,subject,label"]
    cohort = simulate_cohort(8, 19, duration=20, artifacts=False, random_state=0)
    for recording in cohort.recordings:
        name = f"{recording.subject}_raw.fif"
        recording.load().save(folder / name, verbose="error")
        lines.append(f"{name},{recording.subject},{recording.label}")
    manifest = folder / "study.csv"
    manifest.write_text("\n".join(lines) + "\n")
    tables = [_simulate_table(seed).write(folder / f"table{seed}.parquet") for seed in (0, 1)]
    inputs = Inputs(manifest, *tables, folder / "modma", folder / "model.skops")
    write_modma3(inputs.release, n_people=24)
    run([*IDFSMEC, "train", str(inputs.table), "--folds", "3", "-o", str(inputs.model)])
    return inputs


def _simulate_table(seed: int) -> FeatureTable:
    """Make a table of 30 participants; each of another seed has other ones."""
    rng = np.random.default_rng(seed)
    columns = [f"{channel}__{feature}" for channel in ("Cz", "Fp1", "O1") for feature in "abcd"]
    X = pd.DataFrame(rng.normal(size=(120, 12)), columns=columns)
    X["Cz__a"] += np.tile([0.0, 1.0], 60)
    subjects = [f"s{seed}{i % 30:02d}" for i in range(120)]
    rows = pd.DataFrame({"age": rng.integers(20, 60, 30)[np.arange(120) % 30]})
    return FeatureTable(X, ["HC", "MDD"] * 60, subjects, rows=rows)


@dataclass(frozen=True)
class Command:
    """A command, its output, and how to read what two runs must have in common."""

    name: str
    arguments: tuple[str, ...]
    output: str
    read: Callable[[Path], object]

    def line(self, out: Path, *options: str) -> list[str]:
        """Return the command line that writes into a folder."""
        return [*IDFSMEC, self.name, *self.arguments, "-o", str(out / self.output), *options]


def _read_results(folder: Path) -> object:
    results = pd.read_csv(folder / "results.csv", dtype=str).drop(columns="seconds")
    files = sorted(path.name for path in folder.iterdir())
    return results.to_csv(), files, [(folder / "selections.parquet").read_bytes()]


def _read_files(folder: Path) -> object:
    """Read all but pages, stores and the environment, which hold times."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".json"))
    return {path.name: path.read_bytes() for path in files if path.name != "environment.json"}


def commands(inputs: Inputs) -> list[Command]:
    """Return the commands that are killed."""
    table, other = str(inputs.table), str(inputs.other)
    chosen = ("--methods", "IDFS-MEC,ANOVA F,mRMR")
    grid = ("--rates", "0.1,0.3", "--k", "3,6", "--folds", "3")
    several = (str(inputs.manifest), "--specifications", "12")
    paper = ("modma3", "--data", str(inputs.release), "--methods", "ANOVA F")
    return [
        Command("features", (str(inputs.manifest), "--epoch", "5"), "t.parquet", Path.read_bytes),
        Command("benchmark", (table, *chosen, *grid), "results", _read_results),
        Command("train", (table, "--folds", "3"), "model.skops", Path.read_bytes),
        Command("audit", (table, "--folds", "3"), "audit", _read_files),
        Command("validate", (str(inputs.model), other), "validation", _read_files),
        Command("reproduce", paper, "paper", _read_results),
        Command("multiverse", several, "multiverse", _read_files),
    ]


NAMES = ("features", "benchmark", "train", "audit", "validate", "reproduce", "multiverse")


def environment() -> dict[str, str]:
    """Return variables with which processes import this source tree."""
    path = os.pathsep.join([str(SOURCE_TREE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path}


def start(line: list[str]) -> subprocess.Popen[bytes]:
    """Start in a session of its own, so that a kill can hit its workers, too."""
    return subprocess.Popen(
        [*line, "--quiet"],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run(line: list[str]) -> float:
    """Run to the end and return the seconds taken."""
    began = time.monotonic()
    with start(line) as process:
        _, message = process.communicate()
    if process.returncode:
        raise RuntimeError(message.decode())
    return time.monotonic() - began


def alive(session: int) -> list[psutil.Process]:
    """Return the processes of a session that have not ended."""
    processes = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return processes


def shared_files(pid: int) -> list[str]:
    """Name what a process left in shared memory; its own number may stay for the next run."""
    folders = [
        path.parent
        for path in Path("/dev/shm").glob("idfsmec-shared-*/process")  # noqa: S108, it is only read
        if path.read_text() == str(pid)
    ]
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if path.name != "process"]


def kill(process: subprocess.Popen[bytes], target: str, chance: random.Random) -> bool:
    """Kill a part of a running command and wait for what must end; False if it had ended."""
    workers = [p for p in alive(process.pid) if p.pid != process.pid]
    if target == "worker":
        # joblib's resource tracker is no worker; it has no children and loads no data.
        workers = [p for p in workers if "loky.backend.popen" in " ".join(p.cmdline())]
        if not workers:
            return False
        chance.choice(workers).kill()
        process.communicate()
        return True
    if process.poll() is not None:
        return False
    if target == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
    return True


def left_alive(session: int) -> list[str]:
    """Wait until no process of a session is alive; return those that stay."""
    until = time.monotonic() + PATIENCE
    while (processes := alive(session)) and time.monotonic() < until:
        time.sleep(0.1)
    return [" ".join(process.cmdline()) for process in processes]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], list[psutil.Process]]]:
    """Start a Dask scheduler and two workers; give address, scheduler and workers."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    dask = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*dask, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        + ["--no-dashboard", "--scheduler-file", str(file)],
        **quiet,
    )
    workers = [
        subprocess.Popen(
            [*dask, "distributed.cli.dask_worker", "--scheduler-file", str(file)]
            + ["--nthreads", "1", "--no-nanny", "--no-dashboard"],
            env=environment(),
            **quiet,
        )
        for _ in range(2)
    ]
    try:
        from distributed import Client

        while not file.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(file), timeout="60s") as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, scheduler, [psutil.Process(worker.pid) for worker in workers]
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def disturb(command: Command, out: Path, seconds: float, target: str, jobs: int, seed: str) -> str:
    """Kill a command once; return what is wrong afterwards, or nothing."""
    chance = random.Random(seed)
    process = start(command.line(out, "--jobs", str(jobs)))
    time.sleep(chance.uniform(0.2, 1.0) * seconds)
    if not kill(process, target, chance):
        process.communicate()
        return "ended before"
    problems = []
    if stayed := left_alive(process.pid):
        problems.append(f"alive: {stayed}")
    if target == "worker" and process.returncode:
        problems.append(f"ended with {process.returncode} after a worker's death")
    if target == "group":  # no process was left to clear it: the next run with workers does
        run(command.line(out, "--jobs", "2", "--force"))
    if remains := shared_files(process.pid):
        problems.append(f"in shared memory: {remains}")
    return "; ".join(problems)


def disturb_cluster(command: Command, out: Path, seconds: float, target: str, seed: str) -> str:
    """Kill a worker or the scheduler of the cluster that a command uses."""
    chance = random.Random(seed)
    with cluster(out) as (address, scheduler, workers):
        process = start(command.line(out, "--dask", address))
        time.sleep(chance.uniform(0.3, 1.0) * seconds)
        if process.poll() is not None:
            process.communicate()
            return "ended before"
        (scheduler if target == "scheduler" else workers[0]).kill()
        _, message = process.communicate(timeout=300)
    lines = message.decode().strip().splitlines()
    if target == "worker" and process.returncode:
        return f"ended with {process.returncode}: {lines[-1:]}"
    return "a traceback" if "Traceback" in message.decode() else ""


def trials(folder: Path, rounds: int, seed: int, minutes: float, names: Sequence[str]) -> int:
    """Kill every command in every way; return the number of kills after which all was well."""
    expected, seconds = {}, {}
    cases = [command for command in commands(write_inputs(folder)) if command.name in names]
    for command in cases:
        undisturbed = folder / "undisturbed" / command.name
        undisturbed.mkdir(parents=True)
        seconds[command.name] = run(command.line(undisturbed))
        expected[command.name] = command.read(undisturbed / command.output)
    ways = [(t, j) for t in ("group", "parent", "worker") for j in (1, 2, 4)]
    ways = [*(way for way in ways if way != ("worker", 1)), ("scheduler", 0), ("worker", 0)]
    bad = kills = number = 0
    until = time.monotonic() + 60 * minutes
    while number < rounds or time.monotonic() < until:
        for command in cases:
            for target, jobs in ways:
                name, label = f"{number}-{command.name}-{target}-{jobs}", command.name
                out = folder / "out" / name
                out.mkdir(parents=True)
                if jobs:
                    wrong = disturb(command, out, seconds[label], target, jobs, f"{seed}-{name}")
                else:
                    wrong = disturb_cluster(command, out, seconds[label], target, f"{seed}-{name}")
                kills += wrong != "ended before"
                resumes = label in ("benchmark", "reproduce")
                again = command.line(out, *([] if resumes else ["--force"]))
                run(again)
                if command.read(out / command.output) != expected[label]:
                    wrong += " DIFFERS"
                bad += wrong not in ("", "ended before")
                print(f"{name}: {wrong or 'identical'}", flush=True)
                shutil.rmtree(out)
        number += 1
        print(f"{kills} kills in {number} rounds; {bad} bad", flush=True)
    return bad


def main() -> int:
    """Run all trials in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--commands", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    choice = options.rounds, options.seed, options.minutes, options.commands
    with tempfile.TemporaryDirectory() as folder:
        return int(trials(Path(folder), *choice) > 0)


if __name__ == "__main__":
    sys.exit(main())
