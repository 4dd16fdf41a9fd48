"""How few electrodes, how many participants: AUC per subject against either number.

Each training fold orders electrodes by IDFS-MEC's channel weights. The table is cut down to the
first 1, 2, 3, ... of them before anything is imputed, as a cap with so few electrodes would record
it. Subsets of the training subjects are drawn in proportion to the classes, smaller ones as part
of larger ones; the subjects held out are the same for all sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from idfsmec._validation import derive_seed
from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Protocol, protocol_from, split_table
from idfsmec.evaluation.results import Results, of_method
from idfsmec.evaluation.run import ResultsFolder, Tables, method_or_ours, run_experiment
from idfsmec.evaluation.statistics import interval_by_fold
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tasks import (
    Task,
    channel_counts,
    describe_method,
    make_task,
    score_fold,
)
from idfsmec.metrics import Codes, MeanInterval
from idfsmec.prediction.folds import FEWEST_SCORES
from idfsmec.prediction.methods import METHODS, Classifier, Imputer, Method, with_parts
from idfsmec.prediction.samples import (
    FoldSamples,
    Samples,
    TrainingSamples,
    corrected_samples,
)
from idfsmec.selection.idfsmec import order_electrodes
from idfsmec.table.columns import split_column
from idfsmec.table.positions import standard_name

ELECTRODES, PARTICIPANTS = "electrodes", "participants"
#: Numbers of electrodes that are compared, as far as a table has more.
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
#: Numbers of training subjects that are compared, as far as folds have more.
SIZES = tuple(5 * count for count in COUNTS[1:])
#: AUC that may be lost, or gained, and counts as no difference.
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
    out: str | Path | ResultsFolder,
    *,
    counts: Sequence[int] | None = None,
    margin: float = MARGIN,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """Measure how few electrodes are not inferior to all of them.

    Tables are taken as they were recorded: no channel is removed from samples, so ``rates``,
    ``patterns`` and ``tuning`` of the protocol do not apply. Folds are by subject, or by site.
    With a score Spearman's correlation takes the place of the AUC.

    Parameters
    ----------
    counts : sequence of int, optional
        Numbers of electrodes; by default 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ... All electrodes are
        always compared.
    margin : float, default=0.03
        AUC that fewer electrodes may lose and still be called not inferior.
    tables, out, imputer, classifier, protocol, **options
        As in :func:`accuracy`.

    Returns
    -------
    Results
        The rows of ``scores`` with the experiment ``electrodes`` have the number of electrodes in
        ``n_channels``, and in ``method`` how they were chosen: IDFS-MEC, random, or the
        name of a headset. :func:`electrode_curve` summarises them.

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
    if not 0 < margin < 0.5:
        raise InputError(f"margin is {margin}; give an AUC from above 0 to below 0.5")
    methods = with_parts([METHODS.find("all features")], imputer, classifier)
    methods.append(method_or_ours(None))
    planned = _as_recorded(protocol)
    options |= {"plan": partial(_plan_electrodes, counts=counts), "also": {"margin": margin}}
    return run_experiment(ELECTRODES, tables, out, methods, planned, **options)


def _as_recorded(protocol: Protocol | Mapping[str, Any] | None) -> Protocol:
    """Return a protocol for tables as they were recorded, without simulated missing channels."""
    planned = protocol_from(protocol, Protocol())
    return planned.with_changes(
        folds="site" if planned.folds == "site" else "subject",
        missing_in="everywhere",
        tuning="nested",
        rates=(0.0,),
        patterns=("random",),
        metric="subject_roc_auc",
    )


def _plan_electrodes(
    table: Samples, methods: Sequence[Method], protocol: Protocol, counts: Sequence[int] | None
) -> Iterator[Task]:
    """Plan each way of choosing electrodes on each fold: the second method's, chance, headsets."""
    method, ours = methods
    numbers = sorted({*channel_counts(table, counts, COUNTS), len(table.channels)})
    names = {standard_name(name) or name: code for code, name in enumerate(table.channels)}
    caps = {cap: text.split() for cap, text in HEADSETS.items()}
    fixed = {cap: [names[v] for v in of] for cap, of in caps.items() if names.keys() >= {*of}}
    choices = [
        (choice, {"numbers": numbers, "fixed": fixed.get(choice)})
        for choice in (ours.name, CHANCE, *fixed)
    ]
    return _plan(table, method, protocol, _compute_electrodes, choices)


