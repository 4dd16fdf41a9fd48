"""``idfsmec benchmark``: methods compared at missing rates; resumes where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options, running
from idfsmec.cli.app import command
from idfsmec.cli.console import shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, AnyPaths, Folds, Harmonize, Names, ProtocolName
from idfsmec.errors import InputError

if TYPE_CHECKING:
    from idfsmec.evaluation import Results

#: What the paper seems to have done; see :data:`idfsmec.paper.PAPER`.
AS_IN_THE_PAPER = {"folds": "sample", "missing_in": "selection", "tuning": "oracle"}


@command(
    tables=options.argument("TABLE", "Feature tables: Parquet or CSV."),
    experiment=f"Experiments, separated by commas: {', '.join(options.EXPERIMENTS)}.",
    condition="Conditions, separated by commas, or all: each is a table of its own.",
    rates="Shares of channels to remove, such as 0,0.1,0.5. By default 0 to 0.5.",
    patterns=f"Which channels are removed together: {', '.join(options.PATTERNS)}.",
    k="Numbers of features, such as 10,20,50. By default 10 to 100.",
    margin="AUC that fewer electrodes may lose and count as not inferior.",
    seed="Seed of folds, missing channels and halves of the participants.",
)
def benchmark(
    tables: AnyPaths,
    out: AnyPath = Path("results"),
    experiment: Names = "accuracy,audit",
    condition: Names | None = None,
    methods: Names | None = None,
    imputer: str | None = None,
    classifier: str | None = None,
    rates: Names | None = None,
    patterns: Names | None = None,
    k: Names | None = None,
    protocol: ProtocolName = "honest",
    folds: Folds | None = None,
    harmonize: Harmonize = None,
    margin: float = 0.03,
    repeats: int = 1,
    seed: int = 0,
    resamples: int = 100,
    jobs: int = -1,
    dask: str | None = None,
    force: bool = False,
) -> Results:
    """Compare selection methods on tables with missing channels.

    For example::

        idfsmec benchmark table.parquet
        idfsmec benchmark table.parquet --out results --rates 0.1,0.3 --repeats 3
        idfsmec benchmark a.csv b.csv --methods "IDFS-MEC,ANOVA F" --k 10,50
        idfsmec benchmark table.parquet --experiment accuracy,imputation
        idfsmec benchmark table.parquet --experiment electrodes --repeats 10
        idfsmec benchmark table.parquet --condition all
        idfsmec benchmark table.parquet --folds site --harmonize all

    Finished tasks are kept in OUT/store.sqlite. Give the same command to resume
    after a stop; after a change of options only new tasks are computed. Make a
    page of the results with idfsmec report OUT.
    """
    from idfsmec import evaluation, paper
    from idfsmec._parallel import count_jobs

    out, n_jobs = Path(out), count_jobs(jobs)
    running.check_folder(out, force)
    options.check_numbers(repeats=repeats, resamples=resamples, seed=seed)
    paper.find_protocol(protocol)
    experiments = options.split_names(experiment) or []
    if unknown := [name for name in experiments if name not in options.EXPERIMENTS]:
        raise InputError(
            f"--experiment {unknown[0]}: choose from {', '.join(options.EXPERIMENTS)}"
        )
    changes = {
        "seeds": range(seed, seed + repeats),
        "rates": options.split_names(rates),
        "patterns": options.split_names(patterns),
        "ks": options.split_names(k),
        "harmonize": options.parse_harmonize(harmonize) or None,
        **(AS_IN_THE_PAPER if protocol == "paper" else {}),
        **options.parse_folds(folds),
    }
    named = running.read_tables(options.paths(tables))
    if conditions := options.split_names(condition):
        named = evaluation.by_condition(named, None if conditions == ["all"] else conditions)
    for name, table in named.items():
        running.warn_of_pooling(table, name)
    running.warn_of_missingness(named)
    running.warn_of_open_cluster(dask)
    chosen: dict[str, Any] = {"methods": options.split_names(methods)}
    with (
        running.stop_cleanly(out),
        warnings_as_lines(),
        shown(digest=running.RunningMeans()) as progress,
    ):
        how: dict[str, Any] = {
            "protocol": {key: value for key, value in changes.items() if value is not None},
            "progress": progress,
            "overwrite": force,
        }
        workers: dict[str, Any] = {"classifier": classifier, "n_jobs": n_jobs, "dask": dask}
        imputers = None if imputer is None else [imputer]
        for name in experiments:
            if name == "accuracy":
                evaluation.accuracy(named, out, imputer=imputer, **chosen, **how, **workers)
            elif name == "imputation":
                evaluation.imputation(named, out, imputers=imputers, **chosen, **how, **workers)
            elif name == "electrodes":
                evaluation.electrodes(named, out, margin=margin, imputer=imputer, **how, **workers)
            elif name == "cost":
                evaluation.cost(named, out, **chosen, **how)
            elif name != "audit":
                run = paper.ablation if name == "ablation" else paper.sensitivity
                run(named, out, imputer=imputer, **how, **workers)
    results = running.resample_and_audit(
        out,
        named,
        resamples=resamples,
        audit="audit" in experiments,
        seed=seed,
        n_jobs=n_jobs,
        force=force,
    )
    running.print_results(results)
    return results
