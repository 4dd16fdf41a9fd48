"""People under two names and rows that come twice: what puts one brain on both sides of a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.tables import TableArrays
from idfsmec.solver.scaling import Scaling

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Two names look like one person if a sample of each is hardly farther from the other's nearest
#: sample than from its own person's: by this factor, in the median. On a public table of 59 people
#: the nearest two differ by 1.29, and most people dealt to two names by less than 1.1.
RATIO = 1.15
#: With fewer samples a person's own neighbours cannot be told from others'.
FEWEST_SAMPLES = 8
# Samples that are compared with each other at most: distances grow with their square.
_MOST_SAMPLES = 3000


def repeated_rows(table: TableArrays) -> dict[str, Any]:
    """Count samples that are equal to an earlier one in every feature.

    Returns
    -------
    dict
        ``n_repeated``, ``n_across`` (those equal to a sample of somebody else), and ``pairs`` of
        subjects, by their places, at most ten.
    """
    filled = np.nan_to_num(table.X, nan=np.inf) + 0.0  # -0.0 becomes 0.0
    rows = np.ascontiguousarray(filled).view(np.dtype((np.void, filled.shape[1] * 8))).ravel()
    observed = ~np.isnan(table.X).all(axis=1)
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    earlier = first[group]
    repeated = (earlier != np.arange(len(rows))) & observed
    across = repeated & (table.subjects[earlier] != table.subjects)
    pairs = sorted(
        {
            tuple(sorted((int(table.subjects[earlier[i]]), int(table.subjects[i]))))
            for i in np.flatnonzero(across)
        }
    )
    return {
        "n_repeated": int(repeated.sum()),
        "n_across": int(across.sum()),
        "pairs": [list(pair) for pair in pairs[:10]],
    }


def two_names(table: TableArrays) -> dict[str, Any]:
    """Find subjects whose samples are as near to each other's as to their own.

    Returns
    -------
    dict
        ``told`` (whether people have samples enough), ``own_share`` (of samples whose nearest
        neighbour is the same person's), and ``pairs``: places of two subjects, and how much
        farther the other's nearest sample is than one's own, the surest first.
    """
    kept = _spread_samples(table.subjects)
    names, who, counts = np.unique(table.subjects[kept], return_inverse=True, return_counts=True)
    enough = counts >= FEWEST_SAMPLES
    if enough.sum() < 2:
        return {"told": False}
    X = _whitened(np.nan_to_num(Scaling.learn(table.X[kept]).apply(table.X[kept])))
    distances = _to_people(X, who, names.size)
    own = distances[np.arange(who.size), who]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(distances / own[:, None], nan=1.0)
    farther = np.stack([np.median(ratios[who == k], axis=0) for k in range(names.size)])
    farther = np.maximum(farther, farther.T)
    farther[~np.outer(enough, enough) | np.eye(names.size, dtype=bool)] = np.inf
    found = np.argwhere(np.triu(farther <= RATIO))
    ordered = sorted(found.tolist(), key=lambda pair: farther[pair[0], pair[1]])
    at_home = distances.argmin(axis=1) == who
    return {
        "told": True,
        "own_share": float(at_home[enough[who]].mean()),
        "pairs": [[int(names[a]), int(names[b]), float(farther[a, b])] for a, b in ordered[:10]],
    }


def _spread_samples(subjects: Codes) -> Codes:
    """All samples, or of everybody so few, evenly, that distances can be computed."""
    names = np.unique(subjects)
    most = max(FEWEST_SAMPLES, _MOST_SAMPLES // names.size)
    kept = []
    for name in names:
        own = np.flatnonzero(subjects == name)
        wanted = np.linspace(0, own.size - 1, min(own.size, most)).round().astype(np.intp)
        kept.append(own[wanted])
    return np.sort(np.concatenate(kept))


def _whitened(X: Floats) -> Floats:
    """Clipped, and on their main directions at equal size: many features say the same."""
    X = np.clip(X, -4, 4)
    X = X - X.mean(axis=0)
    left, sizes, _ = np.linalg.svd(X, full_matrices=False)
    used = np.cumsum(sizes**2) <= 0.95 * (sizes**2).sum()
    used[0] = True
    return left[:, used] * np.sqrt(sizes[used])


def _to_people(X: Floats, who: Codes, n_people: int) -> Floats:
    """Distance of each sample to the nearest other one of every person, (n_samples, n_people)."""
    order = np.argsort(who, kind="stable")
    starts = np.searchsorted(who[order], np.arange(n_people))
    squares = (X**2).sum(axis=1)
    found = np.zeros((len(X), n_people))
    for first in range(0, len(X), 500):
        rows = np.arange(first, min(first + 500, len(X)))
        distances = squares[rows, None] + squares - 2 * X[rows] @ X.T
        distances[np.arange(rows.size), rows] = np.inf
        found[rows] = np.minimum.reduceat(distances[:, order], starts, axis=1)
    return np.sqrt(np.maximum(found, 0.0))
