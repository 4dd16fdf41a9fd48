"""Weights that leave no residuals: those of most features follow from those of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgetrf, dtrtrs

from idfsmec.selection.rivals._corner import order_after

Floats = NDArray[np.floating]

# Pivots below this share of the largest are rounding.
_NO_PIVOT = 1e-9


class ExactFits(NamedTuple):
    """All w with ``X w = y``: ``w[first] = b - T w[others]`` for any ``w[others]``.

    Attributes
    ----------
    T : ndarray of shape (n_first, n_others)
    b : ndarray of shape (n_first,)
    order : ndarray of shape (n_features,)
        First features, then others.
    factor : ndarray of shape (n_features, n_samples)
        L below and U above the diagonal, X' in that order.
    """

    T: Floats
    b: Floats
    order: NDArray[np.intp]
    factor: Floats

    def whole(self, others: Floats) -> Floats:
        """Weights of all features."""
        w = np.empty(self.order.size)
        w[self.order] = np.concatenate([self.b - self.T @ others, others])
        return w

    def dual(self, pull: Floats) -> Floats:
        """The v with ``X' v = pull`` for the first features, as near to 0 as it may be."""
        rank, n_samples = self.b.size, self.factor.shape[1]
        square = self.factor[:rank, :rank]
        v = np.zeros(n_samples)
        v[:rank] = dtrtrs(square, dtrtrs(square, pull, lower=1, unitdiag=1)[0])[0]
        # Where columns have mean 0, a constant changes nothing.
        return v - (v.max() + v.min()) / 2 if rank < n_samples else v


def exact_fits(X: Floats, y: Floats) -> ExactFits | None:
    """Tell the first features from the others by LU's pivots: ``X' = L U``.

    Then ``L1' w[first] + L2' w[others] = U^-T y``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)

    Returns
    -------
    ExactFits or None
        None if there are not more features than samples, or samples depend on one another by more
        than columns of mean 0.

    Examples
    --------
    >>> X, y = np.array([[1.0, 2.0, 4.0]]), np.array([8.0])
    >>> fits = exact_fits(X, y)
    >>> X @ fits.whole(np.array([3.0, -5.0]))
    array([8.])
    """
    n_samples, n_features = X.shape
    if n_samples >= n_features:
        return None
    factor, swaps, _ = dgetrf(X.T.copy(order="F"), overwrite_a=1)
    pivots = np.abs(factor.diagonal())
    # The last of centred samples follows from the others.
    rank = n_samples - int(pivots[-1] <= _NO_PIVOT * pivots.max())
    if rank == 0 or not pivots[:rank].min() > _NO_PIVOT * pivots.max():
        return None
    order = order_after(swaps, n_features)
    square = factor[:rank, :rank]
    T = dtrsm(1.0, square, factor[rank:, :rank], side=1, lower=1, diag=1).T
    b = dtrtrs(square, y[:rank], trans=1)[0]
    b = dtrtrs(square, b, lower=1, trans=1, unitdiag=1)[0]
    return ExactFits(np.ascontiguousarray(T), b, order, factor)
