"""Make a table of 2000 small EDF files, killed again and again; compare with one made in peace.

``python -m benchmarks.endurance.many_recordings [recordings] [seconds between kills] [seed]``
writes recordings of 3 channels and 6 s, each of another person, and kills ``idfsmec features``
with two workers after random times around the one given: the whole group, the parent alone, or by
SIGTERM, in turn; twice as late as before after a kill that came before a recording was finished,
as on a busy machine. The table must have the same bytes, and no file may be left beside it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import edfio
import numpy as np

from benchmarks.endurance.hour import end
from benchmarks.endurance.kill import run, start

RATE = 250
SECONDS = 6
CHANNELS = ("Fp1", "Cz", "O1")


def pink(rng: np.random.Generator) -> np.ndarray:
    """Noise whose power falls with the frequency, 20 uV: what the detection takes for EEG."""
    n = RATE * SECONDS
    shape = 1 / np.sqrt(np.maximum(np.fft.rfftfreq(n, 1 / RATE), 1.0))
    noise = np.fft.irfft(np.fft.rfft(rng.normal(size=n)) * shape, n)
    return 20 * noise / noise.std()


def write_study(folder: Path, n: int) -> Path:
    """Write EDF files and a manifest."""
    rng = np.random.default_rng(0)
    lines = ["path,subject,label"]
    for number in range(n):
        common = pink(rng)
        signals = [
            edfio.EdfSignal(common + pink(rng), RATE, label=name, physical_dimension="uV")
            for name in CHANNELS
        ]
        edfio.Edf(signals).write(folder / f"s{number:04d}.edf")
        lines.append(f"s{number:04d}.edf,s{number:04d},{('HC', 'MDD')[number % 2]}")
    manifest = folder / "study.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def command(manifest: Path, output: Path) -> list[str]:
    options = ["features", str(manifest), "-o", str(output), "--epoch", "2", "--jobs", "2"]
    return [sys.executable, "-m", "idfsmec", *options]


def n_kept(output: Path) -> int:
    """Recordings that are finished and kept for the next run."""
    return len(list(output.with_name(f".{output.name}.parts").glob("*.npz")))


def main(n: int = 2000, period: int = 15, seed: int = 0) -> int:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "out").mkdir()
        began = time.monotonic()
        manifest = write_study(folder, n)
        print(f"{n} recordings written in {time.monotonic() - began:.0f} s", flush=True)
        peaceful, output = folder / "undisturbed.parquet", folder / "out" / "table.parquet"
        seconds = run(command(manifest, peaceful))
        print(f"undisturbed: {seconds:.0f} s", flush=True)
        kills: Counter[str] = Counter()
        patience = period
        while not output.exists():
            way = ("group", "parent", "term")[kills.total() % 3]
            before = n_kept(output)
            with start(command(manifest, output)) as process:
                try:
                    process.wait(timeout=chance.uniform(0.5, 1.5) * patience)
                except subprocess.TimeoutExpired:
                    end(process, way)
                    kills[way] += 1
                _, said = process.communicate()
            if process.returncode and b"Traceback" in said:
                raise RuntimeError(said.decode())
            print(f"{way}: {before} -> {n_kept(output)}", flush=True)
            if not output.exists() and n_kept(output) < before:
                raise RuntimeError("finished recordings were lost")
            patience = period if n_kept(output) > before else 2 * patience
        same = output.read_bytes() == peaceful.read_bytes()
        beside = sorted(path.name for path in (folder / "out").iterdir())
        strangers = [name for name in beside if not name.startswith(output.name)]
    print(f"{n} recordings ({seconds:.0f} s undisturbed), {kills.total()} kills: {dict(kills)};")
    print(f"the same bytes: {same}; left beside the table: {strangers or 'nothing'}")
    return int(not same or bool(strangers))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
