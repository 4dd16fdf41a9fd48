"""Results become plain data: everything the page says, before it is said in HTML."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from idfsmec.evaluation import Results
from idfsmec.report.audit import summarise_audit
from idfsmec.report.comparison import compare_methods, rank_methods
from idfsmec.report.comparison_words import say_ranks
from idfsmec.report.cost import cost_table, published_seconds
from idfsmec.report.effects import SIZES, size_of
from idfsmec.report.findings import find_warnings, table_findings, whole_ranking
from idfsmec.report.formatting import (
    experiment_protocol,
    listing,
    metric_name,
    percent,
    plain_row,
)
from idfsmec.report.missingness import dead_channels, gaps_with_label, missing_share
from idfsmec.report.scores import (
    experiment_rows,
    proposed_method,
    protocol_note,
    published_values,
    shown_metric,
    table_ranking,
)
from idfsmec.report.settings import ablation_table
from idfsmec.report.sites import HARMONIZED, summarise_sites
from idfsmec.report.style import label_of
from idfsmec.report.words import say_all

_PROTOCOL_LINES = {
    "folds": ("Folds", {"subject": "subject-wise: a person is in training or in test, never both",
                        "sample": "sample-wise: a person is in training and in test",
                        "site": "site-wise: one hospital is left out at a time, and is the test"}),
    "tuning": ("Settings", {"nested": "nested: chosen by inner folds of the training data",
                            "oracle": "optimistic: best on the test folds"}),
    "gaps": ("Gaps", {"everywhere": "in training and test samples alike",
                      "selection": "only in what the selector sees"}),
}  # fmt: skip


def summarise(results: Results) -> dict[str, Any]:
    """Everything the page says, as lists, dicts, text and numbers.

    Parameters
    ----------
    results : Results
        From :meth:`idfsmec.evaluation.Results.read`.

    Returns
    -------
    dict
        ``method`` (the one the page is about), ``tables`` (one dict per table: ``facts``,
        ``findings``, ``comparisons``, ``sites`` (each hospital left out), ``gaps`` (channels
        whose gaps go with the label), ``audit``, ``effect`` (the measure of size), ``ablation``,
        ``cost``, ``ranking``, and ``sentences``: what each figure shows), ``ranks``,
        ``warnings``, ``protocol``,
        ``versions``, ``command`` and the like. What is not there is None.
    """
    names = [str(name) for name in results.tables]
    sizes = {name: size_of(table_ranking(results, name)) for name in names}
    findings = {name: table_findings(results, name) for name in names}
    return {
        "title": f"EEG features and channels: {listing(names, most=3)}",
        "note": protocol_note(results, "accuracy"),
        "metric": metric_name(shown_metric(results)),
        "method": proposed_method(results),
        "tables": [
            {
                "name": name,
                "facts": _facts(results, name),
                "findings": findings[name],
                "comparisons": compare_methods(results, name),
                "sites": summarise_sites(results, name),
                "gaps": gaps_with_label(results, name),
                "audit": summarise_audit(results, name),
                "effect": SIZES.get(sizes[name] or ""),
                "effect_column": sizes[name],
                "ablation": _ablation(results, name),
                "cost": _cost(results, name),
                "sentences": say_all(results, name),
                "ranking": [
                    plain_row(row) for row in whole_ranking(results, name).to_dict("records")
                ],
            }
            for name in names
        ],
        "ranks": _ranks(results),
        "warnings": find_warnings(results, findings),
        "protocol": _protocol(results),
        "versions": _pairs(results.environment.get("versions")),
        "machine": _pairs(results.environment.get("machine")),
        "started": _moment(results.environment.get("start")),
        "ended": _moment(results.environment.get("end")),
        "command": results.environment.get("command") or None,
    }


def _facts(results: Results, table: str) -> list[tuple[str, str]]:
    about, dead = results.tables[table], dead_channels(results, table)
    n_channels = f"{len(about['channels']) - len(dead)}"
    labels = ", ".join(f"{label}: {count}" for label, count in about.get("labels", {}).items())
    facts = [
        ("subjects", f"{about['n_subjects']}" if "n_subjects" in about else ""),
        ("samples", f"{about['n_samples']} ({labels})" if "n_samples" in about else ""),
        ("channels", f"{n_channels} ({listing(dead)} dead)" if dead else n_channels),
        ("features per channel", f"{len(about['features'])}"),
        ("missing as recorded", percent(missing_share(results, table), 1)
         if "share_missing" in about else ""),
    ]  # fmt: skip
    return [(name, value) for name, value in facts if value]


def _ablation(results: Results, table: str) -> list[dict[str, Any]] | None:
    rows = experiment_rows(results, "ablation", table)
    metric = shown_metric(results)
    if rows.empty or rows[metric].isna().all():
        return None
    known = results.methods
    found = ablation_table(rows, metric, known, published_values(results, "ablation", table))
    found["method"] = [label_of(name, known) for name in found["method"]]
    return [plain_row(row) for row in found.to_dict("records")]


def _cost(results: Results, table: str) -> list[dict[str, Any]] | None:
    rows = experiment_rows(results, "cost", table)
    if rows.empty or rows["seconds"].isna().all():
        return None
    known, main = results.methods, proposed_method(results)
    found = cost_table(rows, published_seconds(results, table, rows))
    found["main"] = found["method"] == main
    found["method"] = [label_of(name, known) for name in found["method"]]
    return [plain_row(row) for row in found.to_dict("records")]


def _ranks(results: Results) -> dict[str, Any] | None:
    ranked = rank_methods(results)
    if isinstance(ranked, str):
        return None
    comparison, tests = ranked
    return {
        "methods": list(comparison.methods),
        "mean_ranks": [float(rank) for rank in comparison.mean_ranks],
        "critical_difference": comparison.critical_difference,
        "p_value": comparison.p_value,
        "n_blocks": comparison.n_blocks,
        "sentences": say_ranks(results),
        "tests": tests,
    }


def _protocol(results: Results) -> list[tuple[str, str]]:
    protocol = experiment_protocol(results, "accuracy")
    lines = []
    for key, (title, texts) in _PROTOCOL_LINES.items():
        if protocol.get(key):
            lines.append((title, texts.get(protocol[key], str(protocol[key]))))
    if protocol.get("n_splits") and protocol.get("folds") != "site":
        repeats = protocol.get("n_repeats") or 1
        lines.append(("Outer folds", f"{protocol['n_splits']}, repeated {repeats} x"))
    if protocol.get("harmonize"):
        lines.append(("Hospitals", HARMONIZED))
    for key, title in (("patterns", "Patterns of gaps"), ("ks", "Features kept")):
        if protocol.get(key):
            lines.append((title, ", ".join(str(value) for value in protocol[key])))
    if protocol.get("rates") is not None:
        lines.append(("Missing rates", ", ".join(percent(rate) for rate in protocol["rates"])))
    lines += _classifiers(results)
    lines.append(("Score shown", metric_name(shown_metric(results))))
    lines.append(
        ("Intervals", "95 %, over folds and repetitions, corrected for overlapping training sets")
    )
    return lines


def _classifiers(results: Results) -> list[tuple[str, str]]:
    """What saw the selected features: the most common classifier, then who had another one."""
    known = results.methods
    ran = dict.fromkeys(results.scores.query("experiment == 'accuracy'")["method"])
    used = {name: known[name]["classifier"] for name in ran if "classifier" in known.get(name, {})}
    if not used:
        return []
    common = Counter(used.values()).most_common(1)[0][0]
    others = [f"{label_of(name, known)}: {one}" for name, one in used.items() if one != common]
    return [("Classifier", "; ".join([common, *others]))]


def _moment(text: Any) -> str | None:
    """A time stamp as people write it, or as it is where it is no ISO time."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return moment.strftime("%Y-%m-%d %H:%M ") + (moment.tzname() or "local time")


def _pairs(content: Any) -> list[tuple[str, str]]:
    if not content:
        return []
    if not isinstance(content, dict):
        return [("machine", str(content))]
    return [
        (str(key), str(value)) for key, value in content.items() if not isinstance(value, list)
    ]
