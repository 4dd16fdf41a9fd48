"""What guessing would reach with so few people: chance level and its band, exactly counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

METRICS = ("accuracy", "balanced_accuracy")


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
    counts = _counts(class_counts)
    clusters = {place: np.ones(count, dtype=int) for place, count in enumerate(counts)}
    return _band([clusters], metric, level)


def chance_bands(
    labels: ArrayLike,
    subjects: ArrayLike | None = None,
    *,
    level: float = 0.95,
    folds: ArrayLike | None = None,
) -> dict[str, ChanceBand]:
    """Bands of a table for the four scores of a benchmark, under the names of their columns.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
    subjects : array-like of shape (n_samples,), optional
        Who each sample comes from; by default every sample is a subject of its own. All samples
        of a subject are guessed alike, since a person's epochs resemble each other: the widest
        and safest band for scores over samples.
    level : float, default=0.95
    folds : array-like of shape (n_samples,), optional
        Which fold holds out each sample, where folds are uneven, such as sites. The score is then
        the mean over folds, so that a person of a small site counts more, and bands are wider;
        for accuracy the guesser knows the larger class of each fold.

    Returns
    -------
    dict of str to ChanceBand
        ``accuracy``, ``balanced_accuracy`` over samples; ``subject_accuracy``,
        ``subject_balanced_accuracy`` over subjects, each with the label most of its samples have.

    Examples
    --------
    >>> bands = chance_bands(["a", "a", "b", "b"] * 10, list(range(20)) * 2)
    >>> sorted(bands)
    ['accuracy', 'balanced_accuracy', 'subject_accuracy', 'subject_balanced_accuracy']
    >>> bands["accuracy"].high == bands["subject_accuracy"].high
    True

    One hospital of 32 people and one of 8, each held out once:

    >>> people, sites = ["a", "b"] * 20, ["Oslo"] * 32 + ["Lund"] * 8
    >>> both, uneven = chance_bands(people), chance_bands(people, folds=sites)
    >>> both["accuracy"].high, uneven["accuracy"].high
    (0.65, 0.6875)
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
    parts = [_clusters(y[fold == one], who[fold == one]) for one in np.unique(fold)]
    samples, people = [one for one, _ in parts], [one for _, one in parts]
    return {
        "accuracy": _band(samples, "accuracy", level),
        "balanced_accuracy": _band(samples, "balanced_accuracy", level),
        "subject_accuracy": _band(people, "accuracy", level),
        "subject_balanced_accuracy": _band(people, "balanced_accuracy", level),
    }


#: Sizes of what is guessed alike, by class.
Clusters = Mapping[Any, NDArray[np.int_]]


def _clusters(y: pd.Series, who: pd.Series) -> tuple[Clusters, Clusters]:
    """Clusters of samples, which are those of a subject, and of subjects, which stand alone."""
    cells = pd.crosstab(who, y)
    # A subject seen under two labels (before and after treatment) is one guess within each.
    samples = {c: np.asarray(cells.loc[cells[c] > 0, c]) for c in cells.columns}
    people = cells.idxmax(axis=1).value_counts()
    return samples, {c: np.ones(n, dtype=int) for c, n in people.items()}


def _band(folds: list[Clusters], metric: str, level: float) -> ChanceBand:
    """Band of the mean over folds, when the samples of a cluster are guessed alike."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    n_classes = len({label for clusters in folds for label in clusters})
    guesses = [_guess(list(clusters.values()), metric, n_classes) for clusters in folds]
    values, shares = guesses[0][1] / len(folds), guesses[0][2]
    for _, more_values, more_shares in guesses[1:]:
        values, shares = _add(values, shares, more_values / len(folds), more_shares)
    low, high = _quantiles(values, shares, level)
    chance = float(np.mean([chance for chance, _, _ in guesses]))
    n = sum(cluster.size for clusters in folds for cluster in clusters.values())
    return ChanceBand(chance, low, high, int(n))


def _guess(
    clusters: list[NDArray[np.int_]], metric: str, n_classes: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Chance, and the distribution of a guesser's score; one array of cluster sizes a class."""
    sizes = np.array([int(cluster.sum()) for cluster in clusters])
    if metric == "accuracy":
        chance = float(sizes.max() / sizes.sum())
        shares = _hits(np.concatenate(clusters), chance)
        return chance, np.arange(shares.size) / sizes.sum(), shares
    chance = 1 / n_classes
    values, shares = np.zeros(1), np.ones(1)
    for cluster, size in zip(clusters, sizes, strict=True):
        own = _hits(cluster, chance)
        recall = np.arange(own.size) / (size * sizes.size)
        values, shares = _add(values, shares, recall, own)
    return chance, values, shares


def _hits(cluster_sizes: NDArray[np.int_], chance: float) -> NDArray[np.float64]:
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
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    more_values: NDArray[np.float64],
    more_shares: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distribution of the sum of two independent discrete scores."""
    likely = more_shares > 1e-14
    total = np.add.outer(values, more_values[likely]).ravel()
    weight = np.multiply.outer(shares, more_shares[likely]).ravel()
    # Equal sums differ in their last digits; with many classes a coarse grid keeps this small.
    digits = 10 if total.size < 200_000 else 4
    merged: NDArray[np.float64]
    merged, place = np.unique(np.round(total, digits), return_inverse=True)
    together = np.zeros(merged.size)
    np.add.at(together, place.ravel(), weight)
    return merged, together


def _quantiles(
    values: NDArray[np.float64], shares: NDArray[np.float64], level: float
) -> tuple[float, float]:
    cumulative = np.cumsum(shares) / shares.sum()
    tail = (1 - level) / 2
    # The slack keeps a tail that is exactly reached from flipping with rounding.
    low = values[np.searchsorted(cumulative, tail + 1e-12)]
    high = values[np.searchsorted(cumulative, 1 - tail - 1e-12)]
    return float(low), float(high)


def _counts(class_counts: Mapping[Any, int] | Sequence[int]) -> list[int]:
    given = class_counts.values() if isinstance(class_counts, Mapping) else class_counts
    counts = [int(count) for count in given]
    if not counts or min(counts) < 1:
        raise ValueError(f"Every class needs at least one test sample, got counts {counts}.")
    return counts
