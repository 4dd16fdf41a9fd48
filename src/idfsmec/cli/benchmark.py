"""``idfsmec benchmark``: methods compared at missing rates; resumes where it stopped."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_verdict, remark, say, say_next, show_frame, shown
from idfsmec.cli.options import AnyPath, AnyPaths, Folds, Harmonize, Names, Per
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.evaluation import Results
    from idfsmec.table import FeatureTable


@command(
    tables=options.argument("TABLE", "Feature tables: Parquet, CSV, or folders of Parquet files."),
    experiment=f"Experiments, separated by commas: {', '.join(options.EXPERIMENTS)}.",
    condition=options.CONDITION,
    by="Cut tables by a column, such as condition or site: each part counts as a table, for "
    "transfer.",
    rates="Shares of channels to remove, such as 0,0.1,0.5. By default 0 to 0.5.",
    patterns=f"Which channels are removed together: {', '.join(options.PATTERNS)}.",
    k="Numbers of features, such as 10,20,50. By default 10 to 100.",
    part="Compute a part of the tasks, such as 3/16, into a folder of its own in OUT. The same "
    "command without --part puts parts together.",
)
@options.clustered
def benchmark(
    tables: AnyPaths,
    out: AnyPath = Path("results"),
    experiment: Names = "accuracy,audit",
    target: str | None = None,
    order: Names | None = None,
    condition: Names | None = None,
    by: str | None = None,
    per: Per | None = None,
    methods: Names | None = None,
    imputer: str | None = None,
    classifier: str | None = None,
    rates: Names | None = None,
    patterns: Names | None = None,
    k: Names | None = None,
    folds: Folds | None = None,
    harmonize: Harmonize = None,
    adjust: Names | None = None,
    adjust_from: str | None = None,
    prevalence: float | None = None,
    repeats: int = 3,
    resamples: int = 100,
    jobs: int = -1,
    dask: str | None = None,
    part: str | None = None,
    force: bool = False,
) -> Results:
    """Compare selection methods on tables with missing channels.

    For example::

        idfsmec benchmark table.parquet --out results --rates 0.1,0.3 --repeats 5
        idfsmec benchmark a.csv b.csv --methods "IDFS-MEC,ANOVA F" --k 10,50
        idfsmec benchmark table.parquet --experiment accuracy,imputation
        idfsmec benchmark table.parquet --experiment electrodes,participants --repeats 10
        idfsmec benchmark table.parquet --folds site --harmonize all
        idfsmec benchmark table.parquet --target bdi
        idfsmec benchmark a.csv b.csv --experiment transfer --harmonize all
        idfsmec benchmark table.parquet --experiment transfer --by condition

    Finished tasks are kept in OUT/store.sqlite. Give the same command to resume
    after a stop; after a change of options only new tasks are computed. Several
    machines share the work by --dask, or by --part. Make a page of the results
    with idfsmec report OUT.
    """
    from idfsmec import evaluation, paper
    from idfsmec._parallel import count_jobs
    from idfsmec.audit import add_audit
    from idfsmec.evaluation.run import ResultsFolder
    from idfsmec.report import write_reporting_checklist

    out, n_jobs, paths = Path(out), count_jobs(jobs), options.paths(tables)
    share = options.parse_part(part)
    options.check_folder(out, force, paths)
    options.check_numbers(repeats=repeats, resamples=resamples)
    experiments = options.split_names(experiment) or []
    if share and not {*experiments} - {"audit"}:
        raise InputError("--part shares out the tasks of experiments: name one besides audit")
    if not experiments and not resamples:
        raise InputError(f"--experiment: name at least one of {', '.join(options.EXPERIMENTS)}")
    if unknown := [name for name in experiments if name not in options.EXPERIMENTS]:
        raise InputError(
            f"--experiment {unknown[0]}: choose from {', '.join(options.EXPERIMENTS)}"
        )
    protocol = {  # None keeps the default
        "seeds": range(repeats),
        "rates": options.split_names(rates),
        "patterns": options.split_names(patterns),
        "ks": options.split_names(k),
        "harmonize": options.parse_harmonize(harmonize) or None,
        "adjust": options.split_names(adjust),
        "adjust_from": adjust_from,
        **options.parse_folds(folds),
    }
    named = read_tables(paths, condition, per, target, order, by)
    chosen = {"methods": options.split_names(methods)}
    workers = {"classifier": classifier, "n_jobs": n_jobs}
    imputers = None if imputer is None else [imputer]
    common = {"imputer": imputer, **workers}
    method = next(iter(chosen["methods"] or ()), None)  # a learning curve is of one method
    runs: dict[str, tuple[Any, dict[str, Any]]] = {
        "accuracy": (evaluation.accuracy, {"prevalence": prevalence, **chosen, **common}),
        "imputation": (evaluation.imputation, {"imputers": imputers, **chosen, **workers}),
        "electrodes": (evaluation.electrodes, common),
        "transfer": (evaluation.transfer, {**chosen, **common}),
        "participants": (evaluation.participants, {"method": method, **common}),
        "ablation": (paper.ablation, common),
        "sensitivity": (paper.sensitivity, common),
        "cost": (evaluation.cost, chosen),
    }
    results: Results
    with ResultsFolder(out, force, share) as folder:
        with stop_cleanly(out), shown(digest=RunningMeans()) as progress:
            common_options: dict[str, Any] = {"protocol": protocol, "overwrite": force}
            for name in experiments:
                if name in runs:  # the audit comes last
                    run, settings = runs[name]
                    results = run(named, folder, progress=progress, **common_options, **settings)
        if share is not None:
            say(f"part {part}:", folder.path)
            say("Give the command without --part when all parts have ended.")
            return results
        with stop_cleanly(out), shown() as progress:
            here: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "overwrite": force}
            if resamples and experiments != ["transfer"]:
                results = evaluation.resampling(named, folder, n_resamples=resamples, **here)
            if "audit" in experiments:
                results = add_audit(named, folder, **here)
                write_reporting_checklist(out / "reporting.md", results, named, overwrite=True)
    print_results(results)
    say_next("report", results.folder)
    return results


def read_tables(
    paths: Sequence[Path],
    condition: Any,
    per: str | None = None,
    target: str | None = None,
    order: Any = None,
    by: str | None = None,
) -> dict[str, FeatureTable]:
    """Read tables with their verdicts, and name them by their files, if need be by folders too.

    Each part counts as a table where they are cut by a column. Warns where the presence of a
    channel is associated with the diagnosis.
    """
    from idfsmec.evaluation.transfer import split_tables
    from idfsmec.missing.association import association_warning, missingness_association
    from idfsmec.table import FeatureTable
    from idfsmec.table.verdicts import stored_verdict

    tables: dict[str, FeatureTable] = {}
    for number, path in enumerate(paths):
        if path.resolve() in (other.resolve() for other in paths[:number]):
            raise InputError(f"{path} is given twice; give each table once")
        name = path.name.split(".")[0]
        name = f"{path.resolve().parent.name}/{name}" if name in tables else name
        if name in tables:
            raise InputError(f"{path}: two tables have the name {name}; rename one of the files")
        if by is not None and condition is None:
            table = FeatureTable.read(path)  # what is cut is not pooled
        else:
            table = options.read_table(path, condition, per, name)
        table = options.take_target(table, target, order, name)
        if text := association_warning(missingness_association(table)):
            remark(f"table {name}: {text}", "yellow")
        info = {**table.info, "audit_verdict": stored_verdict(path, table)}
        tables[name] = replace(table, info=info)
    return tables if by is None else split_tables(tables, by)


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


class RunningMeans:
    """Mean score per method over the tasks that have ended, and how many failed."""

    def __init__(self) -> None:
        self._n_failed = 0
        self._scores: dict[str, list[float]] = defaultdict(list)

    def update(self, item: Any) -> str | None:
        """Add a task: its chosen row, or the mean of all rows where none is chosen."""
        if not isinstance(item, tuple):
            return None  # a recording, of which a table was made first
        task, result = item
        if result.error is not None:
            self._n_failed += 1
            where = ", ".join(f"{key} {value}" for key, value in task.coordinates.items())
            return f"failed: {where}: {result.error.strip().splitlines()[-1]}"
        if task.metric:
            rows = [row for row in result.rows if row["chosen"]] or result.rows
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
    """Print means, verdicts (of the run, or kept with the tables), the folder and failures."""
    from idfsmec.audit import audits_of
    from idfsmec.evaluation import electrode_curve, participant_curve
    from idfsmec.report.data import TableResults
    from idfsmec.report.predicted import summarise_prediction
    from idfsmec.report.scores import difference_views
    from idfsmec.report.verdict import say_accuracy, summarise_accuracy

    audits = {name: audit.verdict for name, audit in audits_of(results).items()}
    for experiment in ("accuracy", "imputation", "ablation"):
        if len(results.chosen(experiment)):
            _print_means(results, experiment)
    for name in results.chosen()["table"].unique():
        table = TableResults(results, name)
        compared = [view.tested for view in difference_views(table)]
        level = (audits.get(name) or results.verdicts.get(name, {})).get("level", "")
        score = summarise_prediction(table)
        how_well = score["sentence"] if score else say_accuracy(summarise_accuracy(table), level)
        for text in (how_well, *compared):
            if text:
                say(f"{name}: {text}")
    for experiment, summarise in (
        ("electrodes", electrode_curve),
        ("participants", participant_curve),
    ):
        for name in results.chosen(experiment)["table"].unique():
            say(f"{name}: {summarise(results, name).sentence}")
    _print_transfer(results)
    for name in results.tables:
        print_verdict(name, audits.get(name) or results.verdicts.get(name, {}))
    say("results:", results.folder)
    if n_failed := len(results.failures):
        first = results.failures.iloc[0]
        remark(
            f"{n_failed} tasks failed, first {first['method']} on {first['table']}: "
            f"{first['traceback'].strip().splitlines()[-1]}. Tracebacks are in "
            f"{results.folder / 'store.sqlite'}; give the same command to repeat these tasks.",
            "red",
        )


def _print_transfer(results: Results) -> None:
    """Print the matrices of the method of main interest, if there are any."""
    from idfsmec.evaluation import transfer_matrix
    from idfsmec.report.data import main_method
    from idfsmec.report.transfer import name_metric, pivot_matrix

    matrix = transfer_matrix(results)
    if matrix.empty:
        return
    names = list(dict.fromkeys(matrix["method"]))
    method = main_method(names, results.methods) or names[0]
    for harmonized in matrix["harmonized"].drop_duplicates().tolist():
        cells = pivot_matrix(matrix, method, harmonized)
        cells.columns = [f"tested on {name}" for name in cells]
        note = ", tables harmonized" if harmonized else ""
        what = f"{name_metric(matrix)} (95 % CI) of {method}{note}"
        title = f"{what}; all methods: transfer.csv"
        show_frame(title, cells.rename_axis("trained on").reset_index())


def _print_means(results: Results, experiment: str) -> None:
    from idfsmec.report.text import format_score, metric_name

    protocol = results.protocol["experiments"][experiment]
    metric = protocol["metric"]
    means = results.mean_scores(metric, experiment)
    note = ", optimistic (best on test folds)" if protocol["tuning"] == "oracle" else ""
    cells = means.map(lambda value: format_score(metric, value, 1))
    cells.columns = [f"{100 * rate:g} %" for rate in means.columns]
    say(f"{experiment}: {metric_name(metric)} by share of channels removed")
    show_frame(f"{protocol['folds']}-wise folds{note}", cells.reset_index())
    for table, properties in results.tables.items():
        if share := properties.get("share_missing"):
            say(f"{table}: {100 * share:.1f} % of channel samples are missing as recorded.")
