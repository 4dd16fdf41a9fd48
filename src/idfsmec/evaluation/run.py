"""Experiments: plan tasks, do what is not done yet, write each one down, export."""

from __future__ import annotations

import itertools
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._parallel import count_jobs, on_cluster, run_tasks
from idfsmec.errors import InputError, without_folders
from idfsmec.evaluation.clinical import check_prevalence, subject_groups
from idfsmec.evaluation.protocol import Protocol, protocol_from, split_table
from idfsmec.evaluation.results import RANKING, RESAMPLING, Results, picked_setting, write_files
from idfsmec.evaluation.store import Store, StoredTable, TaskResult
from idfsmec.evaluation.tasks import (
    Task,
    compute_whole,
    describe_method,
    make_task,
    plan_folds,
    run_task,
)
from idfsmec.missing import missingness_association, simulate_missing
from idfsmec.prediction.adjuster import correct_table, covariate_names
from idfsmec.prediction.folds import FEWEST_SCORES, most_splits
from idfsmec.prediction.methods import (
    COMPARED,
    IMPUTERS,
    METHODS,
    Classifier,
    Imputer,
    Method,
    find_methods,
    methods_for_scores,
    proposed_method,
    with_parts,
)
from idfsmec.prediction.samples import Samples
from idfsmec.progress import Listener, Steps
from idfsmec.table import FeatureTable
from idfsmec.table.feature_table import table_digest

#: What a user gives: one table, or several by name.
Tables = FeatureTable | Mapping[str, FeatureTable]
#: Numbers of channels for which the cost is measured, where a table has so many.
CHANNEL_COUNTS = (3, 19, 64, 128)
#: Missing rates at which imputers are compared, and the methods that they impute for.
IMPUTATION_RATES = (0.0, 0.1, 0.3, 0.5, 0.7)
IMPUTED_METHODS = ("IDFS-MEC", "ANOVA F", "all features")
# Methods of a fold that a worker computes in a row: they share its imputed samples. A killed run
# loses at most so many tasks of each worker.
_METHODS_AT_ONCE = 5
_PACKAGES = ("idfsmec", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "distributed")


