"""How few electrodes: AUC per subject against the number of electrodes.

Inside each training fold electrodes are ordered by IDFS-MEC's channel weights. The table is cut
down to the first 1, 2, 3, ... of them before anything is imputed, as a cap with so few electrodes
would record it, and all their features go through the pipeline of a method. Random sets and the
electrodes of headsets are scored on the same folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._validation import derive_seed
from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Protocol, protocol_from
from idfsmec.evaluation.results import Results
from idfsmec.evaluation.run import Tables, method_or_ours, run_experiment
from idfsmec.evaluation.statistics import compare_folds
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tasks import (
    Task,
    add_inner_folds,
    count_folds,
    load_fold,
    make_task,
    score_fold,
)
from idfsmec.metrics import corrected_interval
from idfsmec.prediction.methods import METHODS, Classifier, Imputer, Method, with_parts
from idfsmec.prediction.pipeline import FoldSamples, TableArrays, harmonize_samples
from idfsmec.selection.idfsmec import order_electrodes
from idfsmec.table.columns import split_column
from idfsmec.table.positions import standard_name

EXPERIMENT = "electrodes"
#: Numbers of electrodes that are compared, as far as a table has more.
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
#: AUC that fewer electrodes may lose and still be called not inferior.
MARGIN = 0.03
#: Electrodes of headsets (board definitions of BrainFlow, manuals of the vendors).
HEADSETS = {
    "Muse 2 or S": "TP9 AF7 AF8 TP10",
    "Emotiv EPOC X": "AF3 F7 F3 FC5 T7 P7 O1 O2 P8 T8 FC6 F4 F8 AF4",
    "OpenBCI Cyton": "Fp1 Fp2 C3 C4 P7 P8 O1 O2",
    "OpenBCI Cyton + Daisy": "Fp1 Fp2 C3 C4 P7 P8 O1 O2 F7 F8 F3 F4 T7 T8 P3 P4",
    "g.tec Unicorn": "Fz C3 Cz C4 Pz PO7 Oz PO8",
    "10-20 cap (DSI-24)": "Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2",
}
#: How electrodes are chosen, beside headsets: the method whose channel weights order them, chance.
CHANCE = "random"
_DRAWS = 2  # random sets of each size in each fold


def electrodes(
    tables: Tables,
    out: str | Path,
    *,
    counts: Sequence[int] | None = None,
    margin: float = MARGIN,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **how: Any,
) -> Results:
    """Measure how few electrodes do as well as all of them.

    Tables are taken as they were recorded: no channel is removed from samples, so ``rates``,
    ``patterns`` and ``tuning`` of the protocol do not apply. Folds are by subject, or by site.

    Parameters
    ----------
    counts : sequence of int, optional
        Numbers of electrodes; by default 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ... All electrodes are
        always compared.
    margin : float, default=0.03
        AUC that fewer electrodes may lose and still be called not inferior.
    tables, out, imputer, classifier, protocol, **how
        As in :func:`accuracy`.

    Returns
    -------
    Results
        The rows of ``scores`` with the experiment ``electrodes`` have the number of electrodes in
        ``n_channels``, and in ``method`` how they were chosen: IDFS-MEC, random, or the name of a
        headset. :func:`electrode_curve` summarises them.

    Examples
    --------
    >>> import tempfile
    >>> from idfsmec import FeatureTable
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 80)
    >>> names = ["F3__a", "Cz__a", "O1__a"]
    >>> X = pd.DataFrame(rng.normal(size=(160, 3)), columns=names)
    >>> X["Cz__a"] += 3 * y
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(160) // 4))
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = electrodes(table, out, protocol={"n_splits": 5}, n_jobs=1)
    >>> electrode_curve(results).smallest
    1
    """
    planned = as_recorded(protocol)
    if not 0 < margin < 0.5:
        raise InputError(f"margin is {margin}; give an AUC from above 0 to below 0.5")
    methods = with_parts([METHODS.find("all features")], imputer, classifier)
    methods.append(method_or_ours(None))
    plan, also = partial(_plan, counts=counts), {"margin": margin}
    return run_experiment(EXPERIMENT, tables, out, methods, planned, plan=plan, also=also, **how)


def as_recorded(protocol: Protocol | Mapping[str, Any] | None) -> Protocol:
    """Return the protocol of an experiment on tables without simulated missing channels."""
    planned = protocol_from(protocol, Protocol())
    return planned.with_changes(
        folds="site" if planned.folds == "site" else "subject",
        missing_in="everywhere",
        tuning="nested",
        rates=(0.0,),
        patterns=("random",),
        metric="subject_roc_auc",
    )


def _plan(
    table: TableArrays,
    methods: Sequence[Method],
    protocol: Protocol,
    counts: Sequence[int] | None,
) -> list[Task]:
    """Plan each way of choosing electrodes on each fold: the second method's, chance, headsets."""
    method, ours = methods
    every = len(table.channels)
    for count in counts or ():
        if not 1 <= count <= every:
            raise InputError(
                f"table {table.name} has {every} channels, not {count}", argument="counts"
            )
    numbers = sorted({*(c for c in counts or COUNTS if c < every), every})
    names = {standard_name(name) or name: code for code, name in enumerate(table.channels)}
    caps = {cap: text.split() for cap, text in HEADSETS.items()}
    fixed = {
        cap: [names[name] for name in wanted]
        for cap, wanted in caps.items()
        if all(name in names for name in wanted)
    }
    resolved, described, tasks = method.resolve(), method.describe(), []
    for seed in protocol.seeds:
        for fold in range(count_folds(table, protocol)):
            where: dict[str, Any] = {"seed": seed, "fold": fold}
            for choice in (ours.name, CHANCE, *fixed):
                sets: dict[str, Any] = {"numbers": numbers, "fixed": fixed.get(choice)}
                labelled = replace(resolved, name=choice)
                tasks.append(
                    make_task(
                        table,
                        labelled,
                        partial(_compute, method=labelled, protocol=protocol, **sets, **where),
                        {
                            "pattern": "random",
                            "rate": 0.0,
                            **where,
                            "imputer": method.imputing.name,
                            "n_channels": every,
                        },
                        protocol.metric,
                        kind=EXPERIMENT,
                        choice=choice,
                        described=described,
                        protocol=protocol.per_task(),
                        **sets,
                        **where,
                    )
                )
    return tasks


