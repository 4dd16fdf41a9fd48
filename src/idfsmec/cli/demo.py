"""``idfsmec demo``: from a simulated cohort to the report, no data needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from idfsmec.cli.app import command
from idfsmec.cli.benchmark import benchmark
from idfsmec.cli.console import say, shown
from idfsmec.cli.options import AnyPath, check_folder
from idfsmec.errors import ExistingFileError

# Strong for depression research (Cohen's d), so that a small cohort shows the point.
EFFECT = 2.0
BASELINES = ("mRMR", "ReliefF", "RFS", "ANOVA F", "all features", "random")
#: A cohort, and what is compared on it.
FULL: tuple[dict[str, Any], dict[str, Any]] = (
    {"n_subjects": 40, "n_channels": 64, "duration": 60.0},
    {
        "methods": ("IDFS-MEC", *BASELINES),
        "rates": (0.1, 0.3, 0.5),
        "k": (5, 10, 20, 50, 100),
        "folds": 5,
    },
)
QUICK: tuple[dict[str, Any], dict[str, Any]] = (
    {"n_subjects": 16, "n_channels": 64, "duration": 40.0},
    {
        "methods": ("IDFS-MEC", "mRMR", "ANOVA F", "random"),
        "rates": (0.1, 0.5),
        "k": (5, 20, 50),
        "folds": 4,
    },
)


@command(quick="Use a smaller cohort; takes about a minute.")
def demo(out: AnyPath = Path("idfsmec-demo"), quick: bool = False, force: bool = False) -> Path:
    """Simulate a cohort, find detached electrodes, compare methods and write a report.

    For example::

        idfsmec demo
        idfsmec demo --quick --out demo

    The cohort is always the same.
    """
    from idfsmec.features import extract_table
    from idfsmec.recordings import simulate_cohort
    from idfsmec.report import write_report
    from idfsmec.selection import IDFSMEC
    from idfsmec.table.columns import column_label

    out = Path(out)
    check_folder(out, force)
    if (out / "report.html").exists() and not force:
        raise ExistingFileError(out / "report.html")
    size, compared = QUICK if quick else FULL
    with shown("1. simulating"):
        cohort = simulate_cohort(**size, effect_size=EFFECT, random_state=0)
    say(
        f"1. {size['n_subjects']} simulated participants, {size['n_channels']} channels, "
        f"{size['duration']:g} s each. The groups differ (Cohen's d = {EFFECT:g}) at "
        f"{', '.join(cohort.informative_channels)}."
    )
    with shown("2. features") as progress:
        table = extract_table(cohort.recordings, n_jobs=-1, progress=progress).table
    missing = 1.0 - table.observed.to_numpy().mean()
    say(
        f"2. {len(table.X)} epochs x {table.X.shape[1]} features. {missing:.1%} of the channel "
        f"epochs are missing ({len(cohort.detachments)} electrodes were detached)."
    )
    path = table.write(out / "cohort.parquet")
    selector = IDFSMEC().fit(table.X, table.y)
    best = table.X.columns[selector.ranking_.argsort()[:20]]
    hits = set(cohort.informative_features) & set(best)
    say(
        f"3. First features: {', '.join(map(column_label, best[:3]))}. Of the first 20, "
        f"{len(hits)} are among the {len(cohort.informative_features)} of {table.X.shape[1]} "
        "with a simulated difference."
    )
    say(
        f"4. {len(compared['methods'])} methods, {len(compared['rates'])} missing rates, "
        f"{compared['folds']} subject-wise folds, nested tuning."
    )
    results = benchmark(path, out, **compared, repeats=1, force=force)
    if len(results.failures):
        raise RuntimeError(results.failures.iloc[0]["traceback"].strip().splitlines()[-1])
    with shown("5. report", describe=str) as progress:
        page = write_report(out, overwrite=True, progress=progress)
    say("5. Open in a browser:", page.resolve())
    say(
        "Look at the headline and the audit first, then at the stability of the features and at "
        "the accuracy by missing rate. With recordings of your own begin with: "
        "idfsmec features FOLDER"
    )
    return page
