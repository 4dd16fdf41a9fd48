"""``idfsmec predict``: a model and tables or recordings to probabilities of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_verdict, remark, say, say_page, show_frame, shown_recordings
from idfsmec.cli.options import AnyPath, AnyPaths, OnError
from idfsmec.errors import listing

if TYPE_CHECKING:
    import pandas as pd

    from idfsmec.prediction import Model
    from idfsmec.table import FeatureTable

N_SHOWN = 20
_TABLES = (".parquet", ".pq", ".csv", ".csv.gz")


@command(
    model=options.argument("MODEL", "Model of `idfsmec train`: .skops."),
    sources=options.argument(
        "TABLE|RECORDING",
        "Feature tables (.parquet, .csv, .csv.gz, folders of Parquet files), or recordings that "
        "MNE opens (.edf, .bdf, .vhdr, .set, .fif), each of one participant, or folders of them.",
    ),
    output="Where to write the predictions, a CSV file.",
    pages="Folder for a page about each participant. By default none is written.",
    allow_unusual="Give probabilities also for participants far outside the training data.",
)
def predict(
    model: AnyPath,
    sources: AnyPaths,
    output: AnyPath = Path("predictions.csv"),
    pages: AnyPath | None = None,
    allow_unusual: bool = False,
    on_error: OnError = "stop",
    force: bool = False,
) -> pd.DataFrame:
    """Predict the diagnosis or score of participants from recordings or tables, for research.

    For example::

        idfsmec predict model.skops new.edf
        idfsmec predict model.skops table.parquet -o predictions.csv --pages pages

    Features are computed with the settings of the model. Missing channels are
    imputed, and channels that the model does not have are ignored. Participants
    unlike the training data get a warning, and no probability if they are far
    outside. For many recordings make a table first: idfsmec features has --jobs.
    For research; not a medical device.
    """
    from idfsmec._files import check_writable, write_csv
    from idfsmec.prediction import load_model, predict_subjects

    paths = [file for path in options.paths(sources) for file in _files_of(path)]
    output = options.check_output(output, ".csv", force, [Path(model), *paths])
    if pages is not None:
        check_writable(Path(pages) / "index.html")
    loaded = load_model(model)
    named, parts = _read(loaded, paths, options.failing(on_error)), []
    for name, table in named:
        with options.naming(name):
            parts.append(predict_subjects(loaded, table, allow_unusual=allow_unusual))
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    subjects = tuple(subject for part in parts for subject in part.subjects)
    whole = replace(parts[0], subjects=subjects, notes=notes)
    if pages is not None:
        from idfsmec.report import write_subject_pages

        write_subject_pages(loaded, whole, Path(pages), overwrite=force)
    frame = whole.frame
    write_csv(output, frame)
    _print_predictions(frame)
    print_verdict("the model's training data", loaded.audit)
    for note in notes:
        remark(f"note: {note}")
    if known := next((name for name, table in named if _has_labels(loaded, table)), None):
        remark(f"note: {known} has labels; to measure the model: idfsmec validate {model} {known}")
    say(f"predictions of {len(frame)} participants:", output)
    if pages is not None:
        say_page("pages", pages)
    return frame


def _read(model: Model, sources: Sequence[Path], on_error: str) -> list[tuple[str, FeatureTable]]:
    """Read each table, and compute one of all recordings together."""
    from idfsmec.prediction import extract_subjects
    from idfsmec.table import FeatureTable

    tables = [path for path in sources if _is_table(path)]
    files = [path for path in sources if path not in tables]
    named = [(str(path), FeatureTable.read(path)) for path in tables]
    if files:
        with shown_recordings() as progress:
            extracted = extract_subjects(model, files, on_error=on_error, progress=progress)
        named.append((", ".join(map(str, files[:3])), extracted))
    return named


def _has_labels(model: Model, table: FeatureTable) -> bool:
    """Return whether a table has what the model predicts."""
    if model.score is not None and not model.grades:
        return table.rows is not None and model.score in table.rows
    labels = {str(label) for label in table.y}
    return len(labels) > 1 and labels <= set(map(str, model.grades or model.classes))


def _files_of(path: Path) -> list[Path]:
    """Return the recordings in a folder; other sources, such as a folder that MNE opens, stay."""
    from idfsmec.recordings.sources import recording_files

    found = recording_files(path) if path.is_dir() and not path.suffix else []
    return [path] if _is_table(path) or not found else found


def _is_table(path: Path) -> bool:
    """Return whether this is a table; recordings may be folders, too."""
    return path.name.lower().endswith(_TABLES) or any(path.glob("*.parquet"))


def _print_predictions(frame: pd.DataFrame) -> None:
    first = frame.head(N_SHOWN)
    seen = first["predicted"].notna()
    cells = first[["subject"]].assign(predicted=first["predicted"].where(seen, ""))
    shares = first.filter(like="probability of ")
    interval, written = "95 % CI", "{:.0%} to {:.0%}"
    if shares.empty:
        cells["predicted"] = first["predicted"].map("{:.1f}".format).where(seen, "")
        interval, written = "interval of 95 in 100", "{:.1f} to {:.1f}"
        if "nearest grade" in first:
            cells["nearest grade"] = first["nearest grade"]
    else:
        name = shares.columns[0] if shares.shape[1] == 1 else "probability"
        cells[name] = shares.max(axis=1).map("{:.0%}".format).where(seen, "")
    limits = zip(first["low"], first["high"], strict=True)
    cells[interval] = [written.format(*ends) if ends[0] == ends[0] else "" for ends in limits]
    cells["channels"] = first["channels present"].map("{:.0%}".format)
    cells["warning"] = first["warnings"].map(lambda text: "yes" if text else "")
    show_frame(f"{len(first)} of {len(frame)} participants", cells)
    for text, same in frame[frame["warnings"] != ""].groupby("warnings", sort=False)["subject"]:
        remark(f"warning: {listing(same)}: {text}", "yellow")
