"""``idfsmec predict``: a model and tables or recordings to probabilities of people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import console, error_console, plain, say, warnings_as_lines
from idfsmec.cli._options import AnyPath, JobsOption
from idfsmec.cli._progress import shown
from idfsmec.cli.features import Failing, OnError
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    import pandas as pd

    from idfsmec.prediction import Model, Predictions
    from idfsmec.table import FeatureTable

SHOWN = 20
_TABLES = (".parquet", ".pq", ".csv", ".csv.gz")

ModelPath = Annotated[
    AnyPath, typer.Argument(metavar="MODEL", help="Model of `idfsmec train`: .skops.")
]
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE|RECORDING",
        help="Feature tables (.parquet, .csv, .csv.gz), or recordings that MNE opens (.edf, .bdf, "
        ".vhdr, .set, .fif), each of one person.",
    ),
]
Output = Annotated[
    AnyPath, typer.Option("-o", "--output", help="Where to write the predictions, a CSV file.")
]
Pages = Annotated[
    AnyPath | None, typer.Option(help="Folder for a page about every person; none by default.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing predictions and pages.")]


@command("predict")
def predict(
    model: ModelPath,
    sources: Sources,
    output: Output = Path("predictions.csv"),
    pages: Pages = None,
    on_error: Failing = OnError.stop,
    jobs: JobsOption = 1,
    force: Force = False,
) -> pd.DataFrame:
    """Predict people from their recordings or from tables, whatever electrodes they have.

    For example::

        idfsmec predict model.skops new.edf
        idfsmec predict model.skops table.parquet -o predictions.csv --pages pages

    Features are computed with the model's own settings. Missing channels are
    completed, unknown ones ignored, and whoever is unlike the training data is
    pointed out. Nothing here is random, so there is no --seed. For research: it
    makes no diagnosis.
    """
    from idfsmec._files import check_writable, neutralise, replacing
    from idfsmec.prediction import load_model

    output = _check(Path(output), force)
    if pages is not None:
        check_writable(Path(pages) / "index.html")
    given = [Path(one) for one in ([sources] if isinstance(sources, (str, Path)) else sources)]
    with warnings_as_lines():
        read = load_model(model)
        said = [_ask(read, *one) for one in _tables(read, given, jobs, on_error)]
    if pages is not None:
        _write_pages(read, said, Path(pages), force)
    frame = _join(said)
    with replacing(output) as (beside,):
        neutralise(frame).to_csv(beside, index=False)
    _show(frame)
    for note in dict.fromkeys(note for one in said for note in one.notes):
        error_console.print(f"note: {note}", markup=False, soft_wrap=True)
    say(f"Predictions of {len(frame)} people written to {output}.")
    if pages is not None:
        say(f"Pages written to {pages}.")
    return frame


def _check(output: Path, force: bool) -> Path:
    from idfsmec._files import check_writable

    check_writable(output)
    if output.suffix.lower() != ".csv" or output.is_dir():
        raise InputError(f"{output}: predictions are written as CSV; give a name that ends so.")
    if output.exists() and not force:
        raise InputError(f"{output} exists; give another name with -o, or --force to replace it.")
    return output


def _tables(
    model: Model, sources: Sequence[Path], jobs: int, on_error: str
) -> list[tuple[str, FeatureTable]]:
    """Tables as they are, and one of all recordings, each with its name for messages."""
    from idfsmec._parallel import count_jobs
    from idfsmec.prediction import extract_subjects
    from idfsmec.table import FeatureTable

    tables = [one for one in sources if one.name.lower().endswith(_TABLES)]
    files = [one for one in sources if one not in tables]
    found = [(str(one), FeatureTable.read(one)) for one in tables]
    if files:
        with shown("recordings", describe=lambda outcome: Path(outcome.source).name) as progress:
            made = extract_subjects(
                model,
                files,
                n_jobs=count_jobs(jobs),
                on_error="skip" if on_error == OnError.skip else "raise",
                progress=progress,
            )
        found.append((", ".join(map(str, files[:3])), made))
    return found


def _ask(model: Model, name: str, table: FeatureTable) -> Predictions:
    from idfsmec.prediction import predict_subjects

    try:
        return predict_subjects(model, table)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _join(said: Sequence[Predictions]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat([one.frame for one in said], ignore_index=True)


def _write_pages(model: Model, said: Sequence[Predictions], folder: Path, force: bool) -> None:
    from idfsmec.prediction import Predictions
    from idfsmec.report import write_subject_pages

    notes = dict.fromkeys(note for one in said for note in one.notes)
    everybody = Predictions(tuple(p for one in said for p in one.subjects), tuple(notes))
    write_subject_pages(model, everybody, folder, overwrite=force)


def _show(frame: pd.DataFrame) -> None:
    from rich.table import Table

    shown_people = Table(title=f"{min(SHOWN, len(frame))} of {len(frame)} people")
    for heading in ("subject", "predicted", "probability", "interval", "channels", "warnings"):
        shown_people.add_column(
            heading,
            justify="right" if heading in ("probability", "interval", "channels") else "left",
        )
    for row in frame.head(SHOWN).to_dict("records"):
        there = row["epochs"] > 0
        interval = f"{row['low']:.0%} to {row['high']:.0%}" if row["low"] == row["low"] else ""
        shown_people.add_row(
            plain(row["subject"]),
            plain(row["predicted"] if there else ""),
            f"{row['probability']:.0%}" if there else "",
            interval,
            f"{row['channels present']:.0%}",
            plain(row["warnings"]),
        )
    console.print(shown_people)
