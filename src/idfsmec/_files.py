"""Files that are whole or not there, locks that die with their process, cells that do not run."""

from __future__ import annotations

import codecs
import glob
import hashlib
import math
import os
import platform
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# What Excel, LibreOffice and Google Sheets take for the beginning of a formula, also full-width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# What SQLite says of a disk that is full or closed; anything else is about what is in the file.
_DISK = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
)


@contextmanager
def replacing(*paths: Path) -> Iterator[list[Path]]:
    """Give names to write to; they replace ``paths`` only when everything went well."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    temporaries = [beside(path) for path in paths]
    try:
        yield temporaries
        for temporary in temporaries:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # or a power cut could leave the name without the bytes
        for temporary, path in zip(temporaries, paths, strict=True):
            os.replace(temporary, path)  # noqa: PTH105 - the atomic one, by its name
            sweep(path)
    except OSError as error:
        # Say which file it was: that the disk is full helps little.
        if error.errno is None:
            raise OSError(f"{paths[-1]}: {error}") from error
        raise OSError(error.errno, error.strerror or str(error), str(paths[-1])) from error
    finally:
        for temporary in temporaries:
            with suppress(OSError):  # a disk closed for writing must not hide what went wrong
                temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write what JSON can hold, for readers."""
    import json  # here, since every start of the command line loads this module

    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    with replacing(path) as (temporary,):
        temporary.write_text(text + "\n", encoding="utf-8")


def null_for_nan(value: Any) -> Any:
    """Return None in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: null_for_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [null_for_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def beside(path: Path, process: int | str | None = None, unique: str | None = None) -> Path:
    """Name a file beside another by the machine and the process (this one) that writes it."""
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    name = path.name
    if len(name.encode()) > 120:  # file systems take 255 bytes; the ending says how to write
        name = f"{hashlib.sha256(name.encode()).hexdigest()[:16]}{name[-16:]}"
    end = f"{process or os.getpid()}-{unique or uuid.uuid4().hex}.{name}"
    return path.with_name(f".{machine}-{end}")


def sweep(path: Path) -> None:
    """Remove files that a killed process of this machine left beside a file."""
    for left in path.parent.glob(beside(Path(glob.escape(path.name)), "*", "*").name):
        process = left.name.split("-")[1]
        if process.isdigit() and not _is_running(int(process)):
            left.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Return whether there is a process with this number; unknown counts as yes."""
    if os.name != "posix":  # elsewhere one cannot ask for a process without harming it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # of another user
    return True


def check_readable(*paths: Path) -> None:
    """Refuse pipes, devices and sockets, which may never end, and names that are not UTF-8."""
    for path in paths:
        _check_name(path)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: is a pipe or a device, not a file. Remove it.")


def _check_name(path: Path) -> None:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
        raise InputError(
            f"{path}: is an address, and commands take files of this machine: copy it, or in "
            "Python give pyarrow.dataset.dataset(...) of it to IDFSMEC().fit or summarise."
        )
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{path}: the name is not in UTF-8: rename it.") from None


def refuse_moved(path: Path | None, opened: os.stat_result | None, what: str) -> None:
    """Stop a run whose file or folder with what is finished is no longer the one it opened."""
    if path and opened and not (path.exists() and os.path.samestat(path.stat(), opened)):
        raise OSError(
            f"{path}: deleted or moved during the run, with all finished {what}; give the same "
            "command to start again"
        )


def refuse_oversized(what: str, n_values: int, remedy: str = "split it") -> None:
    """Refuse, before it is read, what declares more numbers than this machine can hold."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return  # Windows has no sysconf
    needed = 3 * 8 * n_values  # as read, as checked or filtered, and one to work on
    if needed > memory:
        raise InputError(
            f"{what}: needs about {1e-9 * needed:,.1f} GB of memory, and this machine has "
            f"{1e-9 * memory:,.1f} GB. Check that the file is not damaged, or {remedy}."
        )


def file_system(path: Path) -> str:
    """Return the type of the file system that a path is on, such as ext4; empty if not known."""
    mounts = Path("/proc/self/mounts")
    if not mounts.is_file():  # not Linux
        return ""
    fields = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    kinds = {Path(place.replace("\\040", " ")): kind for _, place, kind, *_ in fields}
    absolute = path.absolute()
    return next((kinds[part] for part in (absolute, *absolute.parents) if part in kinds), "")


def check_writable(*paths: Path) -> None:
    """Refuse, before any work is done, what could not be written when it is done."""
    for path in paths:
        _check_name(path)
        if not path.name:
            continue
        folder = path.absolute().parent
        try:
            with suppress(FileNotFoundError):
                path.lstat()  # says whether the name can be at all
            while not folder.exists():
                if folder.is_symlink():
                    raise InputError(
                        f"{folder}: is a link to {folder.readlink()}, which does not exist: "
                        "remove the link, or make the folder"
                    )
                folder = folder.parent
            probe = beside(folder / path.name)
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            name = str(path) if len(str(path)) < 200 else f"{str(path)[:60]}..."
            reason = error.strerror or type(error).__name__
            raise InputError(
                f"{name}: cannot be written there ({reason}): give another name or folder."
            ) from error


@contextmanager
def naming_disk(path: Path) -> Iterator[None]:
    """Name the file in errors of SQLite about a full or read-only disk."""
    try:
        yield
    except sqlite3.Error as error:
        if is_of_the_disk(error):
            raise OSError(f"{path}: {error}; finished results are kept") from error
        raise


def is_of_the_disk(error: BaseException) -> bool:
    """Return whether an error is about the disk, not about what is in the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK


def take_lock(path: Path, busy: str) -> sqlite3.Connection:
    """Hold a lock until the connection is closed or the process ends, or fail with ``busy``."""
    with suppress(sqlite3.OperationalError), naming_disk(path):  # of the disk they are OSErrors
        return _lock(path)
    trial = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    try:
        _lock(trial).close()
    except sqlite3.OperationalError:  # some file systems on a network say "busy" to everybody
        busy = (
            f"{path.parent}: files cannot be locked there, so two runs could write at "
            "once; choose a folder on a disk of this machine"
        )
    finally:
        trial.unlink(missing_ok=True)
    raise InputError(busy)


def _lock(path: Path) -> sqlite3.Connection:
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        raise
    return lock


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock for a while; its folder is made, and removed if nothing else is in it then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = take_lock(path, busy)
    try:
        yield
    finally:
        lock.close()
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()


def read_utf8(path: Path) -> bytes:
    """Read a text file, gzipped or not, in UTF-8 or UTF-16, as UTF-8 without a byte order mark."""
    check_readable(path)
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        import gzip  # as json above

        content = gzip.decompress(content)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def find_separator(content: bytes, separators: str = ",;\t") -> str:
    """Return which separator a table in text has: that which its header has most of."""
    header = content.partition(b"\n")[0]
    return max(separators, key=lambda sign: header.count(sign.encode()))


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame for spreadsheets, see :func:`disarm_formulas`."""
    with replacing(path) as (beside_it,):
        disarm_formulas(frame).to_csv(beside_it, index=False)


def disarm_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Give texts that a spreadsheet would run as formulas an apostrophe.

    Names of channels and subjects come from files that others wrote.
    """
    import pandas as pd

    safe = frame.copy()
    for position, dtype in enumerate(safe.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):  # booleans are
            safe.isetitem(position, [_plain(cell) for cell in safe.iloc[:, position]])
    safe.columns = pd.Index([_plain(name) for name in safe.columns])
    return safe


def _plain(cell: object) -> object:
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA):
        return f"'{cell}"
    return cell
