"""From a folder of results to its report."""

from __future__ import annotations

from pathlib import Path

from idfsmec._files import check_writable, replacing
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import Results
from idfsmec.progress import Listener
from idfsmec.report.figures import FIGURES, drawing
from idfsmec.report.page import render_page
from idfsmec.report.summary import summarise

PAGE = "report.html"


def write_report(
    folder: str | Path,
    *,
    overwrite: bool = False,
    n_jobs: int = 1,
    progress: Listener | None = None,
) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder of results.

    Parameters
    ----------
    folder : path
        What :mod:`idfsmec.evaluation` wrote its results into.
    overwrite : bool, default=False
        Whether a report that is there is written anew.
    n_jobs : int, default=1
        Processes that draw, -1 for all cores. The further ones are copies of this one, which
        Linux makes at no cost; elsewhere this one draws alone.
    progress : callable, optional
        Called with a :class:`idfsmec.progress.Progress` before each figure is drawn; its
        ``item`` names the figure.

    Returns
    -------
    Path
        The page: one file that needs nothing else, neither network nor ``figures/``.

    Raises
    ------
    InputError
        The folder holds no results, or nothing can be written there.
    ExistingFileError
        It holds a report already.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; give the one a benchmark wrote its results into"
        )
    page = folder / PAGE
    if page.exists() and not overwrite:
        raise ExistingFileError(page)
    processes = _count(n_jobs)
    check_writable(page, folder / FIGURES / "ranks.svg")
    results = Results.read(folder)
    with drawing(results, folder, processes, progress) as pictures:
        summary = summarise(results)
        text = render_page(summary, pictures())
    with replacing(page) as (beside,):
        beside.write_text(text, encoding="utf-8")
    return page


def _count(n_jobs: int) -> int:
    if n_jobs in (1, 2):
        return n_jobs
    from idfsmec._jobs import count_jobs  # SciPy: most know how many they want

    return count_jobs(n_jobs)
