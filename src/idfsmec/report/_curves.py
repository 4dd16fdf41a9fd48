"""From tidy rows of scores to the means and intervals that figures and sentences show."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from idfsmec.evaluation import corrected_interval

UNIT = ["table", "pattern", "rate", "seed", "fold", "method"]


def chosen_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows that count as a unit's result: what tuning chose, or all where it chose nothing."""
    if scores.empty or "chosen" not in scores:
        return scores
    chosen = scores["chosen"].fillna(False).astype(bool)
    picked = chosen.groupby([scores[column] for column in UNIT]).transform("any")
    return scores[chosen | ~picked]


def unit_scores(scores: pd.DataFrame, metric: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """One value per unit (and per value of ``by``), with the sizes of its fold.

    Parameters
    ----------
    scores : DataFrame
        Rows of one experiment.
    metric : str
    by : sequence of str
        Further columns to keep apart, such as ``["k"]`` or ``["lam", "gamma"]``. Without any,
        the chosen rows count.

    Returns
    -------
    DataFrame
        Columns ``UNIT``, ``by``, ``value``, ``n_train``, ``n_test``.
    """
    rows = scores if by else chosen_rows(scores)
    rows = rows.dropna(subset=[metric, *by])
    keys = [*UNIT, *by]
    return (
        rows.groupby(keys, as_index=False, sort=False)[[metric, "n_train", "n_test"]]
        .mean()
        .rename(columns={metric: "value"})
    )


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
