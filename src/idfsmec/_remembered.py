"""What was found out about an array that nobody can change, kept as long as the array is."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")

# By the array's identity, which is taken again only after the array is gone.
_found: dict[int, tuple[weakref.ref[NDArray], dict[Hashable, Any]]] = {}


def is_fixed(X: NDArray) -> bool:
    """Whether nobody can change an array: it is read-only, and its numbers are its own.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.zeros(3)
    >>> is_fixed(X)
    False
    >>> X.setflags(write=False)
    >>> is_fixed(X), is_fixed(X[1:])
    (True, False)
    """
    return X.flags.owndata and not X.flags.writeable


def remember(X: NDArray, name: Hashable, make: Callable[[], T]) -> T:
    """Give what is known about an array under a name, or find it out.

    Methods that are compared see the same samples one after the other, so that they share what
    they ask of them. Of an array that might change everything is found out each time.

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
    >>> X.setflags(write=False)
    >>> remember(X, "sum", X.sum) is remember(X, "sum", X.sum)
    True
    """
    if not is_fixed(X):
        return make()
    place = id(X)
    if place not in _found:
        _found[place] = weakref.ref(X, lambda _: _found.pop(place, None)), {}
    known = _found[place][1]
    if name not in known:
        known[name] = make()
    found: T = known[name]
    return found
