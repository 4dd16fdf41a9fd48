"""What numerical work shares: threads, processes, and memory that is used again."""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from idfsmec._parallel import available_threads, count_jobs, one_blas_thread
from idfsmec._workers import run_in_processes

__all__ = ["available_threads", "count_jobs", "one_blas_thread"]


def give_back_freed_arrays() -> None:
    """Give back to the operating system, once, what the C library has kept.

    For a process that has read a large table and waits for others from now on. Elsewhere than with
    the C library of Linux this does nothing.
    """
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


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
