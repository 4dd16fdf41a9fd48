"""``idfsmec reproduce``: the paper's tables and figures on a user's own copy of the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.benchmark import RunningMeans, print_results, stop_cleanly
from idfsmec.cli.console import shown
from idfsmec.cli.options import AnyPath, Names, ProtocolName
from idfsmec.cli.report import report

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

DataSet = Literal["modma3", "modma128", "pred-d003"]


@command(
    data_set=typer.Argument(help="Data set of the paper."),
    data="Folder with your copy of the data set, as released.",
    out="Folder for the results. By default named by data set and protocol.",
)
@options.clustered
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
    """Reproduce the figures and tables of the paper on your copy of its data.

    For example::

        idfsmec reproduce modma3 --data ~/MODMA --out modma3
        idfsmec reproduce pred-d003 --data ~/ds003478 --protocol paper

    Writes the feature table, all results, report.html, figures/, and fig2.csv,
    fig3.csv, table1.csv and table2.csv with published and measured values. Give
    the same command to resume after a stop. idfsmec.paper.reproduce takes any
    protocol.
    """
    from idfsmec import paper
    from idfsmec._parallel import count_jobs

    options.check_numbers(repeats=repeats)
    chosen = paper.find_protocol(protocol).with_changes(seeds=range(repeats))
    out = Path(out or (data_set if protocol == "honest" else f"{data_set}-{protocol}"))
    options.check_folder(out, force)
    with stop_cleanly(out), shown(digest=RunningMeans()) as progress:
        results = paper.reproduce(
            data_set,
            data,
            out,
            protocol=chosen,
            methods=options.split_names(methods),
            n_resamples=100,
            n_jobs=count_jobs(jobs),
            progress=progress,
            overwrite=force,
        )
    print_results(results)
    report(out, force=True)
    return results
