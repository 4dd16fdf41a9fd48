"""``idfsmec report``: one self-contained HTML page from a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import console
from idfsmec.cli._options import AnyPath
from idfsmec.cli._progress import shown

FolderArgument = Annotated[
    AnyPath, typer.Argument(metavar="DIR", help="Folder that a benchmark wrote its results into.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite a report that is there.")
]


@command("report")
def report(folder: FolderArgument = Path("results"), force: ForceOption = False) -> Path:
    """Write report.html and figures/ (SVG and PNG for a paper) into a folder of results.

    For example::

        idfsmec report results
        idfsmec report results --force

    The page needs no network and no other file: send it as it is. Nothing is
    computed here and nothing is random: there is neither --jobs nor --seed.
    """
    # Matplotlib and MNE take a second to import: only who wants a report waits for them.
    with shown("figures", describe=str) as progress:
        from idfsmec.report import write_report

        page = write_report(folder, overwrite=force, progress=progress)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    return page
