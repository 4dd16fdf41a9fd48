"""Where commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from idfsmec.progress import collect_warnings, warning_texts

# Characters that steer a terminal, except line ends and tabs. A channel's name may hold them.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


class _Stream:
    """Standard output or error as it is now; when nobody reads it any more, the work goes on.

    A reader like ``head`` closes the pipe early, a terminal may be gone, and a program may be
    started without: what was computed must not be lost for that.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str) -> int:
        return self._do("write", text) or 0

    def flush(self) -> None:
        self._do("flush")

    def isatty(self) -> bool:
        return bool(self._do("isatty"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream(), name)

    def _stream(self) -> Any:
        stream = getattr(sys, self._name)
        if stream is None:  # closed before we were started
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
            setattr(sys, self._name, stream)
        return stream

    def _do(self, action: str, *args: Any) -> Any:
        try:
            return getattr(self._stream(), action)(*args)
        except (OSError, ValueError):
            # Also what is in the buffer must go nowhere, or the interpreter complains at exit.
            setattr(sys, self._name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
            return None


class _Console(Console):
    """A console that shows, and does not obey, control characters in what it is given."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, for rows of tables too."""
        return super().render_str(visible(text), **options)

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        """Make pieces of anything else; what rich itself tells the terminal is no text."""
        for piece in super().render(*given, **options):
            yield piece if piece.control else piece._replace(text=visible(piece.text))


def visible(text: str) -> str:
    r"""Write out the characters that would steer a terminal.

    Examples
    --------
    >>> print(visible("Fp1\x1b[2J"))
    Fp1\x1b[2J
    """
    return text.translate(_CONTROLS)


def plain(text: Any, style: str = "") -> Text:
    r"""Make a text of anything, for a table: brackets are no markup, control characters are seen.

    Examples
    --------
    >>> print(plain("[b]Fp1\x1b[2J"))
    [b]Fp1\x1b[2J
    """
    return Text(visible(str(text)), style=style)


console = _Console(file=_Stream("stdout"))  # type: ignore[arg-type]
error_console = _Console(file=_Stream("stderr"), stderr=True)  # type: ignore[arg-type]


def say(text: str, *, prose: bool = False) -> None:
    """Print a text as it is; prose is broken between words, so that paths stay whole elsewhere."""
    console.print(text, markup=False, highlight=False, soft_wrap=not prose)


def print_error(text: str) -> None:
    """Print one line that says what went wrong."""
    try:
        error_console.print(f"error: {text}", style="red", markup=False, soft_wrap=True)
    except MemoryError:
        print_plainly(text)


def print_plainly(text: str) -> None:
    """Print such a line at once: in a way that needs no memory, and from any thread."""
    with suppress(OSError):
        os.write(2, f"error: {visible(text)}\n".encode(errors="replace"))


def print_without_memory() -> None:
    """Say that memory is used up."""
    print_plainly("out of memory; give fewer --jobs, a smaller table or more memory")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print what is warned about inside the block when it ends, each text once."""
    with collect_warnings() as said:
        try:
            yield
        finally:
            for text in warning_texts(said):
                error_console.print(
                    f"warning: {text}", style="yellow", markup=False, soft_wrap=True
                )