def _plan(
    table: Samples,
    method: Method,
    protocol: Protocol,
    compute: Callable[..., TaskResult],
    variants: Sequence[tuple[str, Mapping[str, Any]]],
) -> Iterator[Task]:
    """Plan a method on each fold in each variant, which has a name and what it computes with."""
    resolved, folds = method.resolve(), range(len(split_table(table, protocol)))
    whole = describe_method(method)
    columns = {"imputer": method.imputing.name, "n_channels": len(table.channels)}
    for seed, fold, (name, variant) in itertools.product(protocol.seeds, folds, variants):
        named, where = replace(resolved, name=name), {"seed": seed, "fold": fold, **variant}
        described = whole and whole | ({} if name == method.name else {"choice": name})
        yield make_task(
            table,
            named,
            partial(compute, method=named, protocol=protocol, **where),
            {"pattern": "random", "rate": 0.0, "seed": seed, "fold": fold, **columns},
            protocol.metric,
            kind=compute.__name__,
            protocol=protocol.per_task(),
            described=described,
            **where,
        )


def _compute_electrodes(
    table: Samples,
    *,
    method: Method,
    protocol: Protocol,
    numbers: Sequence[int],
    fixed: Sequence[int] | None,
    seed: int,
    fold: int,
) -> TaskResult:
    """Score sets of electrodes on one fold, chosen by its training samples alone."""
    sides = [table.take(rows) for rows in split_table(table, protocol, seed)[fold]]
    if fixed is not None:
        sets = [list(fixed)]
    elif method.name == CHANCE:
        rng = np.random.default_rng(derive_seed("electrodes", seed, fold))
        orders = [rng.permutation(len(table.channels)).tolist() for _ in range(_DRAWS)]
        sets = [order[:number] for number in numbers[:-1] for order in orders]
    else:
        train = corrected_samples(sides[0], protocol.corrections(table.classes))
        known = train.channel_of, train.subject_names
        order = order_electrodes(train.X, train.y, *known, numeric=train.numeric)
        sets = [order[:number].tolist() for number in numbers]
    result = TaskResult()
    for chosen in sets:
        (train, columns), (test, _) = (side.take_channels(chosen) for side in sides)
        scored = _score(method, train, test, protocol, seed, fold)
        result.rows += [row | {"order": 0} for row in scored.rows]
        result.seconds += scored.seconds
    # Columns of the last set, which is the largest, in the order in which it was chosen.
    order = np.argsort([chosen.index(v) for v in table.channel_of[columns]], kind="stable")
    result.rankings = [columns[order].tolist()]
    return result


def _score(
    method: Method, train: Samples, test: Samples, protocol: Protocol, seed: int, fold: int
) -> TaskResult:
    """Score a method that inner folds of the training samples have tuned."""
    samples = FoldSamples(TrainingSamples(train), test, np.arange(0))
    return score_fold(method, samples, protocol, derive_seed("method", seed, fold, method.name))


class Measure(NamedTuple):
    """What a curve shows: a column of the scores, its name and its value by chance."""

    column: str
    name: str
    chance: float

    def interval(self, scores: pd.Series, n_train: float) -> MeanInterval:
        """Return the mean of scores by repeat and fold with its CI; an AUC lies from 0 to 1."""
        return interval_by_fold(scores, n_train if self.chance else None)

    def describe(self, row: Mapping[Any, Any]) -> str:
        """Return the mean of a row with its CI in words."""
        return (
            f"{self.name} {row['mean']:.2f}, 95 % CI {max(row['low'], -1):.2f} to "
            f"{min(row['high'], 1):.2f}"
        )


