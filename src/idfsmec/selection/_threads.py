"""One BLAS thread while channels are solved, so that results do not depend on the machine."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager:
    """Limit BLAS to one thread: the matrices are small, and more would change the last digits."""
    return _controller().limit(limits=1, user_api="blas")


@functools.cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking them up takes longer than a small fit."""
    return ThreadpoolController()
