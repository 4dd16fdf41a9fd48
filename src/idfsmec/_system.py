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
from contextlib import contextmanager, suppress
from typing import Any

from idfsmec._files import _is_running as is_running  # noqa: F401
from idfsmec.errors import InputError

#: Seconds between two looks whether the parent is still there.
_WATCH = 2.0
_watched = threading.Event()
#: Seconds after which a process that was asked to end, and has not begun to, is ended.
_PATIENCE = 5.0
#: Bytes of address space below which threads of libraries cost more than they give.
_TIGHT = 4 << 30
# With less, libraries end the process where they cannot start a thread, or wait for ever.
_LEAST = 1 << 30


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


class Stopped(KeyboardInterrupt):
    """The process was asked to end, by Ctrl-C or by a signal.

    Parameters
    ----------
    number : int
        Of the signal. The exit code of a program that ends for it is 128 more.
    """

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__("stopped" if name == "SIGINT" else f"stopped by {name}")
        self.number = number


@contextmanager
def stopping_on_signals(say: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Turn the first of SIGINT, SIGTERM and SIGHUP into :class:`Stopped`, and ignore others.

    So that whoever cleans up can do so, however often Ctrl-C is pressed meanwhile. A signal that
    is ignored from outside (``nohup``) stays ignored. A process that is inside a library for
    longer, where Python does not hear signals, is ended.

    Parameters
    ----------
    say : callable
        Gets the last words of a process that did not hear.
    """
    numbers = [
        getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
    ]
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        heard.set()
        for one in taken:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    heard = threading.Event()
    taken = {
        number: signal.getsignal(number)
        for number in numbers
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    }
    for number in taken:
        signal.signal(number, stop)
    try:
        with _ending_the_deaf(frozenset(taken), heard, say):
            yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


@contextmanager
def _ending_the_deaf(
    numbers: frozenset[int], heard: threading.Event, say: Callable[[str], None]
) -> Iterator[None]:
    """End this process if a signal comes that is not heard: a thread of its own waits for them.

    The system's part of a signal writes the number into a pipe at once; Python's part comes when
    the library that the main thread is in returns. A library that holds Python's lock meanwhile
    keeps this thread from running, too.
    """
    if os.name != "posix":
        yield
        return
    outlet, inlet = os.pipe()
    os.set_blocking(inlet, False)
    before = signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_listen, args=[outlet, numbers, heard, say], daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(inlet)
        watcher.join(0 if heard.is_set() else None)


def _listen(
    outlet: int, numbers: frozenset[int], heard: threading.Event, say: Callable[[str], None]
) -> None:
    """Wait for a signal or the end of the pipe."""
    while came := os.read(outlet, 1):
        if came[0] in numbers and not heard.wait(_PATIENCE):
            with suppress(OSError):
                say(str(Stopped(came[0])))
            os._exit(128 + came[0])
    os.close(outlet)


def spare_address_space() -> None:
    """Have libraries start no threads of their own where address space is short (``ulimit -v``).

    OpenBLAS sends itself SIGINT when it cannot start its threads, and every one of them takes tens
    of megabytes. Comes before numpy is imported, or does nothing.

    Raises
    ------
    InputError
        There is too little to import what is needed.
    """
    try:
        import resource  # not on Windows
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST:
        raise InputError(
            f"{limit >> 20} MiB of memory (ulimit -v) are too few: give {_LEAST >> 20} or more"
        )
    if limit != resource.RLIM_INFINITY and limit < _TIGHT:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
