"""``idfsmec summarise``: the sums that a site releases instead of its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from idfsmec.cli.app import command
from idfsmec.cli.console import remark, say, say_next, shown
from idfsmec.cli.options import AnyPath, Names, argument, check_output, split_names
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.federated import Summary


@command(
    table=argument(
        "TABLE", "Feature table, a folder of Parquet files, or a .summary file to describe."
    ),
    output="Where to write the summary, a .summary file.",
    min_subjects="Sums over fewer participants of a class in a fold are suppressed. It cannot be "
    "lowered in later releases.",
    labels=typer.Option(
        help="All labels of the study, separated by commas, if this table lacks some."
    ),
    condition="Conditions to release side by side, separated by commas, the same at all sites. By "
    "default all samples are taken together.",
    electrodes="File with names of electrodes, one per line, where names of channels have no "
    "known position.",
    site="Name of the site; it is released.",
    study_key="Secret key of the study, a file that is the same at all sites and assigns "
    "participants to folds. Created if missing. By default idfsmec-study.key beside the output.",
    ledger="The site's record of the participants that it released. By default in your data "
    "folder.",
    replaces="Summary that this one replaces; with --never-sent.",
    never_sent="The summary that is replaced was never handed out: its entry in the ledger is "
    "struck.",
    describe="Print the whole content of the summary.",
)
def summarise(
    table: AnyPath,
    output: AnyPath = Path("site.summary"),
    min_subjects: int = 10,
    labels: Names | None = None,
    condition: Names | None = None,
    electrodes: AnyPath | None = None,
    site: str = "",
    study_key: AnyPath | None = None,
    ledger: AnyPath | None = None,
    replaces: AnyPath | None = None,
    never_sent: bool = False,
    describe: bool = False,
    force: bool = False,
) -> Summary:
    """Sum up a table, so that sites can rank together and share no rows.

    For example::

        idfsmec summarise table.parquet -o lund.summary --site Lund --study-key study.key
        idfsmec summarise table.parquet --condition eyes-open,eyes-closed
        idfsmec summarise lund.summary --describe
        idfsmec select lund.summary bern.summary -o ranking.csv

    A summary holds counts, sums and products by channel, class and fold: no
    names, no rows, no minima, no maxima. Each participant is released once: the
    ledger records them, stays at the site, and refuses a second release. So
    decide on features, conditions and labels before. Nothing is random.
    """
    from idfsmec.federated import Ledger, Summary
    from idfsmec.federated import release as rules
    from idfsmec.federated.summary import FEWEST_SUBJECTS

    source = Path(table)
    if source.suffix.lower() == ".summary":
        summary = Summary.read(source)
        say(summary.describe())
        return summary
    if min_subjects < FEWEST_SUBJECTS:
        raise InputError(f"--min-subjects {min_subjects}: give {FEWEST_SUBJECTS} or more.")
    if (replaces is None) == never_sent:
        raise InputError(
            "--replaces FILE and --never-sent go together: a summary that was handed out cannot "
            "be replaced, because it can be subtracted from the new one."
        )
    inputs = [source, *(Path(path) for path in (electrodes, replaces) if path is not None)]
    path = check_output(output, ".summary", force, inputs[:1])
    struck = None if replaces is None else Summary.read(replaces)
    names = () if electrodes is None else Path(electrodes).read_text(encoding="utf-8").split("\n")
    key_file = path.parent / "idfsmec-study.key" if study_key is None else Path(study_key)
    key_is_new = not key_file.exists()
    key = rules.new_study_key() if key_is_new else rules.read_study_key(key_file)
    # The record before the summary: what is released is always in the ledger.
    with shown("summing up"), Ledger(ledger) as record:
        if struck is not None:
            record.strike(struck)
        summary = rules.summarise(
            source,
            min_subjects=min_subjects,
            labels=split_names(labels) or (),
            conditions=split_names(condition) or (),
            electrodes=[name.strip() for name in names],
            site=site,
            study_key=key,
            ledger=record,
        )
        if key_is_new:
            rules.write_study_key(key_file, key)
    summary.write(path)
    if key_is_new:
        say("Created the study key. Send it to the other sites by a private channel:", key_file)
    (released,) = summary.sites
    if describe:
        say(summary.describe())
    elif released.dependence.startswith("not tested"):
        remark(f"Columns that follow from other channels: {released.dependence}.", "yellow")
    say(f"{summary}:", path)
    say("Its participants are in the ledger, which stays here:", record.path)
    say_next("select", path, "OTHER_SITE.summary")
    return summary
