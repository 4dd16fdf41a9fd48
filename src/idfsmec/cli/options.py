"""Options: help and completion of those that commands share, what they mean, and their checks.

From Python a list does as well as a text with commas, and a text as well as a path.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import typer

from idfsmec._files import check_readable, check_writable
from idfsmec.cli.console import remark, shown
from idfsmec.errors import ExistingFileError, InputError

if TYPE_CHECKING:
    from idfsmec.recordings import Recording
    from idfsmec.table import FeatureTable

    Names = str | Sequence[str] | Sequence[float]
    Folds = str | int
    Harmonize = str | bool | None
    AnyPath = Path | str
    AnyPaths = AnyPath | Sequence[AnyPath]
else:  # Typer wants a single type
    Names, Folds, Harmonize, AnyPath, AnyPaths = str, str, str | None, Path, list[Path]
#: As in :mod:`idfsmec.recordings` and :mod:`idfsmec.missing`, which take a second to import.
DATA_SETS = ("modma3", "modma128", "mumtaz", "pred-d003", "tdbrain", "ds005356")
PATTERNS = ("random", "recording", "burst", "region", "uneven")
EXPERIMENTS = (
    *("accuracy", "imputation", "electrodes", "participants", "transfer"),
    *("ablation", "sensitivity", "cost", "audit"),
)
P = ParamSpec("P")
R = TypeVar("R")
OnError = Literal["stop", "skip"]
ProtocolName = Literal["honest", "paper"]
Per = Literal["participant"]

#: Help of options that several commands share.
SHARED = {
    "out": "Folder for the results.",
    "force": "Replace existing files.",
    "jobs": "Number of processes; -1: all cores.",
    "dask": "Address of a Dask scheduler, in place of --jobs.",
    "per": "participant: use means by participant, for tables that do not fit into memory.",
    "on_error": "Stop at a recording that fails, or skip it.",
    "data": "Folder with your copy of a data set.",
    "labels": "Column of the labels (BIDS, tdbrain), or rule for them (pred-d003).",
    "methods": 'Names, such as "IDFS-MEC,mRMR,ANOVA F". By default all but slow ones.',
    "imputer": "Imputer of all methods: mean, neighbours, factors or indicators.",
    "classifier": "Classifier of all methods: svm, ridge, idfsmec or boosting.",
    "protocol": "honest: subject-wise folds, missing channels in all samples, nested tuning. "
    "paper: sample-wise folds, missing channels for the selector only, best setting on the test "
    "folds.",
    "folds": "Number of subject-wise folds; or site: leave out one site at a time.",
    "harmonize": "Bring sites to one location and scale, as ComBat does. Learned in training "
    "folds, from all samples or from one class, such as HC.",
    "adjust": "Take out what covariates explain: columns of the table, such as age,sex. Learned "
    "in training folds. age:spline has a spline.",
    "adjust_from": "Class from which the effects of covariates are learned, such as HC. By "
    "default all.",
    "electrodes": "Number of electrodes to use: those with the largest channel weights.",
    "prevalence": "Prevalence of the second class where the model will be used, such as 0.1, for "
    "predictive values and decision curve. By default as in the table.",
    "repeats": "Number of repeats with new fold assignments.",
    "target": "A numeric column of the table, such as bdi, to predict as a score. By default the "
    "labels are predicted, as classes.",
    "order": "All labels from low to high, such as HC,mild,severe, to take them as grades.",
    "resamples": "Number of random halves of the participants for stability: even, such as 100.",
}
_METAVARS = {"folds": "NUMBER|site", "harmonize": "all|CLASS"}
_SHORT = {"out": "-o", "output": "-o", "jobs": "-j"}
#: What the Tab key offers: names, or registries, which are imported when it is pressed.
_CHOICES: dict[str, tuple[str, ...]] = {
    "source": DATA_SETS,
    "labels": ("idfsmec.recordings.datasets.pred:LABEL_RULES",),
    "features": ("idfsmec.features:FEATURE_SETS", "idfsmec.features:FEATURES"),
    "methods": ("idfsmec.prediction.methods:METHODS",),
    "method": ("idfsmec.prediction.methods:METHODS",),
    "imputer": ("idfsmec.prediction.methods:IMPUTERS",),
    "classifier": ("idfsmec.prediction.methods:CLASSIFIERS",),
    "condition": ("eyes-open", "eyes-closed"),
    "patterns": PATTERNS,
    "experiment": EXPERIMENTS,
    "folds": ("site",),
    "harmonize": ("all",),
}


def complete(name: str, incomplete: str) -> list[str]:
    """Complete a name of an option, or the last one of a list with commas, each name once.

    >>> complete("patterns", "burst,re"), complete("folds", "")
    (['burst,recording', 'burst,region'], ['site'])
    """
    choices: list[str] = []
    for choice in _CHOICES[name]:
        module, _, registry = choice.partition(":")
        choices += getattr(importlib.import_module(module), registry) if registry else [choice]
    before, comma, last = incomplete.rpartition(",")
    fresh = [choice for choice in choices if choice not in before.split(",")]
    return [f"{before}{comma}{choice}" for choice in fresh if choice.startswith(last)]


def option(name: str, text: str = "") -> Any:
    """Return the Typer declaration of an option."""
    return typer.Option(
        *filter(None, [f"--{name.replace('_', '-')}", _SHORT.get(name)]),
        metavar=_METAVARS.get(name),
        help=text or SHARED[name],
        autocompletion=(lambda incomplete: complete(name, incomplete))
        if name in _CHOICES
        else None,
    )


def argument(metavar: str, text: str, name: str = "") -> Any:
    """Return the Typer declaration of an argument; without a letter the shell completes files."""

    def names(incomplete: str) -> list[str]:
        return complete(name, incomplete) if incomplete else []

    shown = names if name in _CHOICES else None
    return typer.Argument(metavar=metavar, help=text, show_default=False, autocompletion=shown)


CONDITION = "Conditions whose samples are used, separated by commas. By default all."
TABLE = argument("TABLE", "Feature table: .parquet, .csv, .csv.gz or a folder of Parquet files.")


def paths(sources: AnyPath | Sequence[AnyPath], dask: str | None = None) -> list[Path]:
    """Return a list of paths, absolute for workers; from Python it may be a single one."""
    several = [Path(path) for path in ([sources] if isinstance(sources, (str, Path)) else sources)]
    return several if dask is None else [path.absolute() for path in several]


def split_names(text: Any) -> list[str] | None:
    """Split a list with commas; from Python it may be a list already.

    >>> split_names("mRMR, ANOVA F"), split_names(["mRMR"])
    (['mRMR', 'ANOVA F'], ['mRMR'])
    """
    if text is None:
        return None
    parts = text.split(",") if isinstance(text, str) else map(str, text)
    return [part.strip() for part in parts if part.strip()]


def parse_folds(folds: str | int | None) -> dict[str, Any]:
    """Return the argument ``folds`` or ``n_splits`` for an option.

    >>> parse_folds("site"), parse_folds("5"), parse_folds(None)
    ({'folds': 'site'}, {'n_splits': 5}, {})
    """
    if folds is None or folds == "site":
        return {"folds": folds} if folds else {}
    if not str(folds).isdecimal() or int(folds) < 2:
        raise InputError(f"--folds {folds}: give a number of at least 2, or site")
    return {"n_splits": int(folds)}


def parse_part(part: str | None) -> tuple[int, int] | None:
    """Return the number of a part and how many there are.

    >>> parse_part("3/16"), parse_part(None)
    ((3, 16), None)
    """
    if part is None:
        return None
    number, slash, total = part.partition("/")
    numbers = [int(text) for text in (number, total) if text.isdecimal()]
    if not slash or len(numbers) < 2 or not 1 <= numbers[0] <= numbers[1]:
        raise InputError(f"--part {part}: give a number and how many there are, such as 3/16")
    return numbers[0], numbers[1]


def parse_harmonize(harmonize: str | bool | None) -> bool | str:
    """Return the argument ``harmonize`` for an option: all is True, a class its name."""
    return harmonize in ("all", True) or harmonize or False


def check_numbers(*, repeats: int = 1, resamples: int = 0) -> None:
    """Refuse fewer than one repeat and an odd number of halves."""
    if repeats < 1:
        raise InputError(f"--repeats {repeats}: give at least 1")
    if resamples < 0 or resamples % 2:
        raise InputError(f"--resamples {resamples}: give an even number, such as 100, or 0")


def check_output(path: AnyPath, ending: str, force: bool, inputs: Sequence[Path] = ()) -> Path:
    """Refuse, before any work, an output file that cannot or should not be written."""
    path = Path(path)
    check_readable(*inputs)
    for source in inputs:
        if not source.exists():
            raise InputError(f"{source}: there is no such file.")
    check_writable(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file with -o.")
    if path.suffix.lower() != ending:
        raise InputError(f"{path}: give a name that ends in {ending}.")
    if path.exists() and not force:
        raise ExistingFileError(path)
    refuse_inputs(path, inputs)
    return path


def refuse_inputs(path: Path, inputs: Sequence[Path]) -> None:
    """Refuse an output that is an input, also by a link or another spelling of its path."""
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{path} is an input, and would be replaced; give another name.")


def check_folder(out: Path, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse a folder that cannot be written, or that has files of other programs."""
    check_writable(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder with --out")
    check_writable(out / "store.sqlite", out / "figures")
    known = force or (out / "store.sqlite").exists()
    exported = ("results.csv", "results.parquet", "ranking.csv", "selections.parquet")
    for name in (*exported, "audit.html", "audit.json", "reporting.md"):
        refuse_inputs(out / name, inputs)
        if (out / name).exists() and not known:
            raise InputError(
                f"{out / name} exists and is not from a benchmark or audit; give another folder "
                "with --out, or --force to replace it"
            )


def check_cluster(address: str | None) -> None:
    """Warn of a scheduler without encryption, unless it is on this machine."""
    host = (address or "").removeprefix("tcp://")
    if host and not host.startswith(("tls://", "localhost", "127.", "[::1]", "inproc://")):
        remark(
            f"warning: {address} has neither encryption nor authentication: anyone who reaches it "
            "can read the tables and run programs there. Use tls:// outside of a trusted network",
            "yellow",
        )


def failing(on_error: str) -> str:
    """Return what the library calls it to stop at a recording that fails, or to skip it."""
    return "skip" if on_error == "skip" else "raise"


def checked_recordings(
    source: str, on_error: str, condition: Any, **asked: Any
) -> list[Recording]:
    """Find the recordings of a study, each once; refuse those that two participants share."""
    from idfsmec import recordings

    asked |= {"condition": split_names(condition), "absent_ok": on_error == "skip"}
    with shown("looking for recordings and duplicates"):
        return recordings.check_duplicates(recordings.find_recordings(source, **asked))


def find_verdict(
    path: AnyPath, table: FeatureTable, n_jobs: int, folds: str = "subject"
) -> Mapping[str, str]:
    """Return the verdict that is stored beside a table, or that of an audit which is run now."""
    from idfsmec.audit import audit
    from idfsmec.table.verdicts import stored_verdict

    if stored := stored_verdict(Path(path), table):
        return stored
    with shown("audit") as progress, naming(path):
        asked: dict[str, Any] = {"folds": folds, "n_jobs": n_jobs, "progress": progress}
        return audit(table, parts=["eeg"], **asked).verdict


def read_table(path: Path, condition: Any, per: str | None, name: object = "") -> FeatureTable:
    """Read the samples of some conditions, or their means by participant."""
    from idfsmec.table import FeatureTable

    if per is None:
        return take_condition(FeatureTable.read(path), condition, name or path)
    with naming(path):
        return FeatureTable.read_by_subject(path, split_names(condition) or ())


def clustered(function: Callable[P, R]) -> Callable[P, R]:
    """Run a command on the Dask cluster that its argument ``dask`` names, if it does."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        address = inspect.signature(function).bind(*args, **kwargs).arguments.get("dask")
        if address is None:
            return function(*args, **kwargs)
        from idfsmec._parallel import on_cluster

        check_cluster(address)
        with on_cluster(address):
            return function(*args, **kwargs)

    return run


def take_condition(table: FeatureTable, condition: Any, name: object) -> FeatureTable:
    """Keep the samples of conditions; warn where several are pooled by default."""
    if wanted := split_names(condition):
        with naming(str(name)):
            return table.select_conditions(wanted)
    if len(table.conditions) > 1:
        remark(
            f"{name}: samples of several conditions are pooled ({', '.join(table.conditions)}); "
            f"--condition {table.conditions[0]} uses one of them",
            "yellow",
        )
    return table


def take_target(
    table: FeatureTable, target: str | None, order: Any, name: AnyPath
) -> FeatureTable:
    """Take a column as the score, or the labels as grades; refuse numbers that may be either."""
    grades = split_names(order)
    if target is not None and grades is not None:
        raise InputError("--target and --order cannot be combined: a score has an order already")
    with naming(name):
        if target is not None:
            table = table.with_target(target)
        elif grades is not None:
            table = table.with_order(grades)
        _ = table.target  # refuses labels of many numbers
    return table


def target_words(target: str | None, order: Any) -> list[str]:
    """Return the options that name a target, for the command that follows."""
    if target is not None:
        return ["--target", target]
    return ["--order", ",".join(split_names(order) or ())] if order else []


@contextmanager
def naming(name: AnyPath) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{name}: {error}", argument=getattr(error, "argument", None)) from error
