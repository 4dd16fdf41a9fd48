"""Where commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

console = Console()
error_console = Console(stderr=True)


def say(text: str) -> None:
    """Print a line of text as it is; a terminal breaks it, a file does not."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


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
