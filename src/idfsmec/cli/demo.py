"""``idfsmec demo``: from a simulated cohort to the report, no data needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli.app import command
from idfsmec.cli.console import say, shown
from idfsmec.cli.options import AnyPath
from idfsmec.cli.running import RunningMeans, check_folder, resample_and_audit, stop_cleanly
from idfsmec.errors import ExistingFileError

if TYPE_CHECKING:
    from idfsmec.recordings import SimulatedCohort
    from idfsmec.table import FeatureTable


@dataclass(frozen=True)
class Size:
    """How much a demo computes."""

    n_subjects: int
    seconds: float
    rates: tuple[float, ...]
    n_splits: int
    ks: tuple[int, ...]
    methods: tuple[str, ...]
    n_channels: int = 64
    n_resamples: int = 100


# Strong for depression research (Cohen's d), so that a small cohort shows the point.
EFFECT = 2.0
FULL = Size(
    n_subjects=40,
    seconds=60.0,
    rates=(0.1, 0.3, 0.5),
    n_splits=5,
    ks=(5, 10, 20, 50, 100),
    methods=("IDFS-MEC", "mRMR", "ReliefF", "RFS", "ANOVA F", "all features", "random"),
)
QUICK = Size(
    n_subjects=16,
    seconds=40.0,
    rates=(0.1, 0.5),
    n_splits=4,
    ks=(5, 20, 50),
    methods=("IDFS-MEC", "mRMR", "ANOVA F", "random"),
)


@command(quick="Use a smaller cohort; takes about half a minute.")
def demo(
    out: AnyPath = Path("idfsmec-demo"), quick: bool = False, jobs: int = -1, force: bool = False
) -> Path:
    """Simulate a cohort, find detached electrodes, compare methods and write a report.

    For example::

        idfsmec demo
        idfsmec demo --quick --out demo

    The cohort is always the same: there is no --seed.
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.features import extract_table
    from idfsmec.recordings import simulate_cohort
    from idfsmec.report import write_report

    out, n_jobs = Path(out), count_jobs(jobs)
    check_folder(out, force)
    if (out / "report.html").exists() and not force:
        raise ExistingFileError(out / "report.html")
    size = QUICK if quick else FULL
    with shown("1. simulating"):
        cohort = simulate_cohort(
            size.n_subjects,
            size.n_channels,
            duration=size.seconds,
            effect_size=EFFECT,
            random_state=0,
        )
    say(
        f"1. {size.n_subjects} simulated participants, {size.n_channels} channels, "
        f"{size.seconds:g} s each. The groups differ (Cohen's d = {EFFECT:g}) at "
        f"{', '.join(cohort.informative_channels)}."
    )
    with shown("2. features") as progress:
        table = extract_table(cohort.recordings, n_jobs=n_jobs, progress=progress).table
    missing = 1.0 - table.observed.to_numpy().mean()
    say(
        f"2. {len(table.X)} epochs x {table.X.shape[1]} features. {missing:.1%} of the channel "
        f"epochs are missing ({len(cohort.detachments)} electrodes were detached)."
    )
    table.write(out / "cohort.parquet")
    _rank(table, cohort)
    _compare(table, out, size, n_jobs, force)
    with shown("5. report", describe=str) as progress:
        page = write_report(out, overwrite=True, progress=progress)
    say("5. Open in a browser:", page.resolve())
    return page


def _rank(table: FeatureTable, cohort: SimulatedCohort) -> None:
    from idfsmec.report.text import column_label
    from idfsmec.selection import IDFSMEC, ranking_frame

    selector = IDFSMEC(table.column_channels, n_features_to_select=20).fit(table.X, table.y)
    best = ranking_frame(selector).head(20)
    hits = set(cohort.informative_features) & set(best["channel"] + "__" + best["feature"])
    leading = ", ".join(map(column_label, (best["channel"] + "__" + best["feature"])[:3]))
    say(
        f"3. First features: {leading}. Of the first 20, {len(hits)} are among the "
        f"{len(cohort.informative_features)} of {table.X.shape[1]} with a simulated difference."
    )


def _compare(table: FeatureTable, out: Path, size: Size, n_jobs: int, force: bool) -> None:
    from idfsmec.audit import audits_of
    from idfsmec.evaluation import accuracy

    say(
        f"4. {len(size.methods)} methods, {len(size.rates)} missing rates, {size.n_splits} "
        "subject-wise folds, nested tuning."
    )
    tables = {"cohort": table}
    with stop_cleanly(out), shown(digest=RunningMeans()) as progress:
        results = accuracy(
            tables,
            out,
            methods=size.methods,
            protocol={"rates": size.rates, "n_splits": size.n_splits, "ks": size.ks},
            n_jobs=n_jobs,
            progress=progress,
            overwrite=force,
        )
    if len(results.failures):
        raise RuntimeError(results.failures.iloc[0]["traceback"].strip().splitlines()[-1])
    results = resample_and_audit(
        out, tables, resamples=size.n_resamples, audit=True, seed=0, n_jobs=n_jobs, force=force
    )
    verdict = audits_of(results)["cohort"].summary().splitlines()[0]
    say(f"Audit: {verdict}")
