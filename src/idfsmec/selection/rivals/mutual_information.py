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
# Of entropies that are kept for others who ask.
_KNOWN_BYTES = 8 * 2**20

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
        # Sorting whole rows and then looking takes less time than numpy's search in columns.
        edges = np.quantile(np.sort(X.T, axis=1), inner, axis=1)
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
    single matrix product, or one for the samples of each class. The last value needs no
    indicators, since its counts are what those of the others leave of the margins. Counts are
    whole numbers below 2**24, exact in float32.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_features)
        Discrete features: integers from 0.
    y : ndarray of shape (n_samples,)
        Classes: integers from 0.
    keep : bool, default=False
        Whether what was counted is kept for whoever asks next, as much as fits into 8 MiB. Then
        all is counted by class, which answers both kinds of questions.

    Attributes
    ----------
    relevance : ndarray of shape (n_features,)
        I(f; y) in nats.
    class_entropy : float
        H(y).
    varied : ndarray of shape (n_features,)
        Whether a feature has more than one value.

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

    def __init__(
        self, codes: NDArray[np.integer], y: NDArray[np.integer], *, keep: bool = False
    ) -> None:
        self.n_samples, self.n_features = codes.shape
        self.n_values = max(int(codes.max()) + 1, 2)
        self.n_classes = int(np.max(y)) + 1
        by_class = np.argsort(y, kind="stable")  # so that each class is a range
        sizes = np.bincount(y, minlength=self.n_classes)
        ends = np.cumsum(sizes)
        self._classes = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self._codes = np.ascontiguousarray(codes[by_class].T)
        self._kept: list[tuple[int, _Indicators]] | None = None
        self._known: dict[int, NDArray[np.float64]] | None = {} if keep else None
        counts = np.arange(self.n_samples + 1)
        self._xlogx = counts * np.log(np.maximum(counts, 1))
        # How often each feature has each value in each class.
        self._counts = np.array(
            [
                [(self._codes[:, part] == value).sum(axis=1) for value in range(self.n_values)]
                for part in self._classes
            ],
            dtype=np.float32,
        )
        self.class_entropy = float(self._entropy_of(sizes[:, None])[0])
        counts_of_all = self._counts.sum(axis=0)
        self.varied = np.count_nonzero(counts_of_all, axis=0) > 1
        self.feature_entropy = self._entropy_of(counts_of_all)
        with_class = self._entropy_of(self._counts)
        self.relevance = self.feature_entropy + self.class_entropy - with_class

    def between_features(self, others: NDArray[np.intp] | list[int]) -> NDArray[np.float64]:
        """Give I(f; s) for all f and the s in `others`, shape (n_features, len(others))."""
        if self._known is not None:
            joint = self._entropies(np.asarray(others))[0]
        else:
            whole, counts = [slice(0, self.n_samples)], self._counts.sum(axis=0, keepdims=True)
            tables = self._tables(np.asarray(others), whole, counts)
            joint = np.concatenate([self._entropy_of(own) for own in tables])
        return self.feature_entropy[:, None] + self.feature_entropy[others] - joint

    def joint_with_target(self, others: NDArray[np.intp] | list[int]) -> NDArray[np.float64]:
        """Give I(f, s; y) for all f and the s in `others`, shape (n_features, len(others))."""
        pairs, with_class = self._entropies(np.asarray(others))
        return pairs - with_class + self.class_entropy

    def rest(self) -> None:
        """Keep what was counted, but no indicators, which are large and soon made."""
        self._kept = None

    def _entropies(self, others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Give H(f, s) and H(f, s, y) for all f and the s in `others`; count what is not known."""
        if self._known is None:
            return self._count(others)
        if 16 * self.n_features * (len(self._known) + others.size) > _KNOWN_BYTES:
            self._known.clear()
        if new := [one for one in others.tolist() if one not in self._known]:
            found = np.ascontiguousarray(np.moveaxis(self._count(np.array(new)), -1, 0))
            self._known.update(zip(new, found, strict=True))
        return np.stack([self._known[one] for one in others.tolist()], axis=-1)

    def _count(self, others: NDArray[np.intp]) -> NDArray[np.float64]:
        found = [
            (self._entropy_of(own.sum(axis=0)), self._entropy_of(own))
            for own in self._tables(others, self._classes, self._counts)
        ]
        return np.stack([np.concatenate(part) for part in zip(*found, strict=True)])

    def _tables(
        self, others: NDArray[np.intp], parts: list[slice], counts: NDArray[np.float32]
    ) -> Iterator[NDArray[np.float32]]:
        """Count pairs of values, in each part of the samples.

        Yields arrays of shape (parts, values of f, features f, values of s, others s), for some
        features at a time.
        """
        n_kept = self.n_values - 1
        theirs = _indicators(self._codes[others], n_kept)
        margins = np.ascontiguousarray(counts[:, None, :, others])
        for start, block in self._blocks():
            n_block = block.shape[1]
            shape = (len(parts), self.n_values, n_block, self.n_values, others.size)
            tables = np.empty(shape, dtype=np.float32)
            ours = block.reshape(n_kept * n_block, -1)
            for part, table in zip(parts, tables, strict=True):
                found = ours[:, part] @ theirs[part]
                table[:n_kept, :, :n_kept] = found.reshape(n_kept, n_block, n_kept, -1)
            here = counts[:, :n_kept, start : start + n_block, None]
            _fill_last(tables[:, :n_kept], 3, here)
            _fill_last(tables, 1, margins)
            yield tables

    def _entropy_of(self, counts: NDArray) -> NDArray[np.float64]:
        """Entropy (nats) over the parts of samples and the values of features."""
        terms = self._xlogx.take(counts.astype(np.intp), mode="clip")
        if terms.ndim > 3:
            terms = functools.reduce(np.add, np.moveaxis(terms, -2, 0))
            terms = terms.reshape(-1, *terms.shape[-2:])
        else:
            terms = terms.reshape(-1, terms.shape[-1])
        return np.asarray(np.log(self.n_samples) - terms.sum(axis=0) / self.n_samples)

    def _blocks(self) -> Iterator[tuple[int, _Indicators]]:
        """First feature and indicators of each block; they are kept if they are small."""
        total = 4 * (self.n_values - 1) * self.n_features * self.n_samples
        if total > _CACHE_BYTES:
            return self._encode_blocks()
        if self._kept is None:
            self._kept = list(self._encode_blocks())
        return iter(self._kept)

    def _encode_blocks(self) -> Iterator[tuple[int, _Indicators]]:
        """Indicators of all values but the last, shape (n_values - 1, block, n_samples)."""
        n_kept = self.n_values - 1
        step = max(1, _BLOCK_BYTES // (4 * n_kept * self.n_samples))
        for start in range(0, self.n_features, step):
            codes = self._codes[start : start + step]
            block = np.empty((n_kept, *codes.shape), dtype=np.float32)
            for value in range(n_kept):
                np.equal(codes, value, out=block[value], casting="unsafe")
            yield start, block


def _indicators(codes: NDArray[np.integer], n_values: int) -> _Indicators:
    """Turn (n_variables, n_samples) codes into 0/1, shape (n_samples, n_values * n_variables)."""
    values = np.arange(n_values, dtype=codes.dtype)
    found = codes.T[:, None, :] == values[:, None]
    return found.astype(np.float32).reshape(codes.shape[1], -1)


def _fill_last(tables: NDArray[np.float32], axis: int, margin: NDArray[np.float32]) -> None:
    """Set the counts of the last value along an axis to what the others leave of the margin."""
    values = np.moveaxis(tables, axis, 0)
    values[-1] = margin
    for value in values[:-1]:
        values[-1] -= value
