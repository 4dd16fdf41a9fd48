"""End a command when it is told to, and start it only where memory allows."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from idfsmec.errors import InputError

#: Seconds after which a process that was asked to end, and has not begun to, is ended.
_PATIENCE = 5.0


class Stopped(KeyboardInterrupt):
    """The process was asked to end by a signal; its exit code is the signal's number and 128."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__("stopped" if name == "SIGINT" else f"stopped by {name}")
        self.number = number


@contextmanager
def stopping_on_signals(print_last: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Turn the first of SIGINT, SIGTERM and SIGHUP into :class:`Stopped`, and ignore others.

    So that cleaning up is not disturbed, however often Ctrl-C is pressed meanwhile. A signal that
    is ignored from outside (``nohup``) stays ignored. A process that is inside a library for
    longer, where Python does not hear signals, is ended, after ``print_last`` got a line.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = threading.Event()
    names = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not on Windows
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    taken = [number for number in numbers if before[number] in defaults]

    def stop(number: int, frame: Any) -> None:
        heard.set()
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    for number in taken:
        signal.signal(number, stop)
    try:
        with _ending_if_unheard(taken, heard, print_last):
            yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


@contextmanager
def _ending_if_unheard(
    numbers: list[int], heard: threading.Event, print_last: Callable[[str], None]
) -> Iterator[None]:
    """End this process if Python does not hear a signal: a thread of its own waits for them.

    The system's part of a signal writes the number into a pipe at once; Python's part comes when
    the library that the main thread is in returns.
    """
    if os.name != "posix":
        yield
        return
    outlet, inlet = os.pipe()
    os.set_blocking(inlet, False)

    def listen() -> None:
        while number := int.from_bytes(os.read(outlet, 1), "big"):
            if number in numbers and not heard.wait(_PATIENCE):
                print_last(str(Stopped(number)))
                os._exit(128 + number)
        os.close(outlet)

    before = signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(inlet)
        listener.join(0 if heard.is_set() else None)


def spare_address_space() -> None:
    """Have libraries start no threads of their own where address space is short (``ulimit -v``).

    OpenBLAS sends itself SIGINT when it cannot start its threads, and every one of them takes tens
    of megabytes; with too little to import what is needed libraries end the process, or wait.
    Comes before numpy is imported, or does nothing.
    """
    try:
        import resource  # not on Windows
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= 4 << 30:
        return
    if limit < 1 << 30:
        raise InputError(f"{limit >> 20} MiB of memory (ulimit -v) are too few: give 1024 or more")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
