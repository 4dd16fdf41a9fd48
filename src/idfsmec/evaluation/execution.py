"""Executors: units one by one here, in processes through joblib, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from idfsmec._jobs import give_back_freed_arrays
from idfsmec._workers import run_in_processes, shared_folder
from idfsmec.evaluation.lanes import do_next, make_lanes, tickets
from idfsmec.evaluation.tables import Arrays
from idfsmec.evaluation.units import Unit, UnitOutcome, run_unit

#: How often a pool may break without finishing a single unit before we give up.
_MOST_BREAKS = 3
#: Bytes of tables from which on workers keep so much of the last folds that they had better go.
_LARGE = 64 * 2**20


class WorkersKilledError(RuntimeError):
    """Processes of ours are killed from outside, again and again."""

    argument = "n_jobs"


def execute(
    units: Sequence[Unit], tables: Arrays, n_jobs: int = 1, dask: Any = None
) -> Iterator[UnitOutcome]:
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


def _in_processes(units: Sequence[Unit], tables: Arrays, n_jobs: int) -> Iterator[UnitOutcome]:
    """Run in processes; tables reach them as memory maps of one file each."""
    left = {unit.key: unit for unit in units}
    large = sum(table.X.nbytes for table in tables.values()) > _LARGE
    breaks = 0
    give_back_freed_arrays()  # of reading and describing the tables
    while left:
        try:
            n_workers = max(2, min(n_jobs, len(left)))  # never here, where nobody looks after it
            for outcome in _once(list(left.values()), tables, n_workers, not large):
                breaks = 0
                del left[outcome.key]
                yield outcome
        except BrokenProcessPool as error:
            # Killed from outside, mostly for want of memory: go on with what is left.
            breaks += 1
            if breaks >= _MOST_BREAKS:
                raise WorkersKilledError(
                    f"worker processes were killed {breaks} times in a row; give fewer, such as "
                    f"n_jobs=1, if memory is short ({error})"
                ) from error


def _once(units: Sequence[Unit], tables: Arrays, n_jobs: int, stay: bool) -> Iterator[UnitOutcome]:
    """Run in processes that keep to their fold; not all units, if one saw only folds all done."""
    with shared_folder() as folder:
        taken = folder / "taken"
        taken.mkdir()
        tasks = [(run_unit, str(taken), lane, tables) for lane in tickets(make_lanes(units))]
        for outcome in run_in_processes(do_next, tasks, n_jobs, share_from="1M", stay=stay):
            if outcome is not None:
                yield outcome


def _on_dask(units: Sequence[Unit], tables: Arrays, dask: Any) -> Iterator[UnitOutcome]:
    from idfsmec.evaluation._cluster import execute_on_cluster

    return execute_on_cluster(units, tables, dask)
