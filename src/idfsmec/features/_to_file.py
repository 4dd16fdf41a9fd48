"""From recordings to a table file that is never half there, with a run that can be resumed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from idfsmec._locks import locked
from idfsmec._table_files import file_format
from idfsmec.errors import InputError
from idfsmec.features._options import ExtractionOptions
from idfsmec.features._outcome import Extraction, Outcome
from idfsmec.features._parts import parts_folder
from idfsmec.features._run import extract_table
from idfsmec.recordings import Recording


def check_output(output: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse, before any work is done, a file that cannot or should not be written.

    Parameters
    ----------
    output : path-like
    overwrite : bool
        Whether an existing file may be replaced.
    """
    path = Path(output)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the table itself, such as table.parquet.")
    file_format(path)
    if path.exists() and not overwrite:
        raise InputError(
            f"{path}: exists already; choose another name, or replace it with --force "
            "(overwrite=True in Python)."
        )
    return path


def extract_to_file(
    recordings: Sequence[Recording],
    output: str | PathLike[str],
    *,
    options: ExtractionOptions | None = None,
    jobs: int = 1,
    on_error: str = "raise",
    overwrite: bool = False,
    on_progress: Callable[[Outcome], None] | None = None,
) -> Extraction:
    """Turn recordings into a table file; called again after an interruption, it goes on.

    Each finished recording is kept in a hidden folder beside the table
    (``.<name of the table>.parts``) until the table is written, whatever ends the run: an
    error, Ctrl-C, the power. It is found again by the bytes of its files and the options.

    Parameters
    ----------
    recordings : sequence of Recording
    output : path-like
        ``.parquet``, ``.csv`` or ``.csv.gz``.
    options, jobs, on_error, on_progress
        See :func:`extract_table`.
    overwrite : bool
        Whether to replace an existing table.

    Returns
    -------
    Extraction
    """
    path = check_output(output, overwrite=overwrite)
    folder = parts_folder(path)
    busy = (
        f"another process is making {path}; wait for it to end, or choose another name with -o "
        "(output in Python)"
    )
    with locked(folder / "lock", busy):
        extraction = extract_table(
            recordings,
            options=options,
            jobs=jobs,
            on_error=on_error,
            parts=folder,
            on_progress=on_progress,
        )
        extraction.table.write(path)
        shutil.rmtree(folder, ignore_errors=True)
    return extraction
