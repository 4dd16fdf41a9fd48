"""Extraction of many recordings into one table: some at a time, what is finished stays finished.

Each finished recording is a file named by a hash of all that decides its numbers: the bytes of its
files (:meth:`Recording.fingerprint`), the settings, what a user's own features compute and the
version of the algorithm (:meth:`FeatureSettings.digest`). So nothing has to be invalidated, and a
run that was killed at any moment goes on with the files that are whole. A recording without files,
and features that cannot be described, are computed every time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._files import check_writable, locked, refuse_moved, replacing
from idfsmec._parallel import count_jobs, on_cluster, one_blas_thread, run_tasks
from idfsmec.errors import (
    ArgumentError,
    ExistingFileError,
    InputError,
    RecordingError,
    UnexpectedRecordingError,
    reason_of,
)
from idfsmec.features.acquisition import describe_study, header_facts
from idfsmec.features.extract import RecordingFeatures, compute_features, extract_each
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing.detection import REASONS
from idfsmec.progress import Listener, Steps, collect_warnings, warning_texts
from idfsmec.recordings import Recording
from idfsmec.recordings.recording import check_spelling
from idfsmec.table import FeatureTable
from idfsmec.table.columns import (
    CONDITION,
    EPOCH,
    ONSET,
    RECORDING,
    SESSION,
    join_column,
    same_name,
    split_column,
)
from idfsmec.table.feature_table import REASON_COLUMNS
from idfsmec.table.files import described, file_format, files_beside

_MOST_NAMED = 10
_BIDS_CONDITION = ("task-", "acq-", "run-")
_CONTRADICTIONS = {
    "other_condition": "name another condition than the manifest",
    "shared_name": "have a name that is in headers of another participant",
}
_NOT_RECORDED = "not in the recording"
# Numbers in a file of a folder, and what these files are called. A row group for each recording in
# one file would take more memory: its writer holds 1 kB for each group and column to the end.
_PIECE, _PIECE_NAME = 2_000_000, "part-"
_NOTHING_LEFT = "no epoch has any channel left"
_NO_VALUES = pd.DataFrame()
# Warnings and limits of threads belong to a process: one recording at a time in each.
_ONE_AT_A_TIME = threading.Lock()


# --- results ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecordingOutcome(RecordingFeatures):
    """Outcome of one recording, in addition to the attributes of :class:`RecordingFeatures`.

    Parameters
    ----------
    source, subject, label : str
        As in the recording.
    status : {"done", "resumed", "empty", "failed"}
        Computed now, found finished, no epoch with any channel left, or not readable.
    error : str
        What went wrong, if it failed.
    mendable : bool
        Whether the user can correct it (an :class:`~idfsmec.errors.InputError`).
    notes : tuple of str
        Advice and warnings.
    """

    source: str
    subject: str
    label: str
    status: str
    error: str = ""
    mendable: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """Channels of a table, features per channel, channel epochs with a value, and facts."""

    channels: Sequence[str]
    n_features: int
    n_observed: int
    facts: Sequence[Mapping[str, Any]]  # of each recording


@dataclass(frozen=True)
class Extraction:
    """A table with the outcome of each recording.

    Parameters
    ----------
    contents : Contents
        Of the table.
    outcomes : sequence of RecordingOutcome
        One for each recording, in their order.
    on_error : {"raise", "skip"}
        Whether recordings without a row in the table were to be skipped.
    where : FeatureTable or Path
        The table, or the folder that has it.
    """

    contents: Contents
    outcomes: Sequence[RecordingOutcome]
    on_error: str
    where: FeatureTable | Path

    @property
    def table(self) -> FeatureTable:
        """The table, read from its folder if it was written to one."""
        return FeatureTable.read(self.where) if isinstance(self.where, Path) else self.where

    @property
    def incomplete(self) -> bool:
        """Whether a recording has no row in the table that was not to be skipped."""
        return self.on_error == "raise" and bool(self.skipped)

    @property
    def skipped(self) -> list[RecordingOutcome]:
        """Recordings without a row in the table."""
        return [outcome for outcome in self.outcomes if not outcome.n_rows]

    def summary(self) -> str:
        """Summarise in a few lines what the table has, what is missing and what was left out."""
        return "\n".join([*self._about_table(), *self._about_recordings()])

    def _about_table(self) -> list[str]:
        used = [outcome for outcome in self.outcomes if outcome.n_rows]
        subjects: dict[str, set[str]] = {}
        epochs: Counter[str] = Counter()
        for outcome in used:
            subjects.setdefault(outcome.label, set()).add(outcome.subject)
            epochs[outcome.label] += outcome.n_rows
        labels = ", ".join(
            f"{label} ({len(subjects[label])} participants, {epochs[label]} epochs)"
            for label in sorted(subjects)
        )
        dropped: dict[str, Counter[str]] = {}
        for outcome in self.outcomes:
            for name, reason in outcome.dropped.items():
                dropped.setdefault(reason, Counter())[name] += 1
        n_subjects = len(set().union(*subjects.values()))
        lines = [f"from        {n_subjects} participants", f"labels      {labels}"]
        for label in sorted(subjects):
            if len(subjects[label]) == 1:
                [subject] = subjects[label]
                lines.append(f"  class {label} has one participant only, {subject}")
        n_channels = len(self.contents.channels)
        lines += [f"epochs      {epochs.total()}", f"channels    {n_channels}"]
        for reason, names in dropped.items():
            most = ", ".join(f"{name} ({n})" for name, n in names.most_common(_MOST_NAMED))
            lines.append(f"  not used, {reason}: {most}{_and_more(names)}")
        lines += [
            f"features    {self.contents.n_features} per channel",
            f"missing     {1 - self.contents.n_observed / (epochs.total() * n_channels):.1%} of "
            "channel epochs",
            *self._about_missing(),
        ]
        return lines

    def _about_missing(self) -> list[str]:
        """Count channel epochs by reason, and name the channels that are hit most."""
        counts: dict[str, Counter[str]] = {}
        absent: Counter[str] = Counter()
        for outcome in self.outcomes:
            for reason, hits in outcome.reasons.items():
                counts.setdefault(reason, Counter()).update(hits)
            recorded = {same_name(channel) for channel in outcome.channels}
            lacking = [name for name in self.contents.channels if same_name(name) not in recorded]
            absent.update(dict.fromkeys(lacking, outcome.n_rows))
        lines = [
            f"  {reason}: {hits.total()} channel epochs (most: {_name_most(hits, 5)})"
            for reason, hits in sorted(counts.items(), key=lambda item: -item[1].total())
        ]
        if total := absent.total():
            named = _name_most(absent, _MOST_NAMED) + _and_more(absent)
            lines.append(f"  {_NOT_RECORDED}: {total} channel epochs ({named})")
        return lines

    def _about_recordings(self) -> list[str]:
        """Count headers that contradict the manifest, and recordings that were left out."""
        facts = self.contents.facts
        counts = {name: sum(fact.get(name, 0) for fact in facts) for name in _CONTRADICTIONS}
        lines = [f"headers     {n} {_CONTRADICTIONS[name]}" for name, n in counts.items() if n]
        lines += describe_study(facts)
        if resumed := sum(outcome.status == "resumed" for outcome in self.outcomes):
            lines.append(
                f"resumed     {resumed} of {len(self.outcomes)} recordings were finished before"
            )
        if partly := sum(o.n_epochs - o.n_rows for o in self.outcomes if o.n_rows):
            lines.append(f"left out    {partly} epochs in which no channel was left")
        skipped = [f"{o.source}: {o.error or _why_empty(o)}" for o in self.skipped]
        if skipped:
            lines.append(f"skipped     {len(skipped)} of {len(self.outcomes)} recordings")
        notes = [f"note on {o.source}: {note}" for o in self.outcomes for note in o.notes]
        for texts, what in ((skipped, ""), (notes, " notes")):
            lines += [f"  {text}" for text in texts[:_MOST_NAMED]]
            if more := _and_more(texts):
                lines.append(f" {more}{what}")
        return lines


def _name_most(counts: Counter[str], most: int) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {n}" for name, n in ranked[:most] if n)


def _and_more(items: Sized) -> str:
    return f" and {len(items) - _MOST_NAMED} more" if len(items) > _MOST_NAMED else ""


def _why_empty(outcome: RecordingOutcome) -> str:
    """Say why no epoch has a channel, with the amplitude where the unit may be wrong."""
    if not outcome.reasons:
        return _NOTHING_LEFT
    most = max(outcome.reasons, key=lambda name: sum(outcome.reasons[name].values()))
    rule = most.removeprefix("detected: ")
    text = f"{_NOTHING_LEFT}, most: {REASONS.get(rule, most)}"
    amplitude = outcome.acquisition.get("amplitude")
    if rule in ("flat", "amplitude") and amplitude is not None:
        text += f" (amplitude {amplitude:.2g} µV, ordinary EEG has about 10 µV: check the unit)"
    return text


# --- runs ------------------------------------------------------------------------------------


def extract_table(
    recordings: Sequence[Recording],
    settings: FeatureSettings | None = None,
    *,
    n_jobs: int | None = None,
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
    n_jobs : int, optional
        Recordings that are worked on at the same time, as in joblib: -1 is one per core.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here. Its workers read the
        recordings by the same paths; what they compute comes back and is kept here.
    on_error : {"raise", "skip"}
        What to do about a recording that cannot be read or is too short.
    parts : Path, optional
        A folder that keeps what is finished, one file per recording, found again by the
        content of the recording and the settings. Called with the same folder again, only the
        rest is computed.
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
        The same, if the input is not the cause: an error in a feature, for example.
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
    settings = settings or FeatureSettings()
    with on_cluster(dask):
        [ended] = _extract(recordings, [settings], n_jobs, on_error, parts, progress)
    return _as_table(recordings, settings, ended, on_error)


def extract_tables(
    recordings: Sequence[Recording],
    settings: Sequence[FeatureSettings],
    *,
    n_jobs: int | None = None,
    on_error: str = "raise",
    parts: Path | None = None,
    progress: Listener | None = None,
) -> Iterator[Extraction]:
    """Turn recordings into a feature table for each of several settings.

    Each is that of :func:`extract_table`, whose parameters these are; what settings share is
    computed once for a recording. Tables are made when they are asked for, from parts.
    """
    ended = _extract(recordings, settings, n_jobs, on_error, parts, progress)
    pairs = zip(settings, ended, strict=True)
    return (_as_table(recordings, each, of_one, on_error) for each, of_one in pairs)


def _as_table(
    recordings: Sequence[Recording],
    settings: FeatureSettings,
    ended: Sequence[_Ended],
    on_error: str,
) -> Extraction:
    (table,) = _assemble(_find_used(recordings, ended), settings)
    return Extraction(_contents([table]), _without_values(ended), on_error, table)


def _without_values(ended: Sequence[_Ended]) -> list[RecordingOutcome]:
    return [replace(outcome, X=_NO_VALUES) for outcome, *_ in ended]


def _extract(
    recordings: Sequence[Recording],
    settings: Sequence[FeatureSettings],
    n_jobs: int | None,
    on_error: str,
    parts: Path | None,
    progress: Listener | None,
) -> list[list[_Ended]]:
    """Compute the features of all recordings; values that a part has are kept there alone."""
    if on_error not in ("raise", "skip"):
        raise ArgumentError(f"on_error={on_error!r}: give raise or skip.", argument="on_error")
    if not recordings:
        raise InputError("There are no recordings.")
    check_spelling(recordings)
    n_jobs = count_jobs(n_jobs)
    for each in settings:
        _try_out(each)
    # What is finished in this run is no news, even if a second recording has the same bytes.
    resumable, opened = _check_parts(parts)
    finished = frozenset(key for key, is_whole in resumable.items() if is_whole)
    digests = [each.digest() if parts else None for each in settings]
    task = partial(_compute, settings=settings, digests=digests, finished=finished)
    ended: list[dict[int, _Ended]] = [{} for _ in settings]
    layouts: dict[tuple[str, ...], tuple[pd.Index, list[str]]] = {}  # of many recordings, once
    failure: RecordingOutcome | None = None
    # After a failure no recording is begun, and those under way are finished and kept.
    tasks = ((recording.source, recording) for recording in recordings if failure is None)
    steps = Steps("features", len(recordings) * len(settings), progress)
    for index, (computed, unreadable) in run_tasks(task, tasks, n_jobs=n_jobs):
        refuse_moved(parts, opened, "recordings")
        _refuse_unreadable(*unreadable)
        for number, (outcome, key) in enumerate(computed):
            part = parts / f"{key}.npz" if parts and key else None
            outcome = _kept(outcome, part, key in resumable)
            X, part = outcome.X, part if outcome.n_rows else None
            columns, channels = layouts.setdefault(tuple(X.columns), (X.columns, outcome.channels))
            if part is not None:
                outcome = replace(outcome, X=_NO_VALUES, channels=channels)
            ended[number][index] = outcome, columns, X.index.to_numpy(), part
            steps.done(item=outcome)
            if outcome.status == "failed" and on_error == "raise":
                failure = failure or outcome
    if failure is not None:
        raise _failed(failure, kept=bool(parts))
    return [[of_one[index] for index in range(len(recordings))] for of_one in ended]


def _kept(outcome: RecordingOutcome, path: Path | None, was_there: bool) -> RecordingOutcome:
    """Read the part of an outcome that was finished before, or write that of another one."""
    if path is None or outcome.status == "failed":
        return outcome
    if outcome.status == "resumed":
        return _add_features(outcome, _read_part(path))
    _write_part(path, outcome)  # a full disk is no fault of the recording: this may raise
    if was_there:
        notes = f"{path} was damaged: computed again.", *outcome.notes
        outcome = replace(outcome, notes=notes)
    return outcome


def _failed(failure: RecordingOutcome, kept: bool) -> RecordingError | UnexpectedRecordingError:
    """Say which recording stopped a run, and what to do."""
    kind = RecordingError if failure.mendable else UnexpectedRecordingError
    return kind(
        f"{failure.source}: {failure.error.rstrip('.')}. Repair or remove it, or skip "
        "recordings that fail with on_error='skip'."
        + (" Finished recordings are kept: run again to continue." if kept else ""),
        argument="on_error",
    )


def check_table_path(output: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse, before any work is done, a file that cannot or should not be written."""
    path = Path(output)
    check_writable(path)
    if not path.suffix or path.is_dir():
        strange = [file.name for file in path.glob("*") if not file.match(f"{_PIECE_NAME}*")]
        if strange or path.is_file():
            raise InputError(
                f"{path}: holds {strange[0]}; give a new folder, or a file such as table.parquet."
                if strange
                else f"{path}: is a file; give a folder, or a name such as table.parquet."
            )
        check_writable(_parts_folder(path))
    else:
        file_format(path)
        check_writable(_parts_folder(path), *files_beside(path))
    if path.exists():
        _remove_finished_parts(path)
    if not overwrite and (any(path.iterdir()) if path.is_dir() else path.exists()):
        raise ExistingFileError(path)
    return path


