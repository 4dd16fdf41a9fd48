"""``idfsmec summarise``: what a site releases in place of its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from idfsmec.cli.app import command
from idfsmec.cli.console import say, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, Names, argument, check_output, split_names
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.federated import Summary


@command(
    table=argument(
        "TABLE", "Feature table, a folder of Parquet files, or a .summary file to describe."
    ),
    output="Where to write the summary, a .summary file.",
    min_subjects="Sums over fewer subjects of a class in a fold are suppressed.",
    labels=typer.Option(
        help="Labels of the whole study, with commas, where this table lacks some."
    ),
    site="Name of the site, which is released.",
    study_key="File with the study's secret, the same at all sites, by which subjects are "
    "assigned to folds; made at first use, by default idfsmec-study.key beside the output.",
)
def summarise(
    table: AnyPath,
    output: AnyPath = Path("site.summary"),
    min_subjects: int = 10,
    labels: Names | None = None,
    site: str = "",
    study_key: AnyPath | None = None,
    force: bool = False,
) -> Summary:
    """Sum up a table, so that sites can rank together and share no rows.

    For example::

        idfsmec summarise table.parquet -o lund.summary --site Lund --study-key study.key
        idfsmec summarise lund.summary
        idfsmec select lund.summary bern.summary -o ranking.csv

    A summary holds counts, sums and products by channel, class and fold of
    subjects: no names, no rows, no minima and maxima; given a summary, the
    command prints all that is in it. Beside it a ledger, idfsmec-ledger.json,
    keeps what was released; it stays at the site. Nothing is random, so there is
    no --seed; two passes over the rows, no --jobs.
    """
    from idfsmec.federated import Ledger, Summary
    from idfsmec.federated import summarise as sum_up
    from idfsmec.federated.ledger import LEDGER
    from idfsmec.federated.release import read_study_key
    from idfsmec.federated.summary import FEWEST_SUBJECTS

    source = Path(table)
    if source.suffix.lower() == ".summary":
        summary = Summary.read(source)
        say(summary.describe())
        return summary
    if min_subjects < FEWEST_SUBJECTS:
        raise InputError(f"--min-subjects {min_subjects}: give {FEWEST_SUBJECTS} or more.")
    path = check_output(output, ".summary", force)
    ledger = Ledger(path.parent / LEDGER)
    key_file = path.parent / "idfsmec-study.key" if study_key is None else Path(study_key)
    if not key_file.exists():
        say(f"Study key made: {key_file}. Give it to the other sites in private, not with sums.")
    key = read_study_key(key_file)
    with warnings_as_lines(), shown("summing up"):
        summary = sum_up(
            source,
            min_subjects=min_subjects,
            labels=split_names(labels) or (),
            site=site,
            study_key=key,
            ledger=ledger,
        )
    ledger.write()  # before the summary: what is released is always on record
    summary.write(path)
    say(f"{summary} written to {path}. See all that is in it: idfsmec summarise {path}")
    return summary
