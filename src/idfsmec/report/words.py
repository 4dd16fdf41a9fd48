"""What each figure shows, in sentences made from the numbers it is drawn from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.report.comparison_words import say_by_k, say_by_rate, say_differences
from idfsmec.report.cost import cost_table
from idfsmec.report.effects import say_effects
from idfsmec.report.filling import say_filling, say_lost
from idfsmec.report.formatting import feature_name, listing, percent, points, seconds
from idfsmec.report.missingness import dead_channels
from idfsmec.report.scores import (
    experiment_rows,
    proposed_method,
    shown_metric,
    table_ranking,
)
from idfsmec.report.settings import ablation_table, sensitivity_surface
from idfsmec.report.style import label_of

#: Sentences by section and pattern of gaps ("" where a figure is for all).
Said = dict[str, dict[str, list[str]]]


def say_all(results: Results, table: str) -> Said:
    """The sentences under each figure of a table.

    Returns
    -------
    dict
        Section of the page to pattern of gaps (``""`` where there is one figure for all) to
        sentences. A figure that says it all itself has none.
    """
    said: Said = {section: {"": say(results, table)} for section, say in _WHOLE.items()}
    said["filling"] = say_filling(results, table)
    rows = experiment_rows(results, "accuracy", table).dropna(subset=[shown_metric(results)])
    patterns = [str(pattern) for pattern in rows["pattern"].unique()]
    for section, say_rows in _BY_PATTERN.items():
        said[section] = {
            pattern if len(patterns) > 1 else "": say_rows(
                results, table, rows[rows["pattern"] == pattern]
            )
            for pattern in patterns
        }
    return said


def _channels(results: Results, table: str) -> list[str]:
    ranking = table_ranking(results, table)
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first().dropna()
    weights = weights.sort_values(ascending=False, kind="stable")
    if weights.size < 2 or not weights.sum():
        return []
    most = weights.iloc[0] * weights.size
    if most < 1.25:
        return [
            f"Weights are almost even: the largest ({weights.index[0]}) is {most:.2f} times an "
            "even share, so the map says little."
        ]
    first = [str(name) for name in weights.index[:3]]
    share, even = float(weights.iloc[:3].sum()), min(3 / weights.size, 1)
    return [
        f"{listing(first)} have {percent(share)} of all weight; even shares would give them "
        f"{percent(even)}."
    ]


def _heatmap(results: Results, table: str) -> list[str]:
    scores = table_ranking(results, table)
    total = scores["score"].clip(lower=0).sum() if len(scores) else 0
    if not total:
        return []
    shares = np.cumsum(np.sort(scores["score"].clip(lower=0))[::-1]) / total
    half = int(np.searchsorted(shares, 0.5)) + 1
    feature = scores.groupby("feature", sort=False)["score"].sum().idxmax()
    return [
        f"Half of all score lies on {half} of {len(scores)} features; over all channels "
        f"{feature} has the most."
    ]


def _frequencies(key: str, limit: bool) -> Callable[[Results, str], list[str]]:
    def say(results: Results, table: str) -> list[str]:
        found = results.resampling.get(table) or {}
        shares = pd.Series(found.get(key, {}), dtype=float)
        if shares.empty:
            return []
        first = feature_name(str(shares.idxmax()))
        text = f"Most often: {first}, on {percent(shares.max())} of the halves"
        if not limit:
            return [f"{text}."]
        n = int((shares >= found["threshold"] - 1e-9).sum())
        return [f"{text}; {n or 'none'} of {shares.size} reach{'es' if n == 1 else ''} the line."]

    return say


def _missing(results: Results, table: str) -> list[str]:
    about = results.tables[table].get("missing_by_recording")
    if not about or not np.any(about["share"]):
        return []
    shares = pd.DataFrame(about["share"], columns=about["channels"])
    shares = shares.drop(columns=dead_channels(results, table), errors="ignore")
    if shares.empty:
        return []
    by_channel, by_row = shares.mean(), shares.mean(axis=1)
    complete = int((by_row == 0).sum())
    half = int((by_row > 0.5).sum())
    return [
        f"Most is missing at {by_channel.idxmax()} ({percent(by_channel.max())}); {complete} of "
        f"{len(shares)} recordings are complete, {half} lack more than half."
    ]


def _ablation(results: Results, table: str) -> list[str]:
    rows, metric = experiment_rows(results, "ablation", table), shown_metric(results)
    if rows.empty or rows[metric].isna().all():
        return []
    found = ablation_table(rows, metric, results.methods)
    parts = found[~found["whole"] & found["difference_low"].notna()]
    if parts.empty:
        return []
    sure = parts[(parts["difference_high"] < 0) | (parts["difference_low"] > 0)]
    if sure.empty:
        return ["No variant differs surely from the whole method here."]
    each = [
        f"{label_of(str(m), results.methods)} ({points(d)} points)"
        for m, d in zip(sure["method"], sure["difference"], strict=True)
    ]
    return [f"Surely different from the whole method: {listing(each, 10)}."]


def _sensitivity(results: Results, table: str) -> list[str]:
    rows, metric = experiment_rows(results, "sensitivity", table), shown_metric(results)
    if rows.empty or rows[[metric, "lam", "gamma"]].dropna().empty:
        return []
    surface = sensitivity_surface(rows, metric)
    along_lam, along_gamma = np.ptp(surface.mean(axis=0)), np.ptp(surface.mean(axis=1))
    return [
        f"On average λ moves the score by {100 * along_lam:.1f} points and γ by "
        f"{100 * along_gamma:.1f}."
    ]


def _cost(results: Results, table: str) -> list[str]:
    rows, main = experiment_rows(results, "cost", table), proposed_method(results)
    if rows.empty or rows["seconds"].isna().all():
        return []
    found, known = cost_table(rows), results.methods
    found = found[found["n_channels"] == found["n_channels"].max()].set_index("method")["median"]
    if main not in found or len(found) < 2:
        return []
    place = int((found < found[main]).sum()) + 1
    n_channels = int(rows["n_channels"].max())
    return [
        f"With {n_channels} channels {main} takes {seconds(found[main])}, place "
        f"{place} of {len(found)}; the fastest is {label_of(str(found.idxmin()), known)} "
        f"({seconds(found.min())}), the slowest {label_of(str(found.idxmax()), known)} "
        f"({seconds(found.max())})."
    ]


def _convergence(results: Results, table: str) -> list[str]:
    values = np.asarray(results.convergence.get(table) or [], dtype=float)
    drop = values[0] - values[-1] if values.size > 1 else 0
    if drop <= 0:
        return []
    near = int(np.argmax(values[0] - values >= 0.99 * drop))
    return [f"99 % of the way is gone after {near} of {values.size - 1} iterations."]


_WHOLE: dict[str, Callable[[Results, str], list[str]]] = {
    "channels": _channels,
    "heatmap": _heatmap,
    "effects": say_effects,
    "selection-frequency-features": _frequencies("frequency", limit=True),
    "selection-frequency-channels": _frequencies("channel_frequency", limit=False),
    "missing": _missing,
    "filling-lost": say_lost,
    "ablation": _ablation,
    "sensitivity": _sensitivity,
    "cost": _cost,
    "convergence": _convergence,
}
_BY_PATTERN: dict[str, Callable[[Results, str, pd.DataFrame], list[str]]] = {
    "accuracy-by-rate": say_by_rate,
    "differences": say_differences,
    "accuracy-by-k": say_by_k,
}
