"""How the time of a comparison shrinks with the number of processes.

``python -m benchmarks cores`` compares five methods on 19 channels with 1, 2, 4, ... processes up
to one per core; ``python -m benchmarks.speed.cores 4`` with at most 4. Whether results are equal
is part of the table.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import joblib
import pandas as pd

from benchmarks._timing import markdown
from benchmarks.speed.evaluation import small_table
from idfsmec.evaluation import accuracy

METHODS = ["IDFS-MEC", "ReliefF", "mRMR", "RFS", "random forest"]


def main(most: int | None = None) -> None:
    """Print seconds by number of processes."""
    most = most or joblib.cpu_count()
    table = small_table()
    rows: list[list[str]] = []
    alone, reference = 0.0, pd.DataFrame()
    for n_jobs in sorted({*(2**k for k in range(10) if 2**k < most), most}):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            results = accuracy(
                table, Path(folder), methods=METHODS, protocol={"rates": [0.0, 0.3]}, n_jobs=n_jobs
            )
            seconds = time.perf_counter() - start
        scores = results.mean_scores()
        if not rows:
            alone, reference = seconds, scores
        same = "yes" if scores.equals(reference) else "NO"
        rows.append([str(n_jobs), f"{seconds:.1f}", f"{alone / seconds:.1f}", same])
    print(markdown(["processes", "seconds", "times faster", "same scores"], rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
