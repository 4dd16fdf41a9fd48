"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from idfsmec.cli._completion import classifiers as _classifiers
from idfsmec.cli._completion import imputers as _imputers
from idfsmec.cli._completion import one_of
from idfsmec.errors import InputError

# From Python a list does as well as the command line's text with commas.
if TYPE_CHECKING:
    Names = str | Sequence[str]
    Numbers = str | Sequence[float]
    AnyPath = Path | str
else:  # Typer wants a single type
    Names = str
    Numbers = str
    AnyPath = Path

JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Processes; -1 is one per core, -2 one less. Results do not depend on it.",
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786, in place of --jobs."
    ),
]
ImputerOption = Annotated[
    str | None,
    typer.Option(
        help="What imputes missing channels: mean, neighbours, factors, scalp or indicators. By "
        "default each method's own.",
        autocompletion=one_of(_imputers),
    ),
]
ClassifierOption = Annotated[
    str | None,
    typer.Option(
        help="What sees the selected features: svm, ridge, idfsmec or boosting. By default "
        "each method's own.",
        autocompletion=one_of(_classifiers),
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
SeedsOption = Annotated[int, typer.Option(help="Repeats with new folds and missing channels.")]
SeedOption = Annotated[
    int, typer.Option(help="Seed of the first repetition; the others count on from it.")
]
ResamplesOption = Annotated[
    int,
    typer.Option(
        help="Random halves of the subjects that say how sure the ranking is; even; 0: none."
    ),
]


HarmonizeOption = Annotated[
    bool,
    typer.Option(
        "--harmonize",
        help="Bring sites (hospitals) to one location and scale, as ComBat does, learned inside "
        "training folds. Warns where site and label are entangled.",
    ),
]


class HeldOut(StrEnum):
    """What ``--folds`` takes where nobody may be on both sides."""

    subject = "subject"
    site = "site"


HeldOutOption = Annotated[
    HeldOut,
    typer.Option("--folds", help="Hold out people, or one site (hospital) after the other."),
]


def check_seed(seed: int) -> int:
    """A seed NumPy takes."""
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed {seed}: give a whole number from 0 to 4294967295")
    return seed


def check_resamples(resamples: int) -> int:
    """Halves come in pairs; none is fine."""
    if resamples < 0 or resamples % 2:
        raise InputError(f"--resamples {resamples}: give an even number, such as 100, or 0")
    return resamples


def split_names(text: str | Iterable[str] | None) -> list[str] | None:
    """Split a list with commas; from Python it may be a list already.

    Examples
    --------
    >>> split_names("mRMR, ANOVA F"), split_names(["mRMR"])
    (['mRMR', 'ANOVA F'], ['mRMR'])
    """
    if text is None:
        return None
    if not isinstance(text, str):
        return [str(part) for part in text]
    return [part.strip() for part in text.split(",") if part.strip()]


def split_numbers(
    option: str, text: str | Iterable[float] | None, kind: Callable[[Any], Any]
) -> list[Any] | None:
    """Split a list of numbers with commas; from Python it may be a list already."""
    if text is None:
        return None
    parts = [part for part in text.split(",") if part.strip()] if isinstance(text, str) else text
    try:
        return [kind(part) for part in parts]
    except (TypeError, ValueError):
        wanted = "whole numbers, such as 10,20" if kind is int else "numbers, such as 0.1,0.3"
        raise InputError(f"{option} {text}: give {wanted}") from None
