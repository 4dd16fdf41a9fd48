"""Errors that a user can correct: shown as one line by the command line, with exit code 2.

Messages say what was wrong, where, and what to do, in terms of Python arguments. The name of such
an argument is in ``argument``, so that the command line can put its own word for it there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike, fspath


class InputError(ValueError):
    """An input cannot be used; the message names the file or column and the remedy.

    Parameters
    ----------
    message : str
    argument : str, optional
        The argument that is wrong or that would help, where there is one.
    """

    argument: str | None = None

    def __init__(self, message: str, *, argument: str | None = None) -> None:
        super().__init__(message)
        if argument is not None:
            self.argument = argument


class ArgumentError(InputError):
    """An argument is wrong, is missing, or contradicts the others."""


class ExistingFileError(InputError):
    """A file or folder exists that would be replaced.

    Parameters
    ----------
    path : path-like
        What exists already.
    """

    argument = "overwrite"

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
        super().__init__(
            f"{self.path}: exists already; choose another name, or replace it with overwrite=True."
        )

    def __reduce__(self) -> tuple[type[ExistingFileError], tuple[str]]:
        return type(self), (self.path,)


class DuplicateRecordingsError(InputError):
    """One recording is given for several subjects; the message names all copies."""


class RecordingError(InputError):
    """A recording cannot be used; the message names its file."""


class UnexpectedRecordingError(RuntimeError):
    """Work on a recording ended in an error that is not due to its input.

    Parameters
    ----------
    message : str
    argument : str, optional
        The argument with which one can go on without the recording.
    """

    def __init__(self, message: str, *, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class WorkerError(RuntimeError):
    """Work in other processes or on a cluster cannot go on: a task ends them, or they are gone."""

    argument = "n_jobs"


def reason_of(error: BaseException) -> str:
    """Return the message of an error in one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


# An absolute path from where a word begins up to its last part.
_FOLDERS = re.compile(
    r"""(?<![^\s"'=,(])(?:~|[A-Za-z]:)?[/\\](?!\s)(?:[^/\\"',]*[/\\])*(?=[^/\\\s])"""
)


def without_folders(text: str) -> str:
    """Leave the last part of absolute paths: folders name users. With ``--debug`` all is kept.

    >>> without_folders("/home/ann/table.parquet"), without_folders("--out=C:/Users/ann/out")
    ('table.parquet', '--out=out')
    """
    return text if "--debug" in sys.argv else _FOLDERS.sub("", text)


def find_name(name: str, known: Iterable[str], refusal: str) -> str:
    """Return the known name that is meant, whatever its case; else refuse it with what there is.

    >>> find_name("anova f", ["IDFS-MEC", "ANOVA F"], "there is no method 'anova f'")
    'ANOVA F'
    """
    names = list(known)
    alike = [each for each in names if each.casefold() == name.casefold()]
    if name in names or len(alike) == 1:
        return name if name in names else alike[0]
    near = get_close_matches(name.casefold(), [each.casefold() for each in names], n=1)
    meant = next((each for each in names if each.casefold() in near), "")
    hint = f", did you mean {meant!r}? C" if meant else "; c"
    choice = f"{hint}hoose from {listing(names, most=30)}" if names else ", nor any other"
    raise InputError(f"{refusal}{choice}")


def listing(names: Iterable[object], most: int = 5) -> str:
    """Join names as in a sentence and count those beyond the first.

    Examples
    --------
    >>> listing(["F3", "Fz", "F4"]), listing(["F3", "Fz", "F4"], most=2)
    ('F3, Fz and F4', 'F3, Fz and 1 more')
    """
    items = [str(name) for name in names]
    if len(items) > most:
        items = [*items[:most], f"{len(items) - most} more"]
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
