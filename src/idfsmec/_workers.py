"""Worker processes: deaf to Ctrl-C, gone when their parent is, sharing memory that is swept."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

from idfsmec._files import take_lock
from idfsmec._system import deaf_to_ctrl_c, end_with, is_running
from idfsmec.errors import InputError

Outcome = TypeVar("Outcome")

#: Seconds after which a folder without a lock belongs to nobody.
_SETTLED = 10.0
_PREFIX = "idfsmec-shared-"
#: Memory as a folder, where Linux has also the semaphores of joblib's workers.
_MEMORY = Path("/dev/shm")  # noqa: S108 - meant, and the folders in it are our own
_SEMAPHORES = "sem.loky-"


def run_in_processes(
    function: Callable[..., Outcome],
    tasks: Iterable[tuple[Any, ...]],
    n_jobs: int,
    *,
    ordered: bool = False,
    queued: str = "2*n_jobs",
    share_from: str | None = None,
    stay: bool = True,
) -> Iterator[Outcome]:
    """Call a function once for each tuple of arguments, and yield what comes back.

    Parameters
    ----------
    function : callable
    tasks : iterable of tuple
        Arguments; taken as workers get free, not before.
    n_jobs : int
        Processes; with 1 everything happens here.
    ordered : bool
        Whether results come in the order of the tasks, or as they are there.
    queued : str
        How many tasks are taken in advance, as joblib's ``pre_dispatch``.
    share_from : str, optional
        Arrays from this size on (such as ``"1M"``) reach the workers as memory maps of one copy.
    stay : bool
        Whether the workers stay for the next work, with all that they keep in memory.

    Examples
    --------
    >>> sorted(run_in_processes(divmod, [(7, 2), (9, 4)], 1))
    [(2, 1), (3, 1)]
    """
    if n_jobs == 1:
        for task in tasks:
            yield function(*task)
        return
    with shared_folder() as folder:
        pool = joblib.Parallel(
            n_jobs=n_jobs,
            backend="loky",
            return_as="generator" if ordered else "generator_unordered",
            batch_size=1,
            pre_dispatch=queued,
            max_nbytes=share_from,
            temp_folder=str(folder),
        )
        attended = attend(function)
        with deaf_to_ctrl_c():
            outcomes = pool(joblib.delayed(attended)(*task) for task in tasks)
        _write_semaphores(folder)
        try:
            yield from outcomes
        finally:
            outcomes.close()
            if not stay:
                get_reusable_executor(reuse=True).shutdown()


def attend(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Wrap a function for worker processes: they end soon after this process has, however it did.

    Examples
    --------
    >>> attend(max)(3, 4)
    4
    """
    return _Attended(function, os.getpid())


class _Attended:
    """A function and the process on whose behalf it is called."""

    def __init__(self, function: Callable[..., Any], parent: int) -> None:
        self._function, self._parent = function, parent

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        end_with(self._parent)
        return self._function(*args, **kwargs)


@contextmanager
def shared_folder(n_bytes: int = 0) -> Iterator[Path]:
    """Give a folder for arrays that processes share, in memory where the system offers that.

    It holds people's values: only we may look into it, it is removed at the end, and what killed
    runs of ours have left is removed now.

    Parameters
    ----------
    n_bytes : int
        What will be written into it at once, if that is known. Disk is taken where memory as a
        folder has less, and 2 GiB.
    """
    base = _memory(n_bytes)
    _sweep(base)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
    try:
        lock = take_lock(folder / "lock", "somebody else uses this folder")
        try:
            yield folder
        finally:
            lock.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory(n_bytes: int) -> Path:
    """``JOBLIB_TEMP_FOLDER`` where it is set, memory as a folder where there is one, or disk."""
    if wanted := os.environ.get("JOBLIB_TEMP_FOLDER"):
        return Path(wanted)
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    roomy = usable and shutil.disk_usage(_MEMORY).free > n_bytes + 2**31
    return _MEMORY if roomy else Path(tempfile.gettempdir())


def _sweep(base: Path) -> None:
    """Remove folders whose run is dead: no such process here, and nobody holds their lock."""
    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError, InputError):
            process = int(folder.name.removeprefix(_PREFIX).split("-")[0])
            about = folder.stat()
            ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if not ours or is_running(process) or time.time() - about.st_mtime < _SETTLED:
                continue
            take_lock(folder / "lock", "in use").close()
            _remove_semaphores(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _write_semaphores(folder: Path) -> None:
    """Write down the names of the semaphores of our workers, for whoever sweeps.

    They have 32 bytes each and hold nothing of anybody, but a killed run leaves them for ever.
    Others use such names too, so that only what is written down is known to be ours.
    """
    names = [one.name for one in _MEMORY.glob(f"{_SEMAPHORES}{os.getpid()}-*")]
    (folder / "semaphores").write_text("\n".join(names))


def _remove_semaphores(folder: Path) -> None:
    with suppress(FileNotFoundError):
        for name in (folder / "semaphores").read_text().split():
            if name.startswith(_SEMAPHORES) and "/" not in name:
                (_MEMORY / name).unlink(missing_ok=True)
