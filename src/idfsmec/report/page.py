"""Summarise results as findings, warnings, tables and figures, and write them as one page."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._files import check_writable
from idfsmec.errors import InputError, listing
from idfsmec.evaluation import Results
from idfsmec.progress import Listener, Progress
from idfsmec.report import channels, clinic, data, scores, style
from idfsmec.report.data import TableResults
from idfsmec.report.documents import summarise_audit
from idfsmec.report.style import PageFigure
from idfsmec.report.text import (
    describe_protocol,
    metric_name,
    name_features,
    percent,
    plain_records,
    slugify,
    unique_slugs,
)
from idfsmec.table.verdicts import NOT_AUDITED

PAGE, FIGURES = "report.html", "figures"

#: Every kind of figure of a table, in the order in which they are drawn.
_KINDS: tuple[Callable[[TableResults], Iterator[PageFigure]], ...] = (
    channels.weight_figures,
    channels.score_figures,
    channels.effect_figures,
    channels.frequency_figures,
    channels.missing_figures,
    scores.accuracy_by_rate_figures,
    scores.difference_figures,
    scores.accuracy_by_k_figures,
    clinic.decision_figures,
    scores.imputation_figures,
    scores.study_size_figures,
    scores.ablation_figures,
    scores.sensitivity_figures,
    scores.cost_figures,
    scores.convergence_figures,
)
_HARMONIZED = (
    "harmonized in location and scale (ComBat), learned from the training samples{only} of each "
    "fold; a site that is left out is harmonized by its own samples, without their labels"
)


def write_report(
    folder: str | Path, *, overwrite: bool = False, progress: Listener | None = None
) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder of results.

    Parameters
    ----------
    folder : path
        Where :mod:`idfsmec.evaluation` wrote its results.
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
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; give the one a benchmark wrote its results into"
        )
    page = folder / PAGE
    style.refuse_existing(overwrite, page)
    check_writable(page, folder / FIGURES / "missing.svg")
    summary, figures = _summarise(Results.read(folder))
    drawn = _draw(figures, folder / FIGURES, progress)
    script = style.read_asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    content = {"figures": drawn, "folder": FIGURES, "script": script}
    content |= {"script_hash": f"sha256-{digest}", **summary}
    return style.write_text(page, style.render_page("report.html", **content))


@style.literal_text
def _draw(
    figures: Mapping[str, Sequence[PageFigure]], folder: Path, progress: Listener | None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Draw all figures into a folder; return them by section and table, for the template."""
    folder.mkdir(parents=True, exist_ok=True)
    names = unique_slugs(list(figures)) if len(figures) > 1 else [""]
    slugs = dict(zip(figures, names, strict=True))
    each = [(table, figure) for table, several in figures.items() for figure in several]
    drawn: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for done, (table, figure) in enumerate(each):
        if progress:
            item = ", ".join(filter(None, (figure.section, table)))
            progress(Progress("figures", done, len(each), item))
        variant = slugify(figure.variant) if figure.variant else ""
        slug = "-".join(filter(None, (figure.section, slugs[table], variant)))
        ax = figure.plot()
        label = f"{ax.get_title(loc='left')}. {figure.caption}"
        svg = style.save_figure(ax, label, folder / slug, slug)
        shown = vars(figure) | {"slug": slug, "svg": svg}
        drawn.setdefault((figure.section, table), []).append(shown)
    if progress:
        progress(Progress("figures", len(each), len(each)))
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
        ``cost``, ``ranking``, and ``sentences`` about each figure),
        ``warnings``, ``protocol``, ``versions``, ``command`` and the like. What is not there is
        None.
    """
    return _summarise(results)[0]


def table_figures(table: TableResults) -> list[PageFigure]:
    """Return all figures of a table, not yet drawn."""
    return [figure for kind in _KINDS for figure in kind(table)]


def _summarise(results: Results) -> tuple[dict[str, Any], dict[str, list[PageFigure]]]:
    """Return the summary of results, and the figures of each table."""
    tables = [TableResults(results, name) for name in results.tables]
    figures = {table.name: table_figures(table) for table in tables}
    findings = {table.name: _findings(table) for table in tables}
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
        "tables": [_summarise_table(t, findings[t.name], figures[t.name]) for t in tables],
        "warnings": _warnings(results, tables, findings),
        "protocol": _protocol(results),
        "versions": list(environment.get("versions", {}).items()),
        "machine": [(k, v) for k, v in machine.items() if not isinstance(v, list)],
        "started": started,
        "ended": ended,
        "command": environment.get("command") or None,
    }
    return summary, figures


def _summarise_table(
    table: TableResults, findings: dict[str, Any], figures: Sequence[PageFigure]
) -> dict[str, Any]:
    size = data.effect_size(table.ranking)
    audit = summarise_audit(table)
    numbers = {figure.section: figure.numbers for figure in figures}
    sentences: dict[str, dict[str, list[str]]] = {}
    for figure in figures:
        sentences.setdefault(figure.section, {})[figure.variant] = list(figure.sentences)
    return {
        "name": table.name,
        "facts": _facts(table),
        "findings": findings,
        "comparisons": list(scores.compare_methods(table)),
        "sites": scores.summarise_sites(table),
        "clinical": clinic.summarise_clinical(table),
        "missingness": channels.associated_missingness(table),
        "audit": audit,
        "verdict": audit or table.results.verdicts.get(table.name) or NOT_AUDITED,
        "effect": data.EFFECT_SIZES.get(size or ""),
        "effect_column": size,
        **{name: numbers.get(name) for name in ("electrodes", "participants", "ablation", "cost")},
        "sentences": sentences,
        "ranking": plain_records(table.ranking),
    }


def _facts(table: TableResults) -> list[tuple[str, str]]:
    about, dead = table.about, table.dead
    labels = ", ".join(f"{label}: {count}" for label, count in about["labels"].items())
    n_channels, missing = f"{len(about['channels']) - len(dead)}", about["share_missing"]
    if dead:
        n_channels += f" ({listing(dead)} dead)"
        missing = table.missing.drop(columns=dead, errors="ignore").to_numpy().mean()
    return [
        ("participants", f"{about['n_subjects']}"),
        ("samples", f"{about['n_samples']} ({labels})"),
        ("channels", n_channels),
        ("features per channel", f"{len(about['features'])}"),
        ("missing as recorded", percent(missing, 1)),
    ]


def _findings(table: TableResults) -> dict[str, Any]:
    """Summarise leading channels and features, accuracy and stability of a table."""
    leading, score = table.ranking.head(10), _accuracy(table)
    weights = channels.channel_weights(table)
    even = channels.nearly_even(weights)
    halves = channels.summarise_resampling(table)
    top = [
        {
            "name": str(channel),
            "weight": float(weight),
            "relative": float(weight) / (float(weights.iloc[0]) or 1.0),
            "times_equal": float(weight) * len(weights),
        }
        for channel, weight in weights.head(8).items()
    ]
    return {
        "channels": top,
        "features": plain_records(leading),
        "accuracy": score,
        "even": even,
        "resampling": halves,
        "headline": _headline([] if even else top, name_features(leading.head(3)), score, even),
        "accuracy_text": _describe_accuracy(score),
        "stability_text": channels.describe_stability(halves),
    }


def _accuracy(table: TableResults) -> dict[str, Any] | None:
    """Summarise the proposed method's accuracy at the lowest missing rate, and chance."""
    rows, metric, chance = table.rows(), table.metric, table.chance()
    rows = rows[rows["method"] == table.main]
    if rows.empty:
        return None
    rows = data.lowest_rate(rows)
    (ci,) = plain_records(data.intervals(data.task_scores(rows, metric), ["rate"]))
    by_subject, name = None, f"subject_{metric}"
    if name in rows and np.isfinite(mean := data.task_scores(rows, name)["value"].mean()):
        by_subject = {"mean": float(mean), "chance": table.chance(name)}
    above = includes = None
    if chance is not None:
        above = ci["mean"] > chance["high"]
        includes = ci["low"] is not None and ci["low"] <= chance["chance"]
    return ci | {
        "metric": metric_name(metric),
        "chance": chance,
        "by_subject": by_subject,
        "above_chance": above,
        "ci_includes_chance": includes,
    }


