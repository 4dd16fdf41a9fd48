"""How many threads to use, so that nothing fights over cores and results never depend on them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

import joblib
import numpy as np  # noqa: F401  (its BLAS must be loaded to be found)
import scipy.linalg  # noqa: F401  (so must SciPy's)
from threadpoolctl import ThreadpoolController

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


def one_blas_thread() -> AbstractContextManager:
    """Limit BLAS to one thread: small matrices gain nothing, and more changes the last digits."""
    return _BLAS.limit(limits=1, user_api="blas")