_AUC = Measure("subject_roc_auc", "AUC", 0.5)
_RANKS = Measure("subject_spearman", "Spearman's correlation", 0.0)


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
    measure : Measure
        What the curve shows: the AUC, of a score Spearman's r.
    """

    curve: pd.DataFrame = field(repr=False)
    chosen: pd.DataFrame = field(repr=False)
    margin: float
    smallest: int | None
    sentence: str
    measure: Measure = _AUC


def electrode_curve(results: Results, table: str | None = None) -> ElectrodeCurve:
    """Summarise how few electrodes are not inferior to all of them.

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
    rows, measure = _rows_of(results, ELECTRODES, table)
    ours = next(name for name in rows["method"] if name not in (CHANCE, *HEADSETS))
    keys = ["method", "n_channels", "seed", "fold"]
    folds = rows.groupby(keys, sort=False)[measure.column].mean()
    n_train, every = rows["n_train_subjects"].mean(), int(rows["n_channels"].max())
    wide: dict[Any, pd.Series] = dict(folds.unstack(["method", "n_channels"]).items())
    records = []
    for (choice, number), aucs in wide.items():
        auc, loss = measure.interval(aucs, n_train), interval_by_fold(wide[ours, every] - aucs)
        records.append([choice, int(number), *astuple(auc)[:3], *astuple(loss)[:3]])
    columns = ["choice", "n_electrodes", "mean", "low", "high", "loss", "loss_low", "loss_high"]
    curve = pd.DataFrame(records, columns=columns)
    curve = curve.sort_values("n_electrodes", kind="stable", ignore_index=True)
    ranked = curve[curve["choice"] == ours].set_index("n_electrodes")
    margin = float(results.protocol["experiments"][ELECTRODES].get("margin", MARGIN))
    fewer = ranked.loc[ranked.index < every, "loss_high"].sort_index(ascending=False)
    passed = fewer.index[(fewer <= margin).cummin()]
    smallest = int(passed[-1]) if passed.size else None
    picks = of_method(results.selections, rows["table"].iloc[0], ours, ELECTRODES)
    # Share of folds in which an electrode is among the first ones.
    orders = [dict.fromkeys(split_column(column)[0] for column in r) for r in picks["ranking"]]
    places = pd.DataFrame([{name: i for i, name in enumerate(order)} for order in orders])
    shares = pd.DataFrame({number: (places < number).mean() for number in ranked.index})
    chosen = shares.sort_index().sort_values(list(ranked.index), ascending=False, kind="stable")
    answer = _answer(ranked, margin, smallest, measure)
    return ElectrodeCurve(curve, chosen, margin, smallest, answer, measure)


def _rows_of(results: Results, experiment: str, table: str | None) -> tuple[pd.DataFrame, Measure]:
    """Return the rows of a table that tuning chose, by default of the first, and the measure."""
    every = results.chosen(experiment)
    of_scores = _RANKS.column in every and bool(every[_RANKS.column].notna().any())
    measure = _RANKS if of_scores else _AUC
    rows = every.dropna(subset=[measure.column])
    rows = rows[rows["table"] == (table or rows["table"].head(1).squeeze())]
    if rows.empty:
        raise InputError(
            f"{results.folder} holds no results of the experiment {experiment}"
            f"{'' if table is None else f' on the table {table!r}'}; run idfsmec benchmark with "
            f"--experiment {experiment}"
        )
    return rows, measure


def _answer(ranked: pd.DataFrame, margin: float, smallest: int | None, measure: Measure) -> str:
    """Return the smallest number that is not inferior, or why there is none, as a sentence."""
    rows: dict[Any, Any] = ranked.to_dict("index")
    *fewer, every = rows
    auc, name = measure.describe(rows[every]), measure.name
    if not rows[every]["low"] > measure.chance:
        return (
            f"With all {every} electrodes the {name} is not shown to be above chance ({auc}), "
            "so the number of electrodes cannot be decided."
        )
    if not fewer:
        return f"The table has one electrode ({auc})."
    number = smallest or fewer[-1]
    difference, low, high = (_signed(-rows[number][f"loss{end}"]) for end in ("", "_high", "_low"))
    compared = f"{name} minus that of all {difference}, 95 % CI {low} to {high}"
    if smallest is not None:
        return (
            f"{smallest} of {every} electrodes are the smallest number that is not inferior to "
            f"all of them by more than {margin:g} {name} ({compared}; all: {auc})."
        )
    if rows[number]["loss_low"] > margin:
        return (
            f"Fewer electrodes than all {every} are inferior by more than {margin:g} {name} "
            f"({number} electrodes: {compared}; all: {auc})."
        )
    return (
        "How few electrodes are enough cannot be decided with this many participants "
        f"({number} electrodes: {compared}, where the margin is {margin:g}; all {every}: {auc})."
    )


