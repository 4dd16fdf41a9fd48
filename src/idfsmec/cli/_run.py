"""How commands run experiments and sum them up: seeds, folders, Ctrl-C, means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli._console import error_console, plain
from idfsmec.cli._options import check_seed
from idfsmec.cli._progress import shown
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from rich.console import RenderableType

    from idfsmec.evaluation import Results
    from idfsmec.evaluation.tasks import Task, TaskOutcome
    from idfsmec.table import FeatureTable


def has_failures(results: Results) -> bool:
    """Whether tasks failed: their results are missing from the means."""
    return len(results.failures) > 0


def choose_seeds(seed: int, seeds: int) -> range:
    """Seeds of the repetitions, from the first on."""
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: give at least 1")
    return range(check_seed(seed), check_seed(seed + seeds - 1) + 1)


def refuse_foreign(out: Path, force: bool) -> None:
    """Refuse a folder that cannot be written, or with files that no benchmark has written."""
    from idfsmec._files import check_writable

    check_writable(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder with --out")
    check_writable(out / "store.sqlite", out / "figures")
    if force or (out / "store.sqlite").exists():
        return
    for name in ("results.csv", "results.parquet", "ranking.csv", "selections.parquet"):
        if (out / name).exists():
            raise InputError(
                f"{out / name} exists and is not from a benchmark; give another folder with "
                "--out, or --force to replace it"
            )


def run_experiments(
    experiments: Sequence[str],
    tables: dict[str, FeatureTable],
    out: Path,
    *,
    protocol: dict[str, Any],
    methods: list[str] | None,
    imputer: str | None = None,
    classifier: str | None = None,
    n_jobs: int,
    dask: str | None,
    quiet: bool,
    force: bool,
) -> Results:
    """Run experiments one after the other; Ctrl-C says what is kept."""
    from idfsmec import evaluation, paper

    warn_of_open_cluster(dask)
    with stop_cleanly(out), shown(quiet=quiet, digest=RunningMeans()) as progress:
        shared: dict[str, Any] = {
            "protocol": protocol,
            "progress": progress,
            "overwrite": force,
        }
        here: dict[str, Any] = {"n_jobs": n_jobs, "dask": dask, "classifier": classifier}
        run: dict[str, Callable[[], Results]] = {
            "accuracy": lambda: evaluation.accuracy(
                tables, out, methods=methods, imputer=imputer, **shared, **here
            ),
            "imputation": lambda: evaluation.imputation(
                tables,
                out,
                methods=methods,
                imputers=None if imputer is None else [imputer],
                **shared,
                **here,
            ),
            "ablation": lambda: paper.ablation(tables, out, imputer=imputer, **shared, **here),
            "sensitivity": lambda: paper.sensitivity(
                tables, out, imputer=imputer, **shared, **here
            ),
            "cost": lambda: evaluation.cost(tables, out, methods=methods, **shared),
        }
        *_, results = [run[name]() for name in experiments]
    return results


def warn_of_open_cluster(address: str | None) -> None:
    """Say that a plain scheduler obeys everybody, unless it is this machine's own."""
    host = (address or "").removeprefix("tcp://")
    if host and not host.startswith(("tls://", "localhost", "127.", "[::1]", "inproc://")):
        error_console.print(
            f"warning: {address} is neither encrypted nor asks who you are: everybody who reaches "
            "it can read the tables and run programs there. Use tls:// outside of a network that "
            "you trust",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def add_resampling(
    out: Path,
    tables: dict[str, FeatureTable],
    resamples: int,
    seed: int,
    n_jobs: int | None = None,
    *,
    quiet: bool,
    force: bool = False,
) -> Results:
    """Ask halves of the subjects how stable the ranking is."""
    from idfsmec import evaluation

    with stop_cleanly(out), shown(quiet=quiet) as progress:
        return evaluation.resampling(
            tables,
            out,
            n_resamples=resamples,
            seed=seed,
            n_jobs=n_jobs,
            progress=progress,
            overwrite=force,
        )


class RunningMeans:
    """Mean score per method over the tasks that have ended, and how many failed."""

    def __init__(self) -> None:
        self._metric = ""
        self._failed: dict[str, int] = defaultdict(int)
        self._scores: dict[str, list[float]] = defaultdict(list)
        self._ended: list[str] = []

    def begin(self, plan: dict[str, int]) -> str:
        """Say how many tasks each method has."""
        word = "task" if sum(plan.values()) == 1 else "tasks"
        return f"{', '.join(f'{name} {n}' for name, n in plan.items())} {word}"

    def update(self, item: Any) -> str | None:
        """Add a task: its chosen row, or the mean of all rows where none is chosen."""
        if not isinstance(item, tuple):
            return None  # a recording, of which a table was made first
        task: Task = item[0]
        outcome: TaskOutcome = item[1]
        name = task.method.name
        if outcome.result is None:
            self._failed[name] += 1
            where = ", ".join(f"{key} {value}" for key, value in task.coordinates().items())
            return f"failed: {where}: {(outcome.error or '').strip().splitlines()[-1]}"
        protocol = getattr(task, "protocol", None)
        if protocol is not None:
            self._metric = protocol.metric
            rows = [row for row in outcome.result.rows if row["chosen"]] or outcome.result.rows
            values = [row[self._metric] for row in rows if math.isfinite(row[self._metric])]
            if values:
                self._scores[name].append(math.fsum(values) / len(values))
        self._ended.append(_words(task, outcome))
        return None

    def picture(self) -> RenderableType:
        """A table of methods, best first."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        table.add_column("method")
        heading = self._metric.replace("_", " ")
        for column in ("tasks", f"mean {heading} %", "failed"):
            table.add_column(column, justify="right")
        for name, mean in self._means().items():
            failed = str(self._failed[name] or "")
            table.add_row(plain(name), str(len(self._scores[name])), _percent(mean), failed)
        return table

    def sentence(self) -> str:
        """The same in one line, with the tasks that have ended since the last one."""
        means = ", ".join(f"{name} {_percent(mean)}" for name, mean in self._means().items())
        said = [f"ended: {', '.join(self._ended)}"] if self._ended else []
        said += [f"{sum(self._failed.values())} failed"]
        said += [f"mean {self._metric} %: {means}"] if self._metric else []
        self._ended.clear()
        return "; ".join(said)

    def _means(self) -> dict[str, float]:
        names = dict.fromkeys([*self._scores, *self._failed])
        means = {
            name: math.fsum(self._scores[name]) / len(self._scores[name])
            if self._scores[name]
            else -1.0
            for name in names
        }
        return dict(sorted(means.items(), key=lambda one: -one[1]))


def _words(task: Task, outcome: TaskOutcome) -> str:
    where = task.coordinates()
    said = [f"{where['rate']:.0%} missing"] if "rate" in where else []
    said += [f"fold {where['fold'] + 1}"] if "fold" in where else []
    return f"{task.method.name} ({', '.join([*said, f'{outcome.seconds:.1f} s'])})"


def _percent(mean: float) -> str:
    return f"{100 * mean:.1f}" if mean >= 0 else "-"


@contextmanager
def stop_cleanly(out: Path) -> Iterator[None]:
    """Say at Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = (
            f"{error or 'stopped'}; what is finished is kept in {out}. Give the same command to "
            "go on.",
        )
        raise


def warn_of_gaps(tables: dict[str, FeatureTable]) -> None:
    """Say for which tables having a channel goes with the label."""
    from idfsmec.missing import association_warning, missingness_association

    for name, table in tables.items():
        if said := association_warning(missingness_association(table)):
            error_console.print(
                f"table {name}: {said}", style="yellow", markup=False, soft_wrap=True
            )


def read_tables(paths: Sequence[Path | str]) -> dict[str, FeatureTable]:
    """Read tables and name them by their files; of equal names, by their folders too."""
    from idfsmec.table import FeatureTable

    named: dict[str, FeatureTable] = {}
    seen: set[Path] = set()
    for path in map(Path, paths):
        if path.resolve() in seen:
            raise InputError(f"{path} is given twice; give each table once")
        seen.add(path.resolve())
        name = path.name.split(".")[0]
        if name in named:
            name = f"{path.resolve().parent.name}/{name}"
        if name in named:
            raise InputError(f"{path}: two tables have the name {name}; rename one of the files")
        named[name] = FeatureTable.read(path)
    return named
