"""From a folder of results to its report: other processes draw figures beside this one."""

from __future__ import annotations

from pathlib import Path

from idfsmec.errors import ExistingFileError, InputError
from idfsmec.progress import Listener
from idfsmec.report._helpers import Helpers

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
        Processes that draw. Each further one imports what this one does, so that a second pays
        and a third only where there are several tables. They know nothing of what was changed in
        this process, such as matplotlib's settings.
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
    with Helpers(_count(n_jobs) - 1) as helpers:
        # Helpers import the same meanwhile.
        from idfsmec._files import check_writable, replacing
        from idfsmec.evaluation import Results
        from idfsmec.report.figures import FIGURES, draw_figures
        from idfsmec.report.page import render_page
        from idfsmec.report.summary import summarise

        check_writable(page, folder / FIGURES / "ranks.svg")
        results = Results.read(folder)
        summary = summarise(results)
        pictures = draw_figures(results, folder, progress, helpers)
        with replacing(page) as (beside,):
            beside.write_text(render_page(summary, pictures), encoding="utf-8")
    return page


def _count(n_jobs: int) -> int:
    if n_jobs in (1, 2):
        return n_jobs
    from idfsmec._jobs import count_jobs  # SciPy: most know how many they want

    return count_jobs(n_jobs)