def extract_to_file(
    recordings: Sequence[Recording],
    output: str | PathLike[str],
    settings: FeatureSettings | None = None,
    *,
    n_jobs: int | None = None,
    dask: Any = None,
    on_error: str = "raise",
    overwrite: bool = False,
    progress: Listener | None = None,
) -> Extraction:
    """Turn recordings into a table file; continue after an interruption.

    Each finished recording is kept in a hidden folder beside the table
    (``.<name of the table>.parts``) until the table is written, whatever ends the run: an
    error, Ctrl-C, the power. It is found again by the bytes of its files and the settings.

    Parameters
    ----------
    recordings : sequence of Recording
    output : path-like
        ``.parquet``, ``.csv``, ``.csv.gz``, or without an ending a folder of Parquet files, for
        more rows than the memory holds: it is written when all recordings are finished, some
        recordings at a time.
    settings, n_jobs, dask, on_error, progress
        See :func:`extract_table`.
    overwrite : bool
        Whether to replace an existing table.

    Returns
    -------
    Extraction
    """
    path = check_table_path(output, overwrite=overwrite)
    folder = _parts_folder(path)
    busy = f"another process is making {path}; wait for it to end, or choose another name"
    with on_cluster(dask), locked(folder / "lock", busy):
        opened = folder.stat()
        settings, is_file = settings or FeatureSettings(), bool(path.suffix)
        [ended] = _extract(recordings, [settings], n_jobs, on_error, folder, progress)
        refuse_moved(folder, opened, "recordings")
        if is_file:
            extraction = _as_table(recordings, settings, ended, on_error)
            extraction.table.write(path)
        else:
            used = _find_used(recordings, ended)
            contents = _contents(_write_pieces(folder / "table", used, settings))
            shutil.rmtree(path, ignore_errors=True)
            (folder / "table").rename(path)
            extraction = Extraction(contents, _without_values(ended), on_error, path)
        shutil.rmtree(folder, ignore_errors=True)
    return extraction


