"""``idfsmec demo``: from a simulated cohort to the report, no data needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import say
from idfsmec.cli._options import AnyPath, JobsOption, check_seed
from idfsmec.cli._progress import shown
from idfsmec.cli._run import RunningMeans, add_resampling, refuse_foreign, stop_cleanly
from idfsmec.cli.audit import audit_tables
from idfsmec.errors import InputError

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


Out = Annotated[AnyPath, typer.Option("--out", "-o", help="Folder for everything the demo makes.")]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller cohort, in half a minute.")]
Seed = Annotated[
    int, typer.Option(help="Seed of the simulated cohort, of folds, gaps and halves.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier demo in OUT.")]


@command("demo")
def demo(
    out: Out = Path("idfsmec-demo"),
    quick: Quick = False,
    seed: Seed = 0,
    jobs: JobsOption = -1,
    force: Force = False,
) -> Path:
    """Simulate a cohort, find detached electrodes, rank features, compare methods, write a report.

    For example::

        idfsmec demo
        idfsmec demo --quick --out demo --seed 1
    """
    from idfsmec._parallel import count_jobs
    from idfsmec.recordings import simulate_cohort

    out, n_jobs = Path(out), count_jobs(jobs)
    page = out / "report.html"
    refuse_foreign(out, force)
    if page.exists() and not force:
        raise InputError(f"{page} exists; give another folder with --out, or --force.")
    size = QUICK if quick else FULL
    with shown("1. simulating"):
        cohort = simulate_cohort(
            size.n_subjects,
            size.n_channels,
            duration=size.seconds,
            effect_size=EFFECT,
            random_state=check_seed(seed),
        )
    differing = ", ".join(cohort.informative_channels)
    say(
        f"1. {size.n_subjects} simulated people, {size.n_channels} channels, {size.seconds:g} s "
        f"each. The groups differ (Cohen's d = {EFFECT:g}) at {differing}.",
        prose=True,
    )
    table = _extract(cohort, n_jobs)
    table.write(out / "cohort.parquet")
    _rank(table, cohort)
    _compare(table, out, size, n_jobs, seed, force)
    return _report(out)


def _extract(cohort: SimulatedCohort, jobs: int) -> FeatureTable:
    from idfsmec.features import extract_table

    with shown("2. features") as progress:
        table = extract_table(cohort.recordings, n_jobs=jobs, progress=progress).table
    lost = 1.0 - table.observed.to_numpy().mean()
    say(
        f"2. {len(table.X)} epochs x {table.X.shape[1]} features. Detached electrodes were found "
        f"in {lost:.1%} of the channel-epochs ({len(cohort.detachments)} electrodes came off).",
        prose=True,
    )
    return table


def _rank(table: FeatureTable, cohort: SimulatedCohort) -> None:
    from idfsmec.selection import IDFSMEC, ranking_frame
    from idfsmec.table.columns import join_columns

    selector = IDFSMEC(table.column_channels, n_features_to_select=20).fit(table.X, table.y)
    best = ranking_frame(selector).head(20)
    hits = set(cohort.informative_features) & set(join_columns(best["channel"], best["feature"]))
    leading = ", ".join((best["channel"] + " " + best["feature"])[:3])
    say(
        f"3. Best features: {leading}. Of the first 20, {len(hits)} are among the "
        f"{len(cohort.informative_features)} of {table.X.shape[1]} that really differ.",
        prose=True,
    )


def _compare(
    table: FeatureTable, out: Path, size: Size, jobs: int, seed: int, force: bool
) -> None:
    from idfsmec.audit import audits_of
    from idfsmec.evaluation import accuracy

    say(
        f"4. {len(size.methods)} methods, {len(size.rates)} missing rates, {size.n_splits} "
        "subject-wise folds, settings chosen by inner folds.",
        prose=True,
    )
    protocol = {
        "rates": size.rates,
        "n_splits": size.n_splits,
        "ks": size.ks,
        "seeds": [seed],
    }
    with stop_cleanly(out), shown(digest=RunningMeans()) as progress:
        results = accuracy(
            {"cohort": table},
            out,
            methods=size.methods,
            protocol=protocol,
            n_jobs=jobs,
            progress=progress,
            overwrite=force,
        )
    if len(results.failures):
        raise RuntimeError(results.failures.iloc[0]["traceback"].strip().splitlines()[-1])
    add_resampling(out, {"cohort": table}, size.n_resamples, seed, jobs, quiet=False)
    results = audit_tables(out, {"cohort": table}, seed, jobs, quiet=False)
    audited = audits_of(results)["cohort"]
    verdict = audited.summary().splitlines()[0]
    say(f"   Is it the illness or the amplifier? {verdict}", prose=True)


def _report(out: Path) -> Path:
    from idfsmec.report import write_report

    with shown("5. report", describe=str) as progress:
        page = write_report(out, overwrite=True, progress=progress)
    say(f"5. Open {page.resolve()} in a browser.")
    return page
