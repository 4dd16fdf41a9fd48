"""``idfsmec train``: a table to a model, its performance and its card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_verdict, say, say_next, show_frame, shown
from idfsmec.cli.options import AnyPath, Folds, Harmonize, Names, Per

if TYPE_CHECKING:
    from idfsmec.prediction import Model


@command(
    table=options.TABLE,
    output="Where to write the model, a .skops file. Its card is written beside it.",
    method="Method of the benchmark, such as IDFS-MEC or mRMR: imputer, selection and classifier, "
    "tuned by subject-wise folds. By default IDFSMECClassifier on all features.",
    condition=options.CONDITION,
    remember_participants="Keep keyed hashes of the participants' samples in the model, by which "
    "predict and validate recognise them; so can whoever has their values.",
)
@options.clustered
def train(
    table: AnyPath,
    output: AnyPath = Path("model.skops"),
    method: str | None = None,
    target: str | None = None,
    order: Names | None = None,
    condition: Names | None = None,
    per: Per | None = None,
    electrodes: int | None = None,
    folds: Folds | None = None,
    harmonize: Harmonize = None,
    adjust: Names | None = None,
    adjust_from: str | None = None,
    prevalence: float | None = None,
    remember_participants: bool = False,
    repeats: int = 3,
    jobs: int = 1,
    dask: str | None = None,
    force: bool = False,
) -> Model:
    """Fit a model to all participants of a table and measure it on held-out participants.

    For example::

        idfsmec train table.parquet -o model.skops
        idfsmec train table.parquet -o model.skops --method mRMR
        idfsmec train table.parquet -o model.skops --electrodes 8
        idfsmec train table.parquet -o model.skops --target bdi
        idfsmec train table.parquet -o model.skops --folds site --harmonize all
        idfsmec train table.parquet -o model.skops --adjust age,sex

    The model is IDFSMECClassifier (IDFSMECRegressor for a score), which accepts
    missing channels, or a method by its name. The model card, model.md and
    model.html, is written beside the file. Both have the verdict of idfsmec audit;
    the audit is run if none is stored beside the table. By default up to 10 folds.
    For research; not a medical device.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.evaluation import train_model
    from idfsmec.prediction import save_model
    from idfsmec.prediction.model import check_model_path
    from idfsmec.report.documents import card_paths, metric_rows, write_model_card

    path = options.check_output(output, ".skops", force, [Path(table)])
    check_model_path(path, overwrite=force)
    for card in card_paths(path):
        options.check_output(card, card.suffix, force, [Path(table)])
    options.check_numbers(repeats=repeats)
    splits, n_jobs = options.parse_folds(folds), count_jobs(jobs)
    read = options.read_table(Path(table), condition, per)
    read = options.take_target(read, target, order, table)
    with shown("folds") as progress, options.naming(table):
        model = train_model(
            read,
            method,
            electrodes=electrodes,
            harmonize=options.parse_harmonize(harmonize),
            adjust=options.split_names(adjust) or (),
            adjust_from=adjust_from,
            n_repeats=repeats,
            prevalence=prevalence,
            remember_participants=remember_participants,
            n_jobs=n_jobs,
            progress=progress,
            **splits,
        )
    verdict = options.find_verdict(table, read, n_jobs, splits.get("folds", "subject"))
    model = replace(model, audit=verdict)
    save_model(model, path, overwrite=force)
    markdown, page = write_model_card(model, path, overwrite=force)
    print_verdict(table, verdict)
    names = ("name", "value", "ci", "chance_level")
    cells = [[row[name] for name in names] for row in metric_rows(model)]
    red = "; acquisition may explain it" if model.audit["level"] == "red" else ""
    header = ("score", "value", "95 % CI", "chance")
    show_frame(f"Performance on held-out participants{red}", cells, header)
    if electrodes is not None:
        say("electrodes:", ", ".join(model.channels))
    say("model:", path)
    say("card:", f"{markdown}, {page}")
    say_next("validate", path, "OTHER_TABLE")
    return model
