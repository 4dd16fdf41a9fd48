"""``idfsmec select``: rank the features and channels of a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from idfsmec._spreadsheet import neutralise
from idfsmec._table_io import replacing
from idfsmec.cli._app import command, console, error_console
from idfsmec.errors import InputError
from idfsmec.selection import IDFSMEC, IDFSMECCV, channel_frame, ranking_frame
from idfsmec.table import FeatureTable

SHOWN = 10

TablePath = Annotated[
    Path, typer.Argument(metavar="TABLE", help="Feature table: .parquet, .csv or .csv.gz.")
]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Where to write the ranking, a CSV file.")
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
Force = Annotated[bool, typer.Option("--force", help="Replace an existing ranking.")]


@command("select")
def select(
    table: TablePath,
    output: Output = Path("ranking.csv"),
    k: Count = None,
    lam: Lam = 1.0,
    gamma: Gamma = 2.0,
    tune: Tune = False,
    force: Force = False,
) -> None:
    """Rank the features and channels of a table in which channels may be missing.

    Example: [bold]idfsmec select table.parquet -o ranking.csv --k 20[/bold]
    """
    if output.exists() and not force:
        raise InputError(f"{output} exists; give another name with -o, or --force to replace it.")
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")
    selector = _fit(table, k, lam, gamma, tune)
    features, channels = ranking_frame(selector), channel_frame(selector)
    with replacing(output) as (beside,):
        neutralise(features).to_csv(beside, index=False)
    _show(features, channels)
    console.print(
        f"Ranking of {len(features)} features written to {output}.", markup=False, soft_wrap=True
    )


def _fit(path: Path, k: int | None, lam: float, gamma: float, tune: bool) -> IDFSMEC:
    """Fit on a table; what the fit warns about is said in plain lines."""
    table = FeatureTable.read(path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            if tune:
                grid: dict[str, Any] = {} if k is None else {"n_features": [k]}
                with console.status("choosing lam, gamma and the number of features"):
                    search = IDFSMECCV(table.column_channels, **grid)
                    search.fit(table.X, table.y, groups=table.subjects)
                best = ", ".join(
                    f"{name} = {value}" for name, value in search.best_params_.items()
                )
                console.print(
                    f"Inner folds chose {best} (balanced accuracy {search.best_score_:.3f}, "
                    "optimistic: the best of the grid)."
                )
                selector = search.selector_
            else:
                selector = IDFSMEC(
                    table.column_channels, n_features_to_select=k, lam=lam, gamma=gamma
                ).fit(table.X, table.y)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error
    for warning in said:
        error_console.print(f"warning: {warning.message}", style="yellow", markup=False)
    return selector


def _show(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    best = Table(title=f"Best {min(SHOWN, len(features))} of {len(features)} features")
    for heading in ("rank", "channel", "feature", "score"):
        best.add_column(heading, justify="right" if heading in ("rank", "score") else "left")
    for row in features.head(SHOWN).itertuples():
        best.add_row(
            str(row.rank), Text(str(row.channel)), Text(str(row.feature)), f"{row.score:.4g}"
        )
    console.print(best)
    heaviest = Table(title=f"Heaviest {min(SHOWN, len(channels))} of {len(channels)} channels")
    for heading in ("channel", "weight", "features kept"):
        heaviest.add_column(heading, justify="left" if heading == "channel" else "right")
    for row in channels.head(SHOWN).itertuples():
        heaviest.add_row(Text(str(row.channel)), f"{row.weight:.4f}", str(row.n_selected))
    console.print(heaviest)
