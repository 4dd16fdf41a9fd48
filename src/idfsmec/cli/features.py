"""``idfsmec features``: recordings to a feature table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_error, say, say_next, shown_recordings
from idfsmec.cli.options import AnyPath, Names, OnError
from idfsmec.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from idfsmec.features import Extraction, FeatureSettings


@command(
    source=options.argument(
        "MANIFEST.csv|BIDS_ROOT|DATA_SET",
        "A CSV file with the columns path, subject, label; a BIDS tree or derivative; a folder of "
        "recordings; or "
        f"{', '.join(options.DATA_SETS)} with --data.",
        "source",
    ),
    output="Table to write: .parquet, .csv, .csv.gz, or without an ending a folder of Parquet "
    "files, for more rows than the memory holds.",
    config="TOML file with settings of signal processing, features and detection. Options "
    "override it.",
    write_config="Write all settings with their descriptions to this TOML file, and exit.",
    condition="Keep recordings of these conditions, separated by commas; for BIDS also task-rest, "
    "acq-EC or run-1.",
    processing="BIDS derivatives: files to read, by proc- or desc- entity. By default clean.",
    bad_channels="Bad channels are missing, or interpolated from the others by spherical splines "
    "or by fields of sources of minimum norm. By default missing.",
    epoch="Length of an epoch in seconds. By default 10.",
    features="Names of features, separated by commas, or a set: paper (default); log, with "
    "logarithms of powers and variance; extended, which is log and four more.",
)
@options.clustered
def features(
    source: str | None = None,
    output: AnyPath = Path("table.parquet"),
    config: AnyPath | None = None,
    write_config: AnyPath | None = None,
    data: AnyPath | None = None,
    labels: str | None = None,
    condition: Names | None = None,
    processing: str | None = None,
    bad_channels: Literal["missing", "interpolate", "interpolate-fields"] | None = None,
    epoch: float | None = None,
    features: Names | None = None,
    on_error: OnError = "stop",
    jobs: int = 1,
    dask: str | None = None,
    force: bool = False,
) -> Extraction | None:
    """Compute a feature table from recordings.

    For example::

        idfsmec features folder_of_recordings
        idfsmec features study.csv -o table.parquet --jobs 2
        idfsmec features my_bids_tree --labels group --condition task-rest
        idfsmec features pred-d003 --data ~/ds003478 --epoch 4 --features log
        idfsmec features --write-config settings.toml
        idfsmec features study.csv --config settings.toml

    Of a folder of recordings a manifest, study.csv, is drafted, in which labels
    are to be filled in. Bands, filters, line noise, reference, channels and the thresholds of the
    detection are settings of the --config file. Give the same command to resume
    after a stop.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.features.batch import check_table_path, extract_to_file
    from idfsmec.recordings.sources import check_source, draft_manifest, is_plain_folder

    names = options.split_names(features)
    settings = _settings(config, names, epoch=epoch, bad_channels=bad_channels)
    inputs = [Path(path) for path in (source, config) if path is not None]
    if write_config is not None:
        options.refuse_inputs(Path(write_config), inputs)
        say("settings:", settings.to_toml(write_config, overwrite=force))
        return None
    if source is None:
        raise InputError(
            "Give a manifest, a BIDS folder or a data set. See `idfsmec features --help`."
        )
    check_source(str(source))
    if str(source) not in options.DATA_SETS and is_plain_folder(source):
        _print_draft(draft_manifest(source, manifest := Path("study.csv")), manifest)
        return None
    output, n_jobs = check_table_path(output, overwrite=force), count_jobs(jobs)
    options.refuse_inputs(output, inputs)
    if dask is not None:
        # Workers are in another folder; the name of a data set stays.
        source = str(Path(source).absolute()) if Path(source).exists() else source
        data = data and Path(data).absolute()
    asked = {"data": data, "labels": labels, "processing": processing}
    recordings = options.checked_recordings(str(source), on_error, condition, **asked)
    with shown_recordings() as progress:
        extraction = extract_to_file(
            recordings,
            output,
            settings,
            n_jobs=n_jobs,
            on_error=options.failing(on_error),
            overwrite=force,
            progress=progress,
        )
    _print_extraction(extraction, output)
    return extraction


def _settings(config: AnyPath | None, names: list[str] | None, **changes: Any) -> FeatureSettings:
    """Return the settings of a file, or the defaults, with those that options change."""
    from idfsmec.features import FEATURE_SETS, FeatureSettings

    settings = FeatureSettings() if config is None else FeatureSettings.from_toml(config)
    if names is not None:
        is_set = len(names) == 1 and names[0] in FEATURE_SETS
        changes["features"] = names[0] if is_set else names
    return replace(settings, **{key: new for key, new in changes.items() if new is not None})


def _print_extraction(extraction: Extraction, output: Path) -> None:
    """Print what was computed and written."""
    from idfsmec.table.files import reasons_path

    say(extraction.summary())
    say("written    ", output)
    if output.is_file() and extraction.table.reasons is not None:
        say("           ", f"{reasons_path(output).name} (why each cell is empty)")
    if extraction.incomplete:
        print_error(
            f"{len(extraction.skipped)} recordings have no row in the table, because no epoch has "
            "any channel left; if this is expected, give --on-error skip"
        )
    say_next("audit", output)


def _print_draft(manifest: pd.DataFrame, path: Path) -> None:
    """Print what a drafted manifest holds, and what has to be filled in."""
    empty = int((manifest["label"] == "").sum())
    labels = ", ".join(f"{label}: {n}" for label, n in manifest["label"].value_counts().items())
    say(f"drafted {path}: {len(manifest)} recordings")
    say("subject: from the names of files; give the recordings of a participant one name")
    say("label: empty, fill it in" if empty else f"label: from the names of folders ({labels})")
    say("columns such as condition, site, age and sex may be added")
    say_next("features", path)
