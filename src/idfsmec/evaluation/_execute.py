"""Executors: units one by one here, in processes through joblib, or on a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import joblib

from idfsmec.errors import InputError
from idfsmec.evaluation._fold_data import TableArrays
from idfsmec.evaluation._units import Outcome, Unit, run_unit

#: How often a pool may break without finishing a single unit before we give up.
_MOST_BREAKS = 3
#: How often a unit is sent to a cluster again after the cluster lost it.
_MOST_LOSSES = 3
#: Seconds between two looks at what a cluster has finished, and whether it is still there.
_POLL = 0.05
#: Seconds that saying goodbye to a cluster may take; one that is gone does not answer.
_CLOSE = 10
#: A future lost with its scheduler says so in either of two ways, depending on the moment.
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

Tables = Mapping[str, TableArrays]


def execute(
    units: Sequence[Unit], tables: Tables, n_jobs: int = 1, dask: Any = None
) -> Iterator[Outcome]:
    """Do all units, in any order, and give each outcome as soon as it is there.

    Parameters
    ----------
    units : sequence of Unit
    tables : mapping
        Arrays by table name.
    n_jobs : int
        Processes on this machine.
    dask : str or distributed.Client, optional
        Address of a Dask scheduler (``tcp://...``) or a client; ``n_jobs`` is not used then.
    """
    if not units:
        return iter(())
    if dask is not None:
        return _on_dask(units, tables, dask)
    if min(n_jobs, len(units)) > 1:
        return _in_processes(units, tables, n_jobs)
    return (run_unit(unit, tables[unit.table]) for unit in units)


def _in_processes(units: Sequence[Unit], tables: Tables, n_jobs: int) -> Iterator[Outcome]:
    """Run on joblib's processes; tables reach them as memory maps of one file each."""
    left = {unit.key: unit for unit in units}
    breaks = 0
    while left:
        pool = joblib.Parallel(
            n_jobs=min(n_jobs, len(left)),
            backend="loky",
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs",
            max_nbytes="64K",
        )
        outcomes = pool(
            joblib.delayed(run_unit)(unit, tables[unit.table]) for unit in list(left.values())
        )
        try:
            for outcome in outcomes:
                breaks = 0
                del left[outcome.key]
                yield outcome
        except BrokenProcessPool as error:
            # Killed from outside, mostly for want of memory: go on with what is left.
            breaks += 1
            if breaks >= _MOST_BREAKS:
                raise RuntimeError(
                    f"worker processes were killed {breaks} times in a row; give fewer with "
                    f"--jobs if memory is short ({error})"
                ) from error
        finally:
            outcomes.close()


def _on_dask(units: Sequence[Unit], tables: Tables, dask: Any) -> Iterator[Outcome]:
    """Run on a cluster; we send each table to each worker once, not with every unit."""
    client, ours = _connect(dask)
    try:
        yield from _DaskRun(client, units, tables).outcomes()
    finally:
        if ours:
            client.close(timeout=_CLOSE)


def _connect(dask: Any) -> tuple[Any, bool]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            'a Dask cluster needs the package "distributed"; install idfsmec[dask]'
        ) from None
    if isinstance(dask, Client):
        return dask, False
    try:
        return Client(dask, timeout="15s"), True
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {dask!r} ({error}); start one with `dask scheduler` "
            "and workers with `dask worker tcp://... --nthreads 1`"
        ) from None


class _DaskRun:
    """Units on their way through a cluster that may lose workers, and data with them."""

    def __init__(self, client: Any, units: Sequence[Unit], tables: Tables) -> None:
        from distributed import as_completed

        self._client = client
        self._arrays = tables
        self._sent: dict[str, Any] = {}
        self._units: dict[Any, Unit] = {}
        self._losses: dict[str, int] = {}
        self._completed = as_completed(raise_errors=False)
        for unit in units:
            self._submit(unit)

    def outcomes(self) -> Iterator[Outcome]:
        """Give outcomes as they come; what the cluster lost is sent again."""
        try:
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
                elif self._losses.get(unit.key, 0) < _MOST_LOSSES:
                    self._check_scheduler()
                    self._losses[unit.key] = self._losses.get(unit.key, 0) + 1
                    self._forget(unit.table)
                    self._submit(unit)
                else:
                    yield Outcome(unit.key, error=_reason(future))
        finally:
            if self._client.status == "running":
                self._client.cancel(list(self._units))

    def _fetch(self, future: Any) -> Outcome | None:
        """Get what a worker has found; None if it died with the worker or with the scheduler."""
        if future.status != "finished":
            return None
        try:
            return future.result()
        except (OSError, TimeoutError, *_CANCELLED):
            return None

    def _check_scheduler(self) -> None:
        """Stop as soon as the scheduler is gone: waiting for its units would never end."""
        if self._client.status != "running":
            raise RuntimeError(
                "the Dask scheduler is gone. What is finished is kept: start scheduler and "
                "workers again and give the same command to go on"
            )

    def _submit(self, unit: Unit) -> None:
        if unit.table not in self._sent:
            self._sent[unit.table] = self._client.scatter(
                self._arrays[unit.table], broadcast=True, hash=False
            )
        future = self._client.submit(run_unit, unit, self._sent[unit.table], pure=False)
        self._units[future] = unit
        self._completed.add(future)

    def _forget(self, table: str) -> None:
        """Drop a table whose copies died with their workers; the next unit sends it again."""
        sent = self._sent.get(table)
        if sent is not None and sent.status in ("cancelled", "lost", "error"):
            del self._sent[table]


def _reason(future: Any) -> str:
    if future.status == "cancelled":
        return "the cluster lost this unit again and again (cancelled)"
    error = future.exception()
    return "".join(traceback.format_exception(error))
