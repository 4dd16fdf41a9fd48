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
    percent,
    plain_records,
    slugify,
    unique_slugs,
)
from idfsmec.table.verdicts import NOT_AUDITED

PAGE, FOLDER = "report.html", "figures"
#: The page has so many features of a ranking; ranking.csv has all.
_MOST_RANKED = 1000


class Figure(NamedTuple):
    """A kind of figure: section of the page, what it shows of a table, drawing, how to read it."""

    section: str
    query: Callable[[TableResults], Iterable[View]]
    draw: Callable[..., Axes]
    caption: str


_OVER_FOLDS = "with 95 % CI corrected for overlapping training sets"
#: Every kind of figure of a table, in the order in which they are drawn.
FIGURES = (
    Figure(
        "channels",
        channels.weight_views,
        channels.plot_channel_weights,
        "Weight of each channel: how well its features alone separate the groups, or predict the "
        "score.",
    ),
    Figure(
        "heatmap",
        channels.score_views,
        channels.plot_score_heatmap,
        "Channel weight times feature weight. Blank cells were not computed.",
    ),
    Figure(
        "effects",
        channels.effect_views,
        channels.plot_effects,
        # The first of many were chosen for being large: the winner's curse.
        "The first features of the ranking, each alone: how much the groups differ, or its "
        "correlation with the score, one value per participant, with 95 % CI over participants. "
        "They were selected for their size: expect smaller effects in new participants.",
    ),
    Figure(
        "selection-frequency-features",
        partial(channels.frequency_views, of="features"),
        channels.plot_selection_frequency,
        "Share of random halves of the participants on which the feature was selected. Chance: "
        "the share of random selection.",
    ),
    Figure(
        "selection-frequency-channels",
        partial(channels.frequency_views, of="channels"),
        channels.plot_selection_frequency,
        "Share of halves on which any feature of the channel was selected.",
    ),
    Figure(
        "missing",
        channels.missing_views,
        channels.plot_missing_map,
        "Each row is a recording, each column a channel.",
    ),
    Figure(
        "accuracy-by-rate",
        scores.accuracy_by_rate_views,
        scores.draw_curves,
        f"Mean over folds {_OVER_FOLDS}.",
    ),
    Figure(
        "differences",
        scores.difference_views,
        scores.plot_paired_differences,
        f"Differences paired by fold, {_OVER_FOLDS}.",
    ),
    Figure(
        "accuracy-by-k",
        scores.accuracy_by_k_views,
        scores.draw_curves,
        "Mean over folds and missing rates for each number of selected features.",
    ),
    Figure("observed", predicted.observed_views, predicted.plot_observed, predicted.OBSERVED),
    Figure("residuals", predicted.residual_views, predicted.plot_residuals, predicted.RESIDUALS),
    Figure("decision-curve", clinic.decision_views, clinic.plot_decision_curve, clinic.CAPTION),
    Figure(
        "imputation",
        scores.imputation_views,
        scores.draw_curves,
        "Mean over folds with 95 % CI, one line for each imputer applied before the classifier. A "
        "good imputer loses little where much is missing.",
    ),
    Figure(
        "electrodes",
        partial(scores.study_size_views, experiment="electrodes"),
        scores.plot_electrode_curve,
        "Electrodes are chosen in each training fold by channel weights; all their features are "
        "used. Diamonds: headsets whose electrodes the table has. Dotted: chance.",
    ),
    Figure(
        "electrodes-chosen",
        scores.chosen_electrode_views,
        channels.plot_channel_weights,
        "Share of training folds that chose an electrode.",
    ),
    Figure(
        "participants",
        partial(scores.study_size_views, experiment="participants"),
        scores.plot_participant_curve,
        "Subsets of the training participants, drawn in each fold; held-out participants are the "
        "same for all numbers. Dotted: chance.",
    ),
    Figure("transfer", transfer.transfer_views, transfer.plot_transfer, transfer.CAPTION),
    Figure(
        "ablation",
        scores.ablation_views,
        scores.draw_curves,
        "The whole method, and without one part each. Mean over folds with 95 % CI.",
    ),
    Figure(
        "sensitivity",
        scores.sensitivity_views,
        scores.draw_curves,
        "Mean over folds, missing rates and numbers of features, with 95 % CI. Scores are those "
        "of test folds: the best setting among them is optimistic.",
    ),
    Figure(
        "cost",
        scores.cost_views,
        scores.draw_curves,
        "Selection alone, one thread, logarithmic scale. Median, minimum and maximum.",
    ),
    Figure(
        "convergence",
        scores.convergence_views,
        scores.draw_convergence,
        "The objective never increases; the dotted line is its last value.",
    ),
)
_HARMONIZED = (
    "harmonized in location and scale (ComBat), learned from the training samples{only} of each "
    "fold; a site that is left out is harmonized by its own samples, without their labels"
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
            ax, figure.caption, view.numbers, slug, path=folder / slug, tested=view.tested
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
    verdicts = {table.name: _verdict(table) for table in tables}
    findings = {t.name: verdict.summarise_findings(t, verdicts[t.name]["level"]) for t in tables}
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
        "tables": [
            _summarise_table(t, figures[t.name])
            | {"findings": findings[t.name], "verdict": verdicts[t.name]}
            for t in tables
        ],
        "warnings": verdict.warn(results, tables, findings),
        "protocol": _protocol(results),
        "versions": list(environment.get("versions", {}).items()),
        "machine": [(k, v) for k, v in machine.items() if not isinstance(v, list)],
        "started": started,
        "ended": ended,
        "command": environment.get("command") or None,
    }
    return summary, figures


