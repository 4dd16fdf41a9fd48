"""Methods compared over blocks: mean ranks, paired tests, Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from idfsmec.evaluation.intervals import check_level


@dataclass(frozen=True, slots=True)
class RankComparison:
    """Methods ranked within every block: Friedman's test and Nemenyi's critical difference.

    Attributes
    ----------
    methods : tuple of str
        Best mean rank first.
    mean_ranks : ndarray of shape (n_methods,)
        1 is best.
    critical_difference : float
        Methods whose mean ranks differ by less cannot be told apart.
    statistic, p_value : float
        Friedman's chi-square, corrected for ties.
    f_statistic, f_p_value : float
        Iman and Davenport's less conservative F form of it.
    n_blocks : int
    groups : tuple of tuple of str
        Largest runs of methods that cannot be told apart; runs of one are left out.
    """

    methods: tuple[str, ...]
    mean_ranks: NDArray[np.float64]
    critical_difference: float
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    n_blocks: int
    groups: tuple[tuple[str, ...], ...]


def compare_ranks(scores: pd.DataFrame, *, alpha: float = 0.05) -> RankComparison:
    """Rank methods within each block, and ask which mean ranks differ.

    Parameters
    ----------
    scores : DataFrame of shape (n_blocks, n_methods)
        Higher is better; a block is a table at a missing rate. At least two of each.
    alpha : float, default=0.05
        Level of the critical difference.

    Returns
    -------
    RankComparison

    Notes
    -----
    Ties share their mean rank. The Nemenyi critical difference is
    ``q * sqrt(k (k + 1) / (6 N))`` with q the studentized range quantile over sqrt(2) [1]_.
    Blocks of one table at several rates are not independent, so read p-values as a description.

    References
    ----------
    .. [1] Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"A": [0.9, 0.8, 0.7], "B": [0.6, 0.7, 0.5], "C": [0.5, 0.6, 0.6]})
    >>> found = compare_ranks(scores)
    >>> found.methods
    ('A', 'B', 'C')
    >>> found.mean_ranks
    array([1.  , 2.333, 2.667])
    """
    check_level(alpha, "alpha")
    values = _complete_blocks(scores)
    n_blocks, n_methods = values.shape
    ranks = pd.DataFrame(-values).rank(axis=1).to_numpy()
    mean_ranks = ranks.mean(axis=0)
    chi_square = _friedman(ranks)
    most = n_blocks * (n_methods - 1)
    room = most - chi_square
    # Complete agreement between blocks leaves no room; rounding must not turn it into noise.
    f_statistic = (n_blocks - 1) * chi_square / room if room > 1e-9 * most else np.inf
    f_freedom = (n_methods - 1, (n_methods - 1) * (n_blocks - 1))
    quantile = studentized_range(1 - alpha, n_methods) / np.sqrt(2)
    difference = float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))
    order = np.argsort(mean_ranks, kind="stable")
    names = tuple(str(scores.columns[i]) for i in order)
    return RankComparison(
        methods=names,
        mean_ranks=mean_ranks[order],
        critical_difference=difference,
        statistic=chi_square,
        p_value=float(special.chdtrc(n_methods - 1, chi_square)),
        f_statistic=float(f_statistic),
        f_p_value=float(special.fdtrc(*f_freedom, f_statistic)),
        n_blocks=n_blocks,
        groups=_groups(names, mean_ranks[order], difference),
    )


def studentized_range(level: float, n_groups: int) -> float:
    """Quantile of the range of so many standard normal numbers.

    Below q with probability ``n * integral of phi(z) (Phi(z) - Phi(z - q))^(n - 1)``; the sum over
    even steps is exact to rounding, as the integrand and all its derivatives vanish at the ends.
    (``scipy.stats`` has it too, and takes most of a second to import.)

    Examples
    --------
    >>> round(studentized_range(0.95, 3), 3)
    3.314
    """
    z = np.linspace(-9, 9, 721)
    density = n_groups * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    below, low, high = special.ndtr(z), 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        reached = density @ (below - special.ndtr(z - middle)) ** (n_groups - 1)
        low, high = (middle, high) if reached < level else (low, middle)
    return (low + high) / 2


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that the chance of any false alarm stays at the level (Holm 1979).

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        In the order given; never below the p-value itself, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005])
    array([0.03, 0.06, 0.06, 0.02])
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p_values must be a list of numbers between 0 and 1.")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def compare_pairs(scores: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Test a reference method against each of the others, block by block.

    Two-sided Wilcoxon signed-rank tests; differences of zero are split evenly between the signs
    (Demsar 2006), and p-values carry Holm's correction over all comparisons.

    Parameters
    ----------
    scores : DataFrame of shape (n_blocks, n_methods)
        Higher is better; at least two blocks.
    reference : str
        The column that the others are compared with.

    Returns
    -------
    DataFrame
        One row per other method, in column order: ``method``, ``difference`` (mean of reference
        minus method), ``wins``, ``ties``, ``losses`` (of the reference), ``statistic`` (the
        smaller rank sum), ``p_value``, ``p_holm``.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"A": [.9, .8, .7, .95, .65, .88], "B": [.6, .7, .5, .8, .6, .78]})
    >>> found = compare_pairs(scores, "A").iloc[0]
    >>> int(found["wins"]), round(float(found["p_value"]), 4)
    (6, 0.0312)
    """
    values = pd.DataFrame(_complete_blocks(scores), columns=scores.columns)
    if reference not in values:
        known = ", ".join(map(str, values.columns))
        raise ValueError(f"There is no method {reference!r} in scores; there are: {known}.")
    rows = []
    for method in values.columns.drop(reference):
        difference = (values[reference] - values[method]).to_numpy()
        statistic, p_value = _signed_rank(difference)
        rows.append(
            {
                "method": method,
                "difference": difference.mean(),
                "wins": int((difference > 0).sum()),
                "ties": int((difference == 0).sum()),
                "losses": int((difference < 0).sum()),
                "statistic": statistic,
                "p_value": p_value,
            }
        )
    return pd.DataFrame(rows).assign(p_holm=holm([row["p_value"] for row in rows]))