def _compute(
    table: TableArrays,
    *,
    method: Method,
    protocol: Protocol,
    numbers: Sequence[int],
    fixed: Sequence[int] | None,
    seed: int,
    fold: int,
) -> TaskResult:
    """Score sets of electrodes on one fold, chosen by its training samples alone."""
    whole = load_fold(table, protocol, "random", 0.0, seed, fold, with_inner=False)
    if fixed is not None:
        sets = [list(fixed)]
    elif method.name == CHANCE:
        rng = np.random.default_rng(derive_seed("electrodes", seed, fold))
        orders = [rng.permutation(len(table.channels)).tolist() for _ in range(_DRAWS)]
        sets = [order[:number] for number in numbers[:-1] for order in orders]
    else:
        (train,) = harmonize_samples(protocol.harmonize, whole.train)
        order = order_electrodes(train.X, train.y, train.channel_of, train.subject_names)
        sets = [order[:number].tolist() for number in numbers]
    result = TaskResult()
    for chosen in sets:
        (train, columns), (test, _) = (
            side.take_channels(chosen) for side in (whole.train, whole.test)
        )
        samples = FoldSamples(train, test, train, protocol.harmonize)
        samples = add_inner_folds(samples, protocol, derive_seed("inner folds", seed, fold))
        number = derive_seed("method", seed, fold, method.name)
        scored = score_fold(method, samples, protocol, number)
        # Columns in the order in which their electrodes were chosen.
        by_choice = np.argsort([chosen.index(v) for v in table.channel_of[columns]], kind="stable")
        result.rows += [row | {"order": len(result.rankings)} for row in scored.rows]
        result.seconds += scored.seconds
        result.rankings.append(columns[by_choice].tolist())
    if fixed is None and method.name != CHANCE:  # all sets are the first ones of one order
        result.rankings = result.rankings[-1:]
        result.rows = [row | {"order": 0} for row in result.rows]
    return result


@dataclass(frozen=True)
class ElectrodeCurve:
    """AUC per subject against the number of electrodes of one table.

    Attributes
    ----------
    curve : DataFrame
        A row for each ``choice`` (IDFS-MEC, random, headsets) and ``n_electrodes``: ``mean``,
        ``low``, ``high`` of the AUC, and ``loss``, ``loss_low``, ``loss_high``: all electrodes
        minus these, paired by fold; 95 % CI corrected for overlapping training sets.
    chosen : DataFrame
        Share of folds that chose an electrode (row) among the first ones (columns: numbers).
    margin : float
        AUC that fewer electrodes may lose and still be called not inferior.
    smallest : int or None
        Smallest number that is not inferior to all electrodes; None if no number is shown to be.
    sentence : str
        The answer in words.
    """

    curve: pd.DataFrame = field(repr=False)
    chosen: pd.DataFrame = field(repr=False)
    margin: float
    smallest: int | None
    sentence: str


