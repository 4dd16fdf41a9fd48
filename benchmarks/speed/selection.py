"""IDFSMEC against its peers on one table: seconds, ratios, peak memory, growth."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
import warnings

import numpy as np
from celer import GroupLasso
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks._data import channel_table
from benchmarks._timing import markdown, time_in_turns
from benchmarks.speed._paper import fit_literally
from idfsmec import IDFSMEC
from idfsmec.solver.sums import table_sums

_COLD = """
import time
import numpy as np
from idfsmec import IDFSMEC
from benchmarks._data import channel_table
X, y, channels = channel_table({n_channels})
start = time.perf_counter()
IDFSMEC(channels).fit(X, y)
print(time.perf_counter() - start)
"""


def main() -> None:
    """Print all tables of this module."""
    print(
        "## IDFSMEC from a cold process, after import (2000 samples, 18 features, 30 % missing)\n"
    )
    print(markdown(["channels", "seconds"], [[str(n), f"{cold(n):.3f}"] for n in (3, 64, 128)]))
    print("\n## Against peers, 128 channels x 18 features x 2000 samples, 30 % missing\n")
    print(against_peers())
    print("\n## What weighing channels by held-out people costs (one thread, processor time)\n")
    print(held_out_cost())
    print("\n## Peak memory\n")
    print(peak_memory())
    print("\n## Growth with channels and samples\n")
    print(growth())


def held_out_cost(repeats: int = 5) -> str:
    """Processor seconds of fits by either channel loss, best of several in turns."""
    X, y, channels = channel_table(128)
    people = np.arange(y.size) // 20
    programs = {
        loss: lambda loss=loss: IDFSMEC(channels, channel_loss=loss).fit(X, y, people)
        for loss in ("in-sample", "held-out")
    }
    best = dict.fromkeys(programs, np.inf)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(repeats):
            for name, program in programs.items():
                start = time.process_time()
                program()
                best[name] = min(best[name], time.process_time() - start)
    rows = [[name, f"{one:.3f}", f"{one / best['in-sample']:.2f}"] for name, one in best.items()]
    return markdown(["channel loss", "seconds", "ratio"], rows)


def cold(n_channels: int) -> float:
    """Seconds of the first fit in a new process; the best of three processes."""
    program = _COLD.format(n_channels=n_channels)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ["src", "."]))}
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout
        for _ in range(3)
    ]
    return min(float(run) for run in runs)


def against_peers() -> str:
    """Seconds of every program and how many times longer than IDFSMEC it takes."""
    X, y, channels = channel_table()
    target = np.where(y == 1, 1.0, -1.0)
    columns, folds = list(np.arange(X.shape[1]).reshape(-1, 18)), np.zeros((1, len(y)), dtype=int)
    programs = {
        "IDFSMEC": lambda: IDFSMEC(channels).fit(X, y),
        "its sums alone": lambda: table_sums(X, columns, y, folds, 2),
        "random forest of 300 trees": lambda: make_pipeline(
            SimpleImputer(),
            SelectFromModel(RandomForestClassifier(300, n_jobs=2, random_state=0)),
        ).fit(X, y),
    }
    slow = {
        "KNNImputer + celer.GroupLasso": lambda: make_pipeline(
            KNNImputer(), GroupLasso(groups=18, alpha=0.01)
        ).fit(X, target),
        "the paper's algorithm, literally": lambda: fit_literally(X, y, channels),
    }
    timings = time_in_turns(programs, repeats=5)
    timings |= time_in_turns(slow, repeats=1, warm_up=False)
    own = timings["IDFSMEC"].median
    rows = [
        [name, f"{t.median:.3f}", f"{t.spread:.0%}", f"{t.median / own:.1f}"]
        for name, t in timings.items()
    ]
    return markdown(["program", "seconds (median)", "spread", "times IDFSMEC"], rows)


def peak_memory() -> str:
    """Memory that a fit takes beyond its input, as a multiple of the input."""
    rows = []
    for n_channels in (64, 128):
        X, y, channels = channel_table(n_channels)
        tracemalloc.start()
        IDFSMEC(channels).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append([str(n_channels), f"{X.nbytes / 2**20:.1f}", f"{1 + peak / X.nbytes:.2f}"])
    return markdown(["channels", "X, MiB", "peak with X, times X"], rows)


def growth() -> str:
    """Seconds per channel and per thousand samples: constant if growth is linear."""
    rows = []
    for n_channels, n_samples in (
        (32, 2000),
        (64, 2000),
        (128, 2000),
        (256, 2000),
        (64, 1000),
        (64, 4000),
        (64, 8000),
        (64, 16000),
    ):
        X, y, channels = channel_table(n_channels, n_samples=n_samples)
        columns = list(np.arange(X.shape[1]).reshape(-1, 18))
        folds = np.zeros((1, len(y)), dtype=int)
        timings = time_in_turns(
            {
                "fit": lambda X=X, y=y, channels=channels: IDFSMEC(channels).fit(X, y),
                "moments": lambda X=X, y=y, columns=columns, folds=folds: table_sums(
                    X, columns, y, folds, 2
                ),
            },
            repeats=3,
        )
        fit, moments = timings["fit"].best, timings["moments"].best
        rows.append(
            [
                str(n_channels),
                str(n_samples),
                f"{fit:.3f}",
                f"{1e3 * fit / n_channels:.2f}",
                f"{moments:.3f}",
                f"{1e6 * moments / n_channels / n_samples:.2f}",
            ]
        )
    return markdown(
        [
            "channels",
            "samples",
            "fit, s",
            "fit, ms per channel",
            "moments, s",
            "moments, us per channel and sample",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
