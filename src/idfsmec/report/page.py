"""Summarise results as findings, warnings, tables and figures, and write them as one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from idfsmec._files import check_writable
from idfsmec.errors import InputError, listing
from idfsmec.evaluation import Results
from idfsmec.progress import Listener, Progress
from idfsmec.report import channels, clinic, data, predicted, scores, style, transfer, verdict
from idfsmec.report.data import TableResults, View
from idfsmec.report.documents import summarise_audit
from idfsmec.report.text import (
    describe_protocol,
    metric_name,
    plain_records,
    slugify,
    unique_slugs,
)
from idfsmec.table.verdicts import NOT_AUDITED

PAGE, FOLDER = "report.html", "figures"
#: The page has so many features of a ranking; ranking.csv has all.
_MOST_RANKED = 1000


class Figure(NamedTuple):
    """A kind of figure: section of the page (and of captions.txt), query of a table, drawing."""

    section: str
    query: Callable[[TableResults], Iterable[View]]
    draw: Callable[..., Axes]


_of_features, _of_channels = (
    partial(channels.frequency_views, of=of) for of in ("features", "channels")
)
_electrodes, _participants = (
    partial(scores.study_size_views, experiment=size) for size in ("electrodes", "participants")
)
#: Every kind of figure of a table, in the order in which they are drawn.
FIGURES = (
    Figure("channels", channels.weight_views, channels.plot_channel_weights),
    Figure("heatmap", channels.score_views, channels.plot_score_heatmap),
    Figure("effects", channels.effect_views, channels.plot_effects),
    Figure("selection-frequency-features", _of_features, channels.plot_selection_frequency),
    Figure("selection-frequency-channels", _of_channels, channels.plot_selection_frequency),
    Figure("missing", channels.missing_views, channels.plot_missing_map),
    Figure("accuracy-by-rate", scores.accuracy_by_rate_views, scores.draw_curves),
    Figure("differences", scores.difference_views, scores.plot_paired_differences),
    Figure("accuracy-by-k", scores.accuracy_by_k_views, scores.draw_curves),
    Figure("observed", predicted.observed_views, predicted.plot_observed),
    Figure("residuals", predicted.residual_views, predicted.plot_residuals),
    Figure("decision-curve", clinic.decision_views, clinic.plot_decision_curve),
    Figure("imputation", scores.imputation_views, scores.draw_curves),
    Figure("electrodes", _electrodes, scores.plot_electrode_curve),
    Figure("electrodes-chosen", scores.chosen_electrode_views, channels.plot_channel_weights),
    Figure("participants", _participants, scores.plot_participant_curve),
    Figure("transfer", transfer.transfer_views, transfer.plot_transfer),
    Figure("ablation", scores.ablation_views, scores.draw_curves),
    Figure("sensitivity", scores.sensitivity_views, scores.draw_curves),
    Figure("cost", scores.cost_views, scores.draw_curves),
    Figure("convergence", scores.convergence_views, scores.draw_convergence),
)


def write_report(
    folder: str | Path,
    *,
    reliability: float | None = None,
    overwrite: bool = False,
    progress: Listener | None = None,
) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder of results.

    Parameters
    ----------
    folder : path
        Where :mod:`idfsmec.evaluation` wrote its results.
    reliability : float, optional
        Of the score that was predicted, above 0 and at most 1: the page then says which
        correlation can be expected at most.
    overwrite : bool, default=False
        Whether an existing report is replaced.
    progress : callable, optional
        Called with a :class:`idfsmec.progress.Progress` before each figure is drawn; its
        ``item`` names the figure.

    Returns
    -------
    Path
        The page: one file that needs nothing else, neither network nor ``figures/``.

    Raises
    ------
    InputError
        The folder holds no results, or nothing can be written there.
    ExistingFileError
        It holds a report already.
    """
    if reliability is not None and not 0 < reliability <= 1:
        raise InputError(
            f"reliability is {reliability}: give a number above 0, at most 1",
            argument="reliability",
        )
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; give the one a benchmark wrote its results into"
        )
    page = folder / PAGE
    style.refuse_existing(overwrite, page)
    check_writable(page, folder / FOLDER / "missing.svg")
    summary, figures = _summarise(Results.read(folder), reliability)
    drawn = _draw(figures, folder / FOLDER, progress)
    content = style.render("report.html", figures=drawn, **summary)
    return style.write_texts({page: content})


