"""Cost of sums over a folder of Parquet files, against the same sums in plain NumPy.

``python -m benchmarks streaming``, or ``python -m benchmarks.speed.streaming ROWS CHANNELS
FEATURES SAMPLES_PER_PARTICIPANT [JOBS]`` for another size. The table is simulated in a temporary
folder; each participant lacks a tenth of the channels. The plain program reads all columns of some
rows at a time, twice, and computes what the sums are made of, nothing else: means by participant,
then weighted products by channel and cell, in fixed folds. Each program runs in a process of its
own; CPU seconds are those of it and its children, and the memory is that of its largest process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._timing import markdown

SIZE = (400_000, 19, 18, 100)
N_FILES, N_FOLDS = 4, 4
PROGRAMS = ("read", "plain", "sums")


def write_folder(folder: Path, n_rows: int, n_channels: int, n_features: int, each: int) -> None:
    """Write a simulated table of two classes."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number, subjects in enumerate(np.array_split(np.arange(n_rows // each), N_FILES)):
        rows = np.repeat(subjects, each)
        columns = {
            "subject": pa.array([f"s{i:06d}" for i in rows]),
            "label": pa.array(np.where(rows % 2, "MDD", "HC")),
        }
        for channel in range(n_channels):
            missing = np.repeat(rng.random(subjects.size) < 0.1, each)
            for feature in range(n_features):
                values = rng.standard_normal(rows.size) + 0.3 * (channel == 0) * (rows % 2)
                columns[f"E{channel}__f{feature}"] = pa.array(values, mask=missing)
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", write_page_checksum=True)


def batches(folder: Path) -> Iterator[pa.RecordBatch]:
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(20_000, use_threads=False)


def pieces(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Subjects, classes and values (D, n) of some rows."""
    for batch in batches(folder):
        X = np.empty((batch.num_columns - 2, len(batch)))
        for values, column in zip(X, batch.columns[2:], strict=True):
            values[:] = column.to_numpy(zero_copy_only=False)
        coded = batch.column(0).dictionary_encode()
        subjects = np.array(coded.dictionary.to_pylist())[coded.indices.to_numpy()]
        yield subjects, np.array(batch.column(1).to_pylist()) == "MDD", X


def plain_sums(folder: Path, d: int) -> np.ndarray:
    """Sum up in two readings; subjects do not come again in another file."""
    known: dict[str, int] = {}
    parts = []
    for subjects, _, X in pieces(folder):
        starts = np.flatnonzero(np.append(True, subjects[1:] != subjects[:-1]))
        who = [known.setdefault(name, len(known)) for name in subjects[starts]]
        seen = ~np.isnan(X[::d])
        X[np.isnan(X)] = 0.0
        sums, counts = (np.add.reduceat(part, starts, axis=1, dtype=float) for part in (X, seen))
        parts.append((who, sums, counts))
    sums, counts = np.zeros((len(X), len(known))), np.zeros((len(seen), len(known)))
    for who, *both in parts:
        sums[:, who] += both[0]
        counts[:, who] += both[1]
    fold = np.random.default_rng(0).integers(0, N_FOLDS, len(known))
    products = np.zeros((len(seen), 2 * N_FOLDS, d, d))
    for subjects, label, X in pieces(folder):
        names, where = np.unique(subjects, return_inverse=True)
        member = np.array([known[name] for name in names])[where]
        cell = 2 * fold[member] + label
        order = np.argsort(cell, kind="stable")
        ends = np.searchsorted(cell[order], np.arange(2 * N_FOLDS + 1))
        for channel in range(len(seen)):
            values = X[channel * d : (channel + 1) * d][:, order]
            weights = ~np.isnan(values[0]) / np.maximum(counts[channel, member[order]], 1)
            values[:, np.isnan(values[0])] = 0.0
            for number in range(2 * N_FOLDS):
                part = slice(*ends[number : number + 2])
                products[channel, number] += (values[:, part] * weights[part]) @ values[:, part].T
    return products


def child(program: str, folder: str, n_features: str, n_jobs: str) -> None:
    """Run one program and print what it took."""
    from idfsmec.federated.streaming import stream_sums

    began, before = time.perf_counter(), cpu_seconds()
    if program == "read":
        for _ in batches(Path(folder)):
            pass
    elif program == "plain":
        plain_sums(Path(folder), int(n_features))
    else:
        with joblib.parallel_config(n_jobs=int(n_jobs)):
            stream_sums(folder)
    wall = time.perf_counter() - began
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown()
    largest = max(getrusage(who).ru_maxrss for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    print(json.dumps([wall, cpu_seconds() - before, largest / 2**20]))


def cpu_seconds() -> float:
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def main(size: tuple[int, ...] = SIZE, n_jobs: int = 1) -> None:
    """Print seconds, memory and the ratio."""
    n_rows, n_channels, n_features, _ = size
    found = {}
    with tempfile.TemporaryDirectory() as base:
        write_folder(Path(base) / "table", *size)
        command = [sys.executable, "-m", "benchmarks.speed.streaming", "--child"]
        for program in PROGRAMS:
            arguments = [program, f"{base}/table", str(n_features), str(n_jobs)]
            run = subprocess.run([*command, *arguments], check=True, capture_output=True)
            found[program] = json.loads(run.stdout.splitlines()[-1])
    names = ("reading once", "plain NumPy, two readings", f"idfsmec, {n_jobs} jobs")
    rows = [
        [name, f"{wall:.1f}", f"{cpu:.1f}", f"{memory:.2f}"]
        for name, (wall, cpu, memory) in zip(names, found.values(), strict=True)
    ]
    print(f"{n_rows:,} rows x {n_channels} channels x {n_features} features\n")
    print(markdown(["program", "seconds", "CPU seconds", "GiB"], rows))
    ratio = found["sums"][1] / found["plain"][1]
    print(f"\nCPU, idfsmec / plain NumPy: {ratio:.2f}   (aim: at most 2.5)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        numbers = [int(text) for text in sys.argv[1:]]
        main(tuple(numbers[:4]) or SIZE, *numbers[4:])
