"""Files that are whole or not there: written beside and renamed, safe to open in a spreadsheet."""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd

from idfsmec._system import is_running
from idfsmec.errors import InputError

# What Excel, LibreOffice and Google Sheets take for the beginning of a formula, also full-width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


_LONG = 120


def _beside(path: Path, process: int | str, unique: str | None = None) -> Path:
    """Name a file beside another by the machine and the process that writes it."""
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    name = path.name
    if len(name.encode()) > _LONG:  # file systems take 255 bytes; the ending says how to write
        name = f"{hashlib.sha256(name.encode()).hexdigest()[:16]}{name[-16:]}"
    return path.with_name(f".{machine}-{process}-{unique or uuid.uuid4().hex}.{name}")


def _sweep(path: Path) -> None:
    """Remove what a killed process of this machine left beside a file."""
    pattern = _beside(Path(glob.escape(path.name)), "*", "*").name
    for left in path.parent.glob(pattern):
        number = left.name.split("-")[1]
        if number.isdigit() and not is_running(int(number)):
            left.unlink(missing_ok=True)


def naming(error: OSError, path: Path) -> OSError:
    """Say which file it was: a full disk alone does not help anybody.

    Examples
    --------
    >>> str(naming(OSError(28, "No space left on device"), Path("table.csv")))
    "[Errno 28] No space left on device: 'table.csv'"
    """
    if error.errno is None:
        return OSError(f"{path}: {error}")
    return OSError(error.errno, error.strerror or str(error), str(path))


def check_writable(*paths: Path) -> None:
    """Refuse, before any work is done, what could not be written when it is done.

    Tries it with an empty file in the folder, or in the nearest one above that is there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_writable(Path(folder) / "new" / "table.parquet")
    ...     list(Path(folder).iterdir())
    []
    """
    for path in (one for one in paths if one.name):
        folder = path.absolute().parent
        try:
            with suppress(FileNotFoundError):
                path.lstat()  # says whether the name can be at all
            while not folder.exists():
                folder = folder.parent
            probe = _beside(folder / path.name, os.getpid())
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    name = str(path) if len(str(path)) < 200 else f"{str(path)[:60]}..."
    reason = error.strerror or type(error).__name__
    return InputError(f"{name}: cannot be written there ({reason}): give another name or folder.")


@contextmanager
def replacing(*paths: Path) -> Iterator[list[Path]]:
    """Give names to write to; they replace ``paths`` only when everything went well."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    beside = [_beside(path, os.getpid()) for path in paths]
    try:
        yield beside
        for temporary in beside:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # or a power cut could leave the name without the bytes
        for temporary, path in zip(beside, paths, strict=True):
            os.replace(temporary, path)  # noqa: PTH105 - the atomic one, by its name
            _sweep(path)
    except OSError as error:
        raise naming(error, paths[-1]) from error
    finally:
        for temporary in beside:
            with suppress(OSError):  # a disk closed for writing must not hide what went wrong
                temporary.unlink(missing_ok=True)


def neutralise(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before text cells and column names that would run as formulas.

    Names of channels and subjects come from files that somebody else wrote. Numbers stay as
    they are; so does text that begins with anything else.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame
        A copy to be written with ``to_csv``.

    Examples
    --------
    >>> neutralise(pd.DataFrame({"channel": ["Fp1", "=HYPERLINK(A1)"], "score": [-1.5, 2.0]}))
               channel  score
    0              Fp1   -1.5
    1  '=HYPERLINK(A1)    2.0
    """
    safe = frame.copy()
    for place, kind in enumerate(safe.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            safe.isetitem(place, [_plain(cell) for cell in safe.iloc[:, place]])
    safe.columns = pd.Index([_plain(name) for name in safe.columns])
    return safe


def _plain(cell: object) -> object:
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA):
        return f"'{cell}"
    return cell
