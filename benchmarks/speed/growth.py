"""How CPU time and memory of the commands grow with rows, channels and participants.

``python -m benchmarks growth``, or ``python -m benchmarks.speed.growth RESULTS.csv`` to keep lines
as they come and go on with them. Tables are simulated, with a tenth of the channels missing; each
quantity takes three sizes, each twice the last. Numbers of folds, repeats and halves are small,
which changes no exponent. Each command runs once in this process, on one core, after a run on a
small table. Memory is the peak above what the process held before. An exponent is the slope of
the line through the logarithms of the three sizes.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._timing import markdown
from idfsmec import FeatureTable, cli

#: Participants, rows of each and channels of the smallest table; features of a channel.
BASE, N_FEATURES = {"participants": 80, "rows": 20, "channels": 24}, 6
FACTORS = (1, 2, 4)
SMALL = {"folds": 2, "k": "10", "rates": "0.3", "methods": "IDFS-MEC,ANOVA F", "repeats": 1}


def make_table(participants: int, rows: int, channels: int) -> FeatureTable:
    """Simulate a table in which the first channels differ between the classes."""
    rng = np.random.default_rng(0)
    n = participants * rows
    subject = np.repeat(np.arange(participants), rows)
    X = rng.standard_normal((n, channels, N_FEATURES))
    X += 0.7 * rng.standard_normal((participants, channels, N_FEATURES))[subject]
    X[:, : channels // 8] += 0.5 * (subject % 2)[:, None, None]
    X[rng.random((participants, channels))[subject] < 0.1] = np.nan
    names = [f"E{v}__f{j}" for v in range(1, channels + 1) for j in range(N_FEATURES)]
    labels = pd.Series(np.where(subject % 2, "MDD", "HC"))
    subjects = pd.Series([f"s{i:04d}" for i in subject])
    return FeatureTable(pd.DataFrame(X.reshape(n, -1), columns=names), labels, subjects)


def commands(base: Path) -> dict[str, Callable[[], object]]:
    """Commands in the order in which one needs the other."""
    table, results = base / "table.parquet", base / "results"
    ledger = {"study_key": base / "key", "ledger": base / "ledger", "force": True}
    quick = {"jobs": 1, "force": True}
    return {
        "select": lambda: cli.select(table, base / "a.csv", **quick),
        "select FOLDER": lambda: cli.select(base / "folder", base / "b.csv", **quick),
        "select --resamples 20": lambda: cli.select(table, base / "c.csv", resamples=20, **quick),
        "select --tune": lambda: cli.select(table, base / "d.csv", tune=True, **quick),
        "audit": lambda: cli.audit(table, base / "audit", folds=2, **quick),
        "benchmark": lambda: cli.benchmark(
            table, results, experiment="accuracy", resamples=0, **SMALL, **quick
        ),
        "train": lambda: cli.train(table, base / "m.skops", folds=2, repeats=1, **quick),
        "predict": lambda: cli.predict(base / "m.skops", table, base / "p.csv", force=True),
        "validate": lambda: cli.validate(
            base / "m.skops", table, base / "v", include_training=True, **quick
        ),
        "summarise": lambda: cli.summarise(table, base / "s.summary", site="a", **ledger),
    }


def measure(run: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, and peak memory in MiB above the present."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, began = _memory("VmRSS"), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run()
    return time.process_time() - began, _memory("VmHWM") - before


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def sizes() -> list[dict[str, int]]:
    """The small table of the first run, and each quantity in its sizes."""
    bigger = [BASE | {name: BASE[name] * f} for f in FACTORS[1:] for name in BASE]
    return [BASE, *bigger]


def main(kept: Path | None = None) -> None:
    """Print exponents."""
    warnings.simplefilter("ignore")
    lines = pd.read_csv(kept).to_dict("records") if kept and kept.exists() else []
    with tempfile.TemporaryDirectory() as place:
        for number, size in enumerate([{k: v // 2 for k, v in BASE.items()}, *sizes()]):
            base = Path(place) / str(number)
            base.mkdir()
            if number and sum(all(x[k] == v for k, v in size.items()) for x in lines) >= 10:
                continue
            table = make_table(**size)
            table.write(base / "table.parquet")
            (base / "folder").mkdir()
            table.write(base / "folder" / "part.parquet")
            del table
            for name, run in commands(base).items():
                cpu, memory = measure(run)
                if number:
                    lines.append({"command": name, **size, "cpu": cpu, "memory": memory})
                    if kept:
                        pd.DataFrame(lines).to_csv(kept, index=False)
    frame = pd.DataFrame(lines)
    rows = []
    for name, of_command in frame.groupby("command", sort=False):
        indexed = of_command.set_index([*BASE])
        row = [name]
        for what in ("cpu", "memory"):
            for quantity in BASE:
                first, last = (
                    indexed.loc[tuple((BASE | {quantity: BASE[quantity] * f}).values()), what]
                    for f in (FACTORS[0], FACTORS[-1])
                )
                row.append(f"{np.log(last / first) / np.log(FACTORS[-1]):.1f}")
        largest = of_command.loc[of_command["cpu"].idxmax()]
        rows.append([*row, f"{largest['cpu']:.1f}", f"{of_command['memory'].max():.0f}"])
    quantities = [f"{what}: {name}" for what in ("time", "memory") for name in BASE]
    print(markdown(["command", *quantities, "most CPU s", "most MiB"], rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
