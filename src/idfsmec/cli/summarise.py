"""``idfsmec summarise``: what a hospital may share in place of its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import say
from idfsmec.cli._options import AnyPath, Names
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.summaries import Summary

ENDING = ".summary"

TablePath = Annotated[
    AnyPath,
    typer.Argument(
        metavar="TABLE",
        help="Feature table, a folder of Parquet files, or (to describe it) a .summary file.",
    ),
]
Output = Annotated[
    AnyPath, typer.Option("-o", "--output", help="Where to write the summary, a .summary file.")
]
MinPeople = Annotated[
    int, typer.Option(help="Sums over fewer people of a class are withheld, and named.")
]
Folds = Annotated[
    int, typer.Option("--folds", help="Folds of people that judge channels, at most: 1, 2 or 4.")
]
Labels = Annotated[
    Names | None,
    typer.Option(help="Labels of the whole study, with commas, where this table lacks some."),
]
Between = Annotated[
    bool,
    typer.Option(
        "--between-channels",
        help="Also products of two channels, by which channels samples have: for completing "
        "missing channels. What would follow about few people is withheld.",
    ),
]
Describe = Annotated[
    bool, typer.Option("--describe", help="Print in words all that is in the summary.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing summary.")]


@command("summarise")
def summarise(
    table: TablePath,
    output: Output = Path("site.summary"),
    min_people: MinPeople = 10,
    folds: Folds = 4,
    labels: Labels = None,
    between: Between = False,
    describe: Describe = False,
    force: Force = False,
) -> Summary:
    """Sum up a table, so that hospitals can rank together and share no rows.

    For example::

        idfsmec summarise table.parquet -o hospital_a.summary --describe
        idfsmec summarise hospital_a.summary --describe
        idfsmec select hospital_a.summary hospital_b.summary -o ranking.csv

    A summary holds counts, sums and products by channel, class and fold of
    people. No names, no rows, no minima and maxima.

    This version writes none: a file can reveal single participants. Nothing is
    random, so there is no --seed; one pass over the rows, no --jobs.
    """
    from idfsmec.summaries import Summary
    from idfsmec.summaries._files import NOT_WRITTEN

    source, path = Path(table), Path(output)
    if source.suffix.lower() == ENDING:
        if not describe:
            raise InputError(f"{source}: is a summary already; give --describe to read it.")
        found = Summary.read(source)
        say(found.describe())
        return found
    raise InputError(f"{path}: is not written. {NOT_WRITTEN}")