def _write_pieces(
    folder: Path, used: Sequence[_Used], settings: FeatureSettings
) -> Iterator[FeatureTable]:
    """Write a table in pieces, each a Parquet file."""
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir()
    for number, table in enumerate(_assemble(used, settings, _PIECE)):
        table.write(folder / f"{_PIECE_NAME}{number:05d}.parquet")
        yield table


def _parts_folder(output: Path) -> Path:
    """Name the folder beside a table that keeps finished recordings until it is written."""
    return output.with_name(f".{output.name}.parts")


def _remove_finished_parts(table: Path) -> None:
    """Remove parts that a run left which was killed after it had written their table."""
    folder = _parts_folder(table)
    if not folder.is_dir():
        return
    with suppress(InputError), locked(folder / "lock", "a run is writing parts"):
        if all(part.stat().st_mtime <= table.stat().st_mtime for part in folder.glob("*.npz")):
            shutil.rmtree(folder, ignore_errors=True)


def _try_out(settings: FeatureSettings) -> None:
    """Refuse settings that do not go together, tried on noise, before a recording is blamed."""
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


# --- one recording of many -------------------------------------------------------------------


def _compute(
    task: tuple[str, Recording],
    *,
    settings: Sequence[FeatureSettings],
    digests: Sequence[str | None],
    finished: frozenset[str],
) -> tuple[list[tuple[RecordingOutcome, str]], tuple[str, ...]]:
    """Compute the features of a recording under all settings, unless they are finished.

    With each outcome goes the name of the part that keeps it, or empty; and on a Dask worker with
    all of them its address and a file of the recording that it cannot read.
    """
    source, recording = task
    outcome = RecordingOutcome(
        source=source, subject=recording.subject, label=recording.label, status="failed"
    )
    keys, failed = [""] * len(settings), False
    outcomes = [replace(outcome, status="resumed") for _ in settings]
    # Threads of BLAS split sums differently from run to run; one gives the same bits always.
    with _ONE_AT_A_TIME, collect_warnings() as warned, one_blas_thread():
        try:
            if None not in digests and (fingerprint := recording.fingerprint()) is not None:
                named = (f"{fingerprint}\n{digest}" for digest in digests)
                keys = [hashlib.sha256(name.encode()).hexdigest() for name in named]
            left = [number for number, key in enumerate(keys) if key not in finished]
            made = extract_each(recording, [settings[number] for number in left])
        except Exception as error:
            left = list(range(len(settings)))
            made = iter([(number, error) for number in left])
        for position, features in made:
            number = left[position]
            if isinstance(features, Exception):
                # A damaged file makes readers raise anything; one file must not stop the others.
                reason, mendable = reason_of(features), isinstance(features, InputError | OSError)
                reason = reason.removeprefix(f"{source}: ")
                outcomes[number] = replace(outcome, error=reason, mendable=mendable)
                failed = True
                continue
            done = replace(outcome, status="done", notes=tuple(warning_texts(warned)))
            outcomes[number] = _add_features(done, features)
            warned.clear()
    unreadable = _unreadable_on_worker(recording) if failed else ()
    return list(zip(outcomes, keys, strict=True)), unreadable


