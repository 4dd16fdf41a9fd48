"""A shelf for what can be made again: it keeps as much as fits into some memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


class Shelf:
    """Things that can be made again, kept as far as they fit.

    Where they do not fit, the last one goes first: inner folds are gone through again and again
    in the same order, so that the first ones stay.

    Parameters
    ----------
    limit : int
        Bytes. A single thing may be larger; it is alone then, and gone after :meth:`trim`.

    Examples
    --------
    >>> shelf = Shelf(100)
    >>> [shelf.get(name, 60, name.upper) for name in ("a", "b", "b")]
    ['A', 'B', 'B']
    >>> shelf.size
    60
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._things: dict[Hashable, tuple[int, Any]] = {}

    @property
    def size(self) -> int:
        """Bytes on it."""
        return sum(size for size, _ in self._things.values())

    def get(self, name: Hashable, size: int, make: Callable[[], Any]) -> Any:
        """Give a thing; room for it is made before it is."""
        if name not in self._things:
            self.trim(size)
            self._things[name] = size, make()
        return self._things[name][1]

    def trim(self, wanted: int = 0) -> None:
        """Let things go until so many bytes are free."""
        while self._things and self.size + wanted > self._limit:
            self._things.popitem()
