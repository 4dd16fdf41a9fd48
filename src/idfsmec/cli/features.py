"""``idfsmec features``: recordings to a feature table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from idfsmec.cli._app import command
from idfsmec.cli._completion import feature_names, label_rules, one_of, sources
from idfsmec.cli._console import print_error, say, warnings_as_lines
from idfsmec.cli._options import AnyPath, DaskOption, JobsOption
from idfsmec.cli._progress import shown
from idfsmec.cli._run import warn_of_open_cluster
from idfsmec.cli._signal_options import (
    AllChannelsOption,
    ChannelsOption,
    FeatureSetOption,
    LimitsOption,
    MainsOption,
    NotchOption,
    Reference,
    ReferenceOption,
    chosen_features,
    parse_limits,
    signal_settings,
)
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.features import Extraction, RecordingOutcome
    from idfsmec.recordings import Recording


class OnError(StrEnum):
    """What to do about a recording that fails."""

    stop = "stop"
    skip = "skip"


Source = Annotated[
    str,
    typer.Argument(
        metavar="MANIFEST.csv|BIDS_ROOT|DATA_SET",
        help="A CSV file with the columns path, subject, label (optional: session, condition, "
        "bads); the root folder of a BIDS tree; or modma3, modma128, pred-d003 with --data.",
        autocompletion=sources,
    ),
]
Output = Annotated[
    AnyPath, typer.Option("-o", "--output", help="Table to write: .parquet, .csv or .csv.gz.")
]
Data = Annotated[
    AnyPath | None, typer.Option(help="Folder with your copy of a data set given by name.")
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="pred-d003: rule for the labels (bdi13, bdi-above-13, bdi-extremes, scid, "
        "scid-lifetime). BIDS: column of participants.tsv.",
        autocompletion=one_of(label_rules),
    ),
]
Task = Annotated[str | None, typer.Option(help="BIDS: keep the recordings of one task.")]
Condition = Annotated[
    list[str] | None,
    typer.Option(
        help="Keep recordings of a condition, repeatable: of the manifest's column, of BIDS "
        "(acq-EC, run-1), of pred-d003 (eyes-open, eyes-closed).",
        autocompletion=one_of(lambda: ["eyes-open", "eyes-closed"]),
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help="modma3, modma128: uV, nV, V, or the volts that one step is.",
        autocompletion=one_of(lambda: ["uV", "nV", "V"]),
    ),
]
Epoch = Annotated[float, typer.Option(help="Length of an epoch in seconds.")]
Overlap = Annotated[float, typer.Option(help="Seconds that epochs have in common.")]
Resample = Annotated[float, typer.Option(help="Sampling rate to convert to, in Hz.")]
BandPass = Annotated[tuple[float, float], typer.Option(help="Edges of the band-pass in Hz.")]
Bands = Annotated[
    list[str] | None,
    typer.Option(
        "--band", help="A band as NAME=LOWER-UPPER in Hz, repeatable; replaces the five."
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        help="A feature to compute, repeatable; default: all.",
        autocompletion=one_of(feature_names),
    ),
]
HocOrders = Annotated[int, typer.Option(help="Number of higher-order crossings.")]
Detect = Annotated[
    bool, typer.Option("--detect/--no-detect", help="Look for channels that carry no EEG.")
]
Amplitude = Annotated[
    float, typer.Option(help="Amplitude of ordinary EEG in uV, for the limits of the detection.")
]
KeepEmpty = Annotated[
    bool, typer.Option("--keep-empty", help="Keep epochs with no channel left, as rows of NaN.")
]
Duplicates = Annotated[
    bool,
    typer.Option("--allow-duplicates", help="Accept one recording given for several subjects."),
]
Derivative = Annotated[
    AnyPath | None,
    typer.Option(help="Write the table also as a BIDS derivative, into this folder."),
]
Failing = Annotated[OnError, typer.Option(help="Stop at a recording that fails, or skip it.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing table.")]


@command("features", has_failed=lambda extraction: extraction.incomplete)
def features(
    source: Source,
    output: Output = Path("table.parquet"),
    data: Data = None,
    labels: Labels = None,
    task: Task = None,
    condition: Condition = None,
    unit: Unit = None,
    epoch: Epoch = 10.0,
    overlap: Overlap = 0.0,
    resample: Resample = 250.0,
    band_pass: BandPass = (1.0, 45.0),
    mains: MainsOption = "auto",
    notch: NotchOption = None,
    channels: ChannelsOption = None,
    all_channels: AllChannelsOption = False,
    reference: ReferenceOption = Reference.keep,
    bands: Bands = None,
    feature_set: FeatureSetOption = None,
    feature: Features = None,
    hoc_orders: HocOrders = 1,
    detect: Detect = True,
    typical_amplitude: Amplitude = 10.0,
    limit: LimitsOption = None,
    keep_empty: KeepEmpty = False,
    allow_duplicates: Duplicates = False,
    bids_derivative: Derivative = None,
    on_error: Failing = OnError.stop,
    jobs: JobsOption = 1,
    dask: DaskOption = None,
    force: Force = False,
) -> Extraction:
    """Compute a feature table from recordings; an interrupted run goes on where it stopped.

    For example::

        idfsmec features study.csv -o table.parquet --jobs 2
        idfsmec features my_bids_tree --labels group --task rest
        idfsmec features pred-d003 --data ~/ds003478 --epoch 4 --band alpha=8-13
        idfsmec features /shared/study.csv --dask tcp://10.0.0.1:8786

    Nothing here is random, so there is no --seed.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.features import (
        DEFAULT_BANDS,
        FeatureSettings,
        check_derivative,
        check_output,
        extract_to_file,
    )

    output = check_output(output, overwrite=force)
    if bids_derivative is not None:
        check_derivative(bids_derivative, overwrite=force)
    settings = FeatureSettings(
        features=chosen_features(feature_set, feature),
        bands=dict(map(_parse_band, bands or ())) or DEFAULT_BANDS,
        hoc_orders=hoc_orders,
        resample=resample,
        band_pass=band_pass,
        **signal_settings(mains, notch, channels, all_channels, reference),
        epoch=epoch,
        overlap=overlap,
        detect=detect,
        typical_amplitude=typical_amplitude / 1e6,
        limits=parse_limits(limit),
        keep_empty=keep_empty,
    )
    about: dict[str, Any] = {"data": data, "labels": labels, "task": task}
    about |= {"condition": condition, "unit": unit, "absent_ok": on_error == OnError.skip}
    n_jobs = count_jobs(jobs)
    if dask is not None:
        warn_of_open_cluster(dask)
        source, about["data"] = _absolute(source), data and Path(data).absolute()
    recordings = _find(str(source), about, allow_duplicates)
    with shown("recordings", describe=_file_name) as progress:
        extraction = extract_to_file(
            recordings,
            output,
            settings,
            n_jobs=n_jobs,
            dask=dask,
            on_error="skip" if on_error == OnError.skip else "raise",
            overwrite=force,
            progress=progress,
        )
    _sum_up(extraction, output, bids_derivative)
    return extraction


