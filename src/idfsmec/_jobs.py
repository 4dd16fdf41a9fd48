"""How many threads to use, so that nothing fights over cores and results never depend on them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from numbers import Integral

import joblib
import numpy as np  # noqa: F401  (its BLAS must be loaded to be found)
import scipy.linalg  # noqa: F401  (so must SciPy's)
from threadpoolctl import ThreadpoolController

from idfsmec.errors import ArgumentError

# Looking up the BLAS libraries of the process takes longer than a small fit: once, at import.
_BLAS = ThreadpoolController()


def available_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set, as in joblib's workers; otherwise all cores.

    Examples
    --------
    >>> available_threads() >= 1
    True
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else joblib.cpu_count()


def count_jobs(n_jobs: int | None) -> int:
    """Say how many processes a number of jobs means, the way joblib counts.

    Parameters
    ----------
    n_jobs : int or None
        So many; -1 is one per core, -2 one fewer, and so on, but at least 1. None: one per core.

    Raises
    ------
    ArgumentError
        It is 0, or not a whole number.

    Examples
    --------
    >>> count_jobs(3), count_jobs(-1) == count_jobs(None) == joblib.cpu_count()
    (3, True)
    """
    if n_jobs is None:
        return joblib.cpu_count()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ArgumentError(
            f"n_jobs={n_jobs!r}: give 1 or more, or -1 for one per core", argument="n_jobs"
        )
    return int(n_jobs) if n_jobs > 0 else max(joblib.cpu_count() + 1 + int(n_jobs), 1)


def one_blas_thread() -> AbstractContextManager:
    """Limit BLAS to one thread: small matrices gain nothing, and more changes the last digits."""
    return _BLAS.limit(limits=1, user_api="blas")
