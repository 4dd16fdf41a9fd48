"""``idfsmec demo``: see the point without any data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import typer
from rich.table import Table

from idfsmec.cli._app import command, console
from idfsmec.selection import IDFSMEC

INFORMATIVE = ("F3__alpha", "Fz__theta")


def demo_table(seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """A small table in which two features tell the groups apart and channels are missing.

    Examples
    --------
    >>> X, y = demo_table()
    >>> X.shape, sorted(set(y))
    ((240, 35), ['HC', 'MDD'])
    """
    rng = np.random.default_rng(seed)
    channels = ("Fp1", "F3", "Fz", "F4", "Cz", "Pz", "O1")
    bands = ("delta", "theta", "alpha", "beta", "gamma")
    y = pd.Series(np.tile(["MDD", "HC"], 120), name="label")
    columns = [f"{channel}__{band}" for channel in channels for band in bands]
    shared = rng.normal(size=(240, 7, 1))  # what the bands of a channel have in common
    X = pd.DataFrame((shared + rng.normal(size=(240, 7, 5))).reshape(240, 35), columns=columns)
    for column in INFORMATIVE:
        X[column] += 1.2 * (y == "MDD")
    gone = rng.random((240, 7)) < np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.1, 0.3])
    X = X.mask(np.repeat(gone, 5, axis=1))
    return X, y


@command("demo")
def demo(
    seed: int = typer.Option(0, help="Seed of the generated table."),
) -> None:
    """Rank the features of a small generated table with missing channels.

    Example: [bold]idfsmec demo --seed 1[/bold]
    """
    X, y = demo_table(seed)
    selector = IDFSMEC(n_features_to_select=8).fit(X, y)
    share = X.isna().to_numpy().mean()
    console.print(
        f"{len(X)} samples, {len(selector.channel_names_)} channels, {X.shape[1]} features; "
        f"{share:.0%} of the values are missing. The groups differ in {' and '.join(INFORMATIVE)}."
    )
    shown = Table(title="Best features")
    for heading in ("rank", "channel", "feature", "score", "channel missing"):
        shown.add_column(heading, justify="right" if heading in ("rank", "score") else "left")
    for place in np.argsort(selector.ranking_)[:8]:
        channel, _, feature = X.columns[place].rpartition("__")
        shown.add_row(
            str(selector.ranking_[place]),
            channel,
            feature,
            f"{selector.scores_[place]:.4f}",
            f"{X.iloc[:, place].isna().mean():.0%}",
        )
    console.print(shown)
