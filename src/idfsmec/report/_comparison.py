"""Who wins where, in words and numbers, also when it is not IDFS-MEC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from idfsmec.evaluation import RankComparison, compare_pairs, compare_ranks
from idfsmec.evaluation.results import Results
from idfsmec.report._answer import _number, accuracy_rows, method_stability
from idfsmec.report._curves import blocks, intervals, unit_scores
from idfsmec.report._style import OURS, sort_methods
from idfsmec.report._words import decide_metric, listing, percent, points


def compare_methods(results: Results, name: str) -> dict[str, Any] | None:
    """Means per method and rate, and what they say about IDFS-MEC."""
    rows = accuracy_rows(results, name)
    metric = decide_metric(results.protocol)
    units = unit_scores(rows, metric) if not rows.empty else rows
    if units.empty:
        return None
    pattern = units["pattern"].iloc[0]
    units = units[units["pattern"] == pattern]
    means = intervals(units, ["method", "rate"])
    rates = sorted(float(rate) for rate in means["rate"].unique())
    methods = sort_methods(list(dict.fromkeys(means["method"])))
    cells: dict[tuple[str, float], dict[str, Any]] = {
        (row["method"], float(row["rate"])): dict(row) for _, row in means.iterrows()
    }
    best = {
        rate: max(cells[m, rate]["mean"] for m in methods if (m, rate) in cells) for rate in rates
    }
    table = [
        {
            "method": method,
            "ours": method == OURS,
            "cells": [_cell(cells.get((method, rate)), best[rate]) for rate in rates],
            "mean": _number(
                np.mean([cells[method, r]["mean"] for r in rates if (method, r) in cells])
            ),
            "stability": method_stability(results, name, method)
            if method not in ("all features", "random", "gradient boosting")
            else None,
        }
        for method in methods
    ]
    gaps = [gap for rate in rates if (gap := _gap_to_best(units, rate)) is not None]
    return {
        "rates": rates,
        "pattern": str(pattern),
        "rows": table,
        "gaps": gaps,
        "sentences": _sentences(gaps, methods),
    }


def _cell(row: dict[str, Any] | None, best: float) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "mean": float(row["mean"]),
        "low": _number(row["low"]),
        "high": _number(row["high"]),
        "best": bool(np.isclose(row["mean"], best)),
    }


def _gap_to_best(units: pd.DataFrame, rate: float) -> dict[str, Any] | None:
    """IDFS-MEC minus the best other method at a rate, paired by fold."""
    here = units[np.isclose(units["rate"], rate)]
    means = here.groupby("method")["value"].mean()
    if OURS not in means or len(means) < 2:
        return None
    rival = str(means.drop(OURS).idxmax())
    wide = here.pivot_table(index=["seed", "fold"], columns="method", values="value")
    paired = (wide[OURS] - wide[rival]).dropna()
    difference = float(means[OURS] - means[rival])
    gap: dict[str, Any] = {"rate": rate, "rival": rival, "difference": difference}
    gap |= {"low": None, "high": None, "clear": False}
    if len(paired) > 1:
        sizes = here[["n_train", "n_test"]].mean()
        rows = pd.DataFrame({"value": paired, "n_train": sizes["n_train"]})
        found = intervals(
            rows.assign(n_test=sizes["n_test"], method=rival, rate=rate), ["method", "rate"]
        ).iloc[0]
        low, high = float(found["low"]), float(found["high"])
        gap |= {"low": low, "high": high, "clear": bool(low > 0 or high < 0)}
    return gap


def _sentences(gaps: list[dict[str, Any]], methods: list[str]) -> list[str]:
    if OURS not in methods:
        return [f"{OURS} is not among the methods compared here."]
    if not gaps:
        return [f"Only {OURS} was run; there is nothing to compare it with."]
    tied = [gap for gap in gaps if abs(gap["difference"]) < 5e-4]
    won = [gap for gap in gaps if gap not in tied and gap["difference"] > 0]
    lost = [gap for gap in gaps if gap not in tied and gap["difference"] < 0]
    said = [_won(won, len(gaps))]
    if tied:
        said.append(f"It is level with the best rival at {_rates(tied)} missing.")
    for gap in lost:
        size = f"{points(-gap['difference']).lstrip('+')} points"
        noise = "clearly" if gap["clear"] else "within what folds vary"
        said.append(
            f"{OURS} loses to {gap['rival']} at {percent(gap['rate'])} missing, "
            f"by {size} ({noise})."
        )
    return said


def _won(won: list[dict[str, Any]], n_rates: int) -> str:
    if not won:
        return f"{OURS} has the highest mean at none of the {n_rates} missing rates."
    clear = [gap for gap in won if gap["clear"]]
    how = f"clearly at {_rates(clear)}" if clear else "though nowhere by more than folds vary"
    where = "every missing rate" if len(won) == n_rates else f"{_rates(won)} missing"
    return f"{OURS} has the highest mean at {where}, {how}."


def _rates(gaps: list[dict[str, Any]]) -> str:
    return listing([percent(gap["rate"]) for gap in gaps], most=10)


def rank_methods(results: Results) -> tuple[RankComparison, list[dict[str, Any]]] | str:
    """Ranks over tables x rates with paired tests, or a sentence that says why not."""
    rows = results.scores[results.scores["experiment"] == "accuracy"]
    metric = decide_metric(results.protocol)
    wide = blocks(unit_scores(rows, metric)) if not rows.empty else pd.DataFrame()
    if wide.shape[0] < 2 or wide.shape[1] < 3:
        return (
            "A comparison of ranks needs at least three methods and two blocks "
            f"(table x missing rate); there are {wide.shape[1]} and {wide.shape[0]}."
        )
    comparison = compare_ranks(wide)
    tests: list[dict[str, Any]] = []
    if OURS in wide:
        tests = [
            {str(key): _number(value) for key, value in row.items()}
            for row in compare_pairs(wide, OURS).to_dict("records")
        ]
    return comparison, tests
