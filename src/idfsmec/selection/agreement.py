"""Statistics of repeated selections: how far they agree, and how many of them may be chance.

Agreement is Nogueira's stability measure. The bound on false selections is that of stability
selection: with ``q`` of ``p`` features selected on every half of the subjects, a threshold ``t``
on the selection frequency keeps on average at most ``C(t) q^2 / p`` features whose chance of
selection is below ``q / p``, that of a random choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

#: What may be assumed of selection frequencies in bounding false selections.
ASSUMPTIONS = ("unimodal", "none")


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
    half = float(special.ndtri((1 + level) / 2)) * error
    return Stability(float(value), float(value - half), float(min(value + half, 1.0)), n)


def false_selections(
    threshold: float, q: float, n_features: int, n_pairs: int, assumption: str = "unimodal"
) -> float:
    """Bound on the expected number of features selected by chance.

    Parameters
    ----------
    threshold : float
        Selection frequency from which a feature is kept, above 0.5 and at most 1.
    q : float
        Mean number of features selected on each half.
    n_features : int
    n_pairs : int
        Pairs of complementary halves.
    assumption : {"unimodal", "none"}
        ``"none"``: Meinshausen & Buehlmann's bound, which complementary halves give without any
        assumption ([2]_, Theorem 1). ``"unimodal"``: the frequencies of such features have a
        unimodal distribution ([2]_, Theorem 2); tighter. Used only where its theorem holds
        (``q / n_features <= 1 / sqrt(3)`` and a threshold above a limit just over 0.5), and the
        other bound otherwise.

    Returns
    -------
    float
        Infinite if the threshold bounds nothing.

    References
    ----------
    .. [1] Meinshausen, Buehlmann, "Stability selection", JRSS B 72(4), 2010.
    .. [2] Shah, Samworth, "Variable selection with error control: another look at stability
       selection", JRSS B 75(1), 2013.

    Examples
    --------
    >>> false_selections(0.9, q=10, n_features=125, n_pairs=50, assumption="none")
    1.0
    >>> false_selections(0.9, q=10, n_features=125, n_pairs=50) < 0.5
    True
    """
    if threshold <= 0.5:
        return np.inf
    by_chance = q**2 / n_features
    general = by_chance / (2 * threshold - 1)
    share = q / n_features
    lowest = min(0.5 + share**2, 0.5 + 0.5 / n_pairs + 0.75 * share**2)
    if assumption == "none" or share > 1 / np.sqrt(3) or threshold <= lowest:
        return float(general)
    if threshold <= 0.75:
        room = 2 * threshold - 1 - 0.5 / n_pairs
        factor = 0.5 / room if room > 0 else np.inf
    else:
        factor = 4 * (1 - threshold + 0.5 / n_pairs) / (1 + 1 / n_pairs)
    return float(min(general, by_chance * factor))


def smallest_threshold(
    max_false: float, q: float, n_features: int, n_pairs: int, assumption: str = "unimodal"
) -> float | None:
    """Smallest attainable frequency whose bound is at most ``max_false``; None if there is none.

    Examples
    --------
    >>> smallest_threshold(1.0, q=10, n_features=125, n_pairs=50, assumption="none")
    0.9
    """
    halves = 2 * n_pairs
    for count in range(n_pairs + 1, halves + 1):
        bound = false_selections(count / halves, q, n_features, n_pairs, assumption)
        if bound <= max_false * (1 + 1e-12):
            return count / halves
    return None
