"""Run tasks in parallel through joblib, on this machine or on a Dask cluster.

joblib does the work. This module adds what joblib leaves out: workers end with their parent and
leave Ctrl-C to it, tasks that were lost with a worker are run again, and what workers share is
removed even after a kill.
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import errno
import functools
import importlib.metadata
import itertools
import logging
import os
import pkgutil
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.linalg  # noqa: F401  (the controller below limits only libraries that are loaded)
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from idfsmec._version import __version__
from idfsmec.errors import ArgumentError, InputError, WorkerError

# Looking up the BLAS libraries of the process takes longer than a small fit: once, at import.
_BLAS = ThreadpoolController()
# glibc keeps freed memory up to the size of the largest array that it has seen freed; fetching it
# page by page each time took a third of the time of some computations.
np.empty(31 * 2**20, dtype=np.uint8)
#: How many workers a task may take down.
_MOST_DEATHS = 3
#: Seconds between two looks whether the parent is still there.
_WATCH = 1.0
#: Arrays of so many bytes reach workers as memory maps of one copy.
_SHARED_FROM = 100_000
#: Where Linux keeps shared memory and semaphores.
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders there are ours
#: Packages whose versions each result is kept with.
_COMPUTING = ("numpy", "scipy", "scikit-learn")
#: Seconds in which a scheduler has to answer.
_GREETING = 3.0
#: Seconds for which a cluster may have no worker that answers, and after which silence is told.
_PATIENCE, _SILENCE = 300.0, 30.0
#: Seconds between two looks at the workers of a cluster.
_LOOK = 2.0
#: The client of the block of :func:`on_cluster` that is running.
_cluster: ContextVar[Any] = ContextVar("cluster", default=None)
_LOG = logging.getLogger("idfsmec")
_watched = threading.Event()


def available_threads() -> int:
    """Return ``OMP_NUM_THREADS`` where it is set, as in joblib's workers; otherwise all cores."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isdigit() and int(setting) > 0 else int(joblib.cpu_count())


@functools.cache
def computing_versions() -> dict[str, str]:
    """Return the versions of the packages that decide the last digits of results."""
    return {name: importlib.metadata.version(name) for name in _COMPUTING} | {
        "idfsmec": __version__
    }


def count_jobs(n_jobs: int | None) -> int:
    """Return how many processes a number of jobs means, as in joblib and scikit-learn.

    None is 1, unless ``joblib.parallel_config`` says otherwise; -1 is one per core. On a cluster
    it is the number of its threads, at least 2.
    """
    client = _cluster.get()
    number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (number and n_jobs):
        raise ArgumentError(
            f"n_jobs={n_jobs!r}: give 1 or more, or -1 for one per core", argument="n_jobs"
        )
    if client is not None:
        return int(max(2, sum(client.nthreads().values())))
    return int(joblib.effective_n_jobs(n_jobs))


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread: small matrices gain nothing, and more changes the last digits."""
    limits: AbstractContextManager[Any] = _BLAS.limit(limits=1, user_api="blas")
    return limits


@contextmanager
def on_cluster(dask: Any) -> Iterator[None]:
    """Run the tasks of a block on a Dask cluster: a scheduler's address or a client, or None.

    Fails within seconds where no scheduler answers, and waits for a first worker for
    :data:`_PATIENCE` seconds.
    """
    if dask is None:
        yield
        return
    with _connected(dask) as client:
        token = _cluster.set(client)
        try:
            _check_workers(client)
            yield
        finally:
            _cluster.reset(token)


def run_tasks(
    function: Callable[[Any], Any], tasks: Iterable[Any], *, n_jobs: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Call a function with each task, and yield results with their tasks' positions.

    Tasks are taken as workers get free. The function runs with one BLAS thread and starts no
    further workers; large arrays that it holds (``functools.partial``) reach processes as
    read-only memory maps of one copy, and a Dask cluster once. What it raises is raised here; a
    task that has ended three workers, each of which did nothing else, raises WorkerError.

    With one job everything is done here, in order. Inside :func:`on_cluster`, or with
    ``joblib.parallel_config("dask")``, tasks are done on the cluster. Of the other backends that
    joblib knows, those that give results one by one do so, and others when all tasks are done.
    """
    backend = get_active_backend()[0]
    client = _cluster.get() or getattr(backend, "client", None)
    n_jobs = count_jobs(n_jobs)
    if isinstance(tasks, Sized):
        n_jobs = min(n_jobs, len(tasks))
    if client is not None:
        where, outcomes = f"Dask, {n_jobs} threads", _on_dask(function, tasks, client)
    elif n_jobs <= 1:
        where, outcomes = "this process", _here(function, tasks)
    elif type(backend).__name__ in ("LokyBackend", "SequentialBackend"):
        where, outcomes = f"{n_jobs} processes", _in_processes(function, tasks, n_jobs)
    else:
        where, outcomes = type(backend).__name__, _by_joblib(function, tasks, backend, n_jobs)
    _LOG.info("tasks in %s, %s", where, " ".join(map(" ".join, computing_versions().items())))
    with closing(outcomes):
        for index, result in outcomes:
            _LOG.info("task %d ended", index + 1)
            yield index, result


