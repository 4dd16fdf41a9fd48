"""``idfsmec benchmark``: methods compared at missing rates; resumes where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._completion import after_commas
from idfsmec.cli._completion import methods as complete_methods
from idfsmec.cli._completion import patterns as complete_patterns
from idfsmec.cli._console import warnings_as_lines
from idfsmec.cli._options import (
    AnyPath,
    ClassifierOption,
    DaskOption,
    HarmonizeOption,
    ImputerOption,
    JobsOption,
    Names,
    Numbers,
    QuietOption,
    ResamplesOption,
    SeedOption,
    SeedsOption,
    check_resamples,
    split_names,
    split_numbers,
)
from idfsmec.cli._run import (
    add_resampling,
    choose_seeds,
    has_failures,
    read_tables,
    refuse_foreign,
    run_experiments,
    warn_of_gaps,
)
from idfsmec.cli._summary import summarize
from idfsmec.cli.audit import audit_tables
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.evaluation import Results
    from idfsmec.table import FeatureTable


class Experiment(StrEnum):
    """What ``--experiment`` takes."""

    accuracy = "accuracy"
    imputation = "imputation"
    ablation = "ablation"
    sensitivity = "sensitivity"
    cost = "cost"


class Folds(StrEnum):
    """What ``--folds`` takes."""

    subject = "subject"
    sample = "sample"
    site = "site"


class MissingIn(StrEnum):
    """What ``--missing-in`` takes."""

    everywhere = "everywhere"
    selection = "selection"


class Tuning(StrEnum):
    """What ``--tuning`` takes."""

    nested = "nested"
    oracle = "oracle"


TablesArgument = Annotated[
    list[Path], typer.Argument(metavar="TABLE", help="Feature tables: Parquet or CSV.")
]
OutOption = Annotated[AnyPath, typer.Option("--out", "-o", help="Folder for the results.")]
ExperimentOption = Annotated[
    list[Experiment] | None,
    typer.Option(help="What to do; may be given several times. By default accuracy."),
]
RatesOption = Annotated[
    Numbers | None, typer.Option(help="Missing rates, such as 0,0.1,0.5. By default 0 to 0.5.")
]
PatternsOption = Annotated[
    Names | None,
    typer.Option(
        help="Which channels are missing together: random,recording,burst,region,uneven. By "
        "default random.",
        autocompletion=after_commas(complete_patterns),
    ),
]
CountsOption = Annotated[
    Numbers | None,
    typer.Option(help="Numbers of features, such as 10,20,50. By default 10 to 100."),
]
FoldsOption = Annotated[
    Folds | None,
    typer.Option(
        help="Keep a subject's samples together (honest), spread them, or hold out one site after "
        "the other. By default subject."
    ),
]
SplitsOption = Annotated[
    int | None, typer.Option(help="Number of folds, but for --folds site. By default 10.")
]
MissingInOption = Annotated[
    MissingIn | None,
    typer.Option(
        help="Missing channels for selector and classifier, or for the selector only. By default "
        "everywhere."
    ),
]
TuningOption = Annotated[
    Tuning | None,
    typer.Option(
        help="Choose settings by inner folds, or on the test (optimistic). By default nested."
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace files that no benchmark has written, and results of another table that "
        "had the same name.",
    ),
]
MethodsOption = Annotated[
    Names | None,
    typer.Option(
        help='Names, such as "IDFS-MEC,mRMR,ANOVA F". By default all.',
        autocompletion=after_commas(complete_methods),
    ),
]
AuditOption = Annotated[
    bool,
    typer.Option(
        help="Ask also whether the recording tells the groups apart as well as the EEG does."
    ),
]


ConditionOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Compare on the samples of one condition, repeatable: each is a table of its own."
    ),
]
ByConditionOption = Annotated[
    bool, typer.Option("--by-condition", help="Compare within each condition that there is.")
]


@command("benchmark", has_failed=has_failures)
def benchmark(
    tables: TablesArgument,
    out: OutOption = Path("results"),
    experiment: ExperimentOption = None,
    condition: ConditionOption = None,
    by_condition: ByConditionOption = False,
    methods: MethodsOption = None,
    imputer: ImputerOption = None,
    classifier: ClassifierOption = None,
    rates: RatesOption = None,
    patterns: PatternsOption = None,
    k: CountsOption = None,
    folds: FoldsOption = None,
    n_splits: SplitsOption = None,
    missing_in: MissingInOption = None,
    harmonize: HarmonizeOption = False,
    tuning: TuningOption = None,
    seeds: SeedsOption = 1,
    seed: SeedOption = 0,
    resamples: ResamplesOption = 100,
    audit: AuditOption = True,
    jobs: JobsOption = -1,
    dask: DaskOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> Results:
    """Compare selection methods on tables with missing channels; resumes where it stopped.

    For example::

        idfsmec benchmark table.parquet
        idfsmec benchmark table.parquet --out results --rates 0.1,0.3 --seeds 3
        idfsmec benchmark a.csv b.csv --methods "IDFS-MEC,ANOVA F" --k 10,50
        idfsmec benchmark table.parquet --experiment imputation
        idfsmec benchmark table.parquet --by-condition
        idfsmec benchmark table.parquet --folds site --harmonize

    All that is finished is kept in OUT/store.sqlite and never computed again.
    Give the same command to go on after a stop; change an option, and only
    what it touches is computed. idfsmec report OUT makes a page of it.
    """
    from idfsmec._parallel import count_jobs

    out, n_jobs = Path(out), count_jobs(jobs)
    refuse_foreign(out, force)
    check_resamples(resamples)
    named = read_tables([tables] if isinstance(tables, (str, Path)) else tables)
    if condition or by_condition:
        named = _split(named, condition, by_condition)
    warn_of_gaps(named)
    changes = {
        "folds": folds and str(folds),
        "n_splits": n_splits,
        "missing_in": missing_in and str(missing_in),
        "seeds": choose_seeds(seed, seeds),
        "rates": split_numbers("--rates", rates, float),
        "patterns": split_names(patterns),
        "ks": split_numbers("--k", k, int),
        "tuning": tuning and str(tuning),
        "harmonize": harmonize or None,
    }
    with warnings_as_lines():
        results = run_experiments(
            [str(one) for one in experiment or [Experiment.accuracy]],
            named,
            out,
            protocol={key: value for key, value in changes.items() if value is not None},
            methods=split_names(methods),
            imputer=imputer,
            classifier=classifier,
            n_jobs=n_jobs,
            dask=dask,
            quiet=quiet,
            force=force,
        )
    if resamples:
        results = add_resampling(out, named, resamples, seed, n_jobs, quiet=quiet, force=force)
    if audit:
        results = audit_tables(out, named, seed, n_jobs, quiet=quiet, force=force)
    summarize(results)
    return results


def _split(
    tables: dict[str, FeatureTable], conditions: str | Sequence[str] | None, every: bool
) -> dict[str, FeatureTable]:
    """Give a table of each condition that is asked for, or of every one."""
    from idfsmec.evaluation import by_condition

    if conditions and every:
        raise InputError("--by-condition takes every condition; leave out --condition")
    return by_condition(tables, split_names(conditions) or None)
