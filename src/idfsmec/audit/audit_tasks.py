"""How an audit is run: its parts as tasks, in memory for one table or into a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._parallel import count_jobs, run_tasks
from idfsmec.audit.confounding import (
    Subjects,
    boosting_decisions,
    judge_alone,
    judge_together,
    leading_decisions,
    logistic_decisions,
    propensity,
)
from idfsmec.audit.leakage import (
    N_FEATURES,
    eeg_decisions,
    permuted_aucs,
    repeated_rows,
    sample_scores,
    two_names,
)
from idfsmec.audit.variables import Variables, encode_variables
from idfsmec.audit.verdict import Audit, audits_of, find_suspects, put_together
from idfsmec.errors import InputError
from idfsmec.evaluation.protocol import Folds, Protocol, make_folds, most_splits
from idfsmec.evaluation.results import AUDIT, Results, write_json
from idfsmec.evaluation.run import do_tasks, method_or_ours, opened
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tables import Tables, name_tables, table_arrays
from idfsmec.evaluation.tasks import UNFIT, Task, make_task, rank_whole, run_task
from idfsmec.metrics import holm
from idfsmec.prediction.methods import Method
from idfsmec.prediction.pipeline import TableArrays
from idfsmec.progress import Listener, Progress
from idfsmec.table import FeatureTable

#: Folds by subject, unless the smallest class has fewer subjects.
N_SPLITS = 10
#: What an audit consists of: methods of ``_Parts``.
PARTS = ("recording", "eeg", "regressed", "by_sample", "before", "shuffled", "names")


def audit(
    table: FeatureTable,
    *,
    also: Sequence[str] = (),
    method: str | Method | None = None,
    n_splits: int = N_SPLITS,
    folds: Folds = "subject",
    seed: int = 0,
    n_jobs: int | None = 1,
    parts: Sequence[str] | None = None,
    progress: Listener | None = None,
) -> Audit:
    """Test whether acquisition separates the groups as well as the EEG does.

    What is known of how each subject was recorded (acquisition facts, columns of the manifest,
    what the table itself shows) is tested against the diagnosis: each variable alone, and all
    together by models with subjects held out, in the folds in which the EEG is scored. Then the
    EEG is scored among subjects whose acquisition matches and with those variables regressed
    out, and usual leaks are looked for.

    Parameters
    ----------
    table : FeatureTable
        From ``idfsmec features``, it has acquisition facts.
    also : sequence of str
        Further columns beside the features to take as circumstances; see
        :func:`recording_variables`.
    method : str or Method, optional
        What the EEG's score comes from, untuned, with its first 20 features; by default
        IDFS-MEC.
    n_splits : int, default=10
        Folds by subject; fewer where a class has fewer subjects.
    folds : {"subject", "site"}, default="subject"
        Whether subjects are held out, or one site after the other: acquisition and EEG are then
        scored at sites that were not known.
    seed : int, default=0
        Decides folds and permutations.
    n_jobs : int, default=1
        Processes; results do not depend on it.
    parts : sequence of str, optional
        Beside ``recording``, which all else is compared with, only some of ``eeg``,
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
    >>> found = audit(extract_table(cohort.recordings).table, n_splits=4, parts=["eeg"])
    >>> found.level, found.suspects[:2]
    ('red', ['line_amplitude', 'amplitude'])
    """
    tasks, arrays = _plan("table", table, also, method, n_splits, folds, seed, parts)
    report = progress or (lambda event: None)
    report(Progress(AUDIT, 0, len(tasks)))
    found, work = {}, partial(run_task, tables={"table": arrays})
    outcomes = run_tasks(work, tasks, n_jobs=count_jobs(n_jobs))
    for n_done, (place, outcome) in enumerate(outcomes, 1):
        task = tasks[place]
        part = task.coordinates["part"]
        if outcome.result is None:
            raise RuntimeError(f"the part {part} of the audit failed: {outcome.error}")
        found[part] = outcome.result.found
        report(Progress(AUDIT, n_done, len(tasks), (task, outcome)))
    return put_together(found)


def add_audit(
    tables: Tables,
    out: str | Path,
    *,
    also: Sequence[str] = (),
    method: str | Method | None = None,
    n_splits: int | None = None,
    folds: Folds | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Audit tables into a folder of results; what it holds already is not computed again.

    Parameters
    ----------
    tables : FeatureTable or mapping of name to FeatureTable
        As given to :func:`~idfsmec.evaluation.accuracy`.
    out : path
        The folder of its results.
    also, method, seed, progress
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
    with opened(out, AUDIT, named, overwrite) as store:
        run = (store.get_meta("protocols") or {}).get("accuracy", {})
        n_splits = n_splits or int(run.get("n_splits", N_SPLITS))
        folds = folds or ("site" if run.get("folds") == "site" else "subject")
        tasks: list[Task] = []
        arrays = {}
        for name, table in named.items():
            planned = _plan(name, table, also, method, n_splits, folds, seed, None)
            tasks, arrays[name] = tasks + planned[0], planned[1]
        do_tasks(store, AUDIT, tasks, arrays, n_processes, progress, keep=True)
    results = Results.read(out)
    audits = {name: audit.as_dict() for name, audit in audits_of(results).items()}
    write_json(results.folder / "audit.json", audits)
    return results


def _plan(
    name: str,
    table: FeatureTable,
    also: Sequence[str],
    method: str | Method | None,
    n_splits: int,
    folds: Folds,
    seed: int,
    parts: Sequence[str] | None,
) -> tuple[list[Task], TableArrays]:
    """Check what is asked for and list the tasks; the longest first, so that none waits for it."""
    scored = method_or_ours(method)
    if table.y.nunique() < 2:
        raise InputError(f"all samples have the label {table.y.iloc[0]!r}: nothing to audit")
    if n_splits < 2:
        raise InputError(f"n_splits={n_splits}: give at least 2", argument="n_splits")
    if folds not in ("subject", "site"):
        raise InputError(f"folds is {folds!r}; choose 'subject' or 'site'", argument="folds")
    if folds == "site":
        make_folds(table.y, table.subjects, folds, sites=table.sites)
    if unknown := [part for part in parts or () if part not in PARTS]:
        raise InputError(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    arrays = table_arrays({name: table}, [scored.imputing])[name]
    variables, described = encode_variables(table, also), scored.describe()
    scored = scored.resolve()
    # By site their number is that of the sites.
    decided_by = {"folds": folds} if folds == "site" else {"n_splits": n_splits}
    wanted = PARTS if parts is None else dict.fromkeys(["recording", *parts])
    how: dict[str, Any] = {"method": scored, "variables": variables, "seed": seed}
    how |= {"n_splits": n_splits, "folds": folds}
    tasks = [
        make_task(
            arrays,
            scored,
            partial(_compute_part, part=part, **how),
            {"part": part},
            kind="audit",
            described=described,
            part=part,
            variables=variables.digest,
            seed=seed,
            **decided_by,
        )
        for part in sorted(wanted, key=lambda part: part != "shuffled")
    ]
    return tasks, arrays


def _compute_part(table: TableArrays, *, part: str, **how: Any) -> TaskResult:
    try:
        return TaskResult(found=getattr(_Parts(table, **how), part)())
    except UNFIT as error:  # data that cannot be ranked
        return TaskResult(found={"reason": str(error)})


class _Parts:
    """The parts of an audit; those that hold somebody out are empty where there are no folds."""

    def __init__(
        self,
        table: TableArrays,
        method: Method,
        variables: Variables,
        n_splits: int,
        folds: Folds,
        seed: int,
    ) -> None:
        self.table, self.variables, self.seed, self.folds = table, variables, seed, folds
        self.subjects = Subjects.of(table.y, table.subjects, table.n_classes)
        given = table.y, table.subjects
        splits = []
        if folds == "site":
            splits = make_folds(*given, "site", sites=table.sites)
        elif (n_splits := min(n_splits, most_splits(*given))) >= 2:
            splits = make_folds(*given, "subject", n_splits, seed)
        self.n_folds = len(splits)
        fold_of = np.zeros(table.y.size, dtype=np.intp)
        for place, (_, held_out) in enumerate(splits):
            fold_of[held_out] = place
        self.fold_of = self.subjects.of_subjects(fold_of)
        protocol = Protocol(folds=folds, n_splits=max(len(splits), 2), ks=(N_FEATURES,))
        self.how = method, table, protocol, seed

    def tests(self) -> dict[str, Any]:
        """Tests of each variable, and of all together, corrected for their number."""
        seed, together = self.seed, {}
        alone = judge_alone(self.variables, self.subjects, seed=seed)
        if self.n_folds and alone:
            values = self.variables.values
            together["p"] = judge_together(values, self.subjects, self.fold_of, seed=seed)
        tests = [test for test in (*alone, together) if test]
        for test, p in zip(tests, holm([test["p"] for test in tests]).tolist(), strict=True):
            test["p_holm"] = p
        return {"alone": alone, "together": together}

    def recording(self) -> dict[str, Any]:
        """What the acquisition alone tells: each variable, and all of them together."""
        variables, subjects, tests = self.variables, self.subjects, self.tests()
        if tests["together"]:
            data = variables.values, subjects.y, self.fold_of, subjects.n_classes
            tests["together"] |= {
                "logistic": logistic_decisions(*data).tolist(),
                "boosting": boosting_decisions(*data).tolist(),
            }
        suspects = variables.columns_of(find_suspects(tests))
        return tests | {
            "propensity": propensity(suspects, subjects.y, subjects.n_classes).tolist(),
            "leader": leading_decisions(variables, subjects, tests["alone"]),
            "y": subjects.y.tolist(),
            "classes": [str(name) for name in self.table.classes],
            "n_splits": self.n_folds,
            "folds": self.folds,
            "described": variables.described,
            "unused": list(variables.unused),
        }

    def eeg(self) -> dict[str, Any]:
        """What the EEG tells of subjects held out."""
        if not self.n_folds:
            return {}
        decisions = eeg_decisions(*self.how)
        return {
            "decisions": self.subjects.mean(decisions).tolist(),
            "scores": sample_scores(decisions, self.table),
        }

    def regressed(self) -> dict[str, Any]:
        """What the EEG tells once the variables associated with the diagnosis are taken out."""
        names = find_suspects(self.tests()) if self.n_folds else []
        if not names:
            return {}
        nuisance = self.variables.columns_of(names)
        decisions = eeg_decisions(*self.how, regress_out=(self.subjects, nuisance))
        return {"decisions": self.subjects.mean(decisions).tolist(), "variables": names}

    def by_sample(self) -> dict[str, Any]:
        """What sample-wise folds, which have subjects on both sides, would claim."""
        if not self.n_folds or np.bincount(self.table.subjects).max() < 2:
            return {}
        method, table, protocol, seed = self.how
        sample_wise = protocol.with_changes(folds="sample")
        return sample_scores(eeg_decisions(method, table, sample_wise, seed), table)

    def before(self) -> dict[str, Any]:
        """What selecting features on all subjects, before splitting, would claim."""
        if not self.n_folds:
            return {}
        method, table = self.how[:2]
        ranking = rank_whole(method, method.settings[method.default_setting], table)
        if "rank" not in ranking:
            return {}
        ranks = np.array(ranking["rank"], dtype=np.intp)
        return sample_scores(eeg_decisions(*self.how, ranks=ranks), table)

    def shuffled(self) -> dict[str, Any]:
        """What labels that mean nothing give."""
        return {"auc": permuted_aucs(*self.how, self.subjects)} if self.n_folds else {}

    def names(self) -> dict[str, Any]:
        """Subjects under two names, and rows that come twice."""
        found = {"two_names": two_names(self.table), "repeated": repeated_rows(self.table)}
        names = self.variables.subjects
        for look in found.values():
            if "pairs" in look:
                look["pairs"] = [[names[a], names[b], *rest] for a, b, *rest in look["pairs"]]
        return found