def _here(
    function: Callable[[Any], Any], tasks: Iterable[Any]
) -> Generator[tuple[int, Any], None, None]:
    """Run tasks in this process, in order."""
    for index, task in enumerate(tasks):
        with one_blas_thread():
            result = function(task)
        yield index, result


def _by_joblib(
    function: Callable[[Any], Any], tasks: Iterable[Any], backend: Any, n_jobs: int
) -> Generator[tuple[int, Any], None, None]:
    """Run tasks by the backend of ``joblib.parallel_config``."""
    one_by_one = getattr(backend, "supports_return_generator", False)
    return_as = "generator_unordered" if one_by_one else "list"
    pool = joblib.Parallel(n_jobs, return_as=return_as, batch_size=1)
    yield from pool(joblib.delayed(_call)(function, *numbered) for numbered in enumerate(tasks))


def _call(
    function: Callable[[Any], Any], index: int, task: Any, parent: int | None = None
) -> tuple[int, Any]:
    """Do a task in a worker."""
    if parent is not None:
        _end_with(parent)
    with joblib.parallel_config("sequential"), one_blas_thread():
        return index, function(task)


def _in_processes(
    function: Callable[[Any], Any], tasks: Iterable[Any], n_jobs: int
) -> Generator[tuple[int, Any], None, None]:
    """Run tasks in processes; after a worker's death those under way are run one at a time.

    Most workers die because memory is short, and one process needs the least; and a task that
    takes down every worker is known for it.
    """
    waiting = enumerate(tasks)
    under_way: dict[int, Any] = {}
    broken = True
    while broken:
        try:
            with closing(_outcomes(function, waiting, under_way, n_jobs)) as outcomes:
                yield from outcomes
            broken = False
        except BrokenProcessPool:
            pass
        for index, task in list(under_way.items()):
            yield index, _alone(function, index, task)
            del under_way[index]


def _alone(function: Callable[[Any], Any], index: int, task: Any) -> Any:
    """Run a task while no other one is run, again if its worker dies."""
    for _ in range(_MOST_DEATHS):
        try:
            ((_, result),) = _outcomes(function, [(index, task)], {}, 2)
            return result
        except BrokenProcessPool as error:
            last = error
    parts = task if isinstance(task, tuple) else (task,)
    names = [str(part) for part in parts if isinstance(part, (str, int, Path))]
    raise WorkerError(
        f"{', '.join([f'task {index + 1}', *names])}: ended {_MOST_DEATHS} worker processes, "
        "usually because memory is short; use fewer processes, such as n_jobs=1"
    ) from last


