"""The library's arguments in the words of the command line: ``overwrite=True`` is ``--force``."""

from __future__ import annotations

import re

#: Arguments whose options have another name; all others are spelt alike.
_OPTIONS = {
    "overwrite": "--force",
    "n_jobs": "--jobs",
    "n_features_to_select": "--k",
    "allow": "--allow-duplicates",
    "absent_ok": "--on-error skip",
}


def in_options(error: BaseException) -> str:
    """Say what an error says, with the option in place of the argument it names.

    Examples
    --------
    >>> from idfsmec.errors import ArgumentError, ExistingFileError
    >>> in_options(ExistingFileError("table.csv"))
    'table.csv: exists already; choose another name, or replace it with --force.'
    >>> in_options(ArgumentError("unit='mm': give one of uV, nV, V.", argument="unit"))
    '--unit mm: give one of uV, nV, V.'
    """
    message = str(error)
    argument = getattr(error, "argument", None)
    if argument is None:
        return message
    option = _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")

    def spell(found: re.Match[str]) -> str:
        value = found[1].strip("'\"")
        return option if value == "True" else f"{option} {value}"

    return re.sub(rf"\b{argument}=('[^']*'|\"[^\"]*\"|[-+\w./~]*\w)", spell, message)