def _verdict(table: TableResults) -> Mapping[str, Any]:
    """Return the verdict of a table's audit, of an earlier one, or that there was none."""
    stored = table.results.verdicts.get(table.name)
    return summarise_audit(table) or stored or NOT_AUDITED


def _summarise_table(
    table: TableResults, figures: Sequence[tuple[Figure, View]]
) -> dict[str, Any]:
    size = data.effect_size(table.ranking)
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
        "audit": summarise_audit(table),
        "effect": data.EFFECT_SIZES.get(size or ""),
        "effect_column": size,
        "curve": "Spearman's correlation" if table.target else "AUC",
        **{name: rows.get(name) for name in ("electrodes", "participants", "ablation", "cost")},
        "tested": tested,
        "ranking": plain_records(table.ranking.head(_MOST_RANKED)),
        "n_ranked": len(table.ranking),
    }


def _facts(table: TableResults) -> list[tuple[str, str]]:
    facts, dead = table.facts, table.dead
    labels = ", ".join(f"{label}: {count}" for label, count in facts["labels"].items())
    if target := table.target:
        labels = f"{target['name']} {target['low']:g} to {target['high']:g}, mean "
        labels += f"{target['mean']:.1f}, standard deviation {target['sd']:.1f}"
        labels += f"; {target['n_without']} without it left out" if target["n_without"] else ""
    n_channels, missing = f"{len(facts['channels']) - len(dead)}", facts["share_missing"]
    usable = table.missing.drop(columns=dead, errors="ignore")
    if dead:
        n_channels += f" ({listing(dead)} dead)"
        missing = usable.to_numpy().mean()
    lines = [
        ("participants", f"{facts['n_subjects']}"),
        ("samples", f"{facts['n_samples']} ({labels})"),
        ("channels", n_channels),
        ("features per channel", f"{len(facts['features'])}"),
        ("missing as recorded", percent(missing, 1)),
    ]
    if usable.to_numpy().any():
        shares, most = usable.mean(axis=1), usable.mean()
        lines += [
            ("missing most often", f"{most.idxmax()} ({percent(most.max())})"),
            ("complete recordings", f"{(shares == 0).sum()} of {len(shares)}"),
            ("more than half missing", f"{(shares > 0.5).sum()} of {len(shares)}"),
        ]
    return lines


def _protocol(results: Results) -> list[tuple[str, str]]:
    protocol = data.experiment_protocol(results)
    lines = [("Evaluation", describe_protocol(protocol))]
    if harmonize := protocol.get("harmonize"):
        only = f" ({harmonize} only)" if isinstance(harmonize, str) else ""
        lines.append(("Sites", _HARMONIZED.format(only=only)))
    for key, title in (("patterns", "Patterns of missing channels"), ("ks", "Selected features")):
        if protocol.get(key):
            lines.append((title, ", ".join(str(value) for value in protocol[key])))
    if protocol.get("rates") is not None:
        lines.append(("Missing rates", ", ".join(percent(rate) for rate in protocol["rates"])))
    methods = results.methods
    ran = dict.fromkeys(results.scores.query("experiment == 'accuracy'")["method"])
    used = {n: methods[n]["classifier"] for n in ran if "classifier" in methods.get(n, {})}
    if used:  # the one of most methods, then those that had another one
        common = Counter(used.values()).most_common(1)[0][0]
        different = [f"{data.label_of(n, methods)}: {c}" for n, c in used.items() if c != common]
        lines.append(("Classifier", "; ".join([common, *different])))
    if set(results.protocol.get("experiments") or ()) != {"transfer"}:  # its figure says it
        lines.append(("Score shown", metric_name(data.shown_metric(results))))
        ci = "95 %, over folds and repeats, corrected for overlapping training sets"
        lines.append(("Confidence intervals (CI)", ci))
    return lines
