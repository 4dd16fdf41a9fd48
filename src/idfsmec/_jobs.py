"""What numerical work shares: threads, processes, and memory that is used again."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import scipy.linalg  # noqa: F401  (so must SciPy's)
from threadpoolctl import ThreadpoolController

from idfsmec._workers import run_in_processes
from idfsmec.errors import ArgumentError

# Looking up the BLAS libraries of the process takes longer than a small fit: once, at import.
_BLAS = ThreadpoolController()


def keep_freed_arrays() -> None:
    """Have freed arrays used again instead of going back to the operating system.

    The C library of Linux hands arrays back when they are freed and fetches them page by page
    when the next one is allocated, which took a third of the time of some computations. It keeps
    whatever is smaller than the largest array it has seen freed, up to 32 MiB. So it is shown one,
    which costs nothing because nobody writes to it. Elsewhere this does nothing.
    """
    np.empty(31 * 2**20, dtype=np.uint8)


keep_freed_arrays()


def give_back_freed_arrays() -> None:
    """Give back to the operating system, once, what :func:`keep_freed_arrays` has kept.

    For a process that has read a large table and waits for others from now on. Elsewhere than with
    the C library of Linux this does nothing.
    """
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def available_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set, as in joblib's workers; otherwise all cores.

    Examples
    --------
    >>> available_threads() >= 1
    True
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else joblib.cpu_count()


def count_jobs(n_jobs: int | None) -> int:
    """Say how many processes a number of jobs means, the way joblib counts.

    Parameters
    ----------
    n_jobs : int or None
        So many; -1 is one per core, -2 one fewer, and so on, but at least 1. None: one per core.

    Raises
    ------
    ArgumentError
        It is 0, or not a whole number.

    Examples
    --------
    >>> count_jobs(3), count_jobs(-1) == count_jobs(None) == joblib.cpu_count()
    (3, True)
    """
    if n_jobs is None:
        return joblib.cpu_count()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ArgumentError(
            f"n_jobs={n_jobs!r}: give 1 or more, or -1 for one per core", argument="n_jobs"
        )
    return int(n_jobs) if n_jobs > 0 else max(joblib.cpu_count() + 1 + int(n_jobs), 1)


def one_blas_thread() -> AbstractContextManager:
    """Limit BLAS to one thread: small matrices gain nothing, and more changes the last digits."""
    return _BLAS.limit(limits=1, user_api="blas")


@dataclass(frozen=True)
class Processes:
    """Workers for long numerical work in pieces, each with one BLAS thread.

    They are joblib's, so they are started once and stay for the next work. Inside a worker (of
    anybody's) there are none: what it is given is its share already.

    Attributes
    ----------
    n_workers : int

    Examples
    --------
    >>> list(Processes(2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    n_workers: int

    @classmethod
    def available(cls) -> Processes:
        """One for each of the :func:`available_threads`, in the main process."""
        main = multiprocessing.current_process().name == "MainProcess"
        return cls(available_threads() if main else 1)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        """Results in the order of the items, as they come."""
        n_workers = min(self.n_workers, len(items))
        if n_workers < 2:
            return map(function, items)
        return self._share(function, items, n_workers)

    @staticmethod
    def _share(
        function: Callable[[Any], Any], items: Sequence[Any], n_workers: int
    ) -> Iterator[Any]:
        tasks = [(function, item) for item in items]
        n_done = 0
        try:
            for result in run_in_processes(_with_one_thread, tasks, n_workers, ordered=True):
                n_done += 1
                yield result
        except BrokenProcessPool:
            # Killed from outside, mostly for want of memory: one process needs the least.
            yield from map(function, items[n_done:])


def _with_one_thread(function: Callable[[Any], Any], item: Any) -> Any:
    with one_blas_thread():
        return function(item)
