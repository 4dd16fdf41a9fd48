"""An audit as a page of its own: one file, the verdict first."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from idfsmec._files import replacing
from idfsmec.errors import ExistingFileError
from idfsmec.evaluation import Audit
from idfsmec.report.audit import describe_audit
from idfsmec.report.page import make_environment


def write_audit_page(
    audit: Audit, path: str | PathLike[str], *, name: str = "table", overwrite: bool = False
) -> Path:
    """Write an audit as one page that needs nothing else.

    Parameters
    ----------
    audit : Audit
    path : path-like
        An HTML file.
    name : str
        What the page calls the table.
    overwrite : bool
        Whether to replace a page that is there.
    """
    page = Path(path)
    if page.exists() and not overwrite:
        raise ExistingFileError(page)
    about = describe_audit(audit)
    chips = [f"{about['people']}", about["folds"]]
    text = (
        make_environment()
        .get_template("audit_page.html")
        .render(
            audit=about,
            title=f"Illness or amplifier: {name}",
            brand="idfsmec audit",
            chips=[chip for chip in chips if chip],
        )
    )
    with replacing(page) as (beside,):
        beside.write_text(text, encoding="utf-8")
    return page