def _outcomes(
    function: Callable[[Any], Any],
    numbered: Iterable[tuple[int, Any]],
    under_way: dict[int, Any],
    n_jobs: int,
) -> Generator[tuple[int, Any], None, None]:
    """Run numbered tasks in joblib's processes, which stay for the next run."""

    def calls() -> Iterator[Any]:
        for index, task in numbered:
            under_way[index] = task
            yield joblib.delayed(_call)(function, index, task, os.getpid())

    with joblib.parallel_config("loky", inner_max_num_threads=1):
        pool = joblib.Parallel(
            n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",  # nothing is begun after a consumer has stopped its tasks
            max_nbytes=_SHARED_FROM,
            temp_folder=str(_shared_folder()),
        )
    _check_descriptors(n_jobs)
    try:
        with _deaf_to_ctrl_c():
            outcomes = pool(calls())
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        raise OSError(errno.ENOSPC, "no room for workers", str(_MEMORY)) from error
    try:
        for index, result in outcomes:
            del under_way[index]
            yield index, result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of joblib, about tasks that it ends
            outcomes.close()


@functools.cache
def _check_descriptors(n_jobs: int) -> None:
    """Fail here where descriptors are too few, not in a worker, which would print a traceback."""
    opened: list[int] = []
    try:
        while len(opened) < 16 + 2 * n_jobs:  # joblib 1.6 needs 11 + 2 n_jobs
            opened.append(os.open(os.devnull, os.O_RDWR))
    finally:
        for number in opened:
            os.close(number)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Start workers that do not hear Ctrl-C: this process does, and ends them.

    A signal that is blocked here stays blocked in the processes that are started meanwhile. The
    start of Python's and joblib's resource trackers would end the blocking, so they come before.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    for tracker in (resource_tracker, loky_tracker):
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """Have this worker end soon after its parent has, and leave Ctrl-C to that one."""
    if os.name != "posix" or os.getpid() == parent or _watched.is_set():
        return
    _watched.set()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@functools.cache
def _shared_folder() -> Path:
    """Make this process's folder for arrays that workers share, and remove those of dead ones.

    They hold participants' values: no other user may read them. joblib removes what it wrote when
    this process ends, also by a kill; only if all its helpers were killed too something stays,
    for the next run to remove. A lock says that the process of a folder lives: its number would
    say nothing to a container that shares the memory.
    """
    base = Path(tempfile.gettempdir())
    if setting := os.environ.get("JOBLIB_TEMP_FOLDER"):
        base = Path(setting)
    elif os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2**31:
        base = _MEMORY
    folder = Path(tempfile.mkdtemp(prefix=".idfsmec-", dir=base))
    if os.name == "posix":
        for left in base.glob("idfsmec-shared-*"):
            with suppress(OSError):  # its process lives, or it is of another user
                lock = _lock_folder(left)
                _remove_semaphores(left / "process")
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
        _lock_folder(folder)
        (folder / "process").write_text(str(os.getpid()))
        folder = folder.rename(base / f"idfsmec-shared{folder.name[8:]}")  # locked at its birth
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_semaphores(process: Path) -> None:
    """Remove what joblib's workers of a dead process, whose number is in the file, were led by."""
    with suppress(OSError, ValueError):
        for left in _MEMORY.glob(f"sem.loky-{int(process.read_text())}-*"):
            left.unlink(missing_ok=True)


def _lock_folder(folder: Path) -> int:
    """Lock a folder until this process ends, or fail if another one holds it."""
    import fcntl  # not on Windows

    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number


@contextmanager
def _connected(dask: Any) -> Iterator[Any]:
    """Give a client: the one that is given, or one for the address of a scheduler."""
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            f'a Dask cluster needs the package "distributed" ({error}); install idfsmec[dask]'
        ) from None
    if isinstance(dask, distributed.Client):
        yield dask
        return
    security = distributed.Security()
    if str(dask).startswith("tls://"):
        _check_certificates(dask, security.get_tls_config_for_role("client"))
    # The error says what happened; the client would print how it tried to connect again.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        _greet(dask, security)
        client = distributed.Client(dask, timeout=_GREETING)
    except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        reason = str(error) or f"silent for {_GREETING:.0f} s"
        if isinstance(error, MemoryError):  # another program's first bytes are taken for a length
            reason = "what answers is no scheduler"
        raise InputError(
            f"no Dask scheduler answers at {dask!r} ({reason}); start one with `dask scheduler` "
            "and workers with `dask worker tcp://... --nthreads 1`"
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=10)  # a scheduler that is gone does not answer


