"""Run an audit: its parts as tasks, in memory for one table or into a folder of results."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import euclidean_distances

from idfsmec._files import write_json
from idfsmec._parallel import count_jobs
from idfsmec.audit import confounding
from idfsmec.audit.association import Fact, carried_facts, facts_of
from idfsmec.audit.levels import found_units
from idfsmec.audit.variables import FAMILIES, encode_variables
from idfsmec.audit.verdict import Audit, audits_of, put_together
from idfsmec.errors import InputError
from idfsmec.evaluation.results import AUDIT, Results
from idfsmec.evaluation.run import (
    ResultsFolder,
    Tables,
    compute_tasks,
    do_tasks,
    method_or_ours,
    name_tables,
    open_store,
    recorded_run,
    table_arrays,
)
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tasks import UNFIT, Task, describe_method, make_task, rank_whole
from idfsmec.metrics import (
    Codes,
    Floats,
    Scores,
    concordance,
    mean_by_subject,
    score_decisions,
)
from idfsmec.prediction.folds import Fold, FoldUnit, make_folds, most_splits
from idfsmec.prediction.methods import Method
from idfsmec.prediction.samples import Samples, TrainingSamples
from idfsmec.prediction.sanity import PresetOrder
from idfsmec.prediction.tuning import middle_cost
from idfsmec.progress import Listener
from idfsmec.solver.scaling import Scaling
from idfsmec.table import FeatureTable

#: FoldUnit by subject, unless the smallest class has fewer subjects.
N_SPLITS = 10
#: What an audit consists of: methods of ``_Parts``.
PARTS = ("recording", "eeg", "regressed", "by_sample", "before", "shuffled", "names")
#: Features that are used; the method is not tuned, so that an audit stays cheap.
N_FEATURES = 20
#: How often labels are permuted to look for a leak.
N_SHUFFLES = 3
#: Two names look like one subject if a sample of each is hardly farther from the other's nearest
#: sample than from its own subject's: by this factor, in the median. On a public table of 59
#: subjects the nearest two differ by 1.29, and most that were split in two by less than 1.1.
RATIO = 1.15
#: With fewer samples a subject's own neighbours cannot be distinguished from others'.
FEWEST_SAMPLES = 8
# Samples that are compared with each other at most: distances grow with their square.
_MOST_SAMPLES = 3000


def audit(
    table: FeatureTable,
    *,
    also: Sequence[str] = (),
    n_splits: int = N_SPLITS,
    folds: FoldUnit = "subject",
    seed: int = 0,
    n_jobs: int | None = None,
    parts: Sequence[str] | None = None,
    progress: Listener | None = None,
) -> Audit:
    """Test whether the groups differ in who or how was recorded, and whether the EEG carries it.

    What is known of each subject and recording (acquisition facts, columns of the manifest, what
    the table itself shows) is tested against the diagnosis: each fact alone, at both extremes, and
    in pairs. Facts that are associated are held against the EEG's decisions on subjects held out
    (IDFS-MEC, untuned, first 20 features) within each diagnosis. Then the EEG is scored among
    subjects who match and with those facts regressed out, and usual leaks are looked for.

    Parameters
    ----------
    table : FeatureTable
        From ``idfsmec features``, it has acquisition facts.
    also : sequence of str
        Further columns beside the features to take as circumstances; see
        :func:`recording_variables`.
    n_splits : int, default=10
        Folds by subject; fewer where a class has fewer subjects.
    folds : {"subject", "site"}, default="subject"
        Whether subjects are held out, or one site after the other: acquisition and EEG are then
        scored at sites that were not known.
    seed : int, default=0
        Decides folds and permutations.
    n_jobs : int, optional
        Processes, as in joblib: -1 is one per core. Results do not depend on it.
    parts : sequence of str, optional
        Beside ``recording``, the tests of all facts, only some of ``eeg``,
        ``regressed``, ``by_sample``, ``before``, ``shuffled``, ``names``.
    progress : callable, optional
        Called with a :class:`~idfsmec.progress.Progress` at the start and after each part.

    Returns
    -------
    Audit
        ``print(audit.summary())`` says it in words.

    See Also
    --------
    add_audit : The same inside a folder of results.

    Examples
    --------
    >>> from idfsmec.features import extract_table
    >>> from idfsmec.recordings import simulate_cohort
    >>> cohort = simulate_cohort(
    ...     24, 3, duration=20, detached=0, confound={"gain": 3.0}, random_state=0
    ... )
    >>> result = audit(extract_table(cohort.recordings).table, n_splits=4, parts=["eeg"])
    >>> result.level, result.suspects[:2]
    ('red', ['amplitude', 'drift'])
    """
    if unknown := [part for part in parts or () if part not in PARTS]:
        raise InputError(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    _check(table, n_splits, folds)
    wanted = PARTS if parts is None else tuple(dict.fromkeys(["recording", *parts]))
    arrays, encoded, by_part = table_arrays({"table": table}), encode_variables(table, also), {}
    how: dict[str, Any] = {"n_splits": n_splits, "folds": folds, "seed": seed}
    tasks = _plan(arrays["table"], *encoded, wanted, **how)
    for task, result in compute_tasks(AUDIT, tasks, arrays, count_jobs(n_jobs), progress):
        part = task.coordinates["part"]
        if result.error is not None:
            raise RuntimeError(f"the part {part} of the audit failed: {result.error}")
        by_part[part] = result.found
    return put_together(by_part)


def add_audit(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    also: Sequence[str] = (),
    n_splits: int | None = None,
    folds: FoldUnit | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Audit tables and store the results in a folder; finished tasks are not repeated.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        As given to :func:`~idfsmec.evaluation.accuracy`.
    out : path
        The folder of its results.
    also, seed, progress
        As in :func:`audit`.
    n_splits : int, optional
        By default as many as the accuracy of the folder was measured with, or 10.
    folds : {"subject", "site"}, optional
        By default by site where the accuracy of the folder was, else by subject.
    n_jobs, overwrite
        As in :func:`~idfsmec.evaluation.accuracy`.

    Returns
    -------
    Results
        :func:`audits_of` makes an :class:`Audit` of each table of them.
    """
    named, n_processes = name_tables(tables), count_jobs(n_jobs)
    for table in named.values():  # before anything is written
        _check(table, n_splits or N_SPLITS, folds or "subject")
    encoded = {name: encode_variables(table, also) for name, table in named.items()}
    with open_store(out, overwrite) as store:
        with recorded_run(store, AUDIT, named, overwrite):
            run = (store.get_meta("protocols") or {}).get("accuracy", {})
            n_splits = n_splits or int(run.get("n_splits", N_SPLITS))
            folds = folds or ("site" if run.get("folds") == "site" else "subject")
            how: dict[str, Any] = {"n_splits": n_splits, "folds": folds, "seed": seed}
            arrays = table_arrays(named)
            planned = (_plan(arrays[name], *encoded[name], PARTS, **how) for name in named)
            tasks = list(itertools.chain.from_iterable(planned))
            do_tasks(store, AUDIT, tasks, arrays, n_processes, progress, keep=True)
        results = Results.of(store)
    audits = {name: audit.as_dict() for name, audit in audits_of(results).items()}
    write_json(results.folder / "audit.json", audits)
    return results


