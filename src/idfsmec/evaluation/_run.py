"""The engine: plan units, do what is not done yet, write each one down, export."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idfsmec._jobs import count_jobs
from idfsmec.errors import InputError
from idfsmec.evaluation import _export
from idfsmec.evaluation._execute import execute
from idfsmec.evaluation._fold_data import TableArrays
from idfsmec.evaluation._progress import make_reporter
from idfsmec.evaluation._units import Unit, plan_units
from idfsmec.evaluation.folds import make_folds
from idfsmec.evaluation.methods import Contestant
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.results import Results
from idfsmec.evaluation.store import Store
from idfsmec.missing import make_gaps
from idfsmec.table import FeatureTable

Tables = FeatureTable | Mapping[str, FeatureTable]


def run_experiment(
    experiment: str,
    tables: Tables,
    out: str | Path,
    contestants: Sequence[Contestant],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: bool = True,
) -> Results:
    """Run an experiment, or what is left of it, and give all results of the folder.

    Parameters
    ----------
    experiment : str
        Name under which the units are kept together.
    tables : FeatureTable or mapping of name to FeatureTable
    out : path
        Folder of the results. If it has results already, only what is missing is computed.
    contestants : sequence of Contestant
    protocol : Protocol
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core, which is also the default.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here.
    progress : bool
        Whether progress goes to standard error.
    """
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    _check_tables(named, protocol)
    regions = "region" in protocol.patterns
    arrays = {name: TableArrays.of(name, table, regions) for name, table in named.items()}
    units = list(plan_units(list(arrays.values()), contestants, protocol, package_version()))
    began = datetime.now(UTC)
    with Store(out) as store:
        store.set_plan(experiment, units)
        try:
            do_units(store, units, arrays, experiment, protocol.metric, n_jobs, dask, progress)
        finally:
            # Also after an error or Ctrl-C: what is done can be looked at.
            run = {"experiment": experiment, "began": began.isoformat(), "command": sys.argv}
            _export.write(store, named, experiment, protocol, run)
    return Results.read(out)


def do_units(
    store: Store,
    units: Sequence[Unit],
    arrays: Mapping[str, TableArrays],
    title: str,
    metric: str,
    n_jobs: int | None,
    dask: Any,
    progress: bool,
) -> None:
    """Do the units that the store does not have, once each, and write them down."""
    done = store.done_keys()
    todo = {unit.key: unit for unit in units if unit.key not in done}
    outcomes = execute(list(todo.values()), arrays, count_jobs(n_jobs), dask)
    with make_reporter(progress, title, len(todo), metric) as reporter:
        for outcome in outcomes:
            store.add(todo[outcome.key], outcome)
            reporter.update(todo[outcome.key], outcome)


def package_version() -> str:
    """Version of the package, which is part of every key."""
    import idfsmec

    return idfsmec.__version__


def _check_tables(tables: Mapping[str, FeatureTable], protocol: Protocol) -> None:
    """Refuse before the first unit what would make all units fail."""
    if not tables:
        raise InputError("there are no tables to evaluate")
    for name, table in tables.items():
        try:
            if table.y.nunique() < 2:
                raise InputError(f"all samples have the label {table.y.iloc[0]!r}")
            make_folds(table.y, table.subjects, protocol.folds, protocol.n_splits)
            if "region" in protocol.patterns:
                make_gaps(table, 0.1, "region", 0)
        except InputError as error:
            raise InputError(f"table {name}: {error}") from None
