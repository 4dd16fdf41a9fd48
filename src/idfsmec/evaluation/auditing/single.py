"""Each variable of the recording alone: how well it tells classes apart, and luck how often.

The statistic of a variable is the largest distance of an AUC from one half, over its columns and
over the classes; labels are dealt anew to the people to see what luck gives. Tests of many
variables are corrected by Holm's method, together with the test of all variables at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from idfsmec.evaluation.auditing.areas import area_interval, areas_by_rank
from idfsmec.evaluation.auditing.people import People
from idfsmec.evaluation.auditing.variables import Variables

Floats = NDArray[np.float64]

#: How often labels are dealt anew.
N_PERMUTATIONS = 1999
# Labels x people that are handled at once.
_BLOCK = 2_000_000


def judge_alone(
    variables: Variables, people: People, *, n_permutations: int = N_PERMUTATIONS, seed: int = 0
) -> list[dict[str, Any]]:
    """Test every variable alone.

    Returns
    -------
    list of dict
        ``variable``, ``kind``, ``level`` (of a text), ``higher_in`` (place of the class), ``auc``
        (from one half on) with ``low`` and ``high``, and ``p`` (by permutation, two-sided).
    """
    if not variables.names:
        return []
    ranks = rankdata(variables.values, axis=0)
    classes = np.arange(people.n_classes)[:, None]
    observed = areas_by_rank(ranks, (people.y == classes).astype(float)[None])[0]
    reached = _largest(np.abs(observed - 0.5)[None], variables)[0]
    beyond = np.zeros(reached.size)
    rng, block = np.random.default_rng(seed), max(1, _BLOCK // people.y.size)
    for first in range(0, n_permutations, block):
        count = min(block, n_permutations - first)
        dealt = rng.permuted(np.broadcast_to(people.y, (count, people.y.size)), axis=1)
        member = (dealt[:, None, :] == classes).astype(float)
        by_luck = _largest(np.abs(areas_by_rank(ranks, member) - 0.5), variables)
        beyond += (by_luck >= reached - 1e-12).sum(axis=0)
    p = (1 + beyond) / (n_permutations + 1)
    return [_describe(i, variables, people, observed, float(p[i])) for i in range(p.size)]


def _largest(distance: Floats, variables: Variables) -> Floats:
    """Largest of a variable, from (n, n_classes, n_columns) to (n, n_variables)."""
    by_column = distance.max(axis=1)
    starts = np.searchsorted(variables.variable_of, np.arange(len(variables.names)))
    return np.maximum.reduceat(by_column, starts, axis=1)


def _describe(
    i: int, variables: Variables, people: People, observed: Floats, p: float
) -> dict[str, Any]:
    columns = np.flatnonzero(variables.variable_of == i)
    # With two classes both rows say the same; the one that is above one half is told.
    distance = observed[:, columns] - 0.5
    if people.n_classes > 2:
        distance = np.abs(distance)
    k, best = np.unravel_index(np.argmax(distance), distance.shape)
    area = float(observed[k, columns[best]])
    own = int(people.counts[k])
    area_shown = max(area, 1.0 - area)
    low, high = area_interval(area_shown, own, people.y.size - own)
    return {
        "variable": variables.names[i],
        "kind": variables.kinds[i],
        "level": variables.levels[columns[best]],
        "class": int(k),
        "higher": area >= 0.5,
        "auc": area_shown,
        "low": low,
        "high": high,
        "p": p,
    }


def leading_decisions(
    variables: Variables, people: People, alone: list[dict[str, Any]]
) -> list[list[float]]:
    """The variable that separates two classes best, as decisions; none for more classes."""
    if people.n_classes != 2 or not alone:
        return []
    best = min(alone, key=lambda one: (one["p"], -one["auc"]))
    place = variables.names.index(best["variable"])
    column = next(
        int(one)
        for one in np.flatnonzero(variables.variable_of == place)
        if variables.levels[one] == best["level"]
    )
    found = np.zeros((people.y.size, 2))
    found[:, best["class"]] = variables.values[:, column]
    return found.tolist()