def _add_features(outcome: RecordingOutcome, features: RecordingFeatures) -> RecordingOutcome:
    """Complete an outcome that is done or resumed."""
    notes = (*outcome.notes, features.hint) if features.hint else outcome.notes
    status = outcome.status if features.n_rows else "empty"
    return replace(outcome, status=status, notes=notes, **_as_dict(features))


def _refuse_unreadable(worker: str = "", path: str = "") -> None:
    """Refuse a Dask worker that cannot read a file which this machine can."""
    if path and _is_readable(Path(path)):
        raise InputError(
            f"the Dask worker {worker} cannot read {path}, which this machine can: let workers "
            "see the recordings under the same path, on a disk that all share, or use processes "
            "here (n_jobs)",
            argument="dask",
        )


def _unreadable_on_worker(recording: Recording) -> tuple[str, ...]:
    unreadable = [str(path) for path in recording.files if not _is_readable(path)]
    try:
        from distributed import get_worker

        return (get_worker().address, *unreadable[:1]) if unreadable else ()
    except (ImportError, ValueError):  # not on a worker
        return ()


def _is_readable(path: Path) -> bool:
    try:
        path.open("rb").close()
    except OSError:
        return False
    return True


def _as_dict(features: RecordingFeatures) -> dict[str, Any]:
    return {field.name: getattr(features, field.name) for field in fields(RecordingFeatures)}


