"""How much the selected features change from fold to fold: Nogueira's stability measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


@dataclass(frozen=True, slots=True)
class Stability:
    """Stability with its confidence interval.

    1 is the same selection every time, 0 what random selections of the same sizes would give;
    NaN where it is undefined (fewer than two selections; nothing or everything selected).
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> str:
        """In words, by the thresholds the authors took over from Fleiss: 0.4 and 0.75."""
        if np.isnan(self.value):
            return "undefined"
        if self.value > 0.75:
            return "excellent"
        return "fair to good" if self.value >= 0.4 else "poor"


def selection_stability(selected: ArrayLike, *, level: float = 0.95) -> Stability:
    """Nogueira's stability of several selections from the same features.

    The measure is corrected for chance, allows selections of different sizes, and reaches 1
    exactly when all selections agree. For selections of one size it is the mean of Kuncheva's
    index over all pairs. The interval is asymptotic in the number of selections.

    Parameters
    ----------
    selected : array-like of bool, shape (n_selections, n_features)
        One row per fold and repetition.
    level : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    Stability

    References
    ----------
    .. [1] Nogueira, Sechidis, Brown, "On the stability of feature selection algorithms",
       JMLR 18(174), 2018: Definition 4, Theorem 7 and Corollary 8.

    Examples
    --------
    >>> found = selection_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    >>> round(found.value, 3), found.verdict
    (0.333, 'poor')
    """
    matrix = np.asarray(selected)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError("selected must have one row per selection and one column per feature.")
    if not np.isin(matrix, (0, 1)).all():
        raise ValueError("selected must hold only True and False.")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    chosen = matrix.astype(float)
    n, d = chosen.shape
    share = chosen.mean(axis=1).mean() if n else 0.0
    if n < 2 or share == 0 or share == 1:
        return Stability(np.nan, np.nan, np.nan, n)
    frequency = chosen.mean(axis=0)
    by_chance = share * (1 - share)
    value = 1 - n / (n - 1) * float((frequency * (1 - frequency)).mean()) / by_chance
    sizes = chosen.sum(axis=1) / d
    influence = (
        chosen @ frequency / d
        - sizes * share
        + value / 2 * (2 * sizes * share - sizes - share + 1)
    ) / by_chance
    error = 2 / n * float(np.sqrt(((influence - influence.mean()) ** 2).sum()))
    half = float(stats.norm.ppf((1 + level) / 2)) * error
    return Stability(float(value), float(value - half), float(min(value + half, 1.0)), n)


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