def _check(table: FeatureTable, n_splits: int, folds: FoldUnit) -> None:
    """Refuse a table or folds that cannot be audited."""
    if table.target.is_numeric:
        if np.unique(table.targets).size < 2:
            raise InputError(f"all participants have the same {table.target.name}")
    elif table.y.nunique() < 2:
        raise InputError(f"all samples have the label {table.y.iloc[0]!r}: nothing to audit")
    if n_splits < 2:
        raise InputError(f"n_splits={n_splits}: give at least 2", argument="n_splits")
    if folds not in ("subject", "site"):
        raise InputError(f"folds is {folds!r}; choose 'subject' or 'site'", argument="folds")
    if folds == "site":
        numeric = table.target.is_numeric
        make_folds(table.targets, table.subjects, folds, sites=table.sites, numeric=numeric)


def _plan(
    table: Samples,
    variables: pd.DataFrame,
    about: dict[str, Any],
    parts: Sequence[str],
    **how: Any,
) -> Iterator[Task]:
    """List the tasks; the longest first, so that none waits for it."""
    scored = method_or_ours(None)
    decided_by = {"kind": "audit 4", "described": describe_method(scored), **how}
    of_columns, names = pd.factorize(variables.columns.get_level_values("variable"))
    levels = variables.columns.get_level_values("level")
    named = "\x1f".join([*names, *levels, str(about["described"])])
    raw = np.ascontiguousarray(variables).tobytes() + of_columns.tobytes()
    decided_by["variables"] = hashlib.sha256(named.encode() + raw).hexdigest()
    if how["folds"] == "site":
        del decided_by["n_splits"]  # their number is that of the sites
    method = scored.resolve()
    how |= {"method": method, "variables": variables, "about": about}
    for part in sorted(parts, key=lambda part: part != "shuffled"):
        where = {"part": part}
        compute = partial(_compute_part, part=part, **how)
        yield make_task(table, method, compute, where, **where, **decided_by)


