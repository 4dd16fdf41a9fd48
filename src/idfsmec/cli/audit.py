"""``idfsmec audit``: whether acquisition separates the classes as well as the EEG does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli.app import command
from idfsmec.cli.console import say, show_rows, shown
from idfsmec.cli.options import TABLE, AnyPath, Folds, Names, parse_folds, split_names
from idfsmec.cli.running import COLOURS, check_folder, stop_cleanly
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.audit import Audit

N_SHOWN = 12


@command(
    table=TABLE,
    also="Further columns of the table to take as acquisition facts: medication,hour.",
)
def audit(
    table: AnyPath,
    out: AnyPath = Path("audit"),
    also: Names | None = None,
    folds: Folds | None = None,
    bids_derivative: AnyPath | None = None,
    jobs: int = -1,
    force: bool = False,
) -> Audit:
    """Ask whether acquisition separates the classes as well as the EEG does.

    For example::

        idfsmec audit table.parquet
        idfsmec audit table.parquet --out audit --also medication --jobs 2
        idfsmec audit table.parquet --folds site

    Number of channels, line noise, missing channels, age, sex, site: what is
    known of how subjects were recorded is tested against the label, beside the
    EEG in the same folds. OUT gets audit.html, audit.json and reporting.md, a
    checklist for a paper. Given again, the command computes only what is
    missing. Folds and permutations have a fixed seed: there is no --seed.
    """
    from idfsmec.audit import add_audit, audits_of
    from idfsmec.report import write_audit_page, write_reporting_checklist
    from idfsmec.table import FeatureTable

    path, out = Path(table), Path(out)
    splits = parse_folds(folds)
    check_folder(out, force)
    read, name = FeatureTable.read(path), path.name.split(".")[0]
    with stop_cleanly(out), shown("audit") as progress:
        try:
            results = add_audit(
                {name: read},
                out,
                also=split_names(also) or (),
                n_jobs=jobs,
                progress=progress,
                overwrite=force,
                **splits,
            )
        except InputError as error:
            raise InputError(f"{path}: {error}", argument=error.argument) from None
    found = audits_of(results)[name]
    page = write_audit_page(found, out / "audit.html", name=name, overwrite=True)
    checklist = write_reporting_checklist(
        out / "reporting.md", results, {name: read}, overwrite=True
    )
    if bids_derivative is not None:
        from idfsmec.features import write_derivative
        from idfsmec.report import add_to_derivative

        add_to_derivative(write_derivative(read, bids_derivative, overwrite=force), results, name)
    _print_audit(found)
    say(f"page: {page}")
    say(f"reporting checklist: {checklist}")
    return found


def _print_audit(found: Audit) -> None:
    """Print the verdict, the variables and the sentences."""
    from idfsmec.audit.variables import say_variable

    verdict, *rest = found.summary().splitlines()
    say(verdict, style=COLOURS[found.level], prose=True)
    if len(found.variables):
        show_rows(
            "What the recording says, against the label (by subject)",
            {"variable": "left", "where": "left"}
            | dict.fromkeys(("AUC", "95 % CI", "p", "corrected"), "right"),
            [
                [
                    say_variable(row["variable"]) + (f" ({row['level']})" if row["level"] else ""),
                    f"{'higher' if row['higher'] else 'lower'} in {found.classes[row['class']]}",
                    f"{row['auc']:.2f}",
                    f"{row['low']:.2f} to {row['high']:.2f}",
                    f"{row['p']:.2g}",
                    f"{row['p_holm']:.2g}",
                ]
                for _, row in found.variables.head(N_SHOWN).iterrows()
            ],
        )
    for line in rest:
        say(line, prose=True)
