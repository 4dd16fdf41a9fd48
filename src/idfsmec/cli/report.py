"""``idfsmec report``: one self-contained HTML page from a folder of results."""

from __future__ import annotations

from pathlib import Path

from idfsmec.cli.app import command
from idfsmec.cli.console import say_page, shown
from idfsmec.cli.options import AnyPath, argument


@command(
    folder=argument("DIR", "Folder with the results of a benchmark."),
    reliability="Of the score that was predicted, such as 0.85: the page says which correlation "
    "can be expected at most.",
)
def report(
    folder: AnyPath = Path("results"), reliability: float | None = None, force: bool = False
) -> Path:
    """Write report.html and figures/ (SVG and PNG for a paper) into a folder of results.

    For example::

        idfsmec report results
        idfsmec report results --reliability 0.85 --force

    The page is one file and needs no network.
    """
    # Matplotlib and MNE take a second to import: only who wants a report waits for them.
    with shown("figures", describe=str) as progress:
        from idfsmec.report import write_report

        page = write_report(folder, reliability=reliability, overwrite=force, progress=progress)
    say_page("report", page)
    return page
