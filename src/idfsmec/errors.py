"""Errors a user can mend: shown as one line by the command line, with exit code 2.

Messages say what was wrong, where, and what to do, in terms of Python arguments, spelt
``argument=value``. Such an error has the argument's name in ``argument``, so that others, as the
command line does, can put their own word for it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

__all__ = [
    "ArgumentError",
    "DuplicateRecordingsError",
    "ExistingFileError",
    "InputError",
    "RecordingError",
    "UnexpectedRecordingError",
    "WorkerError",
]


class InputError(ValueError):
    """Something the user gave is unusable; the message names the file or column and the fix.

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
    """An argument is wrong, lacks, or does not go with the others.

    Examples
    --------
    >>> error = ArgumentError("n_jobs=0: give 1 or more.", argument="n_jobs")
    >>> error.argument, str(error)
    ('n_jobs', 'n_jobs=0: give 1 or more.')
    """


class ExistingFileError(InputError):
    """A file or folder exists that would be replaced.

    Parameters
    ----------
    path : path-like
        What exists already.

    Examples
    --------
    >>> str(ExistingFileError("table.parquet"))
    'table.parquet: exists already; choose another name, or replace it with overwrite=True.'
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
    """One recording is given for several subjects.

    Parameters
    ----------
    message : str
    copies : iterable of (str, str)
        Source and subject of each copy.
    """

    argument = "allow"

    def __init__(self, message: str, *, copies: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.copies = tuple(copies)


class RecordingError(InputError):
    """A recording cannot be used.

    Parameters
    ----------
    message : str
    source : str
        Which one: its file, or a few words.
    argument : str, optional
        The argument with which one can go on without it.
    """

    def __init__(self, message: str, *, source: str = "", argument: str | None = None) -> None:
        super().__init__(message, argument=argument)
        self.source = source


class UnexpectedRecordingError(RuntimeError):
    """Work on a recording ended in something that no user can mend.

    Parameters
    ----------
    message, source, argument
        As of :class:`RecordingError`.
    """

    def __init__(self, message: str, *, source: str = "", argument: str | None = None) -> None:
        super().__init__(message)
        self.source = source
        self.argument = argument


class WorkerError(RuntimeError):
    """Work in other processes or on a cluster cannot go on: a task ends them, or they are gone."""

    argument = "n_jobs"
