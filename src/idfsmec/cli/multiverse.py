"""``idfsmec multiverse``: a study under many specifications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec._files import check_writable
from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import say, show_frame, shown
from idfsmec.cli.options import AnyPath, Names, OnError

if TYPE_CHECKING:
    from idfsmec.multiverse import Multiverse


@command(
    source=options.argument(
        "MANIFEST.csv|BIDS_ROOT|DATA_SET",
        "As for idfsmec features: a CSV file with the columns path, subject, label; a BIDS tree; "
        f"or {', '.join(options.DATA_SETS)} with --data.",
        "source",
    ),
    config="TOML file with the settings of the default specification and the choices, as idfsmec "
    "features --write-config writes it.",
    specifications="Number of specifications: the default, each choice changed alone, and random "
    "combinations.",
    condition="Keep recordings of these conditions, separated by commas.",
)
@options.clustered
def multiverse(
    source: str,
    out: AnyPath = Path("multiverse"),
    config: AnyPath | None = None,
    specifications: int = 32,
    target: str | None = None,
    data: AnyPath | None = None,
    labels: str | None = None,
    condition: Names | None = None,
    on_error: OnError = "stop",
    jobs: int = 1,
    dask: str | None = None,
    force: bool = False,
) -> Multiverse:
    """Test whether a result survives other reasonable choices of signal processing.

    For example::

        idfsmec multiverse study.csv --out multiverse --jobs 2
        idfsmec multiverse study.csv --specifications 64 --target bdi
        idfsmec multiverse study.csv --config settings.toml

    Runs the study under many specifications (reference, pass-band, epochs,
    detection, bad channels, line noise, logarithms, bands): AUC, audit and effects
    of each, and one test of all together. Writes multiverse.html, multiverse.json
    and CSV files into OUT. OUT/parts keeps features of finished recordings: the same
    command resumes after a stop, and more specifications compute only these.
    """
    from idfsmec.features import FeatureSettings
    from idfsmec.features.settings import read_choices
    from idfsmec.multiverse import make_specifications, run_multiverse
    from idfsmec.report.multiverse import FILES, describe_multiverse, write_multiverse
    from idfsmec.report.style import refuse_existing

    out = Path(out)
    refuse_existing(force, *(out / name for name in FILES))
    check_writable(out / "parts")
    settings = FeatureSettings() if config is None else FeatureSettings.from_toml(config)
    choices = None if config is None else read_choices(config)
    make_specifications(settings, choices, specifications)  # for what it refuses
    asked = {"data": data, "labels": labels}
    recordings = options.checked_recordings(str(source), on_error, condition, **asked)
    with shown() as progress:
        outcome = run_multiverse(
            recordings,
            settings,
            choices=choices,
            n_specifications=specifications,
            target=target,
            n_jobs=jobs,
            on_error=options.failing(on_error),
            parts=out / "parts",
            progress=progress,
        )
    page = write_multiverse(outcome, out, name=Path(source).name.split(".")[0], overwrite=True)
    names = {"share_direction": "kept", "share_significant": "significant", "p_median": "joint p"}
    leading = outcome.features.head(10).rename(columns=names)
    shown_columns = ["feature", "direction", "effect", *names.values()]
    show_frame("Leading features over all specifications", leading[shown_columns].round(3))
    for sentence in describe_multiverse(outcome):
        say(sentence)
    say("page:", page)
    return outcome
