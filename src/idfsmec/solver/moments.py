"""Everything the method needs to know of the samples, as sums that can be added and subtracted.

The objective of a channel sees the samples only through their weighted count, the mean and the
second moments of its features and of the target: one-hot labels, or a single number (c = 1).
These are sums over samples: the moments of a training fold are those of all samples minus those
of the held-out fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver.scaling import is_constant, safe_scale

Array = NDArray[np.float64]

# Samples x features handled at a time: small enough for the processor's cache.
_BLOCK_ELEMENTS = 400_000


@dataclass(frozen=True)
class Moments:
    """Sums over the observed samples of ``b`` channels that have ``d`` features each.

    Attributes
    ----------
    total : float
        Sum of the weights of all samples, observed or not.
    count : ndarray of shape (b,)
        Sum of the weights of the samples that have the channel.
    class_count : ndarray of shape (b, c)
        The same per class; for a numeric target, the sum of the target.
    sum_yy : ndarray of shape (b,)
        Sum of the squared target; the count for one-hot labels.
    sum_x : ndarray of shape (b, d)
        Sum of the features, after ``shift`` and ``scale``.
    sum_xy : ndarray of shape (b, c, d)
        The same per class.
    sum_xx : ndarray of shape (b, d, d)
        Sum of products of features.
    shift, scale : ndarray of shape (b, d)
        What was subtracted from each feature, then divided by, before summing: near its mean, so
        that centring later loses no digits; scale is 1 unless squares would overflow.
    """

    total: float
    count: Array
    class_count: Array
    sum_yy: Array
    sum_x: Array
    sum_xy: Array
    sum_xx: Array
    shift: Array
    scale: Array

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, 1.0)

    def __sub__(self, other: Moments) -> Moments:
        return self._combine(other, -1.0)

    def _combine(self, other: Moments, sign: float) -> Moments:
        if not (
            np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)
        ):
            raise ValueError("Only moments with the same shift and scale can be combined.")
        return replace(
            self,
            total=self.total + sign * other.total,
            count=self.count + sign * other.count,
            class_count=self.class_count + sign * other.class_count,
            sum_yy=self.sum_yy + sign * other.sum_yy,
            sum_x=self.sum_x + sign * other.sum_x,
            sum_xy=self.sum_xy + sign * other.sum_xy,
            sum_xx=self.sum_xx + sign * other.sum_xx,
        )

    def filled(self, class_total: Array) -> Moments:
        """Treat every sample as observed, the missing ones filled with the channel's mean.

        Parameters
        ----------
        class_total : ndarray of shape (c,)
            Weight of all samples per class.
        """
        if self.class_count.shape[1] == 1:
            raise ValueError("Only moments with class labels can be filled.")
        mean = self.sum_x / self._divisor
        gap = np.asarray(class_total)[None, :] - self.class_count
        filled_in = gap.sum(axis=1)
        return replace(
            self,
            count=self.count + filled_in,
            class_count=self.class_count + gap,
            sum_yy=self.sum_yy + filled_in,
            sum_x=self.sum_x + filled_in[:, None] * mean,
            sum_xy=self.sum_xy + gap[:, :, None] * mean[:, None, :],
            sum_xx=self.sum_xx + filled_in[:, None, None] * mean[:, :, None] * mean[:, None, :],
        )

    @property
    def _divisor(self) -> Array:
        """The counts, with 1 for channels that were never observed, shape (b, 1)."""
        return np.where(self.count > 0, self.count, 1.0)[:, None]

    @property
    def mean(self) -> Array:
        """Mean of each feature over the observed samples, shape (b, d)."""
        return self.shift + self.scale * self.sum_x / self._divisor

    @property
    def class_share(self) -> Array:
        """Share of each class among the observed samples (mean of the target), shape (b, c)."""
        return self.class_count / self._divisor

    @property
    def std(self) -> Array:
        """Population standard deviation of each feature, shape (b, d)."""
        variance = _diagonal(self.sum_xx) - self.sum_x * (self.sum_x / self._divisor)
        return self.scale * np.sqrt(np.maximum(variance, 0.0) / self._divisor)

    def centred(self) -> tuple[Array, Array, Array]:
        """Moments about the observed mean, in units of ``scale``.

        Returns
        -------
        A : ndarray of shape (b, d, d)
            ``Xc Xc'``.
        P : ndarray of shape (b, c, d)
            ``Yc Xc'``.
        y2 : ndarray of shape (b,)
            ``||Yc||^2``.
        """
        mean = self.sum_x / self._divisor
        share = self.class_share
        A = self.sum_xx - self.sum_x[:, :, None] * mean[:, None, :]
        P = self.sum_xy - share[:, :, None] * self.sum_x[:, None, :]
        y2 = self.sum_yy - np.sum(self.class_count * share, axis=1)
        # Rounding must not make a variance negative.
        diagonal = np.arange(A.shape[1])
        A[:, diagonal, diagonal] = np.maximum(A[:, diagonal, diagonal], 0.0)
        return A, P, y2

    def constant(self) -> NDArray[np.bool_]:
        """Which features do not vary over the observed samples, shape (b, d)."""
        return is_constant(self.mean, self.std)


def _diagonal(A: Array) -> Array:
    return np.diagonal(A, axis1=-2, axis2=-1)


def accumulate(
    X: Array,
    codes: NDArray,
    n_classes: int,
    columns: NDArray[np.intp],
    weights: Array | None = None,
    about: Moments | None = None,
) -> Moments:
    """Sum up the moments of channels with the same number of features.

    A sample has a channel when none of the channel's features is NaN there.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Samples; NaN where a channel is missing.
    codes : ndarray of shape (n,)
        Class of each sample, 0 ... c - 1; the target itself if ``n_classes`` is 1.
    n_classes : int
        1 for a numeric target.
    columns : ndarray of shape (b, d)
        Which columns of X belong to each channel.
    weights : ndarray of shape (n,), optional
        Non-negative sample weights; 1 by default.
    about : Moments, optional
        Take shift and scale from these (of the whole of which X is a part), so that both can be
        added and subtracted.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 7.0]])
    >>> moments = accumulate(X, np.array([0, 1, 1]), 2, np.array([[0, 1]]))
    >>> moments.count, moments.mean
    (array([2.]), array([[3. , 4.5]]))
    """
    n_samples = X.shape[0]
    if weights is None:
        weights = np.ones(n_samples)
    else:
        # Samples without weight do not exist; dropping them keeps their NaN and values out.
        kept = weights > 0
        X, codes, weights = (
            (X, codes, weights) if kept.all() else (X[kept], codes[kept], weights[kept])
        )
    labels, squares = _weighted_target(codes, n_classes, weights)
    per_block = max(1, _BLOCK_ELEMENTS // max(1, X.shape[0] * columns.shape[1]))
    blocks = []
    for first in range(0, columns.shape[0], per_block):
        block = slice(first, first + per_block)
        units = None if about is None else (about.shift[block], about.scale[block])
        blocks.append(_accumulate_block(X, labels, squares, weights, columns[block], units))
    return Moments(
        float(weights.sum()), *(np.concatenate(parts) for parts in zip(*blocks, strict=True))
    )


def _weighted_target(codes: NDArray, n_classes: int, weights: Array) -> tuple[Array, Array]:
    """Weighted target (c, n) and weighted squares of the target (n,)."""
    if n_classes == 1:
        return (weights * codes)[None, :], weights * codes**2
    labels = np.zeros((n_classes, codes.size))
    labels[codes, np.arange(codes.size)] = weights
    return labels, weights


def _accumulate_block(
    X: Array,
    labels: Array,
    squares: Array,
    weights: Array,
    columns: NDArray[np.intp],
    units: tuple[Array, Array] | None,
) -> tuple[Array, ...]:
    values = np.empty((columns.shape[0], X.shape[0], columns.shape[1]))
    for channel, own in zip(values, columns, strict=True):
        channel[:] = X[:, as_slice(own)]
    observed = ~np.isnan(values).any(axis=2)
    values[~observed] = 0.0
    weight = observed * weights
    count = weight.sum(axis=1)
    class_count, sum_yy = observed @ labels.T, observed @ squares
    shift, scale = units or (
        _weighted_sum(weight, values) / np.maximum(count, 1e-300)[:, None],
        None,
    )
    values -= shift[:, None, :]
    values[~observed] = 0.0
    if scale is None:
        scale = safe_scale(np.maximum(values.max(axis=1), -values.min(axis=1)))
    if (scale != 1).any():
        values /= scale[:, None, :]
    sum_x = _weighted_sum(weight, values)
    sum_xy = labels @ values
    weighted = values if (weights == 1).all() else values * weights[None, :, None]
    sum_xx = np.swapaxes(weighted, 1, 2) @ values
    return count, class_count, sum_yy, sum_x, sum_xy, sum_xx, shift, scale


def _weighted_sum(weight: Array, values: Array) -> Array:
    return (weight[:, None, :] @ values)[:, 0, :]


def as_slice(columns: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Neighbouring columns as a slice: copying them is several times faster."""
    first = int(columns[0])
    if np.array_equal(columns, np.arange(first, first + columns.size)):
        return slice(first, first + columns.size)
    return columns