def accuracy(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    methods: Iterable[str | Method] | None = None,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    prevalence: float | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Compare methods at rising shares of missing channels.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        What to compare on.
    out : path or ResultsFolder
        Folder for the results. A folder with results is gone on with: what it holds is not
        computed again, what a change of options touches is.
    methods : iterable of str or Method, optional
        By default all methods that can run here and are not slow, and the sanity lines.
    imputer : str or Imputer, optional
        What imputes missing values for all of them, in place of each one's own; see
        ``IMPUTERS``.
    classifier : str or Classifier, optional
        What is scored on the selected features of all of them, likewise; see ``CLASSIFIERS``.
    protocol : Protocol or mapping, optional
        Folds, missing channels, tuning and so on; a mapping has the options that differ from the
        default.
    prevalence : float, optional
        How frequent the second of two classes is where predictions are to be used, for predictive
        values and the decision curve; by default as in the table. No task depends on it.
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core; by default one, unless
        ``joblib.parallel_config`` says otherwise. Results do not depend on it.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here. The same as
        ``with joblib.parallel_config("dask"):``.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` at the start and after each task.
    overwrite : bool, default=False
        Whether results of another table that had the same name may be replaced.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 4)), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    >>> X["O1__a"] += 3 * y
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(80) // 4))
    >>> protocol = {"rates": [0.0, 0.5], "n_splits": 4, "ks": [1, 2]}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = accuracy(table, out, methods=["IDFS-MEC"], protocol=protocol, n_jobs=1)
    >>> results.mean_scores().round(1)
    rate                        0.0  0.5
    table pattern method
    table random  IDFS-MEC      0.9  0.7
    """
    check_prevalence(prevalence)
    return run_experiment(
        "accuracy",
        tables,
        out,
        with_parts(find_methods(methods), imputer, classifier),
        protocol_from(protocol, Protocol()),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
        overwrite=overwrite,
        also={"prevalence": prevalence},
    )


def imputation(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    methods: Iterable[str | Method] | None = None,
    imputers: Iterable[str | Imputer] | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """Compare imputers: a few methods with every imputer, at 0 to 70 % missing channels.

    Parameters are those of :func:`accuracy`. By default IDFS-MEC, ANOVA F and all features are
    compared with all of ``IMPUTERS``. The column ``imputer`` of the scores says which one it was.
    """
    planned = protocol_from(protocol, Protocol(rates=IMPUTATION_RATES))
    wanted = [IMPUTERS.find(imputer) for imputer in (IMPUTERS if imputers is None else imputers)]
    compared = with_parts(find_methods(methods or IMPUTED_METHODS), None, classifier)
    pairs = [replace(method, imputer=imputer) for method in compared for imputer in wanted]
    return run_experiment("imputation", tables, out, pairs, planned, **options)


def cost(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    methods: Iterable[str | Method] | None = None,
    channel_counts: Sequence[int] | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Measure the seconds of a selection, per method and number of channels.

    One task runs after the other in this process, with one thread, each method with its
    default parameters. Parameters are those of :func:`accuracy`, and ``channel_counts``: by
    default 3, 19, 64 and 128 as far as a table has more, and all its channels. Channels are
    taken evenly over the table; the column ``n_channels`` of the scores says how many.
    """
    named = name_tables(tables)
    fewest = min(_most_splits(table) for table in named.values())
    usual = Protocol(rates=(0.3,), n_splits=max(2, min(5, fewest)), ks=(50,))
    selecting = find_methods(methods, families=[name for name in COMPARED if name != "sanity"])
    return run_experiment(
        "cost",
        named,
        out,
        [replace(method, settings=({},)) for method in selecting],
        protocol_from(protocol, usual).with_changes(tuning="time"),
        n_jobs=1,
        progress=progress,
        overwrite=overwrite,
        plan=partial(plan_folds, counts=channel_counts, usual=CHANNEL_COUNTS),
    )


def resampling(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    n_resamples: int = 100,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Test whether random halves of the subjects give the same features and channels.

    IDFS-MEC, with the setting that tuning picked most often, runs on both halves of
    ``n_resamples / 2`` random splits of the subjects. Nothing is predicted. Where the accuracy of
    the folder was measured with sites harmonized or covariates adjusted for, halves are of a table
    that is corrected likewise.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        As given to :func:`accuracy`.
    out : path
        The folder of its results. What is in it already, for the same table and options, is not
        computed again.
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
    named, n_processes, ranking = name_tables(tables), count_jobs(n_jobs), method_or_ours(None)
    sharing = n_processes if len(named) == 1 else 1  # tables are shared out, or halves of one
    with open_store(out, overwrite) as store:
        with recorded_run(store, RESAMPLING, named, overwrite):
            run = (store.get_meta("protocols") or {}).get("accuracy") or {}
            arrays = table_arrays(named, adjust=run.get("adjust") or ())
            tasks = plan_rankings(store, ranking, arrays, run, n_resamples, seed, sharing)
            here = sharing > 1
            do_tasks(store, RESAMPLING, tasks, arrays, n_processes, progress, keep=True, here=here)
        return Results.of(store)


def method_or_ours(method: str | Method | None) -> Method:
    """Return the method of that name, by default the proposed one."""
    chosen = proposed_method() if method is None else METHODS.find(method)
    if chosen is None:
        raise InputError("no method of the family 'proposed' is registered; name one with method")
    return chosen


def run_experiment(
    experiment: str,
    tables: Tables,
    out: str | Path | ResultsFolder,
    methods: Sequence[Method],
    protocol: Protocol,
    *,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
    plan: Callable[[Samples, Sequence[Method], Protocol], Iterable[Task]] = plan_folds,
    also: Mapping[str, Any] | None = None,
    rank: bool = True,
) -> Results:
    """Run what is left of the tasks that ``plan`` lists for each table; return all results.

    The protocol and what ``also`` holds are kept with them. With ``rank`` the proposed method,
    where it is among ``methods``, then ranks each whole table, with the setting picked most often.
    """
    named = name_tables(tables)
    if _hold_scores(named):
        protocol = protocol.for_scores()
        methods, without = methods_for_scores(methods)
        if not methods:
            raise InputError("none of the methods has a form for scores; name others")
        if without:
            warnings.warn(
                f"{', '.join(without)}: no form for scores, left out", UserWarning, stacklevel=3
            )
    check_tables(named, protocol)
    positions = "region" in protocol.patterns
    arrays = table_arrays(named, positions, protocol.adjust)
    tasks = [task for table in arrays.values() for task in plan(table, methods, protocol)]
    with on_cluster(dask), open_store(out, overwrite) as store:
        n_processes = count_jobs(n_jobs)
        with recorded_run(store, experiment, named, overwrite):
            store.add_meta("protocols", {experiment: {**asdict(protocol), **(also or {})}})
            _keep_methods(store, methods)
            do_tasks(store, experiment, tasks, arrays, n_processes, progress)
            ours = proposed_method(methods)
            if rank and ours is not None and not ours.is_whole and store.part is None:
                tasks = plan_rankings(store, ours, arrays, asdict(protocol))
                do_tasks(store, RANKING, tasks, arrays, n_processes, progress, keep=True)
        return Results.of(store)


def plan_rankings(
    store: Store,
    method: Method,
    arrays: Mapping[str, Samples],
    run: Mapping[str, Any],
    n_resamples: int = 0,
    seed: int = 0,
    n_jobs: int = 1,
) -> list[Task]:
    """Plan a method, with the setting picked most often, on whole tables or halves of subjects.

    Tables are corrected as the protocol of ``run`` says.
    """
    scores, resolved = Results.of(store).scores, method.resolve()
    described = describe_method(method, ranking=True)
    _keep_methods(store, [method])
    tasks = []
    for name, table in arrays.items():
        coordinates: dict[str, Any] = {
            "seed": seed,
            "harmonize": run.get("harmonize") or False,
            "n_resamples": n_resamples,
        }
        if run.get("adjust"):
            coordinates |= {key: run.get(key) for key in ("adjust", "adjust_from")}
        coordinates["setting"] = picked_setting(scores, name, method.name)
        work = partial(compute_whole, method=resolved, n_jobs=n_jobs, **coordinates)
        where = {"seed": seed} if n_resamples else {}
        # Neither the settings that were not picked nor the classifier count.
        tasks.append(
            make_task(
                table, resolved, work, where, kind="whole", described=described, **coordinates
            )
        )
    return tasks


class ResultsFolder(AbstractContextManager["ResultsFolder"]):
    """A folder of results that several experiments may share.

    Its store is opened when the first of them asks for it, and closed in the end; then its files
    are written, also after Ctrl-C.

    With ``part``, such as (3, 16), it is the folder of one of so many parts of the tasks of folds,
    inside the folder that is given; the folder itself takes over what parts have finished.
    """

    def __init__(
        self, path: str | Path, overwrite: bool = False, part: tuple[int, int] | None = None
    ) -> None:
        self.path, self.overwrite, self.part = Path(path), overwrite, part
        if part is not None:
            self.path /= "part-{}-of-{}".format(*part)
        self._stack = ExitStack()

    @cached_property
    def store(self) -> Store:
        """The open store."""
        store = self._stack.enter_context(Store(self.path, overwrite=self.overwrite))
        store.part = self.part
        for folder in sorted(self.path.glob("part-*-of-*")):
            store.add_done(folder)
        if self.part is None:
            self._stack.callback(self._write_files)
        return store

    def _write_files(self) -> None:
        self.store.check_in_place()
        write_files(Results.of(self.store))

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


@contextmanager
def open_store(out: str | Path | ResultsFolder, overwrite: bool = False) -> Iterator[Store]:
    """Open the store of a folder, or take that of a folder that is open already."""
    if isinstance(out, ResultsFolder):
        yield out.store
        return
    with ResultsFolder(out, overwrite) as folder:
        yield folder.store


@contextmanager
def recorded_run(
    store: Store, experiment: str, tables: Mapping[str, FeatureTable], overwrite: bool
) -> Iterator[None]:
    """Write down the tables of a run, and when and where it was."""
    began = datetime.now(UTC)
    known = store.tables()
    described = [stored_table(name, table, known.get(name)) for name, table in tables.items()]
    store.add_tables(described, overwrite=overwrite)
    store.set_meta("environment", _environment())
    verdicts = {name: table.info.get("audit_verdict") or {} for name, table in tables.items()}
    store.add_meta("verdicts", verdicts)
    try:
        yield
    finally:
        run = {
            "experiment": experiment,
            "began": began.isoformat(),
            "ended": datetime.now(UTC).isoformat(),
            "command": [without_folders(argument) for argument in sys.argv],
        }
        store.set_meta("runs", [*(store.get_meta("runs") or []), run])


def do_tasks(
    store: Store,
    experiment: str,
    tasks: Sequence[Task],
    arrays: Mapping[str, Samples],
    n_jobs: int,
    progress: Listener | None,
    *,
    keep: bool = False,
    here: bool = False,
) -> None:
    """Do the tasks that the store does not have; with ``keep`` those of other tables stay.

    With ``here`` they are done in this process, one after the other, and share out what they do.
    """
    if store.part is not None:  # by what is planned, not by what is done
        number, n_parts = store.part
        shared = _batches(_in_order(tasks), _METHODS_AT_ONCE)[number - 1 :: n_parts]
        tasks = [task for batch in shared for task in batch]
    store.set_plan(experiment, tasks, keep=keep)
    done = store.done_keys()
    todo = {task.key: task for task in tasks if task.key not in done}
    for task, result in compute_tasks(
        experiment, todo.values(), arrays, n_jobs, progress, here=here
    ):
        store.add(task, result)


def compute_tasks(
    experiment: str,
    tasks: Iterable[Task],
    arrays: Mapping[str, Samples],
    n_jobs: int,
    progress: Listener | None,
    *,
    here: bool = False,
) -> Iterator[tuple[Task, TaskResult]]:
    """Do tasks, those of a fold together."""
    todo = _in_order(tasks)
    if not todo:
        return
    steps = Steps(experiment, len(todo), progress)
    batches = _batches(todo, 1 if here or n_jobs == 1 else _METHODS_AT_ONCE)
    compute = partial(_run_batch, tables=arrays)
    shared = (
        enumerate(map(compute, batches)) if here else run_tasks(compute, batches, n_jobs=n_jobs)
    )
    for position, results in shared:
        for task, result in zip(batches[position], results, strict=True):
            yield task, result
            steps.done(item=(task, result))  # after the caller has kept it


def _in_order(tasks: Iterable[Task]) -> list[Task]:
    """One missing rate after the other, and at each of them slow methods last."""
    return sorted(tasks, key=lambda task: (task.coordinates.get("rate", 0.0), task.method.slow))


def _run_batch(batch: Sequence[Task], tables: Mapping[str, Samples]) -> list[TaskResult]:
    return [run_task(task, tables) for task in batch]


def _batches(tasks: Iterable[Task], most: int) -> list[list[Task]]:
    """Put neighbouring tasks on the same fold together, slow methods alone."""

    def fold_of(task: Task) -> Any:
        if "fold" not in task.coordinates or task.method.slow:
            return task.key
        by_method = {"method", "imputer"}
        return [value for name, value in task.coordinates.items() if name not in by_method]

    batches = []
    for _, same in itertools.groupby(tasks, key=fold_of):
        fold = list(same)
        batches += [fold[first : first + most] for first in range(0, len(fold), most)]
    return batches


def _keep_methods(store: Store, methods: Sequence[Method]) -> None:
    """Keep what the methods are called, for reports where they are not registered."""
    names = {
        method.name: {
            "family": method.family,
            "label": method.label,
            "classifier": "its own" if method.is_whole else method.classifying.name,
        }
        for method in methods
    }
    store.add_meta("methods", names)


def _environment() -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    machine = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }
    return {"versions": versions, "machine": machine}


# The tables of a run: named, identified by a digest, described for readers.


def name_tables(tables: Tables) -> dict[str, FeatureTable]:
    """Return tables by name; a single one is called ``table``."""
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    if not named:
        raise InputError("there are no tables to evaluate")
    return named


def table_arrays(
    tables: Mapping[str, FeatureTable], positions: bool = False, adjust: Sequence[str] = ()
) -> dict[str, Samples]:
    """Take tables apart; positions and covariates are looked up only where they are needed."""
    known = covariate_names(adjust)
    return {
        name: Samples.of(name, table, positions, table_digest(table), known)
        for name, table in tables.items()
    }


def _hold_scores(tables: Mapping[str, FeatureTable]) -> bool:
    """Whether tables hold scores (or grades); refuse some that do beside others with classes."""
    kinds = {table.target.is_numeric for table in tables.values()}
    if len(kinds) > 1:
        raise InputError(
            "some tables hold scores or grades, others classes: evaluate them apart",
            argument="target",
        )
    return kinds.pop()


def _most_splits(table: FeatureTable) -> int:
    return most_splits(table.targets, table.subjects, numeric=table.target.is_numeric)


def check_tables(tables: Mapping[str, FeatureTable], protocol: Protocol) -> None:
    """Refuse before the first task what would make all tasks fail."""
    for name, table in tables.items():
        try:
            if table.y.nunique() < 2:
                raise InputError(f"all samples have the label {table.y.iloc[0]!r}")
            _check_training(table, protocol)
            if corrections := protocol.corrections(table.y.unique()):
                correct_table(table, corrections)  # for what it refuses and warns of
            if "region" in protocol.patterns:
                simulate_missing(table, 0.1, "region", 0)
        except InputError as error:
            raise InputError(f"table {name}: {error}", argument=error.argument) from None


def _check_training(table: FeatureTable, protocol: Protocol) -> None:
    """Refuse folds that leave too little of a class to tune on."""
    y, subjects, numeric = table.targets, table.subjects.to_numpy(), table.target.is_numeric
    units = np.arange(y.size) if protocol.folds == "sample" else subjects
    for training, _ in split_table(table, protocol):
        most = most_splits(y[training], units[training], numeric=numeric)
        if protocol.tuning == "nested" and most < 2:
            unit = "sample" if protocol.folds == "sample" else "participant"
            if numeric:
                raise InputError(
                    f"a fold leaves fewer than {2 * FEWEST_SCORES} {unit}s to train on: give more "
                    f"folds, or add {unit}s",
                    argument="n_splits",
                )
            raise InputError(
                f"a fold leaves one {unit} of a class to train on, and tuning needs at least 2: "
                f"give more folds, add {unit}s, or leave that class out",
                argument="n_splits",
            )


def stored_table(name: str, table: FeatureTable, known: StoredTable | None) -> StoredTable:
    """Describe a table for the store, unless the store has it."""
    digest = table_digest(table)
    if known is not None and known.digest == digest and "groups" in known.facts:
        return known
    columns = tuple(map(str, table.X.columns))
    return StoredTable(name, digest, columns, describe_table(table))


def describe_score(table: FeatureTable) -> dict[str, Any]:
    """Describe the score of a table: its name, spread among participants, and who has none."""
    target, scores = table.target, table.scores.groupby(level=0).mean()
    limits = {"low": float(scores.min()), "high": float(scores.max())}
    spread = {"mean": float(scores.mean()), "sd": float(scores.std()), **limits}
    ages: list[float | None] = []
    if table.rows is not None and "age" in table.rows:
        known = pd.to_numeric(table.rows["age"], errors="coerce").to_numpy(dtype=float)
        first = np.unique(table.subjects.to_numpy().astype(str), return_index=True)[1]
        ages = [float(age) if np.isfinite(age) else None for age in known[first]]
    return {
        "kind": target.kind,
        "name": target.name,
        "order": list(target.order),
        "n_without": target.n_without,
        **spread,
        "ages": ages,  # of subjects, in order of their names
    }


def describe_table(table: FeatureTable) -> dict[str, Any]:
    """Describe a table by what JSON can hold; sites are in the order of folds by site."""
    missing = 1.0 - table.observed.groupby(table.subjects.to_numpy()).mean()
    numeric = table.target.is_numeric
    labels = (table.y.iloc[:0] if numeric else table.y).value_counts().sort_index()
    described = {
        "channels": table.channels,
        "features": table.features,
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "n_classes": int(labels.size),
        "labels": {str(label): int(count) for label, count in labels.items()},
        "share_missing": float(1.0 - table.observed.to_numpy().mean()),
        "montage": table.info.get("montage"),
        "missing_by_class": missingness_association(table).to_dict("records"),
        "missing_by_recording": {
            "subjects": [str(subject) for subject in missing.index],
            "channels": [str(channel) for channel in missing.columns],
            "share": missing.to_numpy().round(6).tolist(),
        },
        "groups": subject_groups(table),
    }
    if numeric:
        described["target"] = describe_score(table)
    if table.sites is not None:
        described["sites"] = sites = []
        for name, subjects in table.subjects.groupby(table.sites.astype(str), sort=True):
            counts = subjects.groupby(table.y[subjects.index]).nunique()
            present = {} if numeric else {str(name): int(n) for name, n in counts.items()}
            n_subjects = int(subjects.nunique())
            sites.append({"site": str(name), "n_subjects": n_subjects, "labels": present})
    return described
