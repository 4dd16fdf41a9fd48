"""Units on a Dask cluster: tables handed to each worker once, lost units sent again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import distributed
import joblib

from idfsmec import __version__
from idfsmec.errors import InputError
from idfsmec.evaluation.tables import Arrays
from idfsmec.evaluation.units import Unit, UnitOutcome, run_unit

#: How often a unit is sent to a cluster again after the cluster lost it.
_MOST_LOSSES = 3
#: Seconds between two looks at what a cluster has finished, and whether it is still there.
_POLL = 0.05
#: Seconds that saying goodbye to a cluster may take; one that is gone does not answer.
_CLOSE = 10
#: A future lost with its scheduler says so in either of two ways, depending on the moment.
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
#: What a call to a cluster raises when the other end has just died.
_GONE = (OSError, TimeoutError, *_CANCELLED)


def execute_on_cluster(units: Sequence[Unit], tables: Arrays, dask: Any) -> Iterator[UnitOutcome]:
    """Run on a cluster, given by the address of its scheduler or by a client."""
    client, ours = _connect(dask)
    try:
        yield from _ClusterRun(client, units, tables).outcomes()
    finally:
        if ours:
            client.close(timeout=_CLOSE)


def _connect(dask: Any) -> tuple[Any, bool]:
    if isinstance(dask, distributed.Client):
        return dask, False
    if str(dask).startswith("tls://"):
        _check_certificates(dask)
    try:
        return distributed.Client(dask, timeout="15s"), True
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {dask!r} ({error}); start one with `dask scheduler` "
            "and workers with `dask worker tcp://... --nthreads 1`"
        ) from None


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


class HeldTables(distributed.WorkerPlugin):
    """The tables of a run, held by each worker, and by each that joins, until the run ends.

    Scattered data would not do: Dask's memory manager drops the copies that no unit waits for
    at the moment and fetches them again for the next one.
    """

    #: The workers still hold the tables of a run that was killed: they are not sent again.
    idempotent = True

    def __init__(self, tables: Arrays) -> None:
        self.tables = dict(tables)


def _run_held(unit: Unit, held: str) -> UnitOutcome | None:
    """Do a unit, on a worker, with the table it holds; None if it holds that no more.

    The run has been stopped then, or another run on the same tables has ended and removed them.
    """
    plugin = distributed.get_worker().plugins.get(held)
    return run_unit(unit, plugin.tables[unit.table]) if isinstance(plugin, HeldTables) else None


class _ClusterRun:
    """Units on their way through a cluster that may lose workers."""

    def __init__(self, client: Any, units: Sequence[Unit], tables: Arrays) -> None:
        self._client = client
        self._tables = tables
        # By content, so that no run is given what another one calls by the same name.
        self._held = f"idfsmec-{__version__}-{joblib.hash(dict(tables))}"
        self._waiting = units
        self._units: dict[Any, Unit] = {}
        self._losses: Counter[str] = Counter()
        self._completed = distributed.as_completed(raise_errors=False)

    def outcomes(self) -> Iterator[UnitOutcome]:
        """Give outcomes as they come; what the cluster lost is sent again."""
        try:
            self._hand_out()
            for unit in self._waiting:
                self._submit(unit)
            while self._units:
                if not self._completed.has_ready():
                    self._check_scheduler()
                    time.sleep(_POLL)
                    continue
                future = next(self._completed)
                unit = self._units.pop(future)
                outcome = self._fetch(future)
                if outcome is not None:
                    yield outcome
                elif self._losses[unit.key] < _MOST_LOSSES:
                    self._check_scheduler()
                    _check_loaded(future)
                    self._losses[unit.key] += 1
                    if future.status == "finished":  # and yet no outcome: no table was there
                        self._hand_out()
                    self._submit(unit)
                else:
                    yield UnitOutcome(unit.key, error=_reason(future))
        finally:
            if self._client.status == "running":
                self._client.cancel(list(self._units))
                self._take_back()

    def _hand_out(self) -> None:
        """Give all tables to all workers, unless they hold them."""
        for _ in range(_MOST_LOSSES):
            try:
                self._client.register_plugin(HeldTables(self._tables), name=self._held)
                return
            except _GONE:
                self._check_scheduler()
                self._take_back()  # a worker died meanwhile; who else holds them is not known
            except Exception as error:  # Dask hands on what workers raise without its class
                raise _cannot_load(error) from None
        raise RuntimeError(
            f"workers of the Dask cluster died {_MOST_LOSSES} times in a row while they were "
            "handed the tables; give them more memory"
        )

    def _take_back(self) -> None:
        """Free the workers' memory.

        Nothing that goes wrong here may hide how the run ended: another run has removed the
        tables, a worker never got them, the cluster is just dying.
        """
        with contextlib.suppress(Exception, *_CANCELLED):
            self._client.unregister_worker_plugin(self._held)

    def _fetch(self, future: Any) -> UnitOutcome | None:
        """Get what a worker has found; None if it had no table, or it or the scheduler died."""
        if future.status != "finished":
            return None
        try:
            return future.result()
        except _GONE:
            return None

    def _check_scheduler(self) -> None:
        """Stop as soon as the scheduler is gone: waiting for its units would never end."""
        if self._client.status != "running":
            raise RuntimeError(
                "the Dask scheduler is gone. What is finished is kept: start scheduler and "
                "workers again and give the same command to go on"
            )

    def _submit(self, unit: Unit) -> None:
        future = self._client.submit(_run_held, unit, self._held, pure=False)
        self._units[future] = unit
        self._completed.add(future)


def _check_loaded(future: Any) -> None:
    """Stop if scheduler or worker could not load a unit: they will not load the others either."""
    error = future.exception() if future.status == "error" else None
    for one in (error, getattr(error, "__cause__", None)):
        if isinstance(one, (ImportError, AttributeError)):
            raise _cannot_load(one)


def _cannot_load(error: BaseException) -> InputError:
    return InputError(
        f"the Dask cluster cannot load what it is sent ({error}); install idfsmec {__version__}, "
        "and the modules of your own methods, where scheduler and workers run"
    )


def _reason(future: Any) -> str:
    if future.status == "error":
        return "".join(traceback.format_exception(future.exception()))
    return f"the cluster lost this unit or its table again and again ({future.status})"
