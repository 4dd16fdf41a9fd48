"""What a benchmark prints at its end: means, chance, verdicts, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idfsmec.cli._console import console, error_console, plain

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    from idfsmec.evaluation import Results


def summarize(results: Results) -> None:
    """Print the means, and say where everything is and what failed."""
    for name in ("accuracy", "imputation", "ablation"):
        if len(results.chosen(name)):
            _print_means(results, name)
    _print_verdicts(results)
    console.print(f"results: {results.folder}", markup=False, soft_wrap=True)
    if n_failed := len(results.failures):
        first = results.failures.iloc[0]
        error_console.print(
            f"{n_failed} units failed, first {first['method']} on {first['table']}: "
            f"{first['traceback'].strip().splitlines()[-1]}. Their tracebacks are in "
            f"{results.folder / 'store.sqlite'}; give the same command to try them again.",
            style="red",
            markup=False,
            soft_wrap=True,
        )


def _print_verdicts(results: Results) -> None:
    """Say of each table's audit what matters, the rest is in the report."""
    from idfsmec.audit import audits_of

    colours = {"red": "bold red", "amber": "yellow", "green": "green", "grey": ""}
    for name, audit in audits_of(results).items():
        verdict = audit.summary().splitlines()[0]
        console.print(
            f"{name}: {verdict}", style=colours[audit.level], markup=False, soft_wrap=True
        )


def _print_means(results: Results, experiment: str) -> None:
    from rich.table import Table

    protocol = results.protocol["experiments"][experiment]
    metric = protocol["metric"]
    means = results.mean_scores(metric, experiment)
    own = {
        str(name): about["share_missing"]
        for name, about in results.tables.items()
        if about.get("share_missing")
    }
    note = ", best on test: optimistic" if protocol["tuning"] == "oracle" else ""
    shown = Table(
        title=f"{experiment}: {metric.replace('_', ' ')} in %, {protocol['folds']} folds{note}"
    )
    for name in means.index.names:
        shown.add_column("gaps" if name == "pattern" else str(name))
    for rate in means.columns:
        shown.add_column(f"{100 * rate:g} % {'taken out' if own else 'missing'}", justify="right")
    for where, row in zip(means.index, means.to_numpy(), strict=True):
        shown.add_row(*(plain(part) for part in where), *(f"{100 * v:.1f}" for v in row))
    console.print(shown)
    for table, share in own.items():
        console.print(
            f"{table}: {100 * share:.1f} % of its channel samples are missing as recorded; what "
            "is taken out comes on top",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    for table, bands in results.protocol["chance"].items():
        if metric in bands:
            band = bands[metric]
            console.print(
                f"{table}: guessing gives {100 * band['chance']:.1f} %, and up to "
                f"{100 * band['high']:.1f} % by luck (95 % band)",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
