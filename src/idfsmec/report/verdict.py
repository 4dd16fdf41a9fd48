"""What the evidence allows to say of a table: headline, accuracy, stability, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idfsmec.errors import listing
from idfsmec.evaluation import Results
from idfsmec.metrics import CONFOUNDED, site_confounding
from idfsmec.report import channels, data, predicted
from idfsmec.report.data import TableResults
from idfsmec.report.text import (
    exceeds,
    first_that_fits,
    metric_name,
    name_features,
    percent,
    plain_records,
)

#: The sentence over a table, by the level of its audit, whether the groups are separated above
#: chance, and whether the selection is stable. The first row that fits holds.
HEADLINES: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"level": "red", "above": "no"},
     "Recordings differ between groups: see the audit. In the EEG no difference is shown."),
    ({"above": "no"},
     "No difference between the groups is shown. First in the ranking, without evidence: "
     "{features}."),
    ({"level": "red"},
     "Recordings differ between groups: see the audit. First in the ranking, for this or another "
     "reason: {features}."),
    ({"above": "unknown"},
     "First in the ranking: {features}. Whether they separate the groups was not measured."),
    ({"stable": "no"},
     "The groups are separated, by which features is open. Leading, not stable: {features}."),
    ({"stable": "unknown"},
     "The groups are separated. Leading, stability not measured: {features}."),
    ({"level": "amber"},
     "{leading} Recordings or participants differ between groups, too: see the audit."),
    ({}, "{leading}"),
)  # fmt: skip
#: The same of a score, by whether predictions are better than the mean.
SCORE_HEADLINES: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"better": "no"},
     "The prediction of {name} is not shown to be better than the mean of the participants "
     "trained on. First in the ranking, without evidence: {features}."),
    ({"better": "unknown"},
     "First in the ranking for {name}: {features}. Whether they predict it was not measured."),
    ({"stable": "no"},
     "{name} is predicted better than by the mean, by which features is open. Leading, not "
     "stable: {features}."),
    ({"stable": "unknown"},
     "{name} is predicted better than by the mean. Leading, stability not measured: {features}."),
    ({}, "{name} is predicted better than by the mean. Leading: {features}."),
)  # fmt: skip
#: What is said of the channels and features that lead a stable selection.
_LEADING = {
    "channel": "The channel that separates the groups best is {channels}. Leading features: "
    "{features}.",
    "channels": "The channels that separate the groups best are {channels}. Leading features: "
    "{features}.",
    "even": "The features that separate the groups best: {features}. Channel weights are nearly "
    "even.",
    "features": "The features that separate the groups best: {features}.",
}
#: How an AUC relates to chance, by whether its CI lies above 0.5.
_RELATIONS = {
    "yes": "above chance",
    "no": "not shown to be above chance",
    "unknown": "whether it is above chance is open",
}
_STABLE = (
    "Stable features, selected on at least {threshold} of {n_resamples} random halves: {n_stable} "
    "of {n_features}; at most {max_false:g} is expected by chance."
)
#: What limits trust in the numbers, the gravest first: title and text.
WARNINGS = {
    "missing": ("Missing channels are associated with the diagnosis: {table}",
     "{channels}. The presence of a channel predicts the group, which is not a finding about "
     "the brain. Check why (another cap for patients?), or leave the channels out."),
    "missing score": ("Missing channels are associated with the score: {table}",
     "{channels}. Participants who lack a channel have other scores, which is not a finding "
     "about the brain. Check why, or leave the channels out."),
    "samples": ("Sample-wise folds",
     "Samples of one participant are in training and test. A classifier can recognise the "
     "participant instead of the condition, so these accuracies do not hold for new "
     "participants. Run again with subject-wise folds."),
    "oracle": ("Optimistic choice of settings",
     "Settings and the number of features were chosen by their score on the test folds. New "
     "data will score lower. Run again with nested tuning."),
    "sites": ("Site and diagnosis are confounded: {table}",
     "{share} of the difference between the groups lies between sites, and harmonizing "
     "removes it together with the effects of sites. Compare with a run without harmonizing, "
     "and read the audit."),
    "unstable": ("Unstable selection: {table}",
     "Random halves of the participants give different features. With other participants, "
     "other features may lead the ranking."),
    "none stable": ("No stable feature: {table}",
     "Report channels and groups of features, not single features."),
    "failures": ("{n} tasks failed",
     "Their results are missing from all means ({methods}). First error: {error}."),
}  # fmt: skip


def summarise_findings(table: TableResults, level: str) -> dict[str, Any]:
    """Summarise leading channels and features, accuracy and stability of a table.

    ``level`` is that of its audit.
    """
    leading, score = table.ranking.head(10), predicted.summarise_prediction(table)
    accuracy = None if table.target else summarise_accuracy(table)
    weights = table.channel_weights
    even = channels.nearly_even(weights)
    halves = channels.summarise_resampling(table)
    top: list[dict[str, Any]] = [
        {
            "name": str(channel),
            "weight": float(weight),
            "value": f"{weight:#.3g}",
            "relative": float(weight) / (float(weights.iloc[0]) or 1.0),
            "times_equal": float(weight) * len(weights),
        }
        for channel, weight in weights.head(8).items()
    ]
    leaders = [channel["name"] for channel in top if channel["times_equal"] > 1][:5]
    leaders = leaders or [channel["name"] for channel in top[:1]]
    above = accuracy["above_chance"] if accuracy else "unknown"
    names = name_features(leading.head(3))
    if table.target:
        better = score["better"] if score else "unknown"
        said = score_headline(table.target["name"], better, is_stable(halves), names)
    else:
        said = headline(level, above, is_stable(halves), names, leaders, even)
    return {
        "channels": top,
        "features": plain_records(leading),
        "accuracy": accuracy,
        "even": even,
        "resampling": halves,
        "headline": said,
        "score": score,
        "accuracy_text": say_accuracy(accuracy, level),
        "stability_text": _describe_stability(halves),
    }


def headline(
    level: str, above: str, stable: str, features: str, leading: Sequence[str], even: bool
) -> str:
    """Return the first of ``HEADLINES`` that fits; nothing where nothing was ranked."""
    if not features:
        return ""
    kind = "even" if even else {0: "features", 1: "channel"}.get(len(leading), "channels")
    values = {"channels": listing(leading), "features": features}
    values["leading"] = _LEADING[kind].format(**values)
    answers = {"level": level, "above": above, "stable": stable}
    return first_that_fits(HEADLINES, answers).format(**values)


def score_headline(name: str, better: str, stable: str, features: str) -> str:
    """Return the first of ``SCORE_HEADLINES`` that fits; nothing where nothing was ranked."""
    text = first_that_fits(SCORE_HEADLINES, {"better": better, "stable": stable})
    return text.format(name=name, features=features) if features else ""


def is_stable(halves: Mapping[str, Any] | None) -> str:
    """Return "yes", "no" or "unknown": a poor value or no stable feature is no."""
    if not halves or halves["reason"]:
        return "unknown"
    poor = (halves["stability"] or {}).get("verdict") == "poor"
    return "no" if poor or not halves["stable_features"] else "yes"


def summarise_accuracy(table: TableResults) -> dict[str, Any] | None:
    """Summarise scores of the proposed method at the lowest missing rate, per participant.

    ``above_chance`` is "yes" where the CI of the AUC lies above 0.5.
    """
    rows = table.rows()
    rows = rows[rows["method"] == table.main]
    if rows.empty:
        return None
    rows = data.lowest_rate(rows)
    score, auc = (
        plain_records(data.intervals(data.task_scores(rows, metric), ["rate"]))
        for metric in (table.metric, "subject_roc_auc")
    )
    return score[0] | {
        "metric": metric_name(table.metric),
        "chance": table.chance,
        "auc": auc[0] if auc else None,
        "above_chance": exceeds(auc[0]["low"] if auc else None, 0.5),
    }


def say_accuracy(accuracy: Mapping[str, Any] | None, level: str = "") -> str:
    """Return the AUC with its CI and how it relates to chance; nothing without scores.

    ``level`` is that of the audit.
    """
    if accuracy is None:
        return ""
    if accuracy["above_chance"] == "unknown":
        return "There is no CI of the AUC per participant: whether it is above chance is open."
    text = "AUC per participant {mean:.2f} (95 % CI {low:.2f} to {high:.2f})"
    relation = relate_to_chance(accuracy["auc"]["low"], level)
    return f"{text.format(**accuracy['auc'])}: {relation}."


def relate_to_chance(low: float, level: str | None) -> str:
    """Say how an AUC relates to chance, by the lower end of its CI and the audit's level."""
    answer = exceeds(low, 0.5)
    red = f", {'but' if answer == 'yes' else 'and'} the recordings of the groups differ"
    return f"{_RELATIONS[answer]}{red if level == 'red' else ''}"


