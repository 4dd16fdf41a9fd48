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
    add_resampling,
    choose_seeds,
    has_failures,
    refuse_foreign,
    stop_cleanly,
    summarize,
)
from idfsmec.cli.benchmark import ForceOption, MethodsOption
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.evaluation import Protocol, Results
    from idfsmec.table import FeatureTable


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
    from idfsmec._jobs import count_jobs
    from idfsmec.paper import reproduce as run_reproduction
    from idfsmec.report import write_report

    chosen = choose_protocol(str(protocol)).with_changes(seeds=choose_seeds(seed, seeds))
    out = Path(out or (str(data_set) if str(protocol) == "honest" else f"{data_set}-{protocol}"))
    refuse_foreign(out, force)
    check_resamples(resamples)
    with stop_cleanly(out):
        table = _load(str(data_set), Path(data), out, count_jobs(jobs), quiet)
        results = run_reproduction(
            str(data_set),
            data,
            out,
            protocol=chosen,
            methods=split_names(methods),
            n_jobs=count_jobs(jobs),
            dask=dask,
            progress=not quiet,
        )
        if resamples:
            results = add_resampling(results, {str(data_set): table}, resamples, seed, quiet)
        page = write_report(out, overwrite=True)
    console.print(f"report: {page}", markup=False, soft_wrap=True)
    summarize(results)
    return results


def _load(data_set: str, data: Path, out: Path, n_jobs: int, quiet: bool) -> FeatureTable:
    """Read or make the feature table, and say at which recording it is."""
    from idfsmec.paper.reproduction import load_table

    with shown("features", quiet=quiet, describe=lambda one: Path(one.source).name) as progress:
        return load_table(data_set, data, out, n_jobs, progress)


def choose_protocol(name: str) -> Protocol:
    """The protocol of that name."""
    from idfsmec.paper.reproduction import PROTOCOLS

    if name not in PROTOCOLS:
        raise InputError(f"--protocol {name}: choose from {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
