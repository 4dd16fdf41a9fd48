"""``idfsmec audit``: whether the recording tells the groups apart as well as the EEG does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import console, plain, say
from idfsmec.cli._options import (
    AnyPath,
    HeldOut,
    HeldOutOption,
    JobsOption,
    Names,
    QuietOption,
    check_seed,
    split_names,
)
from idfsmec.cli._progress import shown
from idfsmec.cli._run import refuse_foreign, stop_cleanly
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.audit import Audit
    from idfsmec.evaluation import Results
    from idfsmec.table import FeatureTable

SHOWN = 12
COLOURS = {"red": "bold red", "amber": "bold yellow", "green": "bold green", "grey": "bold"}

TablePath = Annotated[
    AnyPath, typer.Argument(metavar="TABLE", help="Feature table: .parquet, .csv or .csv.gz.")
]
Out = Annotated[
    AnyPath, typer.Option("--out", "-o", help="Folder for the page, the sheet and the results.")
]
Also = Annotated[
    Names | None,
    typer.Option(
        help="Further columns of the table to take as circumstances, such as medication,hour."
    ),
]
Splits = Annotated[
    int, typer.Option(help="Folds, unless by site; fewer where a class has fewer people.")
]
Seed = Annotated[int, typer.Option(help="Seed of folds and permutations.")]
Derivative = Annotated[
    AnyPath | None,
    typer.Option(
        help="Write table and audit also as a BIDS derivative, such as bids/derivatives/idfsmec."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an audit of another table in OUT, and its files.")
]


@command("audit")
def audit(
    table: TablePath,
    out: Out = Path("audit"),
    also: Also = None,
    folds: HeldOutOption = HeldOut.subject,
    n_splits: Splits = 10,
    seed: Seed = 0,
    derivative: Derivative = None,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    force: Force = False,
) -> Audit:
    """Ask whether the recording tells the groups apart as well as the EEG does.

    For example::

        idfsmec audit table.parquet
        idfsmec audit table.parquet --out audit --also medication --jobs 2
        idfsmec audit table.parquet --folds site

    Number of channels, mains, noise, gaps, age, sex, site: what is known of how
    people were recorded is tested against the label, beside the EEG in the same
    folds. OUT gets audit.html, audit.json and reporting.md, a sheet for a paper.
    Given again, the command computes only what is missing.
    """
    from idfsmec.audit import add_audit, audits_of
    from idfsmec.report import write_audit_page, write_reporting_checklist
    from idfsmec.table import FeatureTable

    path, out = Path(table), Path(out)
    check_seed(seed)
    refuse_foreign(out, force)
    read, name = FeatureTable.read(path), path.name.split(".")[0]
    with stop_cleanly(out), shown("audit", quiet=quiet) as progress:
        try:
            results = add_audit(
                {name: read},
                out,
                also=split_names(also) or (),
                n_splits=n_splits,
                folds="site" if folds == HeldOut.site else "subject",
                seed=seed,
                n_jobs=jobs,
                progress=progress,
                overwrite=force,
            )
        except InputError as error:
            raise InputError(f"{path}: {error}", argument=error.argument) from None
    found = audits_of(results)[name]
    page = write_audit_page(found, out / "audit.html", name=name, overwrite=True)
    sheet = write_reporting_checklist(out / "reporting.md", results, {name: read}, overwrite=True)
    if derivative is not None:
        from idfsmec.features import write_derivative
        from idfsmec.report import add_to_derivative

        add_to_derivative(write_derivative(read, derivative, overwrite=force), results, name)
    show_audit(found)
    say(f"page: {page}")
    say(f"reporting sheet: {sheet}")
    return found


def audit_tables(
    out: Path,
    tables: dict[str, FeatureTable],
    seed: int,
    n_jobs: int,
    *,
    quiet: bool,
    force: bool = False,
) -> Results:
    """Audit the tables of a run into its folder."""
    from idfsmec.audit import add_audit
    from idfsmec.report import write_reporting_checklist

    with stop_cleanly(out), shown(quiet=quiet) as progress:
        results = add_audit(
            tables, out, seed=seed, n_jobs=n_jobs, progress=progress, overwrite=force
        )
    write_reporting_checklist(out / "reporting.md", results, tables, overwrite=True)
    return results


def show_audit(found: Audit) -> None:
    """Print the verdict, the variables and the sentences."""
    from rich.table import Table

    from idfsmec.audit.variables import say_variable

    verdict, *rest = found.summary().splitlines()
    console.print(plain(verdict, COLOURS[found.level]))
    if len(found.variables):
        shown = Table(title="What the recording says, against the label (by person)")
        for heading in ("variable", "where", "AUC", "95 % interval", "p", "corrected"):
            words = heading in {"variable", "where"}
            shown.add_column(heading, justify="left" if words else "right")
        for _, row in found.variables.head(SHOWN).iterrows():
            level = f" ({row['level']})" if row["level"] else ""
            more = "higher in" if row["higher"] else "lower in"
            shown.add_row(
                plain(f"{say_variable(row['variable'])}{level}"),
                plain(f"{more} {found.classes[row['class']]}"),
                f"{row['auc']:.2f}",
                f"{row['low']:.2f} to {row['high']:.2f}",
                f"{row['p']:.2g}",
                f"{row['p_holm']:.2g}",
            )
        console.print(shown)
    for line in rest:
        say(line, prose=True)
