"""Running experiments: what benchmark, reproduce, audit and demo have in common."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli.console import remark, say, show_frame, shown
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.evaluation import Results
    from idfsmec.table import FeatureTable

#: Colours of an audit's verdict.
COLOURS = {"red": "bold red", "amber": "bold yellow", "green": "bold green", "grey": "bold"}


def check_folder(out: Path, force: bool) -> None:
    """Refuse a folder that cannot be written, or with files that no benchmark has written."""
    from idfsmec._files import check_writable

    check_writable(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder with --out")
    check_writable(out / "store.sqlite", out / "figures")
    if force or (out / "store.sqlite").exists():
        return
    for name in ("results.csv", "results.parquet", "ranking.csv", "selections.parquet"):
        if (out / name).exists():
            raise InputError(
                f"{out / name} exists and is not from a benchmark; give another folder with "
                "--out, or --force to replace it"
            )


def read_tables(paths: Sequence[Path]) -> dict[str, FeatureTable]:
    """Read tables and name them by their files; of equal names, by their folders too."""
    from idfsmec.table import FeatureTable

    tables: dict[str, FeatureTable] = {}
    resolved = [path.resolve() for path in paths]
    for number, path in enumerate(paths):
        if resolved[number] in resolved[:number]:
            raise InputError(f"{path} is given twice; give each table once")
        name = path.name.split(".")[0]
        if name in tables:
            name = f"{resolved[number].parent.name}/{name}"
        if name in tables:
            raise InputError(f"{path}: two tables have the name {name}; rename one of the files")
        tables[name] = FeatureTable.read(path)
    return tables


def take_condition(table: FeatureTable, condition: Any, name: object) -> FeatureTable:
    """Keep the samples of conditions; say so where several are pooled without being asked for."""
    from idfsmec.cli.options import naming, split_names

    if wanted := split_names(condition):
        with naming(str(name)):
            return table.select_conditions(wanted)
    warn_of_pooling(table, name)
    return table


def warn_of_pooling(table: FeatureTable, name: object) -> None:
    """Say that samples of several conditions are taken together."""
    if len(table.conditions) > 1:
        conditions = ", ".join(table.conditions)
        remark(
            f"{name}: samples of several conditions are taken together ({conditions}); "
            f"--condition {table.conditions[0]} takes those of one",
            "yellow",
        )


def print_verdict(name: object, verdict: Mapping[str, str]) -> None:
    """Print the verdict of a table's audit with its reason, or that there was none."""
    from idfsmec.audit.verdict import NOT_AUDITED

    shown_verdict = verdict or NOT_AUDITED
    text = f"{name}: {shown_verdict['title']}. {shown_verdict['verdict']}"
    say(text, style=COLOURS[shown_verdict["level"]])


def warn_of_missingness(tables: dict[str, FeatureTable]) -> None:
    """Warn of tables in which the presence of a channel is associated with the diagnosis."""
    from idfsmec.missing.association import association_warning, missingness_association

    for name, table in tables.items():
        if text := association_warning(missingness_association(table)):
            remark(f"table {name}: {text}", "yellow")


def warn_of_open_cluster(address: str | None) -> None:
    """Warn of a scheduler without encryption, unless it is on this machine."""
    host = (address or "").removeprefix("tcp://")
    if host and not host.startswith(("tls://", "localhost", "127.", "[::1]", "inproc://")):
        remark(
            f"warning: {address} has neither encryption nor authentication: whoever reaches it "
            "can read the tables and run programs there. Use tls:// outside of a trusted network",
            "yellow",
        )


