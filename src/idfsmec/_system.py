"""What differs between operating systems about processes and signals: here and nowhere else.

Blocked signals, the watch over a parent and the question whether a process lives need POSIX. On
Windows workers hear Ctrl-C themselves and end when the pool does, and a file that a killed process
left is not swept. That half has not been tried on Windows.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds between two looks whether the parent is still there.
_WATCH = 2.0
_watched = threading.Event()


def is_running(process: int) -> bool:
    """Whether there is a process with this number; unknown counts as yes.

    Examples
    --------
    >>> is_running(os.getpid())
    True
    """
    if os.name != "posix":  # elsewhere one cannot ask for a process without harming it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Start workers that do not hear Ctrl-C: this process does, and ends them.

    A signal that is blocked here stays blocked in the processes that are started meanwhile. The
    first of them is the one that cleans up after the others; its start ends the blocking, so it
    comes before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # not on Windows

    resource_tracker.ensure_running()
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
def stopping_on_signals() -> Iterator[None]:
    """Turn the first of SIGINT, SIGTERM and SIGHUP into :class:`Stopped`, and ignore others.

    So that whoever cleans up can do so, however often Ctrl-C is pressed meanwhile. A signal that
    is ignored from outside (``nohup``) stays ignored.
    """
    numbers = [
        getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
    ]
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        for one in taken:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    taken = {
        number: signal.getsignal(number)
        for number in numbers
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    }
    for number in taken:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)