def _compute_part(table: Samples, *, part: str, **how: Any) -> TaskResult:
    try:
        parts = _Parts(table, **how)
        if not parts.splits and part not in ("recording", "names"):
            return TaskResult()  # no subject can be held out
        return TaskResult(found=getattr(parts, part)())
    except UNFIT as error:  # data that cannot be ranked
        return TaskResult(found={"reason": str(error)})


@dataclass
class _Parts:
    """The parts of an audit."""

    table: Samples
    method: Method
    variables: pd.DataFrame
    about: dict[str, Any]
    n_splits: int
    folds: FoldUnit
    seed: int

    def __post_init__(self) -> None:
        table, self.splits = self.table, list[Fold]()
        self.subjects = confounding.LabelledSubjects.of(table)
        n_splits = min(self.n_splits, most_splits(table.y, table.subjects, numeric=table.numeric))
        if self.folds == "site" or n_splits >= 2:
            self.splits = self._split(table, self.folds, n_splits)
        fold_of = np.zeros(table.y.size, dtype=np.intp)
        for fold, (_, held_out) in enumerate(self.splits):
            fold_of[held_out] = fold
        self.fold_of = self.subjects.of_subjects(fold_of)

    def _split(self, table: Samples, folds: FoldUnit, n_splits: int) -> list[Fold]:
        given = table.y, table.subjects, folds, n_splits, self.seed
        return make_folds(*given, sites=table.sites, numeric=table.numeric)

    @cached_property
    def facts(self) -> dict[str, Fact]:
        """What is known of the subjects, by name."""
        return facts_of(self.variables)

    @cached_property
    def tests(self) -> dict[str, Any]:
        """Tests of each family of variables against the diagnosis."""
        return confounding.judge_facts(self.facts, self.subjects, seed=self.seed)

    def recording(self) -> dict[str, Any]:
        """Test what is known of subjects and recordings."""
        tests, y, coincide = self.tests, self.subjects.y, None
        n_classes, units = self.subjects.n_classes, found_units(self.tests)
        log_odds = np.zeros((y.size, n_classes))
        if units and not self.subjects.is_scored:
            everything = confounding.adjusting_columns(self.facts, units)
            log_odds = confounding.propensity(everything, y, n_classes)
        if (units := found_units(tests, "acquisition")) and self.splits:
            values = confounding.adjusting_columns(self.facts, units)
            coincide = confounding.held_out_auc(values, y, self.fold_of, n_classes)
        return tests | {
            "coincide": coincide,
            "propensity": log_odds.tolist(),
            "y": y.tolist(),
            "fold_of": self.fold_of.tolist(),
            "classes": [str(name) for name in self.table.classes],
            "score": self.about["target"] if self.subjects.is_scored else "",
            "n_splits": len(self.splits),
            "folds": self.folds,
            **self.about,
        }

    def eeg(self) -> dict[str, Any]:
        """Score the EEG on held-out subjects, and test which facts its decisions carry."""
        decisions = self.decide(self.table, self.splits)
        subjects, of_subjects = self.subjects, self.subjects.mean(decisions)
        columns = of_subjects
        if subjects.n_classes == 2:
            columns = of_subjects[:, 1:] - of_subjects[:, :1]
        carried = [
            {**row, "family": family}
            for family in FAMILIES
            for row in carried_facts(
                columns,
                self.facts,
                found_units(self.tests, family),
                subjects.alike,
                score=subjects.y if subjects.is_scored else None,
                seed=self.seed,
            )
        ]
        scores = _score_samples(decisions, self.table)
        return {"decisions": of_subjects.tolist(), "scores": scores, "carried": carried}

    def regressed(self) -> dict[str, Any]:
        """Score the EEG after regressing out the variables associated with the diagnosis."""
        if not (units := found_units(self.tests)):
            return {}
        names = list(dict.fromkeys(name for unit in units for name in unit))
        nuisance = confounding.adjusting_columns(self.facts, units)
        decisions = self.decide(self.table, self.splits, nuisance=nuisance)
        return {"decisions": self.subjects.mean(decisions).tolist(), "variables": names}

    def by_sample(self) -> dict[str, Any]:
        """Score with sample-wise folds, which have subjects in training and test."""
        if np.bincount(self.table.subjects).max() < 2:
            return {}
        splits = self._split(self.table, "sample", len(self.splits))
        return _score_samples(self.decide(self.table, splits), self.table)

    def before(self) -> dict[str, Any]:
        """Score with features selected on all subjects, before splitting."""
        setting = self._untuned(0).settings[0]
        ranking = rank_whole(self.method, setting, self.table)
        if "rank" not in ranking:
            return {}
        ranks = np.array(ranking["rank"], dtype=np.intp)
        return _score_samples(self.decide(self.table, self.splits, ranks), self.table)

    def shuffled(self) -> dict[str, Any]:
        """Score with labels permuted between subjects: an AUC above chance shows a leak.

        With folds by site they are permuted within sites: each keeps its share of the classes.
        """
        aucs, table = [], self.table
        within = table.sites if self.folds == "site" else None
        for turn in range(N_SHUFFLES):
            y = self.subjects.permute(np.random.default_rng((self.seed, turn)), within)
            permuted = replace(table, y=y[self.subjects.member])
            most = most_splits(permuted.y, table.subjects, numeric=table.numeric)
            n_splits = min(len(self.splits), most)
            decisions = self.decide(permuted, self._split(permuted, self.folds, n_splits))
            aucs.append(_score_samples(decisions, permuted)["subject_roc_auc"])
        return {"auc": aucs}

    def names(self) -> dict[str, Any]:
        """Find subjects under two names, and rows that occur twice."""
        return {"two_names": two_names(self.table), "repeated": repeated_rows(self.table)}

    def _untuned(self, random_state: int) -> Any:
        """The estimator of the method at its default setting, with the usual cost."""
        pipeline = self.method.pipeline(
            n_features_to_select=(N_FEATURES,),
            random_state=random_state,
            numeric=self.table.numeric,
        )
        default = pipeline.settings[pipeline.default_setting]
        return pipeline.set_params(settings=(default,), costs=(middle_cost(list(pipeline.costs)),))

    def decide(
        self,
        table: Samples,
        splits: Sequence[Fold],
        ranks: Codes | None = None,
        nuisance: Floats | None = None,
    ) -> Floats:
        """Decisions of the untuned method for every sample from the fold that held it out.

        ``ranks`` were computed before splitting; ``nuisance`` is regressed out in each fold.
        """
        decisions = np.zeros((table.y.size, table.n_classes))
        for fold, (train, held_out) in enumerate(splits):
            used = table
            if nuisance is not None:
                X = confounding.residuals(table.X, nuisance, self.subjects, train)
                used = table.with_values(X)
            pipeline = self._untuned(fold)
            if ranks is not None:
                pipeline.set_params(selector=PresetOrder(ranks=ranks), settings=({},))
            training = TrainingSamples(used.take(train))
            decisions[held_out] = pipeline.fit_samples(training).decide(used.take(held_out))
        return decisions


