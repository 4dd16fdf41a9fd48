"""What is warned about while somebody's work is done, told to that somebody."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Libraries tell programmers with these what they will change; whoever runs a study cannot help it.
_FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning)


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Collect what is warned about inside the block, but for what only programmers need.

    Examples
    --------
    >>> with heard() as said:
    ...     warnings.warn("the  reference is flat")
    ...     warnings.warn("use another function", DeprecationWarning)
    >>> texts(said)
    ['the reference is flat']
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in _FOR_PROGRAMMERS:
            warnings.simplefilter("ignore", category)
        yield caught


def texts(said: list[warnings.WarningMessage]) -> list[str]:
    """Give each text once, in one line, in the order of their first coming."""
    return list(dict.fromkeys(" ".join(str(one.message).split()) for one in said))
