"""``idfsmec reproduce``: the paper's tables and figures on a user's own copy of the data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from idfsmec.cli._app import command, console
from idfsmec.cli.benchmark import (
    DaskOption,
    JobsOption,
    QuietOption,
    split_names,
    stop_cleanly,
    summarize,
)


class DataSet(StrEnum):
    """The paper's data sets."""

    modma3 = "modma3"
    modma128 = "modma128"
    pred_d003 = "pred-d003"


class How(StrEnum):
    """What ``--protocol`` takes."""

    honest = "honest"
    paper = "paper"


@command("reproduce")
def reproduce(
    data_set: Annotated[DataSet, typer.Argument(help="Which data set it is.")],
    data: Annotated[Path, typer.Option(help="Folder with your copy, as released.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")],
    protocol: Annotated[
        How,
        typer.Option(
            help="honest: new subjects, gaps for all, nested tuning. paper: samples mixed, gaps "
            "for the selector only, best setting on the test."
        ),
    ] = How.honest,
    methods: Annotated[
        str | None, typer.Option(help='Names, such as "IDFS-MEC,mRMR". By default all.')
    ] = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    quiet: QuietOption = False,
) -> None:
    """Reproduce the paper's figures and tables on your own copy of its data.

    Example: [bold]idfsmec reproduce modma3 --data ~/MODMA --out modma3[/bold]

    Writes the feature table, all results, report.html, figures/, and fig2.csv, fig3.csv,
    table1.csv, table2.csv with published values beside measured ones. Resumes where it stopped.
    """
    from idfsmec.evaluation import reproduce as run_reproduction
    from idfsmec.report import write_report

    with stop_cleanly(out):
        results = run_reproduction(
            data_set.value,
            data,
            out,
            protocol=protocol.value,
            methods=split_names(methods),
            n_jobs=jobs,
            dask=dask,
            progress=not quiet,
        )
        page = write_report(out, force=True)
    console.print(f"report: {page}", markup=False, soft_wrap=True)
    summarize(results)