def _score_samples(decisions: Floats, table: Samples) -> Scores:
    """Score decisions over samples and over subjects; of a score the concordance."""
    if table.numeric:
        of_subjects = mean_by_subject(decisions[:, 0], table.subjects)
        return {
            "roc_auc": concordance(decisions[:, 0], table.y),
            "subject_roc_auc": concordance(of_subjects, table.subject_scores),
        }
    wanted = ["roc_auc", "balanced_accuracy", "subject_roc_auc", "subject_balanced_accuracy"]
    return score_decisions(decisions, table.y, table.subjects, wanted)


def repeated_rows(table: Samples) -> dict[str, Any]:
    """Count samples that are equal to an earlier one in every feature, also across subjects."""
    X = np.ascontiguousarray(np.nan_to_num(table.X, nan=np.inf) + 0.0)  # -0.0 becomes 0.0
    rows = X.view(np.dtype((np.void, X.shape[1] * 8))).ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    earlier = first[group]
    observed = ~np.isnan(table.X).all(axis=1)
    repeated = (earlier != np.arange(len(rows))) & observed
    across = repeated & (table.subjects[earlier] != table.subjects)
    who = table.subject_names
    pairs = np.sort(np.column_stack([who[earlier], who])[across], axis=1)
    return {
        "n_repeated": int(repeated.sum()),
        "n_across": int(across.sum()),
        "pairs": np.unique(pairs, axis=0)[:10].tolist(),
    }


