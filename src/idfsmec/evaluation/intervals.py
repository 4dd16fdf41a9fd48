"""Means over folds that share training samples: intervals, and tests of differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean with its confidence interval; ``low`` and ``high`` are NaN for a single value."""

    mean: float
    low: float
    high: float
    standard_error: float
    n: int


def corrected_interval(
    values: ArrayLike, n_train: float, n_test: float, *, level: float = 0.95
) -> MeanInterval:
    """Mean over folds and repetitions, with an interval that knows the folds overlap.

    Training sets of different folds share samples, so the plain variance of the mean is far too
    small. Nadeau and Bengio replace ``1 / J`` by ``1 / J + n_test / n_train`` [1]_; for repeated
    k-fold cross-validation that is ``1 / (k r) + 1 / (k - 1)`` [2]_. To compare two methods,
    give the differences of their values fold by fold.

    Parameters
    ----------
    values : array-like of shape (J,)
        One score per fold and repetition.
    n_train, n_test : float
        Samples (or subjects) a fold trains and tests on, on average.
    level : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    MeanInterval

    References
    ----------
    .. [1] Nadeau, Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
    .. [2] Bouckaert, Frank, "Evaluating the replicability of significance tests for comparing
       learning algorithms", PAKDD 2004.

    Examples
    --------
    >>> found = corrected_interval([0.80, 0.75, 0.85, 0.70, 0.90], n_train=80, n_test=20)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.8, 0.653, 0.947)
    """
    scores = _finite_vector(values, "values")
    check_level(level)
    if not n_train > 0 or not n_test > 0:
        raise ValueError(
            f"n_train and n_test must be positive, got n_train={n_train}, n_test={n_test}."
        )
    mean = float(scores.mean())
    if scores.size == 1:
        return MeanInterval(mean, np.nan, np.nan, np.nan, 1)
    error = float(np.sqrt((1 / scores.size + n_test / n_train) * scores.var(ddof=1)))
    half = float(special.stdtrit(scores.size - 1, (1 + level) / 2)) * error
    return MeanInterval(mean, mean - half, mean + half, error, scores.size)


def compare_folds(
    scores: pd.DataFrame, reference: str, n_train: float, n_test: float, *, level: float = 0.95
) -> pd.DataFrame:
    """Compare a reference with each of the others on the same folds, knowing that folds overlap.

    The corrected resampled t-test of Nadeau and Bengio, see :func:`corrected_interval`.

    Parameters
    ----------
    scores : DataFrame of shape (n_folds, n_methods)
        One row per fold and repetition; a fold that lacks one of two methods is left out.
    reference : str
        The column that the others are compared with.
    n_train, n_test : float
        Samples (or subjects) a fold trains and tests on, on average.
    level : float, default=0.95

    Returns
    -------
    DataFrame
        One row per other column that shares a fold: ``method``, ``difference`` (reference minus
        method), ``low``, ``high``, ``n``, ``p_value``; interval and p are NaN for a single fold.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"A": [0.9, 0.8, 0.7, 0.8], "B": [0.6, 0.6, 0.4, 0.4]})
    >>> compare_folds(scores, "A", n_train=75, n_test=25).round(2)
      method  difference  low  high  n  p_value
    0      B         0.3  0.1   0.5  4     0.02
    """
    rows = []
    for method in scores.columns.drop(reference):
        paired = (scores[reference] - scores[method]).dropna()
        if paired.empty:
            continue
        found = corrected_interval(paired, n_train, n_test, level=level)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.float64(found.mean) / found.standard_error
        p_value = 1.0 if found.mean == 0 else float(2 * special.stdtr(found.n - 1, -abs(t)))
        rows.append([method, found.mean, found.low, found.high, found.n, p_value])
    columns = ["method", "difference", "low", "high", "n", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def wilson_interval(hits: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share of n by Wilson's score; hits may be a mean over repetitions.

    Examples
    --------
    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 2), round(high, 2)
    (0.6, 0.98)
    """
    check_level(level)
    z = float(special.ndtri((1 + level) / 2))
    share, extra = hits / n, z**2 / n
    centre = (share + extra / 2) / (1 + extra)
    half = z * np.sqrt(share * (1 - share) / n + extra / (4 * n)) / (1 + extra)
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def _finite_vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    vector = np.asarray(values, dtype=float)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be a list of at least one finite number.")
    return vector


def check_level(level: float, name: str = "level") -> None:
    """Refuse what is no level of confidence or of a test."""
    if not 0 < level < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {level}.")
