"""``idfsmec select``: rank the features and channels of a table, and say how sure that is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from idfsmec._files import neutralise, replacing
from idfsmec.cli._app import command, console, error_console
from idfsmec.cli._options import AnyPath, check_resamples, check_seed
from idfsmec.errors import InputError
from idfsmec.selection import (
    IDFSMEC,
    IDFSMECCV,
    StabilitySelector,
    channel_frame,
    ranking_frame,
)
from idfsmec.table import FeatureTable

SHOWN = 10

TablePath = Annotated[
    AnyPath, typer.Argument(metavar="TABLE", help="Feature table: .parquet, .csv or .csv.gz.")
]
Output = Annotated[
    AnyPath, typer.Option("-o", "--output", help="Where to write the ranking, a CSV file.")
]
Count = Annotated[
    int | None, typer.Option("--k", help="Features to keep; half of them when left out.")
]
Lam = Annotated[float, typer.Option(help="Price of redundancy within a channel, >= 0.")]
Gamma = Annotated[float, typer.Option(help="How evenly channels are weighted, > 1.")]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Choose lam, gamma and (without --k) the number of features by inner folds that "
        "keep subjects together.",
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        help="Say how sure the ranking is: run on so many random halves of the subjects (even, "
        "such as 100), and add the columns frequency and sure."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the halves; nothing else is random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing ranking.")]


@command("select")
def select(
    table: TablePath,
    output: Output = Path("ranking.csv"),
    k: Count = None,
    lam: Lam = 1.0,
    gamma: Gamma = 2.0,
    tune: Tune = False,
    resamples: Resamples = 0,
    seed: Seed = 0,
    force: Force = False,
) -> pd.DataFrame:
    """Rank the features and channels of a table in which channels may be missing.

    For example::

        idfsmec select table.parquet -o ranking.csv --k 20
        idfsmec select table.csv --tune --resamples 100

    All halves are solved in one batch by one process, so there is no --jobs.
    """
    path, output = Path(table), Path(output)
    if output.is_dir():
        raise InputError(f"{output} is a folder; give the name of a file with -o.")
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: a ranking is written as CSV; give a name that ends in .csv.")
    if output.exists() and not force:
        raise InputError(f"{output} exists; give another name with -o, or --force to replace it.")
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")
    check_resamples(resamples)
    check_seed(seed)
    read = FeatureTable.read(path)
    with _told(path):
        selector = _fit(read, k, lam, gamma, tune)
        features, channels = ranking_frame(selector), channel_frame(selector)
        sure = _resample(read, selector, resamples, seed) if resamples else None
    if sure is not None:
        features = _add_frequencies(features, read, sure)
    with replacing(output) as (beside,):
        neutralise(features).to_csv(beside, index=False)
    _show(features, channels)
    if sure is not None:
        _show_sureness(sure)
    console.print(
        f"Ranking of {len(features)} features written to {output}.", markup=False, soft_wrap=True
    )
    return features


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Name the file in errors, and say what is warned about in plain lines."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in said):
        error_console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)


def _fit(table: FeatureTable, k: int | None, lam: float, gamma: float, tune: bool) -> IDFSMEC:
    if not tune:
        with error_console.status("ranking"):
            return IDFSMEC(
                table.column_channels, n_features_to_select=k, lam=lam, gamma=gamma
            ).fit(table.X, table.y)
    grid: dict[str, Any] = {} if k is None else {"n_features": [k]}
    with error_console.status("choosing lam, gamma and the number of features"):
        search = IDFSMECCV(table.column_channels, **grid)
        search.fit(table.X, table.y, groups=table.subjects)
    best = ", ".join(f"{name} = {value}" for name, value in search.best_params_.items())
    console.print(
        f"Inner folds chose {best} (balanced accuracy {search.best_score_:.3f}, "
        "optimistic: the best of the grid).",
        highlight=False,
    )
    return search.selector_


def _resample(
    table: FeatureTable, selector: IDFSMEC, n_resamples: int, seed: int
) -> StabilitySelector:
    """Run the selector, with its settings, on halves of the subjects."""
    sure = StabilitySelector(
        IDFSMEC(lam=selector.lam, gamma=selector.gamma),
        channels=table.column_channels,
        n_resamples=n_resamples,
        random_state=seed,
    )
    with error_console.status(f"how sure: {n_resamples} halves of the subjects"):
        return sure.fit(table.X, table.y, groups=table.subjects)


def _add_frequencies(
    features: pd.DataFrame, table: FeatureTable, sure: StabilitySelector
) -> pd.DataFrame:
    columns = features["channel"].astype(str) + "__" + features["feature"].astype(str)
    places = pd.Index(table.X.columns).get_indexer(pd.Index(columns))
    return features.assign(frequency=sure.frequencies_[places], sure=sure.support_[places])


def _show(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    best = Table(title=f"Best {min(SHOWN, len(features))} of {len(features)} features")
    headings = ["rank", "channel", "feature", "score"]
    if "frequency" in features:
        headings += ["in halves", "sure"]
    for heading in headings:
        best.add_column(
            heading, justify="left" if heading in ("channel", "feature", "sure") else "right"
        )
    for line in features.head(SHOWN).to_dict("records"):
        cells: list[str | Text] = [
            str(line["rank"]),
            Text(str(line["channel"])),
            Text(str(line["feature"])),
            f"{line['score']:.4g}",
        ]
        if "frequency" in line:
            cells += [f"{100 * line['frequency']:.0f} %", "yes" if line["sure"] else ""]
        best.add_row(*cells)
    console.print(best)
    heaviest = Table(title=f"Heaviest {min(SHOWN, len(channels))} of {len(channels)} channels")
    for heading in ("channel", "weight", "features kept"):
        heaviest.add_column(heading, justify="left" if heading == "channel" else "right")
    for row in channels.head(SHOWN).itertuples():
        heaviest.add_row(Text(str(row.channel)), f"{row.weight:.4f}", str(row.n_selected))
    console.print(heaviest)


def _show_sureness(sure: StabilitySelector) -> None:
    picked, of = int(sure.selections_[0].sum()), sure.frequencies_.size
    found, stability = int(sure.support_.sum()), sure.stability_
    console.print(
        f"Of {of} features, the first {picked} were picked on each of {sure.n_resamples} random "
        f"halves of the subjects. Picked on at least {100 * sure.threshold_:.0f} % of them, and "
        f"called sure: {found}; at most {sure.max_false:g} is expected by chance. "
        f"Stability {stability.value:.2f} ({stability.low:.2f} to {stability.high:.2f}, "
        f"{stability.verdict}).",
        highlight=False,
        soft_wrap=True,
    )
