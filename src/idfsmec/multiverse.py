"""Whether a result survives other reasonable choices: a study under many specifications.

A specification is a set of settings between a recording and its features. For each one there are
the AUC of a model, the audit and the effects of all features; one test with permuted labels, the
same in all specifications, is about all of them together (Simonsohn et al., Nature Human Behaviour
4, 1208-1214, 2020).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from idfsmec._parallel import on_cluster, run_tasks
from idfsmec.audit import audit
from idfsmec.errors import InputError
from idfsmec.evaluation.run import method_or_ours
from idfsmec.evaluation.tasks import UNFIT
from idfsmec.features.batch import extract_tables
from idfsmec.features.settings import DEFAULT_CHOICES, Choices, FeatureSettings
from idfsmec.metrics import Floats, fold_interval, holm, score_decisions, score_predictions
from idfsmec.prediction.folds import make_folds, most_splits
from idfsmec.prediction.methods import METHODS, with_parts
from idfsmec.prediction.samples import Samples, TrainingSamples
from idfsmec.prediction.tuning import middle_cost
from idfsmec.progress import Listener, Steps
from idfsmec.recordings import Recording
from idfsmec.selection import feature_effects
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
_N_PERMUTATIONS = 999
# Values of the permuted statistics that are held at once.
_BLOCK = 4_000_000
_LOG = "log_"


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
    base, default = settings or FeatureSettings(), {}
    every = DEFAULT_CHOICES if choices is None else choices
    options = {name: {str(o): dict(c) for o, c in of.items()} for name, of in every.items()}
    for name, of_choice in list(options.items()):
        same = [o for o, changes in of_choice.items() if _changed(base, {o: changes}) == base]
        if not same and choices is None:
            del options[name]
            continue
        default[name] = same[0] if same else AS_SET
        others = {o: changes for o, changes in of_choice.items() if o not in same}
        options[name] = {default[name]: {}, **others}
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
    options = pd.DataFrame([spec.options for spec in planned])
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
        examine = partial(_examine, target=target)
        examined = _in_turn(examine, tables, n_jobs, Steps("audits", len(planned), progress))
        features = _name_alike([means for means, _ in examined])
        y = _common_target([means for means, _ in examined], numeric=target is not None)
        score = partial(_score, folds=_split(y, target is not None, seed))
        steps = Steps("models", len(planned), progress)
        scored = _in_turn(score, [means for means, _ in examined], n_jobs, steps)
    folds, ranks = zip(*scored, strict=True)
    specifications = options.join(pd.DataFrame([facts for _, facts in examined]))
    specifications[["score", "low", "high"]] = [
        _interval(of_folds, None if target else len(y)) for of_folds in folds
    ]
    classes, goal = (np.empty(0), y) if target else np.unique(y, return_inverse=True)
    values = np.stack([_by_name(means, y.index, features) for means, _ in examined])
    joint = joint_test(values, goal, numeric=target is not None, seed=seed)
    specifications["n_significant"] = (joint.q <= ALPHA).sum(axis=1)
    effects = [
        _effects(of_one, y, features, target is not None).assign(
            specification=number,
            q=joint.q[number],
            rank=ranks[number].reindex(features).to_numpy(),
        )
        for number, of_one in enumerate(values)
    ]
    every = pd.concat(effects, ignore_index=True)
    return Multiverse(
        {str(name): list(dict.fromkeys(options[name])) for name in options},
        specifications,
        every,
        _summarise(every, joint, features, classes),
        _moves(options, np.stack(folds)),
        [str(name) for name in classes],
        [len(y)] if target else np.bincount(goal).tolist(),
        target or LABEL,
    )


# --- one specification -----------------------------------------------------------------------


def _in_turn(function: Any, tasks: Any, n_jobs: int | None, steps: Steps) -> list[Any]:
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


def _name_alike(tables: Sequence[FeatureTable]) -> list[str]:
    """Return the features of all tables; a feature and its logarithm are one, where both occur."""
    columns = list(dict.fromkeys(name for table in tables for name in map(str, table.X)))
    alike = {name: name.replace(f"__{_LOG}", "__") for name in columns}
    for table in tables:
        names = [alike[name] if alike[name] in alike else name for name in map(str, table.X)]
        table.X.columns = pd.Index(names)
    return list(dict.fromkeys(name for table in tables for name in map(str, table.X)))


def _common_target(tables: Sequence[FeatureTable], numeric: bool) -> pd.Series:
    """Return the class or score of every participant who is in any table, by name."""
    known = [pd.Series(table.y.to_numpy(), index=table.subjects.astype(str)) for table in tables]
    y = pd.concat(known).groupby(level=0).first()
    if not numeric and y.nunique() != 2:
        raise InputError(
            f"there are {y.nunique()} labels, and a multiverse compares two classes or takes a "
            "score (--target): leave out recordings of other classes",
            argument="target",
        )
    return y


def _by_name(table: FeatureTable, subjects: pd.Index, features: Sequence[str]) -> Floats:
    """Return values of all participants and features; NaN for those that a table lacks."""
    values = table.X.set_axis(table.subjects.astype(str), axis=0)
    return values.reindex(index=subjects, columns=list(features)).to_numpy(dtype=np.float64)


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
    samples = Samples.of("", table)
    (method,) = with_parts([METHODS.find("all features")], "mean", "svm")
    scores = np.full((len(folds), len(folds[0])), np.nan)
    for place in np.ndindex(scores.shape):
        held_out = np.isin(samples.subject_names, folds[place[0]][place[1]])
        pipeline: Any = method.pipeline(numeric=samples.numeric, random_state=0)
        pipeline.set_params(costs=(middle_cost(list(pipeline.costs)),))
        train, test = (samples.take(np.flatnonzero(rows)) for rows in (~held_out, held_out))
        with suppress(*UNFIT):  # too few are left in this specification
            decisions = pipeline.fit_samples(TrainingSamples(train)).decide(test)
            scores[place] = _score_fold(decisions, train, test)
    ranking: Any = method_or_ours(None).pipeline(numeric=samples.numeric, random_state=0)
    with suppress(*UNFIT):
        selector = ranking.fit_selector(TrainingSamples(samples), {})
        return scores, pd.Series(selector.ranking_, index=samples.columns)
    return scores, pd.Series(index=samples.columns, dtype=float)


def _score_fold(decisions: Floats, train: Samples, test: Samples) -> float:
    if test.numeric:
        of = (decisions[:, 0], test.y, test.subjects, train.subject_scores)
        return score_predictions(*of, ["subject_spearman"])["subject_spearman"]
    return score_decisions(decisions, test.y, test.subjects, ["roc_auc"])["roc_auc"]


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
    n_permutations: int = _N_PERMUTATIONS,
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
    specifications = [_Correlated(of_one, numeric) for of_one in np.asarray(values, dtype=float)]
    goal = np.asarray(target, dtype=float)
    goal = rankdata(goal) if numeric else goal
    has = np.stack([each.has for each in specifications])
    t, q, median, share = _over_specifications(specifications, has, goal[None])
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(goal.size), (n_permutations, 1)), axis=1)
    most = [
        [np.nanmax(of, axis=1, initial=0.0) for of in (np.abs(medians), shares)]
        for batch in gen_batches(n_permutations, max(1, _BLOCK // has.size))
        for *_, medians, shares in [_over_specifications(specifications, has, goal[orders[batch]])]
    ]
    p_values = [
        (1 + (null[:, None] >= of * (1 - 1e-9)).sum(axis=0)) / (n_permutations + 1)
        for null, of in zip(np.hstack(most), (np.abs(median[0]), share[0]), strict=True)
    ]
    p_median, p_share = (np.where(np.isnan(median[0]), np.nan, p) for p in p_values)
    return JointTest(t[0], q[0], p_median, p_share)


class _Correlated:
    """The features of a specification, ready to be correlated with many targets."""

    def __init__(self, values: Floats, numeric: bool) -> None:
        self._seen = (~np.isnan(values)).astype(float)
        ranked = rankdata(values, axis=0, nan_policy="omit") if numeric else values
        self._n = self._seen.sum(axis=0)
        centred = ranked - np.nansum(ranked, axis=0) / np.maximum(self._n, 1)
        self._values = np.nan_to_num(centred)
        self._squares = (self._values**2).sum(axis=0)
        self.has: NDArray[np.bool_] = (self._n > 2) & (self._squares > 0)

    def t_and_p(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return t and p for each target and feature; 0 and 1 where a target does not vary."""
        y, y2 = targets @ self._seen, targets**2 @ self._seen
        freedom = np.maximum(self._n - 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(self._squares * (y2 - y**2 / self._n))
            r = np.clip(np.nan_to_num(targets @ self._values / spread, posinf=0, neginf=0), -1, 1)
            t = r * np.sqrt(freedom / np.maximum(1 - r**2, 1e-12))
        return t, 2 * special.stdtr(freedom, -np.abs(t))


def _over_specifications(
    specifications: Sequence[_Correlated], has: NDArray[np.bool_], targets: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return t and q, (n_targets, n_specifications, n_features), median t and largest share."""
    t = np.full((len(targets), *has.shape), np.nan)
    q = np.full(t.shape, np.nan)
    for number, (each, there) in enumerate(zip(specifications, has, strict=True)):
        of_all, p = each.t_and_p(targets)
        t[:, number, there] = of_all[:, there]
        q[:, number, there] = _false_discovery_rates(p[:, there])
    n_with = has.sum(axis=0)
    shares = [
        ((q <= ALPHA) & (side * t > 0)).sum(axis=1) / np.maximum(n_with, 1) for side in (1, -1)
    ]
    tested = 2 * n_with >= len(has)
    median = np.full((len(targets), has.shape[1]), np.nan)
    median[:, tested] = np.nanmedian(t[..., tested], axis=1)
    return t, q, median, np.where(tested, np.maximum(*shares), np.nan)


def _effects(values: Floats, y: pd.Series, features: Sequence[str], numeric: bool) -> pd.DataFrame:
    """Return the effect of each feature in a specification, its 95 % CI and p."""
    named = feature_effects(values, y.to_numpy(), names=features, numeric=numeric)
    size = "spearman" if numeric else "hedges_g"
    names = {size: "effect", f"{size}_low": "low", f"{size}_high": "high"}
    return named.rename(columns=names)[["feature", "effect", "low", "high", "p"]]


def _summarise(
    effects: pd.DataFrame, joint: JointTest, features: Sequence[str], classes: Any
) -> pd.DataFrame:
    """Return a row for each feature over all specifications."""
    size, rank = (
        effects[name].to_numpy().reshape(-1, len(features)) for name in ("effect", "rank")
    )
    t, there = joint.t, ~np.isnan(joint.t)
    n_with = np.maximum(there.sum(axis=0), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # features that no specification has
        middle, median = np.nanmedian(t, axis=0), np.nanmedian(size, axis=0)
    kept = there & (np.sign(t) == np.sign(middle))
    words = np.array(["falls with the score", "rises with the score"])
    if len(classes):
        words = np.array([f"higher in {name}" for name in classes])
    frame = pd.DataFrame(
        {
            "feature": list(features),
            "direction": np.where(np.isnan(middle), "", words[(middle > 0).astype(int)]),
            "effect": median,
            "share_direction": kept.sum(axis=0) / n_with,
            "share_first": (rank <= N_FIRST).sum(axis=0) / n_with,
            "share_significant": (kept & (joint.q <= ALPHA)).sum(axis=0) / n_with,
            "p_median": joint.p_median,
            "p_share": joint.p_share,
            "t": np.abs(middle),
        }
    )
    ordered = frame.sort_values(["p_median", "t"], ascending=[True, False], ignore_index=True)
    return ordered.drop(columns="t")


def _false_discovery_rates(p: Floats) -> Floats:
    """Return the rates of Benjamini and Hochberg in each row."""
    order = np.argsort(p, axis=1)
    n = p.shape[1]
    scaled = np.take_along_axis(p, order, axis=1) * n / np.arange(1, n + 1)
    least = np.minimum.accumulate(scaled[:, ::-1], axis=1)[:, ::-1]
    q = np.empty_like(p)
    np.put_along_axis(q, order, np.minimum(least, 1.0), axis=1)
    return q


def _moves(options: pd.DataFrame, folds: Floats) -> pd.DataFrame:
    """Return by how much each option moves the score at equal other choices.

    In every fold scores are regressed on all options; the folds give the CI.
    """
    names = [(name, o) for name in options for o in dict.fromkeys(options[name])]
    names = [(name, o) for name, o in names if o != options[name].iloc[0]]
    design = [np.ones(len(options)), *((options[name] == o).to_numpy(float) for name, o in names)]
    solve = np.linalg.pinv(np.column_stack(design))[1:]
    moved = np.einsum("os,srf->orf", solve, folds)
    rows = []
    for (name, o), of_folds in zip(names, moved, strict=True):
        row = {
            "choice": name,
            "option": o,
            "instead_of": options[name].iloc[0],
            "difference": np.nan,
        }
        row |= dict.fromkeys(("low", "high", "p"), np.nan)
        if not np.isnan(of_folds).all():
            ci = fold_interval(of_folds)
            t = abs(ci.mean) / max(ci.standard_error, 1e-12)
            p = 2 * special.stdtr(max(ci.degrees_of_freedom, 1), -t)
            row |= {"difference": ci.mean, "low": ci.low, "high": ci.high, "p": p}
        rows.append(row)
    moves = pd.DataFrame(
        rows, columns=["choice", "option", "instead_of", "difference", "low", "high", "p"]
    )
    known = moves["p"].notna()
    moves.loc[known, "p"] = holm(moves.loc[known, "p"].to_numpy())
    return moves.sort_values("difference", key=lambda x: -x.abs(), ignore_index=True)
