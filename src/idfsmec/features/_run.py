"""Many recordings, some at a time: whatever is finished stays finished, whatever happens."""

from __future__ import annotations

import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from idfsmec._jobs import count_jobs
from idfsmec.errors import InputError
from idfsmec.features._options import ExtractionOptions
from idfsmec.features._outcome import Extraction, Outcome
from idfsmec.features._parts import (
    ENDING,
    part_path,
    read_columns,
    read_features,
    read_notes,
    write_part,
)
from idfsmec.features._recording import RecordingFeatures, extract_recording
from idfsmec.recordings import Recording
from idfsmec.table import FeatureTable

ON_ERROR = ("raise", "skip")


def extract_table(
    recordings: Sequence[Recording],
    *,
    options: ExtractionOptions | None = None,
    jobs: int = 1,
    on_error: str = "raise",
    parts: Path | None = None,
    on_progress: Callable[[Outcome], None] | None = None,
) -> Extraction:
    """Turn recordings into a feature table.

    Recordings may differ in sampling rate, length and channels: the table has the channels of
    all, in the order in which they first appear, and a channel that a recording lacks is
    missing there. The result does not depend on ``jobs``, nor on interruptions.

    Parameters
    ----------
    recordings : sequence of Recording
    options : ExtractionOptions, optional
    jobs : int
        Recordings that are worked on at the same time; -1 is one per processor.
    on_error : {"raise", "skip"}
        What to do about a recording that cannot be read or is too short.
    parts : Path, optional
        A folder that keeps what is finished, one file per recording, found again by the
        content of the recording and the options. Called with the same folder again, only the
        rest is computed. Default: a temporary folder.
    on_progress : callable, optional
        Called with the :class:`Outcome` of each recording when it is finished.

    Returns
    -------
    Extraction
        With ``table``, ``outcomes`` and a printable ``summary()``.

    Raises
    ------
    InputError
        If a recording fails and ``on_error`` is ``"raise"``, or if there is nothing left.

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
        raise InputError(f"on_error must be one of {', '.join(ON_ERROR)}, got {on_error!r}.")
    if not recordings:
        raise InputError("There are no recordings.")
    jobs = count_jobs(jobs)
    options = options or ExtractionOptions()
    options.check()
    with _folder(parts) as folder:
        finished: dict[int, tuple[Outcome, Path]] = {}
        failure: Outcome | None = None
        stop = threading.Event()
        for position, outcome, path in _work(recordings, options, folder, jobs, stop):
            finished[position] = outcome, path
            if on_progress is not None:
                on_progress(outcome)
            if outcome.status == "failed" and on_error == "raise":
                failure = failure or outcome
                stop.set()
        if failure is not None:
            raise _failure(failure, kept=parts is not None)
        ordered = [finished[position] for position in range(len(recordings))]
        table = _assemble(recordings, ordered, options)
    return Extraction(table, [outcome for outcome, _ in ordered])


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
    options: ExtractionOptions,
    folder: Path,
    jobs: int,
    stop: threading.Event,
) -> Iterator[tuple[int, Outcome, Path]]:
    """Yield each recording's outcome as soon as it is known, in any order.

    After ``stop`` is set no further recording is begun; those under way are finished.
    """
    run = partial(_finish, options=options, digest=options.digest(), folder=folder)
    tasks = (
        delayed(run)(position, recording)
        for position, recording in enumerate(recordings)
        if not stop.is_set()
    )
    # One by one, and none in advance: a queue would go on after a failure.
    pool = Parallel(
        n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )
    yield from pool(tasks)


def _finish(
    position: int, recording: Recording, *, options: ExtractionOptions, digest: str, folder: Path
) -> tuple[int, Outcome, Path]:
    """Compute one recording, or find it finished; errors come back as outcomes."""
    path = folder / f"position-{position}{ENDING}"
    who = (recording.source, recording.subject, recording.label)
    # Threads of BLAS split sums differently from run to run; one gives the same bits always.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            fingerprint = recording.fingerprint()
            if fingerprint is not None:
                path = part_path(folder, fingerprint, digest)
            found = read_notes(path) if fingerprint is not None else None
            status = "resumed"
            if found is None:
                found, status = extract_recording(recording, options), "done"
        except Exception as error:
            # A damaged file makes readers raise anything; one file must not stop the others.
            reason = " ".join(str(error).split()) or type(error).__name__
            mendable = isinstance(error, InputError | OSError)
            text = reason.removeprefix(f"{recording.source}: ")
            return position, Outcome(*who, "failed", error=text, mendable=mendable), path
    if status == "done":  # a full disk is no fault of the recording: this may raise
        write_part(path, found)
    said = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    return position, _outcome(who, status, found, tuple(said)), path


def _outcome(
    who: tuple[str, str, str], status: str, found: RecordingFeatures, said: tuple[str, ...]
) -> Outcome:
    n_rows = found.n_rows
    return Outcome(
        *who,
        status if n_rows else "empty",
        n_epochs=found.n_epochs,
        n_rows=n_rows,
        channels=tuple(found.channels),
        reasons=found.reasons,
        montage=found.montage,
        renamed=found.renamed,
        notes=(*said, found.hint) if found.hint else said,
    )


def _failure(outcome: Outcome, kept: bool) -> Exception:
    rest = " What is finished is kept: run again to go on." if kept else ""
    message = (
        f"{outcome.source}: {outcome.error.rstrip('.')}. Mend or remove it, or skip such "
        f"recordings with --on-error skip (on_error='skip' in Python).{rest}"
    )
    return InputError(message) if outcome.mendable else RuntimeError(message)


def _assemble(
    recordings: Sequence[Recording],
    finished: Sequence[tuple[Outcome, Path]],
    options: ExtractionOptions,
) -> FeatureTable:
    """Put the parts below one another under the union of their channels."""
    used = [i for i, (outcome, _) in enumerate(finished) if outcome.n_rows]
    if not used:
        reasons = "; ".join(f"{o.source}: {o.error or 'all missing'}" for o, _ in finished[:3])
        raise InputError(f"No recording gave an epoch with any channel left ({reasons}).")
    parts = [finished[i][1] for i in used]
    columns = pd.Index(list(dict.fromkeys(c for part in parts for c in read_columns(part))))
    sizes = [finished[i][0].n_rows for i in used]
    values = np.full((sum(sizes), len(columns)), np.nan)
    # One part at a time, so that the table is the only thing that grows with their number.
    for part, stop, size in zip(parts, np.cumsum(sizes), sizes, strict=True):
        frame = read_features(part)
        values[stop - size : stop, columns.get_indexer(frame.columns)] = frame.to_numpy()
    montages = sorted({finished[i][0].montage for i in used} - {""})
    info = {
        **options.as_dict(),
        "montage": montages[0] if len(montages) == 1 else montages or None,
        "names_in_files": _names_in_files([finished[i][0] for i in used]),
        "recordings": [
            {
                "name": Path(recordings[i].source).name,
                "subject": recordings[i].subject,
                "session": recordings[i].session,
                "condition": recordings[i].condition,
                "rows": finished[i][0].n_rows,
            }
            for i in used
        ],
    }
    return FeatureTable(
        pd.DataFrame(values, columns=columns),
        pd.Series(np.repeat([recordings[i].label for i in used], sizes)),
        pd.Series(np.repeat([recordings[i].subject for i in used], sizes)),
        info,
    )


def _names_in_files(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """What files call the channels that go by another name in the table."""
    names: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for old, new in outcome.renamed.items():
            names.setdefault(new, {})[old] = None
    return {new: list(old) for new, old in names.items()}