def _sum_up(extraction: Extraction, output: Path, derivative: Path | str | None) -> None:
    """Say what was made and what is beside it; a derivative was looked at before."""
    from idfsmec.features import write_derivative
    from idfsmec.table.files import reasons_path

    say(extraction.summary())
    say(f"written     {output}")
    if extraction.table.reasons is not None:
        say(f"            {reasons_path(output).name} beside it says why each cell is empty")
    if derivative is not None:
        write_derivative(extraction.table, derivative, overwrite=True)
        say(f"            {derivative} as a BIDS derivative")
    if extraction.incomplete:
        print_error(
            f"{len(extraction.skipped)} recordings have no row in the table, because no epoch has "
            "any channel left; if that is as it should be, say --on-error skip"
        )


def _parse_band(text: str) -> tuple[str, tuple[float, float]]:
    name, _, edges = text.partition("=")
    lower, _, upper = edges.partition("-")
    try:
        return name.strip(), (float(lower), float(upper))
    except ValueError:
        raise InputError(f"--band {text}: write a band as NAME=LOWER-UPPER, alpha=8-13.") from None


def _find(source: str, about: dict[str, Any], allow_duplicates: bool) -> list[Recording]:
    from idfsmec.recordings import check_duplicates, find_recordings

    with warnings_as_lines(), shown("looking for recordings and duplicates"):
        found = find_recordings(source, **about)
        check_duplicates(found, allow=allow_duplicates)
    return found


def _absolute(source: str) -> str:
    """Paths as workers see them, who are in another folder; the name of a data set stays."""
    path = Path(source)
    return str(path.absolute()) if path.exists() else source


def _file_name(outcome: RecordingOutcome) -> str:
    return Path(outcome.source).name