def _headline(
    top: Sequence[Mapping[str, Any]], features: str, score: Mapping[str, Any] | None, even: bool
) -> str:
    if not features:
        return ""
    if score and score["above_chance"] is False:
        return f"Accuracy is not above chance. First in the ranking, without evidence: {features}."
    if not top:
        also = " Channel weights are nearly even." if even else ""
        return f"The features that separate the groups best: {features}.{also}"
    names = [channel["name"] for channel in top if channel["times_equal"] > 1][:5]
    first = f"The channel that separates the groups best is {top[0]['name']}"
    if len(names) > 1:
        first = f"The channels that separate the groups best are {listing(names)}"
    return f"{first}. Leading features: {features}."


def _describe_accuracy(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return ""
    reached = f"The selected features reach {percent(score['mean'])} {score['metric']}"
    chance = score["chance"]
    if chance is None:
        return f"{reached}; the chance level was not recorded."
    how = "above chance"
    if not score["above_chance"]:
        how = "not above chance"
    elif score["ci_includes_chance"]:
        how = "above the chance band, but the 95 % CI includes the chance level"
    band = f"{percent(chance['low'])} to {percent(chance['high'])}"
    return f"{reached}, {how} (chance level {percent(chance['chance'])}, 95 % band {band})."


def _warnings(
    results: Results, tables: Sequence[TableResults], findings: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Return what limits trust in the numbers, the gravest first: ``title`` and ``text``."""
    warnings = [warning for table in tables for warning in channels.missingness_warning(table)]
    protocol = data.experiment_protocol(results)
    if protocol.get("folds") == "sample":
        text = (
            "Samples of one participant are in training and test. A classifier can recognise the "
            "participant instead of the condition, so these accuracies do not hold for new "
            "participants. Run again with subject-wise folds."
        )
        warnings.append(("Sample-wise folds", text))
    if protocol.get("tuning") == "oracle":
        text = (
            "Settings and the number of features were chosen by their score on the test folds. "
            "New data will score lower. Run again with nested tuning."
        )
        warnings.append(("Optimistic choice of settings", text))
    warnings += scores.site_warnings(results)
    for name, each in findings.items():
        score = each["accuracy"]
        if score and score["above_chance"] is False:
            chance = score["chance"]
            text = (
                f"{percent(score['mean'])} lies within the 95 % band of chance with {chance['n']} "
                f"participants ({percent(chance['low'])} to {percent(chance['high'])}). Do not "
                "read the ranking as a finding."
            )
            warnings.append((f"Not above chance: {name}", text))
    warnings += channels.stability_warnings(findings)
    failures = results.failures
    if not failures.empty:
        methods = listing(sorted(failures["method"].astype(str).unique()))
        error = str(failures["traceback"].iloc[0]).strip().splitlines()[-1:]
        text = (
            f"Their results are missing from all means ({methods}). First error: "
            f"{''.join(error) or 'not recorded'}."
        )
        warnings.append((f"{len(failures)} tasks failed", text))
    return [{"title": title, "text": text} for title, text in warnings]


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
        others = [f"{data.label_of(n, methods)}: {c}" for n, c in used.items() if c != common]
        lines.append(("Classifier", "; ".join([common, *others])))
    lines.append(("Score shown", metric_name(data.shown_metric(results))))
    ci = "95 %, over folds and repeats, corrected for overlapping training sets"
    lines.append(("Confidence intervals (CI)", ci))
    return lines