def two_names(table: Samples) -> dict[str, Any]:
    """Find subjects whose samples are as near to each other's as to their own.

    ``pairs`` are names of two subjects and how much farther the other's nearest sample is than the
    subject's own, the nearest first.
    """
    names, sizes = np.unique(table.subject_names, return_counts=True)
    most = max(FEWEST_SAMPLES, _MOST_SAMPLES // names.size)
    kept = []
    for name, size in zip(names, sizes, strict=True):  # all samples, or as many, evenly
        even = np.linspace(0, size - 1, min(size, most)).round().astype(np.intp)
        kept.append(np.flatnonzero(table.subject_names == name)[even])
    starts = np.cumsum([0, *map(len, kept[:-1])])
    member = np.repeat(np.arange(names.size), [len(rows) for rows in kept])
    enough = np.minimum(sizes, most) >= FEWEST_SAMPLES
    if enough.sum() < 2:
        return {"estimable": False}
    X = table.X[np.concatenate(kept)]
    X = np.clip(np.nan_to_num(Scaling.learn(X).apply(X)), -4, 4)
    # Many features are redundant: whitened by their main components.
    left, spread, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    used = np.cumsum(spread**2) <= 0.95 * (spread**2).sum()
    used[0] = True
    distances = euclidean_distances(left[:, used] * np.sqrt(spread[used]))
    np.fill_diagonal(distances, np.inf)
    nearest = np.minimum.reduceat(distances, starts, axis=1)
    within = nearest[np.arange(member.size), member]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(nearest / within[:, None], nan=1.0)
    farther = np.stack([np.median(ratios[member == k], axis=0) for k in range(names.size)])
    farther = np.maximum(farther, farther.T)
    farther[~np.outer(enough, enough) | np.eye(names.size, dtype=bool)] = np.inf
    pairs = sorted(np.argwhere(np.triu(farther <= RATIO)).tolist(), key=lambda p: farther[*p])
    return {
        "estimable": True,
        "pairs": [[str(names[a]), str(names[b]), float(farther[a, b])] for a, b in pairs[:10]],
    }