@contextmanager
def stop_cleanly(out: Path) -> Iterator[None]:
    """Name at Ctrl-C the folder that keeps finished tasks."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = (
            f"{error or 'stopped'}; finished tasks are kept in {out}. Give the same command to "
            "resume.",
        )
        raise


def resample_and_audit(
    out: Path,
    tables: dict[str, FeatureTable],
    *,
    resamples: int,
    audit: bool,
    seed: int,
    n_jobs: int,
    force: bool,
) -> Results:
    """Add the stability of the ranking and the audit to results."""
    from idfsmec.audit import add_audit
    from idfsmec.evaluation import Results, resampling
    from idfsmec.report import write_reporting_checklist

    with stop_cleanly(out), shown() as progress:
        how: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs, "progress": progress}
        if resamples:
            resampling(tables, out, n_resamples=resamples, overwrite=force, **how)
        if audit:
            add_audit(tables, out, overwrite=force, **how)
    results = Results.read(out)
    if audit:
        write_reporting_checklist(out / "reporting.md", results, tables, overwrite=True)
    return results


class RunningMeans:
    """Mean score per method over the tasks that have ended, and how many failed."""

    def __init__(self) -> None:
        self._n_failed = 0
        self._scores: dict[str, list[float]] = defaultdict(list)

    def update(self, item: Any) -> str | None:
        """Add a task: its chosen row, or the mean of all rows where none is chosen."""
        if not isinstance(item, tuple):
            return None  # a recording, of which a table was made first
        task, outcome = item
        if outcome.result is None:
            self._n_failed += 1
            where = ", ".join(f"{key} {value}" for key, value in task.coordinates.items())
            return f"failed: {where}: {(outcome.error or '').strip().splitlines()[-1]}"
        if task.metric:
            rows = [row for row in outcome.result.rows if row["chosen"]] or outcome.result.rows
            values = [row[task.metric] for row in rows if math.isfinite(row[task.metric])]
            if values:
                self._scores[task.method.name].append(math.fsum(values) / len(values))
        return None

    def sentence(self) -> str:
        """Return failures and means so far, the highest first."""
        means = {name: math.fsum(values) / len(values) for name, values in self._scores.items()}
        ordered = sorted(means.items(), key=lambda item: -item[1])
        parts = [f"{self._n_failed} failed"] if self._n_failed else []
        if ordered:
            scores = ", ".join(f"{name} {100 * mean:.0f}" for name, mean in ordered)
            parts += [f"mean so far in %: {scores}"]
        return "; ".join(parts)


def print_results(results: Results) -> None:
    """Print means, verdicts, the folder and failures."""
    from idfsmec.audit import audits_of
    from idfsmec.evaluation import electrode_curve

    for experiment in ("accuracy", "imputation", "ablation"):
        if len(results.chosen(experiment)):
            _print_means(results, experiment)
    for name in results.chosen("electrodes")["table"].unique():
        say(f"{name}: {electrode_curve(results, name).sentence}")
    audits = audits_of(results)
    for name in results.tables:
        print_verdict(name, audits[name].verdict if name in audits else {})
    say("results:", results.folder)
    if n_failed := len(results.failures):
        first = results.failures.iloc[0]
        remark(
            f"{n_failed} tasks failed, first {first['method']} on {first['table']}: "
            f"{first['traceback'].strip().splitlines()[-1]}. Tracebacks are in "
            f"{results.folder / 'store.sqlite'}; give the same command to repeat these tasks.",
            "red",
        )


def _print_means(results: Results, experiment: str) -> None:
    from idfsmec.report.text import format_range, format_score, metric_name

    protocol = results.protocol["experiments"][experiment]
    metric = protocol["metric"]
    means = results.mean_scores(metric, experiment)
    shares = {name: table.get("share_missing") for name, table in results.tables.items()}
    note = ", optimistic (best on test folds)" if protocol["tuning"] == "oracle" else ""
    cells = means.map(lambda value: format_score(metric, value, 1))
    cells.columns = [f"{100 * rate:g} %" for rate in means.columns]
    say(f"{experiment}: {metric_name(metric)} by share of channels removed")
    show_frame(f"{protocol['folds']}-wise folds{note}", cells.reset_index())
    for table, share in shares.items():
        if share:
            say(f"{table}: {100 * share:.1f} % of channel samples are missing as recorded.")
    for table, bands in results.protocol["chance"].items():
        if metric in bands:
            chance, band = bands[metric]["chance"], bands[metric]
            say(
                f"{table}: chance level {format_score(metric, chance)}, 95 % band "
                f"{format_range(metric, band['low'], band['high'])}."
            )