#: Up to here every sign pattern is counted exactly; beyond, the normal curve is as good.
_EXACT_UP_TO = 60


def _signed_rank(differences: NDArray[np.float64]) -> tuple[float, float]:
    """The smaller rank sum and its two-sided p-value, exact also with ties and zeros.

    Scores of small folds tie all the time, and tables of the exact distribution (as in scipy)
    hold without ties only. Ranks are multiples of one half, so counting the sign patterns that
    give each rank sum is a short recursion over integers.
    """
    moving = differences[differences != 0]
    if moving.size == 0:
        size = differences.size
        return size * (size + 1) / 4, 1.0
    # Rounding the magnitudes lets 0.3 - 0.1 tie with 0.4 - 0.2.
    magnitudes = np.round(np.abs(differences), 12)
    ranks = pd.Series(magnitudes).rank().to_numpy()
    zero_half = ranks[differences == 0].sum() / 2
    doubled = np.rint(2 * ranks[differences != 0]).astype(int)
    positive = int(doubled[moving > 0].sum())
    smaller = min(positive, int(doubled.sum()) - positive)
    if moving.size > _EXACT_UP_TO:
        deviation = np.sqrt((doubled.astype(float) ** 2).sum()) / 2
        p_value = 2 * special.ndtr((smaller - doubled.sum() / 2) / deviation)
    else:
        shares = np.ones(1)
        for rank in doubled:
            grown = np.zeros(shares.size + rank)
            grown[: shares.size] += shares / 2
            grown[rank:] += shares / 2
            shares = grown
        p_value = 2 * shares[: smaller + 1].sum()
    return float(smaller / 2 + zero_half), float(min(p_value, 1.0))


def _friedman(ranks: NDArray[np.float64]) -> float:
    """Friedman's chi-square with the correction for ties (Conover's variance form)."""
    n_methods = ranks.shape[1]
    centre = (n_methods + 1) / 2
    spread = ((ranks - centre) ** 2).sum() / (n_methods - 1)
    if spread == 0:  # all tied everywhere
        return 0.0
    sums = (ranks - centre).sum(axis=0)
    return float((sums**2).sum() / spread)


def _groups(
    names: Sequence[str], ranks: NDArray[np.float64], difference: float
) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    furthest = 0
    for start in range(len(names)):
        end = int(np.searchsorted(ranks, ranks[start] + difference, side="left"))
        if end - start > 1 and end > furthest:
            found.append(tuple(names[start:end]))
        furthest = max(furthest, end)
    return tuple(found)


def _complete_blocks(scores: pd.DataFrame) -> NDArray[np.float64]:
    values = scores.to_numpy(dtype=float)
    if values.shape[0] < 2 or values.shape[1] < 2:
        raise ValueError(
            f"Comparing needs at least two blocks and two methods, got {values.shape[0]} blocks "
            f"and {values.shape[1]} methods."
        )
    if not np.isfinite(values).all():
        gaps = [str(c) for c in scores.columns[~np.isfinite(values).all(axis=0)]]
        raise ValueError(
            f"Every method needs a score in every block; incomplete: {', '.join(gaps)}. "
            "Leave out those methods or the blocks they miss."
        )
    return values
