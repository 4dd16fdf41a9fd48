"""How an audit is run: in memory for one table, or into a folder of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from idfsmec._jobs import count_jobs
from idfsmec.errors import InputError
from idfsmec.evaluation.auditing.summary import Audit, put_together
from idfsmec.evaluation.auditing.units import PARTS, AuditUnit, plan_audit
from idfsmec.evaluation.auditing.variables import encode_variables
from idfsmec.evaluation.execution import execute
from idfsmec.evaluation.folds import make_folds
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.methods import METHODS, proposed_method
from idfsmec.evaluation.protocol import Folds
from idfsmec.evaluation.results import AUDIT_EXPERIMENT, Results
from idfsmec.evaluation.run import do_units, opened
from idfsmec.evaluation.tables import TableArrays, Tables, name_tables
from idfsmec.progress import Listener, Progress
from idfsmec.table import FeatureTable

#: Folds by person, unless the smallest class has fewer people.
N_SPLITS = 10


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
    """Ask whether the recording tells the groups apart as well as the EEG does.

    What is known of how each person was recorded (the facts of recordings, columns of the
    manifest, what the table itself shows) is tested against the label: each variable alone, and
    all together by models that see other people only, in the folds in which the EEG is judged.
    Then the EEG's figure is asked again among people recorded alike and with those variables
    regressed out, and usual leaks are looked for.

    Parameters
    ----------
    table : FeatureTable
        From ``idfsmec features``, it has the facts of its recordings.
    also : sequence of str
        Further columns beside the features to take as circumstances; see
        :func:`recording_variables`.
    method : str or Method, optional
        What the EEG's figure comes from, untuned, with its first 20 features; by default
        IDFS-MEC.
    n_splits : int, default=10
        Folds by person; fewer where a class has fewer people.
    folds : {"subject", "site"}, default="subject"
        Whether people are held out, or one site after the other: recording and EEG are then
        judged at hospitals that were not known.
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
    >>> found = audit(extract_table(cohort.recordings).table)
    >>> found.level, found.suspects[:2]
    ('red', ['line_amplitude', 'amplitude'])
    """
    units, arrays = _plan("table", table, also, method, n_splits, folds, seed, parts)
    tell = progress or (lambda event: None)
    tell(Progress(AUDIT_EXPERIMENT, 0, len(units)))
    by_key, found = {unit.key: unit for unit in units}, {}
    outcomes = execute(units, {"table": arrays}, count_jobs(n_jobs))
    for n_done, outcome in enumerate(outcomes, 1):
        unit = by_key[outcome.key]
        if outcome.result is None:
            raise RuntimeError(f"the part {unit.part} of the audit failed: {outcome.error}")
        found[unit.part] = outcome.result.found
        tell(Progress(AUDIT_EXPERIMENT, n_done, len(units), (unit, outcome)))
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
        As given to :func:`accuracy`.
    out : path
        The folder of its results.
    also, method, seed, progress
        As in :func:`audit`.
    n_splits : int, optional
        By default as many as the accuracy of the folder was measured with, or 10.
    folds : {"subject", "site"}, optional
        By default by site where the accuracy of the folder was, else by subject.
    n_jobs, overwrite
        As in :func:`accuracy`.

    Returns
    -------
    Results
        ``audits`` has an :class:`Audit` per table.
    """
    named, n_processes = name_tables(tables), count_jobs(n_jobs)
    planned: dict[str, tuple[list[AuditUnit], TableArrays]] = {}
    with opened(out, AUDIT_EXPERIMENT, named, overwrite) as store:
        ran: Mapping[str, dict] = store.get_meta("protocols") or {}
        run = ran.get("accuracy", {})
        wanted = n_splits or int(run.get("n_splits", N_SPLITS))
        kind = folds or ("site" if run.get("folds") == "site" else "subject")
        for name, table in named.items():
            planned[name] = _plan(name, table, also, method, wanted, kind, seed, None)
        units = [unit for own, _ in planned.values() for unit in own]
        store.set_plan(AUDIT_EXPERIMENT, units, keep=True)
        arrays = {name: own for name, (_, own) in planned.items()}
        do_units(store, AUDIT_EXPERIMENT, units, arrays, n_processes, None, progress)
    return Results.read(out)


def _plan(
    name: str,
    table: FeatureTable,
    also: Sequence[str],
    method: str | Method | None,
    n_splits: int,
    folds: Folds,
    seed: int,
    parts: Sequence[str] | None,
) -> tuple[list[AuditUnit], TableArrays]:
    judged = proposed_method() if method is None else METHODS.find(method)
    if judged is None:
        raise InputError("no method of the family 'proposed' is registered; name one with method")
    if table.y.nunique() < 2:
        raise InputError(f"all samples have the label {table.y.iloc[0]!r}: nothing to audit")
    if n_splits < 2:
        raise InputError(f"n_splits={n_splits}: give at least 2", argument="n_splits")
    if folds not in ("subject", "site"):
        raise InputError(f"folds is {folds!r}; choose 'subject' or 'site'", argument="folds")
    if folds == "site":
        make_folds(table.y, table.subjects, folds, sites=table.sites)
    unknown = [part for part in parts or () if part not in PARTS]
    if unknown:
        raise InputError(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    arrays = TableArrays.of(name, table, judged.filling.needs_positions)
    variables = encode_variables(table, also)
    # All else is compared with what the recording tells.
    wanted = tuple(PARTS) if parts is None else tuple(dict.fromkeys(["recording", *parts]))
    how: dict[str, Any] = {"n_splits": n_splits, "folds": folds, "seed": seed}
    units = plan_audit(arrays, variables, judged, **how, parts=wanted)
    return units, arrays
