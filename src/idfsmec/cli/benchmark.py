"""``idfsmec benchmark``: methods compared on tables with gaps; resumes where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from idfsmec.cli._app import command, console, error_console
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.evaluation import Protocol, Results
    from idfsmec.table import FeatureTable


class Experiment(StrEnum):
    """What ``--experiment`` takes."""

    accuracy = "accuracy"
    ablation = "ablation"
    sensitivity = "sensitivity"
    cost = "cost"


class Folds(StrEnum):
    """What ``--folds`` takes."""

    subject = "subject"
    sample = "sample"


class Gaps(StrEnum):
    """What ``--gaps`` takes."""

    everywhere = "everywhere"
    selection = "selection"


class Tuning(StrEnum):
    """What ``--tuning`` takes."""

    nested = "nested"
    oracle = "oracle"


JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Processes; by default one per core.")
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786, in place of --jobs."
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


@command("benchmark")
def benchmark(
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE...", help="Feature tables: Parquet or CSV.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")],
    experiment: Annotated[
        list[Experiment] | None,
        typer.Option(help="What to do; may be given several times. By default accuracy."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help='Names, such as "IDFS-MEC,mRMR,ANOVA F". By default all.')
    ] = None,
    rates: Annotated[
        str | None, typer.Option(help="Missing rates, such as 0,0.1,0.5. By default 0 to 0.5.")
    ] = None,
    patterns: Annotated[
        str | None, typer.Option(help="How gaps lie: random,recording,burst,region,uneven.")
    ] = None,
    k: Annotated[
        str | None, typer.Option(help="Numbers of features, such as 10,20,50. By default to 100.")
    ] = None,
    folds: Annotated[
        Folds, typer.Option(help="Keep a subject's samples together (honest), or spread them.")
    ] = Folds.subject,
    n_splits: Annotated[int, typer.Option(help="Number of folds.")] = 10,
    gaps: Annotated[
        Gaps, typer.Option(help="Gaps for selector and classifier, or for the selector only.")
    ] = Gaps.everywhere,
    tuning: Annotated[
        Tuning, typer.Option(help="Choose settings by inner folds, or on the test (optimistic).")
    ] = Tuning.nested,
    seeds: Annotated[int, typer.Option(help="Repetitions with new folds and gaps.")] = 1,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    quiet: QuietOption = False,
) -> None:
    """Compare selection methods on tables with missing channels; resumes where it stopped.

    Example: [bold]idfsmec benchmark table.parquet --out results --rates 0.1,0.3 --seeds 3[/bold]

    All that is finished is kept in OUT/store.sqlite. Give the same command again to go on after
    a stop; change an option, and only what it touches is computed.
    """
    named = read_tables(tables)
    changes = {
        "folds": folds.value,
        "n_splits": n_splits,
        "gaps": gaps.value,
        "seeds": range(seeds) if seeds >= 1 else (),
        "rates": split_numbers("--rates", rates, float),
        "patterns": split_names(patterns),
        "ks": split_numbers("--k", k, int),
        "tuning": tuning.value,
    }
    run_experiments(
        [one.value for one in experiment or [Experiment.accuracy]],
        named,
        out,
        {key: value for key, value in changes.items() if value is not None},
        split_names(methods),
        {"n_jobs": jobs, "dask": dask, "progress": not quiet},
    )


def run_experiments(
    experiments: list[str],
    tables: dict[str, FeatureTable],
    out: Path,
    changes: dict[str, Any],
    methods: list[str] | None,
    how: dict[str, Any],
) -> Results:
    """Run experiments one after the other; Ctrl-C ends cleanly, failures end with code 1."""
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
    summarize(results)
    return results


@contextmanager
def stop_cleanly(out: Path) -> Iterator[None]:
    """Turn Ctrl-C into one line and the shell's exit code for it."""
    try:
        yield
    except KeyboardInterrupt:
        error_console.print(
            f"stopped; what is finished is kept in {out}. Give the same command to go on.",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


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
        raise typer.Exit(1)


def _print_means(results: Results, experiment: str) -> None:
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


def read_tables(paths: list[Path]) -> dict[str, FeatureTable]:
    """Read tables and name them by their files; of equal names, by their folders too."""
    from idfsmec.table import FeatureTable

    named: dict[str, FeatureTable] = {}
    for path in paths:
        name = path.name.split(".")[0]
        if name in named:
            name = f"{path.parent.name}/{name}"
        if name in named:
            raise InputError(f"{path} is given twice, or two tables have the name {name}")
        named[name] = FeatureTable.read(path)
    return named


def split_names(text: str | None) -> list[str] | None:
    """Split a comma-separated list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def split_numbers(option: str, text: str | None, kind: Callable[[str], Any]) -> list[Any] | None:
    """Split a comma-separated list of numbers."""
    try:
        return None if text is None else [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} {text}: give numbers, such as 10,20") from None
