"""Transfer: methods trained on one table, or on all but one, and tested on each other one.

The tables are joined by the channels and features that they share. A table is then a site, and
what is trained on and tested on are rows of the joined table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._validation import derive_seed
from idfsmec.errors import InputError, listing
from idfsmec.evaluation.protocol import Protocol, protocol_from
from idfsmec.evaluation.results import TRANSFER, Results
from idfsmec.evaluation.run import ResultsFolder, Tables, name_tables, run_experiment
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tasks import Task, describe_method, make_task, score_fold
from idfsmec.metrics import auc, fixed_auc, fold_interval, score_predictions
from idfsmec.prediction.folds import FEWEST_SCORES, Fold, make_folds, most_splits
from idfsmec.prediction.methods import Classifier, Imputer, Method, find_methods, with_parts
from idfsmec.prediction.samples import FoldSamples, Samples, TrainingSamples
from idfsmec.selection.effects import fisher_interval
from idfsmec.table import FeatureTable
from idfsmec.table.columns import join_column, split_column
from idfsmec.table.positions import standard_name

#: Trained on all tables but the one that is tested on.
OTHERS = "all others"
# Participants of each class that a table needs: folds hold some out, inner folds need two.
_FEWEST = 4


def transfer(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    methods: Iterable[str | Method] | None = None,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """Train each method on each table, and on all but one, and test it on each other one.

    Methods are tuned by inner folds of what they are trained on. Tables are taken as they were
    recorded, with the channels and features that they share. With ``harmonize`` every pair is
    also computed with the tables brought to one location and scale, the new one without labels.
    Participants whose names are in several tables, with equal labels, are one: they are held out
    from training by folds.

    Parameters
    ----------
    tables : mapping of name to FeatureTable
        Two or more, with the same two classes or the same score; for example the conditions of
        one study.
    out, methods, imputer, classifier, protocol, **options
        As in :func:`accuracy`. ``rates``, ``patterns``, ``tuning`` and ``folds`` of the protocol
        do not apply.

    Returns
    -------
    Results
        :func:`transfer_matrix` summarises them.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> def make_clinic(effect):
    ...     y = np.repeat(["HC", "MDD"], 15)
    ...     X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["F3__a", "Pz__a"])
    ...     X["F3__a"] += effect * (y == "MDD")
    ...     return FeatureTable(X, y, [f"{rng.integers(10**9)}" for _ in range(30)])
    >>> tables = {"Lund": make_clinic(3), "Oslo": make_clinic(3)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = transfer(tables, folder, methods=["ANOVA F"], protocol={"n_splits": 3})
    >>> matrix = transfer_matrix(results)
    >>> bool((matrix["auc"] > 0.9).all()), matrix["fixed"].tolist()
    (True, [False, True, True, False])

    As a figure:

    >>> from idfsmec.report import plot_transfer
    >>> ax = plot_transfer(results)
    """
    named = name_tables(tables)
    joined = join_tables(named)
    # Folds are by subject also where tables are sites; scores are those of subjects.
    planned = protocol_from(protocol, Protocol()).with_changes(
        folds="subject",
        missing_in="everywhere",
        tuning="nested",
        rates=(0.0,),
        patterns=("random",),
        metric="subject_roc_auc",
    )
    options |= {"plan": partial(_plan, names=tuple(named)), "also": {"tables": list(named)}}
    return run_experiment(
        TRANSFER,
        {" + ".join(named): joined},
        out,
        with_parts(find_methods(methods), imputer, classifier),
        planned,
        rank=False,
        **options,
    )


def split_tables(tables: Mapping[str, FeatureTable], by: str) -> dict[str, FeatureTable]:
    """Cut tables by a column of their rows, such as the condition, or by site."""
    parts: dict[str, FeatureTable] = {}
    for name, table in tables.items():
        rows = pd.DataFrame() if table.rows is None else table.rows
        known = table.sites if by == "site" else rows.get(by)
        if known is None or known.dropna().astype(str).nunique() < 2:
            columns = [*map(str, rows), *(["site"] if table.sites is not None else [])]
            raise InputError(
                f"table {name} cannot be cut by {by}: there must be two values in such a column, "
                f"and beside features there are {listing(columns) or 'none'}",
                argument="by",
            )
        values = known.astype(object).where(known.notna(), "").astype(str).to_numpy()
        for value in sorted(set(values) - {""}):
            part = table.take(np.flatnonzero(values == value))
            parts[value if len(tables) == 1 else f"{name} {value}"] = part
    return parts


def join_tables(tables: Mapping[str, FeatureTable]) -> FeatureTable:
    """Put tables below one another by the columns that all have; their names become sites."""
    if len(tables) < 2:
        raise InputError("transfer needs at least two tables, or several conditions of one")
    renamed = {name: _with_standard_names(table) for name, table in tables.items()}
    first, *others = renamed
    columns = [str(column) for column in renamed[first].X.columns]
    for name in others:
        known = set(renamed[name].X.columns)
        columns = [column for column in columns if column in known]
    if not columns:
        pairs = itertools.combinations(renamed, 2)
        apart = [pair for pair in pairs if not _shared(*(renamed[name] for name in pair))]
        what = " and ".join(apart[0]) if apart else listing(renamed)
        raise InputError(
            f"tables {what} share no column; {first} has channels "
            f"{listing(renamed[first].channels)} with {listing(renamed[first].features)}, and "
            f"{others[0]} {listing(renamed[others[0]].channels)} with "
            f"{listing(renamed[others[0]].features)}"
        )
    _check_labels(renamed)
    parts = list(renamed.values())
    labels = [table.y.groupby(table.subjects.astype(str).to_numpy()).first() for table in parts]
    is_one = pd.concat(labels).groupby(level=0).nunique().max() == 1  # else a name is two people
    subjects = [
        subject if is_one else f"{name}: {subject}"
        for name, table in renamed.items()
        for subject in table.subjects.astype(str)
    ]
    described = [table.rows for table in parts if table.rows is not None]
    rows = None
    if len(described) == len(parts):
        rows = pd.concat(described, join="inner", ignore_index=True)
    return FeatureTable(
        pd.concat([table.X[columns] for table in parts], ignore_index=True),
        pd.concat([table.y for table in parts], ignore_index=True),
        pd.Series(subjects),
        parts[0].target.info() if parts[0].target.is_numeric else {},
        sites=pd.Series(np.repeat(list(renamed), [len(table) for table in parts])),
        rows=rows,
    )


def _shared(first: FeatureTable, second: FeatureTable) -> bool:
    return bool(set(first.X.columns) & set(second.X.columns))


def _with_standard_names(table: FeatureTable) -> FeatureTable:
    """Name channels by their standard names, where no two of them have the same."""
    names = {channel: standard_name(channel) or channel for channel in table.channels}
    if len(set(names.values())) < len(names):
        return table
    split = [split_column(str(column)) for column in table.X.columns]
    columns = [join_column(names[channel], feature) for channel, feature in split]
    return replace(table, X=table.X.set_axis(columns, axis=1))


def _check_labels(tables: Mapping[str, FeatureTable]) -> None:
    targets = {name: table.target for name, table in tables.items()}
    if any(target.is_numeric for target in targets.values()):
        _check_scores(tables)
        return
    known = {name: sorted(table.y.astype(str).unique()) for name, table in tables.items()}
    first = next(iter(known))
    for name, labels in known.items():
        table = tables[name]
        if len(labels) != 2:
            raise InputError(f"transfer needs two classes, and {name} has {listing(labels)}")
        if labels != known[first]:
            raise InputError(
                f"the labels of {name} are {listing(labels)}, those of {first} "
                f"{listing(known[first])}: transfer needs the same two in all tables"
            )
        if (fewest := most_splits(table.y, table.subjects)) < _FEWEST:
            raise InputError(
                f"table {name} has {fewest} participants of a class, and transfer needs {_FEWEST}"
            )


def _check_scores(tables: Mapping[str, FeatureTable]) -> None:
    first, *others = tables
    target = tables[first].target
    for name in others:
        other = tables[name].target
        if (other.kind, other.name, other.order) != (target.kind, target.name, target.order):
            raise InputError(
                f"{first} has the {target.kind} {target.name}, {name} the {other.kind} "
                f"{other.name}: transfer needs the same in all tables"
            )
    for name, table in tables.items():
        if (n := table.subjects.nunique()) < 2 * FEWEST_SCORES:
            raise InputError(
                f"table {name} has {n} participants with a score, and transfer needs "
                f"{2 * FEWEST_SCORES}"
            )


def _plan(
    table: Samples, methods: Sequence[Method], protocol: Protocol, names: Sequence[str]
) -> Iterator[Task]:
    """Plan each method on each pair, those with the same training samples after each other."""
    described = [(method.resolve(), describe_method(method)) for method in methods]
    pairs: list[tuple[str, tuple[str, ...], str]] = [
        (name, (name,), tested) for name in names for tested in names
    ]
    if len(names) > 2:
        pairs += [
            (OTHERS, tuple(name for name in names if name != tested), tested) for tested in names
        ]
    ways = (False, True) if protocol.harmonize else (False,)
    for (trained, of, tested), harmonized in itertools.product(pairs, ways):
        if harmonized and trained == tested:
            continue  # one table has nothing to be brought to
        used = protocol if harmonized else protocol.with_changes(harmonize=False)
        for seed in protocol.seeds:
            folds = split_pair(table, of, tested, protocol.n_splits, seed)
            if len(folds) == 1 and seed != protocol.seeds[0]:
                break  # nothing is drawn
            for fold, (method, description) in itertools.product(range(len(folds)), described):
                where = {"sources": of, "target": tested, "seed": seed, "fold": fold}
                yield make_task(
                    table,
                    method,
                    partial(_compute, method=method, protocol=used, **where),
                    {
                        "pattern": "random",
                        "rate": 0.0,
                        "seed": seed,
                        "fold": fold,
                        "trained_on": trained,
                        "tested_on": tested,
                        "harmonized": harmonized,
                        "imputer": method.imputing.name,
                        "n_channels": len(table.channels),
                    },
                    protocol.metric,
                    kind=TRANSFER,
                    described=description,
                    protocol=used.per_task(),
                    **where,
                )


def split_pair(
    table: Samples, sources: Sequence[str], target: str, n_splits: int, seed: int
) -> list[Fold]:
    """Split a joined table into training rows of tables and test rows of another one.

    Where they have participants in common, folds hold these out.
    """
    if table.sites is None:
        raise InputError("tables to transfer between are sites of a joined one", argument="sites")
    trained, tested = np.isin(table.sites, sources), np.flatnonzero(table.sites == target)
    names = table.subject_names
    if not np.isin(names[tested], names[trained]).any():
        return [(np.flatnonzero(trained), tested)]
    y, subjects = table.y[tested], table.subjects[tested]
    how = {"numeric": table.numeric}
    n_splits = min(n_splits, most_splits(y, subjects, **how))
    folds = [tested[test] for _, test in make_folds(y, subjects, "subject", n_splits, seed, **how)]
    return [(np.flatnonzero(trained & ~np.isin(names, names[test])), test) for test in folds]


def _compute(
    table: Samples,
    *,
    method: Method,
    protocol: Protocol,
    sources: Sequence[str],
    target: str,
    seed: int,
    fold: int,
) -> TaskResult:
    train, test = split_pair(table, sources, target, protocol.n_splits, seed)[fold]
    samples = FoldSamples(TrainingSamples(table.take(train)), table.take(test), test)
    return score_fold(method, samples, protocol, derive_seed("method", seed, fold, method.name))


def transfer_matrix(results: Results) -> pd.DataFrame:
    """Summarise how methods do on tables that they were not trained on.

    Parameters
    ----------
    results : Results
        With the experiment :func:`transfer`.

    Returns
    -------
    DataFrame
        A row for each ``method``, ``harmonized``, ``trained_on`` and ``tested_on``: the AUC by
        participant (``auc``, ``low``, ``high``), ``n_subjects`` tested, and whether the model was
        ``fixed``. The CI of a fixed model is over participants; within a table, or
        between tables of the same participants, it is that of :func:`accuracy`, over folds. Of a
        score, Spearman's r (``spearman``) takes the place of the AUC.
    """
    keys = ["method", "harmonized", "trained_on", "tested_on"]
    metric = "spearman" if "predicted" in results.transfer else "auc"
    rows: list[dict[str, Any]] = []
    for key, pair in results.transfer.groupby(keys, sort=False):
        folds = [_score(fold, metric) for _, fold in pair.groupby(["seed", "fold"])]
        n, mean = pair["subject"].nunique(), folds[0]
        if fixed := len(folds) == 1:
            if metric == "spearman":
                low, high = map(float, fisher_interval(mean, n, mean**2 / 2))
            else:
                is_positive = pair["true"].to_numpy() == 1
                mean, low, high = fixed_auc(pair["probability"].to_numpy(), is_positive)
        else:
            of_repeats = np.reshape(folds, (pair["seed"].nunique(), -1))
            interval = fold_interval(of_repeats, n if metric == "auc" else None)
            mean, low, high = interval.mean, interval.low, interval.high
        known = dict(zip(keys, key, strict=True))
        rows.append(
            {**known, metric: mean, "low": low, "high": high, "n_subjects": n, "fixed": fixed}
        )
    return pd.DataFrame(rows, columns=[*keys, metric, "low", "high", "n_subjects", "fixed"])


def _score(fold: pd.DataFrame, metric: str) -> float:
    """Return the AUC or Spearman's r of participants; 0 where all predictions are equal."""
    true = fold["true"].to_numpy()
    if metric == "auc":
        both = 0 < true.mean() < 1
        return auc(fold["probability"].to_numpy(), true == 1) if both else float("nan")
    of = fold["predicted"].to_numpy(), true, np.arange(true.size), true, ["subject_spearman"]
    return float(np.nan_to_num(score_predictions(*of)["subject_spearman"]))
