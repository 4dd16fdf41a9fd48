"""How sure a ranking is: IDFS-MEC on random halves of the subjects of every table."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from scipy.stats import hypergeom

from idfsmec.errors import InputError
from idfsmec.evaluation._export import _write_json
from idfsmec.evaluation._fold_data import table_digest
from idfsmec.evaluation._overview import most_picked_setting
from idfsmec.evaluation._run import Tables, package_version
from idfsmec.evaluation.results import RESAMPLING, Results
from idfsmec.selection import IDFSMEC, StabilitySelector
from idfsmec.table import FeatureTable


def resampling(
    tables: Tables,
    out: str | Path,
    *,
    n_resamples: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> Results:
    """Ask random halves of the subjects whether they find the same features and channels.

    IDFS-MEC, with the setting that tuning picked most often, runs on both halves of
    ``n_resamples / 2`` random splits of the subjects. Nothing is predicted; all halves of a table
    are solved in one batch.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        As given to :func:`accuracy`.
    out : path
        The folder of its results; ``resampling.json`` is written there. What is in it already,
        for the same table and options, is not computed again.
    n_resamples : int, default=100
        Number of halves, even.
    seed : int, default=0
        Decides the halves.
    progress : bool
        Whether standard error says what is going on.

    Returns
    -------
    Results
        ``resampling`` has a dict per table; see :func:`resample_table`.

    See Also
    --------
    idfsmec.StabilitySelector : The same for any selector, without a folder.
    """
    if n_resamples < 2 or n_resamples % 2:
        raise InputError(
            f"the number of halves is {n_resamples}; give an even number from 2, such as 100"
        )
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    results = Results.read(out)
    found = dict(results.resampling)
    for name, table in named.items():
        rows = results.scores[
            (results.scores["experiment"] == "accuracy")
            & (results.scores["table"] == name)
            & (results.scores["method"] == "IDFS-MEC")
        ]
        setting = most_picked_setting(rows)
        key = [table_digest(table), package_version(), setting, n_resamples, seed]
        if found.get(name, {}).get("key") == key:
            continue
        with _told(progress, f"how sure: {n_resamples} halves of the subjects of {name}"):
            found[name] = {"key": key, **resample_table(table, setting, n_resamples, seed)}
    _write_json(results.folder / RESAMPLING, found)
    return Results.read(out)


def resample_table(
    table: FeatureTable, setting: Mapping[str, Any], n_resamples: int = 100, seed: int = 0
) -> dict[str, Any]:
    """Run IDFS-MEC on random halves of a table's subjects; the outcome as JSON can hold it.

    Returns
    -------
    dict
        ``frequency`` (column name to the share of halves that picked it), ``channel_frequency``
        (the same for channels: at least one feature picked), ``chance`` and ``channel_chance``
        (what picking blindly would give), ``n_resamples``, ``n_picked`` (on
        every half), ``threshold`` (the frequency from which ``max_false`` false picks are
        expected at most, under ``assumption``), ``expected_false``, and ``stability``
        (``value``, ``low``, ``high``, ``verdict``; None where it is undefined). Where halves
        cannot be made: ``reason`` alone.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(80) // 2 % 2
    >>> X = pd.DataFrame(rng.normal(size=(80, 4)), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    >>> X["O1__a"] += 3 * y
    >>> found = resample_table(FeatureTable(X, pd.Series(y), pd.Series(np.arange(80) // 2)), {})
    >>> found["frequency"]["O1__a"], found["channel_frequency"]["O1"]
    (1.0, 1.0)
    """
    selector = StabilitySelector(
        IDFSMEC(**setting),
        n_resamples=n_resamples,
        channels=table.column_channels,
        random_state=seed,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the folds have said it already
            selector.fit(table.X.to_numpy(), table.y.to_numpy(), groups=table.subjects.to_numpy())
    except (ValueError, ArithmeticError) as error:
        return {"reason": str(error)}
    names = [str(channel) for channel in selector.channel_names_]
    sizes = Counter(table.column_channels)
    n_features, n_picked = table.X.shape[1], int(selector.selections_[0].sum())
    stability = selector.stability_
    return {
        "n_resamples": n_resamples,
        "n_picked": n_picked,
        "frequency": dict(
            zip(map(str, table.X.columns), selector.frequencies_.tolist(), strict=True)
        ),
        "chance": n_picked / n_features,
        "channel_frequency": dict(zip(names, selector.channel_frequencies_.tolist(), strict=True)),
        "channel_chance": {
            name: 1.0 - float(hypergeom.pmf(0, n_features, sizes[name], n_picked))
            for name in names
        },
        "threshold": selector.threshold_,
        "max_false": selector.max_false,
        "expected_false": float(selector.expected_false_),
        "assumption": selector.assumption,
        "stability": None
        if math.isnan(stability.value)
        else {
            "value": stability.value,
            "low": stability.low,
            "high": stability.high,
            "verdict": stability.verdict,
        },
    }


@contextmanager
def _told(progress: bool, text: str) -> Iterator[None]:
    """A moving status on a terminal, one line elsewhere, nothing when nothing is wanted."""
    console = Console(file=sys.stderr)
    if progress and console.is_terminal:
        with console.status(text):
            yield
        return
    if progress:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    yield
