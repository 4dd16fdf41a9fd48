"""Kill ``idfsmec features`` at random moments, resume it, and compare with an undisturbed run.

``python -m benchmarks.endurance.kill [kills] [seed]`` prints one line per kill and a summary, and
ends with 1 if any table differs by a bit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idfsmec.recordings import simulate_cohort

N_SUBJECTS = 8
SOURCE_TREE = Path(__file__).parents[2] / "src"


def write_study(folder: Path, n_subjects: int = N_SUBJECTS, n_channels: int = 19) -> Path:
    """Write a simulated study as FIF files with a manifest."""
    lines = ["path,subject,label"]
    cohort = simulate_cohort(n_subjects, n_channels, duration=20, artifacts=False, random_state=0)
    for recording in cohort.recordings:
        name = f"{recording.subject}_raw.fif"
        recording.load().save(folder / name, verbose="error")
        lines.append(f"{name},{recording.subject},{recording.label}")
    manifest = folder / "study.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def features_command(manifest: Path, output: Path) -> list[str]:
    arguments = ["features", str(manifest), "-o", str(output), "--epoch", "5"]
    return [sys.executable, "-m", "idfsmec", *arguments]


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start in a session of its own, so that a kill hits its workers, too."""
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run(command: Sequence[str]) -> float:
    """Run to the end; seconds taken."""
    began = time.monotonic()
    with start(command) as process:
        _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(said.decode())
    return time.monotonic() - began


@dataclass(frozen=True)
class Kill:
    """What one kill left behind and what the next run made of it."""

    parts_before: int
    delay: float
    killed: bool
    parts: int
    output_there: bool
    strangers: int
    same: bool


def kill_once(
    manifest: Path, output: Path, n_finished: int, delay: float, expected: bytes
) -> Kill:
    """Kill a run some time after so many recordings are finished; then resume it."""
    parts = output.with_name(f".{output.name}.parts")
    with start(features_command(manifest, output)) as process:
        while process.poll() is None and len(list(parts.glob("*.npz"))) < n_finished:
            time.sleep(0.005)
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    killed = process.returncode == -signal.SIGKILL
    there, n_parts = output.exists(), len(list(parts.glob("*.npz")))
    if there and output.read_bytes() != expected:
        return Kill(n_finished, delay, killed, n_parts, there, 0, same=False)
    if killed and not there:
        run(features_command(manifest, output))
    same = output.read_bytes() == expected
    strangers = len([path for path in output.parent.iterdir() if path != output])
    output.unlink()
    return Kill(n_finished, delay, killed, n_parts, there, strangers, same)


def main(n_kills: int = 30, seed: int = 0) -> int:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "out").mkdir()
        manifest = write_study(folder)
        undisturbed = folder / "undisturbed.parquet"
        seconds = run(features_command(manifest, undisturbed))
        expected = undisturbed.read_bytes()
        results = []
        for number in range(n_kills):
            # From the start of the program to the writing of the table.
            n_finished = chance.randint(0, N_SUBJECTS)
            delay = chance.uniform(0.0, 0.15 if n_finished else seconds / 2)
            output = folder / "out" / "table.parquet"
            result = kill_once(manifest, output, n_finished, delay, expected)
            results.append(result)
            print(number + 1, result, flush=True)
    killed = sum(result.killed for result in results)
    good = sum(result.same for result in results)
    print(f"{killed} of {n_kills} runs killed ({seconds:.1f} s undisturbed); {good} identical;")
    print(f"{sum(result.parts > 0 for result in results)} resumed from finished recordings;")
    print(f"{sum(result.strangers for result in results)} files left behind.")
    return int(good < n_kills)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