def _write_part(path: Path, features: RecordingFeatures) -> None:
    """Write beside and rename, so that a kill leaves either the whole part or none."""
    notes = _as_dict(features)
    X = notes.pop("X")
    notes["columns"] = list(X.columns)
    with replacing(path) as (beside,), beside.open("wb") as file:
        # A table format would spend more time on its thousands of columns than on the values.
        np.savez(
            file,
            notes=np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8),
            values=X.to_numpy(),
            starts=X.index.to_numpy(),
        )


def _read_part(path: Path) -> RecordingFeatures:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
        notes = json.loads(part["notes"].tobytes())
        index = pd.Index(part["starts"], name="start")
        X = pd.DataFrame(part["values"], columns=notes.pop("columns"), index=index)
    return RecordingFeatures(X=X, **notes)


def _check_parts(folder: Path | None) -> tuple[dict[str, bool], os.stat_result | None]:
    """Find what is finished, and whether each file is whole; also what tells a moved folder."""
    if folder is None:
        return {}, None
    folder.mkdir(parents=True, exist_ok=True)
    is_whole: dict[str, bool] = {}
    for path in folder.glob("*.npz"):
        try:
            is_whole[path.stem] = _read_part(path) is not None
        except Exception:  # a flipped bit makes readers raise anything
            is_whole[path.stem] = False
    return is_whole, folder.stat()


