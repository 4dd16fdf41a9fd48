"""One way to turn a ``random_state`` into a numpy Generator, for code that is not an estimator."""

from __future__ import annotations

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Give the Generator that ``random_state`` stands for.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A whole number gives the same stream each time, a Generator is used (and advanced) as it
        is, a RandomState supplies the seed, None is different on every call.

    Returns
    -------
    Generator

    Examples
    --------
    >>> bool(as_generator(7).integers(100) == as_generator(7).integers(100))
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
