"""Take from results what a figure or a sentence is about: rows, means with CI, chance, labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.evaluation.statistics import compare_folds
from idfsmec.metrics import corrected_interval
from idfsmec.report.text import describe_protocol

#: What a score belongs to: a method in a fold of a table at a missing rate.
TASK = ["table", "pattern", "rate", "seed", "fold", "method"]
_WITH_CHANCE = ("accuracy", "balanced_accuracy", "subject_accuracy", "subject_balanced_accuracy")

#: Name of a method -> ``{"family": ..., "label": ...}``, as in ``Results.methods``.
Methods = Mapping[str, Mapping[str, str]]
#: The family whose first method is emphasised and what the sentences are about.
PROPOSED = "proposed"


def known_methods(methods: Methods | None) -> Methods:
    """Return families and labels as given, or those of the registry."""
    if methods is not None:
        return methods
    from idfsmec.prediction import METHODS  # imports scikit-learn, which a report does not need

    return {
        name: {"family": method.family, "label": method.label} for name, method in METHODS.items()
    }


def family_of(method: str, methods: Methods) -> str:
    """Return the family of a method; "other" where none is known."""
    return str((methods.get(method) or {}).get("family") or "other")


def label_of(method: object, methods: Methods) -> str:
    """Return what figures and tables call a method; its name by default."""
    return str((methods.get(str(method)) or {}).get("label") or method)


def main_method(names: Iterable[str], methods: Methods) -> str | None:
    """Return the method of main interest: the first one of the family "proposed"."""
    return next((name for name in names if family_of(name, methods) == PROPOSED), None)


def proposed_method(results: Results) -> str | None:
    """Return the method that the page is about, or None where none was proposed."""
    return main_method(results.methods, results.methods)


def sort_methods(names: Iterable[object], methods: Methods) -> list[str]:
    """Sort methods: proposed first, sanity checks last, each once."""
    order = {PROPOSED: 0, "sanity": 2}
    unique = dict.fromkeys(map(str, names))
    return sorted(unique, key=lambda name: order.get(family_of(name, methods), 1))


def experiment_rows(results: Results, experiment: str, table: str) -> pd.DataFrame:
    """Return the rows of one experiment on one table."""
    scores = results.scores
    return scores[(scores["experiment"] == experiment) & (scores["table"] == table)]


def scored_rows(results: Results, experiment: str, table: str) -> pd.DataFrame:
    """Return those of them that have the score that is shown."""
    return experiment_rows(results, experiment, table).dropna(subset=[shown_metric(results)])


def by_pattern(rows: pd.DataFrame, note: str) -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Split rows by the pattern of missing channels; one alone is not named."""
    patterns = rows["pattern"].unique()
    for pattern in patterns:
        several = len(patterns) > 1
        named = f"{note} · channels missing by pattern {pattern}" if several else note
        yield str(pattern) if several else "", rows[rows["pattern"] == pattern], named


def table_ranking(results: Results, table: str) -> pd.DataFrame:
    """Return the ranking of a table, best first."""
    ranking = results.ranking
    if "table" in ranking:
        ranking = ranking[ranking["table"].astype(str) == table]
    return ranking.sort_values("rank").reset_index(drop=True)


def channel_weights(results: Results, table: str) -> pd.Series:
    """Return the weight of each channel, largest first; empty for methods that give none."""
    ranking = table_ranking(results, table)
    weights = ranking.groupby("channel", sort=False)["channel_weight"].first().dropna()
    return weights.sort_values(ascending=False, kind="stable")


def experiment_protocol(results: Results, experiment: str) -> dict[str, Any]:
    """Return the protocol of one experiment: its own where it was recorded, else the main one."""
    own = (results.protocol.get("experiments") or {}).get(experiment, {})
    merged = {**results.protocol, **own}
    if own.get("seeds"):
        merged["n_repeats"] = len(own["seeds"])
    return merged


def protocol_note(results: Results, experiment: str) -> str:
    """Return the line under a figure's title: folds and tuning of the experiment."""
    return describe_protocol(experiment_protocol(results, experiment))


