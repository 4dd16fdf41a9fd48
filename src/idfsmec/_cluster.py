"""Work on a Dask cluster that may lose workers: what is lost is sent again.

Evaluation, features and sums use it; what each of them sends is its own business.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idfsmec._version import __version__
from idfsmec.errors import InputError

try:
    import distributed
except ImportError as _error:
    raise InputError(
        f'a Dask cluster needs the package "distributed" ({_error}); install idfsmec[dask]'
    ) from None

#: How often a task is sent to a cluster again after the cluster lost it.
MOST_LOSSES = 3
#: Seconds between two looks at what a cluster has finished, and whether it is still there.
_POLL = 0.05
#: Seconds that saying goodbye to a cluster may take; one that is gone does not answer.
_CLOSE = 10
#: A future lost with its scheduler says so in either of two ways, depending on the moment.
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
#: What a call to a cluster raises when the other end has just died.
GONE = (OSError, TimeoutError, *CANCELLED)


@dataclass(frozen=True)
class Lost:
    """In place of an outcome: the cluster lost the task again and again, or could not do it."""

    reason: str
    error: BaseException | None = None


@contextmanager
def connected(dask: Any) -> Iterator[Any]:
    """Give a client: the one that is given, or one for the address of a scheduler."""
    if isinstance(dask, distributed.Client):
        yield dask
        return
    if str(dask).startswith("tls://"):
        _check_certificates(dask)
    try:
        client = distributed.Client(dask, timeout="15s")
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {dask!r} ({error}); start one with `dask scheduler` "
            "and workers with `dask worker tcp://... --nthreads 1`"
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=_CLOSE)


def _check_certificates(address: str) -> None:
    """Refuse ``tls://`` without certificates, which Dask keeps in its own configuration."""
    known = distributed.Security().get_tls_config_for_role("client")
    for what, key in (("ca_file", "CA_FILE"), ("cert", "CLIENT__CERT"), ("key", "CLIENT__KEY")):
        variable = f"DASK_DISTRIBUTED__COMM__TLS__{key}"
        file = known[what]
        if not file:
            raise InputError(
                f"{address} needs certificates: set {variable} to a PEM file, or "
                "distributed.comm.tls in Dask's configuration"
            )
        if "\n" not in file and not Path(file).is_file():
            raise InputError(f"{file}: there is no such file; {variable} names it")


class ClusterRun:
    """Tasks on their way through a cluster.

    Parameters
    ----------
    client : distributed.Client
    function : callable
        Called on workers with the members of a task; what it raises ends in :class:`Lost`.
    """

    def __init__(self, client: Any, function: Callable[..., Any]) -> None:
        self._client = client
        self._function = function
        self._under_way: dict[Any, tuple[int, tuple[Any, ...]]] = {}
        self._losses: Counter[int] = Counter()
        self._completed = distributed.as_completed(raise_errors=False)

    def outcomes(
        self, tasks: Iterable[tuple[Any, ...]], *, ahead: bool = True
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Give tasks with their outcomes, as they come.

        Parameters
        ----------
        tasks : iterable of tuple
        ahead : bool
            Whether all are sent at once, or each when a worker's thread is free for it.
        """
        waiting = enumerate(tasks)
        try:
            self.begin()
            self._send(waiting, ahead)
            while self._under_way:
                if not self._completed.has_ready():
                    self.check_scheduler()
                    time.sleep(_POLL)
                    continue
                future = next(self._completed)
                number, task = self._under_way.pop(future)
                outcome = self._fetch(future)
                if isinstance(outcome, Lost) and self._losses[number] < MOST_LOSSES:
                    self._send_again(future, number, task)
                else:
                    yield task, outcome
                self._send(waiting, ahead)
        finally:
            if self._client.status == "running":
                self._client.cancel(list(self._under_way))
                self.end()

    def begin(self) -> None:
        """Prepare the workers."""

    def end(self) -> None:
        """Leave the workers as they were; nothing that goes wrong here may be raised."""

    def prepare_again(self) -> None:
        """Prepare the workers that could not do their task."""

    def check_scheduler(self) -> None:
        """Stop as soon as the scheduler is gone: waiting for its tasks would never end."""
        if self._client.status != "running":
            raise RuntimeError(
                "the Dask scheduler is gone. What is finished is kept: start scheduler and "
                "workers again and give the same command to go on"
            )

    def _send(self, waiting: Iterator[tuple[int, tuple[Any, ...]]], ahead: bool) -> None:
        room = None
        if not ahead:
            threads = sum(self._client.nthreads().values())
            room = max(0, max(threads, 1) - len(self._under_way))
        for number, task in itertools.islice(waiting, room):
            self._submit(number, task)

    def _submit(self, number: int, task: tuple[Any, ...]) -> None:
        future = self._client.submit(_call, __version__, self._function, task, pure=False)
        self._under_way[future] = number, task
        self._completed.add(future)

    def _send_again(self, future: Any, number: int, task: tuple[Any, ...]) -> None:
        self.check_scheduler()
        check_loaded(future)
        self._losses[number] += 1
        if future.status == "finished":  # and yet no outcome: the worker was not prepared
            self.prepare_again()
        self._submit(number, task)

    def _fetch(self, future: Any) -> Any:
        """Get what a worker has found, or how it was lost."""
        if future.status == "finished":
            try:
                outcome = future.result()
            except GONE:
                outcome = None
            if outcome is not None:
                return outcome
        if future.status == "error":
            error = future.exception()
            return Lost("".join(traceback.format_exception(error)), error)
        return Lost(f"the cluster lost this again and again ({future.status})")


def _call(version: str, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """On a worker."""
    if version != __version__:
        raise ImportError(f"a worker has idfsmec {__version__}")
    return function(*task)


def check_loaded(future: Any) -> None:
    """Stop if scheduler or worker could not load a task: they will not load the others either."""
    error = future.exception() if future.status == "error" else None
    for one in (error, getattr(error, "__cause__", None)):
        if isinstance(one, (ImportError, AttributeError)):
            raise cannot_load(one)


def cannot_load(error: BaseException) -> InputError:
    """What to say when workers lack a module."""
    return InputError(
        f"the Dask cluster cannot load what it is sent ({error}); install idfsmec {__version__}, "
        "and the modules of your own methods, where scheduler and workers run"
    )