# --- the table -------------------------------------------------------------------------------


# The outcome of a recording, its columns, the starts of its epochs, and the part that has the
# values where the outcome has none.
_Ended = tuple[RecordingOutcome, pd.Index, NDArray[np.float64], Path | None]


class _Used(NamedTuple):
    """A recording with rows in the table."""

    name: str  # short, and its own
    recording: Recording
    outcome: RecordingOutcome
    spelling: dict[str, str]  # of its channels, to that of the table
    columns: list[str]  # as the table calls them
    starts: NDArray[np.float64]  # of epochs
    part: Path | None  # that has the values, where the outcome does not

    def values(self) -> pd.DataFrame:
        """Return its rows."""
        return self.outcome.X if self.part is None else _read_part(self.part).X


def _assemble(
    used: Sequence[_Used], settings: FeatureSettings, most_values: float = np.inf
) -> Iterator[FeatureTable]:
    """Put recordings below one another under the union of their channels, some in each table."""
    union = dict.fromkeys(column for part in used for column in part.columns)
    place = {column: number for number, column in enumerate(union)}
    channels = list(dict.fromkeys(split_column(column)[0] for column in union))
    info, rows = _table_info(used, settings), _table_rows(used)
    with_sites = all(part.recording.site for part in used)
    ends = np.cumsum([part.outcome.n_rows for part in used])
    number = (ends - 1) * len(union) // most_values
    for piece in np.split(np.arange(len(used)), np.flatnonzero(np.diff(number)) + 1):
        parts = [used[i] for i in piece]
        of_rows = [part.recording for part in parts for _ in range(part.outcome.n_rows)]
        last = ends[piece[-1]]
        yield FeatureTable(
            _stack(parts, place),
            pd.Series([recording.label for recording in of_rows]),
            pd.Series([recording.subject for recording in of_rows]),
            info | {"recordings": [info["recordings"][i] for i in piece]},
            sites=pd.Series([r.site for r in of_rows]) if with_sites else None,
            rows=rows.iloc[last - len(of_rows) : last].reset_index(drop=True),
            reasons=_list_reasons(parts, channels),
        )


def _stack(parts: Sequence[_Used], place: Mapping[str, int]) -> pd.DataFrame:
    """Put values below one another in the places of their columns."""
    n_rows = [part.outcome.n_rows for part in parts]
    values = np.full((sum(n_rows), len(place)), np.nan)
    for part, block in zip(parts, np.split(values, np.cumsum(n_rows)[:-1]), strict=True):
        block[:, [place[column] for column in part.columns]] = part.values()
    return pd.DataFrame(values, columns=list(place), copy=False)


def _contents(tables: Iterable[FeatureTable]) -> Contents:
    """Count what tables have in all."""
    n_observed, facts = 0, []
    for table in tables:
        n_observed += int(table.observed.to_numpy().sum())
        facts += [recording["facts"] for recording in table.info["recordings"]]
    return Contents(table.channels, len(table.features), n_observed, facts)


