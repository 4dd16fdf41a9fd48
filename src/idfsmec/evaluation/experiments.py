"""The experiments: accuracy against gaps, ablation, sensitivity, cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from idfsmec.errors import InputError
from idfsmec.evaluation._run import Tables, run_experiment
from idfsmec.evaluation.folds import most_splits
from idfsmec.evaluation.methods import (
    ABLATIONS,
    PAPER_GAMMAS,
    PAPER_LAMS,
    Contestant,
    find_contestants,
    idfsmec_contestant,
)
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.results import Results
from idfsmec.table import FeatureTable

#: Numbers of channels for which the cost is measured, where a table has so many.
CHANNEL_COUNTS = (3, 19, 64, 128)
_WITH_GAPS = (0.1, 0.2, 0.3, 0.4, 0.5)


def accuracy(
    tables: Tables,
    out: str | Path,
    *,
    methods: Iterable[str | Contestant] | None = None,
    protocol: Protocol | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: bool = True,
) -> Results:
    """Compare methods at rising shares of missing channels.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        What to compare on.
    out : path
        Folder for the results. A folder with results is gone on with: what it holds is not
        computed again, what a change of options touches is.
    methods : iterable of str or Contestant, optional
        By default all methods that can run here, and the sanity lines.
    protocol : Protocol, optional
        Folds, gaps, tuning and so on.
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core, which is also the default. Results do not
        depend on it.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here.
    progress : bool
        Whether progress goes to standard error.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 4)), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    >>> X["O1__a"] += 3 * y
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(80) // 4))
    >>> protocol = Protocol(rates=[0.0, 0.5], n_splits=4, ks=[1, 2])
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = accuracy(table, out, methods=["IDFS-MEC"], protocol=protocol, n_jobs=1,
    ...                        progress=False)
    >>> results.mean_scores().round(1)
    rate                        0.0  0.5
    table pattern method
    table random  IDFS-MEC      0.9  0.7
    """
    return run_experiment(
        "accuracy",
        tables,
        out,
        find_contestants(methods),
        protocol or Protocol(),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
    )


def ablation(
    tables: Tables,
    out: str | Path,
    *,
    protocol: Protocol | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: bool = True,
) -> Results:
    """Take parts out of IDFS-MEC: redundancy, channel weights, indicator, correction.

    Parameters are those of :func:`accuracy`; by default rates are 10 to 50 %. The full method
    is the same unit as in :func:`accuracy` and computed once.
    """
    return run_experiment(
        "ablation",
        tables,
        out,
        [idfsmec_contestant(name) for name in ABLATIONS],
        protocol or Protocol(rates=_WITH_GAPS),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
    )


def sensitivity(
    tables: Tables,
    out: str | Path,
    *,
    lams: Sequence[float] = PAPER_LAMS,
    gammas: Sequence[float] = PAPER_GAMMAS,
    protocol: Protocol | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: bool = True,
) -> Results:
    """Score IDFS-MEC on a whole grid of lambda and gamma, without choosing.

    Parameters are those of :func:`accuracy`, and the grid (the paper's by default). By default
    there is one missing rate, 30 %.
    """
    protocol = (protocol or Protocol(rates=(0.3,))).with_changes(tuning="grid")
    return run_experiment(
        "sensitivity",
        tables,
        out,
        [idfsmec_contestant(lams=lams, gammas=gammas)],
        protocol,
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
    )


def cost(
    tables: Tables,
    out: str | Path,
    *,
    methods: Iterable[str | Contestant] | None = None,
    channel_counts: Sequence[int] | None = None,
    protocol: Protocol | None = None,
    progress: bool = True,
) -> Results:
    """Measure the seconds of a selection, per method and number of channels.

    One unit runs after the other in this process, with one thread, each method with its
    default parameters. Parameters are those of :func:`accuracy`, and ``channel_counts``: by
    default 3, 19, 64 and 128 as far as a table has more, and all its channels. Channels are
    taken evenly over the table.
    """
    named = {"table": tables} if isinstance(tables, FeatureTable) else dict(tables)
    fewest = min(most_splits(table.y, table.subjects) for table in named.values())
    protocol = protocol or Protocol(rates=(0.3,), n_splits=max(2, min(5, fewest)), ks=(50,))
    contestants = find_contestants(methods, sanity=False)
    return run_experiment(
        "cost",
        _with_fewer_channels(named, channel_counts),
        out,
        [replace(one, grid=({},)) for one in contestants],
        protocol.with_changes(tuning="time"),
        n_jobs=1,
        progress=progress,
    )


def _with_fewer_channels(
    tables: Mapping[str, FeatureTable], counts: Sequence[int] | None
) -> dict[str, FeatureTable]:
    found: dict[str, FeatureTable] = {}
    for name, table in tables.items():
        there = len(table.channels)
        wanted = counts or [*(c for c in CHANNEL_COUNTS if c < there), there]
        for count in wanted:
            if not 1 <= count <= there:
                raise InputError(f"table {name} has {there} channels, not {count}")
            if count == there:
                found[name] = table
                continue
            places = [round(i * (there - 1) / max(count - 1, 1)) for i in range(count)]
            found[f"{name}, {count} channels"] = table.select_channels(
                [table.channels[place] for place in places]
            )
    return found