def whole_table_note(results: Results, table: str, what: str = "") -> str:
    """Return that line for a ranking of the whole table, which uses no folds."""
    ranked_by = table_ranking(results, table)["method"]
    method = proposed_method(results) if ranked_by.empty else str(ranked_by.iloc[0])
    rows = experiment_rows(results, "accuracy", table)
    tuned = not rows[(rows["method"] == method) & rows["chosen"].astype(bool)].empty
    settings = {
        "nested": "setting that nested tuning chose most often",
        "oracle": "setting best on the test folds (optimistic)",
    }
    tuning = str(experiment_protocol(results, "accuracy").get("tuning"))
    how = settings.get(tuning, "settings as chosen") if tuned else "default settings"
    return f"{what or f'{method} on the whole table'}, no folds\n{how}"


def shown_metric(results: Results) -> str:
    """Return the score that is shown: what tuning maximised, if it has a chance level."""
    metric = str(results.protocol.get("metric"))
    return metric if metric in _WITH_CHANCE else "balanced_accuracy"


def chance_of(results: Results, table: str, metric: str = "") -> dict[str, float] | None:
    """Return chance level and 95 % band of a score (default: the one shown), if recorded."""
    bands = (results.protocol.get("chance") or {}).get(table) or {}
    return bands.get(metric or shown_metric(results))


def published_values(results: Results, experiment: str, table: str) -> dict[str, float]:
    """Return the paper's values by method, where its data set was reproduced as this table."""
    if results.data_set is None or table != results.data_set:
        return {}
    from idfsmec.paper import published  # imports all methods, which few reports need

    values = published(experiment)
    return dict(values[values["data_set"] == table].set_index("method")["value"])


def task_scores(
    scores: pd.DataFrame, metric: str, by: Sequence[str] = (), *, chosen: bool | None = None
) -> pd.DataFrame:
    """Average scores to one ``value`` per task (and per value of ``by``), with its fold's sizes.

    Only rows that tuning chose count where ``chosen``, by default where ``by`` is empty; all rows
    of a task count where tuning chose none.
    """
    rows = scores.dropna(subset=[metric, *by])
    if (not by if chosen is None else chosen) and not rows.empty and "chosen" in rows:
        picked = rows["chosen"].fillna(False).astype(bool)
        rows = rows[picked | ~picked.groupby([rows[column] for column in TASK]).transform("any")]
    grouped = rows.groupby([*TASK, *by], as_index=False, sort=False)
    return grouped[[metric, "n_train", "n_test"]].mean().rename(columns={metric: "value"})


def fold_scores(tasks: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Average over missing rates within each fold, so that a fold counts once."""
    keys = [*by, "seed", "fold"]
    return tasks.groupby(keys, as_index=False, sort=False)[["value", "n_train", "n_test"]].mean()


def intervals(tasks: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Compute mean and 95 % CI over folds and repeats for each value of ``by``, as they come."""
    rows = []
    for key, group in tasks.groupby(list(by), sort=False):
        ci = corrected_interval(group["value"], group["n_train"].mean(), group["n_test"].mean())
        rows.append([*key, ci.mean, ci.low, ci.high, ci.n])
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"])


def differences(tasks: pd.DataFrame, column: str, reference: Any) -> pd.DataFrame:
    """Subtract each other value of a column from the reference's, paired by fold, with 95 % CI.

    Returns what :func:`idfsmec.evaluation.statistics.compare_folds` does, with the column under
    its own name, and ``excludes_zero``: whether the CI excludes 0.
    """
    wide = tasks.pivot_table(index=["seed", "fold"], columns=column, values="value")
    paired = compare_folds(wide, reference, tasks["n_train"].mean(), tasks["n_test"].mean())
    # A rounding error between two equal scores is no difference.
    excludes = ((paired["low"] > 0) | (paired["high"] < 0)) & (paired["difference"].abs() > 1e-9)
    return paired.assign(excludes_zero=excludes).rename(columns={"method": column})


def curve_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the setting that tuning chose, for every k; all where there is one."""
    if "params" not in scores or scores.empty:
        return scores
    chosen = scores[scores["chosen"].fillna(False).astype(bool)]
    setting = chosen.drop_duplicates(TASK).set_index(TASK)["params"].rename("setting")
    joined = scores.join(setting, on=TASK)
    several = joined.groupby([*TASK, "k"])["params"].transform("nunique") > 1
    return scores[~several | joined["setting"].isna() | (joined["params"] == joined["setting"])]


def lowest_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep rows at the lowest missing rate, of the first pattern."""
    lowest = rows[np.isclose(rows["rate"], rows["rate"].min())]
    return lowest[lowest["pattern"] == lowest["pattern"].iloc[0]]
