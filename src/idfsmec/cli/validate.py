"""``idfsmec validate``: a model on participants of another table, beside its card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_verdict, remark, say, say_page, show_frame, shown_recordings
from idfsmec.cli.options import AnyPath, Names, OnError, Per

if TYPE_CHECKING:
    from idfsmec.evaluation import Validation
    from idfsmec.prediction import Model
    from idfsmec.table import FeatureTable


@command(
    model=options.argument("MODEL", "Model of `idfsmec train`: .skops."),
    source=options.argument(
        "TABLE|MANIFEST",
        "Feature table of other participants (.parquet, .csv, .csv.gz), or the manifest of their "
        "recordings.",
    ),
    condition=options.CONDITION,
    prevalence="Prevalence of the second class where the model will be used, such as 0.1, for "
    "predictive values, Brier score and decision curve. By default as in this table.",
    include_training="Also score participants that the model is known to be trained on.",
)
@options.clustered
def validate(
    model: AnyPath,
    source: AnyPath,
    out: AnyPath = Path("validation"),
    condition: Names | None = None,
    per: Per | None = None,
    prevalence: float | None = None,
    include_training: bool = False,
    on_error: OnError = "stop",
    jobs: int = 1,
    dask: str | None = None,
    force: bool = False,
) -> Validation:
    """Measure a model on participants of another table.

    For example::

        idfsmec validate model.skops other.parquet
        idfsmec validate model.skops other_study.csv --out there --prevalence 0.1

    Compares AUC, sensitivity and specificity (of a score R2 and correlations) with
    the model's card, and measures calibration, decision curve and groups by sex,
    age, site and condition. A score is the column that the model predicts.
    Writes validation.html, validation.json, predictions.csv and reporting.md
    (items of TRIPOD+AI) into OUT. The audit of the other table is run if none is
    stored beside it. Participants that the model is known to be trained on are
    left out. For research; not a medical device.
    """
    from idfsmec._files import check_writable
    from idfsmec._parallel import count_jobs
    from idfsmec.errors import listing
    from idfsmec.evaluation import validate as validate_model
    from idfsmec.evaluation.clinical import check_prevalence
    from idfsmec.evaluation.validation import with_target_of
    from idfsmec.prediction import load_model
    from idfsmec.report.style import refuse_existing
    from idfsmec.report.validation import (
        FILES,
        HEADER,
        describe_validation,
        score_rows,
        write_validation,
    )

    out, path, n_jobs = Path(out), Path(source), count_jobs(jobs)
    files = [out / file for file in FILES]
    check_writable(*files)
    refuse_existing(force, *files)
    for file in files:
        options.refuse_inputs(file, [Path(model), path])
    check_prevalence(prevalence)
    loaded = load_model(model)
    if _is_manifest(path):
        table = _extract(loaded, path, on_error, n_jobs)
        table = options.take_condition(table, condition, path)
    else:
        table = options.read_table(path, condition, per)
    with options.naming(path):
        table = with_target_of(loaded, table)
        validation = validate_model(
            loaded, table, prevalence=prevalence, include_training=include_training
        )
    verdict = options.find_verdict(path, table, n_jobs)
    measured = {**validation.measured, "audit": dict(verdict)}
    validation = replace(validation, measured=measured)
    page = write_validation(loaded, validation, out, name=path.name, overwrite=force)
    print_verdict(path, verdict)
    headline, *sentences = describe_validation(validation)
    show_frame(headline, score_rows(validation), HEADER)
    for sentence in sentences:
        say(sentence)
    if trained_on := validation.measured["left_out"]["trained_on"]:
        remark(f"left out, in the training data: {listing(trained_on, 10)}", "yellow")
    for note in validation.measured["notes"]:
        remark(f"note: {note}")
    say_page("page", page)
    return validation


def _extract(model: Model, path: Path, on_error: str, n_jobs: int) -> FeatureTable:
    """Compute the features of a manifest's recordings as the model's were."""
    from idfsmec.prediction import extract_subjects

    recordings = options.checked_recordings(str(path), on_error, None)
    on_error = options.failing(on_error)
    with shown_recordings() as progress:
        return extract_subjects(
            model, recordings, n_jobs=n_jobs, on_error=on_error, progress=progress
        )


def _is_manifest(path: Path) -> bool:
    """Return whether a CSV file lists recordings: a column "path", and no feature."""
    from idfsmec._files import find_separator, read_utf8

    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    header = read_utf8(path).partition(b"\n")[0]
    names = header.decode("utf-8", "replace").strip().split(find_separator(header))
    return "path" in names and not any("__" in name for name in names)
