"""``idfsmec summarise``: the sums that a site releases instead of its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from idfsmec.cli.app import command
from idfsmec.cli.console import remark, say, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, Names, argument, check_output, split_names
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.federated import Summary


@command(
    table=argument(
        "TABLE", "Feature table, a folder of Parquet files, or a .summary file to describe."
    ),
    output="Where to write the summary, a .summary file.",
    min_subjects="Sums over fewer participants of a class in a fold are suppressed.",
    labels=typer.Option(
        help="All labels of the study, separated by commas, if this table lacks some."
    ),
    site="Name of the site; it is released.",
    study_key="Secret key of the study, a file that is the same at all sites and assigns "
    "participants to folds. Created if missing. By default idfsmec-study.key beside the output.",
    without_ledger="Do not compare with earlier releases, and keep no record of this one.",
    describe="Print the whole content of the summary.",
)
def summarise(
    table: AnyPath,
    output: AnyPath = Path("site.summary"),
    min_subjects: int = 10,
    labels: Names | None = None,
    site: str = "",
    study_key: AnyPath | None = None,
    without_ledger: bool = False,
    describe: bool = False,
    force: bool = False,
) -> Summary:
    """Sum up a table, so that sites can rank together and share no rows.

    For example::

        idfsmec summarise table.parquet -o lund.summary --site Lund --study-key study.key
        idfsmec summarise lund.summary --describe
        idfsmec select lund.summary bern.summary -o ranking.csv

    A summary holds counts, sums and products by channel, class and fold: no
    names, no rows, no minima, no maxima. The ledger, idfsmec-ledger.json, records
    each release beside it and stays at the site. Nothing is random, and one
    process reads the rows twice.
    """
    from idfsmec.federated import Ledger, Summary
    from idfsmec.federated import summarise as sum_up
    from idfsmec.federated.release import LEDGER, read_study_key
    from idfsmec.federated.summary import FEWEST_SUBJECTS

    source = Path(table)
    if source.suffix.lower() == ".summary":
        summary = Summary.read(source)
        say(summary.describe())
        return summary
    if min_subjects < FEWEST_SUBJECTS:
        raise InputError(f"--min-subjects {min_subjects}: give {FEWEST_SUBJECTS} or more.")
    path = check_output(output, ".summary", force, [source])
    ledger = None if without_ledger else Ledger(path.parent / LEDGER)
    if ledger is None:
        remark(
            "warning: without a ledger this release is not compared with earlier ones. If two "
            "releases differ by one participant, they reveal the values of that participant.",
            "yellow",
        )
    key_file = path.parent / "idfsmec-study.key" if study_key is None else Path(study_key)
    if not key_file.exists():
        say("Created the study key. Send it to the other sites by a private channel:", key_file)
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
    if ledger is not None:
        ledger.write()  # before the summary: what is released is always on record
    summary.write(path)
    if describe:
        say(summary.describe())
    say(f"{summary}:", path)
    return summary
