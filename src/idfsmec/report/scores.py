"""What of the results a figure or a sentence is about: rows, means and intervals, chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results, compare_folds, corrected_interval
from idfsmec.report.formatting import describe_protocol, experiment_protocol
from idfsmec.report.style import main_method

UNIT = ["table", "pattern", "rate", "seed", "fold", "method"]
_WITH_CHANCE = ("accuracy", "balanced_accuracy", "subject_accuracy", "subject_balanced_accuracy")


def proposed_method(results: Results) -> str | None:
    """Name of the method that the page is about, or None where none was proposed."""
    return main_method(results.methods, results.methods)


def experiment_rows(results: Results, experiment: str, table: str) -> pd.DataFrame:
    """Scores of one experiment on one table."""
    scores = results.scores
    return scores[(scores["experiment"] == experiment) & (scores["table"] == table)]


def table_ranking(results: Results, table: str) -> pd.DataFrame:
    """Rows of the ranking that belong to a table, best first."""
    ranking = results.ranking
    if "table" in ranking:
        ranking = ranking[ranking["table"].astype(str) == table]
    return ranking.sort_values("rank").reset_index(drop=True)


def protocol_note(results: Results, experiment: str) -> str:
    """The line under a figure's title: folds and tuning of the experiment."""
    return describe_protocol(experiment_protocol(results, experiment))


def whole_table_note(results: Results, table: str, what: str = "") -> str:
    """The same for a ranking of the whole table, which has nothing to do with folds."""
    ranked_by = table_ranking(results, table)["method"]
    method = proposed_method(results) if ranked_by.empty else str(ranked_by.iloc[0])
    rows = experiment_rows(results, "accuracy", table)
    tuned = not rows[(rows["method"] == method) & rows["chosen"].astype(bool)].empty
    settings = {
        "nested": "setting nested tuning picked most often",
        "oracle": "setting best on the test folds (optimistic)",
    }
    tuning = str(experiment_protocol(results, "accuracy").get("tuning"))
    how = settings.get(tuning, "settings as chosen") if tuned else "default settings"
    return f"{what or f'{method} on the whole table'}, no folds\n{how}"


def shown_metric(results: Results) -> str:
    """The score that is shown: what tuning maximised, if it has a chance level."""
    metric = str(results.protocol.get("metric"))
    return metric if metric in _WITH_CHANCE else "balanced_accuracy"


def chance_of(results: Results, table: str, metric: str = "") -> dict[str, float] | None:
    """Chance level and band of a score (by default the one that is shown), if recorded."""
    bands = (results.protocol.get("chance") or {}).get(table) or {}
    return bands.get(metric or shown_metric(results))


def published_values(results: Results, experiment: str, table: str) -> dict[str, float]:
    """The paper's values by method, where the table is a data set of it that was reproduced."""
    if results.data_set is None or table != results.data_set:
        return {}
    from idfsmec.paper import published  # all methods and scikit-learn: few reports need them

    values = published(experiment)
    own = values[values["data_set"] == results.data_set]
    return {
        str(method): float(value)
        for method, value in zip(own["method"], own["value"], strict=True)
    }


def chosen_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows that count as a unit's result: what tuning chose, or all where it chose nothing."""
    if scores.empty or "chosen" not in scores:
        return scores
    chosen = scores["chosen"].fillna(False).astype(bool)
    picked = chosen.groupby([scores[column] for column in UNIT]).transform("any")
    return scores[chosen | ~picked]


def unit_scores(
    scores: pd.DataFrame, metric: str, by: Sequence[str] = (), *, chosen: bool | None = None
) -> pd.DataFrame:
    """One value per unit (and per value of ``by``), with the sizes of its fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of one experiment.
    metric : str
    by : sequence of str
        Further columns to keep apart, such as ``["k"]`` or ``["lam", "gamma"]``.
    chosen : bool, optional
        Whether only what tuning chose counts; by default where nothing more is kept apart.

    Returns
    -------
    DataFrame
        Columns ``UNIT``, ``by``, ``value``, ``n_train``, ``n_test``.
    """
    rows = chosen_rows(scores) if (not by if chosen is None else chosen) else scores
    rows = rows.dropna(subset=[metric, *by])
    return (
        rows.groupby([*UNIT, *by], as_index=False, sort=False)[[metric, "n_train", "n_test"]]
        .mean()
        .rename(columns={metric: "value"})
    )


def fold_scores(units: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean over missing rates within each fold, so that a fold counts once."""
    keys = [*by, "seed", "fold"]
    return units.groupby(keys, as_index=False, sort=False)[["value", "n_train", "n_test"]].mean()


def intervals(units: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean and 95 % interval over folds and repetitions, for each value of ``by``.

    Returns
    -------
    DataFrame
        Columns ``by``, ``mean``, ``low``, ``high``, ``n``; in order of appearance of the values.
    """
    rows = []
    for key, group in units.groupby(list(by), sort=False):
        found = corrected_interval(group["value"], group["n_train"].mean(), group["n_test"].mean())
        rows.append([*key, found.mean, found.low, found.high, found.n])
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"])


def differences(units: pd.DataFrame, column: str, reference: Any) -> pd.DataFrame:
    """One value of a column minus each of the others, paired by fold, with corrected intervals.

    Parameters
    ----------
    units : DataFrame
        From :func:`unit_scores`; what has several values in a fold (as over rates) is averaged.
    column : str
        What is compared: ``"method"``, ``"rate"`` or ``"k"``.
    reference : object
        The value of it that the others are taken from.

    Returns
    -------
    DataFrame
        As from :func:`idfsmec.evaluation.compare_folds`, with the column under its own name, and
        ``sure``: whether the interval leaves zero out.
    """
    wide = units.pivot_table(index=["seed", "fold"], columns=column, values="value")
    found = compare_folds(wide, reference, units["n_train"].mean(), units["n_test"].mean())
    # Rounding of two scores that are alike everywhere is no difference.
    sure = ((found["low"] > 0) | (found["high"] < 0)) & (found["difference"].abs() > 1e-9)
    return found.assign(sure=sure).rename(columns={"method": column})


def setting_curves(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the setting tuning chose, for every k; all rows where a unit has one setting."""
    if "params" not in scores or scores.empty:
        return scores
    chosen = scores[scores["chosen"].fillna(False).astype(bool)]
    picked = chosen.drop_duplicates(UNIT).set_index(UNIT)["params"].rename("picked")
    joined = scores.join(picked, on=UNIT)
    several = joined.groupby([*UNIT, "k"])["params"].transform("nunique") > 1
    return scores[(~several | joined["picked"].isna() | (joined["params"] == joined["picked"]))]


def blocks(units: pd.DataFrame) -> pd.DataFrame:
    """Mean per table x pattern x rate (rows) and method (columns), complete blocks only."""
    wide = units.pivot_table(
        index=["table", "pattern", "rate"], columns="method", values="value", aggfunc="mean"
    )
    return wide.dropna(axis=0)


def lowest_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows at the lowest missing rate there is, of the first pattern of gaps."""
    at_least = rows[np.isclose(rows["rate"], rows["rate"].min())]
    return at_least[at_least["pattern"] == at_least["pattern"].iloc[0]]
