"""How commands run experiments and sum them up: seeds, folders, Ctrl-C, means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli._console import console, error_console
from idfsmec.cli._options import check_seed
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.evaluation import Protocol, Results
    from idfsmec.table import FeatureTable


def has_failures(results: Results) -> bool:
    """Whether units failed: their results are missing from the means."""
    return len(results.failures) > 0


def choose_seeds(seed: int, seeds: int) -> range:
    """Seeds of the repetitions, from the first on."""
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: give at least 1")
    return range(check_seed(seed), check_seed(seed + seeds - 1) + 1)


def refuse_foreign(out: Path, force: bool) -> None:
    """Refuse a folder in which files would be replaced that no benchmark has written."""
    if force or (out / "store.sqlite").exists():
        return
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder with --out")
    for name in ("results.csv", "results.parquet", "ranking.csv", "selections.parquet"):
        if (out / name).exists():
            raise InputError(
                f"{out / name} exists and is not from a benchmark; give another folder with "
                "--out, or --force to replace it"
            )


def run_experiments(
    experiments: list[str],
    tables: dict[str, FeatureTable],
    out: Path,
    changes: dict[str, Any],
    methods: list[str] | None,
    how: dict[str, Any],
) -> Results:
    """Run experiments one after the other; Ctrl-C says what is kept."""
    from idfsmec import evaluation

    results: Results | None = None
    for name in experiments:
        options: dict[str, Any] = {**how}
        if name == "cost":
            options = {"progress": how["progress"], "methods": methods}
        else:
            options["protocol"] = experiment_protocol(name, changes)
            if name == "accuracy":
                options["methods"] = methods
        with stop_cleanly(out):
            results = getattr(evaluation, name)(tables, out, **options)
    if results is None:
        raise InputError("there is no experiment to run; give --experiment")
    return results


def add_resampling(
    results: Results, tables: dict[str, FeatureTable], resamples: int, seed: int, quiet: bool
) -> Results:
    """Ask halves of the subjects how sure the ranking is."""
    from idfsmec import evaluation

    with stop_cleanly(results.folder):
        return evaluation.resampling(
            tables, results.folder, n_resamples=resamples, seed=seed, progress=not quiet
        )


@contextmanager
def stop_cleanly(out: Path) -> Iterator[None]:
    """Say at Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; what is finished is kept in {out}. Give the same command to go on."
        ) from None


def experiment_protocol(experiment: str, changes: dict[str, Any]) -> Protocol:
    """Give the protocol of an experiment: its own defaults, with what the user asked for."""
    from idfsmec.evaluation import Protocol

    defaults: dict[str, Any] = {}
    if experiment == "ablation":
        defaults["rates"] = (0.1, 0.2, 0.3, 0.4, 0.5)
    if experiment == "sensitivity":
        defaults["rates"] = (0.3,)
    return Protocol(**{**defaults, **changes})


def summarize(results: Results) -> None:
    """Print the means, and say where everything is and what failed."""
    for name in ("accuracy", "ablation"):
        if len(results.chosen(name)):
            _print_means(results, name)
    console.print(f"results: {results.folder}", markup=False, soft_wrap=True)
    if n_failed := len(results.failures):
        first = results.failures.iloc[0]
        error_console.print(
            f"{n_failed} units failed, first {first['method']} on {first['table']}: "
            f"{first['traceback'].strip().splitlines()[-1]}. Their tracebacks are in "
            f"{results.folder / 'store.sqlite'}; give the same command to try them again.",
            style="red",
            markup=False,
            soft_wrap=True,
        )


def _print_means(results: Results, experiment: str) -> None:
    from rich.table import Table

    protocol = results.protocol["experiments"][experiment]
    metric = protocol["metric"]
    means = results.mean_scores(metric, experiment)
    note = ", best on test: optimistic" if protocol["tuning"] == "oracle" else ""
    shown = Table(
        title=f"{experiment}: {metric.replace('_', ' ')} in %, {protocol['folds']} folds{note}"
    )
    for heading in ("table", "gaps", "method"):
        shown.add_column(heading)
    for rate in means.columns:
        shown.add_column(f"{100 * rate:g} % missing", justify="right")
    for where, row in zip(means.index, means.to_numpy(), strict=True):
        shown.add_row(*(str(part) for part in where), *(f"{100 * v:.1f}" for v in row))
    console.print(shown)
    for table, bands in results.protocol["chance"].items():
        if metric in bands:
            band = bands[metric]
            console.print(
                f"{table}: guessing gives {100 * band['chance']:.1f} %, and up to "
                f"{100 * band['high']:.1f} % by luck (95 % band)",
                markup=False,
                highlight=False,
                soft_wrap=True,
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
