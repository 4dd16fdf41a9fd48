"""``idfsmec predict``: a model and tables or recordings to probabilities of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import remark, say, show_rows, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, AnyPaths, OnError
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    import pandas as pd

    from idfsmec.prediction import Model, Predictions
    from idfsmec.table import FeatureTable

N_SHOWN = 20
_TABLES = (".parquet", ".pq", ".csv", ".csv.gz")


@command(
    model=options.argument("MODEL", "Model of `idfsmec train`: .skops."),
    sources=options.argument(
        "TABLE|RECORDING",
        "Feature tables (.parquet, .csv, .csv.gz), or recordings that MNE opens (.edf, .bdf, "
        ".vhdr, .set, .fif), each of one subject.",
    ),
    output="Where to write the predictions, a CSV file.",
    pages="Folder for a page about every subject; none by default.",
)
def predict(
    model: AnyPath,
    sources: AnyPaths,
    output: AnyPath = Path("predictions.csv"),
    pages: AnyPath | None = None,
    on_error: OnError = "stop",
    jobs: int = 1,
    force: bool = False,
) -> pd.DataFrame:
    """Predict subjects from their recordings or from tables, whatever electrodes they have.

    For example::

        idfsmec predict model.skops new.edf
        idfsmec predict model.skops table.parquet -o predictions.csv --pages pages

    Features are computed with the model's own settings. Missing channels are
    imputed, unknown ones ignored, and whoever is unlike the training data is
    pointed out. Nothing is random: there is no --seed. For research: it makes no
    diagnosis.
    """
    import pandas as pd

    from idfsmec._files import check_writable
    from idfsmec.prediction import Predictions, load_model
    from idfsmec.report import write_subject_pages

    output = options.check_output(output, ".csv", force)
    if pages is not None:
        check_writable(Path(pages) / "index.html")
    with warnings_as_lines():
        loaded = load_model(model)
        parts = [
            _predict(loaded, *named)
            for named in _tables(loaded, options.paths(sources), jobs, on_error == "skip")
        ]
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    if pages is not None:
        whole = Predictions(tuple(s for part in parts for s in part.subjects), notes)
        write_subject_pages(loaded, whole, Path(pages), overwrite=force)
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    options.write_csv(frame, output)
    _print_predictions(frame)
    for note in notes:
        remark(f"note: {note}")
    say(f"Predictions of {len(frame)} subjects written to {output}.")
    if pages is not None:
        say(f"Pages written to {pages}.")
    return frame


def _tables(
    model: Model, sources: Sequence[Path], jobs: int, skip: bool
) -> list[tuple[str, FeatureTable]]:
    """Return tables as they are, and one of all recordings, each with its name for messages."""
    from idfsmec._parallel import count_jobs
    from idfsmec.prediction import extract_subjects
    from idfsmec.table import FeatureTable

    tables = [path for path in sources if path.name.lower().endswith(_TABLES)]
    files = [path for path in sources if path not in tables]
    named = [(str(path), FeatureTable.read(path)) for path in tables]
    if files:
        with shown("recordings", describe=lambda outcome: Path(outcome.source).name) as progress:
            extracted = extract_subjects(
                model,
                files,
                n_jobs=count_jobs(jobs),
                on_error="skip" if skip else "raise",
                progress=progress,
            )
        named.append((", ".join(map(str, files[:3])), extracted))
    return named


def _predict(model: Model, name: str, table: FeatureTable) -> Predictions:
    from idfsmec.prediction import predict_subjects

    try:
        return predict_subjects(model, table)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _print_predictions(frame: pd.DataFrame) -> None:
    rows = []
    for row in frame.head(N_SHOWN).to_dict("records"):
        known, bounded = row["epochs"] > 0, row["low"] == row["low"]
        rows.append(
            [
                row["subject"],
                row["predicted"] if known else "",
                f"{row['probability']:.0%}" if known else "",
                f"{row['low']:.0%} to {row['high']:.0%}" if bounded else "",
                f"{row['channels present']:.0%}",
                row["warnings"],
            ]
        )
    headings = {"subject": "left", "predicted": "left"}
    headings |= dict.fromkeys(("probability", "95 % CI", "channels"), "right")
    title = f"{min(N_SHOWN, len(frame))} of {len(frame)} subjects"
    show_rows(title, headings | {"warnings": "left"}, rows)
