"""What the page says first about a table, and what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.report.effects import add_arrows
from idfsmec.report.formatting import (
    experiment_protocol,
    listing,
    metric_name,
    percent,
    plain_number,
    plain_row,
)
from idfsmec.report.missingness import warn_of_gaps
from idfsmec.report.scores import (
    chance_of,
    experiment_rows,
    intervals,
    lowest_rate,
    proposed_method,
    shown_metric,
    table_ranking,
    unit_scores,
)
from idfsmec.report.sites import warn_of_sites
from idfsmec.report.stability import (
    add_frequencies,
    describe_stability,
    fold_stability,
    resampling_summary,
)

Findings = dict[str, Any]
Warned = list[tuple[str, str]]


def table_findings(results: Results, table: str) -> Findings:
    """Leading channels and features, accuracy and stability of a table, as plain data."""
    ranking = whole_ranking(results, table)
    accuracy = _accuracy(results, table)
    method = proposed_method(results)
    stability = None if method is None else fold_stability(results, table, method)
    resampling = resampling_summary(results, table)
    channels = _top_channels(ranking)
    features = ranking.head(10).to_dict("records")
    return {
        "channels": channels,
        "features": [plain_row(row) for row in features],
        "accuracy": accuracy,
        "stability": stability,
        "resampling": resampling,
        "headline": _headline(channels, features, accuracy),
        "accuracy_text": _describe_accuracy(accuracy),
        "stability_text": describe_stability(stability, resampling),
    }


def whole_ranking(results: Results, table: str) -> pd.DataFrame:
    """The ranking of a table, with directions and how often halves of the people selected it."""
    ranking = add_arrows(table_ranking(results, table))
    return add_frequencies(ranking, results.resampling.get(table))


def _top_channels(ranking: pd.DataFrame, most: int = 8) -> list[dict[str, Any]]:
    """Channels by weight, with how each compares with the first and with an even share."""
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first().dropna()
    if weights.empty:  # a method that ranks features alone
        return []
    weights = weights.sort_values(ascending=False, kind="stable")
    first = float(weights.iloc[0]) or 1.0
    return [
        {
            "name": str(channel),
            "weight": float(weight),
            "relative": float(weight) / first,
            "times_even": float(weight) * len(weights),
        }
        for channel, weight in weights.head(most).items()
    ]


def _accuracy(results: Results, table: str) -> dict[str, Any] | None:
    """Accuracy of the proposed method at the lowest missing rate, with interval and chance."""
    rows = experiment_rows(results, "accuracy", table)
    rows = rows[rows["method"] == proposed_method(results)]
    metric = shown_metric(results)
    if rows.empty or rows[metric].isna().all():
        return None
    rows = lowest_rate(rows)
    found = intervals(unit_scores(rows, metric), ["rate"]).iloc[0]
    chance = chance_of(results, table)
    whole = f"subject_{metric}"
    by_subject = unit_scores(rows, whole)["value"].mean() if whole in rows else np.nan
    return {
        "metric": metric_name(metric),
        "rate": float(found["rate"]),
        "mean": float(found["mean"]),
        "low": plain_number(found["low"]),
        "high": plain_number(found["high"]),
        "chance": chance,
        "by_subject": {"mean": float(by_subject), "chance": chance_of(results, table, whole)}
        if np.isfinite(by_subject)
        else None,
        "above_chance": None if chance is None else bool(found["mean"] > chance["high"]),
        "barely": chance is not None and bool(found["low"] <= chance["chance"]),
    }


def _headline(
    channels: list[dict[str, Any]],
    features: Sequence[Mapping[Any, Any]],
    accuracy: dict[str, Any] | None,
) -> str:
    if not features:
        return "No ranking of channels and features was recorded for this table."
    names = [channel["name"] for channel in channels if channel["times_even"] > 1][:5]
    best = listing([f"{row['feature']} at {row['channel']}" for row in features[:3]])
    if accuracy and accuracy["above_chance"] is False:
        return (
            "The groups cannot be told apart reliably here. First in the ranking, for what it is "
            f"worth: {best}."
        )
    if not channels:
        return f"The features that tell the groups apart best are {best}."
    first = (
        f"The channels that tell the groups apart best are {listing(names)}"
        if len(names) > 1
        else f"The channel that tells the groups apart best is {channels[0]['name']}"
    )
    return f"{first}; the leading features are {best}."


def _describe_accuracy(accuracy: dict[str, Any] | None) -> str:
    if accuracy is None:
        return "How well they predict was not measured."
    reached = f"{percent(accuracy['mean'])} {accuracy['metric']}"
    chance = accuracy["chance"]
    if chance is None:
        return f"The selected features reach {reached}; the chance level was not recorded."
    guess = (
        f"guessing gives {percent(chance['chance'])}, and up to {percent(chance['high'])} by luck"
    )
    if not accuracy["above_chance"]:
        how = "which is not distinguishable from chance"
    elif accuracy["barely"]:
        how = "barely above chance: folds differ so much that the interval still holds it"
    else:
        how = "above chance"
    return f"The selected features reach {reached}, {how}; {guess}."


def find_warnings(results: Results, findings: Mapping[str, Findings]) -> list[dict[str, str]]:
    """What limits trust in the numbers, the gravest first: ``title`` and ``text``."""
    found = [
        *warn_of_gaps(results),
        *_warn_of_protocol(experiment_protocol(results, "accuracy")),
        *warn_of_sites(results),
        *_warn_of_chance(findings),
        *_warn_of_instability(findings),
        *_warn_of_failures(results),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _warn_of_protocol(protocol: Mapping[str, Any]) -> Warned:
    found = []
    if protocol.get("folds") == "sample":
        text = (
            "Samples of one person are in training and test. A classifier can recognise the "
            "person instead of the condition, so these accuracies do not hold for new people. "
            "Run again with subject-wise folds."
        )
        found.append(("Sample-wise folds", text))
    if protocol.get("tuning") == "oracle":
        text = (
            "Settings and the number of features were picked by their score on the test folds, "
            "as many papers do. New data will score lower. Run again with nested tuning."
        )
        found.append(("Optimistic choice of settings", text))
    return found


def _warn_of_chance(findings: Mapping[str, Findings]) -> Warned:
    near, barely = [], []
    for name, one in findings.items():
        accuracy = one["accuracy"]
        if not accuracy or accuracy["above_chance"] is None:
            continue
        mean, chance = percent(accuracy["mean"]), accuracy["chance"]
        if not accuracy["above_chance"]:
            text = (
                f"{mean} lies within what guessing reaches with {chance['n']} people "
                f"({percent(chance['low'])} to {percent(chance['high'])}). Do not read the "
                "ranking as a finding."
            )
            near.append((f"Near chance: {name}", text))
        elif accuracy["barely"]:
            text = (
                f"The mean of {mean} is more than luck gives, but its 95 % interval begins at "
                f"{percent(accuracy['low'])}. More people or repetitions would tell."
            )
            barely.append((f"Barely above chance: {name}", text))
    return [*near, *barely]


def _warn_of_instability(findings: Mapping[str, Findings]) -> Warned:
    def where(condition: Callable[[Findings], Any]) -> str:
        return listing([name for name, one in findings.items() if condition(one)])

    found = []
    if names := where(lambda one: one["stability"] and one["stability"]["verdict"] == "poor"):
        text = (
            f"Different folds pick different features ({names}). Single features in the ranking "
            "may well be others with a few more people."
        )
        found.append(("Unstable selection", text))
    if names := where(lambda one: _has_no_stable_feature(one["resampling"])):
        text = (
            f"Random halves of the people do not agree on any single feature ({names}). Read "
            "channels and groups of features rather than single ones."
        )
        found.append(("No stable feature", text))
    return found


def _has_no_stable_feature(resampling: Mapping[str, Any] | None) -> bool:
    if resampling is None or resampling["reason"]:
        return False
    return not resampling["stable_features"]


def _warn_of_failures(results: Results) -> Warned:
    failures = results.failures
    if failures.empty:
        return []
    methods = listing(sorted(failures["method"].astype(str).unique()))
    last = str(failures["traceback"].iloc[0]).strip().splitlines()[-1:]
    text = (
        f"Their results are missing from all means ({methods}). First error: "
        f"{''.join(last) or 'not recorded'}."
    )
    return [(f"{len(failures)} units failed", text)]
