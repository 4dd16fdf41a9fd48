"""Randomness: from a ``random_state`` to a Generator, from coordinates of work to a seed."""

from __future__ import annotations

import hashlib

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


def derive_seed(purpose: str, *coordinates: object) -> int:
    """Derive a seed from where the work lies in the grid, never from data or from order.

    Examples
    --------
    >>> derive_seed("gaps", "random", 0.1, 0, 3) == derive_seed("gaps", "random", 0.1, 0, 3)
    True
    """
    text = "\x1f".join([purpose, *(repr(one) for one in coordinates)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") // 2
