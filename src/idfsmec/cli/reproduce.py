"""``idfsmec reproduce``: the paper's tables and figures on a user's own copy of the data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import console
from idfsmec.cli._options import (
    AnyPath,
    DaskOption,
    JobsOption,
    QuietOption,
    ResamplesOption,
    SeedOption,
    SeedsOption,
    check_resamples,
    split_names,
)
from idfsmec.cli._progress import shown
from idfsmec.cli._run import (
    RunningMeans,
    choose_seeds,
    has_failures,
    refuse_foreign,
    stop_cleanly,
)
from idfsmec.cli._summary import summarize
from idfsmec.cli.benchmark import ForceOption, MethodsOption

if TYPE_CHECKING:
    from idfsmec.evaluation import Results


class DataSet(StrEnum):
    """The paper's data sets."""

    modma3 = "modma3"
    modma128 = "modma128"
    pred_d003 = "pred-d003"


class How(StrEnum):
    """What ``--protocol`` takes."""

    honest = "honest"
    paper = "paper"


DataSetArgument = Annotated[DataSet, typer.Argument(help="Which data set it is.")]
DataOption = Annotated[AnyPath, typer.Option(help="Folder with your copy, as released.")]
OutOption = Annotated[
    AnyPath | None,
    typer.Option(
        "--out", "-o", help="Folder for the results. By default named by data set and protocol."
    ),
]
ProtocolOption = Annotated[
    How,
    typer.Option(
        help="honest: new subjects, gaps for all, nested tuning. paper: samples mixed, gaps "
        "for the selector only, best setting on the test."
    ),
]


@command("reproduce", has_failed=has_failures)
def reproduce(
    data_set: DataSetArgument,
    data: DataOption,
    out: OutOption = None,
    protocol: ProtocolOption = How.honest,
    methods: MethodsOption = None,
    seeds: SeedsOption = 1,
    seed: SeedOption = 0,
    resamples: ResamplesOption = 100,
    jobs: JobsOption = -1,
    dask: DaskOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> Results:
    """Reproduce the paper's figures and tables on your own copy of its data.

    For example::

        idfsmec reproduce modma3 --data ~/MODMA --out modma3
        idfsmec reproduce pred-d003 --data ~/ds003478 --protocol paper

    Writes the feature table, all results, report.html, figures/, and
    fig2.csv, fig3.csv, table1.csv, table2.csv with published values beside
    measured ones. Resumes where it stopped.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.paper import find_protocol
    from idfsmec.paper import reproduce as run_reproduction
    from idfsmec.report import write_report

    chosen = find_protocol(str(protocol)).with_changes(seeds=choose_seeds(seed, seeds))
    out = Path(out or (str(data_set) if str(protocol) == "honest" else f"{data_set}-{protocol}"))
    refuse_foreign(out, force)
    with stop_cleanly(out), shown(quiet=quiet, digest=RunningMeans()) as progress:
        results = run_reproduction(
            str(data_set),
            data,
            out,
            protocol=chosen,
            methods=split_names(methods),
            n_resamples=check_resamples(resamples),
            n_jobs=count_jobs(jobs),
            dask=dask,
            progress=progress,
            overwrite=force,
        )
    with stop_cleanly(out):
        page = write_report(out, overwrite=True)
    console.print(f"report: {page}", markup=False, soft_wrap=True)
    summarize(results)
    return results
