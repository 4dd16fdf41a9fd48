"""Options: help and completion of those that commands share, and what their text means.

From Python a list does as well as a text with commas, and a text as well as a path.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from idfsmec.errors import ExistingFileError, InputError

if TYPE_CHECKING:
    Names = str | Sequence[str] | Sequence[float]
    Folds = str | int
    Harmonize = str | bool | None
    AnyPath = Path | str
    AnyPaths = AnyPath | Sequence[AnyPath]
else:  # Typer wants a single type
    Names, Folds, Harmonize, AnyPath, AnyPaths = str, str, str | None, Path, list[Path]
#: As in :data:`idfsmec.missing.PATTERNS`, which takes a second to import.
PATTERNS = ("random", "recording", "burst", "region", "uneven")
EXPERIMENTS = ("accuracy", "imputation", "ablation", "sensitivity", "cost")
OnError = Literal["stop", "skip"]
ProtocolName = Literal["honest", "paper"]

#: Help of options that several commands share.
SHARED = {
    "out": "Folder for the results.",
    "force": "Replace what is there.",
    "jobs": "Processes; -1 is one per core, -2 one less. Results do not depend on it.",
    "dask": "Address of a Dask scheduler, such as tcp://10.0.0.1:8786, in place of --jobs.",
    "on_error": "Stop at a recording that fails, or skip it.",
    "bids_derivative": "Write the table also as a BIDS derivative, into this folder.",
    "methods": 'Names, such as "IDFS-MEC,mRMR,ANOVA F". By default all that are not slow.',
    "imputer": "What imputes missing channels: mean, neighbours, factors, scalp or indicators. By "
    "default each method's own.",
    "classifier": "What sees the selected features: svm, ridge, idfsmec or boosting. By default "
    "each method's own.",
    "protocol": "honest: new subjects, missing channels for all, nested tuning. paper: samples "
    "mixed, missing channels for the selector only, best setting on the test.",
    "folds": "A number of folds, which keep the samples of a subject together; or site: hold out "
    "one site (hospital) after the other.",
    "harmonize": "Bring sites (hospitals) to one location and scale, as ComBat does, learned from "
    "all samples of training folds, or from those of one class, such as HC. Warns where site and "
    "label are confounded.",
    "repeats": "How often folds are drawn anew.",
    "seed": "Seed of all that is random.",
    "resamples": "Random halves of the subjects that say how stable the ranking is: an even "
    "number, such as 100; 0: none.",
}
_METAVARS = {"folds": "NUMBER|site", "harmonize": "all|CLASS"}
_SHORT = {"out": "-o", "output": "-o", "jobs": "-j"}


def _registered(module: str, *registries: str) -> Callable[[], list[str]]:
    """Return what lists the names of registries; they are imported when Tab is pressed."""
    return lambda: [
        name for key in registries for name in getattr(importlib.import_module(module), key)
    ]


def _methods() -> list[str]:
    from idfsmec.prediction.methods import find_methods

    return [method.name for method in find_methods()]


#: What the Tab key offers.
_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "source": _registered("idfsmec.recordings", "DATA_SETS"),
    "labels": _registered("idfsmec.recordings.datasets.pred", "LABEL_RULES"),
    "condition": lambda: ["eyes-open", "eyes-closed"],
    "unit": lambda: ["uV", "nV", "V"],
    "features": _registered("idfsmec.features", "FEATURE_SETS", "FEATURES"),
    "methods": _methods,
    "method": _methods,
    "imputer": _registered("idfsmec.prediction.methods", "IMPUTERS"),
    "classifier": _registered("idfsmec.prediction.methods", "CLASSIFIERS"),
    "patterns": lambda: PATTERNS,
    "experiment": lambda: EXPERIMENTS,
    "folds": lambda: ["site"],
    "harmonize": lambda: ["all"],
}


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Complete a name, or the last one of a list with commas, each name once.

    Examples
    --------
    >>> complete = completing(lambda: ["mRMR", "CMIM", "random"])
    >>> complete("CMIM,m"), complete("")
    (['CMIM,mRMR'], ['mRMR', 'CMIM', 'random'])
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [
            f"{before}{comma}{name}"
            for name in names()
            if name.startswith(last) and name not in given
        ]

    return complete


def option(name: str, text: str = "") -> Any:
    """Return what Typer wants to know of an option."""
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(
        *filter(None, [flag, _SHORT.get(name)]),
        metavar=_METAVARS.get(name),
        help=text or SHARED[name],
        autocompletion=completing(_NAMES[name]) if name in _NAMES else None,
    )


def argument(metavar: str, text: str, name: str = "") -> Any:
    """Return what Typer wants to know of an argument; the shell itself completes files."""

    def complete(incomplete: str) -> list[str]:
        return completing(_NAMES[name])(incomplete) if name and incomplete else []

    return typer.Argument(
        metavar=metavar, help=text, show_default=False, autocompletion=complete if name else None
    )


TABLE = argument("TABLE", "Feature table: .parquet, .csv or .csv.gz.")


def paths(given: AnyPath | Sequence[AnyPath]) -> list[Path]:
    """Return a list of paths; from Python it may be a single one."""
    return [Path(path) for path in ([given] if isinstance(given, (str, Path)) else given)]


def split_names(text: Any) -> list[str] | None:
    """Split a list with commas; from Python it may be a list already.

    Examples
    --------
    >>> split_names("mRMR, ANOVA F"), split_names(["mRMR"])
    (['mRMR', 'ANOVA F'], ['mRMR'])
    """
    if text is None:
        return None
    parts = text.split(",") if isinstance(text, str) else map(str, text)
    return [part.strip() for part in parts if part.strip()]


def parse_folds(folds: str | int | None) -> dict[str, Any]:
    """Return the arguments ``folds`` or ``n_splits`` that an option means.

    Examples
    --------
    >>> parse_folds("site"), parse_folds("5"), parse_folds(None)
    ({'folds': 'site'}, {'n_splits': 5}, {})
    """
    if folds is None or folds == "site":
        return {"folds": folds} if folds else {}
    if not str(folds).isdecimal() or int(folds) < 2:
        raise InputError(f"--folds {folds}: give a number of at least 2, or site")
    return {"n_splits": int(folds)}


def parse_harmonize(harmonize: str | bool | None) -> bool | str:
    """Return the argument ``harmonize`` that an option means: all is True, a class its name."""
    return harmonize in ("all", True) or harmonize or False


def check_seed(seed: int) -> int:
    """Refuse a seed that NumPy does not take."""
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed {seed}: give a whole number from 0 to 4294967295")
    return seed


def check_repeats(repeats: int) -> int:
    """Refuse to draw no folds at all."""
    if repeats < 1:
        raise InputError(f"--repeats {repeats}: give at least 1")
    return repeats


def check_resamples(resamples: int) -> int:
    """Refuse an odd number: halves come in pairs."""
    if resamples < 0 or resamples % 2:
        raise InputError(f"--resamples {resamples}: give an even number, such as 100, or 0")
    return resamples


def check_output(path: AnyPath, ending: str, force: bool) -> Path:
    """Refuse, before the work is done, a file that could not or should not be written after it."""
    from idfsmec._files import check_writable

    path = Path(path)
    check_writable(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file with -o.")
    if path.suffix.lower() != ending:
        raise InputError(f"{path}: give a name that ends in {ending}.")
    if path.exists() and not force:
        raise ExistingFileError(path)
    return path


def write_csv(frame: Any, path: Path) -> None:
    """Write a frame for spreadsheets: no cell is a formula."""
    from idfsmec._files import neutralise, replacing

    with replacing(path) as (beside,):
        neutralise(frame).to_csv(beside, index=False)
