"""What a reader needs to know of a table: its size, its gaps, and its ranking as a whole."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable


def describe_table(table: FeatureTable) -> dict[str, Any]:
    """Describe a table by what JSON can hold.

    Returns
    -------
    dict
        ``channels``, ``features``, ``n_samples``, ``n_subjects``, ``n_classes``, ``labels``
        (samples of each), ``share_missing``, ``montage``, ``missing_by_recording`` (subjects,
        channels, and the share of samples in which each channel is missing).
    """
    missing = 1.0 - table.observed.groupby(table.subjects.to_numpy()).mean()
    labels = table.y.value_counts().sort_index()
    return {
        "channels": table.channels,
        "features": table.features,
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "n_classes": int(labels.size),
        "labels": {str(label): int(count) for label, count in labels.items()},
        "share_missing": float(1.0 - table.observed.to_numpy().mean()),
        "montage": table.info.get("montage"),
        "missing_by_recording": {
            "subjects": [str(subject) for subject in missing.index],
            "channels": [str(channel) for channel in missing.columns],
            "share": missing.to_numpy().round(6).tolist(),
        },
    }


def most_picked_setting(scores: pd.DataFrame) -> dict[str, Any]:
    """Parameters of the selector that tuning picked most often; none where nothing was tuned."""
    picked = scores.loc[scores["chosen"].astype(bool), "params"]
    setting = json.loads(picked.mode().iloc[0]) if len(picked) else {}
    setting.pop("C", None)
    return setting


def whole_table_ranking(
    table: FeatureTable, scores: pd.DataFrame, selections: pd.DataFrame
) -> tuple[pd.DataFrame, list[float]]:
    """Rank a whole table by IDFS-MEC, without artificial gaps.

    Parameters
    ----------
    table : FeatureTable
    scores, selections : DataFrame
        Rows of IDFS-MEC on this table: the setting that tuning picked most often is used, and
        selections of folds give the stability. May be empty.

    Returns
    -------
    ranking : DataFrame
        Best first.
    history : list of float
        Objective after each iteration.
    """
    setting = most_picked_setting(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # folds have said it already
        selector = IDFSMEC(table.column_channels, **setting).fit(
            table.X.to_numpy(), table.y.to_numpy()
        )
    weight = dict(zip(selector.channel_names_, selector.channel_weights_, strict=True))
    counts = _selected_share(table, selections)
    split = [column.rpartition("__") for column in table.X.columns]
    ranking = pd.DataFrame(
        {
            "rank": selector.ranking_,
            "channel": [channel for channel, _, _ in split],
            "feature": [feature for _, _, feature in split],
            "score": selector.scores_,
            "channel_weight": [weight[channel] for channel, _, _ in split],
            "feature_weight": selector.feature_weights_,
            "stability": counts,
        }
    )
    ranking = ranking.sort_values("rank", ignore_index=True)
    return ranking, [float(value) for value in selector.objective_history_]


def _selected_share(table: FeatureTable, selections: pd.DataFrame) -> np.ndarray:
    """Share of folds in which a feature was among those that tuning kept."""
    place = {column: i for i, column in enumerate(table.X.columns)}
    share = np.zeros(len(place))
    usable = selections[selections["k"].notna()]
    if usable.empty:
        return np.full(len(place), np.nan)
    for k, ranking in zip(usable["k"], usable["ranking"], strict=True):
        share[[place[name] for name in ranking[: int(k)]]] += 1
    return share / len(usable)
