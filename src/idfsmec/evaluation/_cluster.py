"""Units on a Dask cluster: tables are handed to each worker once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import joblib

from idfsmec._cluster import (
    CANCELLED,
    GONE,
    MOST_LOSSES,
    ClusterRun,
    Lost,
    cannot_load,
    connected,
    distributed,
)
from idfsmec._version import __version__
from idfsmec.evaluation.tables import Arrays
from idfsmec.evaluation.units import Unit, UnitOutcome, run_unit


def execute_on_cluster(units: Sequence[Unit], tables: Arrays, dask: Any) -> Iterator[UnitOutcome]:
    """Run on a cluster, given by the address of its scheduler or by a client."""
    with connected(dask) as client:
        for (unit,), outcome in _UnitRun(client, tables).outcomes((unit,) for unit in units):
            if isinstance(outcome, Lost):
                outcome = UnitOutcome(unit.key, error=outcome.reason)
            yield outcome


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


class _UnitRun(ClusterRun):
    """Units on their way through a cluster that may lose workers."""

    def __init__(self, client: Any, tables: Arrays) -> None:
        # By content, so that no run is given what another one calls by the same name.
        self._held = f"idfsmec-{__version__}-{joblib.hash(dict(tables))}"
        self._tables = tables
        super().__init__(client, partial(_run_held, held=self._held))

    def begin(self) -> None:
        """Give all tables to all workers, unless they hold them."""
        for _ in range(MOST_LOSSES):
            try:
                self._client.register_plugin(HeldTables(self._tables), name=self._held)
                return
            except GONE:
                self.check_scheduler()
                self.end()  # a worker died meanwhile; who else holds them is not known
            except Exception as error:  # Dask hands on what workers raise without its class
                raise cannot_load(error) from None
        raise RuntimeError(
            f"workers of the Dask cluster died {MOST_LOSSES} times in a row while they were "
            "handed the tables; give them more memory"
        )

    prepare_again = begin

    def end(self) -> None:
        """Free the workers' memory.

        Nothing that goes wrong here may hide how the run ended: another run has removed the
        tables, a worker never got them, the cluster is just dying.
        """
        with contextlib.suppress(Exception, *CANCELLED):
            self._client.unregister_worker_plugin(self._held)