def _signed(difference: float) -> str:
    return f"{difference:+.3f}".replace("-", "−").replace("−0.000", "0.000")


def participants(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    sizes: Sequence[int] | None = None,
    method: str | Method | None = None,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """Measure how the AUC depends on the number of training subjects.

    Tables are taken as they were recorded: no channel is removed from samples, so ``rates``,
    ``patterns`` and ``tuning`` of the protocol do not apply. Folds are by subject, or by site.
    With a score Spearman's correlation takes the place of the AUC.
    Each repeat (``seeds`` of the protocol) has its own folds and subsets.

    Parameters
    ----------
    sizes : sequence of int, optional
        Numbers of training subjects; by default 10, 15, 20, 30, 40, 60, ... The training subjects
        of the smallest fold are always compared.
    method : str or Method, optional
        By default IDFS-MEC.
    tables, out, imputer, classifier, protocol, **options
        As in :func:`accuracy`.

    Returns
    -------
    Results
        The rows of ``scores`` with the experiment ``participants`` have the number of training
        subjects in ``n_train_subjects``. :func:`participant_curve` summarises them.

    Examples
    --------
    >>> import tempfile
    >>> from idfsmec import FeatureTable
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 80)
    >>> X = pd.DataFrame(rng.normal(size=(160, 2)), columns=["F3__a", "Cz__a"])
    >>> X["Cz__a"] += 3 * y
    >>> table = FeatureTable(X, pd.Series(y), pd.Series(np.arange(160) // 4))
    >>> protocol = {"n_splits": 5, "svm_costs": [0.1]}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = participants(table, out, sizes=[16], protocol=protocol, n_jobs=1)
    >>> participant_curve(results).curve["n_subjects"].tolist()
    [16, 32]
    """
    methods = with_parts([method_or_ours(method)], imputer, classifier)
    options["plan"] = partial(_plan_participants, sizes=sizes)
    return run_experiment(PARTICIPANTS, tables, out, methods, _as_recorded(protocol), **options)


def _plan_participants(
    table: Samples, methods: Sequence[Method], protocol: Protocol, sizes: Sequence[int] | None
) -> Iterator[Task]:
    """Plan each number of training subjects on each fold."""
    (method,) = methods
    trains = [train for seed in protocol.seeds for train, _ in split_table(table, protocol, seed)]
    if table.numeric:
        every = min(np.unique(table.subjects[train]).size for train in trains)
        fewest = 2 * FEWEST_SCORES
    else:
        classes = [np.bincount(_subjects_of(table, train)[1]) for train in trains]
        every = int(min(counts.sum() for counts in classes))
        # Three of the smallest class on average are at least two, which inner folds need.
        fewest = int(np.ceil(max(3 * counts.sum() / counts.min() for counts in classes)))
    numbers = sorted({*(sizes or (size for size in SIZES if fewest <= size < 0.9 * every)), every})
    for size in [numbers[0], numbers[-1]]:
        if not fewest <= size <= every or len(numbers) == 1:
            raise InputError(
                f"table {table.name}: {size} training participants give no curve; it takes "
                f"numbers from {fewest} to {every}, at least one below {every}",
                argument="sizes",
            )
    sized = [(method.name, {"size": size}) for size in numbers]
    return _plan(table, method, protocol, _compute_participants, sized)


def _subjects_of(table: Samples, rows: Codes) -> tuple[Codes, Codes]:
    """Return the subjects of some samples, and the class of each, or the quarter of its score."""
    subjects, first = np.unique(table.subjects[rows], return_index=True)
    of_subject = table.y[rows[first]]
    if table.numeric:
        places = np.argsort(np.argsort(of_subject, kind="stable"), kind="stable")
        return subjects, 4 * places // subjects.size
    return subjects, of_subject


def _compute_participants(
    table: Samples, *, method: Method, protocol: Protocol, size: int, seed: int, fold: int
) -> TaskResult:
    """Score a method on one fold, learned from so many of its training subjects."""
    train, test = split_table(table, protocol, seed)[fold]
    subjects, labels = _subjects_of(table, train)
    rng = np.random.default_rng(derive_seed("participants", seed, fold))
    # Within each class a random order, spread evenly over 0 to 1: the first ones of all classes
    # together have their shares of each class, whatever their number.
    place = np.empty(subjects.size)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[members] = (rng.permutation(members.size) + 0.5) / members.size
    drawn = subjects[np.argsort(place, kind="stable")[:size]]
    train = train[np.isin(table.subjects[train], drawn)]
    return _score(method, table.take(train), table.take(test), protocol, seed, fold)


@dataclass(frozen=True)
class ParticipantCurve:
    """AUC per subject against the number of training subjects of one table.

    Attributes
    ----------
    curve : DataFrame
        A row for each number of training subjects (``n_subjects``): ``mean``, ``low``, ``high`` of
        the AUC (95 % CI corrected for overlapping training sets), and ``significant``, the share
        of repeats whose AUC is significant: the CI over its folds lies above 0.5.
    n_repeats : int
        Number of repeats.
    half : int
        Number of training subjects nearest to half of all.
    rise : MeanInterval
        AUC of all training subjects minus that of half of them, paired by fold, with its 95 % CI.
    """

    curve: pd.DataFrame = field(repr=False)
    n_repeats: int
    half: int
    rise: MeanInterval
    measure: Measure = _AUC

    @property
    def rises(self) -> bool | None:
        """True if the CI of the rise lies above 0, False if it ends below 0.03, else None."""
        return False if self.rise.high <= MARGIN else True if self.rise.low > 0 else None

    @property
    def sentence(self) -> str:
        """Return the answer in words."""
        whole, rise = self.curve.to_dict("records")[-1], self.rise
        every, name = whole["n_subjects"], self.measure.name
        auc = self.measure.describe(whole)
        if not whole["low"] > self.measure.chance:
            return (
                f"With {every} training participants the {name} is not shown to be above chance "
                f"({auc}), so the number of participants cannot be decided."
            )
        answers = {
            True: f"The {name} still rises with the number of participants",
            False: f"The {name} no longer rises by more than {MARGIN:g}",
            None: f"Whether the {name} still rises cannot be decided with this many participants",
        }
        percent = 100 * self.curve["significant"]
        shares = dict(zip(self.curve["n_subjects"], percent, strict=True))
        return (
            f"{answers[self.rises]} ({self.half} to {every} training participants: "
            f"{_signed(rise.mean)}, 95 % CI {_signed(rise.low)} to {_signed(rise.high)}; {every}: "
            f"{auc}). Of {self.n_repeats} repeats it is significant in {shares[self.half]:.0f} % "
            f"with {self.half}, in {shares[every]:.0f} % with {every}."
        )


def participant_curve(results: Results, table: str | None = None) -> ParticipantCurve:
    """Summarise how the AUC depends on the number of training subjects.

    Whether it still rises is decided by one test: all training subjects against the size nearest
    to half of them.

    Parameters
    ----------
    results : Results
        With the experiment :func:`participants`.
    table : str, optional
        By default the first one.

    Returns
    -------
    ParticipantCurve
    """
    rows, measure = _rows_of(results, PARTICIPANTS, table)
    size, chance = "n_train_subjects", measure.chance
    folds = rows.set_index(["seed", "fold"])[measure.column]
    wide = {n: folds[(rows[size] == n).to_numpy()] for n in sorted(set(rows[size].tolist()))}
    every, records = max(wide), []
    for number, aucs in wide.items():
        # Folds hold out subjects of the whole study for every size.
        of_repeats = [of for _, of in aucs.groupby(level="seed")]
        above = np.mean([measure.interval(of, every).low > chance for of in of_repeats])
        records.append([number, *astuple(measure.interval(aucs, every))[:3], above])
    curve = pd.DataFrame(records, columns=["n_subjects", "mean", "low", "high", "significant"])
    half = min(wide, key=lambda number: abs(number - every / 2))
    rise = interval_by_fold(wide[every] - wide[half])
    return ParticipantCurve(curve, rows["seed"].nunique(), half, rise, measure)