def electrode_curve(results: Results, table: str | None = None) -> ElectrodeCurve:
    """Summarise how few electrodes do as well as all of them.

    Numbers are tested from the largest to the smallest, and the first one whose CI of the loss
    exceeds the margin ends the search. Testing in a fixed order needs no correction: the chance of
    calling any number not inferior that is inferior stays at 2.5 %.

    Parameters
    ----------
    results : Results
        With the experiment :func:`electrodes`.
    table : str, optional
        By default the first one.

    Returns
    -------
    ElectrodeCurve
    """
    scores = results.scores[results.scores["experiment"] == EXPERIMENT]
    names = list(dict.fromkeys(scores["table"]))
    if not names or (table is not None and table not in names):
        raise InputError(
            f"{results.folder} holds no curve over electrodes"
            f"{'' if table is None else f' of the table {table!r}'}; run idfsmec benchmark with "
            "--experiment electrodes"
        )
    rows = scores[scores["table"] == (table or names[0])].dropna(subset=["subject_roc_auc"])
    ours = next(name for name in rows["method"] if name not in (CHANCE, *HEADSETS))
    keys = ["method", "n_channels", "seed", "fold"]
    folds = rows.groupby(keys, sort=False)["subject_roc_auc"].mean()
    sizes = rows["n_train"].mean(), rows["n_test"].mean()
    every = int(rows["n_channels"].max())
    # By number, since a headset may have all electrodes of the table, as another choice.
    wide = folds.unstack(["method", "n_channels"])
    sets: list[Any] = list(wide.columns)
    wide = wide.set_axis(range(len(sets)), axis=1)
    paired = compare_folds(wide, sets.index((ours, every)), *sizes).set_index("method")
    records = []
    for code, (choice, number) in enumerate(sets):
        ci = corrected_interval(wide[code].dropna(), *sizes)
        loss = paired.loc[code, ["difference", "low", "high"]] if code in paired.index else [0] * 3
        records.append([choice, int(number), ci.mean, ci.low, ci.high, *map(float, loss)])
    columns = ["choice", "n_electrodes", "mean", "low", "high", "loss", "loss_low", "loss_high"]
    curve = pd.DataFrame(records, columns=columns)
    curve = curve.sort_values("n_electrodes", kind="stable", ignore_index=True)
    own = curve[curve["choice"] == ours].set_index("n_electrodes")
    margin = float(results.protocol["experiments"][EXPERIMENT].get("margin", MARGIN))
    smallest = None
    fewer = own[own.index < every].sort_index(ascending=False)
    for number, high in zip(fewer.index.tolist(), fewer["loss_high"], strict=True):
        if not high <= margin:
            break
        smallest = int(number)
    picks = results.selections
    picks = picks[(picks["experiment"] == EXPERIMENT) & (picks["table"] == (table or names[0]))]
    picks = picks[picks["method"] == ours]
    return ElectrodeCurve(
        curve, _count_chosen(picks["ranking"], own.index), margin, smallest,
        _answer(own, every, margin, smallest),
    )  # fmt: skip


def _count_chosen(rankings: pd.Series, numbers: pd.Index) -> pd.DataFrame:
    """Share of folds in which an electrode is among the first ones."""
    orders = [list(dict.fromkeys(split_column(name)[0] for name in each)) for each in rankings]
    shares = {
        number: pd.Series([name for order in orders for name in order[:number]]).value_counts()
        for number in numbers
    }
    frame = pd.DataFrame(shares).reindex(sorted({name for order in orders for name in order}))
    frame = frame.fillna(0.0) / max(len(orders), 1)
    return frame.sort_values(list(numbers), ascending=False, kind="stable")


def _answer(own: pd.DataFrame, every: int, margin: float, smallest: int | None) -> str:
    """Return the smallest number that is not inferior, or why there is none, as a sentence."""
    rows: dict[Any, Any] = own.to_dict("index")
    whole = rows[every]
    auc = f"AUC {whole['mean']:.2f}, 95 % CI {whole['low']:.2f} to {min(whole['high'], 1):.2f}"
    if not whole["low"] > 0.5:
        return (
            f"With all {every} electrodes the AUC is not above chance ({auc}), so the number of "
            "electrodes cannot be decided."
        )
    if every == 1:
        return f"The table has one electrode ({auc})."
    number = smallest or max(n for n in rows if n < every)
    difference, low, high = (
        f"{-rows[number][name]:+.3f}".replace("-", "−").replace("−0.000", "0.000")
        for name in ("loss", "loss_high", "loss_low")
    )
    compared = f"AUC minus that of all {difference}, 95 % CI {low} to {high}"
    if smallest is not None:
        return (
            f"{smallest} of {every} electrodes are the smallest number that is not inferior to "
            f"all of them by more than {margin:g} AUC ({compared}; all: {auc})."
        )
    if rows[number]["loss_low"] > margin:
        return (
            f"Fewer electrodes than all {every} are inferior by more than {margin:g} AUC "
            f"({number} electrodes: {compared}; all: {auc})."
        )
    return (
        "How few electrodes are enough cannot be decided with this many participants "
        f"({number} electrodes: {compared}, where the margin is {margin:g}; all {every}: {auc})."
    )
