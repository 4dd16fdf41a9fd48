"""Results of folds by site, one row for each hospital that was held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from idfsmec.evaluation.chance import chance_band
from idfsmec.evaluation.intervals import wilson_interval
from idfsmec.evaluation.results import Results

_CELL = ["table", "pattern", "rate", "method", "filler"]
SITE_SCORES = [
    *_CELL,
    *("site", "n_subjects", "subject_accuracy", "low", "high"),
    *("chance_low", "chance_high", "subject_balanced_accuracy", "subject_roc_auc"),
]


def site_scores(results: Results, experiment: str = "accuracy") -> pd.DataFrame:
    """Say how methods did at each hospital that was held out.

    Parameters
    ----------
    results : Results
    experiment : str, default="accuracy"

    Returns
    -------
    DataFrame
        One row for each table, pattern, rate, method, filler and site: ``n_subjects``,
        ``subject_accuracy`` with a 95 % interval over its people (Wilson: ``low``, ``high``) and
        the band of guessing there (``chance_low``, ``chance_high``),
        ``subject_balanced_accuracy`` and ``subject_roc_auc``; means over repetitions. Empty if
        folds were not by site.
    """
    protocol = results.protocol.get("experiments", {}).get(experiment, {})
    rows: list[dict[str, Any]] = []
    if protocol.get("folds") == "site":
        chosen = results.chosen(experiment)
        scores = ["subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"]
        means = chosen.groupby([*_CELL, "fold"], sort=False)[scores].mean().reset_index()
        for row in means.to_dict("records"):
            known = results.tables[row["table"]].get("sites", [])
            if row["fold"] < len(known):
                judged = _judge(known[row["fold"]], row["subject_accuracy"])
                rows.append({str(key): value for key, value in row.items()} | judged)
    return pd.DataFrame(rows, columns=SITE_SCORES)


def judge_people(
    site: str, counts: Sequence[int], n_people: int, accuracy: float
) -> dict[str, Any]:
    """Interval of an accuracy at one site, and what guessing gives there.

    Examples
    --------
    >>> found = judge_people("Oslo", [10, 10], 20, 0.8)
    >>> round(found["low"], 2), found["chance_high"]
    (0.58, 0.7)
    """
    low, high = wilson_interval(accuracy * n_people, n_people)
    band = chance_band([n for n in counts if n])
    return {
        "site": site,
        "n_subjects": n_people,
        "low": low,
        "high": high,
        "chance_low": band.low,
        "chance_high": band.high,
    }


def _judge(about: dict[str, Any], accuracy: float) -> dict[str, Any]:
    counts = list(about["labels"].values())
    return judge_people(about["site"], counts, about["n_subjects"], accuracy)
