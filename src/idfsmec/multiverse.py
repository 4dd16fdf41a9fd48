"""Whether a result survives other reasonable choices: a study under many specifications.

A specification is a set of settings between a recording and its features. For each one there are
the AUC of a model, the audit and the effects of all features; one test with permuted labels, the
same in all specifications, is about all of them together (Simonsohn et al., Nature Human Behaviour
4, 1208-1214, 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.stats import false_discovery_control, rankdata
from sklearn.utils import gen_batches

from idfsmec._parallel import on_cluster, run_tasks
from idfsmec.audit import audit
from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.statistics import compare_folds
from idfsmec.evaluation.tasks import UNFIT, score_fold
from idfsmec.features.batch import extract_tables
from idfsmec.features.settings import DEFAULT_CHOICES, Choices, FeatureSettings
from idfsmec.metrics import Floats, fold_interval, holm
from idfsmec.prediction.folds import make_folds, most_splits
from idfsmec.prediction.methods import METHODS, with_parts
from idfsmec.prediction.samples import FoldSamples, Samples, TrainingSamples
from idfsmec.progress import Listener, Steps
from idfsmec.recordings import Recording
from idfsmec.selection import IDFSMEC, feature_effects
from idfsmec.table import FeatureTable
from idfsmec.table.columns import LABEL

#: False discovery rate, and level of the joint test.
ALPHA = 0.05
#: Features of a ranking that count as the first ones.
N_FIRST = 20
#: The option of a choice whose options do not have what the settings say.
AS_SET = "as set"
#: Folds by participant of the model, and how often participants are split.
_N_SPLITS, _N_REPEATS = 10, 3
# Values of the permuted statistics that are held at once.
_BLOCK = 1_000_000


class Specification(NamedTuple):
    """The option of each choice, and the settings that they give."""

    options: dict[str, str]
    settings: FeatureSettings


def make_specifications(
    settings: FeatureSettings | None = None,
    choices: Choices | None = None,
    n_specifications: int = 32,
    seed: int = 0,
) -> list[Specification]:
    """List the settings, each choice changed alone, and combinations that are drawn at random.

    Parameters
    ----------
    settings : FeatureSettings, optional
        The default of the study.
    choices : mapping, optional
        A choice to its options, and an option to the settings that it changes. By default those
        of ``DEFAULT_CHOICES`` of which the settings have an option.
    n_specifications : int
        How many; all where there are fewer.
    seed : int
        Decides the combinations. More of them begin with the same.

    Examples
    --------
    >>> choices = {"epochs": {"10 s": {"epoch": 10}, "4 s": {"epoch": 4}}}
    >>> [dict(each.options) for each in make_specifications(choices=choices)]
    [{'epochs': '10 s'}, {'epochs': '4 s'}]
    """
    base = settings or FeatureSettings()
    options: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, of_choice in (DEFAULT_CHOICES if choices is None else choices).items():
        same = [o for o, changes in of_choice.items() if _changed(base, {o: changes}) == base]
        if same or choices is not None:
            others = {str(o): changes for o, changes in of_choice.items() if o not in same}
            options[name] = {str(same[0]) if same else AS_SET: {}, **others}
    default = {name: next(iter(of_choice)) for name, of_choice in options.items()}
    alone = [default | {name: o} for name in options for o in list(options[name])[1:]]
    if n_specifications < 1 + len(alone):
        raise InputError(
            f"{n_specifications} specifications are too few: give at least {1 + len(alone)}, the "
            "default and each choice changed alone, or fewer choices in the settings file",
            argument="n_specifications",
        )
    listed = [default, *alone]
    n_combinations = math.prod(len(of_choice) for of_choice in options.values())
    rng = np.random.default_rng(seed)
    while len(listed) < min(n_specifications, n_combinations):
        drawn = {name: list(of)[rng.integers(len(of))] for name, of in options.items()}
        if drawn not in listed:
            listed.append(drawn)
    return [
        Specification(chosen, _changed(base, {o: options[name][o] for name, o in chosen.items()}))
        for chosen in listed
    ]


def _changed(base: FeatureSettings, options: Mapping[str, Mapping[str, Any]]) -> FeatureSettings:
    """Change settings by options; what does not go together is named."""
    try:
        return base.changed({key: v for changes in options.values() for key, v in changes.items()})
    except InputError as error:
        raise InputError(f"choices, {', '.join(options)}: {error}") from error


@dataclass(frozen=True)
class Multiverse:
    """What a study gives under all specifications.

    Parameters
    ----------
    choices : dict
        The options of each choice, that of the default first.
    specifications : DataFrame
        A row for each: the option of each choice, ``score`` with its 95 % CI (``low``, ``high``),
        ``level`` of the audit, ``n_subjects``, ``n_samples``, ``missing`` (share of channel
        epochs), ``n_significant`` features after the false discovery rate.
    effects : DataFrame
        A row for each ``specification`` and ``feature``: ``effect`` (Hedges' g, or Spearman's
        correlation with a score) with ``low`` and ``high``, ``p``, ``q`` and ``rank``.
    features : DataFrame
        A row for each feature, the smallest joint p first: the median ``effect``, ``direction``,
        the shares of specifications in which this direction is kept (``share_direction``), the
        feature is among the first 20 (``share_first``) or significant in this direction
        (``share_significant``), and of the joint test ``p_median`` and ``p_share``, corrected for
        all features.
    moves : DataFrame
        For each option by how much it moves the score at equal other choices: ``difference``,
        ``low``, ``high``, ``p`` after Holm's correction.
    classes : list of str
        Empty for a score.
    n_subjects : list of int
        Of each class.
    target : str
        ``label``, or the name of the score.
    """

    choices: dict[str, list[str]]
    specifications: pd.DataFrame = field(repr=False)
    effects: pd.DataFrame = field(repr=False)
    features: pd.DataFrame = field(repr=False)
    moves: pd.DataFrame = field(repr=False)
    classes: list[str]
    n_subjects: list[int]
    target: str = LABEL

    def decisive(self, outcome: ArrayLike) -> str:
        """Return the choice whose options differ most in how often an outcome is true.

        Empty if none differs by half of the specifications: several choices matter together.
        """
        true = pd.Series(np.asarray(outcome, dtype=float))
        shares = {name: true.groupby(self.specifications[name]).mean() for name in self.choices}
        spread = {name: share.max() - share.min() for name, share in shares.items()}
        most = max(spread, key=lambda name: spread[name], default="")
        return most if most and spread[most] >= 0.5 else ""

    def depends_on(self, feature: str) -> tuple[str, str]:
        """Return the choice and the option with which a feature's effect changes most.

        Empty unless the mean effect with an option is less than half of that with the others.
        """
        effect = pd.Series(self.effect_of(feature))
        least, found = 0.5, ("", "")
        for name, options in self.choices.items():
            for option in options:
                has = (self.specifications[name] == option).to_numpy()
                inside, outside = effect[has].mean(), effect[~has].mean()
                ratio = inside / outside if outside else np.nan
                if abs(inside) < abs(outside) and ratio < least:
                    least, found = ratio, (name, option)
        return found

    def effect_of(self, feature: str, column: str = "effect") -> Floats:
        """Return a column of the effects of a feature in all specifications."""
        return self.effects.loc[self.effects["feature"] == feature, column].to_numpy()


def run_multiverse(
    recordings: Sequence[Recording],
    settings: FeatureSettings | None = None,
    *,
    choices: Choices | None = None,
    n_specifications: int = 32,
    target: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    dask: Any = None,
    on_error: str = "raise",
    parts: Path | None = None,
    progress: Listener | None = None,
) -> Multiverse:
    """Run a study under many specifications, from recordings to the joint test.

    Each participant's mean features predict the diagnosis with a linear support vector machine,
    not tuned, in ten folds that are the same participants in all specifications, three times.

    Parameters
    ----------
    recordings : sequence of Recording
        Of two classes, or with a score; a participant is in one class.
    settings, choices, n_specifications, seed
        See :func:`make_specifications`.
    target : str, optional
        A numeric column of the manifest to take as a score.
    n_jobs, dask, on_error, parts
        As in :func:`~idfsmec.features.extract_table`. With ``parts`` a run that was stopped
        continues, and one with more specifications computes only these.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress`: extractions, then audits, then models.

    Returns
    -------
    Multiverse

    Examples
    --------
    >>> from idfsmec.recordings import simulate_cohort
    >>> cohort = simulate_cohort(8, 3, duration=20, random_state=0)
    >>> choices = {"epochs": {"10 s": {"epoch": 10}, "4 s": {"epoch": 4}}}
    >>> result = run_multiverse(cohort.recordings, choices=choices)
    >>> result.specifications[["epochs", "n_subjects", "n_samples"]]
      epochs  n_subjects  n_samples
    0   10 s           8         16
    1    4 s           8         40
    """
    planned = make_specifications(settings, choices, n_specifications, seed)
    options, numeric = pd.DataFrame([spec.options for spec in planned]), target is not None
    with on_cluster(dask):
        extractions = extract_tables(
            recordings,
            [spec.settings for spec in planned],
            n_jobs=n_jobs,
            on_error=on_error,
            parts=parts,
            progress=progress,
        )
        tables = (extraction.table for extraction in extractions)
        steps = Steps("audits", len(planned), progress)
        examined = _in_turn(partial(_examine, target=target), tables, n_jobs, steps)
        means = _name_alike([of_one for of_one, _ in examined])
        y, values = _align(means, numeric)
        steps = Steps("models", len(planned), progress)
        work = partial(_score, folds=_split(y, numeric, seed))
        scores, rankings = zip(*_in_turn(work, means, n_jobs, steps), strict=True)
    classes, goal = (np.empty(0), y.to_numpy()) if numeric else np.unique(y, return_inverse=True)
    by_specification = values.to_numpy().reshape(len(planned), len(y), -1)
    joint = joint_test(by_specification, goal, numeric=numeric, seed=seed)
    effects = _effects(values, y, joint, rankings, numeric)
    specifications = options.join(pd.DataFrame([facts for _, facts in examined]))
    n_subjects = None if numeric else len(y)
    specifications[["score", "low", "high"]] = [_interval(of, n_subjects) for of in scores]
    specifications["n_significant"] = (joint.q <= ALPHA).sum(axis=1)
    return Multiverse(
        {str(name): list(dict.fromkeys(options[name])) for name in options},
        specifications,
        effects,
        _summarise(effects, joint, classes),
        _moves(options, np.stack(scores)),
        [str(name) for name in classes],
        [len(y)] if numeric else np.bincount(goal).tolist(),
        target or LABEL,
    )


# --- one specification -----------------------------------------------------------------------


def _in_turn(function: Any, tasks: Iterable[Any], n_jobs: int | None, steps: Steps) -> list[Any]:
    """Do all tasks, in processes, and return their results in order."""
    results = {}
    for number, result in run_tasks(function, tasks, n_jobs=n_jobs):
        results[number] = result
        steps.done()
    return [results[number] for number in sorted(results)]


def _examine(table: FeatureTable, target: str | None) -> tuple[FeatureTable, dict[str, Any]]:
    """Audit the table of a specification, and take the means of participants."""
    used = table if target is None else table.with_target(target)
    level = audit(used, parts=["eeg"]).level if len(set(used.y)) > 1 else "none"
    means = replace(used.by_subject(), info={"target": used.info.get("target")}, reasons=None)
    if means.subjects.duplicated().any():
        name = means.subjects[means.subjects.duplicated()].iloc[0]
        raise InputError(f"participant {name} has several labels; give each participant one")
    missing = float(1 - used.observed.to_numpy().mean())
    facts = {"n_subjects": len(means), "n_samples": len(used), "missing": missing}
    return means, {"level": level, **facts}


def _name_alike(tables: Sequence[FeatureTable]) -> list[FeatureTable]:
    """Call a feature and its logarithm alike, where a table has one and not the other."""
    every = {name for table in tables for name in map(str, table.X)}
    alike = {name: name.replace("__log_", "__") for name in every}

    def rename(X: pd.DataFrame) -> pd.DataFrame:
        absent = every.difference(X)
        return X.rename(columns={name: of for name, of in alike.items() if of in absent})

    return [replace(table, X=rename(table.X)) for table in tables]


def _align(tables: Sequence[FeatureTable], numeric: bool) -> tuple[pd.Series, pd.DataFrame]:
    """Return the class or score of every participant who is in any table, by name, and values.

    These have a row for each specification and participant, NaN where a table lacks one.
    """
    frames = [table.X.set_axis(table.subjects.astype(str), axis=0) for table in tables]
    known = [table.y.set_axis(frame.index) for table, frame in zip(tables, frames, strict=True)]
    y = pd.concat(known).groupby(level=0).first()
    if not numeric and y.nunique() != 2:
        raise InputError(
            f"there are {y.nunique()} labels, and a multiverse compares two classes or takes a "
            "score (--target): leave out recordings of other classes",
            argument="target",
        )
    every = pd.MultiIndex.from_product([range(len(frames)), y.index])
    return y, pd.concat(frames, keys=range(len(frames))).reindex(every)


def _split(y: pd.Series, numeric: bool, seed: int) -> list[list[NDArray[Any]]]:
    """Return the names of those whom each fold of each repeat holds out."""
    goal, names = y.to_numpy(), y.index.to_numpy().astype(str)
    n_splits = min(_N_SPLITS, most_splits(goal, names, numeric=numeric))
    if n_splits < 2:
        return [[]]
    drawn = range(seed, seed + _N_REPEATS)
    repeats = [make_folds(goal, names, "subject", n_splits, r, numeric=numeric) for r in drawn]
    return [[names[held_out] for _, held_out in folds] for folds in repeats]


def _score(
    table: FeatureTable, folds: Sequence[Sequence[NDArray[Any]]]
) -> tuple[Floats, pd.Series]:
    """Score the model in each fold, (n_repeats, n_splits), and rank all features."""
    samples, numeric = Samples.of("", table), table.target.is_numeric
    (method,) = with_parts([METHODS.find("all features")], "mean", "svm")
    metric = "subject_spearman" if numeric else "roc_auc"
    scores = np.full((len(folds), len(folds[0])), np.nan)
    for place in np.ndindex(scores.shape):
        test = np.isin(samples.subject_names, folds[place[0]][place[1]])
        if not test.any():
            continue
        train = TrainingSamples(samples.take(np.flatnonzero(~test)))
        fold = FoldSamples(train, samples.take(np.flatnonzero(test)), np.flatnonzero(test))
        with suppress(*UNFIT):  # too few are left in this specification
            scores[place] = score_fold(method, fold, Protocol(tuning="grid"), 0).rows[0][metric]
    ranking = pd.Series(index=samples.columns, dtype=float)
    with suppress(*UNFIT):
        ranking[:] = IDFSMEC(numeric=numeric).fit(table.X, table.targets).ranking_
    return scores, ranking


def _interval(folds: Floats, n_subjects: float | None) -> tuple[float, float, float]:
    if np.isnan(folds).all():
        return np.nan, np.nan, np.nan
    interval = fold_interval(folds, n_subjects)
    return interval.mean, interval.low, interval.high


# --- all specifications ----------------------------------------------------------------------


class JointTest(NamedTuple):
    """Result of :func:`joint_test`; NaN where a feature is not there."""

    t: Floats  # (n_specifications, n_features); of Spearman's correlation for a score
    q: Floats  # the false discovery rate within the specification
    p_median: Floats  # (n_features,); of the median t
    p_share: Floats  # of the share of specifications in which the feature is significant


def joint_test(
    values: ArrayLike,
    target: ArrayLike,
    *,
    numeric: bool = False,
    n_permutations: int = 999,
    seed: int = 0,
) -> JointTest:
    """Test whether features are associated with a target over all specifications together.

    Parameters
    ----------
    values : array-like of shape (n_specifications, n_subjects, n_features)
        Means of participants; NaN where a specification lacks a participant or a channel.
    target : array-like of shape (n_subjects,)
        Two classes as 0 and 1, or scores, which are ranked as values then are.
    numeric : bool, default=False
        Whether the target is a score.
    n_permutations, seed : int
        How often participants exchange their targets, the same way in all specifications.

    Returns
    -------
    JointTest
        With p-values that count how often permuted labels give as much in any feature: they are
        corrected for all features. Features that fewer than half of the specifications have are
        not tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, signal = np.repeat([0, 1], 20), rng.normal(size=(40, 3))
    >>> signal[:, 0] += 2 * y
    >>> values = [signal + rng.normal(scale=0.5, size=(40, 3)) for _ in range(5)]
    >>> joint_test(values, y).p_median.round(3)
    array([0.001, 1.   , 0.541])
    """
    given = np.asarray(values, dtype=float)
    seen = (~np.isnan(given)).astype(float)
    # Of each specification and feature; their second axis is that of targets.
    n = seen.sum(axis=1, keepdims=True)
    given = rankdata(given, axis=1, nan_policy="omit") if numeric else given
    centred = np.nan_to_num(given - np.nansum(given, axis=1, keepdims=True) / np.maximum(n, 1))
    squares = (centred**2).sum(axis=1, keepdims=True)
    has, freedom = (n > 2) & (squares > 0), np.maximum(n - 2, 1)
    n_with = has.sum(axis=(0, 1))
    tested = 2 * n_with >= len(has)

    def statistics(targets: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return t and q by specification, target and feature; median t and largest share."""
        y, y2 = targets @ seen, targets**2 @ seen
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(squares * (y2 - y**2 / n))
            # A target may not vary among those who have a feature: then t is 0.
            r = np.clip(np.nan_to_num(targets @ centred / spread, posinf=0, neginf=0), -1, 1)
        t = np.where(has, r * np.sqrt(freedom / np.maximum(1 - r**2, 1e-12)), np.nan)
        q = 2 * special.stdtr(freedom, -np.abs(t))
        for of_one, there in zip(q, has[:, 0], strict=True):
            of_one[:, there] = false_discovery_control(of_one[:, there], axis=1)
        sides = [((q <= ALPHA) & (side * t > 0)).sum(axis=0) for side in (1, -1)]
        share = np.where(tested, np.maximum(*sides) / np.maximum(n_with, 1), np.nan)
        median = np.full(share.shape, np.nan)
        median[:, tested] = np.nanmedian(t[..., tested], axis=0)
        return t, q, median, share

    goal = np.asarray(target, dtype=float)
    goal = rankdata(goal) if numeric else goal
    t, q, *observed = statistics(goal[None])
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(goal.size), (n_permutations, 1)), axis=1)
    most: list[list[Floats]] = [[], []]
    for batch in gen_batches(n_permutations, max(1, _BLOCK // has.size)):
        for largest, of_all in zip(most, statistics(goal[orders[batch]])[2:], strict=True):
            largest.append(np.nanmax(np.abs(of_all), axis=1, initial=0.0))
    p_values = []
    for largest, (of_features,) in zip(most, map(np.abs, observed), strict=True):
        n_more = (np.hstack(largest)[:, None] >= of_features * (1 - 1e-9)).sum(axis=0)
        p_values.append(np.where(tested, (1 + n_more) / (n_permutations + 1), np.nan))
    return JointTest(t[:, 0], q[:, 0], *p_values)


def _effects(
    values: pd.DataFrame,
    y: pd.Series,
    joint: JointTest,
    rankings: Sequence[pd.Series],
    numeric: bool,
) -> pd.DataFrame:
    """Return the effect of each feature in each specification, its 95 % CI, p, q and rank."""
    size = "spearman" if numeric else "hedges_g"
    names = {size: "effect", f"{size}_low": "low", f"{size}_high": "high"}
    frames = []
    for number, ranking in enumerate(rankings):
        of_one = feature_effects(values.loc[number], y.to_numpy(), numeric=numeric)
        of_one = of_one.rename(columns=names)[["feature", *names.values(), "p"]]
        rank = ranking.reindex(values.columns).to_numpy()
        frames.append(of_one.assign(specification=number, q=joint.q[number], rank=rank))
    return pd.concat(frames, ignore_index=True)


def _summarise(effects: pd.DataFrame, joint: JointTest, classes: Iterable[Any]) -> pd.DataFrame:
    """Return a row for each feature over all specifications."""
    by_feature = effects.assign(first=effects["rank"] <= N_FIRST).groupby("feature", sort=False)
    middle = pd.DataFrame(joint.t).median().to_numpy()
    kept = np.sign(joint.t) == np.sign(middle)
    n_with = np.maximum((~np.isnan(joint.t)).sum(axis=0), 1)
    words = [f"higher in {name}" for name in classes]
    words = words or ["falls with the score", "rises with the score"]
    frame = by_feature["effect"].median().rename("effect").reset_index()
    higher = np.array(words)[(middle > 0).astype(int)]
    frame.insert(1, "direction", np.where(np.isnan(middle), "", higher))
    frame["share_direction"] = kept.sum(axis=0) / n_with
    frame["share_first"] = by_feature["first"].sum().to_numpy() / n_with
    frame["share_significant"] = (kept & (joint.q <= ALPHA)).sum(axis=0) / n_with
    frame["p_median"], frame["p_share"] = joint.p_median, joint.p_share
    frame["t"] = np.abs(middle)
    ordered = frame.sort_values(["p_median", "t"], ascending=[True, False], ignore_index=True)
    return ordered.drop(columns="t")


def _moves(options: pd.DataFrame, scores: Floats) -> pd.DataFrame:
    """Return by how much each option moves the score at equal other choices.

    In every fold scores are regressed on all options; the folds give the CI.
    """
    default = options.iloc[0]
    names = list(map(str, options))
    others = [(c, o) for c in names for o in dict.fromkeys(options[c]) if o != default[c]]
    design = [np.ones(len(options)), *((options[c] == o).to_numpy(float) for c, o in others)]
    solve = np.linalg.pinv(np.column_stack(design))[1:]
    folds = pd.MultiIndex.from_product([range(n) for n in scores.shape[1:]])
    moved = pd.DataFrame((solve @ scores.reshape(len(scores), -1)).T, folds)
    # From nothing what is moved is taken away.
    ci = compare_folds(-moved.assign(nothing=0.0), "nothing").set_index("method")
    moves = pd.DataFrame(others, columns=["choice", "option"])
    moves["instead_of"] = moves["choice"].map(default)
    moves = moves.join(
        ci[["difference", "low", "high", "p_value"]].rename(columns={"p_value": "p"})
    )
    known = moves["p"].notna()
    moves.loc[known, "p"] = holm(moves.loc[known, "p"].to_numpy())
    return moves.sort_values("difference", key=lambda x: -x.abs(), ignore_index=True)
