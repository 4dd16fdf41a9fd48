"""Many recordings, some at a time: whatever is finished stays finished, whatever happens."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._files import check_writable
from idfsmec._jobs import count_jobs
from idfsmec._locks import locked
from idfsmec._table_files import file_format, files_beside
from idfsmec._workers import run_in_processes
from idfsmec.errors import (
    ArgumentError,
    ExistingFileError,
    InputError,
    RecordingError,
    UnexpectedRecordingError,
)
from idfsmec.features._finish import finish
from idfsmec.features._parts import ENDING, assemble, parts_folder
from idfsmec.features.compute import compute_features
from idfsmec.features.outcomes import Extraction, RecordingOutcome
from idfsmec.features.settings import FeatureSettings
from idfsmec.progress import Listener, Progress
from idfsmec.recordings import Recording
from idfsmec.recordings.recording import check_spelling

ON_ERROR = ("raise", "skip")


def extract_table(
    recordings: Sequence[Recording],
    settings: FeatureSettings | None = None,
    *,
    n_jobs: int = 1,
    dask: Any = None,
    on_error: str = "raise",
    parts: Path | None = None,
    progress: Listener | None = None,
) -> Extraction:
    """Turn recordings into a feature table.

    Recordings may differ in sampling rate, length and channels: the table has the channels of
    all, in the order in which they first appear, and a channel that a recording lacks is
    missing there. The result does not depend on ``n_jobs``, nor on interruptions.

    Parameters
    ----------
    recordings : sequence of Recording
    settings : FeatureSettings, optional
        What to compute and how.
    n_jobs : int
        Recordings that are worked on at the same time; -1 is one per processor.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here. Its workers read the
        recordings by the same paths; what they compute comes back and is kept here.
    on_error : {"raise", "skip"}
        What to do about a recording that cannot be read or is too short.
    parts : Path, optional
        A folder that keeps what is finished, one file per recording, found again by the
        content of the recording and the settings. Called with the same folder again, only the
        rest is computed. Default: a temporary folder.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` when the work begins and when a
        recording has ended, whose :class:`RecordingOutcome` is its ``item``.

    Returns
    -------
    Extraction
        With ``table``, ``outcomes`` and a printable ``summary()``.

    Raises
    ------
    RecordingError
        If a recording fails and ``on_error`` is ``"raise"``.
    UnexpectedRecordingError
        The same, where the user cannot mend it: an error in a feature, for example.
    InputError
        If there is nothing left.

    Examples
    --------
    >>> from idfsmec.recordings import simulate_cohort
    >>> from idfsmec.features import extract_table
    >>> cohort = simulate_cohort(4, 3, duration=20, detached=0, random_state=0)
    >>> extract_table(cohort.recordings).table
    FeatureTable(8 samples of 4 subjects; 3 channels x 18 features; labels control: 4,
    depressed: 4; 0.0% missing)
    """
    if on_error not in ON_ERROR:
        raise ArgumentError(
            f"on_error={on_error!r}: give one of {', '.join(ON_ERROR)}.", argument="on_error"
        )
    if not recordings:
        raise InputError("There are no recordings.")
    check_spelling(recordings)
    n_jobs = count_jobs(n_jobs)
    settings = settings or FeatureSettings()
    _try_out(settings)
    tell = progress or (lambda event: None)
    total = len(recordings)
    with _folder(parts) as folder:
        finished: dict[int, tuple[RecordingOutcome, Path]] = {}
        failure: RecordingOutcome | None = None
        stop = threading.Event()
        tell(Progress("features", 0, total))
        how = dask if dask is not None else n_jobs
        for position, outcome, path in _work(recordings, settings, folder, how, stop):
            finished[position] = outcome, path
            tell(Progress("features", len(finished), total, outcome))
            if outcome.status == "failed" and on_error == "raise":
                failure = failure or outcome
                stop.set()
        if failure is not None:
            raise _failure(failure, kept=parts is not None)
        ordered = [finished[position] for position in range(total)]
        table = assemble(recordings, ordered, settings)
    return Extraction(table, [outcome for outcome, _ in ordered], on_error)


def check_output(output: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse, before any work is done, a file that cannot or should not be written.

    Parameters
    ----------
    output : path-like
    overwrite : bool
        Whether an existing file may be replaced.
    """
    path = Path(output)
    check_writable(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the table itself, such as table.parquet.")
    file_format(path)
    check_writable(parts_folder(path), *files_beside(path))
    if path.exists() and not overwrite:
        raise ExistingFileError(path)
    return path


def extract_to_file(
    recordings: Sequence[Recording],
    output: str | PathLike[str],
    settings: FeatureSettings | None = None,
    *,
    n_jobs: int = 1,
    dask: Any = None,
    on_error: str = "raise",
    overwrite: bool = False,
    progress: Listener | None = None,
) -> Extraction:
    """Turn recordings into a table file; called again after an interruption, it goes on.

    Each finished recording is kept in a hidden folder beside the table
    (``.<name of the table>.parts``) until the table is written, whatever ends the run: an
    error, Ctrl-C, the power. It is found again by the bytes of its files and the settings.

    Parameters
    ----------
    recordings : sequence of Recording
    output : path-like
        ``.parquet``, ``.csv`` or ``.csv.gz``.
    settings, n_jobs, dask, on_error, progress
        See :func:`extract_table`.
    overwrite : bool
        Whether to replace an existing table.

    Returns
    -------
    Extraction
    """
    path = check_output(output, overwrite=overwrite)
    folder = parts_folder(path)
    busy = f"another process is making {path}; wait for it to end, or choose another name"
    with locked(folder / "lock", busy):
        extraction = extract_table(
            recordings,
            settings,
            n_jobs=n_jobs,
            dask=dask,
            on_error=on_error,
            parts=folder,
            progress=progress,
        )
        extraction.table.write(path)
        shutil.rmtree(folder, ignore_errors=True)
    return extraction


def _try_out(settings: FeatureSettings) -> None:
    """Refuse settings that do not go together, before any recording is blamed for them.

    Tries all features on one epoch of noise: bands that the epochs cannot resolve, epochs too
    short for a feature, two features of one name.
    """
    rate = settings.resample
    if rate is None:  # known only when recordings are
        return
    noise = np.random.default_rng(0).standard_normal((1, 1, round(settings.epoch * rate)))
    try:
        compute_features(noise, rate, settings)
    except InputError:
        raise
    except Exception:
        return  # a user's feature that fails is reported with the recording it fails on


@contextmanager
def _folder(parts: Path | None) -> Iterator[Path]:
    if parts is not None:
        yield parts
        return
    temporary = Path(tempfile.mkdtemp(prefix="idfsmec-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _work(
    recordings: Sequence[Recording],
    settings: FeatureSettings,
    folder: Path,
    how: Any,
    stop: threading.Event,
) -> Iterator[tuple[int, RecordingOutcome, Path]]:
    """Yield each recording's outcome as soon as it is known, in any order.

    After ``stop`` is set no further recording is begun; those under way are finished. ``how`` is a
    number of processes, or a cluster.
    """
    # What is finished in this run is no news, even if a second recording has the same bytes.
    kept = frozenset(path.name for path in folder.glob(f"*{ENDING}"))
    tasks = (task for task in enumerate(recordings) if not stop.is_set())
    if not isinstance(how, int):
        from idfsmec.features._cluster import finish_on_cluster

        yield from finish_on_cluster(tasks, settings, folder, kept, how)
        return
    run = partial(finish, settings=settings, digest=settings.digest(), folder=folder, kept=kept)
    # None in advance: a queue would go on after a failure.
    yield from run_in_processes(run, tasks, how, queued="n_jobs", share_from="1M")


def _failure(outcome: RecordingOutcome, kept: bool) -> RecordingError | UnexpectedRecordingError:
    rest = " What is finished is kept: run again to go on." if kept else ""
    kind = RecordingError if outcome.mendable else UnexpectedRecordingError
    return kind(
        f"{outcome.source}: {outcome.error.rstrip('.')}. Mend or remove it, or skip such "
        f"recordings with on_error='skip'.{rest}",
        source=outcome.source,
        argument="on_error",
    )
