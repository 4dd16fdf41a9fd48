"""What differs between operating systems about processes and signals: here and nowhere else.

Blocked signals, the watch over a parent, the end of a process that is deaf to signals and the
question whether a process lives need POSIX. On Windows workers hear Ctrl-C themselves and end when
the pool does, and a file that a killed process left is not swept. That half has not been tried on
Windows. Copies of a process are made on Linux alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from idfsmec._files import _is_running as is_running  # noqa: F401

#: Seconds between two looks whether the parent is still there.
_WATCH = 2.0
_watched = threading.Event()


def can_remove_open_files() -> bool:
    """Whether a file goes when it is removed although somebody maps it; not on Windows.

    Examples
    --------
    >>> can_remove_open_files() == (os.name == "posix")
    True
    """
    return os.name == "posix"


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Start workers that do not hear Ctrl-C: this process does, and ends them.

    A signal that is blocked here stays blocked in the processes that are started meanwhile. The
    first of them are those that clean up after the others, Python's and joblib's; their start ends
    the blocking, so they come before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # not on Windows

    from joblib.externals.loky.backend import resource_tracker as tracker_of_joblib

    for tracker in (resource_tracker, tracker_of_joblib):
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(parent: int) -> None:
    """Have this worker end soon after its parent has, and leave Ctrl-C to that one.

    Does nothing in the parent itself, in a worker that is under watch, and on Windows.
    """
    if os.name != "posix" or os.getpid() == parent or _watched.is_set():
        return
    _watched.set()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=[parent], daemon=True).start()


def _watch(parent: int) -> None:
    """End this process, whatever it is doing, when its parent has gone."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def fork(work: Callable[[], None]) -> int:
    """Start a copy of this process that does some work and ends, however that goes.

    It is deaf to Ctrl-C, says nothing, and takes a warning for an error. Other threads are not in
    the copy, but what they have locked stays locked there: the work should need nobody else.

    Returns
    -------
    int
        Number of the process, which somebody has to wait for.

    Raises
    ------
    OSError
        This system makes no copies (macOS has them, but its libraries forbid their use).
    """
    if sys.platform != "linux":
        raise OSError("no copies of processes here")
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see above
            process = os.fork()
        if process == 0:
            _be_a_copy(work, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _be_a_copy(work: Callable[[], None], mask: set[Any]) -> None:
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.stdout = sys.stderr = os.fdopen(nowhere, "w", encoding="utf-8")
        warnings.simplefilter("error")
        work()
    finally:
        os._exit(0)  # nothing that this process has begun is ended or flushed twice