def _find_used(recordings: Sequence[Recording], ended: Sequence[_Ended]) -> list[_Used]:
    """Name each recording with rows by its file or its subject, and unify names of channels."""
    seen: Counter[str] = Counter()
    first: dict[str, str] = {}
    layouts: dict[tuple[str, ...], tuple[dict[str, str], list[str]]] = {}
    used = []
    for recording, (outcome, columns, starts, part) in zip(recordings, ended, strict=True):
        if not outcome.n_rows:
            continue
        source = Path(recording.source)
        name = source.stem if recording.files or source.suffix else recording.subject
        while seen[name]:
            seen[name] += 1
            name = f"{name}-{seen[name]}"
        seen[name] += 1
        layout = *outcome.channels, *columns
        if layout not in layouts:
            names = outcome.channels
            spelling = {name: first.setdefault(same_name(name), name) for name in names}
            if len(set(spelling.values())) < len(spelling):
                # Two that differ in spelling alone in one file: that is for its owner to mend.
                spelling = {name: name for name in names}
            pairs = map(split_column, columns)
            named = [join_column(spelling[channel], feature) for channel, feature in pairs]
            layouts[layout] = spelling, named
        used.append(_Used(name, recording, outcome, *layouts[layout], starts, part))
    if not used:
        reasons = [
            (o.error or " ".join(o.notes) or _why_empty(o)).rstrip(".") for o, *_ in ended[:3]
        ]
        listed = "; ".join(f"{o.source}: {r}" for (o, *_), r in zip(ended, reasons, strict=False))
        raise InputError(f"No recording gave an epoch with any channel left ({listed}).")
    return used


def _table_info(used: Sequence[_Used], settings: FeatureSettings) -> dict[str, Any]:
    """Describe how a table was made: settings, montage, and the facts of each recording."""
    montages = sorted({part.outcome.montage for part in used} - {""})
    # Read here and now: neither the table nor what an interrupted run keeps holds names or dates.
    of_headers = header_facts([part.recording for part in used])
    return {
        **settings.as_dict(),
        "montage": montages[0] if len(montages) == 1 else montages or None,
        "recordings": [
            {
                RECORDING: name,
                "name": Path(recording.source).name,
                "subject": recording.subject,
                "session": recording.session,
                "condition": recording.condition,
                "rows": outcome.n_rows,
                "facts": outcome.acquisition | of_header,
            }
            for (name, recording, outcome, *_), of_header in zip(used, of_headers, strict=True)
        ],
    }


def _table_rows(used: Sequence[_Used]) -> pd.DataFrame:
    """Describe the rows of a table: recording, session, condition, details, epoch and onset."""
    by_recording = described([part.recording.details for part in used])
    by_recording[RECORDING] = [part.name for part in used]
    by_recording[SESSION] = pd.Series([part.recording.session for part in used], dtype=object)
    n_rows = [part.outcome.n_rows for part in used]
    rows = by_recording.loc[np.repeat(by_recording.index, n_rows)].reset_index(drop=True)
    # Epochs that were cut before may have conditions and metadata of their own.
    conditions: list[str | None] = []
    metadata: list[dict[str, str]] = []
    for _, recording, outcome, *_ in used:
        condition = recording.condition
        if outcome.conditions and (condition is None or condition.startswith(_BIDS_CONDITION)):
            conditions += [
                "_".join(filter(None, (condition, epoch_condition)))
                for epoch_condition in outcome.conditions
            ]
        else:
            conditions += [condition] * outcome.n_rows
        metadata += [
            {name: "" if value is None else str(value) for name, value in of_epoch.items()}
            for of_epoch in outcome.metadata or [{}] * outcome.n_rows
        ]
    rows[CONDITION] = pd.Series(conditions, dtype=object)
    of_epochs = described(metadata)
    rows = rows.join(of_epochs[of_epochs.columns.difference(rows.columns, sort=False)])
    rows[EPOCH] = [epoch for part in used for epoch in part.outcome.epochs]
    rows[ONSET] = np.concatenate([part.starts for part in used])
    return rows


def _list_reasons(used: Sequence[_Used], channels: Sequence[str]) -> pd.DataFrame:
    """List why channels are missing, also those that a recording does not have."""
    lines = []
    for name, _, outcome, spelling, *_ in used:
        for reason, hits in outcome.cells.items():
            for channel, epochs in hits.items():
                lines += [(name, epoch, spelling[channel], reason) for epoch in epochs]
        for channel in channels:
            if channel not in spelling.values():
                lines += [(name, epoch, channel, _NOT_RECORDED) for epoch in outcome.epochs]
    return pd.DataFrame(lines, columns=REASON_COLUMNS)
