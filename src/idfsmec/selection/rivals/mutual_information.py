"""Information between features and classes: values cut into bins, counted, and compared."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# Indicator blocks (float32) up to this size stay in memory; larger data is encoded block by
# block each time, so that memory stays bounded for any number of samples.
_CACHE_BYTES = 512 * 2**20
_BLOCK_BYTES = 64 * 2**20

Strategy = Literal["quantile", "uniform"]
_Indicators = NDArray[np.float32]


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


class PairInformation:
    """Information that features, alone or in pairs, carry about one another and the classes.

    A contingency table of features f and s is a product of their 0/1 indicator matrices.
    Stacking the indicators of all f makes the tables of one s (or of several) with every f a
    single matrix product. Counts are whole numbers below 2**24, exact in float32.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_features)
        Discrete features: integers from 0.
    y : ndarray of shape (n_samples,)
        Classes: integers from 0.

    Attributes
    ----------
    relevance : ndarray of shape (n_features,)
        I(f; y) in nats.
    class_entropy : float
        H(y).

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> information = PairInformation(codes, np.array([0, 1, 1, 0]))
    >>> information.relevance + 0.0           # neither feature alone tells the class ...
    array([0., 0.])
    >>> information.joint_with_target([0])[1]  # ... both together do: ln 2
    array([0.693])
    """

    def __init__(self, codes: NDArray[np.integer], y: NDArray[np.integer]) -> None:
        self.n_samples, self.n_features = codes.shape
        self.codes_by_feature = np.ascontiguousarray(codes.T)
        self.y = np.asarray(y)
        self.n_values = max(int(codes.max()) + 1, 2)
        self.n_classes = int(self.y.max()) + 1
        counts = np.arange(self.n_samples + 1)
        self._xlogx = counts * np.log(np.maximum(counts, 1))
        self._cached: list[_Indicators] | None = None
        total = 4 * (self.n_values - 1) * self.n_features * self.n_samples
        if total <= _CACHE_BYTES:
            self._cached = list(self._encode_blocks())
        everyone = np.ones((self.n_samples, 1), dtype=np.float32)
        self.feature_entropy = self._joint_entropy(everyone, [1])[0][:, 0]
        self.class_entropy = self._entropy_of(np.bincount(self.y))
        classes = _indicators(self.y[None], self.n_classes)
        with_class = self._joint_entropy(classes, [self.n_classes])[0][:, 0]
        self.relevance = self.feature_entropy + self.class_entropy - with_class

    def between_features(self, others: NDArray[np.intp] | list[int]) -> NDArray[np.float64]:
        """Give I(f; s) for all f and the s in `others`, shape (n_features, len(others))."""
        indicators = _indicators(self.codes_by_feature[others], self.n_values)
        (joint,) = self._joint_entropy(indicators, [self.n_values])
        return self.feature_entropy[:, None] + self.feature_entropy[others] - joint

    def joint_with_target(self, others: NDArray[np.intp] | list[int]) -> NDArray[np.float64]:
        """Give I(f, s; y) for all f and the s in `others`, shape (n_features, len(others))."""
        combined = self.codes_by_feature[others].astype(np.intp) * self.n_classes + self.y
        indicators = _indicators(combined, self.n_values * self.n_classes)
        features, with_class = self._joint_entropy(indicators, [self.n_values, self.n_classes])
        return features + self.class_entropy - with_class

    def _joint_entropy(
        self, indicators: _Indicators, shape: list[int]
    ) -> list[NDArray[np.float64]]:
        """Entropy of every feature together with each group of indicator columns.

        A group has ``prod(shape)`` columns. For a shape of two, the entropy that forgets the
        second part comes first.
        """
        group = int(np.prod(shape))
        n_groups = indicators.shape[1] // group
        totals = indicators.sum(axis=0)
        forgetting, whole = [], []
        for block in self._blocks():
            tables = self._count(block, indicators, totals)
            whole.append(self._entropy_of(tables.reshape(*tables.shape[:2], n_groups, group)))
            if len(shape) == 2:
                by_class = tables.reshape(*tables.shape[:2], n_groups, *shape)
                # A few long additions take less time than many sums of a few.
                folded = functools.reduce(np.add, np.moveaxis(by_class, -1, 0))
                forgetting.append(self._entropy_of(folded))
        joined = [np.concatenate(whole)]
        return [np.concatenate(forgetting), *joined] if forgetting else joined

    def _count(
        self, block: _Indicators, indicators: _Indicators, totals: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Contingency tables, shape (n_values, features in block, indicator columns)."""
        n_kept, n_block, _ = block.shape
        tables = np.empty((n_kept + 1, n_block, indicators.shape[1]), dtype=np.float32)
        np.matmul(
            block.reshape(n_kept * n_block, -1),
            indicators,
            out=tables[:n_kept].reshape(n_kept * n_block, -1),
        )
        # The last value's row is what the others leave of the margin.
        np.subtract(totals, tables[:n_kept].sum(axis=0), out=tables[n_kept])
        return tables

    def _entropy_of(self, counts: NDArray) -> NDArray[np.float64]:
        """Entropy (nats) over the first and last axis."""
        terms = self._xlogx.take(counts.astype(np.intp))
        total = terms.sum(axis=-1)
        if total.ndim > 1:
            total = total.sum(axis=0)
        return np.log(self.n_samples) - total / self.n_samples

    def _blocks(self) -> Iterator[_Indicators] | list[_Indicators]:
        return self._encode_blocks() if self._cached is None else self._cached

    def _encode_blocks(self) -> Iterator[_Indicators]:
        """Indicators of all values but the last, shape (n_values - 1, block, n_samples)."""
        n_kept = self.n_values - 1
        step = max(1, _BLOCK_BYTES // (4 * n_kept * self.n_samples))
        for start in range(0, self.n_features, step):
            codes = self.codes_by_feature[start : start + step]
            block = np.empty((n_kept, *codes.shape), dtype=np.float32)
            for value in range(n_kept):
                np.equal(codes, value, out=block[value], casting="unsafe")
            yield block


def _indicators(codes: NDArray[np.integer], n_values: int) -> _Indicators:
    """Turn (n_variables, n_samples) codes into (n_samples, n_variables * n_values) 0/1 columns."""
    n_variables, n_samples = codes.shape
    indicators = np.zeros((n_samples, n_variables * n_values), dtype=np.float32)
    columns = codes + n_values * np.arange(n_variables)[:, None]
    indicators[np.arange(n_samples), columns] = 1
    return indicators