@style.literal_text
def _draw(
    figures: Mapping[str, Sequence[tuple[Figure, View]]], folder: Path, progress: Listener | None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Draw all figures into a folder; return them by section and table, for the template."""
    folder.mkdir(parents=True, exist_ok=True)
    names = unique_slugs(list(figures)) if len(figures) > 1 else [""]
    slugs = dict(zip(figures, names, strict=True))
    planned = [(table, *each) for table, several in figures.items() for each in several]
    drawn: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for done, (table, figure, view) in enumerate(planned):
        if progress:
            item = ", ".join(filter(None, (figure.section, table)))
            progress(Progress("figures", done, len(planned), item))
        variant = slugify(view.variant) if view.variant else ""
        slug = "-".join(filter(None, (figure.section, slugs[table], variant)))
        ax = figure.draw(**view.arguments)
        shown = style.make_figure(
            ax, figure.section, view.numbers, slug, path=folder / slug, tested=view.tested
        )
        drawn.setdefault((figure.section, table), []).append(shown)
    if progress:
        progress(Progress("figures", len(planned), len(planned)))
    return drawn


def summarise(results: Results) -> dict[str, Any]:
    """Summarise everything the page shows as lists, dicts, text and numbers.

    Parameters
    ----------
    results : Results
        From :meth:`idfsmec.evaluation.Results.read`.

    Returns
    -------
    dict
        ``method`` (the one the page is about), ``tables`` (one dict per table: ``facts``,
        ``findings``, ``comparisons``, ``sites`` (each site left out), ``clinical`` (sensitivity
        and the like, by group), ``missingness`` (channels whose missingness is associated with
        the label), ``audit``, ``verdict`` (of the audit, of an earlier one, or that there was
        none), ``effect`` (the effect size), ``electrodes``, ``participants``, ``ablation``,
        ``cost``, ``ranking`` (its first 1000 features of ``n_ranked``), and ``tested``: what was
        tested beside each figure, in words), ``warnings``, ``protocol``, ``versions``,
        ``command`` and the like. What is not there is None.
    """
    return _summarise(results)[0]


def table_figures(table: TableResults) -> list[tuple[Figure, View]]:
    """Return all figures of a table, not yet drawn."""
    return [(figure, view) for figure in FIGURES for view in figure.query(table)]


def _summarise(
    results: Results, reliability: float | None = None
) -> tuple[dict[str, Any], dict[str, list[tuple[Figure, View]]]]:
    """Return the summary of results, and the figures of each table."""
    tables = [TableResults(results, name, reliability=reliability) for name in results.tables]
    figures = {table.name: table_figures(table) for table in tables}
    summaries = [_summarise_table(table, figures[table.name]) for table in tables]
    findings = {summary["name"]: summary["findings"] for summary in summaries}
    environment = results.environment
    machine: Mapping[str, Any] = environment.get("machine", {})
    started, ended = (
        f"{stamp[:16].replace('T', ' ')} UTC" if stamp else None
        for stamp in (environment.get("start"), environment.get("end"))
    )
    summary = {
        "title": f"EEG features and channels: {listing(findings, most=3)}",
        "note": describe_protocol(data.experiment_protocol(results)),
        "metric": metric_name(data.shown_metric(results)),
        "method": data.main_method(results.methods, results.methods),
        "tables": summaries,
        "warnings": verdict.warn(results, tables, findings),
        "protocol": _protocol(results),
        "versions": list(environment.get("versions", {}).items()),
        "machine": [(k, v) for k, v in machine.items() if not isinstance(v, list)],
        "started": started,
        "ended": ended,
        "command": environment.get("command") or None,
    }
    return summary, figures


def _summarise_table(
    table: TableResults, figures: Sequence[tuple[Figure, View]]
) -> dict[str, Any]:
    size, audit = data.effect_size(table.ranking), summarise_audit(table)
    # Of the audit, of an earlier one, or that there was none.
    said = audit or table.results.verdicts.get(table.name) or NOT_AUDITED
    rows = {figure.section: view.rows for figure, view in figures}
    tested: dict[str, dict[str, str]] = {}
    for figure, view in figures:
        tested.setdefault(figure.section, {})[view.variant] = view.tested
    return {
        "name": table.name,
        "facts": _facts(table),
        "comparisons": list(scores.compare_methods(table)),
        "sites": scores.summarise_sites(table),
        "clinical": clinic.describe_clinical(table),
        "missingness": channels.associated_missingness(table),
        "findings": verdict.summarise_findings(table, said["level"]),
        "audit": audit,
        "verdict": said,
        "effect": data.EFFECT_SIZES.get(size or ""),
        "effect_column": size,
        "curve": "Spearman's correlation" if table.target else "AUC",
        **{name: rows.get(name) for name in ("electrodes", "participants", "ablation", "cost")},
        "tested": tested,
        "ranking": plain_records(table.ranking.head(_MOST_RANKED)),
        "n_ranked": len(table.ranking),
    }


def _facts(table: TableResults) -> list[tuple[str, str]]:
    usable, missing = table.missing, table.facts["share_missing"]
    if table.dead:
        usable = usable.drop(columns=table.dead, errors="ignore")
        missing = usable.to_numpy().mean()
    shares, most = usable.mean(axis=1), usable.mean()
    said = style.sentences_of("table.txt", table=table, missing=missing, shares=shares, most=most)
    return list(said.items())


def _protocol(results: Results) -> list[tuple[str, str]]:
    protocol, methods = data.experiment_protocol(results), results.methods
    ran = dict.fromkeys(results.scores.query("experiment == 'accuracy'")["method"])
    used = {n: methods[n]["classifier"] for n in ran if "classifier" in methods.get(n, {})}
    # The one of most methods, then those that had another one.
    common = [name for name, _ in Counter(used.values()).most_common(1)]
    said = style.sentences_of(
        "protocol.txt",
        protocol=protocol,
        described=describe_protocol(protocol),
        metric=metric_name(data.shown_metric(results)),
        classifiers=common
        + [f"{data.label_of(n, methods)}: {c}" for n, c in used.items() if c not in common],
    )
    return list(said.items())