def _greet(address: Any, security: Any) -> None:
    """Shake hands with a scheduler, for which a client would wait without end."""
    from distributed.comm.core import connect

    async def greet() -> None:
        options = security.get_connection_args("client")
        await (await connect(address, _GREETING, **options)).close()

    if not str(address).startswith("inproc://"):  # known to its own event loop only
        with ThreadPoolExecutor(1) as pool:  # a notebook has a loop in this thread
            pool.submit(asyncio.run, asyncio.wait_for(greet(), _GREETING)).result()


def _check_certificates(address: str, settings: dict[str, Any]) -> None:
    """Refuse ``tls://`` without certificates, which Dask keeps in its own configuration."""
    for name, key in (("ca_file", "CA_FILE"), ("cert", "CLIENT__CERT"), ("key", "CLIENT__KEY")):
        variable = f"DASK_DISTRIBUTED__COMM__TLS__{key}"
        file = settings[name]
        if not file:
            raise InputError(
                f"{address} needs certificates: set {variable} to a PEM file, or "
                "distributed.comm.tls in Dask's configuration"
            )
        if "\n" not in file and not Path(file).is_file():
            raise InputError(f"{file}: there is no such file; {variable} names it")


def _on_dask(
    function: Callable[[Any], Any], tasks: Iterable[Any], client: Any
) -> Generator[tuple[int, Any], None, None]:
    """Run tasks on a cluster, which runs again what it loses with a worker.

    Not by ``joblib.Parallel``: with joblib 1.6 a task that takes down its workers is waited for
    without end, and a scheduler that dies hands out results that are none.
    """
    import distributed
    from distributed.comm.core import CommClosedError

    waiting = enumerate(tasks)
    shared: list[Any] = []
    under_way: dict[Any, int] = {}
    known = {tuple(computing_versions().items())}
    signs: dict[str, _Sign] = {}
    try:
        _check_workers(client)
        completed = distributed.as_completed(raise_errors=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # large data are meant to be sent, once
            # As a task, so that it is made again should the only worker that holds it die.
            shared.append(client.submit(copy.copy, function, pure=False))
        work = functools.partial(client.submit, _call_on_worker, shared[0], __version__)
        while True:
            room = max(sum(client.nthreads().values()), 1) - len(under_way)
            for index, task in itertools.islice(waiting, max(room, 0)):
                future = work(index, task, pure=False)
                under_way[future] = index
                completed.add(future)
            if not under_way:
                return
            future = _next_future(completed, client, signs)
            if future.status == "lost":  # with its worker, after it was done: it is done again
                completed.add(future)
                continue
            _check_future(future, sorted(index + 1 for index in under_way.values()))
            del under_way[future]
            result, versions = future.result()
            if (of_worker := tuple(versions.items())) not in known:
                known.add(of_worker)
                _LOG.warning("a Dask worker has %s: last digits may differ", versions)
            yield result
    except CommClosedError:
        raise WorkerError(
            "the Dask scheduler is gone. Finished tasks are kept: start scheduler and workers "
            "again and give the same command to continue"
        ) from None
    finally:
        if client.status == "running":
            client.cancel([*under_way, *shared])


def _next_future(completed: Any, client: Any, signs: dict[str, _Sign]) -> Any:
    """Wait for a task to end, as long as there are a scheduler and a worker that answers."""
    from distributed.comm.core import CommClosedError

    looked = time.monotonic()
    while client.status == "running" and not completed.has_ready():
        time.sleep(0.02)
        if time.monotonic() - looked > _LOOK:
            _await_worker(client)
            _watch_workers(client, signs)
            looked = time.monotonic()
    future = next(completed) if completed.has_ready() else None
    if future is None or client.status != "running":  # waiting would never end
        raise CommClosedError
    return future


def _call_on_worker(
    function: Callable[[Any], Any], expected: str, index: int, task: Any
) -> tuple[tuple[int, Any], dict[str, str]]:
    """Do a task, unless this worker, which may have joined late, has another version."""
    if expected != __version__:
        raise ImportError(f"a worker has idfsmec {__version__}")
    return _call(function, index, task), computing_versions()


@dataclass
class _Sign:
    """The last sign of life of a worker."""

    sent: float = 0.0  # by the scheduler's clock
    came: float = 0.0  # by the clock here
    is_told: bool = False  # that none came since


def _watch_workers(client: Any, signs: dict[str, _Sign]) -> None:
    """Say which workers are silent, and end if all have been for too long.

    The scheduler gives up a worker that is stopped, not ended, after five to ten minutes.
    """
    now, workers = time.monotonic(), client.scheduler_info()["workers"]
    for worker, facts in workers.items():
        sign = signs.setdefault(worker, _Sign())
        if facts["last_seen"] != sign.sent:
            signs[worker] = _Sign(facts["last_seen"], now)
        elif now - sign.came > _SILENCE and not sign.is_told:
            sign.is_told = True
            _LOG.warning(
                "the worker %s has not answered for %.0f s; this ends if none answers within "
                "%.0f s", worker, _SILENCE, _PATIENCE,
            )  # fmt: skip
    if workers and all(now - signs[worker].came > _PATIENCE for worker in workers):
        raise _lacks_workers(client, "answered")


def _await_worker(client: Any) -> None:
    """Say that a cluster has no worker, and end after a time that is stated."""
    if client.nthreads() or client.status != "running":
        return
    address = client.scheduler.address if client.scheduler else "the scheduler"
    _LOG.warning(
        "waiting for workers of %s; this ends if none joins within %.0f s", address, _PATIENCE
    )
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise _lacks_workers(client, "joined") from None


def _lacks_workers(client: Any, done: str) -> WorkerError:
    address = client.scheduler.address if client.scheduler else "the scheduler"
    return WorkerError(
        f"no worker has {done} {address} within {_PATIENCE:.0f} s. Finished tasks are kept: start "
        f"workers with `dask worker {address} --nthreads 1` and give the same command to continue"
    )


def _check_workers(client: Any) -> None:
    """Refuse workers that lack this package or have another version; wait for the first one."""
    _await_worker(client)

    async def ask() -> Any:
        return await client.run(pkgutil.resolve_name, "idfsmec._version:__version__")

    try:
        versions = client.sync(ask, callback_timeout=_SILENCE)
    except TimeoutError:  # one is stopped; others may do, and every task looks at its version
        _LOG.warning("not all workers have answered within %.0f s", _SILENCE)
        versions = {}
    except (ImportError, AttributeError) as error:
        raise _cannot_load(error) from None
    for version in set(versions.values()) - {__version__}:
        raise _cannot_load(f"a worker has idfsmec {version}")


def _check_future(future: Any, numbers: list[int]) -> None:
    """Refuse a future that a cluster could not even begin, or lost again and again."""
    error = future.exception() if future.status == "error" else None
    for cause in (error, getattr(error, "__cause__", None)):
        if isinstance(cause, (ImportError, AttributeError)):
            raise _cannot_load(cause) from None
    if future.status == "cancelled" or type(error).__name__ == "KilledWorker":
        raise WorkerError(
            "the Dask cluster lost a task repeatedly, one of the numbers "
            f"{', '.join(map(str, numbers))} ({error or future.status}); give workers more memory"
        )


def _cannot_load(reason: object) -> InputError:
    return InputError(
        f"the Dask cluster cannot load what it is sent ({reason}); install idfsmec {__version__}, "
        "and the modules of your own methods, where scheduler and workers run"
    )
