"""``idfsmec train``: a table to a model, its performance and its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import say, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, Folds, Harmonize
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.prediction import Model


@command(
    table=options.TABLE,
    output="Where to write the model, a .skops file; its card goes beside it.",
    method="A method of the comparison, such as IDFS-MEC or mRMR: imputer, selection and "
    "classifier, tuned by folds of subjects. By default IDFSMECClassifier on all features.",
)
def train(
    table: AnyPath,
    output: AnyPath = Path("model.skops"),
    method: str | None = None,
    imputer: str | None = None,
    classifier: str | None = None,
    folds: Folds | None = None,
    harmonize: Harmonize = None,
    repeats: int = 3,
    jobs: int = 1,
    force: bool = False,
) -> Model:
    """Fit a model to all subjects of a table, and measure it on subjects held out.

    For example::

        idfsmec train table.parquet -o model.skops
        idfsmec train table.parquet -o model.skops --repeats 10 --jobs 2
        idfsmec train table.parquet -o model.skops --method IDFS-MEC --classifier ridge
        idfsmec train table.parquet -o model.skops --folds site --harmonize all

    The model is IDFSMECClassifier, which takes samples with missing channels, or
    a method by its name. Beside the file come its card, model.md and model.html.
    By default 5 folds. They have a fixed seed and the fit has none: there is no
    --seed. For research: it makes no diagnosis.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.evaluation import TunedMethod, train_model
    from idfsmec.prediction import save_model
    from idfsmec.report.cards import card_paths, write_model_card
    from idfsmec.table import FeatureTable

    path = options.check_output(output, ".skops", force)
    for card in card_paths(path):
        options.check_output(card, card.suffix, force)
    options.check_numbers(repeats=repeats)
    if method is None and (imputer or classifier):
        raise InputError(
            "--imputer and --classifier are parts of a method: name it with --method."
        )
    how: dict[str, Any] = {"folds": "subject", **options.parse_folds(folds)}
    n_jobs, estimator = count_jobs(jobs), None
    if method is not None:
        estimator = TunedMethod(method, imputer=imputer, classifier=classifier, folds=how["folds"])
        estimator.parts()
    read = FeatureTable.read(Path(table))
    if estimator is not None:
        estimator.set_params(montage=read.info.get("montage"))
    with warnings_as_lines(), shown("folds") as progress, options.naming(table):
        model = train_model(
            read,
            estimator,
            harmonize=options.parse_harmonize(harmonize),
            n_repeats=repeats,
            n_jobs=n_jobs,
            progress=progress,
            **how,
        )
    save_model(model, path, overwrite=force)
    markdown, page = write_model_card(model, path, overwrite=force)
    for name, metric in model.performance["metrics"].items():
        say(
            f"{name.replace('_', ' '):18} {metric['mean']:.3f} by subject, {metric['low']:.3f} to "
            f"{metric['high']:.3f} (by chance {metric['chance_low']:.3f} to "
            f"{metric['chance_high']:.3f})"
        )
    say(f"model: {path}")
    say(f"card: {markdown}, {page}")
    return model
