"""How many BLAS threads pay for matrices of a given size."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from idfsmec._jobs import one_blas_thread

_WORTH_THREADS = 512


def blas_threads_for(size: int) -> AbstractContextManager:
    """Limit BLAS to one thread for matrices with few rows, where waiting outweighs helping.

    Examples
    --------
    >>> with blas_threads_for(20):
    ...     pass  # many small products
    """
    return one_blas_thread() if size < _WORTH_THREADS else nullcontext()
