"""What the readers of released data sets share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path

from idfsmec.errors import ArgumentError, InputError


def find_files(root: Path, *names: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """Find the files in and below a folder whose names match, in order of their paths.

    A link to a file that was never fetched, as DataLad leaves it, is no file.
    """
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder.")
    return [
        (path, match)
        for path in sorted(root.rglob("*"))
        if (match := next(filter(None, (name.fullmatch(path.name) for name in names)), None))
        and path.is_file()
    ]


def check_choice(option: str, value: str | None, choices: Collection[str]) -> None:
    """Refuse a value that an option of a data set does not have; None is no choice."""
    if value is not None and value not in choices:
        raise ArgumentError(
            f"{option}={value!r}: use one of {', '.join(choices)}.", argument=option
        )


def warn_of_left_out(where: Path, reasons: Mapping[str, Collection[str]]) -> None:
    """Count and name the subjects that are left out, by reason."""
    counts = []
    for reason, subjects in reasons.items():
        rest = f" and {len(subjects) - 5} more" if len(subjects) > 5 else ""
        names = ", ".join(sorted(subjects)[:5])
        counts += [f"{len(subjects)} {reason} ({names}{rest})"] if subjects else []
    if counts:
        warnings.warn(f"{where}: subjects left out: {'; '.join(counts)}.", stacklevel=3)
