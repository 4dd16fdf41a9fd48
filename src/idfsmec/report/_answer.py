"""The answer for one table: which channels and features, how sure, and against which chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import selection_matrix, selection_stability
from idfsmec.evaluation.results import Results
from idfsmec.report._curves import intervals, unit_scores
from idfsmec.report._style import OURS
from idfsmec.report._sureness import add_frequencies, describe_sureness, table_sureness
from idfsmec.report._words import decide_metric, listing, metric_name, percent


def table_answer(results: Results, name: str) -> dict[str, Any]:
    """What the page says first about a table, as plain data."""
    ranking = own_ranking(results, name)
    accuracy = headline(results, name)
    stability = method_stability(results, name, OURS)
    sureness = table_sureness(results, name)
    channels = top_channels(ranking)
    features = ranking.head(10).to_dict("records")
    return {
        "channels": channels,
        "features": [_plain(row) for row in features],
        "accuracy": accuracy,
        "stability": stability,
        "sureness": sureness,
        "lead": _lead(channels, features, accuracy),
        "verdict": _verdict(accuracy),
        "trust": " ".join(filter(None, (_trust(stability), describe_sureness(sureness)))),
    }


def own_ranking(results: Results, name: str) -> pd.DataFrame:
    """Rows of the ranking that belong to the table, best first, with what halves picked."""
    ranking = results.ranking
    if "table" in ranking:
        ranking = ranking[ranking["table"].astype(str) == name]
    ranking = add_frequencies(ranking, results.resampling.get(name))
    return ranking.sort_values("rank").reset_index(drop=True)


def top_channels(ranking: pd.DataFrame, most: int = 8) -> list[dict[str, Any]]:
    """Channels by weight, with how each compares with the first and with an even share."""
    if ranking.empty:
        return []
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first()
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


def accuracy_rows(results: Results, name: str) -> pd.DataFrame:
    """Scores of the accuracy experiment on the table."""
    scores = results.scores
    return scores[(scores["experiment"] == "accuracy") & (scores["table"] == name)]


def chance_of(results: Results, name: str, metric: str = "") -> dict[str, float] | None:
    """Chance level and band of a score (by default the one that is shown), if recorded."""
    bands = (results.protocol.get("chance") or {}).get(name) or {}
    return bands.get(metric or decide_metric(results.protocol))


def headline(results: Results, name: str) -> dict[str, Any] | None:
    """Accuracy of IDFS-MEC at the lowest missing rate, with its interval and chance."""
    rows = accuracy_rows(results, name)
    rows = rows[rows["method"] == OURS]
    metric = decide_metric(results.protocol)
    if rows.empty or rows[metric].isna().all():
        return None
    rate = float(rows["rate"].min())
    pattern = rows["pattern"].iloc[0]
    rows = rows[np.isclose(rows["rate"], rate) & (rows["pattern"] == pattern)]
    found = intervals(unit_scores(rows, metric), ["method", "rate"]).iloc[0]
    chance = chance_of(results, name)
    whole = f"subject_{metric}"
    by_subject = unit_scores(rows, whole)["value"].mean() if whole in rows else np.nan
    return {
        "metric": metric_name(metric),
        "rate": rate,
        "mean": float(found["mean"]),
        "low": _number(found["low"]),
        "high": _number(found["high"]),
        "chance": chance,
        "by_subject": {"mean": float(by_subject), "chance": chance_of(results, name, whole)}
        if np.isfinite(by_subject)
        else None,
        "above_chance": None if chance is None else bool(found["mean"] > chance["high"]),
        "barely": chance is not None and bool(found["low"] <= chance["chance"]),
    }


def method_stability(results: Results, name: str, method: str) -> dict[str, Any] | None:
    """Agreement of a method's selections between folds at the lowest missing rate."""
    picks = results.selections
    if picks.empty:
        return None
    picks = picks[
        (picks["experiment"] == "accuracy")
        & (picks["table"] == name)
        & (picks["method"] == method)
    ]
    if picks.empty:
        return None
    picks = picks[np.isclose(picks["rate"], picks["rate"].min())]
    picks = picks[picks["pattern"] == picks["pattern"].iloc[0]]
    about = results.tables[name]
    names = [f"{channel}__{feature}" for channel in about["channels"]
             for feature in about["features"]]  # fmt: skip
    rankings = [list(ranking) for ranking in picks["ranking"]]
    names = list(dict.fromkeys([*names, *(f for ranking in rankings for f in ranking)]))
    k = typical_k(results, name, method, min(map(len, rankings)))
    if k < 1:
        return None
    found = selection_stability(selection_matrix(rankings, names, k))
    if np.isnan(found.value):
        return None
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "k": k,
        "verdict": found.verdict,
    }


def typical_k(results: Results, name: str, method: str, longest: int) -> int:
    """The middle of the numbers of features that tuning chose, as far as rankings are kept."""
    rows = accuracy_rows(results, name)
    rows = rows[rows["method"] == method]
    chosen = rows.loc[rows["chosen"].astype(bool), "k"]
    ks = chosen if len(chosen) else rows["k"]
    middle = int(ks.quantile(0.5, interpolation="nearest")) if len(ks) else longest
    # Keeping all features says nothing about which: then the better half is looked at.
    n_features = len(own_ranking(results, name))
    return min(middle, longest, max(n_features // 2, 1) if n_features else middle)


def _lead(
    channels: list[dict[str, Any]],
    features: Sequence[Mapping[Any, Any]],
    accuracy: dict[str, Any] | None,
) -> str:
    if not channels:
        return "No ranking of channels and features was recorded for this table."
    names = [channel["name"] for channel in channels if channel["times_even"] > 1][:5]
    best = [f"{row['feature']} at {row['channel']}" for row in features[:3]]
    if accuracy and accuracy["above_chance"] is False:
        return (
            "The groups cannot be told apart reliably here. First in the ranking, for what it is "
            f"worth: {listing(best)}."
        )
    first = (
        f"The channels that tell the groups apart best are {listing(names)}"
        if len(names) > 1
        else f"The channel that tells the groups apart best is {channels[0]['name']}"
    )
    return f"{first}; the leading features are {listing(best)}."


def _verdict(accuracy: dict[str, Any] | None) -> str:
    if accuracy is None:
        return "How well they predict was not measured."
    said = f"{percent(accuracy['mean'])} {accuracy['metric']}"
    chance = accuracy["chance"]
    if chance is None:
        return f"The selected features reach {said}; the chance level was not recorded."
    guess = (
        f"guessing gives {percent(chance['chance'])}, and up to {percent(chance['high'])} by luck"
    )
    if not accuracy["above_chance"]:
        how = "which is not distinguishable from chance"
    elif accuracy["barely"]:
        how = "barely above chance: folds differ so much that the interval still holds it"
    else:
        how = "above chance"
    return f"The selected features reach {said}, {how}; {guess}."


def _trust(stability: dict[str, Any] | None) -> str:
    if stability is None:
        return "How stable the selection is between folds was not measured."
    return (
        f"Between {stability['n']} folds the first {stability['k']} features agree to "
        f"{stability['value']:.2f} of 1 ({stability['verdict']} stability)."
    )


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Numpy numbers as Python's, NaN as None."""
    return {str(key): _number(value) for key, value in row.items()}


def _number(value: Any) -> Any:
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return str(value)
