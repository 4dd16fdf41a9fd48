"""Intervals of scores by repeat and fold, paired differences of methods, power."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from idfsmec.metrics import MeanInterval, fold_interval


def interval_by_fold(scores: pd.Series, n_train: float | None = None) -> MeanInterval:
    """Return :func:`~idfsmec.metrics.fold_interval` of scores indexed by repeat and fold.

    ``n_train`` is the number of training subjects, for scores from 0 to 1; an index of one level
    has the folds of a single repeat.
    """
    folds = scores.unstack() if scores.index.nlevels > 1 else scores.to_frame().T
    n_splits = int(folds.notna().any().sum())
    whole = n_train is not None and n_train * n_splits / max(n_splits - 1, 1)
    return fold_interval(folds.to_numpy(dtype=float), whole or None)


def compare_folds(scores: pd.DataFrame, reference: Any) -> pd.DataFrame:
    """Compare a reference with each of the others on the same folds, knowing that folds overlap.

    The corrected resampled t-test of Nadeau and Bengio with k - 1 degrees of freedom for k folds,
    see :func:`~idfsmec.metrics.fold_interval`. ``scores`` has a column for each method and the
    index of :func:`interval_by_fold`; a fold that lacks one of two methods is left out, and
    interval and p are NaN for a single fold.
    """
    rows = []
    for method in scores.columns.drop(reference):
        paired = scores[reference] - scores[method]
        if paired.isna().all():
            continue
        ci = interval_by_fold(paired)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.float64(ci.mean) / ci.standard_error
        p_value = 1.0 if ci.mean == 0 else float(2 * special.stdtr(ci.degrees_of_freedom, -abs(t)))
        estimate = [ci.mean, ci.low, ci.high, ci.standard_error, ci.n, ci.degrees_of_freedom]
        rows.append([method, *estimate, p_value])
    columns = ["method", "difference", "low", "high", "standard_error", "n", "df", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def power(difference: float, standard_error: float, df: float, n_tests: int = 1) -> float:
    """Return how often :func:`compare_folds` finds a true difference at 5 %, two-sided.

    By the noncentral t distribution, where studies have this standard error; of ``n_tests``, at
    the level of the first step of Holm's correction. Simulated studies find it less often
    (docs/guarantees.md): scores of folds have a smaller variance than the standard error assumes.
    """
    if not standard_error:
        return float(difference != 0)
    shift, limit = difference / standard_error, special.stdtrit(df, 1 - 0.025 / n_tests)
    # Far from 0 both tails are 0, where SciPy gives NaN.
    below, beyond = np.nan_to_num(special.nctdtr(df, shift, [limit, -limit]))
    return float(1 - below + beyond)
