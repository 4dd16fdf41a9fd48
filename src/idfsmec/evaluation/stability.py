"""How much the selected features change from fold to fold: Nogueira's stability measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from idfsmec.selection.stability import Stability, selection_stability

__all__ = ["Stability", "selection_matrix", "selection_stability"]


def selection_matrix(
    rankings: Iterable[Sequence[str]], features: Sequence[str], k: int
) -> NDArray[np.bool_]:
    """Which of the features are among the first k of each ranking.

    Parameters
    ----------
    rankings : iterable of sequence of str
        Feature names, best first; one ranking per fold and repetition.
    features : sequence of str
        All features of the table.
    k : int
        How many leading features count as selected.

    Returns
    -------
    ndarray of bool, shape (n_rankings, n_features)

    Examples
    --------
    >>> selection_matrix([["a", "c", "b"], ["c", "a", "b"]], ["a", "b", "c"], k=1)
    array([[ True, False, False],
           [False, False,  True]])
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    place = {name: column for column, name in enumerate(features)}
    rows = [list(ranking)[:k] for ranking in rankings]
    matrix = np.zeros((len(rows), len(features)), dtype=bool)
    for row, names in enumerate(rows):
        unknown = [name for name in names if name not in place]
        if unknown:
            raise ValueError(f"Ranking {row} names a feature the table lacks: {unknown[0]!r}.")
        matrix[row, [place[name] for name in names]] = True
    return matrix
