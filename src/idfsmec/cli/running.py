"""Running experiments: what benchmark, reproduce, audit and demo have in common."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
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


def warn_of_missingness(tables: dict[str, FeatureTable]) -> None:
    """Say for which tables having a channel is associated with the label."""
    from idfsmec.missing.association import association_warning, missingness_association

    for name, table in tables.items():
        if text := association_warning(missingness_association(table)):
            remark(f"table {name}: {text}", "yellow")


def warn_of_open_cluster(address: str | None) -> None:
    """Say that a plain scheduler obeys everybody, unless it is this machine's own."""
    host = (address or "").removeprefix("tcp://")
    if host and not host.startswith(("tls://", "localhost", "127.", "[::1]", "inproc://")):
        remark(
            f"warning: {address} is neither encrypted nor asks who you are: everybody who reaches "
            "it can read the tables and run programs there. Use tls:// outside of a network that "
            "you trust",
            "yellow",
        )


@contextmanager
def stop_cleanly(out: Path) -> Iterator[None]:
    """Say at Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = (
            f"{error or 'stopped'}; what is finished is kept in {out}. Give the same command to "
            "go on.",
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
    """Add to results how stable the ranking is, and whether acquisition explains them."""
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
        self._metric = ""
        self._n_failed = 0
        self._scores: dict[str, list[float]] = defaultdict(list)
        self._ended: list[str] = []

    def begin(self, plan: dict[str, int]) -> str:
        """Say how many tasks each method has."""
        word = "task" if sum(plan.values()) == 1 else "tasks"
        return f"{', '.join(f'{name} {n}' for name, n in plan.items())} {word}"

    def update(self, item: Any) -> str | None:
        """Add a task: its chosen row, or the mean of all rows where none is chosen."""
        if not isinstance(item, tuple):
            return None  # a recording, of which a table was made first
        task, outcome = item
        name, coordinates = task.method.name, task.coordinates
        if outcome.result is None:
            self._n_failed += 1
            where = ", ".join(f"{key} {value}" for key, value in coordinates.items())
            return f"failed: {where}: {(outcome.error or '').strip().splitlines()[-1]}"
        if task.metric:
            self._metric = task.metric
            rows = [row for row in outcome.result.rows if row["chosen"]] or outcome.result.rows
            values = [row[self._metric] for row in rows if math.isfinite(row[self._metric])]
            if values:
                self._scores[name].append(math.fsum(values) / len(values))
        words = [f"{coordinates['rate']:.0%} missing"] if "rate" in coordinates else []
        words += [f"fold {coordinates['fold'] + 1}"] if "fold" in coordinates else []
        self._ended.append(f"{name} ({', '.join([*words, f'{outcome.seconds:.1f} s'])})")
        return None

    def sentence(self) -> str:
        """Say it in one line, with the tasks that have ended since the last one."""
        means = {name: math.fsum(values) / len(values) for name, values in self._scores.items()}
        ordered = sorted(means.items(), key=lambda item: -item[1])
        parts = [f"ended: {', '.join(self._ended)}"] if self._ended else []
        parts += [f"{self._n_failed} failed"]
        if ordered:
            scores = ", ".join(f"{name} {100 * mean:.1f}" for name, mean in ordered)
            parts += [f"mean {self._metric} %: {scores}"]
        self._ended.clear()
        return "; ".join(parts)


def print_results(results: Results) -> None:
    """Print means and verdicts, and say where everything is and what failed."""
    from idfsmec.audit import audits_of

    for experiment in ("accuracy", "imputation", "ablation"):
        if len(results.chosen(experiment)):
            _print_means(results, experiment)
    for name, audit in audits_of(results).items():
        say(f"{name}: {audit.summary().splitlines()[0]}", style=COLOURS[audit.level])
    say(f"results: {results.folder}")
    if n_failed := len(results.failures):
        first = results.failures.iloc[0]
        remark(
            f"{n_failed} tasks failed, first {first['method']} on {first['table']}: "
            f"{first['traceback'].strip().splitlines()[-1]}. Their tracebacks are in "
            f"{results.folder / 'store.sqlite'}; give the same command to try them again.",
            "red",
        )


def _print_means(results: Results, experiment: str) -> None:
    protocol = results.protocol["experiments"][experiment]
    metric = protocol["metric"]
    means = results.mean_scores(metric, experiment)
    shares = {name: table.get("share_missing") for name, table in results.tables.items()}
    note = ", best on test: optimistic" if protocol["tuning"] == "oracle" else ""
    verb = "taken out" if any(shares.values()) else "missing"
    cells = (100 * means).map("{:.1f}".format)
    cells.columns = [f"{100 * rate:g} % {verb}" for rate in means.columns]
    show_frame(
        f"{experiment}: {metric.replace('_', ' ')} in %, {protocol['folds']} folds{note}",
        cells.reset_index().rename(columns={"pattern": "missing"}),
    )
    for table, share in shares.items():
        if share:
            say(
                f"{table}: {100 * share:.1f} % of its channel samples are missing as recorded; "
                "what is taken out comes on top"
            )
    for table, bands in results.protocol["chance"].items():
        if metric in bands:
            chance, high = 100 * bands[metric]["chance"], 100 * bands[metric]["high"]
            say(f"{table}: {chance:.1f} % by chance, and up to {high:.1f} % (95 % band)")
