"""Statistics of a comparison: ranks, paired tests, bands of chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from idfsmec.metrics import check_level, corrected_interval, holm

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankComparison:
    """Methods ranked within every block: Friedman's test and Nemenyi's critical difference."""

    methods: tuple[str, ...]  # best mean rank first
    mean_ranks: Floats  # 1 is best
    critical_difference: float  # methods whose mean ranks differ by less cannot be told apart
    statistic: float  # Friedman's chi-square, corrected for ties
    p_value: float
    f_statistic: float  # Iman and Davenport's less conservative form
    f_p_value: float
    n_blocks: int
    groups: tuple[tuple[str, ...], ...]  # largest runs that cannot be told apart


def compare_ranks(scores: pd.DataFrame, *, alpha: float = 0.05) -> RankComparison:
    """Rank methods (columns) within each block (row), and test which mean ranks differ.

    Higher scores are better, and ties share their mean rank. The critical difference is
    ``q * sqrt(k (k + 1) / (6 N))`` with q the studentized range quantile over sqrt(2) (Demsar,
    "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006). Blocks of one
    table at several rates are not independent, so read p-values as a description.
    """
    check_level(alpha, "alpha")
    values = _complete_blocks(scores)
    n_blocks, n_methods = values.shape
    ranks = pd.DataFrame(-values).rank(axis=1).to_numpy()
    mean_ranks = ranks.mean(axis=0)
    # Friedman's chi-square with the correction for ties (Conover's variance form); scipy's needs
    # three methods and divides by zero where all are tied everywhere.
    centred = ranks - (n_methods + 1) / 2
    spread = (centred**2).sum() / (n_methods - 1)
    chi_square = float((centred.sum(axis=0) ** 2).sum() / spread) if spread else 0.0
    most = n_blocks * (n_methods - 1)
    room = most - chi_square
    # Complete agreement between blocks leaves no room; rounding must not turn it into noise.
    f_statistic = (n_blocks - 1) * chi_square / room if room > 1e-9 * most else np.inf
    from scipy.stats import studentized_range  # takes most of a second to import

    quantile = studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    difference = float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))
    order = np.argsort(mean_ranks, kind="stable")
    names, mean_ranks = tuple(str(scores.columns[i]) for i in order), mean_ranks[order]
    return RankComparison(
        methods=names,
        mean_ranks=mean_ranks,
        critical_difference=difference,
        statistic=chi_square,
        p_value=float(special.chdtrc(n_methods - 1, chi_square)),
        f_statistic=float(f_statistic),
        f_p_value=float(special.fdtrc(n_methods - 1, most - n_methods + 1, f_statistic)),
        n_blocks=n_blocks,
        groups=_groups(names, mean_ranks, difference),
    )


def compare_pairs(scores: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Test a reference method (column) against each of the others, block (row) by block.

    Two-sided Wilcoxon signed-rank tests; differences of zero are split evenly between the signs
    (Demsar 2006), and p-values carry Holm's correction over all comparisons.
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


def _signed_rank(differences: Floats) -> tuple[float, float]:
    """Return the smaller rank sum and its two-sided p-value, exact also with ties and zeros.

    Scores of small folds tie all the time, and tables of the exact distribution (as in scipy)
    hold without ties only. Ranks are multiples of one half, so counting the sign patterns that
    give each rank sum is a short recursion over integers.
    """
    # Rounding the magnitudes lets 0.3 - 0.1 tie with 0.4 - 0.2.
    ranks = pd.Series(np.round(np.abs(differences), 12)).rank().to_numpy()
    zero_half = ranks[differences == 0].sum() / 2
    doubled = np.rint(2 * ranks).astype(int)
    smaller = int(min(doubled[differences > 0].sum(), doubled[differences < 0].sum()))
    shares = np.ones(1)
    for rank in doubled[differences != 0]:
        shares = (np.append(shares, np.zeros(rank)) + np.append(np.zeros(rank), shares)) / 2
    p_value = 2 * shares[: smaller + 1].sum()
    return float(smaller / 2 + zero_half), float(min(p_value, 1.0))


def _groups(names: Sequence[str], ranks: Floats, difference: float) -> tuple[tuple[str, ...], ...]:
    groups: list[tuple[str, ...]] = []
    furthest = 0
    for start in range(len(names)):
        end = int(np.searchsorted(ranks, ranks[start] + difference, side="left"))
        if end - start > 1 and end > furthest:
            groups.append(tuple(names[start:end]))
        furthest = max(furthest, end)
    return tuple(groups)


def _complete_blocks(scores: pd.DataFrame) -> Floats:
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


def compare_folds(
    scores: pd.DataFrame, reference: Any, n_train: float, n_test: float, *, level: float = 0.95
) -> pd.DataFrame:
    """Compare a reference with each of the others on the same folds, knowing that folds overlap.

    The corrected resampled t-test of Nadeau and Bengio, see ``metrics.corrected_interval``, on
    rows of folds and columns of methods; a fold that lacks one of two methods is left out, and
    interval and p are NaN for a single fold.
    """
    rows = []
    for method in scores.columns.drop(reference):
        paired = (scores[reference] - scores[method]).dropna()
        if paired.empty:
            continue
        interval = corrected_interval(paired, n_train, n_test, level=level)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.float64(interval.mean) / interval.standard_error
        p_value = 1.0 if interval.mean == 0 else float(2 * special.stdtr(interval.n - 1, -abs(t)))
        rows.append([method, interval.mean, interval.low, interval.high, interval.n, p_value])
    columns = ["method", "difference", "low", "high", "n", "p_value"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, slots=True)
class ChanceBand:
    """Where a score lies that comes from guessing.

    Attributes
    ----------
    chance : float
        Expected score of guessing.
    low, high : float
        Band that holds the score of a guess with at least the probability asked for.
    n : int
        Independent guesses behind it: samples, or subjects whose samples go together.
    """

    chance: float
    low: float
    high: float
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)


def chance_band(
    class_counts: Mapping[Any, int] | Sequence[int],
    *,
    metric: str = "accuracy",
    level: float = 0.95,
) -> ChanceBand:
    """Chance level and band for n independent guesses.

    Parameters
    ----------
    class_counts : mapping or sequence of int
        Test samples (or subjects) per class, all test folds together.
    metric : {"accuracy", "balanced_accuracy"}, default="accuracy"
        For accuracy the guesser knows the larger class: every guess is right with its share. For
        balanced accuracy it guesses all classes equally often.
    level : float, default=0.95
        Probability that the band holds at least.

    Returns
    -------
    ChanceBand

    Notes
    -----
    Quantiles of the exact (discrete) distribution, as proposed in [1]_ for balanced classes:
    binomial for accuracy, the mean of one binomial per class for balanced accuracy.

    References
    ----------
    .. [1] Combrisson, Jerbi, "Exceeding chance level by chance: the caveat of theoretical chance
       levels in brain signal classification and statistical assessment of decoding accuracy",
       J. Neurosci. Methods 250, 126-136, 2015.

    Examples
    --------
    53 people: 55 % is nothing.

    >>> band = chance_band({"depressed": 24, "healthy": 29})
    >>> round(band.chance, 3), round(band.low, 3), round(band.high, 3)
    (0.547, 0.415, 0.679)
    """
    given = class_counts.values() if isinstance(class_counts, Mapping) else class_counts
    counts = [int(count) for count in given]
    if not counts or min(counts) < 1:
        raise ValueError(f"Every class needs at least one test sample, got counts {counts}.")
    return _band([dict(enumerate(map(_singles, counts)))], metric, level)


def chance_bands(
    labels: ArrayLike,
    subjects: ArrayLike | None = None,
    *,
    level: float = 0.95,
    folds: ArrayLike | None = None,
) -> dict[str, ChanceBand]:
    """Return the bands of a table for four scores, under the names of their columns.

    All samples of a subject are guessed alike, since a person's epochs resemble each other: the
    widest and safest band for scores over samples. A subject has the label most of its samples
    have. Where folds are uneven, such as sites, ``folds`` says which one holds out each sample:
    the score is then the mean over folds, and for accuracy the guesser knows the larger class of
    each.
    """
    y = pd.Series(np.asarray(labels)).astype(str)
    who = pd.Series(np.arange(y.size) if subjects is None else np.asarray(subjects))
    if y.size == 0 or who.size != y.size:
        raise ValueError(
            f"labels and subjects must be of one length, got {y.size} and {who.size}."
        )
    fold = np.zeros(y.size, dtype=int) if folds is None else np.asarray(folds)
    if fold.shape != (y.size,):
        raise ValueError(f"folds must be of the length of labels, got {fold.shape}, {y.size}.")
    samples, people = [], []
    for name in np.unique(fold):
        cells = pd.crosstab(who[fold == name], y[fold == name])
        # A subject seen under two labels (before and after treatment) is one guess within each.
        samples.append({c: np.asarray(cells.loc[cells[c] > 0, c]) for c in cells.columns})
        people.append(cells.idxmax(axis=1).value_counts().map(_singles).to_dict())
    return {
        f"{unit}{metric}": _band(clusters, metric, level)
        for unit, clusters in (("", samples), ("subject_", people))
        for metric in _CHANCE_METRICS
    }


_CHANCE_METRICS = ("accuracy", "balanced_accuracy")


def _singles(n: int) -> NDArray[np.int_]:
    return np.ones(n, dtype=int)


def _band(
    folds: Sequence[Mapping[Any, NDArray[np.int_]]], metric: str, level: float
) -> ChanceBand:
    """Band of the mean over folds, which have by class the sizes of what is guessed alike."""
    if metric not in _CHANCE_METRICS:
        raise ValueError(f"metric must be one of {', '.join(_CHANCE_METRICS)}, got {metric!r}.")
    check_level(level)
    n_classes = len({label for fold in folds for label in fold})
    values, shares, chances = np.zeros(1), np.ones(1), []
    for fold in folds:
        parts, chance = list(fold.values()), 1 / n_classes
        if metric == "accuracy":
            chance = max(part.sum() for part in parts) / sum(part.sum() for part in parts)
            parts = [np.concatenate(parts)]
        for part in parts:
            hits = _hits(part, chance)
            gained = np.arange(hits.size) / (part.sum() * len(parts) * len(folds))
            values, shares = _add(values, shares, gained, hits)
        chances.append(chance)
    cumulative, tail = np.cumsum(shares) / shares.sum(), (1 - level) / 2
    # The slack keeps a tail that is exactly reached from flipping with rounding.
    low = values[np.searchsorted(cumulative, tail + 1e-12)]
    high = values[np.searchsorted(cumulative, 1 - tail - 1e-12)]
    n = sum(part.size for fold in folds for part in fold.values())
    return ChanceBand(float(np.mean(chances)), float(low), float(high), n)


def _hits(cluster_sizes: NDArray[np.int_], chance: float) -> Floats:
    """Distribution of the number of samples guessed right: shape (n_samples + 1,)."""
    from scipy.stats import binom  # takes most of a second to import, which a report needs not

    unique, repeats = np.unique(cluster_sizes, return_counts=True)
    shares = np.ones(1)
    for size, count in zip(unique, repeats, strict=True):
        spread = np.zeros(size * count + 1)
        spread[::size] = binom.pmf(np.arange(count + 1), count, chance)
        shares = np.convolve(shares, spread)
    return shares


def _add(
    values: Floats, shares: Floats, more: Floats, more_shares: Floats
) -> tuple[Floats, Floats]:
    """Distribution of the sum of two independent discrete scores."""
    if values.size == 1:
        return values + more, more_shares
    likely = more_shares > 1e-14
    total = np.add.outer(values, more[likely]).ravel()
    weight = np.multiply.outer(shares, more_shares[likely]).ravel()
    # Equal sums differ in their last digits; with many classes a coarse grid keeps this small.
    digits = 10 if total.size < 200_000 else 4
    merged: Floats
    merged, member = np.unique(np.round(total, digits), return_inverse=True)
    return merged, np.bincount(member.ravel(), weight).astype(np.float64)


def selection_matrix(
    rankings: Iterable[Sequence[str]], features: Sequence[str], k: int
) -> NDArray[np.bool_]:
    """Return which features are among the first k of each ranking, (n_rankings, n_features)."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    position = {name: column for column, name in enumerate(features)}
    rows = [list(ranking)[:k] for ranking in rankings]
    matrix = np.zeros((len(rows), len(features)), dtype=bool)
    for row, names in enumerate(rows):
        if unknown := [name for name in names if name not in position]:
            raise ValueError(f"Ranking {row} names a feature the table lacks: {unknown[0]!r}.")
        matrix[row, [position[name] for name in names]] = True
    return matrix
