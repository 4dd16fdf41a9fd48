"""The engine: plan units, do what is not done yet, write each one down, export."""

from __future__ import annotations

import itertools
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from idfsmec._jobs import count_jobs
from idfsmec.errors import InputError
from idfsmec.evaluation.execution import execute
from idfsmec.evaluation.export import write_files
from idfsmec.evaluation.folds import make_folds
from idfsmec.evaluation.forecast import Plan, Stopwatch, guess_seconds, in_order
from idfsmec.evaluation.harmonizing import check_sites, was_harmonized
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.methods import METHODS, proposed_method
from idfsmec.evaluation.parts import Filler
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.results import (
    RANKING_EXPERIMENT,
    RESAMPLING_EXPERIMENT,
    Results,
    picked_setting,
)
from idfsmec.evaluation.store import Store, StoredTable
from idfsmec.evaluation.tables import (
    TableArrays,
    Tables,
    describe_table,
    has_site_chance,
    name_tables,
    table_chance,
    table_digest,
)
from idfsmec.evaluation.units import Unit, plan_folds, plan_ranking
from idfsmec.missing import simulate_missing
from idfsmec.progress import Listener, Progress
from idfsmec.table import FeatureTable

# Values in all halves of a table from which on ranking them takes longer than starting processes.
_WORTH_PROCESSES = 2e7
_PACKAGES = ("idfsmec", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "distributed")


def run_experiment(
    experiment: str,
    tables: Tables,
    out: str | Path,
    methods: Sequence[Method],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
    channel_counts: Mapping[str, Sequence[int]] | None = None,
) -> Results:
    """Run an experiment, or what is left of it, and give all results of the folder.

    Parameters
    ----------
    experiment : str
        Name under which the units are kept together.
    tables : FeatureTable or mapping of name to FeatureTable
    out : path
        Folder of the results. If it has results already, only what is missing is computed.
    methods : sequence of Method
    protocol : Protocol
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core, which is also the default.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` at the start and after each unit, whose
        ``item`` is then the unit and its outcome.
    overwrite : bool
        Whether results of another table of the same name may be replaced.
    channel_counts : mapping of table name to numbers, optional
        With how many channels each table is used; by default with all.
    """
    named = name_tables(tables)
    n_processes = count_jobs(n_jobs)
    _check_tables(named, protocol)
    placed = [one.filling for one in methods if one.filling.needs_positions]
    placing = bool(placed) or "region" in protocol.patterns
    arrays = {name: TableArrays.of(name, table, placing) for name, table in named.items()}
    for one, table in itertools.product(placed, arrays.values()):
        _check_positions(one, table)
    units = list(plan_folds(list(arrays.values()), methods, protocol, channel_counts))
    with opened(out, experiment, named, overwrite) as store:
        store.add_meta("protocols", {experiment: asdict(protocol)})
        _keep_methods(store, methods)
        store.set_plan(experiment, units)
        do_units(store, experiment, units, arrays, n_processes, dask, progress)
        here = n_processes if dask is None else 1
        _rank_tables(store, methods, arrays, protocol.harmonize, here, progress)
    return Results.read(out)


