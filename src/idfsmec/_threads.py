"""How many threads to use, so that nothing fights over cores and results never depend on them."""

from __future__ import annotations

import functools
import os
from contextlib import AbstractContextManager

import joblib
from threadpoolctl import ThreadpoolController


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
    return _controller().limit(limits=1, user_api="blas")


@functools.cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking them up takes longer than a small fit."""
    return ThreadpoolController()
