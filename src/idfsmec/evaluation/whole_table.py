"""One method on a whole table without artificial gaps: its ranking, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom
from sklearn.utils.validation import has_fit_parameter

from idfsmec.evaluation.method import Method
from idfsmec.evaluation.tables import TableArrays
from idfsmec.selection import StabilitySelector, feature_effects
from idfsmec.solver.scaling import Scaling

#: What a selector raises for data that cannot be ranked: a reason, not a failure of the run.
_UNFIT = (ValueError, ArithmeticError)


def rank_whole(method: Method, setting: Mapping[str, Any], table: TableArrays) -> dict[str, Any]:
    """Rank a whole table.

    Returns
    -------
    dict
        Lists over the columns: ``rank``, ``score``, and where the selector has them
        ``channel_weight``, ``feature_weight``; direction and size of each column, see
        :func:`idfsmec.selection.feature_effects`; ``history``, the objective after each
        iteration. Where the table cannot be ranked: ``reason`` alone.
    """
    selector = method.build(channels=table.channel_of, random_state=0, **setting)
    X = table.X
    if not method.takes_gaps:
        scaled = Scaling.learn(table.X).apply(table.X)
        about = (table.channel_of, table.feature_of, table.positions)
        X = method.filling.build(*about).fit_transform(scaled)
    people = {"groups": table.people} if has_fit_parameter(selector, "groups") else {}
    try:
        selector.fit(X, table.y, **people)
    except _UNFIT as error:
        return {"reason": str(error)}
    found = {
        "rank": selector.ranking_.tolist(),
        "score": selector.scores_.tolist(),
        "history": [float(value) for value in getattr(selector, "objective_history_", [])],
    }
    if hasattr(selector, "channel_weights_"):
        weight = dict(zip(selector.channel_names_, selector.channel_weights_, strict=True))
        found["channel_weight"] = [float(weight[channel]) for channel in table.channel_of]
    if hasattr(selector, "feature_weights_"):
        found["feature_weight"] = selector.feature_weights_.tolist()
    labels = np.array(table.classes)[table.y]
    effects = feature_effects(table.X, labels, table.subjects, names=table.columns)
    for name in effects.columns.drop("feature"):
        found[str(name)] = effects[name].tolist()
    return found


def resample_whole(
    method: Method,
    setting: Mapping[str, Any],
    table: TableArrays,
    n_resamples: int,
    seed: int,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Rank random halves of a table's subjects; the outcome as JSON can hold it.

    Returns
    -------
    dict
        ``frequency`` (column name to the share of halves that picked it), ``channel_frequency``
        (the same for channels: at least one feature picked), ``chance`` and ``channel_chance``
        (what picking blindly would give), ``n_resamples``, ``n_picked`` (on
        every half), ``threshold`` (the frequency from which ``max_false`` false picks are
        expected at most, under ``assumption``), ``expected_false``, and ``stability``
        (``value``, ``low``, ``high``, ``verdict``; None where it is undefined). Where halves
        cannot be made: ``reason`` alone.
    """
    selector = StabilitySelector(
        method.build(random_state=0, **setting),
        n_resamples=n_resamples,
        channels=table.channel_of,
        random_state=seed,
        n_jobs=n_jobs,
    )
    try:
        selector.fit(table.X, table.y, groups=table.people)
    except _UNFIT as error:
        return {"reason": str(error)}
    n_picked = int(selector.selections_[0].sum())
    names = [table.channels[code] for code in selector.channel_names_]
    stability = selector.stability_
    return {
        "n_resamples": n_resamples,
        "n_picked": n_picked,
        "frequency": dict(zip(table.columns, selector.frequencies_.tolist(), strict=True)),
        "chance": n_picked / len(table.columns),
        "channel_frequency": dict(zip(names, selector.channel_frequencies_.tolist(), strict=True)),
        "channel_chance": _channel_chance(table.channel_of, table.channels, n_picked),
        "threshold": selector.threshold_,
        "max_false": selector.max_false,
        "expected_false": float(selector.expected_false_),
        "assumption": selector.assumption,
        "stability": None
        if math.isnan(stability.value)
        else {
            "value": stability.value,
            "low": stability.low,
            "high": stability.high,
            "verdict": stability.verdict,
        },
    }


def _channel_chance(
    channel_of: NDArray[np.intp], channels: tuple[str, ...], n_picked: int
) -> dict[str, float]:
    """How often a channel has one of so many columns that are picked blindly."""
    sizes = Counter(channel_of.tolist())
    return {
        name: 1.0 - float(hypergeom.pmf(0, channel_of.size, sizes[code], n_picked))
        for code, name in enumerate(channels)
    }
