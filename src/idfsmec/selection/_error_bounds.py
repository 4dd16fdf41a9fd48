"""How many features that carry nothing a frequency threshold lets through, at most.

With ``q`` of ``p`` features selected on every half of the subjects, a threshold ``t`` on the
selection frequency keeps on average at most ``C(t) q^2 / p`` features whose chance of selection is
below ``q / p``: that of a random choice.
"""

from __future__ import annotations

import numpy as np

ASSUMPTIONS = ("unimodal", "none")


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
