"""One standardiser: mean and deviation over observed values, one rule for constant features.

Everything that puts features into comparable units goes through here: the solver's moments,
classifiers, tuning and evaluation. What is missing (NaN) takes no part and stays missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: A feature whose standard deviation is at most this share of its mean holds rounding noise only.
CONSTANT_BELOW = 1e-13
#: Values further from the mean than so many standard deviations count as this far away for whoever
#: predicts from them: one flat or wild electrode must not speak for all others.
FAR = 6.0
# Squares of numbers outside this range over- or underflow; such columns are rescaled first.
_SAFE = (1e-100, 1e100)
# Numbers looked at together when a scaling is learned: whole columns, as many as that makes.
_BLOCK_ELEMENTS = 1_000_000
# A single column would be summed in another order.
_FEWEST_COLUMNS = 16


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation of every feature, to bring samples into these units.

    Examples
    --------
    >>> train = np.array([[0.0, 5.0], [2.0, 5.0], [np.nan, np.nan]])
    >>> scaling = Scaling.learn(train)
    >>> scaling.apply(np.array([[3.0, 9.0], [np.nan, 5.0]]))
    array([[ 2.,  0.],
           [nan,  0.]])
    >>> scaling.imputed(train)
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 0.,  0.]])
    """

    mean: Array
    unit: Array  # the standard deviation; infinite for constant features, so that these become 0

    @classmethod
    def learn(cls, X: Array) -> Scaling:
        """Learn from the observed values (not NaN) of every column; one without is constant."""
        # A few columns at a time, because they are copied; the sums stay the same.
        width = max(_FEWEST_COLUMNS, _BLOCK_ELEMENTS // max(X.shape[0], 1))
        starts = range(0, max(X.shape[1] - _FEWEST_COLUMNS, 1), width)
        ends = [*starts[1:], X.shape[1]]
        parts = [observed_moments(X[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        return cls.of(*map(np.concatenate, zip(*parts, strict=True)))

    @classmethod
    def of(cls, mean: Array, std: Array) -> Scaling:
        """Take means and standard deviations that are known already."""
        return cls(mean, np.where(is_constant(mean, std), np.inf, std))

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Which features carry nothing, shape (n_features,)."""
        return np.isinf(self.unit)

    def apply(self, X: Array) -> Array:
        """Distance from the mean in standard deviations; NaN stays NaN.

        A constant feature becomes 0 wherever it is observed: its values in new samples must not
        carry anything either.
        """
        # Halves before subtracting: no difference of finite numbers overflows.
        values = 0.5 * X
        values -= 0.5 * self.mean
        values /= 0.5 * self.unit
        return values

    def imputed(self, X: Array) -> Array:
        """:meth:`apply` with the mean, which is 0, in place of what is missing."""
        values = self.apply(X)
        values[np.isnan(values)] = 0.0
        return values


def observed_moments(X: Array) -> tuple[Array, Array]:
    """Return mean and population standard deviation of every column's values, 0 without any.

    Examples
    --------
    >>> observed_moments(np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 4.0]]))
    (array([2., 4.]), array([1., 0.]))
    """
    count: int | NDArray[np.intp] = max(X.shape[0], 1)
    mean = X.sum(axis=0) / count
    if np.isnan(mean).any():
        seen = ~np.isnan(X)
        count = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, X, 0.0).sum(axis=0) / count
        centred = np.where(seen, X - mean, 0.0)
    else:
        centred = X - mean
    scale = safe_scale(
        np.maximum(centred.max(axis=0, initial=0.0), -centred.min(axis=0, initial=0.0))
    )
    if (scale != 1).any():
        centred /= scale
    # Summing a constant column leaves a mean that is off by rounding; its deviations are then
    # all alike, and their own mean takes them away.
    drift = centred.sum(axis=0) / count
    variance = np.square(centred, out=centred).sum(axis=0) / count - drift**2
    return mean, scale * np.sqrt(np.maximum(variance, 0.0))


def is_constant(mean: Array, std: Array) -> NDArray[np.bool_]:
    """Say which features do not vary: those whose deviation is rounding noise of their mean.

    Examples
    --------
    >>> is_constant(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1e-15, 1e-9]))
    array([ True,  True, False])
    """
    return ~(np.asarray(std) > CONSTANT_BELOW * np.abs(mean))


def safe_scale(largest: Array) -> Array:
    """Return 1 for every feature, but a power of two near its size where squares overflow."""
    unsafe = (largest > 0) & ((largest < _SAFE[0]) | (largest > _SAFE[1]))
    scale = np.ones_like(largest)
    scale[unsafe] = 2.0 ** np.round(np.log2(largest[unsafe]))
    return scale
