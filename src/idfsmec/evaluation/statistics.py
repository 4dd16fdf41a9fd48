"""Statistics of a comparison: paired differences over folds, bands of chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from idfsmec.metrics import Floats, corrected_interval


def compare_folds(
    scores: pd.DataFrame, reference: Any, n_train: float, n_test: float
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
        interval = corrected_interval(paired, n_train, n_test)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.float64(interval.mean) / interval.standard_error
        p_value = 1.0 if interval.mean == 0 else float(2 * special.stdtr(interval.n - 1, -abs(t)))
        rows.append([method, interval.mean, interval.low, interval.high, interval.n, p_value])
    columns = ["method", "difference", "low", "high", "n", "p_value"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, slots=True)
class ChanceBand:
    """Chance level of a score, and its band.

    Attributes
    ----------
    chance : float
        Expected score by chance.
    low, high : float
        Band that holds a score by chance with at least the probability asked for.
    n : int
        Independent predictions behind it: samples, or subjects whose samples go together.
    """

    chance: float
    low: float
    high: float
    n: int


def chance_band(
    class_counts: Mapping[Any, int] | Sequence[int],
    *,
    metric: str = "accuracy",
    level: float = 0.95,
) -> ChanceBand:
    """Return chance level and band of n independent random predictions.

    Parameters
    ----------
    class_counts : mapping or sequence of int
        Test samples (or subjects) per class, all test folds together.
    metric : {"accuracy", "balanced_accuracy"}, default="accuracy"
        For accuracy always the larger class is predicted, which is right with its share. For
        balanced accuracy all classes are predicted equally often.
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
    With 53 participants, 55 % is chance.

    >>> band = chance_band({"depressed": 24, "healthy": 29})
    >>> round(band.chance, 3), round(band.low, 3), round(band.high, 3)
    (0.547, 0.415, 0.679)
    """
    numbers = class_counts.values() if isinstance(class_counts, Mapping) else class_counts
    counts = [int(count) for count in numbers]
    if not counts or min(counts) < 1:
        raise ValueError(f"Every class needs at least one test sample, got counts {counts}.")
    return _band([{k: np.ones(n, dtype=int) for k, n in enumerate(counts)}], metric, level)


def chance_bands(
    labels: ArrayLike, subjects: ArrayLike, folds: ArrayLike | None = None
) -> dict[str, ChanceBand]:
    """Return the bands of a table for four scores, under the names of their columns.

    All samples of a subject get one prediction, since a subject's epochs resemble each other: the
    widest and safest band for scores over samples. Where folds are uneven, such as sites,
    ``folds`` says which one holds out each sample: the score is then the mean over folds, and for
    accuracy the larger class of each is predicted.
    """
    y, who = pd.Series(np.asarray(labels)).astype(str), pd.Series(np.asarray(subjects))
    fold = np.zeros(y.size, dtype=int) if folds is None else np.asarray(folds)
    samples, by_subject = [], []
    for name in np.unique(fold):
        cells = pd.crosstab(who[fold == name], y[fold == name])
        # A subject with two labels (before and after treatment) is one prediction within each.
        samples.append({c: np.asarray(cells.loc[cells[c] > 0, c]) for c in cells.columns})
        counts = cells.idxmax(axis=1).value_counts()
        by_subject.append({label: np.ones(n, dtype=int) for label, n in counts.items()})
    return {
        f"{unit}{metric}": _band(clusters, metric, 0.95)
        for unit, clusters in (("", samples), ("subject_", by_subject))
        for metric in _CHANCE_METRICS
    }


_CHANCE_METRICS = ("accuracy", "balanced_accuracy")


def _band(
    folds: Sequence[Mapping[Any, NDArray[np.int_]]], metric: str, level: float
) -> ChanceBand:
    """Band of the mean over folds, which have by class the sizes of what gets one prediction."""
    if metric not in _CHANCE_METRICS:
        raise ValueError(f"metric must be one of {', '.join(_CHANCE_METRICS)}, got {metric!r}.")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
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
    """Distribution of the number of samples predicted right: shape (n_samples + 1,)."""
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
    more, more_shares = more[likely], more_shares[likely]
    if values.size * more.size < 200_000:
        # Equal sums differ in their last digits.
        total = np.round(np.add.outer(values, more).ravel(), 10)
        weight = np.multiply.outer(shares, more_shares).ravel()
        merged: Floats
        merged, member = np.unique(total, return_inverse=True)
        return merged, np.bincount(member.ravel(), weight).astype(np.float64)
    # Many samples or classes: scores on a grid.
    summed = np.zeros(int(np.rint(1e4 * (values.max() + more.max()))) + 1)
    if values.size < more.size:
        values, shares, more, more_shares = more, more_shares, values, shares
    for value, share in zip(more, more_shares, strict=True):
        places = np.rint(1e4 * (values + value)).astype(np.intp)
        summed += np.bincount(places, shares * share, summed.size)
    places = np.flatnonzero(summed)
    return places / 1e4, summed[places]
