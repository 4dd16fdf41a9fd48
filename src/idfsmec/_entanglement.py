"""How far site and label go together, in a number and in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: From this share of the classes' difference on, sites and labels are called entangled.
ENTANGLED = 0.25


def entanglement(sites: ArrayLike, y: ArrayLike) -> float:
    """Say how much of the difference between classes lies between sites, from 0 to 1.

    It is the share of the labels' variance that sites explain (for two classes R squared, for
    more Goodman and Kruskal's tau). Taking out the sites' means takes out as much of what the
    classes differ by.

    Examples
    --------
    >>> entanglement(["Oslo"] * 4 + ["Lund"] * 4, [0, 0, 0, 1, 0, 1, 1, 1])
    0.25
    """
    where = np.unique(np.asarray(sites), return_inverse=True)[1]
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    counts = np.zeros((where.max() + 1, codes.max() + 1))
    np.add.at(counts, (where, codes), 1)
    return entanglement_of_counts(counts)


def entanglement_of_counts(counts: ArrayLike) -> float:
    """The same from the numbers of each site (rows) and class (columns).

    Examples
    --------
    >>> entanglement_of_counts([[3, 1], [1, 3]])
    0.25
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 0]
    sizes = table.sum(axis=1)
    spread = 1 - np.sum((table.sum(axis=0) / table.sum()) ** 2)
    within = sizes / table.sum() @ (1 - np.sum((table / sizes[:, None]) ** 2, axis=1))
    return float(1 - within / spread) if spread > 0 else 0.0


def say_entanglement(share: float) -> str:
    """Words of warning, or none where sites have their share of each class."""
    if share < ENTANGLED:
        return ""
    return (
        f"site and label are entangled: {100 * share:.0f} % of the difference between classes "
        "lies between sites, and harmonizing takes it out with what sites do. See what idfsmec "
        "audit (idfsmec.evaluation.audit) says of the table, and compare with no harmonizing."
    )
