"""Paired differences of a method to others: mean, CI, and p after Holm's correction."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from idfsmec.metrics import holm


def compare_paired(scores: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compare a column with each other one by Student's t over independent rows."""
    others = scores.columns.drop(reference)
    gains = scores[[reference]].to_numpy() - scores[others]
    test = stats.ttest_1samp(gains, 0.0)
    low, high = test.confidence_interval()
    p = np.nan_to_num(np.asarray(test.pvalue, dtype=float), nan=1.0)
    return pd.DataFrame(
        {"difference": gains.mean(), "low": low, "high": high, "p": p, "p_holm": holm(p)},
        index=others,
    )


def describe_paired(scores: pd.DataFrame, reference: str) -> dict[str, str]:
    """Return the differences as text, by name."""
    return {str(reference): ""} | {
        str(
            row.Index
        ): f"{row.difference:+.1f} ± {(row.high - row.low) / 2:.1f}, p {row.p_holm:.3f}"
        for row in compare_paired(scores, reference).itertuples()
    }
