"""``idfsmec reproduce``: the paper's tables and figures on a user's own copy of the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from idfsmec.cli.app import command
from idfsmec.cli.console import say, shown
from idfsmec.cli.options import AnyPath, Names, ProtocolName, check_repeats, split_names
from idfsmec.cli.running import (
    RunningMeans,
    check_folder,
    has_failures,
    print_results,
    stop_cleanly,
    warn_of_open_cluster,
)

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

DataSet = Literal["modma3", "modma128", "pred-d003"]
N_RESAMPLES = 100


@command(
    has_failed=has_failures,
    data_set=typer.Argument(help="Which data set it is."),
    data="Folder with your copy, as released.",
    out="Folder for the results. By default named by data set and protocol.",
)
def reproduce(
    data_set: DataSet,
    data: AnyPath,
    out: AnyPath | None = None,
    protocol: ProtocolName = "honest",
    methods: Names | None = None,
    repeats: int = 1,
    jobs: int = -1,
    dask: str | None = None,
    force: bool = False,
) -> Results:
    """Reproduce the paper's figures and tables on your own copy of its data.

    For example::

        idfsmec reproduce modma3 --data ~/MODMA --out modma3
        idfsmec reproduce pred-d003 --data ~/ds003478 --protocol paper

    Writes the feature table, all results, report.html, figures/, and
    fig2.csv, fig3.csv, table1.csv, table2.csv with published values beside
    measured ones. Resumes where it stopped. Seeds of folds count from 0: there is
    no --seed; idfsmec.paper.reproduce takes any protocol.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.paper import find_protocol
    from idfsmec.paper import reproduce as run_reproduction
    from idfsmec.report import write_report

    chosen = find_protocol(protocol).with_changes(seeds=range(check_repeats(repeats)))
    out = Path(out or (data_set if protocol == "honest" else f"{data_set}-{protocol}"))
    check_folder(out, force)
    warn_of_open_cluster(dask)
    with stop_cleanly(out), shown(digest=RunningMeans()) as progress:
        results = run_reproduction(
            data_set,
            data,
            out,
            protocol=chosen,
            methods=split_names(methods),
            n_resamples=N_RESAMPLES,
            n_jobs=count_jobs(jobs),
            dask=dask,
            progress=progress,
            overwrite=force,
        )
    with stop_cleanly(out), shown("figures", describe=str) as progress:
        page = write_report(out, overwrite=True, progress=progress)
    say(f"report: {page}")
    print_results(results)
    return results
