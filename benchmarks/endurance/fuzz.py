"""Damage recordings of every format and give them to ``idfsmec features``, one process away.

``python -m benchmarks.endurance.fuzz 200 [RECORDING...] [--seed 0] [--formats set mat] [--load]``
converts ten seconds of each recording to EDF, SET, SET with FDT, BrainVision, FIF and MODMA's MAT,
damages a copy, and has a child make a table of it (``--load``: only open it, which is quicker). A
file gives a table, is refused in one line, or is a failure: a crash of the child, no answer within
the limit, an error that is not meant for people, or a table that is none. What failed is kept in
``--keep``. Without recordings, simulated ones are used.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import mne
import numpy as np
from scipy.io import loadmat, savemat

from idfsmec.recordings import simulate_cohort

SOURCE_TREE = Path(__file__).parents[2] / "src"
SECONDS = 10.0
LIMIT = 30.0
"""Seconds for one file, on a busy machine."""
FINE = ("table", "opened", "refused", "signals refused")
FORMATS = ("edf", "set", "fdt", "vhdr", "fif", "mat")


def write_all(raw: mne.io.BaseRaw, folder: Path) -> None:
    """Write one recording in every format, each in a folder of its own."""
    for kind in FORMATS:
        (folder / kind).mkdir(parents=True)
    options = {"overwrite": True, "verbose": "error"}
    mne.export.export_raw(folder / "edf" / "r.edf", raw, physical_range="auto", **options)
    mne.export.export_raw(folder / "set" / "r.set", raw, **options)
    mne.export.export_raw(folder / "vhdr" / "r.vhdr", raw, **options)
    raw.save(folder / "fif" / "r_raw.fif", verbose="error")
    struct = loadmat(folder / "set" / "r.set", simplify_cells=True)
    fields = {name: field for name, field in struct.items() if not name.startswith("__")}
    savemat(folder / "fdt" / "r.set", {"EEG": fields | {"data": "r.fdt"}})
    signals = raw.get_data()
    (folder / "fdt" / "r.fdt").write_bytes((signals * 1e6).astype("<f4").T.tobytes())
    many = np.resize(signals * 1e6, (129, raw.n_times))
    variables = {"a_rest": many, "samplingRate": raw.info["sfreq"]}
    savemat(folder / "mat" / "02010002rest.mat", variables)


def damage(content: bytes, chance: random.Random) -> bytes:
    """Change some bytes, mostly where the header is."""
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        reach = chance.choice([64, 512, 4096, len(damaged)])
        place = chance.randrange(max(min(reach, len(damaged)), 1))
        if chance.random() < 0.2:  # the end counts too: FIF and MAT go on there
            place = max(len(damaged) - 1 - place, 0)
        width = chance.choice([1, 2, 4, 8])
        what = chance.choice(
            ["flip", "flip", "extreme", "number", "drop", "insert", "copy", "cut"]
        )
        if what == "flip" and damaged:
            damaged[place] ^= 1 << chance.randrange(8)
        elif what == "extreme":
            damaged[place : place + width] = chance.choice([b"\x00", b"\xff", b"\x7f"]) * width
        elif what == "number":
            digits = str(chance.choice([0, -1, 1, 7, 99999999, 2**31 - 1, 1e300])).encode()
            damaged[place : place + len(digits)] = digits
        elif what == "drop":
            del damaged[place : place + chance.randint(1, 64)]
        elif what == "insert":
            damaged[place:place] = chance.randbytes(chance.randint(1, 64))
        elif what == "copy":
            other = chance.randrange(max(len(damaged), 1))
            damaged[place : place + 64] = damaged[other : other + 64]
        elif chance.random() < 0.3:
            del damaged[place:]
    return bytes(damaged)


def put_damaged(sound: Path, folder: Path, chance: random.Random) -> str:
    """Copy a recording into a folder, one of its files damaged; which."""
    names = sorted(path.name for path in sound.iterdir())
    # Signals of other files are seldom what matters, their headers are.
    victim = chance.choice([name for name in names if Path(name).suffix not in (".fdt", ".eeg")])
    if chance.random() < 0.1:
        victim = chance.choice(names)
    folder.mkdir()
    for name in names:
        content = (sound / name).read_bytes()
        (folder / name).write_bytes(damage(content, chance) if name == victim else content)
    first = next(name for name in names if Path(name).suffix not in (".fdt", ".eeg", ".vmrk"))
    (folder / "study.csv").write_text(f"path,subject,label\n{first},s1,HC\n")
    return victim


class Child:
    """A process that answers whether files are sound; a new one when it has died."""

    def __init__(self, load: bool) -> None:
        self._load = load
        self._answers: queue.Queue[str] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, folder: Path, kind: str) -> dict[str, object]:
        """What came of a recording, by ``verdict`` and ``said``."""
        process = self._process = self._process or self._start()
        began = time.monotonic()
        print(json.dumps([str(folder), kind, self._load]), file=process.stdin, flush=True)
        try:
            said = self._answers.get(timeout=LIMIT)
        except queue.Empty:
            self.end()
            return {"verdict": "hang", "said": f"no answer in {LIMIT:.0f} s"}
        if not said:
            code = process.wait()
            self.end()
            return {"verdict": "crash", "said": f"ended with {code}"}
        return {**json.loads(said), "seconds": time.monotonic() - began}

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._answers = queue.Queue()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.endurance._fuzz_child"],
            env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(
            target=_pass_on, args=[process.stdout, self._answers], daemon=True
        ).start()
        self._answers.get(timeout=120)  # it has imported everything
        return process


def _pass_on(lines: Iterable[str], answers: queue.Queue[str]) -> None:
    for line in lines:
        answers.put(line)
    answers.put("")


def sound_recordings(paths: list[Path], folder: Path) -> list[Path]:
    """Folders with recordings in every format."""
    if paths:
        raws = [mne.io.read_raw(path, verbose="error").crop(0, SECONDS) for path in paths]
    else:
        cohort = simulate_cohort(2, 19, duration=int(SECONDS), artifacts=False, random_state=0)
        raws = [recording.load() for recording in cohort.recordings]
    for number, raw in enumerate(raws):
        write_all(raw.load_data(verbose="error").pick("eeg"), folder / str(number))
    return [folder / str(number) for number in range(len(raws))]


def fuzz(options: argparse.Namespace, folder: Path) -> int:
    chance = random.Random(options.seed)
    sound = sound_recordings(options.recordings, folder / "sound")
    verdicts: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    child = Child(options.load)
    for number in range(options.n):
        kind = options.formats[number % len(options.formats)]
        place = folder / f"{number:06d}"
        victim = put_damaged(chance.choice(sound) / kind, place, chance)
        answer = child.ask(place, kind)
        verdict = str(answer["verdict"])
        verdicts[kind, verdict] += 1
        slowest = max(slowest, float(str(answer.get("seconds", LIMIT))))
        if verdict not in FINE:
            print(f"{number} {kind} {victim}: {verdict}: {answer['said']}", flush=True)
            if options.keep:
                shutil.copytree(place, options.keep / f"{options.seed}-{number:06d}-{kind}")
        shutil.rmtree(place)
    child.end()
    for kind in options.formats:
        found = {verdict: n for (one, verdict), n in sorted(verdicts.items()) if one == kind}
        print(f"{kind}: {', '.join(f'{n} {verdict}' for verdict, n in found.items())}")
    bad = sum(n for (_, verdict), n in verdicts.items() if verdict not in FINE)
    print(f"{options.n} files, seed {options.seed}: {bad} failures; slowest {slowest:.1f} s")
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("recordings", type=Path, nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=FORMATS)
    parser.add_argument("--load", action="store_true", help="only open the files")
    parser.add_argument("--keep", type=Path, help="folder for what failed")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as place:
        return fuzz(options, Path(place))


if __name__ == "__main__":
    sys.exit(main())
