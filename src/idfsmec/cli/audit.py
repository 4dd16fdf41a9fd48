"""``idfsmec audit``: whether acquisition separates the classes as well as the EEG does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import say, show_frame, shown
from idfsmec.cli.options import AnyPath, Folds, Names
from idfsmec.cli.running import COLOURS, check_folder, stop_cleanly

if TYPE_CHECKING:
    from idfsmec.audit import Audit

N_SHOWN = 12


@command(
    table=options.TABLE,
    also="Further columns of the table to take as acquisition facts: medication,hour.",
)
def audit(
    table: AnyPath,
    out: AnyPath = Path("audit"),
    also: Names | None = None,
    folds: Folds | None = None,
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
    splits = options.parse_folds(folds)
    check_folder(out, force)
    name = path.name.split(".")[0]
    tables = {name: FeatureTable.read(path)}
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
    say(f"page: {page}")
    say(f"reporting checklist: {checklist}")
    return outcome


def _print_audit(audit: Audit) -> None:
    """Print the verdict, the variables and the sentences."""
    import pandas as pd

    from idfsmec.audit.variables import say_variable

    verdict, *rest = audit.summary().splitlines()
    say(verdict, style=COLOURS[audit.level], prose=True)
    rows = audit.variables.head(N_SHOWN).to_dict("records")
    if rows:
        cells = [
            {
                "variable": say_variable(row["variable"])
                + (f" ({row['level']})" if row["level"] else ""),
                "where": f"{'higher' if row['higher'] else 'lower'} in "
                f"{audit.classes[row['class']]}",
                "AUC": f"{row['auc']:.2f}",
                "95 % CI": f"{row['low']:.2f} to {row['high']:.2f}",
                "p": f"{row['p']:.2g}",
                "corrected": f"{row['p_holm']:.2g}",
            }
            for row in rows
        ]
        show_frame("What the recording says, against the label (by subject)", pd.DataFrame(cells))
    for line in rest:
        say(line, prose=True)