def resampling(
    tables: Tables,
    out: str | Path,
    *,
    method: str | Method | None = None,
    n_resamples: int = 100,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Ask random halves of the subjects whether they find the same features and channels.

    A method, with the setting that tuning picked most often, runs on both halves of
    ``n_resamples / 2`` random splits of the subjects. Nothing is predicted. Where the accuracy of
    the folder was measured with sites harmonized, halves are of the harmonized table.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        As given to :func:`accuracy`.
    out : path
        The folder of its results. What is in it already, for the same table and options, is not
        computed again.
    method : str or Method, optional
        By default the proposed one, IDFS-MEC.
    n_resamples : int, default=100
        Number of halves, even.
    seed : int, default=0
        Decides the halves.
    n_jobs, progress, overwrite
        As in :func:`accuracy`.

    Returns
    -------
    Results
        ``resampling`` has a dict per table: ``frequency`` and ``channel_frequency`` (by name, the
        share of halves that picked it), ``chance`` and ``channel_chance`` (what picking blindly
        would give), ``threshold``, ``stability`` and more; or a ``reason`` alone, where halves
        cannot be made.

    See Also
    --------
    idfsmec.StabilitySelector : The same for any selector, without a folder.
    """
    if n_resamples < 2 or n_resamples % 2:
        raise InputError(
            f"n_resamples={n_resamples}: give an even number of halves from 2, such as 100",
            argument="n_resamples",
        )
    named, n_processes = name_tables(tables), count_jobs(n_jobs)
    ranking = proposed_method() if method is None else METHODS.find(method)
    if ranking is None:
        raise InputError("no method of the family 'proposed' is registered; name one with method")
    placing = ranking.filling.needs_positions
    arrays = {name: TableArrays.of(name, table, placing) for name, table in named.items()}
    # Processes share the tables, or the halves of a single large one.
    size = sum(table.X.size for table in arrays.values()) * n_resamples
    sharing = n_processes if len(arrays) == 1 and size > _WORTH_PROCESSES else 1
    with opened(out, RESAMPLING_EXPERIMENT, named, overwrite) as store:
        scores = Results.of(store).scores
        _keep_methods(store, [ranking])
        units = [
            plan_ranking(
                table,
                ranking,
                picked_setting(scores, name, ranking.name),
                was_harmonized(store.get_meta("protocols") or {}),
                sharing,
                n_resamples=n_resamples,
                seed=seed,
            )
            for name, table in arrays.items()
        ]
        store.set_plan(RESAMPLING_EXPERIMENT, units, keep=True)
        do_units(store, RESAMPLING_EXPERIMENT, units, arrays, n_processes, None, progress)
    return Results.read(out)


@contextmanager
def opened(
    out: str | Path, experiment: str, tables: Mapping[str, FeatureTable], overwrite: bool
) -> Iterator[Store]:
    """Open a store for a run; what is done is exported in the end, also after Ctrl-C."""
    began = datetime.now(UTC)
    with Store(out) as store:
        known = store.tables()
        store.add_tables(
            [_stored(name, table, known.get(name)) for name, table in tables.items()],
            overwrite=overwrite,
        )
        store.set_meta("environment", _environment())
        try:
            yield store
        finally:
            run = {
                "experiment": experiment,
                "began": began.isoformat(),
                "ended": datetime.now(UTC).isoformat(),
                "command": sys.argv,
            }
            store.set_meta("runs", [*(store.get_meta("runs") or []), run])
            write_files(Results.of(store))


def do_units(
    store: Store,
    experiment: str,
    units: Sequence[Unit],
    arrays: Mapping[str, TableArrays],
    n_jobs: int,
    dask: Any,
    progress: Listener | None,
) -> None:
    """Do the units that the store does not have, once each, and write them down."""
    done = store.done_keys()
    todo = {unit.key: unit for unit in units if unit.key not in done}
    if not todo:
        return
    paces = (store.get_meta("paces") or {}).get(experiment, {})
    guesses = guess_seconds(todo.values(), arrays, None if progress is not None else 1.0)
    ordered = in_order(todo.values(), paces, guesses)
    watch = Stopwatch(Plan.of(ordered, n_jobs if dask is None else 0, paces, guesses))
    if progress is not None:
        progress(Progress(experiment, 0, len(todo), plan=watch.plan))
    try:
        for n_done, outcome in enumerate(execute(ordered, arrays, n_jobs, dask), 1):
            unit = todo[outcome.key]
            store.add(unit, outcome)
            watch.add(unit, outcome)
            if progress is not None:
                progress(Progress(experiment, n_done, len(todo), (unit, outcome), watch.plan))
    finally:
        store.add_meta("paces", {experiment: watch.paces(paces)})


def _rank_tables(
    store: Store,
    methods: Sequence[Method],
    arrays: Mapping[str, TableArrays],
    harmonize: bool,
    n_jobs: int,
    progress: Listener | None,
) -> None:
    """Rank every whole table by the proposed method, with the setting picked most often.

    Here, also where a cluster has done the folds: sending the tables again takes longer.
    """
    method = proposed_method(methods)
    if method is None:
        return
    scores = Results.of(store).scores
    _keep_methods(store, [method])
    units = [
        plan_ranking(table, method, picked_setting(scores, name, method.name), harmonize)
        for name, table in arrays.items()
    ]
    store.set_plan(RANKING_EXPERIMENT, units, keep=True)
    do_units(store, RANKING_EXPERIMENT, units, arrays, n_jobs, None, progress)


def _check_positions(filler: Filler, table: TableArrays) -> None:
    if not table.has_positions:
        raise InputError(
            f"table {table.name}: the filler {filler.name!r} needs to know where channels are on "
            f"the head, and none of {', '.join(table.channels[:3])} ... is known; name a montage "
            "in the table, or choose another filler",
            argument="filler",
        )


def _keep_methods(store: Store, methods: Sequence[Method]) -> None:
    store.add_meta(
        "methods",
        {
            one.name: {
                "family": one.family,
                "label": one.label,
                "classifier": one.classifying.name,
            }
            for one in methods
        },
    )


def _stored(name: str, table: FeatureTable, known: StoredTable | None) -> StoredTable:
    """Describe a table, unless the store has it."""
    digest = table_digest(table)
    if known is not None and known.digest == digest and has_site_chance(table, known.chance):
        return known
    return StoredTable(
        name,
        digest,
        tuple(map(str, table.X.columns)),
        describe_table(table),
        table_chance(table),
    )


def _environment() -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": [
                {key: pool.get(key) for key in ("user_api", "internal_api", "version")}
                for pool in threadpool_info()
            ],
        },
    }


def _check_tables(tables: Mapping[str, FeatureTable], protocol: Protocol) -> None:
    """Refuse before the first unit what would make all units fail."""
    for name, table in tables.items():
        try:
            if table.y.nunique() < 2:
                raise InputError(f"all samples have the label {table.y.iloc[0]!r}")
            how = protocol.folds, protocol.n_splits
            make_folds(table.y, table.subjects, *how, sites=table.sites)
            if protocol.harmonize:
                check_sites(table)
            if "region" in protocol.patterns:
                simulate_missing(table, 0.1, "region", 0)
        except InputError as error:
            raise InputError(f"table {name}: {error}", argument=error.argument) from None
