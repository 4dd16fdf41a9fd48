"""Measure what statistical statements keep, and store it: the numbers of docs/guarantees.md.

``python -m benchmarks.quality.guarantees`` runs the grid of all parts, for many cores;
``--subset`` runs fewer studies of each cell, in about 30 minutes on two cores; ``--parts`` names
parts. Results are in ``benchmarks/results/guarantees.json``, each part with its date, version,
command and seconds; parts that were not run keep theirs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import idfsmec
from benchmarks.quality import association, calibration, intervals, multiverse

RESULTS = Path(__file__).parents[1] / "results" / "guarantees.json"


def measure_intervals(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """CIs of scores and differences, tests between methods."""
    return intervals.summarise(intervals.run(n_studies, n_jobs))


def measure_probabilities(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """CI of a participant's probability."""
    return calibration.summarise(calibration.run(n_studies, n_jobs))


def measure_association(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """Missing channels that are associated with the diagnosis."""
    return association.summarise(association.run(n_studies, n_jobs))


def measure_multiverse(n_studies: int, n_jobs: int) -> dict[str, Any]:
    """The joint test of a multiverse."""
    return multiverse.summarise(multiverse.run(n_studies, n_jobs))


#: Name of a part: the function, studies of each cell in the whole grid, and in the subset.
PARTS: dict[str, tuple[Callable[[int, int], dict[str, Any]], int, int]] = {
    "intervals": (measure_intervals, 400, 60),
    "probabilities": (measure_probabilities, 40, 2),
    "association": (measure_association, 1000, 200),
    "multiverse": (measure_multiverse, 1000, 300),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--subset", action="store_true")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    for name in options.parts:
        measure, whole, subset = PARTS[name]
        n_studies, start = subset if options.subset else whole, time.perf_counter()
        measured = measure(n_studies, options.jobs)
        results[name] = {
            "date": datetime.now(UTC).date().isoformat(),
            "version": idfsmec.__version__,
            "command": f"python -m benchmarks.quality.guarantees --parts {name}"
            + (" --subset" if options.subset else ""),
            "studies per cell": n_studies,
            "seconds": round(time.perf_counter() - start),
            "measured": measured,
        }
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print(json.dumps(results[name], indent=1))


if __name__ == "__main__":
    main()
