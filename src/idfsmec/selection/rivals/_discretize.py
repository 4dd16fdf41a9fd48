"""Continuous features become a few integer codes, so that information can be counted."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Strategy = Literal["quantile", "uniform"]


def discretize(
    X: NDArray[np.float64], n_bins: int | None = 5, strategy: Strategy = "quantile"
) -> NDArray[np.intp] | NDArray[np.uint8]:
    """Cut every column into bins.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Complete data.
    n_bins : int or None, default=5
        Number of bins. None: the columns are discrete already; every value is a bin.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins that hold equally many samples, or bins of equal width. With "quantile", a column
        with no more than ``n_bins`` different values keeps them as they are: its quantiles
        would coincide and hide rare values.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_features)
        Small integers from 0.

    Examples
    --------
    >>> import numpy as np
    >>> discretize(np.arange(6.0)[:, None], n_bins=3).T
    array([[0, 0, 1, 1, 2, 2]], dtype=uint8)
    """
    if n_bins is None:
        return np.apply_along_axis(_value_codes, 0, X)
    inner = np.linspace(0, 1, n_bins + 1)[1:-1]
    lowest, highest = X.min(axis=0), X.max(axis=0)
    if strategy == "quantile":
        edges = np.quantile(X, inner, axis=0)
    else:
        edges = lowest + inner[:, None] * (highest - lowest)
    codes = np.zeros(X.shape, dtype=np.uint8)
    for edge in edges:
        codes += edge <= X
    if strategy == "quantile":
        tied = (np.diff(np.vstack([lowest, edges, highest]), axis=0) == 0).any(axis=0)
        for column in np.flatnonzero(tied):
            values = _value_codes(X[:, column])
            if values.max() < n_bins:
                codes[:, column] = values
    return codes


def _value_codes(column: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.unique(column, return_inverse=True)[1]
