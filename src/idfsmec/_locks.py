"""SQLite as a lock that dies with its process, and its words for a full or closed disk."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from idfsmec.errors import InputError

# What SQLite says of a disk that is full or closed; anything else is about what is in the file.
_DISK = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
)

_NO_LOCKS = (
    "{}: files cannot be locked there, so nothing would keep two runs from writing at once; "
    "choose a folder on a disk of this machine"
)


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether an error is about the disk, not about what is in the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK


@contextmanager
def naming_disk(path: Path) -> Iterator[None]:
    """Say which file it was when the disk is full or closed."""
    try:
        yield
    except sqlite3.Error as error:
        if is_of_the_disk(error):
            raise OSError(f"{path}: {error}; what was finished before is kept") from error
        raise


def take_lock(path: Path, busy: str) -> sqlite3.Connection:
    """Hold an exclusive lock until the connection is closed or the process ends, however it ends.

    Parameters
    ----------
    path : Path
        A file of its own for the lock.
    busy : str
        What to say if another process holds it.
    """
    with naming_disk(path):
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if is_of_the_disk(error):
                raise
            raise InputError(busy if _can_lock(path) else _NO_LOCKS.format(path.parent)) from None
    return lock


def _can_lock(path: Path) -> bool:
    """Whether the file system knows locks: some of those on a network say "busy" to everybody."""
    trial = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    lock = sqlite3.connect(trial, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return False
    finally:
        lock.close()
        trial.unlink(missing_ok=True)
    return True


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
