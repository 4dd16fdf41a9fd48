"""Where commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

console = Console()
error_console = Console(stderr=True)


def say(text: str, *, prose: bool = False) -> None:
    """Print a text as it is; prose is broken between words, so that paths stay whole elsewhere."""
    console.print(text, markup=False, highlight=False, soft_wrap=not prose)


def print_error(text: str) -> None:
    """Print one line that says what went wrong."""
    error_console.print(f"error: {text}", style="red", markup=False, soft_wrap=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print what is warned about inside the block when it ends, each text once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            texts = dict.fromkeys(" ".join(str(one.message).split()) for one in caught)
            for text in texts:
                error_console.print(
                    f"warning: {text}", style="yellow", markup=False, soft_wrap=True
                )
