"""Experiments for any table: accuracy against missing channels, by method, filler, and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from idfsmec.evaluation.folds import most_splits
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.methods import COMPARED, find_methods, proposed_method
from idfsmec.evaluation.parts import CLASSIFIERS, FILLERS, Classifier, Filler
from idfsmec.evaluation.protocol import Protocol, protocol_from
from idfsmec.evaluation.results import Results
from idfsmec.evaluation.rivals import best_rival
from idfsmec.evaluation.run import run_experiment
from idfsmec.evaluation.tables import TableArrays, Tables, channel_counts_of, name_tables
from idfsmec.progress import Listener

#: Numbers of channels for which the cost is measured, where a table has so many.
CHANNEL_COUNTS = (3, 19, 64, 128)
#: Missing rates at which fillers are compared.
FILLING_RATES = (0.0, 0.1, 0.3, 0.5, 0.7)


def accuracy(
    tables: Tables,
    out: str | Path,
    *,
    methods: Iterable[str | Method] | None = None,
    filler: str | Filler | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Compare methods at rising shares of missing channels.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        What to compare on.
    out : path
        Folder for the results. A folder with results is gone on with: what it holds is not
        computed again, what a change of options touches is.
    methods : iterable of str or Method, optional
        By default all methods that can run here, and the sanity lines.
    filler : str or Filler, optional
        What fills gaps for all of them, in place of each one's own; see ``FILLERS``.
    classifier : str or Classifier, optional
        What is scored on the selected features of all of them, likewise; see ``CLASSIFIERS``.
    protocol : Protocol or mapping, optional
        Folds, gaps, tuning and so on; a mapping has the options that differ from the default.
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core, which is also the default. Results do not
        depend on it.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, in place of processes here.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` at the start and after each unit.
    overwrite : bool, default=False
        Whether results of another table that had the same name may be replaced.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 4)), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    >>> X["O1__a"] += 3 * y
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(80) // 4))
    >>> protocol = {"rates": [0.0, 0.5], "n_splits": 4, "ks": [1, 2]}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = accuracy(table, out, methods=["IDFS-MEC"], protocol=protocol, n_jobs=1)
    >>> results.mean_scores().round(1)
    rate                        0.0  0.5
    table pattern method
    table random  IDFS-MEC      0.9  0.7
    """
    return run_experiment(
        "accuracy",
        tables,
        out,
        with_parts(find_methods(methods), filler, classifier),
        protocol_from(protocol, Protocol()),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
        overwrite=overwrite,
    )


def filling(
    tables: Tables,
    out: str | Path,
    *,
    methods: Iterable[str | Method] | None = None,
    fillers: Iterable[str | Filler] | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Compare what fills gaps: a few methods with every filler, at 0 to 70 % missing channels.

    Parameters are those of :func:`accuracy`. By default the proposed method, its best rival
    (:func:`~idfsmec.evaluation.rivals.best_rival`: by training people alone, at 30 % missing) and
    all features are filled in all ways of ``FILLERS`` that are possible: splines on the scalp need
    to know where channels are. The column ``filler`` of the scores says which one it was.
    """
    named = name_tables(tables)
    planned = protocol_from(protocol, Protocol(rates=FILLING_RATES))
    wanted = [FILLERS.find(one) for one in (FILLERS if fillers is None else fillers)]
    if fillers is None and any(one.needs_positions for one in wanted):
        placed = all(
            TableArrays.of(name, table, True).has_positions for name, table in named.items()
        )
        wanted = [one for one in wanted if placed or not one.needs_positions]
    if methods is None:
        known = with_parts(find_methods(), None, classifier)
        rival = best_rival(named, known, planned, n_jobs=n_jobs, progress=progress)
        line = [one for one in known if one.all_features and not one.classifying.takes_gaps][:1]
        found = [proposed_method(known), rival, *line]
        compared = [one for one in found if one is not None]
    else:
        compared = with_parts(find_methods(methods), None, classifier)
    return run_experiment(
        "filling",
        named,
        out,
        [replace(method, filler=one) for method in compared for one in wanted],
        planned,
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
        overwrite=overwrite,
    )


def with_parts(
    methods: Iterable[Method],
    filler: str | Filler | None = None,
    classifier: str | Classifier | None = None,
) -> list[Method]:
    """Give the methods with one filler and one classifier for all; None leaves each its own.

    Examples
    --------
    >>> found = with_parts(find_methods(["mRMR", "ANOVA F"]), "neighbours", "ridge")
    >>> [(one.filling.name, one.classifying.name) for one in found]
    [('neighbours', 'ridge'), ('neighbours', 'ridge')]
    """
    parts: dict[str, Any] = {}
    if filler is not None:
        parts["filler"] = FILLERS.find(filler)
    if classifier is not None:
        parts["classifier"] = CLASSIFIERS.find(classifier)
    return [replace(one, **parts) for one in methods]


def cost(
    tables: Tables,
    out: str | Path,
    *,
    methods: Iterable[str | Method] | None = None,
    channel_counts: Sequence[int] | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Measure the seconds of a selection, per method and number of channels.

    One unit runs after the other in this process, with one thread, each method with its
    default parameters. Parameters are those of :func:`accuracy`, and ``channel_counts``: by
    default 3, 19, 64 and 128 as far as a table has more, and all its channels. Channels are
    taken evenly over the table; the column ``n_channels`` of the scores says how many.
    """
    named = name_tables(tables)
    fewest = min(most_splits(table.y, table.subjects) for table in named.values())
    usual = Protocol(rates=(0.3,), n_splits=max(2, min(5, fewest)), ks=(50,))
    compared = [family for family in COMPARED if family != "sanity"]
    return run_experiment(
        "cost",
        named,
        out,
        [replace(one, settings=({},)) for one in find_methods(methods, families=compared)],
        protocol_from(protocol, usual).with_changes(tuning="time"),
        n_jobs=1,
        progress=progress,
        overwrite=overwrite,
        channel_counts=channel_counts_of(named, channel_counts, CHANNEL_COUNTS),
    )