def _describe_stability(halves: Mapping[str, Any] | None) -> str:
    if halves is None or halves["reason"]:
        return f"Stability cannot be measured: {halves['reason']}" if halves else ""
    n_stable, threshold = len(halves["stable_features"]), percent(halves["threshold"])
    return _STABLE.format(**dict(halves) | {"n_stable": n_stable, "threshold": threshold})


def warn(
    results: Results, tables: Sequence[TableResults], findings: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Return the ``title`` and ``text`` of ``WARNINGS`` for all they hold for."""
    return [
        {"title": title.format(**values), "text": text.format(**values)}
        for name, (title, text) in WARNINGS.items()
        for warned, values in _warned(results, tables, findings)
        if warned == name
    ]


def _warned(
    results: Results, tables: Sequence[TableResults], findings: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each warning that holds, and the values in its text."""
    protocol = data.experiment_protocol(results)
    if protocol.get("folds") == "sample":
        yield "samples", {}
    if protocol.get("tuning") == "oracle":
        yield "oracle", {}
    for table in tables:
        missing = channels.associated_missingness(table, with_dead=False)
        if missing:
            present = [f"{row['channel']} (present in {row['has']})" for row in missing]
            warned = "missing score" if table.target else "missing"
            yield warned, {"table": table.name, "channels": listing(present, 3)}
        share = _confounding(table.facts.get("sites", []))
        if protocol.get("harmonize") is True and share >= CONFOUNDED:
            yield "sites", {"table": table.name, "share": percent(share)}
        halves = findings[table.name]["resampling"]
        if halves and (halves.get("stability") or {}).get("verdict") == "poor":
            yield "unstable", {"table": table.name}
        if halves and not halves["reason"] and not halves["stable_features"]:
            yield "none stable", {"table": table.name}
    failures = results.failures
    if not failures.empty:
        methods = listing(sorted(failures["method"].astype(str).unique()))
        error = str(failures["traceback"].iloc[0]).strip().splitlines()[-1:] or ["not recorded"]
        yield "failures", {"n": len(failures), "methods": methods, "error": error[0]}


def _confounding(sites: Sequence[Mapping[str, Any]]) -> float:
    """Return which share of the difference between groups lies between sites; 0 without sites."""
    labels = sorted({label for site in sites for label in site["labels"]})
    counts = [[site["labels"].get(label, 0) for label in labels] for site in sites]
    return site_confounding(counts) if sites else 0.0
