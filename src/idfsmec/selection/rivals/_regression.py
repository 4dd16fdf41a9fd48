"""What the methods that regress on the classes share: indicators, moments and BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from idfsmec._jobs import one_blas_thread
from idfsmec._remembered import remember
from idfsmec.solver import TableMoments, table_moments

_WORTH_THREADS = 512


def one_hot(codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Turn class codes into 0/1 columns, shape (n_samples, n_classes).

    Examples
    --------
    >>> one_hot(np.array([1, 0]))
    array([[0., 1.],
           [1., 0.]])
    """
    return np.eye(int(codes.max()) + 1)[codes]


def class_moments(X: NDArray[np.float64], codes: NDArray[np.intp]) -> TableMoments:
    """Sum up all features as those of one channel; once for all who regress on a fold's samples.

    Examples
    --------
    >>> class_moments(np.array([[1.0], [3.0]]), np.array([0, 1])).groups[0].moments.mean
    array([[2.]])
    """

    def sum_up() -> TableMoments:
        return table_moments(X, codes, int(codes.max()) + 1, [np.arange(X.shape[1])])

    if X.shape[1] > X.shape[0]:  # sums larger than the samples are not kept
        return sum_up()
    return remember(X, ("moments", codes.tobytes()), sum_up)


def blas_threads_for(size: int) -> AbstractContextManager:
    """Limit BLAS to one thread for matrices with few rows, where waiting outweighs helping.

    Examples
    --------
    >>> with blas_threads_for(20):
    ...     pass  # many small products
    """
    return one_blas_thread() if size < _WORTH_THREADS else nullcontext()
