"""What the methods that regress on the classes share: class indicators and BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from idfsmec._jobs import one_blas_thread

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


def blas_threads_for(size: int) -> AbstractContextManager:
    """Limit BLAS to one thread for matrices with few rows, where waiting outweighs helping.

    Examples
    --------
    >>> with blas_threads_for(20):
    ...     pass  # many small products
    """
    return one_blas_thread() if size < _WORTH_THREADS else nullcontext()
