"""``idfsmec report``: one self-contained HTML page from a folder of results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import console
from idfsmec.cli._options import AnyPath
from idfsmec.cli._progress import shown

FolderArgument = Annotated[
    AnyPath, typer.Argument(metavar="DIR", help="Folder that a benchmark wrote its results into.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite a report that is there.")
]


@command("report")
def report(folder: FolderArgument = Path("results"), force: ForceOption = False) -> Path:
    """Write report.html and figures/ (SVG and PNG for a paper) into a folder of results.

    For example::

        idfsmec report results
        idfsmec report results --force

    The page needs no network and no other file: send it as it is. Nothing is
    computed here and nothing is random: there is neither --jobs nor --seed.
    """
    # Matplotlib and MNE take a second to import: only who wants a report waits for them.
    with one_thread() as n_jobs, shown("figures", describe=str) as progress:
        from idfsmec.report import write_report

        page = write_report(folder, overwrite=force, n_jobs=n_jobs, progress=progress)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    return page


@contextmanager
def one_thread() -> Iterator[int]:
    """Have libraries that are imported meanwhile start no threads, which figures do not need.

    Gives the number of processes that draw: two, unless there is one core or whoever calls asked
    for one thread.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if before is None:
        os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield 1 if cores == 1 or before == "1" else 2
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
