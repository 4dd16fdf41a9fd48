"""What was found out about an array that its owner has fixed, kept as long as the array is."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")

# By the array's identity, which is taken again only after the array is gone.
_found: dict[int, tuple[weakref.ref[NDArray], dict[Hashable, Any]]] = {}


def fix(X: NDArray) -> None:
    """Make an array read-only for good: what is found out about it is kept from now on.

    For who has made it and gives it to others. That an array is read-only is not enough: its
    owner may change it and lock it again. It must be no view of another.

    Examples
    --------
    >>> import numpy as np
    >>> X, other = np.zeros(3), np.zeros(3)
    >>> fix(X)
    >>> is_fixed(X), is_fixed(other), X.flags.writeable
    (True, False, False)
    """
    X.setflags(write=False)
    place = id(X)
    if place not in _found:
        _found[place] = weakref.ref(X, lambda _: _found.pop(place, None)), {}


def is_fixed(X: NDArray) -> bool:
    """Whether an array was fixed by who made it."""
    return id(X) in _found and not X.flags.writeable


def remember(X: NDArray, name: Hashable, make: Callable[[], T]) -> T:
    """Give what is known about an array under a name, or find it out.

    Methods that are compared see the same samples one after the other, so that they share what
    they ask of them. Of an array that is not fixed everything is found out each time.

    Parameters
    ----------
    X : ndarray
    name : hashable
        All that decides the answer, besides the array.
    make : callable without arguments

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(3.0)
    >>> fix(X)
    >>> remember(X, "sum", X.sum) is remember(X, "sum", X.sum)
    True
    """
    if not is_fixed(X):
        return make()
    known = _found[id(X)][1]
    if name not in known:
        known[name] = make()
    found: T = known[name]
    return found
