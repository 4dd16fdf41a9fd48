"""``idfsmec train``: a table to a model, its performance and its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._completion import methods as complete_methods
from idfsmec.cli._completion import one_of
from idfsmec.cli._console import say, warnings_as_lines
from idfsmec.cli._options import (
    AnyPath,
    ClassifierOption,
    HarmonizeOption,
    HeldOut,
    HeldOutOption,
    ImputerOption,
    JobsOption,
    check_seed,
)
from idfsmec.cli._progress import shown
from idfsmec.errors import ExistingFileError, InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.evaluation.protocol import Folds
    from idfsmec.prediction import Model

TablePath = Annotated[
    AnyPath, typer.Argument(metavar="TABLE", help="Feature table: .parquet, .csv or .csv.gz.")
]
Output = Annotated[
    AnyPath,
    typer.Option(
        "-o", "--output", help="Where to write the model, a .skops file; its card goes beside it."
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        help="A method of the comparison, such as IDFS-MEC or mRMR: imputer, selection and "
        "classifier, tuned by folds of people. By default IDFSMECClassifier on all features.",
        autocompletion=one_of(complete_methods),
    ),
]
Splits = Annotated[
    int,
    typer.Option(
        help="Folds for the performance, unless by site; fewer where a class has fewer people."
    ),
]
Seeds = Annotated[int, typer.Option(help="Repetitions with new folds, unless by site.")]
Seed = Annotated[int, typer.Option(help="Seed of folds and resampled people; the fit has none.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model and its card.")]


@command("train")
def train(
    table: TablePath,
    output: Output = Path("model.skops"),
    method: MethodOption = None,
    imputer: ImputerOption = None,
    classifier: ClassifierOption = None,
    folds: HeldOutOption = HeldOut.subject,
    harmonize: HarmonizeOption = False,
    n_splits: Splits = 5,
    seeds: Seeds = 3,
    seed: Seed = 0,
    jobs: JobsOption = 1,
    force: Force = False,
) -> Model:
    """Fit a model to all people of a table, and measure it on people held out.

    For example::

        idfsmec train table.parquet -o model.skops
        idfsmec train table.parquet -o model.skops --seeds 10 --jobs 2
        idfsmec train table.parquet -o model.skops --method IDFS-MEC --classifier ridge
        idfsmec train table.parquet -o model.skops --folds site --harmonize

    The model is IDFSMECClassifier, which takes samples with gaps, or a method by
    its name. Beside the file come its card, model.md and model.html. For
    research: it makes no diagnosis.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.evaluation import TunedMethod, train_model
    from idfsmec.prediction import save_model
    from idfsmec.report.cards import write_model_card
    from idfsmec.table import FeatureTable

    path = _check_output(Path(output), force)
    if n_splits < 2 or seeds < 1:
        raise InputError(f"--n-splits {n_splits} --seeds {seeds}: give at least 2 and 1.")
    check_seed(seed)
    if method is None and (imputer or classifier):
        raise InputError(
            "--imputer and --classifier are parts of a method: name it with --method."
        )
    n_jobs = count_jobs(jobs)
    held_out: Folds = "site" if folds == HeldOut.site else "subject"
    estimator = None
    if method is not None:
        estimator = TunedMethod(
            method, imputer=imputer, classifier=classifier, seed=seed, folds=held_out
        )
        estimator.parts()
    read = FeatureTable.read(Path(table))
    if estimator is not None:
        estimator.set_params(montage=read.info.get("montage"))
    with warnings_as_lines(), shown("folds") as progress:
        try:
            model = train_model(
                read,
                estimator,
                folds=held_out,
                harmonize=harmonize,
                n_splits=n_splits,
                n_repeats=seeds,
                seed=seed,
                n_jobs=n_jobs,
                progress=progress,
            )
        except ValueError as error:
            argument = getattr(error, "argument", None)
            raise InputError(f"{table}: {error}", argument=argument) from error
    save_model(model, path, overwrite=force)
    markdown, page = write_model_card(model, path, overwrite=force)
    for name, one in model.performance["metrics"].items():
        say(
            f"{name.replace('_', ' '):18} {one['mean']:.3f} by person, {one['low']:.3f} to "
            f"{one['high']:.3f} (guessing {one['chance_low']:.3f} to {one['chance_high']:.3f})"
        )
    say(f"model: {path}")
    say(f"card: {markdown}, {page}")
    return model


def _check_output(output: Path, force: bool) -> Path:
    """Refuse before the work what could not be written after it."""
    from idfsmec._files import check_writable
    from idfsmec.prediction.model import check_model_path
    from idfsmec.report.cards import card_paths

    check_writable(output, *card_paths(output))
    path = check_model_path(output, overwrite=force)
    for card in card_paths(path):
        if card.exists() and not force:
            raise ExistingFileError(card)
    return path
