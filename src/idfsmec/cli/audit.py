"""``idfsmec audit``: whether the groups differ in who or how was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.benchmark import stop_cleanly
from idfsmec.cli.console import COLOURS, remark, say, say_next, show_frame, shown
from idfsmec.cli.options import AnyPath, Folds, Names, Per

if TYPE_CHECKING:
    from idfsmec.audit import Audit


@command(
    table=options.TABLE,
    also="Further columns of the table that describe circumstances, such as medication,hour.",
    condition=options.CONDITION,
)
@options.clustered
def audit(
    table: AnyPath,
    out: AnyPath = Path("audit"),
    also: Names | None = None,
    condition: Names | None = None,
    target: str | None = None,
    order: Names | None = None,
    per: Per | None = None,
    folds: Folds | None = None,
    jobs: int = -1,
    dask: str | None = None,
    force: bool = False,
) -> Audit:
    """Test whether the groups differ in who or how was recorded, and if the EEG shows it.

    For example::

        idfsmec audit table.parquet --also medication --jobs 2
        idfsmec audit table.parquet --folds site --condition eyes-closed
        idfsmec audit table.parquet --target bdi
        idfsmec audit embeddings.parquet

    Tests whether facts of how participants were recorded (channels, line noise,
    missing channels, device) and of who was recorded (age, sex, site) are
    associated with the diagnosis, whether the EEG's prediction follows them, and
    what such a study could have missed. Writes audit.html, audit.json and
    reporting.md (a reporting checklist) into OUT, and the verdict beside the
    table (TABLE.audit.json), where select and train find it. OUT/store.sqlite
    keeps finished parts: a second run computes only what is missing.
    """
    from idfsmec.audit import add_audit, audits_of
    from idfsmec.audit.variables import read_columns
    from idfsmec.report import write_audit_page, write_reporting_checklist
    from idfsmec.table.verdicts import store_verdict

    path, out = Path(table), Path(out)
    splits = options.parse_folds(folds)
    options.check_folder(out, force, [path])
    name = path.name.split(".")[0]
    if per is None:
        read = options.take_condition(read_columns(path), condition, path)
    else:
        read = options.read_table(path, condition, per)
    read = options.take_target(read, target, order, path)
    tables = {name: read}
    with stop_cleanly(out), shown("audit") as progress, options.naming(path):
        results = add_audit(
            tables,
            out,
            also=options.split_names(also) or (),
            n_jobs=jobs,
            progress=progress,
            overwrite=force,
            **splits,
        )
    outcome = audits_of(results)[name]
    page = write_audit_page(outcome, out / "audit.html", name=name, overwrite=True)
    checklist = write_reporting_checklist(out / "reporting.md", results, tables, overwrite=True)
    _print_audit(outcome)
    try:
        say("verdict:", store_verdict(path, read, outcome.verdict))
    except OSError as error:
        remark(f"the verdict could not be kept beside the table: {error}", "yellow")
    say("page:", page)
    say("reporting checklist:", checklist)
    say_next("select", path, *options.target_words(target, order), "--resamples 100")
    return outcome


def _print_audit(audit: Audit) -> None:
    """Print the verdict, the variables and the sentences."""
    from idfsmec.audit.sentences import describe_variable, measure_of, records

    verdict, *rest = audit.summary().splitlines()
    say(verdict, style=COLOURS[audit.level])
    interval = f"{measure_of(audit)} [95 % CI]"
    cells = [
        [
            *describe_variable(row, audit)[:2],
            f"{row['auc']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
            f"{row['p']:.2g}",
            f"{row['p_corrected']:.2g}",
        ]
        for row in records(audit.variables)
    ]
    if cells:
        header = ("fact", "direction", interval, "p", "p (corrected)")
        show_frame("Facts, each alone (one value per participant)", cells, header)
    for line in rest:
        say(line)
