"""How the time of many problems shrinks with cores and grows with their number.

``python -m benchmarks cores`` solves the paper's grid (44,800 problems) with 1, 2, 4, ... workers
up to one per core, and parts of the grid with one and with all; ``python -m benchmarks.speed.cores
4`` with at most 4. Whether the results are equal to the last bit is part of the table.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from benchmarks._record import machine
from benchmarks._timing import markdown, time_in_turns
from benchmarks.speed.gpu import LAMS, paper_grid, timed
from idfsmec._parallel import available_threads
from idfsmec.solver import ChannelFits, TableMoments

#: Tables (training folds) whose problems are solved.
PARTS = (1, 2, 5, 10, 20)
REPEATS = 2


def main(most: int | None = None) -> None:
    """Print both curves and the machine."""
    most = most or available_threads()
    tables = paper_grid()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, NumPy {about['numpy']}\n")
    print(f"## Workers, {problems(tables)} problems\n\n{by_workers(tables, most)}\n")
    print(f"## Problems, 1 and {most} workers\n\n{by_problems(tables, most)}")


def problems(tables: list[TableMoments]) -> int:
    """How many there are at all redundancy weights."""
    return len(tables) * len(LAMS) * tables[0].n_channels


def by_workers(tables: list[TableMoments], most: int) -> str:
    """Seconds of the first run, which starts the workers, and of those after it."""
    rows: list[list[str]] = []
    alone: float | None = None
    for n_workers in sorted({*(2**k for k in range(10) if 2**k < most), most}):
        first, fits = timed(tables, n_workers=n_workers)
        again = min(timed(tables, n_workers=n_workers)[0] for _ in range(REPEATS - 1))
        if alone is None:
            alone, reference = min(first, again), fits
        same = "yes" if alike(fits, reference) else "NO"
        row = [str(n_workers), f"{first:.2f}", f"{again:.2f}", f"{alone / first:.1f}"]
        rows.append([*row, f"{alone / again:.1f}", same])
    headings = ["workers", "first run, s", "later runs, s", "times faster, first", "later"]
    return markdown([*headings, "same bits"], rows)


def by_problems(tables: list[TableMoments], most: int) -> str:
    """Seconds of parts of the grid, in turns; workers are there already."""
    rows = []
    for n_tables in PARTS:
        part = tables[:n_tables]
        turns = time_in_turns({str(n): partial(timed, part, n_workers=n) for n in (1, most)})
        one, all_of_them = (turns[str(n)].best for n in (1, most))
        row = [str(problems(part)), f"{one:.2f}", f"{all_of_them:.2f}"]
        rows.append([*row, f"{one / all_of_them:.1f}"])
    return markdown(["problems", "1 worker, s", f"{most} workers, s", "times faster"], rows)


def alike(one: ChannelFits, other: ChannelFits) -> bool:
    """Whether two results are equal to the last bit."""
    return all(
        np.array_equal(part, vars(other)[name])
        for name, part in vars(one).items()
        if isinstance(part, np.ndarray)
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
